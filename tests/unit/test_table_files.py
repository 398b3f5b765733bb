"""`table:`, `from_frame` and `from_arrays`: tables as people have them, and each odd one told in a line."""

import gzip
import io
import json
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv as arrow_csv
from pyarrow import parquet

import prequential as pq
from prequential import cli
from prequential.cli.job import data_name
from prequential.data.sources import load
from prequential.data.told import told_of
from prequential.errors import PreqError
from prequential.files import reading
from prequential.presets import find_preset
from prequential.runs.facts import differences
from prequential.testing import check_data

FLIGHTS = Path(__file__).parents[1] / "files" / "flights.csv.gz"
SKY = "when,sky,wind,dry,fold,rain\n" + "".join(
    f"2013-01-{day:02d}T{day % 24:02d}:30:00Z,{'clear' if day % 3 else 'grey'},{day if day % 4 else ''},"
    f"{'true' if day % 5 else 'false'},{day % 4},{'yes' if day % 2 else 'no'}\n"
    for day in range(1, 29)
)
Captured = pytest.CaptureFixture[str]


def sky(tmp_path: Path, text: str = SKY, name: str = "sky.csv") -> str:
    (tmp_path / name).write_text(text, encoding="utf-8")
    return f"table:{tmp_path / name}"


def rows_of(data: Any) -> list[list[float]]:
    return data.inputs(np.arange(len(data))).tolist()


def test_every_kind_of_column(tmp_path: Path) -> None:
    data = load(sky(tmp_path), label="rain", order="given", standardise="table", drop=["fold"])
    check_data(data)
    assert data.class_names == ("no", "yes")
    assert data.schema is not None
    kinds = {column.name: (column.kind, column.width) for column in data.schema.columns}
    assert kinds == {
        "when": ("date", 7),
        "sky": ("category", 2),
        "wind": ("number", 2),
        "dry": ("boolean", 1),
        "fold": ("dropped", 0),
    }
    inputs = np.array(rows_of(data))
    assert inputs.shape == (28, 12)
    assert np.allclose(inputs[0, 1:3], [np.sin(2 * np.pi * 1.5 / 24), np.cos(2 * np.pi * 1.5 / 24)])
    assert np.allclose(inputs[6, 3:5], [0, 1]), "7 January 2013 was a Monday"
    assert inputs[0, 7:9].tolist() == [1, 0], "clear, grey"
    assert inputs[:, 10].tolist() == [float(day % 4 == 0) for day in range(1, 29)]
    assert inputs[3, 9] == 0, "a hole is the mean"
    assert data.conditioned_on == "all inputs"


@pytest.mark.parametrize("kind", ["csv", "tsv", "gz", "zip", "parquet", "frame", "pandas"])
def test_the_same_table_from_any_file_is_the_same(kind: str, tmp_path: Path) -> None:
    expected = load(sky(tmp_path), label="rain", order="given")
    table = arrow_csv.read_csv(tmp_path / "sky.csv")
    if kind in ("frame", "pandas"):
        pytest.importorskip("pandas")
        data: Any = pq.from_frame(table if kind == "frame" else table.to_pandas(), label="rain")
    else:
        path = tmp_path / f"other.{kind}"
        if kind == "parquet":
            parquet.write_table(table, path)
        elif kind == "zip":
            with zipfile.ZipFile(path, "w") as archive:
                archive.writestr("sky.csv", SKY)
        else:
            text = SKY.replace(",", "\t") if kind == "tsv" else SKY
            path.write_bytes(gzip.compress(text.encode()) if kind == "gz" else text.encode())
        data = load(f"table:{path}", label="rain", order="given")
    assert data.digests() == expected.digests()
    assert data.schema == expected.schema


def test_a_fold_is_held_out_and_time_orders(tmp_path: Path) -> None:
    lines = SKY.splitlines(keepends=True)
    spec = sky(tmp_path, lines[0] + "".join(reversed(lines[1:])))
    data = load(spec, label="rain", heldout="fold=3", time="when", columns=["wind", "sky"])
    assert len(data) == 21
    assert data.heldout is not None
    assert len(data.heldout) == 7
    assert data.input_shape == data.heldout.input_shape == (4,)
    assert data.order_seed is None
    given = load(sky(tmp_path, name="b.csv"), label="rain", heldout="fold=3", order="given", columns=["wind", "sky"])
    assert np.allclose(rows_of(data), rows_of(given), atol=1e-6)
    assert data.labels(np.arange(21)).tolist() == given.labels(np.arange(21)).tolist()
    assert data.schema is not None
    assert "fold" not in {column.name for column in data.schema.inputs}


