"""A method of the user's own, from a file: everything that works for the package's works for it."""

import json
import os
import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import prequential as pq
from prequential import cli
from prequential.errors import PreqError
from prequential.methods.rebuild import find_method, method_from_settings
from prequential.testing import check_method
from prequential.users_own import find_own

from ..processes import GATED, PATIENCE, Gate, start_preq, wait_for

MINE = '''
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar
import numpy as np
import prequential as pq

@dataclass(frozen=True, kw_only=True)
class Again(pq.MethodDefaults):
    """Train on each block, and on the block before it, a few times."""
    name: ClassVar[str] = "again"
    title: ClassVar[str] = "Once Again"

    block: int = pq.setting(16, at_least=2, short="block")
    """Labels predicted together."""
    times: int = pq.setting(1, at_least=1, flag="repeats", role="passes")
    """How often a block is gone through."""

    def events(self, length: int, seed: int) -> Iterator[pq.Event]:
        for start in range(0, length, self.block):
            stop = min(start + self.block, length)
            yield pq.Predict(start, stop)
            for _ in range(self.times):
                yield pq.Train(np.arange(max(0, start - self.block), stop))

SPACE = {"block": pq.Choice((8, 16)), "times": 2, "eps": pq.LogUniform(1e-4, 1e-2)}
not_a_class = 3

@dataclass(frozen=True)
class Thief(Again):
    name: ClassVar[str] = "mi-rs"

@dataclass(frozen=True, kw_only=True)
class Clash(Again):
    name: ClassVar[str] = "clash"
    lr: float = 1.0
'''
Captured = pytest.CaptureFixture[str]
RUN = ["mnist", "mlp1", "--width", "0.1", "--length", "128", "--threads", "1"]


