"""`preq plan`: what a method would do."""

from collections.abc import Mapping
from dataclasses import asdict, replace
from functools import partial
from itertools import islice, takewhile
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import tyro

from prequential.cli.experts import ExpertFlags, Models, Settled
from prequential.cli.job import MachineFlags, data_name
from prequential.cli.parse import MAYBE, UNSET, JsonFlag, Word, flag_group
from prequential.cli.source import SourceFlags
from prequential.cli.streams import is_heard
from prequential.counts import Counts
from prequential.errors import PreqError, require_count
from prequential.events import Calibrate, EndStudy, Event, Indices, Predict, Study, Train, TrainBeside
from prequential.methods.joint import ForExperts
from prequential.methods.several import for_inputs
from prequential.plan import Plan
from prequential.presets import find_preset
from prequential.report.text import duration
from prequential.settings import setting
from prequential.terminal import tell

if TYPE_CHECKING:
    from prequential.data.sequence import LoadedSequence


@flag_group("data")
class PlanDataFlags(SourceFlags):
    """The data, if any."""

    data: Annotated[tyro.conf.Positional[Word], tyro.conf.arg(metavar="DATA"), UNSET] = None
    """The data set; its length is taken unless --length is given."""
    data_by_flag: Annotated[Word, tyro.conf.arg(name="data"), UNSET] = None
    """The same as DATA."""
    length: int | None = setting(None, hint="60000, or the data's")
    """Labels in the sequence."""
    num_labels: int | None = setting(None, hint="all")
    """Only the first N labels of the data, given all its inputs."""


@flag_group("model")
class PlanModelFlags:
    """The model, if any."""

    models: Models
    """The model whose cost is estimated; several are experts, whose costs are summed."""
    model_by_flag: Annotated[Word, tyro.conf.arg(name="model"), UNSET] = None
    """The same as MODEL."""
    width: float = 1.0
    """Scale the model's layers."""


@flag_group("output")
class PlanFlags(PlanDataFlags, PlanModelFlags, ExpertFlags, MachineFlags, JsonFlag):
    """List, count and check the events of a method. With data and a model also their cost: FLOPs, and the time it
    would take on this device, from a few steps that are measured (nothing is compiled, which makes long runs faster).

    `preq plan --method ci-fs --length 60000`

    `preq plan mnist lenet`
    """

    events: int = 12
    """How many events to list."""
    heldout: Annotated[str | None, MAYBE, UNSET] = None
    """Include the closing stage and the evaluation on held-out data. COLUMN=VALUE: of the rows of a table that have
    this value in this column."""


def main_plan(flags: PlanFlags) -> None:
    """Check, print."""
    closing, flags = flags.heldout is not None, _together(replace(flags, heldout=flags.heldout or None))
    require_count("--events", flags.events, at_least=0)
    settled = _settled(flags)
    if not settled.models if flags.data is not None else flags.models:
        raise PreqError("a cost needs both --model and --data; give the other too, or leave both out")
    if flags.data is None and flags.num_labels is not None:
        raise PreqError(f"--num-labels {flags.num_labels} is about data, got none; name it, or give --length")
    data = None if flags.data is None else flags.load(flags.data, flags.length, flags.num_labels)
    length = flags.length if flags.length is not None else 60_000 if data is None else len(data)
    method = settled.plan_method if data is None else for_inputs(settled.plan_method, data.num_inputs)
    plan = Plan(method, length, flags.plan_seed, heldout=closing)
    plan.check()
    counts = plan.counts()
    cost = {} if data is None else _cost(flags, plan, data, settled)

    def facts() -> dict[str, Any]:
        told = {"method": plan.method.name, "length": plan.length, "plan_seed": plan.seed, "digest": plan.digest()}
        return told | {"prequential": plan.method.prequential, "causal": True} | asdict(counts) | cost

    flags.result(facts, partial(_print, plan, counts, cost, flags.events))


