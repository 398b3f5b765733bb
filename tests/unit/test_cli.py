"""The command `preq` as a person uses it: what it prints, where, and with which exit status."""

import itertools
import json
import math
import re
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import prequential as pq
from prequential import cli
from prequential.augmentations import parse_augmentation
from prequential.catalogue import own_name
from prequential.cli.parse import JsonFlag
from prequential.cli.settings import SettingFlags
from prequential.cli.show import ProgressBar, print_result
from prequential.errors import PreqError
from prequential.methods import METHODS
from prequential.presets import PRESETS, Preset, find_preset
from prequential.runs.progress import Progress

from ..processes import GATED, PATIENCE, Gate, start_preq, wait_for
from ..records import made_record
from .test_imports import BLOCK_TORCH
from .test_run import AGREED_KEYS
from .test_sources import folder_of

FLAGS = (
    "method streams batch-size length age-law age-scale capacity replacement split-points epochs shrink perturb "
    "first-block min-steps early-labels optimizer lr eps weight-decay momentum ema no-ema-warmup no-calibration "
    "batch-statistics label-smoothing augment average-flips width preset seed order-seed plan-seed device out json "
    "order label drop columns heldout time schema array standardise size crop workers skip-broken examples "
    "data-seed data-dir"
)
Captured = pytest.CaptureFixture[str]


def preq(*arguments: str) -> int:
    try:
        return cli.main(list(arguments))
    except SystemExit as stop:
        return int(stop.code or 0)


@pytest.mark.parametrize(
    "method",
    [
        "mi-rs", "mi-rs --age-law pareto --age-scale 180 --streams 2",
        "mi-rs --first-block 4 --min-steps 4 --early-labels 64",
        "mi-rb --replacement fifo --capacity 64", "mi-rb --replacement reservoir --capacity 64",
        "ci-fs --epochs 2", "ci-cf --epochs 2 --shrink 0.5 --perturb 0.1 --split-points 32,64", "erm --epochs 1",
    ],
)  # fmt: skip
def test_every_method_ends_in_the_agreed_object(method: str, capsys: Captured) -> None:
    flags = f"run mnist mlp1 --width 0.25 --length 130 --batch-size 16 --threads 1 --json --method {method}"
    assert preq(*flags.split()) == 0
    printed = capsys.readouterr().out
    result = json.loads(printed)
    assert printed.count("\n") == 1
    assert result.keys() == AGREED_KEYS
    assert result["method"] == method.split()[0]
    assert result["heldout"].keys() == {"loss", "error_rate"}
    assert result["flops"] > 0
    assert (result["codelength_nats"] is None) == (result["method"] == "erm")
    assert result["record"] is None


def test_a_run_prints_a_table_saves_a_record_and_draws_a_picture(tmp_path: Path, capsys: Captured) -> None:
    out, picture = tmp_path / "run", tmp_path / "curve.png"
    flags = f"run mnist lenet --length 96 --streams 1 --threads 1 --out {out} --picture {picture}"
    assert preq(*flags.split()) == 0
    printed = capsys.readouterr().out
    for word in ("codelength, nats", "bits per label", "held-out error", "FLOPs", "seconds", "MI/RS"):
        assert word in printed
    assert picture.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    assert pq.load(out).data["name"] == "mnist"
    before = sorted(p.name for p in out.iterdir())
    assert preq(*flags.split()) == 2
    assert "already holds a run" in capsys.readouterr().err
    assert before == sorted(p.name for p in out.iterdir())


