"""The loop: plan × learner × labels → record."""

from collections.abc import Callable, Iterable
from pathlib import Path

from prequential.coding.labels import Labels, Scorer
from prequential.data.sequence import DataSequence
from prequential.events import Calibrate, Evaluate, Predict, Reinit, ShrinkPerturb, Train
from prequential.learn.environment import find_device, find_num_threads, num_threads
from prequential.learn.flops import cost_of
from prequential.learn.learner import Learner
from prequential.learn.recipe import Recipe
from prequential.methods import Method, ReplayStreams
from prequential.models import ModelFactory
from prequential.plan import Plan
from prequential.record import Record, claim
from prequential.recorder import Progress, Recorder

Listener = Callable[[Progress], object]
"""Called a few times a second with where the run stands, and once at the end."""


class Interrupted(KeyboardInterrupt):
    """Ctrl-C: the run stopped cleanly, and `record` holds what was measured."""

    def __init__(self, record: Record) -> None:
        super().__init__(f"stopped at label {len(record.nats)} of {record.length}")
        self.record = record


def execute(
    plan: Plan, learner: Learner, labels: Labels, recorder: Recorder, listeners: Iterable[Listener] = ()
) -> None:
    """Walk through the plan, from the event the recorder has reached to the end of the plan or to the
    first label without a finite codelength."""
    recorder.start_clock()
    for number, event in enumerate(plan.events(recorder.num_events), recorder.num_events):
        match event:
            case Train(indices):
                learner.train(indices, labels.of(indices), number)
                recorder.trained_examples += len(indices)
            case Predict(start, stop, uniform):
                predict = learner.predict_uniformly if uniform else learner.predict
                prediction = predict(start, stop)
                recorder.add(start, prediction, labels.reveal(start, stop, prediction.log_probabilities))
            case Calibrate(indices):
                learner.calibrate(indices, labels.of(indices))
            case Reinit():
                learner.reinit(number)
            case ShrinkPerturb(shrink, perturb):
                learner.shrink_perturb(shrink, perturb, number)
            case Evaluate():
                recorder.heldout = learner.evaluate()
        recorder.num_events = number + 1
        if recorder.report_is_due():
            recorder.report(listeners)
        if recorder.diverged:
            break
    recorder.finish()
    recorder.report(listeners)


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
    threads: int | str | None = None,
    out: str | Path | None = None,
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
        threads: CPU threads; "auto" measures, None leaves torch's setting alone.
        out: a directory for the record; it must not hold a run yet.
        listeners: called with `Progress` a few times a second.

    Returns:
        The record, with status "finished", or "diverged" if a label had no finite codelength.

    Raises:
        PreqError: for mistakes in what was given; nothing was written.
        Interrupted: on Ctrl-C; carries the record up to there, which `out` then holds too.

    Example:
        >>> import prequential as pq
        >>> data = pq.load_data("mnist").take(64).without_heldout()
        >>> record = pq.run("mlp1", data, pq.ReplayStreams(num_streams=1), seed=0)
        >>> len(record.nats), record.status
        (64, 'finished')
    """
    method, recipe = method or ReplayStreams(), recipe or Recipe()
    plan = Plan(method, len(data), plan_seed, heldout=data.heldout is not None)
    learner = Learner(
        make_model,
        data,
        recipe,
        seed=seed,
        calibration_rate_factor=method.calibration_rate_factor,
        width=width,
        device=find_device(device),
    )
    next(plan.events())
    labels = Scorer(data, learner.device)
    if not method.prequential:
        labels.reveal_all()
    path = None if out is None else claim(Path(out))
    recorder = Recorder(plan, data.num_classes)

    def kept() -> Record:
        record = recorder.record(learner, cost_of(plan, learner, recorder.num_events))
        return record if path is None else record.save(path)

    with num_threads(find_num_threads(threads, learner)):
        try:
            execute(plan, learner, labels, recorder, listeners)
        except KeyboardInterrupt:
            recorder.finish(stopped=True)
            raise Interrupted(kept()) from None
        return kept()
