"""The laws as checks for your own method, data sequence or model. Each raises AssertionError.

Example:
    >>> from prequential.methods import ReplayStreams
    >>> check_method(ReplayStreams(num_streams=2, batch_size=8))
"""

import io
import itertools
import json
import pickle
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import numpy as np
import torch

from prequential.conditioning import ORDER
from prequential.data.optional import capabilities
from prequential.data.sequence import DataSequence, to_network_input
from prequential.errors import PreqError
from prequential.events import Event, Predict, encoded
from prequential.learn.built import changing_layers
from prequential.learn.probe import require_logits
from prequential.learn.randomness import FOREIGN, noting_draws, seeded
from prequential.methods import Method
from prequential.models import ModelFactory, build, name_of
from prequential.plan import Plan
from prequential.scaling import INTENSITY, UNSCALED
from prequential.targets import Classes


def check_method(method: Method, lengths: Sequence[int] = (64, 97, 128, 300), seed: int = 0) -> None:
    """The laws of a plan: causal, complete, pure, prefix-stable, and the same wherever it is entered."""
    for length in lengths:
        plan = Plan(method, length, seed, heldout=True)
        plan.check()
        plan.without_heldout().check()
        assert plan.digest() == plan.digest(), f"{method.name}: two iterations over {length} labels differ"
        _check_walks(plan, method.name)
    if method.prequential:
        for shorter, longer in itertools.pairwise(sorted(lengths)):
            check_prefix_stable(method, shorter, longer, seed)


def _check_walks(plan: Plan, name: str) -> None:
    """Events stay as they were given, for those who take several at once, and are the same for one who resumes."""
    told = [encoded(event) for event in plan.events()]
    for number, (one, kept) in enumerate(zip(told, list(plan.events()), strict=True)):
        assert one == encoded(kept), f"{name}: the array of event {number} is changed after it was given"
    for start in np.unique(np.linspace(0, len(told), 9).astype(np.int64)).tolist():
        entered = [encoded(event) for event in plan.events(start)]
        assert entered == told[start:], f"{name}: entered at event {start} of {len(told)}, the plan goes on differently"


def check_prefix_stable(method: Method, shorter: int, longer: int, seed: int = 0) -> None:
    """Up to the prediction of its last label, a plan does not depend on how many labels follow."""
    short = list(_until_predicted(Plan(method, shorter, seed), shorter))
    long = list(_until_predicted(Plan(method, longer, seed), shorter))
    assert len(short) == len(long), f"{method.name}: {len(short)} events before label {shorter}, or {len(long)}"
    for number, (mine, other) in enumerate(zip(short, long, strict=True)):
        assert mine == other, f"{method.name}: event {number} is {mine} for {shorter} labels, {other} for {longer}"


def _until_predicted(plan: Plan, frontier: int) -> Iterator[Event]:
    for event in plan.events():
        if isinstance(event, Predict) and event.stop >= frontier:
            yield Predict(event.start, frontier, event.uniform)
            return
        yield event


def check_data(data: DataSequence) -> None:
    """A sequence reads the same twice, one by one or together, with labels in range, and has what it says it has.

    What is optional is looked at through `prequential.data.optional.capabilities`.
    """
    length = len(data)
    assert length > 0, "the sequence is empty"
    positions = np.unique(np.linspace(0, length - 1, 16).astype(np.int64))
    _check_facts(data)
    together, labels = data.inputs(positions), data.labels(positions)
    kinds = {type(rows).__name__ for rows in (together, labels) if not isinstance(rows, torch.Tensor)}
    assert not kinds, f"inputs and labels must be tensors, not {' and '.join(kinds)}"
    assert tuple(together.shape) == (len(positions), *data.input_shape), f"inputs have shape {tuple(together.shape)}"
    assert labels.dtype == torch.int64, f"labels are {labels.dtype}, not int64"
    assert tuple(labels.shape) == (len(positions),), f"labels have shape {tuple(labels.shape)}"
    try:
        capabilities(data).target.require(labels.numpy())
    except PreqError:
        raise AssertionError("labels lie outside the class range") from None
    assert not together.is_complex(), "inputs are complex numbers; give real and imaginary parts"
    assert torch.isfinite(to_network_input(together).double()).all(), "inputs hold NaN or infinity"
    assert torch.equal(together, data.inputs(positions)), "reading inputs twice gives different values"
    backwards = data.inputs(positions[::-1].copy())
    assert torch.equal(together.flip(0), backwards), "rows depend on what is read beside them"
    for row, position in enumerate(positions):
        alone = np.array([position])
        assert torch.equal(together[row], data.inputs(alone)[0]), f"position {position} reads differently alone"
        assert labels[row] == data.labels(alone)[0], f"the label at {position} reads differently alone"
    _check_unlabelled(data, together)
    assert set(data.digests()) >= {"inputs", "labels"}, "digests lack inputs or labels"
    assert all(isinstance(each, str) for each in data.digests().values()), "digests are not all texts"
    assert data.digests() == data.digests(), "digests change from call to call"
    _check_capabilities(data, positions, together)
    if data.heldout is not None:
        assert data.heldout.input_shape == data.input_shape, "held-out inputs have another shape"
        same = capabilities(data.heldout).target == capabilities(data).target
        assert same, "held-out data has other classes"
        check_data(data.heldout)


