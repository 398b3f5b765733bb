"""What it saves that memory freed by a step is kept for the next, and that held-out examples are predicted a few at a
time: processor seconds of runs in turn, as they are now, without the one, and without either.

    PREQ_DATA=DIR python benchmarks/memory.py > benchmarks/memory.txt

DIR has CIFAR-10. Processor seconds are of the whole command, the system's among them; they hardly depend on what else
the machine does.
"""

import json
import os
import platform
import subprocess
import sys

import torch

ROUNDS = 2
RUNS = (
    "run mnist lenet --length 2048 --threads 1",
    "run mnist smallconv --preset best --length 160 --threads 1",
    "run cifar10 vggpp --preset best --width 0.125 --streams 8 --length 400 --threads 1",
    "run cifar10 resnet18 --preset best --width 0.25 --streams 2 --length 64 --threads 1",
)
PROGRAM = "import sys; from prequential.learn import memory, prediction; {}; from prequential.cli import main; main()"
NOT_KEPT, AT_ONCE = "memory._c_library = lambda: None", "prediction.AT_ONCE_ON_A_CPU = 512"
WAYS = {"now": "pass", "not kept": NOT_KEPT, "nor few": f"{NOT_KEPT}; {AT_ONCE}"}


def measured(words: str, way: str) -> tuple[float, float, float, float]:
    """Processor seconds of the user and of the system, mebibytes at most, and nats."""
    command = [sys.executable, "-c", PROGRAM.format(WAYS[way]), *words.split(), "--json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert process.stdout is not None
    printed = process.stdout.read()
    _, status, used = os.wait4(process.pid, 0)
    assert status == 0
    return used.ru_utime, used.ru_stime, used.ru_maxrss / 1024, json.loads(printed)["codelength_nats"]


def main() -> None:
    versions = f"Python {platform.python_version()}, torch {torch.__version__}, {' '.join(platform.libc_ver())}"
    print(f"{platform.machine()}, {os.cpu_count()} cores, {versions}")
    for words in RUNS:
        print(f"\npreq {words}")
        found: dict[str, list[tuple[float, float, float, float]]] = {way: [] for way in WAYS}
        for _ in range(ROUNDS):
            for way, rows in found.items():
                rows.append(measured(words, way))
                user, system, most, nats = rows[-1]
                seconds = f"{user:5.1f} s, {system:5.1f} s of the system"
                print(f"  {way:<9}  {seconds}, {most:6,.0f} MiB, {nats!r} nats", flush=True)
        spent = {way: sum(user + system for user, system, *_ in rows) for way, rows in found.items()}
        assert len({row[3] for rows in found.values() for row in rows}) == 1, "the code is the same"
        ratios = " and ".join(f"{spent['now'] / spent[way]:.2f}" for way in ("not kept", "nor few"))
        print(f"  {ratios} times the processor time")


if __name__ == "__main__":
    main()
