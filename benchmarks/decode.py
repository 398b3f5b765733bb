"""The rate of the decoding pool beside that of a bare loop in as many processes: same images, no transport.

    python benchmarks/decode.py FOLDER

The bare processes each decode every k-th file and throw the pixels away. The pool is started beforehand and kept a
few batches ahead. Both are timed until the last image of all is decoded. The two take turns; the ratio is the median
over rounds. torch's DataLoader is timed beside them with as many workers, in its second pass too. Exits with status 1
if the pool's ratio is below 0.9. Beside it stands the ratio of the processor time per image (the pool's includes the
parent's), which other work on the machine moves less.

Where its buffers happen to lie makes a process decode up to a third faster or slower for as long as it lives. So
each round starts new processes, in an environment of another length, and has them decode everything once before.
"""

import argparse
import os
import platform
import statistics
import subprocess
import sys
import time
from collections import deque
from contextlib import closing
from pathlib import Path

import numpy as np
import PIL
import torch
from PIL import features
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from prequential.data.decode import EXTENSIONS
from prequential.data.views import ImageView
from prequential.data.workers import ENVIRONMENT, Batch, DecodePool

LIMIT = 0.9
KEYS = {"centre": None, "random crop": 12345}


def views_of(folder: Path, size: int, key: int | None) -> list[ImageView]:
    files = sorted(path for path in folder.rglob("*") if path.suffix.lower() in EXTENSIONS)
    return [ImageView(str(path), size, key, row) for row, path in enumerate(files)]


def serve_bare(arguments: argparse.Namespace) -> None:
    """Per line read, one pass over this process's share."""
    shares = {
        name: views_of(arguments.folder, arguments.size, key)[arguments.bare :: arguments.workers]
        for name, key in KEYS.items()
    }
    for line in sys.stdin:
        for view in shares[line.strip()]:
            view.read()
        print("done", flush=True)


def bare_rate(processes: list["subprocess.Popen[str]"], name: str, num_images: int) -> float:
    begin = time.perf_counter()
    for process in processes:
        assert process.stdin is not None
        process.stdin.write(f"{name}\n")
        process.stdin.flush()
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "done\n"
    return num_images / (time.perf_counter() - begin)


def pool_rate(pool: DecodePool, views: list[ImageView], batch_size: int, num_ahead: int) -> float:
    waiting: deque[Batch] = deque()
    begin = time.perf_counter()
    for start in range(0, len(views), batch_size):
        waiting.append(pool.submit(views[start : start + batch_size]))
        if len(waiting) > num_ahead:
            waiting.popleft().result()
    while waiting:
        waiting.popleft().result()
    return len(views) / (time.perf_counter() - begin)


class Images(Dataset[Tensor]):
    """The same images, as a DataLoader asks for them."""

    def __init__(self, views: list[ImageView]) -> None:
        self._views = views

    def __len__(self) -> int:
        return len(self._views)

    def __getitem__(self, number: int) -> Tensor:
        return torch.from_numpy(self._views[number].read())


def loader_rate(views: list[ImageView], arguments: argparse.Namespace) -> float:
    """Of torch's DataLoader, once its workers have read everything before."""
    loader = DataLoader(
        Images(views),
        arguments.batch_size,
        num_workers=arguments.workers,
        prefetch_factor=-(-(arguments.ahead + 1) // arguments.workers),
        persistent_workers=True,
    )
    for _ in range(2):
        begin = time.perf_counter()
        deque(loader, maxlen=0)
    return len(views) / (time.perf_counter() - begin)


def start_seconds(num_workers: int, view: ImageView) -> float:
    """From nothing to the first image."""
    begin = time.perf_counter()
    with closing(DecodePool(num_workers)) as pool:
        pool.submit([view]).result()
        return time.perf_counter() - begin


def processor_seconds(pids: list[int]) -> float:
    """What these processes have used so far, by the clock Linux keeps for each."""
    return sum(time.clock_gettime((~pid << 3) | 2) for pid in pids)


def measure_round(
    arguments: argparse.Namespace, name: str, views: list[ImageView]
) -> tuple[float, float, float, float]:
    """The rates of new bare processes, of a new pool and of a new DataLoader in their second pass, and the ratio of the
    processor times of the first two."""
    environment = os.environ | ENVIRONMENT
    processes = [
        subprocess.Popen(
            [sys.executable, *sys.argv, "--bare", str(number)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        for number in range(arguments.workers)
    ]
    with closing(DecodePool(arguments.workers)) as pool:
        groups = [p.pid for p in processes], [os.getpid(), *(w.process.pid for w in pool.workers)]
        for _ in range(2):
            before = [processor_seconds(pids) for pids in groups]
            bare = bare_rate(processes, name, len(views))
            pooled = pool_rate(pool, views, arguments.batch_size, arguments.ahead)
            used = [processor_seconds(pids) - start for pids, start in zip(groups, before, strict=True)]
    for process in processes:
        process.communicate()
    return bare, pooled, loader_rate(views, arguments), used[0] / used[1]


def measure(arguments: argparse.Namespace) -> tuple[list[str], float]:
    heads = f"{'':<12} {'images':>6} {'bare/s':>7} {'pool/s':>7} {'loader/s':>8} {'ratio':>6} {'loader':>6} {'cpu':>6}"
    lines, worst = [f"{heads}  all rounds"], np.inf
    for name, key in KEYS.items():
        views = views_of(arguments.folder, arguments.size, key)
        rates = []
        for number in range(arguments.rounds):
            os.environ["PADDING"] = "x" * (600 + 16 * number)
            rates.append(measure_round(arguments, name, views))
        ratio, of_loader = (statistics.median(row[column] / row[0] for row in rates) for column in (1, 2))
        worst = min(worst, ratio)
        bare, pooled, loader, processor = (statistics.median(column) for column in zip(*rates, strict=True))
        each = " ".join(f"{row[1] / row[0]:.2f}" for row in rates)
        told = f"{bare:>7.0f} {pooled:>7.0f} {loader:>8.0f} {ratio:>6.3f} {of_loader:>6.3f} {processor:>6.3f}"
        lines.append(f"{name:<12} {len(views):>6} {told}  {each}")
        print("\n".join(lines[-1 if len(lines) > 2 else 0 :]), flush=True)
    starts = [start_seconds(arguments.workers, views[0]) for _ in range(5)]
    lines.append(f"from nothing to the first image: {statistics.median(starts):.2f} s")
    return lines, worst


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="images, in any folders below this one")
    parser.add_argument("--size", type=int, default=224)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--ahead", type=int, default=4, help="batches on the way beside the one waited for")
    parser.add_argument("--rounds", type=int, default=24)
    parser.add_argument("--out", type=Path, help="also write the table into this file")
    parser.add_argument("--bare", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.bare is not None:
        serve_bare(arguments)
        return
    lines, worst = measure(arguments)
    lines.append(
        f"limit: {LIMIT}; {arguments.workers} workers on {os.cpu_count()} cores, batches of {arguments.batch_size}, "
        f"size {arguments.size}, {arguments.rounds} rounds, {platform.machine()}, Python {platform.python_version()}, "
        f"numpy {np.__version__}, Pillow {PIL.__version__}, libjpeg-turbo {features.version('libjpeg_turbo')}"
    )
    lines.append("command: python benchmarks/decode.py FOLDER")
    print("\n".join(lines[-3:]))
    if arguments.out is not None:
        arguments.out.write_text("\n".join(lines) + "\n")
    if worst < LIMIT:
        sys.exit(1)


if __name__ == "__main__":
    main()
