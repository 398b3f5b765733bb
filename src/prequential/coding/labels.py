"""The one border that labels cross.

The loop asks for a prediction first and for the labels afterwards. Who answers decides what the run
is: a scorer knows the labels; an encoder knows them and writes bits; a decoder reads bits and finds
them. Learners only ever see labels that were revealed.
"""

import zlib
from abc import ABC, abstractmethod
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from prequential.coding.range_coder import RangeDecoder, RangeEncoder
from prequential.data.device import send_to
from prequential.data.optional import capabilities
from prequential.data.sequence import DataSequence
from prequential.errors import PreqError
from prequential.events import Indices
from prequential.plan import require_next, require_revealed

HIDDEN = -1
"""Stands where a label has not been decoded; no loss accepts it."""
CHECKED_TOGETHER = 1024
SUM_TOLERANCE = 1e-6
"""How far above 1 the probabilities of a label may sum: rounding is allowed, free nats are not."""


class Predictor(Protocol):
    """What is said of a span before its labels are known: one label at a time or, the fast case, all at once.

    Where `rows` gives None, `row` and `tell` are called in turns, once for each label in order: a prediction may need
    the label before. Scorer, encoder and decoder call them alike, so it must be a pure function of what it was told.
    """

    def rows(self) -> Tensor | None:
        """Log-probabilities (float64) of every label of the span, a row for each, if none needs the label before."""

    def row(self) -> Tensor:
        """Log-probabilities (float64) of the next label."""

    def tell(self, label: int) -> None:
        """The label that `row` was about."""


class Labels(ABC):
    """Labels that appear as the run goes. Spans are revealed once, in order; those beyond the frontier are hidden, and
    asking for one is a mistake of the plan.

    Args:
        data: whose labels they are.
        on_device: all labels, those that are known so far; None where they are read from the data when they are needed.
    """

    knows_all = False
    """Whether a predictor that mixes (it `can_wait`) need not be walked through: it is told all labels afterwards."""

    def __init__(self, data: DataSequence, on_device: Tensor | None) -> None:
        self._data, self._on_device = data, on_device
        self.length, self.frontier = len(data), 0

    def reveal(self, start: int, stop: int, predictor: Predictor) -> Tensor:
        """The labels of a span, given who predicts them."""
        self.frontier = require_next(start, stop, self.frontier, self.length, "the plan")
        rows = predictor.rows()
        if rows is not None and rows.shape[-2] != stop - start:
            raise PreqError(
                f"positions {start} to {stop - 1} were predicted by {rows.shape[-2]} rows; give one for each of them"
            )
        if rows is not None or (self.knows_all and getattr(predictor, "can_wait", False)):
            return self._cross(start, stop, rows)
        crossed = []
        for position in range(start, stop):
            crossed.append(self._cross(position, position + 1, predictor.row()[None]))
            predictor.tell(int(crossed[-1]))
        return torch.cat(crossed)

    @abstractmethod
    def _cross(self, start: int, stop: int, rows: Tensor | None) -> Tensor:
        """The labels of a span, given the log-probabilities of each."""

    def of(self, indices: Indices) -> Tensor:
        """Revealed labels at these positions."""
        require_revealed(indices, self.frontier, "the plan")
        if self._on_device is None:
            return self._data.labels(indices)
        return self._on_device.index_select(0, send_to(self._on_device.device, indices))


class Scorer(Labels):
    """Knows the labels from the start and reveals them without making the device wait.

    On a CPU they are read from the data when they are needed, so that memory does not grow with it.
    """

    knows_all = True

    def __init__(self, data: DataSequence, device: torch.device) -> None:
        self._target = capabilities(data).target
        super().__init__(data, None)
        if device.type != "cpu":
            self._on_device = self._known(0, len(data)).to(device)

    def _cross(self, start: int, stop: int, rows: Tensor | None) -> Tensor:
        if rows is not None and rows.device.type == "cpu":  # another device would have to be waited for
            require_code(start, rows)
        return self._known(start, stop) if self._on_device is None else self._on_device[start:stop]

    def _known(self, start: int, stop: int) -> Tensor:
        labels = self._data.labels(np.arange(start, stop))
        values = labels.numpy()
        if (values < 0).any():
            raise PreqError(f"'{self._data.name}' has no labels; they can be decoded, not scored")
        self._target.require(values)
        return labels


