"""The table of the shortest codes, made from results: what was reached, among how many settings, and what is missing.

Whatever was chosen was chosen by codelength. Held-out error is printed and decides nothing.
"""

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from shorter_plan import COMPARED, FAILED, Job, Result, chosen, compared, seconds_left, whole_nats
from shorter_settings import CELLS, SO_FAR, Cell

GIVEN = {SO_FAR: "inputs so far", "all": "all inputs"}
MIXED = "mixed"
LABELS_ALONE = "inputs so far"
LEFT_OUT = ("single", "without study", "without beside", "without either", LABELS_ALONE, "longer study")


def tell(done: Sequence[Result], missing: Sequence[Job]) -> None:
    """Print everything."""
    ran = [line for line in done if line["status"] != FAILED]
    rows = [row_of(where, cell, ran) for where, cell in CELLS.items()]
    print("The shortest codes, in nats\n")
    table(rows)
    if left_out := rows_left_out(ran):
        print(f"\n{COMPARED[1]}, given all inputs: what is left out, in the same minutes\n")
        table(left_out)
    print("\nSettings that were compared\n")
    table(row for where in CELLS for row in rows_compared(where, done))
    print("\nWhat is missing, in order, with the minutes of an H200 that it should take\n")
    table(rows_missing(missing, done))


def row_of(where: tuple[str, str], cell: Cell, done: Sequence[Result]) -> dict[str, str]:
    """A line of the table."""
    given, data = where
    setting, waits = chosen(where, done)
    mine = [] if waits else [line for line in done if line_is(line, given, data, setting.name)]
    ended = [line for line in mine if line["status"] == "finished"]
    singles = sorted((line for line in ended if line["row"] == "single"), key=lambda line: line["seed"])
    of_members = [line for line in ended if line["row"] == MIXED]
    members = [nats for line in of_members for nats in line["members_nats"].values()]
    if singles and singles[0]["seed"] == 0:
        members = members[1:]  # the first is what seed 0 is alone
    alone = [line["nats"] for line in singles] + members
    others = [line for line in done if (line["given"], line["data"], line["row"]) == (given, data, MIXED)]
    others = [line for line in others if line["status"] == "finished" and line not in of_members]
    mixed = min([*of_members, *others], key=lambda line: line["nats"], default=None)
    reached = {"single": mean(alone), MIXED: mixed["nats"] if mixed else None}
    timed = [line for line in (*singles[:1], mixed) if line is not None]
    minutes = [f"{(line['study_seconds'] + line['seconds']) / 60:.0f}" for line in timed]
    return {
        "given": GIVEN[given], "data": data, "before": cell.before,
        "single": with_error(alone),
        MIXED: "–" if mixed is None else f"{mixed['nats']:,.0f}",
        "held-out error": share(mixed and mixed["heldout"] and mixed["heldout"]["error_rate"]),
        "gate": gates(cell, reached), "goal": f"{cell.goal:,.0f}",
        "tried": str(len({line["setting"] for line in (*compared(where, done), *others)}) or "–"),
        "minutes": ", ".join(minutes) or "–",
        "setting": mixed["setting"] if mixed else "–" if waits else setting.name,
    }  # fmt: skip


def line_is(line: Result, given: str, data: str, setting: str) -> bool:
    """Whether a result belongs to this line and setting."""
    return (line["given"], line["data"], line["setting"]) == (given, data, setting)


def gates(cell: Cell, reached: Mapping[str, float | None]) -> str:
    """Each with what became of it."""
    words = []
    for name, most in cell.gates.items():
        nats = reached[name]
        is_met = nats is not None and (nats <= most or (name == MIXED and (reached["single"] or math.inf) <= most))
        words.append(f"{name} ≤ {most:,.0f}: {'open' if nats is None and not is_met else 'yes' if is_met else 'no'}")
    return "; ".join(words)


def minutes_of_learning(line: Result) -> float:
    """Those that replays were counted to fill, where they were; else those measured."""
    return float(line.get("given_seconds") or line["seconds"]) / 60


def rows_left_out(done: Sequence[Result]) -> list[dict[str, str]]:
    """What study and inputs beside are worth."""
    setting, waits = chosen(COMPARED, done)
    found = [] if waits else [line for line in done if line["data"] == COMPARED[1] and line["setting"] == setting.name]
    rows = [(COMPARED[0], row) for row in LEFT_OUT if row != LABELS_ALONE]
    rows.insert(LEFT_OUT.index(LABELS_ALONE), (SO_FAR, LABELS_ALONE))
    lines = [each for row in rows for each in found if (each["given"], each["row"]) == row and each["seed"] == 0]
    return [
        {
            "run": "whole" if line["row"] == "single" else line["row"],
            "given": GIVEN[line["given"]], "nats": f"{line['nats']:,.0f}" if line["nats"] is not None else "–",
            "held-out error": share(line["heldout"] and line["heldout"]["error_rate"]),
            "minutes of study": f"{line['study_seconds'] / 60:.1f}", "of learning": f"{minutes_of_learning(line):.1f}",
            "command": line["command"],
        }
        for line in lines
    ]  # fmt: skip


def rows_compared(where: tuple[str, str], done: Sequence[Result]) -> Iterable[dict[str, str]]:
    """The candidates of a line, the shortest first."""
    lines = compared(where, done)
    for line in lines:
        nats = line["status"] if line["nats"] is None else f"{line['nats']:,.0f}"
        labels, whole = f"{line.get('labels', 0):,}", whole_nats(line)
        yield {
            "given": GIVEN[where[0]], "data": where[1], "nats": nats, "labels": labels,
            "estimate of the whole": f"{whole:,.0f}" if math.isfinite(whole) else "–", "setting": line["setting"],
        }  # fmt: skip


def rows_missing(missing: Sequence[Job], done: Sequence[Result]) -> list[dict[str, str]]:
    """Jobs with expected minutes, and their sum; a study counts where it is first needed."""
    rows, studies, total = [], set[tuple[Any, ...]](), 0.0
    for job in missing:
        seconds = seconds_left(job, done, studies)
        studies |= job.studies
        total += seconds / 60
        waits = f"waits for {job.waits_for}" if job.waits_for else ""
        rows.append(
            {
                "given": GIVEN[job.given], "data": job.data, "row": job.row, "setting": job.setting.name,
                "seed": str(job.seed), "minutes": f"{seconds / 60:.1f}", "in all": f"{total:.0f}", "": waits,
            }
        )  # fmt: skip
    return rows


def mean(values: Iterable[float]) -> float | None:
    """None of none."""
    found = list(values)
    return statistics.mean(found) if found else None


def with_error(values: Sequence[float]) -> str:
    """Mean and standard error.

    Example:
        >>> with_error([9.0, 11.0]), with_error([1234.5]), with_error([])
        ('10 ± 1 (2)', '1,234 (1)', '–')
    """
    if not values:
        return "–"
    error = f" ± {statistics.stdev(values) / math.sqrt(len(values)):,.0f}" if len(values) > 1 else ""
    return f"{statistics.mean(values):,.0f}{error} ({len(values)})"


def share(value: float | None) -> str:
    """In percent."""
    return "–" if value is None else f"{value:.2%}"


def table(rows: Iterable[Mapping[str, str]]) -> None:
    """Print rows under the names of their columns, each as wide as it must be."""
    lines = list(rows)
    if not lines:
        print("nothing")
        return
    widths = {name: max(len(name), *(len(line[name]) for line in lines)) for name in lines[0]}
    for line in [dict(zip(widths, widths, strict=True)), *lines]:
        print("  ".join(f"{line[name]:<{width}}" for name, width in widths.items()).rstrip())
