"""Fig. 3 and C.2: what each method reaches for its FLOPs; MI/RS, CI/FS and CI/CF with the same settings.

MNIST with LeNet: 64 draws a method, stacks of four that share passes and width. CIFAR-10 and CIFAR-100 with VGG++:
10,000 labels, 12 draws a method. For "CI/FS wins at large FLOPs": CIFAR-100, 50,000 labels, for each method the recipe
that was best at 10,000 labels, 50 passes, three seeds. With --small: LeNet, 4,096 labels, 3 × 2 stacks, three seeds.
With --narrow: CIFAR-100, VGG++ of an eighth of its width, 4,096 labels, 3 to 48 passes, for each the better of two
recipes on seed 0; three seeds, and three more that chose nothing.
"""

import math
from pathlib import Path
from statistics import fmean

from findings import best_of, by_seed, difference, mean_of, table
from jobs import MORE_SEEDS, NARROW, SEEDS, SMALL, Job, Result, Scale, drawn, draws_of, main, of_the_paper

import prequential as pq
from prequential import pareto_front

KINDS = {
    "mi-rs": (pq.ReplayStreams, "num_streams"),
    "ci-fs": (pq.ChunksFromScratch, "epochs"),
    "ci-cf": (pq.ChunksFineTuned, "epochs"),
}
PASSES, WIDTHS = (10, 22, 46, 100), (0.35, 0.71, 1.41, 2.83)
NARROW_PASSES, RECIPES = (3, 12, 48), (0.03, 0.01)
"""Of --narrow: passes, and the EMA steps of its recipes."""


def method_of(name: str, passes: int, batch_size: int) -> object:
    kind, setting = KINDS[name]
    return kind(batch_size=batch_size, **{setting: passes})


def plan(scale: Scale, done: list[Result]) -> list[Job]:
    if scale is Scale.NARROW:
        return narrow_plan(done)
    small = scale is Scale.SMALL
    jobs = []
    for name in KINDS:
        for number, passes in enumerate((4, 16) if small else PASSES):
            for place, width in enumerate((1.0,) if small else WIDTHS):
                for seed in SEEDS if small else (0,):
                    first = 4 * (number * len(WIDTHS) + place)
                    labels = {"data": "mnist", "method": name, "passes": passes, "width": width, "seed": seed}
                    jobs.append(
                        Job(
                            labels=labels, data="mnist", length=SMALL["length"] if small else None, model="lenet",
                            method=method_of(name, passes, 32), width=width, seed=seed,
                            recipes=[drawn("mnist", first + i) for i in range(4)],
                        )
                    )  # fmt: skip
    if small:
        return jobs
    for data in ("cifar10", "cifar100"):
        for name in KINDS:
            for draw in range(12):
                settings = draws_of("cifar-pareto", draw)
                labels = {"data": data, "method": name, "draw": draw, "length": 10_000, "seed": 0}
                jobs.append(
                    Job(
                        labels=labels, data=data, length=10_000, model="vggpp", recipes=[drawn("cifar-pareto", draw)],
                        method=method_of(name, settings["num_streams"], settings["batch_size"]),
                        width=settings["width"],
                    )
                )  # fmt: skip
    for name in KINDS:
        tried = [r for r in done if (r["data"], r["method"]) == ("cifar100", name) and r.get("length") == 10_000]
        if len(tried) == 12:
            draw = best_of(tried)[0]["draw"]
            for seed in SEEDS:
                labels = {
                    "data": "cifar100",
                    "method": name,
                    "passes": 50,
                    "length": 50_000,
                    "seed": seed,
                    "draw": draw,
                }
                method = method_of(name, 50, draws_of("cifar-pareto", draw)["batch_size"])
                jobs.append(
                    Job(
                        labels=labels,
                        data="cifar100",
                        length=50_000,
                        model="vggpp",
                        method=method,
                        seed=seed,
                        recipes=[drawn("cifar-pareto", draw)],
                    )
                )
    return jobs


def narrow_plan(done: list[Result]) -> list[Job]:
    jobs = []
    for passes in NARROW_PASSES:
        for name in KINDS:
            cell = {"data": "cifar100", "method": name, "passes": passes}
            tried = [r for r in done if r["seed"] == 0 and all(r[k] == v for k, v in cell.items())]
            wanted = [(ema, 0) for ema in RECIPES]
            if len(tried) == len(RECIPES):
                wanted += [(best_of(tried)[0]["recipe"], seed) for seed in (*SEEDS[1:], *MORE_SEEDS)]
            jobs += [
                Job(
                    labels={**cell, "recipe": ema, "seed": seed}, **NARROW, method=method_of(name, passes, 32),
                    recipes=[of_the_paper("cifar100", ema_step_size=ema)], seed=seed, heldout=False,
                )
                for ema, seed in wanted
            ]  # fmt: skip
    return sorted(jobs, key=lambda job: job.seed)  # what is chosen from comes before what is chosen


