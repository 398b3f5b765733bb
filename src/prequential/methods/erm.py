"""ERM: the conventional way, for comparison. Not prequential: it has no codelength."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from prequential.errors import require_count
from prequential.events import Event, Train
from prequential.methods.method import MethodDefaults, cut_into_batches, require_batch_fits
from prequential.rng import derive, permutation


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
        require_count("batch_size", self.batch_size)
        require_count("epochs", self.epochs)

    def events(self, length: int, seed: int) -> Iterator[Event]:
        require_batch_fits(self.batch_size, length)
        for epoch in range(self.epochs):
            order = permutation(derive(seed, "epochs", epoch), length)
            yield from map(Train, cut_into_batches(order, self.batch_size))
