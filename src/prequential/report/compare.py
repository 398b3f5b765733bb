"""Which of several runs explains the data best, by how much, from where on, and how sure one may be."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from prequential.conditioning import difference
from prequential.errors import PreqError
from prequential.measure import require_same_sequence
from prequential.notebook import html_table, to_arrow, to_pandas
from prequential.report.comparable import common_length, cut, require_finished, require_records, require_same_data
from prequential.report.compare_text import heads_of, html_rows_of, rows_of, title_of
from prequential.report.compare_values import values_of
from prequential.report.entries import Entry, Setting, entries_of, mean_of, paired_test_of
from prequential.report.paired import PairedTest
from prequential.report.seeds import group_names, grouped, setting_of
from prequential.report.sentences import listed, sentences_of
from prequential.runs.record import Record
from prequential.targets.simple_codes import frequency_code, previous_label_code, uniform_code

SIMPLE_CODES = {"uniform": uniform_code, "frequencies": frequency_code, "previous": previous_label_code}


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Comparison:
    """Settings side by side, the shortest code first."""

    entries: list[Entry]
    """Those with a codelength, best first; at least one."""
    uncoded: list[Setting]
    """Those without (ERM): they have held-out figures only."""
    simple: dict[str, float]
    """The nats of the codes that look at labels alone: "uniform", "frequencies" and "previous"."""
    data: str
    length: int
    """Labels compared; shorter than the sequence if only a prefix was."""
    sequence_length: int
    num_classes: int
    notes: list[str]
    """What a reader must know besides."""

    @property
    def best(self) -> Entry:
        """The entry with the shortest code."""
        return self.entries[0]

    def heads(self) -> list[str]:
        """The heads of a table of the entries; columns that would be empty are left out."""
        return heads_of(self)

    def rows(self) -> list[list[str]]:
        """The cells of that table as text, a row for each entry, best first."""
        return rows_of(self)

    def sentences(self) -> list[str]:
        """What the comparison says, in plain language."""
        return sentences_of(self)

    def test(self, first: Entry, second: Entry) -> PairedTest | None:
        """The paired test of two settings over the seeds they share; None if these are fewer than two."""
        return paired_test_of(first.records, second.records)

    def values(self) -> list[dict[str, Any]]:
        """A row of plain values for each entry, then for each setting without a codelength."""
        return values_of(self)

    def to_pandas(self) -> Any:
        """Those rows as a pandas.DataFrame."""
        return to_pandas(self._columns())

    def to_arrow(self) -> Any:
        """Those rows as a pyarrow.Table."""
        return to_arrow(self._columns())

    def _columns(self) -> dict[str, list[Any]]:
        rows = self.values()
        return {name: [row[name] for row in rows] for name in rows[0]}

    def _repr_html_(self) -> str:
        rows = html_rows_of(self)
        faint = len(rows) - len(self.entries)
        return html_table(title_of(self), self.heads(), rows, below=self.sentences(), faint=faint)

    def __repr__(self) -> str:
        number = len(self.entries) + len(self.uncoded)
        return f"<Comparison of {number} on {self.data}: {self.best.name} with {self.best.nats:,.1f} nats>"


def compare(records: Iterable[Record], *, prefix: bool = False) -> Comparison:
    """Compare runs by codelength.

    Runs that differ in nothing but their seed are one entry, with mean and standard error. Odds and posterior are those
    of the mean codelengths: e to the mean difference, the geometric mean of the odds over the seeds. They say what the
    labels say; whether another seed would say the same is the question of `p_value`.

    Args:
        records: at least one with a codelength; all on the same labels of the same data in the same order.
        prefix: compare only the labels that every run has coded, and take unfinished runs too. What is known of whole
            runs only (held-out figures, FLOPs, seconds) is then left out.

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
    runs = require_records(records)
    coded = [run for run in runs if run.prequential]
    uncoded = [run for run in runs if not run.prequential]
    if not coded:
        raise PreqError("none of these runs has a codelength; name at least one of a prequential method")
    for run in coded:
        require_same_sequence(run, coded[0])
    for run in uncoded:
        require_same_data(run, coded[0])
    if not prefix:
        require_finished(runs)
    length = common_length(coded, prefix=prefix)
    shown = [cut(run, length) for run in coded] + uncoded
    longest = max(shown[: len(coded)], key=lambda run: len(run.labels))
    simple = {name: float(code(longest.labels, longest.num_classes).sum()) for name, code in SIMPLE_CODES.items()}
    is_part = prefix and length < coded[0].length
    groups = grouped(shown)
    run_names, names = group_names(shown, groups)
    settings = [
        _setting([shown[number] for number in group], name, [run_names[number] for number in group], is_part=is_part)
        for group, name in zip(groups, names, strict=True)
    ]
    return Comparison(
        entries=entries_of([setting for setting in settings if setting.records[0].prequential], simple, length),
        uncoded=sorted(
            (setting for setting in settings if not setting.records[0].prequential),
            key=lambda setting: (setting.heldout_loss is None, setting.heldout_loss, setting.name),
        ),
        simple=simple,
        data=coded[0].data["name"],
        length=length,
        sequence_length=coded[0].length,
        num_classes=coded[0].num_classes,
        notes=_notes(shown, settings),
    )


def _setting(records: list[Record], name: str, runs: list[str], *, is_part: bool) -> Setting:
    """The runs of a setting, with the means of what whole runs tell: nothing is known of a part of the labels."""
    known = [] if is_part and records[0].prequential else records
    held = [record.heldout or {} for record in known]
    return Setting(
        name=name,
        runs=runs,
        records=records,
        heldout_loss=mean_of([each.get("loss") for each in held]),
        heldout_error=mean_of([each.get("error_rate") for each in held]),
        flops=mean_of([(record.flops or {}).get("code") for record in known]),
        seconds=mean_of([record.seconds for record in known]),
    )


def _notes(runs: Sequence[Record], settings: Sequence[Setting]) -> list[str]:
    notes = []
    held = {_heldout_data(run) for run in runs if run.heldout is not None}
    if len(held) > 1:
        notes.append("held-out figures are of different held-out data: they cannot be compared with each other")
    coded = [setting for setting in settings if setting.records[0].prequential]
    if told := difference((setting.name, setting.records[0].conditioned_on) for setting in coded):
        notes.append(told)
    keys: dict[str, list[str]] = {}
    for setting in settings:
        keys.setdefault(setting_of(setting.records[0]), []).append(setting.name)
    notes += [
        f"{listed(names)}: the same settings and seed more than once, so they are not taken as repeated seeds"
        for names in keys.values()
        if len(names) > 1
    ]
    return notes


def _heldout_data(run: Record) -> tuple[str | None, str | None]:
    data = run.data["heldout"] or {}
    return data.get("labels"), data.get("examples") or data.get("inputs")
