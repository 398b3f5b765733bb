"""A clock for sweeps that share a study."""

import sys

import pytest

from prequential.sweeps.storage import Pulse


@pytest.fixture
def _time_passes_by_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Signs of life in this process are given, and time passes, only while a sweep waits for the others."""
    now, pulses, begin = 0.0, list[Pulse](), Pulse.__init__

    def begun(pulse: Pulse, *arguments: object) -> None:
        begin(pulse, *arguments)  # type: ignore[arg-type]
        pulses.append(pulse)

    def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds
        for pulse in pulses:
            if not pulse._closed.is_set():
                pulse.beat()

    monkeypatch.setattr(Pulse, "__init__", begun)
    monkeypatch.setattr(Pulse, "_go", lambda pulse: None)
    monkeypatch.setattr(sys.modules["prequential.sweeps.storage"], "monotonic", lambda: now)
    monkeypatch.setattr(sys.modules["prequential.sweeps.ledger"], "sleep", sleep)
