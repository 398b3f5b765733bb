"""How uint8 inputs are brought to a network: the scale that data, records and bitstreams speak of. No torch."""

from typing import TypeAlias

from prequential.errors import PreqError

INTENSITY, UNSCALED = 255, "none"
Scale: TypeAlias = int | str
"""What uint8 inputs are out of: a number from 1 to 255, which is brought to 1 and 0 to −1; or UNSCALED."""


def parsed_scale(value: object) -> Scale:
    """A scale as it was given, on the command line as text; anything else is refused.

    Example:
        >>> parsed_scale("16"), parsed_scale("none")
        (16, 'none')
    """
    if value == UNSCALED:
        return UNSCALED
    text = str(value)
    if isinstance(value, bool) or not text.isdecimal() or len(text) > 3 or not 1 <= int(text) <= INTENSITY:
        raise PreqError(f"scale must be a whole number from 1 to {INTENSITY} or '{UNSCALED}', got {value!r}")
    return int(text)


def in_words(scale: Scale) -> str:
    """How uint8 inputs reach a network.

    Example:
        >>> in_words(255)
        'uint8 inputs: 0 to 255 brought to -1 to 1'
    """
    return f"uint8 inputs: {'as they are' if scale == UNSCALED else f'0 to {scale} brought to -1 to 1'}"
