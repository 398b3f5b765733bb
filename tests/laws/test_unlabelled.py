"""More inputs than labels: the labels are those of a prefix, the inputs all there are, and fingerprints tell them."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import prequential as pq
from prequential.data.sequence import ArraySequence, LoadedSequence
from prequential.errors import PreqWarning
from prequential.testing import check_data


def points(length: int, seed: int, *, dtype: Any = np.float32) -> ArraySequence:
    draws = np.random.default_rng(seed)
    inputs = draws.integers(0, 200, (length, 2, 3)).astype(dtype)
    return pq.from_arrays(inputs, draws.integers(0, 3, length), num_classes=3, scale=255 if dtype == np.uint8 else None)


def everything(data: LoadedSequence) -> torch.Tensor:
    return data.inputs(np.arange(data.num_inputs))


numbers = st.tuples(st.integers(2, 40), st.integers(1, 40), st.integers(0, 5)).map(
    lambda drawn: (max(drawn[:2]), min(drawn[:2]), drawn[2])
)


@given(numbers, st.sampled_from([np.uint8, np.float32, np.float64, np.int64]))
def test_few_labels_are_those_of_the_prefix_and_the_other_inputs_stay_in_order(
    drawn: tuple[int, int, int], dtype: Any
) -> None:
    length, num_labels, seed = drawn
    whole = points(length, seed, dtype=dtype).shuffled(seed)
    data, prefix = whole.with_num_labels(num_labels), whole.take(num_labels)
    assert len(data) == num_labels
    assert data.num_inputs == length
    assert data.digests()["labels"] == prefix.digests()["labels"]
    assert torch.equal(data.labels(np.arange(num_labels)), prefix.labels(np.arange(num_labels)))
    assert torch.equal(everything(data), everything(whole))
    assert data.digests()["inputs"] == whole.digests()["inputs"]
    assert (data.order_seed, data.name, data.scale) == (prefix.order_seed, prefix.name, prefix.scale)
    assert data.source_rows is not None
    assert torch.equal(data.source_rows, prefix.source_rows)
    if num_labels < length:
        with pytest.raises(IndexError, match="labels"):
            data.labels(np.array([num_labels]))
    with pytest.raises(IndexError):
        data.inputs(np.array([length]))


@given(numbers, st.booleans())
def test_it_does_not_matter_how_the_other_inputs_are_given(drawn: tuple[int, int, int], as_sequence: bool) -> None:
    length, num_labels, seed = drawn
    whole = points(length + 1, seed).shuffled(seed)
    rest = whole.inputs(np.arange(num_labels, length + 1))
    given_ = pq.from_arrays(rest, np.zeros(len(rest), int)) if as_sequence else rest
    one, other = whole.with_num_labels(num_labels), whole.take(num_labels).with_unlabelled(given_)
    assert one.digests() == other.digests()
    assert torch.equal(everything(one), everything(other))
    positions = np.random.default_rng(seed).integers(0, length + 1, 9)
    assert torch.equal(one.inputs(positions), other.inputs(positions))


@given(numbers, st.data())
def test_fingerprints_depend_on_every_input(drawn: tuple[int, int, int], data: st.DataObject) -> None:
    length, num_labels, _ = drawn
    inputs = np.arange(length * 2.0).reshape(length, 2)
    labels = np.zeros(length, int)
    changed = inputs.copy()
    changed[data.draw(st.integers(0, length - 1))] += 1
    one, other = (pq.from_arrays(each, labels, num_classes=2).with_num_labels(num_labels) for each in (inputs, changed))
    assert one.digests()["inputs"] != other.digests()["inputs"]
    assert one.digests()["labels"] == other.digests()["labels"]


@given(numbers, st.data())
def test_steps_can_be_put_together(drawn: tuple[int, int, int], data: st.DataObject) -> None:
    length, num_labels, seed = drawn
    whole = points(length, seed)
    fewer = data.draw(st.integers(1, num_labels))
    twice = whole.with_num_labels(num_labels).with_num_labels(fewer)
    assert twice.digests() == whole.with_num_labels(fewer).digests()
    taken = whole.with_num_labels(num_labels).take(fewer)
    assert taken.num_inputs == fewer + length - num_labels
    assert torch.equal(everything(taken)[fewer:], everything(whole)[num_labels:])
    assert taken.digests()["labels"] == whole.take(fewer).digests()["labels"]
    more = points(7, seed + 1).inputs(np.arange(7))
    shuffled = [whole.shuffled(seed).with_unlabelled(more), whole.with_unlabelled(more).shuffled(seed)]
    assert shuffled[0].digests() == shuffled[1].digests()


@given(numbers, st.data())
def test_inputs_that_equal_held_out_ones_are_counted_and_left_out(
    drawn: tuple[int, int, int], data: st.DataObject
) -> None:
    length, num_labels, _ = drawn
    inputs = np.arange(length * 2.0).reshape(length, 2)
    same = data.draw(st.sets(st.integers(0, length - 1), min_size=1))
    held = np.concatenate([inputs[sorted(same)], [[-1, -1]]])
    whole = pq.from_arrays(inputs, np.zeros(length, int), num_classes=2, heldout=(held, np.zeros(len(held), int)))
    gone = sorted(position for position in same if position >= num_labels)
    kept = np.setdiff1d(np.arange(length), gone)
    if not gone:
        assert whole.with_num_labels(num_labels).num_left_out == 0
        return
    with pytest.warns(PreqWarning, match=f"{len(gone)} of {length - num_labels} inputs without labels equal"):
        made = whole.with_num_labels(num_labels)
    assert made.num_left_out == len(gone)
    assert torch.equal(everything(made), whole.inputs(kept))
    with pytest.warns(PreqWarning):
        other = whole.take(num_labels).with_unlabelled(inputs[num_labels:])
    assert made.digests() == other.digests()
    assert torch.equal(everything(made.without_heldout()), everything(made)), "what was held out is not studied later"


@settings(max_examples=8, deadline=None)
@given(numbers)
def test_what_is_made_is_a_sequence(drawn: tuple[int, int, int]) -> None:
    length, num_labels, seed = drawn
    whole = points(length, seed, dtype=np.uint8)
    check_data(whole.with_num_labels(num_labels))
    check_data(whole.with_unlabelled(points(5, 9, dtype=np.uint8)))


def test_prepared_data_keeps_its_fingerprints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("digest", "pieces", "prepare", "unlabelled"):
        monkeypatch.setattr(f"prequential.data.{module}.BLOCK_ROWS", 8)
    inputs = np.arange(60.0).reshape(30, 2)
    held = (np.concatenate([inputs[20:21], [[-1.0, -1]]]), [0, 1])
    stored = pq.from_arrays(inputs, np.arange(30) % 3, heldout=held)
    mapped = pq.prepare(stored, tmp_path)
    for num_labels in (3, 21, 30):
        if num_labels <= 20:
            with pytest.warns(PreqWarning, match="held-out"):
                one, other = stored.with_num_labels(num_labels), mapped.with_num_labels(num_labels)
        else:
            one, other = stored.with_num_labels(num_labels), mapped.with_num_labels(num_labels)
        assert one.digests() == other.digests()
        other.require_intact()
        check_data(other)
