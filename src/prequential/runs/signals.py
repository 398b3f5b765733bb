"""Ctrl-C and SIGTERM as a request to stop at the next event, so that what is saved is whole."""

import signal
import threading
from types import FrameType


class StopRequest:
    """While active, the first SIGINT or SIGTERM sets `signal_number`; the second interrupts at once.

    One inside another takes the signals and a request that came before, and passes the request on when it ends: no
    trial misses what its sweep was told, and no sweep what its trial was.
    """

    def __init__(self) -> None:
        self.signal_number = 0
        self._before: dict[int, object] = {}

    @property
    def requested(self) -> bool:
        """Whether someone asked to stop."""
        return self.signal_number != 0

    def __enter__(self) -> "StopRequest":
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = outer = signal.signal(number, self._note)
                if isinstance(owner := getattr(outer, "__self__", None), StopRequest):
                    self.signal_number = self.signal_number or owner.signal_number
        return self

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.requested:
            raise KeyboardInterrupt
        self.signal_number = number

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]  # what signal.signal gave us
            outer = getattr(handler, "__self__", None)
            if isinstance(outer, StopRequest) and not outer.requested:
                outer.signal_number = self.signal_number  # asked when this one had nothing left to stop
