"""Encode and decode through the command line: sizes within their bound, times beside `preq run`.

    python benchmarks/code.py

Decoding happens in a process whose data directory holds MNIST with every training label replaced by zero.
Times are whole commands, start to end; ratios are medians over rounds in which the three take turns.
"""

import argparse
import gzip
import json
import math
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import torch

import prequential as pq
from prequential.coding.container import Container
from prequential.data.sources.mnist import BUNDLED

JOBS = {
    "lenet mi-rs": "mnist lenet --length 4096 --streams 8",
    "lenet mi-rb": "mnist lenet --length 2048 --method mi-rb --replacement reservoir --capacity 512",
    "lenet ci-fs": "mnist lenet --length 2048 --method ci-fs --epochs 10",
    "lenet ci-cf": "mnist lenet --length 2048 --method ci-cf --epochs 10 --shrink 0.5 --perturb 0.1",
    "smallconv mi-rs": "mnist smallconv --length 1025 --streams 4",
}


def blind_mnist(folder: Path) -> None:
    """MNIST whose training labels are all zero."""
    raw = folder / "MNIST" / "raw"
    raw.mkdir(parents=True)
    for packed in BUNDLED.glob("*.gz"):
        (raw / packed.stem).write_bytes(gzip.decompress(packed.read_bytes()))
    labels = raw / "train-labels-idx1-ubyte"
    labels.write_bytes(labels.read_bytes()[:8] + bytes(60_000))


def preq(*arguments: str) -> tuple[str, float]:
    begin = time.perf_counter()
    done = subprocess.run([sys.executable, "-m", "prequential.cli", *arguments], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr)
    return done.stdout, time.perf_counter() - begin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=Path, help="also write the table into this file")
    arguments = parser.parse_args()
    lines = [
        f"{'':<15} {'nats':>7} {'bits':>6} {'coded':>6} {'bound':>6} {'run s':>6} {'encode':>7} {'decode':>7}  labels"
    ]
    with tempfile.TemporaryDirectory() as folder:
        blind_mnist(Path(folder) / "blind")
        for name, job in JOBS.items():
            times: list[tuple[float, float, float]] = []
            for number in range(arguments.rounds):
                file, labels = f"{folder}/{number} {name}.preq", f"{folder}/{number} {name}.npy"
                seed = ["--seed", str(number), "--threads", "1"]
                result, run_seconds = preq("run", *job.split(), *seed, "--json")
                _, encode_seconds = preq("encode", *job.split(), *seed, "-o", file)
                blind = ["--data", "mnist", "--data-dir", f"{folder}/blind", "-o", labels]
                _, decode_seconds = preq("decode", file, *blind)
                times.append((run_seconds, encode_seconds, decode_seconds))
            facts, decoded = json.loads(result), np.load(labels, allow_pickle=False)
            same = np.array_equal(decoded, pq.load_data("mnist").labels(np.arange(len(decoded))).numpy())
            nats, bits = facts["codelength_nats"], 8 * len(Container.from_bytes(Path(file).read_bytes()).payload)
            bound = (nats * 1.001 + len(decoded) * 10 * 2.0**-24) / math.log(2) + 64
            encode, decode = (statistics.median(row[k] / row[0] for row in times) for k in (1, 2))
            lines.append(
                f"{name:<15} {nats:>7.1f} {nats / math.log(2):>6.0f} {bits:>6} {bound:>6.0f} "
                f"{statistics.median(row[0] for row in times):>6.1f} {encode:>6.2f}x {decode:>6.2f}x  "
                f"{'identical' if same and bits <= bound else 'WRONG'}"
            )
            print("\n".join(lines[-1 if len(lines) > 2 else 0 :]), flush=True)
    lines.append(
        f"limits: encode 1.10x, decode 1.20x of preq run; {arguments.rounds} rounds, 1 thread, {platform.machine()} "
        f"{torch.backends.cpu.get_cpu_capability()}, Python {platform.python_version()}, torch {torch.__version__}"
    )
    print(lines[-1])
    if arguments.out is not None:
        arguments.out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
