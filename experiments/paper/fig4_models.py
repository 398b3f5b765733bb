"""Fig. 4: models and widths. Wider and deeper is better from the start.

CIFAR-100, 20,000 labels, K = 25: ResNet-18, 34 and 50, DeiT-S, and VGG++ at ¼, ½, 1 and 2 times its width; three seeds.
With --small: LeNet on MNIST at ¼, ½, 1 and 2 times its width, 4,096 labels. With --narrow: VGG++ at 1/16 to ½ and the
ResNets at ⅛ of their width, 4,096 labels, K = 8.
"""

from itertools import pairwise
from pathlib import Path

from findings import by_seed, difference, draw_regret, mean_of, table
from jobs import NARROW, SEEDS, SMALL, USUAL, Job, Result, Scale, main, of_the_paper

import prequential as pq

WIDTHS, NARROW_WIDTHS = (0.25, 0.5, 1.0, 2.0), (0.0625, 0.125, 0.25, 0.5)
MODELS = ("resnet18", "resnet34", "resnet50", "deit-s")


def plan(scale: Scale, done: list[Result]) -> list[Job]:
    small = scale is Scale.SMALL
    narrow = scale is Scale.NARROW
    wanted = [("lenet" if small else "vggpp", width) for width in (NARROW_WIDTHS if narrow else WIDTHS)]
    wanted += (
        []
        if small
        else [(model, NARROW["width"]) for model in MODELS[:3]]
        if narrow
        else [(model, 1.0) for model in MODELS]
    )
    jobs = []
    for model, width in wanted:
        for seed in SEEDS:
            labels = {"model": model, "width": width, "seed": seed}
            if small:
                method, recipe = pq.ReplayStreams(), USUAL
                jobs.append(Job(labels=labels, **SMALL, method=method, recipes=[recipe], seed=seed, width=width))
            else:
                method = pq.ReplayStreams(num_streams=8 if narrow else 25, batch_size=32 if narrow else 64)
                recipe = of_the_paper("cifar100", ema_step_size=0.03)
                if model == "deit-s":
                    recipe = of_the_paper("cifar100", ema_step_size=0.03, learning_rate=3e-4, eps=1e-8)
                jobs.append(
                    Job(
                        labels=labels,
                        data="cifar100",
                        length=NARROW["length"] if narrow else 20_000,
                        model=model,
                        width=width,
                        method=method,
                        recipes=[recipe],
                        seed=seed,
                    )
                )
    return jobs


def tell(done: list[Result], picture: Path) -> None:
    import matplotlib.pyplot as plt

    kinds = list(dict.fromkeys((r["model"], r["width"]) for r in done))
    table(
        {
            "model": model, "width": width, "nats": mean_of(by_seed(done, model=model, width=width)),
            "held-out error": mean_of(by_seed(done, "heldout.error_rate", model=model, width=width), 3),
        }
        for model, width in kinds
    )  # fmt: skip
    scaled = next(iter(kinds), (None,))[0]
    widths = [width for model, width in kinds if model == scaled]
    for narrow, wide in pairwise(widths):
        gap = difference(by_seed(done, model=scaled, width=wide), by_seed(done, model=scaled, width=narrow))
        print(f"{scaled}: {narrow} times the width is {gap} than {wide} times: {gap.verdict()}")
    early = {k: {s: early_nats(done, *k, s) for s in SEEDS if early_nats(done, *k, s) is not None} for k in kinds}
    for narrow, wide in pairwise(widths):
        gap = difference(early.get((scaled, wide), {}), early.get((scaled, narrow), {}))
        print(f"  from the start (the first tenth of the labels): {narrow} against {wide}: {gap}: {gap.verdict()}")
    others = [model for model in MODELS if any(r["model"] == model for r in done)]
    for shallow, deep in pairwise(model for model in others if model.startswith("resnet")):
        gap = difference(by_seed(done, model=deep), by_seed(done, model=shallow))
        print(f"{shallow} is {gap} than {deep}: {gap.verdict()}")
    figure, axes = plt.subplots(1, 2 if others else 1, figsize=(10 if others else 5, 3.6), squeeze=False)
    scales = {f"{w} ×": {"model": scaled, "width": w} for w in widths}
    draw_regret(axes[0, -1], done, {"model": scaled, "width": widths[-2] if len(widths) > 1 else None}, scales)
    if others:
        draw_regret(axes[0, 0], done, {"model": "resnet50"}, {model: {"model": model} for model in others})
    figure.tight_layout()
    figure.savefig(picture, dpi=120)


def early_nats(done: list[Result], model: str, width: float, seed: int) -> float | None:
    """The codelength of about the first tenth of the labels."""
    for r in done:
        if (r["model"], r["width"], r["seed"]) == (model, width, seed) and r["status"] == "finished":
            return next(nats for position, nats in r["curve"] if position >= r["curve"][-1][0] / 10)
    return None


if __name__ == "__main__":
    main(__file__, __doc__, plan, tell, scales=tuple(Scale))
