"""`preq models` and `preq data`: what is there."""

from dataclasses import dataclass
from typing import Annotated

from rich.console import Console
from rich.table import Table

from prequential.cli.parse import PathText, default, parse


@dataclass(frozen=True, kw_only=True)
class ModelFlags:
    """List the models, with their parameters and FLOPs for MNIST-like input."""


@dataclass(frozen=True, kw_only=True)
class DataFlags:
    """List the data sets, and where each one is read from."""

    data_dir: Annotated[PathText, default("$PREQ_DATA")] = None
    """Where the publisher's files are; searched before what the package carries."""


def main_models(arguments: list[str]) -> int:
    """Parse, list."""
    parse(ModelFlags, "models", arguments)
    import torch

    from prequential.learn.flops import cost_per_example
    from prequential.models import MODELS, build, summary_of

    table = Table("model", "what it is", box=None)
    table.add_column("parameters", justify="right")
    table.add_column("FLOPs per training example", justify="right")
    for name in MODELS:
        model = build(name, (1, 28, 28), 10)
        cost = cost_per_example(model, torch.zeros(2, 1, 28, 28))
        num_parameters = sum(p.numel() for p in model.parameters())
        table.add_row(name, summary_of(name), f"{num_parameters:,}", f"{cost.train:,.0f}" if cost else "–")
    console = Console()
    console.print(table)
    console.print("for 28×28 grey images and 10 classes; your own model: package.module:factory", style="dim")
    return 0


def main_data(arguments: list[str]) -> int:
    """Parse, list."""
    flags = parse(DataFlags, "data", arguments)
    from prequential.data.sources import SOURCES, user_directory

    directory = user_directory(flags.data_dir)
    table = Table("data set", "what it is", "read from", box=None)
    for source in SOURCES.values():
        table.add_row(source.name, source.description, str(source.where(directory)))
    Console().print(table)
    return 0
