"""Damage and edit files, feed them to the commands that read them, and count what goes wrong.

    python benchmarks/fuzz.py --seed 0 --count 100000 --to /tmp/fuzz.json     # stopped, it goes on with the same --to
    python benchmarks/fuzz.py --count 300 --kinds npz preq

Kinds of files of tiny real runs: records, prepared data, sweeps, checkpoints, npz archives, bitstreams, kept weights
with what they were trained on, features of probed layers, and what mixed runs have of these, with lists of experts. A
part is damaged (bits, bytes, truncation); the rest is edited by someone who mends the checksums. What goes wrong is a
wrong answer (damage that shows in the answer, with status 0 and no note; a bitstream that decodes to other labels; a
proof of a record that is not the one that was made), a traceback or an unknown status, more than 20 s of processor
time, or more than 1 GiB of resident memory. File number n is a function of seed, kinds and n alone.
"""

import argparse
import json
import os
import random
import resource
import select
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

MOST_SECONDS = 20.0
PATIENCE = 600.0
"""Seconds by the clock on the wall after which even a process that had no processor counts as hanging."""
MOST_BYTES = 1 << 30
MEMORY = "/dev/shm"
"""Where files cost no disk, if there is such a place."""
AT_ONCE = 100
"""Files that a worker is told of together."""
OF_ONE_WORKER = 3000
KINDS = ["record", "prepared", "sweep", "checkpoint", "npz", "preq", "weights", "features", "mixed"]
WRONG = ("wrong answer", "traceback", "hang", "memory")


def work(folder: Path, seed: int, kinds: list[str], max_flops: float) -> None:
    """A worker: told numbers on standard input, it says of each how it went."""
    import torch

    from fuzz_files import make_fast, make_originals
    from fuzz_mixed import make_mixed

    torch.set_num_threads(1)
    os.chdir(folder.parent)
    make_originals(folder)
    make_mixed(folder)
    make_fast()
    say = sys.__stdout__
    assert say is not None
    judge = Judge(folder, seed, kinds, f"--max-flops {max_flops:g}" if max_flops else "")
    room = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize() + 2 * MOST_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (room, room))
    print("ready", file=say, flush=True)
    for line in sys.stdin:
        found = judge.found(int(line))
        if resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 > MOST_BYTES:
            found = ("memory", found[1])
        print(json.dumps(found), file=say, flush=True)
        if found[0] == "memory":
            return


class Judge:
    """Makes each file and says what came of it."""

    def __init__(self, folder: Path, seed: int, kinds: list[str], flops: str) -> None:
        self._folder, self._seed, self._kinds, self._flops = folder, seed, kinds, flops
        self._truths: dict[tuple[str, ...], Any] = {}

    def found(self, number: int) -> tuple[str, str]:
        """Told, right or one of WRONG, and what the command was and said."""
        from fuzz_files import call
        from fuzz_mixed import KINDS as CASES

        kind = self._kinds[number % len(self._kinds)]
        chance = random.Random(f"{self._seed} {kind} {number}")
        case = CASES[kind](self._folder, chance, self._flops)
        truth = self._truth(case.command)
        before = case.file.read_bytes()
        others = [(case.also[0], case.also[0].read_bytes())] if case.also is not None else []
        changed = case.file.with_name(case.new_name) if case.new_name else case.file
        case.file.unlink()
        changed.write_bytes(case.content)
        if case.also is not None:
            case.also[0].write_bytes(case.also[1])
        try:
            result = call(case.command)
            answer = self._answer(case.command, result.output)
        finally:
            if changed.exists():
                changed.unlink()
            case.file.parent.mkdir(exist_ok=True)
            for path, content in [(case.file, before), *others]:
                path.write_bytes(content)
        words = f"{case.file.name} {'edited' if case.is_edited else 'damaged'}: preq {' '.join(case.command)}"
        if result.status not in (0, 2, 3) or "Traceback" in result.errors:
            return "traceback", f"{words}\n{result.status} {result.errors[-3000:]}"
        if result.status == 0 and case.command[0] == "decode" and answer[1:] != truth[1:]:
            return "wrong answer", words
        is_silent = not result.errors and (not case.is_edited or case.command[0] == "verify")
        if result.status == 0 and is_silent and answer != truth and "unreadable:" not in result.output:
            return "wrong answer", f"{words}\n{answer}\nin place of\n{truth}"
        return ("told" if result.status else "right"), ""

    def _truth(self, command: list[str]) -> Any:
        """The answer to the file as it was."""
        from fuzz_files import call
        from fuzz_mixed import restore

        key = tuple(command)
        if key not in self._truths:
            result = call(command)
            self._truths[key] = self._answer(command, result.output)
            if "--resume" in command:
                restore(self._folder, Path(command[command.index("--out") + 1]))
        return self._truths[key]

    def _answer(self, command: list[str], output: str) -> Any:
        """What must be right in what a command said or wrote."""
        name, written = command[0], []
        for file in ("labels.npy", "out.svg", "out.html"):
            path = self._folder / file
            if path.exists():
                written.append(path.read_bytes())
                path.unlink()
        if name in ("run", "verify") and output.startswith("{"):
            told = json.loads(output)
            keys = ("codelength_nats", "record_nats", "errors", "length", "num_classes", "heldout", "labels_identical")
            return [told.get(key) for key in keys]
        return [output, *written]


