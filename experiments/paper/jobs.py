"""What the scripts of this folder share: a queue of runs that resumes, and the comparison of pairs.

A script gives `plan(small, done)`: its jobs, as far as they can be known from the results so far (the best of some
settings is run again with other seeds only when they are known). `main` runs what is missing, in the order of the plan,
and keeps each run as a line of JSON in DIR/NAME.jsonl; run again, it goes on with what is missing. It begins nothing
that would not end in time. With --table it prints what was found and draws the picture; nothing is run.

    python experiments/paper/NAME.py --device cuda --out DIR --minutes 9
    python experiments/paper/NAME.py --small      # MNIST
    python experiments/paper/NAME.py --narrow     # CIFAR by narrow networks, where a script has it
    python experiments/paper/NAME.py --table

Each seed s of a comparison has its own order of the data, its own plan and its own initialisation.
"""

import argparse
import json
import math
import multiprocessing
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

import prequential as pq
from prequential.measure.chance import two_sided
from prequential.presets import find_preset
from prequential.sweeps.sampling import draw_settings

HERE = Path(__file__).parent


class Scale(StrEnum):
    """How far a script is scaled down."""

    FULL = "full"
    """For a large GPU."""
    SMALL = "small"
    """MNIST, LeNet, 4,096 labels: minutes on two cores."""
    NARROW = "narrow"
    """CIFAR, VGG++ of an eighth of its width, 4,096 labels: within an hour on two cores."""


SMALL: dict[str, Any] = {"data": "mnist", "length": 4096, "model": "lenet"}
NARROW: dict[str, Any] = {"data": "cifar100", "length": 4096, "model": "vggpp", "width": 1 / 8}
NARROW_PASSES = 12
USUAL = pq.Recipe()
"""What --small trains with: a few thousand labels are too few for the paper's space."""
SEEDS = (0, 1, 2)
MORE_SEEDS = (3, 4, 5)
"""Added where three seeds left intervals wide, before any of them was run; nothing was chosen on them."""
RECIPE = tuple(f.name for f in fields(pq.Recipe))
Result = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Job:
    """One run, or a stack of runs that share everything but recipe and initialisation."""

    labels: Mapping[str, Any]
    """What the script knows the run by: words and numbers, among them the seed."""
    data: str
    length: int | None
    model: Any
    method: Any
    recipes: Sequence[pq.Recipe]
    seed: int = 0
    width: float = 1.0
    compiled: bool | None = None
    heldout: bool = True
    options: Mapping[str, Any] = field(default_factory=dict)
    """Of the data."""

    @property
    def key(self) -> str:
        return json.dumps(dict(self.labels), sort_keys=True)

    @property
    def work(self) -> float:
        """What it takes beside jobs of the same model, in examples that are trained on; one that is looked at only to
        calibrate counts a third."""
        data = data_of(self.data, self.length, self.seed, tuple(self.options.items()))
        closing = self.heldout and data.heldout is not None
        counts = pq.Plan(self.method, len(data), self.seed, heldout=closing).counts()
        return (counts.trained_examples + counts.recomputed_examples / 3) * len(self.recipes)


Plan = Callable[[Scale, list[Result]], Iterable[Job]]


@lru_cache(maxsize=4)
def data_of(name: str, length: int | None, order_seed: int, options: tuple[tuple[str, Any], ...]) -> Any:
    order = {} if "order" in dict(options) else {"order_seed": order_seed}
    data = pq.load_data(name, **order, **dict(options))
    return data if length is None else data.take(min(length, len(data)))


def run(job: Job, device: str, deadline: float) -> list[Result]:
    """The lines that are kept of a job, one for each member; none where the time was over."""
    data = data_of(job.data, job.length, job.seed, tuple(job.options.items()))
    if not job.heldout:
        data = data.without_heldout()

    def stop_in_time(progress: Any) -> None:
        if time.time() > deadline:
            raise TimeoutError

    common: dict[str, Any] = {
        "plan_seed": job.seed, "width": job.width, "device": device, "listeners": [stop_in_time],
        "execution": pq.Execution(compiled=job.compiled),
    }  # fmt: skip
    begin = time.perf_counter()
    try:
        if len(job.recipes) == 1:
            records = [pq.run(job.model, data, job.method, job.recipes[0], seed=job.seed, **common)]
        else:
            seeds = [1000 * job.seed + member for member in range(len(job.recipes))]
            records = pq.run_stack(job.model, data, job.method, job.recipes, seeds=seeds, **common)
    except TimeoutError:
        return []
    seconds = (time.perf_counter() - begin) / len(records)
    return [line_of(job, member, record, seconds) for member, record in enumerate(records)]


