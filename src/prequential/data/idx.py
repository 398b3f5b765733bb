"""The idx format of MNIST and its relatives: magic, sizes, then the values, big-endian."""

import gzip
import math
import struct
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from prequential.errors import PreqError

_TYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}


def read_idx(path: Path) -> NDArray[np.generic]:
    """The array in an idx file, plain or gzipped; read-only.

    Raises:
        PreqError: naming the file and what is wrong with it.
    """
    content = _read(path)
    if len(content) < 4 or content[:2] != b"\0\0" or content[2] not in _TYPES:
        raise PreqError(f"{path} is not an idx file: it begins with {content[:4].hex() or 'nothing'}; get it again")
    num_dimensions = content[3]
    header_size = 4 + 4 * num_dimensions
    if len(content) < header_size:
        raise PreqError(f"{path} is truncated inside its header ({len(content)} bytes); get it again")
    shape = struct.unpack(f">{num_dimensions}I", content[4:header_size])
    dtype = np.dtype(_TYPES[content[2]])
    expected = header_size + math.prod(shape) * dtype.itemsize
    if len(content) != expected:
        state = "truncated" if len(content) < expected else "too long"
        raise PreqError(
            f"{path} is {state}: {len(content)} bytes, but its header {shape} says {expected}; get it again"
        )
    values = np.frombuffer(content, dtype, offset=header_size).reshape(shape)
    return values if dtype.itemsize == 1 else values.astype(dtype.newbyteorder("="))


def _read(path: Path) -> bytes:
    try:
        content = path.read_bytes()
        return gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content
    except OSError as error:
        reason = error.strerror or str(error)
    except (EOFError, zlib.error) as error:
        reason = str(error)
    raise PreqError(f"{path} cannot be read: {reason}; get it again")
