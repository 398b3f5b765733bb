"""What the scripts of this folder share: a queue of runs that resumes. What they say of results is in findings.py.

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
import multiprocessing
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from findings import Result, cost_of

import prequential as pq
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
