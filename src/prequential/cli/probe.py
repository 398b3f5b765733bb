"""`preq probe DATA MODEL…`."""

import json
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro
from rich.console import Console

from prequential.cli.job import DataFlags
from prequential.cli.parse import JsonFlag, PathText, flag_group
from prequential.errors import PreqError
from prequential.files import write_atomically, writing
from prequential.report.table import Column, columns_that_say, print_table, say
from prequential.report.text import number, odds
from prequential.settings import setting

if TYPE_CHECKING:
    from prequential.data.sequence import LoadedSequence
    from prequential.probing.result import Probed, Probing

Networks = Annotated[tyro.conf.Positional[tuple[str, ...]], tyro.conf.arg(metavar="MODEL...", help_behavior_hint="")]


@flag_group("model")
class ProbedFlags:
    """What is probed."""

    networks: Networks
    """run:DIR (kept by preq run --keep-weights), MODEL@FILE.safetensors, a MODEL for an untrained one, or inputs."""
    layers: str = "last"
    """last: what the last layer of weights is given; all: every layer; or names of modules, with commas between."""
    width: float = 1.0
    """Scale the layers of models that are named here."""
    seed: int = 0
    """Initialisation of untrained networks and of readouts, control labels."""
    allow_seen: bool = False
    """Probe networks that learned some of these very examples, too; they are marked."""


@flag_group("method")
class ReadoutFlags:
    """How the labels are coded."""

    readouts: str | None = setting(None, hint="all of them")
    """Those that learn to read labels from features, with commas between: linear, mlp1, mlp2, nearest-mean, knn,
    bayes-linear."""
    voita: bool = False
    """Code block by block (Voita and Titov, 2020), one readout trained from scratch before each; needs one readout."""
    control: str | None = setting(None, hint="none")
    """A column of the table: each distinct value gets a random class, and these are coded as well."""


@flag_group("output")
class Probe(DataFlags, ProbedFlags, ReadoutFlags, JsonFlag):
    """Which representation explains these labels with the shortest code? Features of each layer of frozen networks are
    computed once; readouts learn them online, and the labels are coded by switching among the readouts.

    `preq probe npz:others.npz run:runs/lenet lenet inputs`

    A network that learned these very examples is refused. Features are standardised over all inputs.
    """

    out: PathText = None
    """Write the result (probe.json) and a picture (probe.png) into this directory."""
    cache: PathText = None
    """Where features are kept, to be used again. Default: the package's cache."""


def main_probe(flags: Probe) -> None:
    """Load, probe, print."""
    if flags.voita and (flags.readouts is None or "," in flags.readouts):
        raise PreqError("--voita needs one readout; give --readouts linear, or another")
    if flags.out is not None:
        with writing(Path(flags.out)):
            Path(flags.out).mkdir(parents=True, exist_ok=True)
    from prequential.probing.coding import READOUTS
    from prequential.probing.entry import probe

    data = flags.load(flags.data, flags.length)
    control = None if flags.control is None else _control(flags, data)

    def told(each: "Probed") -> None:
        flags.tell(f"{each.name}: {each.codelength:,.1f} nats")

    found = probe(
        list(flags.networks),
        data,
        layers=flags.layers,
        readouts=READOUTS if flags.readouts is None else flags.readouts.split(","),
        voita=flags.voita,
        control=control,
        allow_seen=flags.allow_seen,
        width=flags.width,
        seed=flags.seed,
        cache=flags.cache,
        told=None if flags.json else told,
    )
    if flags.out is not None:
        write_probing(found, Path(flags.out))
    flags.result(found.as_json, partial(print_probing, found))
    if flags.out is not None:
        flags.tell(f"result: {flags.out}")


def _control(flags: Probe, data: "LoadedSequence") -> Any:
    """The values of the control's column, in the order of the data."""
    from prequential.data.sources import find_source, user_directory
    from prequential.data.sources.request import Request
    from prequential.probing.control import values_of_column

    source, argument = find_source(flags.data)
    if source.name not in ("table:", "csv:") or flags.control is None:
        raise PreqError(
            f"--control names a column of a table, and {flags.data} is none; probe an untrained network for comparison"
        )
    request = Request(name=flags.data, argument=argument, directory=user_directory(flags.data_dir))
    return values_of_column(data, flags.control, request.path(), flags.max_unpacked)


def write_probing(found: "Probing", directory: Path) -> None:
    """Result and picture."""
    from prequential.probing.picture import plot_probing

    kept = {
        each.name: {"after": each.code.weights_after.tolist()}
        | {name: weights.round(4).tolist() for name, weights in each.weights_of_readouts().items()}
        for each in found.ranking
    }
    content = json.dumps(found.as_json() | {"weights": kept}, indent=1, ensure_ascii=False)
    write_atomically(directory / "probe.json", content.encode() + b"\n")
    plot_probing(found, directory / "probe.png")


def print_probing(found: "Probing") -> None:
    """For a person."""
    console, uniform = Console(file=sys.stdout, highlight=False), found.as_json()["uniform_nats"]
    code = "switching among readouts, online" if found.is_online else "block by block (Voita and Titov)"
    say(
        console,
        f"{found.data} · {found.length:,} label{'s' * (found.length != 1)} of {found.num_classes} classes · {code}",
        "bold",
    )
    columns: list[Column[Any]] = [
        Column("representation", "name", lambda each: each.name, is_left=True),
        Column("features", "num_features", lambda each: each.num_features, "{:,}".format),
        Column("nats", "nats", lambda each: each.codelength, "{:,.1f}".format),
        Column("nats per\nlabel", "rate", lambda each: each.nats_per_label, "{:.4f}".format),
        Column("odds of\nthe best", "odds", found.log_odds, lambda nats: odds(nats).removesuffix(" : 1")),
        Column("below half\nafter", "efficiency", lambda each: each.data_efficiency, "{:,}".format, band=1),
        Column("control,\nnats", "control", lambda each: each.control_codelength, "{:,.1f}".format, band=1),
        Column("in charge", "charge", _in_charge, is_left=True, band=2),
        Column("training", "training", lambda each: each.training, is_left=True, band=3),
    ]
    print_table(console, columns_that_say(columns, found.ranking), found.ranking)
    told = f"uniform: {number(uniform, ',.1f')} nats, label frequencies: {number(found.frequencies_nats, ',.1f')}"
    say(console, f"{told}; all codes are given all inputs, over which features are standardised.", "dim")
    if len(found.ranking) > 1:
        say(console, f"Choosing the best of {len(found.ranking)} costs ln {len(found.ranking)} nats more.", "dim")
    if any(each.share_seen for each in found.ranking):
        say(console, "A network that learned these examples is marked with their share: its code is worth nothing.")


def _in_charge(each: "Probed") -> str | None:
    """The readouts in charge, each with the number of labels after which it was."""
    told, before = list[str](), ""
    for after, readout in each.in_charge():
        told += [] if readout == before else [f"{readout} from {after:,}"]
        before = readout
    return ", ".join(told) or None
