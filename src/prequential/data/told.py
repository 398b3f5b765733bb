"""What records keep of data only to tell people: the names of classes, and where the rows are from."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from prequential.data.optional import capabilities
from prequential.data.sequence import DataSequence
from prequential.rng import order_of_rows


def names_for_files(names: Sequence[str] | None) -> list[str] | None:
    """Names of classes as UTF-8 can hold them: names of folders may have bytes that it cannot.

    Example:
        >>> names_for_files(("cat", "d\\udce9g")), names_for_files(None)
        (['cat', 'd\\\\udce9g'], None)
    """
    return None if names is None else [name.encode(errors="backslashreplace").decode() for name in names]


def told_of(data: DataSequence) -> dict[str, Any]:
    """What there is to tell: `class_names`, and as `rows` the number of rows of the source, if the order seed gives
    the row of each position."""
    more = capabilities(data)
    told: dict[str, Any] = {"class_names": names_for_files(more.class_names)}
    if more.source_rows is not None and more.num_rows is not None:
        order = order_of_rows(data.order_seed, more.num_rows)[: len(data)]
        told["rows"] = more.num_rows if np.array_equal(more.source_rows.numpy(), order) else None
    return {name: value for name, value in told.items() if value is not None}