def test_the_users_own_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    (tmp_path / "mine.py").write_text(
        "from torch import nn\n"
        "def net(num_classes):\n    return nn.Sequential(nn.Flatten(), nn.Linear(784, num_classes))\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    assert preq(*["run", "mnist", "mine:net", "--length", "64", "--streams", "1", "--threads", "1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["model"] == "mine:net"


@pytest.mark.parametrize(
    ("command", "complaint"),
    [
        ("rum", "unknown command 'rum'; did you mean 'run'? known: run, encode, decode, verify, plan, models, data,"),
        ("run mnits lenet", "unknown data set 'mnits'; did you mean 'mnist'? known: mnist, fashion-mnist"),
        ("run mnist lennet", "unknown model 'lennet'; did you mean 'lenet'?"),
        ("run mnist lenet --method mi-sr", "unknown method 'mi-sr'; did you mean 'mi-rs'?"),
        (
            "run mnist lenet --strems 8",
            "unrecognized options: --strems, 8; did you mean --streams? see preq run --help",
        ),
        ("run mnist", "a model is missing; name one or more (see preq models), or list experts with --experts FILE"),
        ("run mnist lenet --streams many", "error parsing --streams: a whole number is needed, got 'many'; see preq"),
        ("run mnist lenet --lr fast", "error parsing --lr: a number is needed, got 'fast'"),
        ("run mnist lenet --seed x", "error parsing --seed: a whole number is needed, got 'x'"),
        ("run mnist lenet --streams 0", "num_streams must be a whole number of at least 1 and at most 1000000, got 0"),
        (
            "run mnist lenet --streams -3",
            "num_streams must be a whole number of at least 1 and at most 1000000, got -",
        ),
        ("run mnist lenet --capacity 9", "--capacity has no meaning for mi-rs; it belongs to mi-rb"),
        ("run mnist lenet --method erm --no-calibration", "--no-calibration has no meaning for erm"),
        ("run mnist lenet --method mi-rb --age-scale 9", "--age-scale has no meaning for mi-rb; it belongs to mi-rs"),
        ("run mnist lenet --age-law paretto --age-scale 9", "unknown age law 'paretto'; did you mean 'pareto'?"),
        ("run mnist lenet --age-law pareto", "the pareto age law needs a scale in examples, such as 2000"),
        ("run mnist lenet --age-scale 9", "the uniform age law has no scale, got 9"),
        (
            "run mnist lenet --preset papier",
            "unknown preset 'papier'; did you mean 'paper'? known: default, best",
        ),
        ("run mnist lenet --method ci-fs --split-points 64 32", "split points must increase strictly, got [64, 32]"),
        ("run mnist lenet --method ci-fs --split-points 64 x", "whole numbers are needed, got 'x'"),
        ("run mnist lenet --batch-size 64 --length 32", "batch_size 64 is larger than the data (32 labels)"),
        ("run mnist lenet --length 70000", "length 70000 is more than the 60000 examples of 'mnist'"),
        ("run mnist lenet --length 0", "length must be a whole number of at least 1, got 0"),
        ("run mnist lenet --device cuda:99 --length 64", "device 'cuda:99' is not there"),
        ("run mnist lenet --threads few", "--threads must be auto or a whole number, got 'few'"),
        ("run mnist lenet --picture curve.gif", "a picture is .png, .svg, .pdf, got 'curve.gif'"),
        ("run mnist lenet --augment flip flop", "unknown augmentation 'flop'; did you mean 'flip'?"),
        ("run mnist lenet --augment shift:20 --length 64", "shift:20 is more than half of a 28x28 image"),
        ("run mnist lenet --label y", "label has no meaning for mnist; it belongs to table:, csv:, npz:, hf:"),
        ("run mnist lenet --order sideways", "unknown order 'sideways'; known: shuffled, given"),
        ("run csv:/nowhere.csv mlp1", "/nowhere.csv is not there; check the path behind 'csv:'"),
        ("run mnist vggpp2", "unknown model 'vggpp2'; did you mean 'vggpp'?"),
        ("run cifar11 vggpp", "unknown data set 'cifar11'; did you mean 'cifar10'?"),
        ("run rgb-mnist mlp1 --examples 0", "examples must be a whole number of at least 2, got 0"),
        (
            "run mnist mlp1 --workers 0",
            "workers has no meaning for mnist; it belongs to imagenet, cloc, folder:, list:",
        ),
        ("presets bset", "unknown preset 'bset'; did you mean 'best'?"),
        ("data prepare mnist", "missing from preq data prepare: --to"),
        ("data prepare nothing --to /tmp/x", "unknown data set 'nothing'"),
        ("run mnist lenet --data-dir /nowhere", "the data directory /nowhere is not there"),
        ("run mnist json:nothing --length 64", "module 'json' has no 'nothing'"),
        ("run mnist lenet --width -1 --length 64", "width must be a number above 0, got -1.0"),
        ("plan --length 0", "length must be a whole number of at least 1, got 0"),
        ("plan --model lenet", "a cost needs both --model and --data; give the other too, or leave both out"),
        ("plan --model lenet --data mnits", "unknown data set 'mnits'"),
        ("plan --model lennet --data mnist --length 64", "unknown model 'lennet'"),
        ("plan mnist lenet --data cifar10", "data was given twice, mnist and --data cifar10; keep one"),
        ("plan mnist", "a cost needs both --model and --data; give the other too, or leave both out"),
        ("plan --events -1", "--events must be a whole number of at least 0, got -1"),
    ],
)
def test_mistakes_get_one_line_and_status_2(command: str, complaint: str, capsys: Captured) -> None:
    assert preq(*command.split()) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("preq: ")
    assert captured.err.count("\n") == 1
    assert complaint in captured.err


def test_a_diverging_run_has_its_own_status(tmp_path: Path, capsys: Captured) -> None:
    flags = f"run mnist mlp1 --length 640 --lr 1e30 --optimizer sgd --threads 1 --json --out {tmp_path / 'run'}"
    assert preq(*flags.split()) == 3
    captured = capsys.readouterr()
    assert json.loads(captured.out)["status"] == "diverged"
    assert "has no finite codelength; the record is in" in captured.err
    assert "try a smaller --lr (now 1e+30)" in captured.err
    assert pq.load(tmp_path / "run").status == "diverged"


def test_ctrl_c_stops_cleanly_and_keeps_what_was_measured(tmp_path: Path) -> None:
    gate = Gate(tmp_path / "gate", step=40)
    flags = ["run", "mnist", GATED, "--width", "0.1", "--threads", "1", "--out", str(tmp_path / "run")]
    process = start_preq(flags, gate.environment)
    wait_for(lambda: gate.waiting, process)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert "Traceback" not in err
    assert "stopped at label" in err
    record = pq.load(tmp_path / "run")
    assert record.status == "stopped"
    assert 0 < len(record.nats) < 60_000


def test_help_version_and_lists(capsys: Captured) -> None:
    assert preq() == 0
    told = capsys.readouterr().out
    assert "preq run mnist lenet" in told
    assert max(map(len, told.splitlines())) <= 80
    assert preq("--version") == 0
    assert capsys.readouterr().out == f"preq {pq.__version__}\n"
    assert preq("models") == 0
    listed = capsys.readouterr().out
    assert "61,706" in listed
    assert "river:forest.ARFClassifier" in " ".join(listed.split())
    assert preq("models", "rgb-mnist", "--examples", "10", "--width", "0.5") == 0
    assert "inputs of 3×28×28, 10 classes" in capsys.readouterr().out
    assert preq("data") == 0
    listed = capsys.readouterr().out
    assert "not here; downloaded when" in listed
    assert "folder:PATH" in listed
    assert preq("presets") == 0
    assert "cifar100" in capsys.readouterr().out
    assert preq("presets", "best", "--data", "cifar10") == 0
    assert "'cutout:8'" in capsys.readouterr().out
    assert preq("run", "--help") == 0
    help_text = capsys.readouterr().out
    for flag in FLAGS.split():
        assert f"--{flag} " in help_text
    assert "default: None" not in help_text


@pytest.mark.parametrize("command", cli.COMMANDS)
@pytest.mark.parametrize("width", [60, 100, 300])
def test_help_fits_the_terminal(command: str, width: int, capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    assert preq(command, "--help") == 0
    lines = capsys.readouterr().out.splitlines()
    is_box = [line.strip(" ╭─╮").startswith(("positional arguments", "options")) for line in lines]
    described = lines[lines.index("") + 1 : is_box.index(True)]
    assert len(described) > 1
    assert max(map(len, described)) <= min(width, 100)
    assert "DESCRIPTION" not in " ".join(lines)
    assert "(default: )" not in " ".join(lines)
    assert not any(line.startswith("`preq") and line.endswith("`") for line in lines)
    assert not any(one == two == "" for one, two in itertools.pairwise(described))


RUNNING = ("run", "sweep", "plan", "encode", "decode", "verify")


@pytest.mark.parametrize("command", RUNNING)
def test_help_is_in_groups_and_breaks_no_word(command: str, capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    words = {}
    for width in (80, 300):
        monkeypatch.setenv("COLUMNS", str(width))
        assert preq(command, "--help") == 0
        lines = capsys.readouterr().out.splitlines()
        assert max(map(len, lines)) <= width
        words[width] = set(" ".join(lines).split())
    assert {word for word in words[80] if not set(word) <= set("╭─╮╰╯-")} <= words[300]
    monkeypatch.setenv("COLUMNS", "80")
    preq(command, "--help")
    groups = re.findall(r"(?m)^(?:╭─)? (\w+) options ", capsys.readouterr().out)
    wanted = ["data", "model", "method", "training", "sweep", "output", "machine"]
    assert groups == [head for head in wanted if head in groups]
    if command == "run":
        assert groups == [head for head in wanted if head != "sweep"]


@pytest.mark.parametrize("length", [100, 60_000, 1_281_167])
@pytest.mark.parametrize("width", [40, 60, 80, 100, 120])
def test_the_progress_line_keeps_its_time_left(
    length: int, width: int, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    bar = ProgressBar(pq.ReplayStreams(num_streams=1, batch_size=length // 2), length, plan_seed=0)
    with bar:
        bar(Progress(position=length - 1, length=length, nats=2.3 * length, errors=length - 1, seconds=9.0,
                     trained_examples=length))  # fmt: skip
    printed = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", capsys.readouterr().err)
    lines = [line for line in printed.replace("\r", "\n").splitlines() if "left" in line]
    assert lines
    assert all(len(line) <= width for line in lines)
    assert any(f"{length - 1:,}/{length:,}" in line for line in lines)
    assert all(re.search(r"[-0-9]+:[-0-9]{2}(:[-0-9]{2})? left", line) for line in lines)
    assert width < (80 if length < 10**6 else 100) or all("errors" in line for line in lines)


def test_plan_lists_counts_and_checks(capsys: Captured) -> None:
    assert preq(*["plan", "--method", "ci-fs", "--length", "60000"]) == 0
    printed = capsys.readouterr().out
    assert "Predict    labels 0–63 uniformly" in printed
    assert "causal and complete" in printed
    assert preq(*["plan", "--length", "4096", "--streams", "8", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["trained_examples"] == 4096 * 9
    assert facts["causal"] is True
    assert preq(*["plan", "--method", "erm", "--length", "64", "--events", "0", "--heldout"]) == 0
    assert "not prequential" in capsys.readouterr().out
    for given in (["mnist", "lenet"], ["mnist", "--model", "lenet"], ["--model", "lenet", "--data", "mnist"]):
        assert preq("plan", *given, "--length", "128", "--json") == 0
        assert json.loads(capsys.readouterr().out)["flops"] > 0


@pytest.mark.parametrize(
    ("extra", "at_once"),
    [([], 16), (["--method", "ci-cf", "--epochs", "2"], 11), (["--average-flips"], 16)],
    ids=["streams", "chunks", "flips"],
)
def test_plan_tells_the_cost_of_the_run_before_it_is_made(
    extra: list[str], at_once: int, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    minutes = itertools.count()  # whatever is measured takes one
    monkeypatch.setattr("prequential.learn.estimate.time", SimpleNamespace(perf_counter=lambda: 60.0 * next(minutes)))
    flags = ["--length", "200", "--batch-size", "16", "--width", "0.2", "--json", *extra]
    assert preq("plan", "--data", "mnist", "--model", "mlp2", *flags, "--heldout") == 0
    plan = json.loads(capsys.readouterr().out)
    assert preq("run", "mnist", "mlp2", *flags, "--threads", "1") == 0
    run = json.loads(capsys.readouterr().out)
    assert plan["flops"] == run["flops"]
    evaluated = plan["predicted_examples"] + plan["recomputed_examples"] + 10_000
    assert plan["train_step_seconds"] == 60
    assert plan["seconds"] == pytest.approx(60 * (plan["trained_examples"] / plan["batch_size"] + evaluated / at_once))
    assert preq("plan", "--data", "mnist", "--model", "mlp2", *flags[: -1 - len(extra)], *extra) == 0
    assert "FLOPs, about" in capsys.readouterr().out.replace("held-out data)", "FLOPs")


@pytest.mark.parametrize(("model", "told"), [("mnistnet", True), ("smallconv", False)])
def test_what_must_be_known_of_a_published_figure_stands_below_it(
    model: str, told: bool, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    record = made_record([0.05] * 60_000, num_classes=10, method={"name": "ci-fs"})
    facts = {"device": "cpu", "threads": 1}
    print_result(replace(
        record, model=record.model | {"name": model}, data=record.data | {"name": "mnist"}, environment=facts, path=None
    ))  # fmt: skip
    out = capsys.readouterr().out
    assert ("2,800" in out) == told
    note = (
        "Blier & Ollivier 2018: by their script, training images are shifted by up to ±20 % and flipped; training stops"
    )
    assert (note in " ".join(out.split())) == told
    assert max(len(line) for line in out.splitlines()) <= 80


def test_plan_works_without_torch() -> None:
    code = f"{BLOCK_TORCH}; from prequential.cli import main; main(['plan'])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "causal and complete" in done.stdout


def test_the_paper_preset_is_the_paper() -> None:
    paper = find_preset("paper")
    method, recipe = SettingFlags().chosen(paper)
    assert method == pq.ReplayStreams(num_streams=50, batch_size=32)
    assert not recipe.ema_warmup
    assert recipe.batch_statistics == "averaged-twice"
    assert recipe.label_smoothing == 1e-3
    method, recipe = SettingFlags(method="mi-rb", given={"streams": 7, "lr": 0.5}).chosen(paper)
    assert method == pq.ReplayBuffer(num_replays=7)
    assert recipe.learning_rate == 0.5
    cifar = find_preset("paper", "cifar100", "wrn-28-10").recipe
    assert cifar.augment == ("flip", "shift:4")
    assert cifar.batch_statistics == "raw"
    assert cifar.label_smoothing == 0.01
    assert find_preset("paper", "imagenet", "resnet50").method("mi-rs", {}) == pq.ReplayStreams(
        num_streams=50, batch_size=512
    )
    cloc = find_preset("paper", "cloc", "resnet50").recipe
    assert (cloc.label_smoothing, cloc.weight_decay, cloc.eps) == (0.1, 1e-4, 1e-8)
    for recipe in (cloc, find_preset("paper", "imagenet", "resnet50").recipe):
        assert recipe.augment == ("flip", "randaugment")
    assert parse_augmentation("randaugment") == ("randaugment", (2, 9))


@pytest.mark.parametrize("preset", PRESETS, ids=lambda preset: f"{preset.name} {preset.data[0]}")
def test_every_preset_makes_a_plan_for_every_method(preset: Preset) -> None:
    assert preset.fits(preset.data[0], preset.model[0])
    for name in METHODS:
        pq.Plan(preset.method(name, {}), 2048).check()
    for name in preset.settings:
        assert any(own_name(name, kind) for kind in METHODS.values()), f"{name} is a setting of no method"


def test_presets_are_found_by_data_and_model() -> None:
    assert {preset.name for preset in PRESETS} == {"default", "best", "experts", "plain", "paper", "all-inputs"}
    assert find_preset("default", "csv:a.csv", "mlp2") != find_preset("default", "mnist", "lenet")
    assert find_preset("best", "csv:mnist.csv", "mlp2").data == ("csv:*", "table:*")
    assert find_preset("best", "cifar10", "vggpp").method("mi-rb", {}) == pq.ReplayBuffer(
        num_replays=80, batch_size=64, first_block=8, min_steps=8
    )
    with pytest.raises(PreqError, match=r"no preset 'best' for npz:a.npz with mlp1; it is for: mnist"):
        find_preset("best", "npz:a.npz", "mlp1")


@pytest.mark.parametrize("kind", ["csv", "folder", "prepared", "prepared images"])
def test_the_users_own_data_is_proved_too(kind: str, tmp_path: Path, capsys: Captured) -> None:
    flags = ["--streams", "1", "--batch-size", "8", "--threads", "1", "--width", "0.1"]
    if kind in ("folder", "prepared images"):
        spec, extra = f"folder:{folder_of(tmp_path / 'pets')}", ["--size", "16", "--workers", "0"]
    else:
        rows = "\n".join(f"{i % 7},{i % 3},{i % 2}" for i in range(64))
        (tmp_path / "t.csv").write_text(f"a,b,kind\n{rows}\n")
        spec, extra = f"csv:{tmp_path / 't.csv'}", ["--label", "kind", "--standardise", "causal"]
    if kind.startswith("prepared"):
        assert preq("data", "prepare", spec, *extra, "--to", str(tmp_path / "to")) == 0
        spec, extra = f"prepared:{tmp_path / 'to'}", []
    model = "lenet" if kind in ("folder", "prepared images") else "mlp1"
    assert preq("run", spec, model, *extra, *flags, "--out", str(tmp_path / "run")) == 0
    capsys.readouterr()
    assert preq("verify", str(tmp_path / "run"), "--json") == 0
    assert json.loads(capsys.readouterr().out)["labels_identical"] is True
    bits, labels = tmp_path / "a.preq", tmp_path / "labels.npy"
    assert preq("encode", spec, model, *extra, *flags, "-o", str(bits)) == 0
    assert preq("decode", str(bits), "--data", spec, *extra, "-o", str(labels)) == 0
    assert np.array_equal(np.load(labels), pq.load(tmp_path / "run").labels)


def test_what_is_printed_for_a_program_is_json_whatever_the_numbers_are(capsys: pytest.CaptureFixture[str]) -> None:
    JsonFlag(json=True).result(lambda: {"nats": math.inf, "each": [math.nan, 1.5]}, lambda: None)
    said = capsys.readouterr().out
    assert json.loads(said, parse_constant=lambda word: pytest.fail(f"{word} is no JSON")) == {
        "nats": None,
        "each": [None, 1.5],
    }
