"""Which of several runs explains the data best, by how much, from where on, and how sure one may be."""

import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console

from prequential.errors import PreqError
from prequential.measure.chance import PairedTest
from prequential.measure.choosing import Candidates, candidates
from prequential.measure.comparable import (
    is_one_heldout,
    name_of,
    require_records,
    require_same_data,
    require_same_inputs,
    told_of,
)
from prequential.measure.simple import SIMPLE_CODES
from prequential.notebook import html_table, to_arrow, to_pandas
from prequential.report import columns
from prequential.report.columns import CodeRow, Row, code_rows_of, columns_of, title_of
from prequential.report.entries import Compared, Entry, entries_of, paired_test_of
from prequential.report.names import data_of
from prequential.report.runs import RunSet
from prequential.report.seeds import setting_of
from prequential.report.sentences import sentences_of
from prequential.report.table import print_table, say, values_of
from prequential.report.text import listed
from prequential.runs.live import status_of
from prequential.runs.record import Record
from prequential.terminal import printable

TOP = 20
"""Settings that are printed unless more are asked for."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Comparison:
    """Settings side by side, the shortest code first."""

    entries: list[Entry]
    """Those with a codelength, best first; at least one."""
    uncoded: list[Compared]
    """Those without (ERM): they have held-out figures only."""
    simple: dict[str, float]
    """The nats of the codes that look at labels alone: "uniform", "frequencies" and "previous"."""
    data: str
    length: int
    """Labels compared; shorter than the sequence if only a prefix was."""
    sequence_length: int
    num_classes: int
    candidates: Candidates
    """Those that the best was chosen from: settings, and of sweeps all trials that were begun."""
    notes: list[str]
    """What a reader must know besides."""

    @property
    def best(self) -> Entry:
        """The entry with the shortest code."""
        return self.entries[0]

    def heads(self) -> list[str]:
        """The heads of a table of the entries; columns that would be empty are left out."""
        return [column.title for column in columns_of(self)]

    def rows(self) -> list[list[str]]:
        """The cells of that table as text, a row for each entry, best first."""
        return [[column.cell(entry) for column in columns_of(self)] for entry in self.entries]

    def sentences(self) -> list[str]:
        """What the comparison says, in plain language."""
        return sentences_of(self)

    def test(self, first: Entry, second: Entry) -> PairedTest | None:
        """The paired test of two settings over the seeds they share; None if these are fewer than two."""
        return paired_test_of(first, second)

    def values(self) -> list[dict[str, Any]]:
        """A row of plain values for each entry, then for each setting without a codelength."""
        return values_of(columns.COLUMNS, [*self.entries, *self.uncoded])

    def to_pandas(self) -> Any:
        """Those rows as a pandas.DataFrame."""
        return to_pandas(self._columns())

    def to_arrow(self) -> Any:
        """Those rows as a pyarrow.Table."""
        return to_arrow(self._columns())

    def _columns(self) -> dict[str, list[Any]]:
        rows = self.values()
        return {name: [row[name] for row in rows] for name in rows[0]}

    def as_json(self, left_out: dict[str, list[str]] | None = None) -> dict[str, Any]:
        """The object that `preq compare --json` prints. What is infinite is null there, and `diverged` says so."""
        groups = [*self.entries, *self.uncoded]
        rows = [columns.described(group, row) for group, row in zip(groups, self.values(), strict=True)]
        return {
            "data": self.data,
            "length": self.length,
            "sequence_length": self.sequence_length,
            "num_classes": self.num_classes,
            "simple_codes_nats": self.simple,
            "choice_nats": self.candidates.nats,
            "entries": rows[: len(self.entries)],
            "without_codelength": rows[len(self.entries) :],
            "sentences": self.sentences(),
            "left_out": left_out or {},
        }

    def print(self, console: Console, top: int = TOP) -> None:
        """Print the table, in as many pieces as the terminal needs, and what it says."""
        say(console, title_of(self), "bold")

        def style(row: Row) -> str:
            return "bold" if row is self.best else "dim" if isinstance(row, CodeRow) else ""

        print_table(console, columns_of(self), columns.ranked_rows_of(self, top), style)
        if len(self.entries) > top:
            more = f"… and {len(self.entries) - top:,} more; --top {len(self.entries)} shows them"
            say(console, more, "dim")
        for sentence in self.sentences():
            say(console, sentence)

    def __str__(self) -> str:
        text = io.StringIO()
        self.print(Console(file=text))
        return text.getvalue().rstrip("\n")

    def _repr_html_(self) -> str:
        faint = [*code_rows_of(self), *self.uncoded]
        rows = [[column.cell(row) for column in columns_of(self)] for row in (*self.entries, *faint)]
        return html_table(title_of(self), self.heads(), rows, below=self.sentences(), faint=len(faint))

    def __repr__(self) -> str:
        number = len(self.entries) + len(self.uncoded)
        return printable(f"<Comparison of {number} on {self.data}: {self.best.name} with {self.best.nats:,.1f} nats>")


def compare(records: Iterable[Record], *, prefix: bool = False, same_inputs: bool = False) -> Comparison:
    """Compare runs by codelength.

    Runs that differ in nothing but their seed are one entry, with mean and standard error. Odds and posterior are those
    of the mean codelengths: e to the mean difference, the geometric mean of the odds over the seeds. They say what the
    labels say; whether another seed would say the same is the question of `p_value`.

    Args:
        records: at least one with a codelength; all on the same labels in the same order. Their inputs may differ,
            which is then said: each is the code of the labels given its own inputs, for a receiver who holds these.
        prefix: compare only the labels that every run has coded, and take unfinished runs too. What is known of whole
            runs only (held-out figures, FLOPs, seconds) is then left out.
        same_inputs: refuse runs whose inputs differ.

    Raises:
        PreqError: saying which runs cannot be compared, and why.

    Example:
        >>> import prequential as pq
        >>> data = pq.load_data("mnist").take(256).without_heldout()
        >>> method = pq.ReplayStreams(num_streams=2)
        >>> runs = [pq.run(model, data, method, seed=seed) for model in ("lenet", "mlp1") for seed in (0, 1)]
        >>> [(entry.name, entry.seeds, entry.difference > 10) for entry in pq.compare(runs).entries]
        [('mlp1', [0, 1], False), ('lenet', [0, 1], True)]
    """
    runs = require_records(records, "comparison")
    coded = [run for run in runs if run.prequential]
    if not coded:
        raise PreqError("none of these runs has a codelength; name at least one of a prequential method")
    for run in runs:
        require_same_data(run, coded[0])
    if same_inputs:
        require_same_inputs(runs)
    if not prefix:
        _require_finished(runs)
    length = RunSet.of(coded).common_length(prefix=prefix)
    shown = RunSet.of(runs).cut(length)
    longest = max((run for run in shown.records if run.prequential), key=lambda run: len(run.labels))
    simple = {name: float(code.nats(longest.labels, longest.num_classes).sum()) for name, code in SIMPLE_CODES.items()}
    is_part = prefix and length < coded[0].length
    groups = [Compared.of(group, is_part=is_part) for group in shown.groups()]
    return Comparison(
        entries=entries_of([group for group in groups if group.first.prequential], simple, length),
        uncoded=sorted(
            (group for group in groups if not group.first.prequential),
            key=lambda group: (group.heldout_loss is None, group.heldout_loss, group.name),
        ),
        simple=simple,
        data=data_of(runs),
        length=length,
        sequence_length=coded[0].length,
        num_classes=coded[0].num_classes,
        candidates=candidates(
            (run.record.path, group.name) for group in groups if group.first.prequential for run in group.members
        ),
        notes=_notes(groups),
    )


def _require_finished(runs: Sequence[Record]) -> None:
    """Refuse runs that were stopped, died or still go on."""
    for run in runs:
        status = status_of(run.path, run.status)
        if status not in ("finished", "diverged"):
            at = f" at label {len(run.nats):,} of {run.length:,}" if run.prequential else ""
            hint = ", or compare the labels that all have coded: --prefix (in Python prefix=True)" if at else ""
            raise PreqError(f"{name_of(run)} is not finished ({status}{at}); leave it out{hint}")


def _notes(groups: Sequence[Compared]) -> list[str]:
    notes = []
    if not is_one_heldout(record for group in groups for record in group.records):
        notes.append("held-out figures are of different held-out data: they cannot be compared with each other")
    notes += told_of((group.name, group.first) for group in groups if group.first.prequential)
    names: dict[str, list[str]] = {}
    for group in groups:
        names.setdefault(setting_of(group.first), []).append(group.name)
    notes += [
        f"the same settings and seed more than once, so that they are not taken as repeated seeds: {listed(same)}"
        for same in names.values()
        if len(same) > 1
    ]
    return notes
