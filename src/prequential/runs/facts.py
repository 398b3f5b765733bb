"""What is known of a run before its first event, and whether two runs are the same one. No torch."""

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from numpy.typing import NDArray

from prequential.conditioning import INPUTS_SO_FAR
from prequential.errors import PreqError, PreqWarning
from prequential.names_of_before import differences as differing
from prequential.scaling import INTENSITY, Scale

IDENTITY = ("method", "recipe", "model", "data", "seeds", "length", "num_classes", "target", "scale")
"""What a resumed run must share with the one it goes on with."""
TOLD = ("class_names", "rows")
"""What `data` may say besides: no part of what a run is, and missing in records of before."""
OF_SOME = ("target", "scale", "name", "method_title", "left_out", "study")
"""What records say only where there is something to say."""
VERSIONS = (
    *("prequential", "torch", "numpy", "scikit-learn", "river"),
    *("device_name", "cpu_capability", "processor"),
)
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
    scale: Scale | None = None
    """What uint8 inputs are out of, which was brought to 1 and 0 to −1, or "none" where they were left as they are."""
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
    before = EAGER | earlier.get("environment", {})
    # records of before say nothing of the scale, which was always that of images
    then, now = ({**told, "scale": told.get("scale") or INTENSITY} for told in (earlier, vars(facts)))
    both = set(then.get("data") or ()) & set(now["data"]) & {"class_names"}  # of before there are no names
    for told in (then, now):
        data = told.get("data") or {}
        told["data"] = without_told(data) | {name: data[name] for name in both}
    return _changed(IDENTITY, then, now) + _changed(("device", *EAGER), before, facts.environment)


def without_told(data: Mapping[str, Any]) -> dict[str, Any]:
    """What tells data from other data, without what is only told of it.

    Example:
        >>> without_told({"labels": "5f", "class_names": ["cat", "dog"]})
        {'labels': '5f'}
    """
    return {name: value for name, value in data.items() if name not in TOLD}


def _changed(names: Iterable[str], then: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    return [each for name in names for each in differing(name, then.get(name), now[name])]


def note_versions(facts: Facts, earlier: Mapping[str, Any], stacklevel: int) -> bool:
    """Whether what the bits depend on is what it was in an earlier run, as far as that tells; else say so."""
    then = earlier.get("environment", {})
    if changed := _changed((name for name in VERSIONS if name in then), then, facts.environment):
        warnings.warn(f"the bits may differ from here on: {'; '.join(changed)}", PreqWarning, stacklevel + 1)
    return not changed


def require_classes(facts: Mapping[str, Any], labels: NDArray[Any], predicted: NDArray[Any], file: object) -> None:
    """Refuse labels and predictions that are none of the classes which the facts in a file tell of.

    Example:
        >>> import numpy as np
        >>> require_classes({"num_classes": 3}, np.array([0, 2]), np.array([3, 2]), "record.json")
        Traceback (most recent call last):
        ...
        prequential.errors.PreqError: class 3 does not fit record.json, which has 3 classes
    """
    top = max((int(values.max()) for values in (labels, predicted) if len(values)), default=-1)
    if facts.get("target") is None and top >= facts["num_classes"]:
        raise PreqError(f"class {top} does not fit {file}, which has {facts['num_classes']} classes")