def preq(*arguments: str) -> int:
    try:
        return cli.main(list(arguments))
    except SystemExit as stop:
        return int(stop.code or 0)


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "mine.py").write_text(MINE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    return "mine.py:Again"


def test_it_obeys_the_laws_and_can_be_sent(mine: str) -> None:
    kind: Callable[..., Any] = find_method(mine)
    check_method(kind(block=8, times=2))
    assert pickle.loads(pickle.dumps(kind(block=8))) == kind(block=8)
    with pytest.raises(PreqError, match="block must be a whole number of at least 2, got 1"):
        kind(block=1)


def test_its_settings_are_flags_with_help_and_defaults(mine: str, capsys: Captured) -> None:
    assert preq("run", "--method", mine, "--help") == 0
    text = " ".join(capsys.readouterr().out.replace("│", " ").split())
    assert "--block N again: labels predicted together. (default: 16)" in text
    assert "--repeats N again: how often a block is gone through. (default: 1)" in text
    assert preq("plan", "--help") == 0
    assert "--repeats" not in capsys.readouterr().out
    assert preq("plan", "--method", mine, "--length", "64", "--block", "32", "--repeats", "3", "--json") == 0
    assert json.loads(capsys.readouterr().out)["trains"] == 6


@pytest.mark.parametrize(
    ("flags", "complaint"),
    [
        ("--method mine.py:Again --block 1", "block must be a whole number of at least 2, got 1"),
        ("--method mine.py:Again --block x", "error parsing --block: a whole number is needed, got 'x'"),
        ("--method mine.py:Again --streams 3", "--streams has no meaning for again; it belongs to mi-rs, mi-rb"),
        ("--block 3", "unrecognized options: --block, 3"),
        ("--method mine.py:Nothing", "file 'mine.py' has no 'Nothing'"),
        ("--method nowhere.py:Again", "cannot import 'nowhere.py' for the method 'nowhere.py:Again' (FileNotFoundE"),
        ("--method mine.py:not_a_class", "'mine.py:not_a_class' is no class of settings"),
        ("--method mine.py:Thief", "is called mi-rs, as one of the package is; give it another name"),
        ("--method mine.py:Clash", "the flag --lr of the method 'mine.py:Clash' has a meaning already"),
        ("--method dataclasses:Field", "'dataclasses:Field' is no class of settings"),
    ],
)
def test_mistakes_are_told_in_one_line(flags: str, complaint: str, mine: str, capsys: Captured) -> None:
    assert preq("run", *RUN, *flags.split()) == 2
    error = capsys.readouterr().err
    assert complaint in error
    assert error.count("\n") == 1


def test_it_runs_and_shows_under_its_title_and_the_runs_name(mine: str, capsys: Captured) -> None:
    assert preq("run", *RUN, "--method", mine, "--repeats", "2", "--out", "runs/one", "--name", "my first") == 0
    assert "Once Again" in capsys.readouterr().out
    record = pq.load("runs/one")
    assert record.method == {"name": "again", "block": 16, "times": 2}
    assert (record.title, record.name) == ("Once Again", "my first")
    assert preq("run", *RUN, "--streams", "1", "--out", "runs/two") == 0
    capsys.readouterr()
    assert preq("compare", "runs") == 0
    assert "my first" in capsys.readouterr().out
    assert preq("watch", "runs", "--once") == 0
    assert "my first" in capsys.readouterr().out
    assert preq("pareto", "runs") == 0
    assert "Once Again" in capsys.readouterr().out
    assert preq("plot", "regret", "runs", "-o", "regret.svg") == 0
    assert "my first" in Path("regret.svg").read_text()
    assert preq("report", "runs", "-o", "report.html") == 0
    page = Path("report.html").read_text()
    assert "my first" in page
    assert "Once Again" in page


def test_it_is_swept_over_its_settings(mine: str, capsys: Captured) -> None:
    flags = ["--method", mine, "--space", "mine.py:SPACE", "--trials", "3", "--out", "sweep", "--jobs", "2"]
    assert preq("sweep", *RUN, *flags, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["finished"] == 3
    records = [pq.load(path) for path in sorted(Path("sweep/trials").iterdir())]
    assert {record.method["block"] for record in records} <= {8, 16}
    assert {record.method["times"] for record in records} == {2}
    assert preq("sweep", *RUN, *flags[:-3], "other", "--repeats", "1", "--json") == 0
    capsys.readouterr()
    assert {pq.load(path).method["times"] for path in Path("other/trials").iterdir()} == {1}
    assert preq("sweep", "show", "sweep") == 0
    assert "block" in capsys.readouterr().out


def test_it_resumes(mine: str, tmp_path: Path) -> None:
    flags = ["mnist", GATED, "--width", "0.1", "--length", "512", "--threads", "1", "--method", mine]
    assert preq("run", *flags, "--out", "whole") == 0
    gate = Gate(tmp_path / "gate", step=12)
    process = start_preq(["run", *flags, "--out", "run", "--checkpoint-seconds", "0"], gate.environment)
    wait_for(lambda: gate.waiting, process)
    process.terminate()
    process.communicate(timeout=PATIENCE)
    assert pq.load("run").status == "stopped"
    assert preq("run", *flags, "--out", "run", "--resume") == 0
    assert np.array_equal(pq.load("run").nats, pq.load("whole").nats)


def test_it_encodes_decodes_and_is_proved_where_it_is_named(mine: str, capsys: Captured) -> None:
    assert preq("encode", *RUN, "--method", mine, "-o", "labels.preq") == 0
    decode = ["decode", "labels.preq", "--data", "mnist", "-o", "labels.npy"]
    capsys.readouterr()
    assert preq(*decode) == 2
    assert "the method 'again' is not one of the package" in capsys.readouterr().err
    assert preq(*decode, "--method", mine) == 0
    expected = pq.load_data("mnist").take(128).labels(np.arange(128)).numpy()
    assert np.array_equal(np.load("labels.npy"), expected)
    assert preq("run", *RUN, "--method", mine, "--out", "run") == 0
    assert preq("verify", "run") == 2
    capsys.readouterr()
    assert preq("verify", "run", "--method", mine, "--json") == 0
    assert json.loads(capsys.readouterr().out)["labels_identical"] is True


def test_from_python_too(mine: str, tmp_path: Path) -> None:
    kind: Any = find_method(mine)
    data = pq.load_data("mnist").take(64).without_heldout()
    record = pq.run("mlp1", data, kind(block=8), seed=0, width=0.1, out=tmp_path / "run", name="a name")
    again = pq.run("mlp1", data, kind(block=8), seed=0, width=0.1, out=tmp_path / "run", resume=True)
    assert np.array_equal(record.nats, again.nats)
    assert pq.load(tmp_path / "run").name == "a name"
    assert method_from_settings(record.method, kind) == kind(block=8)
    bits = pq.encode("mlp1", data, kind(block=8), seed=0, width=0.1)
    assert np.array_equal(pq.decode(bits, data, method=kind), record.labels)
    with pytest.raises(PreqError, match="this was made with the method 'again', got 'mi-rs'; give the same"):
        pq.decode(bits, data, method=pq.ReplayStreams)
    with pytest.raises(PreqError, match=r"a name must be some text on one line, got 'two\\nlines'"):
        pq.run("mlp1", data, kind(block=8), seed=0, name="two\nlines")


def test_a_file_changed_within_a_second_is_read_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    own, second = tmp_path / "own.py", 1_700_000_000_000_000_000
    for value, later in ((1, 0), (2, 500_000_000)):
        own.write_text(f"value = {value}\n")
        os.utime(own, ns=(second + later, second + later))
        assert find_own(f"{own}:value", "model") == value
    assert not (tmp_path / "__pycache__").exists()
