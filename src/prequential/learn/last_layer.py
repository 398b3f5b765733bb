"""The last layer of a network, which classes belong to, and its features, which inputs alone can teach."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

import torch
from torch import Tensor, nn

from prequential.errors import PreqError, in_one_line

EPS = 1e-5
"""Added to variances. Weight decay makes them small in a long study, whose loss does not depend on their scale."""


class LastLayer(nn.Module):
    """Standardised features, and one output for each class, which is 0 before anything was learned.

    Example:
        >>> LastLayer(3, 2).eval()(torch.ones(1, 3))
        tensor([[0., 0.]], grad_fn=<AddmmBackward0>)
    """

    def __init__(self, num_features: int, output_size: int) -> None:
        super().__init__()
        self.standardise = nn.BatchNorm1d(num_features, affine=False, eps=EPS)
        self.linear = nn.Linear(num_features, output_size)
        nn.init.zeros_(self.linear.weight)
        nn.init.zeros_(self.linear.bias)
        self._gives_features = False

    def forward(self, features: Tensor) -> Tensor:
        return features if self._gives_features else self.linear(self.standardise(features))

    @contextmanager
    def giving_features(self) -> Iterator[None]:
        """Inside, the network gives its features, not its outputs."""
        self._gives_features = True
        try:
            yield
        finally:
            self._gives_features = False


def find_last_layer(model: nn.Module, output_size: int, name: str) -> tuple[str, nn.Linear]:
    """The linear layer that gives a network its outputs, and where it is.

    Raises:
        PreqError: if there is none.

    Example:
        >>> find_last_layer(nn.Sequential(nn.Flatten(), nn.Linear(4, 3)), 3, "mine")
        ('1', Linear(in_features=4, out_features=3, bias=True))
    """
    found = [(path, each) for path, each in model.named_modules() if isinstance(each, nn.Linear)]
    if not found or not found[-1][0] or found[-1][1].out_features != output_size:
        raise PreqError(
            f"the model '{name}' does not end in a linear layer with {output_size} outputs; a study (--study-steps) "
            "and a learning rate of what is below it (--body-rate) need one, so leave these out"
        )
    return found[-1]


def with_last_layer(model: nn.Module, output_size: int, name: str) -> nn.Module:
    """The network with its last linear layer replaced by a `LastLayer`. A normalisation of its outputs is left out: it
    is the features that are standardised then.

    Example:
        >>> with_last_layer(nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3)), 3, "mine")[1]
        Identity()
    """
    path, linear = find_last_layer(model, output_size, name)
    above, _, last = path.rpartition(".")
    parent = model.get_submodule(above)
    names = [*parent._modules] if type(parent).forward is nn.Sequential.forward else []  # in this order, surely
    if names[-2:-1] == [last] and isinstance(parent.get_submodule(names[-1]), nn.BatchNorm1d):
        setattr(parent, names[-1], nn.Identity())
    setattr(parent, last, LastLayer(linear.in_features, output_size))
    return model


def last_layer_of(model: nn.Module) -> LastLayer:
    """The one that `with_last_layer` put there."""
    return next(each for each in model.modules() if isinstance(each, LastLayer))


@torch.no_grad()
def tensors_without(model: nn.Module) -> dict[str, Tensor]:
    """The tensors of a network by the names they have without a `LastLayer`: that is linear, so what standardises its
    features becomes a part of its weights."""
    found = dict(model.state_dict())
    for path, each in model.named_modules():
        if isinstance(each, LastLayer):
            mean, variance = (each.standardise.get_buffer(f"running_{name}").double() for name in ("mean", "var"))
            weight = each.linear.weight.double() / (variance + EPS).sqrt()
            bias = each.linear.bias.double() - weight @ mean
            found = {name: tensor for name, tensor in found.items() if not name.startswith(f"{path}.")}
            made = {f"{path}.weight": weight, f"{path}.bias": bias}
            found |= {name: tensor.to(each.linear.weight.dtype) for name, tensor in made.items()}
    return found


def giving_features(model: nn.Module) -> AbstractContextManager[None]:
    """Inside, the network gives its features, if `with_last_layer` made it."""
    last = next((each for each in model.modules() if isinstance(each, LastLayer)), None)
    return nullcontext() if last is None else last.giving_features()


@torch.no_grad()
def require_flat_features(model: nn.Module, inputs: Tensor, name: str) -> None:
    """Refuse a network whose last layer is given more than one row of features for an input, or that does something
    with its outputs."""
    last, given = last_layer_of(model), list[Tensor]()
    handle = last.register_forward_hook(lambda _, inputs, outputs: given.append(outputs))
    try:
        with last.giving_features():
            features, failed = model(inputs), ""
    except Exception as error:  # what follows is the user's code, and is given features in the place of outputs
        failed = f" ({in_one_line(error)})"
    finally:
        handle.remove()
    if failed or not given or given[-1].shape != features.shape or not torch.equal(given[-1], features):
        raise PreqError(
            f"the model '{name}' does something with the outputs of its last linear layer, and a study (--study-steps) "
            f"needs its features there{failed}; end in that layer, or leave the study out"
        )
    if features.dim() != 2:
        raise PreqError(
            f"the last layer of the model '{name}' is given features of shape {tuple(features.shape[1:])}, and a study "
            "needs one row for each input"
        )
