"""Experts on the command line: who they are, what is told of them, and that others read it."""

import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import prequential as pq
from prequential import cli
from prequential.errors import PreqError
from prequential.mixers import MIXERS
from prequential.presets import PRESETS, Preset, find_preset
from prequential.presets.listed import listed, read_listed
from prequential.report.experts import MOST_DRAWN, MOST_ROWS, Mixed, Weights
from prequential.report.page import page_of
from prequential.report.seeds import cut
from prequential.settings import settings_of

from ..conftest import blobs
from .test_plots import texts_of
from .test_run import AGREED_KEYS

Captured = pytest.CaptureFixture[str]
SMALL = "--width 0.1 --streams 1 --batch-size 16 --threads 1"
FILE = """
mixer = { name = "switching", rate = "grid" }
simple_codes = true

[[expert]]
model = "mlp1"
averages = [1e-2, 0.3]

[[expert]]
model = "mlp2"
members = 2
width = 0.05
[expert.recipe]
learning_rate = 3e-3
augment = []
[expert.method]
passes = 2
"""


def preq(*arguments: str) -> int:
    return cli.main(list(arguments))


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Numbers in a file, as a user has them."""
    data = blobs(64)
    path, rows = tmp_path_factory.mktemp("table") / "blobs.npz", np.arange(64)
    np.savez(path, inputs=data.inputs(rows).numpy(), labels=data.labels(rows).numpy())
    return f"npz:{path} --array inputs --label labels --order given"


@pytest.fixture(scope="module")
def mixed(table: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs: two seeds of a mixture, and another."""
    folder = tmp_path_factory.mktemp("mixed")
    for seed in (0, 1):
        job = (
            f"run {table} mlp1 mlp2 --mixer bayes --with-simple-codes {SMALL} --seed {seed} --out {folder}/both-{seed}"
        )
        assert preq(*job.split()) == 0
    assert preq(*f"run {table} mlp1 --members 9 --mixer switching {SMALL} --out {folder}/nine".split()) == 0
    return folder


def test_who_the_experts_are_is_said_first_and_what_they_cost_last(table: str, capsys: Captured) -> None:
    assert preq(*f"run {table} mlp1 --members 2 --mixer logistic --with-simple-codes {SMALL}".split()) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "5 experts: mlp1 1 · mlp1 2 · uniform · frequencies · previous label; mixed by logistic" in lines
    begin = next(number for number, line in enumerate(lines) if line.startswith("expert "))
    names = [re.split(r"  +", line)[0] for line in lines[begin + 2 : begin + 8]]
    assert names == ["the mixture", "mlp1 1", "mlp1 2", "uniform", "frequencies", "previous label"]
    assert any(re.fullmatch(r"trusted most at the end: .* \(\d+%\); mixed by logistic", line) for line in lines)


def test_json_gains_experts_and_mixer(table: str, capsys: Captured) -> None:
    assert preq(*f"run {table} mlp1 mlp2 --mixer switching --switching-rate 0.1 {SMALL} --json".split()) == 0
    captured = capsys.readouterr()
    told = json.loads(captured.out)
    assert set(told) == AGREED_KEYS | {"experts", "mixer", "conditioned_on"}
    assert told["model"] == "mlp1 + mlp2"
    assert [each["name"] for each in told["experts"]] == ["mlp1", "mlp2"]
    assert told["mixer"] == "switching"
    assert told["codelength_nats"] < max(each["nats"] for each in told["experts"])
    assert "2 experts: mlp1 · mlp2; mixed by switching (rate 0.1)" in captured.err


def test_one_model_without_the_flags_is_no_mixture(table: str, capsys: Captured) -> None:
    assert preq(*f"run {table} mlp1 {SMALL} --json".split()) == 0
    assert set(json.loads(capsys.readouterr().out)) == AGREED_KEYS | {"conditioned_on"}, "tables look at all rows"


