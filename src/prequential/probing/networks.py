"""The networks that are probed: by word, from weights that were kept, or as they are."""

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from prequential.data.scale import scale_of
from prequential.data.sequence import DataSequence, to_network_input
from prequential.errors import PreqError
from prequential.learn.built import fill_lazy
from prequential.learn.randomness import FOREIGN, seeded
from prequential.models import build, is_package_model
from prequential.runs.live import status_of
from prequential.runs.record import OVER, RECORD_FILE, Record, load
from prequential.runs.weights import ABOUT_FILE, WEIGHTS_FILE, Digests, KeptWeights, read_about, read_tensors

RUN, AT, INPUTS = "run:", "@", "inputs"
UNTRAINED, UNKNOWN, UNSEEN = "untrained", "training data unknown", "none of these examples seen"
LISTED = 4
"""Tensors that a refusal names."""

Shape = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Network:
    """A frozen network to be probed."""

    name: str
    module: nn.Module | None
    """None: the inputs themselves."""
    training: str
    """What is known of what it was trained on, in words."""
    share_seen: float | None = None
    """The share of the probed examples that it was trained on; None where that is not known."""


def find_network(
    word: str, data: DataSequence, examples: Callable[[], Digests], *, width: float = 1.0, seed: int = 0
) -> Network:
    """The network that a word names, for inputs like those of the data.

    Args:
        word: `run:DIR`, the kept weights of a run; `MODEL@FILE.safetensors`; a model's name, untrained; or `inputs`.
        examples: gives digests of the examples that will be probed, to find out which of them it was trained on; called
            only for weights that tell what they were trained on.
        width: of models that are named here; a run says its own.
        seed: of the initialisation of untrained ones.

    Raises:
        PreqError: for what is not there, does not fit, or is not named.
    """
    if word == INPUTS:
        return Network(word, None, "no network", 0.0)
    if word == RUN or word.endswith(AT):
        raise PreqError(f"'{word}' names no {'directory' if word == RUN else 'file'}; write it behind the {word[-1]}")
    if word.startswith(RUN):
        return _of_run(word, data, examples)
    model, at, file = word.partition(AT)
    if not at:
        with seeded(seed, "initialise", -1, None, FOREIGN):
            module = _named(model, data, width)
        return Network(word, ready(module), UNTRAINED, 0.0)
    path = Path(file)
    tensors, digest = read_tensors(path)
    kept = read_about(path.parent, digest)
    if kept is None and path.name == WEIGHTS_FILE and (path.parent / ABOUT_FILE).exists():
        raise PreqError(f"{file} is damaged: {ABOUT_FILE} is about other weights")
    if kept is not None:
        width, output_size = kept.width, kept.output_size
    else:
        output_size = _output_size(model, tensors, data, width)
    module = _filled(model, tensors, data, output_size, width, file)
    return Network(word, module, *_seen(kept, examples))


def _named(model: str, data: DataSequence, width: float) -> nn.Module:
    try:
        return _built(model, data, data.num_classes, width)
    except PreqError:
        if (Path(model) / RECORD_FILE).exists():
            raise PreqError(f"'{model}' is the directory of a run; write {RUN}{model}") from None
        raise


def _of_run(word: str, data: DataSequence, examples: Callable[[], Digests]) -> Network:
    directory = Path(word.removeprefix(RUN))
    file = directory / WEIGHTS_FILE
    if not (directory / RECORD_FILE).exists():
        raise PreqError(f"{directory} holds no run: there is no {RECORD_FILE}")
    if not (directory / ABOUT_FILE).exists():
        raise PreqError(f"the run in {directory} {_why_none(load(directory))}")
    tensors, digest = read_tensors(file)
    kept = read_about(directory, digest)
    if kept is None:
        raise PreqError(f"{file} is damaged: {ABOUT_FILE} is about other weights")
    if not is_package_model(kept.model):
        todo = f"name it yourself: {kept.model}{AT}{file}"
        raise PreqError(
            f"the model '{kept.model}' of {directory} is none of the package, and a file may not choose what "
            f"is executed; {todo}"
        )
    if kept.input_shape != tuple(data.input_shape):
        raise PreqError(
            f"{word} takes inputs of shape {kept.input_shape}, those of '{data.name}' are {data.input_shape}"
        )
    module = _filled(kept.model, tensors, data, kept.output_size, kept.width, str(file))
    return Network(word, module, *_seen(kept, examples))


