"""Where runs stand, read from their directories again and again: running, over, or dead."""

import json
import math
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from prequential.errors import PreqError
from prequential.files import read_array
from prequential.measure.comparable import fingerprint_of
from prequential.methods.minibatch import MiniBatches
from prequential.methods.rebuild import method_from_settings
from prequential.plan import Plan
from prequential.runs.leftovers import remove_leftovers
from prequential.runs.live import DIED, Standing, read_standing, status_of
from prequential.runs.record import OVER, RECORD_FILE, read_facts, read_verified

SPARK_WINDOWS = 8
MOST_POSITIONS_COUNTED = 200_000
MOST_EVENTS_COUNTED = 1_000_000
"""Longer plans are not counted for an estimate of the time left: it would take seconds."""
BLOCK = 4096
"""Positions between two sums that are kept: memory does not grow with the nats themselves."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """A run at one moment."""

    path: Path
    status: str
    """A record's, where a run whose process is gone without a word is "died"."""
    facts: dict[str, Any]
    position: int
    nats: float | None
    errors: int | None
    seconds: float
    rate: float | None
    """Labels a second; None of methods without a code."""
    seconds_left: float | None
    """While a run studies, those until its study ends."""
    share: float
    """Of the labels that are coded; where there is no code, of the training that is done."""
    spark: tuple[float, ...] = ()
    """Nats per label in equal pieces of the second half of what is coded."""
    studied: float | None = None
    """The share of its study that is done; None where it studies nothing, or nothing more."""
    regret: float | None = None
    """Nats behind the best at the same position; None where there is nothing to compare with."""
    name: str = ""
    """As much of its path as tells it from others."""
    nothing: str = ""
    """What stands in a cell of which nothing is known."""

    @property
    def nats_per_label(self) -> float | None:
        """The mean loss so far, where it is finite."""
        return None if self.nats is None or math.isinf(self.nats) else self.nats / self.position

    @property
    def data(self) -> dict[str, Any]:
        """What is known of its data."""
        told: dict[str, Any] = self.facts["data"]
        return told

    @property
    def is_going(self) -> bool:
        """Whether a process is at it."""
        return self.status == "running"

    @property
    def sequence(self) -> tuple[Any, ...]:
        """What runs share that can be compared, whatever their inputs are."""
        return self.facts["length"], fingerprint_of(self.data), bool(self.facts.get("prequential"))


