"""Flags shared by commands, and the way from flags to a method and a recipe."""

from dataclasses import dataclass, fields, replace
from typing import Annotated, Any

from prequential.cli.parse import UNSET, Count, Number, Positions, Text, Whole, Word, Words, default
from prequential.errors import PreqError, unknown_name
from prequential.learn.recipe import Recipe
from prequential.methods import AGE_LAWS, METHODS, ChunksFineTuned, FullDataset, Method, ReplayStreams, age_law
from prequential.presets import Preset

METHOD_FLAGS = {
    "streams": ("num_streams", "num_replays"),
    "batch_size": ("batch_size",),
    "first_block": ("first_block",),
    "min_steps": ("min_steps",),
    "capacity": ("capacity",),
    "replacement": ("replacement",),
    "split_points": ("split_points",),
    "epochs": ("epochs",),
    "shrink": ("shrink",),
    "perturb": ("perturb",),
    "age_law": ("age_law",),
    "no_calibration": ("calibrate",),
}
"""Flag → the setting it is in the methods that have it."""

RECIPE_FLAGS = {
    "optimizer": "optimizer",
    "lr": "learning_rate",
    "full_rate_steps": "full_rate_steps",
    "eps": "eps",
    "weight_decay": "weight_decay",
    "momentum": "momentum",
    "ema": "ema_step_size",
    "label_smoothing": "label_smoothing",
    "augment": "augment",
    "average_views": "average_views",
}


DEFAULT = Recipe()


@dataclass(frozen=True, kw_only=True)
class MethodFlags:
    """What decides a plan."""

    method: Text = "mi-rs"
    """mi-rs (replay streams), mi-rb (buffer), ci-fs (chunks from scratch), ci-cf (fine-tuned) or erm (no code)."""
    preset: Text = "default"
    """Settings that belong together (see preq presets). They go before the defaults named here, flags before both."""
    streams: Annotated[Count, default(ReplayStreams().num_streams)] = None
    """Replay streams of mi-rs, replays per label of mi-rb."""
    batch_size: Annotated[Count, default(ReplayStreams().batch_size)] = None
    """Examples per training step."""
    age_law: Annotated[Word, default("uniform")] = None
    """mi-rs: which ages are replayed: uniform, exponential or pareto."""
    age_scale: Annotated[Number, UNSET] = None
    """mi-rs: the scale of the exponential or pareto law, in examples."""
    capacity: Annotated[Count, default("all")] = None
    """mi-rb: examples the buffer holds."""
    replacement: Annotated[Word, default("fifo")] = None
    """mi-rb: what a full buffer drops: fifo or reservoir."""
    split_points: Annotated[Positions, default("64 128 256 ...")] = None
    """ci-fs, ci-cf: positions where training happens."""
    epochs: Annotated[Count, default(f"{ChunksFineTuned().epochs}, erm {FullDataset().epochs}")] = None
    """ci-fs, ci-cf, erm: passes over the data."""
    shrink: Annotated[Number, default(1)] = None
    """ci-cf: before each stage but the first, weights are multiplied by this ..."""
    perturb: Annotated[Number, default(0)] = None
    """ci-cf: ... and this share of a fresh initialisation is added."""
    first_block: Annotated[Count, default("the batch size")] = None
    """mi-rs, mi-rb: labels predicted at once in the beginning, growing to the batch size."""
    min_steps: Annotated[Count, default(0)] = None
    """mi-rs, mi-rb: at least this many training steps per block while blocks grow."""
    no_calibration: Annotated[bool, UNSET] = False
    """Leave the softmax temperature at 1."""
    plan_seed: Whole = 0
    """The seed of the plan."""


@dataclass(frozen=True, kw_only=True)
class RecipeFlags:
    """What decides training."""

    optimizer: Annotated[Word, default(DEFAULT.optimizer)] = None
    """adamw, rmsprop or sgd."""
    lr: Annotated[Number, default(DEFAULT.learning_rate)] = None
    """Learning rate."""
    full_rate_steps: Annotated[Count, default("all")] = None
    """From this training step on the learning rate falls as 1/sqrt(step)."""
    eps: Annotated[Number, default(DEFAULT.eps)] = None
    """Epsilon of adamw and rmsprop."""
    weight_decay: Annotated[Number, default(DEFAULT.weight_decay)] = None
    """Weight decay."""
    momentum: Annotated[Number, default(DEFAULT.momentum)] = None
    """Momentum of sgd and rmsprop, beta1 of adamw."""
    ema: Annotated[Number, default(DEFAULT.ema_step_size)] = None
    """Step size of the weight average that predicts; 1 switches it off."""
    no_ema_warmup: Annotated[bool, UNSET] = False
    """Start the average slowly, as the paper does."""
    slow_statistics: Annotated[bool, UNSET] = False
    """Average batch-norm statistics twice, by each layer and by the EMA, as --preset paper does."""
    label_smoothing: Annotated[Number, default(DEFAULT.label_smoothing)] = None
    """Smoothing of the training targets."""
    augment: Annotated[Words, default("none")] = None
    """Augmentations of training images: flip, shift:N, cutout:N, affine, resized-crop, randaugment ..."""
    average_flips: Annotated[bool, UNSET] = False
    """Predict from each image and its mirror image together."""
    average_views: Annotated[Count, default(DEFAULT.average_views)] = None
    """Predict from so many views of each image together, moved as --augment moves them (an odd number)."""


def method_from(flags: MethodFlags, preset: Preset) -> Method:
    """The preset's method with what the flags change; a flag that the method does not have is a mistake."""
    if flags.method not in METHODS:
        raise unknown_name("method", flags.method, METHODS)
    given: dict[str, Any] = {}
    for flag, names in METHOD_FLAGS.items():
        value = getattr(flags, flag)
        if value is None or value is False:
            continue
        owners = {name: _setting(name, names) for name in METHODS}
        setting = owners[flags.method]
        if setting is None:
            belongs = ", ".join(name for name, found in owners.items() if found)
            raise PreqError(f"--{flag.replace('_', '-')} has no meaning for {flags.method}; it belongs to {belongs}")
        given[setting] = value
    if "age_law" in given or flags.age_scale is not None:
        given["age_law"] = _age_law(flags)
    if flags.no_calibration:
        given["calibrate"] = False
    return preset.method(flags.method, given)


def _setting(method: str, names: tuple[str, ...]) -> str | None:
    kind: Any = METHODS[method]
    known = {f.name for f in fields(kind)}
    return next((name for name in names if name in known), None)


def _age_law(flags: MethodFlags) -> object:
    if flags.method != "mi-rs":
        raise PreqError(f"--age-scale has no meaning for {flags.method}; it belongs to mi-rs")
    name = flags.age_law or "uniform"
    if name not in AGE_LAWS:
        raise unknown_name("age law", name, AGE_LAWS)
    return age_law(name, flags.age_scale)


def recipe_from(preset: Preset, flags: RecipeFlags) -> Recipe:
    """The preset's recipe with what the flags change."""
    given = {name: getattr(flags, flag) for flag, name in RECIPE_FLAGS.items()}
    changes: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    if flags.no_ema_warmup:
        changes["ema_warmup"] = False
    if flags.slow_statistics:
        changes["fast_statistics"] = False
    if flags.average_flips:
        changes["average_flips"] = True
    return replace(preset.recipe, **changes)
