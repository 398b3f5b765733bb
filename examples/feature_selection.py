"""Which inputs does a label need? The introduction's example of the paper, at the size of a laptop.

Three digits of MNIST are the red, green and blue channels of one image; the label is the red digit's. Three models
see R, RG or RGB. Conventional training (ERM) and a held-out set hardly tell them apart: with enough data all three
ignore what says nothing. The code lengths do, because they also charge for what it took to learn to ignore it.

    python examples/feature_selection.py                     # a few minutes on two cores; run again, it goes on
    python examples/feature_selection.py --examples 2000     # a first impression

Every run is kept under --out, so that `preq compare`, `preq plot` and `preq report` can look at it too.
"""

import argparse
import math
import multiprocessing
import os
import statistics
import sys
import time
import warnings
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

import prequential as pq
from prequential.methods import Method

CONDITIONINGS = ("R", "RG", "RGB")
MODEL = "lenet"
RECIPE = pq.Recipe(full_rate_steps=3000, ema_step_size=3e-3)
"""What `preq run mnist lenet` uses; nothing of it was chosen for this example."""
STREAMS, EPOCHS = 8, 30
"""After 30 epochs held-out losses are lower than after 10, for every conditioning."""
METHODS: dict[str, Method] = {"code": pq.ReplayStreams(num_streams=STREAMS), "erm": pq.FullDataset(epochs=EPOCHS)}
COLOURS = ("#D55E00", "#009E73", "#0072B2")

Records = dict[tuple[str, str, int], pq.Record]
"""By method ("code" or "erm"), conditioning and seed."""


def one_run(kind: str, channels: str, seed: int, examples: int, out: Path) -> None:
    """Learn one conditioning by one method, on one core, into a directory of its own."""
    data = pq.load_data(f"rgb-mnist:{channels}", examples=examples)
    place = out / kind / f"{channels}-{seed}"
    pq.run(MODEL, data, METHODS[kind], RECIPE, seed=seed, threads=1, out=place, resume=True)


def all_runs(seeds: Sequence[int], examples: int, out: Path, jobs: int) -> Records:
    """Every method, conditioning and seed, `jobs` at a time; what an earlier call has finished is only read."""
    wanted = [(kind, channels, seed) for seed in seeds for kind in METHODS for channels in CONDITIONINGS]
    if jobs == 1:
        for each in wanted:
            one_run(*each, examples, out)
    else:
        os.environ["OMP_NUM_THREADS"] = "1"  # read when torch is loaded, in the processes to come
        with ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn")) as pool:
            running = [pool.submit(one_run, *each, examples, out) for each in wanted]
            try:
                for future in running:
                    future.result()
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise
    return {each: pq.load(out / each[0] / f"{each[1]}-{each[2]}") for each in wanted}


def posterior(codelengths: Sequence[float]) -> tuple[int, float]:
    """The most probable model under equal priors, and ln of the probability that is left for the others.

    Example:
        >>> best, log_rest = posterior([1000.0, 1100.0, 1300.0])
        >>> best, round(log_rest, 6)
        (0, -100.0)
    """
    best = int(np.argmin(codelengths))
    log_odds = [codelengths[best] - each for index, each in enumerate(codelengths) if index != best]
    log_sum = float(np.logaddexp.reduce(log_odds))
    return best, log_sum - float(np.logaddexp(0.0, log_sum))


def probability(log_rest: float) -> str:
    """1 − e^log_rest, however small the rest.

    Example:
        >>> probability(math.log(0.25)), probability(-100.0)
        ('0.7500', '1−10^−43')
    """
    if log_rest > math.log(1e-4):
        return f"{-math.expm1(log_rest):.4f}"
    return f"1−10^−{-log_rest / math.log(10):.0f}"


def spread(values: Sequence[float], digits: int) -> str:
    """Mean and standard error."""
    error = f" ± {statistics.stdev(values) / math.sqrt(len(values)):.{digits}f}" if len(values) > 1 else ""
    return f"{statistics.mean(values):,.{digits}f}{error}"


