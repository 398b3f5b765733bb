"""What records tell of data besides its fingerprints: the names of classes, where the rows are from, and how many
inputs have no labels."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from prequential.data.optional import capabilities
from prequential.data.sequence import DataSequence
from prequential.plain import MOST_LETTERS
from prequential.rng import order_of_rows

MOST_NAMED = 1 << 21
"""Letters that the names of all classes may have together to be kept."""


def names_for_files(names: Sequence[str] | None) -> list[str] | None:
    """Names of classes as UTF-8 can hold them: names of folders may have bytes that it cannot. None where they are more
    than a small file holds.

    Example:
        >>> names_for_files(("cat", "d\\udce9g")), names_for_files(None)
        (['cat', 'd\\\\udce9g'], None)
    """
    kept = [name.encode(errors="backslashreplace").decode() for name in names or ()]
    is_little = max(map(len, kept), default=0) <= MOST_LETTERS and sum(map(len, kept)) <= MOST_NAMED
    return kept if names is not None and is_little else None


def told_of(data: DataSequence) -> dict[str, Any]:
    """What there is to tell: `class_names`, as `rows` the number of rows of the source, if the order seed gives the
    row of each position, and as `unlabelled` how many inputs have no labels, and how many more were left out."""
    more = capabilities(data)
    told: dict[str, Any] = {"class_names": names_for_files(more.class_names)}
    if more.source_rows is not None and more.num_rows is not None:
        order = order_of_rows(data.order_seed, more.num_rows)[: len(data)]
        told["rows"] = more.num_rows if np.array_equal(more.source_rows.numpy(), order) else None
    number, left_out = more.num_inputs - len(data), more.num_left_out
    told["unlabelled"] = {"number": number, "left_out": left_out} if number or left_out else None
    return {name: value for name, value in told.items() if value is not None}
