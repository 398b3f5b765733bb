"""The code length of not choosing: the runs of a sweep mixed into one code. No torch."""

import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from prequential.conditioning import INPUTS_SO_FAR, widest
from prequential.errors import PreqWarning, require_count
from prequential.measure.comparable import (
    inputs_told,
    name_of,
    require_comparable,
    require_records,
    require_same_inputs,
    require_same_sequence,
)
from prequential.mixers.mixing import first_weights
from prequential.mixers.switching import FALLING, GRID, RATES, WORDS, require_rate
from prequential.runs.record import Record
from prequential.terminal import printable

Floats = NDArray[np.float64]
BLOCK_SIZE = 1024
"""Labels mixed at a time: sums inside a block stay small, so that differences of them keep their digits."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Mixture:
    """What a mixture of records charges, and whom it believed."""

    nats: Floats
    """−ln of the mixture's probability of each label."""
    weights: Floats
    """The posterior weight of each record after the last label."""
    names: tuple[str, ...]
    """The records: their directories, or their models where they were not kept."""
    kept_after: NDArray[np.int64]
    """The numbers of labels after which weights were kept …"""
    kept_weights: Floats
    """… and these weights, a row for each."""
    conditioned_on: str = INPUTS_SO_FAR
    """What the mixture may look at besides earlier labels: the widest of its records."""
    num_inputs: int = 1
    """Different inputs that its records were given; the mixture is given all of them."""

    @property
    def codelength(self) -> float:
        """The length of the code in nats."""
        return float(self.nats.sum())

    def __repr__(self) -> str:
        best = int(self.weights.argmax())
        leader = f"{self.weights[best]:.0%} on {printable(self.names[best])}"
        return f"<Mixture of {len(self.names)}: {self.codelength:,.1f} nats, {len(self.nats):,} labels, {leader}>"


def mixture(
    records: Iterable[Record],
    *,
    switching: float | str | None = None,
    weights: ArrayLike | None = None,
    keep_every: int | None = None,
    same_inputs: bool = False,
) -> Mixture:
    """The code of not choosing among runs: no hindsight, and nothing to pay for having chosen.

    The mixture gives label t the probability Σᵢ wᵢ(t)·pᵢ(t), where pᵢ(t) is what run i gave it and w(t) depends on
    earlier labels only. It is the probability of the label that came, so the nats of the runs are all that its length
    needs. Its bitstream would need all the runs side by side, since there the whole predictions are mixed.

    Without `switching` it is the Bayesian mixture, −ln Σᵢ wᵢ exp(−Lᵢ): at most −ln wᵢ nats (ln n, if nothing is said
    of the weights) above the code of any run i.

    With `switching` it is fixed share (Herbster and Warmuth, 1998): the Bayesian mixture of all *sequences* of runs,
    where before each label but the first the run in charge is left with probability α, for any of the other n − 1
    alike. With v ∝ w·p the posterior after a label, the weights for the next are wᵢ = (1 − α)·vᵢ + α·(1 − vᵢ)/(n − 1).
    Against the best sequence that changes runs k times it loses at most

        ln n + k·ln((n − 1)/α) − (T − 1 − k)·ln(1 − α)    nats, for a constant α,
        ln n + k·ln(n − 1) + (k + 1)·ln T                 nats, for "1/t": α = 1/t before the t-th label (from 1).

    "grid" is the Bayesian mixture of ten constant rates, at most ln 10 nats above the best of them. These are the codes
    of the mixers `Bayes` and `Switching`, which mix while a run goes. `Logistic` has none here: it weighs what experts
    say of every class, and a record keeps only what was said of the label that came.

    Args:
        records: runs on the same labels in the same order. One that diverged gives nothing to the labels after that.
            Where their inputs differ, the mixture is given the union of them, and a warning says so.
        switching: None, the rate α in (0, 1), "1/t", which needs no guess of how long the sequence is, or "grid", which
            needs none of how often the best run changes.
        weights: the weights before the first label, positive, of sum 1. Default: all alike.
        keep_every: keep the posterior weights after each so many labels.
        same_inputs: refuse records whose inputs differ.

    Raises:
        PreqError: if the records are not about the same labels, or a run was stopped before its end.

    Example:
        >>> import prequential as pq
        >>> data = pq.load_data("mnist").take(64).without_heldout()
        >>> runs = [pq.run("mlp1", data, pq.ReplayStreams(num_streams=1), seed=seed) for seed in range(3)]
        >>> pq.mixture(runs).codelength < min(run.codelength for run in runs) + 1.0987  # ln 3
        True
    """
    runs = require_records(records, "mixture")
    for run in runs:
        require_same_sequence(run, runs[0])
    if same_inputs:
        require_same_inputs(runs)
    if told := inputs_told([(name_of(run), run) for run in runs]):
        warnings.warn(f"{told}; the mixture is given the union of them", PreqWarning, stacklevel=2)
    going = [run for run in runs if not np.isinf(run.nats[-1:]).any()]
    for run in going:
        require_comparable(run, going[0])
    members = [run.nats for run in runs]
    first = first_weights(weights, len(runs), "records", "weights")
    length = max(map(len, members))
    if switching is not None:
        require_rate(switching, "switching", f"None, {WORDS}")
    if keep_every is not None:
        require_count("keep_every", keep_every)
    kept_after = np.arange(keep_every or length + 1, length + 1, keep_every or 1)
    nats, last, kept = mix_switching(members, first, switching, kept_after)
    return Mixture(
        nats=nats,
        weights=last,
        names=tuple(map(name_of, runs)),
        kept_after=kept_after,
        kept_weights=kept,
        conditioned_on=widest(*(run.conditioned_on for run in runs)),
        num_inputs=len({run.data.get("inputs") for run in runs}),
    )


