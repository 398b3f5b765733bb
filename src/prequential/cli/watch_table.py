"""What `preq watch` shows: a table for each sequence of labels, and under it what a person should know."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from rich.cells import cell_len, set_cell_size
from rich.console import Group as Lines
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from prequential.measure.comparable import inputs_told
from prequential.report.standings import Row
from prequential.report.table import Column, lines_of
from prequential.report.text import NAMED, counted, duration, listed, number
from prequential.report.watching import RESUMABLE, Snapshot
from prequential.runs.live import DIED

COLOURS = {"running": "cyan", "finished": "green", "pruned": "yellow", "stopped": "yellow"}
LEVELS = "▁▂▃▄▅▆▇█"
BAR_SIZE = 6
GAP = 2
"""Between two columns."""
NAME_WIDTH = 10
"""The least room a name is given."""
OPTIONAL = ("recent", "rate", "errors", "/label")
"""Columns that go first where there is no room."""
STATUSES = ("running", "finished", "diverged", "pruned", "stopped", "failed", DIED, "unreadable")


def view(snapshot: Snapshot, *, top: int, width: int) -> RenderableType:
    """The tables and notes, at most `top` runs and `width` columns."""
    parts: list[RenderableType] = []
    room = top
    for group in snapshot.groups:
        shown, room = group[:room], max(room - len(group), 0)
        if shown:
            parts += [_lines(_title(group), width, "bold"), _table(shown, len(group), width)]
            if told := inputs_told([(row.name, row) for row in group]):
                parts.append(_lines(told, width))
    hidden = Counter(row.status for _, row in snapshot.rows[top:])
    notes = [f"… and {hidden.total():,} more: {_statuses(hidden)}"] if hidden else []
    return Lines(*parts, *(_lines(note, width) for note in notes + _notes(snapshot)))


def _lines(text: str, width: int, style: str = "dim") -> Text:
    return Text("\n".join(lines_of(text, width)), style)


def _title(group: Sequence[Row]) -> str:
    row, names = group[0], listed(list(dict.fromkeys(str(each.data.get("name")) for each in group)))
    order = row.facts.get("seeds", {}).get("order_seed")
    order_text = "in the given order" if order is None else f"order seed {order}"
    code = "" if row.facts.get("prequential", True) else " · without a code"
    return f"{names} · {counted(row.facts['length'], 'label')} · {order_text}{code}"


def _notes(snapshot: Snapshot) -> list[str]:
    notes = []
    for status in RESUMABLE:
        if names := [name for name, row in snapshot.rows if row.status == status]:
            notes.append(f"{status}, resumable: {listed(names)}; the same command with --resume goes on")
    broken = [f"unreadable: {name}: {reason}" for name, reason in snapshot.unreadable.items()]
    notes += broken[:NAMED] + [f"unreadable: {len(broken) - NAMED:,} more"] * (len(broken) > NAMED)
    if snapshot.locked:
        places = "a directory" if snapshot.locked == 1 else f"{snapshot.locked:,} directories"
        notes.append(f"at work in {places} without a record yet: a sweep, a stack, or a run that begins")
    counts = snapshot.counts()
    return [*notes, f"{counted(counts.total(), 'run')}: {_statuses(counts)}" if counts else "no run yet"]


def _statuses(counts: Counter[str]) -> str:
    known = [*STATUSES, *sorted(set(counts) - set(STATUSES))]
    return ", ".join(f"{counts[status]:,} {status}" for status in known if counts[status])


def _table(rows: Sequence[Row], num_runs: int, width: int) -> Table:
    cells = {column.head: [column.cell(row) for row in rows] for column in COLUMNS}
    heads = [head for head in cells if any(cells[head]) and not (head == "regret" and num_runs == 1)]
    widths = {head: max(len(head), *map(cell_len, cells[head])) for head in heads}
    _fit(widths, width)
    table = Table(box=None, padding=(0, GAP, 0, 0), pad_edge=False, header_style="dim")
    for head, size in widths.items():
        justify: Any = "left" if head in ("run", "status", "recent") else "right"
        table.add_column(head, justify=justify, width=size, no_wrap=True)
    for place, row in enumerate(rows):
        style = {"status": COLOURS.get(row.status, "red"), "regret": "bold" if row.regret == 0 else ""}
        texts = {head: _shortened(cells[head][place], size) for head, size in widths.items()}
        table.add_row(*(Text(text, style=style.get(head, "")) for head, text in texts.items()))
    return table


def _fit(widths: dict[str, int], width: int) -> None:
    """Make columns fit: without some, then with shorter names.

    Example:
        >>> widths = {"run": 40, "nats": 7, "recent": 8}
        >>> _fit(widths, 24)
        >>> widths
        {'run': 15, 'nats': 7}
    """

    def left() -> int:
        """What the other columns leave for names."""
        return width - sum(GAP + size for head, size in widths.items() if head != "run")

    for head in OPTIONAL:
        if left() < min(widths["run"], NAME_WIDTH):
            widths.pop(head, None)
    widths["run"] = min(widths["run"], max(NAME_WIDTH, left()))


def _shortened(text: str, width: int) -> str:
    """The ends of names tell runs apart. Letters may be two columns wide.

    Example:
        >>> _shortened("learning-rate-0.003", 10), _shortened("学习率-0.003", 9)
        ('…ate-0.003', '…率-0.003')
    """
    if cell_len(text) <= width:
        return text
    return f"…{set_cell_size(text[::-1], max(width - 1, 0))[::-1].lstrip()}"


def _position(row: Row) -> str:
    """How far a run is, as a bar and as a number; before the first label, how far its study is."""
    told = f"{row.position:,}" if row.facts.get("prequential", True) else f"{row.share:.0%}"
    share = row.share
    if row.studied is not None:
        told, share = f"studying {row.studied:.0%}", row.studied
    return f"{('█' * int(min(share, 1) * BAR_SIZE)).ljust(BAR_SIZE, '·')} {told}"


def _left(row: Row) -> str:
    """The time left; of a run that studies, the least it can be."""
    at_least = ">" if row.studied is not None else ""
    return "" if row.seconds_left is None else at_least + duration(row.seconds_left)


def _nats(nats: float) -> str:
    return number(nats, ",.1f" if abs(nats) < 10_000 else ",.0f")


def _rate(rate: float) -> str:
    return f"{rate:,.0f}/s" if rate >= 10 else f"{rate:.2g}/s"


def sparkline(values: Sequence[float]) -> str:
    """A line of letters as high as the values.

    Example:
        >>> sparkline([3.0, 2.0, 1.0])
        '█▅▁'
    """
    if not values:
        return ""
    low, high = min(values), max(values)
    is_flat = high - low <= 1e-9 * abs(high)  # what adding up moves is no change
    scale = 0.0 if is_flat else (len(LEVELS) - 1) / (high - low)
    return "".join(LEVELS[round((value - low) * scale)] for value in values)


COLUMNS: list[Column[Row]] = [
    Column("run", "", lambda row: row.name),
    Column("status", "", lambda row: row.status),
    Column("position", "", _position),
    Column("nats", "", lambda row: row.nats, _nats),
    Column("/label", "", lambda row: row.nats_per_label, "{:.4f}".format),
    Column("errors", "", lambda row: row.errors, "{:,}".format),
    Column("regret", "", lambda row: row.regret, lambda nats: f"+{_nats(nats)}" if nats else "best"),
    Column("rate", "", lambda row: row.rate if row.nats is not None else None, _rate),
    Column("left", "", _left),
    Column("recent", "", lambda row: row.spark, sparkline),
]
