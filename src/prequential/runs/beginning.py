"""What a record says of a run before its first event."""

import json
from collections.abc import Sequence
from typing import Any

from prequential.conditioning import widest
from prequential.data.optional import capabilities
from prequential.data.told import told_of
from prequential.errors import PreqError
from prequential.experts.learner import MixedLearner
from prequential.experts.settings import AnyModel, Experts
from prequential.learn.environment import environment
from prequential.learn.learning import Learning
from prequential.learn.recipe import Recipe
from prequential.methods import METHODS
from prequential.methods.joint import method_settings
from prequential.models import conditioning_of, name_of
from prequential.plan import Plan
from prequential.runs.facts import Facts
from prequential.scaling import Scale
from prequential.settings import settings_of


def facts_of(
    plan: Plan,
    learner: Learning,
    model: AnyModel,
    recipes: Sequence[Recipe],
    seeds: Sequence[int],
    scale: Scale | None,
) -> list[Facts]:
    """What is known of each member before the first event."""
    data, optional = learner.data, capabilities(learner.data)
    learners = learner.members if isinstance(learner, MixedLearner) else [learner]
    conditionings = [conditioning_of(each.factory, each.model) for each in learners]
    looked_at = widest(plan.conditioned_on, optional.conditioned_on, *conditionings)
    described_model = _model(learner, model)
    described = {
        "name": data.name,
        "input_shape": list(data.input_shape),
        "training_view": optional.training_view,
        **data.digests(),
        "heldout": None if data.heldout is None else data.heldout.digests(),
        **told_of(data),
    }
    title = getattr(plan.method, "titles", getattr(plan.method, "title", None))
    found = [
        Facts(
            method=method_settings(plan.method),
            recipe=settings_of(recipe),
            model=described_model | {"fingerprint": fingerprint},
            data=described,
            seeds={"seed": seed, "order_seed": data.order_seed, "plan_seed": plan.seed},
            length=plan.length,
            prequential=plan.method.prequential,
            environment=environment(learner),
            conditioned_on=looked_at,
            source=None if optional.source is None else dict(optional.source),
            scale=scale,
            method_title=None if plan.method.name in METHODS else title,
            **optional.target.facts(),
        )
        for recipe, seed, fingerprint in zip(recipes, seeds, learner.fingerprints(), strict=True)
    ]
    _require_writable(found)
    return found


def _require_writable(found: Sequence[Facts]) -> None:
    """Notice now whatever no record can hold, of settings and data of the user's own."""
    for facts in found:
        for name, value in facts.facts().items():
            try:
                json.dumps(value, allow_nan=False)
            except (TypeError, ValueError) as error:
                raise PreqError(
                    f"a record cannot hold what it is to tell of the {name.replace('_', ' ')} ({error}); use finite "
                    "numbers of Python, texts, and lists or dictionaries of them"
                ) from error


def _model(learner: Learning, model: AnyModel) -> dict[str, Any]:
    """Its name and size; of experts all there is to know, so that they can be made again."""
    if not (isinstance(learner, MixedLearner) and isinstance(model, Experts)):
        return {"name": name_of(learner.factory), "width": float(learner.width), "num_parameters": _size(learner)}
    told = model.facts()
    for expert, (trained_by, fingerprint) in zip(told["experts"], learner.networks(), strict=True):
        expert |= {"num_parameters": _size(trained_by), "fingerprint": fingerprint}
    num_parameters = sum(expert["num_parameters"] for expert in told["experts"])
    return {"name": model.name, "width": float(learner.width), "num_parameters": num_parameters, **told}


def _size(learner: Learning) -> int:
    return sum(parameter.numel() for parameter in learner.model.parameters())
