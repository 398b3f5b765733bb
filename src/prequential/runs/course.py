"""The course of a run, of one member or of many: begun or resumed, executed, finished, and kept."""

import contextlib
import signal
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from prequential.coding.labels import Scorer
from prequential.data.optional import capabilities
from prequential.errors import PreqError, require_number
from prequential.files import allow_open_files
from prequential.learn.environment import require_threads
from prequential.lock import DirectoryLock
from prequential.mixers.kept import expert_names
from prequential.runs.directory import RunDirectory
from prequential.runs.live import ProgressFile
from prequential.runs.loop import execute
from prequential.runs.progress import Listener, Pruned, tell_of
from prequential.runs.record import OVER, Record, arrays_of, require_no_run, require_writable
from prequential.runs.recorder import Recorder
from prequential.runs.session import Session
from prequential.runs.signals import StopRequest
from prequential.runs.studies import Studies, told_of_studies
from prequential.runs.weights import ABOUT_FILE, keep_weights, require_keepable


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
    keep_weights: bool = False
    studies: Studies = field(default_factory=Studies)
    """Where what was studied is kept."""

    def __post_init__(self) -> None:
        require_number("checkpoint_seconds", self.checkpoint_seconds, at_least=0)
        if self.paths is None and self.resume:
            raise PreqError("resume needs the directory of the run; give out=")
        if self.paths is None and self.keep_weights:
            raise PreqError("keep_weights needs a directory for the weights; give out=")
        self._require_room()
        require_threads(self.threads)

    def _require_room(self) -> None:
        """Refuse directories that hold a run, unless it is to be resumed."""
        for path in () if self.paths is None or self.resume else self.paths:
            require_no_run(path)

    def run(self, session: Session) -> list[Record]:
        """Execute a session, or the rest of it; gives the records in the order of the members."""
        numbers = list(range(len(session.seeds)))
        if self.keep_weights:
            require_keepable(session.learner)
        if self.paths is None:
            return list(_Going(self, session, numbers, None).run().values())
        with contextlib.ExitStack() as locks:
            for path in self.paths:
                locks.enter_context(DirectoryLock(require_writable(path)))
            self._require_room()  # again, now that nobody else can begin a run there
            directory = RunDirectory(self.paths, session, stacked=self.stacked, every_seconds=self.checkpoint_seconds)
            done = directory.finished() if self.resume else {}
            for number, record in done.items():
                ProgressFile(self.paths[number]).end(record)  # of one that was killed before it was done with it
                if self.keep_weights and not (self.paths[number] / ABOUT_FILE).exists():
                    raise PreqError(
                        f"the run in {self.paths[number]} is {record.status} and kept no weights; begin anew"
                    )
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

    def __init__(self, course: Course, session: Session, missing: list[int], directory: RunDirectory | None) -> None:
        checkpoint = directory.newest(missing, course.threads) if directory and course.resume else None
        self._session, self._directory, self._checkpoint, self._of_all = session, directory, checkpoint, course.of_all
        self._keeps_weights, self._studies = course.keep_weights, course.studies
        self._labels = Scorer(session.learner.data, session.learner.device)
        if checkpoint is None:
            self._numbers, self._learner, self._threads = missing, session.learner_of(missing), course.threads
            if directory is not None:
                directory.begin(missing)
        else:
            capabilities(session.learner.data).require_intact()  # what was learned so far was learned from it
            self._numbers, self._learner, self._threads = checkpoint.numbers, checkpoint.learner, checkpoint.threads
        # of members that a checkpoint has and that are not missing, the record is there already
        paths = {} if directory is None else {number: directory.paths[number] for number in missing}
        files: dict[int, list[Listener]] = {number: [ProgressFile(path)] for number, path in paths.items()}
        self._of_each = [[*course.of_each[n], *files.get(n, [])] if n in missing else [] for n in self._numbers]
        allow_open_files(len(arrays_of(session.facts[0].model)) * len(paths))
        target, kept = capabilities(session.learner.data).target, [paths.get(n) for n in self._numbers]
        num_experts = len(expert_names(session.facts[0].model))
        self._recorder = Recorder(session.plan, target, kept, create=checkpoint is None, num_experts=num_experts)

    def run(self) -> dict[int, Record]:
        """Execute the rest of the plan, and keep the records where there is a directory; gives them by member."""
        session, recorder = self._session, self._recorder
        with contextlib.closing(recorder), session.at_work(self._learner, self._threads), StopRequest() as stop:
            if self._checkpoint is not None:
                self._checkpoint.restore(recorder)
            # labels that were coded before the run was interrupted; of a method without a code, all
            self._labels.frontier = recorder.position if session.plan.method.prequential else session.plan.length
            try:
                self._studies.begin(self._learner, recorder)
                for number, member, listeners in zip(self._numbers, recorder.members, self._of_each, strict=True):
                    told = session.facts[number].facts() | told_of_studies(recorder)
                    tell_of("begin", listeners, told, member.progress(recorder.seconds))
                execute(session.plan, self._learner, self._labels, recorder, self._pause, stop, self._studies)
                recorder.report(self._of_all, self._of_each)
                if self._directory is not None and any(member.status == "stopped" for member in recorder.members):
                    self._directory.save(self._numbers, self._learner, recorder)
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
        if not self._session.plan.method.prequential:  # what ends there would be found at its end as well
            self._recorder.note_finite(self._learner.finite())
        if self._directory is not None and self._directory.checkpoints.save_is_due():
            self._directory.save(self._numbers, self._learner, self._recorder)

    def _keep(self) -> dict[int, Record]:
        """The records, written where there is a directory, of members that had none. Unless all are over, even those
        that have diverged are there as the others are, since they go on together."""
        members, records = self._recorder.members, dict[int, Record]()
        left = next((member.status for member in members if member.status not in OVER), None)
        more = {} if left is None or self._directory is None else {"status": left, "flops": None}
        facts = self._session.results(self._numbers, self._learner, self._recorder)
        for number, member, told in zip(self._numbers, members, facts, strict=True):
            if self._keeps_weights and member.path is not None and member.status == "finished" == told["status"]:
                keep_weights(member.path, self._learner, self._session.plan)  # before the record says that all is done
            if self._directory is None or member.path is not None:
                records[number] = member.record(told | more, is_over=left is None)
        for number, listeners in zip(self._numbers, self._of_each, strict=True):
            tell_of("end", listeners, records.get(number))  # a member without a record has no listeners
        return records
