"""What can be stacked: a copy of a model that works on the tensors of many, and who is to blame where it does not."""

import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.modules.batchnorm import _BatchNorm

from prequential.errors import PreqError
from prequential.learn.probe import first_line
from prequential.stack.dropout import begin_pass, hash_dropout

TOLERANCE = 1e-2
"""Of the largest logit: how far a stacked prediction may be from that of the model by itself."""


def bound(structure: nn.Module, tensors: dict[str, Tensor]) -> Callable[[Tensor], Tensor]:
    """The structure of a model with the tensors of another: what a member of a stack is inside vmap."""
    # inputs in the plain order of axes, also where a single channel makes several orders equal
    return lambda inputs: functional_call(structure, tensors, (inputs.flatten().view(inputs.shape),))


def _widened(kind: type[_BatchNorm]) -> type[_BatchNorm]:
    """A normalisation that takes inputs in fewer bits than what it keeps: for one model torch mixes the two, under vmap
    it refuses."""

    def forward(layer: Any, *inputs: Any, **named: Any) -> Tensor:
        kept = layer.weight if layer.running_mean is None else layer.running_mean
        if not inputs or kept is None or inputs[0].dtype == kept.dtype:
            same: Tensor = kind.forward(layer, *inputs, **named)  # a layer of one's own may take more, by other names
            return same
        outputs: Tensor = kind.forward(layer, inputs[0].to(kept.dtype), *inputs[1:], **named)
        return outputs.to(inputs[0].dtype)

    return type(kind.__name__, (kind,), {"forward": forward})


class Structure:
    """What all members share: the layers in train and in eval mode, and how batch statistics move.

    The copies have hashed dropout. Batches are not counted by each layer: `counted` names the counters, which move
    together. Where members disagree on the momentum of a batch normalisation, its statistics are those of the batch
    and `momenta` says how far each member's go towards them.
    """

    def __init__(self, models: Sequence[nn.Module]) -> None:
        self.training = copy.deepcopy(models[0]).train().requires_grad_(False)
        self.momenta: dict[str, Tensor] = {}
        self.counted: list[str] = []
        for name, layer in self.training.named_modules():
            if isinstance(layer, _BatchNorm):
                layer.__class__ = _widened(type(layer))
            if isinstance(layer, _BatchNorm) and layer.momentum is not None and layer.running_mean is not None:
                self._share_momentum(name, layer, [model.get_submodule(name) for model in models])
        self.dropouts = hash_dropout(self.training)
        self.training.to(next(models[0].parameters()).device)
        self.predicting = copy.deepcopy(self.training).eval()

    def _share_momentum(self, name: str, layer: _BatchNorm, peers: Sequence[nn.Module]) -> None:
        prefix = f"{name}." if name else ""
        self.counted.append(f"{prefix}num_batches_tracked")
        layer.num_batches_tracked = None
        momenta = [float(peer.momentum) for peer in peers if isinstance(peer, _BatchNorm) and peer.momentum is not None]
        if len(set(momenta)) > 1:
            layer.momentum = 1.0
            each = torch.tensor(momenta, dtype=torch.float64, device=next(peers[0].buffers()).device)
            self.momenta |= {f"{prefix}running_mean": each, f"{prefix}running_var": each}

    def used(self, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
        """Those tensors that a forward pass uses."""
        return {name: tensor for name, tensor in tensors.items() if name not in self.counted}

    def train(self, tensors: dict[str, Tensor], keys: Tensor, inputs: Tensor, *, shared: bool) -> Tensor:
        """Logits (members, examples, classes) in train mode; `keys` (members, dropout layers).

        Args:
            tensors: weights and buffers, members first.
            keys: what decides the draws of each member and dropout layer.
            inputs: those of all members where they are `shared`, else (members, examples, …).
        """
        begin_pass(self.training)
        drawn = {f"{name}.key": keys[:, number] for number, name in enumerate(self.dropouts)}
        member = torch.vmap(lambda tensors, inputs: bound(self.training, tensors)(inputs), (0, None if shared else 0))
        logits: Tensor = member(self.used(tensors) | drawn, inputs)
        return logits


def require_stackable(
    structure: Structure, models: Sequence[nn.Module], tensors: dict[str, Tensor], inputs: Tensor, name: str
) -> None:
    """Try the stacked model on a batch, on copies of its tensors.

    Raises:
        PreqError: naming the layer that fails, or saying that the stack computes something else than its members do.
    """
    scratch = {key: tensor.detach().clone() for key, tensor in tensors.items()}
    weights = [scratch[key].requires_grad_() for key, p in models[0].named_parameters() if p.requires_grad]
    keys = torch.zeros(len(models), len(structure.dropouts), dtype=torch.int64, device=inputs.device)
    with _blaming(structure.training, name):
        logits = structure.train(scratch, keys, inputs, shared=True)
        torch.autograd.grad(logits.sum(), weights, allow_unused=True)
    scratch = {key: tensor.detach().clone() for key, tensor in tensors.items()}
    with torch.no_grad():
        with _blaming(structure.predicting, name):
            predict = torch.vmap(lambda tensors: bound(structure.predicting, tensors)(inputs))
            stacked = predict(structure.used(scratch))[-1]
        wanted = copy.deepcopy(models[-1]).eval()(inputs)
    if not bool((stacked - wanted).abs().max() <= TOLERANCE * wanted.abs().max().clamp(min=1e-6)):
        raise PreqError(
            f"the model '{name}' computes something else when it is stacked: it keeps tensors that are neither "
            "parameters nor buffers; run its trials one by one"
        )


@contextmanager
def _blaming(model: nn.Module, name: str) -> Iterator[None]:
    """Inside, what goes wrong in a forward pass names the innermost layer that was at work."""
    at_work: list[tuple[str, nn.Module]] = []
    handles = []
    for path, layer in model.named_modules():
        handles.append(layer.register_forward_pre_hook(lambda layer, _, path=path: at_work.append((path, layer))))
        handles.append(layer.register_forward_hook(lambda *_: at_work.pop() and None))
    try:
        yield
    except PreqError:
        raise
    except Exception as error:
        reason = first_line(error).split(". ")[0]
        path, layer = at_work[-1] if at_work else ("", model)
        where = f"layer '{path}' ({type(layer).__name__})" if path else f"own code ({type(layer).__name__})"
        raise PreqError(
            f"the model '{name}' cannot be stacked: its {where} fails for many members at once ({reason}); "
            "run its trials one by one"
        ) from error
    finally:
        for handle in handles:
            handle.remove()
