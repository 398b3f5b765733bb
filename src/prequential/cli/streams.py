"""Standard output and standard error of which the reader may go: that ends no command, and costs no result."""

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any


class _Pipe(io.FileIO):
    """A stream; what is written when nobody reads any more goes nowhere."""

    is_heard = True

    def write(self, content: Any) -> int:
        try:
            return super().write(content)
        except BrokenPipeError:
            self.is_heard = False
            return len(content)


@contextmanager
def patient_streams() -> Iterator[None]:
    """Inside, a command does its work to the end, whoever listens: `preq pareto runs -o front.png | head -1` draws."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = map(_patient, before)
    try:
        yield
    finally:
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError):  # it was told where it happened
                stream.flush()
        sys.stdout, sys.stderr = before


def is_heard() -> bool:
    """Whether standard output has a reader, as far as was noticed."""
    pipe = getattr(getattr(sys.stdout, "buffer", None), "raw", None)
    return not isinstance(pipe, _Pipe) or pipe.is_heard


def _patient(stream: Any) -> Any:
    if stream is None:  # closed from the beginning; its number would go to the next file that is opened
        return os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", closefd=False)
    try:
        number = stream.fileno()
    except OSError:  # a notebook's or a test's
        return stream
    stream.flush()
    pipe = io.BufferedWriter(_Pipe(number, "w", closefd=False))
    how = {"line_buffering": stream.line_buffering, "write_through": stream.write_through}
    return io.TextIOWrapper(pipe, stream.encoding, stream.errors, **how)
