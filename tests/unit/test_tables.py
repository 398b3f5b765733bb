"""Tables: CSV, NumPy archives and Hugging Face data sets; standardisation; and what is refused."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from PIL import Image

import prequential as pq
from prequential.data.arrays import from_arrays
from prequential.data.sources import load
from prequential.data.sources.numbering import numbered
from prequential.errors import PreqError, PreqWarning
from prequential.testing import check_data

TABLE = "a,b,label\n1,10,3\n2,20,5\n3,30,3\n4,40,5\n5,50,9\n"


def table(tmp_path: Path, text: str = TABLE) -> str:
    (tmp_path / "table.csv").write_text(text)
    return f"csv:{tmp_path / 'table.csv'}"


def test_a_csv_file(tmp_path: Path) -> None:
    data = load(table(tmp_path), order="given", standardise="none")
    check_data(data)
    assert data.name == "table"
    assert data.labels(np.arange(5)).tolist() == [0, 1, 0, 1, 2], "classes are numbered in the order of their values"
    assert data.inputs(np.arange(5)).tolist() == [[1, 10], [2, 20], [3, 30], [4, 40], [5, 50]]
    assert data.source is not None
    assert data.source["name"] == f"csv:{tmp_path / 'table.csv'}"
    assert data.source["standardise"] == "none"
    assert data.class_names == ("3", "5", "9")
    by_name = load(table(tmp_path), label="a", order="given", standardise="none")
    assert by_name.num_classes == 5
    assert by_name.input_shape == (2,)
    other = TABLE.replace(",", ";").replace("label", '"my label"')
    assert load(table(tmp_path, other), label="my label").num_classes == 3
    assert load(table(tmp_path, "\ufeff" + TABLE)).input_shape == (2,)
    shuffled, given_order = load(table(tmp_path)), load(table(tmp_path), order="given")
    assert shuffled.order_seed == 0
    assert given_order.order_seed is None


@pytest.mark.parametrize(
    ("text", "options", "complaint"),
    [
        (TABLE.replace("20,5", "20,"), {}, r"column 'label' of .* has no value in row 2 \(1 such rows\); remove them"),
        (TABLE.replace("3,30,3", "3,30"), {}, "is ragged: row 3 has 2 values, the header 3; mend the row"),
        (TABLE.replace("3,30,3", "3,30,3,1"), {}, "is ragged: row 3 has 4 values, the header 3"),
        (TABLE, {"label": "lable"}, "unknown column of .*table.csv 'lable'; did you mean 'label'? known: a, b, label"),
        (TABLE.replace("label", "kind"), {}, "which column of .*table.csv is the label. give --label; it has: a, b, k"),
        (TABLE.replace("20,5", "20,5.5"), {}, "whole numbers, row 2 holds 5.5; number the classes, or cut it into"),
        ("a,b,label\n", {}, "table.csv has no rows"),
        ("", {}, "has 0 columns; give a header and at least two"),
        ("1,2,3\n4,5,6\n", {}, "has no header: its first line is 1,2,3"),
        ("a,a,label\n1,2,0\n3,4,1\n", {}, "has two columns named 'a'; rename one"),
        ("a,label\n1,0\n2,0\n", {}, "holds a single class; there is nothing to predict"),
        ("a,label\n1_000,0\n2,1\n", {}, "no column that tells anything: dropped; a value per row tells nothing"),
        ("a,label\n1e999,0\n2,1\n", {}, "column 'a' of .* holds inf in row 1; leave it empty or remove the row"),
    ],
)
def test_a_bad_csv_gets_one_line(tmp_path: Path, text: str, options: dict[str, Any], complaint: str) -> None:
    with pytest.raises(PreqError, match=complaint.replace("? known", ". known")) as caught:
        load(table(tmp_path, text), **options)
    assert "\n" not in str(caught.value)


def test_a_binary_file_is_no_table(tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_bytes(b"\xff\xfe\x00a,b\n1,2\n")
    with pytest.raises(PreqError, match="is not a text file"):
        load(f"csv:{tmp_path / 'table.csv'}")


MATRIX = arrays.arrays(np.float64, st.tuples(st.integers(2, 30), st.integers(1, 4)), elements=st.floats(-1e6, 1e6))


@given(values=MATRIX, seed=st.integers(0, 9))
def test_whole_table_standardisation(values: np.ndarray, seed: int) -> None:
    data = from_arrays(values, np.arange(len(values)) % 2, standardise="table").shuffled(seed)
    assert data.conditioned_on == "all inputs"
    inputs = data.inputs(np.arange(len(data))).numpy().astype(np.float64)
    moves = values.std(0) > 1e-5 * np.maximum(np.abs(values.mean(0)), 1e-3)
    assert np.allclose(inputs.mean(0), 0, atol=1e-4)
    assert np.allclose(inputs.std(0)[moves], 1, atol=1e-3)


@given(values=MATRIX, seed=st.integers(0, 9), length=st.integers(1, 30))
def test_causal_standardisation_never_looks_ahead(values: np.ndarray, seed: int, length: int) -> None:
    order = from_arrays(values, np.arange(len(values)) % 2).shuffled(seed).order.numpy()
    whole = from_arrays(values, np.arange(len(values)) % 2, standardise="causal").shuffled(seed)
    assert whole.conditioned_on == "inputs up to the label"
    inputs = whole.inputs(np.arange(len(values))).numpy()
    changed = values.copy()
    changed[order[length:]] += 17
    other = from_arrays(changed, np.arange(len(values)) % 2, standardise="causal").shuffled(seed)
    assert np.array_equal(inputs[:length], other.inputs(np.arange(len(values))).numpy()[:length])
    seen = values[order]
    for position in range(len(values)):
        past = seen[: position + 1]
        if (past.std(0) > 1e-3 * (1 + np.abs(past).max(0))).all():
            expected = (past[-1] - past.mean(0)) / past.std(0)
            assert np.allclose(inputs[position], expected, rtol=1e-3, atol=1e-3)


def test_a_record_says_what_it_was_conditioned_on(tmp_path: Path) -> None:
    rows = "\n".join(f"{i % 7},{i % 3},{i % 2}" for i in range(64))
    spec = table(tmp_path, f"a,b,label\n{rows}\n")
    method = pq.ReplayStreams(num_streams=1, batch_size=8)
    for how, conditioned in [("table", "all inputs"), ("causal", "inputs up to the label")]:
        record = pq.run("mlp1", load(spec, standardise=how), method, seed=0, width=0.05, out=tmp_path / how)
        assert pq.load(tmp_path / how).conditioned_on == record.conditioned_on == conditioned
        assert record.source is not None


SMALL = np.zeros((2, 4, 4), np.uint8)


def save(tmp_path: Path, **values: Any) -> str:
    np.savez(tmp_path / "arrays.npz", **values)
    return f"npz:{tmp_path / 'arrays.npz'}"


def test_npz_images_and_tables(tmp_path: Path) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (12, 8, 9), dtype=np.uint8)
    spec = save(tmp_path, x_train=pixels[:8], y_train=np.arange(8) % 2 + 1, x_test=pixels[8:], y_test=[1, 2, 2, 1])
    data = load(spec, order="given")
    check_data(data)
    assert data.input_shape == (1, 8, 9)
    assert data.labels(np.arange(8)).tolist() == [0, 1] * 4
    assert data.heldout is not None
    assert data.heldout.labels(np.arange(4)).tolist() == [0, 1, 1, 0]
    colour = load(save(tmp_path, images=np.zeros((4, 8, 9, 3), np.uint8), labels=[0, 1, 0, 1]))
    assert colour.input_shape == (3, 8, 9)
    rows = load(save(tmp_path, features=np.arange(12.0).reshape(6, 2), kind=[0, 1] * 3), label="kind")
    assert rows.conditioned_on == "all inputs"
    assert rows.inputs(np.arange(6)).mean().item() == pytest.approx(0, abs=1e-6)
    named = load(save(tmp_path, a=np.zeros((4, 2)), b=np.ones((4, 2)), y=[0, 1, 0, 1]), array="b", label="y")
    assert named.input_shape == (2,)


@pytest.mark.parametrize(
    ("values", "options", "complaint"),
    [
        ({"x": np.zeros((2, 2)), "y": np.array([{}, {}])}, {}, "array 'y' cannot be read: it holds pickled objects"),
        ({"x": np.array([[None, 1], [2, 3]]), "y": [0, 1]}, {}, "array 'x' cannot be read: it holds pickled objects"),
        ({"a": np.zeros(2), "b": np.zeros(2)}, {}, "which arrays of .* give --array and --label; it has: a, b"),
        ({"x": np.zeros((2, 2)), "y": [0, 1]}, {"label": "z"}, "unknown array of .*arrays.npz 'z'"),
        ({"x": np.zeros((3, 2)), "y": [0, 1]}, {}, r"'x' has shape \(3, 2\), 'y' 2 labels"),
        ({"x": np.zeros((2, 2)), "y": [1j, 2j]}, {}, "must be text or whole numbers, got complex128"),
        ({"x": np.array([[1.0], [np.inf]]), "y": [0, 1]}, {}, "column 0 of arrays holds inf in row 2"),
        ({"x": SMALL, "y": [0, 1]}, {"standardise": "table"}, "holds images, not a table"),
        (
            {"x_train": SMALL, "y_train": [0, 1], "x_test": SMALL, "y_test": [0, 7]},
            {}, "holds 7 in row 2, a class that is not in the training labels",
        ),
    ],
)  # fmt: skip
def test_a_bad_npz_gets_one_line(tmp_path: Path, values: Any, options: Any, complaint: str) -> None:
    with pytest.raises(PreqError, match=complaint) as caught:
        load(save(tmp_path, **values), **options)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("content", "complaint"), [(b"", "cannot be read as .npz"), (b"PK\x03\x04junk", "cannot be")])
def test_no_archive_at_all(tmp_path: Path, content: bytes, complaint: str) -> None:
    (tmp_path / "x.npz").write_bytes(content)
    with pytest.raises(PreqError, match=complaint):
        load(f"npz:{tmp_path / 'x.npz'}")
    np.save(tmp_path / "single.npy", np.zeros(3))
    with pytest.raises(PreqError, match="is a single array"):
        load(f"npz:{tmp_path / 'single.npy'}")


def hub(tmp_path: Path, make: Callable[[Any], Any]) -> str:
    datasets = pytest.importorskip("datasets", reason="the extra hf is not installed")
    datasets.disable_progress_bars()
    make(datasets).save_to_disk(tmp_path / "hub")
    return f"hf:{tmp_path / 'hub'}"


def test_a_hugging_face_table(tmp_path: Path) -> None:
    columns = {"a": [1.0, 2.0, 3.0, 4.0], "b": [4, 3, 2, 1], "label": [5, 7, 5, 7]}
    data = load(hub(tmp_path, lambda d: d.Dataset.from_dict(columns)), order="given")
    check_data(data)
    assert data.labels(np.arange(4)).tolist() == [0, 1, 0, 1]
    assert data.conditioned_on == "all inputs"
    words = tmp_path / "words"
    words.mkdir()
    spec = hub(words, lambda d: d.Dataset.from_dict(columns | {"a": ["x", "y", "z", "w"]}))
    with pytest.raises(PreqError, match="column 'a' holds text; give numbers, or remove the column"):
        load(spec)
    with pytest.raises(PreqError, match="unknown column of hub 'kind'"):
        load(spec, label="kind")
    with pytest.raises(PreqError, match="size has no meaning for hub, which is a table"):
        load(hub(tmp_path / "third", lambda d: d.Dataset.from_dict(columns)), size=8)


def test_the_index_of_a_frame_is_no_input_of_a_hugging_face_table(tmp_path: Path) -> None:
    columns = {"a": [1.0, 2.0, 3.0, 4.0], "label": [5, 7, 5, 7], "__index_level_0__": [9, 3, 4, 1]}

    def made(datasets: Any) -> Any:
        whole = datasets.Dataset.from_dict(columns)
        return datasets.DatasetDict({"train": whole, "test": whole.select(range(2))})

    with pytest.warns(PreqWarning, match="column '__index_level_0__' of hub numbers the rows of a data frame"):
        data = load(hub(tmp_path / "one", made), order="given")
    assert data.input_shape == (1,)
    assert data.heldout is not None
    assert data.heldout.input_shape == (1,)
    alone = {name: values for name, values in columns.items() if name != "a"}
    assert load(hub(tmp_path / "two", lambda d: d.Dataset.from_dict(alone))).input_shape == (1,)
    words = alone | {"__index_level_0__": [0.5, 0.25, 1.0, 2.0], "a": columns["a"]}
    assert load(hub(tmp_path / "three", lambda d: d.Dataset.from_dict(words))).input_shape == (2,)
    two = {"Unnamed: 0": [0, 1, 2, 3], **columns, "__index_level_0__": [0, 1, 2, 3]}
    with (
        pytest.warns(PreqWarning, match="column 'Unnamed: 0' of hub numbers the rows"),
        pytest.warns(PreqWarning, match="column '__index_level_0__' of hub numbers the rows"),
    ):
        assert load(hub(tmp_path / "four", lambda d: d.Dataset.from_dict(two))).input_shape == (1,)


def test_hugging_face_images_with_held_out_ones(tmp_path: Path) -> None:
    pictures = [Image.fromarray(np.full((10 + i, 12, 3), 20 * i, np.uint8)) for i in range(6)]

    def make(datasets: Any) -> Any:
        features = datasets.Features({"image": datasets.Image(), "label": datasets.ClassLabel(names=["a", "b"])})
        rows = {"image": pictures, "label": [0, 1, 0, 1, 1, 0]}
        whole = datasets.Dataset.from_dict(rows, features=features)
        return datasets.DatasetDict({"train": whole.select(range(4)), "test": whole.select(range(4, 6))})

    spec = hub(tmp_path, make)
    data = load(spec, order="given")
    check_data(data)
    assert data.input_shape == (3, 10, 10)
    assert data.heldout is not None
    assert data.heldout.labels(np.arange(2)).tolist() == [1, 0]
    assert data.inputs(np.array([2])).float().mean().item() == pytest.approx(40, abs=1)
    smaller = load(spec, size=6)
    pq.run("mlp1", smaller, pq.ReplayStreams(num_streams=1, batch_size=2), seed=0, width=0.05)


def test_hugging_face_names_that_lead_nowhere(tmp_path: Path) -> None:
    pytest.importorskip("datasets", reason="the extra hf is not installed")
    (tmp_path / "empty").mkdir()
    with pytest.raises(PreqError, match=r"the Hugging Face data set '.*empty' cannot be opened"):
        load(f"hf:{tmp_path / 'empty'}")
    with pytest.raises(PreqError, match="'hf:' names no data set"):
        load("hf:")


@given(st.lists(st.integers(-5, 5), min_size=2, max_size=30).filter(lambda values: len(set(values)) > 1))
def test_numbering_keeps_the_order_of_classes(values: list[int]) -> None:
    labels = numbered(np.array(values), "labels")
    assert sorted(set(labels.tolist())) == list(range(len(set(values))))
    assert all(
        (a < b) == (m < n) for a, m in zip(values, labels, strict=True) for b, n in zip(values, labels, strict=True)
    )


def test_a_column_that_moves_a_little_far_from_zero_is_kept() -> None:
    times = 1.7e9 + 1000 * np.arange(50.0)[:, None] % 7919
    for how in ("table", "causal"):
        data = from_arrays(times, np.arange(50) % 2, standardise=how)
        assert data.inputs(np.arange(50)).std() > 0.5


@pytest.mark.parametrize("how", ["table", "causal", "none"])
def test_held_out_rows_use_the_statistics_of_the_training_rows(tmp_path: Path, how: str) -> None:
    draws = np.random.default_rng(0).normal(5, 3, (40, 2))
    spec = save(tmp_path, x_train=draws[:30], y_train=np.arange(30) % 2, x_test=draws[30:], y_test=np.arange(10) % 2)
    data = load(spec, standardise=how)
    assert data.heldout is not None
    mean, scale = (0, 1) if how == "none" else (draws[:30].mean(0), draws[:30].std(0))
    assert np.allclose(data.heldout.inputs(np.arange(10)).numpy(), (draws[30:] - mean) / scale, atol=1e-4)


@pytest.mark.parametrize("dtype", ["complex128", "datetime64[s]", "<U3"])
def test_inputs_that_are_no_numbers(tmp_path: Path, dtype: str) -> None:
    with pytest.raises(PreqError, match=r"the inputs of arrays must be numbers, got"):
        load(save(tmp_path, x=np.zeros((4, 2)).astype(dtype), y=[0, 1, 0, 1]))


def test_hugging_face_tables_with_held_out_rows_and_strange_ones(tmp_path: Path) -> None:
    def make(datasets: Any) -> Any:
        rows = {"a": [1.0, 2.0, 3.0, 4.0], "label": [0, 1, 0, 1]}
        parts = {"train": datasets.Dataset.from_dict(rows), "test": datasets.Dataset.from_dict(rows)}
        return datasets.DatasetDict(parts)

    data = load(hub(tmp_path / "one", make))
    assert data.heldout is not None
    assert len(data.heldout) == 4
    with pytest.raises(PreqError, match="has no column besides the label"):
        load(hub(tmp_path / "two", lambda d: d.Dataset.from_dict({"label": [0, 1, 0]})))


def test_hugging_face_images_that_are_missing(tmp_path: Path) -> None:
    picture = Image.fromarray(np.zeros((9, 9, 3), np.uint8))

    def make(datasets: Any) -> Any:
        features = datasets.Features({"image": datasets.Image(), "label": datasets.Value("int64")})
        return datasets.Dataset.from_dict({"image": [None, picture, picture], "label": [0, 1, 0]}, features=features)

    spec = hub(tmp_path, make)
    data = load(spec, order="given")
    assert data.input_shape == (3, 9, 9)
    with pytest.raises(PreqError, match=r"row 0 of 'hub' \(position 0\) is broken: there is none"):
        data.inputs(np.arange(3))
    with pytest.warns(UserWarning, match="1 of 3 images"):
        assert len(load(spec, skip_broken=True)) == 2
