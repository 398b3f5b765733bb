"""Tables that few people have: packed ones, odd files, frames and rows, and which row an example is."""

import gzip
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import prequential as pq
from prequential import cli
from prequential.cli.job import JobFlags, data_name
from prequential.data.shown import ShownExamples
from prequential.data.sources import load, open_source
from prequential.data.told import told_of
from prequential.errors import PreqError
from prequential.plain import sealed, unsealed
from prequential.presets import find_preset
from prequential.testing import check_data

QUICK = pq.ReplayStreams(num_streams=1, batch_size=8)
X = np.arange(8.0).reshape(4, 2)


def test_what_unpacks_to_very_much_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("prequential.data.packed.ALWAYS", 1 << 20)
    np.savez_compressed(tmp_path / "p.npz", x=np.zeros((1 << 18, 2)), y=np.arange(1 << 18) % 2)
    spec, told = (
        f"npz:{tmp_path / 'p.npz'}",
        r"array 'x': 0.0 MiB unpack to 4 MiB, where 1 are allowed; if you trust it",
    )
    with pytest.raises(PreqError, match=rf"{told}, unpack it first or give --max-unpacked 1 \(GiB\)"):
        load(spec)
    for enough in (1.0, 1e300):
        assert len(load(spec, max_unpacked=enough)) == 1 << 18
    text = b"a,label\n" + b"1,x\n2,y\n" * (1 << 18)
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(text))
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("a.csv", text)
    parquet.write_table(pa.table({"a": [1.0] * (1 << 18), "label": [True, False] * (1 << 17)}), tmp_path / "a.parquet")
    for name in ("a.csv.gz", "a.zip", "a.parquet"):
        spec = f"table:{tmp_path / name}"
        with pytest.raises(
            PreqError, match=rf"{name}: 0.0 MiB unpack to (more than 1|4) MiB, where 1 are allowed; if you"
        ):
            load(spec)
        data = load(spec, max_unpacked=0.5)
        assert len(data) >= 1 << 18
        assert "max_unpacked" not in (data.source or {}), "a record cannot say how much it is to be trusted"
        with pytest.raises(PreqError, match="where 1 are allowed"):
            open_source(spec, None, None, None, {"max_unpacked": 0.5}, unasked=True)
    np.savez(tmp_path / "a.npz", x=np.zeros((1 << 17, 2)), y=np.arange(1 << 17) % 2)
    assert len(load(f"npz:{tmp_path / 'a.npz'}")) == 1 << 17, "what is not packed may be as large as it is"


def shuffled_table() -> pa.Table:
    """32 rows out of order: `moment` is their place in time, `number` their row."""
    moments = np.random.default_rng(0).permutation(32)
    label = ["no" if moment % 3 else "yes" for moment in moments]
    return pa.table({"moment": moments, "number": np.arange(32.0), "fold": np.arange(32) % 4, "label": label})


def test_the_row_of_an_example_is_told_by_the_data_where_no_seed_does() -> None:
    table = shuffled_table()
    for options in ({"time": "moment"}, {"heldout": "fold=1"}, {"heldout": "fold=1", "time": "moment"}):
        data = pq.from_frame(table, standardise="none", **options)
        check_data(data)
        assert data.source_rows is not None
        rows = data.source_rows.tolist()
        numbers = data.inputs(np.arange(len(data)))[:, 1].tolist()
        assert numbers == rows, "the second input is the number of the row"
        record = pq.run("mlp1", data, QUICK, seed=0, width=0.05)
        assert record.worst(1)[0].row is None
        assert ShownExamples(data)(record, [3])[3].name == f"row {rows[3]}"
    plain = pq.from_frame(table)
    assert plain.describe(3) is None, "its order tells it"


