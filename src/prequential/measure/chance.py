"""What chance does: whether two settings differ by more than their seeds do, and how lucky a best one is. No torch."""

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from prequential.errors import PreqError, require_count, require_number, whole_seed
from prequential.rng import derive, integers_below

NUM_NODES = 200
_nodes = functools.cache(np.polynomial.legendre.leggauss)


@dataclass(frozen=True, kw_only=True)
class PairedTest:
    """The differences between two settings, seed by seed."""

    num_pairs: int
    mean: float
    """Nats by which the second needs more than the first, on average over the seeds."""
    standard_error: float
    p_value: float
    """How probable so large a mean would be, up or down, if only the seeds told the two apart."""


def paired_test(first: Sequence[float], second: Sequence[float]) -> PairedTest | None:
    """Student's t-test of the differences between paired codelengths; None with fewer than two finite pairs.

    The t-test, and not the exact test that flips signs: with n pairs that one cannot fall below 2^(1 − n), so three
    seeds could never show anything. The price is an assumption, that differences between seeds are about normal; a
    codelength is a sum over many labels, which is why it is a fair one. Order and plan are the same for all seeds:
    what is tested is chance in initialisation, dropout and augmentation, not in the order of the data. Positions are
    no sample: their nats depend on each other and fall as the model learns. So with one seed each there is no test.

    Example:
        >>> test = paired_test([512.8, 551.6, 530.0], [902.4, 849.7, 880.0])
        >>> round(test.mean, 1), round(test.standard_error, 1), round(test.p_value, 4)
        (345.9, 26.5, 0.0058)
    """
    pairs = np.array([first, second], np.float64)
    num_pairs = pairs.shape[1]
    if num_pairs < 2 or not np.isfinite(pairs).all():
        return None
    differences = pairs[1] - pairs[0]
    mean, error = float(differences.mean()), float(differences.std(ddof=1)) / math.sqrt(num_pairs)
    p_value = two_sided(mean / error, num_pairs - 1) if error else 0.0 if mean else 1.0
    return PairedTest(num_pairs=num_pairs, mean=mean, standard_error=error, p_value=p_value)


def two_sided(t: float, degrees: int) -> float:
    """The probability that Student's t with so many degrees of freedom lies at least as far from 0.

    With t = √ν / tan ψ the density becomes sin^(ν−1) ψ, smooth up to the ends, so that few nodes integrate even the
    far tail to many digits.

    Example:
        >>> round(two_sided(12.7062, 1), 6), round(two_sided(-2.2281, 10), 6)
        (0.05, 0.050003)
    """
    nodes, weights = _nodes(NUM_NODES)

    def area(end: float) -> float:
        return float(weights @ np.sin((nodes + 1) * end / 2) ** (degrees - 1)) * end / 2

    return min(area(math.atan2(math.sqrt(degrees), abs(t))) / area(math.pi / 2), 1.0)


def bootstrap_best(
    codelengths: ArrayLike, *, seed: int = 0, num_samples: int = 1000, level: float = 0.95
) -> tuple[float, float]:
    """The bootstrap interval of the best codelength of a sweep, as in the paper's figures.

    The trials are drawn again, with replacement, as many as there were; the minimum of each such sample is what
    such a sweep might have found. The interval holds the middle `level` of these minima; both ends are codelengths that
    were measured. It does not depend on the order of the trials.

    It is one-sided: no sample can be below the best that was found, and 63 in 100 hold it, so that the lower end is
    that best. The upper end tells how far the result hangs on a few lucky trials, not how much more there is to gain.

    Args:
        codelengths: of the trials, infinity for those that diverged.

    Raises:
        PreqError: if there are none, or one is not a number.

    Example:
        >>> bootstrap_best([512.0, 431.0, 440.0, 437.0, float("inf"), 433.0])
        (431.0, 437.0)
    """
    try:
        values = np.sort(np.asarray(codelengths, np.float64))
    except (TypeError, ValueError):
        raise PreqError(f"codelengths must be numbers, got {codelengths!r}; leave out runs that have none") from None
    if values.ndim != 1 or not len(values) or np.isnan(values).any():
        raise PreqError(f"codelengths must be a list of at least one number, got {codelengths!r}")
    require_count("num_samples", num_samples)
    require_number("level", level, above=0, below=1)
    key = derive(whole_seed("seed", seed), "bootstrap of the best")
    drawn = integers_below(len(values), key, np.arange(num_samples * len(values)).reshape(num_samples, -1))
    minima = values[np.sort(drawn.min(axis=1))]
    tail = math.floor(num_samples * (1 - level) / 2)
    return float(minima[tail]), float(minima[-1 - tail])
