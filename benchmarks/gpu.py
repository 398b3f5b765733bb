"""Our speed on a GPU, as ratios measured in one run. `make bench-gpu` runs this and writes RESULTS.md.

For each network the same training steps (gather, augment, forward, backward, AdamW, EMA) are done in three ways:

    plain      an eager PyTorch loop: data on the GPU, bf16 autocast, channels-last, fused AdamW, foreach EMA
    recorded   our graph engine
    compiled   our graph engine with the network compiled

The share is that of the GPU's own bf16 matrix-product rate, measured in the same run. Inputs are random numbers:
speed does not depend on them, and nothing has to be downloaded.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch.nn import functional as F

import prequential as pq
from prequential.data.sequence import ArraySequence
from prequential.learn.estimate import cost_per_example
from prequential.learn.graph import GraphLearner
from prequential.models import build
from profile_step import CLASSES, by_class
from results import RESULTS, table, write_section

DEVICE = torch.device("cuda")
ROUNDS = 5
MOST_RATIO = 1.10


@dataclass(frozen=True)
class Case:
    """A network, its inputs and its batch."""

    model: str
    input_shape: tuple[int, ...]
    batch_size: int
    augment: tuple[str, ...]
    most_us: float | None = None
    least_share: float | None = None


CASES = (
    Case("lenet", (1, 28, 28), 32, (), most_us=225),
    Case("smallconv", (1, 28, 28), 32, (), most_us=350),
    Case("vggpp", (3, 32, 32), 128, ("flip",), most_us=1900),
    Case("vggpp", (3, 32, 32), 512, ("flip",), least_share=0.28),
    Case("wrn-28-10", (3, 32, 32), 128, ("flip",), least_share=0.41),
)


def random_data(case: Case, length: int) -> ArraySequence:
    random = np.random.default_rng(0)
    images = random.integers(0, 256, (length, *case.input_shape), dtype=np.uint8)
    return pq.from_arrays(images, random.integers(0, 10, length), num_classes=10)


def matrix_product_rate() -> float:
    """FLOP/s of a large bf16 matrix product."""
    a, b = (torch.randn(8192, 8192, device=DEVICE, dtype=torch.bfloat16) for _ in range(2))
    return 2 * 8192**3 / statistics.median(seconds(lambda: a @ b, 20) for _ in range(ROUNDS))


def seconds(work: Callable[[], object], times: int) -> float:
    """Of one of `times` calls, on the GPU's clock."""
    work()
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    for _ in range(times):
        work()
    end.record()
    torch.cuda.synchronize()
    return float(begin.elapsed_time(end)) / 1000 / times


def plain_step(case: Case, recipe: pq.Recipe) -> Callable[[], object]:
    """A training step as most people would write it."""
    torch.manual_seed(0)
    model = build(case.model, case.input_shape, 10).to(DEVICE)
    model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    averaged = [p.detach().clone() for p in model.parameters()]
    optimizer = torch.optim.AdamW(model.parameters(), recipe.learning_rate, eps=recipe.eps, fused=True)
    images = torch.randint(0, 256, (50_000, *case.input_shape), dtype=torch.uint8, device=DEVICE)
    labels = torch.randint(0, 10, (50_000,), device=DEVICE)

    def step() -> None:
        batch = torch.randint(0, len(images), (case.batch_size,), device=DEVICE)
        inputs = images[batch].float().div(127.5).sub(1).contiguous(memory_format=torch.channels_last)
        if case.augment:
            inputs = torch.where(torch.rand(len(batch), 1, 1, 1, device=DEVICE) < 0.5, inputs.flip(-1), inputs)
        with torch.autocast("cuda", torch.bfloat16):
            logits = model(inputs)
        loss = F.cross_entropy(logits.float(), labels[batch], label_smoothing=recipe.label_smoothing)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        torch._foreach_lerp_(averaged, [p.detach() for p in model.parameters()], recipe.ema_step_size)

    return step


def our_block(case: Case, recipe: pq.Recipe, *, compiled: bool) -> Callable[[], object]:
    """As many training steps as the engine takes at once."""
    data = random_data(case, 20_000)
    learner = GraphLearner(case.model, data, recipe, seed=0, device=DEVICE, precision="bf16", compiled=compiled)
    learner.probe(case.batch_size)
    batches = np.random.default_rng(1).integers(0, len(data), (learner.steps_at_once, case.batch_size))
    labels = torch.randint(0, 10, batches.shape, device=DEVICE)
    return lambda: learner.train_steps(batches, labels, 0)


def measure(case: Case) -> dict[str, float]:
    """Seconds per step of each way, and FLOPs of a step."""
    recipe = pq.Recipe(augment=case.augment)
    plain = plain_step(case, recipe)
    blocks = {"recorded": our_block(case, recipe, compiled=False)}
    begin = time.perf_counter()
    blocks["compiled"] = our_block(case, recipe, compiled=True)
    blocks["compiled"]()
    found: dict[str, float] = {"compile seconds": time.perf_counter() - begin}
    times: dict[str, list[float]] = {"plain": [], "recorded": [], "compiled": []}
    for _ in range(ROUNDS):
        times["plain"].append(seconds(plain, 20))
        for name, block in blocks.items():
            times[name].append(seconds(block, 3) / GraphLearner.steps_at_once)
    cost = cost_per_example(build(case.model, case.input_shape, 10), torch.zeros(2, *case.input_shape))
    assert cost is not None
    return (
        found
        | {name: statistics.median(values) for name, values in times.items()}
        | {"flops": cost.train * case.batch_size}
    )