def test_prepared_tables_keep_their_rows(tmp_path: Path) -> None:
    parquet.write_table(shuffled_table(), tmp_path / "t.parquet")
    data: Any = load(f"table:{tmp_path / 't.parquet'}", order_seed=3)
    prepared = pq.prepare(data, tmp_path / "p")
    assert told_of(prepared) == told_of(data) == {"rows": 32, "class_names": ["no", "yes"]}
    record = pq.run("mlp1", prepared.take(20), QUICK, seed=0, width=0.05)
    worst = record.worst(1)[0]
    assert worst.row == data.order[worst.position]
    timed = load(f"table:{tmp_path / 't.parquet'}", time="moment")
    assert "rows" not in told_of(pq.prepare(timed, tmp_path / "timed")), "no seed gives this order"
    file = tmp_path / "p" / "prepared.json"
    for rows in (31, 1 << 40, -1, "x"):
        file.write_bytes(sealed(unsealed(file.read_bytes(), "content") | {"rows": rows}, "content"))
        if rows == 31:
            assert "rows" not in told_of(load(f"prepared:{tmp_path / 'p'}")), "fewer than there are"
            continue
        with pytest.raises(PreqError, match="is damaged: rows must be null or a whole number in 1 … 67108864"):
            load(f"prepared:{tmp_path / 'p'}")


