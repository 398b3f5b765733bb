"""torch's default generator, seeded for one event and put back afterwards."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn

from prequential.rng import derive


@contextmanager
def seeded(seed: int, purpose: str, event: int, device: torch.device | None = None) -> Iterator[None]:
    """Inside, torch's default generator depends only on (seed, purpose, event).

    Example:
        >>> before = torch.get_rng_state()
        >>> with seeded(0, "dropout", 7):
        ...     draw = torch.rand(())
        >>> bool(torch.equal(torch.get_rng_state(), before))
        True
    """
    devices = [device] if device is not None and device.type != "cpu" else []
    with torch.random.fork_rng(devices, device_type=devices[0].type if devices else "cuda"):
        torch.manual_seed(derive(seed, purpose, event))
        yield


def draws_when_training(model: nn.Module, inputs: torch.Tensor) -> bool:
    """Whether a training forward pass draws from torch's default generator (dropout does).

    `model` is left in training mode and its statistics move: give a copy.
    """
    generator = torch.default_generator
    if inputs.device.type == "cuda":
        generator = torch.cuda.default_generators[inputs.device.index or 0]
    before = generator.get_state()
    with torch.no_grad():
        model.train()(inputs)
    drew = not torch.equal(before, generator.get_state())
    generator.set_state(before)
    return drew
