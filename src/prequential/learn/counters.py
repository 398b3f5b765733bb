"""The counters of batch-norm layers, of which a step would else move each by a kernel of its own."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import torch
from torch import nn


class Counters:
    """What batch-norm layers count batches with that do not use the count: moved by one kernel for all."""

    def __init__(self, layers: Iterable[nn.Module]) -> None:
        norms = [layer for layer in layers if isinstance(layer, nn.modules.batchnorm._BatchNorm)]
        self._norms = [n for n in norms if n.momentum is not None and n.num_batches_tracked is not None]
        self._counters = [counter for norm in self._norms if (counter := norm.num_batches_tracked) is not None]

    @contextmanager
    def put_aside(self) -> Iterator[None]:
        """Inside, the layers do not count."""
        for norm in self._norms:
            norm.num_batches_tracked = None
        try:
            yield
        finally:
            for norm, counter in zip(self._norms, self._counters, strict=True):
                norm.num_batches_tracked = counter

    def move(self) -> None:
        """Count a batch."""
        if self._counters:
            torch._foreach_add_(self._counters, 1)
