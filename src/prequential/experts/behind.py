"""Mixing behind a device: a thread fetches predictions and mixes them in order, while the device goes on."""

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

from torch import Tensor

from prequential.experts.code import Floats
from prequential.experts.prediction import MixedPrediction
from prequential.learn.capture import MAY_WAIT

MOST_WAITING = 512
"""Spans that may wait to be mixed; their predictions take room on the device."""


class MixingBehind:
    """One thread, which takes spans in the order they are given. Everything it did is there once `all` is through."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, "mixing")
        self._waiting: deque[tuple[int, Future[Floats]]] = deque()

    def add(self, start: int, prediction: MixedPrediction, labels: Tensor) -> None:
        """A prediction whose labels are revealed, or already told."""
        self._waiting.append((start, self._thread.submit(_charged, prediction, labels)))

    def done(self) -> Iterator[tuple[int, Floats]]:
        """What is mixed so far: where each span begins, and what was measured of it."""
        while self._waiting and (self._waiting[0][1].done() or len(self._waiting) > MOST_WAITING):
            start, future = self._waiting.popleft()
            yield start, future.result()

    def all(self) -> Iterator[tuple[int, Floats]]:
        """What was given, all of it; waits."""
        while self._waiting:
            start, future = self._waiting.popleft()
            yield start, future.result()

    def close(self) -> None:
        """End the thread; what nobody waited for is given up."""
        self._thread.shutdown(cancel_futures=True)


def _charged(prediction: MixedPrediction, labels: Tensor) -> Floats:
    """What was measured of a span; the device is waited for while nothing is recorded there."""
    with MAY_WAIT:
        known = labels.cpu().numpy()
        prediction.at_once()
    return prediction.charged(known)
