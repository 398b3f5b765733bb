"""Kill a run again and again, resume it each time, and compare its record with an undisturbed one.

    python benchmarks/kill.py --kills 50

SIGKILL comes at random moments, also while a checkpoint is being written (the interval is short).
"""

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import prequential as pq
from prequential.runs.record import ARRAYS


def command(out: Path, arguments: argparse.Namespace, *flags: str) -> list[str]:
    job = f"run mnist mlp1 --width {arguments.width} --length {arguments.length} --streams {arguments.streams}"
    job += " --threads 1 --checkpoint-seconds 0.02 --json"
    return [sys.executable, "-m", "prequential.cli", *job.split(), "--out", str(out), *flags]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--length", type=int, default=60_000)
    parser.add_argument("--streams", type=int, default=12)
    parser.add_argument("--width", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--to", type=Path, default=None, help="where the runs go (default: a temporary directory)")
    arguments = parser.parse_args()
    chance = random.Random(arguments.seed)
    folder = arguments.to or Path(tempfile.mkdtemp())
    begin = time.perf_counter()
    subprocess.run(command(folder / "undisturbed", arguments), check=True, stdout=subprocess.DEVNULL)
    startup = time.perf_counter() - begin - pq.load(folder / "undisturbed").seconds
    kills = midway = 0
    out = folder / "killed"
    while kills < arguments.kills:
        process = subprocess.Popen(
            command(out, arguments, "--resume"), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        while not list(out.glob("checkpoints/*")) and process.poll() is None:
            time.sleep(0.005)
        time.sleep(chance.uniform(0.5, 1.2) * startup if kills else 0)
        deadline = time.perf_counter() + chance.uniform(0.0, 0.3)
        if chance.random() < 0.5:  # wait for the moment when a checkpoint is half written
            while not list(out.glob("checkpoints/.*.tmp")) and time.perf_counter() < deadline + 0.5:
                pass
        else:
            time.sleep(max(0.0, deadline - time.perf_counter()))
        midway += bool(list(out.glob("checkpoints/.*.tmp")))
        if process.poll() is not None:
            print(process.communicate()[1].decode(), end="")
            print(f"the run ended after {kills} kills; give a larger --length")
            return 1
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        kills += 1
    subprocess.run(command(out, arguments, "--resume"), check=True, stdout=subprocess.DEVNULL)
    one, other = pq.load(folder / "undisturbed"), pq.load(out)
    same = all(getattr(one, name).tobytes() == getattr(other, name).tobytes() for name in ARRAYS)
    same = same and one.heldout == other.heldout and one.codelength == other.codelength
    print(
        f"{kills} of {arguments.kills} kills ({midway} while a checkpoint was being written), "
        f"{arguments.length:,} labels, {time.perf_counter() - begin:.0f} s: "
        f"the record is {'identical' if same else 'DIFFERENT'}"
    )
    return 0 if same else 1


if __name__ == "__main__":
    raise SystemExit(main())
