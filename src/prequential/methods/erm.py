"""ERM: the conventional way, for comparison. Not prequential: it has no codelength."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from prequential.errors import require_count
from prequential.events import Event, Train
from prequential.methods.method import MethodDefaults, cut_into_batches, num_batches, require_batch_fits
from prequential.methods.parts import Part, enter_parts, events_of
from prequential.rng import derive, permutation
from prequential.settings import use_plain_numbers


@dataclass(frozen=True, kw_only=True)
class FullDataset(MethodDefaults):
    """Empirical risk minimisation: train on everything for E epochs, then look at held-out data.

    Everything is revealed at once and no temperature is fitted.
    """

    name: ClassVar[str] = "erm"
    title: ClassVar[str] = "ERM"
    prequential: ClassVar[bool] = False

    batch_size: int = 32
    """Examples per training step."""
    epochs: int = 10
    """Passes over the data."""

    def __post_init__(self) -> None:
        use_plain_numbers(self)
        require_count("batch_size", self.batch_size)
        require_count("epochs", self.epochs)

    def events(self, length: int, seed: int) -> Iterator[Event]:
        return events_of(self._parts(length, seed))

    def enter(self, length: int, seed: int, start: int) -> tuple[Iterator[Event], int]:
        return enter_parts(self._parts(length, seed), start)

    def _parts(self, length: int, seed: int) -> Iterator[Part]:
        require_batch_fits(self.batch_size, length)

        def one_epoch(epoch: int) -> Iterator[Event]:
            order = permutation(derive(seed, "epochs", epoch), length)
            return map(Train, cut_into_batches(order, self.batch_size))

        for epoch in range(self.epochs):
            yield num_batches(length, self.batch_size), partial(one_epoch, epoch)
