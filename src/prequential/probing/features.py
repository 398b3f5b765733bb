"""Features of frozen networks: computed once, kept in mapped files, standardised.

What a layer gives becomes one row of numbers. Maps of more than 2,048 numbers are averaged over squares, the smallest
that bring them to at most so many (one number for each channel, if need be); what transformers give for each token is
averaged over the tokens; vectors stay as they are.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from prequential.data.digest import spans
from prequential.data.download import cache_directory
from prequential.data.scale import scale_of
from prequential.data.sequence import DataSequence, to_network_input
from prequential.errors import PreqError
from prequential.files import bytes_of, digest_of
from prequential.learn.probe import fingerprint_of, type_taken
from prequential.probing.layers import GIVEN, forward, layers_of, listening
from prequential.probing.networks import Network
from prequential.probing.stored import FeatureFile, Features, give_up, map_features

VERSION = 1
"""Of how features are made: files of another are not used."""
MOST_FEATURES = 2048
AT_ONCE = 256
SAMPLE = 16
"""Inputs of which what the network gives is a part of a file's name."""
CONSTANT = 1e-6
"""A feature that varies less than that, beside its mean, does not vary."""


@dataclass(frozen=True, eq=False)
class Representation:
    """What one layer of one network makes of the inputs."""

    network: Network
    layer: str
    """The name of the module; empty for features that were given."""
    features: Features
    """As they are, a row for each position; mapped."""
    is_reused: bool = False
    """Whether they were computed before."""

    @property
    def name(self) -> str:
        """Network and layer, with what kind of layer it is."""
        if not self.layer or self.network.module is None:
            return self.network.name
        kind = type(self.network.module.get_submodule(self.layer.removeprefix(GIVEN))).__name__
        return f"{self.network.name} {self.layer} {kind}"

    def standardised(self) -> Tensor:
        """Mean 0 and variance 1 for each feature, over all inputs; one that does not vary is 0."""
        wide = np.asarray(self.features, np.float64)
        mean, deviation = wide.mean(0), wide.std(0)
        varies = deviation > CONSTANT * np.maximum(np.abs(mean), CONSTANT)
        scaled = (wide - mean) / np.where(varies, deviation, 1.0)
        return torch.from_numpy(np.where(varies, scaled, 0.0).astype(np.float32))


def flattened(outputs: Tensor, most: int = MOST_FEATURES) -> Tensor:
    """What a layer gives as rows of numbers.

    Example:
        >>> flattened(torch.zeros(5, 64, 32, 32)).shape, flattened(torch.zeros(5, 6, 14, 14)).shape
        (torch.Size([5, 1600]), torch.Size([5, 1176]))
    """
    if outputs.dim() == 3:
        outputs = outputs.mean(1)
    if outputs.dim() == 4 and outputs[0].numel() > most:
        channels, height, breadth = outputs.shape[1:]
        sides = range(2, max(height, breadth))
        side = next((s for s in sides if channels * -(-height // s) * -(-breadth // s) <= most), max(height, breadth))
        outputs = nn.functional.avg_pool2d(outputs, (min(side, height), min(side, breadth)), ceil_mode=True)
    return outputs.flatten(1)


def representations(
    network: Network, data: DataSequence, wanted: str, cache: Path | None = None
) -> Iterator[Representation]:
    """What the wanted layers of a network make of the inputs of a sequence; those computed before are mapped.

    Args:
        wanted: see `layers_of`.
        cache: where files are kept. Default: `features` in the cache of the package.
    """
    inputs = _Inputs(network, data)
    names = [""]
    if network.module is not None:
        names = layers_of(network.module, wanted, inputs(np.arange(min(2, len(data)))), network.name)
    folder = cache_directory() / "features" if cache is None else cache
    state = "" if network.module is None else fingerprint_of(network.module)
    about = f"{VERSION} {data.digests()['inputs']} {len(data)} {inputs.scale} {state} {MOST_FEATURES}"
    few = _outputs(
        network, names, inputs(np.arange(min(SAMPLE, len(data))))
    )  # weights do not tell what code makes of them
    keys = {name: f"{about} {name} {digest_of(bytes_of(rows.numpy()))}" for name, rows in few.items()}
    files = {name: folder / f"{digest_of(key.encode())}.npy" for name, key in keys.items()}
    reused = {name: features for name in names if (features := map_features(files[name], len(data))) is not None}
    if len(reused) < len(files):
        _compute(network, inputs, len(data), {name: files[name] for name in names if name not in reused})
    for name in names:
        features = reused[name] if name in reused else map_features(files[name], len(data))
        if features is None:
            raise PreqError(f"{files[name]} was changed while it was written; try again")
        yield Representation(network, name, features, name in reused)


class _Inputs:
    """Inputs as the network takes them."""

    def __init__(self, network: Network, data: DataSequence) -> None:
        self._data, self.scale = data, scale_of(data)
        self._whole_as: torch.dtype | None = None
        few = to_network_input(data.inputs(np.zeros(2, np.int64)), self.scale)
        if not few.is_floating_point():
            module = network.module
            self._whole_as = torch.float32 if module is None else type_taken(module, few, torch.float32)

    def __call__(self, positions: NDArray[np.int64]) -> Tensor:
        inputs = to_network_input(self._data.inputs(positions), self.scale)
        return inputs if self._whole_as is None else inputs.to(self._whole_as)


def _outputs(network: Network, names: Collection[str], inputs: Tensor) -> dict[str, Tensor]:
    """What layers give for some inputs, as rows of finite numbers."""
    got = dict[str, Tensor]()

    def take(name: str, output: object) -> None:
        output = output[0] if isinstance(output, tuple | list) and output else output
        if not isinstance(output, Tensor) or output.dim() < 2 or not output.is_floating_point():
            raise PreqError(f"the layer {name} of {network.name} gives no rows of numbers; name another")
        got[name] = flattened(output.float()).clone()  # the next part may write into it

    module = nn.Sequential() if network.module is None else network.module  # which gives what it is given
    with listening(module, lambda name, _: name in names, take):
        forward(module, inputs, network.name)
    for name in names:
        if name not in got:
            raise PreqError(f"the layer {name} of {network.name} computes nothing; name another")
        if not bool(got[name].isfinite().all()):
            raise PreqError(f"the layer {name} of {network.name} gives what is no finite number")
    return {name: got[name] for name in names}


def _compute(network: Network, inputs: _Inputs, length: int, files: Mapping[str, Path]) -> None:
    """One pass over the inputs, for all layers whose features are not there."""
    written = {name: FeatureFile(file, length) for name, file in files.items()}
    try:
        for positions in spans(0, length, AT_ONCE):
            for name, rows in _outputs(network, files, inputs(positions)).items():
                written[name].write(rows.numpy())
        for file in written.values():
            file.finish()
    except BaseException:
        give_up(written.values())
        raise
