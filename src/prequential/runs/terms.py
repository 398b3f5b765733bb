"""What a bitstream says of how it was made: rebuilt, checked and costed before a network has memory."""

import shlex
from dataclasses import dataclass, replace
from typing import Any

from prequential.coding.container import Container, checked
from prequential.coding.labels import CHECKED_TOGETHER
from prequential.data.blind import InputsOnly
from prequential.data.optional import capabilities
from prequential.data.sequence import DataSequence
from prequential.errors import PreqError
from prequential.experts.again import experts_from_facts
from prequential.experts.settings import AnyModel, Experts
from prequential.learn.environment import find_device, num_threads
from prequential.learn.estimate import Expected, flops_per_second, most_flops, require_flops
from prequential.learn.execution import ENGINES, Execution
from prequential.learn.learner import Learner
from prequential.learn.recipe import Recipe
from prequential.methods import Method
from prequential.methods.method import Work
from prequential.methods.rebuild import method_from_settings
from prequential.models import ModelFactory, count_parameters, is_package_model, name_of
from prequential.names_of_before import hint
from prequential.plan import Plan
from prequential.presets import recipe_from_settings
from prequential.runs.session import LearnerFactory
from prequential.scaling import INTENSITY, Scale, parsed_scale
from prequential.targets import Classes


@dataclass(frozen=True)
class Terms:
    """What a bitstream says of how it was made, rebuilt and checked, before a network has memory."""

    data: InputsOnly
    model: AnyModel
    method: Method
    recipe: Recipe
    plan_seed: int
    width: float

    def expected(self) -> Expected:
        """What decoding takes at most."""
        return most_flops_of(self.model, self.data, self.method, self.plan_seed, self.recipe, self.width)


