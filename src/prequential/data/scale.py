"""What uint8 inputs are out of: asked for, or decided by one rule, and refused where that cannot tell."""

import numpy as np
import torch

from prequential.data.optional import capabilities
from prequential.data.sequence import DataSequence
from prequential.errors import PreqError
from prequential.scaling import INTENSITY, UNSCALED, Scale, parsed_scale

LOOKED_AT = 256
"""Rows that the rule looks at, the first of the sequence: so the scale of a prefix is that of the whole."""


def scale_of(data: DataSequence) -> Scale | None:
    """What the uint8 inputs of a sequence are out of, or "none"; None where inputs are of another type.

    The rule, where a sequence does not say it: they are intensities out of 255 if one of the first 256 rows holds a
    value of 128 or more. Anything less may as well be marks of 0 and 1, sixteen greys or the letters of a text.

    Example:
        >>> from prequential.data.arrays import from_arrays
        >>> marks, greys = (np.array([[0, most], [most, 0]], np.uint8) for most in (1, 200))
        >>> scale_of(from_arrays(greys, [0, 1])), scale_of(from_arrays(marks, [0, 1], scale=1))
        (255, 1)
        >>> scale_of(from_arrays(marks, [0, 1]))
        Traceback (most recent call last):
        ...
        prequential.errors.PreqError: what are the uint8 inputs of 'arrays' out of? the first 2 rows go up to 1; give \
--scale 255 if they are images, --scale 1 for 0 to 1 brought to -1 to 1, or --scale none for as they are (scale=…)
    """
    said = None if (told := capabilities(data).scale) is None else parsed_scale(told)
    if said in (INTENSITY, UNSCALED):
        return said
    if data.inputs(np.zeros(1, np.int64)).dtype != torch.uint8:
        return None
    rows = data.inputs(np.arange(min(LOOKED_AT, len(data))))
    largest = int(rows.max()) if rows.numel() else INTENSITY
    most = max(largest, 1)
    if said is None and largest <= INTENSITY // 2:
        raise PreqError(
            f"what are the uint8 inputs of '{data.name}' out of? the first {len(rows)} rows go up to {largest}; give "
            f"--scale 255 if they are images, --scale {most} for 0 to {most} brought to -1 to 1, "
            "or --scale none for as they are (scale=…)"
        )
    if isinstance(said, int) and largest > said:
        raise PreqError(
            f"the inputs of '{data.name}' go up to {largest}, which is more than the scale {said}; raise it"
        )
    return said or INTENSITY
