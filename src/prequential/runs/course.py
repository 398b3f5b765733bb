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
from prequential.learn.environment import require_threads
from prequential.lock import DirectoryLock
from prequential.runs.directory import RunDirectory
from prequential.runs.live import ProgressFile
from prequential.runs.loop import execute
from prequential.runs.progress import Listener, Pruned, tell_of
from prequential.runs.record import ARRAYS, RECORD_FILE, Record, require_no_run, require_writable
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
class Course:
    """How a run goes: with how many threads, heard by whom, and where the records go, if anywhere."""

    paths: Sequence[Path] | None
    """A directory for each member."""
    resume: bool
    checkpoint_seconds: float
    threads: int | str | None
    of_each: Sequence[Sequence[Listener]]
    """Listeners of each member that was asked for."""
    of_all: Sequence[Listener] = ()
    """Listeners of all members together."""
    stacked: bool = False

    def __post_init__(self) -> None:
        require_number("checkpoint_seconds", self.checkpoint_seconds, at_least=0)
        if self.paths is None and self.resume:
            raise PreqError("resume needs the directory of the run; give out=")
        self._require_room()
        require_threads(self.threads)

    def _require_room(self) -> None:
        """Refuse directories that hold a run, unless it is to be resumed."""
        for path in self.paths or ():
            if not self.resume or (self.stacked and not (path / RECORD_FILE).exists()):
                require_no_run(path)

    def run(self, session: Session) -> list[Record]:
        """Execute a session, or the rest of it; gives the records in the order of the members."""
        numbers = list(range(len(session.seeds)))
        if self.paths is None:
            return list(_Going(self, session, numbers, None).run().values())
        with contextlib.ExitStack() as locks:
            for path in self.paths:
                locks.enter_context(DirectoryLock(require_writable(path)))
            self._require_room()  # again, now that nobody else can begin a run there
            how = {"stacked": self.stacked, "evaluate": session.plan.heldout}
            directory = RunDirectory(self.paths, session.facts, **how, every_seconds=self.checkpoint_seconds)
            done = directory.finished() if self.resume else {}
            for number, record in done.items():
                ProgressFile(self.paths[number]).end(record)  # of one that was killed before it was done with it
            if missing := [number for number in numbers if number not in done]:
                done |= _Going(self, session, missing, directory).run()
            directory.clear()
            return [done[number] for number in numbers]


class _Going:
    """A run at its beginning, or where a checkpoint left it.

    Args:
        course: how it goes.
        session: what is executed.
        missing: numbers of the members that have no record yet. What runs are these, or those that a checkpoint has.
        directory: where records go, if anywhere.
    """

    def __init__(
        self, course: Course, session: Session, missing: Sequence[int], directory: RunDirectory | None
    ) -> None:
        self._session, self._plan, self._directory, self._of_all = session, session.plan, directory, course.of_all
        checkpoint = directory.newest(missing, session.learner_of) if directory is not None and course.resume else None
        self._numbers = numbers = missing if checkpoint is None else checkpoint.numbers
        self._learner = session.learner_of(numbers) if checkpoint is None else checkpoint.learner
        self._threads = course.threads if checkpoint is None else checkpoint.threads(course.threads)
        self._labels = Scorer(session.learner.data, self._learner.device)
        if directory is not None and checkpoint is None:
            directory.begin(numbers)
        # of members that a checkpoint has and that are not missing, the record is there already
        paths = {} if directory is None else {number: directory.members[number].path for number in missing}
        files: dict[int, list[Listener]] = {number: [ProgressFile(path)] for number, path in paths.items()}
        self._of_each = [[*course.of_each[n], *files.get(n, [])] if n in missing else [] for n in numbers]
        allow_open_files(len(ARRAYS) * len(paths))
        target = capabilities(session.learner.data).target
        self._recorder = Recorder(self._plan, target, [paths.get(n) for n in numbers], create=checkpoint is None)
        try:
            if checkpoint is not None:
                checkpoint.restore(self._recorder)
            # labels that were coded before the run was interrupted; of a method without a code, all
            prequential = self._plan.method.prequential
            self._labels.frontier = self._recorder.position if prequential else self._plan.length
        except BaseException:
            self._recorder.close()
            raise

    def run(self) -> dict[int, Record]:
        """Execute the rest of the plan, and keep the records where there is a directory; gives them by member."""
        session, recorder = self._session, self._recorder
        with contextlib.closing(recorder), session.at_work(self._learner, self._threads), StopRequest() as stop:
            try:
                for number, member, listeners in zip(self._numbers, recorder.members, self._of_each, strict=True):
                    tell_of("begin", listeners, session.facts[number].facts(), member.progress(recorder.seconds))
                execute(self._plan, self._learner, self._labels, recorder, self._pause, stop)
                recorder.report(self._of_all, self._of_each)
                if any(member.status == "stopped" for member in recorder.members):
                    self._save()
            except KeyboardInterrupt:
                recorder.finish("stopped")
            except Pruned:
                recorder.finish("pruned")
            except BaseException:
                with contextlib.suppress(Exception):
                    recorder.finish("failed")
                    self._keep()
                raise
            records = self._keep()
        if any(record.status == "stopped" for record in records.values()):
            raise Interrupted(list(records.values()), stop.signal_number or signal.SIGINT)
        return records

    def _pause(self) -> None:
        """A few times a second, between events."""
        self._recorder.report(self._of_all, self._of_each)
        if self._recorder.position == self._plan.length or not self._plan.method.prequential:
            self._recorder.note_finite(self._learner.finite())
        if self._directory is not None and self._directory.checkpoints.save_is_due():
            self._save()

    def _save(self) -> None:
        if self._directory is not None:
            self._directory.save(self._numbers, self._learner, self._recorder)

    def _keep(self) -> dict[int, Record]:
        """The records, written where there is a directory."""
        facts = self._session.results(self._numbers, self._learner, self._recorder)
        if self._directory is None:
            members = zip(self._numbers, facts, self._recorder.members, strict=True)
            records = {number: Record(**told, **member.arrays()) for number, told, member in members}
        else:
            records = self._directory.finish(self._numbers, self._recorder, facts)
        for number, listeners in zip(self._numbers, self._of_each, strict=True):
            if number in records:
                tell_of("end", listeners, records[number])
        return records
