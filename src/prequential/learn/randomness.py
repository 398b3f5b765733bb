"""The generators that everybody shares: torch's, Python's and NumPy's, seeded for one event and put back afterwards."""

import random
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from prequential.rng import derive


@dataclass(frozen=True)
class Foreign:
    """A generator that is not torch's, with the methods of torch's."""

    get_state: Callable[[], Any]
    set_state: Callable[[Any], object]
    manual_seed: Callable[[int], object]


FOREIGN = {
    "Python": Foreign(random.getstate, random.setstate, random.seed),
    "NumPy": Foreign(
        lambda: np.random.get_state(legacy=False),
        lambda state: np.random.set_state(state),
        lambda key: np.random.seed([key & 0xFFFFFFFF, key >> 32]),
    ),
}
"""Generators that a module may draw from although nobody should, by whose they are."""


def generators(device: torch.device | None = None) -> list[torch.Generator]:
    """The generators a module may draw from: the CPU's, and that of its device."""
    if device is None or device.type != "cuda":
        return [torch.default_generator]
    current = torch.cuda.current_device()  # the generators are there once CUDA is
    return [torch.default_generator, torch.cuda.default_generators[current if device.index is None else device.index]]


@contextmanager
def seeded(
    seed: int, purpose: str, event: int, device: torch.device | None = None, also: Collection[str] = ()
) -> Iterator[None]:
    """Inside, torch's default generators depend only on (seed, purpose, event); those of FOREIGN that are named too.

    Example:
        >>> before = torch.get_rng_state()
        >>> with seeded(0, "dropout", 7):
        ...     draw = torch.rand(())
        >>> bool(torch.equal(torch.get_rng_state(), before))
        True
    """
    shared: list[torch.Generator | Foreign] = [
        *generators(device),
        *(FOREIGN[name] for name in FOREIGN if name in also),
    ]
    owned = [(generator, generator.get_state()) for generator in shared]
    key = derive(seed, purpose, event)
    for generator in shared:
        generator.manual_seed(key)
    try:
        yield
    finally:
        for generator, state in owned:
            generator.set_state(state)


@contextmanager
def noting_draws(device: torch.device) -> Iterator[set[str]]:
    """Gives a set; after the block it holds the types of the devices from whose default generators it drew, and the
    names of those of FOREIGN.

    Example:
        >>> with noting_draws(torch.device("cpu")) as drew_on:
        ...     draw = torch.rand(()) + random.random()
        >>> sorted(drew_on)
        ['Python', 'cpu']
    """
    drew_on: set[str] = set()
    own = [(generator.device.type, generator) for generator in generators(device)]
    named: list[tuple[str, torch.Generator | Foreign]] = [*own, *FOREIGN.items()]
    before = [generator.get_state() for _, generator in named]
    yield drew_on
    drew_on.update(name for (name, each), state in zip(named, before, strict=True) if _moved(state, each.get_state()))


def _moved(before: Any, after: Any) -> bool:
    """Whether two states of a generator differ."""
    if isinstance(before, dict):
        return any(_moved(before[name], after[name]) for name in before)
    return before != after if isinstance(before, tuple) else not np.array_equal(before, after)
