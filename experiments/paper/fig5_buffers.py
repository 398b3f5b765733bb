"""Fig. 5: smaller buffers hurt, reservoir sampling hurts more than FIFO, and a full buffer equals replay streams.

CIFAR-100, VGG++, 20,000 labels, K = 50, three seeds: buffers of 1,000 to 10,000 examples by FIFO and by reservoir, a
buffer that holds all, and replay streams. With --small: LeNet on MNIST, 4,096 labels, buffers of 128 to 2,048.
"""

from pathlib import Path

from findings import by_seed, difference, draw_regret, mean_of, table
from jobs import SEEDS, SMALL, USUAL, Job, Result, Scale, main, of_the_paper

import prequential as pq

CAPACITIES, SMALL_CAPACITIES = (1_000, 2_500, 5_000, 10_000), (128, 512, 2_048)


def plan(scale: Scale, done: list[Result]) -> list[Job]:
    small = scale is Scale.SMALL
    size = {"num_replays": 8} if small else {"num_replays": 50, "batch_size": 64}
    rest = {name: value for name, value in size.items() if name != "num_replays"}
    methods: dict[tuple[str, int | None], object] = {
        ("fifo", None): pq.ReplayBuffer(**size),
        ("streams", None): pq.ReplayStreams(num_streams=size["num_replays"], **rest),
    }
    for capacity in SMALL_CAPACITIES if small else CAPACITIES:
        for replacement in ("fifo", "reservoir"):
            methods[replacement, capacity] = pq.ReplayBuffer(capacity=capacity, replacement=replacement, **size)
    place = SMALL if small else {"data": "cifar100", "length": 20_000, "model": "vggpp"}
    recipe = USUAL if small else of_the_paper("cifar100", ema_step_size=0.03)
    return [
        Job(
            labels={"kept": kept, "capacity": capacity, "seed": seed}, **place, method=method, recipes=[recipe],
            seed=seed,
        )
        for (kept, capacity), method in methods.items()
        for seed in SEEDS
    ]  # fmt: skip


def tell(done: list[Result], picture: Path) -> None:
    import matplotlib.pyplot as plt

    kinds = sorted({(r["kept"], r["capacity"]) for r in done}, key=lambda k: (k[0], k[1] or 1e9))
    full = by_seed(done, kept="fifo", capacity=None)
    table({"kept": k, "capacity": c or "all", "nats": mean_of(by_seed(done, kept=k, capacity=c))} for k, c in kinds)
    for kept, capacity in kinds:
        if capacity is not None:
            gap = difference(full, by_seed(done, kept=kept, capacity=capacity))
            print(f"{kept} of {capacity:,} is {gap} than one that holds all: {gap.verdict()}")
    for capacity in sorted({c for _, c in kinds if c}):
        fifo, reservoir = (by_seed(done, kept=kept, capacity=capacity) for kept in ("fifo", "reservoir"))
        gap = difference(fifo, reservoir)
        print(f"{capacity:,}: reservoir is {gap} than FIFO: {gap.verdict()}")
    gap = difference(by_seed(done, kept="streams"), full)
    low, high = gap.interval
    verdict = "no difference seen, so it holds" if low < 0 < high else "differs"
    print(f"a full buffer is {gap} than streams: {verdict if gap.num_seeds >= 3 else 'not shown'}")
    figure, ax = plt.subplots(figsize=(5.5, 3.6))
    others = {f"{k}, {c or 'all'}": {"kept": k, "capacity": c} for k, c in kinds}
    draw_regret(ax, done, {"kept": "streams"}, others)
    figure.tight_layout()
    figure.savefig(picture, dpi=120)


if __name__ == "__main__":
    main(__file__, __doc__, plan, tell)