class Worker(threading.Thread):
    """A process that tries files, and who watches it."""

    def __init__(self, command: list[str], numbers: "Numbers") -> None:
        super().__init__(daemon=True)
        self._command, self._numbers = command, numbers
        self._process: subprocess.Popen[str] | None = None
        self._done = 0

    def run(self) -> None:
        for block in self._numbers.blocks():
            for number in block:
                self._numbers.note(number, *self._try(number))
            self._numbers.finish(block)
        self._end()

    def _end(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def _try(self, number: int) -> tuple[str, str]:
        if self._process is None or self._done >= OF_ONE_WORKER:
            self._end()
            self._process = subprocess.Popen(self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            self._done = 0
            if self._line(300) != "ready\n":
                raise SystemExit("a worker did not begin")
        assert self._process is not None
        assert self._process.stdin is not None
        self._done += 1
        self._process.stdin.write(f"{number}\n")
        self._process.stdin.flush()
        answer = self._line(MOST_SECONDS)
        if answer:
            kind, text = json.loads(answer)
            if kind == "memory":
                self._end()
            return kind, text
        is_over = self._process.poll() is not None
        self._end()
        shutil.rmtree(self._command[-1], ignore_errors=True)  # it may have left a file changed
        return ("memory", "the process was ended") if is_over else ("hang", "")

    def _line(self, seconds: float) -> str:
        """The next line; nothing if none comes within so much time of the processor, or the process is gone."""
        assert self._process is not None
        assert self._process.stdout is not None
        begin, deadline = self._cpu_seconds(), time.monotonic() + PATIENCE
        while not select.select([self._process.stdout], [], [], 1.0)[0]:
            if self._cpu_seconds() - begin > seconds or time.monotonic() > deadline:
                return ""
        return self._process.stdout.readline()

    def _cpu_seconds(self) -> float:
        """What the process has had of the processor: the wall's clock runs on when others have it."""
        assert self._process is not None
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Numbers:
    """Which files are to be tried, and what came of those that were; kept in a file."""

    def __init__(self, count: int, kinds: list[str], seed: int, to: Path | None) -> None:
        self._count, self._kinds, self._to, self._lock = count, kinds, to, threading.Lock()
        self.state: dict[str, Any] = {"seed": seed, "kinds": kinds, "done": [], "counts": {}, "findings": []}
        if to is not None and to.exists():
            self.state = json.loads(to.read_text())
            if (self.state["seed"], self.state["kinds"]) != (seed, kinds):
                raise SystemExit(f"{to} is about other files; give another --to")
        self._next = iter(range(0, count, AT_ONCE))
        self._pending: dict[int, list[tuple[str, str, str]]] = {}

    def blocks(self) -> Iterator[range]:
        """Those that are not done, for a worker."""
        while True:
            with self._lock:
                begin = next((b for b in self._next if b not in self.state["done"]), None)
            if begin is None:
                return
            yield range(begin, min(begin + AT_ONCE, self._count))

    def note(self, number: int, verdict: str, text: str) -> None:
        kind = self._kinds[number % len(self._kinds)]
        self._pending.setdefault(number // AT_ONCE, []).append((kind, verdict, text))
        if verdict in WRONG:
            print(f"{kind} {number}: {verdict} {text}", flush=True)

    def finish(self, block: range) -> None:
        """Count a block that is done."""
        with self._lock:
            for kind, verdict, text in self._pending.pop(block.start // AT_ONCE):
                counts = self.state["counts"].setdefault(kind, {})
                counts[verdict] = counts.get(verdict, 0) + 1
                if verdict in WRONG:
                    self.state["findings"].append([kind, verdict, text])
            self.state["done"].append(block.start)
            if self._to is not None:
                self._to.write_text(json.dumps(self.state))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--kinds", nargs="+", default=KINDS)
    parser.add_argument("--max-flops", type=float, default=1e6, help="what decoding may take; 0: no limit")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--to", type=Path, default=None, help="where the counts are kept, to go on with")
    parser.add_argument("--worker", type=Path, default=None, help=argparse.SUPPRESS)
    flags = parser.parse_args()
    if flags.worker is not None:
        work(flags.worker, flags.seed, flags.kinds, flags.max_flops)
        return 0
    begin, numbers = time.perf_counter(), Numbers(flags.count, flags.kinds, flags.seed, flags.to)
    with tempfile.TemporaryDirectory(dir=MEMORY if Path(MEMORY).is_dir() else None) as folder:
        told = ["--seed", str(flags.seed), "--max-flops", str(flags.max_flops), "--kinds", *flags.kinds]
        own = [[sys.executable, __file__, *told, "--worker", f"{folder}/{job}/files"] for job in range(flags.jobs)]
        for command in own:
            Path(command[-1]).parent.mkdir()
        workers = [Worker(command, numbers) for command in own]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    columns = ("told", "right", *WRONG)
    print(f"{'':<11}{'files':>8}" + "".join(f"{column:>14}" for column in columns))
    total: Counter[str] = Counter()
    for kind, counts in numbers.state["counts"].items():
        total.update(counts)
        print(f"{kind:<11}{sum(counts.values()):>8,}" + "".join(f"{counts.get(each, 0):>14,}" for each in columns))
    print(f"{'all':<11}{total.total():>8,}" + "".join(f"{total[each]:>14,}" for each in columns))
    print(f"{total.total() / (time.perf_counter() - begin):.0f} files per second")
    return 1 if any(total[each] for each in WRONG) else 0


if __name__ == "__main__":
    raise SystemExit(main())
