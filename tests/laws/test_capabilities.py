"""What sequences may have beyond what is required: declared once, with defaults, for derived and foreign ones alike."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import prequential as pq
from prequential.data.arrays import from_arrays
from prequential.data.blind import InputsOnly
from prequential.data.images import ImageFiles
from prequential.data.mapped import MappedSequence
from prequential.data.optional import Read, SequenceDefaults, capabilities
from prequential.data.sequence import ArraySequence, DataSequence
from prequential.errors import PreqError
from prequential.learn.inputs import Inputs, Resident, make_feed
from prequential.stack.recipe import require_members
from prequential.targets import Classes
from prequential.testing import check_data

from ..conftest import blobs

POSITIONS = np.arange(3)
BYTES = {"digests": lambda self: {"inputs": b"", "labels": ""}}
ARRAYS = {"inputs": lambda self, positions: np.zeros((len(positions), 5))}


class Foreign:
    """A sequence that derives from nothing and has no more than it must."""

    name = "foreign"
    num_classes = 3
    input_shape = (5,)
    order_seed = None
    heldout = None

    def __init__(self) -> None:
        self._data = blobs(20)

    def __len__(self) -> int:
        return 20

    def inputs(self, positions: NDArray[np.int64]) -> torch.Tensor:
        return self._data.inputs(positions)

    def labels(self, positions: NDArray[np.int64]) -> torch.Tensor:
        return self._data.labels(positions)

    def digests(self) -> dict[str, str]:
        return self._data.digests()


class Derived(Foreign, SequenceDefaults):
    pass


def negatives(self: DataSequence, positions: NDArray[np.int64], key: int) -> torch.Tensor:
    return self.inputs(positions) if key % 2 else -self.inputs(positions)


def hear(self: DataSequence, reads: Iterator[Read]) -> None:
    list(reads)


MEMBERS: dict[str, Any] = {
    "training_inputs": negatives,
    "training_view": "negatives",
    "read_ahead": hear,
    "reads_slowly": True,
    "conditioned_on": "all inputs",
    "source": {"name": "foreign"},
    "listing": "files",
    "origin": "elsewhere",
}


def facts_of(data: DataSequence) -> list[object]:
    more = capabilities(data)
    plain: list[object] = [more.source, more.origin, more.conditioned_on, more.training_view, more.training_differs]
    plain += [more.reads_slowly, more.listing, more.source_rows]
    read, broken = more.read(POSITIONS)
    views = [more.training_inputs(POSITIONS, key).tolist() for key in (1, 2)]
    more.read_ahead(iter([(POSITIONS, None)]))
    return [*plain, *views, read.tolist(), broken]


@given(st.sets(st.sampled_from(sorted(MEMBERS))))
def test_a_foreign_sequence_is_asked_as_a_derived_one(names: set[str]) -> None:
    members = {name: MEMBERS[name] for name in names}
    foreign, derived = (type("Own", (base,), members)() for base in (Foreign, Derived))
    assert facts_of(foreign) == facts_of(derived)
    more = capabilities(foreign)
    for name in names:
        if not callable(MEMBERS[name]):
            assert getattr(more, name) == MEMBERS[name]
    assert more.training_differs == ("training_inputs" in names)
    assert more.reads_slowly == bool(names & {"training_inputs", "read_ahead", "reads_slowly"})
    if ("training_view" in names) <= ("training_inputs" in names):
        check_data(foreign)


def test_the_defaults_are_those_of_a_plain_sequence() -> None:
    foreign = Foreign()
    more = capabilities(foreign)
    assert (more.source, more.origin, more.training_view, more.source_rows) == (None,) * 4
    assert (more.conditioned_on, more.training_differs, more.reads_slowly) == ("inputs up to the label", False, False)
    assert torch.equal(more.training_inputs(POSITIONS, 1), foreign.inputs(POSITIONS))
    inputs = Inputs(foreign, pq.Recipe(), seed=0, device=torch.device("cpu"), dtype=torch.float32)
    assert isinstance(make_feed(inputs)(8), Resident)


def test_the_sequences_of_the_package_declare_what_they_have() -> None:
    for kind in (ArraySequence, MappedSequence, ImageFiles):
        assert issubclass(kind, SequenceDefaults)
    data = blobs(20)
    assert capabilities(data) is data
    assert data.source_rows is data.order


def test_a_foreign_sequence_runs_and_is_recorded_as_before() -> None:
    foreign = Foreign()
    method = pq.ReplayStreams(num_streams=1, batch_size=4)
    record = pq.run("mlp1", foreign, method, seed=0)
    assert np.array_equal(record.nats, pq.run("mlp1", blobs(20).without_heldout(), method, seed=0).nats)
    assert (record.source, record.conditioned_on) == (None, "inputs up to the label")
    assert record.data["training_view"] is None


@pytest.mark.parametrize(
    ("members", "is_refused"),
    [
        ({}, False),
        ({"training_inputs": negatives}, True),
        ({"training_inputs": negatives, "training_view": "negatives"}, True),
        ({"training_inputs": negatives, "training_view": None}, False),
        ({"training_view": "negatives"}, False),
    ],
)
@pytest.mark.parametrize("base", [Foreign, Derived])
def test_a_stack_takes_what_looks_the_same_to_all_members(members: Any, is_refused: bool, base: type) -> None:
    data: Any = type("Own", (base,), members)()
    if not is_refused:
        require_members([pq.Recipe()], [0], data)
        return
    with pytest.raises(PreqError, match="its own view of the inputs for each run"):
        require_members([pq.Recipe()], [0], data)


def test_a_decoder_has_what_the_sequence_has() -> None:
    data: Any = type("Own", (Foreign,), MEMBERS)()
    blind = InputsOnly(data, Classes(3))
    for name in ("source", "conditioned_on", "training_view", "training_differs", "reads_slowly"):
        assert getattr(blind, name) == getattr(capabilities(blind), name) == getattr(capabilities(data), name)
    assert (blind.order_seed, blind.heldout) == (data.order_seed, None)
    assert torch.equal(blind.training_inputs(POSITIONS, 2), -data.inputs(POSITIONS))


def random_views(self: DataSequence, positions: NDArray[np.int64], key: int) -> torch.Tensor:
    return self.inputs(positions) + torch.rand(1)


def lasting(self: Any, reads: Iterator[Read]) -> None:
    self.inputs = lambda positions: torch.zeros(len(positions), 5)


@pytest.mark.parametrize(
    ("members", "complaint"),
    [
        ({"training_inputs": random_views}, "training inputs of one key differ from call to call"),
        ({"training_inputs": lambda self, positions, key: self.inputs(positions)[:1]}, r"of shape \(1, 5\), inputs"),
        ({"training_inputs": negatives, "training_view": None}, "differ from inputs, but training_view is None"),
        ({"training_view": 3}, "training_view is neither None nor a text"),
        ({"reads_slowly": "no"}, "reads_slowly is no, not True or False"),
        ({"read_ahead": lasting}, "read_ahead changes what is read"),
        ({"conditioned_on": "everything"}, "conditioned_on is 'everything', not one of"),
        ({"source": {"path": "x"}}, "source lacks the name"),
        ({"source": {"name": "x", "size": (1, 2)}}, "source holds what JSON cannot hold"),
    ],
)
def test_the_public_check_covers_what_is_optional(members: Any, complaint: str) -> None:
    check_data(Foreign())
    with pytest.raises(AssertionError, match=complaint):
        check_data(type("Own", (Foreign,), members)())


@pytest.mark.parametrize(
    ("members", "complaint"),
    [
        ({"name": 5}, "name is 5, not a text"),
        ({"num_classes": 3.0}, "num_classes is 3.0, not a whole number"),
        ({"input_shape": [5]}, r"input_shape is \[5\], not a tuple of ints"),
        ({"order_seed": "0"}, "order_seed is '0', neither None nor an int"),
        (BYTES, "digests are not all texts"),
        (
            {"inputs": lambda self, positions: np.zeros((len(positions), 5))},
            "inputs and labels must be tensors, not ndarray",
        ),
        (
            {"inputs": lambda self, positions: torch.zeros(len(positions), 5, dtype=torch.complex64)},
            "inputs are complex numbers",
        ),
    ],
)
def test_the_public_check_covers_what_a_record_tells(members: Any, complaint: str) -> None:
    with pytest.raises(AssertionError, match=complaint):
        check_data(type("Own", (Foreign,), members)())


@pytest.mark.parametrize(
    ("members", "complaint"),
    [
        (
            {"digests": lambda self: {"inputs": b"", "labels": ""}},
            "a record cannot hold what it is to tell of the data",
        ),
        (ARRAYS, "must be read as a tensor, got ndarray"),
        ({"heldout": from_arrays(np.zeros((4, 7)), [0, 1, 2, 0])}, r"shape \(5,\), got 4 of shape \(7,\)"),
    ],
)
def test_a_foreign_sequence_that_cannot_be_run_is_told(members: Any, complaint: str) -> None:
    with pytest.raises(PreqError, match=complaint):
        pq.run("mlp1", type("Own", (Foreign,), members)(), pq.ReplayStreams(num_streams=1, batch_size=8), seed=0)


def test_a_foreign_sequence_may_count_classes_by_numpy() -> None:
    data: Any = type("Own", (Foreign,), {"num_classes": np.int64(3)})()
    check_data(data)
    assert pq.run("mlp1", data, pq.ReplayStreams(num_streams=1, batch_size=8), seed=0).num_classes == 3
