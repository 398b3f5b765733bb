"""Many models at once: a plan executed by a stack of learners, to a record for each member."""

import contextlib
import signal
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prequential.coding.labels import Scorer
from prequential.data.sequence import DataSequence
from prequential.errors import PreqError, require_number
from prequential.home import Home
from prequential.learn.environment import num_threads
from prequential.learn.estimate import flops_of
from prequential.learn.execution import Execution
from prequential.learn.recipe import Recipe
from prequential.lock import DirectoryLock
from prequential.loop import execute
from prequential.methods import Method
from prequential.models import ModelFactory
from prequential.progress import Listener, Pruned
from prequential.record import RECORD_FILE, Record, claim, require_no_run
from prequential.run import Interrupted
from prequential.signals import StopRequest
from prequential.stack.home import StackHome, require_no_stack
from prequential.stack.learner import StackedLearner
from prequential.stack.recorder import StackRecorder
from prequential.stack.session import StackSession, prepare_stack


class StackInterrupted(Interrupted):
    """Ctrl-C or SIGTERM: the stack stopped between two events, and `records` hold what was measured of each member."""

    def __init__(self, records: list[Record], signal_number: int) -> None:
        super().__init__(records[0], signal_number)
        self.records = records


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
    out: Sequence[Path] | None = None,
    resume: bool = False,
    checkpoint_seconds: float = 60.0,
    evaluate: bool = True,
    precision: str = "auto",
    listeners: Iterable[Listener] = (),
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
        out: a directory for each member's record, written at the end; none of them may hold a run yet. Until then the
            state of the stack is kept in one directory, which is named as the first of them with `.stack` behind.
        resume: go on with the stack where its last checkpoint left it. Finished records are returned as they are;
            where a member is missing that no checkpoint of these members has, the missing ones begin anew.
        checkpoint_seconds: how often the state is saved.
        evaluate: whether held-out data, where there is any, is evaluated at the end.
        precision: "fp32", "bf16" or "auto": bf16 on a GPU.
        listeners: called with the `Progress` of the whole stack a few times a second.

    Returns:
        The records in the order of the recipes; `seconds` is each member's share of the time. Where a listener
        raised `Pruned`, all members that were going have status "pruned".

    Raises:
        PreqError: for mistakes in what was given, naming the setting or the layer.
        StackInterrupted: on Ctrl-C or SIGTERM; carries the records up to there. The state is saved if `out` is given.

    Example:
        >>> import prequential as pq
        >>> data = pq.load_data("mnist").take(64).without_heldout()
        >>> recipes = [pq.Recipe(learning_rate=rate) for rate in (1e-3, 3e-3)]
        >>> records = run_stack("lenet", data, pq.ReplayStreams(num_streams=1), recipes, seeds=[0, 1])
        >>> [(len(record.nats), record.environment["engine"]) for record in records]
        [(64, 'stack'), (64, 'stack')]
    """
    require_number("checkpoint_seconds", checkpoint_seconds, at_least=0)
    paths = None if out is None else [Path(path) for path in out]
    if paths is None and resume:
        raise PreqError("resume needs the directories of the members; give out=")
    if paths is not None:
        _require_places(paths, len(seeds), resume=resume)
    execution = Execution(engine="graph", precision=precision)
    settings = {"plan_seed": plan_seed, "width": width, "device": device, "evaluate": evaluate}
    session = prepare_stack(make_model, data, method, recipes, seeds, execution, settings)
    if paths is None:
        return [
            record for _, record in sorted(_go(session, _begin(session, list(range(len(seeds)))), listeners).items())
        ]
    with contextlib.ExitStack() as locks:
        for path in paths:
            locks.enter_context(DirectoryLock(claim(path)))
        _require_places(paths, len(seeds), resume=resume)  # again, now that nobody else can begin a run there
        homes = [Home(path, facts, every_seconds=0) for path, facts in zip(paths, session.facts, strict=True)]
        done = {n: record for n, home in enumerate(homes) if resume and (record := home.finished_record()) is not None}
        missing = [number for number in range(len(seeds)) if number not in done]
        stack_home = StackHome(paths, session, every_seconds=checkpoint_seconds)
        if missing:
            begun = _begin(session, missing, stack_home, resume=resume)
            for number, record in _go(session, begun, listeners, stack_home).items():
                if number in missing:
                    homes[number].begin()
                    done[number] = record.write_into(paths[number])
        stack_home.remove()
        return [done[number] for number in range(len(seeds))]


def _require_places(paths: list[Path], num_members: int, *, resume: bool) -> None:
    """Refuse directories that are too few, or that hold something else than a run to resume."""
    if len(paths) != num_members or len(set(paths)) != num_members:
        raise PreqError(f"a stack needs a directory for each of its {num_members} members, got {len(set(paths))}")
    for path in paths:
        if not (resume and (path / RECORD_FILE).exists()):
            require_no_run(path)
    if not resume:
        require_no_stack(paths[0])


@dataclass(frozen=True)
class _Begun:
    """A stack at its beginning, or where a checkpoint left it."""

    numbers: list[int]
    """Which of the members that were asked for it has."""
    learner: StackedLearner
    labels: Scorer
    recorder: StackRecorder
    threads: int | None = None


def _begin(session: StackSession, missing: list[int], home: StackHome | None = None, *, resume: bool = False) -> _Begun:
    """The stack that the missing members need: the one a checkpoint has, or a fresh one of them alone."""
    plan, data = session.alone.plan, session.alone.learner.data
    checkpoint = home.newest(missing, session.stack) if home is not None and resume else None
    numbers = missing if checkpoint is None else checkpoint.numbers
    learner = session.stack(numbers) if checkpoint is None else checkpoint.learner
    labels = Scorer(data, learner.device)
    if checkpoint is None and home is not None:
        home.begin(numbers)
    directory = None if home is None else home.path
    recorder = StackRecorder(plan, data.num_classes, len(numbers), directory, create=checkpoint is None)
    try:
        if checkpoint is not None:
            checkpoint.restore(recorder)
    except BaseException:
        recorder.close()
        raise
    labels.catch_up(recorder.position if plan.method.prequential else plan.length)
    return _Begun(numbers, learner, labels, recorder, None if checkpoint is None else checkpoint.threads(None))


def _go(
    session: StackSession, begun: _Begun, listeners: Iterable[Listener], home: StackHome | None = None
) -> dict[int, Record]:
    """Execute the rest of the plan; gives the records by member."""
    plan, learner, recorder = session.alone.plan, begun.learner, begun.recorder

    def pause() -> None:
        recorder.report(listeners)
        if recorder.position == plan.length or not plan.method.prequential:
            recorder.note_finite(learner.finite())
        if home is not None and home.save_is_due():
            home.save(begun.numbers, learner, recorder)

    with (
        contextlib.closing(recorder),
        contextlib.closing(learner),
        num_threads(begun.threads),
        StopRequest() as stop,
    ):
        try:
            execute(plan, learner, begun.labels, recorder, pause, stop)
            recorder.report(listeners)
            if recorder.is_stopped and home is not None:
                home.save(begun.numbers, learner, recorder)
        except KeyboardInterrupt:
            recorder.finish("stopped")
        except Pruned:
            recorder.finish("pruned")
        records = _records(session, begun)
    if recorder.is_stopped:
        raise StackInterrupted([records[number] for number in begun.numbers], stop.signal_number or signal.SIGINT)
    return records


def _records(session: StackSession, begun: _Begun) -> dict[int, Record]:
    """What each member leaves behind."""
    plan, learner, recorder = session.alone.plan, begun.learner, begun.recorder
    flops: dict[int, dict[str, float] | None] = {}  # counting takes long, and most members did the same
    records = {}
    for number, member in zip(begun.numbers, recorder.members, strict=True):
        if not recorder.is_stopped and member.num_events not in flops:
            flops[member.num_events] = flops_of(plan, session.alone.learner, member.num_events)
        facts = session.facts[number]
        more = {"fallback": learner.fallback, "members": len(begun.numbers)}
        outcome: dict[str, Any] = {
            "environment": facts["environment"] | more,
            "status": member.status,
            "heldout": member.heldout,
            "flops": flops.get(member.num_events),
            "seconds": member.seconds,
        }
        records[number] = Record(**facts | outcome, **member.arrays())
    return records
