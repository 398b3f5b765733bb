"""`preq models` and `preq presets`: what is there."""

from dataclasses import dataclass
from typing import Annotated

import tyro
from rich.console import Console
from rich.table import Column
from rich.text import Text

from prequential.cli.show import print_list
from prequential.cli.source import SourceFlags
from prequential.errors import PreqError, require_known
from prequential.libraries import LIBRARIES
from prequential.presets import PRESETS, Preset, find_preset
from prequential.report.table import say


@dataclass(frozen=True, kw_only=True)
class ModelFlags(SourceFlags):
    """List the models, with their parameters and FLOPs for a data set."""

    data: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="DATA")] = "mnist"
    """A data set (see preq data); its shape and classes decide the sizes."""
    width: float = 1.0
    """Scale the models' layers."""


@dataclass(frozen=True, kw_only=True)
class PresetFlags:
    """List the presets: what they are for, their settings, and the codelengths they reached."""

    name: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="NAME")] = ""
    """Show only this one, with all its settings."""
    data: str | None = None
    """Only what fits this data set."""


def main_models(flags: ModelFlags) -> None:
    """List."""
    import torch

    from prequential.learn.estimate import cost_per_example
    from prequential.models import MODELS, build, summary_of

    data = flags.load(flags.data)
    rows = []
    for name in MODELS:
        try:
            with torch.device("meta"):
                model = build(name, data.input_shape, data.num_classes, width=flags.width)
        except PreqError:
            rows.append((name, summary_of(name), "–", "–"))
            continue
        cost = cost_per_example(model, torch.zeros(2, *data.input_shape))
        num_parameters = sum(p.numel() for p in model.parameters())
        rows.append((name, summary_of(name), f"{num_parameters:,}", f"{cost.train:,.0f}" if cost else "–"))
    shape = "×".join(map(str, data.input_shape))
    numbers = [Column(head, justify="right") for head in ("parameters", "FLOPs per\ntraining example")]
    print_list(
        ("model", "what it is", *numbers),
        rows,
        f"for {data.name}: inputs of {shape}, {data.num_classes} classes; – where that does not fit. wrn-D-K for any "
        "depth 6n+4; -ws behind a name standardises the weights of its convolutions; timm:NAME with timm installed; "
        "your own model: package.module:factory. No networks, with these libraries installed: "
        + " and ".join(f"{prefix}{library.example}" for prefix, library in LIBRARIES.items())
        + ", for any classifier of theirs that gives probabilities",
    )


def main_presets(flags: PresetFlags) -> None:
    """List."""
    if flags.name:
        require_known("preset", flags.name, dict.fromkeys(preset.name for preset in PRESETS))
    if flags.name and flags.data is not None:
        find_preset(flags.name, flags.data, "lenet")  # one that is not for this data is a mistake
    shown = [preset for preset in PRESETS if preset.name == (flags.name or preset.name)]
    if flags.data is not None:
        shown = [preset for preset in shown if preset.fits(flags.data, preset.model[0])]
    print_list(
        ("preset", "data", "model", "what it is", "reached"),
        [(each.name, ", ".join(each.data), _models(each), each.description, _reached(each)) for each in shown],
        "the first that fits data and model is taken; flags go before it; the best of n runs costs ln n nats more",
    )
    for each in shown if flags.name else ():
        lines = ["", f"{each.name} for {', '.join(each.data)}: {each.recipe}", f"  {dict(each.settings)}"]
        if each.listed is not None and each.listed.mixer is not None:
            lines.append(f"  {_models(each)}, mixed by {each.listed.mixer}")
        for line in lines:
            say(Console(), line)


def _models(preset: Preset) -> str:
    """The models that a preset is for, or the experts that it names."""
    if preset.listed is None:
        return ", ".join(preset.model)
    told = preset.listed
    names = [f"{each.members} × {each.model}" if each.members > 1 else each.model for each in told.experts]
    return " + ".join([*names, *["simple codes"] * told.simple_codes])


def _reached(preset: Preset) -> Text:
    lines = []
    for each in preset.reached:
        error = f" ± {each.standard_error:,.0f}" if each.standard_error is not None else ""
        seeds = f", {each.seeds} seeds" if each.seeds > 1 else ""
        tried = f", {each.tried} settings tried" if each.tried else ""
        lines.append(f"{each.nats:,.0f}{error} nats{seeds}{tried} ({each.where}, {each.when}): {each.command}")
    return Text("\n".join(lines) or "–")