def terms_of(
    header: dict[str, Any],
    data: DataSequence,
    make_model: AnyModel | None,
    method: str | type[Method] | None,
) -> Terms:
    """What a checked header says, for this data; model and method where they are the user's own."""
    if len(header["checks"]) != -(-header["length"] // CHECKED_TOGETHER):
        raise PreqError(f"the bitstream's header is damaged: {len(header['checks'])} is not its number of checks")
    blind = _inputs(header, data)
    recipe, width = recipe_from_settings(header["recipe"]), float(header["model"]["width"])
    model: AnyModel
    if header["model"].get("experts") is not None:
        model = experts_again(header["model"], make_model, method, blind)
        rebuilt = model.method
    else:
        model, rebuilt = _model(header["model"], make_model, blind), method_from_settings(header["method"], method)
    return Terms(blind, model, rebuilt, recipe, header["seeds"]["plan_seed"], width)


def read_terms(
    content: bytes,
    data: DataSequence,
    make_model: AnyModel | None,
    method: str | type[Method] | None,
    max_flops: float | None,
) -> tuple[Container, Terms]:
    """A bitstream, checked, and what it says for this data; one that takes more FLOPs than that is refused."""
    container = Container.from_bytes(content)
    told = terms_of(checked(container.header), data, make_model, method)
    if max_flops is not None:
        require_flops(told.expected(), max_flops)
    return container, told


def expect(
    content: bytes,
    data: DataSequence,
    make_model: AnyModel | None = None,
    *,
    method: str | type[Method] | None = None,
    device: str | None = None,
    max_flops: float | None = None,
) -> tuple[Expected, float | None]:
    """What `decode` with these arguments takes at most, and about how many seconds, by a few steps that are measured;
    None where that is not known. No event of the plan is made.
    """
    container, told = read_terms(content, data, make_model, method, max_flops)
    expected, header = told.expected(), container.header
    if expected.flops is None:
        return expected, None
    place = find_device(device or header["device"])
    model, batched, recipe, width = told.model, told.method, told.recipe, told.width
    if isinstance(model, Experts):  # the others take as long as their FLOPs say
        batched, recipe, width, _ = model.each[0].known
        model = model.each[0].model
    learner = Learner(model, told.data, recipe, seed=0, width=width, device=place)
    with num_threads(header["environment"]["threads"]):
        return expected, expected.flops / flops_per_second(learner, getattr(batched, "batch_size", 32))


def _inputs(header: dict[str, Any], data: DataSequence) -> InputsOnly:
    """What the encoder's network was shown, without labels; refused where the data is not what was encoded."""
    target, told = capabilities(data).target, header["data"]
    if header.get("target") is None:
        target = Classes(header["num_classes"])
    elif (here := {"target": None} | target.facts()) != {name: header.get(name) for name in here}:
        raise PreqError(f"the bitstream is about targets {header['target']}, the data has {target.facts()}")
    if len(data) != header["length"]:
        raise PreqError(f"the bitstream is about {header['length']} labels, the data has {len(data)} inputs")
    wanted = header["length"] + (told.get("unlabelled") or {"number": 0})["number"]
    if (got := capabilities(data).num_inputs) != wanted:
        given = f"the encoder was given {wanted} inputs for {header['length']} labels, this data has {got}"
        raise PreqError(f"{given}; give the same (--num-labels {header['length']} keeps inputs that have no labels)")
    if data.digests()["inputs"] != told["inputs"]:
        raise PreqError(
            f"these are not the inputs that were encoded ('{told['name']}', order seed "
            f"{header['seeds']['order_seed']}); give the same data in the same order"
        )
    trained_on, view = told.get("training_view"), capabilities(data).training_view
    if trained_on != view:
        raise PreqError(
            f"the encoder trained on {trained_on or 'whole inputs'}, this data gives {view or 'whole inputs'}; "
            "read it in the same way (--crop)"
        )
    return InputsOnly(data, target, _scale(header, capabilities(data).scale))


def _scale(header: dict[str, Any], here: Scale | None) -> Scale:
    """What the encoder's uint8 inputs were out of; files of before do not say it, and took all for images."""
    scale = parsed_scale(header.get("scale") or INTENSITY)
    if here is not None and parsed_scale(here) != scale:
        raise PreqError(
            f"the encoder's inputs had the scale {scale}, this data has {here}; read it with --scale {scale}"
        )
    return scale


def _model(told: dict[str, Any], given: AnyModel | None, data: DataSequence) -> str | ModelFactory:
    """The encoder's model: that of the package, or what was given. Parameters are counted before they take memory."""
    name, width, num_parameters = (told[part] for part in ("name", "width", "num_parameters"))
    if given is not None:
        other = given.name if isinstance(given, Experts) else name_of(given)
        if isinstance(given, Experts) or other != name:
            raise PreqError(f"the bitstream was made with the model '{name}', got '{other}'{hint(name, other)}")
        return given
    if not is_package_model(name):
        raise PreqError(f"the model '{name}' is not one of the package; give it again (--model {shlex.quote(name)})")
    count = count_parameters(name, data.input_shape, capabilities(data).target.output_size, width=width)
    if count != num_parameters:
        has = f"'{name}' of width {width:g} has {count} parameters, not {num_parameters}"
        raise PreqError(f"the bitstream's header is damaged: {has}")
    return str(name)


def experts_again(
    told: dict[str, Any], given: AnyModel | None, method: str | type[Method] | None, data: DataSequence
) -> Experts:
    """The experts of which a file tells: models of the package, and those that were given.

    Args:
        told: what the file says of the model.
        given: models that are not of the package: experts with the same models, or one model.
        method: the class of a method that is not of the package.
        data: what they learn from.
    """
    if missing := [key for key in ("experts", "mixer", "simple_codes") if key not in told]:
        raise PreqError(f"the file tells of experts, but not of their {missing[0]}")
    own = [each.model for each in given.each] if isinstance(given, Experts) else [] if given is None else [given]
    names, by_name = [expert["model"] for expert in told["experts"]], {name_of(model): model for model in own}
    if given is not None and not set(by_name) & set(names):
        raise PreqError(f"the experts are {', '.join(dict.fromkeys(names))}, got {', '.join(by_name)}; give the same")
    in_order = own if [name_of(model) for model in own] == names else [by_name.get(name) for name in names]
    both = zip(told["experts"], in_order, strict=True)  # two models of one's own may have the same name
    models = [_model(each | {"name": each["model"]}, model, data) for each, model in both]
    return experts_from_facts(told, models, method, given.mixer if isinstance(given, Experts) else None)


def most_flops_of(
    model: AnyModel, data: DataSequence, method: Method, plan_seed: int, recipe: Recipe, width: float
) -> Expected:
    """What the codelength of a run costs at most, of experts the sum, before anything has memory."""
    if not isinstance(model, Experts):
        return most_flops(model, data, Plan(method, len(data), plan_seed), recipe, width)
    found = []
    for expert in model.each:
        own = expert.known
        plan = Plan(own.method, len(data), plan_seed)
        found.append(most_flops(expert.model, data, plan, own.recipe, own.width, max(len(expert.averages), 1)))
    flops = [each.flops for each in found if each.flops is not None]
    works = [each.work for each in found if each.work is not None]
    whole = Work(*map(sum, zip(*works, strict=True))) if len(works) == len(found) else None
    return Expected(whole, sum(flops) if len(flops) == len(found) else None)


def execution_of(header: dict[str, Any], learner: LearnerFactory | None) -> Execution:
    """How the encoder computed."""
    if learner is not None:
        return same_bits(Execution())  # a learner of one's own knows its own
    made = {"engine": "eager", "precision": "fp32"} | header["environment"]
    if made["engine"] not in ENGINES:
        raise PreqError(
            f"the bitstream was made by a learner of its own ('{made['engine']}'); give it again (learner=)"
        )
    return same_bits(Execution(engine=made["engine"], precision=made["precision"]))


def same_bits(execution: Execution) -> Execution:
    """Encoder and decoder must compute the same bits, so nothing may differ from one time to the next."""
    if execution.compiled:
        raise PreqError("compiled kernels may give other bits next time; a code needs the same: leave compiling out")
    return replace(execution, compiled=False, deterministic=True)
