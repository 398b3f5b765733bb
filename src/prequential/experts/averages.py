"""One network, several averages of its weights: trained once, and each of them predicts at its own temperature."""

import copy
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from prequential.data.sequence import DataSequence
from prequential.learn import functional
from prequential.learn.all_inputs import FromAllInputs
from prequential.learn.learner import EmaTensors, Learner
from prequential.learn.optimizers import make_optimizer
from prequential.learn.prediction import Prediction
from prequential.learn.recipe import Recipe
from prequential.models import ModelFactory


class AveragedLearner(Learner):
    """A learner whose predictions come from several averages, which are the first axis of every tensor.

    Each says what a `Learner` with that step size of the EMA says. Where batch normalisation averages its statistics
    by the EMA alone, the largest step size decides whether it is slow enough for that.

    Args:
        factory, data, recipe, settings: those of a `Learner`.
        averages: the step sizes.
    """

    def __init__(
        self,
        factory: str | ModelFactory,
        data: DataSequence,
        recipe: Recipe,
        *,
        averages: Sequence[float],
        **settings: Any,
    ) -> None:
        self.averages = averages
        super().__init__(factory, data, replace(recipe, ema_step_size=max(averages)), **settings)

    def _build(self, calibration_rate_factor: float) -> None:
        super()._build(calibration_rate_factor)
        others: list[nn.Module] = [copy.deepcopy(self.averaged) for _ in self.averages[1:]]
        self._predicting = [self.averaged, *others]
        self._emas = [self.ema_tensors, *(EmaTensors(model, self.recipe) for model in others)]
        self.tensors_of_models = self.raw_tensors, *self._emas
        self.beta = torch.full((len(self.averages),), functional.INITIAL_BETA, dtype=torch.float64, device=self.device)
        self._betas = list(self.beta.unbind())  # each is moved as that of a learner alone would be, to the last bit
        self.beta_optimizer = make_optimizer(self.recipe, self._betas, rate_factor=calibration_rate_factor, decay=False)

    def finite(self) -> list[bool]:
        """For each average, whether it is made of finite numbers."""
        return [all(bool(tensor.isfinite().all()) for tensor in ema.averaged) for ema in self._emas]

    def logits(self, inputs: Tensor) -> Tensor:
        """What each average makes of clean inputs."""
        with self.computing():
            return torch.stack([self.inputs.logits(model, inputs) for model in self._predicting])

    def predicted(self, logits: Tensor) -> Prediction:
        """Of each average, at its temperature."""
        each = [self.kind.prediction(own, beta) for own, beta in zip(logits, self._betas, strict=True)]
        parts = ("log_probabilities", "uncalibrated", "temperature")
        return Prediction(*(torch.stack([getattr(prediction, part) for prediction in each]) for part in parts))

    def calibrate_on(self, logits: Tensor, labels: Tensor, count: Tensor | None = None) -> None:
        both = zip(logits, self._betas, strict=True)
        self.beta_optimizer.step([self.kind.calibration_gradient(own, labels, beta, count) for own, beta in both])

    def _average(self, step_size: float, ema: EmaTensors) -> None:
        for own, follower in zip(self.averages, self._emas, strict=True):
            super()._average(own, follower)


class AveragedFromAllInputs(FromAllInputs, AveragedLearner):
    """The same for a learner that is given all inputs: one study, and one training with inputs beside labelled ones,
    which are taken for what the first average says at its temperature. So the first average says what a learner with
    that step size says alone; the others are averages of the network which that one taught.

    Args:
        arguments, settings: those of a `FromAllInputs` and of an `AveragedLearner`.
    """

    @property
    def beta_of_teacher(self) -> Tensor:
        return self._betas[0]