class Encoder(Scorer):
    """Knows the labels and writes them as bits."""

    knows_all = False

    def __init__(self, data: DataSequence, device: torch.device) -> None:
        super().__init__(data, device)
        self.coder = RangeEncoder()

    def _cross(self, start: int, stop: int, rows: Tensor | None) -> Tensor:
        assert rows is not None
        rows = rows.cpu()
        labels = super()._cross(start, stop, rows)
        if bool(rows.isfinite().any(dim=1).all()):  # a diverged prediction has no code
            self.coder.write(labels.cpu().numpy(), rows.exp().numpy())
        return labels


class Decoder(Labels):
    """Reads bits and finds the labels; knows none beforehand.

    `checks` are fingerprints of every block of CHECKED_TOGETHER labels: a decoder whose arithmetic
    differs from the encoder's is stopped at the first block that is wrong.
    """

    def __init__(self, data: DataSequence, device: torch.device, payload: bytes, checks: list[str]) -> None:
        self._labels = torch.full((len(data),), HIDDEN, device=device)
        super().__init__(data, self._labels)
        self._coder, self._checks = RangeDecoder(payload), checks

    def _cross(self, start: int, stop: int, rows: Tensor | None) -> Tensor:
        assert rows is not None
        if not bool(rows.isfinite().any(dim=1).all()):
            raise PreqError("the prediction is not finite here, as it was when encoding")
        self._labels[start:stop] = torch.from_numpy(self._coder.read(rows.exp().cpu().numpy())).to(self._labels)
        for block in range(start // CHECKED_TOGETHER, stop // CHECKED_TOGETHER):
            self._check(block)
        return self._labels[start:stop]

    def _check(self, block: int) -> None:
        begin = block * CHECKED_TOGETHER
        decoded = self._labels[begin : begin + CHECKED_TOGETHER].cpu().numpy()
        if block_checks(decoded) != [self._checks[block]]:
            raise PreqError(
                f"labels {begin} to {begin + len(decoded) - 1} decode to something else than was encoded: "
                "the arithmetic here differs from the encoder's"
            )

    def labels(self) -> NDArray[np.int64]:
        """All labels, every block verified."""
        for block in range(self.frontier // CHECKED_TOGETHER, len(self._checks)):
            self._check(block)
        return self._labels.cpu().numpy()


def require_code(start: int, rows: Tensor) -> None:
    """Refuse log-probabilities, a row for each position from `start`, of more than 1 in all: no code is so short.

    Example:
        >>> require_code(8, torch.tensor([[0.5, 0.5], [0.5, 0.75]]).log())
        Traceback (most recent call last):
        ...
        prequential.errors.PreqError: the probabilities at position 9 sum to 1.25, of which there is no code; \
normalise them (log_softmax, in float64)
    """
    sums = rows.exp().sum(-1)
    too_much = sums > 1 + SUM_TOLERANCE
    if bool(too_much.any()):
        *_, row = too_much.nonzero()[0].tolist()
        worst = float(sums[..., row].max())
        raise PreqError(
            f"the probabilities at position {start + row} sum to {worst:.7g}, of which there is no code; "
            "normalise them (log_softmax, in float64)"
        )


def block_checks(labels: NDArray[np.integer]) -> list[str]:
    """A 32-bit fingerprint of each block of CHECKED_TOGETHER labels.

    Example:
        >>> block_checks(np.arange(3))
        ['3b48a444']
    """
    blocks = range(0, len(labels), CHECKED_TOGETHER)
    return [f"{zlib.crc32(labels[b : b + CHECKED_TOGETHER].astype('<u2').tobytes()):08x}" for b in blocks]