def mix_switching(
    members: Sequence[Floats], weights: Floats, switching: float | str | None, kept_after: NDArray[np.int64]
) -> tuple[Floats, Floats, Floats]:
    """What `mix` gives for a rate as people say it; "grid" mixes the mixtures of its rates.

    Example:
        >>> one, other = np.log([2.0, 2.0]), np.log([4.0, 4.0])
        >>> np.exp(-mix_switching([one, other], np.array([0.5, 0.5]), "1/t", np.array([], int))[0])
        array([0.375, 0.375])
    """
    if switching is None or len(members) == 1:
        return mix(members, weights, None, kept_after)
    length = max(map(len, members))
    if switching != GRID:
        rates = 1.0 / np.arange(1, length + 1) if switching == FALLING else np.full(length, float(switching))
        return mix(members, weights, rates, kept_after)
    found = [mix(members, weights, np.full(length, rate), kept_after) for rate in RATES]
    nats, last, kept = mix([each for each, _, _ in found], np.full(len(RATES), 1 / len(RATES)), None, kept_after)
    of_runs = np.array([each for _, each, _ in found])
    kept_of_runs = np.array([each for _, _, each in found])
    return nats, last @ of_runs, np.einsum("kr,rkn->kn", kept, kept_of_runs)


def mix(
    members: Sequence[Floats], weights: Floats, rates: Floats | None, kept_after: NDArray[np.int64]
) -> tuple[Floats, Floats, Floats]:
    """Nats of the mixture, posterior weights at the end, and those after the given numbers of labels.

    Args:
        members: the nats of each run; one that is shorter than the longest gives nothing to what follows.
        weights: of the runs before the first label.
        rates: how probable a change of runs is before each label (the first is not looked at), or None for never.

    Once no run gives a label any probability the code is infinite, there and after; the weights stay as they were.

    Example:
        >>> one, other = np.log([2.0, 2.0]), np.log([4.0, 4.0])
        >>> nats, weights, _ = mix([one, other], np.array([0.5, 0.5]), None, np.array([], int))
        >>> np.exp(-nats), weights
        (array([0.375     , 0.41666667]), array([0.8, 0.2]))
    """
    length = max(map(len, members))
    nats, kept = np.full(length, np.inf), np.empty((len(kept_after), len(members)))
    blocks = _blocks(members, length)
    start = 0
    for charged, posterior in _bayes(blocks, weights) if rates is None else _fixed_share(blocks, weights, rates):
        is_lost = np.isinf(charged)
        alive = int(is_lost.argmax()) if is_lost.any() else len(charged)
        nats[start : start + alive] = charged[:alive]
        here = (kept_after > start) & (kept_after <= start + alive)
        kept[here] = posterior[kept_after[here] - 1 - start]
        weights = posterior[alive - 1] if alive else weights
        start += alive
        if alive < len(charged):
            break
    kept[kept_after > start] = weights
    return nats, weights.copy(), kept


def _blocks(members: Sequence[Floats], length: int) -> Iterator[Floats]:
    """The members' nats side by side, a row for each label."""
    for start in range(0, length, BLOCK_SIZE):
        block = np.full((min(BLOCK_SIZE, length - start), len(members)), np.inf)
        for column, nats in enumerate(members):
            part = nats[start : start + BLOCK_SIZE]
            block[: len(part), column] = part
        yield block


def _bayes(blocks: Iterator[Floats], weights: Floats) -> Iterator[tuple[Floats, Floats]]:
    """Nats and posterior weights after each label: wᵢ exp(−Lᵢ), divided by its sum."""
    log_weights = np.log(weights)
    for block in blocks:
        after = log_weights - np.cumsum(block, axis=0)
        sums = _log_sum_exp(after)
        after -= np.where(np.isinf(sums), 0.0, sums)
        before = np.concatenate([log_weights[None], after[:-1]])
        yield -_log_sum_exp(before - block)[:, 0], np.exp(after)
        log_weights = after[-1]


def _log_sum_exp(rows: Floats) -> Floats:
    """ln Σ exp of each row, as a column; −∞ where all of a row is."""
    top = rows.max(axis=1, keepdims=True)
    top[np.isinf(top)] = 0.0
    with np.errstate(divide="ignore"):
        sums: Floats = top + np.log(np.exp(rows - top).sum(axis=1, keepdims=True))
    return sums


def _fixed_share(blocks: Iterator[Floats], weights: Floats, rates: Floats) -> Iterator[tuple[Floats, Floats]]:
    """The same where the run in charge may change; shares keep every weight far from underflow."""
    position = 0
    for block in blocks:
        best = block.min(axis=1, keepdims=True)
        best[np.isinf(best)] = 0.0
        posterior = np.exp(best - block)
        sums = np.zeros(len(block))
        shares = rates[position : position + len(block)] / (block.shape[1] - 1)
        stays = 1.0 - rates[position : position + len(block)] - shares
        for row, (each, stay, share) in enumerate(zip(posterior, stays.tolist(), shares.tolist(), strict=True)):
            if position or row:
                weights = weights * stay + share
            each *= weights
            sums[row] = total = each.sum()
            if not total:
                break
            each /= total
            weights = each
        position += len(block)
        with np.errstate(divide="ignore"):
            yield best[:, 0] - np.log(sums), posterior
