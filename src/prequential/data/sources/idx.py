"""The idx format of MNIST and its relatives: magic, sizes, then the values, big-endian."""

import gzip
import math
import struct
import zlib
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from prequential.errors import PreqError

MOST_BYTES = 1 << 36
_TYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}


def read_idx(path: Path) -> NDArray[np.generic]:
    """The array in an idx file, plain or gzipped. No more is read than its header says.

    Raises:
        PreqError: naming the file and what is wrong with it.
    """
    try:
        with path.open("rb") as raw:
            packed = raw.read(2) == b"\x1f\x8b"
            raw.seek(0)
            if not packed:
                return _read(path, raw)
            with gzip.GzipFile(fileobj=raw) as unpacked:
                return _read(path, unpacked)
    except OSError as error:
        reason = error.strerror or str(error)
    except (EOFError, zlib.error) as error:
        reason = str(error)
    raise PreqError(f"{path} cannot be read: {reason}; get it again")


def _read(path: Path, file: IO[bytes] | gzip.GzipFile) -> NDArray[np.generic]:
    magic = file.read(4)
    if len(magic) < 4 or magic[:2] != b"\0\0" or magic[2] not in _TYPES:
        raise PreqError(f"{path} is not an idx file: it begins with {magic.hex() or 'nothing'}; get it again")
    num_dimensions = magic[3]
    sizes = file.read(4 * num_dimensions)
    if len(sizes) < 4 * num_dimensions:
        raise PreqError(f"{path} is truncated inside its header; get it again")
    shape, dtype = struct.unpack(f">{num_dimensions}I", sizes), np.dtype(_TYPES[magic[2]])
    expected = math.prod(shape) * dtype.itemsize
    if expected > MOST_BYTES:
        raise PreqError(f"{path} claims {expected} bytes of values, more than {MOST_BYTES}; is it an idx file?")
    content = file.read(expected + 1)
    if len(content) != expected:
        state = "truncated" if len(content) < expected else "too long"
        raise PreqError(f"{path} is {state}: {len(content)} bytes of values, its header {shape} says {expected}")
    values = np.frombuffer(content, dtype).reshape(shape)
    return values if dtype.itemsize == 1 else values.astype(dtype.newbyteorder("="))
