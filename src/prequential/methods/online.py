"""Online: predict, and leave the learning to the learner."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from prequential.errors import PreqError
from prequential.events import Event, Predict
from prequential.methods.method import MethodDefaults, Work
from prequential.methods.minibatch import spans
from prequential.settings import setting


@dataclass(frozen=True, kw_only=True)
class Online(MethodDefaults):
    """Only predictions, in spans as those of MI/RS: for learners that learn from the labels as they are revealed.

    Example:
        >>> list(Online(batch_size=4).events(6, seed=0))
        [Predict(start=0, stop=4, uniform=False), Predict(start=4, stop=6, uniform=False)]
    """

    name: ClassVar[str] = "online"
    title: ClassVar[str] = "Online"
    about: ClassVar[str] = "no training steps; for sklearn: and river:"

    batch_size: int = setting(32, at_least=1, short="batch")
    """Labels predicted at once."""
    first_block: int | None = setting(None, at_least=1, hint="the batch size")
    """Labels predicted at once in the beginning, growing to the batch size."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.batch_size % (self.first_block or self.batch_size):
            raise PreqError(f"first_block must divide the batch size {self.batch_size}, got {self.first_block}")

    def events(self, length: int, seed: int) -> Iterator[Event]:
        for start, stop in spans(length, self.first_block or self.batch_size, self.batch_size):
            yield Predict(start, stop)

    def most_work(self, length: int) -> Work:
        unit = self.first_block or self.batch_size
        return Work(-(-length // unit), length, 0)
