"""The table of the shortest codes: a queue of runs that resumes.

What is compared is in shorter_settings.py, what is run when in shorter_plan.py. Each result is a line of JSON in
DIR/shorter.jsonl; what is known from experiments/shorter.jsonl is not run again. A run that is longer than one call
keeps its checkpoints in DIR/runs and goes on in the next; a study is kept in DIR/studies, in files of at most 15 MB,
and serves every run that begins with it. DIR/shorter.jsonl and DIR/studies are what has to be taken along where a
machine does not stay. Of the libraries only torch, NumPy, safetensors and filelock are needed, and the data.

    python experiments/shorter.py --device cuda --out DIR --minutes 9
    python experiments/shorter.py --device cuda --out DIR --minutes 9 --only given=all data=cifar10
    python experiments/shorter.py --out DIR --table
    python experiments/shorter.py --out DIR --tiny
"""

import argparse
import json
import multiprocessing
import signal
import sys
import time
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

import prequential as pq
from prequential.models import NamedFactory, find_factory
from prequential.runs.live import read_standing
from prequential.runs.progress import Progress, Pruned
from prequential.runs.studied import HERE
from shorter_plan import FAILED, Job, Result, expected, plan, results, seconds_left
from shorter_settings import ALL
from shorter_table import tell

KNOWN = Path(__file__).with_name("shorter.jsonl")
RESULTS = "shorter.jsonl"
CHECKPOINT_SECONDS = 45.0
SAVING_SECONDS = 20.0
"""Before the end: a run stops, and is saved."""
GRACE_SECONDS = 20.0
"""After the end: what has not stopped by then, since it compiles, is ended, and goes on from its last checkpoint."""
LEAST_SECONDS = 150.0
"""A run that has less would do little more than compile."""
SECONDS_BETWEEN_LOOKS = 5.0
MOST_FAILED = 3
"""Runs in a row; then it is not they that are wrong, and nothing is kept of it."""
STACKED = ("smallconv",)
"""Networks so small that members are faster as one stack; of larger ones each is trained by itself."""
COMPILED = {"auto": None, "yes": True, "no": False}


class Watch:
    """A listener that ends a candidate where it is compared, stops a run in time, and sees how fast it learns."""

    def __init__(self, stop: int | None, deadline: float) -> None:
        self._stop, self._deadline, self._asked = stop, deadline, False
        self._seen: list[tuple[float, int]] = []

    def __call__(self, progress: Progress) -> None:
        self._seen.append((progress.seconds, progress.trained_examples))
        if self._stop is not None and progress.position >= self._stop:
            raise Pruned
        if not self._asked and time.time() > self._deadline:
            self._asked = True
            signal.raise_signal(signal.SIGINT)  # the run stops at its next event, and is saved

    @property
    def labelled_per_second(self) -> float | None:
        """Over about the second half of what was trained on; None where too little was seen."""
        if not self._seen:
            return None
        end, trained = self._seen[-1]
        begin, before = max((each for each in self._seen if each[1] <= trained / 2), default=self._seen[0])
        return (trained - before) / (end - begin) if end > begin else None


@lru_cache(maxsize=2)
def data_of(name: str, length: int) -> Any:
    data = pq.load_data(name)
    if length >= len(data):
        return data
    few = data.take(length)
    return replace(few, heldout=few.heldout.take(min(length, len(few.heldout))))


def model_of(job: Job) -> Any:
    """A model, or several."""
    name, (method, recipe) = job.setting.model, job.settled()
    if job.members == 1:
        return name
    if job.setting.models:
        twins = {model for model in job.models if job.models.count(model) > 1 and model not in STACKED}
        first, *others = (_by_itself(model) if model in twins else model for model in job.models)
        others_recipe = replace(recipe, **job.setting.of_others) if job.setting.of_others else None
        so_far = method.method if job.setting.others_so_far else None
        return pq.Experts(
            [first, *(pq.Expert(m, None if m == first else so_far, recipe=others_recipe) for m in others)]
        )
    if job.own_studies:
        return pq.Experts([pq.Expert(name, replace(method, study_seed=seed)) for seed in range(job.members)])
    if name in STACKED or job.given == ALL:
        return pq.Experts.of_seeds(name, job.members)
    return pq.Experts([_by_itself(name) for _ in range(job.members)])


def _by_itself(name: str) -> NamedFactory:
    """A model that is no other's twin, so that no stack is made of both."""
    factory = NamedFactory(find_factory(name))
    factory.name = name
    return factory


