"""A comparison as plain values: rows for CSV and data frames, one object for JSON."""

import csv
import io
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prequential.files import writing
from prequential.report.entries import Entry, Setting
from prequential.runs.record import finite_or_none

if TYPE_CHECKING:
    from prequential.report.compare import Comparison


def values_of(comparison: "Comparison") -> list[dict[str, Any]]:
    """A row for each entry, best first, then for each setting without a codelength."""
    return [_row(setting) for setting in (*comparison.entries, *comparison.uncoded)]


def _row(setting: Setting) -> dict[str, Any]:
    first = setting.records[0]
    coded = setting if isinstance(setting, Entry) else None
    savings = {} if coded is None else coded.savings
    return {
        "name": setting.name,
        "model": first.model["name"],
        "method": first.method["name"],
        "num_seeds": len(setting.runs),
        "runs": ", ".join(setting.runs),
        "codelength_nats": coded and coded.nats,
        "standard_error_nats": coded and coded.standard_error,
        "bits_per_label": coded and coded.bits_per_label,
        "difference_nats": coded and coded.difference,
        "log_odds": coded and coded.log_odds,
        "log_posterior": coded and coded.log_posterior,
        "posterior": coded and math.exp(coded.log_posterior),
        "p_value": coded and coded.p_value,
        "leads_from": coded and coded.leads_from,
        "early_share": coded and coded.early_share,
        **{f"saved_{code}": savings.get(code) for code in ("uniform", "frequencies", "previous")},
        "errors": coded and coded.errors,
        "heldout_loss": setting.heldout_loss,
        "heldout_error": setting.heldout_error,
        "flops": setting.flops,
        "seconds": setting.seconds,
    }


def object_of(comparison: "Comparison", left_out: dict[str, list[str]] | None = None) -> dict[str, Any]:
    """The object that `preq compare --json` prints. What is infinite is null there, and `diverged` says so."""
    return {
        "data": comparison.data,
        "length": comparison.length,
        "sequence_length": comparison.sequence_length,
        "num_classes": comparison.num_classes,
        "simple_codes_nats": comparison.simple,
        "entries": [_described(entry) for entry in comparison.entries],
        "without_codelength": [_described(setting) for setting in comparison.uncoded],
        "sentences": comparison.sentences(),
        "left_out": left_out or {},
    }


def _described(setting: Setting) -> dict[str, Any]:
    row = {name: finite_or_none(value) if isinstance(value, float) else value for name, value in _row(setting).items()}
    runs = [
        {
            "name": name,
            "seed": record.seeds["seed"],
            "codelength_nats": finite_or_none(record.codelength),
            "record": None if record.path is None else str(record.path),
        }
        for name, record in zip(setting.runs, setting.records, strict=True)
    ]
    return row | {"runs": runs, "diverged": isinstance(setting, Entry) and math.isinf(setting.nats)}


def write_csv(comparison: "Comparison", path: str | Path) -> Path:
    """Write the rows as CSV; what is not known is empty."""
    path, rows = Path(path), values_of(comparison)
    text = io.StringIO()
    table = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    table.writeheader()
    table.writerows(rows)
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.getvalue(), encoding="utf-8", errors="backslashreplace")
    return path
