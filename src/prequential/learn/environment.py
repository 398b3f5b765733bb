"""The machine: device, threads and versions."""

import importlib.metadata
import os
import platform
import time
import timeit
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

from prequential.errors import PreqError, require_count
from prequential.learn.learner import Learner
from prequential.learn.learning import Learning
from prequential.version import VERSION

MEASURED_STEPS = 8
WORTH_IT = 0.85
"""More threads are taken only if they cut the time to this share: fewer keep runs repeatable."""


def find_device(name: str) -> torch.device:
    """The device of that name, if this machine has it."""
    try:
        device = torch.device(name)
        torch.zeros(1, device=device).item()
    except Exception as error:  # torch raises a different class for each way to be absent
        present = ["cpu", *(f"cuda:{i}" for i in range(torch.cuda.device_count()))]
        if torch.backends.mps.is_available():
            present.append("mps")
        reason = str(error).splitlines()[0][:80]
        raise PreqError(f"device '{name}' is not there ({reason}); this machine has: {', '.join(present)}") from None
    return device


def require_threads(threads: int | str | None) -> None:
    """Refuse anything but a whole number, "auto" or None."""
    if threads is not None and threads != "auto":
        require_count("threads", threads)


def find_num_threads(threads: int | str | None, learner: Learning) -> int | None:
    """The number of threads to use; "auto" tries a few on a copy of the learner."""
    if threads != "auto":
        return None if threads is None else int(threads)
    if learner.device.type != "cpu":
        return None
    if next(learner.model.parameters(), None) is None:
        return 1  # there is no network whose steps could be measured
    scratch = Learner(learner.factory, learner.data, learner.inputs.recipe, seed=0, width=learner.width)
    batch = np.arange(32) % len(learner.data)
    labels = torch.zeros(len(batch), dtype=torch.int64)
    return fastest_num_threads(lambda: scratch.train(batch, labels, 0))


def fastest_num_threads(step: Callable[[], None]) -> int:
    """The number of threads (1, 2, 4, …) at which `step` runs fastest. Small nets often want one."""
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    best, best_seconds = 1, float("inf")
    for candidate in (1 << k for k in range(available.bit_length())):
        with num_threads(candidate):
            seconds = min(timeit.repeat(step, timer=time.perf_counter, number=1, repeat=MEASURED_STEPS))
        if best_seconds == float("inf") or seconds < WORTH_IT * best_seconds:
            best, best_seconds = candidate, seconds
    return best


@contextmanager
def num_threads(number: int | None) -> Iterator[None]:
    """Inside, torch uses that many CPU threads (None: as many as it did)."""
    before = torch.get_num_threads()
    torch.set_num_threads(number or before)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def repeatable(learner: Learning) -> Iterator[None]:
    """Inside, a GPU gives the same bits each time, or says that an operation cannot, if the learner is to be
    deterministic. A CPU always does."""
    with ExitStack() as afterwards:
        if learner.deterministic and learner.device.type != "cpu":
            os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
            afterwards.callback(torch.use_deterministic_algorithms, torch.are_deterministic_algorithms_enabled())
            afterwards.callback(setattr, torch.backends.cudnn, "benchmark", torch.backends.cudnn.benchmark)
            torch.use_deterministic_algorithms(True)
            torch.backends.cudnn.benchmark = False
        yield


@cache
def _processor() -> str:
    """What the CPU is called: two of one capability may still round differently."""
    with suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
        return next((line.partition(": ")[2] for line in lines if line.startswith("model name")), platform.machine())
    return platform.processor() or platform.machine()


def environment(learner: Learning) -> dict[str, Any]:
    """What the numbers of a run may depend on."""
    device = learner.device
    return {
        "prequential": VERSION,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
        "platform": f"{platform.system()} {platform.machine()}",
        "device": str(device),
        "device_name": torch.cuda.get_device_name(device) if device.type == "cuda" else platform.machine(),
        "cuda": torch.version.cuda if device.type == "cuda" else None,
        "cpu_capability": torch.backends.cpu.get_cpu_capability(),
        "processor": _processor(),
        "threads": torch.get_num_threads(),
        **getattr(learner, "libraries", {}),
    } | {name: getattr(learner, name) for name in EXECUTION}


EXECUTION = ("engine", "precision", "compiled", "deterministic", "fallback")
"""How a learner was told to execute events, and what it could not do."""
MATTERS = (
    *("prequential", "torch", "numpy", "scikit-learn", "river", "constriction"),
    *("device_name", "cuda", "cpu_capability", "platform"),
)
"""What the bits of a prediction, and of its code, may depend on."""


def arithmetic(learner: Learning) -> dict[str, Any]:
    """The environment of a code: that of a run, and the version of the range coder."""
    version = None  # of one that came without saying which it is
    with suppress(importlib.metadata.PackageNotFoundError):
        version = importlib.metadata.version("constriction")
    return environment(learner) | {"constriction": version}


def unlike(there: dict[str, Any], learner: Learning) -> str:
    """In brackets, what may make the arithmetic here differ from that of an encoder; nothing where all agrees."""
    here = arithmetic(learner)
    different = [name for name in MATTERS if there.get(name) != here.get(name)]
    said = "; ".join(f"{name} {there.get(name)} there, {here.get(name)} here" for name in different)
    return f" ({said})" if different else ""
