"""A new model, as a learner takes it: fresh, whole, and with tensors that lie apart."""

import copy
from collections.abc import Callable, Iterator
from itertools import pairwise
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from prequential.data.sequence import DataSequence, to_network_input
from prequential.errors import PreqError, in_one_line
from prequential.models import ModelFactory, build, name_of
from prequential.scaling import Scale
from prequential.targets import Target

_TAKEN = WeakKeyDictionary[nn.Module, list[Tensor] | None]()
"""Layers that learners were given, as long as anybody has them: they are trained in place (None), or have buffers that
may move, which were so."""


def built_for(
    factory: str | ModelFactory, data: DataSequence, target: Target, width: float, scale: Scale | None
) -> nn.Module:
    """A new model for the data, its lazy layers as large as the data makes them.

    Raises:
        PreqError: if a part of it was given to an earlier learner, or it cannot be switched, filled or averaged.
    """
    model, name = build(factory, data.input_shape, target.output_size, width=width), name_of(factory)
    require_new(model, name)
    if model.train() is not model:
        raise PreqError(f"the model '{name}' does not return itself from train(); end that method with return self")
    fill_lazy(model, name, lambda: to_network_input(data.inputs(np.zeros(1, np.int64)), scale))
    _TAKEN.update({layer: _buffers(layer) for _, layer in changing_layers(model)})
    require_apart(model, name)
    return model


def changing_layers(model: nn.Module) -> Iterator[tuple[str, nn.Module]]:
    """The layers, by their paths, that have tensors of their own which training may change."""
    for path, layer in model.named_modules():
        is_trained = any(parameter.requires_grad for parameter in layer.parameters(recurse=False))
        if is_trained or next(layer.buffers(recurse=False), None) is not None:
            yield path, layer


def require_new(model: nn.Module, name: str) -> None:
    """Refuse a model with a layer that a learner was given before: it would begin with what that one has learned. One
    that is not trained, and whose buffers are as they were, may be shared."""
    if used := [path for path, layer in changing_layers(model) if layer in _TAKEN and not _is_as_it_was(layer)]:
        where = f" (the layer '{used[0]}')" if used[0] else ""
        raise PreqError(
            f"the factory of the model '{name}' gives again what it gave before{where}, which may be trained by now; "
            "make fresh layers each time it is called, or return a copy.deepcopy of what you keep"
        )


def _buffers(layer: nn.Module) -> list[Tensor] | None:
    """Copies, unless the layer is trained."""
    if any(parameter.requires_grad for parameter in layer.parameters(recurse=False)):
        return None
    return [buffer.detach().cpu().clone() for buffer in layer.buffers(recurse=False) if not is_lazy(buffer)]


def _is_as_it_was(layer: nn.Module) -> bool:
    before, now = _TAKEN[layer], _buffers(layer)
    if before is None or now is None or len(before) != len(now):
        return False
    return all(torch.equal(one.to(other.dtype), other) for one, other in zip(before, now, strict=True))


def fill_lazy(model: nn.Module, name: str, one_input: Callable[[], Tensor]) -> None:
    """Have lazy layers find out their sizes."""
    if not _lazy_tensors(model):
        return
    inputs = one_input()
    try:
        model.eval()(inputs)
    except Exception as error:  # the user's code may fail in any way
        shape = tuple(inputs.shape[1:])
        raise PreqError(
            f"the model '{name}' fails when its lazy layers are given an input of shape {shape} ({in_one_line(error)})"
        ) from error
    if left := _lazy_tensors(model):
        raise PreqError(f"the model '{name}' never uses its lazy '{left[0]}', so that it has no size; leave it out")


def _lazy_tensors(model: nn.Module) -> list[str]:
    return [name for name, tensor in _named_tensors(model) if is_lazy(tensor)]


def _named_tensors(model: nn.Module) -> Iterator[tuple[str, Tensor]]:
    yield from model.named_parameters()
    yield from model.named_buffers()


def require_apart(model: nn.Module, name: str) -> None:
    """Refuse tensors that share memory: what is done to one would be done to the other as well, so that each is moved
    and averaged twice, and no checkpoint can hold them. Tied weights are one parameter, and that is fine."""
    spans = []
    for key, tensor in _named_tensors(model):
        if tensor.layout != torch.strided or not tensor.numel():
            continue
        sides = list(zip(tensor.shape, tensor.stride(), strict=True))
        if any(size > 1 and not stride for size, stride in sides):
            raise PreqError(
                f"in the model '{name}' the numbers of '{key}' share memory among themselves, as expand() has it; "
                "make it contiguous (.clone())"
            )
        begin = tensor.data_ptr()
        extent = 1 + sum((size - 1) * stride for size, stride in sides)
        spans.append((begin, begin + extent * tensor.element_size(), key))
    for (_, end, one), (begin, _, other) in pairwise(sorted(spans)):
        if begin < end:
            raise PreqError(
                f"in the model '{name}' '{one}' and '{other}' share memory; .clone() one of them, or tie them by "
                "making both the same nn.Parameter"
            )


def copy_of(model: nn.Module, name: str) -> nn.Module:
    """A copy with tensors of its own; a model that cannot be copied is refused."""
    try:
        return copy.deepcopy(model)
    except Exception as error:  # the user's code may fail in any way
        raise PreqError(
            f"the model '{name}' cannot be copied, as its average must be ({in_one_line(error)[:120]}); tensors that "
            "forward() makes may not stay in it: use torch.nn.utils.parametrizations in place of torch.nn.utils"
        ) from error
