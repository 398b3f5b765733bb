"""Where a run stands: the fact that listeners are given. No torch."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass


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
    studied_steps: int = 0
    """Steps of studies so far, all before the first label …"""
    study_steps: int = 0
    """… and in all."""
    study_seconds: float = 0.0
    """Of `seconds`, those that studies took; nothing for one that is from a file."""

    @property
    def is_studying(self) -> bool:
        """Whether steps of a study are still to come."""
        return self.studied_steps < self.study_steps


class Pruned(Exception):  # noqa: N818  # no error: a way for a run to end
    """A listener raises it to end a run for good: the record keeps what was measured, with status "pruned"."""


Listener = Callable[[Progress], object]
"""Called a few times a second with where the run stands, and once at the end.

One that also has a method `begin(facts, progress)` hears of the settings before the first event, and from where a
resumed run goes on; one with `end(record)` is given the record when it is kept, however the run ended.
"""


def tell_of(when: str, listeners: Iterable[Listener], *what: object) -> None:
    """Tell those who want to know that a run begins, or goes on ("begin"), or what it left behind ("end")."""
    for listener in listeners:
        if callable(hear := getattr(listener, when, None)):
            hear(*what)
