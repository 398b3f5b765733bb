"""Fronts, the runs they are made of, and `preq pareto` as a person uses it."""

import csv
import json
import math
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import prequential as pq
from prequential import PreqError, Record, cli
from prequential.methods import Method
from prequential.report.names import main_settings
from prequential.report.plots.front import Front, _steps, place, plot_pareto
from prequential.report.runs import RunSet, find_runs
from prequential.runs.record import PER_POSITION, PER_PREDICTION

from ..conftest import blobs
from ..records import made_record
from .test_imports import BLOCK_TORCH

Captured = pytest.CaptureFixture[str]
NUMBERS = st.integers(0, 6).map(float) | st.just(math.inf)
METHODS: list[Method] = [
    pq.ReplayStreams(num_streams=1, batch_size=8),
    pq.ReplayStreams(num_streams=6, batch_size=8),
    pq.ReplayBuffer(num_replays=2, batch_size=8),
    pq.ChunksFromScratch(epochs=2, batch_size=8),
    pq.FullDataset(epochs=2, batch_size=8),
]


@given(st.lists(st.tuples(NUMBERS, NUMBERS), max_size=12))
def test_the_front_is_what_no_other_point_beats(points: list[tuple[float, float]]) -> None:
    front = pq.pareto_front([cost for cost, _ in points], [value for _, value in points])
    expected = {
        i
        for i, (cost, value) in enumerate(points)
        if math.isfinite(cost + value)
        and not any(c <= cost and v <= value and (c, v) != (cost, value) for c, v in points)
    }
    assert set(front.tolist()) == expected
    keys = [(points[i][0], i) for i in front]
    assert keys == sorted(keys)


def test_a_front_needs_numbers_in_pairs() -> None:
    with pytest.raises(PreqError, match=r"one cost and one value for each point, got the shapes \(2,\) and \(1,\)"):
        pq.pareto_front([1, 2], [3])
    with pytest.raises(PreqError, match=r"point 1 is no number \(cost 2.0, value nan\); leave it out"):
        pq.pareto_front([1, 2], [3, math.nan])


