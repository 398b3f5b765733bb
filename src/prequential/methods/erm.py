"""ERM: the conventional way, for comparison. Not prequential: it has no codelength."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from prequential.events import Event, Train
from prequential.methods.method import PASSES, InParts, Part, cut_into_batches, num_batches
from prequential.rng import derive, permutation
from prequential.settings import setting


@dataclass(frozen=True, kw_only=True)
class FullDataset(InParts):
    """Empirical risk minimisation: train on everything for E epochs, then look at held-out data.

    Everything is revealed at once and no temperature is fitted.
    """

    name: ClassVar[str] = "erm"
    title: ClassVar[str] = "ERM"
    about: ClassVar[str] = "the whole data set, no code"
    prequential: ClassVar[bool] = False

    epochs: int = setting(10, at_least=1, short="epochs", role=PASSES)
    """Passes over the data."""

    def parts(self, length: int, seed: int) -> Iterator[Part]:
        self.require_fits(length)

        def one_epoch(epoch: int) -> Iterator[Event]:
            order = permutation(derive(seed, "epochs", epoch), length)
            return map(Train, cut_into_batches(order, self.batch_size))

        for epoch in range(self.epochs):
            yield num_batches(length, self.batch_size), partial(one_epoch, epoch)
