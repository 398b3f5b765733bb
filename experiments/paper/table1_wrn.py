"""Table 1, WRN-28-10 on CIFAR-10 and CIFAR-100 by MI/RS (the paper: worse than VGG++ on CIFAR-10, better on CIFAR-100).

Three recipes, K = 20, 20,000 labels; the best to the end. It is compared with VGG++ of table1_cifar.py. With
--narrow: WRN-28-1, which is a tenth of the width, beside VGG++ of an eighth, 4,096 labels, K = 8, for each the best
of the three recipes on seed 0, three seeds.
"""

from pathlib import Path
from typing import Any

from findings import best_of, by_seed, difference, draw_regret, mean_of, table
from jobs import NARROW, SEEDS, Job, Result, Scale, main, of_the_paper

import prequential as pq

RECIPES: dict[str, dict[str, float]] = {
    "EMA 0.03": {"ema_step_size": 0.03},
    "EMA 0.03, decay 0.03": {"ema_step_size": 0.03, "weight_decay": 0.03},
    "EMA 0.03, larger steps": {"ema_step_size": 0.03, "learning_rate": 3e-3, "eps": 1e-3},
}
"""The last was added when the others, whose rate had been found with VGG++, were known: networks with residual
connections want a higher one (experiments/tuning.txt)."""
PAPER = {"cifar10": "22,900 nats, 7,500 errors, 0.23, 7.4 %", "cifar100": "87,000 nats, 22,300 errors, 1.10, 30.3 %"}
NARROW_WIDTHS = {"vggpp": NARROW["width"], "wrn-28-10": 0.1}


def job(data: str, recipe: str, length: int, seed: int, passes: int, batch_size: int, **others: Any) -> Job:
    labels = {"data": data, "recipe": recipe, "length": length, "seed": seed, **others.pop("labels", {})}
    method = pq.ReplayStreams(num_streams=passes, batch_size=batch_size)
    recipes = [of_the_paper(data, **RECIPES[recipe])]
    return Job(labels=labels, data=data, length=length, method=method, recipes=recipes, seed=seed, **others)


def plan(scale: Scale, done: list[Result]) -> list[Job]:
    if scale is Scale.NARROW:
        return narrow_plan(done)
    jobs = []
    for data in PAPER:
        tried = best_of(done, data=data, length=20_000)
        wanted = [(name, 20_000) for name in RECIPES]
        if tried and len([r for r in done if (r["data"], r["length"]) == (data, 20_000)]) == len(RECIPES):
            wanted.append((tried[0]["recipe"], 50_000))
        jobs += [job(data, name, length, 0, 20, 64, model="wrn-28-10", compiled=False) for name, length in wanted]
    return jobs


def narrow_plan(done: list[Result]) -> list[Job]:
    jobs = []
    for data in PAPER:
        for model, width in NARROW_WIDTHS.items():
            tried = [r for r in done if (r["data"], r["model"], r["seed"]) == (data, model, 0)]
            wanted = [(name, 0) for name in RECIPES]
            if len(tried) == len(RECIPES) and (best := best_of(tried)):
                wanted += [(best[0]["recipe"], seed) for seed in SEEDS[1:]]
            jobs += [
                job(data, name, NARROW["length"], seed, 8, 32, model=model, width=width, labels={"model": model})
                for name, seed in wanted
            ]
    return sorted(jobs, key=lambda each: each.seed)  # what is chosen from comes before what is chosen


def tell(done: list[Result], picture: Path) -> None:
    table(
        {
            "data": r["data"], "model": r.get("model", "wrn-28-10"), "labels": f"{r['length']:,}",
            "recipe": r["recipe"], "seed": r["seed"], "nats": f"{r['nats']:,.0f}", "errors": f"{r['errors']:,}",
            "held-out loss": f"{r['heldout']['loss']:.3f}" if r["heldout"] else "–",
            "error": f"{r['heldout']['error_rate']:.1%}" if r["heldout"] else "–",
            "FLOPs": f"{r['flops']['code']:.1e}", "the paper": PAPER[r["data"]] if r["length"] == 50_000 else "",
        }
        for r in sorted(done, key=lambda r: (r["data"], r["length"], r.get("model", ""), r["seed"], r["nats"]))
    )  # fmt: skip
    narrow = [r for r in done if "model" in r]
    if narrow:
        compare(narrow, picture)


def of_chosen(done: list[Result], data: str, model: str) -> dict[int, float]:
    """Nats with the recipe that is best on seed 0."""
    best = best_of(done, data=data, model=model, seed=0)
    return by_seed(done, data=data, model=model, recipe=best[0]["recipe"]) if best else {}


def compare(done: list[Result], picture: Path) -> None:
    """VGG++ and WRN over the same seeds."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(PAPER), figsize=(5 * len(PAPER), 3.6), squeeze=False)
    for ax, data in zip(axes[0], PAPER, strict=True):
        vgg, wrn = (of_chosen(done, data, model) for model in NARROW_WIDTHS)
        print(f"{data}: VGG++ {mean_of(vgg)} nats, WRN {mean_of(wrn)}")
        gap = difference(vgg, wrn) if data == "cifar10" else difference(wrn, vgg)
        longer, shorter = ("WRN", "VGG++") if data == "cifar10" else ("VGG++", "WRN")
        print(f"  {longer} is {gap} than {shorter}: {gap.verdict()}")
        draw_regret(ax, done, {"data": data, "model": "vggpp"}, {"WRN": {"data": data, "model": "wrn-28-10"}})
        ax.set_title(data)
    figure.tight_layout()
    figure.savefig(picture, dpi=120)


if __name__ == "__main__":
    main(__file__, __doc__, plan, tell, scales=(Scale.FULL, Scale.NARROW))
