"""A run: a plan executed from its first event, or from a checkpoint, to a record."""

import contextlib
import warnings
from collections.abc import Iterable
from pathlib import Path

from prequential.coding.labels import Scorer
from prequential.data.sequence import DataSequence
from prequential.errors import PreqError, PreqWarning, require_number
from prequential.home import Home, RunCheckpoint
from prequential.learn.environment import find_num_threads, num_threads, repeatable, require_threads
from prequential.learn.execution import Execution
from prequential.learn.randomness import seeded
from prequential.learn.recipe import Recipe
from prequential.live import ProgressFile
from prequential.lock import DirectoryLock
from prequential.loop import execute
from prequential.methods import Method
from prequential.models import ModelFactory
from prequential.progress import Listener, Pruned, tell_begin, tell_end
from prequential.record import RECORD_FILE, Record, claim, require_no_run
from prequential.recorder import Recorder
from prequential.session import Session, prepare
from prequential.signals import StopRequest


class Interrupted(KeyboardInterrupt):
    """Ctrl-C or SIGTERM: the run stopped between two events, and `record` holds what was measured."""

    def __init__(self, record: Record, signal_number: int = 2) -> None:
        super().__init__(f"stopped at label {len(record.nats)} of {record.length}")
        self.record, self.signal_number = record, signal_number


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
    require_threads(threads)
    require_number("checkpoint_seconds", checkpoint_seconds, at_least=0)
    if out is None and resume:
        raise PreqError("resume needs the directory of the run; give out=")
    if out is not None and not resume:
        require_no_run(Path(out))
    session = prepare(
        make_model,
        data,
        method,
        recipe,
        seed=seed,
        plan_seed=plan_seed,
        width=width,
        device=device,
        execution=Execution(engine=engine, precision=precision, compiled=compiled, deterministic=deterministic),
    )
    if out is None:
        return _go(session, None, _begin(session, None, None), threads, listeners)
    path = claim(Path(out))
    with DirectoryLock(path):
        if not resume:
            require_no_run(path)  # again, now that nobody else can begin one here
        home = Home(path, session.facts, every_seconds=checkpoint_seconds)
        checkpoint = None
        if resume:
            home.require_ours()
            if done := home.finished_record():
                return done
            checkpoint = home.newest(session.learner)
            if checkpoint is None and (path / RECORD_FILE).exists():
                warnings.warn(f"{path} holds no checkpoint; the run begins at its beginning", PreqWarning, stacklevel=2)
        threads = threads if checkpoint is None else checkpoint.threads(threads)
        return _go(session, home, _begin(session, home, checkpoint), threads, listeners)


def _begin(session: Session, home: Home | None, checkpoint: RunCheckpoint | None) -> tuple[Scorer, Recorder]:
    """Labels and recorder at the beginning, or where a checkpoint left them (the learner then too)."""
    plan, learner = session.plan, session.learner
    labels = Scorer(learner.data, learner.device)
    if not plan.method.prequential:
        labels.reveal_all()
    if home is None:
        return labels, Recorder(plan, learner.data.num_classes)
    if checkpoint is None:
        home.begin()
    recorder = Recorder(plan, learner.data.num_classes, home.path, create=checkpoint is None)
    try:
        if checkpoint is not None:
            checkpoint.restore(learner, recorder)
            labels.catch_up(recorder.position if plan.method.prequential else plan.length)
    except BaseException:
        recorder.close()
        raise
    return labels, recorder


def _go(
    session: Session,
    home: Home | None,
    begun: tuple[Scorer, Recorder],
    threads: int | str | None,
    listeners: Iterable[Listener],
) -> Record:
    """Execute the rest of a session's plan, and keep its record where there is a home."""
    plan, learner, (labels, recorder) = session.plan, session.learner, begun
    listeners = [*listeners, *([] if home is None else [ProgressFile(home.path)])]

    def pause() -> None:
        recorder.report(listeners)
        nothing_left_to_predict = recorder.position == plan.length or not plan.method.prequential
        if nothing_left_to_predict and not learner.is_finite():
            recorder.status = "diverged"
        elif home is not None and not recorder.diverged and home.save_is_due():
            home.save(learner, recorder)

    def kept() -> Record:
        facts = session.result(recorder)
        record = Record(**facts, **recorder.arrays()) if home is None else home.finish(recorder, facts)
        tell_end(listeners, record)
        return record

    with (
        contextlib.closing(recorder),
        contextlib.closing(learner),
        num_threads(find_num_threads(threads, learner)),
        seeded(learner.seed, "run", 0, learner.device),
        repeatable(learner),
        StopRequest() as stop,
    ):
        try:
            recorder.start_clock()  # and again when the work begins; an end before that takes no time
            tell_begin(listeners, session.facts, recorder.progress())
            execute(plan, learner, labels, recorder, pause, stop)
            recorder.report(listeners)
            if recorder.status == "stopped" and home is not None:
                home.save(learner, recorder)
        except KeyboardInterrupt:
            recorder.finish("stopped")
        except Pruned:
            if recorder.status == "running":
                recorder.finish("pruned")
        except BaseException:
            with contextlib.suppress(Exception):
                recorder.finish("failed")
                kept()
            raise
        record = kept()
    if record.status == "stopped":
        raise Interrupted(record, stop.signal_number or 2)
    return record
