"""What a record tells of what was studied before the first label. No torch."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from prequential.conditioning import INPUTS_SO_FAR

HERE, FILE = "this run", "file"
"""Where a study is from."""
NOT_RECOMPUTED = "study not recomputed"
"""What is said wherever a study was trusted."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class OfStudy:
    """The part of a record that is about studying."""

    study: dict[str, Any] | None = None
    """What was studied: the `digest` of its weights, its `steps` and `seconds`, and whether it is `from` "this run" or
    a "file"; of several studies also of `each`."""

    def summary_of_study(self) -> dict[str, Any]:
        """What `--json` says of it: what the code is given beyond inputs up to the label, and what was studied."""
        given = getattr(self, "conditioned_on", INPUTS_SO_FAR)
        told = {} if given == INPUTS_SO_FAR else {"conditioned_on": given}
        if self.study is None:
            return told
        return told | {"study": self.study | {"flops": (getattr(self, "flops", None) or {}).get("study")}}


def in_words(study: Mapping[str, Any]) -> str:
    """What was studied, for a person.

    Example:
        >>> in_words({"digest": "5f", "steps": 2000, "seconds": 61.2, "from": "file"})
        '2,000 steps, 61.2 s, from a file'
    """
    number = f"{len(study['each'])} studies, " if study.get("each") else ""
    where = ", from a file" if study["from"] == FILE else ""
    return f"{number}{study['steps']:,} steps, {study['seconds']:,.1f} s{where}"
