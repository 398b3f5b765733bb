"""Plans made of parts whose number of events is known, so that whole parts can be jumped over."""

from collections.abc import Callable, Iterable, Iterator
from itertools import chain

from prequential.events import Event

Part = tuple[int, Callable[[], Iterator[Event]]]
"""How many events, and what makes them."""


def events_of(parts: Iterable[Part]) -> Iterator[Event]:
    """The events of the parts, one after the other."""
    for _, make in parts:
        yield from make()


def enter_parts(parts: Iterator[Part], start: int) -> tuple[Iterator[Event], int]:
    """The events from the part that holds event number `start` on, and that part's first number."""
    reached = 0
    for num_events, make in parts:
        if start < reached + num_events:
            return chain(make(), events_of(parts)), reached
        reached += num_events
    return iter(()), reached
