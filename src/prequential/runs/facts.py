"""What is known of a run before its first event, and whether two runs are the same one. No torch."""

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from prequential.conditioning import INPUTS_SO_FAR
from prequential.errors import PreqWarning
from prequential.names_of_before import differences as differing

IDENTITY = ("method", "recipe", "model", "data", "seeds", "length", "num_classes", "target")
"""What a resumed run must share with the one it goes on with."""
OF_SOME = ("target", "name", "method_title")
"""What records say only where there is something to say."""
VERSIONS = ("prequential", "torch", "numpy", "device_name", "cpu_capability")
EAGER = {"engine": "eager", "precision": "fp32", "compiled": False, "deterministic": False}
"""How runs were executed before there was a choice."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Facts:
    """What is known of a run before its first event; its record says it too."""

    method: dict[str, Any]
    recipe: dict[str, Any]
    model: dict[str, Any]
    data: dict[str, Any]
    seeds: dict[str, Any]
    """`seed`, `order_seed` (None: the given order) and `plan_seed`."""
    length: int
    """Labels in the sequence."""
    num_classes: int
    prequential: bool
    environment: dict[str, Any]
    conditioned_on: str = INPUTS_SO_FAR
    """What a prediction may look at besides earlier labels: the widest of plan, data and model."""
    source: dict[str, Any] | None = None
    """What `load_data` was asked for, where the data came from there."""
    target: dict[str, Any] | None = None
    """What is coded, where it is no class: the `kind`, and what both ends must know of it."""
    name: str | None = None
    """What the run is called, if it was given a name."""
    method_title: str | None = None
    """What the method is called by people, where it is not one of the package."""

    def facts(self) -> dict[str, Any]:
        """As plain values, by the names that files use; what only some runs have is left out where there is none."""
        told = {f.name: getattr(self, f.name) for f in fields(self)}
        return {name: value for name, value in told.items() if name not in OF_SOME or value is not None}


def differences(facts: Facts, earlier: Mapping[str, Any]) -> list[str]:
    """What keeps a run from going on with an earlier one."""
    before, data = EAGER | earlier.get("environment", {}), earlier.get("data", {})
    # runs of before have no names of classes; their labels are compared by fingerprint all the same
    now = vars(facts) | {"data": {n: v for n, v in facts.data.items() if n != "class_names" or n in data}}
    return _changed(IDENTITY, earlier, now) + _changed(("device", *EAGER), before, facts.environment)


def _changed(names: Iterable[str], then: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    return [each for name in names for each in differing(name, then.get(name), now[name])]


def note_versions(facts: Facts, earlier: Mapping[str, Any], stacklevel: int) -> None:
    """Say so where what the bits depend on is no longer what it was in an earlier run."""
    if changed := _changed(VERSIONS, earlier.get("environment", {}), facts.environment):
        warnings.warn(f"the bits may differ from here on: {'; '.join(changed)}", PreqWarning, stacklevel + 1)
