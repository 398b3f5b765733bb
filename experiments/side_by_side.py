"""Everything that is missing, by several programs on one GPU: the shortest codes, and the paper's tables and figures.

Programs that take turns on a GPU are together no faster than one. Under CUDA's multi-process service (MPS), which is
begun here where there is one and ended again, they run at once: three that train VGG++ in batches of 128 look at 1.46
times as many images as without it (benchmarks/sharing.txt). Results are lines of JSON in DIR/shorter and
DIR/paper, logs are in DIR/logs; what is in the repository is not run again, and the next call with the same DIR goes
on.

    python experiments/side_by_side.py --out DIR --minutes 25
    python experiments/side_by_side.py --out DIR --minutes 25 --only so-far-cifar10 fig5_buffers
    python experiments/side_by_side.py --list
"""

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "paper" / "results"
SECONDS_BETWEEN_LOOKS = 1.0
GRACE_SECONDS = 60.0
"""After the end: what has not stopped by then is ended."""
CONTROL = "nvidia-cuda-mps-control"


@dataclass(frozen=True)
class Program:
    """A script with its arguments."""

    name: str
    words: tuple[str, ...]
    folder: str = "paper"
    """Where its results go."""
    alone: bool = False
    """Whether its seconds count, so that nothing may run beside it."""

    def command(self, flags: argparse.Namespace, begun: float) -> list[str]:
        """What to run for the rest of the time."""
        script, *rest = self.words
        spent = (time.time() - begun) / 60
        words = ["--device", flags.device, "--out", str(flags.out / self.folder)]
        words += ["--minutes", f"{flags.minutes - spent:.2f}"]
        if flags.session is not None and self.folder == "shorter":  # the others never begin what would not end
            words += ["--session", f"{flags.session - spent:.2f}"]
        return [sys.executable, str(HERE / script), *words, *rest]


def _shorter(name: str, at_once: int, *only: str, alone: bool = False) -> Program:
    words = ("shorter.py", *(() if alone else ("--shared",)), "--at-once", str(at_once), "--only", *only)
    return Program(name, words, folder="shorter", alone=alone)


def _paper(script: str, at_once: int = 2) -> Program:
    return Program(script, (f"paper/{script}.py", "--at-once", str(at_once)))


PROGRAMS = (
    _shorter("pilot", 1, "row=pilot", alone=True),
    _shorter("so-far-cifar10", 2, "given=so-far", "data=cifar10"),
    _shorter("so-far-cifar100", 2, "given=so-far", "data=cifar100"),
    _shorter("so-far-mnist", 2, "given=so-far", "data=mnist"),
    _shorter("all-mnist", 1, "given=all", "data=mnist"),
    _shorter("all-cifar100", 3, "given=all", "data=cifar100"),
    _shorter("all-cifar10", 4, "given=all", "data=cifar10"),
    *map(
        _paper,
        (
            "fig5_buffers", "c3_depth", "table2_ablations", "fig4_models", "c4_standardisation", "table1_wrn",
            "fig2_rgb_mnist", "fig6_warm_start", "table1_cifar", "fig3_pareto",
        ),
    ),
)  # fmt: skip
"""In the order in which they begin."""


@contextmanager
def shared_gpu() -> Iterator[dict[str, str]]:
    """While this lasts programs with these variables share the GPU; none where there is no such service."""
    # in /tmp, since the names of sockets must be short
    with tempfile.TemporaryDirectory(prefix="mps", dir="/tmp", ignore_cleanup_errors=True) as folder:
        places = {f"CUDA_MPS_{kind}_DIRECTORY": folder for kind in ("PIPE", "LOG")}
        variables = os.environ | places
        if shutil.which(CONTROL) is None or subprocess.run([CONTROL, "-d"], env=variables, check=False).returncode:
            print("no multi-process service here: programs take turns on the GPU", flush=True)
            yield {}
            return
        try:
            yield places
        finally:
            with suppress(subprocess.TimeoutExpired):
                subprocess.run([CONTROL], input="quit -t 10\n", text=True, env=variables, check=False, timeout=60)


class Line:
    """Programs that wait, and those that run."""

    def __init__(self, waiting: Sequence[Program], flags: argparse.Namespace, variables: Mapping[str, str]) -> None:
        self._waiting, self._flags, self._begun = list(waiting), flags, time.time()
        self._end = self._begun + 60 * flags.minutes
        self._variables = os.environ | {"OMP_NUM_THREADS": "2", "PYTHONUNBUFFERED": "1"} | variables
        self._running: dict[Program, subprocess.Popen[bytes]] = {}
        self._logs = flags.out / "logs"
        self._logs.mkdir(parents=True, exist_ok=True)

    def work_off(self) -> int:
        """Until all is over, or the time is; gives how many failed."""
        failed = 0
        try:
            while self._waiting or self._running:
                while self._may_begin():
                    self._begin(self._waiting.pop(0))
                for program, process in list(self._running.items()):
                    if (code := process.poll()) is not None:
                        _end(self._running.pop(program))
                        failed += code != 0
                        print(f"{program.name}: {'over' if code == 0 else f'ended with {code}'}", flush=True)
                if time.time() > self._end and self._waiting:
                    print(*(f"{program.name}: not begun" for program in self._waiting), sep="\n", flush=True)
                    self._waiting.clear()
                if time.time() > self._end + GRACE_SECONDS:
                    break
                time.sleep(SECONDS_BETWEEN_LOOKS)
        finally:
            for process in self._running.values():
                _end(process)
        return failed + len(self._running)

    def _may_begin(self) -> bool:
        if not self._waiting or time.time() > self._end:
            return False
        lonely = self._waiting[0].alone or any(program.alone for program in self._running)
        return len(self._running) < (1 if lonely else self._flags.programs)

    def _begin(self, program: Program) -> None:
        command = program.command(self._flags, self._begun)
        print(f"{program.name}: begins", flush=True)
        with (self._logs / f"{program.name}.txt").open("ab") as log:
            self._running[program] = subprocess.Popen(
                command, env=self._variables, stdout=log, stderr=log, start_new_session=True
            )


def _end(process: subprocess.Popen[bytes]) -> None:
    """It, and whatever it began that is still there."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def bring_results(out: Path) -> None:
    """What the repository knows of the paper's claims, so that nothing is run twice."""
    (out / "paper").mkdir(parents=True, exist_ok=True)
    for file in RESULTS.glob("*.jsonl"):
        if not (out / "paper" / file.name).exists():
            shutil.copy(file, out / "paper")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--out", type=Path, default=Path("runs/side-by-side"), metavar="DIR")
    parser.add_argument("--minutes", type=float, default=60.0, help="stop by then; what is unfinished goes on later")
    parser.add_argument(
        "--session", type=float, metavar="MINUTES", help="begin nothing that would not end by then, if it ran alone"
    )
    parser.add_argument("--programs", type=int, default=5, metavar="N", help="side by side")
    names = [program.name for program in PROGRAMS]
    parser.add_argument("--only", nargs="+", choices=names, default=names, metavar="NAME", help="in this order")
    parser.add_argument("--list", action="store_true", help="print the names, and run nothing")
    flags = parser.parse_args(arguments)
    if flags.list:
        print(*names, sep="\n")
        return
    bring_results(flags.out)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    chosen = [PROGRAMS[names.index(name)] for name in dict.fromkeys(flags.only)]
    with shared_gpu() if flags.device.startswith("cuda") else nullcontext({}) as variables:
        failed = Line(chosen, flags, variables).work_off()
    if failed:
        sys.exit(f"{failed} programs did not end well; {flags.out / 'logs'} says why")


if __name__ == "__main__":
    main()