@pytest.fixture(scope="module")
def sweep(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sweep of five runs and a run beside it."""
    folder = tmp_path_factory.mktemp("sweeps")
    for number, method in enumerate(METHODS):
        pq.run("mlp1", blobs(96), method, seed=0, width=0.05, out=folder / "a" / "trials" / f"{number:04d}")
    pq.run("mlp1", blobs(96), METHODS[0], seed=1, width=0.1, out=folder / "b")
    (folder / "a" / "study.db").touch()
    (folder / "a" / "trials" / ".hidden").mkdir()
    (folder / "a" / "round").symlink_to(folder)
    return folder


def test_runs_are_found_at_any_depth_and_once(sweep: Path) -> None:
    trials = [sweep / "a" / "trials" / f"{number:04d}" for number in range(5)]
    assert find_runs([sweep]) == [*trials, sweep / "b"]
    assert find_runs([sweep / "a"]) == trials
    assert find_runs([sweep / "b", sweep / "a" / ".." / "b"]) == [sweep / "b"]
    assert find_runs([trials[3], sweep]) == [trials[3], *trials[:3], trials[4], sweep / "b"]
    (sweep / "empty").mkdir()
    with pytest.raises(PreqError, match="empty holds no run; name a directory that preq run or preq sweep wrote"):
        find_runs([sweep, sweep / "empty"])
    with pytest.raises(PreqError, match=r"study\.db is no directory"):
        find_runs([sweep / "a" / "study.db"])


def test_points_are_the_runs(sweep: Path) -> None:
    gathered = Front.find([sweep], heldout=True)
    assert gathered.runs.left_out == {}
    for run in gathered.runs.runs:
        record = pq.load(run.source)  # type: ignore[arg-type]
        assert record.flops is not None
        assert record.heldout is not None
        (alone,) = (group for group in gathered.groups if run in group.members)
        assert place(alone, heldout=False) == (record.flops["code"], record.codelength)
        assert place(alone, heldout=True) == (sum(record.flops.values()), record.heldout["error_rate"])
    titles = [record.title for record in gathered.runs.records]
    assert titles == ["MI/RS", "MI/RS", "MI/RB", "CI/FS", "ERM", "MI/RS"]
    assert "erm" not in [group.first.method["name"] for group in gathered.best(heldout=False)]
    cheapest = min(gathered.groups[:4], key=lambda group: place(group, heldout=False)[0])
    assert gathered.best(heldout=False)[0] == cheapest
    assert main_settings(gathered.runs.records[0])["streams"] == "1"
    assert main_settings(gathered.runs.records[5])["width"] == "0.1"


def test_a_study_counts_once_where_all_flops_are_told(tmp_path: Path) -> None:
    flops = {"code": 7.0, "heldout": 2.0, "study": 3.0}
    record = made_record([1.0], flops=flops, heldout={"loss": 0.1, "error_rate": 0.1}).save(tmp_path / "a")
    (row,) = Front.find([record.path or ""], heldout=True).values()
    assert (row["flops"], row["heldout_flops"]) == (7.0, 9.0)


def changed(record: Record, to: Path, **facts: object) -> None:
    if "nats" in facts:  # all arrays are as long
        cut = {name: getattr(record, name)[: len(facts["nats"])] for name in PER_POSITION}  # type: ignore[arg-type]
        facts = cut | {name: getattr(record, name)[:1] for name in PER_PREDICTION} | facts
    replace(record, **facts).save(to)  # type: ignore[arg-type]


def test_what_cannot_be_shown_is_left_out_and_named(sweep: Path, tmp_path: Path, capsys: Captured) -> None:
    good = pq.load(sweep / "b")
    good.save(tmp_path / "good")
    good.save(tmp_path / "same")
    changed(good, tmp_path / "running", status="running", flops=None)
    for name in "abcd":
        changed(good, tmp_path / f"diverged-{name}", status="diverged", nats=np.append(good.nats[:5], np.inf))
    changed(good, tmp_path / "free", flops=None)
    shuffled = pq.run("mlp1", blobs(96).shuffled(3), METHODS[0], seed=0, width=0.05, out=tmp_path / "shuffled")
    assert shuffled.seeds["order_seed"] == 3
    pq.run("mlp1", blobs(96), METHODS[4], seed=0, width=0.05, out=tmp_path / "erm")
    good.save(tmp_path / "torn")
    (tmp_path / "torn" / "nats.npy").write_bytes(b"")
    assert cli.main(["pareto", str(tmp_path), "--json"]) == 0
    said = capsys.readouterr()
    told = json.loads(said.out)
    assert [Path(row["directory"]).name for row in told["runs"]] == ["good", "same"]
    assert all(row["on_front"] for row in told["runs"])  # equal points stay together
    assert said.err.count("preq: note: left out ") == 6
    for note in (
        f"left out 1 run not finished (died): {tmp_path / 'running'}\n",
        f"left out 4 runs that diverged: {tmp_path / 'diverged-a'}, ",
        "diverged-c and 1 more\n",
        f"left out 1 run without FLOPs: {tmp_path / 'free'}\n",
        f"left out 1 run in another order than most (order seed None): {tmp_path / 'shuffled'}\n",
        f"left out 1 run without a codelength (--heldout shows them): {tmp_path / 'erm'}\n",
        f"left out 1 run that cannot be read ({tmp_path / 'torn' / 'nats.npy'} is damaged",
    ):
        assert note in said.err
    assert sum(map(len, told["left_out"].values())) == 9
    assert cli.main(["pareto", str(tmp_path / "free")]) == 2
    assert capsys.readouterr().err == f"preq: {tmp_path / 'free'} is a run without FLOPs; leave it out\n"
    (tmp_path / "only").mkdir()
    (tmp_path / "free").rename(tmp_path / "only" / "free")
    assert cli.main(["pareto", str(tmp_path / "only")]) == 2
    assert capsys.readouterr().err == "preq: there is no run to show: 1 without FLOPs\n"


def test_different_data_is_refused_by_name(sweep: Path, tmp_path: Path, capsys: Captured) -> None:
    pq.run("mlp1", blobs(96, seed=1), METHODS[0], seed=0, width=0.05, out=tmp_path / "other")
    pq.run("mlp1", blobs(96).take(64), METHODS[0], seed=0, width=0.05, out=tmp_path / "short")
    for name, what in [("other", "labels"), ("short", "length (64 and 96)")]:
        assert cli.main(["pareto", str(sweep), str(tmp_path / name)]) == 2
        said = capsys.readouterr()
        assert said.out == ""
        first = sweep / "a" / "trials" / "0000"
        assert said.err.startswith(f"preq: {tmp_path / name} and {first} differ in their {what}")
        assert said.err.count("\n") == 1
    held = blobs(96)
    inputs, labels = held.inputs(np.arange(24)).numpy(), held.labels(np.arange(24)).numpy()
    whole = held.inputs(np.arange(96)).numpy(), held.labels(np.arange(96)).numpy()
    data = pq.from_arrays(*whole, num_classes=3, heldout=(inputs + 0.5, labels), name="blobs")
    pq.run("mlp1", data, METHODS[0], seed=0, width=0.05, out=tmp_path / "held")
    assert len(Front.find([sweep / "b", tmp_path / "held"]).runs.runs) == 2
    with pytest.raises(PreqError, match="held were evaluated on different held-out data"):
        Front.find([sweep / "b", tmp_path / "held"], heldout=True)


def test_the_table_the_picture_and_the_csv(
    sweep: Path, tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    picture, table = tmp_path / "new" / "pareto.svg", tmp_path / "pareto.csv"
    assert cli.main(["pareto", str(sweep / "a"), "--heldout", "-o", str(picture), "--csv", str(table)]) == 0
    said = capsys.readouterr()
    assert said.err == ""
    for words in (
        "blobs · 96 labels · codelength against FLOPs: ", "of 4 runs", "held-out error against FLOPs: ", "of 5 runs",
        "choosing one of 4 runs afterwards costs ln 4 = 1.39 nats more", "in all runs: batch 8, lr 0.003",
        f"csv: {table}\n", f"picture: {picture}\n",
    ):  # fmt: skip
        assert words in said.out
    front = Front.find([sweep / "a"]).best()
    for group in front:
        (flops, nats), (_, error) = place(group, heldout=False), place(group, heldout=True)
        line = next(line for line in said.out.splitlines() if f"{nats:,.1f}" in line)
        told = [f"{flops:.3g}", f"{nats:,.1f}", f"{error:.2%}", group.first.title, "mlp1"]
        assert line.split()[:6] == [group.name, *told]
        main = main_settings(group.first).items()
        replays = [value for name, value in main if name in ("streams", "replays", "epochs")]
        assert [value for value in line.split()[6:] if value != "–"] == replays
    with table.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 5
    assert {row["directory"] for row in rows if row["on_front"] == "true"} == {str(group.first.path) for group in front}
    erm = next(row for row in rows if row["method"] == "erm")
    assert (erm["codelength_nats"], erm["on_front"], erm["epochs"], erm["num_streams"]) == ("", "false", "2", "")
    drawn = picture.read_text()
    assert drawn.count("<clipPath") >= 2  # two panels
    for colour in ("#0072b2", "#d55e00", "#009e73", "#e69f00"):
        assert colour in drawn


def test_seeds_of_a_setting_are_one_dot(tmp_path: Path, capsys: Captured) -> None:
    for seed, nats in enumerate([1.0, 3.0]):
        made_record([nats], seed=seed, name="x", recipe={"learning_rate": 0.1}).save(tmp_path / f"one-{seed}")
    made_record([1.5], name="x", recipe={"learning_rate": 0.2}).save(tmp_path / "other")
    merged, apart = Front.find([tmp_path]), Front.find([tmp_path], each_seed=True)
    assert [(group.name, place(group, heldout=False)[1]) for group in merged.groups] == [("one", 2.0), ("other", 1.5)]
    assert [group.name for group in merged.best()] == ["other"]
    assert [group.name for group in apart.best()] == ["one-0"]
    assert [(row["setting"], row["num_seeds"], row["on_front"]) for row in merged.values()] == [
        *[("one", 2, False)] * 2,
        ("other", 1, True),
    ]
    assert cli.main(["pareto", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert "1 of 2 settings (3 runs)" in said
    assert "choosing one of 2 settings afterwards" in said


@pytest.mark.parametrize("suffix", ["png", "pdf"])
def test_a_picture_of_one_method_without_held_out_data(sweep: Path, tmp_path: Path, suffix: str) -> None:
    path = plot_pareto(Front.find([sweep / "b"]), tmp_path / f"one.{suffix}")
    assert path.read_bytes()[:4] in (b"\x89PNG", b"%PDF")
    with pytest.raises(PreqError, match="nothing to draw"):
        plot_pareto(Front.find([sweep / "a" / "trials" / "0004"], heldout=True), path, heldout=False)


@given(st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), min_size=1, max_size=8))
def test_the_line_is_the_best_for_at_most_so_many_flops(places: list[tuple[int, int]]) -> None:
    made = [
        made_record([float(nats)], name=f"run-{n}", heldout=None, flops={"code": float(cost), "heldout": float(cost)})
        for n, (cost, nats) in enumerate(places)
    ]
    front = Front(RunSet.of(made))
    flops, values = _steps(front.groups, False).tolist()
    assert flops == sorted(flops)
    assert (flops[0], flops[-1]) == (min(places)[0], max(places)[0])
    for budget in {cost for cost, _ in places}:
        reached = [value for cost, value in zip(flops, values, strict=True) if cost <= budget][-1]
        assert reached == min(nats for cost, nats in places if cost <= budget)
    assert values[-1] == values[-2]  # straight on to the dearest
    assert set(zip(flops[:-1], values[:-1], strict=True)) <= set(places)
    assert front.best(heldout=True) == []


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ("", "preq pareto needs at least one run; name its directory, see preq pareto --help"),
        ("/nowhere/at/all", "/nowhere/at/all is no directory; name one that preq run or preq sweep wrote with --out"),
        ("/nowhere/at/all -o front.gif", "a picture is .png, .svg, .pdf, got 'front.gif'; end the name in one of them"),
        ("SWEEP --csv /proc/front.csv", "cannot write /proc/front.csv: "),
        ("SWEEP --hold-out", "unrecognized options: --hold-out"),
        ("BARE --heldout", "--heldout: none of these runs was evaluated on held-out data; leave the flag out"),
    ],
)
def test_mistakes_get_one_line_and_status_2(
    arguments: str, complaint: str, sweep: Path, tmp_path: Path, capsys: Captured
) -> None:
    data = blobs(96).without_heldout()
    if "BARE" in arguments:
        pq.run("mlp1", data, METHODS[0], seed=0, width=0.05, out=tmp_path / "bare")
    places = {"SWEEP": str(sweep / "b"), "BARE": str(tmp_path / "bare")}
    assert cli.main(["pareto", *(places.get(word, word) for word in arguments.split())]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"preq: {complaint}")
    assert said.count("\n") == 1


def test_none_of_it_needs_torch(sweep: Path, tmp_path: Path) -> None:
    code = (
        f"{BLOCK_TORCH}\nimport prequential as pq\nfrom prequential.cli import main\n"
        f"from prequential.measure import bootstrap_best\n"
        f"runs = [pq.load({str(sweep / 'a' / 'trials')!r} + f'/000{{i}}') for i in range(4)]\n"
        "assert pq.mixture(runs, switching='1/t').codelength > 0\n"
        "bootstrap_best([run.codelength for run in runs])\n"
        f"raise SystemExit(main(['pareto', {str(sweep)!r}, '-o', {str(tmp_path / 'front.pdf')!r}]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "picture: " in done.stdout
