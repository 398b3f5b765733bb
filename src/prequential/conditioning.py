"""What predictions may look at besides earlier labels. No torch.

A code of labels is a code *given inputs*. Plan, data preparation and model each look at some; what the code is
conditioned on is the widest of them.
"""

from prequential.errors import PreqError

INPUTS_SO_FAR, ALL_INPUTS = "inputs up to the label", "all inputs"
ORDER = (INPUTS_SO_FAR, ALL_INPUTS)
"""From the narrowest to the widest; each is part of the next."""


def widest(*parts: str) -> str:
    """What is conditioned on these parts is conditioned on; the narrowest of all where there is none.

    Raises:
        PreqError: for a part that is not in ORDER.

    Example:
        >>> widest(), widest("inputs up to the label", "all inputs")
        ('inputs up to the label', 'all inputs')
    """
    for part in parts:
        if part not in ORDER:
            wanted = " or ".join(f"'{known}'" for known in ORDER)
            raise PreqError(f"conditioned_on must be {wanted}, got {part!r}; name the widest that is looked at")
    return max(parts, key=ORDER.index, default=INPUTS_SO_FAR)
