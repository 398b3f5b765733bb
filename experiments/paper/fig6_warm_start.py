"""Fig. 6: warm starting. CI/FS, CI/CF, CI/CF with shrink and perturb, MI/RS and ERM with as many passes each.

CIFAR-100, VGG++, 20,000 labels, 50 passes, three seeds. The claims: fine-tuning leaves a gap in held-out error below
training from scratch; shrink and perturb closes part of it. With --small: LeNet on MNIST, 4,096 labels, 8 passes.
With --narrow: VGG++ of an eighth of its width, 4,096 labels, 12 passes.
"""

from pathlib import Path

from jobs import (
    NARROW,
    NARROW_PASSES,
    SEEDS,
    SMALL,
    USUAL,
    Job,
    Result,
    Scale,
    by_seed,
    difference,
    draw_regret,
    main,
    mean_of,
    of_the_paper,
    table,
)

import prequential as pq


def plan(scale: Scale, done: list[Result]) -> list[Job]:
    passes, size = {
        Scale.SMALL: (8, {}),
        Scale.NARROW: (NARROW_PASSES, {}),
        Scale.FULL: (50, {"batch_size": 64}),
    }[scale]
    methods = {
        "ci-fs": pq.ChunksFromScratch(epochs=passes, **size),
        "ci-cf": pq.ChunksFineTuned(epochs=passes, **size),
        "ci-cf, shrink 0.4, perturb 0.1": pq.ChunksFineTuned(epochs=passes, shrink=0.4, perturb=0.1, **size),
        "ci-cf, shrink 0.8, perturb 0.1": pq.ChunksFineTuned(epochs=passes, shrink=0.8, perturb=0.1, **size),
        "mi-rs": pq.ReplayStreams(num_streams=passes, **size),
        "erm": pq.FullDataset(epochs=passes, **size),
    }
    place = {
        Scale.SMALL: SMALL,
        Scale.NARROW: NARROW,
        Scale.FULL: {"data": "cifar100", "length": 20_000, "model": "vggpp"},
    }[scale]
    recipe = USUAL if scale is Scale.SMALL else of_the_paper("cifar100", ema_step_size=0.03)
    return [
        Job(labels={"way": way, "seed": seed}, **place, method=method, recipes=[recipe], seed=seed)
        for way, method in methods.items()
        for seed in SEEDS
    ]


def tell(done: list[Result], picture: Path) -> None:
    import matplotlib.pyplot as plt

    ways = list(dict.fromkeys(r["way"] for r in done))
    coded = [way for way in ways if way != "erm"]
    table(
        {
            "way": way, "nats": mean_of(by_seed(done, way=way)) if way != "erm" else "–",
            "held-out loss": mean_of(by_seed(done, "heldout.loss", way=way), 3),
            "held-out error": mean_of(by_seed(done, "heldout.error_rate", way=way), 4),
        }
        for way in ways
    )  # fmt: skip
    fresh = {s: 1e4 * v for s, v in by_seed(done, "heldout.error_rate", way="ci-fs").items()}
    for way in coded:
        if way != "ci-fs":
            other = {s: 1e4 * v for s, v in by_seed(done, "heldout.error_rate", way=way).items()}
            gap = difference(fresh, other)
            more = str(gap).replace("nats longer", "errors more").replace("nats shorter", "errors fewer")
            print(f"held-out errors among 10,000: {way} makes {more} than ci-fs: {gap.verdict()}")
            code = difference(by_seed(done, way="ci-fs"), by_seed(done, way=way))
            print(f"  and its code is {code}: {code.verdict()}")
    figure, ax = plt.subplots(figsize=(5.5, 3.6))
    draw_regret(ax, done, {"way": "mi-rs"}, {way: {"way": way} for way in coded})
    figure.tight_layout()
    figure.savefig(picture, dpi=120)


if __name__ == "__main__":
    main(__file__, __doc__, plan, tell, scales=tuple(Scale))
