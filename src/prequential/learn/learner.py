"""The learner: weights, optimizer, EMA and temperature. It executes events and sees no future label."""

import copy
from contextlib import AbstractContextManager

import numpy as np
import torch
from torch import Tensor, nn

from prequential.data.optional import capabilities
from prequential.data.sequence import DataSequence
from prequential.events import Indices
from prequential.learn import classes, functional  # noqa: F401  # classes registers what computes with them
from prequential.learn.fresh import averaged_and_copied, fingerprint_of, fresh_model
from prequential.learn.heldout import losses_and_errors
from prequential.learn.inputs import Inputs
from prequential.learn.kinds import tensors_of
from prequential.learn.optimizers import make_optimizer, reset
from prequential.learn.prediction import Prediction
from prequential.learn.probe import probe_model
from prequential.learn.randomness import generators, seeded
from prequential.learn.recipe import Recipe
from prequential.models import ModelFactory, name_of
from prequential.plan import is_span


class Learner:
    """The eager engine: plain torch, one event at a time, on CPU or GPU.

    Everything random is derived from `seed` and the number of the event, so a learner is a pure
    function of its arguments and the events it was given.

    Args:
        factory: a model's name or a function that returns a fresh nn.Module.
        data: where inputs come from. Labels are handed in with each event.
        recipe: the settings of training.
        seed: initialisation, dropout and perturbation.
        calibration_rate_factor: the method's factor on the learning rate of the temperature.
        precision: "fp32", or "bf16" for networks that compute in bfloat16.
        deterministic: whether its events must give the same bits each time (`environment.repeatable`).
        dtype: of weights and of everything that is not computed in bfloat16.
    """

    engine = "eager"
    compiled = False
    fallback: str | None = None
    steps_at_once = 1
    """How many training steps it likes to be given together."""

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
        deterministic: bool = False,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        self.factory, self.data, self.recipe, self.seed, self.width = factory, data, recipe, seed, width
        self.device, self.dtype = torch.device(device), dtype
        self.precision, self.deterministic = precision, deterministic
        self.target = capabilities(data).target
        self.kind = tensors_of(self.target)
        self.inputs = Inputs(data, recipe, seed=seed, device=self.device, dtype=dtype)
        self.model = self._fresh_model(event=-1).train()
        self.averaged = copy.deepcopy(self.model).eval().requires_grad_(False)
        self.parameters = [p for p in self.model.parameters() if p.requires_grad]
        self._weights = [p.detach() for p in self.parameters]
        raw, averaged = (averaged_and_copied(model, recipe) for model in (self.model, self.averaged))
        self.tracked, self.copied = (raw[0], averaged[0]), (raw[1], averaged[1])
        self.beta = torch.tensor(functional.INITIAL_BETA, dtype=torch.float64, device=self.device)
        self.optimizer = make_optimizer(recipe, self._weights)
        self.beta_optimizer = make_optimizer(recipe, [self.beta], rate_factor=calibration_rate_factor, decay=False)
        self.num_steps = 0
        self.drew_on: frozenset[str] = frozenset({self.device.type})
        self._at_hand: tuple[tuple[int, int], Tensor] | None = None
        self.generators = generators(self.device)

    def probe(self, num_examples: int) -> None:
        """Try the model on a batch of that size before any work is done, and see whether it draws."""
        inputs = self.inputs.clean(np.zeros(num_examples, np.int64))
        with self.computing():
            self.drew_on = probe_model(self.model, inputs, self.target, name_of(self.factory))

    def fingerprints(self) -> list[str]:
        """Of the model as it stands."""
        return [fingerprint_of(self.model)]

    def finite(self) -> list[bool]:
        """Whether every averaged weight is a finite number."""
        return [all(bool(tensor.isfinite().all()) for tensor in self.tracked[1])]

    def _fresh_model(self, event: int) -> nn.Module:
        return fresh_model(
            self.factory,
            self.data,
            self.recipe,
            seed=self.seed,
            event=event,
            width=self.width,
            device=self.device,
            dtype=self.dtype,
        )

    def computing(self) -> AbstractContextManager[object]:
        """Inside, networks compute in the learner's precision."""
        return functional.computing(self.device, self.precision)

    @torch.no_grad()
    def predict(self, start: int, stop: int) -> Prediction:
        """Averaged weights, eval mode, clean input."""
        logits = self._predicted(np.arange(start, stop))
        self._at_hand = (start, stop), logits
        return self.kind.prediction(logits, self.beta)

    def _predicted(self, positions: Indices) -> Tensor:
        return self.logits(self.inputs.clean(positions))

    def logits(self, inputs: Tensor) -> Tensor:
        """What the averaged weights make of clean inputs; averaged with those of the mirrored ones if asked."""
        with self.computing():
            return self.inputs.logits(self.averaged, inputs)

    def predict_uniformly(self, start: int, stop: int) -> Prediction:
        """As one who knows nothing."""
        return self.kind.uniform(stop - start, self.device)

    def observe(self, start: int, stop: int, labels: Tensor) -> None:
        """It learns by events alone."""

    @torch.no_grad()
    def calibrate(self, indices: Indices, labels: Tensor) -> None:
        """One gradient step on β; the logits of the prediction just made are used again."""
        if self._at_hand is not None and is_span(indices, self._at_hand[0]):
            logits = self._at_hand[1]
        else:
            logits = self._predicted(indices)
        gradient = self.kind.calibration_gradient(logits, labels, self.beta, None)
        self.beta_optimizer.step([gradient])

    def train_steps(self, batches: Indices, labels: Tensor, event: int) -> None:
        """Training steps one after the other, a row of both arguments each; `event` is the number of the first."""
        for number, indices in enumerate(batches):
            self.train(indices, labels[number], event + number)

    def train(self, indices: Indices, labels: Tensor, event: int) -> None:
        """One gradient step on the raw weights, then one step of the average towards them."""
        self._forget()
        if self.drew_on:
            with seeded(self.seed, "train", event, self.device):
                self._train(indices, labels, event)
        else:
            self._train(indices, labels, event)

    def _train(self, indices: Indices, labels: Tensor, event: int) -> None:
        inputs = self.inputs.training(indices, event)
        with self.computing():
            logits = self.model(inputs).to(self.dtype)
        slope = self.kind.slope(logits.detach(), labels, self.recipe.label_smoothing)
        gradients = torch.autograd.grad(logits, self.parameters, slope, materialize_grads=True)
        self.num_steps += 1
        step_size = functional.ema_step_size(self.recipe.ema_step_size, self.num_steps, warmup=self.recipe.ema_warmup)
        rate = functional.learning_rate(
            self.recipe.learning_rate, self.num_steps, full_steps=self.recipe.full_rate_steps
        )
        with torch.no_grad():
            self.optimizer.step(list(gradients), rate)
            raw, averaged = self.tracked
            torch._foreach_lerp_(averaged, raw, step_size)
            if self.copied[0]:
                torch._foreach_copy_(self.copied[1], self.copied[0])

    @torch.no_grad()
    def reinit(self, event: int) -> None:
        """Fresh weights, optimizer, EMA and temperature."""
        fresh = self._fresh_model(event)
        for mine in (self.model, self.averaged):
            tensors, theirs = (averaged_and_copied(model, self.recipe) for model in (mine, fresh))
            for target, source in zip(tensors[0] + tensors[1], theirs[0] + theirs[1], strict=True):
                target.copy_(source)
        self.beta.fill_(functional.INITIAL_BETA)
        reset(self.beta_optimizer)
        self._restart()

    @torch.no_grad()
    def shrink_perturb(self, shrink: float, perturb: float, event: int) -> None:
        """θ ← shrink·θ + perturb·fresh; β and batch statistics stay, everything else starts anew."""
        fresh = self._fresh_model(event)
        for raw, averaged, new in zip(
            self.model.parameters(), self.averaged.parameters(), fresh.parameters(), strict=True
        ):
            raw.mul_(shrink).add_(new, alpha=perturb)
            averaged.copy_(raw)
        self._restart()

    def state(self) -> dict[str, list[Tensor]]:
        """Everything the next event depends on, as copies: put back by `restore`."""
        return {name: [tensor.clone() for tensor in tensors] for name, tensors in self.tensors().items()}

    def tensors(self) -> dict[str, list[Tensor]]:
        """The same as it is, for one who writes it down at once."""
        return self._state() | {"num_steps": [torch.tensor(self.num_steps)]}

    @torch.no_grad()
    def restore(self, state: dict[str, list[Tensor]]) -> None:
        """Go back to a `state` of a learner with the same settings."""
        for name, tensors in self._state().items():
            for target, source in zip(tensors, state[name], strict=True):
                target.copy_(source)
        self.num_steps = int(state["num_steps"][0])
        self._forget()

    def _state(self) -> dict[str, list[Tensor]]:
        tensors = {
            "raw": self.tracked[0] + self.copied[0],
            "averaged": self.tracked[1] + self.copied[1],
            "beta": [self.beta],
        }
        for owner, optimizer in (("weights", self.optimizer), ("beta", self.beta_optimizer)):
            tensors |= {f"{owner} {name}": values for name, values in optimizer.state.items()}
        return tensors

    def close(self) -> None:
        """Nothing is held that only speed needed."""

    def _forget(self) -> None:
        """The logits of the last prediction are of no use any more."""
        self._at_hand = None

    def _restart(self) -> None:
        reset(self.optimizer)
        self.num_steps = 0
        self._forget()

    def evaluate(self) -> list[dict[str, float]] | None:
        """Mean loss and error rate on the held-out data, predicted as the sequence is."""
        if self.data.heldout is None:
            return None

        def predict(stored: Tensor) -> Prediction:
            return self.kind.prediction(self.logits(self.inputs.prepared(stored)), self.beta)

        return losses_and_errors(self.data.heldout, predict, self.device)
