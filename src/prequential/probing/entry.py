"""Probing: which representation explains these labels with the shortest code?"""

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import nn

from prequential.data.sequence import DataSequence
from prequential.errors import PreqError, in_one_line, whole_seed
from prequential.learn.built import fill_lazy
from prequential.learn.randomness import FOREIGN, seeded
from prequential.probing.blocks import code_in_blocks
from prequential.probing.coding import READOUTS, Code, code_online, require_readouts
from prequential.probing.control import control_labels
from prequential.probing.features import Representation, representations
from prequential.probing.layers import LAST
from prequential.probing.networks import UNKNOWN, Network, find_network, one_input, ready
from prequential.probing.result import Probed, Probing
from prequential.runs.weights import example_digests
from prequential.targets.simple_codes import frequency_code

Probable = str | nn.Module | ArrayLike | torch.Tensor
"""What can be probed: a network by word, a module, or features, a row for each example."""


def probe(
    what: Probable | Sequence[str] | Mapping[str, Probable],
    data: DataSequence,
    *,
    layers: str | Iterable[str] = LAST,
    readouts: str | Iterable[str] = READOUTS,
    voita: bool = False,
    control: ArrayLike | None = None,
    allow_seen: bool = False,
    width: float = 1.0,
    seed: int = 0,
    cache: str | Path | None = None,
    told: Callable[[Probed], object] | None = None,
) -> Probing:
    """Rank representations by the description length of the labels given them (Voita and Titov, 2020).

    For each representation, readouts learn online, each at three learning rates or scales, and the labels are coded by
    switching among all of them (Li, Bornschein and Hutter, 2023): at most ln n + k·ln(n − 1) + (k + 1)·ln T nats more
    than the best sequence of the n experts with k changes.

    Args:
        what: a word, a module or an array of features, or several of them: a sequence of words or a dictionary by name.
            Words: `run:DIR` (a run that kept its weights), `MODEL@FILE.safetensors`, a model's name for an untrained
            one, `inputs` for the inputs themselves.
        data: the sequence; features are standardised over all of its inputs.
        layers: "last" (what the last layer of weights is given), "all", or names of modules.
        readouts: of linear, mlp1, mlp2, nearest-mean, knn, bayes-linear.
        voita: code block by block instead, one readout trained from scratch before each.
        control: a value for each position. Each distinct one gets a random class, and these are coded as well.
        allow_seen: probe networks that were trained on examples of this data, too.
        width: of models that are named here.
        seed: of untrained networks, readouts, and control.
        cache: where features are kept. Default: `features` in $PREQ_CACHE or ~/.cache/prequential.
        told: called with each representation when it is done.

    Raises:
        PreqError: for what cannot be probed; for a network that was trained on some of these examples.

    Example:
        >>> import prequential as pq
        >>> labels = np.arange(200) % 2
        >>> noise = np.random.default_rng(0).normal(size=(200, 3))
        >>> data = pq.from_arrays(noise, labels)
        >>> found = pq.probe({"noise": noise, "signal": noise + labels[:, None]}, data, readouts=["nearest-mean"])
        >>> found.best.name
        'signal'
    """
    asked = readouts.split(",") if isinstance(readouts, str) else list(readouts)
    chosen, seed = require_readouts(asked), whole_seed("seed", seed)
    if voita and len(chosen) != 1:
        raise PreqError(f"voita trains one readout from scratch for each block, got {', '.join(chosen)}; name one")
    labels = data.labels(np.arange(len(data))).numpy()
    coded = [labels] if control is None else [labels, control_labels(control, labels, seed=seed)]
    wanted = layers if isinstance(layers, str) else ",".join(layers)
    code = partial(code_in_blocks if voita else code_online, num_classes=data.num_classes, readouts=chosen, seed=seed)
    folder = None if cache is None else Path(cache)
    found = list[Probed]()
    for each in _representations(_named(what), data, wanted, folder, width, seed, allow_seen=allow_seen):
        features = each.standardised()
        codes: list[Code] = [code(features, some) for some in coded]
        found.append(_probed(each, data.num_classes, codes))
        if told is not None:
            told(found[-1])
    if not found:
        raise PreqError("there is nothing to probe; name at least one network")
    return Probing(
        data=data.name,
        length=len(labels),
        num_classes=data.num_classes,
        ranking=Probing.ranked(found),
        readouts=chosen,
        is_online=not voita,
        frequencies_nats=float(frequency_code(labels, data.num_classes).sum()),
    )


