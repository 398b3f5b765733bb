"""What runs, groups of them and settings are called: the same in every table, picture and page."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import count, takewhile
from pathlib import PurePath
from typing import Any

from prequential import catalogue
from prequential.measure.choosing import SWEEP_FILE
from prequential.report.seeds import Run
from prequential.report.text import listed
from prequential.runs.record import Record
from prequential.terminal import printable

SEPARATORS = " -_./()=,"


def settings_of_run(record: Record) -> dict[str, Any]:
    """Width, seeds, and the settings of method and recipe."""
    own = {key: value for part in (record.method, record.recipe) for key, value in part.items() if key != "name"}
    return {"width": record.model["width"], **record.seeds, **own}


def main_settings(record: Record) -> dict[str, str]:
    """The settings people look at first, by their short names."""
    settings = settings_of_run(record)
    return {
        short: f"{settings[name]:.3g}" if isinstance(settings[name], float) else str(settings[name])
        for name, short in catalogue.short_names().items()
        if isinstance(settings.get(name), int | float)
    }


def data_of(records: Iterable[Record]) -> str:
    """What the data of records is called; a few names where the same labels have several inputs."""
    return listed(list(dict.fromkeys(str(record.data["name"]) for record in records)))


def sweep_of(record: Record) -> PurePath | None:
    """The directory of the sweep that a run is a trial of, if it is."""
    path = record.path
    is_trial = path is not None and path.name.isdecimal() and (path.parent.parent / SWEEP_FILE).is_file()
    return path.parent.parent if is_trial and path is not None else None


def varying(records: Sequence[Record]) -> dict[str, str]:
    """The settings in which runs differ, model and method among them, and what each is called where there is little
    room."""
    each = list(map(_told, records))
    found = dict.fromkeys(name for told in each for name in told)
    short = catalogue.short_names()
    names = sorted(found, key=lambda name: (name == "seed", list(short).index(name) if name in short else len(short)))
    differ = [name for name in names if len({repr(told.get(name)) for told in each}) > 1]
    return {name: short.get(name, name.replace("_", " ")) for name in differ}


def setting_text(value: Any) -> str:
    """The value of a setting, short.

    Example:
        >>> setting_text(0.0031234), setting_text({"name": "pareto", "scale": 180}), setting_text(None)
        ('0.00312', 'pareto 180', 'none')
    """
    if isinstance(value, dict):
        return " ".join(map(setting_text, value.values()))
    return "none" if value is None else f"{value:.3g}" if isinstance(value, float) else str(value)


def value_of(record: Record, name: str) -> Any:
    """What a run has for one of the settings that `varying` names; None where it has no such setting."""
    return _told(record).get(name)


def _told(record: Record) -> dict[str, Any]:
    return {"model": record.model["name"], "method": record.title, **settings_of_run(record)}


def trial_names(records: Sequence[Record]) -> list[str | None]:
    """Trials of sweeps by the first settings that tell all of them apart, behind the name of their sweep where there
    are several; None for other runs."""
    sweeps = [sweep_of(record) for record in records]
    trials = [record for record, sweep in zip(records, sweeps, strict=True) if sweep is not None]
    told = list(varying(trials).items()) if len(trials) > 1 else []
    found = list(dict.fromkeys(sweep for sweep in sweeps if sweep is not None))
    own = dict(zip(found, shortest(list(map(str, found))), strict=True))

    def named(record: Record, sweep: PurePath | None, depth: int) -> str | None:
        known = [(short, value_of(record, name)) for name, short in told[:depth]]
        parts = [f"{short} {setting_text(value)}" for short, value in known if value is not None]
        if sweep is None or not parts:
            return None
        return f"{own[sweep]}: {', '.join(parts)}" if len(own) > 1 else ", ".join(parts)

    for depth in range(1, len(told) + 1):
        names = [named(record, sweep, depth) for record, sweep in zip(records, sweeps, strict=True)]
        if len(set(names) - {None}) == len(trials):
            return names
    return [named(record, sweep, len(told)) for record, sweep in zip(records, sweeps, strict=True)]


def short_names(records: Sequence[Record]) -> list[str]:
    """A name for each run: its own; of a trial of a sweep the settings that vary; else as much of the end of its
    directory as tells it from the others.

    A record that was never written is called by its model, and by its data where that differs. Names that would still
    be equal get a number.

    Example:
        >>> shortest(["runs/a/lenet", "runs/b/lenet", "runs/a/mlp"])
        ['a/lenet', 'b/lenet', 'mlp']
    """
    has_other_data = len({record.data["name"] for record in records}) > 1
    models = [f"{r.model['name']} on {r.data['name']}" if has_other_data else r.model["name"] for r in records]
    paths = [model if r.path is None else str(r.path) for model, r in zip(models, records, strict=True)]
    trials = trial_names(records)
    names = shortest(paths, [record.name or trial for record, trial in zip(records, trials, strict=True)])
    times, numbers = Counter(names), defaultdict[str, Iterator[int]](lambda: count(1))
    return [f"{name} ({next(numbers[name])})" if times[name] > 1 else name for name in names]


def shortest(paths: Sequence[str], given: Sequence[str | None] | None = None) -> list[str]:
    """Each path without the folders that are not needed to tell it from the others; names that were given stay.

    Example:
        >>> shortest(["runs/a/lenet", "runs/b/lenet"], [None, "the best"])
        ['lenet', 'the best']
    """
    named = zip(paths, given or [None] * len(paths), strict=True)
    parts = [(name,) if name else PurePath(path).parts or (path,) for path, name in named]
    times = Counter(part[-depth:] for part in parts for depth in range(1, len(part) + 1))

    def shortened(part: tuple[str, ...]) -> str:
        depth = next((depth for depth in range(1, len(part)) if times[part[-depth:]] == 1), len(part))
        return printable("/".join(part[-depth:]))

    return list(map(shortened, parts))


def group_names(groups: Sequence[Sequence[Run]]) -> list[str]:
    """A name for each group of runs: what their names share, else that of their model."""
    wanted: list[list[str]] = []
    for group in groups:
        own, record = [run.name for run in group], group[0].record
        last = own[0] if len(own) == 1 else f"{own[0]} +{len(own) - 1}"
        model = record.model["name"]
        shared = [shared_part(own), model, f"{model} {record.method['name']}"] if len(own) > 1 else []
        wanted.append([*(name for name in shared if name), last])
    while True:
        times = Counter(names[0] for names in wanted)
        doubled = [names for names in wanted if times[names[0]] > 1 and len(names) > 1]
        if not doubled:
            return [names[0] for names in wanted]
        for names in doubled:
            del names[0]


def shared_part(names: Sequence[str]) -> str:
    """What names begin with, else what they end with, in whole words and numbers; nothing if no letter is shared.

    Example:
        >>> shared_part(["mlp1-10", "mlp1-11"]), shared_part(["seed0/lenet", "seed1/lenet"]), shared_part(["07", "08"])
        ('mlp1', 'lenet', '')
    """
    parts = [re.findall(r"\d+|[^\W\d]+|\W|_", name) for name in names]
    for backwards in (False, True):
        columns = zip(*(part[::-1] if backwards else part for part in parts), strict=False)
        shared = [column[0] for column in takewhile(lambda column: len(set(column)) == 1, columns)]
        text = "".join(shared[::-1] if backwards else shared).strip(SEPARATORS)
        text = re.sub(rf"(^|[{re.escape(SEPARATORS)}])seed$", "", text).strip(SEPARATORS)
        if re.search(r"[^\W\d_]", text):
            return text
    return ""
