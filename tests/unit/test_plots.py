"""`preq plot` and `pq.plot` as a person uses them: what is in the pictures, and what is refused."""

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest

import prequential as pq
from prequential import PreqError, Record, cli
from prequential.errors import PreqWarning
from prequential.report.picture import COLOURS, DASHES
from prequential.report.plots import KINDS
from prequential.report.plots.lines import find_reference
from prequential.report.runs import Needs, RunSet
from prequential.runs.record import PER_POSITION, PER_PREDICTION

from ..conftest import blobs
from .test_imports import BLOCK_TORCH

Captured = pytest.CaptureFixture[str]
STREAMS = pq.ReplayStreams(num_streams=2, batch_size=8)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two settings with two seeds each, and one by chunks."""
    folder = tmp_path_factory.mktemp("runs")
    for model in ("mlp1", "mlp2"):
        for seed in (0, 1):
            pq.run(model, blobs(96), STREAMS, seed=seed, width=0.05, out=folder / f"{model}-{seed}")
    pq.run("mlp1", blobs(96), pq.ChunksFromScratch(epochs=2, batch_size=8), seed=0, width=0.05, out=folder / "chunks")
    return folder


def texts_of(path: Path) -> list[str]:
    """What is written in an SVG picture: matplotlib repeats each text as a comment."""
    return [text.strip() for text in re.findall(r"<!--(.*?)-->", path.read_text(), re.DOTALL)]


def draw(kind: str, folder: Path | list[Record], to: Path, **options: object) -> list[str]:
    return texts_of(pq.plot(kind, folder, to, **options))  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "weights"])  # which only mixed runs have
def test_every_kind_in_three_formats_the_same_bytes_each_time(kind: str, runs: Path, tmp_path: Path) -> None:
    for suffix, head in [("png", b"\x89PNG"), ("svg", b"<?xml"), ("PDF", b"%PDF")]:
        content = pq.plot(kind, runs, tmp_path / f"one.{suffix}").read_bytes()
        assert content[: len(head)] == head
        assert b"Date" not in content
        if suffix == "svg" or kind == "loss":
            with mpl.rc_context({"font.family": "serif", "xtick.direction": "in"}):  # a user's own style
                assert pq.plot(kind, runs, tmp_path / f"other.{suffix}").read_bytes() == content
    assert mpl.rcParams["svg.hashsalt"] is None


def test_regret_names_each_line_with_its_difference(runs: Path, tmp_path: Path) -> None:
    texts = draw("regret", runs, tmp_path / "regret.svg")
    names = ("mlp1", "mlp2", "chunks")
    means = {name: np.mean([pq.load(path).nats.sum() for path in runs.glob(f"{name}*")]) for name in names}
    best = min(means, key=lambda name: float(means[name]))
    assert f"{best} (reference)" in texts
    for name in set(means) - {best}:
        assert any(re.fullmatch(rf"{name}  \+[\d.]+ nats", text) for text in texts)
    assert f"{best} [nats]" in texts
    assert "Lines: mean of 1 to 2 seeds; bands: ± one standard error of it." in " ".join(texts)
    assert any("blobs · 96 labels" in text for text in texts)


@pytest.mark.parametrize("kind", ["regret", "curve", "loss", "error"])
def test_lines_say_what_their_codes_are_given_where_that_differs(kind: str, runs: Path, tmp_path: Path) -> None:
    so_far, other = (pq.load(runs / name) for name in ("mlp1-0", "mlp2-0"))
    assert not any("given" in text for text in draw(kind, [so_far, other], tmp_path / "same.svg"))
    texts = draw(kind, [so_far, replace(other, conditioned_on="all inputs")], tmp_path / "differ.svg")
    for name, given in (("mlp1-0", "inputs up to the label"), ("mlp2-0", "all inputs")):
        assert any(text.startswith(f"{name} ") for text in texts)
        assert texts.count(f"given {given}") == 1


def test_the_reference_may_be_a_directory_a_name_or_a_simple_code(runs: Path, tmp_path: Path) -> None:
    groups = RunSet.find([runs], Needs(code=True, finite=True)).groups()
    groups.sort(key=lambda group: group.codelength)
    cases: list[tuple[str | Path, str]] = [
        (runs / "mlp2-1", "mlp2"), ("mlp2", "mlp2"), ("chunks", "chunks"), ("uniform", "the uniform code"),
        ("frequencies", "the code of label frequencies"), ("previous", "the code of the previous label"),
    ]  # fmt: skip
    for wanted, name in cases:
        reference = find_reference(wanted, groups)
        assert reference.name == name
        assert (reference.group is None) == ("code" in name)
    texts = draw("regret", runs, tmp_path / "regret.svg", reference="previous")
    assert "the code of the previous label [nats]" in texts
    assert not any("(reference)" in text for text in texts)
    texts = draw("regret", [pq.load(runs / "mlp1-0")], tmp_path / "a.svg", reference=runs / "mlp2-0")
    assert "mlp2-0 (reference)" in texts
    one = pq.load(runs / "mlp1-0")
    assert one.codelength is not None
    assert f"mlp1-0  −{96 * np.log(3) - one.codelength:.1f} nats" in draw("regret", [one], tmp_path / "b.svg")


def test_seeds_are_one_line_unless_each_is_wanted(runs: Path, tmp_path: Path) -> None:
    assert {"mlp1", "mlp2", "chunks"} <= {text.split("  ")[0] for text in draw("curve", runs, tmp_path / "a.svg")}
    texts = draw("curve", runs, tmp_path / "b.svg", each_seed=True)
    names = {"mlp1-0", "mlp1-1", "mlp2-0", "mlp2-1", "chunks"}
    assert names <= {text.split("  ")[0] for text in texts}
    for name in names:
        assert f"{name}  {pq.load(runs / name).codelength:,.0f} nats" in texts
    drawn = (tmp_path / "b.svg").read_text()
    assert all(colour in drawn for colour in COLOURS[:5])
    assert len(set(map(str, DASHES))) == len(DASHES) == len(set(COLOURS))
    assert len(set(re.findall(r"stroke-dasharray: [\d., ]+", drawn))) >= 4


def test_many_runs_are_a_cloud_behind_the_best(runs: Path, tmp_path: Path) -> None:
    first = pq.load(runs / "mlp1-0")
    many = [
        replace(first, path=None, nats=first.nats * (1 + i / 7) ** 2, recipe=first.recipe | {"momentum": float(i)})
        for i in range(30)
    ]
    for kind in ("regret", "loss", "error", "calibration"):
        words = "25 others" if kind == "calibration" else "25 other runs"
        assert words in draw(kind, many, tmp_path / "many.svg")
    texts = draw("regret", many, tmp_path / "regret.svg", reference=many[20])
    assert "mlp1 (21) (reference)" in texts
    assert "mlp1 (1)  −" in " ".join(texts)
    assert "of 30 end above the picture." in " ".join(draw("regret", many, tmp_path / "regret.svg"))


def test_calibration_tells_ece_and_nats_saved(runs: Path, tmp_path: Path) -> None:
    texts = draw("calibration", runs, tmp_path / "calibration.svg")
    assert sum(bool(re.fullmatch(r"ECE [\d.]+ %, [\d.]+ nats (saved|lost)", text)) for text in texts) == 3
    record = pq.load(runs / "chunks")
    for doubled, words in [(record.nats * 2, "lost"), (record.nats / 2, "saved")]:
        texts = draw("calibration", [replace(record, nats=doubled)], tmp_path / "calibration.svg")
        assert any(text.endswith(f"{abs(doubled.sum() - record.nats.sum()):.1f} nats {words}") for text in texts)


def test_replay_draws_each_plan_once_with_its_law(runs: Path, tmp_path: Path) -> None:
    texts = draw("replay", runs, tmp_path / "replay.svg")
    assert texts.count("MI/RS, 2 streams") == 2  # above its panel and in the legend
    assert texts.count("CI/FS, 2 epochs") == 2
    assert texts.count("its law") == 1
    assert "All replays are counted." in " ".join(texts)
    first = pq.load(runs / "mlp1-0")
    others = [replace(first, method=first.method | {"num_streams": n}, path=None) for n in range(3, 10)]
    with pytest.warns(PreqWarning, match="7 different plans; those of the 5 shortest codes are drawn"):
        draw("replay", others, tmp_path / "replay.svg")
    short = pq.load(runs / "chunks")
    with pytest.raises(PreqError, match="nothing to draw: over 40 labels ci-fs replays none"):
        draw("replay", [replace(short, length=40)], tmp_path / "replay.svg")


def test_a_long_run_makes_a_small_file(runs: Path, tmp_path: Path) -> None:
    first, length = pq.load(runs / "mlp1-0"), 300_000
    nats = np.tile(first.nats, length // 96 + 1)[:length]
    long = replace(first, nats=nats, uncalibrated_nats=nats.astype(np.float32), length=length, path=None)
    for kind in ("regret", "loss", "curve"):
        pq.plot(kind, [long, replace(long, nats=nats[::-1].copy(), recipe={})], tmp_path / "long.svg", window=32)
        assert (tmp_path / "long.svg").stat().st_size < 600_000


def test_positions_of_a_stream_are_linear(runs: Path, tmp_path: Path) -> None:
    record = pq.load(runs / "mlp1-0")
    assert record.seeds["order_seed"] is None
    assert "Loss: rolling mean of 8 labels" in " ".join(draw("loss", [record], tmp_path / "a.svg"))
    shuffled = replace(record, seeds=record.seeds | {"order_seed": 0})
    assert "windows that grow" in " ".join(draw("loss", [shuffled], tmp_path / "b.svg"))
    assert "windows that grow" in " ".join(draw("loss", [record], tmp_path / "c.svg", axis="log"))
    assert "rolling mean of 16 labels" in " ".join(draw("loss", [record], tmp_path / "d.svg", window=16))


def test_errors_are_told_in_percent_with_bands_and_windows(runs: Path, tmp_path: Path, capsys: Captured) -> None:
    assert cli.main(["plot", "error", str(runs), "-o", str(tmp_path / "error.svg"), "--window", "96"]) == 0
    assert capsys.readouterr().out == f"picture: {tmp_path / 'error.svg'}\n"
    texts = texts_of(tmp_path / "error.svg")
    for name in ("mlp1", "mlp2", "chunks"):
        errors = [pq.load(path).errors or 0 for path in runs.glob(f"{name}*")]
        assert f"{name}  {100 * np.mean(errors) / 96:.3g} %" in texts
    assert {"next-step error rate [%]", "uniform guess"} <= set(texts)
    assert "Errors: rolling mean of 96 labels; at the right, its last value." in " ".join(texts)
    assert "bands: ± one standard error of it." in " ".join(texts)
    record = pq.load(runs / "mlp1-0")
    right = replace(record, predicted=record.labels, path=None)
    for axis in ("log", "linear"):  # a run without an error has a picture, too
        assert any(text.endswith("  0 %") for text in draw("error", [right], tmp_path / "right.svg", axis=axis))


def cut(record: Record, length: int) -> Record:
    """The record of a run that stopped after so many labels."""
    num_predictions = int((record.temperature_positions < length).sum())
    arrays = {name: getattr(record, name)[:length] for name in PER_POSITION}
    arrays |= {name: getattr(record, name)[:num_predictions] for name in PER_PREDICTION}
    return replace(record, path=None, **arrays)


def test_runs_that_stopped_or_diverged_can_be_named(runs: Path, tmp_path: Path) -> None:
    record = pq.load(runs / "mlp1-0")
    diverged = replace(cut(record, 41), nats=np.append(record.nats[:40], np.inf), status="diverged")
    texts = draw("curve", [diverged, pq.load(runs / "mlp2-0")], tmp_path / "curve.svg", axis="log")
    assert "mlp1  diverged" in texts
    draw("loss", [diverged], tmp_path / "loss.svg")
    draw("calibration", [diverged], tmp_path / "calibration.svg")
    for kind in ("regret", "loss", "error", "curve", "calibration"):
        draw(kind, [replace(cut(record, 1), length=1)], tmp_path / "one.svg")


def test_seeds_that_diverged_together_are_drawn_without_a_note(runs: Path, tmp_path: Path, capsys: Captured) -> None:
    for seed in (0, 1):
        record = pq.load(runs / f"mlp1-{seed}")
        diverged = replace(cut(record, 41), nats=np.append(record.nats[:40], np.inf), status="diverged")
        diverged.save(tmp_path / f"lost-{seed}")
    folders = [str(tmp_path / "lost-0"), str(tmp_path / "lost-1")]
    for kind in ("regret", "loss", "error", "curve", "calibration"):
        assert cli.main(["plot", kind, *folders, "-o", str(tmp_path / "p.png")]) == 0
        assert capsys.readouterr().err == ""
    assert cli.main(["plot", "pareto", str(runs), str(tmp_path), "-o", str(tmp_path / "p.png")]) == 0
    assert capsys.readouterr().err == f"preq: note: left out 2 runs that diverged: {folders[0]}, {folders[1]}\n"
    assert cli.main(["plot", "pareto", str(runs), folders[0], "-o", str(tmp_path / "p.png")]) == 2
    assert capsys.readouterr().err == f"preq: {folders[0]} is a run that diverged; leave it out\n"


def test_runs_that_cost_nothing_are_in_the_picture_of_the_front(runs: Path, tmp_path: Path) -> None:
    for number in (0, 1):
        free = replace(pq.load(runs / "chunks"), flops={"code": 0.0, "heldout": 1.0}, recipe={"number": number})
        replace(free, path=None).save(tmp_path / f"free{number}")
    assert {"free0", "free1"} <= set(draw("pareto", tmp_path, tmp_path / "p.svg"))  # a warning would be an error


def test_bands_say_that_the_reference_is_taken_as_given(runs: Path, tmp_path: Path) -> None:
    said = "They take the mean of the reference as given"
    assert said in " ".join(draw("regret", runs, tmp_path / "a.svg", reference="mlp1"))
    assert said not in " ".join(draw("regret", runs, tmp_path / "b.svg", reference="uniform"))


def test_a_folder_leaves_out_what_cannot_be_drawn(runs: Path, tmp_path: Path, capsys: Captured) -> None:
    good = pq.load(runs / "mlp1-0")
    good.save(tmp_path / "good")
    replace(cut(good, 6), status="diverged", nats=np.append(good.nats[:5], np.inf)).save(tmp_path / "diverged")
    replace(cut(good, 9), status="running").save(tmp_path / "running")
    pq.run("mlp1", blobs(96), pq.FullDataset(epochs=1), seed=0, width=0.05, out=tmp_path / "erm")
    good.save(tmp_path / "torn")
    (tmp_path / "torn" / "nats.npy").write_bytes(b"")
    assert cli.main(["plot", "curve", str(tmp_path), "-o", str(tmp_path / "curve.png")]) == 0
    said = capsys.readouterr()
    assert said.out == f"picture: {tmp_path / 'curve.png'}\n"
    for note in (
        f"preq: note: left out 1 run that diverged: {tmp_path / 'diverged'}\n",
        f"preq: note: left out 1 run not finished (died): {tmp_path / 'running'}\n",
        f"preq: note: left out 1 run without a codelength: {tmp_path / 'erm'}\n",
        f"preq: note: left out 1 run that cannot be read ({tmp_path / 'torn' / 'nats.npy'} is ",
    ):
        assert note in said.err
    assert cli.main(["plot", "regret", str(tmp_path / "good"), str(tmp_path / "running"), "-o", "x.png"]) == 2
    assert "running at 9; compare finished runs" in capsys.readouterr().err


def test_a_method_that_nobody_knows_is_in_every_table_and_picture(runs: Path, tmp_path: Path, capsys: Captured) -> None:
    own = replace(pq.load(runs / "mlp1-0"), method={"name": "mine", "depth": 3}, path=None)
    titled = replace(own, method={"name": "file.py:Mine"}, method_title="M/1", seeds=own.seeds | {"seed": 7})
    for name, record in (("own", own), ("titled", titled), ("theirs", replace(pq.load(runs / "mlp2-0"), path=None))):
        record.save(tmp_path / name)
    for kind in set(KINDS) - {"replay", "weights"}:
        texts = draw(kind, tmp_path, tmp_path / f"{kind}.svg")
        assert {"mine", "M/1"} <= set(re.split(r" · |, ", " · ".join(texts)))
    drawn = (tmp_path / "pareto.svg").read_text()
    assert all(colour in drawn for colour in ("#0072b2", "#56b4e9", "#000000"))
    with pytest.warns(PreqWarning, match="left out own, titled: the method 'mine' is not one of the package"):
        assert "MI/RS, 2 streams" in draw("replay", tmp_path, tmp_path / "replay.svg")
    with pytest.raises(PreqError, match="the method 'mine' is not one of the package"):
        draw("replay", [own], tmp_path / "replay.svg")
    for command in (["compare"], ["pareto"], ["watch", "--once"]):
        assert cli.main([*command, str(tmp_path)]) == 0
        assert "theirs" in capsys.readouterr().out


def test_a_prefix_is_what_all_have_coded(runs: Path, tmp_path: Path, capsys: Captured) -> None:
    for name in ("mlp1-0", "mlp2-0"):
        replace(pq.load(runs / name), path=None).save(tmp_path / name)
    whole, part = pq.load(runs / "mlp1-0"), cut(pq.load(runs / "mlp2-1"), 40)
    replace(part, status="running").save(tmp_path / "part")
    for kind in ("regret", "loss", "error", "curve", "calibration"):
        picture = tmp_path / f"{kind}.svg"
        assert cli.main(["plot", kind, str(tmp_path), "--prefix", "--each-seed", "-o", str(picture)]) == 0
        assert capsys.readouterr().err == ""
        texts = texts_of(picture)
        assert "Only the first 40 of 96 labels." in " ".join(texts)
        if kind == "curve":
            assert f"mlp1-0  {whole.nats[:40].sum():,.0f} nats" in texts
            assert f"part  {part.nats.sum():,.0f} nats" in texts
    assert cli.main(["plot", "curve", str(tmp_path), "-o", str(tmp_path / "curve.svg")]) == 0
    assert capsys.readouterr().err == f"preq: note: left out 1 run not finished (died): {tmp_path / 'part'}\n"
    assert cli.main(["plot", "replay", str(tmp_path), "--prefix", "-o", str(tmp_path / "r.svg")]) == 2
    assert "replay has no use for --prefix; leave it out" in capsys.readouterr().err


MISTAKES = [
    ("", "preq plot needs a kind of picture: regret, loss, error, curve, calibration, weights, replay, pareto; see"),
    ("regrett RUN -o r.png", "unknown kind of picture 'regrett'; did you mean 'regret'? known: regret, loss, error"),
    ("regret -o r.png", "preq plot needs at least one run; name its directory, see preq plot --help"),
    ("regret RUN", "preq plot needs a file for the picture; add -o regret.png (or .svg, .pdf)"),
    ("regret RUN -o r.gif", "a picture is .png, .svg, .pdf, got 'r.gif'; end the name in one of them"),
    ("regret RUN -o /proc/r.png", "cannot write /proc/r.png: "),
    ("regret RUN -o RUN/nats.npy/r.png", "the picture "),
    ("regret /nowhere -o r.png", "/nowhere is no directory; name one that preq run or preq sweep wrote with --out"),
    ("regret RUN ERM -o r.png", "ERM is a run without a codelength; leave it out"),
    ("calibration ERM -o r.png", "ERM is a run without a codelength; leave it out"),
    ("loss RUN OTHER -o r.png", "OTHER and RUN differ in their labels"),
    ("regret RUN OTHER -o r.png", "OTHER and RUN differ in their labels"),
    ("regret RUN EMPTY -o r.png", "EMPTY is a run with no label to show yet (a run keeps what it coded at "),
    ("regret RUN --reference unform -o r.png", "unknown reference 'unform'; did you mean 'uniform'? known: run, "),
    ("loss RUN --axis lin -o r.png", "unknown axis 'lin'; did you mean 'linear'? known: log, linear"),
    ("loss RUN --window 0 -o r.png", "window must be a whole number of at least 1, got 0"),
    ("loss RUN --reference RUN -o r.png", "loss has no use for --reference; leave it out"),
    ("replay RUN --axis log -o r.png", "replay has no use for --axis; leave it out"),
    ("loss RUN --smooth 3 -o r.png", "unrecognized options: --smooth"),
    ("pareto FOREIGN -o r.png", "FOREIGN holds no run; name a directory that preq run or preq sweep wrote with --out"),
]  # fmt: skip


@pytest.fixture(scope="module")
def places(runs: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("places")
    found = {name: str(folder / name.lower()) for name in ("RUN", "ERM", "OTHER", "EMPTY", "FOREIGN")}
    run = pq.load(runs / "mlp1-0")
    run.save(found["RUN"])
    pq.run("mlp1", blobs(96), pq.FullDataset(epochs=1), seed=0, width=0.05, out=found["ERM"])
    pq.run("mlp1", blobs(96, seed=1), STREAMS, seed=0, width=0.05, out=found["OTHER"])
    replace(cut(run, 0), status="running").save(found["EMPTY"])
    (folder / "foreign").mkdir()
    (folder / "foreign" / "notes.txt").write_text("no run")
    return found


@pytest.fixture
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(("arguments", "complaint"), MISTAKES, ids=[arguments for arguments, _ in MISTAKES])
def test_mistakes_get_one_line_and_status_2(
    arguments: str, complaint: str, places: dict[str, str], empty: Path, capsys: Captured
) -> None:
    def put(text: str) -> str:
        return re.sub("|".join(places), lambda found: places[found.group()], text)

    assert cli.main(["plot", *map(put, arguments.split())]) == 2
    said = capsys.readouterr()
    said_pairs = {said.err, re.sub(r"(\S+) and (\S+) differ", r"\2 and \1 differ", said.err)}
    expected = put(complaint) if not complaint.startswith(("unknown", "preq")) else complaint
    assert any(text.startswith(f"preq: {expected}") for text in said_pairs)
    assert said.err.count("\n") == 1
    assert said.out == ""
    assert not list(empty.iterdir())


def test_records_need_a_place_for_pareto_and_references_are_among_the_records(runs: Path, tmp_path: Path) -> None:
    record = replace(pq.load(runs / "mlp1-0"), path=None)
    with pytest.raises(PreqError, match="got a record that was not saved; save it first"):
        pq.plot("pareto", record, tmp_path / "front.png")
    with pytest.raises(PreqError, match="there is no run to show: none was named"):
        pq.plot("curve", [], tmp_path / "curve.png")


def test_none_of_it_needs_torch(runs: Path, tmp_path: Path) -> None:
    kinds = ["regret", "calibration", "replay", "pareto"]
    code = (
        f"{BLOCK_TORCH}\nimport prequential as pq\nfrom prequential.cli import main\n"
        f"for kind in {kinds!r}:\n"
        f"    assert main(['plot', kind, {str(runs)!r}, '-o', {str(tmp_path)!r} + f'/{{kind}}.svg']) == 0\n"
        f"pq.plot('curve', pq.load({str(runs / 'chunks')!r}), {str(tmp_path / 'one.pdf')!r})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert done.stdout.count("picture: ") == len(kinds)
