"""Numbers, amounts and lists as people write them; the same in tables, sentences, pictures and pages."""

import math
from collections.abc import Sequence
from datetime import timedelta

NOTHING = "–"
NAMED = 3
"""Names that a sentence lists."""
LARGEST_PLAIN_ODDS = math.log(9999.5)


def number(value: float | None, form: str = ",.1f") -> str:
    """A number as text; nothing that was rounded to 0 keeps a sign.

    Example:
        >>> number(1229.68), number(None), number(math.inf), number(-0.04)
        ('1,229.7', '–', '∞', '0.0')
    """
    if value is None or math.isnan(value):
        return NOTHING
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    text = format(value, form)
    is_nothing = text[0] in "-+" and not text.strip("-+0.,%")
    return text[1:] if is_nothing else text.replace("-", "−")


def percentage(share: float | None, digits: int = 0) -> str:
    """A share as text, in per cent.

    Example:
        >>> percentage(-0.21), percentage(-0.001), percentage(0.805, 1)
        ('−21%', '0%', '80.5%')
    """
    return NOTHING if share is None or not math.isfinite(share) else number(share, f".{digits}%")


def signed(value: float) -> str:
    """A difference in nats.

    Example:
        >>> signed(-1204.4), signed(3.21), signed(0.0)
        ('−1,204', '+3.2', '0')
    """
    text = number(value, "+,.0f" if abs(value) >= 100 else "+.1f")
    return "0" if text == "0.0" else text


def odds(log_odds: float) -> str:
    """Odds as text, as a power of e once they are large.

    Example:
        >>> odds(0.0), odds(2.5), odds(300.0), odds(20000.4), odds(math.inf)
        ('1 : 1', '12 : 1', 'e^300 : 1', 'e^20,000 : 1', '∞ : 1')
    """
    if math.isnan(log_odds):
        return NOTHING
    if log_odds > LARGEST_PLAIN_ODDS:
        return f"{'e^' if math.isfinite(log_odds) else ''}{number(log_odds, ',.1f' if log_odds < 100 else ',.0f')} : 1"
    value = math.exp(log_odds)
    return f"{value:.1f} : 1".replace(".0 ", " ") if value < 10 else f"{value:,.0f} : 1"


def probability(log_probability: float) -> str:
    """A probability as text, from its logarithm; never a rounded 0 or 1.

    Example:
        >>> probability(math.log(0.5)), probability(-300.0), probability(-1e-9), probability(-math.inf)
        ('50.0%', 'e^−300', '>99.9%', '0')
    """
    if math.isnan(log_probability):
        return NOTHING
    if math.isinf(log_probability):
        return "0"
    if log_probability < math.log(0.0005):
        return f"e^−{number(-log_probability, '.1f' if log_probability > -100 else ',.0f')}"
    share = 100 * math.exp(log_probability)
    return ">99.9%" if share >= 99.95 and log_probability else f"{share:.1f}%"


def p_text(p_value: float) -> str:
    """The result of a test as text.

    Example:
        >>> p_text(0.0314), p_text(1e-9), p_text(0.0)
        ('0.031', '1e-09', '0')
    """
    return f"{p_value:.3f}" if p_value >= 0.001 else f"{p_value:.0e}" if p_value else "0"


def flops_text(value: float) -> str:
    """FLOPs as people read them.

    Example:
        >>> flops_text(24888606720.0), flops_text(999_700.0), flops_text(12.0)
        ('24.9 G', '1 M', '12')
    """
    for power, unit in ((18, "E"), (15, "P"), (12, "T"), (9, "G"), (6, "M"), (3, "k")):
        if value >= 0.9995 * 10**power:
            return f"{value / 10**power:,.3g} {unit}"
    return f"{value:,.0f}"


def duration(seconds: float) -> str:
    """How long, in as few letters as say it.

    Example:
        >>> duration(65), duration(3_725), duration(200_000)
        ('1:05', '1:02:05', '2d 7:33:20')
    """
    text = str(timedelta(seconds=round(seconds))).removeprefix("0:").removeprefix("0")
    return text.replace(" days, ", "d ").replace(" day, ", "d ")


def counted(amount: int, what: str) -> str:
    """An amount of something.

    Example:
        >>> counted(1, "run"), counted(1200, "run")
        ('1 run', '1,200 runs')
    """
    return f"{amount:,} {what}{'s' * (amount != 1)}"


def listed(names: Sequence[str], most: int = NAMED) -> str:
    """Names on one line, and how many more there are.

    Example:
        >>> listed(["a", "b", "c", "d", "e"])
        'a, b, c and 2 more'
    """
    return ", ".join(names[:most]) + (f" and {len(names) - most:,} more" if len(names) > most else "")


def sentence(text: str) -> str:
    """A remark as a sentence; nothing stays nothing.

    Example:
        >>> sentence("left out 1 run"), sentence("")
        ('Left out 1 run.', '')
    """
    return f"{text[:1].upper()}{text[1:].rstrip('.')}." if text else ""
