"""One code from the predictions of several: what is mixed on the host, label by label. No torch."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from prequential.experts.codes import SimpleCodes
from prequential.mixers import Mixer
from prequential.mixers.kept import kept_after
from prequential.mixers.mixing import NobodyLeftError

Floats = NDArray[np.float64]
NUM_MEASURED = 5
"""Rows of what is measured of a prediction, before those of the experts; see `Prediction.measured`."""


class MixedCode:
    """The mixing of a run, and the simple codes among its experts: everything that goes label by label and that no
    device is needed for. Scorer, encoder and decoder go through `row` and `tell` alike, so they have the same bits.

    Args:
        mixer: its settings.
        num_learners: predictions that come from learners; simple codes are experts after those.
        num_classes: of each of them.
        length: labels in the sequence.
        simple_codes: whether there are any.
    """

    def __init__(self, mixer: Mixer, num_learners: int, num_classes: int, length: int, *, simple_codes: bool) -> None:
        self.codes = SimpleCodes(num_classes) if simple_codes else None
        self.num_learners, self.num_classes = num_learners, num_classes
        self.num_experts = num_learners + (len(SimpleCodes.names) if simple_codes else 0)
        self.mixing = mixer.begin(self.num_experts, num_classes)
        self._experts = np.empty((self.num_experts, num_classes))
        self._kept = set(kept_after(length).tolist())
        self._is_lost = False

    def row(self, learners: Floats) -> Floats:
        """ln p of each class by the mixture, given those of the learners; no numbers once no expert is left."""
        self._experts[: self.num_learners] = learners
        if self.codes is not None:
            self._experts[self.num_learners :] = self.codes.rows()
        try:
            return self.mixing.row(self._experts)
        except NobodyLeftError:
            self._is_lost = True
            return np.full(self._experts.shape[1], np.nan)

    def tell(self, label: int) -> tuple[Floats, Floats | None]:
        """The label that `row` was about; gives what each expert said of it, and how much each is trusted afterwards,
        at the labels where that is kept."""
        weights = None
        if not self._is_lost:
            self.mixing.tell(label)
            if self.mixing.position in self._kept:
                weights = self.mixing.weights
        if self.codes is not None:
            self.codes.tell(label)
        return self._experts[:, label], weights

    def charge(self, learners: Floats, labels: NDArray[np.int64]) -> Floats:
        """What is measured at each position (see `Told`), where all is known at once: predictions (learners, positions,
        classes) and labels."""
        told = Told(self.num_experts, len(labels))
        for position, label in enumerate(labels.tolist()):
            row = self.row(learners[:, position])
            told.add(row, label, *self.tell(label))
        return told.measured

    def heldout(self, learners: Floats, labels: NDArray[np.int64]) -> tuple[float, int]:
        """Nats and errors where nothing more is learned: each label is predicted as the one after the last would be."""
        nats, errors = 0.0, 0
        for position, label in enumerate(labels.tolist()):
            row = self.row(learners[:, position])
            nats -= float(row[label])
            errors += int(row.argmax() != label)
        return nats, errors

    def state(self) -> dict[str, NDArray[Any]]:
        """Everything that later labels depend on."""
        codes = {} if self.codes is None else self.codes.state()
        mixing = {f"mixing {name}": values for name, values in self.mixing.state().items()}
        return mixing | {f"codes {name}": values for name, values in codes.items()}

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Go back to a `state`."""
        parts: dict[str, dict[str, NDArray[Any]]] = {"mixing": {}, "codes": {}}
        for name, values in state.items():
            part, _, own = name.partition(" ")
            parts[part][own] = values
        self.mixing.restore(parts["mixing"])
        if self.codes is not None:
            self.codes.restore(parts["codes"])


class Told:
    """What was charged, label by label."""

    def __init__(self, num_experts: int, num_labels: int) -> None:
        self.measured = np.full((NUM_MEASURED + 2 * num_experts, num_labels), np.nan)
        """As of a `Prediction`, and below it the nats of each expert and then its weight; a column for each label."""
        self.number = 0

    def add(self, row: Floats, label: int, experts: Floats, weights: Floats | None) -> None:
        """A label, what was said of it, and what `MixedCode.tell` gave. Nothing is calibrated but the experts."""
        column, first = self.measured[:, self.number], NUM_MEASURED + len(experts)
        predicted = int(row.argmax())
        column[:NUM_MEASURED] = -row[label], -row[label], label, predicted, np.exp(row[predicted])
        np.negative(experts, out=column[NUM_MEASURED:first])
        if weights is not None:
            column[first:] = weights
        self.number += 1
