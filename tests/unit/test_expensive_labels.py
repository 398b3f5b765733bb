"""Which labels were expensive: in Python, on the command line and on the page."""

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

import prequential as pq
from prequential import cli
from prequential.data.shown import ShownExamples, picture_of
from prequential.errors import PreqError
from prequential.runs.costs import most_expensive

from ..records import made_record

QUICK = pq.ReplayStreams(num_streams=1, batch_size=8)
Captured = pytest.CaptureFixture[str]


@given(st.lists(st.sampled_from([0.0, 0.5, 1.0, 2.5, np.inf]), min_size=1, max_size=30), st.integers(1, 40))
def test_the_worst_are_the_largest_the_earlier_first(nats: list[float], k: int) -> None:
    found = most_expensive(np.array(nats), k).tolist()
    assert found == sorted(range(len(nats)), key=lambda position: (-nats[position], position))[:k]


@given(st.lists(st.tuples(st.floats(0.01, 9), st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=40))
def test_what_the_classes_cost_is_the_codelength(rows: list[tuple[float, int, int]]) -> None:
    nats, labels, predicted = zip(*rows, strict=True)
    record = made_record(nats, labels=labels, num_classes=4)
    record.predicted[:] = predicted
    classes, confusions = record.by_class(), record.confusions()
    assert sum(each.nats for each in classes) == pytest.approx(record.codelength)
    assert sum(each.share or 0 for each in classes) == pytest.approx(1)
    assert sum(each.count for each in classes) == len(rows)
    assert sum(each.errors for each in classes) == record.errors == sum(each.count for each in confusions)
    wrong = [cost for cost, label, other in rows if label != other]
    assert sum(each.nats for each in confusions) == pytest.approx(sum(wrong))
    assert all(each.label != each.predicted for each in confusions)
    assert [each.count for each in confusions] == sorted((each.count for each in confusions), reverse=True)
    for each in classes:
        of_class = [(pair.count, pair.predicted) for pair in confusions if pair.label == each.label]
        assert (each.mistaken_for is None) == (not of_class)
        assert each.mistaken_for is None or (max(of_class)[0], each.mistaken_for) in of_class
    worst = record.worst(len(rows))
    assert sum(each.share or 0 for each in worst) == pytest.approx(1)
    assert all(each.probability == pytest.approx(np.exp(-each.nats)) for each in worst)


def test_a_run_that_diverged_and_one_without_a_code() -> None:
    worst = made_record([1.0, np.inf], length=4).worst(1)[0]
    assert (worst.position, worst.nats, worst.share, worst.row) == (1, np.inf, None, None)
    with pytest.raises(PreqError, match="without a codelength has no expensive labels"):
        made_record([1.0], prequential=False).worst()
    with pytest.raises(PreqError, match="what is coded is no class but tokens"):
        made_record([1.0], target={"kind": "tokens"}).by_class()
    assert [each.position for each in made_record([3.0, 2.0, 1.0, 2.0]).worst(2, start=1)] == [1, 3]
    with pytest.raises(PreqError, match="start must be a whole number of at least 0 and at most 0, got 1"):
        made_record([1.0]).worst(start=1)
    with pytest.raises(PreqError, match="k must be a whole number of at least 1, got 0"):
        made_record([1.0]).worst(0)


def sequence(length: int = 40) -> Any:
    images = np.random.default_rng(0).integers(0, 256, (length, 1, 6, 5), np.uint8)
    return pq.from_arrays(images, np.array(["no", "yes"])[images[:, 0, 0, 0] // 128], name="made")


@pytest.mark.parametrize(
    ("make", "is_known"),
    [
        (lambda data: data, True),
        (lambda data: data.take(20), True),
        (lambda data: data.shuffled(3).take(30), True),
        (lambda data: data.take(30).shuffled(3), False),
        (lambda data: data.shuffled(1).shuffled(3), False),
    ],
)
def test_the_record_knows_the_row_of_a_label_or_says_that_it_does_not(
    make: Any, is_known: bool, tmp_path: Path
) -> None:
    data = make(sequence())
    pq.run("mlp1", data, QUICK, seed=0, out=tmp_path / "run")
    record = pq.load(tmp_path / "run")
    assert record.class_names == ("no", "yes")
    for each in record.worst(5):
        assert each.row == (int(data.source_rows[each.position]) if is_known else None)
        assert each.label_name == ("no", "yes")[each.label]
        assert each.confidence == record.confidence[each.position]


@pytest.mark.parametrize("engine", ["graph", "stack"])
def test_every_engine_says_what_it_predicted_and_how_surely(engine: str) -> None:
    data = sequence()
    if engine == "stack":
        (record,) = pq.run_stack("mlp1", data, QUICK, [pq.Recipe()], seeds=[0])
    else:
        record = pq.run("mlp1", data, QUICK, seed=0, execution=pq.Execution(engine=engine))
    right = record.labels == record.predicted
    assert np.allclose(record.confidence[right], np.exp(-record.nats[right]), rtol=1e-5)
    assert (record.confidence >= 0.5 - 1e-6).all()
    assert record.worst(1)[0].predicted == record.predicted[record.nats.argmax()]


def test_a_run_of_before_goes_on_without_what_is_told_of_data() -> None:
    from prequential.runs.facts import EAGER, differences

    record = made_record([1.0])
    made = {"device": "cpu", **EAGER}
    before = record.facts() | {"environment": made}
    told = made_record([1.0], data=record.data | {"class_names": ["a", "b"], "rows": 9}, environment=made)
    assert differences(told, before) == []


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Images in folders, and a run on them."""
    place = tmp_path_factory.mktemp("labels")
    chance = np.random.default_rng(1)
    for number in range(24):
        path = place / "pets" / ("cat" if number % 2 else "dog") / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(chance.integers(0, 128 + 127 * (number % 2), (8, 8, 3), np.uint8)).save(path)
    arguments = f"run folder:{place}/pets mlp1 --workers 0 --crop centre --streams 1 --batch-size 8 --out {place}/run"
    assert cli.main(arguments.split()) == 0
    return place


def test_preq_labels_tells_files_and_classes(archive: Path, capsys: Captured, tmp_path: Path) -> None:
    asked = ["labels", f"{archive}/run", "--top", "3"]
    assert cli.main(asked) == 0
    plain = capsys.readouterr().out
    assert "The 3 most expensive of 24 labels cost" in plain
    assert ".png" not in plain, "nothing is read because a record names it"
    assert cli.main([*asked, "--data", f"folder:{archive}/pets", "--json", "--csv", f"{tmp_path}/worst.csv"]) == 0
    told = json.loads(capsys.readouterr().out)
    record = pq.load(archive / "run")
    assert told["class_names"] == ["cat", "dog"]
    assert [each["position"] for each in told["worst"]] == [each.position for each in record.worst(3)]
    assert sum(each["nats"] for each in told["classes"]) == pytest.approx(record.codelength)
    for each in told["worst"]:
        assert Path(each["example"]).parent.name == told["class_names"][each["label"]] == each["label_name"]
    with (tmp_path / "worst.csv").open() as file:
        assert [int(row["row"]) for row in csv.DictReader(file)] == [each["row"] for each in told["worst"]]
    assert cli.main([*asked, "--data", "mnist"]) == 2
    assert "preq: the data 'mnist' has other labels than the 'pets' of the run" in capsys.readouterr().err


def test_the_page_shows_the_inputs(archive: Path, tmp_path: Path) -> None:
    data = pq.load_data(f"folder:{archive}/pets", workers=0, crop="centre")
    page = pq.write_report(archive / "run", tmp_path / "a.html", examples=ShownExamples(data)).read_text()
    assert page.count('<img class="example" src="data:image/png;base64,') == 20
    assert 'id="classes-table"' in page
    assert '<th scope="row">dog</th>' in page
    assert "20 most expensive of 24 labels" in page
    assert "<img" not in pq.write_report(archive / "run", tmp_path / "b.html").read_text()
    part = pq.write_report(made_record([1.0, 2.0], length=3), tmp_path / "c.html", prefix=True).read_text()
    assert "2 most expensive of 2 labels" in part


def test_pictures_of_inputs() -> None:
    assert picture_of(np.zeros((5,))) is None
    assert picture_of(np.zeros((9, 4, 4))) is None
    for shape in ((1, 8, 8), (2, 8, 8), (3, 300, 200), (4, 8, 8)):
        for dtype in (np.uint8, np.float32):
            picture = picture_of(np.arange(np.prod(shape)).reshape(shape).astype(dtype))
            assert picture is not None
            assert picture.startswith("data:image/png;base64,")


def test_what_has_no_labels_to_show(tmp_path: Path, capsys: Captured) -> None:
    made_record([], length=2, path=None).save(tmp_path / "none")
    assert cli.main(["labels", f"{tmp_path}/none"]) == 2
    made_record([1.0], prequential=False, path=None).save(tmp_path / "erm")
    assert cli.main(["labels", f"{tmp_path}/erm"]) == 2
    assert cli.main(["labels", f"{tmp_path}/nowhere"]) == 2
    told = capsys.readouterr().err.splitlines()
    assert ["has no label to show yet" in told[0], "has no codelength" in told[1], "holds no run" in told[2]] == [
        True
    ] * 3


def test_odd_names_of_classes_are_kept_and_shown_harmlessly(tmp_path: Path, capsys: Captured) -> None:
    odd = ["\x1b[31mred", "<b>bold", "bad\udce9"]
    data = pq.from_arrays(np.arange(24.0)[:, None], [odd[n % 3] for n in range(24)])
    prepared = pq.prepare(data, tmp_path / "prepared")
    assert prepared.class_names == ("\x1b[31mred", "<b>bold", "bad\\udce9")
    record = pq.run("mlp1", data, QUICK, seed=0, out=tmp_path / "run")
    assert record.class_names == prepared.class_names
    assert cli.main(["labels", f"{tmp_path}/run"]) == 0
    shown = capsys.readouterr().out
    assert "\x1b" not in shown
    assert "\\x1b[31mred" in shown
    page = pq.write_report(tmp_path / "run", tmp_path / "a.html").read_text()
    assert "&lt;b&gt;bold" in page
    assert "<b>bold" not in page


@pytest.mark.parametrize("rows", [-1, 3, 1 << 60, 2.5, "60000", None, True])
def test_a_number_of_rows_that_cannot_be_is_not_believed(rows: Any) -> None:
    record = made_record([1.0] * 8)
    record.data["rows"] = rows
    assert record.worst(1)[0].row is None


@pytest.mark.parametrize("names", [["a"], "ab", 3, {"a": 1}])
def test_names_that_do_not_fit_the_classes_are_not_shown(names: Any) -> None:
    record = made_record([1.0] * 8)
    record.data["class_names"] = names
    assert record.class_names is None
    assert record.worst(1)[0].label_name is None


@pytest.mark.parametrize("status", ["stopped", "pruned"])
def test_a_run_that_is_not_finished_is_not_told_of_as_if_it_were(status: str, tmp_path: Path, capsys: Captured) -> None:
    run = made_record([0.5, 0.7], length=9, status=status, path=None).save(tmp_path / "run")
    assert cli.main(["labels", str(run.path)]) == 0
    assert f"Not finished ({status}): 2 of 9 labels." in capsys.readouterr().out
    assert cli.main(["labels", str(run.path), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["status"], told["length"], told["sequence_length"]) == (status, 2, 9)
