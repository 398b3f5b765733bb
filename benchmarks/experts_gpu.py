"""How fast networks whose predictions are mixed train on one GPU: side by side, as they do, and one after the other.

    PYTHONPATH=src python benchmarks/experts_gpu.py [--only vggpp]

Steps in bfloat16, recorded, not compiled, on random images; medians of rounds in turn. Two of a kind are given as
different models, so that no stack is made of them.
"""

import argparse
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

import prequential as pq
from prequential.data.sequence import ArraySequence
from prequential.experts.learner import MixedLearner
from prequential.learn.learning import given_inputs
from prequential.models import NamedFactory, find_factory
from prequential.runs.session import make_session

NUM_INPUTS, STEPS, ROUNDS = 20_000, 48, 7
SO_FAR: Any = pq.ReplayStreams(num_streams=20, batch_size=64)
DIGITS: Any = pq.AllInputs(
    method=pq.ReplayStreams(num_streams=20, batch_size=32), beside=7, strong_views=("affine:2", "cutout:8")
)
CASES: dict[str, tuple[Sequence[str], Any, tuple[int, ...], int]] = {
    "vggpp": (["vggpp"] * 3, SO_FAR, (3, 32, 32), 64),
    "vggpp and resnets": (["vggpp", "resnet18-ws", "resnet18-ws"], SO_FAR, (3, 32, 32), 64),
    "smallconv, inputs beside": (["smallconv"] * 4, DIGITS, (1, 28, 28), 32),
}


def random_data(shape: tuple[int, ...]) -> ArraySequence:
    random = np.random.default_rng(0)
    images = random.integers(0, 256, (NUM_INPUTS, *shape), dtype=np.uint8)
    return pq.from_arrays(images, random.integers(0, 10, NUM_INPUTS), num_classes=10)


def learner_of(names: Sequence[str], method: Any, data: ArraySequence) -> MixedLearner:
    """Of networks each of which is trained by itself."""
    experts = []
    for seed, name in enumerate(names):
        factory = NamedFactory(find_factory(name))
        factory.name = name
        experts.append(pq.Expert(factory, seed=seed))
    execution = pq.Execution(compiled=False)
    recipe = pq.Recipe(augment=("shift:2",))
    learner = make_session(pq.Experts(experts), data, method, [recipe], [0], device="cuda", execution=execution).learner
    assert isinstance(learner, MixedLearner)
    return learner


def seconds(block: Callable[[], object]) -> float:
    torch.cuda.synchronize()
    begin = time.perf_counter()
    block()
    torch.cuda.synchronize()
    return time.perf_counter() - begin


def measure(name: str) -> None:
    names, method, shape, batch_size = CASES[name]
    learner = learner_of(names, method, random_data(shape))
    learner.probe(batch_size)
    size = batch_size * (1 + getattr(method, "beside", 0))
    batches = np.random.default_rng(1).integers(0, NUM_INPUTS, (STEPS, size))
    labels = torch.randint(0, 10, (STEPS, batch_size), device="cuda")

    def train(each: Any) -> None:
        if size == batch_size:
            each.train_steps(batches, labels, 0)
        else:
            given_inputs(each).train_beside_steps(batches, labels, 0)

    def in_turn() -> None:
        for each in learner.members:
            train(each)

    ways: dict[str, Callable[[], None]] = {"side by side": lambda: train(learner), "in turn": in_turn}
    found: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(ROUNDS + 1):
        for way, block in ways.items():
            found[way].append(seconds(block) / STEPS)
    each = {way: statistics.median(times[1:]) for way, times in found.items()}  # the first records
    told = "  ".join(f"{way} {1e6 * time_:7,.0f} µs" for way, time_ in each.items())
    print(f"{name:<26}{len(names)} members  {told}  {each['in turn'] / each['side by side']:.2f} ×", flush=True)
    if learner.fallback:
        print(f"    {learner.fallback}", flush=True)
    learner.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", default=list(CASES), choices=list(CASES), metavar="CASE")
    flags = parser.parse_args()
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}; microseconds a step of all members")
    for name in flags.only:
        measure(name)


if __name__ == "__main__":
    main()