def test_a_file_lists_experts_and_the_record_keeps_it_whole(
    table: str, tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "experts.toml").write_text(FILE)
    job = f"{table} --experts {tmp_path}/experts.toml {SMALL}"
    assert preq("run", *job.split(), "--out", str(tmp_path / "run")) == 0
    record = pq.load(tmp_path / "run")
    one, two, three = record.model["experts"]
    assert (one["model"], one["averages"], one["width"]) == ("mlp1", [0.01, 0.3], 0.1)
    assert (two["width"], two["recipe"]["learning_rate"], two["method"]["num_streams"]) == (0.05, 3e-3, 2)
    assert two["method"]["batch_size"] == one["method"]["batch_size"] == 16  # the flags hold for all
    assert two["seed"] == one["seed"] == 0
    assert three["seed"] != 0
    assert record.model["mixer"] == {"name": "switching", "rate": "grid", "prior": None}
    assert len(record.expert_names) == 7
    assert preq("run", *job.split(), "--out", str(tmp_path / "run"), "--resume") == 0
    monkeypatch.chdir(tmp_path)  # the file is not needed again
    (tmp_path / "experts.toml").unlink()
    capsys.readouterr()
    assert preq("verify", str(tmp_path / "run")) == 0
    assert "every label identical" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("[[expert]]\nmodle = 'mlp1'", "expert 1: unknown name 'modle'; did you mean 'model'?"),
        ("[[expert]]\nwidth = 1", "expert 1: model is missing; name one"),
        ("[[experts]]\nmodel = 'mlp1'", "unknown name 'experts'; did you mean 'expert'?"),
        ("expert = 'mlp1'", "lists no experts; give each a table, [[expert]] with model = NAME"),
        ("", "lists no experts"),
        ("[[expert]", "cannot be read as TOML"),
        ("[[expert]]\nmodel = 'mlpp1'", "unknown model 'mlpp1'; did you mean 'mlp1'?"),
        ("[[expert]]\nmodel = 3", "expert 1: model must be the name of one, got 3"),
        ("[[expert]]\nmodel = 'mlp1'\nmembers = 0", "expert 1 (mlp1): members must be a whole number of at least 1"),
        ("[[expert]]\nmodel = 'mlp1'\nmembers = 2\nseed = 1", "2 members of one seed would all be the same"),
        ("[[expert]]\nmodel = 'mlp1'\nwidth = 'wide'", "width must be a number above 0, got 'wide'"),
        ("[[expert]]\nmodel = 'mlp1'\nseed = 1.5", "seed must be a whole number, got 1.5"),
        ("[[expert]]\nmodel = 'mlp1'\naverages = 0.1", "averages must be a list of step sizes, got 0.1"),
        ("[[expert]]\nmodel = 'mlp1'\naverages = [2]", "averages must be a number above 0 and at most 1, got 2"),
        ("[[expert]]\nmodel = 'mlp1'\nrecipe = 1", "recipe must be a table of settings, got 1"),
        (
            "[[expert]]\nmodel = 'mlp1'\nrecipe = { learning_rat = 1 }",
            "expert 1 (mlp1): unknown setting of the recipe 'learning_rat'; did you mean 'learning_rate'?",
        ),
        (
            "[[expert]]\nmodel = 'mlp1'\nrecipe = { learning_rate = -1 }",
            "expert 1 (mlp1): learning_rate must be a number above 0, got -1",
        ),
        (
            "[[expert]]\nmodel = 'mlp1'\nrecipe = { augment = 'flip' }",
            "augmentations must be a list such as ['flip', 'shift:2'], got 'flip'",
        ),
        (
            "[[expert]]\nmodel = 'mlp1'\nmethod = { pases = 1 }",
            "expert 1 (mlp1): unknown setting of the method mi-rs 'pases'; did you mean 'passes'?",
        ),
        ("[[expert]]\nmodel = 'mlp1'\nmethod = { name = 'mirs' }", "unknown method 'mirs'; did you mean 'mi-rs'?"),
        ("[[expert]]\nmodel = 'mlp1'\nmethod = { name = 'erm' }", "erm is not prequential: it has no code to mix"),
        (
            "[[expert]]\nmodel = 'mlp1'\npreset = 'papr'",
            "expert 1 (mlp1): unknown preset 'papr'; did you mean 'paper'?",
        ),
        ("mixer = 'baies'\n[[expert]]\nmodel = 'mlp1'", "unknown mixer 'baies'; did you mean 'bayes'?"),
        ("mixer = { rate = 1 }\n[[expert]]\nmodel = 'mlp1'", "mixer must be a name or a table with one"),
        (
            "mixer = { name = 'switching', rat = 1 }\n[[expert]]\nmodel = 'mlp1'",
            "unknown setting of the mixer switching 'rat'; did you mean 'rate'?",
        ),
        ("mixer = { name = 'switching', rate = 2 }\n[[expert]]\nmodel = 'mlp1'", "rate must be a number"),
        ("[[expert]]\nmodel = 'mlp1'\nmembers = '2'", "and at most 1024, got '2'"),
        ("[[expert]]\nmodel = 'mlp1'\nall_inputs = 0", "all_inputs must be a table of settings, or false, got 0"),
        ("[[expert]]\nmodel = 'mlp1'\naverages = [0.1, 0.1]", "expert 1 (mlp1): averages must differ from each other"),
        (
            "[[expert]]\nmodel = 'mlp1'\naverages = [0.1, 0.2]\nrecipe = { ema_step_size = 0.5 }",
            "averages are step sizes of the EMA, and so is ema_step_size; leave out one of the two",
        ),
        (
            "[[expert]]\nmodel = 'mlp1'\nseed = 1\n[[expert]]\nmodel = 'mlp2'\n[[expert]]\nmodel = 'mlp1'\nseed = 1",
            "experts 1 and 3 (mlp1) are the same, their seed 1 too",
        ),
        (
            "[[expert]]\nmodel = 'mlp1'\nmethod = { age_law = { scale = [1] } }",
            "the uniform age law has no scale, got [1]",
        ),
        (
            "[[expert]]\nmodel = 'mlp1'\nmethod = { age_law = { name = 'pareto', zz = 1 } }",
            "mi-rs: age_law takes name and scale, got {'name': 'pareto', 'zz': 1}",
        ),
        (
            "mixer = { name = 'switching', rate = { rate = [1] } }\n[[expert]]\nmodel = 'mlp1'",
            "rate must be a number at least 1e-200 and below 1, got [1]",
        ),
        (
            "mixer = { name = 'bayes', prior = [true] }\n[[expert]]\nmodel = 'mlp1'",
            "prior must be one number for each of 1 experts, got (True,)",
        ),
        ("simple_codes = 1\n[[expert]]\nmodel = 'mlp1'", "simple_codes must be True or False, got 1"),
    ],
)
def test_mistakes_in_a_file_are_told_in_one_line(
    content: str, complaint: str, table: str, tmp_path: Path, capsys: Captured
) -> None:
    (tmp_path / "e.toml").write_text(content)
    assert preq(*f"run {table} --experts {tmp_path}/e.toml".split()) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert complaint in captured.err


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ("run mnist mlp1 --experts none.toml", "none.toml cannot be read: No such file or directory"),
        ("run mnist mlp1 --mixer baies", "unknown mixer 'baies'; did you mean 'bayes'?"),
        ("run mnist mlp1 --members 0", "expert 1 (mlp1): members must be a whole number of at least 1"),
        ("run mnist mlp1 --averages many", "--averages must be step sizes with commas between, such as 1e-2,3e-3"),
        ("run mnist mlp1 --averages 0.1,0.2 --ema 0.5", "--averages are step sizes of the EMA, and so is --ema"),
        ("run mnist mlp1 --members 2 --mixing-rate -1", "mixer logistic: learning_rate must be a number above 0"),
        ("run mnist mlp1 --averages 3", "averages must be a number above 0 and at most 1, got 3"),
        ("run mnist mlp1 --averages 0.1,0.1", "averages must differ from each other"),
        ("run mnist mlp1 mlp2 --switching-rate 0.1", "--switching-rate has no meaning for logistic; it belongs to"),
        ("run mnist mlp1 mlp2 --method erm", "erm is not prequential: it has no code to mix"),
        ("run mnist mlp1 lenett", "unknown model 'lenett'; did you mean 'lenet'?"),
        ("run mnist --members 2", "a model is missing; name one or more"),
        ("plan mnist --model mlp1 --members 0", "members must be a whole number of at least 1"),
        ("plan --members 2 --mixer bays", "a model is missing"),
        (
            "sweep mnist mlp1 --members 2 --stack 2 --space mnist --out OUT",
            "a stack trains models of one kind together, and experts have learners of their own; leave it out",
        ),
    ],
)
def test_mistakes_in_flags_are_told_in_one_line(
    arguments: str, complaint: str, tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert preq(*arguments.split()) == 2
    captured = capsys.readouterr()
    assert captured.err.count("\n") == 1
    assert complaint in captured.err


def test_a_file_and_models_are_not_both_given(tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / "e.toml").write_text(FILE)
    for given, named in (("mlp1", "MODEL"), ("--members 2", "--members"), ("--averages 0.1,0.2", "--averages")):
        assert preq(*f"run mnist {given} --experts {tmp_path}/e.toml".split()) == 2
        assert f"lists the experts, and {named} was given too; leave one of them out" in capsys.readouterr().err


def test_flags_of_methods_that_no_expert_follows_are_refused(table: str, tmp_path: Path, capsys: Captured) -> None:
    own = "method = { name = 'ci-fs', epochs = 1 }"
    (tmp_path / "e.toml").write_text(f"[[expert]]\nmodel = 'mlp1'\n{own}\n[[expert]]\nmodel = 'mlp2'\n{own}")
    for given, told in (
        ("--streams 2", "--streams has no meaning for ci-fs; it belongs to mi-rs, mi-rb"),
        ("--method mi-rb", "no expert follows --method mi-rb: each has its own listed; leave it out"),
    ):
        assert preq(*f"run {table} --experts {tmp_path}/e.toml {given}".split()) == 2
        assert told in capsys.readouterr().err
    assert preq(*f"run {table} --experts {tmp_path}/e.toml --epochs 1 --batch-size 16 --lr 0.01".split()) == 0


def test_experts_whose_spans_differ_are_refused_with_what_to_do(table: str, tmp_path: Path, capsys: Captured) -> None:
    both = "[[expert]]\nmodel = 'mlp1'\n[[expert]]\nmodel = 'mlp2'\nmethod = { batch_size = 8 }"
    (tmp_path / "e.toml").write_text(both)
    assert preq(*f"run {table} --experts {tmp_path}/e.toml".split()) == 2
    assert "give their methods the same batch size and the same first block" in capsys.readouterr().err


def test_a_plan_sums_what_experts_cost(table: str, tmp_path: Path, capsys: Captured) -> None:
    def told(words: str) -> dict[str, Any]:
        assert preq(*f"plan {words} --json".split()) == 0
        found: dict[str, Any] = json.loads(capsys.readouterr().out)
        return found

    one, two = told(f"{table} mlp1 {SMALL}"), told(f"{table} mlp1 --members 2 {SMALL}")
    assert two["flops"] == 2 * one["flops"]
    assert two["digest"] == one["digest"]
    (tmp_path / "e.toml").write_text(FILE)
    joint = told(f"{table} --experts {tmp_path}/e.toml {SMALL}")
    assert joint["method"] == "joint"
    assert joint["flops"] > one["flops"]
    assert joint["trained_examples"] == 64 * (2 + 3)  # of each method once, however many follow it
    assert preq(*f"plan --experts {tmp_path}/e.toml --length 64 --batch-size 16 --streams 1 --events 4".split()) == 0
    out = capsys.readouterr().out
    assert "Experts    Calibrate 16 for those of method 1" in out
    assert "ForExperts" not in out


def test_a_preset_may_name_experts_and_a_mixer(table: str, capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    experts = listed(["mlp1", {"model": "mlp2", "members": 2}], {"name": "switching", "rate": 0.1}, True)
    preset = Preset(name="together", description="", data=("npz:*", "table:*"), listed=experts)
    monkeypatch.setattr("prequential.presets.PRESETS", (*PRESETS, preset))
    assert preq(*f"run {table} --preset together {SMALL} --json".split()) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["model"] == "mlp1 + 2 × mlp2 + simple codes"
    assert told["mixer"] == "switching"
    assert preq(*f"run {table} --preset together --mixer bayes {SMALL} --json".split()) == 0
    assert json.loads(capsys.readouterr().out)["mixer"] == "bayes"
    assert preq(*f"run {table} mlp1 --preset together".split()) == 2
    assert "the preset 'together' names the experts, and MODEL was given too" in capsys.readouterr().err
    assert preq(*f"plan {table} --preset together {SMALL}".split()) == 0


def test_the_preset_of_tables_in_time_order_names_its_experts(tmp_path: Path, capsys: Captured) -> None:
    lines = [f"{number % 7},{number % 11},{number // 9 % 2}" for number in range(144)]
    (tmp_path / "stream.csv").write_text("\n".join(["a,b,label", *lines]))
    stream = f"table:{tmp_path}/stream.csv --label label --order given --preset experts"
    assert preq(*f"plan {stream} --json".split()) == 0
    assert json.loads(capsys.readouterr().out)["method"] == "mi-rs"
    assert preq(*f"run {stream} --threads 1 --out {tmp_path}/run --json".split()) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["model"] == "mlp2 + simple codes"
    record = pq.load(tmp_path / "run")
    assert record.model["mixer"] == {"name": "logistic", "by_previous_label": True, "learning_rate": None, "floor": -20}
    best = find_preset("best", "table:stream.csv", "mlp2")
    assert record.recipe == settings_of(best.recipe)
    assert record.method == settings_of(best.method("mi-rs", {}))
    assert record.expert_nats is not None
    assert record.codelength <= record.expert_nats.sum(axis=0).min() + np.log(5)
    assert preq("presets", "experts") == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "mlp2 + simple codes, mixed by Logistic(learning_rate=None, by_previous_label=True, floor=-20.0)" in out
    assert preq("run", "mnist", "--preset", "experts") == 2
    assert "there is no preset 'experts' for mnist; it is for: csv:*, table:*" in capsys.readouterr().err


@pytest.mark.parametrize(
    "job",
    [
        "mnist lenet --members 4 --mixer logistic --width 0.2",
        "mnist lenet mlp1 --mixer switching --width 0.2",
        "mnist mlp1 --with-simple-codes --mixer bayes --width 0.1",
    ],
)
def test_what_is_encoded_is_decoded_in_another_process(job: str, tmp_path: Path, capsys: Captured) -> None:
    files = tmp_path / "labels.preq", tmp_path / "labels.npy"
    assert preq(*f"encode {job} --streams 1 --length 96 --threads 1 --json -o {files[0]}".split()) == 0
    sizes = json.loads(capsys.readouterr().out)
    command = [sys.executable, "-m", "prequential.cli", "decode", str(files[0]), "--data", "mnist", "-o", str(files[1])]
    subprocess.run(command, check=True, capture_output=True)
    labels = pq.load_data("mnist").take(96).labels(np.arange(96)).numpy()
    assert np.array_equal(np.load(files[1]), labels)
    most = sizes["codelength_bits"] * 1.001 + 2**-24 * 96 * 10 / np.log(2) + 64
    assert sizes["payload_bits"] <= most


def test_own_models_of_experts_are_given_again(table: str, tmp_path: Path, capsys: Captured) -> None:
    code = (
        "from torch import nn\ndef {0}(input_shape, num_classes):\n    return nn.Linear(input_shape[0], num_classes)\n"
    )
    (tmp_path / "own.py").write_text(code.format("one") + code.format("two"))
    one, two = f"{tmp_path}/own.py:one", f"{tmp_path}/own.py:two"
    job = f"encode {table} {one} {two} --streams 1 --threads 1 -o {tmp_path}/l.preq"
    assert preq(*job.split()) == 0
    again = f"decode {tmp_path}/l.preq --data {table.removesuffix(' --order given')} -o {tmp_path}/l.npy"
    assert preq(*again.split(), "--model", one) == 2
    assert "is not one of the package; give it again (--model" in capsys.readouterr().err
    assert preq(*again.split(), "--model", one, "--model", two) == 0
    assert np.array_equal(np.load(tmp_path / "l.npy"), blobs(64).labels(np.arange(64)).numpy())


def test_trials_of_a_sweep_are_mixed_runs(table: str, tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / "space.py").write_text(
        "import prequential as pq\nSPACE = {'learning_rate': pq.LogUniform(1e-3, 1e-2)}\n"
    )
    words = f"sweep {table} mlp1 mlp2 {SMALL} --space {tmp_path}/space.py:SPACE --trials 2 --out {tmp_path}/sweep"
    assert preq(*words.split(), "--mixer", "bayes") == 0
    records = [pq.load(path) for path in sorted((tmp_path / "sweep" / "trials").iterdir())]
    rates = [[each["recipe"]["learning_rate"] for each in record.model["experts"]] for record in records]
    assert rates == [[record.recipe["learning_rate"]] * 2 for record in records]
    capsys.readouterr()
    assert preq(*words.split(), "--mixer", "switching", "--resume") == 2
    assert "mixer.name bayes then, switching now" in capsys.readouterr().err
    assert preq(*words.split(), "--mixer", "bayes", "--resume") == 0


def test_a_sweep_draws_no_step_size_where_averages_say_them(table: str, tmp_path: Path, capsys: Captured) -> None:
    space = "{'learning_rate': pq.LogUniform(1e-3, 1e-2), 'ema_step_size': pq.LogUniform(1e-3, 1e-1)}"
    (tmp_path / "space.py").write_text(f"import prequential as pq\nSPACE = {space}\n")
    words = f"sweep {table} mlp1 --averages 0.1,0.3 {SMALL} --space {tmp_path}/space.py:SPACE --trials 1 --json"
    assert preq(*words.split(), "--out", str(tmp_path / "sweep")) == 0
    told = json.loads(capsys.readouterr().out)
    assert [[*trial["settings"]] for trial in told["best"]] == [["learning_rate"]]


def test_weights_are_drawn_with_names(mixed: Path, tmp_path: Path, capsys: Captured) -> None:
    assert preq("plot", "weights", str(mixed / "both-0"), "-o", str(tmp_path / "w.svg")) == 0
    texts = texts_of(tmp_path / "w.svg")
    assert {"mlp1", "mlp2", "uniform", "frequencies", "previous label", "weight"} <= set(texts)
    assert any("How much each expert is trusted; mixed by bayes" in text for text in texts)
    assert preq("plot", "weights", str(mixed), "-o", str(tmp_path / "all.svg")) == 0
    texts = texts_of(tmp_path / "all.svg")
    assert {"both-0", "both-1", "nine", "3 others"} <= set(texts)
    first = (tmp_path / "all.svg").read_bytes()
    pq.plot("weights", mixed, tmp_path / "all.svg")
    assert (tmp_path / "all.svg").read_bytes() == first
    with pytest.raises(PreqError, match="weights has no use for --each-seed"):
        pq.plot("weights", mixed, tmp_path / "w.svg", each_seed=True)


def test_a_run_without_experts_has_no_weights_to_draw(table: str, tmp_path: Path, capsys: Captured) -> None:
    assert preq(*f"run {table} mlp1 {SMALL} --out {tmp_path}/one".split()) == 0
    capsys.readouterr()
    assert preq("plot", "weights", str(tmp_path / "one"), "-o", str(tmp_path / "w.svg")) == 2
    assert "is a run with one model, and no experts whose weights could be drawn" in capsys.readouterr().err
    assert "Experts" not in page_of(pq.compare([pq.load(tmp_path / "one")]))


def test_the_page_shows_experts_beside_the_mixture(mixed: Path, tmp_path: Path, capsys: Captured) -> None:
    assert preq("report", str(mixed), "-o", str(tmp_path / "r.html")) == 0
    page = (tmp_path / "r.html").read_text()
    section = page.partition('<section id="experts"')[2].partition("</section>")[0]
    assert '<a href="#experts">' in page
    assert section.count('class="area"') == 5 + MOST_DRAWN
    assert "#000000" not in section  # which a dark page would not show
    assert all(name in section for name in ("previous label", "the mixture", "3 others", "Trusted most at the end"))
    record = pq.load(mixed / "both-0")
    assert record.expert_nats is not None
    assert f"{record.expert_nats[:, 0].sum():,.1f}" in section
    rows = re.findall(r"<tr>.*?</tr>", section, re.DOTALL)
    assert sum('<th scope="row">' in row for row in rows) == 2 + 5 + 9
    assert "model · experts · 1 · width" in page  # settings are listed one by one


def test_seeds_of_a_mixture_are_one_line(mixed: Path, capsys: Captured) -> None:
    assert preq("compare", str(mixed), "--json") == 0
    entries = {entry["name"]: entry for entry in json.loads(capsys.readouterr().out)["entries"]}
    assert set(entries) == {"both", "nine"}
    assert entries["both"]["num_seeds"] == 2
    assert entries["both"]["model"] == "mlp1 + mlp2 + simple codes"
    assert entries["nine"]["model"] == "9 × mlp1"
    assert preq("watch", "--once", str(mixed)) == 0
    assert "both-1" in capsys.readouterr().out


def test_notebooks_are_told_of_experts(mixed: Path) -> None:
    record = pq.load(mixed / "both-0")
    assert record.expert_nats is not None
    html, frame = record._repr_html_(), record.to_pandas()
    assert "mlp2 alone, nats" in html
    assert list(frame.columns)[-5:] == [f"nats of {name}" for name in record.expert_names]
    assert np.array_equal(frame["nats of mlp2"], record.expert_nats[:, 1])
    found = Mixed.of(record)
    assert found is not None
    assert [row.nats for row in found.rows[1:]] == pytest.approx(record.expert_nats.sum(0))
    assert found.in_charge == record.expert_names[int(record.expert_weights[-1].argmax())]  # type: ignore[index]


def test_of_many_experts_the_best_are_listed(mixed: Path) -> None:
    record = pq.load(mixed / "nine")
    found, weights = Mixed.of(record), Weights.of(record)
    assert found is not None
    others = [replace(row, name=f"{row.name} of {n}") for n in range(10) for row in found.rows[1:]]
    many = Mixed([found.rows[0], *others], found.mixer, found.in_charge)
    rows, more = many.shown()
    assert len(rows) - 1 == MOST_ROWS
    assert more == f"and {90 - MOST_ROWS} more experts"
    assert len(weights.names) == MOST_DRAWN
    assert weights.shares.sum(1) == pytest.approx(np.ones(len(weights.after)))
    part = Weights.of(cut(record, 10))
    assert part.after.tolist() == list(range(1, 11))


def test_a_tracker_hears_the_mixture(table: str, tmp_path: Path) -> None:
    heard: list[float] = []
    data = blobs(64).without_heldout()
    experts = pq.Experts(["mlp1", "mlp2"], "bayes")
    record = pq.run(experts, data, pq.ReplayStreams(num_streams=1), width=0.1, seed=0, listeners=[
        lambda progress: heard.append(progress.nats)
    ])  # fmt: skip
    assert heard[-1] == pytest.approx(record.codelength)


def test_lists_are_checked_as_files_are(tmp_path: Path) -> None:
    (tmp_path / "large.toml").write_bytes(b"#" * 1_000_001)
    with pytest.raises(PreqError, match="has more than 1,000,000 bytes"):
        read_listed(tmp_path / "large.toml")
    (tmp_path / "odd.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(PreqError, match="cannot be read as TOML"):
        read_listed(tmp_path / "odd.toml")
    assert {type(listed(["mlp1"], name).mixer).name for name in MIXERS} == set(MIXERS)  # type: ignore[union-attr]


def test_averages_that_are_nearly_alike_have_names_of_their_own(table: str, capsys: Captured) -> None:
    assert preq(*f"run {table} mlp1 --averages 0.1,0.1000000001 {SMALL} --json".split()) == 0
    told = json.loads(capsys.readouterr().out)
    assert [each["name"] for each in told["experts"]] == ["mlp1, average 0.1", "mlp1, average 0.1000000001"]


def test_going_on_with_other_experts_tells_which_and_what_differs(table: str, tmp_path: Path, capsys: Captured) -> None:
    run = f"run {table} {{}} --mixer bayes {SMALL} --out {tmp_path}/run --resume"
    assert preq(*run.format("mlp1 mlp2").replace(" --resume", "").split()) == 0
    assert preq(*run.format("mlp1 mlp1").split()) == 2
    told = capsys.readouterr().err
    assert "model.experts.2.model mlp2 then, mlp1 now" in told
    assert "model.experts.1" not in told
    assert preq(*run.format("mlp1 mlp2 mlp2").split()) == 2
    told = capsys.readouterr().err
    assert "model.experts 2 then, 3 now" in told
    assert "{" not in told, "no whole experts"


@pytest.mark.filterwarnings("ignore:the expert")
def test_where_nobody_is_left_nobody_is_trusted_most(tmp_path: Path) -> None:
    class Nothing(nn.Linear):
        def forward(self, inputs: torch.Tensor) -> torch.Tensor:
            return super().forward(inputs) * torch.nan

    record = pq.run(pq.Experts([lambda: Nothing(5, 3)], mixer="bayes"), blobs(32), pq.ReplayStreams(), seed=0)
    assert record.status == "diverged"
    found = Mixed.of(record)
    assert found is not None
    assert found.sentence() == "nobody is left; mixed by bayes"


def test_a_file_that_ends_the_program_is_told(table: str, tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / "script.py").write_text("import sys\nsys.exit(0)\n")
    assert preq(*f"run {table} {tmp_path}/script.py:net mlp1".split()) == 2
    assert "(SystemExit: 0)" in capsys.readouterr().err


def test_averages_fix_what_a_space_draws_of_the_ema(tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / "space.py").write_text("import prequential as pq\nema = {'ema_step_size': pq.LogUniform(1e-3, 1e-1)}\n")
    space = ["--space", f"{tmp_path / 'space.py'}:ema", "--out", str(tmp_path / "sweep")]
    assert preq("sweep", "mnist", "mlp1", "--averages", "0.1,0.01", *space) == 2
    assert "flags fix all that the space draws (ema_step_size); leave one of them out" in capsys.readouterr().err
