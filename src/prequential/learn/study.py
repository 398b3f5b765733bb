"""A study: what a network learns from inputs alone, by momentum contrast.

Two views of an input should be told from those of all others (He et al. 2020; as Chen, Xie & He 2021 without a queue):
with q of a view by the network, projected and predicted, and k of the other view by an average of the network,

    loss = −ln exp(q·k₊/τ) / Σ exp(q·k/τ), over the views of a batch, both ways.
"""

import copy
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from prequential.data.augment import Pipeline
from prequential.learn import functional
from prequential.learn.inputs import channels_last
from prequential.learn.last_layer import last_layer_of
from prequential.learn.optimizers import make_optimizer
from prequential.learn.recipe import Recipe
from prequential.methods.all_inputs import AllInputs

Computing = Callable[[], AbstractContextManager[object]]
WIDEST, LONGEST = 2048, 256
"""Of the projection: its hidden layer, and what is compared."""
FOLLOWS = 0.01
"""How much of the way the average goes in the first step; less and less later."""
EPS = 1e-6
"""Of adamw."""
WARM_UP = 0.05
"""Share of the steps in which the learning rate rises."""


class Study:
    """A study under way: the projection, the average and the optimizer, which all end with it.

    Args:
        model: what is studied with, its last layer a `LastLayer`.
        given: the settings.
        views: what makes the views; None leaves inputs as they are.

    The projection's first weights are drawn from torch's generators, which whoever makes it has seeded.
    """

    def __init__(self, model: nn.Module, given: AllInputs, views: Pipeline | None) -> None:
        self.given, self.views, self._model, self._last = given, views, model, last_layer_of(model)
        (weight,) = (each for each in self._last.parameters() if each.dim() == 2)
        num_features = weight.shape[1]
        hidden = min(WIDEST, 4 * num_features)
        length = min(LONGEST, hidden)
        self._projection = _layers(num_features, hidden, length).to(weight)
        self._predictor = _layers(length, hidden, length).to(weight)
        self._average = nn.ModuleList([copy.deepcopy(model), copy.deepcopy(self._projection)]).requires_grad_(False)
        self._last_of_average = last_layer_of(self._average)
        of_last = {id(each) for each in self._last.parameters()}
        body = [each for each in model.parameters() if each.requires_grad and id(each) not in of_last]
        followed = [*body, *self._projection.parameters()]
        self.parameters = [*followed, *self._predictor.parameters()]
        self._followed = [each.detach() for each in followed]
        by_name = dict(self._average[0].named_parameters())
        of_model = {id(each): name for name, each in model.named_parameters()}
        following = [by_name[of_model[id(each)]] for each in body] + [*self._average[1].parameters()]
        self._following = [each.detach() for each in following]
        optimizer, decay, rate = given.study_optimizer, given.study_weight_decay, given.study_learning_rate
        recipe = Recipe(optimizer=optimizer, learning_rate=rate, weight_decay=decay, eps=EPS)
        self._optimizer = make_optimizer(recipe, [each.detach() for each in self.parameters])
        self.count = torch.zeros(1, dtype=torch.float64, device=weight.device)
        """Steps so far."""

    @property
    def num_draws(self) -> int:
        """Uniform numbers that an input needs, for both views."""
        return 0 if self.views is None else 2 * self.views.num_draws

    def tensors(self) -> list[Tensor]:
        """All that the next step depends on, besides the network itself."""
        modules: Sequence[nn.Module] = (self._projection, self._predictor, self._average)
        own = [tensor.detach() for module in modules for tensor in (*module.parameters(), *module.buffers())]
        moving = [tensor for tensors in self._optimizer.state.values() for tensor in tensors]
        return [*own, *moving, self.count]

    def layers(self) -> list[nn.Module]:
        """Those of all networks that a step goes through."""
        unused = {id(each) for last in (self._last, self._last_of_average) for each in last.modules()}
        networks = (self._model, self._projection, self._predictor, self._average)
        return [each for network in networks for each in network.modules() if id(each) not in unused]

    def gradients(self, inputs: Tensor, draws: Tensor | None, computing: Computing) -> list[Tensor]:
        """Of the loss, for prepared inputs; `computing` is a context in which networks compute."""
        with self.giving_features():
            loss = self.loss(inputs, draws, computing)
        return list(torch.autograd.grad(loss, self.parameters))

    @contextmanager
    def giving_features(self) -> Iterator[None]:
        """Inside, the network and its average give features."""
        with self._last.giving_features(), self._last_of_average.giving_features():
            yield

    def loss(self, inputs: Tensor, draws: Tensor | None, computing: Computing) -> Tensor:
        """Of prepared inputs, while the networks give features."""
        both, number = self._both(inputs, draws), len(inputs)
        with computing():
            found = self._predictor(self._projection(self._model(both)))
        with torch.no_grad(), computing():
            keys = self._average[1](self._average[0](both))
        temperature, dtype = self.given.study_temperature, torch.promote_types(both.dtype, torch.float32)
        found, keys = (F.normalize(each.to(dtype)) for each in (found, keys))
        there = contrast(found[:number], keys[number:], temperature)
        return there + contrast(found[number:], keys[:number], temperature)

    def _both(self, inputs: Tensor, draws: Tensor | None) -> Tensor:
        if self.views is None or draws is None:
            return torch.cat([inputs, inputs])
        return channels_last(torch.cat([self.views(inputs, part.contiguous()) for part in draws.chunk(2, dim=1)]))

    @torch.no_grad()
    def move(self, gradients: list[Tensor]) -> None:
        """One step against the gradients, then one of the average towards the network."""
        progress = self.count / self.given.study_steps
        left = (1 + torch.cos(math.pi * progress)) / 2
        rising = ((self.count + 1) / max(1.0, WARM_UP * self.given.study_steps)).clamp(max=1.0)
        rate = self.given.study_learning_rate * left * rising
        self.count.add_(1)
        self._optimizer.step(gradients, rate[0].to(self._followed[0].dtype), in_pieces=True)
        weight = (FOLLOWS * left)[0].to(self._followed[0].dtype)
        functional.average(self._following, self._followed, weight)


def contrast(found: Tensor, keys: Tensor, temperature: float) -> Tensor:
    """The mean loss of telling each key from the others by what was found, rows of length 1.

    Example:
        >>> same = torch.eye(2)
        >>> round(float(contrast(same, same, 1.0)), 4) == round(math.log(1 + math.exp(-1)), 4)
        True
    """
    among = (found @ keys.T / temperature).logsumexp(1)
    return (among - (found * keys).sum(1) / temperature).mean()


def _layers(num_inputs: int, hidden: int, num_outputs: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(num_inputs, hidden, bias=False),
        nn.BatchNorm1d(hidden),
        nn.ReLU(),
        nn.Linear(hidden, num_outputs, bias=False),
        nn.BatchNorm1d(num_outputs, affine=False),
    )


@torch.no_grad()
def measure_statistics(model: nn.Module, batches: Sequence[Callable[[], Tensor]]) -> None:
    """Batch-norm statistics anew, as the mean over these batches of clean inputs; nothing is drawn."""
    norms = [each for each in model.modules() if isinstance(each, nn.modules.batchnorm._BatchNorm)]
    kept = [each.momentum for each in norms]
    was_training = model.training
    model.eval()
    for each in norms:
        each.train().reset_running_stats()
        each.momentum = None  # the plain mean
    for batch in batches:
        model(batch())
    for each, momentum in zip(norms, kept, strict=True):
        each.momentum = momentum
        if each.num_batches_tracked is not None:
            each.num_batches_tracked.zero_()
    model.train(was_training)