def line_of(job: Job, member: int, record: pq.Record, seconds: float) -> Result:
    positions = np.unique(np.geomspace(16, len(record.nats), 48).astype(int)) if len(record.nats) else []
    sums = np.cumsum(record.nats, dtype=float)
    made = record.environment
    return {
        **job.labels, "key": job.key, "member": member, "members": len(job.recipes), "status": record.status,
        "nats": record.codelength, "errors": record.errors,
        "uncalibrated_nats": float(record.uncalibrated_nats.sum(dtype=float)) if len(record.nats) else None,
        "heldout": record.heldout, "flops": record.flops,
        "curve": [[int(p), round(float(sums[p - 1]), 2)] for p in positions],
        "settings": settings_of(job.recipes[member]), "seconds": round(seconds, 1),
        "machine": made["device_name"] or made.get("cpu"), "torch": made["torch"], "engine": made["engine"],
        "precision": made["precision"],
    }  # fmt: skip


def settings_of(recipe: pq.Recipe) -> dict[str, Any]:
    """What differs from the defaults."""
    usual = pq.Recipe()
    return {name: value for name, value in vars(recipe).items() if value != getattr(usual, name)}


def read(file: Path) -> list[Result]:
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def only(plan: Plan, wanted: Sequence[str]) -> Plan:
    """The jobs of a plan whose labels have these values, such as "data=cifar100"."""
    pairs = [each.split("=", 1) for each in wanted]

    def fewer(scale: Scale, done: list[Result]) -> list[Job]:
        return [job for job in plan(scale, done) if all(str(job.labels[name]) == value for name, value in pairs)]

    return fewer


