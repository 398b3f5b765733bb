"""How inputs reach a captured program: gathered from data that lives on the device, or streamed to it.

A slot is where one program finds its batch. Before a replay the host calls `place`; inside, the program calls
`take`.
"""

from collections import deque
from collections.abc import Callable
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from prequential.data.optional import capabilities
from prequential.data.sequence import DataSequence
from prequential.events import Indices
from prequential.learn.inputs import Inputs

SHARE = 0.4
"""Of the free memory of a GPU, what resident data may take."""
COPIED_AT_ONCE = 1 << 26
IN_FLIGHT = 4
"""Batches that wait on the device for their turn."""


class Slot(Protocol):
    """The place of one program's batch."""

    def place(self, positions: Indices, key: int | None) -> None:
        """Make the inputs at these positions ready; with a key, as they are trained on. They may be fewer than the
        slot holds."""

    def take(self, positions: Tensor) -> Tensor:
        """The batch as network input. `positions` are the same, on the device."""


Feed = Callable[[int], Slot]
"""Gives every program its slot, for batches of that size."""


def make_feed(inputs: Inputs) -> Feed:
    """Resident where the data is quickly read, looks the same in training as in prediction, and fits."""
    if not capabilities(inputs.data).reads_slowly and fits(inputs.data, inputs.device):
        resident = Resident(inputs)
        return lambda size: resident
    on_gpu = inputs.device.type == "cuda"
    copying = torch.cuda.Stream(inputs.device) if on_gpu else None  # type: ignore[no-untyped-call]
    return lambda size: Streamed(inputs, size, copying)


def fits(data: DataSequence, device: torch.device) -> bool:
    """Whether all inputs may live on the device."""
    free = 1 << 31
    if device.type == "cuda":
        unused = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        free = torch.cuda.mem_get_info(device)[0] + unused
    return len(data) * data.inputs(np.zeros(1, np.int64)).nbytes <= SHARE * free


class Resident:
    """All inputs on the device as they are stored, images with their channels last; batches are gathered there."""

    def __init__(self, inputs: Inputs) -> None:
        self._inputs = inputs
        data = inputs.data
        first = data.inputs(np.zeros(1, np.int64))
        self._is_image = first.dim() == 4
        shape = first.permute(0, 2, 3, 1).shape[1:] if self._is_image else first.shape[1:]
        self._rows = torch.empty(len(data), *shape, dtype=first.dtype, device=inputs.device)
        step = max(1, COPIED_AT_ONCE // max(first.nbytes, 1))
        for start in range(0, len(data), step):
            rows = data.inputs(np.arange(start, min(start + step, len(data))))
            self._rows[start : start + step] = rows.permute(0, 2, 3, 1) if self._is_image else rows

    def place(self, positions: Indices, key: int | None) -> None:
        pass

    def take(self, positions: Tensor) -> Tensor:
        rows = self._rows.index_select(0, positions)
        return self._inputs.prepared(rows.permute(0, 3, 1, 2) if self._is_image else rows)


class Streamed:
    """A buffer on the device that holds the batch of the next replay: read from the sequence, and copied from pinned
    memory while the device computes."""

    def __init__(self, inputs: Inputs, size: int, copying: torch.cuda.Stream | None) -> None:
        self._inputs, self._copying = inputs, copying
        stored = inputs.data.inputs(np.zeros(1, np.int64))
        self._batch = stored.new_empty((size, *stored.shape[1:]), device=inputs.device).zero_()
        self._copied: deque[torch.cuda.Event] = deque()

    def place(self, positions: Indices, key: int | None) -> None:
        data, stream = self._inputs.data, self._copying
        stored = data.inputs(positions) if key is None else capabilities(data).training_inputs(positions, key)
        if stream is None:
            self._batch[: len(stored)] = stored
            return
        if len(self._copied) == IN_FLIGHT:
            self._copied.popleft().synchronize()
        computing = torch.cuda.current_stream(self._batch.device)
        with torch.cuda.stream(stream):
            arrived = stored.pin_memory().to(self._batch.device, non_blocking=True)
        computing.wait_stream(stream)
        self._batch[: len(arrived)].copy_(arrived)
        arrived.record_stream(computing)
        done = torch.cuda.Event()  # type: ignore[no-untyped-call]
        done.record(computing)
        self._copied.append(done)

    def take(self, positions: Tensor) -> Tensor:
        return self._inputs.prepared(self._batch)
