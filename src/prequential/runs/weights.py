"""The weights of a finished run, kept beside its record, with a digest of every example that they were trained on.

`weights.safetensors` holds the averaged weights by the names of the network, `trained_on.npy` a 64-bit digest of each
example, sorted, and `weights.json` what both belong to.
"""

import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load, save
from torch import Tensor

from prequential.data.digest import spans
from prequential.data.sequence import DataSequence
from prequential.errors import PreqError, in_one_line
from prequential.events import Train
from prequential.files import bytes_of, digest_of, read_array, reading, write_array, write_atomically
from prequential.formats import KEPT_WEIGHTS, TENSORS
from prequential.learn.built import built_for
from prequential.learn.last_layer import LastLayer, tensors_without
from prequential.learn.learner import Learner
from prequential.learn.learning import Learning
from prequential.learn.randomness import FOREIGN, seeded
from prequential.models import name_of
from prequential.plain import MOST_BYTES, MisfitError, parsed, read_bytes, require_shape, sealed, unsealed
from prequential.plan import Plan

WEIGHTS_FILE, ABOUT_FILE, EXAMPLES_FILE = "weights.safetensors", "weights.json", "trained_on.npy"
FORMAT = 1
READ_AT_ONCE = 1024

Digests = NDArray[np.uint64]


@dataclass(frozen=True)
class KeptWeights:
    """What is known of weights that a run has kept."""

    model: str
    width: float
    input_shape: tuple[int, ...]
    output_size: int
    data: str
    """The name of what they were trained on."""
    trained_on: Digests
    """Digests of the examples, sorted."""

    def share_of(self, examples: Digests) -> float:
        """The share of these examples that the weights were trained on."""
        return float(np.isin(examples, self.trained_on).mean()) if len(examples) else 0.0


def example_digests(data: DataSequence, positions: NDArray[np.int64] | None = None) -> Digests:
    """64 bits for each example, of the bytes of its stored input and of its label, whatever the order and the length.

    Example:
        >>> from prequential.data.arrays import from_arrays
        >>> one, other = (from_arrays(np.zeros((2, 1), np.uint8), labels) for labels in ([0, 1], [1, 0]))
        >>> bool((example_digests(one) == example_digests(other)[::-1]).all())
        True
    """
    chosen = np.arange(len(data)) if positions is None else positions
    found = np.empty(len(chosen), np.uint64)
    for places in spans(0, len(chosen), READ_AT_ONCE):
        inputs, labels = data.inputs(chosen[places]), data.labels(chosen[places]).numpy().astype("<i8")
        rows = inputs.contiguous().view(len(places), -1).view(torch.uint8).numpy()
        for place, row, label in zip(places, rows, labels, strict=True):
            both = hashlib.blake2b(bytes_of(row), digest_size=8)
            both.update(label.tobytes())
            found[place] = int.from_bytes(both.digest(), "little")
    return found


def require_keepable(learner: Learning) -> None:
    """Refuse to keep the weights of what is no single network."""
    if not isinstance(learner, Learner):
        raise PreqError("keep_weights keeps those of one network of the package's own learners; leave it out here")
    _require_own_names(learner)


def _require_own_names(learner: Learner) -> None:
    """Refuse weights that do not fit the model: a study leaves its last layer with a weight and a bias."""
    if not any(isinstance(each, LastLayer) for each in learner.averaged.modules()):
        return
    with seeded(learner.seed, "initialise", -1, None, FOREIGN):
        model = built_for(learner.factory, learner.data, learner.target, learner.width, learner.inputs.scale)
    kept, own = tensors_without(learner.averaged).keys(), model.state_dict().keys()
    if differ := sorted(kept ^ own):
        raise PreqError(
            f"a study leaves its last layer a weight and a bias, and '{name_of(learner.factory)}' has others there "
            f"({differ[0]}), so that its weights cannot be kept; make it an nn.Linear with a bias, or leave them out"
        )


def keep_weights(directory: Path, learner: Learning, plan: Plan) -> None:
    """Write the averaged weights of a learner that has executed a whole plan, and what it was trained on."""
    assert isinstance(learner, Learner)
    data, is_trained = learner.data, np.zeros(plan.length, bool)
    for event in plan.events():
        if isinstance(event, Train):
            is_trained[event.indices] = True
    digests = np.sort(example_digests(data, np.flatnonzero(is_trained)))
    named = tensors_without(learner.averaged)
    tensors = {name: tensor.detach().cpu().clone().contiguous() for name, tensor in named.items()}
    content = save(tensors)
    about = {
        "format": FORMAT,
        "model": name_of(learner.factory),
        "width": float(learner.width),
        "input_shape": list(data.input_shape),
        "output_size": learner.target.output_size,
        "data": data.name,
        "weights": digest_of(content),
        "trained_on": {"length": len(digests), "digest": digest_of(bytes_of(digests))},
    }
    write_atomically(directory / WEIGHTS_FILE, content)
    write_array(directory / EXAMPLES_FILE, digests)
    write_atomically(directory / ABOUT_FILE, sealed(about, "weights"))


def read_tensors(path: Path) -> tuple[dict[str, Tensor], str]:
    """The tensors of a .safetensors file by name, and the digest of its content.

    Raises:
        PreqError: for a file that cannot be read or is none.
    """
    with reading(path):
        content = path.read_bytes()
    return tensors_in(content, path), digest_of(content)


def tensors_in(content: bytes, path: Path) -> dict[str, Tensor]:
    """The tensors of a .safetensors file by name, of which this is the content.

    Raises:
        PreqError: for a file that is none.
    """
    try:
        header = parsed(content[8 : 8 + min(int.from_bytes(content[:8], "little"), 4 * MOST_BYTES)])
        require_shape(header, TENSORS)
        return load(content)
    except Exception as error:  # a foreign file fails in many ways
        raise PreqError(f"{path} is no whole .safetensors file ({in_one_line(error)})") from None


def read_about(directory: Path, weights: str) -> KeptWeights | None:
    """What a run says of the weights with that digest, if it has kept them in that directory.

    Raises:
        PreqError: for files that are damaged.
    """
    file = directory / ABOUT_FILE
    if not file.exists():
        return None
    try:
        about = unsealed(read_bytes(file), "weights")
        require_shape(about, KEPT_WEIGHTS)
    except MisfitError as error:
        raise PreqError(f"{file} is damaged: {error}") from None
    if about["format"] != FORMAT:
        raise PreqError(f"{file} has format {about['format']}, this version reads {FORMAT}")
    if about["weights"] != weights:
        return None
    digests = read_array(directory / EXAMPLES_FILE, about["trained_on"]["length"])
    if digests.dtype != np.uint64 or digest_of(bytes_of(digests)) != about["trained_on"]["digest"]:
        raise PreqError(f"{directory / EXAMPLES_FILE} is damaged: its content does not fit {ABOUT_FILE}")
    return KeptWeights(
        **{name: about[name] for name in ("model", "width", "output_size", "data")},
        input_shape=tuple(about["input_shape"]),
        trained_on=digests,
    )