def run(job: Job, out: Path, device: str, compiled: str, deadline: float, shared: bool = False) -> Result | None:
    """The line that is kept; none where the time was over."""
    method, recipe = job.settled()
    watch, data = Watch(job.stop, deadline), data_of(job.data, job.length)
    wanted = COMPILED[compiled]
    if wanted is None and job.given == ALL and device.startswith("cuda"):
        wanted = True  # else long and short runs would compute, and so study, in different ways
    try:
        record = pq.run(
            model_of(job), data if job.stop is None else data.without_heldout(), method, recipe, seed=job.seed,
            width=job.setting.width, device=device, execution=pq.Execution(compiled=wanted), listeners=[watch],
            out=out / "runs" / job.name, resume=True, checkpoint_seconds=CHECKPOINT_SECONDS, study_dir=out / "studies",
        )  # fmt: skip
    except pq.Interrupted:
        return None
    return line_of(job, record, watch) | {"shared": shared}


def line_of(job: Job, record: pq.Record, watch: Watch) -> Result:
    nats, study, made = record.nats[: job.stop], record.study, record.environment
    of_studies = (study.get("each") or [study]) if study else []
    seconds = record.seconds - sum(each["seconds"] for each in of_studies if each["from"] == HERE)
    positions = np.unique(np.geomspace(16, max(len(nats), 16), 48).astype(int))
    sums = np.cumsum(nats)
    curve = [[int(p), round(float(sums[p - 1]), 2)] for p in positions if p <= len(nats)]
    trained = _trained(job)
    own = record.expert_nats
    members = {} if own is None else dict(zip(record.expert_names, own.sum(axis=0).round(3).tolist(), strict=True))
    versions = {name: made[name] for name in ("prequential", "torch", "python", "numpy", "cuda", "precision", "engine")}
    return {
        **job.labels, "key": job.key, "status": record.status, "command": job.command, "model": job.setting.model,
        "nats": float(nats.sum()) if np.isfinite(nats).all() else None, "labels": len(nats),
        "errors": int((record.labels != record.predicted)[: job.stop].sum()), "heldout": record.heldout,
        "members_nats": members, "flops": record.flops, "study": study, "study_of": job.study,
        "study_seconds": round(sum(each["seconds"] for each in of_studies), 1), "seconds": round(seconds, 1),
        "expected_seconds": round(expected(job)[1], 1), "given_seconds": job.seconds,
        "labelled_per_second": round(watch.labelled_per_second or trained / max(seconds, 1e-3), 1),
        "curve": curve, "method": record.method, "recipe": _unusual(record.recipe), "width": job.setting.width,
        "machine": made["device_name"], **versions, "compiled": made.get("compiled"),
        "day": time.strftime("%Y-%m-%d", time.gmtime()),
    }  # fmt: skip


def _trained(job: Job) -> int:
    """Labelled examples."""
    method = job.settled()[0]
    return int(getattr(method, "method", method).most_work(job.stop or job.length).trained)


def _unusual(recipe: dict[str, Any]) -> dict[str, Any]:
    """What differs from the defaults."""
    usual = vars(pq.Recipe())
    plain = {name: list(value) if isinstance(value, tuple) else value for name, value in usual.items()}
    return {name: value for name, value in recipe.items() if value != plain.get(name)}


def read(*files: Path) -> list[Result]:
    return [json.loads(line) for file in files if file.exists() for line in file.read_text().splitlines()]


def only(jobs: Sequence[Job], wanted: Sequence[str]) -> list[Job]:
    """Those whose labels have these values, such as data=cifar10."""
    pairs = [each.split("=", 1) for each in wanted]
    return [job for job in jobs if all(str(job.labels[name]) == value for name, value in pairs)]


