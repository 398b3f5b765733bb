"""Prepared data: memory that does not grow with it, and the speed of reading. `python benchmarks/mapped.py`

1. LeNet over 60,000 and over 600,000 mapped examples (ten copies of MNIST in another order), the same number of
   training steps: the peaks of anonymous memory (RssAnon; mapped pages belong to the system's cache).
2. A tiny net over 13,000 mapped images of 3×224×224 (2 GB) under `ulimit -d` of 1 GiB, against the same in memory.
3. Batches of 32 MNIST images for 50 replay streams, warm cache: microseconds per batch.
"""

import argparse
import json
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import torch
from torch import nn

import prequential as pq
from prequential.data.sequence import ArraySequence, DataSequence
from prequential.events import Train

GROWTH_LIMIT, TIME_LIMIT, READ_LIMIT_US = 1.10, 1.20, 15.0
DATA_LIMIT = 1 << 30


class PeakMemory(threading.Thread):
    """Watches the anonymous memory of this process."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.peak_kib = 0

    def run(self) -> None:
        while True:
            self.peak_kib = max(self.peak_kib, anonymous_kib())
            time.sleep(0.02)


def anonymous_kib() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon"))


def tiny(input_shape: tuple[int, ...], num_classes: int) -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(input_shape[0], 4, 8, stride=8),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(4),
        nn.Flatten(),
        nn.Linear(64, num_classes),
    )


def copies(data: ArraySequence, number: int) -> ArraySequence:
    """The data several times over, in an order of its own."""
    images, labels = data.stored_inputs, data.stored_labels
    return pq.from_arrays(images.repeat(number, 1, 1, 1), labels.repeat(number), num_classes=10).shuffled(1)


def large_images(length: int) -> ArraySequence:
    draws = np.random.default_rng(0)
    labels = draws.integers(0, 10, length)
    images = np.empty((length, 3, 224, 224), np.uint8)
    for row, label in enumerate(labels):
        images[row] = draws.integers(0, 100, (3, 224, 224), dtype=np.uint8)
        images[row, :, 20 * label : 20 * label + 20] += 100
    return pq.from_arrays(images, labels, num_classes=10)


def measure_memory(where: str, streams: int) -> dict[str, float]:
    watch = PeakMemory()
    watch.start()
    data = pq.load_data(f"prepared:{where}")
    with tempfile.TemporaryDirectory() as out:
        method = pq.ReplayStreams(num_streams=streams, batch_size=128)
        record = pq.run("lenet", data, method, seed=0, threads=1, out=f"{out}/run")
    steps = sum(isinstance(event, Train) for event in pq.Plan(method, len(data)).events())
    return {"peak_mib": watch.peak_kib / 1024, "steps": steps, "seconds": record.seconds, "length": len(data)}


def measure_limited(where: str, limited: bool) -> dict[str, float]:
    if limited:
        resource.setrlimit(resource.RLIMIT_DATA, (DATA_LIMIT, DATA_LIMIT))
        data: DataSequence = pq.load_data(f"prepared:{where}")
    else:
        data = large_images(13_000)
    method = pq.ReplayStreams(num_streams=2, batch_size=32)
    record = pq.run(tiny, data, method, seed=0, threads=1)
    assert record.codelength is not None
    return {"seconds": record.seconds, "codelength": record.codelength}


def measure_reading(where: str) -> dict[str, float]:
    data, length = pq.load_data(f"prepared:{where}"), 60_000
    spans: list[np.ndarray] = []
    for event in pq.Plan(pq.ReplayStreams(num_streams=50, batch_size=32), length).events():
        if isinstance(event, Train) and len(spans) < 20_000:
            spans.append(event.indices)
    times = []
    for _ in range(5):
        begin = time.perf_counter()
        for span in spans:
            data.inputs(span)
        times.append((time.perf_counter() - begin) / len(spans) * 1e6)
    return {"microseconds": statistics.median(times[1:])}


def elsewhere(*arguments: str) -> dict[str, float]:
    """The result of one measurement in a process of its own."""
    done = subprocess.run([sys.executable, __file__, *arguments], capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    result: dict[str, float] = json.loads(done.stdout)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--measure", nargs=3, metavar=("WHAT", "DIR", "VALUE"), help="one measurement, in this process")
    chosen = parser.parse_args().measure
    if chosen is not None:
        what, where, value = chosen
        print(
            json.dumps(
                measure_memory(where, int(value))
                if what == "memory"
                else measure_limited(where, value == "1")
                if what == "limited"
                else measure_reading(where)
            )
        )
        return
    print(
        f"{platform.machine()}, 2 shared cores, Python {platform.python_version()}, torch {torch.__version__}, seed 0"
    )
    with tempfile.TemporaryDirectory() as folder:
        mnist = pq.load_data("mnist").without_heldout()
        assert isinstance(mnist, ArraySequence)
        pq.prepare(mnist, f"{folder}/one")
        pq.prepare(copies(mnist, 10), f"{folder}/ten")
        pq.prepare(large_images(13_000), f"{folder}/large")
        reading = elsewhere("--measure", "reading", f"{folder}/one", "0")
        print(f"reading      {reading['microseconds']:.1f} µs per batch of 32, 50 streams (limit {READ_LIMIT_US:.0f})")
        one = elsewhere("--measure", "memory", f"{folder}/one", "19")
        ten = elsewhere("--measure", "memory", f"{folder}/ten", "1")
        growth = ten["peak_mib"] / one["peak_mib"]
        for each in (one, ten):
            print(f"memory       {each['length']:>7,} examples, {each['steps']:,} steps: {each['peak_mib']:.1f} MiB")
        print(f"             ratio {growth:.3f} (limit {GROWTH_LIMIT})")
        pairs = []
        for _ in range(3):
            inside = elsewhere("--measure", "limited", f"{folder}/large", "0")
            mapped = elsewhere("--measure", "limited", f"{folder}/large", "1")
            assert mapped["codelength"] == inside["codelength"], "the same data gives the same code"
            pairs.append(mapped["seconds"] / inside["seconds"])
            print(
                f"ulimit -d    {mapped['seconds']:.1f} s mapped, {inside['seconds']:.1f} s in memory: {pairs[-1]:.2f}"
            )
        ratio = statistics.median(pairs)
        print(f"             median ratio {ratio:.2f} (limit {TIME_LIMIT})")
    sys.exit(growth > GROWTH_LIMIT or ratio > TIME_LIMIT or reading["microseconds"] > READ_LIMIT_US)


if __name__ == "__main__":
    main()
