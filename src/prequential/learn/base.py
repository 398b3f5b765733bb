"""What learners of one model and of many share: their settings, held-out data, and a state to go back to."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor, nn

from prequential.data.optional import capabilities
from prequential.data.sequence import DataSequence
from prequential.events import Indices
from prequential.learn import built, classes, functional  # noqa: F401  # classes registers what computes with them
from prequential.learn.inputs import Inputs
from prequential.learn.kinds import tensors_of
from prequential.learn.prediction import Prediction, heldout_parts
from prequential.learn.probe import probe_model
from prequential.learn.randomness import FOREIGN, seeded
from prequential.learn.recipe import Recipe
from prequential.models import ModelFactory, name_of

SLOW_ENOUGH = 0.1
"""The largest step of the EMA that averages enough batches for batch-norm statistics."""


class Tensors(Protocol):
    """The tensors of a model, or of many."""

    all: list[Tensor]
    parameters: list[Tensor]


class BaseLearner(ABC):
    """Whoever derives from it says what happens to tensors; see `prequential.learn.learning.Learning`.

    Args:
        factory: a model's name or a function that returns a fresh nn.Module.
        data: where inputs come from. Labels are handed in with each event.
        recipe: the settings of training; of many models those of the first.
        seed: of initialisation, dropout and perturbation; of many models that of the first.
        calibration_rate_factor: the method's factor on the learning rate of the temperature.
        width: scales the layers of models that have a width.
        precision: "fp32", or "bf16" for networks that compute in bfloat16.
        compiled: whether torch.compile fuses the kernels of training steps.
        deterministic: whether its events must give the same bits each time (`environment.repeatable`).
        dtype: of weights and of everything that is not computed in bfloat16.
    """

    engine: str
    model: nn.Module
    beta: Tensor
    """What the temperature is made of; of many models, a vector along them."""
    optimizer: Any
    beta_optimizer: Any
    tensors_of_models: tuple[Tensors, ...]
    """The raw ones, which are trained, and averaged ones, which predict."""
    fallback: str | None = None
    """What it was asked to do and could not, and why."""
    generators: Sequence[torch.Generator] = ()
    """What its networks draw from when they are trained, if they do."""
    steps_at_once = 64
    """How many training steps it likes to be given together."""
    lane: torch.cuda.Stream | None = None
    """Where its steps may run while other learners' do (`prequential.learn.lanes`)."""

    def __init__(
        self,
        factory: str | ModelFactory,
        data: DataSequence,
        recipe: Recipe,
        *,
        seed: int,
        calibration_rate_factor: float = 1.0,
        width: float = 1.0,
        device: torch.device | str = "cpu",
        precision: str = "fp32",
        compiled: bool = False,
        deterministic: bool = False,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        self.factory, self.data, self.recipe, self.seed, self.width = factory, data, recipe, seed, width
        self.device, self.dtype = torch.device(device), dtype
        self.precision, self.compiled, self.deterministic = precision, compiled, deterministic
        self.target = capabilities(data).target
        self.kind = tensors_of(self.target)
        self.inputs = Inputs(data, recipe, seed=seed, device=self.device, dtype=dtype)
        self.num_steps = 0
        self.drew_on: frozenset[str] = frozenset({self.device.type})
        self._at_hand: tuple[Indices, Callable[[Tensor], None]] | None = None
        self._build(calibration_rate_factor)

    @abstractmethod
    def _build(self, calibration_rate_factor: float) -> None:
        """Make models, averages, optimizers and temperatures."""

    @abstractmethod
    def _fresh_tensors(self, event: int) -> Tensors:
        """Those of models that know nothing."""

    def _fresh_model(self, event: int, recipe: Recipe, seed: int) -> nn.Module:
        """A model in train mode, on its device and in its layout, initialised by seed and event alone."""
        with seeded(seed, "initialise", event, self.device, FOREIGN):
            model = self._built()
        model.to(self.device, self.dtype).train()
        self.inputs.suit(model)
        for parameter in model.parameters():
            if parameter.dim() == 4:  # cloned, because `contiguous` keeps the strides of a single channel as they are
                parameter.data = parameter.data.clone(memory_format=torch.channels_last)
        if recipe.batch_statistics == "averaged" and recipe.ema_step_size <= SLOW_ENOUGH:
            for layer in model.modules():
                if isinstance(layer, nn.modules.batchnorm._BatchNorm) and layer.momentum is not None:
                    layer.momentum = 1.0
        return model

    def _built(self) -> nn.Module:
        """A new model, as it is built."""
        return built.built_for(self.factory, self.data, self.target, self.width, self.inputs.scale)

    def probe(self, num_examples: int) -> None:
        """Try the model on a batch of that size before any work is done, and see whether it draws."""
        inputs = self.inputs.clean(np.zeros(num_examples, np.int64))
        with self.computing():
            self.drew_on = probe_model(self.model, inputs, self.target, name_of(self.factory))

    def computing(self) -> AbstractContextManager[object]:
        """Inside, networks compute in the learner's precision."""
        if self.precision == "fp32":
            return nullcontext()
        return torch.autocast(self.device.type, torch.bfloat16, cache_enabled=False)

    @abstractmethod
    def logits(self, inputs: Tensor) -> Tensor:
        """What the averaged weights make of clean inputs; averaged over views if asked."""

    @abstractmethod
    def calibrate_on(self, logits: Tensor, labels: Tensor, count: Tensor | None = None) -> None:
        """One gradient step on each β, by the first `count` (None: all) of these logits; gradients are off already."""

    @torch.no_grad()
    def predict(self, start: int, stop: int) -> Prediction:
        """Averaged weights, eval mode, clean input; where there are members, every tensor has them first."""
        positions = np.arange(start, stop)
        prediction, calibrate = self._predict_at(positions)
        self._at_hand = positions, calibrate
        return prediction

    def _predict_at(self, positions: Indices) -> tuple[Prediction, Callable[[Tensor], None]]:
        """What is said of these positions, and how to calibrate on it when the labels are known."""
        logits = self.logits(self.inputs.clean(positions))
        return self.predicted(logits), partial(self.calibrate_on, logits)

    def predicted(self, logits: Tensor) -> Prediction:
        """What these logits say at the temperatures of now."""
        return self.kind.prediction(logits, self.beta)

    def predict_uniformly(self, start: int, stop: int) -> Prediction:
        """As one who knows nothing."""
        return self.kind.uniform(stop - start, self.device)

    @torch.no_grad()
    def calibrate(self, indices: Indices, labels: Tensor) -> None:
        """One gradient step on each β; the logits of the prediction just made are used again."""
        if self._at_hand is not None and np.array_equal(indices, self._at_hand[0]):
            self._at_hand[1](labels)
        else:
            self._forget()
            self._predict_at(indices)[1](labels)

    def observe(self, start: int, stop: int, labels: Tensor) -> None:  # noqa: B027  # most have nothing to do here
        """It learns by events alone."""

    @torch.no_grad()
    def evaluate(self) -> list[dict[str, float]] | None:
        """For each member mean loss in nats and error rate on the held-out data, predicted as the sequence is."""
        heldout = self.data.heldout
        if heldout is None:
            return None
        loss, errors = (torch.zeros(1, dtype=kind, device=self.device) for kind in (torch.float64, torch.int64))
        for positions in heldout_parts(len(heldout), self.device):
            measured = self.predict_heldout(positions).measured(heldout.labels(positions).to(self.device))
            nats, _, wanted, predicted, _ = measured.unbind(1)
            loss, errors = loss + nats.sum(1), errors + (predicted != wanted).sum(1)
        both = zip(loss.tolist(), errors.tolist(), strict=True)
        return [{"loss": nats / len(heldout), "error_rate": wrong / len(heldout)} for nats, wrong in both]

    @torch.no_grad()
    def predict_heldout(self, positions: Indices) -> Prediction:
        """What is said of these held-out examples."""
        assert self.data.heldout is not None
        return self.predicted(self.logits(self.inputs.prepared(self.data.heldout.inputs(positions))))

    @torch.no_grad()
    def reinit(self, event: int) -> None:
        """Fresh weights, optimizers, averages and temperatures."""
        fresh = self._fresh_tensors(event)
        for mine in self.tensors_of_models:
            for target, source in zip(mine.all, fresh.all, strict=True):
                target.copy_(source)
        self.beta.fill_(functional.INITIAL_BETA)
        self.beta_optimizer.reset()
        self._restart()

    @torch.no_grad()
    def shrink_perturb(self, shrink: float, perturb: float, event: int) -> None:
        """θ ← shrink·θ + perturb·fresh; temperatures and batch statistics stay, everything else starts anew."""
        beside = (*self.tensors_of_models, self._fresh_tensors(event))
        for raw, *averaged, new in zip(*(tensors.parameters for tensors in beside), strict=True):
            raw.mul_(shrink).add_(new, alpha=perturb)
            torch._foreach_copy_(averaged, [raw] * len(averaged))
        self._restart()

    def _restart(self) -> None:
        self.optimizer.reset()
        self.num_steps = 0
        self._forget()

    def tensors(self) -> dict[str, list[Tensor]]:
        """Everything the next event depends on, as it is: for one who writes it down at once, since a GPU may have no
        room for copies."""
        raw, *averages = self.tensors_of_models
        tensors = {"raw": raw.all, "averaged": [t for each in averages for t in each.all], "beta": [self.beta]}
        for owner, optimizer in (("weights", self.optimizer), ("beta", self.beta_optimizer)):
            for name, values in optimizer.state.items():
                tensors[f"{owner} {name}"] = values if isinstance(values, list) else [values]
        return tensors | {"num_steps": [torch.tensor(self.num_steps)]}

    def state(self) -> dict[str, list[Tensor]]:
        """The same as copies: put back by `restore`."""
        return {name: [tensor.clone() for tensor in tensors] for name, tensors in self.tensors().items()}

    @torch.no_grad()
    def restore(self, state: dict[str, list[Tensor]]) -> None:
        """Go back to a `state` of a learner with the same settings."""
        for name, tensors in self.tensors().items():
            for target, source in zip(tensors, state[name], strict=True):
                target.copy_(source)
        self.num_steps = int(state["num_steps"][0])
        self._forget()

    def _forget(self) -> None:
        """The logits of the last prediction are of no use any more."""
        self._at_hand = None

    def close(self) -> None:
        """Let go of what only speed needed."""
        self._forget()