class Sums:
    """Codelengths of the prefixes of a nats.npy that grows."""

    def __init__(self, file: Path) -> None:
        self._file, self._blocks, self._inode = file, [0.0], -1
        self._known: dict[int, float] = {0: 0.0}

    def extend(self, length: int) -> None:
        """The first `length` values count now; a run that went back to a checkpoint is read again from there."""
        inode = self._file.stat().st_ino if length and self._file.exists() else -1
        kept = length if inode == self._inode else 0
        self._blocks = self._blocks[: kept // BLOCK + 1]
        self._known, self._inode = {0: 0.0}, inode
        while len(self._blocks) * BLOCK <= length:
            begin = (len(self._blocks) - 1) * BLOCK
            self._blocks.append(self._blocks[-1] + float(read_array(self._file, begin + BLOCK, begin).sum()))

    def at(self, position: int) -> float:
        """The codelength of the first labels, as many as `position` says."""
        if position not in self._known:
            block = position // BLOCK
            rest = read_array(self._file, position, block * BLOCK)
            self._known[position] = self._blocks[block] + float(rest.sum())
        return self._known[position]


class RunReader:
    """Reads one run directory, and only what has changed since."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.sums = Sums(path / "nats.npy")
        self._mark: tuple[int, int] | None = None
        self._verified: tuple[int, int] | None = None
        self._facts: dict[str, Any] = {}
        self._over: Row | None = None

    def read(self) -> Row:
        """Where the run stands.

        Raises:
            PreqError: naming the file that is missing or broken.
        """
        changed = self._read_facts()
        if self._over is not None and not changed:
            return self._over
        status = self._facts["status"]
        standing = None if status in OVER else read_standing(self.path)
        if standing is not None and standing.position > self._facts["length"]:
            standing = None
        status = status_of(self.path, status)
        if status not in OVER and self._read_facts():  # it ended meanwhile
            return self.read()
        if status != "running":  # what is being written may be ahead of the record
            self._require_whole()
        row = self._row(status, standing if status in ("running", DIED) else None)
        self._over = row if status in OVER else None
        remove_leftovers(self.path, status)
        return row

    def _read_facts(self) -> bool:
        try:
            stat = (self.path / RECORD_FILE).stat()
        except OSError as error:
            raise PreqError(f"{self.path} holds no run: {RECORD_FILE} cannot be read ({error.strerror})") from None
        mark = (stat.st_mtime_ns, stat.st_ino)
        if mark == self._mark:
            return False
        self._facts, self._mark = read_facts(self.path), mark
        return True

    def _require_whole(self) -> None:
        """Refuse arrays that are not those of the record, once for each record."""
        if self._verified != self._mark:
            for name in ("nats", "labels", "predicted"):
                read_verified(self.path, name, self._facts["arrays"][name])
            self._verified = self._mark

    def _row(self, status: str, standing: Standing | None) -> Row:
        has_code, standing = bool(self._facts.get("prequential", True)), standing or self._recorded()
        position, seconds = standing.position, standing.seconds
        self.sums.extend(position if has_code else 0)
        is_coded = has_code and position > 0
        share = position / self._facts["length"] if has_code else float(status == "finished")
        learning = max(seconds - standing.study_seconds, 0.0)
        left, done = None, 0.0
        if status == "running":
            done = 0.0 if standing.studied is not None else self._trained_share(standing, share)
            left = _left(learning, done) if standing.studied is None else _left(seconds, standing.studied)
        return Row(
            path=self.path,
            status=status,
            facts=self._facts,
            position=position,
            nats=self.sums.at(position) if is_coded else None,
            errors=standing.errors if is_coded else None,
            seconds=seconds,
            rate=position / learning if is_coded and learning else None,
            seconds_left=left,
            share=share if has_code else done or share,
            spark=self._spark(position) if has_code else (),
            studied=standing.studied,
        )

    def _recorded(self) -> Standing:
        """Where the run stands by its record, which does not tell how much was trained."""
        position, errors = self._facts["arrays"]["nats"]["length"], 0
        if position:
            labels, predicted = (read_array(self.path / f"{name}.npy", position) for name in ("labels", "predicted"))
            errors = int((labels != predicted).sum())
        return Standing(position, None, errors, 0, float(self._facts.get("seconds") or 0.0), "")

    def _spark(self, position: int) -> tuple[float, ...]:
        begin = position // 2
        edges = np.unique(np.linspace(begin, position, SPARK_WINDOWS + 1).round().astype(int)).tolist()
        if len(edges) <= SPARK_WINDOWS or not math.isfinite(self.sums.at(position)):
            return ()
        return tuple((self.sums.at(b) - self.sums.at(a)) / (b - a) for a, b in pairwise(edges))

    def _trained_share(self, standing: Standing, share: float) -> float:
        """The part of the work that is done. What takes time is training, which methods spread differently."""
        data, plan_seed = self._facts["data"], self._facts["seeds"].get("plan_seed", 0)
        settings, has_heldout = json.dumps(self._facts["method"]), data.get("heldout") is not None
        total = _trained_in_all(settings, self._facts["length"], plan_seed, heldout=has_heldout)
        return min(standing.trained_examples / total, 1.0) if total else share


def _left(seconds: float, done: float) -> float | None:
    """How long the rest takes, when a part was done in so many seconds; None where nothing is done.

    Example:
        >>> _left(30.0, 0.25), _left(30.0, 0.0)
        (90.0, None)
    """
    return seconds / done - seconds if done else None


@lru_cache(maxsize=64)
def _trained_in_all(settings: str, length: int, plan_seed: int, *, heldout: bool) -> int | None:
    """Examples that the whole plan trains on; None for a method that is not here, or if counting takes long."""
    try:
        method = method_from_settings(json.loads(settings))
    except PreqError:
        return None
    plan = Plan(method, length, plan_seed, heldout=heldout)
    try:
        work = plan.most_work()
    except PreqError:  # a batch that is larger than the data
        return None
    if work is not None and isinstance(method, MiniBatches):
        return work.trained
    is_short = work is not None and length <= MOST_POSITIONS_COUNTED and work.events <= MOST_EVENTS_COUNTED
    return plan.counts().trained_examples if is_short else None
