"""torch's default generators, seeded for one event and put back afterwards."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from prequential.rng import derive


def generators(device: torch.device | None = None) -> list[torch.Generator]:
    """The generators a module may draw from: the CPU's, and that of its device."""
    if device is None or device.type != "cuda":
        return [torch.default_generator]
    current = torch.cuda.current_device()  # the generators are there once CUDA is
    return [torch.default_generator, torch.cuda.default_generators[current if device.index is None else device.index]]


@contextmanager
def seeded(seed: int, purpose: str, event: int, device: torch.device | None = None) -> Iterator[None]:
    """Inside, torch's default generators depend only on (seed, purpose, event).

    Example:
        >>> before = torch.get_rng_state()
        >>> with seeded(0, "dropout", 7):
        ...     draw = torch.rand(())
        >>> bool(torch.equal(torch.get_rng_state(), before))
        True
    """
    owned = [(generator, generator.get_state()) for generator in generators(device)]
    key = derive(seed, purpose, event)
    for generator, _ in owned:
        generator.manual_seed(key)
    try:
        yield
    finally:
        for generator, state in owned:
            generator.set_state(state)


@contextmanager
def noting_draws(device: torch.device) -> Iterator[set[str]]:
    """Gives a set; after the block it holds the types of the devices from whose default generators it drew.

    Example:
        >>> with noting_draws(torch.device("cpu")) as drew_on:
        ...     draw = torch.rand(())
        >>> drew_on
        {'cpu'}
    """
    drew_on: set[str] = set()
    before = [(generator, generator.get_state()) for generator in generators(device)]
    yield drew_on
    drew_on.update(g.device.type for g, state in before if not torch.equal(state, g.get_state()))
