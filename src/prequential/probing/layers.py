"""The layers of a network: which there are, in the order in which they compute, and what they give."""

import contextlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from prequential.errors import PreqError, in_one_line, unknown_name

LAST, ALL = "last", "all"
WEIGHTED = 2
"""Dimensions from which on a parameter is a matrix, and what has it a layer of weights."""
WITHOUT_EFFECT = (nn.Flatten, nn.Identity, nn.modules.dropout._DropoutNd)
"""What changes nothing in a frozen network but the shape."""

PARAMETRIZED = "parametrizations"
"""Where torch keeps what computes a layer's weights (standardises them, say): of the layer, no layer inside it."""

GIVEN = "input of "
"""Before the name of a module: what it is given, where no module gives that."""

Taken = Callable[[str, object], None]


def forward(module: nn.Module, inputs: Tensor, name: str) -> None:
    """Let a network compute, for what its layers give on the way."""
    try:
        with torch.no_grad():
            module(inputs)
    except PreqError:
        raise
    except Exception as error:  # the user's code may fail in any way
        shape = tuple(inputs.shape[1:])
        raise PreqError(f"{name} cannot take inputs of shape {shape} ({in_one_line(error)})") from None


@contextmanager
def listening(module: nn.Module, wanted: Callable[[str, nn.Module], bool], take: Taken) -> Iterator[None]:
    """Inside, `take` is given the name and the output of every wanted part whenever it has computed, and with GIVEN
    before the name what it is given."""
    with contextlib.ExitStack() as hooks:
        for name, part in module.named_modules():
            if wanted(name, part):

                def hook(_: nn.Module, __: object, output: object, name: str = name) -> None:
                    take(name, output)

                hooks.callback(part.register_forward_hook(hook).remove)
            if wanted(GIVEN + name, part):

                def look(_: nn.Module, inputs: tuple[object, ...], name: str = GIVEN + name) -> None:
                    take(name, inputs[0] if inputs else None)

                hooks.callback(part.register_forward_pre_hook(look).remove)
        yield


def layers_of(module: nn.Module, wanted: str, sample: Tensor, network: str) -> list[str]:
    """The names of the layers that are wanted, in the order in which they compute.

    Args:
        wanted: "last", what the last layer of weights is given; "all", what each layer of weights has become when the
            next one begins, with the normalisation, ReLU and pooling between them; or names of modules with commas
            between. What is not computed by a module but by a function (ReLU, a sum) is not seen by "all".
        sample: a few inputs, to see the order.
        network: what errors call it.

    Raises:
        PreqError: for a name that the network does not have, or a network without layers.

    Example:
        >>> net = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Dropout(), nn.Linear(3, 4)).eval()
        >>> layers_of(net, "all", torch.zeros(1, 2), "net"), layers_of(net, "last", torch.zeros(1, 2), "net")
        (['1', '3'], ['1'])
    """
    named = dict(module.named_modules())
    if wanted not in (LAST, ALL):
        names = wanted.split(",")
        for name in names:
            if name.removeprefix(GIVEN) not in named or not name.removeprefix(GIVEN):
                raise unknown_name(f"layer of {network}", name, [LAST, ALL, *(each for each in named if each)])
        return list(dict.fromkeys(names))
    ends, before, last = list[str](), "", ""
    for name in _in_order(module, sample, network):
        is_weighted = any(parameter.dim() >= WEIGHTED for parameter in named[name].parameters())
        if is_weighted and last:
            ends.append(before)
        before, last = name, name if is_weighted else last
    if wanted == ALL or not last:
        return [*ends, before]
    return [ends[-1] if ends and _is_given(module, ends[-1], last, sample, network) else GIVEN + last]


def _is_given(module: nn.Module, before: str, last: str, sample: Tensor, network: str) -> bool:
    """Whether a part is given the very numbers that another has computed, in whatever shape."""
    seen = dict[str, tuple[Tensor, Tensor]]()

    def note(name: str, value: object) -> None:
        if isinstance(value, Tensor):
            seen[name] = value, value.flatten(1).clone()  # a function may write into it before it is given

    with listening(module, lambda name, _: name in (before, GIVEN + last), note):
        forward(module, sample, network)
    made, given = seen[before], seen.get(GIVEN + last, seen[before])
    is_same = made[0].data_ptr() == given[0].data_ptr() and made[1].shape == given[1].shape
    return is_same and torch.allclose(made[1], given[1], rtol=0, atol=0, equal_nan=True)


def _in_order(module: nn.Module, sample: Tensor, network: str) -> list[str]:
    """The parts that have no parts and do something, in the order of their last calls."""
    called = dict[str, None]()

    def note(name: str, output: object) -> None:
        if isinstance(output, Tensor) and output.is_floating_point() and output.dim() > 1:
            called.pop(name, None)
            called[name] = None

    def is_wanted(name: str, part: nn.Module) -> bool:
        if name.startswith(GIVEN):
            return False
        parts = [inner for inner, _ in part.named_children() if inner != PARAMETRIZED]
        return bool(name) and not parts and PARAMETRIZED not in name and not isinstance(part, WITHOUT_EFFECT)

    with listening(module, is_wanted, note):
        forward(module, sample, network)
    if not called:
        raise PreqError(f"{network} has no layers to look at; probe a network that is made of modules")
    return list(called)
