"""How many images several programs train on at once on one GPU: `python benchmarks/sharing.py --programs 3`.

Each is a process that replays recorded steps of VGG++ in bfloat16, batches of 128, by torch alone. With --mps they
share the GPU by CUDA's multi-process service; without it they take turns.
"""

import argparse
import os
import subprocess
import sys
import time
from contextlib import nullcontext
from importlib import import_module
from pathlib import Path

import torch
from torch.nn import functional as F

from prequential.models import find_factory

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "experiments"))

BATCH_SIZE, SECONDS, BETWEEN_LOOKS = 128, 5.0, 50
SECONDS_TO_BEGIN = 30.0


def images_per_second(name: str, begin: float) -> float:
    """Of this process, from a moment on at which all of them are ready."""
    network = find_factory(name)((3, 32, 32), 100).cuda().to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    images = torch.randn(BATCH_SIZE, 3, 32, 32, device="cuda").to(memory_format=torch.channels_last)
    labels = torch.randint(0, 100, (BATCH_SIZE,), device="cuda")
    optimizer = torch.optim.AdamW(network.parameters(), fused=True, capturable=True)
    torch.backends.cudnn.benchmark = True

    def step() -> None:
        with torch.autocast("cuda", torch.bfloat16, cache_enabled=False):
            loss = F.cross_entropy(network(images), labels)
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        optimizer.zero_grad(set_to_none=False)

    with torch.cuda.stream(torch.cuda.Stream()):  # type: ignore[no-untyped-call]
        for _ in range(5):
            step()
    torch.cuda.synchronize()
    recording = torch.cuda.CUDAGraph()
    with torch.cuda.graph(recording):
        step()
    if time.time() > begin:
        sys.exit("this program was not ready when the others began, so their sum says nothing: try again")
    while time.time() < begin:
        time.sleep(0.01)
    since, num_steps = time.perf_counter(), 0
    while time.perf_counter() < since + SECONDS:
        for _ in range(BETWEEN_LOOKS):
            recording.replay()
        torch.cuda.synchronize()
        num_steps += BETWEEN_LOOKS
    return num_steps * BATCH_SIZE / (time.perf_counter() - since)


def together(name: str, programs: int, mps: bool) -> list[float]:
    """Of each of several processes."""
    with import_module("side_by_side").shared_gpu() if mps else nullcontext({}) as variables:
        command = [sys.executable, __file__, "--model", name, "--begin", str(time.time() + SECONDS_TO_BEGIN)]
        processes = [
            subprocess.Popen(command, env=os.environ | variables, stdout=subprocess.PIPE, text=True)
            for _ in range(programs)
        ]
        told = [process.communicate()[0] for process in processes]
    if any(process.returncode for process in processes):
        sys.exit("a program failed")
    return [float(each) for each in told]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="vggpp")
    parser.add_argument("--programs", type=int, default=3)
    parser.add_argument("--mps", action="store_true")
    parser.add_argument("--begin", type=float, help=argparse.SUPPRESS)
    flags = parser.parse_args()
    if flags.begin is not None:
        print(images_per_second(flags.model, flags.begin))
        return
    each = together(flags.model, flags.programs, flags.mps)
    how = "sharing the GPU" if flags.mps else "taking turns"
    print(
        f"{flags.model}, {flags.programs} programs, {how}: {sum(each):,.0f} images/s in all",
        *map("{:,.0f}".format, each),
    )


if __name__ == "__main__":
    main()
