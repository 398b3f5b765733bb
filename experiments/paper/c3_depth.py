"""C.3: depth. The MLP with one to three hidden layers on MNIST, VGG++ with 11 to 19 layers on CIFAR-100.

10,000 labels, three seeds; K = 25 for the MLP and 50 for VGG++. With --small: the MLPs, 4,096 labels, K = 8.
With --narrow: VGG++ of an eighth of its width, 4,096 labels, K = 12.
"""

from itertools import pairwise
from pathlib import Path

from findings import by_seed, difference, draw_regret, mean_of, table
from jobs import NARROW, NARROW_PASSES, SEEDS, USUAL, Job, Result, Scale, main, of_the_paper

import prequential as pq

MLPS, VGGS = ("mlp1", "mlp2", "mlp3"), ("vggpp-11", "vggpp-13", "vggpp", "vggpp-19")


def plan(scale: Scale, done: list[Result]) -> list[Job]:
    small = scale is Scale.SMALL
    jobs = []
    narrow = scale is Scale.NARROW
    for model in MLPS if small else VGGS if narrow else (*MLPS, *VGGS):
        mnist = model in MLPS
        for seed in SEEDS:
            changes = {"learning_rate": 1e-3, "eps": 1e-4} if mnist else {"ema_step_size": 0.03}
            passes = 8 if small else NARROW_PASSES if narrow else 25 if mnist else 50
            method = pq.ReplayStreams(num_streams=passes, batch_size=32 if mnist or narrow else 64)
            data = "mnist" if mnist else "cifar100"
            jobs.append(
                Job(
                    labels={"model": model, "seed": seed}, data=data, model=model,
                    length=10_000 if scale is Scale.FULL else 4096, width=NARROW["width"] if narrow else 1.0,
                    method=method, recipes=[USUAL if small else of_the_paper(data, **changes)], seed=seed,
                )
            )  # fmt: skip
    return jobs


def tell(done: list[Result], picture: Path) -> None:
    import matplotlib.pyplot as plt

    models = list(dict.fromkeys(r["model"] for r in done))
    table({"model": model, "nats": mean_of(by_seed(done, model=model))} for model in models)
    families = [family for family in (MLPS, VGGS) if set(family) & set(models)]
    for family in families:
        for shallow, deep in pairwise(family):
            gap = difference(by_seed(done, model=deep), by_seed(done, model=shallow))
            print(f"{shallow} is {gap} than {deep}: {gap.verdict()}")
    figure, axes = plt.subplots(1, max(len(families), 1), figsize=(5 * max(len(families), 1), 3.6), squeeze=False)
    for ax, family in zip(axes[0], families, strict=True):
        draw_regret(ax, done, {"model": family[-1]}, {model: {"model": model} for model in family})
    figure.tight_layout()
    figure.savefig(picture, dpi=120)


if __name__ == "__main__":
    main(__file__, __doc__, plan, tell, scales=tuple(Scale))
