"""The loop for many models at once: plan × stack of learners × labels → a record for each member."""

import contextlib
import signal
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from prequential.coding.labels import Labels, Scorer
from prequential.data.sequence import DataSequence, read_ahead
from prequential.errors import PreqError
from prequential.events import Calibrate, Evaluate, Predict, Reinit, ShrinkPerturb, Train
from prequential.files import DirectoryLock
from prequential.home import Home
from prequential.learn.estimate import flops_of
from prequential.learn.execution import Execution
from prequential.learn.recipe import Recipe
from prequential.methods import Method
from prequential.models import ModelFactory
from prequential.plan import Plan, blocks
from prequential.progress import Listener, Pruned
from prequential.record import OVER, RECORD_FILE, Record, claim, require_no_run
from prequential.run import Interrupted
from prequential.signals import StopRequest
from prequential.stack.learner import StackedLearner
from prequential.stack.recorder import MemberRecorder, StackRecorder
from prequential.stack.session import StackSession, prepare_stack


class StackInterrupted(Interrupted):
    """Ctrl-C or SIGTERM: the stack stopped between two events, and `records` hold what was measured."""

    def __init__(self, records: list[Record], signal_number: int) -> None:
        super().__init__(records[0], signal_number)
        self.records = records


def execute_stack(
    plan: Plan,
    learner: StackedLearner,
    labels: Labels,
    recorder: StackRecorder,
    pause: Callable[[], object] = lambda: None,
    stop: StopRequest | None = None,
) -> None:
    """Walk through the plan, up to its end, until every member has diverged, or to a request to stop."""
    recorder.start_clock()
    read_ahead(learner.data, learner.inputs.reads(plan.events(), 0))
    for number, event, batches in blocks(plan.events(), 0, learner.steps_at_once):
        match event:
            case Train():
                positions = np.concatenate(batches)
                indices = positions.reshape(len(batches), -1)
                learner.train_steps(indices, labels.of(positions).view(indices.shape), number)
                recorder.note_training(len(positions))
            case Predict(start, end, uniform):
                predict = learner.predict_uniformly if uniform else learner.predict
                prediction = predict(start, end)
                recorder.add(start, prediction, labels.reveal(start, end, prediction.log_probabilities))
            case Calibrate(indices):
                learner.calibrate(indices, labels.of(indices))
            case Reinit():
                learner.reinit(number)
            case ShrinkPerturb(shrink, perturb):
                learner.shrink_perturb(shrink, perturb, number)
            case Evaluate():
                recorder.fetch()
                recorder.note_heldout(learner.evaluate())
        recorder.note_events(number + max(len(batches), 1))
        if recorder.pause_is_due():
            pause()
        if recorder.all_diverged or (stop is not None and stop.requested):
            recorder.finish("stopped")
            return
    recorder.finish("finished")


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
        out: a directory for each member's record; none of them may hold a run yet. They are written at the end.
        resume: leave out the members whose directories hold their finished records, which are returned.
        evaluate: whether held-out data, where there is any, is evaluated at the end.
        precision: "fp32", "bf16" or "auto": bf16 on a GPU.
        listeners: called with the `Progress` of the whole stack a few times a second.

    Returns:
        The records in the order of the recipes; `seconds` is each member's share of the time. Where a listener
        raised `Pruned`, all members that were going have status "pruned".

    Raises:
        PreqError: for mistakes in what was given, naming the setting or the layer.
        StackInterrupted: on Ctrl-C or SIGTERM; carries the records up to there, and nothing is written.

    Example:
        >>> import prequential as pq
        >>> data = pq.load_data("mnist").take(64).without_heldout()
        >>> recipes = [pq.Recipe(learning_rate=rate) for rate in (1e-3, 3e-3)]
        >>> records = run_stack("lenet", data, pq.ReplayStreams(num_streams=1), recipes, seeds=[0, 1])
        >>> [(len(record.nats), record.environment["engine"]) for record in records]
        [(64, 'stack'), (64, 'stack')]
    """
    paths = None if out is None else [Path(path) for path in out]
    if paths is not None:
        _require_places(paths, len(seeds), resume=resume)
    execution = Execution(engine="graph", precision=precision)
    settings = {"plan_seed": plan_seed, "width": width, "device": device, "evaluate": evaluate}
    session = prepare_stack(make_model, data, method, recipes, seeds, execution, settings)
    with contextlib.ExitStack() as locks:
        for path in paths or []:
            locks.enter_context(DirectoryLock(claim(path)))
        if paths is not None:
            _require_places(paths, len(seeds), resume=resume)  # again, now that nobody else can begin a run there
        done = _finished(paths, session.facts) if paths and resume else {}
        missing = [number for number in range(len(seeds)) if number not in done]
        if missing:
            records, signal_number = _go(session, session.stack(missing), missing, listeners)
            if signal_number:
                raise StackInterrupted([record for _, record in sorted((done | records).items())], signal_number)
            done |= {n: record if paths is None else record.save(paths[n]) for n, record in records.items()}
        return [done[number] for number in range(len(seeds))]


def _require_places(paths: list[Path], num_members: int, *, resume: bool) -> None:
    """Refuse directories that are too few, or that hold something else than a run to resume."""
    if len(paths) != num_members or len(set(paths)) != num_members:
        raise PreqError(f"a stack needs a directory for each of its {num_members} members, got {len(set(paths))}")
    for path in paths:
        if not (resume and (path / RECORD_FILE).exists()):
            require_no_run(path)


def _finished(paths: list[Path], facts: list[dict[str, Any]]) -> dict[int, Record]:
    """The members whose directories hold their records."""
    found = {n: Home(path, facts[n], every_seconds=0).finished_record() for n, path in enumerate(paths)}
    for number, record in found.items():
        if record is None:
            require_no_run(paths[number])
    return {number: record for number, record in found.items() if record is not None}


def _go(
    session: StackSession, learner: StackedLearner, numbers: list[int], listeners: Iterable[Listener]
) -> tuple[dict[int, Record], int]:
    """Execute the plan; gives the records by member, and the number of the signal that ended it early, if one did."""
    plan = session.alone.plan
    labels = Scorer(learner.data, learner.device)
    if not plan.method.prequential:
        labels.reveal_all()
    recorder = StackRecorder(plan, learner.data.num_classes, len(learner))

    def pause() -> None:
        recorder.report(listeners)
        if recorder.position == plan.length or not plan.method.prequential:
            recorder.note_finite(learner.finite())

    with contextlib.closing(learner), StopRequest() as stop:
        try:
            execute_stack(plan, learner, labels, recorder, pause, stop)
            recorder.report(listeners)
        except KeyboardInterrupt:
            recorder.finish("stopped")
        except Pruned:
            recorder.finish("pruned")
    is_over = all(member.status in OVER for member in recorder.members)
    flops: dict[int, dict[str, float] | None] = {}  # counting takes long, and most members did the same
    records = {}
    for number, member in zip(numbers, recorder.members, strict=True):
        if is_over and member.num_events not in flops:
            flops[member.num_events] = flops_of(plan, session.alone.learner, member.num_events)
        environment = session.facts[number]["environment"] | {"fallback": learner.fallback}
        facts = session.facts[number] | {"environment": environment}
        records[number] = _record(facts, member, flops.get(member.num_events))
    return records, 0 if is_over else stop.signal_number or signal.SIGINT


def _record(facts: dict[str, Any], member: MemberRecorder, flops: dict[str, float] | None) -> Record:
    """What a member leaves behind."""
    outcome: dict[str, Any] = {
        "status": member.status,
        "heldout": member.heldout,
        "flops": flops,
        "seconds": member.seconds,
    }
    return Record(**facts, **outcome, **member.arrays())
