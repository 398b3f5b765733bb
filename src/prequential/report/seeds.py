"""Runs that differ in nothing but their seed, and what to call them together."""

import json
import re
from collections import Counter
from collections.abc import Sequence
from itertools import takewhile

from prequential.report.names import short_names
from prequential.runs.record import Record

SEPARATORS = " -_./()="


def setting_of(record: Record) -> str:
    """Everything that was decided about a run but its seed, as text: equal for repeated seeds of one setting.

    Equal are data and its order, plan, method, recipe, model and precision. The fingerprint of a model is that of its
    initial weights, which the seed draws; where it ran and how long it took is no setting.
    """
    facts = {
        "method": record.method,
        "recipe": record.recipe,
        "model": {name: value for name, value in record.model.items() if name != "fingerprint"},
        "data": record.data,
        "seeds": {name: value for name, value in record.seeds.items() if name != "seed"},
        "length": record.length,
        "conditioned_on": record.conditioned_on,
        "computed": [record.environment.get(name) for name in ("engine", "precision")],
    }
    return json.dumps(facts, sort_keys=True, default=str)


def grouped(records: Sequence[Record]) -> list[list[int]]:
    """The records of each setting, as their numbers in the list, ordered by seed.

    Two runs of one setting with one seed are not repeated seeds. Something that records do not tell (the code of the
    model, the machine) made them differ, so the runs of such a setting stay apart.
    """
    found: dict[str, list[int]] = {}
    for number, record in enumerate(records):
        found.setdefault(setting_of(record), []).append(number)
    groups = []
    for numbers in found.values():
        numbers.sort(key=lambda number: (records[number].seeds["seed"], str(records[number].path)))
        is_repeated = len({records[number].seeds["seed"] for number in numbers}) == len(numbers)
        groups += [numbers] if is_repeated else [[number] for number in numbers]
    return groups


def group_names(records: Sequence[Record], groups: Sequence[Sequence[int]]) -> tuple[list[str], list[str]]:
    """The short names of all runs, and a name for each group: what its runs' names share, else its model's name."""
    runs = short_names(records)
    wanted: list[list[str]] = []
    for group in groups:
        own, record = [runs[number] for number in group], records[group[0]]
        last = own[0] if len(own) == 1 else f"{own[0]} +{len(own) - 1}"
        model = record.model["name"]
        shared = [shared_part(own), model, f"{model} {record.method['name']}"] if len(own) > 1 else []
        wanted.append([*(name for name in shared if name), last])
    while True:
        times = Counter(names[0] for names in wanted)
        doubled = [names for names in wanted if times[names[0]] > 1 and len(names) > 1]
        if not doubled:
            return runs, [names[0] for names in wanted]
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