def _check_facts(data: DataSequence) -> None:
    """What a record tells of a sequence has the types that it says."""
    are_sizes = isinstance(data.input_shape, tuple) and all(isinstance(size, int) for size in data.input_shape)
    assert isinstance(data.name, str), f"name is {data.name!r}, not a text"
    assert isinstance(data.num_classes, int | np.integer), f"num_classes is {data.num_classes!r}, not a whole number"
    assert are_sizes, f"input_shape is {data.input_shape!r}, not a tuple of ints"
    assert isinstance(data.order_seed, int | None), f"order_seed is {data.order_seed!r}, neither None nor an int"


def _check_unlabelled(data: DataSequence, inputs: torch.Tensor) -> None:
    """Behind the labels there may be inputs without any."""
    length, num_inputs = len(data), capabilities(data).num_inputs
    assert isinstance(num_inputs, int), f"num_inputs is {num_inputs!r}, not a whole number"
    assert num_inputs >= length, f"num_inputs is {num_inputs}, less than the {length} labels"
    assert capabilities(data).num_left_out >= 0, f"num_left_out is {capabilities(data).num_left_out}, less than 0"
    if num_inputs == length:
        return
    positions = np.unique(np.linspace(length, num_inputs - 1, 8).astype(np.int64))
    more = data.inputs(positions)
    like = (more.dtype, more.shape[1:]) == (inputs.dtype, inputs.shape[1:])
    assert like, f"inputs without labels are {more.dtype} of shape {tuple(more.shape[1:])}, unlike the others"
    mixed = data.inputs(np.append(positions, 0))
    assert torch.equal(mixed, torch.cat([more, inputs[:1]])), "inputs without labels depend on what is read beside them"
    view = capabilities(data).training_inputs(positions, 1)
    assert torch.equal(view, capabilities(data).training_inputs(positions, 1)), "training inputs differ without labels"
    try:
        data.labels(positions[:1])
    except Exception:  # whatever it says
        return
    raise AssertionError(f"there is a label at position {positions[0]}, behind the {length} labels")


def _check_capabilities(data: DataSequence, positions: np.ndarray, inputs: torch.Tensor) -> None:
    """What a sequence may have besides: views for training, reading ahead, and facts for records."""
    more = capabilities(data)
    view, again, other = (more.training_inputs(positions, key) for key in (1, 1, 2))
    assert (view.shape, view.dtype) == (inputs.shape, inputs.dtype), (
        f"training inputs are {view.dtype} of shape {tuple(view.shape)}, inputs {inputs.dtype} of {tuple(inputs.shape)}"
    )
    assert torch.equal(view, again), "training inputs of one key differ from call to call"
    if not more.training_differs:
        same = torch.equal(view, inputs) and torch.equal(other, inputs)
        assert same, "training inputs differ from inputs, but training_view is None"
    assert more.training_view is None or isinstance(more.training_view, str), "training_view is neither None nor a text"
    assert more.reads_slowly in (True, False), f"reads_slowly is {more.reads_slowly}, not True or False"
    for told in ([(positions[:1], None), (positions, 1), (positions, None)], [(positions, 1)]):
        more.read_ahead(iter(told))  # the second time what was told before is forgotten
        assert torch.equal(more.training_inputs(positions, 1), view), "read_ahead changes what is read for training"
        assert torch.equal(data.inputs(positions), inputs), "read_ahead changes what is read"
    with ThreadPoolExecutor(2) as threads:
        for found in threads.map(data.inputs, [positions] * 4):
            assert torch.equal(found, inputs), "reading from several threads gives different values"
    assert more.conditioned_on in ORDER, f"conditioned_on is {more.conditioned_on!r}, not one of {ORDER}"
    known = more.scale in (None, UNSCALED) or more.scale in range(1, INTENSITY + 1)
    assert known, f"scale is {more.scale!r}, not None, 'none' or a whole number from 1 to 255"
    names = more.class_names
    if names is not None:
        are_texts = isinstance(names, tuple) and all(isinstance(name, str) for name in names)
        assert are_texts, "class_names is neither None nor a tuple of texts"
        assert len(names) == data.num_classes, f"class_names has {len(names)} names for {data.num_classes} classes"
    if more.source is not None:
        assert isinstance(more.source.get("name"), str), "source lacks the name that load_data is asked for"
        text = json.dumps(dict(more.source), default=lambda value: f"<{type(value).__name__}>")
        assert json.loads(text) == dict(more.source), f"source holds what JSON cannot hold: {text}"


