"""Small real parts for the tests: a data set made of two moons' worth of numbers, and real MNIST."""

import gc
import os
import signal
import traceback
import warnings
from collections.abc import Generator, Iterator

os.environ.setdefault("OMP_WAIT_POLICY", "passive")
os.environ.pop("PREQ_DATA", None)

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, settings

from prequential.data.arrays import from_arrays
from prequential.data.sequence import ArraySequence
from prequential.data.sources import load
from prequential.rng import derive, uniforms

from .processes import end_all

torch.set_num_threads(1)
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:  # in the background of a shell; processes would inherit it
    signal.signal(signal.SIGINT, signal.default_int_handler)
settings.register_profile(
    "ours", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True, print_blob=True
)  # no clock decides
settings.load_profile("ours")


def blobs(length: int, *, num_classes: int = 3, num_inputs: int = 5, seed: int = 0) -> ArraySequence:
    """Classes as blurred points: learnable within a few steps."""
    draws = uniforms(derive(seed, "blobs"), np.arange(length * (num_inputs + 1))).reshape(length, num_inputs + 1)
    labels = (draws[:, 0] * num_classes).astype(np.int64)
    centres = uniforms(derive(seed, "centres"), np.arange(num_classes * num_inputs)).reshape(num_classes, num_inputs)
    inputs = (centres[labels] * 4 + draws[:, 1:]).astype(np.float32)
    held = slice(0, max(length // 4, 2))
    return from_arrays(
        inputs, labels, num_classes=num_classes, heldout=(inputs[held] + 0.01, labels[held]), name="blobs"
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Let go of what a failed test has left open: found later, it would be an error of another test."""
    report = yield
    if report.failed and call.excinfo is not None and not item.config.option.usepdb:
        with warnings.catch_warnings(action="ignore"):
            _forget(call.excinfo.value)
            gc.collect()
    return report


def _forget(error: BaseException | None) -> None:
    """Drop the variables of the functions that an error, and those that led to it, came through."""
    while error is not None:
        traceback.clear_frames(error.__traceback__)
        for frame, _ in traceback.walk_tb(error.__traceback__):
            frame.f_locals.copy()  # reading them brings the copy up to date that the report has made the frame keep
        error = error.__cause__ or error.__context__


@pytest.fixture(autouse=True)
def _nothing_is_left_running() -> Iterator[None]:
    """A test that fails half-way leaves nothing behind that others could stumble over."""
    yield
    end_all()


@pytest.fixture(scope="session")
def mnist() -> ArraySequence:
    data = load("mnist")
    assert isinstance(data, ArraySequence)
    return data