def tables(records: Records, seeds: Sequence[int]) -> list[str]:
    """Code lengths with posterior, then ERM's held-out losses, then both in one sentence each."""
    codes = {c: [float(records["code", c, s].nats.sum()) for s in seeds] for c in CONDITIONINGS}
    losses = {c: [_heldout_loss(records["erm", c, s]) for s in seeds] for c in CONDITIONINGS}
    lines = [_row("code length [nats]", CONDITIONINGS, "posterior")]
    winners, leads = [], []
    for number, seed in enumerate(seeds):
        row = [codes[c][number] for c in CONDITIONINGS]
        best, log_rest = posterior(row)
        winners.append(CONDITIONINGS[best])
        leads.append(sorted(row)[1] - row[best])
        lines.append(_row(f"  seed {seed}", [f"{v:,.1f}" for v in row], f"{winners[-1]}: {probability(log_rest)}"))
    lines += [_row("  mean ± s.e.", [spread(codes[c], 0) for c in CONDITIONINGS]), ""]
    lines.append(_row("ERM, held-out loss", CONDITIONINGS, "lowest"))
    lowest = []
    for number, seed in enumerate(seeds):
        row = [losses[c][number] for c in CONDITIONINGS]
        lowest.append(CONDITIONINGS[int(np.argmin(row))])
        lines.append(_row(f"  seed {seed}", [f"{v:.4f}" for v in row], lowest[-1]))
    lines += [_row("  mean ± s.e.", [spread(losses[c], 4) for c in CONDITIONINGS]), ""]
    means = [statistics.mean(each) for each in losses.values()]
    within = max(max(each) - min(each) for each in losses.values())
    return [
        *lines,
        f"R has the shortest code in {winners.count('R')} of {len(seeds)} seeds; "
        f"the shortest leads by at least {min(leads):,.1f} nats.",
        f"R has ERM's lowest held-out loss in {lowest.count('R')} of {len(seeds)} seeds. Its means differ by "
        f"{max(means) - min(means):.4f}",
        f"between conditionings; between seeds of one of them, it differs by up to {within:.4f}.",
    ]


def _row(name: str, cells: Sequence[str], last: str = "") -> str:
    return f"{name:<18}{''.join(f'{cell:>16}' for cell in cells)}  {last}".rstrip()


def _heldout_loss(record: pq.Record) -> float:
    assert record.heldout is not None
    return record.heldout["loss"]


def draw(records: Records, seeds: Sequence[int], path: Path) -> None:
    """ERM's held-out losses, the next-step loss, and the regret against R."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 3.5), layout="constrained")
    losses, steps, regrets = figure.subplots(1, 3, width_ratios=(0.7, 1, 1))
    for number, (channels, colour) in enumerate(zip(CONDITIONINGS, COLOURS, strict=True)):
        erm = [_heldout_loss(records["erm", channels, seed]) for seed in seeds]
        losses.plot([number] * len(erm), erm, "o", color=colour, alpha=0.7, markersize=5)
        losses.plot(number, statistics.mean(erm), "_", color=colour, markersize=26, markeredgewidth=2)
        codes = [records["code", channels, seed] for seed in seeds]
        reference = [records["code", "R", seed] for seed in seeds]
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "the inputs differ")  # which is the question here
            against = np.array([pq.regret(one, other) for one, other in zip(codes, reference, strict=True)])
        positions = np.arange(1, against.shape[1] + 1)
        for each in against:
            regrets.plot(positions, each, color=colour, linewidth=0.6, alpha=0.5)
        regrets.plot(positions, against.mean(axis=0), color=colour, linewidth=2, label=f"{channels} − R")
        steps.plot(*_binned(np.mean([code.nats for code in codes], axis=0)), color=colour, label=channels)
    losses.set(title="ERM", ylabel="held-out loss [nats per label]", ylim=(0, None), xlim=(-0.6, 2.6))
    losses.set_xticks(range(len(CONDITIONINGS)), CONDITIONINGS)
    steps.set(title="next-step loss", ylabel="nats per label", xscale="log", yscale="log")
    regrets.set(title="regret: codelength − that of R", ylabel="nats", xscale="log", xlim=(10, None))
    for axes in (steps, regrets):
        axes.set_xlabel("position in the sequence")
        axes.legend(frameon=False)
    for axes in (losses, steps, regrets):
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)


def _binned(nats: Any) -> tuple[Any, Any]:
    """Means over stretches that grow with the position."""
    edges = np.unique(np.geomspace(1, len(nats) + 1, 40).astype(int)) - 1
    sizes = np.diff(edges)
    return edges[:-1] + (sizes + 1) / 2, np.add.reduceat(nats, edges[:-1]) / sizes


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--examples", type=int, default=10_000, help="labels in the sequence (default: 10,000)")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2], help="of the models (default: 0 1 2)")
    parser.add_argument("--jobs", type=int, default=2, help="processes, one core each (default: 2)")
    parser.add_argument("--out", type=Path, default=Path("runs/features"), help="where the runs are kept")
    parser.add_argument("--picture", type=Path, help="PNG, SVG or PDF (default: regret.png in --out)")
    flags = parser.parse_args(arguments)
    began = time.monotonic()
    try:
        records = all_runs(flags.seeds, flags.examples, flags.out, flags.jobs)
    except pq.PreqError as error:
        sys.exit(f"feature_selection: {error}")
    made = next(iter(records.values())).environment
    print(f"RGB-MNIST, {flags.examples:,} labels, {MODEL}; MI/RS with {STREAMS} streams; ERM for {EPOCHS} epochs")
    print(f"{made['device_name']}, torch {made['torch']}, {flags.jobs} processes of one thread")
    print("", *tables(records, flags.seeds), sep="\n")
    picture = flags.picture or flags.out / "regret.png"
    draw(records, flags.seeds, picture)
    print(f"\n{picture}; {time.monotonic() - began:,.0f} s")


if __name__ == "__main__":
    main()
