"""How fast a GPU learns from all inputs: steps of a study and steps beside labelled inputs, eager, recorded, compiled.

    PYTHONPATH=src python benchmarks/all_inputs_gpu.py [--seconds 90] [--profile]

ResNet-18 in bfloat16 on random images of CIFAR-10's shape: speed does not depend on what they show. An input of a study
is seen in two views by two networks. A probe in plain torch, its networks compiled, studied 31,300 inputs a second on
an H200. What is compiled comes last, one by one, as long as there is time for it.
"""

import argparse
import gc
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

import prequential as pq
from prequential.data.sequence import ArraySequence
from prequential.learn.all_inputs import FromAllInputs
from prequential.learn.graph_all_inputs import GraphFromAllInputs
from profile_step import by_class

NUM_INPUTS, STEPS, ROUNDS = 50_000, 16, 3
PROBE = 31_300
RECIPE = pq.Recipe(augment=("shift:3", "flip", "cutout:8"), eps=1e-3)
GIVEN = pq.AllInputs(
    method=pq.ReplayStreams(num_streams=20, batch_size=128),
    study_steps=10_000,
    study_views=("resized-crop:0.2", "flip", "jitter:0.4", "grey:0.2"),
    weak_views=("shift:3", "flip"),
    strong_views=("affine:2", "flip", "jitter:0.5", "cutout:16"),
    threshold_kind="relative",
    body_rate=0.3,
)
STUDIES, BESIDE = (512, 1024), (128, 384)
KINDS: dict[str, tuple[type[FromAllInputs], dict[str, Any]]] = {
    "eager": (FromAllInputs, {}),
    "recorded": (GraphFromAllInputs, {}),
    "compiled": (GraphFromAllInputs, {"compiled": True}),
}


def random_data() -> ArraySequence:
    random = np.random.default_rng(0)
    images = random.integers(0, 256, (NUM_INPUTS, 3, 32, 32), dtype=np.uint8)
    return pq.from_arrays(images, random.integers(0, 10, NUM_INPUTS), num_classes=10)


def block_of(learner: FromAllInputs, work: str, size: int) -> Callable[[], None]:
    """Several steps."""
    batches = np.random.default_rng(1).integers(0, NUM_INPUTS, (STEPS, size))
    if work == "study":
        return lambda: learner.study_steps(batches, 0)
    labels = torch.randint(0, 10, (STEPS, BESIDE[0]), device=learner.device)
    return lambda: learner.train_beside_steps(batches, labels, 0)


def seconds_per_step(block: Callable[[], None]) -> float:
    """The fastest of a few rounds, on the clock of whoever waits for it."""
    found = []
    for _ in range(ROUNDS):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        block()
        torch.cuda.synchronize()
        found.append((time.perf_counter() - begin) / STEPS)
    return min(found)


def measure(data: ArraySequence, name: str, work: str, size: int, *, profiled: bool) -> None:
    kind, settings = KINDS[name]
    torch.cuda.reset_peak_memory_stats()
    begin = time.perf_counter()
    learner = kind("resnet18", data, RECIPE, given=GIVEN, seed=0, device="cuda", precision="bf16", **settings)
    learner.probe(8)
    block = block_of(learner, work, size)
    block()
    torch.cuda.synchronize()
    ready = time.perf_counter() - begin
    step = seconds_per_step(block)
    what = f"study, batch {size}" if work == "study" else f"{BESIDE[0]} labelled + {BESIDE[1]} beside"
    told = f"{what:<26}{name:<10}{step * 1e3:7.2f} ms  {size / step:9,.0f} inputs/s"
    told += f" ({size / step / PROBE:4.2f} of the probe)" if work == "study" else " " * 20
    print(f"{told}  {torch.cuda.max_memory_allocated() / 2**30:5.1f} GiB  ready after {ready:.0f} s", flush=True)
    if learner.fallback:
        print(f"    {learner.fallback}", flush=True)
    if profiled:
        found = sorted(by_class(block, STEPS).items(), key=lambda item: -item[1])
        print("    " + ", ".join(f"{part} {microseconds / 1e3:.2f} ms" for part, microseconds in found), flush=True)
    learner.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=90.0, help="nothing more is compiled after that many")
    parser.add_argument("--profile", action="store_true", help="tell where the time of recorded steps goes")
    options = parser.parse_args()
    begin, data = time.perf_counter(), random_data()
    print(torch.cuda.get_device_name(), torch.__version__, flush=True)
    works = [("study", STUDIES[0]), ("beside", sum(BESIDE)), ("study", STUDIES[1])]
    for name in KINDS:
        for work, size in works:
            spent = time.perf_counter() - begin
            if name == "compiled" and spent > options.seconds * 2 / 3:
                print(f"{work} of {size} not compiled: {spent:.0f} s have passed", flush=True)
                continue
            measure(data, name, work, size, profiled=options.profile and name != "eager")
            gc.collect()
            torch.cuda.empty_cache()
    print(f"{time.perf_counter() - begin:.0f} s in all")


if __name__ == "__main__":
    main()
