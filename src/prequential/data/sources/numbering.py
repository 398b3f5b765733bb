"""Classes of tables: text, or any whole numbers, however large, as 0, 1, 2, …; none goes through a float. No torch."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from prequential.errors import PreqError


def numbered(values: NDArray[Any], what: str, known: NDArray[Any] | None = None) -> NDArray[np.int64]:
    """Labels as 0, 1, 2, … in the order of their values, or of labels known from elsewhere.

    Example:
        >>> numbered(np.array([7.0, 2.0, 7.0]), "labels")
        array([1, 0, 1])
    """
    if values.ndim != 1:
        raise PreqError(f"{what} must hold one label per row, got shape {values.shape}")
    whole = _exact(values, what)
    classes = np.unique(whole if known is None else _exact(known, what))
    if len(classes) < 2:
        raise PreqError(f"{what} holds a single class; there is nothing to predict")
    if classes.dtype != whole.dtype:  # together they would become floats
        classes, whole = classes.astype(object), whole.astype(object)
    strange = np.flatnonzero(~np.isin(whole, classes))
    if len(strange):
        raise PreqError(
            f"{what} holds {whole[strange[0]]} in row {strange[0] + 1}, a class that is not in the training labels"
        )
    return np.searchsorted(classes, whole).astype(np.int64)


def _exact(values: NDArray[Any], what: str) -> NDArray[Any]:
    """Labels as text, as int64, or as uint64 where they need it; exactly, or they are refused."""
    if values.dtype.kind == "U":
        return values
    if values.dtype.kind == "f":
        bad = np.flatnonzero(~np.isfinite(values) | (values != np.round(values)))
        if len(bad):
            raise PreqError(
                f"{what} must be whole numbers, row {bad[0] + 1} holds {values[bad[0]]:g}; number the classes"
            )
        exact = 2 ** (np.finfo(values.dtype).nmant + 1)
        large = np.flatnonzero(np.abs(values) >= exact)
        if len(large):
            raise PreqError(
                f"{what} holds {values[large[0]]:.0f} in row {large[0] + 1}, and whole numbers from {exact} on may be "
                f"one as {values.dtype}; save the labels as int64"
            )
    elif values.dtype.kind not in "biu":
        raise PreqError(f"{what} must be text or whole numbers, got {values.dtype}; number the classes 0, 1, 2, …")
    needs_all = values.dtype == np.uint64 and bool((values > np.iinfo(np.int64).max).any())
    return values if needs_all else values.astype(np.int64)
