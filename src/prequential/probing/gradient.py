"""Readouts that learn by gradients, all kinds and all learning rates of one representation as one stacked module."""

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

from prequential.learn import functional
from prequential.rng import derive

HIDDEN = {"linear": 0, "mlp1": 1, "mlp2": 2}
"""How many hidden layers each kind has."""
HIDDEN_SIZE = 128
RATES = (2e-4, 1e-3, 5e-3)
BETAS, EPSILON, WEIGHT_DECAY = (0.9, 0.999), 1e-8, 0.01
EMA_STEP_SIZE = 0.02


class GradientReadouts:
    """Softmax of a linear map, or of ReLU networks with one or two hidden layers of 128, each at three learning rates.

    Trained as runs are: AdamW on batches of the past, predictions by an average of the weights (EMA with warm-up), each
    member's logits times its own factor softplus(β), learned by forward calibration. The last layer starts at 0, so
    that the first prediction is uniform.

    Args:
        kinds: of HIDDEN.
        seed: of the initialisation; the rates of one kind start from the same weights.
        rate_factor: of the learning rate of β.
    """

    def __init__(
        self, kinds: Sequence[str], num_features: int, num_classes: int, *, seed: int, rate_factor: float = 1.0
    ) -> None:
        self.experts = tuple(f"{kind} lr={rate:g}" for kind in kinds for rate in RATES)
        self.parameters: list[Tensor] = []
        self._depths = [HIDDEN[kind] + 1 for kind in kinds]
        for kind in kinds:
            generator = torch.Generator().manual_seed(derive(seed, "readout", HIDDEN[kind]))
            sizes = [num_features, *[HIDDEN_SIZE] * HIDDEN[kind], num_classes]
            for layer, (inside, outside) in enumerate(pairwise(sizes)):
                scale = 0.0 if layer == HIDDEN[kind] else (2 / inside) ** 0.5
                weights = torch.randn(inside, outside, generator=generator) * scale
                self.parameters += [weights.repeat(len(RATES), 1, 1), torch.zeros(len(RATES), 1, outside)]
        self.averages = [parameter.clone() for parameter in self.parameters]
        self._first, self._second = ([torch.zeros_like(p) for p in self.parameters] for _ in range(2))
        self._rates = torch.tensor(RATES)[:, None, None]
        self._num_steps = 0
        self._beta = torch.full((len(self.experts),), functional.INITIAL_BETA, dtype=torch.float64)
        self._beta_state = torch.zeros(2, len(self.experts), dtype=torch.float64)
        self._beta_rates = torch.tensor(RATES, dtype=torch.float64).repeat(len(kinds)) * rate_factor
        self._num_calibrations = 0
        self._logits: Tensor | None = None

    def _forward(self, tensors: Sequence[Tensor], features: Tensor) -> Tensor:
        outputs, rest = [], list(tensors)
        for depth in self._depths:
            here = features.expand(len(RATES), *features.shape)
            for layer in range(depth):
                weights, bias = rest.pop(0), rest.pop(0)
                here = torch.baddbmm(bias, here.relu() if layer else here, weights)
            outputs.append(here)
        return torch.cat(outputs)

    @torch.no_grad()
    def predict(self, features: Tensor) -> Tensor:
        """ln p, float64: experts × rows × classes."""
        self._logits = self._forward(self.averages, features).double()
        return (nn.functional.softplus(self._beta)[:, None, None] * self._logits).log_softmax(-1)

    @torch.no_grad()
    def observe(self, features: Tensor, labels: Tensor) -> None:
        """One step of forward calibration on what was just predicted."""
        if self._logits is None or len(self._logits[0]) != len(labels):
            return
        logits, self._logits = self._logits, None
        missed = (nn.functional.softplus(self._beta)[:, None, None] * logits).softmax(-1)
        missed -= nn.functional.one_hot(labels, logits.shape[-1])
        slope = (missed * logits).sum(-1).mean(-1) * self._beta.sigmoid()
        self._num_calibrations += 1
        step = _adam([slope], [self._beta_state[0]], [self._beta_state[1]], self._num_calibrations)[0]
        self._beta -= self._beta_rates * step

    def train(self, features: Tensor, labels: Tensor) -> None:
        """One step on the mean loss of these examples, for every member."""
        leaves = [parameter.requires_grad_() for parameter in self.parameters]
        logits = self._forward(leaves, features)
        wanted = labels.expand(len(logits), -1)
        loss = nn.functional.cross_entropy(logits.transpose(1, 2), wanted, reduction="sum") / len(labels)
        gradients = torch.autograd.grad(loss, leaves)
        self._num_steps += 1
        with torch.no_grad():
            steps = _adam(list(gradients), self._first, self._second, self._num_steps)
            for parameter, step in zip(self.parameters, steps, strict=True):
                parameter.requires_grad_(False)
                parameter.addcmul_(step.add_(parameter, alpha=WEIGHT_DECAY), self._rates, value=-1)
            step_size = functional.ema_step_size(EMA_STEP_SIZE, self._num_steps, warmup=True)
            torch._foreach_lerp_(self.averages, self.parameters, step_size)


def _adam(gradients: list[Tensor], first: list[Tensor], second: list[Tensor], number: int) -> list[Tensor]:
    """Adam's step of rate 1 in place of the gradients."""
    torch._foreach_lerp_(first, gradients, 1 - BETAS[0])
    torch._foreach_mul_(second, BETAS[1])
    torch._foreach_addcmul_(second, gradients, gradients, 1 - BETAS[1])
    roots = list(torch._foreach_sqrt(second))
    torch._foreach_div_(roots, (1 - BETAS[1] ** number) ** 0.5)
    torch._foreach_add_(roots, EPSILON)
    steps = list(torch._foreach_div(first, roots))
    torch._foreach_div_(steps, 1 - BETAS[0] ** number)
    return steps
