"""Training steps of a stack of LeNets beside those of a single one.

    python benchmarks/stack.py --device cuda --members 64

MNIST, batch 32. The single model is what `run` would take: the graph engine on a GPU, the eager one on a CPU. Both take
turns, and the medians of some rounds are printed. With --profile also where a stack's time goes.
"""

import argparse
import statistics
import time
from collections.abc import Callable
from functools import partial

import numpy as np
import torch

import prequential as pq
from prequential.data.sequence import ArraySequence
from prequential.data.sources import load
from prequential.learn.execution import Execution
from prequential.learn.graph import GraphLearner
from prequential.learn.learner import Learner
from prequential.stack.learner import StackedLearner
from results import machine, table, write_section

BATCH_SIZE = 32


def seconds_per_step(run_block: Callable[[], object], num_steps: int, device: str) -> float:
    begin = time.perf_counter()
    run_block()
    if device == "cuda":
        torch.cuda.synchronize()
    return (time.perf_counter() - begin) / num_steps


def single_learner(model: str, data: ArraySequence, device: str, precision: str, *, compiled: bool) -> Learner:
    if device == "cuda":
        return GraphLearner(model, data, pq.Recipe(), seed=0, device=device, precision=precision, compiled=compiled)
    return Learner(model, data, pq.Recipe(), seed=0, precision=precision)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--model", default="lenet")
    parser.add_argument("--members", type=int, nargs="+", default=[64])
    parser.add_argument("--steps", type=int, default=64, help="training steps of one block")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--precision", choices=("auto", "fp32", "bf16"), default="auto")
    parser.add_argument("--no-compile", action="store_true", help="on a GPU: leave every kernel as it is")
    parser.add_argument("--profile", action="store_true", help="also print the operations of a block that take longest")
    parser.add_argument("--write", action="store_true", help="also write the table into RESULTS.md")
    flags = parser.parse_args()
    torch.set_num_threads(1)
    data = load("mnist")
    assert isinstance(data, ArraySequence)
    precision = Execution(engine="graph", precision=flags.precision).on(flags.device, num_steps=0).precision
    compiled = flags.device == "cuda" and not flags.no_compile
    batches = np.random.default_rng(0).integers(0, len(data), (flags.steps, BATCH_SIZE))
    labels = data.labels(batches.ravel()).view(batches.shape).to(flags.device)
    learners: dict[int, Learner | StackedLearner] = {
        0: single_learner(flags.model, data, flags.device, precision, compiled=compiled)
    }
    for members in flags.members:
        recipes = [pq.Recipe(learning_rate=rate) for rate in np.geomspace(1e-4, 3e-3, members)]
        learners[members] = StackedLearner(
            flags.model,
            data,
            recipes,
            seeds=range(members),
            device=flags.device,
            precision=precision,
            compiled=compiled,
        )
    times: dict[int, list[float]] = {members: [] for members in learners}
    for _ in range(flags.rounds + 1):
        for members, learner in learners.items():
            block = partial(learner.train_steps, batches, labels, 0)
            times[members].append(seconds_per_step(block, flags.steps, flags.device))
    medians = {members: statistics.median(each[1:]) for members, each in times.items()}
    rows = []
    for members, seconds in medians.items():
        each = seconds / max(members, 1)
        name = f"{members} stacked" if members else f"one alone ({learners[0].engine})"
        rows.append([name, f"{seconds * 1e6:,.0f} µs", f"{each * 1e6:,.1f} µs", f"{medians[0] / each:.1f} ×"])
    settings = f"{flags.model}, batch {BATCH_SIZE}, {precision}, {'compiled' if compiled else 'not compiled'}"
    found = table(["models", "training step", "per model and step", "against one alone"], rows)
    print(f"{machine()}\n{settings}\n\n{found}")
    if flags.write:
        members = " ".join(map(str, flags.members))
        command = f"python benchmarks/stack.py --device {flags.device} --members {members} --write"
        write_section(f"A stack on a {flags.device.replace('cuda', 'gpu').upper()}", command, f"{settings}\n\n{found}")
    if flags.profile:
        print(profile(partial(learners[flags.members[-1]].train_steps, batches, labels, 0)))


def profile(block: Callable[[], object]) -> str:
    with torch.profiler.profile() as profiler:
        block()
        if torch.cuda.is_available():
            torch.cuda.synchronize()
    order = "self_cuda_time_total" if torch.cuda.is_available() else "self_cpu_time_total"
    return str(profiler.key_averages().table(sort_by=order, row_limit=25, max_name_column_width=70))


if __name__ == "__main__":
    main()
