"""What experts together say of a span, before its labels are known."""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from prequential.experts.code import Floats, MixedCode, Told
from prequential.learn.prediction import Predicted, Prediction


class MixedPrediction:
    """The predictions of several learners, mixed label by label.

    Whoever codes a label takes turns: `row`, then `tell`. A scorer needs none where all learners know their rows at
    once (`can_wait`): it reveals the labels, and whoever records what they cost asks for what was `measured`, at once
    or later, span by span in order.

    Args:
        code: what mixes.
        predictions: of each learner.
        columns: for each learner which of the experts it is.
        num_labels: of the span.
    """

    def __init__(
        self,
        code: MixedCode,
        predictions: Sequence[Predicted],
        columns: Sequence[Sequence[int]],
        num_labels: int,
    ) -> None:
        self.code, self._num_labels = code, num_labels
        both = list(zip(predictions, columns, strict=True))
        self._whole = [(each, where) for each, where in both if isinstance(each, Prediction)]
        self._stepwise = [(each, where) for each, where in both if not isinstance(each, Prediction)]
        self.can_wait = not self._stepwise
        """Whether the labels may be revealed before anything is mixed."""
        self._told = Told(code.num_experts, num_labels)
        self._known: Floats | None = None
        self._row: Floats | None = None

    @property
    def on_host(self) -> bool:
        """Whether no device has to be waited for."""
        return all(prediction.log_probabilities.device.type == "cpu" for prediction, _ in self._whole)

    @property
    def temperature(self) -> Tensor:
        """A mixture has none of its own."""
        return torch.ones((), dtype=torch.float64)

    def rows(self) -> None:
        """What is said of a label depends on the one before."""

    def row(self) -> Tensor:
        """ln p of each class for the next label."""
        experts = self.at_once()[:, self._told.number]
        for prediction, columns in self._stepwise:
            experts[columns] = prediction.row().cpu().numpy()
        self._row = self.code.row(experts)
        return torch.from_numpy(self._row)

    def tell(self, label: int) -> None:
        """The label that `row` was about."""
        assert self._row is not None
        self._told.add(self._row, label, *self.code.tell(label))
        for prediction, _ in self._stepwise:
            prediction.tell(label)

    def measured(self, labels: Tensor) -> Tensor:
        """As of a `Prediction`, with rows for the experts below (see `Told`)."""
        return torch.from_numpy(self.charged(labels.cpu().numpy()))[None]

    def charged(self, labels: NDArray[np.int64]) -> Floats:
        """The same, on the host. Labels that were not told are charged now."""
        return self._told.measured if self._told.number else self.code.charge(self.at_once(), labels)

    def at_once(self) -> Floats:
        """What is known before any label is: (experts, labels, classes)."""
        if self._known is None:
            shape = self.code.num_learners, self._num_labels, self.code.num_classes
            self._known = np.full(shape, np.nan)
            for prediction, columns in self._whole:
                rows = prediction.log_probabilities.cpu().numpy()
                self._known[columns] = rows if rows.ndim == 3 else rows[None]
        return self._known
