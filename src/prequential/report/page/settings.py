"""Settings side by side, differences marked; data and environment as tables of facts."""

import json
from collections.abc import Sequence
from typing import Any

from prequential.report.entries import Setting
from prequential.report.page.comparison import sort_head
from prequential.report.page.markup import Markup, join, tag
from prequential.runs.record import Record

MOST_COLUMNS = 8
"""Settings that fit beside each other; more become rows."""
MISSING = "–"


def settings_of(record: Record) -> dict[str, str]:
    """Everything that was decided about a run but its seed, as text by name.

    The fingerprint of a model is that of its initial weights, which the seed draws.
    """
    parts: dict[str, Any] = {
        "model": {name: value for name, value in record.model.items() if name != "fingerprint"},
        "method": record.method | ({"title": record.title} if record.method_title else {}),
        "recipe": record.recipe,
        "seeds": {name: value for name, value in record.seeds.items() if name != "seed"},
        "predictions": {"conditioned_on": record.conditioned_on},
        "computed": {name: record.environment.get(name) for name in ("engine", "precision")},
    }
    return {f"{part} · {key}": value for part, facts in parts.items() for key, value in flat(facts).items()}


def flat(facts: dict[str, Any], above: str = "") -> dict[str, str]:
    """Nested facts as one list of texts.

    Example:
        >>> flat({"age_law": {"name": "pareto", "scale": 180}, "augment": ["flip"], "calibrate": True})
        {'age law · name': 'pareto', 'age law · scale': '180', 'augment': 'flip', 'calibrate': 'yes'}
    """
    found: dict[str, str] = {}
    for key, value in facts.items():
        name = above + str(key).replace("_", " ")
        found |= flat(value, f"{name} · ") if isinstance(value, dict) and value else {name: as_text(value)}
    return found


def as_text(value: Any) -> str:
    """A value of a setting as people write it.

    Example:
        >>> as_text(None), as_text(False), as_text([]), as_text(60000), as_text(0.003), as_text([1, 28, 28])
        ('–', 'no', 'none', '60,000', '0.003', '1 × 28 × 28')
    """
    if value is None or value == {}:
        return MISSING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, list) and all(isinstance(item, str | int) for item in value):
        return (" × " if all(isinstance(item, int) for item in value) else ", ").join(map(str, value)) or "none"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def settings_table(settings: Sequence[Setting]) -> Markup:
    """The settings of all entries: beside each other where they are few, else a row each with what differs."""
    each = [settings_of(setting.records[0]) for setting in settings]
    names = sorted({name: None for facts in each for name in facts}, key=_order(each).__getitem__)
    differing = [name for name in names if len({facts.get(name) for facts in each}) > 1]
    heads = [setting.name for setting in settings]
    if len(settings) <= MOST_COLUMNS:
        box = tag("input", type="checkbox", id="only-differences")
        choice = tag("label", box, " only what differs", id="only-differences-label") if differing else None
        return join([choice, beside("setting", names, differing, heads, each)])
    same = {name: each[0][name] for name in names if name not in differing}
    rows = [
        tag("tr", tag("th", head, scope="row"), *(tag("td", facts.get(name, MISSING)) for name in differing))
        for head, facts in zip(heads, each, strict=True)
    ]
    head = tag("thead", tag("tr", sort_head("run"), *map(sort_head, differing)))
    caption = tag("caption", f"What differs, best run first ({len(differing)} of {len(names)} settings)")
    table = tag("table", caption, head, tag("tbody", *rows), class_="sortable wide", id="setting-table")
    shared = tag("details", tag("summary", f"The same in all runs: {len(same)} settings"), facts_table(same))
    return join([tag("div", table, class_="scroll tall", tabindex="0", role="region", aria_label="Settings"), shared])


def beside(
    what: str, names: Sequence[str], differing: Sequence[str], heads: Sequence[str], each: Sequence[dict[str, str]]
) -> Markup:
    """Facts as rows, what has them as columns; rows that differ are marked, also for those who see no colour."""
    rows = []
    for name in names:
        differs = name in differing
        mark = tag("span", "≠ ", title="differs", class_="mark") if differs else None
        cells = [tag("td", facts.get(name, MISSING)) for facts in each]
        rows.append(tag("tr", tag("th", mark, name, scope="row"), *cells, class_="differs" if differs else "same"))
    head = tag("thead", tag("tr", tag("th", what, scope="col"), *(tag("th", head, scope="col") for head in heads)))
    told = f"{len(differing)} of {len(names)} differ, marked ≠" if len(heads) > 1 else None
    table = tag(
        "table", tag("caption", told) if told else None, head, tag("tbody", *rows), class_="facts", id=f"{what}-table"
    )
    return tag("div", table, class_="scroll", tabindex="0", role="region", aria_label=f"{what}s")


def facts_table(facts: dict[str, str]) -> Markup:
    """Names and values."""
    rows = [tag("tr", tag("th", name, scope="row"), tag("td", value)) for name, value in facts.items()]
    return tag("table", tag("tbody", *rows), class_="facts")


def _order(each: Sequence[dict[str, str]]) -> dict[str, tuple[int, int]]:
    """Names by part (model, method, …), then as they come."""
    parts = ["model", "method", "recipe", "seeds", "predictions", "computed"]
    found: dict[str, tuple[int, int]] = {}
    for facts in each:
        for name in facts:
            found.setdefault(name, (parts.index(name.split(" · ")[0]), len(found)))
    return found
