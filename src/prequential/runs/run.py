"""Runs: a sequence learned from front to back by one model, or by many models of one architecture at once."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from prequential.data.sequence import DataSequence
from prequential.errors import PreqError, require_name
from prequential.experts.settings import AnyModel
from prequential.learn.execution import Execution
from prequential.learn.recipe import Recipe
from prequential.methods import Method
from prequential.models import ModelFactory
from prequential.runs.course import Course, Interrupted
from prequential.runs.progress import Listener
from prequential.runs.record import Record
from prequential.runs.session import LearnerFactory, make_session
from prequential.runs.studies import Studies

__all__ = ["Interrupted", "run", "run_stack"]


def run(
    make_model: AnyModel,
    data: DataSequence,
    method: Method | None = None,
    recipe: Recipe | None = None,
    *,
    seed: int,
    plan_seed: int = 0,
    width: float = 1.0,
    device: str = "cpu",
    execution: Execution | None = None,
    threads: int | str | None = None,
    out: str | Path | None = None,
    name: str | None = None,
    resume: bool = False,
    checkpoint_seconds: float = 60.0,
    listeners: Iterable[Listener] = (),
    learner: LearnerFactory | None = None,
    keep_weights: bool = False,
    study_dir: str | Path | None = None,
) -> Record:
    """Learn a sequence from front to back and measure the code it gives.

    Args:
        make_model: a model's name, or a function or class that returns a fresh nn.Module. It is given
            those of the keywords `input_shape`, `output_size` (or `num_classes`) and `width` that it takes. Several
            models whose predictions are mixed into one code are `Experts`.
        data: the sequence, from `from_arrays`, `from_dataset` or `load_data`.
        method: who decides what is learned when. Default: `ReplayStreams()`.
        recipe: the settings of training. Default: `Recipe()`.
        seed: initialisation, dropout and perturbation. The data's order and the plan do not depend on it.
        plan_seed: the plan. Runs that share it (and the data) can be compared pairwise.
        width: scales the layers of models that have a width.
        device: "cpu", "cuda", "cuda:1", …
        execution: engine, precision, compiling and determinism. Default: `Execution()`, what suits the device.
        threads: CPU threads; "auto" measures, None leaves torch's setting alone.
        out: a directory for the record and its checkpoints; it must not hold a run yet.
        name: what tables, plots and reports call the run. Default: as its directory.
        resume: go on with the run in `out` where its last checkpoint left it; a finished one is returned.
        checkpoint_seconds: how often the state is saved into `out`.
        listeners: called with `Progress` a few times a second, such as `track("tensorboard", directory)`.
        learner: who executes the plan's events, in place of the package's learners: a class or function that takes what
            `prequential.learn.learner.Learner` takes and gives a `prequential.learn.learning.Learning`.
        keep_weights: when the run is finished, write its averaged weights into `out` as `weights.safetensors`, with a
            digest of each example they were trained on, for `probe`.
        study_dir: where what is studied before the first label (`AllInputs`) is kept for other runs and looked for.
            Default: `studies` in $PREQ_CACHE or ~/.cache/prequential, where only a run with `out` writes.

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
    paths = None if out is None else [Path(out)]
    heard, studies = [list(listeners)], Studies.of_run(study_dir, has_out=out is not None)
    course = Course(paths, resume, checkpoint_seconds, threads, heard, keep_weights=keep_weights, studies=studies)
    session = make_session(
        make_model, data, method, [recipe], [seed], plan_seed, width, device, execution, learner=learner
    )
    if name is not None:
        session = replace(session, facts=[replace(session.facts[0], name=require_name(name))])
    return course.run(session)[0]


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
    execution: Execution | None = None,
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
        execution: as in `run`, but for the engine, which is a stack's own.
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
    execution = execution or Execution()
    if execution.engine != "auto":
        raise PreqError(f"a stack has an engine of its own, and '{execution.engine}' was asked for; leave it out")
    of_each = [list(each) for each in listeners_of_each or [()] * len(seeds)]
    course = Course(paths, resume, checkpoint_seconds, threads, of_each, list(listeners), stacked=True)
    shared = plan_seed, width, device, replace(execution, engine="graph")
    session = make_session(make_model, data, method, recipes, seeds, *shared, evaluate=evaluate, stacked=True)
    return course.run(session)
