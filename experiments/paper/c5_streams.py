"""C.5: the number of replay streams. Too many can hurt.

CIFAR-100, VGG++, 10,000 labels, K from 5 to 200, three seeds. With --small: LeNet on MNIST, 4,096 labels, K up to 32.
"""

from itertools import pairwise
from pathlib import Path

from findings import by_seed, difference, draw_regret, mean_of, table
from jobs import SEEDS, SMALL, USUAL, Job, Result, Scale, main, of_the_paper

import prequential as pq

NUMBERS, SMALL_NUMBERS = (5, 10, 25, 50, 100, 200), (1, 2, 4, 8, 16, 32)


def plan(scale: Scale, done: list[Result]) -> list[Job]:
    small = scale is Scale.SMALL
    place = SMALL if small else {"data": "cifar100", "length": 10_000, "model": "vggpp"}
    recipe = USUAL if small else of_the_paper("cifar100", ema_step_size=0.03)
    return [
        Job(
            labels={"streams": number, "seed": seed}, **place, recipes=[recipe], seed=seed,
            method=pq.ReplayStreams(num_streams=number, batch_size=32 if small else 64),
        )
        for number in (SMALL_NUMBERS if small else NUMBERS)
        for seed in SEEDS
    ]  # fmt: skip


def tell(done: list[Result], picture: Path) -> None:
    import matplotlib.pyplot as plt

    numbers = sorted({r["streams"] for r in done})
    table(
        {
            "streams": number, "nats": mean_of(by_seed(done, streams=number)),
            "uncalibrated": mean_of(by_seed(done, "uncalibrated_nats", streams=number)),
            "held-out error": mean_of(by_seed(done, "heldout.error_rate", streams=number), 3),
        }
        for number in numbers
    )  # fmt: skip
    for few, many in pairwise(numbers):
        gap = difference(by_seed(done, streams=few), by_seed(done, streams=many))
        word = "too many hurt: " + gap.verdict() if gap.mean > 0 else "more is better"
        print(f"{many} streams are {gap} than {few}: {word}")
    figure, ax = plt.subplots(figsize=(5.5, 3.6))
    draw_regret(ax, done, {"streams": numbers[len(numbers) // 2]}, {f"K = {n}": {"streams": n} for n in numbers})
    figure.tight_layout()
    figure.savefig(picture, dpi=120)


if __name__ == "__main__":
    main(__file__, __doc__, plan, tell)
