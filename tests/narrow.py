"""What is printed on a terminal of 80 columns: no line is longer, and no word is broken.

Whether a word is whole is told by the same text on a terminal that has room for everything.
"""

import pytest

from prequential import cli

WIDTH, WIDE = 80, 400
DRAWN = str.maketrans(dict.fromkeys("│╭╮╰╯─", " "))
"""The boxes around help texts, which may also be drawn with hyphens."""


def printed(arguments: list[str], columns: int, capsys: pytest.CaptureFixture[str]) -> str:
    """What a command prints on a terminal of so many columns."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", str(columns))
        if "--help" in arguments:
            with pytest.raises(SystemExit, match="0"):
                cli.main(arguments)
        else:
            assert cli.main(arguments) == 0
    return capsys.readouterr().out


def assert_fits(text: str, width: int = WIDTH) -> None:
    """No line is longer than the terminal."""
    longest = max(text.splitlines(), key=len)
    assert len(longest) <= width, longest


def assert_whole_words(narrow: str, wide: str) -> None:
    """Every word of the narrow text is one of the wide text."""
    known = set(wide.translate(DRAWN).split())
    words = [word for word in narrow.translate(DRAWN).split() if word.strip("-+|")]
    broken = [word for word in words if word not in known]
    assert not broken, broken


def assert_narrow(arguments: list[str], capsys: pytest.CaptureFixture[str], width: int = WIDTH) -> str:
    """What a command prints fits a narrow terminal, with all its words whole; gives it."""
    narrow = printed(arguments, width, capsys)
    assert_fits(narrow, width)
    assert_whole_words(narrow, printed(arguments, WIDE, capsys))
    return narrow
