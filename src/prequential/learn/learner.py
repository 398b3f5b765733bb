"""The learner: weights, optimizer, EMA and temperature. It executes events and sees no future label."""

import copy
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.parameter import is_lazy

from prequential.data.sequence import DataSequence, to_network_input
from prequential.events import Indices
from prequential.files import digest_of
from prequential.learn import functional
from prequential.learn.inputs import Inputs
from prequential.learn.optimizers import make_optimizer, reset
from prequential.learn.probe import probe_model
from prequential.learn.randomness import seeded
from prequential.learn.recipe import Recipe
from prequential.models import ModelFactory, build, name_of
from prequential.plan import is_span

EVALUATION_SIZE = 512
SLOW_ENOUGH = 0.1
"""The largest step of the EMA that averages enough batches for batch-norm statistics."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """What the learner says about a span before it sees the labels; tensors on its device."""

    log_probabilities: Tensor
    """Calibrated, float64, one row per position: what is charged."""
    uncalibrated: Tensor
    """The same at temperature 1."""
    temperature: Tensor
    """softplus(β), the factor on the logits."""


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
    """

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
        dtype: torch.dtype = torch.float32,
    ) -> None:
        self.factory, self.data, self.recipe, self.seed, self.width = factory, data, recipe, seed, width
        self.device, self.dtype = torch.device(device), dtype
        self.inputs = Inputs(data, recipe, seed=seed, device=self.device, dtype=dtype)
        self.model = self._fresh_model(event=-1).train()
        self.averaged = copy.deepcopy(self.model).eval().requires_grad_(False)
        self._parameters = [p for p in self.model.parameters() if p.requires_grad]
        self._weights = [p.detach() for p in self._parameters]
        self._tracked = _tensors(self.model, floating=True), _tensors(self.averaged, floating=True)
        self._copied = _tensors(self.model, floating=False), _tensors(self.averaged, floating=False)
        self.beta = torch.tensor(functional.INITIAL_BETA, dtype=torch.float64, device=self.device)
        self.optimizer = make_optimizer(recipe, self._weights)
        self.beta_optimizer = make_optimizer(recipe, [self.beta], rate_factor=calibration_rate_factor, decay=False)
        self.num_steps = 0
        self._draws = True
        self._at_hand: tuple[tuple[int, int], Tensor] | None = None

    def probe(self, num_examples: int) -> None:
        """Try the model on a batch of that size before any work is done, and see whether it draws."""
        inputs = self.inputs.clean(np.zeros(num_examples, np.int64))
        self._draws = probe_model(self.model, inputs, self.data.num_classes, name_of(self.factory))

    def fingerprint(self) -> str:
        """Of the model as it stands: its layers as printed, its parameters and buffers."""
        tensors = (*self.model.parameters(), *self.model.buffers())
        content = b"".join(tensor.detach().cpu().contiguous().numpy().tobytes() for tensor in tensors)
        return digest_of(repr(self.model).encode() + content)

    def is_finite(self) -> bool:
        """Whether every averaged weight is a finite number."""
        return all(bool(tensor.isfinite().all()) for tensor in self._tracked[1])

    def _fresh_model(self, event: int) -> nn.Module:
        with seeded(self.seed, "initialise", event, self.device):
            model = build(self.factory, self.data.input_shape, self.data.num_classes, width=self.width)
            if any(is_lazy(tensor) for tensor in (*model.parameters(), *model.buffers())):
                model.eval()(to_network_input(self.data.inputs(np.zeros(1, np.int64))))
        model.to(self.device, self.dtype).train()
        for parameter in model.parameters():
            if parameter.dim() == 4:  # cloned, because `contiguous` keeps the strides of a single channel as they are
                parameter.data = parameter.data.clone(memory_format=torch.channels_last)
        if self.recipe.fast_statistics and self.recipe.ema_step_size <= SLOW_ENOUGH:
            for layer in model.modules():
                if isinstance(layer, nn.modules.batchnorm._BatchNorm) and layer.momentum is not None:
                    layer.momentum = 1.0
        return model

    @torch.no_grad()
    def predict(self, start: int, stop: int) -> Prediction:
        """Averaged weights, eval mode, clean input."""
        logits = self._predicted(np.arange(start, stop))
        self._at_hand = (start, stop), logits
        return Prediction(
            functional.log_probabilities(logits, self.beta),
            F.log_softmax(logits.double(), dim=-1),
            functional.temperature(self.beta),
        )

    def _predicted(self, positions: Indices) -> Tensor:
        return self.inputs.logits(self.averaged, self.inputs.clean(positions))

    def predict_uniformly(self, start: int, stop: int) -> Prediction:
        """Probability 1/C for every class."""
        shape, num_classes = (stop - start, self.data.num_classes), self.data.num_classes
        flat = torch.full(shape, -float(np.log(num_classes)), dtype=torch.float64, device=self.device)
        return Prediction(flat, flat, torch.ones((), dtype=torch.float64, device=self.device))

    @torch.no_grad()
    def calibrate(self, indices: Indices, labels: Tensor) -> None:
        """One gradient step on β; the logits of the prediction just made are used again."""
        if self._at_hand is not None and is_span(indices, self._at_hand[0]):
            logits = self._at_hand[1]
        else:
            logits = self._predicted(indices)
        gradient = functional.calibration_gradient(logits, labels, self.beta)
        self.beta_optimizer.step([gradient])

    def train(self, indices: Indices, labels: Tensor, event: int) -> None:
        """One gradient step on the raw weights, then one step of the average towards them."""
        self._at_hand = None
        if self._draws:
            with seeded(self.seed, "train", event, self.device):
                self._train(indices, labels, event)
        else:
            self._train(indices, labels, event)

    def _train(self, indices: Indices, labels: Tensor, event: int) -> None:
        logits = self.model(self.inputs.training(indices, event))
        slope = functional.cross_entropy_gradient(logits.detach(), labels, self.recipe.label_smoothing)
        gradients = torch.autograd.grad(logits, self._parameters, slope, materialize_grads=True)
        self.num_steps += 1
        step_size = functional.ema_step_size(self.recipe.ema_step_size, self.num_steps, warmup=self.recipe.ema_warmup)
        with torch.no_grad():
            self.optimizer.step(list(gradients))
            raw, averaged = self._tracked
            torch._foreach_lerp_(averaged, raw, step_size)
            if self._copied[0]:
                torch._foreach_copy_(self._copied[1], self._copied[0])

    @torch.no_grad()
    def reinit(self, event: int) -> None:
        """Fresh weights, optimizer, EMA and temperature."""
        fresh = self._fresh_model(event)
        for mine in (self.model, self.averaged):
            for floating in (True, False):
                targets, sources = _tensors(mine, floating=floating), _tensors(fresh, floating=floating)
                for target, source in zip(targets, sources, strict=True):
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
        return {name: [tensor.clone() for tensor in tensors] for name, tensors in self._state().items()} | {
            "num_steps": [torch.tensor(self.num_steps)]
        }

    @torch.no_grad()
    def restore(self, state: dict[str, list[Tensor]]) -> None:
        """Go back to a `state` of a learner with the same settings."""
        for name, tensors in self._state().items():
            for target, source in zip(tensors, state[name], strict=True):
                target.copy_(source)
        self.num_steps = int(state["num_steps"][0])
        self._at_hand = None

    def _state(self) -> dict[str, list[Tensor]]:
        tensors = {
            "raw": self._tracked[0] + self._copied[0],
            "averaged": self._tracked[1] + self._copied[1],
            "beta": [self.beta],
        }
        for owner, optimizer in (("weights", self.optimizer), ("beta", self.beta_optimizer)):
            tensors |= {f"{owner} {name}": values for name, values in optimizer.state.items()}
        return tensors

    def _restart(self) -> None:
        reset(self.optimizer)
        self.num_steps = 0
        self._at_hand = None

    @torch.no_grad()
    def evaluate(self) -> dict[str, float] | None:
        """Mean loss and error rate on the held-out data, predicted as the sequence is."""
        heldout = self.data.heldout
        if heldout is None:
            return None
        loss, errors = 0.0, 0
        for start in range(0, len(heldout), EVALUATION_SIZE):
            positions = np.arange(start, min(start + EVALUATION_SIZE, len(heldout)))
            labels = heldout.labels(positions).to(self.device)
            logits = self.inputs.logits(self.averaged, self.inputs.prepared(heldout.inputs(positions)))
            log_probabilities = functional.log_probabilities(logits, self.beta)
            loss -= float(log_probabilities.gather(1, labels[:, None]).sum())
            errors += int((log_probabilities.argmax(1) != labels).sum())
        return {"loss": loss / len(heldout), "error_rate": errors / len(heldout)}


def _tensors(model: nn.Module, *, floating: bool) -> list[Tensor]:
    """Parameters and buffers, floating or not, as tensors that share memory with the model."""
    tensors = [*model.parameters(), *model.buffers()]
    return [tensor.detach() for tensor in tensors if tensor.is_floating_point() == floating]