def test_keys_of_rows_are_those_of_the_first_in_any_order() -> None:
    rows: Any = [{"a": 1.0, "b": 2.0, "y": 0}, {"y": 1, "b": 20.0, "a": 10.0, "more": "text"}]
    data = pq.from_dataset(rows, heldout=[{"b": 4.0, "y": 1, "a": 3.0}])
    assert data.inputs(np.arange(2)).tolist() == [[1.0, 2.0], [10.0, 20.0]]
    assert data.heldout is not None
    assert data.heldout.inputs(np.arange(1)).tolist() == [[3.0, 4.0]]


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (lambda: pq.from_dataset([{"v": 1.0, "y": 0}, {"w": 1.0, "y": 1}]), "unknown key of item 1 of the Dataset 'v'"),
        (lambda: pq.from_dataset([(X, [0, 1])]), "item 0 of the Dataset must have one label, got 2; choose one"),
        (lambda: pq.from_arrays([[1], [1, 2]], [0, 1], standardise="table"), "inputs must form one array: .* alike"),
        (lambda: pq.from_arrays(X, [0, 1, 0, 1], heldout=(X[:, :1], [0] * 4), standardise="table"),
         "held-out rows have 1 columns, the others 2; make them alike"),
        (lambda: pq.from_frame(pa.table([[1, 2], [3, 4], [0, 1]], names=["a", "a", "y"])), "two columns named 'a'"),
        (lambda: pq.from_frame(pa.table({"a": [1, 2], "y": [[1], [2]]})), "holds list<.*; labels are text, true and"),
        (lambda: pq.from_frame(pa.table({"a": [1, 2], "y": [b"\xff", b"b"]})), "holds binary; labels are text, true"),
        (lambda: pq.from_frame(pa.table({"ab": [1, 2], "y": [0, 1]}), drop="ab"), "a list of columns, got 'ab'"),
        (lambda: pq.from_frame(pa.table({"a": [1, 2], "y": [0, 1]}), drop=["a"]), "no column left besides the label"),
        (lambda: pq.from_frame(pa.table({"a": [1, 2], "y": [0, 1]}), schema=3), "schema must be"),  # type: ignore[arg-type]
    ],
)  # fmt: skip
def test_what_is_no_table_gets_a_clear_word(make: Callable[[], object], complaint: str) -> None:
    with pytest.raises(PreqError, match=complaint):
        make()


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (b"a,b,label\r1,2,x\r3,4,y\r", r"no header of a table: its lines end as on old Macs \(CR\); save it with LF"),
        (b'[{"a": "' + b"x" * 200_000 + b'"}, {"a": 2}]', "no header of a table: field larger than field limit"),
        (
            b"a|label\n1|x\n2|y\n",
            "has 1 column; give a header and at least two, with a comma, semicolon or tab between",
        ),
    ],
)
def test_a_file_that_is_no_table(text: bytes, complaint: str, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(text)
    with pytest.raises(PreqError, match=complaint):
        load(f"table:{tmp_path / 't.csv'}")


@pytest.mark.parametrize(
    ("rows", "complaint"),
    [
        ("1,0,x\n2,1,y\n3,0,\n4,1,y\n", "column 'label' .* has no value in row 3"),
        ("1,0,x\n2,1,y\n3,0,y\n-inf,0,y\n", "column 'a' .* holds -inf in row 4"),
    ],
)
def test_rows_have_their_numbers_though_some_are_held_out(rows: str, complaint: str, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(f"a,fold,label\n{rows}")
    with pytest.raises(PreqError, match=complaint):
        load(f"table:{tmp_path / 't.csv'}", heldout="fold=1")


def test_a_frame_reads_and_writes_a_schema(tmp_path: Path) -> None:
    frame, file = shuffled_table(), tmp_path / "s.json"
    first = pq.from_frame(frame, drop=["fold"], schema=file)
    assert json.loads(file.read_text())["label"] == "label"
    again = pq.from_frame(frame.drop(["fold"]), schema=str(file))
    assert again.digests() == first.digests(), "what the schema drops need not be there"
    assert pq.from_frame(frame, schema=first.schema).digests() == first.digests()
    with pytest.raises(PreqError, match="the schema needs, and frame lacks, column 'number'"):
        pq.from_frame(frame.drop(["number"]), schema=file)


def test_names_that_are_numbers() -> None:
    pandas = pytest.importorskip("pandas")
    names: Any = {"label": 2, "drop": [1]}
    data = pq.from_frame(pandas.DataFrame([[1.0, 5, 0], [2.0, 6, 1]]), **names)
    assert data.input_shape == (1,)
    with pytest.raises(PreqError, match=r"the frame cannot be read: .*; give each column one name and one kind"):
        pq.from_frame(pandas.Series([1, 2]))


def test_what_is_held_out_adds_no_input() -> None:
    held = np.array([[np.nan, 1.0]])
    data = pq.from_arrays(X, [0, 1, 0, 1], heldout=(held, [1]), standardise="table")
    assert data.digests() == pq.from_arrays(X, [0, 1, 0, 1], standardise="table").digests()
    assert data.heldout is not None
    assert data.heldout.inputs(np.arange(1))[0, 0] == 0, "the mean"


def test_the_part_of_a_causal_table_that_is_shuffled_again() -> None:
    """Of rows that were left out nothing is computed, so nothing warns."""
    data = (
        pq.from_arrays(np.arange(4000.0)[:, None] ** 9, np.arange(4000) % 2, standardise="causal").take(3).shuffled(0)
    )
    assert np.isfinite(data.stored_inputs.numpy()).all()


def test_prepared_arrays_that_are_tables_have_the_preset_of_tables(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", x=X, y=[0, 1, 0, 1])
    assert cli.main(["data", "prepare", f"npz:{tmp_path / 'a.npz'}", "--to", str(tmp_path / "p")]) == 0
    assert data_name(f"prepared:{tmp_path / 'p'}", None).startswith("table:")
    np.savez(tmp_path / "b.npz", x=np.full((4, 8, 8), 200, np.uint8), y=[0, 1, 0, 1])
    pq.prepare(load(f"npz:{tmp_path / 'b.npz'}"), tmp_path / "q")
    assert data_name(f"prepared:{tmp_path / 'q'}", None).startswith("npz:")


def test_hugging_face_tables_have_the_preset_of_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    datasets = pytest.importorskip("datasets", reason="the extra hf is not installed")
    datasets.disable_progress_bars()
    columns = {
        "vectors": {"x": [[0.5, 1.0], [1.5, 2.0]], "kind": [0, 1]},
        "columns": {"a": [1, 2], "b": [0.5, 1.5], "kind": [0, 1]},
        "tokens": {"x": [[1, 2], [3, 4]], "kind": [0, 1]},
        "pictures": {"x": [[[0.5], [1.0]], [[1.5], [2.0]]], "kind": [0, 1]},
    }
    for name, told in columns.items():
        datasets.Dataset.from_dict(told).save_to_disk(tmp_path / name)

    def found(name: str, standardise: str | None = None) -> str:
        return data_name(f"hf:{name}", str(tmp_path), label="kind", standardise=standardise)

    assert [found(name) for name in columns] == ["table:vectors", "table:columns", "table:tokens", "hf:pictures"]
    assert found("tokens", "none") == "hf:tokens"
    assert data_name("hf:vectors", str(tmp_path)) == "hf:vectors", "which column is the label is not known"
    asked = JobFlags(data="hf:vectors", models=("mlp1",), data_dir=str(tmp_path), label="kind")
    assert asked.chosen_settings.recipe == find_preset("default", "table:vectors").recipe
    monkeypatch.chdir(tmp_path)
    pq.prepare(load("hf:vectors", label="kind"), tmp_path / "prepared")
    assert data_name(f"prepared:{tmp_path / 'prepared'}", None) == "table:vectors"
