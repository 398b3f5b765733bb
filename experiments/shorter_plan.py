"""The queue behind the table of the shortest codes: what is run, in which order, and what it is expected to take.

Everything here is a function of the results so far. Settings are compared by the codelength of the first 10,000 labels
of seed 0, from which that of the whole is estimated, and by nothing else; what those that are compared need is the plan
of the whole run, so that they share its study. The best goes to the end, as several members that are mixed, each of
which is what it is alone.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import prequential as pq
from prequential.methods.all_inputs import given_all_inputs
from prequential.settings import described
from shorter_settings import ALL, CELLS, SO_FAR, Cell, Setting

Result = dict[str, Any]
LENGTH = {"mnist": 60_000, "cifar10": 50_000, "cifar100": 50_000}
COMPARED_AT = 10_000
"""Labels after which candidates are compared."""
SHARE_LATER = 0.5
"""What a label costs that comes later, of what one in the second half of those compared does. Whole runs had 0.5 (VGG++
on CIFAR-10) to 1 (smallconv); the least lets noise decide least."""
ALIKE = 0.005
"""Estimates that differ by less, relatively, tell nothing of which is shorter: seeds differ by as much."""
FAILED, MOST_FAILURES = "failed", 2
TWO_STUDIES = "experiments/two_studies.toml"
TINY_LENGTH, TINY_COMPARED_AT = 48, 24


@dataclass(frozen=True, kw_only=True)
class Job:
    """One run."""

    row: str
    """candidate, single, mixed, or what is left out in a comparison."""
    given: str
    data: str
    setting: Setting
    seed: int = 0
    study_seed: int = 0
    members: int = 1
    own_studies: bool = False
    """Whether each member has a study of its own."""
    length: int = 0
    stop: int | None = None
    """Labels after which it ends."""
    waits_for: str = ""
    """What must be known before; until then the setting is the first of those that are compared."""
    seconds: float | None = None
    """Of learning, counted for a run alone, that its replays should fill."""

    @property
    def labels(self) -> dict[str, Any]:
        """What its result is known by."""
        told = {"given": self.given, "data": self.data, "row": self.row, "setting": self.setting.name}
        return told | {"members": self.members, "seed": self.seed, "study_seed": self.study_seed}

    @property
    def key(self) -> str:
        return json.dumps(self.labels, sort_keys=True)

    @property
    def name(self) -> str:
        """Of its directory."""
        return "-".join(re.sub(r"[^a-z0-9.]+", "_", str(value)) for value in self.labels.values())

    @property
    def command(self) -> str:
        """What does the same."""
        setting, words = self.setting, ["preq run", self.data]
        file = TWO_STUDIES if self.own_studies else setting.file
        words += ["--experts", file] if file else setting.models or [setting.model]
        words += ["--width", f"{setting.width:g}"] if setting.width != 1 else []
        words += ["--all-inputs"] if self.given == ALL else []
        words += ["--preset", setting.preset] if self.given == SO_FAR or setting.preset != "all-inputs" else []
        words += ["--method", setting.method] if setting.method != "mi-rs" else []
        words += setting.flags()
        alike = self.members > 1 and not self.own_studies and not setting.models
        words += ["--members", str(self.members)] if alike else []
        words += ["--study-seed", str(self.study_seed)] if self.study_seed else []
        return " ".join([*words, "--seed", str(self.seed)])

    def settled(self) -> tuple[Any, pq.Recipe]:
        """The method, of the first member, and the recipe."""
        method, recipe = self.setting.settled(self.data, self.given)
        return (replace(method, study_seed=self.study_seed) if self.given == ALL else method), recipe

    @property
    def is_timed(self) -> bool:
        """Whether others get as many minutes as it took, or as many replays as it made in a minute, so that nothing
        may run beside it."""
        return self.row in ("single", "pilot") and self.seed == 0

    @property
    def models(self) -> list[str]:
        """One for each member."""
        return list(self.setting.models) or [self.setting.model] * self.members

    @property
    def study(self) -> tuple[Any, ...] | None:
        """What is studied, told apart from other studies; by the first member if each has its own."""
        given = given_all_inputs(self.settled()[0])
        if given is None or not given.study_steps:
            return None
        return self.data, self.setting.model, given.study_steps, given.study_seed

    @property
    def studies(self) -> set[tuple[Any, ...]]:
        """Those of all members."""
        if self.study is None:
            return set()
        return {(*self.study[:-1], seed) for seed in range(self.members)} if self.own_studies else {self.study}


COMPARED = (ALL, "cifar10")
"""Where study and inputs beside are left out in turn, in the same minutes."""
SEEDS = 3
"""Of the single run, which members of mixtures tell of elsewhere."""
LONGER = 1.5
"""Times as long is the study that is tried last."""


def results(lines: Sequence[Result]) -> list[Result]:
    """One for each run. One that has failed twice counts as a result without nats, so that others go on.

    Example:
        >>> failed, finished = ({"key": "a", "status": status} for status in ("failed", "finished"))
        >>> [len(results(lines)) for lines in ([failed], [failed] * 2, [failed, failed, finished])]
        [0, 1, 1]
    """
    ended = dict[str, Result]()
    for line in lines:
        if line["status"] != FAILED:
            ended.setdefault(line["key"], line)
    failed = [line for line in lines if line["status"] == FAILED and line["key"] not in ended]
    times = Counter(line["key"] for line in failed)
    given_up = {line["key"]: line for line in failed if times[line["key"]] >= MOST_FAILURES}
    return [*ended.values(), *given_up.values()]


def plan(done: Sequence[Result], *, tiny: bool = False) -> list[Job]:
    """Every job, in order; those that wait for results have provisional settings."""
    found = [*_jobs(done)]
    if tiny:
        return [shrunk(job) for job in found]
    return [replace(job, length=LENGTH[job.data]) for job in found]


def _jobs(done: Sequence[Result]) -> Iterator[Job]:
    for where, cell in CELLS.items():
        yield from _candidates(where, cell)
        if where == COMPARED:
            yield from (_single(where, done, seed) for seed in range(SEEDS))
        yield _mixed(where, cell, done)
        yield from _together(where, cell)
    yield from _left_out(done)
    yield _longer(done)


def _candidates(where: tuple[str, str], cell: Cell) -> Iterator[Job]:
    given, data = where
    for setting in cell.settings:
        yield Job(row="candidate", given=given, data=data, setting=setting, stop=COMPARED_AT)


def compared(where: tuple[str, str], done: Iterable[Result]) -> list[Result]:
    """The candidates that are known, the shortest code first; one that has none is last."""
    lines = {line["key"]: line for line in done}
    return sorted((lines[job.key] for job in _candidates(where, CELLS[where]) if job.key in lines), key=whole_nats)


def whole_nats(line: Result) -> float:
    """What is compared: an estimate of the whole code. Most of it lies late, where those that begin best need not be.

    Example:
        >>> curve = [[20_000, 1_000.0], [40_000, 1_600.0]]  # 0.03 nats a label in the second half
        >>> whole_nats({"data": "mnist", "status": "pruned", "nats": 1_600.0, "labels": 40_000, "curve": curve})
        1900.0
    """
    if line["status"] not in ("finished", "pruned") or line["nats"] is None:
        return math.inf
    nats, labels = float(line["nats"]), line["labels"]
    first_half = float(np.interp(labels / 2, *np.array(line["curve"], float).T))
    each = (nats - first_half) / (labels - labels / 2)
    return nats + SHARE_LATER * each * (LENGTH[line["data"]] - labels)


def chosen(where: tuple[str, str], done: Iterable[Result]) -> tuple[Setting, str]:
    """The setting whose whole code should be shortest, of those that are alike the one that takes the fewest FLOPs; and
    what must be known before it is chosen."""
    settings, lines = CELLS[where].settings, compared(where, done)
    if len(lines) < len(settings):
        return settings[0], "candidates"
    alike = [line for line in lines if whole_nats(line) <= (1 + ALIKE) * whole_nats(lines[0])]
    best = min(alike, key=lambda line: float((line.get("flops") or {}).get("code", math.inf)))
    return next(each for each in settings if each.name == best["setting"]), ""


def _single(where: tuple[str, str], done: Sequence[Result], seed: int = 0) -> Job:
    """A run by itself, for what is compared with it. Else members of mixtures, which are what they are alone, tell what
    single runs need."""
    given, data = where
    setting, waits = chosen(where, done)
    return Job(row="single", given=given, data=data, setting=setting, seed=seed, waits_for=waits)


def _mixed(where: tuple[str, str], cell: Cell, done: Sequence[Result]) -> Job:
    given, data = where
    setting, waits = chosen(where, done)
    return Job(
        row="mixed", given=given, data=data, setting=setting, members=cell.members, own_studies=cell.own_studies,
        waits_for=waits,
    )  # fmt: skip


def _together(where: tuple[str, str], cell: Cell) -> Iterator[Job]:
    given, data = where
    for setting in cell.together:
        yield Job(row="mixed", given=given, data=data, setting=setting, members=len(setting.models))


def _result_of(job: Job, done: Iterable[Result]) -> Result | None:
    """Unless it failed."""
    return next((line for line in done if line["key"] == job.key and line["status"] != FAILED), None)


def _left_out(done: Sequence[Result]) -> Iterator[Job]:
    """The same network, augmentation and minutes, without study, without inputs beside, without either, and as for
    inputs so far. The minutes that are saved go into more replays; a run of the same kind tells how many."""
    given, data = COMPARED
    setting, waits = chosen(COMPARED, done)
    either = setting.changed(study_steps=0, beside=0)
    pilot = Job(row="pilot", given=given, data=data, setting=either, stop=COMPARED_AT, waits_for=waits)
    whole = _single(COMPARED, done)
    alone = [line for line in done if not line.get("shared")]
    base, measured = _result_of(whole, alone), _result_of(pilot, alone)
    if base is None or measured is None:
        waits = waits or "the whole run and the pilot"
        base, measured = _as_expected(replace(whole, length=LENGTH[data]))
    yield pilot
    without = {
        "without study": (ALL, setting.changed(study_steps=0)),
        "without beside": (ALL, setting.changed(beside=0)),
        "without either": (ALL, either),
        "inputs so far": (SO_FAR, _of_labels_alone(setting)),
    }
    for row, (what, each) in without.items():
        seconds = base["seconds"] + (0 if row == "without beside" else base["study_seconds"])
        rate = (base if row == "without study" else measured)["labelled_per_second"]
        each = each.changed(passes=replays_in(seconds, rate, LENGTH[data]))
        yield Job(row=row, given=what, data=data, setting=each, waits_for=waits, seconds=seconds)


def _as_expected(whole: Job) -> tuple[Result, Result]:
    """What the whole run and the pilot should be like, before they are."""
    (study, learning), cost = expected(whole), COSTS[whole.setting.model]
    each = cost.labelled + whole.settled()[0].beside * cost.beside
    base = {"seconds": learning, "study_seconds": study, "labelled_per_second": 1e6 / each}
    return base, {"labelled_per_second": 1e6 / cost.labelled}


def _of_labels_alone(setting: Setting) -> Setting:
    kept = {name: value for name, value in setting.changes.items() if name not in described(pq.AllInputs)}
    return replace(setting, changes=kept)


def replays_in(seconds: float, labelled_per_second: float, length: int) -> int:
    """Replays of each label that fit into so many seconds, besides the label itself.

    Example:
        >>> replays_in(100.0, 5_500.0, 50_000)
        10
    """
    return max(1, int(seconds * labelled_per_second / length) - 1)


def _longer(done: Sequence[Result]) -> Job:
    given, data = COMPARED
    setting, waits = chosen(COMPARED, done)
    steps = setting.settled(data, given)[0].study_steps
    return Job(
        row="longer study", given=given, data=data, setting=setting.changed(study_steps=int(LONGER * steps)),
        waits_for=waits,
    )  # fmt: skip


def shrunk(job: Job) -> Job:
    """The same kind of run, so small that a CPU does it in a second."""
    method, _ = job.setting.settled(job.data, job.given)
    small: dict[str, Any] = {"passes": 1, "batch_size": 8, "first_block": 4, "min_steps": 1}
    if (given := given_all_inputs(method)) is not None:
        small |= {"study_steps": min(given.study_steps, 2), "study_batch_size": 8, "beside": min(given.beside, 1)}
    tiny = replace(job.setting.changed(**small), width=1 / 32 if job.setting.model.startswith("wrn") else 1 / 16)
    stop = None if job.stop is None else TINY_COMPARED_AT
    return replace(job, setting=tiny, length=TINY_LENGTH, stop=stop)


@dataclass(frozen=True)
class Cost:
    """Microseconds of an H200 for each input of a step, in bfloat16, compiled."""

    labelled: float
    beside: float = 0.0
    """The averaged network looks at it as well."""
    study: float = 0.0
    """Two views of it, for the network and for its average."""


COSTS = {
    "smallconv": Cost(8.8, 4.0, 8.0),
    "simplecnn3": Cost(25.0, 12.0, 30.0),
    "simplecnn5": Cost(20.0),
    "simplecnn7": Cost(20.0),
    "vggpp": Cost(17.0),
    "resnet18": Cost(11.8, 15.7, 27.5),
    "resnet18-ws": Cost(16.0),
    "wrn-28-10": Cost(90.0),
    "wrn-28-10-ws": Cost(90.0),
}
"""Measured: smallconv in batches of 32, 280 µs a step; vggpp 1.7 ms in batches of 128; wrn-28-10 11.5 ms; resnet18 with
384 inputs beside 128 labelled ones 7.5 ms, a step of its study, of 1,024 inputs, 28.2 ms. The others are guesses."""
START_SECONDS = 60.0
"""To begin: reading, trying, compiling."""


def expected(job: Job) -> tuple[float, float]:
    """Seconds of study, and of learning."""
    method, _ = job.settled()
    given, costs = given_all_inputs(method), [COSTS[model] for model in job.models]
    trained = (method if given is None else given.method).most_work(job.stop or job.length).trained
    beside = [
        0 if given is None or (job.setting.others_so_far and m != job.models[0]) else given.beside for m in job.models
    ]
    each = sum(cost.labelled + number * cost.beside for cost, number in zip(costs, beside, strict=True))
    each *= job.setting.width**2
    studied = 0 if given is None else given.study_steps * given.study_batch_size
    of_studies = 1e-6 * studied * costs[0].study * len(job.studies)
    return of_studies, 1e-6 * trained * each + START_SECONDS


def seconds_left(job: Job, done: Sequence[Result], kept: Collection[tuple[Any, ...]] = ()) -> float:
    """What it should take where these studies are kept, with what is known of how fast such runs were."""
    of_study, learning = expected(job)
    of_study *= len(job.studies - set(kept)) / max(len(job.studies), 1)
    model, several = job.setting.model, job.members > 1
    ran = [line for line in done if line["status"] != FAILED and not line.get("shared")]
    alike = [line for line in ran if (line["given"], line["model"], line["members"] > 1) == (job.given, model, several)]
    pace = max((line["seconds"] / line["expected_seconds"] for line in alike), default=1.0)
    return of_study + learning * pace
