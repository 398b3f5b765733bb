"""What the record of a mixed run tells of its experts: what each alone would have cost, and who was trusted when."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prequential.errors import PreqError
from prequential.measure.comparable import name_of
from prequential.mixers import MIXERS
from prequential.mixers.kept import expert_names
from prequential.report.names import setting_text
from prequential.report.table import Column
from prequential.report.text import NOTHING, counted, number, percentage
from prequential.runs.record import Record, finite_or_none
from prequential.settings import settings_of

MOST_DRAWN = 7
"""Experts that a picture tells apart; of more the least trusted are drawn together."""
MOST_NAMED = 12
"""Experts that a line names."""
MOST_ROWS = 24
"""Experts that a table in a terminal lists."""


@dataclass(frozen=True)
class ExpertRow:
    """An expert of a mixed run, or the mixture of all."""

    name: str
    nats: float | None
    """What it alone would have cost; None where that is not a number."""
    difference: float | None = None
    """Nats that it needs more than the mixture."""
    weight: float | None = None
    """How far it was trusted at the end."""
    note: str = ""
    nothing: str = ""


COLUMNS: list[Column[ExpertRow]] = [
    Column("expert", "name", lambda row: row.name, str, "whose predictions are mixed", is_left=True),
    Column("nats alone", "nats", lambda row: row.nats, lambda nats: number(nats, ",.1f"), "what it alone would cost"),
    Column("more than\nthe mixture", "difference", lambda row: row.difference, lambda nats: number(nats, ",.1f"),
           "nats that it alone needs more than the mixture"),
    Column("trust at\nthe end", "weight", lambda row: row.weight, lambda share: percentage(share, 1),
           "its weight in the mixture after the last label"),
    Column("", "note", lambda row: row.note or None, str, is_left=True),
]  # fmt: skip


@dataclass(frozen=True)
class Mixed:
    """The experts of one run beside their mixture."""

    rows: list[ExpertRow]
    """The mixture first, then each expert in its order."""
    mixer: str
    """In words."""
    in_charge: str | None
    """Who was trusted most after the last label that weights are kept of; None where nobody was left."""

    @classmethod
    def of(cls, record: Record) -> "Mixed | None":
        """What a record with its arrays tells; None where there is one model."""
        if not record.expert_names or record.expert_nats is None:
            return None
        mixture, weights = float(record.nats.sum()), record.expert_weights
        last = weights[-1].astype(np.float64) if weights is not None and len(weights) else None
        rows = [ExpertRow("the mixture", finite_or_none(mixture))]
        for number_of, (name, nats) in enumerate(expert_nats(record).items()):
            lost = (record.left_out or {}).get(name)
            more = None if nats is None or not math.isfinite(mixture) else nats - mixture
            weight = None if last is None else float(last[number_of])
            rows.append(ExpertRow(name, nats, more, weight, "" if lost is None else f"left out from label {lost} on"))
        charge = record.expert_names[int(last.argmax())] if last is not None and last.any() else None
        return cls(rows, mixer_words(record.model), charge)

    def sentence(self) -> str:
        """Who was in charge at the end."""
        if self.in_charge is None:
            return f"nobody is left; mixed by {self.mixer}" if all(row.note for row in self.rows[1:]) else ""
        weight = next(row.weight for row in self.rows if row.name == self.in_charge)
        return f"trusted most at the end: {self.in_charge} ({percentage(weight or 0.0)}); mixed by {self.mixer}"

    @property
    def columns(self) -> list[Column[ExpertRow]]:
        """Those that say something."""
        return COLUMNS if any(row.note for row in self.rows) else COLUMNS[:-1]

    def shown(self) -> tuple[list[ExpertRow], str]:
        """The rows of a short table, the cheapest experts where there are many, and how many are not among them."""
        first, *experts = self.rows
        if len(experts) <= MOST_ROWS:
            return self.rows, ""
        kept = sorted(experts, key=lambda row: math.inf if row.nats is None else row.nats)[:MOST_ROWS]
        return [first, *(row for row in experts if row in kept)], f"and {len(experts) - MOST_ROWS} more experts"


def expert_nats(record: Record) -> dict[str, float | None]:
    """What each expert alone would have cost, by name; None where that is not a finite number."""
    totals = [] if record.expert_nats is None else record.expert_nats.sum(axis=0)
    return {name: finite_or_none(float(total)) for name, total in zip(record.expert_names, totals, strict=True)}


def mixer_words(model: Mapping[str, Any]) -> str:
    """The mixer of a run, with those of its settings that are not as they are by default.

    Example:
        >>> mixer_words({"mixer": {"name": "switching", "rate": "grid", "prior": None}})
        'switching (rate grid)'
        >>> mixer_words({"mixer": {"name": "logistic", "by_previous_label": True}})
        'logistic (by previous label)'
    """
    told = dict(model.get("mixer") or {})
    name = str(told.pop("name", NOTHING))
    usual = settings_of(MIXERS[name]()) if name in MIXERS else {}
    changed = {key.replace("_", " "): value for key, value in told.items() if usual.get(key) != value}
    own = [key if value is True else f"{key} {setting_text(value)}" for key, value in changed.items()]
    return f"{name} ({', '.join(own)})" if own else name


def beginning(model: Mapping[str, Any]) -> str:
    """Who the experts of a run are and who mixes them, in one line.

    Example:
        >>> beginning({"expert_names": ["lenet", "mlp2"], "mixer": {"name": "bayes"}})
        '2 experts: lenet · mlp2; mixed by bayes'
    """
    names = expert_names(model)
    shown = " · ".join(names[:MOST_NAMED]) + (f" and {len(names) - MOST_NAMED} more" if names[MOST_NAMED:] else "")
    return f"{counted(len(names), 'expert')}: {shown}; mixed by {mixer_words(model)}"


def require_mixed(record: Record) -> None:
    """Refuse a run that has no experts whose weights could be drawn."""
    if not record.expert_names:
        raise PreqError(
            f"{name_of(record)} has one model and no weights to draw; mix several (--members, --mixer) or draw another"
        )
    if record.expert_weights is None or not len(record.expert_weights):
        raise PreqError(f"{name_of(record)} has kept no weights yet; let it code some labels")


@dataclass(frozen=True)
class Weights:
    """Who was trusted when: a row for each point, a column for each name."""

    after: NDArray[np.int64]
    """Labels that were known."""
    shares: NDArray[np.float64]
    names: Sequence[str]
    others: int
    """Experts that the last name stands for; 0 where each has its own."""

    @classmethod
    def of(cls, record: Record, most: int = MOST_DRAWN) -> "Weights":
        """The weights that a record keeps; where there are many experts, the least trusted are one."""
        require_mixed(record)
        assert record.expert_weights is not None
        assert record.expert_weights_after is not None
        shares = np.clip(np.nan_to_num(record.expert_weights.astype(np.float64)), 0, None)
        shares /= np.maximum(shares.sum(axis=1, keepdims=True), 1e-300)
        names, others = list(record.expert_names), max(len(record.expert_names) - most, 0)
        if others:
            others += 1
            kept = np.sort(np.argsort(-shares.mean(axis=0), kind="stable")[: most - 1])
            rest = np.delete(shares, kept, axis=1).sum(axis=1, keepdims=True)
            shares = np.concatenate([shares[:, kept], rest], axis=1)
            names = [*(names[number] for number in kept), f"{others} others"]
        return cls(record.expert_weights_after, shares, names, others)
