"""A run of one model or of many: a plan executed from its first event, or from a checkpoint, to a record of each."""

import contextlib
import signal
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from prequential.coding.labels import Scorer
from prequential.data.sequence import DataSequence
from prequential.errors import PreqError, require_number
from prequential.learn.environment import find_num_threads, num_threads, repeatable, require_threads
from prequential.learn.execution import Execution
from prequential.learn.learning import Learning
from prequential.learn.randomness import seeded
from prequential.learn.recipe import Recipe
from prequential.lock import DirectoryLock
from prequential.methods import Method
from prequential.models import ModelFactory
from prequential.runs.directory import RunDirectory
from prequential.runs.live import ProgressFile
from prequential.runs.loop import execute
from prequential.runs.progress import Listener, Pruned, tell_begin, tell_end
from prequential.runs.record import RECORD_FILE, Record, claim, require_no_run
from prequential.runs.recorder import Recorder
from prequential.runs.session import Session, make_session
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


def run(
    make_model: str | ModelFactory,
    data: DataSequence,
    method: Method | None = None,
    recipe: Recipe | None = None,
    *,
    seed: int,
    plan_seed: int = 0,
    width: float = 1.0,
    device: str = "cpu",
    engine: str = "auto",
    precision: str = "auto",
    compiled: bool | None = None,
    deterministic: bool = False,
    threads: int | str | None = None,
    out: str | Path | None = None,
    resume: bool = False,
    checkpoint_seconds: float = 60.0,
    listeners: Iterable[Listener] = (),
) -> Record:
    """Learn a sequence from front to back and measure the code it gives.

    Args:
        make_model: a model's name, or a function or class that returns a fresh nn.Module. It is given
            those of the keywords `input_shape`, `num_classes` and `width` that it takes.
        data: the sequence, from `from_arrays`, `from_dataset` or `load_data`.
        method: who decides what is learned when. Default: `ReplayStreams()`.
        recipe: the settings of training. Default: `Recipe()`.
        seed: initialisation, dropout and perturbation. The data's order and the plan do not depend on it.
        plan_seed: the plan. Runs that share it (and the data) can be compared pairwise.
        width: scales the layers of models that have a width.
        device: "cpu", "cuda", "cuda:1", …
        engine: "eager", "graph" (steps recorded once and replayed) or "auto": graph on a GPU.
        precision: "fp32", "bf16" or "auto": bf16 for the graph engine on a GPU.
        compiled: whether the graph engine compiles the network. None: where the run is long enough.
        deterministic: make a GPU give the same bits each time.
        threads: CPU threads; "auto" measures, None leaves torch's setting alone.
        out: a directory for the record and its checkpoints; it must not hold a run yet.
        resume: go on with the run in `out` where its last checkpoint left it; a finished one is returned.
        checkpoint_seconds: how often the state is saved into `out`.
        listeners: called with `Progress` a few times a second, such as `track("tensorboard", directory)`.

    Returns:
        The record, with status "finished", "diverged" if a label had no finite codelength, or "pruned" if a
        listener raised `Pruned`.

    Raises:
        PreqError: for mistakes in what was given; nothing was written.
        Interrupted: on Ctrl-C or SIGTERM; carries the record up to there, which `out` then holds too.

    Example:
        >>> import prequential as pq
        >>> data = pq.load_data("mnist").take(64).without_heldout()
        >>> record = pq.run("mlp1", data, pq.ReplayStreams(num_streams=1), seed=0)
        >>> len(record.nats), record.status
        (64, 'finished')
    """
    keeping = _Keeping(None if out is None else [Path(out)], resume, checkpoint_seconds, stacked=False)
    require_threads(threads)
    session = make_session(
        make_model,
        data,
        method,
        [recipe],
        [seed],
        plan_seed=plan_seed,
        width=width,
        device=device,
        execution=Execution(engine=engine, precision=precision, compiled=compiled, deterministic=deterministic),
    )
    return keeping.run(session, threads, (), [list(listeners)])[0]