def check_model(factory: str | ModelFactory, input_shape: tuple[int, ...], output_size: int) -> None:
    """A factory gives seeded, fresh models whose predictions do not depend on the rest of the batch, and which remember
    nothing but by parameters and buffers, draw from no generator but torch's."""
    name = name_of(factory)

    def made() -> torch.nn.Module:
        with seeded(0, "check", 0, also=FOREIGN):
            return build(factory, input_shape, output_size)

    first, second = made(), made()
    assert first is not second, f"{name}: the factory returned the same object twice; make a fresh one"
    shared = {*changing_layers(first)} & {*changing_layers(second)}
    assert not shared, f"{name}: the factory returned the same layer {min(path for path, _ in shared)!r} twice"
    for (key, mine), other in zip(first.state_dict().items(), second.state_dict().values(), strict=True):
        assert torch.equal(mine, other), f"{name}: '{key}' is initialised outside torch's default generator"
    with seeded(0, "check inputs", 0):
        inputs = torch.randn(4, *input_shape)
    first.eval()
    require_logits(first, inputs, Classes(output_size), name)
    with torch.no_grad():
        together = first(inputs)
        assert torch.equal(together, first(inputs)), f"{name}: two predictions of one input differ"
        alone = torch.cat([first(row[None]) for row in inputs])
    rounding = 1e-5 * max(1.0, float(together.abs().max()))
    close = torch.allclose(alone, together, rtol=1e-4, atol=rounding)
    assert close, f"{name}: a prediction depends on the rest of its batch"
    _check_memory(second, inputs, name)


def _check_memory(model: torch.nn.Module, inputs: torch.Tensor, name: str) -> None:
    """What parameters, buffers and torch's generator do not tell is lost where a run is stopped and resumed."""
    tensors = [*model.parameters(), *model.buffers()]
    began = [tensor.detach().clone() for tensor in tensors]

    def use() -> tuple[list[torch.Tensor], dict[str, bytes]]:
        """What the model gives in train and in eval mode from where it began, and what else it has afterwards."""
        with seeded(0, "check", 1, also=FOREIGN), torch.no_grad(), noting_draws(inputs.device) as drew_on:
            for tensor, start in zip(tensors, began, strict=True):
                tensor.copy_(start)
            outputs = [model.train(mode)(inputs).clone() for mode in (True, False)]
        foreign = " and ".join(sorted(drew_on & FOREIGN.keys()))
        assert not foreign, f"{name}: it draws from {foreign}'s generator; draw from torch's (torch.rand, nn.Dropout)"
        return outputs, _attributes(model)

    first, _ = use()  # in which it may make what it keeps for speed
    (outputs, had), (again, has) = use(), use()
    changed = [key for key, value in has.items() if had.get(key) != value]
    assert not changed, f"{name}: '{changed[0]}' changes when it is used, and no checkpoint has it; make it a buffer"
    same = all(torch.equal(one, other) for each in (outputs, again) for one, other in zip(first, each, strict=True))
    assert same, f"{name}: it remembers something outside its parameters and buffers, and no checkpoint has that"


def _attributes(model: torch.nn.Module) -> dict[str, bytes]:
    """What the layers of a model have besides parameters, buffers and layers, as far as it can be told."""
    own, found = vars(torch.nn.Module()), dict[str, bytes]()
    for path, layer in model.named_modules():
        for name in vars(layer).keys() - own.keys():
            with suppress(Exception):  # of what cannot be pickled only the effects are seen
                _Pickler(written := io.BytesIO()).dump(vars(layer)[name])
                found[f"{path}.{name}".lstrip(".")] = written.getvalue()
    return found


class _Pickler(pickle.Pickler):
    """Writes equal tensors as equal bytes, for comparing; nothing reads them."""

    def reducer_override(self, value: object) -> Any:
        return (list, (value.tolist(),)) if isinstance(value, torch.Tensor) else NotImplemented
