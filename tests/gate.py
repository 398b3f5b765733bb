"""A model that stands still at a gate, for runs that must not end before a test allows it.

`preq run mnist tests/gate.py:net` is a run of mlp1; `tests.processes.Gate` puts the gate into its way.
"""

import os
import signal
import time
from pathlib import Path

from torch import Tensor, nn

from prequential.models import build


class Gated(nn.Module):
    """A network that counts its training steps."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network, self.steps = network, 0

    def forward(self, inputs: Tensor) -> Tensor:
        if self.training:
            self.steps += 1
            wait_at_the_gate(self.steps)
        logits: Tensor = self.network(inputs)
        return logits


def net(input_shape: tuple[int, ...], num_classes: int, width: float = 1.0) -> nn.Module:
    """mlp1, gated."""
    return Gated(build("mlp1", input_shape, num_classes, width=width))


def wait_at_the_gate(step: int) -> None:
    """Wait if there is a gate at this step or before it."""
    told = os.environ.get("PREQ_TEST_GATE")
    if told is None:
        return
    first, most_seconds, folder = told.split(":", 2)
    if step < int(first):
        return
    (Path(folder) / str(os.getpid())).touch()
    deadline = time.monotonic() + float(most_seconds)
    while not ((Path(folder) / "open").exists() or is_asked_to_stop()) and time.monotonic() < deadline:
        time.sleep(0.01)


def is_asked_to_stop() -> bool:
    """Whether the run has heard of a signal, which it heeds after this step."""
    listener = getattr(signal.getsignal(signal.SIGINT), "__self__", None)
    return bool(getattr(listener, "requested", False))
