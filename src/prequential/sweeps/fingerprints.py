"""Whether trials are about the same data: a sweep knows it by what it was asked for, which may change. No torch."""

from collections.abc import Iterable, Mapping
from typing import Any

FINGERPRINTS = ("labels", "inputs")


def fingerprints_of(data: Mapping[str, Any]) -> dict[str, Any]:
    """What tells data from other data of that name."""
    return {name: data.get(name) for name in FINGERPRINTS}


def change_of_data(now: Mapping[str, Any], before: Mapping[str, Any] | None, number: int) -> str | None:
    """Why data is not that of the trial of this number; None if it is, or if the trial does not say what it was about.

    Example:
        >>> change_of_data({"labels": "5f", "inputs": "a0"}, {"labels": "77", "inputs": "a0"}, 3)
        'the data is not what trial 3 was about: its labels are others (77 then, 5f now); give the data that the sweep \
began with, or begin another in another directory'
    """
    for name in FINGERPRINTS if before is not None else ():
        if before is not None and now[name] != before.get(name):
            told = f"its {name} are others ({before.get(name)} then, {now[name]} now)"
            todo = "give the data that the sweep began with, or begin another in another directory"
            return f"the data is not what trial {number} was about: {told}; {todo}"
    return None


def in_words(told: Iterable[Mapping[str, Any] | None]) -> str:
    """What must be said of trials that were not about the same data, as where those who share a study have others.

    Example:
        >>> in_words([{"labels": "5f", "inputs": "a0"}, None, {"labels": "77", "inputs": "a0"}])
        'the trials are not about the same data (other labels): their codelengths cannot be compared'
        >>> in_words([{"labels": "5f", "inputs": "a0"}, None])
        ''
    """
    known = [data for data in told if data is not None]
    differ = [name for name in FINGERPRINTS if len({data.get(name) for data in known}) > 1]
    if not differ:
        return ""
    means = "their codelengths cannot be compared" if "labels" in differ else "each code is given its own inputs"
    return f"the trials are not about the same data (other {' and '.join(differ)}): {means}"
