"""Arrays that are tables: rows of numbers."""

from collections.abc import Callable
from dataclasses import fields
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from prequential.conditioning import ALL_INPUTS
from prequential.data.sequence import ArraySequence
from prequential.data.tables.build import TableSequence
from prequential.data.tables.standardise import WAYS, standardised_matrix
from prequential.errors import PreqError, require_known


def standardised_inputs(
    inputs: Any, heldout: Any, how: str, name: str
) -> tuple[Any, Any, Callable[[ArraySequence], TableSequence]]:
    """Inputs and held-out data with inputs standardised, and what makes a sequence of them one of a table."""
    require_known("way to standardise", how, WAYS)
    rows = _array(inputs)
    is_pair = isinstance(heldout, tuple | list) and len(heldout) == 2
    later = _array(heldout[0]) if is_pair else rows[:0]
    for values in (rows, later):
        if values.dtype.kind not in "buif" or values.ndim != 2:
            raise PreqError(
                f"only rows of numbers can be standardised, got {values.dtype} of shape {values.shape}; "
                "leave standardise out"
            )
    if later.shape[1] != rows.shape[1]:
        raise PreqError(f"held-out rows have {later.shape[1]} columns, the others {rows.shape[1]}; make them alike")
    scaled, held = standardised_matrix(rows, later, how, np.arange(len(rows)), name)

    def again(order: NDArray[np.int64]) -> torch.Tensor:
        return torch.from_numpy(standardised_matrix(rows, later, how, order, name)[0])

    def table(made: ArraySequence) -> TableSequence:
        told = {each.name: getattr(made, each.name) for each in fields(made)}
        told["conditioned_on"] = ALL_INPUTS if how == "table" else made.conditioned_on
        has_holes = how == "none" and bool(np.isnan(rows.astype(np.float64)).any())
        return TableSequence(**told, again=again if how == "causal" or has_holes else None)

    return scaled, (held, heldout[1]) if is_pair else heldout, table


def _array(values: Any) -> NDArray[Any]:
    if isinstance(values, torch.Tensor):
        return (values.float() if values.dtype == torch.bfloat16 else values).numpy(force=True)
    try:
        return np.asarray(values)
    except ValueError as error:
        raise PreqError(f"inputs must form one array: {error}; make the rows alike") from None
