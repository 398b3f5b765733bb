"""Several programs on one GPU: which run beside each other, for how long, and with what."""

import argparse
import fcntl
import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from .test_docs import ROOT, imported
from .test_shorter import PLAN, SHORTER

SIDE = imported(ROOT / "experiments" / "side_by_side.py")


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """Run programs whose work is Python; gives when each began and ended."""
    monkeypatch.setattr(SIDE, "SECONDS_BETWEEN_LOOKS", 0.02)
    monkeypatch.setattr(SIDE, "CONTROL", "no-such-service")
    handler = signal.getsignal(signal.SIGTERM)

    def run(works: dict[str, str], *flags: str, alone: tuple[str, ...] = ()) -> dict[str, tuple[float, float]]:
        code = "import json, os, sys, time\na = time.time()\n{}\njson.dump((a, time.time()), open({!r}, 'w'))"
        scripts = {name: code.format(work, str(tmp_path / f"{name}.json")) for name, work in works.items()}
        programs = tuple(SIDE.Program(name, (text,), alone=name in alone) for name, text in scripts.items())
        monkeypatch.setattr(SIDE, "PROGRAMS", programs)
        monkeypatch.setattr(SIDE.Program, "command", lambda self, *_: [sys.executable, "-c", *self.words])
        SIDE.main(["--out", str(tmp_path / "out"), *flags])
        return {name: json.loads(file.read_text()) for name in works if (file := tmp_path / f"{name}.json").exists()}

    yield run
    signal.signal(signal.SIGTERM, handler)


def is_let_go(held: Path) -> bool:
    """Whether nobody holds a lock any more; who was killed may take a moment to die."""
    with held.open("r") as file:
        for _ in range(600):
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                time.sleep(0.05)
            else:
                return True
    return False


def test_so_many_run_beside_each_other(lines: Any, tmp_path: Path) -> None:
    """Of four: the first two wait for each other."""
    met = "os.chdir({!r})\nopen({!r}, 'w').close()\nwhile not os.path.exists({!r}): time.sleep(0.01)"
    works = {name: met.format(str(tmp_path), name, other) for name, other in ("ab", "ba")}
    found = lines(works | dict.fromkeys("cd", "0"), "--programs", "2", "--minutes", "2")
    assert sorted(found) == list("abcd")
    for moment in [begin for begin, _ in found.values()]:
        assert sum(begin <= moment < end for begin, end in found.values()) <= 2
    assert found["c"][0] > min(found["a"][1], found["b"][1])


def test_what_is_timed_runs_alone(lines: Any) -> None:
    found = lines(dict.fromkeys("abc", "time.sleep(0.3)"), alone=("b",))
    assert found["a"][1] <= found["b"][0] < found["b"][1] <= found["c"][0]


def test_the_end_is_kept_and_failures_are_told(
    lines: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(SIDE, "GRACE_SECONDS", 0.2)
    held = tmp_path / "held"  # by a program, and by what it began
    child = f"import fcntl, subprocess; file = open({str(held)!r}, 'w'); fcntl.flock(file, fcntl.LOCK_EX)"
    child += "; subprocess.Popen(['sleep', '600'], pass_fds=[file.fileno()]); time.sleep(600)"
    works = {"a": "sys.exit(3)", "b": child, "c": "0"}
    with pytest.raises(SystemExit, match="2 programs did not end well"):
        lines(works, "--minutes", "0.25", "--programs", "1")
    assert is_let_go(held)
    told = capsys.readouterr().out
    assert "a: ended with 3" in told
    assert "c: not begun" in told
    assert "c: begins" not in told


def test_the_service_is_begun_told_of_and_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    control = tmp_path / SIDE.CONTROL
    control.write_text(
        f'#!/bin/sh\n[ "$1" = -d ] || read word\necho "$1$word $CUDA_MPS_PIPE_DIRECTORY" >> {tmp_path}/told\n'
    )
    control.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    with SIDE.shared_gpu() as variables:
        place = variables["CUDA_MPS_PIPE_DIRECTORY"]
        assert Path(place).is_dir()
    assert (tmp_path / "told").read_text().splitlines() == [f"-d {place}", f"quit -t 10 {place}"]
    assert not Path(place).exists()
    control.write_text("#!/bin/sh\nexit 1\n")
    with SIDE.shared_gpu() as variables:
        assert variables == {}


def test_every_program_is_a_script_that_finds_something_to_do(tmp_path: Path) -> None:
    asked = argparse.Namespace(out=tmp_path, device="cuda", minutes=9.0, session=20.0)
    for program in SIDE.PROGRAMS:
        _, script, *flags = program.command(asked, time.time() - 60)
        assert float(flags[flags.index("--minutes") + 1]) == pytest.approx(8, abs=1)
        assert ("--session" in flags) is (program.folder == "shorter")
        assert Path(script).is_file()
        assert flags[:4] == ["--device", "cuda", "--out", str(tmp_path / program.folder)]
        if program.folder == "shorter":
            assert SHORTER.only(PLAN.plan([]), flags[flags.index("--only") + 1 :])
    chosen = [
        program.words[program.words.index("--only") + 1 :] for program in SIDE.PROGRAMS if program.folder == "shorter"
    ]
    covered = {job.key for labels in chosen for job in SHORTER.only(PLAN.plan([]), labels)}
    assert covered == {job.key for job in PLAN.plan([])}


def test_what_is_known_is_brought_along_once(tmp_path: Path) -> None:
    SIDE.bring_results(tmp_path)
    file = tmp_path / "paper" / "fig5_buffers.jsonl"
    assert file.read_bytes() == (SIDE.RESULTS / file.name).read_bytes()
    file.write_text("more")
    SIDE.bring_results(tmp_path)
    assert file.read_text() == "more"
