"""Labels as people have them: large, unsigned, counted from 1. None is taken for another, and none goes unsaid."""

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st
from PIL import Image

import prequential as pq
from prequential.data.arrays import from_arrays
from prequential.data.sources import load
from prequential.data.sources.numbering import numbered
from prequential.errors import PreqError, PreqWarning

LARGE = 2**53
NUMBERS = st.lists(st.integers(-(2**80), 2**80) | st.integers(LARGE - 3, LARGE + 3), min_size=2, max_size=8)


def numbered_exactly(values: list[int]) -> list[int]:
    return [sorted(set(values)).index(value) for value in values]


@given(values=NUMBERS)
@example(values=[LARGE, LARGE + 1])
def test_labels_of_a_csv_are_exact(tmp_path_factory: pytest.TempPathFactory, values: list[int]) -> None:
    file = tmp_path_factory.mktemp("csv") / "table.csv"
    file.write_text("a,label,b\n" + "".join(f"{row},{value},1\n" for row, value in enumerate(values)))
    if len(set(values)) == 1:
        with pytest.raises(PreqError, match="holds a single class"):
            load(f"csv:{file}")
        return
    data = load(f"csv:{file}", order="given", standardise="none")
    assert data.num_classes == len(set(values))
    assert data.labels(np.arange(len(values))).tolist() == numbered_exactly(values)
    assert data.inputs(np.arange(len(values))).tolist() == [[row, 1] for row in range(len(values))]


@pytest.mark.parametrize("place", [0, 1, 2])
def test_labels_of_a_csv_may_be_written_in_any_way(tmp_path: Path, place: int) -> None:
    written = ["3", "3.0", " 3e0", '"3"', "+3", "03", "5", "5.00", ".5e1"]
    columns, cells = ["a", "b"], ["1", "2"]
    columns.insert(place, "label")
    rows = [",".join([*cells[:place], text, *cells[place:]]) for text in written]
    (tmp_path / "t.csv").write_text("\n".join([",".join(columns), *rows]))
    data = load(f"csv:{tmp_path / 't.csv'}", order="given", standardise="none")
    assert data.labels(np.arange(9)).tolist() == [0] * 6 + [1] * 3
    assert data.inputs(np.arange(1)).tolist() == [[1, 2]]


@pytest.mark.parametrize("text", ["0.99999999999999999999", "9007199254740992.5", "1e-400"])
def test_what_is_only_nearly_whole_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "t.csv").write_text(f"a,label\n1,1\n2,{text}\n3,1\n")
    with pytest.raises(PreqError, match=f"must be whole numbers, row 2 holds {text}; number the classes"):
        load(f"csv:{tmp_path / 't.csv'}")


def test_numbers_of_every_type_are_numbered_exactly() -> None:
    for dtype, values in ((np.uint64, [2**64 - 1, 2**64 - 2, 0]), (np.int64, [LARGE + 1, LARGE, -LARGE - 1])):
        assert numbered(np.array(values, dtype), "labels").tolist() == numbered_exactly(values)
    train = np.array([LARGE, LARGE + 1])
    assert numbered(train.astype(np.uint64), "labels", train).tolist() == [0, 1]
    with pytest.raises(PreqError, match=f"holds {2**63 + 2} in row 1, a class that is not in the training labels"):
        numbered(np.array([2**63 + 2], np.uint64), "labels", np.array([2**63 - 1, 0]))
    assert numbered(np.array([0]), "labels", np.array([2**64 - 1, 0], np.uint64)).tolist() == [0]
    for floats, exact in ((np.array([2.0**53, 1]), 2**53), (np.array([2**24, 1], np.float32), 2**24)):
        with pytest.raises(PreqError, match=rf"from {exact} on may be one as {floats.dtype}; save the labels as int64"):
            numbered(floats, "labels")


def test_large_labels_of_arrays_are_told() -> None:
    inputs = np.zeros((2, 2), np.float32)
    for most in (2**63 + 1, 2**64 - 1, LARGE):
        for labels in (np.array([0, most], np.uint64), torch.tensor([0, most], dtype=torch.uint64)):
            with pytest.raises(PreqError, match=rf"labels go up to {most}, got no num_classes, .* renumber"):
                from_arrays(inputs, labels)
            with pytest.raises(PreqError, match=rf"in 0 … 1 \(2 classes\), got {most} at position 1; renumber"):
                from_arrays(inputs, labels, num_classes=2)
    assert from_arrays(inputs, np.array([0, 1], np.uint64)).labels(np.arange(2)).tolist() == [0, 1]


def test_labels_that_begin_at_one_get_a_word(tmp_path: Path) -> None:
    inputs, labels = np.zeros((3, 2), np.float32), [1, 2, 3]
    told = r"labels begin at 1: class 0 of 4 never occurs, .*; subtract 1 if they count from there, or set num_classes"
    with pytest.warns(PreqWarning, match=told):
        assert from_arrays(inputs, labels).num_classes == 4
    with pytest.warns(PreqWarning, match=told):
        pq.from_dataset([(row, label) for row, label in zip(inputs, labels, strict=True)])
    assert from_arrays(inputs, labels, num_classes=4).num_classes == 4, "who says how many has been asked"
    with pytest.raises(PreqError, match=r"got 3 at position 2; subtract 1 if they count from 1, or set num_classes"):
        from_arrays(inputs, labels, num_classes=3)
    for name in "ab":
        Image.fromarray(np.zeros((9, 9, 3), np.uint8)).save(tmp_path / f"{name}.png")
    (tmp_path / "list.txt").write_text("a.png 1\nb.png 2\n")
    with pytest.warns(PreqWarning, match=r"the labels of .*list.txt begin at 1: class 0 of 3 never occurs"):
        load(f"list:{tmp_path / 'list.txt'}", workers=0)
