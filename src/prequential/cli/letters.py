"""What is printed on a terminal, or into a file, that does not know all letters."""

import codecs
import io
import sys

PLAIN = {"−": "-", "–": "-", "·": "|", "±": "+-", "∞": "inf", "…": "...", "│": "|", "─": "-", "█": "#"}
"""What stands for letters of ours where they cannot be written."""


def spell_plainly() -> None:
    """Let standard output write what its encoding lacks as something near it, or as "?": never fail over a letter."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        codecs.register_error("plain", _plain)
        sys.stdout.reconfigure(errors="plain")


def _plain(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    letters = error.object[error.start : error.end]
    return "".join(PLAIN.get(letter, "?") for letter in letters), error.end