def _why_none(record: Record) -> str:
    """Why a run has kept no weights, and what can be done."""
    if record.expert_names:
        number = len(record.expert_names)
        return f"mixed {number} experts, and weights are kept of one network; run that alone with --keep-weights"
    if (status := status_of(record.path, record.status)) == "running":
        return "is running, and weights are kept at the end, if it was begun with --keep-weights; wait for it"
    if status != "finished":
        todo = "run it with other settings" if status in OVER else "--resume --keep-weights goes on"
        return f"{status}, and weights are kept at the end; {todo}"
    return "kept no weights; run it again with --keep-weights"


def _seen(kept: KeptWeights | None, examples: Callable[[], Digests]) -> tuple[str, float | None]:
    if kept is None:
        return UNKNOWN, None
    share = kept.share_of(examples())
    told = f"{share:.1%} of these examples seen" if share else UNSEEN
    return f"trained on {len(kept.trained_on):,} of {kept.data}, {told}", share


def _output_size(model: str, tensors: Mapping[str, Tensor], data: DataSequence, width: float) -> int:
    """How many numbers the network gave where the tensors are from: what makes them fit, if one number does."""
    shapes, theirs = _shapes_of_model(model, data, data.num_classes, width), _shapes(tensors)
    differing = {
        (theirs[name][:1], shape[:1])
        for name, shape in shapes.items()
        if name in theirs and theirs[name] != shape and theirs[name][1:] == shape[1:]
    }
    sizes = {their for their, our in differing if our == (data.num_classes,)}
    return next(iter(sizes))[0] if len(sizes) == len(differing) == 1 else data.num_classes


def _filled(
    model: str, tensors: Mapping[str, Tensor], data: DataSequence, output_size: int, width: float, where: str
) -> nn.Module:
    """The model with these weights; it must have exactly these tensors, of these shapes."""
    own, theirs = _shapes_of_model(model, data, output_size, width), _shapes(tensors)
    wrong = [f"missing: {_listed(own.keys() - theirs.keys())}"] if own.keys() - theirs.keys() else []
    wrong += [f"not of the model: {_listed(theirs.keys() - own.keys())}"] if theirs.keys() - own.keys() else []
    misshapen = [
        f"{name} of {theirs[name]} for {own[name]}" for name in own if name in theirs and own[name] != theirs[name]
    ]
    wrong += [f"of another shape: {_listed(misshapen)}"] if misshapen else []
    if wrong:
        raise PreqError(f"{where} does not fit '{model}': {'; '.join(wrong)}")
    with seeded(0, "initialise", -1, None, FOREIGN):
        module = _built(model, data, output_size, width)
    other = [
        f"{name} of {tensors[name].dtype} for {tensor.dtype}"
        for name, tensor in module.state_dict().items()
        if tensor.is_floating_point() != tensors[name].is_floating_point()
    ]
    if other:
        raise PreqError(f"{where} does not fit '{model}': of another type: {_listed(other)}")
    module.load_state_dict(dict(tensors))
    return ready(module)


def _listed(names: object) -> str:
    ordered = sorted(names)  # type: ignore[call-overload]
    more = f" and {len(ordered) - LISTED} more" if len(ordered) > LISTED else ""
    return f"{', '.join(ordered[:LISTED])}{more}"


def _built(model: str, data: DataSequence, output_size: int, width: float) -> nn.Module:
    module = build(model, data.input_shape, output_size, width=width)
    fill_lazy(module, model, partial(one_input, data))
    return module


def one_input(data: DataSequence) -> Tensor:
    """As a network is given it, for lazy layers to find out their sizes."""
    return to_network_input(data.inputs(np.zeros(1, np.int64)), scale_of(data))


def _shapes_of_model(model: str, data: DataSequence, output_size: int, width: float) -> dict[str, Shape]:
    """Those of a model of the package take no memory, so that there is some only for what fits; others are built."""
    meta = torch.device("meta") if is_package_model(model) else nullcontext()
    with seeded(0, "initialise", -1, None, FOREIGN), meta:
        return _shapes(_built(model, data, output_size, width).state_dict())


def _shapes(tensors: Mapping[str, Tensor]) -> dict[str, Shape]:
    return {name: tuple(tensor.shape) for name, tensor in tensors.items()}


def ready(module: nn.Module) -> nn.Module:
    """The same, frozen."""
    return module.eval().requires_grad_(False)
