"""The tensors of many models of one architecture, with the models along the first axis."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from prequential.errors import PreqError

ALIGNED = 64
"""Each weight begins at a multiple of so many numbers: matrix products want that."""


class StackedState:
    """Weights and buffers of N models.

    Everything that is trained lies in one tensor `flat` (models, numbers), so that an optimizer's step is a few
    operations however many layers there are. Buffers lie apart and contiguous: batch normalisation writes into
    them, and under vmap it would write into a copy of anything else.

    Example:
        >>> state = StackedState([nn.Linear(3, 2), nn.Linear(3, 2)])
        >>> state.weights["weight"].shape, state.flat.shape
        (torch.Size([2, 2, 3]), torch.Size([2, 128]))
    """

    def __init__(self, models: Sequence[nn.Module]) -> None:
        parameters = dict(models[0].named_parameters())
        trained = {name: parameter.detach() for name, parameter in parameters.items() if parameter.requires_grad}
        self._gaps = [-weight.numel() % ALIGNED for weight in trained.values()]
        sizes = [weight.numel() + gap for weight, gap in zip(trained.values(), self._gaps, strict=True)]
        first = next(iter(trained.values()))
        self.flat, self._zeros = (first.new_zeros(len(models), size) for size in (sum(sizes), ALIGNED))
        self._sizes, self._shapes = sizes, {name: weight.shape for name, weight in trained.items()}
        self.weights = dict(zip(trained, self.apart(self.flat), strict=True))
        self.others = {
            name: tensor.new_zeros(len(models), *tensor.shape)
            for name, tensor in _tensors(models[0]).items()
            if name not in trained
        }
        self.all = [self.flat, *self.others.values()]
        self.parameters = [self.flat, *(tensor for name, tensor in self.others.items() if name in parameters)]
        self.floats = [tensor for tensor in self.others.values() if tensor.is_floating_point()]
        self.integers = [tensor for tensor in self.others.values() if not tensor.is_floating_point()]
        self.load(models)

    def apart(self, flat: Tensor) -> list[Tensor]:
        """Views of a tensor like `flat`, in the shapes and the order of the weights."""
        places = zip(self._shapes.values(), flat.split_with_sizes(self._sizes, dim=1), strict=True)
        return [place[:, : shape.numel()].view(len(flat), *shape) for shape, place in places]

    def hidden_matrices(self, flat: Tensor) -> list[Tensor]:
        """Those of the views that are matrices, or filters, but for the last layer's."""
        return [view for view in self.apart(flat) if view.dim() > 2][:-1]

    def joined(self, weights: Sequence[Tensor]) -> Tensor:
        """Tensors like the weights, in their order, as one like `flat`, of which the weights are views."""
        parts = []
        for tensor, gap in zip(weights, self._gaps, strict=True):
            parts += [tensor.flatten(1), self._zeros[:, :gap]]
        return torch.cat([part for part in parts if part.shape[1]], dim=1)

    @torch.no_grad()
    def load(self, models: Sequence[nn.Module]) -> None:
        """Take over the tensors of these models."""
        for member, model in enumerate(models):
            tensors = _tensors(model)
            for name, mine in (self.weights | self.others).items():
                mine[member].copy_(tensors[name])

    def finite(self) -> Tensor:
        """For each model, whether all its numbers are finite."""
        each = [tensor.reshape(len(tensor), -1).isfinite().all(1) for tensor in (self.flat, *self.floats)]
        return torch.stack(each).all(0)


def require_same_shapes(models: Sequence[nn.Module]) -> None:
    """Refuse models that differ in anything but the values of their tensors."""
    wanted = {name: (tensor.shape, tensor.dtype) for name, tensor in _tensors(models[0]).items()}
    for number, model in enumerate(models):
        found = {name: (tensor.shape, tensor.dtype) for name, tensor in _tensors(model).items()}
        for name in dict.fromkeys([*wanted, *found]):
            if wanted.get(name) != found.get(name):
                shapes = [tuple(shape[0]) if shape else "none" for shape in (wanted.get(name), found.get(name))]
                raise PreqError(
                    f"the members of a stack must have the same layers, but '{name}' is {shapes[0]} in member 0 and "
                    f"{shapes[1]} in member {number}; stack them apart"
                )


def _tensors(model: nn.Module) -> dict[str, Tensor]:
    return {name: tensor.detach() for name, tensor in (*model.named_parameters(), *model.named_buffers())}
