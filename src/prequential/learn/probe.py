"""A first look at a user's model, so that its mistakes are told before any work is done."""

import contextlib
import copy
import warnings
from collections.abc import Iterable
from typing import NamedTuple

import torch
from torch import Tensor, nn

from prequential.errors import PreqError, PreqWarning
from prequential.files import digest_of
from prequential.learn.built import copy_of
from prequential.learn.randomness import FOREIGN, noting_draws, seeded
from prequential.targets import Classes, Target

SUMS_TO_ONE = 1e-4
"""How far a sum of probabilities may be from one by rounding."""


def probe_model(model: nn.Module, inputs: Tensor, target: Target, name: str) -> frozenset[str]:
    """Try a copy of the model in eval and in train mode; say on which devices, or from whose generator, training draws.

    Raises:
        PreqError: if it fails, gives anything but one logit per class, has nothing to train, or
            draws random numbers when predicting.
    """
    if not any(p.requires_grad for p in model.parameters()):
        raise PreqError(f"the model '{name}' has no parameter to train; give it one with requires_grad")
    with seeded(0, "probe", 0, inputs.device, FOREIGN):
        scratch = copy_of(model, name)
        weights_before = _places(scratch.named_parameters())
        with torch.no_grad(), noting_draws(inputs.device) as drew_predicting:
            _hint_at_softmax(require_logits(scratch.eval(), inputs, target, name), target, name)
        if drew_predicting:
            raise PreqError(
                f"the model '{name}' draws random numbers when it predicts; a code needs the same prediction "
                "twice: use nn.Dropout, or F.dropout(..., training=self.training)"
            )
        _require_in_place("parameter", weights_before, _places(scratch.named_parameters()), name)
        buffers_before = _places(scratch.named_buffers())
        with noting_draws(inputs.device) as drew_training:
            logits = require_logits(scratch.train(), inputs, target, name)
            _require_in_place("buffer", buffers_before, _places(scratch.named_buffers()), name)
            _require_in_place("parameter", weights_before, _places(scratch.named_parameters()), name)
            try:
                weights = [p for p in scratch.parameters() if p.requires_grad]
                torch.autograd.grad(logits.sum(), weights, allow_unused=True)
            except RuntimeError as error:
                raise PreqError(f"the model '{name}' cannot be trained: {first_line(error, None)}") from error
    return frozenset(drew_training)


class _Place(NamedTuple):
    """A tensor, and where it is."""

    tensor: Tensor
    address: int
    shape: torch.Size
    content: Tensor
    """Nothing else can take the memory as long as this is there."""

    def stays(self, other: "_Place", *, same: bool) -> bool:
        is_it = self.tensor is other.tensor or not same
        return is_it and (self.address, self.shape) == (other.address, other.shape)


def _places(tensors: Iterable[tuple[str, Tensor]]) -> dict[str, _Place]:
    return {key: _Place(tensor, tensor.data_ptr(), tensor.shape, tensor.detach()) for key, tensor in tensors}


def _require_in_place(kind: str, before: dict[str, _Place], after: dict[str, _Place], name: str) -> None:
    """Refuse a model whose tensors come, go, move or grow: nobody would train, average or save the new ones."""
    for key in {**before, **after}:
        one, other = before.get(key), after.get(key)
        if one is None or other is None or not one.stays(other, same=kind == "parameter"):
            goes = "neither averaged nor saved" if kind == "buffer" else "neither trained nor averaged"
            raise PreqError(
                f"the model '{name}' replaces its {kind} '{key}' while training, so it can be {goes}; change it in "
                f"place (self.{key}.copy_(...){'' if kind == 'buffer' else ' under torch.no_grad()'})"
            )


def type_taken(model: nn.Module, inputs: Tensor, dtype: torch.dtype) -> torch.dtype | None:
    """The type in which a model takes inputs of whole numbers: their own (None), floats, or whole numbers of 64 bits.

    An embedding of tokens wants whole numbers, a linear layer floats; the first that the model does not refuse counts.

    Example:
        >>> tokens = torch.tensor([[3, 1]])
        >>> type_taken(nn.Embedding(4, 2), tokens, torch.float32), type_taken(nn.Linear(2, 2), tokens, torch.float32)
        (None, torch.float32)
    """
    for tried in (inputs.dtype, dtype, torch.int64):
        with contextlib.suppress(Exception), torch.no_grad(), seeded(0, "probe", 0, inputs.device):
            copy.deepcopy(model).eval()(inputs.to(tried))
            return None if tried == inputs.dtype else tried
    return None


def require_logits(model: nn.Module, inputs: Tensor, target: Target, name: str) -> Tensor:
    """The model's logits; refuse a model that fails or does not give one logit per class."""
    shape = tuple(inputs.shape[1:])
    try:
        logits = model(inputs)
    except PreqError:
        raise
    except Exception as error:
        mode = "training on" if model.training else "predicting"
        advice = "" if inputs.is_floating_point() else "; it takes whole numbers neither as they are nor as floats"
        if torch.is_autocast_enabled(inputs.device.type):
            advice += "; if bfloat16 is the reason, use precision fp32"
        reason = first_line(error, None) + advice
        raise PreqError(
            f"the model '{name}' fails when {mode} {len(inputs)} inputs of shape {shape}: {reason}"
        ) from error
    if not isinstance(logits, Tensor) or logits.shape != (len(inputs), target.output_size):
        got = tuple(logits.shape[1:]) if isinstance(logits, Tensor) else type(logits).__name__
        raise PreqError(
            f"the model '{name}' gives {got} for one input, wanted ({target.output_size},): "
            f"{target.output_words}; change its last layer"
        )
    return logits


def _hint_at_softmax(logits: Tensor, target: Target, name: str) -> None:
    """Say so where a model gives probabilities: what is made of them is a code, but a poor one."""
    outputs = logits.double()
    if isinstance(target, Classes) and bool((outputs >= 0).all() and ((outputs.sum(1) - 1).abs() < SUMS_TO_ONE).all()):
        warnings.warn(
            f"the model '{name}' gives numbers that sum to one, as if it ended in a softmax; wanted are logits, and a "
            "softmax is taken of them here: leave its own out",
            PreqWarning,
            stacklevel=5,
        )


def first_line(error: Exception, most: int | None = 200) -> str:
    """What an error says, in one line of at most so many characters."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:most]


def fingerprint_of(model: nn.Module) -> str:
    """Of a model as it stands: its layers as printed, its parameters and buffers."""
    tensors = (*model.parameters(), *model.buffers())
    content = b"".join(tensor.detach().cpu().contiguous().numpy().tobytes() for tensor in tensors)
    return digest_of(repr(model).encode() + content)
