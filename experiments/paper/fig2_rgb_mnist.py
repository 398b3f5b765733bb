"""Fig. 1–2 and C.1: which channels does the label need? RGB-MNIST, whose label is that of the red digit.

LeNet, MLP and MnistNet see R, RG or RGB; 100,000 labels; 32 draws of the paper's space for each (4 for MnistNet), by
MI/RS and by ERM. K = 30 (and 30 epochs) throughout, so that draws can be stacked. The claim: the codelength picks R,
the held-out loss of ERM cannot. With --small: K = 8, 4,096 labels, four draws, three seeds, MnistNet at ¼ of its width.
"""

import math
import statistics
from pathlib import Path

from findings import by_seed, draw_regret, mean_of, table
from jobs import SEEDS, Job, Result, Scale, drawn, main

import prequential as pq

CHANNELS = ("R", "RG", "RGB")
MODELS = {"lenet": 32, "mlp2": 32, "mnistnet": 4}
SMALL_WIDTHS = {"lenet": 1.0, "mlp2": 1.0, "mnistnet": 0.25}


def plan(scale: Scale, done: list[Result]) -> list[Job]:
    small = scale is Scale.SMALL
    jobs = []
    passes = 8 if small else 30
    for model, num in dict.fromkeys(MODELS, 4).items() if small else MODELS.items():
        for method in (pq.ReplayStreams(num_streams=passes), pq.FullDataset(epochs=passes)):
            for seed in SEEDS if small else (0,):
                for channels in CHANNELS:
                    labels = {"model": model, "method": method.name, "channels": channels, "seed": seed}
                    recipes = [drawn("mnist", number) for number in range(num)]
                    jobs.append(
                        Job(
                            labels=labels, data=f"rgb-mnist:{channels}", length=4096 if small else None, model=model,
                            method=method, recipes=recipes, seed=seed, width=SMALL_WIDTHS[model] if small else 1.0,
                        )
                    )  # fmt: skip
    return jobs


def tell(done: list[Result], picture: Path) -> None:
    import matplotlib.pyplot as plt

    models = list(dict.fromkeys(r["model"] for r in done))
    rows = []
    for model in models:
        for channels in CHANNELS:
            erm = [
                r["heldout"]["loss"]
                for r in done
                if (r["model"], r["method"], r["channels"]) == (model, "erm", channels)
            ]
            code = by_seed(done, model=model, method="mi-rs", channels=channels)
            rows.append(
                {
                    "model": model, "channels": channels, "nats, the best draw": mean_of(code),
                    "ERM, least held-out loss": f"{min(erm):.4f}" if erm else "–",
                }
            )  # fmt: skip
        by_draw = {c: by_draw_of(done, model, c) for c in CHANNELS}
        for channels in CHANNELS[1:]:
            print(f"{model}: {channels} against R: {told_by_draw(by_draw['R'], by_draw[channels])}")
    table(rows)
    if not models:
        return
    figure, axes = plt.subplots(1, len(models), figsize=(4.5 * len(models), 3.4), squeeze=False)
    for ax, model in zip(axes[0], models, strict=True):
        coded = {"model": model, "method": "mi-rs"}
        draw_regret(ax, done, {**coded, "channels": "R"}, {c: {**coded, "channels": c} for c in CHANNELS[1:]})
        ax.set_title(model)
    figure.tight_layout()
    figure.savefig(picture, dpi=120)


def told_by_draw(red: dict[int, float], more: dict[int, float]) -> str:
    """Draws that both have, some of which learn nothing at all: so the median, and how often R is shorter."""
    gaps = [more[draw] - red[draw] for draw in sorted(set(red) & set(more))]
    if not gaps:
        return "nothing yet"
    longer = sum(gap > 0 for gap in gaps)
    chance = sum(math.comb(len(gaps), k) for k in range(longer, len(gaps) + 1)) / 2 ** len(gaps)
    verdict = "holds" if chance < 0.025 else "not seen at this scale"
    return (
        f"{longer} of {len(gaps)} draws longer (chance {chance:.1e}), median {statistics.median(gaps):+,.0f}: {verdict}"
    )


def by_draw_of(done: list[Result], model: str, channels: str) -> dict[int, float]:
    """The codelength of each draw: draws are paired, since all channels see the same ones."""
    asked = {"model": model, "method": "mi-rs", "channels": channels, "status": "finished"}
    lines = [r for r in done if all(r[name] == value for name, value in asked.items())]
    return {1000 * r["seed"] + r["member"]: r["nats"] for r in lines}


if __name__ == "__main__":
    main(__file__, __doc__, plan, tell)