def _print(plan: Plan, counts: Counts, cost: Mapping[str, Any], num_events: int) -> None:
    """For a person."""
    for number, event in takewhile(lambda _: is_heard(), enumerate(islice(plan.events(), num_events))):
        tell(f"{number:>10,}  {describe(event)}")
    if counts.events > num_events:
        tell(f"{'…':>10}  {counts.events - num_events:,} more (--events N lists more)")
    proof = "causal and complete" if plan.method.prequential else "not prequential: every label is revealed at once"
    title = getattr(plan.method, "titles", plan.method.title)
    tell(
        "",
        f"{title} over {plan.length:,} labels: {counts.events:,} events, {proof}",
        f"  predict    {counts.predicts:>10,} events {counts.predicted_examples:>14,} labels"
        f"  (+ {counts.uniform_examples:,} coded uniformly)",
        f"  calibrate  {counts.calibrates:>10,} events {counts.calibrated_examples:>14,} examples"
        f"  ({counts.recomputed_examples:,} need a forward pass)",
        f"  train      {counts.trains:>10,} events {counts.trained_examples:>14,} examples"
        f"  ({counts.trained_examples / plan.length:.1f} per label)",
    )
    if counts.beside_examples:
        tell(f"  beside     {'':>17} {counts.beside_examples:>14,} inputs without labels")
    if counts.studies:
        tell(f"  study      {counts.studies:>10,} events {counts.studied_examples:>14,} inputs, before the first label")
    if cost and cost["seconds"] is None:
        tell("  cost       cannot be counted: a model is no network")
    elif cost:
        flops = "–" if cost["flops"] is None else f"{cost['flops']:.3g}"
        took = f"{cost['seconds']:.1f} s" if cost["seconds"] < 60 else duration(cost["seconds"])
        apart = f" (+ {cost['heldout_flops']:.2g} for held-out data)" if cost["heldout_flops"] else ""
        tell(
            f"  cost       {flops} FLOPs{apart}, about {took} on {cost['device']} "
            f"({cost['train_step_seconds'] * 1e3:.3g} ms per training step of {cost['batch_size']})"
        )


def _together(flags: PlanFlags) -> PlanFlags:
    """Data and models, whether they were given by place or by flag; twice is a mistake."""
    for name, by_flag in (("data", flags.data_by_flag), ("models", flags.model_by_flag)):
        if by_flag is not None and (by_place := getattr(flags, name)):
            told, flag = by_place if name == "data" else " ".join(by_place), name.removesuffix("s")
            raise PreqError(f"{flag} was given twice, {told} and --{flag} {by_flag}; keep one")
    models = flags.models or tuple(filter(None, (flags.model_by_flag,)))
    return replace(flags, data=flags.data_by_flag or flags.data, models=models)


def _settled(flags: PlanFlags) -> Settled:
    """What decides the plan: that of models or experts, or of a method alone."""
    data = data_name(flags.data or "", flags.data_dir, flags.array, flags.label, flags.standardise)
    preset = find_preset(flags.preset, data, flags.models[0] if flags.models else "", all_inputs=flags.all_inputs)
    if flags.models or flags.asks_for_experts or preset.listed is not None:
        return flags.settled(flags.models, data)
    return Settled(*flags.chosen(preset), "")


def _cost(flags: PlanFlags, plan: Plan, data: "LoadedSequence", settled: Settled) -> dict[str, Any]:
    """What the plan costs with this model, or these experts, on this device."""
    from prequential.learn.environment import find_num_threads, num_threads
    from prequential.learn.estimate import estimate
    from prequential.learn.memory import freed_memory_kept
    from prequential.runs.session import make_session

    how = (plan.seed, flags.width, flags.device, replace(flags.execution, compiled=False))
    model = settled.make_model()
    session = make_session(model, data, settled.method, [settled.recipe], [0], *how)
    if settled.without_network:
        return {"flops": None, "heldout_flops": None, "seconds": None, "device": flags.device}
    with freed_memory_kept(), num_threads(find_num_threads(flags.num_threads, session.learner)):
        found = estimate(plan, session.learner)
    flops: dict[str, Any] = found.flops or {"code": None, "heldout": 0.0}
    counted = {"flops": flops["code"], "heldout_flops": flops["heldout"], "device": flags.device}
    return asdict(found) | counted


def describe(event: Event) -> str:
    """An event on one line.

    Example:
        >>> describe(Train(np.array([0, 1, 2, 7])))
        'Train      4 examples: 0–2, 7'
    """
    if isinstance(event, Predict):
        return f"Predict    labels {event.start}–{event.stop - 1}{' uniformly' if event.uniform else ''}"
    if isinstance(event, ForExperts):
        steps = f"{event.num_events} × " if event.num_events > 1 else ""
        told = f"{steps}{event.kind} {event.indices.shape[-1] or ''}".strip()
        return f"Experts    {told} for those of method {event.method + 1}"
    if not isinstance(event, Calibrate | Train | Study | EndStudy):
        return repr(event)
    with_labels = isinstance(event, Calibrate | Train)
    told = f"{type(event).__name__:<10} {len(event.indices)} {'examples' if with_labels else 'inputs'}: "
    return (
        told
        + _positions(event.indices)
        + (f"; beside {len(event.beside)} inputs: {_positions(event.beside)}" if isinstance(event, TrainBeside) else "")
    )


def _positions(indices: Indices) -> str:
    """The first few, those that follow each other as a span."""
    runs = np.split(indices, np.flatnonzero(np.diff(indices) != 1) + 1)
    texts = [f"{run[0]}–{run[-1]}" if len(run) > 1 else f"{run[0]}" for run in runs if len(run)]
    return ", ".join(texts[:6]) + (", …" if len(texts) > 6 else "")
