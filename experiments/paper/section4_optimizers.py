"""Section 3: results generalise to RMSProp and SGD with momentum; averaging weights (EMA) shortens the code.

MNIST, LeNet, K = 30: 64 draws for each optimizer, one stack each; AdamW and RMSProp draw the learning rate from the
paper's interval, SGD from 3e-3 to 0.3. Then AdamW's draws again with the EMA switched off. As in the paper the EMA
has no warm-up. With --small: 8 draws, 4,096 labels, K = 8, three seeds.
"""

from itertools import pairwise
from pathlib import Path

import numpy as np
from findings import difference, expected_best, table
from jobs import SEEDS, SMALL, Job, Result, Scale, drawn, main

import prequential as pq

WAYS = {
    "adamw": {"optimizer": "adamw"},
    "rmsprop": {"optimizer": "rmsprop"},
    "sgd": {"optimizer": "sgd"},
    "adamw, no EMA": {"optimizer": "adamw", "ema_step_size": 1.0},
}


STEPS = (1e-3, 3e-3, 1e-2, 3e-2, 1e-1)
"""Between which draws are counted: the paper's interval in equal parts."""


def recipe_of(way: str, number: int) -> pq.Recipe:
    """A draw of the paper's space; the learning rate of SGD is moved to its own interval, 3e-3 to 0.3."""
    recipe = drawn("mnist", number, **WAYS[way])
    if way == "sgd":
        share = np.log(recipe.learning_rate / 1e-4) / np.log(30)
        recipe = drawn("mnist", number, **WAYS[way], learning_rate=3e-3 * 100**share)
    return recipe


def plan(scale: Scale, done: list[Result]) -> list[Job]:
    small = scale is Scale.SMALL
    num, streams = (8, 8) if small else (64, 30)
    return [
        Job(
            labels={"way": way, "seed": seed}, data="mnist", length=SMALL["length"] if small else None, model="lenet",
            method=pq.ReplayStreams(num_streams=streams), recipes=[recipe_of(way, i) for i in range(num)], seed=seed,
        )
        for way in WAYS
        for seed in (SEEDS if small else (0,))
    ]  # fmt: skip


def tell(done: list[Result], picture: Path) -> None:
    finished = [r for r in done if r["status"] == "finished"]
    table(
        {
            "way": way, "runs": len(nats), "the best": f"{nats[0]:,.0f}",
            "expected best of 8": f"{expected_best(nats, min(8, len(nats))):,.0f}",
            "median": f"{nats[len(nats) // 2]:,.0f}",
        }
        for way in WAYS
        if (nats := sorted(r["nats"] for r in finished if r["way"] == way))
    )  # fmt: skip
    by_draw = {way: {1000 * r["seed"] + r["member"]: r["nats"] for r in finished if r["way"] == way} for way in WAYS}
    gap = difference(by_draw["adamw"], by_draw["adamw, no EMA"])
    print(f"without EMA the code is {gap} (draws are paired): {gap.verdict()}")
    steps = {
        1000 * r["seed"] + r["member"]: r["settings"].get("ema_step_size", 0.01)
        for r in finished
        if r["way"] == "adamw"
    }
    for low, high in pairwise(STEPS):
        gaps = [by_draw["adamw, no EMA"][d] - n for d, n in by_draw["adamw"].items() if low <= steps[d] < high]
        shorter = sum(gap > 0 for gap in gaps)
        print(f"  steps of the EMA from {low} to {high}: shorter with it in {shorter} of {len(gaps)} draws")
    best = {
        way: {s: min(n for k, n in found.items() if k // 1000 == s) for s in {k // 1000 for k in found}}
        for way, found in by_draw.items()
        if found
    }
    if "adamw" in best and "adamw, no EMA" in best:
        gap = difference(best["adamw"], best["adamw, no EMA"])
        print(f"  the best draw of each seed: {gap}: {gap.verdict()}")


if __name__ == "__main__":
    main(__file__, __doc__, plan, tell)