def whole_run(length: int) -> dict[str, float]:
    """A run of VGG++ with 50 streams, and the time its training steps alone would take."""
    case = CASES[2]
    recipe, method = pq.Recipe(augment=case.augment, eps=1e-2), pq.ReplayStreams(num_streams=50, batch_size=128)
    data = random_data(case, length)
    block = our_block(case, recipe, compiled=True)
    seen: list[tuple[int, float]] = []
    record = pq.run(
        "vggpp", data, method, recipe, seed=0, device="cuda", execution=pq.Execution(compiled=True),
        listeners=[lambda progress: seen.append((progress.position, progress.seconds))],
    )  # fmt: skip
    begun, since = next(each for each in seen if each[0] >= length // 8)  # everything is compiled by then
    num_steps = (length - begun) * 51 / case.batch_size
    alone = statistics.median(seconds(block, 3) / GraphLearner.steps_at_once for _ in range(ROUNDS))
    return {"run": (record.seconds - since) / num_steps, "steps alone": alone}


def steps_table(cases: list[Case], peak: float) -> tuple[str, list[str]]:
    """A row for each network, and the names of those that miss their limit."""
    rows, missed = [], []
    for case in cases:
        found = measure(case)
        ours = found["compiled"]
        if ours * 1e6 > (case.most_us or float("inf")) or found["flops"] / ours / peak < (case.least_share or 0):
            missed.append(f"{case.model}, batch {case.batch_size}")
        limit = f"≤ {case.most_us:g} µs" if case.most_us else f"≥ {case.least_share:.0%} of peak"
        rows.append(
            [
                f"{case.model}, batch {case.batch_size}",
                *(f"{found[name] * 1e6:,.0f} µs" for name in ("plain", "recorded", "compiled")),
                f"{found['plain'] / ours:.1f} ×",
                f"{found['flops'] / ours / 1e12:.3g}",
                f"{found['flops'] / ours / peak:.1%}",
                limit,
                f"{found['compile seconds']:.0f} s",
            ]
        )
        print(" | ".join(rows[-1]), flush=True)
    heads = ["training step", "plain", "recorded", "compiled", "plain / compiled", "TFLOP/s", "share of peak", "limit",
             "to compile"]  # fmt: skip
    return table(heads, rows), missed


def profile_table() -> str:
    """Where the time of a VGG++ step goes."""
    case, recipe = CASES[2], pq.Recipe(augment=CASES[2].augment)
    columns = {name: by_class(our_block(case, recipe, compiled=name == "compiled"), GraphLearner.steps_at_once)
               for name in ("recorded", "compiled")}  # fmt: skip
    rows = [[name, *(f"{columns[c].get(name, 0.0):,.0f} µs" for c in columns)] for name in (*CLASSES, "other")]
    rows.append(["**sum**", *(f"{sum(columns[c].values()):,.0f} µs" for c in columns)])
    return table(["VGG++, batch 128, by class of kernel", *columns], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, nargs="*", default=list(range(len(CASES))))
    parser.add_argument("--length", type=int, default=25_600, help="labels of the whole run; 0 leaves it out")
    parser.add_argument("--no-profile", action="store_true")
    parser.add_argument("--out", type=Path, help="also write the tables into this file")
    flags = parser.parse_args()
    peak = matrix_product_rate()
    print(f"matrix products: {peak / 1e12:.0f} TFLOP/s", flush=True)
    body = [f"bf16 matrix products: {peak / 1e12:.0f} TFLOP/s. Medians of {ROUNDS} rounds in turn.\n"]
    steps, missed = steps_table([CASES[i] for i in flags.cases], peak)
    body.append(steps)
    if flags.length:
        run = whole_run(flags.length)
        ratio = run["run"] / run["steps alone"]
        missed += ["whole run"] * (ratio > MOST_RATIO)
        body.append(
            f"\nWhole run (predict, calibrate, train, record) over its training steps alone, VGG++, batch 128, 50 "
            f"streams: {run['run'] * 1e6:,.0f} µs / {run['steps alone'] * 1e6:,.0f} µs = **{ratio:.3f}** "
            f"(limit {MOST_RATIO:.2f})."
        )
        print(body[-1], flush=True)
    if not flags.no_profile:
        body.append(f"\n{profile_table()}")
        print(body[-1], flush=True)
    write_section("On a GPU", "make bench-gpu", "\n".join(body))
    if flags.out is not None:
        flags.out.write_text(RESULTS.read_text())
    if missed:
        sys.exit(f"over the limit: {'; '.join(missed)}")


if __name__ == "__main__":
    main()
