"""torch's default generators, seeded for one event and put back afterwards."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from prequential.rng import derive


def generators(device: torch.device | None = None) -> list[torch.Generator]:
    """The generators a module may draw from: the CPU's, and that of its device."""
    if device is None or device.type != "cuda":
        return [torch.default_generator]
    torch.cuda.current_device()  # the generators are there once CUDA is
    index = torch.cuda.current_device() if device.index is None else device.index
    return [torch.default_generator, torch.cuda.default_generators[index]]


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


class DrawDetector:
    """Whose default generators anything was drawn from inside: the types of their devices."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self.drew: frozenset[str] = frozenset()

    def __enter__(self) -> "DrawDetector":
        self._before = [generator.get_state() for generator in generators(self._device)]
        return self

    def __exit__(self, *_: object) -> None:
        after = [generator.get_state() for generator in generators(self._device)]
        pairs = zip(generators(self._device), self._before, after, strict=True)
        self.drew = frozenset(g.device.type for g, before, now in pairs if not torch.equal(before, now))
