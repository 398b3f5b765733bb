"""The course of a run, of one member or of many: begun or resumed, executed, finished, and kept."""

import contextlib
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from prequential.coding.labels import Scorer
from prequential.data.optional import capabilities
from prequential.errors import PreqError, require_number
from prequential.files import allow_open_files
from prequential.learn.learning import Learning
from prequential.lock import DirectoryLock
from prequential.runs.directory import RunDirectory
from prequential.runs.live import ProgressFile
from prequential.runs.loop import execute
from prequential.runs.progress import Listener, Pruned, tell_begin, tell_end
from prequential.runs.record import ARRAYS, RECORD_FILE, Record, claim, require_no_run
from prequential.runs.recorder import Recorder
from prequential.runs.session import Session
from prequential.runs.signals import StopRequest


class Interrupted(KeyboardInterrupt):
    """Ctrl-C or SIGTERM: the run stopped between two events, and `records` hold what was measured of each member."""

    def __init__(self, records: Sequence[Record], signal_number: int = signal.SIGINT) -> None:
        super().__init__(f"stopped at label {len(records[0].nats)} of {records[0].length}")
        self.records, self.signal_number = list(records), signal_number

    @property
    def record(self) -> Record:
        """Of the first member, or of the only one."""
        return self.records[0]


@dataclass(frozen=True)
class Keeping:
    """Where the records of a run go, if anywhere: a directory for each member."""

    paths: Sequence[Path] | None
    resume: bool
    checkpoint_seconds: float
    stacked: bool

    def __post_init__(self) -> None:
        require_number("checkpoint_seconds", self.checkpoint_seconds, at_least=0)
        if self.paths is None and self.resume:
            raise PreqError("resume needs the directory of the run; give out=")
        self._require_room()

    def _require_room(self) -> None:
        """Refuse directories that hold a run, unless it is to be resumed."""
        for path in self.paths or ():
            if not self.resume or (self.stacked and not (path / RECORD_FILE).exists()):
                require_no_run(path)

    def run(
        self,
        session: Session,
        threads: int | str | None,
        of_all: Sequence[Listener],
        of_each: Sequence[Sequence[Listener]],
    ) -> list[Record]:
        """Execute a session, or the rest of it; gives the records in the order of the members."""
        numbers = list(range(len(session.seeds)))
        if self.paths is None:
            begun = _begin(session, numbers, None, threads, resume=False)
            return list(_go(session, begun, None, of_all, of_each).values())
        with contextlib.ExitStack() as locks:
            for path in self.paths:
                locks.enter_context(DirectoryLock(claim(path)))
            self._require_room()  # again, now that nobody else can begin a run there
            directory = RunDirectory(
                self.paths,
                session.facts,
                stacked=self.stacked,
                evaluate=session.plan.heldout,
                every_seconds=self.checkpoint_seconds,
            )
            done: dict[int, Record] = {}
            if self.resume:
                directory.require_ours()
                done = directory.finished()
                for number, record in done.items():
                    ProgressFile(self.paths[number]).end(record)  # of one that was killed before it was done with it
            missing = [number for number in numbers if number not in done]
            if missing:
                begun = _begin(session, missing, directory, threads, resume=self.resume)
                done |= _go(session, begun, directory, of_all, of_each)
            directory.clear()
            return [done[number] for number in numbers]


@dataclass(frozen=True)
class _Begun:
    """A run at its beginning, or where a checkpoint left it."""

    numbers: Sequence[int]
    """Which of the members that were asked for it has."""
    learner: Learning
    labels: Scorer
    recorder: Recorder
    threads: int | str | None


def _begin(
    session: Session,
    missing: Sequence[int],
    directory: RunDirectory | None,
    threads: int | str | None,
    *,
    resume: bool,
) -> _Begun:
    """What the missing members need: the run that a checkpoint has, or a fresh one of them alone."""
    plan, data = session.plan, session.learner.data
    checkpoint = None if directory is None or not resume else directory.newest(missing, session.learner_of)
    numbers = missing if checkpoint is None else checkpoint.numbers
    learner = session.learner_of(numbers) if checkpoint is None else checkpoint.learner
    threads = threads if checkpoint is None else checkpoint.threads(threads)
    labels = Scorer(data, learner.device)
    if directory is not None and checkpoint is None:
        directory.begin(numbers)
    kept = [
        None if directory is None or number not in missing else directory.members[number].path for number in numbers
    ]
    allow_open_files(len(ARRAYS) * sum(path is not None for path in kept))
    recorder = Recorder(plan, capabilities(data).target, kept, create=checkpoint is None)
    try:
        if checkpoint is not None:
            checkpoint.restore(recorder)
        labels.catch_up(recorder.position if plan.method.prequential else plan.length)
    except BaseException:
        recorder.close()
        raise
    return _Begun(numbers, learner, labels, recorder, threads)


def _go(
    session: Session,
    begun: _Begun,
    directory: RunDirectory | None,
    of_all: Sequence[Listener],
    of_each: Sequence[Sequence[Listener]],
) -> dict[int, Record]:
    """Execute the rest of the plan, and keep the records where there is a directory; gives them by member."""
    plan, learner, recorder, numbers = session.plan, begun.learner, begun.recorder, begun.numbers
    heard: list[list[Listener]] = [
        [*of_each[number], *([] if directory is None else [ProgressFile(directory.members[number].path)])]
        if member.is_kept or directory is None
        else []  # its record is there already
        for number, member in zip(numbers, recorder.members, strict=True)
    ]

    def pause() -> None:
        recorder.report(of_all, heard)
        if recorder.position == plan.length or not plan.method.prequential:
            recorder.note_finite(learner.finite())
        if directory is not None and directory.save_is_due():
            directory.save(numbers, learner, recorder)

    def kept() -> dict[int, Record]:
        facts = session.results(numbers, learner, recorder)
        if directory is None:
            members = zip(numbers, facts, recorder.members, strict=True)
            records = {number: Record(**told, **member.arrays()) for number, told, member in members}
        else:
            records = directory.finish(numbers, recorder, facts)
        for number, listeners in zip(numbers, heard, strict=True):
            if number in records:
                tell_end(listeners, records[number])
        return records

    with contextlib.closing(recorder), session.at_work(learner, begun.threads), StopRequest() as stop:
        try:
            for number, member, listeners in zip(numbers, recorder.members, heard, strict=True):
                tell_begin(listeners, session.facts[number].plain(), member.progress(recorder.seconds))
            execute(plan, learner, begun.labels, recorder, pause, stop)
            recorder.report(of_all, heard)
            if directory is not None and any(member.status == "stopped" for member in recorder.members):
                directory.save(numbers, learner, recorder)
        except KeyboardInterrupt:
            recorder.finish("stopped")
        except Pruned:
            recorder.finish("pruned")
        except BaseException:
            with contextlib.suppress(Exception):
                recorder.finish("failed")
                kept()
            raise
        records = kept()
    if any(record.status == "stopped" for record in records.values()):
        raise Interrupted(list(records.values()), stop.signal_number or signal.SIGINT)
    return records
