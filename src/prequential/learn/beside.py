"""Inputs without labels, beside labelled ones: what they are taken for, by whom, and how surely.

The averaged network says what a weak view is, as it would predict it: q = softmax(softplus(β)·h). Its mean over inputs
is brought to the label counts so far (distribution alignment, Berthelot et al. 2020), q ← q·(counts/mean), normalised.
Where the greatest q is above a threshold, the network is trained on a strong view as if that were the label (Sohn et
al. 2020). The threshold is fixed; or relative to the mean confidence on labelled inputs (Berthelot et al. 2022); or
follows the mean confidence, for each class by how often it is predicted (Wang et al. 2023).
"""

import torch
from torch import Tensor

from prequential.learn.functional import temperature
from prequential.methods.all_inputs import AllInputs

PRIOR = 10.0
"""Labels of each class that are counted before the first."""
FOLLOWS = 0.01
"""How much of the way running means go with each step."""


class Beside:
    """What is remembered between steps: label counts so far, and running means of what is predicted."""

    def __init__(self, given: AllInputs, num_classes: int, device: torch.device) -> None:
        self._given = given
        self._classes = torch.arange(num_classes, device=device)
        self._counts = torch.full((num_classes,), PRIOR, dtype=torch.float64, device=device)
        self._mean = torch.full((num_classes,), 1 / num_classes, dtype=torch.float64, device=device)
        self._confidence = torch.full((1,), 1 / num_classes, dtype=torch.float64, device=device)

    def tensors(self) -> list[Tensor]:
        """All of it."""
        return [self._counts, self._mean, self._confidence]

    def observe(self, labels: Tensor) -> None:
        """Count labels that were just revealed."""
        self._counts.add_((labels[:, None] == self._classes).sum(0))

    def taken_for(self, outputs: Tensor, beta: Tensor, of_labelled: Tensor | None) -> tuple[Tensor, Tensor]:
        """What inputs are taken for, given the averaged network's outputs, and 1 where that is sure enough, else 0.

        Args:
            outputs: of inputs without labels.
            beta: what the temperature is made of.
            of_labelled: outputs of the labelled inputs beside them, for a relative threshold.
        """
        q = self._probabilities(outputs, beta)
        self._mean.lerp_(q.mean(0), FOLLOWS)
        aligned = q * (self._counts / self._counts.sum() / self._mean)
        confidence, classes = (aligned / aligned.sum(1, keepdim=True)).max(1)
        self._confidence.lerp_(confidence.mean(0, keepdim=True), FOLLOWS)
        return classes, (confidence >= self._least(classes, beta, of_labelled)).double()

    def _least(self, classes: Tensor, beta: Tensor, of_labelled: Tensor | None) -> Tensor | float:
        threshold = self._given.threshold
        if self._given.threshold_kind == "adaptive":
            return threshold * self._confidence * (self._mean / self._mean.max()).index_select(0, classes)
        if of_labelled is not None:
            return threshold * self._probabilities(of_labelled, beta).amax(1).mean()
        return threshold

    @staticmethod
    def _probabilities(outputs: Tensor, beta: Tensor) -> Tensor:
        return torch.softmax(temperature(beta) * outputs.double(), dim=1)

    def loss_gradient(self, outputs: Tensor, classes: Tensor, sure: Tensor) -> Tensor:
        """d/dh of the weighted mean cross-entropy of the sure ones, over all: w·sure·(softmax(h) − 1[class])/n."""
        wrong = torch.softmax(outputs, dim=1) - (classes[:, None] == self._classes).to(outputs.dtype)
        return wrong * (sure.to(outputs.dtype) * (self._given.beside_weight / len(outputs)))[:, None]
