"""C.6: which ages are replayed how often. On i.i.d. data flat laws are best.

CIFAR-100, VGG++, 10,000 labels, K = 50, three seeds: uniform, and exponential and Pareto at the same five scales. The
best of five costs ln 5 nats to name, which is charged. With --small: LeNet on MNIST, 4,096 labels, K = 8.
"""

import math
from pathlib import Path

from findings import by_seed, difference, draw_regret, mean_of, table
from jobs import SEEDS, SMALL, USUAL, Job, Result, Scale, main, of_the_paper

import prequential as pq

SCALES = (100, 300, 1_000, 3_000, 10_000)
LAWS = {"exponential": pq.Exponential, "pareto": pq.Pareto}


def plan(scale: Scale, done: list[Result]) -> list[Job]:
    small = scale is Scale.SMALL
    place = SMALL if small else {"data": "cifar100", "length": 10_000, "model": "vggpp"}
    recipe = USUAL if small else of_the_paper("cifar100", ema_step_size=0.03)
    laws: dict[tuple[str, int | None], object] = {("uniform", None): pq.Uniform()}
    laws |= {(name, scale): law(float(scale)) for name, law in LAWS.items() for scale in SCALES}
    size = {"num_streams": 8} if small else {"num_streams": 50, "batch_size": 64}
    return [
        Job(
            labels={"law": name, "scale": scale, "seed": seed}, **place, recipes=[recipe], seed=seed,
            method=pq.ReplayStreams(age_law=law, **size),
        )
        for (name, scale), law in laws.items()
        for seed in SEEDS
    ]  # fmt: skip


def tell(done: list[Result], picture: Path) -> None:
    import matplotlib.pyplot as plt

    kinds = list(dict.fromkeys((r["law"], r["scale"]) for r in done))
    table(
        {"law": law, "scale": scale or "–", "nats": mean_of(by_seed(done, law=law, scale=scale))}
        for law, scale in kinds
    )
    flat = by_seed(done, law="uniform")
    for law in LAWS:
        tried = {scale: by_seed(done, law=law, scale=scale) for scale in SCALES}
        tried = {scale: found for scale, found in tried.items() if found}
        if tried:
            best = min(tried, key=lambda scale: sum(tried[scale].values()) / len(tried[scale]))
            charged = {seed: nats + math.log(5) for seed, nats in tried[best].items()}
            gap = difference(flat, charged)
            print(f"{law} at its best scale ({best:,}, ln 5 charged) is {gap} than uniform: {gap.verdict()}")
            steep = difference(flat, tried[min(tried)])
            print(f"  at the steepest ({min(tried):,}) {steep}: {steep.verdict()}")
    figure, ax = plt.subplots(figsize=(5.5, 3.6))
    draw_regret(
        ax, done, {"law": "uniform"}, {f"{law}, {scale}": {"law": law, "scale": scale} for law, scale in kinds if scale}
    )
    figure.tight_layout()
    figure.savefig(picture, dpi=120)


if __name__ == "__main__":
    main(__file__, __doc__, plan, tell)