def test_a_schema_is_written_and_read(tmp_path: Path, capsys: Captured) -> None:
    spec, file = sky(tmp_path), tmp_path / "schema.json"
    first = load(spec, label="rain", schema=str(file))
    told = json.loads(file.read_text())
    assert told["classes"] == ["no", "yes"]
    assert load(spec, schema=str(file)).digests() == first.digests()
    assert load(spec, schema=told, label="rain").digests() == first.digests(), "as a record holds it"
    other = sky(tmp_path, SKY.replace("grey", "black"), "other.csv")
    data = load(other, schema=str(file), order="given", columns=["sky"], standardise="causal")
    assert rows_of(data)[2] == [0, 0], "a value that the schema does not know"
    for change, complaint in [
        ({"format": 9}, "is not a schema of format 1, got 9"),
        ({"columns": [{"name": "sky", "kind": "colour"}]}, "column 'sky' cannot become that; kinds are number, bool"),
        ({"columns": [{"name": "sky"}]}, "a column lacks its kind"),
        ({"columns": [{"name": "sky", "kind": 3}]}, "'kind' of a column cannot be 3"),
        ({"columns": told["columns"][:2]}, "the schema tells nothing of column 'wind'; --drop it"),
        ({"columns": [*told["columns"], {"name": "hail", "kind": "number"}]}, "lacks, column 'hail'"),
        ({"columns": told["columns"] * 2}, "tells of column 'dry' twice"),
        ({"classes": ["yes"]}, "lacks a label, its classes"),
        ({"classes": ["yes", "maybe"]}, "holds no in row 2, a class that is not in the training labels"),
        (
            {"columns": [c | {"holes": 0} for c in told["columns"]]},
            "column 'wind' of .* has holes, and the schema none",
        ),
        (
            {"columns": [c | {"kind": "date"} for c in told["columns"]]},
            "holds string, and the schema has a date for it",
        ),
    ]:
        file.write_text(json.dumps(told | change))
        with pytest.raises(PreqError, match=complaint):
            load(spec, schema=str(file))
    for content in (b"[", b"\xff", b"[" * 10_000, b'{"format": 1e999}'):
        file.write_bytes(content)
        assert cli.main(["data", spec, "--schema", str(file)]) == 2
        assert "is no schema" in capsys.readouterr().err
    with file.open("wb") as opened:
        opened.truncate(1 << 25)
    assert cli.main(["data", spec, "--schema", str(file)]) == 2
    assert "it has more than 16,777,216 bytes" in capsys.readouterr().err


def test_what_a_library_cannot_read_has_a_reason(tmp_path: Path) -> None:
    (tmp_path / "t.parquet").write_bytes(b"PAR1" + b"\0" * 64 + b"PAR1")
    with pytest.raises(PreqError) as told:
        load(f"table:{tmp_path / 't.parquet'}", label="y")
    assert "None" not in str(told.value)
    with pytest.raises(PreqError, match=r"t\.csv cannot be read: OSError: a page is broken"), reading(Path("t.csv")):
        raise OSError("a page is broken")


ODD: dict[str, tuple[str | bytes, str]] = {
    "infinite": (
        "a,b,label\n1,1,x\ninf,2,y\n",
        "column 'a' of .* holds inf in row 2; leave it empty or remove the row",
    ),
    "empty": ("", "has 0 columns; give a header and at least two"),
    "no rows": ("a,label\n", "has no rows"),
    "one class": ("a,label\n1,x\n2,x\n", "holds a single class"),
    "no label": ("a,label\n1,x\n2,\n", r"has no value in row 2 \(1 such rows\); remove them"),
    "only the label": ("label\n1\n2\n", "has 1 column; give a header"),
    "fractions": ("a,label\n1,0.5\n2,1.5\n", "whole numbers, row 1 holds 0.5; number the classes"),
    "a value per row": ("id,label\nu,x\nv,y\n", "no column that tells anything: dropped; a value per row"),
    "latin": (b"a,label\n\xe9t\xe9,x\nete,y\n", "column 'a' of .* holds binary; save the table as UTF-8"),
    "damaged": (gzip.compress(SKY.replace("rain", "label").encode())[:-20], "cannot be unpacked"),
    "parquet": (b"PAR1junk", "cannot be read as Parquet"),
}


