"""Memory that a training step frees is kept for the next one."""

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

_TRIM, _MMAP = -1, -3
"""What the C library of GNU calls the two thresholds, in bytes: free memory beyond the first goes back to the system,
and so does each block beyond the second when it is freed."""
_KEPT = {_TRIM: 2**31 - 1, _MMAP: 2**26}
"""All that is free, but no block so large that others do not fit into the hole it leaves."""
_USUAL = {_TRIM: 2**26, _MMAP: 2**25}
"""As far as the library itself goes where it adapts them."""


@cache
def _c_library() -> Any:
    """That of GNU, unless the user has told it what to do; else None."""
    library, told = ctypes.CDLL(None), (*("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_"), "GLIBC_TUNABLES")
    return library if hasattr(library, "gnu_get_libc_version") and not any(map(os.environ.get, told)) else None


@contextmanager
def freed_memory_kept() -> Iterator[None]:
    """Inside, what is freed stays with the process; afterwards all of it goes back to the system.

    A step of a convolutional network takes and frees some large blocks. Left alone, the C library gives them back and
    fetches them anew at the next step, page by page, up to a third of all processor time (`benchmarks/memory.txt`). No
    result depends on it. Only the C library of GNU has this; others are left as they are.
    """
    if (library := _c_library()) is None:
        yield
        return
    for threshold, size in _KEPT.items():
        library.mallopt(threshold, size) or library.mallopt(threshold, _USUAL[threshold])  # of old, it has a limit
    try:
        yield
    finally:
        for threshold, size in _USUAL.items():
            library.mallopt(threshold, size)
        library.malloc_trim(0)
