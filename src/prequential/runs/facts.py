"""What is known of a run before its first event, and whether two runs are the same one. No torch."""

import json
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any

from prequential.errors import PreqWarning
from prequential.names_of_before import hint
from prequential.runs.record import OF_SOME

IDENTITY = ("method", "recipe", "model", "data", "seeds", "length", "num_classes", "target")
"""What a resumed run must share with the one it goes on with."""
VERSIONS = ("prequential", "torch", "numpy", "device_name", "cpu_capability")
EAGER = {"engine": "eager", "precision": "fp32", "compiled": False, "deterministic": False}
"""How runs were executed before there was a choice."""


@dataclass(frozen=True, kw_only=True)
class Facts:
    """The settings of a run, as its record will say them; what each of them holds, `Record` tells."""

    method: dict[str, Any]
    recipe: dict[str, Any]
    model: dict[str, Any]
    data: dict[str, Any]
    seeds: dict[str, Any]
    length: int
    num_classes: int
    prequential: bool
    environment: dict[str, Any]
    conditioned_on: str
    source: Mapping[str, Any] | None
    target: dict[str, Any] | None = None
    name: str | None = None
    method_title: str | None = None

    def __post_init__(self) -> None:
        json.dumps(self.plain(), allow_nan=False)  # whatever cannot be written is noticed now

    def plain(self) -> dict[str, Any]:
        """By the names that records use; what only some runs have is left out where there is none."""
        told = {f.name: getattr(self, f.name) for f in fields(self)}
        return {name: value for name, value in told.items() if name not in OF_SOME or value is not None}

    def target_facts(self) -> dict[str, Any]:
        """The terms of the message."""
        return {name: value for name, value in self.plain().items() if name in ("num_classes", "target")}

    def identity(self) -> dict[str, Any]:
        """What a checkpoint says of the run it belongs to."""
        return {name: getattr(self, name) for name in (*IDENTITY, "environment")}

    def differences(self, earlier: Mapping[str, Any]) -> list[str]:
        """What keeps this run from going on with an earlier one."""
        found = [
            f"{place} {then} then, {now} now{hint(then, now)}"
            for name in IDENTITY
            for place, then, now in _differences(name, earlier.get(name), getattr(self, name))
        ]
        before = EAGER | earlier.get("environment", {})
        executed = [name for name in ("device", *EAGER) if before.get(name) != self.environment[name]]
        return found + [f"{name} {before.get(name)} then, {self.environment[name]} now" for name in executed]

    def note_versions(self, earlier: Mapping[str, Any], stacklevel: int) -> None:
        """Say so where what the bits depend on is no longer what it was."""
        then, now = earlier.get("environment", {}), self.environment
        changed = [f"{name} {then.get(name)} then, {now[name]} now" for name in VERSIONS if then.get(name) != now[name]]
        if changed:
            warnings.warn(f"the bits may differ from here on: {'; '.join(changed)}", PreqWarning, stacklevel + 1)


def _differences(place: str, then: object, now: object) -> Iterator[tuple[str, object, object]]:
    if isinstance(then, dict) and isinstance(now, dict):
        for key in dict.fromkeys([*then, *now]):
            yield from _differences(f"{place}.{key}", then.get(key), now.get(key))
    elif then != now:
        yield place, then, now
