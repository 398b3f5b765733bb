"""Signs of life: directories that share a study see which of them are still there. No torch."""

import contextlib
import threading
import uuid
from time import monotonic
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from optuna.study import Study

SIGN = "alive "
BEATS_PER_GRACE = 8


class Pulse:
    """Writes a sign of life into the study and listens for those of others, in a thread.

    No clock is compared with another machine's: whoever listens takes a directory for dead when its sign has not
    changed for the grace time by his own clock, while he was listening without a gap.
    """

    def __init__(self, study: "Study", mark: str, grace_seconds: float) -> None:
        self._study, self._mark, self._grace = study, mark, grace_seconds
        self._heard: dict[str, tuple[object, float]] = {}
        self._last_look = monotonic()
        self._lock, self._closed = threading.Lock(), threading.Event()
        self.beat()
        self._thread = threading.Thread(target=self._go, name="pulse", daemon=True)
        self._thread.start()

    @property
    def seconds(self) -> float:
        """How often a sign is given."""
        return self._grace / BEATS_PER_GRACE

    def _go(self) -> None:
        while not self._closed.wait(self.seconds):
            with contextlib.suppress(Exception):  # a database that is away for a while: the next beat tries again
                self.beat()

    def beat(self) -> None:
        """Give one sign, and look for those of others."""
        self._study.set_user_attr(f"{SIGN}{self._mark}", uuid.uuid4().hex)
        attributes = self._study.user_attrs
        self._note({key[len(SIGN) :]: value for key, value in attributes.items() if key.startswith(SIGN)})

    def _note(self, signs: dict[str, object]) -> None:
        now = monotonic()
        with self._lock:
            if now - self._last_look > self._grace / 2:  # we were away ourselves, and know nothing of the time between
                self._heard = {mark: (sign, now) for mark, (sign, _) in self._heard.items()}
            for mark, sign in signs.items():
                if mark not in self._heard or self._heard[mark][0] != sign:
                    self._heard[mark] = (sign, now)
            self._last_look = now

    def is_silent(self, mark: str) -> bool:
        """Whether that directory has given no sign for the grace time. One never heard of is listened for from now."""
        with self._lock:
            _, since = self._heard.setdefault(mark, (None, monotonic()))
            return self._last_look - since > self._grace

    def close(self) -> None:
        """Give no more signs."""
        self._closed.set()
        self._thread.join()
