"""What all mixers share: the border of experts and labels, and the arithmetic of sums of probabilities. No torch."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from prequential.errors import PreqError, require_count

Floats = NDArray[np.float64]
State = dict[str, Floats]
SUM_TOLERANCE = 1e-6
"""How far from 1 the probabilities of an expert may sum: rounding of float32 is allowed, free nats are not."""


class NobodyLeftError(PreqError):
    """No expert is left whom the mixture could believe: none that has a weight gives finite numbers."""


class Mixer(Protocol):
    """Settings of a mixer: a frozen dataclass, from which the state of a code begins."""

    @property
    def name(self) -> str:
        """What it is called in files and by flags."""
        ...

    def begin(self, num_experts: int, num_classes: int) -> "Mixing":
        """A code that has seen no label yet."""
        ...


class Mixing(ABC):
    """The state of one mixed code. It turns the experts' log-probabilities of a label into one distribution, is told
    the label, and learns from it whom to trust.

    `row` and `tell` alternate. `row` changes nothing that a later prediction depends on, apart from leaving out experts
    whose output is not finite, so it may be called again. All is float64 and goes label by label, so whoever predicts
    the same labels by the same experts (a scorer, an encoder, a decoder) has the same bits. Not thread-safe.

    Args:
        num_experts: how many predictions there are of each label.
        num_classes: how many probabilities each of them has.
    """

    keys: ClassVar[tuple[str, ...]] = ()
    """The attributes of a kind of mixing that hold what it has learned: arrays that never change their shape."""

    def __init__(self, num_experts: int, num_classes: int) -> None:
        require_count("num_experts", num_experts)
        require_count("num_classes", num_classes)
        self.num_experts, self.num_classes = num_experts, num_classes
        self.position = 0
        """Labels told so far."""
        self.left_out: dict[int, int] = {}
        """For each expert whose output was not finite, the position from which it is left out."""
        self.alive = np.ones(num_experts, bool)
        """The experts that are not left out."""
        self._experts: Floats | None = None

    @property
    @abstractmethod
    def weights(self) -> Floats:
        """How much each expert is trusted after the labels told so far; of sum 1, and 0 for those left out."""

    @abstractmethod
    def mixed(self, experts: Floats) -> Floats:
        """ln p of the mixture. Rows of experts that are left out are 0."""

    @abstractmethod
    def learn(self, experts: Floats, label: int) -> None:
        """Move the weights by what the experts said of the label."""

    def leave_out(self, expert: int) -> None:
        """Trust an expert no more."""
        self.alive[expert] = False

    def row(self, experts: ArrayLike) -> Floats:
        """ln p of each class by the mixture, normalised as the experts are.

        Args:
            experts: ln p of each class by each expert, (num_experts, num_classes); −inf is a probability of 0.

        Raises:
            PreqError: if there are other numbers of experts or classes, if no expert is left whose output is finite, or
                if the probabilities do not sum to 1.
        """
        rows = np.array(experts, np.float64, order="C")
        if rows.shape != (self.num_experts, self.num_classes):
            raise PreqError(
                f"a mixture of {self.num_experts} experts needs {self.num_classes} log-probabilities from each, got an"
                f" array of the shape {rows.shape}; experts of one code have the same classes"
            )
        if self.left_out or not np.isfinite(rows).all():
            self._leave_out_what_is_not_finite(rows)
        self._experts = rows
        mixed = self.mixed(rows)
        total = np.exp(mixed).sum()
        if not abs(total - 1.0) <= SUM_TOLERANCE:
            self._tell_why(rows, total)
        return mixed

    def tell(self, label: int) -> None:
        """The label that `row` was about. Without a `row` before it this is refused."""
        if self._experts is None:
            raise PreqError(f"label {self.position} was told before it was predicted; call row first")
        require_count("label", label, at_least=0, at_most=self.num_classes - 1)
        self.learn(self._experts, int(label))
        self._experts = None
        self.position += 1

    def _leave_out_what_is_not_finite(self, rows: Floats) -> None:
        is_bad = np.isnan(rows).any(axis=1) | (rows == np.inf).any(axis=1) | (rows == -np.inf).all(axis=1)
        for expert in np.flatnonzero(is_bad & self.alive).tolist():
            self.left_out[expert] = self.position
            self.leave_out(expert)
        if not self.alive.any():
            raise NobodyLeftError(f"no expert is left at label {self.position}: the output of all {self._story()}")
        rows[~self.alive] = 0.0

    def _story(self) -> str:
        since = ", ".join(f"{expert} at label {position}" for expert, position in sorted(self.left_out.items()))
        return f"{self.num_experts} was not finite (expert {since})"

    def _tell_why(self, rows: Floats, total: float) -> None:
        sums = np.exp(rows).sum(axis=1)
        is_wrong = self.alive & ~(abs(sums - 1.0) <= SUM_TOLERANCE)
        if is_wrong.any():
            expert = int(is_wrong.argmax())
            raise PreqError(
                f"the probabilities of expert {expert} sum to {sums[expert]:g} at label {self.position}, not to 1; give"
                " natural logarithms of a distribution"
            )
        if total != 0:
            raise PreqError(f"the mixture sums to {total:g} at label {self.position}")
        why = f" (left out: {', '.join(map(str, self.left_out))})" if self.left_out else ""
        raise NobodyLeftError(
            f"no expert is left at label {self.position}: each gave an earlier label probability 0 or was left out{why}"
        )

    def state(self) -> State:
        """All that later predictions depend on, as float64 arrays; `restore` takes it."""
        since = np.full(self.num_experts, -1.0)
        for expert, position in self.left_out.items():
            since[expert] = position
        own = {key: getattr(self, key).astype(np.float64) for key in self.keys}
        return {"position": np.array([float(self.position)]), "left_out": since, **own}

    def restore(self, state: Mapping[str, ArrayLike]) -> None:
        """Go on from what `state` gave.

        Raises:
            PreqError: if it is the state of another mixer, or of one for other numbers of experts or classes.
        """
        own = self.state()
        given = {key: np.asarray(value, np.float64) for key, value in state.items()}
        shapes, wanted = ({key: value.shape for key, value in each.items()} for each in (given, own))
        if shapes != wanted:
            raise PreqError(f"this is not a state of this mixer: wanted arrays of the shapes {wanted}, got {shapes}")
        whole = np.concatenate([given["position"], given["left_out"]])
        if any(np.isnan(value).any() for value in given.values()) or not (whole == np.floor(whole)).all():
            raise PreqError("this state of a mixer is damaged: it has values that are not numbers")
        self.position = int(given["position"][0])
        self.left_out = {i: int(since) for i, since in enumerate(given["left_out"]) if since >= 0}
        self.alive = given["left_out"] < 0
        self._experts = None
        for key in self.keys:
            setattr(self, key, given[key].astype(getattr(self, key).dtype))


def log_mean(log_weights: Floats, rows: Floats) -> Floats:
    """ln Σᵢ wᵢ exp(rowᵢ) of each column; −inf where all is.

    Example:
        >>> np.exp(log_mean(np.log([0.5, 0.5]), np.log([[0.2, 0.8], [0.4, 0.6]])))
        array([0.3, 0.7])
    """
    terms = rows + log_weights[:, None]
    top = terms.max(axis=0)
    top[top == -np.inf] = 0.0
    terms -= top
    with np.errstate(divide="ignore"):
        found: Floats = np.log(np.exp(terms, out=terms).sum(axis=0)) + top
    return found


def require_prior(prior: Any) -> None:
    """Refuse what cannot be the weights of experts, however many there will be."""
    if isinstance(prior, Sequence) and not isinstance(prior, str):  # else its type is refused anyway
        first_weights(prior, len(prior))


def first_weights(prior: ArrayLike | None, num_members: int, members: str = "experts", name: str = "prior") -> Floats:
    """The weights before the first label: those given, or all alike.

    Example:
        >>> first_weights(None, 2)
        array([0.5, 0.5])
    """
    if prior is None:
        return np.full(num_members, 1.0 / num_members)
    try:
        given = np.asarray(prior, np.float64)
        if np.asarray(prior).dtype.kind not in "iuf":
            raise TypeError
    except (TypeError, ValueError):
        raise PreqError(f"{name} must be one number for each of {num_members} {members}, got {prior!r}") from None
    if given.shape != (num_members,):
        shape = given.shape
        raise PreqError(f"{name} must be one number for each of {num_members} {members}, got the shape {shape}")
    if not (np.isfinite(given).all() and (given > 0).all()):
        raise PreqError(f"{name} must be positive, got {given.min()}; leave out {members} that shall not count")
    if abs(given.sum() - 1.0) > 1e-9:
        raise PreqError(f"{name} must sum to 1, got {given.sum():g}; divide them by their sum")
    return given
