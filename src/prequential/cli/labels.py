"""`preq labels RUN`: which labels were expensive, and which classes are taken for which."""

import sys
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Annotated

import tyro
from rich.console import Console

from prequential.cli.parse import JsonFlag, PathText, flag_group
from prequential.cli.source import PlaceFlags, named_again, reload
from prequential.errors import require_count
from prequential.report.labels import TOP, Example, Examples, Expenses, require_labels
from prequential.report.table import columns_that_say, print_table, say, write_csv
from prequential.runs.record import Record, load
from prequential.terminal import printable


@flag_group("data")
class ExampleFlags(PlaceFlags):
    """Where the examples are, for those who want to see them."""

    data: str | None = None
    """The data of the run, to tell files and show pictures: nothing is read because a record names it."""

    def examples(self) -> Examples | None:
        """What shows the examples of a run, if the data was named."""
        return None if self.data is None else partial(_shown, self.data, self.data_dir)


@flag_group()
class Labels(ExampleFlags, JsonFlag):
    """Which labels of a run were expensive: the worst of them, their share of the codelength, and every class.

    `preq labels runs/lenet --data mnist`

    A label costs −ln p of it in nats. One that costs much is wrong, hard, or strange: the row tells where it is in the
    source, and `preq report --data` shows it where it is an image. Which class a label was taken for is the most
    probable one when it was predicted, before it was learned from.
    """

    run: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="RUN")]
    """The directory of a run; one that still goes tells what its last checkpoint knows."""
    top: int = TOP
    """Labels, classes and confusions to print."""
    start: int = 0
    """Only labels from this position on: early ones are expensive because little was learned yet."""
    csv: PathText = None
    """Write the labels into this file, a row each."""


def main_labels(flags: Labels) -> None:
    """Load, find, print."""
    require_count("--top", flags.top)
    record = load(flags.run)
    require_labels(record)
    require_count("--start", flags.start, at_least=0, at_most=len(record.nats) - 1)
    expenses = Expenses.of(record, flags.top, flags.examples(), flags.start)
    written = None if flags.csv is None else write_csv(flags.csv, expenses.rows())
    flags.result(partial(expenses.as_json, flags.top), partial(_print, expenses, flags.top))
    if written is not None:
        flags.tell(f"csv: {written}")


def _print(expenses: Expenses, top: int) -> None:
    """For a person."""
    console, record = Console(file=sys.stdout, highlight=False), expenses.record
    say(console, printable(f"{record.data['name']} · {record.model['name']} · {record.title}"), "bold")
    for sentence in filter(None, (expenses.unfinished, expenses.sentence)):
        say(console, sentence)
    print_table(console, columns_that_say(expenses.columns(), expenses.worst), expenses.worst)
    if not expenses.classes:
        return
    ranked = sorted(expenses.classes, key=lambda each: -each.nats)[:top]
    of_all = "" if len(ranked) == len(expenses.classes) else f", the {len(ranked)} dearest of {len(expenses.classes)}"
    say(console, f"Classes by what they cost{of_all}", "bold")
    print_table(console, expenses.class_columns(), ranked)
    if expenses.confusions:
        say(console, "Taken for another most often", "bold")
        print_table(console, expenses.confusion_columns(), expenses.confusions[:top])
    if record.data.get("rows") is None:
        say(
            console,
            "The record does not know the rows of its source (it may be older, or its order be one's own); --data "
            "tells those of a table.",
            "dim",
        )


def _shown(name: str, data_dir: str | None, record: Record, positions: Sequence[int]) -> Mapping[int, Example]:
    """Examples of the data that a person named, read as the run read them."""
    from prequential.data.shown import ShownExamples

    data = reload(named_again(name, record.source), record.seeds["order_seed"], data_dir)
    return ShownExamples(data)(record, positions)