def run_stack(
    make_model: str | ModelFactory,
    data: DataSequence,
    method: Method | None,
    recipes: Sequence[Recipe],
    *,
    seeds: Sequence[int],
    plan_seed: int = 0,
    width: float = 1.0,
    device: str = "cpu",
    precision: str = "auto",
    compiled: bool | None = None,
    deterministic: bool = False,
    threads: int | str | None = None,
    out: Sequence[str | Path] | None = None,
    resume: bool = False,
    checkpoint_seconds: float = 60.0,
    evaluate: bool = True,
    listeners: Iterable[Listener] = (),
    listeners_of_each: Sequence[Iterable[Listener]] | None = None,
) -> list[Record]:
    """Run many models of one architecture at once, and give a record for each.

    All members share data, order, plan and batches. Each has its own seed and its own recipe, which may differ in
    numbers only. A member that diverges leaves the others alone.

    Args:
        make_model: as in `run`; built from layers that torch.vmap can handle.
        data: the sequence.
        method: who decides what is learned when. Default: `ReplayStreams()`.
        recipes: the settings of training, one for each member.
        seeds: one for each member: initialisation, dropout, augmentation and perturbation.
        plan_seed: the plan.
        width: scales the layers of models that have a width.
        device: "cpu", "cuda", "cuda:1", …
        precision: "fp32", "bf16" or "auto": bf16 on a GPU.
        compiled: whether the network is compiled on a GPU. None: where the run is long enough.
        deterministic: make a GPU give the same bits each time.
        threads: CPU threads, as in `run`.
        out: a directory for each member's record; none of them may hold a run yet. The state that all share is kept in
            one directory more, which is named as the first of them with `.stack` behind.
        resume: go on with the stack where its last checkpoint left it. Finished records are returned as they are;
            where a member is missing that no checkpoint of these members has, the missing ones begin anew.
        checkpoint_seconds: how often the state is saved.
        evaluate: whether held-out data, where there is any, is evaluated at the end.
        listeners: called with the `Progress` of the whole stack, means over its members, a few times a second.
        listeners_of_each: for each member listeners as in `run`, which hear of it alone, of its begin and of its end.

    Returns:
        The records in the order of the recipes; `seconds` is each member's share of the time. Where a listener of the
        whole stack raised `Pruned`, all members that were going have status "pruned"; where one of a member did, it.

    Raises:
        PreqError: for mistakes in what was given, naming the setting or the layer.
        Interrupted: on Ctrl-C or SIGTERM; carries the records up to there. The state is saved if `out` is given.

    Example:
        >>> import prequential as pq
        >>> data = pq.load_data("mnist").take(64).without_heldout()
        >>> recipes = [pq.Recipe(learning_rate=rate) for rate in (1e-3, 3e-3)]
        >>> records = run_stack("lenet", data, pq.ReplayStreams(num_streams=1), recipes, seeds=[0, 1])
        >>> [(len(record.nats), record.environment["engine"]) for record in records]
        [(64, 'stack'), (64, 'stack')]
    """
    paths = None if out is None else [Path(path) for path in out]
    if paths is not None and (len(paths) != len(seeds) or len(set(paths)) != len(seeds)):
        raise PreqError(f"a stack needs a directory for each of its {len(seeds)} members, got {len(set(paths))}")
    keeping = _Keeping(paths, resume, checkpoint_seconds, stacked=True)
    require_threads(threads)
    session = make_session(
        make_model,
        data,
        method,
        recipes,
        seeds,
        plan_seed=plan_seed,
        width=width,
        device=device,
        execution=Execution(engine="graph", precision=precision, compiled=compiled, deterministic=deterministic),
        evaluate=evaluate,
        stacked=True,
    )
    of_each = [()] * len(seeds) if listeners_of_each is None else listeners_of_each
    return keeping.run(session, threads, list(listeners), [list(each) for each in of_each])


@dataclass(frozen=True)
class _Keeping:
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
    recorder = Recorder(plan, data.num_classes, kept, create=checkpoint is None)
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

    with (
        contextlib.closing(recorder),
        contextlib.closing(learner),
        num_threads(find_num_threads(begun.threads, learner)),
        seeded(session.seeds[0], "run", 0, learner.device),
        repeatable(learner),
        StopRequest() as stop,
    ):
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
