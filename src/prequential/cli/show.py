"""What a person sees of a run: a bar while it goes, a table when it is done."""

import math
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import itemgetter
from typing import IO, Any

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn, TimeRemainingColumn
from rich.table import Column as TableColumn
from rich.table import Table
from rich.text import Text

from prequential.conditioning import INPUTS_SO_FAR
from prequential.counts import Counts
from prequential.methods import Method
from prequential.mixers.kept import expert_names
from prequential.plan import Plan
from prequential.reference import Published, other_figure, published
from prequential.report.experts import Mixed, beginning
from prequential.report.table import Column, print_table, say
from prequential.report.text import counted, number
from prequential.runs.progress import Progress as RunProgress
from prequential.runs.record import Record
from prequential.runs.studied import FILE
from prequential.runs.studied import in_words as study_in_words
from prequential.scaling import in_words
from prequential.terminal import printable, tell

SHOWN, LETTERS = 4, 12
"""Names of classes that a table of results lists, and how much of each."""
MOST_BAR, LEAST_BAR = 24, 6
SECONDS_LEFT = 14
"""What the time left takes: "23:00:00 left", and a space."""


def columns_for(width: int, length: int) -> list[ProgressColumn]:
    """What fits into a line of a terminal, the time left always; what is dropped first stands last.

    Example:
        >>> [len(columns_for(width, 60_000)) for width in (120, 80, 50, 20)]
        [7, 7, 5, 3]
    """
    position = 2 * len(f"{length:,}") + 1
    parts = [
        (f"{{task.fields[position]:>{position}}}", position),
        ("{task.fields[nats]:>9} nats", 14),
        ("{task.fields[rate]:>6} per label", 16),
        ("{task.fields[errors]:>6} errors", 13),
    ]
    room = width - SECONDS_LEFT
    while parts and sum(size + 1 for _, size in parts) > room - LEAST_BAR:
        parts.pop()
    bar = BarColumn(bar_width=min(room - sum(size + 1 for _, size in parts), MOST_BAR))
    return [bar, *(TextColumn(text) for text, _ in parts), TimeRemainingColumn(), TextColumn("left")]


class LiveLine(Progress):
    """A line on standard error while something goes on, if that is a terminal."""

    def __init__(self, *columns: ProgressColumn) -> None:
        console = Console(stderr=True)
        super().__init__(*columns, console=console, transient=True, disable=not console.is_terminal)


class ProgressBar(LiveLine):
    """A live line on standard error: position, nats so far, nats per label, errors, time left.

    What a narrow terminal has no room for is left out; the time left stays.
    """

    def __init__(self, method: Method, length: int, plan_seed: int, tell: Callable[[str], None] | None = None) -> None:
        super().__init__(*columns_for(Console(stderr=True).width, length))
        counts = Counts() if self.disable else Plan(method, length, plan_seed, heldout=True).counts()
        self._per_study = counts.studied_examples / max(counts.studies, 1)
        whole = None if self.disable else counts.trained_examples + counts.studied_examples
        self._tell = tell
        self._run = self.add_task("run", total=whole, position="", nats="–", rate="–", errors="–")

    def begin(self, facts: Mapping[str, Any], progress: RunProgress) -> None:
        """The first lines of a run: how inputs that are scaled reach the network, how many have no labels, and who
        its experts are."""
        if self._tell is not None and facts.get("scale") is not None:
            self._tell(in_words(facts["scale"]))
        if self._tell is not None and facts["data"].get("unlabelled"):
            self._tell(_unlabelled(facts["data"]["unlabelled"]))
        if self._tell is not None and expert_names(facts["model"]):
            self._tell(beginning(facts["model"]))
        if self._tell is not None and (facts.get("study") or {}).get("from") == FILE:
            self._tell(f"studied before: {study_in_words(facts['study'])}")

    def __call__(self, progress: RunProgress) -> None:
        told: dict[str, Any] = {"position": f"{progress.position:,}/{progress.length:,}"}
        if progress.is_studying:
            told["position"] = f"studying {progress.studied_steps:,}/{progress.study_steps:,} steps"
        if progress.position:
            told |= {"nats": f"{progress.nats:,.0f}", "rate": f"{progress.nats / progress.position:.4f}"}
            told["errors"] = f"{progress.errors:,}"
        completed = progress.trained_examples + progress.studied_steps * self._per_study
        self.update(self._run, completed=completed, **told)