def _named(what: Probable | Sequence[str] | Mapping[str, Probable]) -> dict[str, Any]:
    """What is to be probed, by name."""
    if isinstance(what, Mapping):
        return {str(name): each for name, each in what.items()}
    if isinstance(what, str):
        return {what: what}
    if isinstance(what, nn.Module):
        return {type(what).__name__: what}
    if isinstance(what, list | tuple) and all(isinstance(word, str) for word in what):
        return {word: word for word in what}
    return {"features": what}


def _representations(
    named: Mapping[str, Any],
    data: DataSequence,
    layers: str,
    folder: Path | None,
    width: float,
    seed: int,
    *,
    allow_seen: bool,
) -> Iterable[Representation]:
    """All of them; every network is found, and refused if need be, before the first is looked at."""
    examples = cache(partial(example_digests, data))
    networks = dict[str, Network]()
    for name, each in named.items():
        if isinstance(each, str):
            networks[name] = replace(find_network(each, data, examples, width=width, seed=seed), name=name)
        elif isinstance(each, nn.Module):
            module = _copied(each, name)
            with seeded(seed, "initialise", -1, None, FOREIGN):
                fill_lazy(module, name, partial(one_input, data))
            networks[name] = Network(name, ready(module), UNKNOWN)
    seen = [f"{each.name} ({each.share_seen:.1%})" for each in networks.values() if each.share_seen]
    if seen and not allow_seen:
        raise PreqError(
            f"{', '.join(seen)} learned these very examples, so that such a code is worth nothing; probe other data, "
            "or give --allow-seen (allow_seen=True) to have it shown and marked"
        )
    for name, each in named.items():
        if name in networks:
            yield from representations(networks[name], data, layers, folder)
        else:
            yield _given(name, each, len(data))


def _copied(module: nn.Module, name: str) -> nn.Module:
    """One of our own, so that the user's stays as it is: trainable, in its mode and on its device."""
    try:
        return copy.deepcopy(module).cpu()
    except Exception as error:  # the user's code may fail in any way
        raise PreqError(f"{name} cannot be copied to be frozen ({in_one_line(error)}); give its features") from None


def _given(name: str, features: Any, length: int) -> Representation:
    try:
        rows = np.asarray(features.detach().cpu() if isinstance(features, torch.Tensor) else features)
    except ValueError:  # rows of different lengths, words among them
        raise PreqError(
            f"the features '{name}' form no one array; give words or arrays, several of them in a dictionary"
        ) from None
    if rows.dtype.kind not in "biuf" or rows.ndim < 2 or len(rows) != length:
        raise PreqError(
            f"features must be numbers, a row for each of {length:,} examples, got {rows.dtype} of shape {rows.shape}"
        )
    with np.errstate(over="ignore"):
        rows = rows.reshape(length, -1).astype(np.float32)
    if not np.isfinite(rows).all():
        raise PreqError(f"the features '{name}' hold what is no finite number; leave those rows out")
    return Representation(Network(name, None, UNKNOWN), "", rows)


def _probed(representation: Representation, num_classes: int, codes: Sequence[Code]) -> Probed:
    network = representation.network
    mark = f" [{network.share_seen:.1%} seen]" if network.share_seen else ""
    return Probed(
        name=f"{representation.name}{mark}",
        network=network.name,
        layer=representation.layer,
        training=network.training,
        share_seen=network.share_seen,
        num_features=representation.features.shape[1],
        num_classes=num_classes,
        code=codes[0],
        control=codes[1] if len(codes) > 1 else None,
    )
