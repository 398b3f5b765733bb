"""From the header of a bitstream to the session that its encoder had, or a reason why not."""

import warnings
from dataclasses import replace
from typing import Any

from prequential.data.blind import InputsOnly
from prequential.data.optional import capabilities
from prequential.data.sequence import DataSequence
from prequential.errors import PreqError, PreqWarning
from prequential.learn.environment import unlike
from prequential.learn.execution import ENGINES, Execution
from prequential.methods import Method
from prequential.models import ModelFactory, count_parameters, is_package_model, name_of
from prequential.names_of_before import hint
from prequential.presets import recipe_from_settings
from prequential.runs.session import LearnerFactory, Session, make_session
from prequential.targets import Target, target_of


def same_bits(execution: Execution) -> Execution:
    """Encoder and decoder must compute the same bits, so nothing may differ from one time to the next."""
    if execution.compiled:
        raise PreqError("compiled kernels may give other bits next time; a code needs the same: leave compiling out")
    return replace(execution, compiled=False, deterministic=True)


def rebuild(
    header: dict[str, Any],
    data: InputsOnly,
    make_model: str | ModelFactory | None,
    method: Method,
    device: str,
    learner: LearnerFactory | None,
) -> Session:
    """The encoder's session, given the inputs; refused where anything is not what it was."""
    if len(data) != header["length"]:
        raise PreqError(f"the bitstream is about {header['length']} labels, the data has {len(data)} inputs")
    if data.digests()["inputs"] != header["data"]["inputs"]:
        raise PreqError(
            f"these are not the inputs that were encoded ('{header['data']['name']}', order seed "
            f"{header['seeds']['order_seed']}); give the same data in the same order"
        )
    trained_on, view = header["data"].get("training_view"), data.training_view
    if trained_on != view:
        raise PreqError(
            f"the encoder trained on {trained_on or 'whole inputs'}, this data gives {view or 'whole inputs'}; "
            "read it in the same way (--crop)"
        )
    name = header["model"]["name"]
    if make_model is None and not is_package_model(name):
        raise PreqError(f"the model '{name}' is not one of the package; give it again (--model {name})")
    if make_model is not None and name_of(make_model) != name:
        given = name_of(make_model)
        raise PreqError(f"the bitstream was made with the model '{name}', got '{given}'{hint(name, given)}")
    if make_model is None:
        _require_size(header, data.input_shape, data.target.output_size)
    there = header["environment"]
    engine, precision = there.get("engine", "eager"), there.get("precision", "fp32")
    if learner is not None:
        engine = precision = "auto"  # a learner of one's own knows its own
    elif engine not in ENGINES:
        raise PreqError(f"the bitstream was made by a learner of its own ('{engine}'); give it again (learner=)")
    seeds, execution = header["seeds"], same_bits(Execution(engine=engine, precision=precision))
    recipe, shared = recipe_from_settings(header["recipe"]), (seeds["plan_seed"], header["model"]["width"], device)
    session = make_session(
        make_model or name, data, method, [recipe], [seeds["seed"]], *shared, execution, evaluate=False, learner=learner
    )
    if session.plan.digest(header["num_events"]) != header["plan"]:
        raise PreqError("the plan differs from the encoder's; was the file made by another version?")
    if session.facts[0].model["fingerprint"] != header["fingerprint"]:
        raise PreqError(f"the model '{name}' is not the encoder's: other layers or other weights; is it the same code?")
    if different := unlike(header["environment"], session.learner):
        warnings.warn(f"decoding may fail{different}", PreqWarning, stacklevel=3)
    return session


def target_in(header: dict[str, Any], data: DataSequence) -> Target:
    """What was encoded; a kind of its own must be that of the data, which alone knows it."""
    if header.get("target") is None:
        return target_of(header)
    target = capabilities(data).target
    here = {"target": None} | target.facts()
    if {name: header.get(name) for name in here} != here:
        raise PreqError(f"the bitstream is about targets {header['target']}, the data has {target.facts()}")
    return target


def _require_size(header: dict[str, Any], input_shape: tuple[int, ...], output_size: int) -> None:
    """Count the model's parameters before memory is given to them."""
    wanted = header["model"]
    count = count_parameters(wanted["name"], input_shape, output_size, width=wanted["width"])
    if count != wanted["num_parameters"]:
        raise PreqError(
            f"the bitstream's header is damaged: '{wanted['name']}' of width {wanted['width']:g} has {count} "
            f"parameters, not {wanted['num_parameters']}"
        )
