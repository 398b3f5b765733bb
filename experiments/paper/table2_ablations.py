"""Table 2 and C.4: weight standardisation, label smoothing and forward calibration each shorten the code.

CIFAR-10 and CIFAR-100, VGG++ and the same network without weight standardisation, 20,000 labels, K = 50. Every cell is
the best of the same four recipes on seed 0, by the code that the cell is about, then run with three seeds. A run
without calibration is the uncalibrated code of a run with it: the temperature touches nothing else. Where the recipe
that is best without calibration has not been run with all seeds, that of the calibrated code stands in for it, and a
line says what this may cost. With --small: LeNet and LeNet with standardised weights.
With --narrow: CIFAR-10, networks of an eighth of the width, 4,096 labels, K = 12.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

from findings import by_seed, difference, draw_regret, mean_of, table
from jobs import NARROW, NARROW_PASSES, SEEDS, SMALL, USUAL, Job, Result, Scale, main, of_the_paper

import prequential as pq

RECIPES = {
    "0.01": {"ema_step_size": 0.01},
    "0.03": {"ema_step_size": 0.03},
    "0.03 slow": {"ema_step_size": 0.03, "learning_rate": 1e-3},
    "0.03 sharp": {"ema_step_size": 0.03, "eps": 1e-3},
}


def models_of(small: bool) -> dict[bool, str]:
    return {True: "lenet-ws", False: "lenet"} if small else {True: "vggpp", False: "vgg16-bn"}


PLACES: dict[Scale, tuple[tuple[str, ...], int, float, Any]] = {
    Scale.SMALL: (("mnist",), SMALL["length"], 1.0, pq.ReplayStreams(num_streams=8)),
    Scale.NARROW: (("cifar10",), NARROW["length"], NARROW["width"], pq.ReplayStreams(num_streams=NARROW_PASSES)),
    Scale.FULL: (("cifar100", "cifar10"), 20_000, 1.0, pq.ReplayStreams(num_streams=50, batch_size=64)),
}
"""Data, labels, width and method."""
KINDS = ("nats", "uncalibrated_nats")


def plan(scale: Scale, done: list[Result]) -> list[Job]:
    small = scale is Scale.SMALL
    jobs: list[Job] = []
    datasets, length, width, streams = PLACES[scale]
    for data in datasets:
        of_data = []
        for ws, model in models_of(small).items():
            for smoothing in (0.0, 1e-3 if small else 0.01):
                cell = {"data": data, "ws": ws, "ls": bool(smoothing)}
                tried = [r for r in done if r["seed"] == 0 and all(r[k] == v for k, v in cell.items())]
                wanted = [(name, 0) for name in RECIPES]
                if len(tried) == len(RECIPES):
                    best = dict.fromkeys(min(tried, key=lambda r: r[what])["recipe"] for what in KINDS)
                    wanted += [(name, seed) for seed in SEEDS[1:] for name in best]
                for name, seed in wanted:
                    base = USUAL if small else of_the_paper(data)
                    recipe = replace(base, **RECIPES[name], label_smoothing=smoothing)
                    of_data.append(
                        Job(
                            labels={**cell, "recipe": name, "seed": seed}, data=data, model=model, method=streams,
                            recipes=[recipe], seed=seed, length=length, width=width,
                        )
                    )  # fmt: skip
        jobs += sorted(of_data, key=lambda job: job.seed)  # what is chosen from comes before what is chosen
    return jobs


def tell(done: list[Result], picture: Path) -> None:
    import matplotlib.pyplot as plt

    datasets = sorted({r["data"] for r in done})
    rows = []
    for data in datasets:
        cells, plain = (
            {(ws, ls): chosen(done, what, data=data, ws=ws, ls=ls) for ws in (False, True) for ls in (False, True)}
            for what in KINDS
        )
        none, everything = plain[False, False], cells[True, True]
        rows.append(
            {
                "data": data, "none": mean_of(none), "+FC": mean_of(cells[False, False]),
                "+LS": mean_of(plain[False, True]), "+WS": mean_of(plain[True, False]), "+all": mean_of(everything),
            }
        )  # fmt: skip
        for name, without, with_it in (
            ("FC, alone", none, cells[False, False]), ("LS, alone", none, plain[False, True]),
            ("WS, alone", none, plain[True, False]),
            ("FC, beside the others", plain[True, True], everything),
            ("LS, beside the others", cells[True, False], everything),
            ("WS, beside the others", cells[False, True], everything),
        ):  # fmt: skip
            gain = difference(with_it, without)
            print(f"{data}: without {name}: {gain}: {gain.verdict()}")
        for name, cell in (("alone", (False, False)), ("beside the others", (True, True))):
            gain = difference(cells[cell], same_runs(done, data, cell))
            print(f"{data}: without FC, {name}, of the same runs: {gain}: {gain.verdict()}")
    table(rows)
    figure, axes = plt.subplots(1, max(len(datasets), 1), figsize=(5 * max(len(datasets), 1), 3.6), squeeze=False)
    for ax, data in zip(axes[0], datasets, strict=True):
        others = {
            f"{'WS ' * ws}{'LS' * ls}" or "neither": {"data": data, "ws": ws, "ls": ls}
            for ws in (False, True)
            for ls in (False, True)
        }
        draw_regret(ax, done, {"data": data, "ws": True, "ls": True}, others)
        ax.set_title(data)
    figure.tight_layout()
    figure.savefig(picture, dpi=120)


def chosen(done: list[Result], what: str, **cell: Any) -> dict[int, float]:
    """By seed, with the recipe that is best by this code on seed 0, or what stands in for it."""
    tried = [r for r in done if r["seed"] == SEEDS[0] and all(r[k] == v for k, v in cell.items())]
    if not tried:
        return {}
    own, stand_in = (min(tried, key=lambda r: r[kind]) for kind in (what, KINDS[0]))
    found = by_seed(done, what, recipe=own["recipe"], **cell)
    if set(SEEDS) <= set(found) or own["recipe"] == stand_in["recipe"]:
        return found
    told = f"{own['recipe']} is {stand_in[what] - own[what]:,.0f} nats shorter on seed {SEEDS[0]}"
    print(f"{cell}: without calibration {told} than {stand_in['recipe']}, which stands in for it")
    return by_seed(done, what, recipe=stand_in["recipe"], **cell)


def same_runs(done: list[Result], data: str, cell: tuple[bool, bool]) -> dict[int, float]:
    """The uncalibrated codes of the runs whose calibrated ones stand in the table."""
    ws, ls = cell
    tried = [r for r in done if (r["data"], r["ws"], r["ls"], r["seed"]) == (data, ws, ls, SEEDS[0])]
    recipe = min(tried, key=lambda r: r[KINDS[0]])["recipe"] if tried else None
    return by_seed(done, KINDS[1], data=data, ws=ws, ls=ls, recipe=recipe)


if __name__ == "__main__":
    main(__file__, __doc__, plan, tell, scales=tuple(Scale))