def places(lines: list[Result]) -> tuple[list[float], list[float]]:
    return [r["flops"]["code"] for r in lines], [r["nats"] for r in lines]


def tell(done: list[Result], picture: Path) -> None:
    import matplotlib.pyplot as plt
    from matplotlib.ticker import NullFormatter, StrMethodFormatter

    shown = {
        data: [r for r in done if r["data"] == data and r.get("length") != 50_000]
        for data in dict.fromkeys(r["data"] for r in done)
    }
    figure, axes = plt.subplots(1, max(len(shown), 1), figsize=(5 * max(len(shown), 1), 3.8), squeeze=False)
    for ax, (data, all_lines) in zip(axes[0], shown.items(), strict=True):
        fronts = {}
        for name in KINDS:
            lines = [
                r for r in all_lines if r["method"] == name and r["status"] == "finished" and math.isfinite(r["nats"])
            ]
            costs, nats = places(lines)
            front = [(costs[i], nats[i]) for i in pareto_front(costs, nats)]
            fronts[name] = front
            ax.plot(costs, nats, ".", alpha=0.4, color=f"C{len(fronts) - 1}")
            if front:
                ax.step(*zip(*front, strict=True), where="post", label=name, color=f"C{len(fronts) - 1}")
        ax.set(xscale="log", yscale="log", title=data, xlabel="FLOPs", ylabel="nats")
        ax.xaxis.set_minor_formatter(NullFormatter())
        for part in (ax.yaxis.set_major_formatter, ax.yaxis.set_minor_formatter):
            part(StrMethodFormatter("{x:,.0f}"))
        ax.legend(frameon=False)
        grid = sorted(cost for front in fronts.values() for cost, _ in front)
        for name in KINDS:
            shortest = [name == min(KINDS, key=lambda n: best_for(fronts[n], budget)) for budget in grid]
            share = sum(shortest) / max(len(grid), 1)
            print(f"{data}: {name} has the shortest code at {share:.0%} of {len(grid)} budgets")
    figure.tight_layout()
    figure.savefig(picture, dpi=120)
    seeds = {name: by_seed(done, data="cifar100", method=name, length=50_000) for name in KINDS}
    if any(seeds.values()):
        table({"method": name, "CIFAR-100, 50 passes, nats": mean_of(found)} for name, found in seeds.items())
        gap = difference(seeds["ci-fs"], seeds["mi-rs"])
        print(f"CI/FS wins at large FLOPs on CIFAR-100: MI/RS is {gap}: {gap.verdict()}")
    for data, lines in shown.items():
        tell_pairs(data, lines)
        chose_nothing = [r for r in lines if r["seed"] in MORE_SEEDS]
        if chose_nothing:
            print("The seeds that chose nothing:")
            tell_pairs(data, chose_nothing)


def tell_pairs(data: str, lines: list[Result]) -> None:
    """Methods with as many passes, over the seeds that both have."""
    for passes in sorted({r["passes"] for r in lines if "passes" in r}):
        found = {name: by_seed(lines, method=name, passes=passes) for name in KINDS}
        if len(found["mi-rs"]) <= 2:
            continue
        for name in [name for name in ("ci-fs", "ci-cf") if found[name]]:
            gap = difference(found["mi-rs"], found[name])
            told = f"{name} is {gap} than mi-rs, with {share_of_flops(lines, name, passes):.2f} of its FLOPs"
            print(f"{data}, {passes} passes, the best draws: {told}: {gap.verdict()}")
            if passes == NARROW_PASSES[-1]:
                back = difference(found[name], found["mi-rs"])
                print(f"  {name} is ahead at large FLOPs, mi-rs is {back}: {back.verdict()}")
                best = best_passes(lines)
                back = difference(found[name], by_seed(lines, method="mi-rs", passes=best))
                print(f"  mi-rs at its best, {best} passes, is {back} than {name}: {back.verdict()}")


def share_of_flops(lines: list[Result], name: str, passes: int) -> float:
    """How many FLOPs a method takes, as a share of those of MI/RS with as many passes."""
    own, other = (by_seed(lines, "flops.code", method=method, passes=passes) for method in (name, "mi-rs"))
    return fmean(own.values()) / fmean(other.values())


def best_passes(lines: list[Result]) -> int:
    """The passes with which MI/RS has its shortest code: a front may fall back on fewer."""
    passes = {r["passes"] for r in lines if r["method"] == "mi-rs"}
    return min(passes, key=lambda each: fmean(by_seed(lines, method="mi-rs", passes=each).values()))


def best_for(front: list[tuple[float, float]], budget: float) -> float:
    return min((nats for cost, nats in front if cost <= budget), default=math.inf)


if __name__ == "__main__":
    main(__file__, __doc__, plan, tell, scales=tuple(Scale))