@pytest.mark.parametrize("name", ODD)
def test_an_odd_table_gets_a_clear_word(name: str, tmp_path: Path) -> None:
    text, complaint = ODD[name]
    (tmp_path / "t.csv").write_bytes(text.encode() if isinstance(text, str) else text)
    with pytest.raises(PreqError, match=complaint) as caught:
        load(f"table:{tmp_path / 't.csv'}")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"drop": ["wnd"]}, "unknown column of .* 'wnd'; did you mean 'wind'"),
        ({"drop": ["rain"]}, "column 'rain' of .* is the label; leave it out of --drop"),
        ({"columns": ["rain"]}, "is the label"),
        ({"heldout": "fold"}, "heldout must be COLUMN=VALUE, got 'fold'; write --heldout fold=3"),
        ({"heldout": "fold=9"}, "no row of .* has 9 in column 'fold'"),
        ({"heldout": "fold=x"}, "column 'fold' of .* holds int64, got --heldout fold=x"),
        ({"time": "sky"}, "holds string; --time takes dates or numbers"),
        ({"time": "wind"}, "orders the rows, and row 4 has no time in it"),
        ({"time": "when", "order_seed": 3}, "the rows are ordered by --time when; leave --order and --order-seed out"),
        ({"label": "x"}, "unknown column"),
    ],
)
def test_a_mistaken_option_gets_a_clear_word(options: dict[str, Any], complaint: str, tmp_path: Path) -> None:
    with pytest.raises(PreqError, match=complaint):
        load(sky(tmp_path), **{"label": "rain"} | options)


def test_large_labels_are_exact_and_numbers_keep_their_order(tmp_path: Path) -> None:
    big = [2**53, 2**53 + 1, 2**64 - 1, 9, 10]
    text = "a,label\n" + "".join(f"{n},{value}\n" for n, value in enumerate(big * 2))
    data = load(sky(tmp_path, text), order="given")
    assert data.class_names == ("9", "10", str(2**53), str(2**53 + 1), str(2**64 - 1))
    assert data.labels(np.arange(5)).tolist() == [2, 3, 4, 0, 1]
    table = pa.table({"a": [1.0, 2.0, 1.0, 2.0], "label": pa.array([2**64 - 1, 2**64 - 2] * 2, pa.uint64())})
    assert pq.from_frame(table).class_names == (str(2**64 - 2), str(2**64 - 1))
    assert pq.from_frame(pa.table({"a": [1, 2], "label": [True, False]})).class_names == ("false", "true")


def test_ten_thousand_columns(tmp_path: Path) -> None:
    names = ",".join(f"c{n}" for n in range(10_000))
    rows = "\n".join(",".join([str((n * 7 + row) % 13) for n in range(10_000)] + [str(row % 2)]) for row in range(4))
    data = load(sky(tmp_path, f"{names},label\n{rows}\n"))
    assert data.input_shape == (10_000,)
    assert data.schema is not None
    told = list(data.schema.rows())
    assert [told[1][0], len(told)] == ["c0 … c9999 (10,000 columns)", 2]


def test_many_words_are_hashed_and_few_are_where_nothing_may_look_ahead(tmp_path: Path) -> None:
    text = "a,label\n" + "".join(f"w{n % 40},{n % 2}\n" for n in range(120))
    data = load(sky(tmp_path, text), order="given")
    assert data.input_shape == (32,)
    inputs = np.array(rows_of(data))
    assert (np.abs(inputs).sum(1) == 1).all()
    assert inputs[0].tolist() == inputs[40].tolist()
    few = load(sky(tmp_path), label="rain", standardise="causal", columns=["sky"])
    assert few.schema is not None
    assert few.schema.columns[0].kind == "hashed"
    assert few.conditioned_on == "inputs up to the label"


