"""Fig. 6: warm starting. CI/FS, CI/CF, CI/CF with shrink and perturb, MI/RS and ERM with as many passes each.

CIFAR-100, VGG++, 20,000 labels, 50 passes, three seeds. The claims: fine-tuning leaves a gap in held-out error above
training from scratch; so does MI/RS above ERM (section 5). Shrink and perturb is in the paper's methods, and no result
of it in its text. With --small: LeNet on MNIST, 4,096 labels, 8 passes. With --narrow: VGG++ of an eighth of its
width, 4,096 labels, 12 passes; training from scratch and fine-tuning also with 48.
"""

from pathlib import Path
from typing import Any

from findings import by_seed, difference, draw_regret, mean_of, table
from jobs import NARROW, NARROW_PASSES, SEEDS, SMALL, USUAL, Job, Result, Scale, main, of_the_paper

import prequential as pq

MANY = 48
"""Passes, of --narrow."""
PLACES: dict[Scale, dict[str, Any]] = {
    Scale.SMALL: SMALL,
    Scale.NARROW: NARROW,
    Scale.FULL: {"data": "cifar100", "length": 20_000, "model": "vggpp"},
}


def methods_of(passes: int, **size: Any) -> dict[str, Any]:
    return {
        "ci-fs": pq.ChunksFromScratch(epochs=passes, **size),
        "ci-cf": pq.ChunksFineTuned(epochs=passes, **size),
        "ci-cf, shrink 0.4, perturb 0.1": pq.ChunksFineTuned(epochs=passes, shrink=0.4, perturb=0.1, **size),
        "ci-cf, shrink 0.8, perturb 0.1": pq.ChunksFineTuned(epochs=passes, shrink=0.8, perturb=0.1, **size),
        "mi-rs": pq.ReplayStreams(num_streams=passes, **size),
        "erm": pq.FullDataset(epochs=passes, **size),
    }


def plan(scale: Scale, done: list[Result]) -> list[Job]:
    if scale is Scale.FULL:
        methods = {(way, 50): method for way, method in methods_of(50, batch_size=64).items()}
    else:
        few = 8 if scale is Scale.SMALL else NARROW_PASSES
        methods = {(way, few): method for way, method in methods_of(few).items()}
    if scale is Scale.NARROW:  # few passes leave what is trained from scratch behind: the two that matter, with many
        methods |= {(way, MANY): method for way, method in methods_of(MANY).items() if way in ("ci-fs", "ci-cf")}
    recipe = USUAL if scale is Scale.SMALL else of_the_paper("cifar100", ema_step_size=0.03)
    return [
        Job(
            labels={"way": way, "passes": passes, "seed": seed}, **PLACES[scale], method=method, recipes=[recipe],
            seed=seed,
        )
        for (way, passes), method in methods.items()
        for seed in SEEDS
    ]  # fmt: skip


def tell(done: list[Result], picture: Path) -> None:
    import matplotlib.pyplot as plt

    kinds = list(dict.fromkeys((r["passes"], r["way"]) for r in done))
    table(
        {
            "passes": passes, "way": way,
            "nats": mean_of(by_seed(done, way=way, passes=passes)) if way != "erm" else "–",
            "held-out loss": mean_of(by_seed(done, "heldout.loss", way=way, passes=passes), 3),
            "held-out error": mean_of(by_seed(done, "heldout.error_rate", way=way, passes=passes), 4),
        }
        for passes, way in kinds
    )  # fmt: skip
    for passes, way in kinds:
        if way not in ("ci-fs", "erm"):
            gap = difference(errors(done, "ci-fs", passes), errors(done, way, passes))
            more = str(gap).replace("nats longer", "errors more").replace("nats shorter", "errors fewer")
            print(f"{passes} passes, held-out errors among 10,000: {way} makes {more} than ci-fs: {gap.verdict()}")
            code = difference(by_seed(done, way="ci-fs", passes=passes), by_seed(done, way=way, passes=passes))
            print(f"  and its code is {code}: {code.verdict()}")
    for passes in sorted({passes for passes, _ in kinds}):
        for way, other in (("mi-rs", "erm"), *((w, "ci-cf") for p, w in kinds if p == passes and "shrink" in w)):
            gap = difference(errors(done, other, passes), errors(done, way, passes))
            if gap.num_seeds:
                more = str(gap).replace("nats longer", "errors more").replace("nats shorter", "errors fewer")
                print(
                    f"{passes} passes, held-out errors among 10,000: {way} makes {more} than {other}: {gap.verdict()}"
                )
    figure, ax = plt.subplots(figsize=(5.5, 3.6))
    few = min((passes for passes, _ in kinds), default=0)
    coded = [way for passes, way in kinds if way != "erm" and passes == few]
    draw_regret(ax, done, {"way": "mi-rs", "passes": few}, {way: {"way": way, "passes": few} for way in coded})
    figure.tight_layout()
    figure.savefig(picture, dpi=120)


def errors(done: list[Result], way: str, passes: int) -> dict[int, float]:
    """Held-out ones, among 10,000."""
    return {s: 1e4 * rate for s, rate in by_seed(done, "heldout.error_rate", way=way, passes=passes).items()}


if __name__ == "__main__":
    main(__file__, __doc__, plan, tell, scales=tuple(Scale))
