"""The laws of the mixers: what they may lose, that they are distributions, and that their state is all they know.

Each law is a function of a mixing, so that the last test can show a broken mixing to each of them.
"""

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from prequential import Bayes, Logistic, PreqError, Switching
from prequential.measure.mixing import mix_switching
from prequential.mixers import Mixer, Mixing, PureLogistic
from prequential.mixers.bayes import BayesMixing
from prequential.mixers.guarded import GuardedMixing
from prequential.mixers.logistic import LogisticMixing
from prequential.mixers.mixing import Floats
from prequential.mixers.switching import RATES, SwitchingMixing

Begin = Callable[[int, int], Mixing]


@dataclass(frozen=True, eq=False)
class Code:
    """What experts said of labels, and the labels."""

    experts: Floats
    """ln p: labels × experts × classes."""
    labels: list[int]

    @property
    def nats(self) -> Floats:
        """What each expert's own code charges, experts × labels."""
        return -self.experts[np.arange(len(self.labels)), :, self.labels].T

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of experts and classes."""
        return self.experts.shape[1], self.experts.shape[2]


@st.composite
def codes(draw: st.DrawFn, max_labels: int = 14, zeros: bool = True) -> Code:
    """Experts of all kinds: unsure, sharp, certain, and with probabilities of 0."""
    shape = draw(st.tuples(st.integers(1, max_labels), st.integers(1, 4), st.integers(2, 4)))
    scale = draw(st.sampled_from([1.0, 10.0, 300.0]))
    logits = scale * draw(arrays(np.float64, shape, elements=st.floats(-1, 1)))
    if zeros:
        keep = draw(arrays(np.bool_, shape, elements=st.booleans(), fill=st.just(True)))
        keep[..., 0] |= ~keep.any(axis=-1)
        logits[~keep] = -np.inf
    rows = logits - np.logaddexp.reduce(logits, axis=-1, keepdims=True)
    return Code(rows, draw(st.lists(st.integers(0, shape[2] - 1), min_size=shape[0], max_size=shape[0])))


RATE = st.sampled_from(["1/t", "grid"]) | st.floats(1e-6, 0.999)
PURE = st.builds(
    PureLogistic,
    learning_rate=st.sampled_from([1e-3, 0.02, 0.5, 100.0]),
    full_rate_labels=st.sampled_from([0, 3]),
    by_previous_label=st.booleans(),
    parametrisation=st.sampled_from(["raw", "softplus"]),
    optimizer=st.sampled_from(["gradient", "adamw"]),
)
LOGISTIC = st.builds(Logistic, learning_rate=st.sampled_from([None, 1e-3, 100.0]), by_previous_label=st.booleans())
MIXER = st.just(Bayes()) | st.builds(Switching, rate=RATE) | LOGISTIC | PURE
GUARDED = st.just(Bayes()) | LOGISTIC


def played(mixing: Mixing, code: Code, start: int = 0) -> Floats:
    """The rows of a code from a label on."""
    rows = []
    for experts, label in zip(code.experts[start:], code.labels[start:], strict=True):
        rows.append(mixing.row(experts))
        mixing.tell(label)
    return np.array(rows)


def charged(mixing: Mixing, code: Code) -> Floats:
    """The nats of the labels; once infinite, always."""
    with np.errstate(invalid="ignore"):
        nats: Floats = -played(mixing, code)[np.arange(len(code.labels)), code.labels]
    return np.where(np.isinf(np.cumsum(nats)), np.inf, nats)


def law_of_the_best(begin: Begin, code: Code, extra: Floats) -> None:
    """At most minᵢ(Lᵢ + extraᵢ)."""
    best = float((code.nats.sum(axis=1) + extra).min())
    assert charged(begin(*code.shape), code).sum() <= best * (1 + 1e-12) + 1e-9


def law_of_the_best_sequence(begin: Begin, code: Code, rate: float | str) -> None:
    """At most the best sequence with k changes and what k changes cost, for every k and every sequence."""
    total = charged(begin(*code.shape), code).sum()
    num_experts, length = code.nats.shape
    for sequence in itertools.product(range(num_experts), repeat=length):
        changes = sum(one != other for one, other in itertools.pairwise(sequence))
        allowed = min(switching_bound(num_experts, length, changes, each) for each in rates_of(rate))
        allowed += math.log(len(rates_of(rate)))
        own = float(code.nats[list(sequence), range(length)].sum())
        assert total <= own * (1 + 1e-12) + allowed + 1e-9
        if rate == "1/t":
            assert allowed <= (changes + 1) * (math.log(num_experts) + math.log(length)) + 1e-9


def rates_of(rate: float | str) -> tuple[float | str, ...]:
    return RATES if rate == "grid" else (rate,)


def switching_bound(n: int, length: int, k: int, rate: float | str) -> float:
    if n == 1:
        return 0.0
    if rate == "1/t":
        return math.log(n) + k * math.log(n - 1) + (k + 1) * math.log(length)
    return math.log(n) + k * math.log((n - 1) / float(rate)) - (length - 1 - k) * math.log1p(-float(rate))


def law_of_distributions(begin: Begin, code: Code) -> None:
    """Rows sum to 1, and so do weights; neither is ever negative or not a number."""
    mixing = begin(*code.shape)
    for experts, label in zip(code.experts, code.labels, strict=True):
        row = mixing.row(experts)
        assert abs(np.exp(row).sum() - 1) <= 1e-12
        if row[label] == -np.inf:
            break
        mixing.tell(label)
        assert mixing.weights.shape == (code.shape[0],)
        assert (mixing.weights >= 0).all()
        assert abs(mixing.weights.sum() - 1) <= 1e-12


def law_of_purity(begin: Begin, code: Code) -> None:
    """Asking twice, or for something else in between, changes nothing; what was given is not kept or written."""
    twice, once = begin(*code.shape), begin(*code.shape)
    for experts, label in zip(code.experts, code.labels, strict=True):
        given, before = experts.copy(), twice.state()
        first = twice.row(given)
        twice.row(np.roll(experts, 1, axis=1))
        again = twice.row(given)
        assert np.array_equal(given, experts)
        given[:] = np.nan
        assert same_state(before, twice.state())
        assert first.tobytes() == again.tobytes() == once.row(experts).tobytes()
        if first[label] == -np.inf:
            break
        twice.tell(label)
        once.tell(label)
        assert same_state(twice.state(), once.state())


def same_state(one: dict[str, Floats], other: dict[str, Floats]) -> bool:
    return {key: value.tobytes() for key, value in one.items()} == {k: value.tobytes() for k, value in other.items()}


def law_of_going_on(begin: Begin, code: Code, stop: int) -> None:
    """A fresh mixing that is given the state of another goes on with the same bits."""
    whole = played(begin(*code.shape), code)
    first = begin(*code.shape)
    played(first, Code(code.experts[:stop], code.labels[:stop]))
    state = first.state()
    assert all(value.dtype == np.float64 for value in state.values())
    second = begin(*code.shape)
    second.restore({key: value.copy() for key, value in state.items()})
    assert played(second, code, stop).tobytes() == whole[stop:].tobytes()
    assert same_state(state, first.state()), "the state that was given is a copy"
    assert second.position == len(code.labels)


def law_of_lost_trust(begin: Begin, code: Code) -> None:
    """In Bayes an expert that gave the label probability 0 is never trusted again, while there is one that did not."""
    mixing = begin(*code.shape)
    lost = np.zeros(code.shape[0], bool)
    for experts, label in zip(code.experts, code.labels, strict=True):
        if (lost | (experts[:, label] == -np.inf)).all():
            break
        lost |= experts[:, label] == -np.inf
        mixing.row(experts)
        mixing.tell(label)
        assert (mixing.weights[lost] == 0).all()


def law_of_leaving_out(begin: Begin, code: Code, expert: int, position: int, bad: Floats) -> None:
    """From the first row that is not finite on an expert has no part; the others go on, and the rows are theirs."""
    mixing, rows = begin(*code.shape), code.experts.copy()
    rows[position, expert % code.shape[0]] = bad[: code.shape[1]]
    seen = played(mixing, Code(rows, code.labels))
    assert mixing.left_out == {expert % code.shape[0]: position}
    assert mixing.weights[expert % code.shape[0]] == 0
    assert abs(mixing.weights.sum() - 1) <= 1e-12
    assert (abs(np.exp(seen).sum(axis=1) - 1) <= 1e-12).all()
    rows[position + 1 :, expert % code.shape[0]] = 5.0  # nobody looks at it
    again = begin(*code.shape)
    assert played(again, Code(rows, code.labels)).tobytes() == seen.tobytes()
    fresh = begin(*code.shape)
    fresh.restore(mixing.state())
    assert fresh.left_out == mixing.left_out


@given(codes(), st.data())
def test_bayes_and_guarded_mixing_keep_to_the_best(code: Code, data: st.DataObject) -> None:
    prior = data.draw(arrays(np.float64, code.shape[0], elements=st.floats(0.01, 1)))
    prior /= prior.sum()
    law_of_the_best(Bayes(prior=tuple(prior)).begin, code, -np.log(prior))
    law_of_the_best(data.draw(LOGISTIC).begin, code, np.full(code.shape[0], math.log(code.shape[0] + 1)))


@given(codes(max_labels=5), RATE)
def test_switching_keeps_to_the_best_sequence(code: Code, rate: float | str) -> None:
    law_of_the_best_sequence(Switching(rate=rate).begin, code, rate)


@given(MIXER, codes())
def test_mixtures_are_distributions(mixer: Mixer, code: Code) -> None:
    law_of_distributions(mixer.begin, code)


@given(MIXER, codes())
def test_asking_changes_nothing(mixer: Mixer, code: Code) -> None:
    law_of_purity(mixer.begin, code)


@given(MIXER, codes(zeros=False), st.integers(0, 14))
def test_the_state_is_all_that_matters(mixer: Mixer, code: Code, stop: int) -> None:
    law_of_going_on(mixer.begin, code, min(stop, len(code.labels)))


@given(codes())
def test_who_said_never_is_never_trusted_again_by_bayes(code: Code) -> None:
    law_of_lost_trust(Bayes().begin, code)


def law_of_return(begin: Begin) -> None:
    """In switching who said never can return, and soon."""
    with np.errstate(divide="ignore"):
        wrong, right = np.log([[0.0, 1.0], [0.5, 0.5]]), np.log([[1.0, 0.0], [0.5, 0.5]])
    mixing = begin(2, 2)
    mixing.row(wrong)
    mixing.tell(0)
    assert mixing.weights[0] == 0
    for _ in range(12):
        mixing.row(right)
        mixing.tell(0)
    assert mixing.weights[0] > 0.5


@pytest.mark.parametrize("rate", [0.05, "1/t", "grid"])
def test_who_said_never_can_return_in_switching(rate: float | str) -> None:
    law_of_return(Switching(rate=rate).begin)


NOT_FINITE = st.sampled_from([[np.nan] * 4, [-1.0, np.nan, -1.0, -1.0], [np.inf, -9.0, -9.0, -9.0], [-np.inf] * 4])


@given(MIXER, codes(zeros=False), st.integers(0, 3), st.data())
def test_what_is_not_finite_is_left_out(mixer: Mixer, code: Code, expert: int, data: st.DataObject) -> None:
    position, bad = data.draw(st.integers(0, len(code.labels) - 1)), np.array(data.draw(NOT_FINITE))
    if code.shape[0] > 1:
        law_of_leaving_out(mixer.begin, code, expert, position, bad)
        return
    mixing = mixer.begin(*code.shape)
    with pytest.raises(PreqError, match=f"no expert is left at label 0.*{bad_words(1, 0)}"):
        mixing.row(bad[None, : code.shape[1]])


def bad_words(count: int, position: int) -> str:
    return rf"the output of all {count} was not finite \(expert 0 at label {position}\)"


@given(codes(max_labels=30), RATE | st.none())
def test_mixing_records_afterwards_is_mixing_them_at_once(code: Code, rate: float | str | None) -> None:
    mixing = (Bayes() if rate is None else Switching(rate=rate)).begin(*code.shape)
    weights = np.full(code.shape[0], 1 / code.shape[0])
    nats, last, _ = mix_switching(list(code.nats), weights, rate, np.array([], int))
    online = charged(mixing, code)
    assert np.allclose(online, nats, rtol=1e-9, atol=1e-9)
    if np.isfinite(nats).all():
        assert np.allclose(mixing.weights, last, rtol=1e-6, atol=1e-9)


class HalfBelieving(BayesMixing):
    """Learns half as fast as it should: more than ln n is lost."""

    def learn(self, experts: Floats, label: int) -> None:
        super().learn(experts / 2, label)


class NeverSwitching(SwitchingMixing):
    """Shares nothing."""

    def shared(self) -> Floats:
        return self.posterior


class Unguarded(GuardedMixing):
    """Believes logistic mixing alone."""

    def mixed(self, experts: Floats) -> Floats:
        return self.pools[0].mixed(experts)


class Unnormalised(LogisticMixing):
    """Forgets the sum, by little enough to be let through."""

    def rows(self, experts: Floats) -> Floats:
        return super().rows(experts) + 1e-9


class Impatient(BayesMixing):
    """Learns from being asked."""

    def mixed(self, experts: Floats) -> Floats:
        found = super().mixed(experts)
        self.learn(experts, 0)
        return found


class Forgetful(LogisticMixing):
    """Does not say which set of weights is next."""

    keys = LogisticMixing.keys[:-1]


class Forgiving(BayesMixing):
    """Forgives a probability of 0."""

    def learn(self, experts: Floats, label: int) -> None:
        super().learn(np.maximum(experts, -20.0), label)


class Clinging(SwitchingMixing):
    """Leaves nobody out."""

    def leave_out(self, expert: int) -> None:
        Mixing.leave_out(self, expert)


def turns(length: int = 5) -> Code:
    """Two experts, of whom now one is right and now the other, and then a third label."""
    rows = np.log(np.array([[0.98, 0.01, 0.01], [0.01, 0.98, 0.01]]))
    return Code(np.tile(rows, (length, 1, 1)), [0] * (length // 2) + [1] * (length - length // 2))


def broken_logistic(kind: type[LogisticMixing], **settings: object) -> Begin:
    return lambda n, c: kind(n, c, PureLogistic(learning_rate=0.5, **settings))  # type: ignore[arg-type]


def unguarded(num_experts: int, num_classes: int) -> Mixing:
    return Unguarded(num_experts, num_classes, [PureLogistic(learning_rate=1e-3).begin(num_experts, num_classes)])


LONG = Code(np.tile(np.log([[0.8, 0.2], [0.2, 0.8]]), (12, 1, 1)), [0] * 12)
WITH_ZERO = Code(np.log(np.array([[[1 - 1e-300, 1e-300], [0.5, 0.5]]] * 2)), [1, 0])
WITH_ZERO.experts[0, 0] = 0.0, -np.inf
BREAKS: dict[str, Callable[[], None]] = {
    "best by bayes": lambda: law_of_the_best(HalfBelieving, LONG, np.full(2, math.log(2))),
    "best by the guard": lambda: law_of_the_best(unguarded, LONG, np.full(2, math.log(3))),
    "sequence": lambda: law_of_the_best_sequence(lambda n, c: NeverSwitching(n, c, 0.2), turns(8), 0.2),
    "distributions": lambda: law_of_distributions(broken_logistic(Unnormalised), turns()),
    "purity": lambda: law_of_purity(Impatient, turns()),
    "going on": lambda: law_of_going_on(broken_logistic(Forgetful, by_previous_label=True), turns(), 4),
    "lost trust": lambda: law_of_lost_trust(Forgiving, WITH_ZERO),
    "return": lambda: law_of_return(lambda n, c: NeverSwitching(n, c, 0.05)),
    "leaving out": lambda: law_of_leaving_out(lambda n, c: Clinging(n, c, 0.2), turns(), 0, 2, np.full(4, np.nan)),
}


@pytest.mark.parametrize("law", BREAKS)
def test_each_law_finds_what_breaks_it(law: str) -> None:
    with pytest.raises((AssertionError, PreqError)):
        BREAKS[law]()


def test_the_laws_let_the_right_ones_through() -> None:
    law_of_the_best(Bayes().begin, LONG, np.full(2, math.log(2)))
    law_of_the_best(Logistic(learning_rate=1e-3).begin, LONG, np.full(2, math.log(3)))
    law_of_the_best_sequence(Switching(rate=0.2).begin, turns(8), 0.2)
    law_of_distributions(PureLogistic(learning_rate=0.5).begin, turns())
    law_of_purity(Bayes().begin, turns())
    law_of_going_on(PureLogistic(learning_rate=0.5, by_previous_label=True).begin, turns(), 4)
    law_of_lost_trust(Bayes().begin, WITH_ZERO)
    law_of_leaving_out(Switching(rate=0.2).begin, turns(), 0, 2, np.full(4, np.nan))
