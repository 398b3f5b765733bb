"""Experts as learners: what is the same becomes a stack where that is faster."""

from collections.abc import Sequence
from contextlib import suppress

import torch

from prequential.data.optional import capabilities
from prequential.data.sequence import DataSequence
from prequential.errors import PreqError
from prequential.estimators import learner_kind
from prequential.estimators.fitting import require_meaningful, require_trainable
from prequential.experts.averages import AveragedFromAllInputs, AveragedLearner
from prequential.experts.code import MixedCode
from prequential.experts.executing import Member
from prequential.experts.learner import MixedLearner
from prequential.experts.settings import Expert, Experts
from prequential.learn.execution import Execution
from prequential.learn.recipe import SHARED
from prequential.methods import Online
from prequential.methods.all_inputs import given_all_inputs
from prequential.methods.joint import Joint, number_of
from prequential.plan import Plan
from prequential.stack.engines import Engines

STACKED_ON = ("cuda",)
"""Devices on which many small networks at once are faster than one after the other."""


def build(experts: Experts, data: DataSequence, plan: Plan, device: torch.device, execution: Execution) -> MixedLearner:
    """The learner of experts that have all of their settings."""
    methods = plan.method.methods if isinstance(plan.method, Joint) else (plan.method,)
    engines = [Engines(data, Plan(m, plan.length, plan.seed, plan.heldout), device, execution) for m in methods]
    columns, num_learners = [], 0
    for expert in experts.each:
        columns.append(list(range(num_learners, num_learners + max(len(expert.averages), 1))))
        num_learners += len(columns[-1])
    mixer = experts.mixer
    assert not isinstance(mixer, str)
    num_classes = capabilities(data).target.num_symbols
    code = MixedCode(mixer, num_learners, num_classes, plan.length, simple_codes=experts.simple_codes)
    members: list[Member] = []
    for group in _groups(experts.each, is_stacked=device.type in STACKED_ON and execution.engine != "eager"):
        chosen = [experts.each[number] for number in group]
        follows = number_of(chosen[0].known.method, methods)
        members += _members(chosen, [columns[number] for number in group], follows, engines[follows], data)
    return MixedLearner(members, code, experts.names)


def _groups(experts: Sequence[Expert], *, is_stacked: bool) -> list[list[int]]:
    """Numbers of the experts that are one learner: each by itself, or those that can be a stack."""
    groups: dict[object, list[int]] = {}
    for number, expert in enumerate(experts):
        shared = tuple(str(getattr(expert.recipe, name)) for name in SHARED)
        same = (
            expert.model if isinstance(expert.model, str) else id(expert.model),
            expert.width,
            str(expert.method),
            shared,
        )
        is_alone = bool(expert.averages) or learner_kind(expert.model) is not None or not is_stacked
        groups.setdefault(number if is_alone else same, []).append(number)
    return list(groups.values())


def _members(
    experts: Sequence[Expert], columns: Sequence[Sequence[int]], follows: int, engines: Engines, data: DataSequence
) -> list[Member]:
    """A stack of all of them if they can be one, else one by one."""
    known = [expert.known for expert in experts]
    if len(experts) > 1:
        with suppress(PreqError):  # of models that cannot be stacked
            recipes, seeds = [each.recipe for each in known], [each.seed for each in known]
            learner = engines.stack(experts[0].model, recipes, seeds, known[0].width)
            return [Member(learner, [column for own in columns for column in own], follows, len(experts))]
    made = []
    for expert, (method, recipe, width, seed), own in zip(experts, known, columns, strict=True):
        if (kind := learner_kind(expert.model)) is not None:
            # whatever is trained around it, it learns from the labels as they are revealed
            require_meaningful(str(expert.model), Online(), [recipe], width, "cpu", None, stacked=False)
            made.append(Member(kind(str(expert.model), data, seed=seed), own, follows))
            continue
        require_trainable(expert.model, method)
        if expert.averages:
            settings = engines.settings | {"seed": seed, "width": width, "averages": expert.averages}
            averaged: type[AveragedLearner] = AveragedLearner
            if (given := given_all_inputs(method)) is not None:
                averaged, settings = AveragedFromAllInputs, settings | {"given": given}
            made.append(Member(averaged(expert.model, data, recipe, **settings), own, follows))
        else:
            made.append(Member(engines.one(expert.model, recipe, seed, width), own, follows))
    return made
