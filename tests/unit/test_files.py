"""Arrays in files that are written and read piece by piece."""

import contextlib
import os
from pathlib import Path

import numpy as np
import pytest

from prequential.errors import PreqError
from prequential.files import HEADER_SIZE, ArrayFile

MOST = 5
"""Bytes that the system moves at a time here; Linux stops below 2 GiB."""


def test_an_array_is_whole_however_few_bytes_the_system_moves_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pread, pwrite = os.pread, os.pwrite
    monkeypatch.setattr(os, "pread", lambda file, size, offset: pread(file, min(size, MOST), offset))
    monkeypatch.setattr(os, "pwrite", lambda file, content, offset: pwrite(file, content[:MOST], offset))
    values = np.arange(24, dtype=np.float32).reshape(8, 3)
    with contextlib.closing(ArrayFile(tmp_path / "a.npy", values.dtype, 8, (3,), create=True)) as file:
        file.write(0, values)
        np.testing.assert_array_equal(file.read(0, 8), values)
        np.testing.assert_array_equal(file.read(2, 5), values[2:5])
        assert file.read(4, 4).shape == (0, 3)


def test_a_file_that_ends_too_early_is_told(tmp_path: Path) -> None:
    with contextlib.closing(ArrayFile(tmp_path / "a.npy", np.dtype("<i8"), 4, create=True)) as file:
        os.truncate(tmp_path / "a.npy", HEADER_SIZE + 10)
        with pytest.raises(PreqError, match="is truncated: 10 bytes where 32 should be"):
            file.read(0, 4)