def work_off(plan: Plan, file: Path, flags: argparse.Namespace) -> None:
    """Run what is missing and fits into the minutes, several at once."""
    plan = only(plan, flags.only)
    end = time.time() + 60 * flags.minutes
    rate: dict[tuple[Any, int], float] = {}
    running: dict[Future[list[Result]], tuple[float, Job]] = {}
    begun: set[str] = set()
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(flags.at_once, mp_context=context) as pool:
        while True:
            done = read(file)
            known = {line["key"] for line in done} | begun
            for job in [job for job in plan(flags.scale, done) if job.key not in known]:
                if len(running) >= flags.at_once:
                    break
                expected = rate.get((job.model, len(job.recipes)), 0.0) * job.work * (len(running) + 1)
                if time.time() + expected < end:
                    running[pool.submit(run, job, flags.device, end + 40)] = time.time(), job
                    begun.add(job.key)
            if not running:
                break
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                since, job = running.pop(future)
                if (error := future.exception()) is not None:
                    print(f"{job.key} failed: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
                    continue
                lines = future.result()
                with file.open("a") as out:
                    out.writelines(json.dumps(line) + "\n" for line in lines)
                kind = job.model, len(job.recipes)
                rate[kind] = max(rate.get(kind, 0.0), (time.time() - since) / job.work / (len(running) + 1))
                nats = [line["nats"] for line in lines if line["nats"] is not None]
                least = f"{min(nats):10,.1f} nats" if nats else "no codelength"
                print(
                    f"{job.key}: {least}, {time.time() - since:.0f} s" if lines else f"{job.key}: no time", flush=True
                )
    missing = {job.key for job in plan(flags.scale, read(file))} - {line["key"] for line in read(file)}
    print(f"{len(missing)} jobs are left" if missing else "all is done", flush=True)


def student(degrees: int) -> float:
    """The t that 95 % lie within; infinite without degrees of freedom.

    Example:
        >>> round(student(2), 3), round(student(63), 3), student(0)
        (4.303, 1.998, inf)
    """
    low, high = 0.0, 100.0
    for _ in range(60 if degrees > 0 else 0):
        middle = (low + high) / 2
        low, high = (middle, high) if two_sided(middle, degrees) > 0.05 else (low, middle)
    return high if degrees > 0 else math.inf


@dataclass(frozen=True)
class Difference:
    """How much longer the code of b is than that of a, over seeds that both have."""

    mean: float
    standard_error: float
    num_seeds: int

    @property
    def interval(self) -> tuple[float, float]:
        """95 %, by Student's t."""
        t = student(self.num_seeds - 1)
        return self.mean - t * self.standard_error, self.mean + t * self.standard_error

    def verdict(self) -> str:
        """Whether b is surely longer, over at least three seeds."""
        if self.num_seeds < 3:
            return "not shown"
        return "holds" if self.interval[0] > 0 else "not seen at this scale"

    def __str__(self) -> str:
        if self.num_seeds == 0:
            return "not known yet (0 seeds)"
        low, high = self.interval
        word = "longer" if self.mean >= 0 else "shorter"
        return f"{abs(self.mean):,.0f} nats {word} ({low:+,.0f} to {high:+,.0f}, {self.num_seeds} seeds)"


def difference(a: Mapping[int, float], b: Mapping[int, float]) -> Difference:
    """Of what each seed gave.

    Example:
        >>> str(difference({0: 10.0, 1: 12.0, 2: 11.0}, {0: 20.0, 1: 23.0, 2: 20.0}))
        '10 nats longer (+8 to +12, 3 seeds)'
    """
    found = [b[seed] - a[seed] for seed in sorted(set(a) & set(b))]
    if not found:
        return Difference(math.nan, math.nan, 0)
    spread = statistics.stdev(found) / math.sqrt(len(found)) if len(found) > 1 else math.inf
    return Difference(statistics.mean(found), spread, len(found))


def by_seed(done: Iterable[Result], what: str = "nats", **labels: Any) -> dict[int, float]:
    """The results with these labels, by seed; of several settings the best by codelength."""
    found: dict[int, Result] = {}
    for line in done:
        known = line["heldout"] is not None or not what.startswith("heldout")
        if known and all(line.get(name) == value for name, value in labels.items()) and line["status"] == "finished":
            before = found.get(line["seed"])
            if before is None or (line["nats"] or math.inf) < (before["nats"] or math.inf):
                found[line["seed"]] = line
    return {seed: value_of(line, what) for seed, line in found.items()}


def value_of(line: Result, what: str) -> float:
    """A number of a result, such as "nats" or "heldout.loss"."""
    value: Any = line
    for name in what.split("."):
        value = value[name]
    return float(value)


def best_of(done: Iterable[Result], num: int = 1, **labels: Any) -> list[Result]:
    """The shortest codes with these labels, the shortest first."""
    lines = [line for line in done if all(line.get(name) == value for name, value in labels.items())]
    finished = [line for line in lines if line["status"] == "finished" and line["nats"] is not None]
    return sorted(finished, key=lambda line: line["nats"])[:num]


def expected_best(values: Sequence[float], num: int) -> float:
    """The mean of the least of `num` of these values, drawn without replacement.

    Example:
        >>> expected_best([1.0, 2.0, 3.0], 1), expected_best([1.0, 2.0, 3.0], 2), expected_best([1.0, 2.0, 3.0], 3)
        (2.0, 1.3333333333333333, 1.0)
    """
    ways = math.comb(len(values), num)
    return sum(v * math.comb(len(values) - 1 - i, num - 1) / ways for i, v in enumerate(sorted(values)))


def drawn(space: str, number: int, **fixed: Any) -> pq.Recipe:
    """The recipe of a draw of one of the paper's spaces."""
    settings = draws_of(space, number) | fixed
    return pq.Recipe(**{name: value for name, value in settings.items() if name in RECIPE})


def draws_of(space: str, number: int) -> dict[str, Any]:
    """All settings of a draw."""
    return draw_settings(pq.SPACES[space], 0, number)


def of_the_paper(data: str, **changes: Any) -> pq.Recipe:
    """The recipe of the preset `paper`, changed."""
    return replace(find_preset("paper", data).recipe, **changes)


def table(rows: Iterable[Mapping[str, Any]]) -> None:
    """Print rows under the names of their columns."""
    lines = [{name: str(value) for name, value in row.items()} for row in rows]
    if not lines:
        print("nothing yet")
        return
    widths = {name: max(len(name), *(len(line[name]) for line in lines)) for name in lines[0]}
    for line in [dict(zip(widths, widths, strict=True)), *lines]:
        print("  ".join(f"{line[name]:>{width}}" for name, width in widths.items()))


def mean_of(values: Mapping[int, float], digits: int = 0) -> str:
    """Mean and standard error over seeds."""
    if not values:
        return "–"
    error = f" ± {statistics.stdev(values.values()) / math.sqrt(len(values)):,.{digits}f}" if len(values) > 1 else ""
    return f"{statistics.mean(values.values()):,.{digits}f}{error}"


def cost_of(done: Iterable[Result]) -> str:
    """How many runs there were, and how long they took; side by side they take less.

    Example:
        >>> cost_of([{"seconds": 90.0, "machine": "a GPU"}, {"seconds": 30.0, "machine": "a GPU"}])
        '2 runs, 2 minutes (a GPU)'
    """
    spent: dict[str, list[float]] = defaultdict(list)
    for line in done:
        spent[line["machine"]].append(line["seconds"])
    return "; ".join(f"{len(s)} runs, {sum(s) / 60:,.0f} minutes ({machine})" for machine, s in spent.items())


def draw_regret(
    ax: Any, done: Sequence[Result], reference: Mapping[str, Any], others: Mapping[str, Mapping[str, Any]]
) -> None:
    """Cumulative nats above those of the reference, the mean over seeds."""

    def curves(labels: Mapping[str, Any]) -> dict[int, tuple[Any, Any]]:
        found = defaultdict(list)
        for line in done:
            if all(line.get(name) == value for name, value in labels.items()) and line["status"] == "finished":
                found[line["seed"]].append(line)
        best = {seed: min(lines, key=lambda line: line["nats"]) for seed, lines in found.items()}
        return {seed: tuple(np.array(line["curve"]).T) for seed, line in best.items()}

    base = curves(reference)
    for name, labels in others.items():
        regrets = [np.interp(base[s][0], *curve) - base[s][1] for s, curve in curves(labels).items() if s in base]
        if regrets:
            ax.plot(next(iter(base.values()))[0], np.mean(regrets, axis=0), label=name)
    ax.axhline(0, color="0.6", linewidth=0.8)
    ax.set(xscale="log", xlabel="labels", ylabel="regret, nats")
    ax.legend(frameon=False, fontsize=8)


def main(
    script: str,
    doc: str | None,
    plan: Plan,
    tell: Callable[[list[Result], Path], None],
    scales: Sequence[Scale] = (Scale.FULL, Scale.SMALL),
) -> None:
    """Parse, run, tell."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path, default=HERE / "results")
    parser.add_argument("--minutes", type=float, default=60.0, help="begin nothing that would not end by then")
    parser.add_argument("--at-once", type=int, default=1, help="runs side by side")
    parser.add_argument(
        "--only", nargs="+", default=[], metavar="LABEL=VALUE", help="run these jobs alone, such as data=cifar100"
    )
    means = {
        Scale.SMALL: "MNIST, LeNet, 4,096 labels, 3 seeds: minutes on two cores",
        Scale.NARROW: "CIFAR, VGG++ of an eighth of its width, 4,096 labels: within an hour on two cores",
    }
    smaller = [scale for scale in means if scale in scales]
    if smaller:  # Python 3.11 cannot print the usage of an empty group
        sizes = parser.add_mutually_exclusive_group()
        for scale in smaller:
            sizes.add_argument(f"--{scale}", dest="scale", action="store_const", const=scale, help=means[scale])
    parser.set_defaults(scale=Scale.FULL)
    parser.add_argument("--table", action="store_true", help="run nothing; print what was found and draw the picture")
    flags = parser.parse_args()
    flags.out.mkdir(parents=True, exist_ok=True)
    name = Path(script).stem + ("" if flags.scale is Scale.FULL else f"_{flags.scale}")
    file = flags.out / f"{name}.jsonl"
    if not flags.table:
        work_off(plan, file, flags)
    done = read(file)
    if not done:
        print("nothing yet")
        return
    tell(done, flags.out / f"{name}.png")
    print(cost_of(done))
