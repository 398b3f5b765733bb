"""Where a run stands: the fact that listeners are given. No torch."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a run stands."""

    position: int
    """Labels predicted so far."""
    length: int
    nats: float
    errors: int
    trained_examples: int
    seconds: float
    temperature: float | None = None
    """The factor on the logits of the last prediction, where one is known."""


class Pruned(Exception):  # noqa: N818  # no error: a way for a run to end
    """A listener raises it to end a run for good: the record keeps what was measured, with status "pruned"."""


Listener = Callable[[Progress], object]
"""Called a few times a second with where the run stands, and once at the end.

One that also has a method `begin(facts, progress)` hears of the settings before the first event, and from where a
resumed run goes on; one with `end(record)` is given the record when it is kept, however the run ended.
"""


def tell(listeners: Iterable[Listener], progress: Progress) -> None:
    """Tell every listener where a run stands."""
    for listener in listeners:
        listener(progress)


def tell_begin(listeners: Iterable[Listener], facts: Mapping[str, Any], progress: Progress) -> None:
    """Tell those who want to know that a run begins, or goes on."""
    for listener in listeners:
        if callable(begin := getattr(listener, "begin", None)):
            begin(facts, progress)


def tell_end(listeners: Iterable[Listener], record: object) -> None:
    """Tell those who want to know what a run left behind."""
    for listener in listeners:
        if callable(end := getattr(listener, "end", None)):
            end(record)
