"""Control tasks (Hewitt and Liang, 2019): labels that a readout can only learn by heart."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from prequential.data.optional import capabilities
from prequential.data.sequence import LoadedSequence
from prequential.errors import PreqError
from prequential.rng import derive, uniforms

FEWEST_REPEATED = 0.1
"""The share of positions whose value came before, below which values are said not to repeat."""
MOST_DRAWS = 1000
HINT = "probe an untrained network for comparison instead"


def control_labels(values: ArrayLike, labels: NDArray[np.int64], *, seed: int = 0) -> NDArray[np.int64]:
    """One class for each distinct value, drawn from the frequencies of the labels, and this class wherever it stands.

    Where all values happen to get the same class, they are drawn again: its short code would tell nothing.

    Raises:
        PreqError: where values do not repeat, since what occurs once cannot be learned by heart, or all are the same.

    Example:
        >>> made = control_labels(["a", "b", "a", "c", "b", "a"], np.array([0, 1, 2, 0, 1, 2]))
        >>> bool(made[0] == made[2] == made[5]), bool(made[1] == made[4])
        (True, True)
    """
    found = np.asarray(values)
    if found.shape != labels.shape:
        raise PreqError(f"a control needs one value for each of {len(labels):,} labels, got {found.shape}")
    distinct, numbers = np.unique(found.astype(str), return_inverse=True)
    repeated = 1 - len(distinct) / len(labels)
    if repeated < FEWEST_REPEATED:
        told = f"{len(distinct):,} distinct ones in {len(labels):,} rows"
        raise PreqError(f"the values of the control do not repeat ({told}), so there is nothing to learn; {HINT}")
    ordered = np.sort(labels)
    for draw in range(MOST_DRAWS):
        key = derive(seed, "control", *[draw] * bool(draw))
        classes: NDArray[np.int64] = ordered[(uniforms(key, np.arange(len(distinct))) * len(labels)).astype(np.int64)]
        if (classes != classes[0]).any():
            return classes[numbers]
    raise PreqError(
        f"all values of the control would have one class ({len(distinct):,} different), so that there is nothing to "
        "learn by heart; take a column with more values"
    )


def values_of_column(data: LoadedSequence, column: str, path: Path, max_unpacked: float | None = None) -> Sequence[Any]:
    """The values of a column of the table that data was read from, in the order of the sequence, as text.

    Args:
        max_unpacked: GiB that a packed file may unpack to, if a person said it.

    Raises:
        PreqError: where there is no such column, or no table.
    """
    from prequential.data.tables.reading import open_table

    found = open_table(path, max_unpacked)
    if column not in found.columns:
        raise PreqError(f"{path} has no column '{column}'; it has {', '.join(found.columns)}")
    values = np.array(found.read([column], as_text=[column]).column(column).to_pylist(), dtype=object)
    rows = capabilities(data).source_rows
    if rows is None or capabilities(data).num_rows != len(values):
        raise PreqError(f"which rows of {path} the data holds is not known; leave --control or --heldout out")
    chosen: list[Any] = values[rows.numpy()].tolist()
    return ["" if value is None else value for value in chosen]