class Queue:
    """What is run, how, and until when."""

    def __init__(self, flags: argparse.Namespace) -> None:
        self.flags, self.out, self._begin = flags, flags.out, time.time()
        self._end = self._begin + 60 * flags.minutes
        self._stays = self._begin + 60 * flags.session if flags.session else float("inf")
        self._begun: set[str] = set()
        self._failed: list[Result] = []
        self._running: dict[Future[Result | None], tuple[float, Job, ProcessPoolExecutor]] = {}
        self._idle: list[ProcessPoolExecutor] = []

    def known(self) -> list[Result]:
        """Results so far, of other machines too."""
        return results(read(*(() if self.flags.tiny else (KNOWN,)), self.out / RESULTS))

    def missing(self) -> list[Job]:
        done = self.known()
        have = {line["key"] for line in done}
        return [job for job in only(plan(done, tiny=self.flags.tiny), self.flags.only) if job.key not in have]

    def work_off(self) -> None:
        """Run what is missing and can get on in the time there is, several at once."""
        while True:
            for job in self.missing() if len(self._failed) < MOST_FAILED else ():
                if len(self._running) >= self.flags.at_once:
                    break
                if job.key in self._begun or not self._is_worth(job):
                    continue
                if job.is_timed and self._running:
                    break  # its turn comes when all others are over
                self._start(job)
            if not self._running:
                break
            patience = self._end + GRACE_SECONDS - time.time()
            over = wait(self._running, min(max(patience, 0.0), SECONDS_BETWEEN_LOOKS), FIRST_COMPLETED).done
            if not over and time.time() < self._end + GRACE_SECONDS:
                continue  # a study may be over, which others wait for
            if not over:
                for process in multiprocessing.active_children():
                    process.kill()
                print(*(f"{job.name}: ended in time" for _, job, _ in self._running.values()), sep="\n", flush=True)
                break
            for future in over:
                self._take(future)
        for pool in self._idle:
            pool.shutdown()
        left = self.missing()
        print(f"{len(left)} runs are left" if left else "all is done", flush=True)

    def _is_worth(self, job: Job) -> bool:
        """Whether nothing must be known before, it gets on in the time there is, and ends while the machine stays."""
        done = self.known()
        if job.waits_for or job.studies & self._studies_under_way():
            return False
        if any(other.is_timed for _, other, _ in self._running.values()) or (job.is_timed and self.flags.shared):
            return False
        if self.flags.tiny:
            return time.time() < self._end
        standing = read_standing(self.out / "runs" / job.name)
        needed = seconds_left(job, done, self._kept_studies()) * (len(self._running) + 1)
        needed = max(needed - (standing.seconds if standing else 0.0), 0.0)
        now = time.time()
        return now + min(needed, LEAST_SECONDS) < self._end - SAVING_SECONDS and now + needed < self._stays

    def _kept_studies(self) -> set[tuple[Any, ...]]:
        """Those that runs of this directory have done; what other machines have kept is not here."""
        return {tuple(line["study_of"]) for line in read(self.out / RESULTS) if line.get("study_of")}

    def _studies_under_way(self) -> set[tuple[Any, ...]]:
        """Those of runs that have not come to their first label: whoever needs the same waits until it is kept."""
        going = [job for _, job, _ in self._running.values() if job.studies]
        standings = [(job.studies, read_standing(self.out / "runs" / job.name)) for job in going]
        return {study for studies, standing in standings if not (standing and standing.position) for study in studies}

    def _start(self, job: Job) -> None:
        context = multiprocessing.get_context("spawn")
        pool = self._idle.pop() if self._idle else ProcessPoolExecutor(1, mp_context=context)
        saving = 0.0 if self.flags.tiny else SAVING_SECONDS
        arguments = self.out, self.flags.device, self.flags.compile, self._end - saving, self.flags.shared
        self._running[pool.submit(run, job, *arguments)] = time.time(), job, pool
        self._begun.add(job.key)

    def _take(self, future: Future[Result | None]) -> None:
        since, job, pool = self._running.pop(future)
        if (error := future.exception()) is not None:
            told = f"{type(error).__name__}: {error}"
            self._failed.append({**job.labels, "key": job.key, "status": FAILED, "nats": None, "error": told})
            print(f"{job.key} failed: {told}", file=sys.stderr, flush=True)
            pool.shutdown()  # a device that has failed once may not be used again by the same process
            return
        self._idle.append(pool)
        line = future.result()
        if line is None:
            print(f"{job.name}: stopped in time, goes on in the next call", flush=True)
            return
        self._keep(*self._failed, line)
        self._failed.clear()
        nats = "no nats" if line["nats"] is None else f"{line['nats']:10,.1f} nats"
        print(f"{job.name}: {nats}, {line['labels']:,} labels, {time.time() - since:.0f} s", flush=True)

    def _keep(self, *lines: Result) -> None:
        with (self.out / RESULTS).open("a") as file:
            file.writelines(json.dumps(line) + "\n" for line in lines)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path, default=Path("runs/shorter"), metavar="DIR")
    parser.add_argument("--minutes", type=float, default=60.0, help="stop by then; what is unfinished goes on later")
    parser.add_argument(
        "--session", type=float, metavar="MINUTES", help="begin nothing that would not end by then, if it ran alone"
    )
    parser.add_argument("--only", nargs="+", default=[], metavar="LABEL=VALUE", help="such as given=all data=cifar10")
    parser.add_argument("--at-once", type=int, default=1, metavar="N", help="runs side by side")
    parser.add_argument("--shared", action="store_true", help="other programs run too, so that seconds say little")
    parser.add_argument("--compile", choices=COMPILED, default="auto")
    parser.add_argument("--tiny", action="store_true", help="every kind of run, on a CPU, in minutes; into DIR/tiny")
    parser.add_argument("--table", action="store_true", help="run nothing; print what was found and what is missing")
    flags = parser.parse_args(arguments)
    if flags.tiny:
        flags.out = flags.out / "tiny"
    flags.out.mkdir(parents=True, exist_ok=True)
    queue = Queue(flags)
    if not flags.table:
        queue.work_off()
    tell(queue.known(), queue.missing())


if __name__ == "__main__":
    main()