def test_a_run_repeats_its_decisions(tmp_path: Path, capsys: Captured) -> None:
    spec, flags = sky(tmp_path), ["--streams", "1", "--batch-size", "8", "--threads", "1", "--width", "0.1"]
    how = ["--label", "rain", "--drop", "dry", "--heldout", "fold=3", "--time", "when"]
    assert cli.main(["run", spec, "mlp1", *how, *flags, "--out", str(tmp_path / "run")]) == 0
    printed = capsys.readouterr().out
    assert "0 or 1 for each of: clear, grey" in printed
    assert "classes" in printed
    record = pq.load(tmp_path / "run")
    assert record.data["class_names"] == ["no", "yes"]
    assert record.summary()["class_names"] == ["no", "yes"]
    assert record.source is not None
    assert record.source["schema"]["label"] == "rain"
    assert record.source["drop"] == ["dry"]
    assert record.heldout is not None
    assert cli.main(["verify", str(tmp_path / "run"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["labels_identical"] is True
    bits, labels = tmp_path / "a.preq", tmp_path / "labels.npy"
    assert cli.main(["encode", spec, "mlp1", *how, *flags, "-o", str(bits)]) == 0
    assert cli.main(["decode", str(bits), "--data", spec, *how, "-o", str(labels)]) == 0
    assert np.array_equal(np.load(labels), record.labels)
    capsys.readouterr()
    assert cli.main(["run", spec, "mlp1", *how, *flags, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["class_names"] == ["no", "yes"]


def test_preq_data_tells_the_decisions(tmp_path: Path, capsys: Captured) -> None:
    assert cli.main(["data", sky(tmp_path), "--label", "rain"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("sky: 28 examples, 2 classes, inputs 13")
    assert "a number; 7 holes: the mean and an indicator" in " ".join(printed.split())
    assert cli.main(["data", "--label", "rain"]) == 2
    assert "--label is about one data set; name it" in capsys.readouterr().err
    evil = sky(tmp_path, "a\x1b[2J,label\n1,x\n2,y\n", "evil.csv")
    assert cli.main(["data", evil]) == 0
    assert "\x1b[2J" not in capsys.readouterr().out


def index_table(tmp_path: Path, head: str, numbers: Any) -> str:
    rows = "".join(f"{number},{place % 3},{place % 5},{place % 2}\n" for place, number in enumerate(numbers))
    return sky(tmp_path, f"{head},x,z,y\n{rows}", "index.csv")


@pytest.mark.parametrize(
    ("head", "numbers"),
    [("", range(40)), ('""', range(1, 41)), ("Unnamed: 0", range(39, -1, -1)), ("__index_level_0__", range(7, 87, 2))],
)
def test_an_index_without_a_name_is_no_input(head: str, numbers: Any, tmp_path: Path, capsys: Captured) -> None:
    named = index_table(tmp_path, head, numbers)
    data = load(named)
    assert data.input_shape == (2,)
    assert data.schema is not None
    assert data.schema.columns[0].note == "without a name, it numbers the rows; --columns takes it"
    assert load(named, columns=[head.strip('"'), "x", "z"]).input_shape == (3,), "who names it has it"
    held_out = load(named, heldout="x=1")
    assert held_out.schema is not None
    assert held_out.schema.columns[0].kind == "dropped"
    assert cli.main(["data", named]) == 0
    assert "without a name, it numbers the rows" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("head", "numbers"), [("id", range(40)), ("", [7] * 40), ("", [x / 4 for x in range(40)]), ("", range(-20, 20))]
)
def test_what_has_a_name_or_numbers_no_rows_stays_an_input(head: str, numbers: Any, tmp_path: Path) -> None:
    assert load(index_table(tmp_path, head, numbers)).input_shape == (3,)


def test_a_schema_of_before_keeps_an_index_without_a_name(tmp_path: Path, capsys: Captured) -> None:
    named, schema = index_table(tmp_path, "", range(40)), tmp_path / "schema.json"
    columns = [{"name": name, "kind": "number"} for name in ("", "x", "z")]
    schema.write_text(json.dumps({"format": 1, "label": "y", "classes": ["0", "1"], "columns": columns}))
    data = load(named, schema=str(schema), order="given")
    assert data.input_shape == (3,)
    assert cli.main(["data", named, "--schema", str(schema)]) == 0
    assert "(no name), x, z" in capsys.readouterr().out
    run = ["run", named, "mlp1", "--schema", str(schema), "--width", "0.05", "--threads", "1", "--streams", "1"]
    assert cli.main([*run, "--out", str(tmp_path / "run")]) == 0
    schema.unlink()
    assert cli.main(["verify", str(tmp_path / "run")]) == 0, "what was decided stands in the record"
    assert "error" not in capsys.readouterr().err


def test_arrays_that_are_tables(tmp_path: Path) -> None:
    values = np.array([[1.0, np.nan], [2.0, 5.0], [3.0, 7.0], [6.0, 6.0]])
    np.savez(tmp_path / "a.npz", x=values, y=np.array(["up", "down", "up", "down"]))
    spec = f"npz:{tmp_path / 'a.npz'}"
    data = load(spec, order="given")
    assert data.class_names == ("down", "up")
    assert data.input_shape == (3,), "a hole has an indicator"
    same = pq.from_arrays(values, ["up", "down", "up", "down"], standardise="table")
    assert same.digests() == data.digests()
    assert same.class_names == ("down", "up")
    assert find_preset("default", data_name(spec, None), "mlp2").data == ("csv:*", "table:*")
    np.savez(tmp_path / "b.npz", x=np.zeros((4, 8, 8), np.uint8), y=[0, 1, 0, 1])
    assert data_name(f"npz:{tmp_path / 'b.npz'}", None) == f"npz:{tmp_path / 'b.npz'}"
    assert data_name("npz:nowhere.npz", None) == "npz:nowhere.npz"
    with pytest.raises(PreqError, match="unknown way to standardise 'tabel'; did you mean 'table'"):
        pq.from_arrays(values, [0, 1, 0, 1], standardise="tabel")
    with pytest.raises(PreqError, match=r"only rows of numbers can be standardised, got float64 of shape \(2, 2, 2\)"):
        pq.from_arrays(np.zeros((2, 2, 2)), [0, 1], standardise="table")


def test_text_labels_in_arrays() -> None:
    held = (np.zeros((1, 2)), ["b"])
    data = pq.from_arrays(np.zeros((3, 2)), np.array(["b", "a", "b"], object), heldout=held)
    assert data.labels(np.arange(3)).tolist() == [1, 0, 1]
    assert data.heldout is not None
    assert data.heldout.labels(np.arange(1)).tolist() == [1]
    named = pq.from_arrays(np.zeros((2, 2)), ["b", "a"], class_names=["b", "a", "c"])
    assert (named.num_classes, named.labels(np.arange(2)).tolist()) == (3, [0, 1])
    assert pq.from_arrays(np.zeros((2, 2)), [0, 1], class_names=["x", "y"]).class_names == ("x", "y")
    with pytest.raises(PreqError, match="labels hold 'c' at position 0, which is none of the classes"):
        pq.from_arrays(np.zeros((2, 2)), ["a", "b"], heldout=(np.zeros((1, 2)), ["c"]))
    with pytest.raises(PreqError, match="class_names has 3 names, and num_classes is 2"):
        pq.from_arrays(np.zeros((2, 2)), [0, 1], num_classes=2, class_names=["a", "b", "c"])


def test_frames_of_any_library_and_what_is_none(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        {
            "kind": pandas.Categorical(["x", "y", "x", "y"], ["x", "y", "z"]),
            "when": pandas.date_range("2013", periods=4),
            "label": ["a", "b", "a", "b"],
        }
    )
    data = pq.from_frame(frame)
    assert data.schema is not None
    assert data.schema.columns[0].values == ("x", "y")
    assert data.shuffled(0).order_seed == 0
    with pytest.raises(PreqError, match=r"from_frame takes a data frame .* got dict"):
        pq.from_frame({"a": [1]})
    with pytest.raises(PreqError, match=r"column 'v' of frame holds list<.*; spread it over columns of single values"):
        pq.from_frame(pa.table({"v": [[1], [2]], "label": [0, 1]}))


def test_the_flights_from_file_to_comparison(tmp_path: Path, capsys: Captured, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "160")
    Path("flights.csv.gz").write_bytes(FLIGHTS.read_bytes())
    for model in ("mlp1", "mlp2"):
        flags = ["--label", "late", "--time", "time_hour", "--length", "64", "--out", f"runs/{model}"]
        assert cli.main(["run", "table:flights.csv.gz", model, *flags]) == 0
    told = capsys.readouterr().out
    for words in (
        "the label: 2 classes, false, true",
        "days passed, hour, weekday, day of the year",
        "holes: the mean",
    ):
        assert words in " ".join(told.split())
    assert cli.main(["compare", "runs"]) == 0
    assert "mlp2" in capsys.readouterr().out
    with io.TextIOWrapper(gzip.open(FLIGHTS)) as file:
        assert len(file.readlines()) == 1204


def test_the_page_names_the_classes(tmp_path: Path) -> None:
    data = pq.from_frame(pa.table({"a": [1.0, 2.0, 3.0, 1.0] * 8, "label": ["dry", "wet<i>", "wet<i>", "dry"] * 8}))
    method = pq.ReplayStreams(num_streams=1, batch_size=8)
    record = pq.run("mlp1", data, method, seed=0, width=0.05, out=tmp_path / "run")
    page = pq.write_report([record], tmp_path / "page.html").read_text()
    assert "wet&lt;i&gt;" in page
    assert "wet<i>" not in page.replace('"wet<i>"', "")


PLAIN = "a,b,c,kind\n" + "".join(f"{n * 7 % 13},{n / 7:.6f}, {n * n},{n % 3 + 1}\n" for n in range(50))


@pytest.mark.parametrize(
    ("how", "inputs"),
    [
        ("table", "65bf8c1f757d4d6ed87666c03ac11ed0"),
        ("causal", "2eb14b7212cf4c86de5995c7ea77f2ca"),
        ("none", "e17dabccb058c0af43c9602dadc0a961"),
    ],
)
def test_plain_tables_have_the_fingerprints_of_before(how: str, inputs: str, tmp_path: Path) -> None:
    """Those that version 0.1 gave when it read numbers alone."""
    data = load(sky(tmp_path, PLAIN).replace("table:", "csv:"), label="kind", standardise=how)
    assert data.digests() == {"inputs": inputs, "labels": "767a555fb415780dc85a3ce2e49caf31"}


def test_a_run_of_before_goes_on_though_it_names_no_classes(tmp_path: Path) -> None:
    data = pq.from_frame(pa.table({"a": [1.0, 2.0, 3.0, 1.0] * 8, "label": [3, 5, 5, 3] * 8}))
    record = pq.run("mlp1", data, pq.ReplayStreams(num_streams=1, batch_size=8), seed=0, width=0.05)
    facts = record.facts()
    assert facts["data"]["class_names"] == ["3", "5"]
    earlier = facts | {"data": {k: v for k, v in facts["data"].items() if k != "class_names"}}
    assert differences(record, earlier) == []
    assert differences(record, facts) == []
    assert differences(record, facts | {"data": facts["data"] | {"class_names": ["3", "6"]}})


def test_the_package_needs_pyarrow_only_for_tables() -> None:
    code = "import sys, prequential.data.sources, prequential.cli.run, prequential as pq; pq.from_frame"
    done = subprocess.run([sys.executable, "-c", f"{code}; sys.exit('pyarrow' in sys.modules)"], capture_output=True)
    assert done.returncode == 0, done.stderr


def test_texts_that_no_record_would_hold() -> None:
    long = "x" * 20_000
    for table, told in (
        (
            {"a": [1, 2], "label": ["b", long]},
            "holds a text of 20,000 letters, xxxxxxxxx…; name the classes",
        ),
        (
            {long: [1, 2], "label": ["b", "c"]},
            "a column whose name has 20,000 letters, x*…; rename it",
        ),
    ):
        with pytest.raises(PreqError, match=told):
            pq.from_frame(pa.table(table))
    data = pq.from_frame(pa.table({"a": ["b", long, long, "b"], "label": ["b", "c", "b", "c"]}))
    assert data.schema is not None
    assert [column.kind for column in data.schema.columns] == ["hashed"]


def test_rows_are_told_where_none_is_held_out() -> None:
    frame = pa.table({"a": [1.0, 2.0, 3.0, 4.0], "fold": [1, 2, 1, 1], "label": ["b", "c", "c", "b"]})
    assert told_of(pq.from_frame(frame).shuffled(0))["rows"] == 4
    assert "rows" not in told_of(pq.from_frame(frame, heldout="fold=2")), "its second row is the third of the table"
