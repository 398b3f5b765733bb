"""Processes that tests start: waited for by what they do and not by the clock, and ended with their test."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

PATIENCE = 600.0
"""Seconds until a test that waits is given up. Only a test that hangs gets there, however busy the machine is."""
GATED = f"{Path(__file__).parent / 'gate.py'}:net"
"""A model that waits where a `Gate` says so."""
GATE = "PREQ_TEST_GATE"
"""The variable that tells a gated model where it waits, and for what."""
Found = TypeVar("Found")
_started: list["subprocess.Popen[Any]"] = []


class Gate:
    """Where runs of a gated model stand still: they cannot end before the test has done what it wants to do.

    From its training step number `step` on, a model waits at each until the gate is open or the run is asked to stop,
    but for no longer than `most_seconds` at each.
    """

    def __init__(self, folder: Path, step: int, most_seconds: float = PATIENCE) -> None:
        folder.mkdir()
        self._folder = folder
        self.environment = {GATE: f"{step}:{most_seconds}:{folder}"}

    @property
    def waiting(self) -> list[int]:
        """The processes that have come to the gate."""
        return sorted(int(path.name) for path in self._folder.iterdir() if path.name.isdecimal())

    def open(self) -> None:
        """Let everyone through, from now on."""
        (self._folder / "open").touch()


def start(line: list[str], environment: dict[str, str] | None = None, **options: Any) -> "subprocess.Popen[Any]":
    """A process in a group of its own, which ends with the test at the latest, and with it all that it started."""
    environment = os.environ | (environment or {})
    process = subprocess.Popen(line, env=environment, start_new_session=True, **options)
    _started.append(process)
    return process


def start_preq(arguments: list[str], environment: dict[str, str] | None = None) -> "subprocess.Popen[str]":
    """`preq` with these arguments."""
    line = [sys.executable, "-m", "prequential.cli", *arguments]
    environment = {"OMP_NUM_THREADS": "1"} | (environment or {})
    return start(line, environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def end_all() -> None:
    """Kill what is still running, and close what is still open."""
    while _started:
        process = _started.pop()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()


def wait_for(condition: Callable[[], Found], *processes: "subprocess.Popen[Any]") -> Found:
    """Wait until something is so, and give what it is; the processes must live as long."""
    deadline = time.monotonic() + PATIENCE
    while not (found := condition()):
        for process in processes:
            assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline, "it never came"
        time.sleep(0.01)
    return found
