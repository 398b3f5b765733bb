"""Many models of one architecture that learn together: the arithmetic of a training step and of a prediction."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from prequential.data.optional import capabilities
from prequential.learn import classes, functional  # noqa: F401  # classes registers what computes with them
from prequential.learn.inputs import Inputs
from prequential.learn.kinds import tensors_of
from prequential.learn.recipe import Recipe
from prequential.stack.optimizers import make_stacked_optimizer
from prequential.stack.recipe import Vectors
from prequential.stack.stackable import Bound, Structure, require_stackable
from prequential.stack.state import StackedState


class StackedModels:
    """Weights, averages, optimizers and temperatures of N models, and what happens to them in place.

    Args:
        models: freshly initialised, in train mode; only copied.
        recipes: one for each.
        inputs: how a prediction looks at its inputs.
        rate_factor: the method's factor on the learning rate of the temperatures.
        precision: "fp32", or "bf16" for networks that compute in bfloat16.
    """

    def __init__(
        self,
        models: Sequence[nn.Module],
        recipes: Sequence[Recipe],
        inputs: Inputs,
        *,
        rate_factor: float = 1.0,
        precision: str = "fp32",
    ) -> None:
        self.inputs, self.precision, self._device = inputs, precision, inputs.device
        self.settings, self.kind = Vectors(recipes, self._device), tensors_of(capabilities(inputs.data).target)
        self.structure = Structure(models)
        self.raw, self.averaged = StackedState(models), StackedState(models)
        self.leaves = {name: view.detach().requires_grad_() for name, view in self.raw.weights.items()}
        self.beta = torch.full((len(models),), functional.INITIAL_BETA, dtype=torch.float64, device=self._device)
        self._ema_step_sizes = torch.zeros_like(self.beta)
        self.optimizer = make_stacked_optimizer(self.settings, self.raw.flat)
        self.beta_optimizer = make_stacked_optimizer(self.settings, self.beta, rate_factor=rate_factor, decay=False)
        self._momenta = {
            name: torch.tensor(momenta, dtype=torch.float64, device=self._device)
            for name, momenta in self.structure.momenta.items()
        }
        self._counters = [self.raw.others[name] for name in self.structure.counted if name in self.raw.others]

    def __len__(self) -> int:
        return len(self.beta)

    def probe(self, models: Sequence[nn.Module], inputs: Tensor, name: str) -> None:
        """Refuse a model that cannot be stacked."""
        require_stackable(self.structure, models, self.raw.weights | self.raw.others, inputs, name)

    def statistics(self) -> dict[str, Tensor]:
        """Copies of the batch statistics that members move by different amounts."""
        return {name: self.raw.others[name].clone() for name in self._momenta}

    def trained(self, inputs: Tensor, labels: Tensor, keys: Tensor, *, shared: bool) -> tuple[Tensor, Tensor]:
        """Logits in train mode and the gradient of the loss there; for `inputs` and `keys` see `Structure.train`."""
        with functional.computing(self._device, self.precision):
            logits = self.structure.train(self.leaves | self.raw.others, keys, inputs, shared=shared)
        logits = logits.to(self.raw.flat.dtype)
        return logits, self.kind.loss_gradient(logits.detach(), labels, self.settings.label_smoothing)

    def move_statistics(self, before: dict[str, Tensor]) -> None:
        """Batch statistics from where they were before a step to where each member takes them."""
        for name, old in before.items():
            new = self.raw.others[name]
            new.copy_(old.lerp(new, functional.per_member(self._momenta[name], new)))
        if self._counters:
            torch._foreach_add_(self._counters, 1)
        if integers := self.raw.integers():
            torch._foreach_copy_(self.averaged.integers(), integers)

    def begin_move(self, num_steps: Tensor) -> None:
        """Find how far each member's weights and averages go in step n."""
        self.optimizer.begin(self.settings.rates(num_steps))
        self._ema_step_sizes.copy_(self.settings.ema_step_sizes(num_steps))

    def move(self, gradients: Sequence[Tensor]) -> None:
        """Weights against their gradients, then averages towards the weights."""
        self.optimizer.step(self.raw.joined(gradients))
        raw, averaged = [self.raw.flat, *self.raw.floats()], [self.averaged.flat, *self.averaged.floats()]
        are_raw = self.settings.common.batch_statistics == "raw"
        for number, (mine, theirs) in enumerate(zip(averaged, raw, strict=True)):
            mine.copy_(theirs) if number and are_raw else mine.lerp_(
                theirs, functional.per_member(self._ema_step_sizes, mine)
            )

    @torch.no_grad()
    def logits(self, inputs: Tensor) -> Tensor:
        """What the averaged weights of each member make of clean inputs, averaged over views if asked."""
        tensors = self.structure.used(self.averaged.weights | self.averaged.others)
        with functional.computing(self._device, self.precision):
            predict = torch.vmap(lambda tensors: self.inputs.logits(Bound(self.structure.predicting, tensors), inputs))
            logits: Tensor = predict(tensors)
        return logits

    @torch.no_grad()
    def calibrate(self, logits: Tensor, labels: Tensor) -> None:
        """One gradient step on each temperature."""
        gradient = torch.vmap(self.kind.calibration_gradient, (0, None, 0, None))(logits, labels, self.beta, None)
        self.beta_optimizer.begin()
        self.beta_optimizer.step(gradient)

    @torch.no_grad()
    def reinit(self, models: Sequence[nn.Module]) -> None:
        """Fresh weights, optimizers, averages and temperatures."""
        self.raw.load(models)
        self.averaged.load(models)
        self.beta.fill_(functional.INITIAL_BETA)
        self.beta_optimizer.reset()
        self.optimizer.reset()

    def shrink_perturb(self, shrink: float, perturb: float, models: Sequence[nn.Module]) -> None:
        """θ ← shrink·θ + perturb·fresh; temperatures and batch statistics stay, everything else starts anew."""
        self.raw.shrink_perturb(shrink, perturb, StackedState(models))
        self.averaged.copy_parameters(self.raw)
        self.optimizer.reset()

    def state(self) -> dict[str, list[Tensor]]:
        """Everything the next event depends on, as it is; every tensor but counters of steps has the members first."""
        tensors = {
            "raw": [self.raw.flat, *self.raw.others.values()],
            "averaged": [self.averaged.flat, *self.averaged.others.values()],
            "beta": [self.beta],
        }
        for owner, optimizer in (("weights", self.optimizer), ("beta", self.beta_optimizer)):
            tensors |= {f"{owner} {name}": [tensor] for name, tensor in optimizer.state.items()}
        return tensors
