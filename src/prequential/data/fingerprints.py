"""What the fingerprints of a sequence are made of."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from prequential.data.digest import digest_of_rows
from prequential.data.optional import SequenceDefaults

if TYPE_CHECKING:
    from prequential.data.sequence import DataSequence

Positions = NDArray[np.int64]
Hashing = Callable[[Positions], NDArray[Any]]


class FingerprintedSequence(SequenceDefaults):
    """A sequence whose fingerprints are taken row by row."""

    num_classes: int

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def labels(self, positions: Positions) -> torch.Tensor:
        """See `DataSequence`."""

    def hashed(self, positions: Positions) -> NDArray[Any]:
        """What the fingerprint of the inputs is made of, a row each: equal only if they are."""
        return bits_of(self.inputs(positions))

    @property
    def hashed_as(self) -> tuple[object, ...]:
        """What else decides the meaning of `hashed`."""
        return ()

    @property
    def known_blocks(self) -> Sequence[str]:
        """Fingerprints of leading whole blocks of inputs, where they are at hand."""
        return ()

    def _input_digest(self) -> str:
        return digest_of_rows(self.num_inputs, self.hashed, *self.hashed_as, known=self.known_blocks)

    @cached_property
    def _digests(self) -> dict[str, str]:
        labels = digest_of_rows(len(self), lambda positions: self.labels(positions).numpy(), self.num_classes)
        return {"inputs": self._input_digest(), "labels": labels}

    def digests(self) -> dict[str, str]:
        """See `DataSequence`; taken once."""
        return self._digests


def bits_of(rows: torch.Tensor) -> NDArray[Any]:
    """Rows as NumPy has them; bfloat16, which it lacks, as int16."""
    bits: NDArray[Any] = (rows.view(torch.int16) if rows.dtype == torch.bfloat16 else rows).numpy()
    return bits


def type_told(rows: torch.Tensor) -> tuple[object, ...]:
    """What the type of `bits_of` does not tell of rows."""
    return ("bfloat16",) if rows.dtype == torch.bfloat16 else ()


def hashing(*parts: "DataSequence") -> tuple[list[Hashing], tuple[object, ...]]:
    """What tells the inputs of all these sequences apart, and what else decides its meaning: what their fingerprints
    are made of, if that is of one kind, else their values."""
    loaded = [each for each in parts if isinstance(each, FingerprintedSequence)]
    if len(loaded) == len(parts) and len(kinds := {each.hashed_as for each in loaded}) == 1:
        return [each.hashed for each in loaded], kinds.pop()

    def values(part: "DataSequence") -> Hashing:
        return lambda positions: bits_of(part.inputs(positions))

    return list(map(values, parts)), type_told(parts[0].inputs(np.zeros(1, np.int64)))
