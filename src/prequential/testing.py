"""The laws as checks for your own method, data sequence or model. Each raises AssertionError.

Example:
    >>> from prequential.methods import ReplayStreams
    >>> check_method(ReplayStreams(num_streams=2, batch_size=8))
"""

import itertools
from collections.abc import Iterator, Sequence

import numpy as np
import torch

from prequential.data.sequence import DataSequence, to_network_input
from prequential.events import Event, Predict
from prequential.learn.probe import require_logits
from prequential.learn.randomness import seeded
from prequential.methods import Method
from prequential.models import ModelFactory, build, name_of
from prequential.plan import Plan


def check_method(method: Method, lengths: Sequence[int] = (64, 97, 128, 300), seed: int = 0) -> None:
    """The laws of a plan: causal, complete, pure and prefix-stable, with and without held-out data."""
    for length in lengths:
        plan = Plan(method, length, seed, heldout=True)
        plan.check()
        plan.without_heldout().check()
        assert plan.digest() == plan.digest(), f"{method.name}: two iterations over {length} labels differ"
    if method.prequential:
        for shorter, longer in itertools.pairwise(sorted(lengths)):
            check_prefix_stable(method, shorter, longer, seed)


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
    """A sequence reads the same twice, one by one or together, with labels in range."""
    length = len(data)
    assert length > 0, "the sequence is empty"
    positions = np.unique(np.linspace(0, length - 1, 16).astype(np.int64))
    together, labels = data.inputs(positions), data.labels(positions)
    assert tuple(together.shape) == (len(positions), *data.input_shape), f"inputs have shape {tuple(together.shape)}"
    assert labels.dtype == torch.int64, f"labels are {labels.dtype}, not int64"
    assert tuple(labels.shape) == (len(positions),), f"labels have shape {tuple(labels.shape)}"
    assert 0 <= int(labels.min()) <= int(labels.max()) < data.num_classes, "labels lie outside the class range"
    assert torch.isfinite(to_network_input(together).double()).all(), "inputs hold NaN or infinity"
    assert torch.equal(together, data.inputs(positions)), "reading inputs twice gives different values"
    backwards = data.inputs(positions[::-1].copy())
    assert torch.equal(together.flip(0), backwards), "rows depend on what is read beside them"
    for row, position in enumerate(positions):
        alone = np.array([position])
        assert torch.equal(together[row], data.inputs(alone)[0]), f"position {position} reads differently alone"
        assert labels[row] == data.labels(alone)[0], f"the label at {position} reads differently alone"
    assert set(data.digests()) >= {"inputs", "labels"}, "digests lack inputs or labels"
    assert data.digests() == data.digests(), "digests change from call to call"
    if data.heldout is not None:
        assert data.heldout.input_shape == data.input_shape, "held-out inputs have another shape"
        assert data.heldout.num_classes == data.num_classes, "held-out data has other classes"
        check_data(data.heldout)


def check_model(factory: str | ModelFactory, input_shape: tuple[int, ...], num_classes: int) -> None:
    """A factory gives seeded, fresh models whose predictions do not depend on the rest of the batch."""
    name = name_of(factory)
    models = []
    for _ in range(2):
        with seeded(0, "check", 0):
            models.append(build(factory, input_shape, num_classes))
    first, second = models
    assert first is not second, f"{name}: the factory returned the same object twice; make a fresh one"
    for (key, mine), other in zip(first.state_dict().items(), second.state_dict().values(), strict=True):
        assert torch.equal(mine, other), f"{name}: '{key}' is initialised outside torch's default generator"
    with seeded(0, "check inputs", 0):
        inputs = torch.randn(4, *input_shape)
    first.eval()
    require_logits(first, inputs, num_classes, name)
    with torch.no_grad():
        together = first(inputs)
        assert torch.equal(together, first(inputs)), f"{name}: two predictions of one input differ"
        alone = torch.cat([first(row[None]) for row in inputs])
    rounding = 1e-5 * max(1.0, float(together.abs().max()))
    close = torch.allclose(alone, together, rtol=1e-4, atol=rounding)
    assert close, f"{name}: a prediction depends on the rest of its batch"