def _unlabelled(told: Mapping[str, int]) -> str:
    """What there is besides the labels.

    Example:
        >>> _unlabelled({"number": 59000, "left_out": 2})
        '59,000 inputs without labels; 2 more equal held-out ones and are left out'
    """
    left_out = f"; {told['left_out']:,} more equal held-out ones and are left out" if told["left_out"] else ""
    return f"{told['number']:,} inputs without labels{left_out}"


def print_list(
    heads: Iterable[TableColumn | str], rows: Iterable[Iterable[str | Text]], note: str, file: IO[str] | None = None
) -> None:
    """What there is, as a table, and below it what is to be known of it; a cell of several lines is a `Text`."""
    console, table = Console(file=file), Table(*heads, box=None)
    for row in rows:
        table.add_row(*(cell if isinstance(cell, Text) else Text(printable(cell)) for cell in row))
    console.print(table)
    console.print(Text(printable(note), "dim"))


def listed(names: Sequence[str]) -> str:
    """The first few names of classes.

    Example:
        >>> listed(["down", "up"]), listed(["a", "b", "c", "d", "e"])
        ('down, up', 'a, b, c, d, …')
    """
    short = [name if len(name) <= LETTERS else f"{name[: LETTERS - 1]}…" for name in map(printable, names)]
    return ", ".join([*short[:SHOWN], *["…"] * (len(short) > SHOWN)])


def print_result(record: Record) -> None:
    """The table at the end of a run, with the published row beside it where there is one."""
    row = published(record.data["name"], record.model["name"], record.method["name"])
    if row is not None and (record.model["width"] != 1 or record.length != row.length or record.status != "finished"):
        row = None
    console = Console(file=sys.stdout)
    say(console, f"{record.data['name']} · {record.model['name']} · {record.title}", "bold")
    heads = ["", "this run", *([] if row is None else [row.label])]
    columns = [Column[Any](head, "", itemgetter(place), is_left=place == 0) for place, head in enumerate(heads)]
    print_table(console, columns, _rows(record, row))
    if (mixed := Mixed.of(record)) is not None:
        rows, more = mixed.shown()
        print_table(console, mixed.columns, rows)
        for sentence in filter(None, (more, mixed.sentence())):
            say(console, sentence)
    if row is not None and row.note:
        say(console, f"{row.label}: {row.note}.")
    if row is not None and (other := other_figure(row)) is not None:
        say(console, f"the paper's Table 2 has {other:,.0f} nats for the same data and model")
    tell(f"record: {record.path}" if record.path else "the record was not kept; --out DIR keeps it")


def _rows(record: Record, row: Published | None) -> list[tuple[str, str, str]]:
    heldout, flops = record.heldout or {}, record.flops or {}
    loss, error = heldout.get("loss"), heldout.get("error_rate")
    their = row or Published("mnist", "", "", None, None, None, None, None)
    their_bits = their.nats / math.log(2) / their.length if their.nats else None
    return [
        *([("classes", listed(names), "")] if (names := record.class_names) else []),
        *([("given", record.conditioned_on, INPUTS_SO_FAR)] if record.conditioned_on != INPUTS_SO_FAR else []),
        ("labels", f"{len(record.nats) if record.prequential else record.length:,}", f"{their.length:,}"),
        ("codelength, nats", number(record.codelength, ",.0f"), number(their.nats, ",.0f")),
        ("bits per label", number(record.bits_per_label, ".4f"), number(their_bits, ".4f")),
        ("errors", number(record.errors, ",d"), number(their.errors, ",d")),
        ("held-out loss, nats", number(loss, ".4f"), number(their.heldout_loss, ".2f")),
        ("held-out error", number(error, ".2%"), number(their.heldout_error, ".1%")),
        ("FLOPs", number(flops.get("code"), ".2g"), number(their.flops, ".2g")),
        *([("of it studying", number(flops.get("study"), ".2g"), "–")] if record.study else []),
        ("seconds", number(record.seconds, ",.1f"), "–"),
        *([("study", study_in_words(record.study), "–")] if record.study else []),
        ("device", _device(record), "–"),
    ]


def _device(record: Record) -> Any:
    made = record.environment
    return f"cpu, {counted(made['threads'], 'thread')}" if made["device"] == "cpu" else made["device_name"]
