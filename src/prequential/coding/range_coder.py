"""Labels to bits and back: constriction's range coder over 24-bit frequencies. No torch.

A class of probability p gets at least p·(2²⁴ − C) of 2²⁴ parts and never less than one, so a label costs
at most −ln p + C·2⁻²⁴ nats, and never more than 24 bits, however small p is.
"""

import numpy as np
from numpy.typing import NDArray

from prequential.errors import PreqError

MOST_CLASSES = 1 << 16


class RangeEncoder:
    """Writes labels under given probabilities.

    Example:
        >>> encoder = RangeEncoder()
        >>> encoder.write(np.array([1, 0]), np.array([[0.25, 0.75], [0.9, 0.1]]))
        >>> RangeDecoder(encoder.payload()).read(np.array([[0.25, 0.75], [0.9, 0.1]])).tolist()
        [1, 0]
    """

    def __init__(self) -> None:
        import constriction  # needed only here

        self._coder = constriction.stream.queue.RangeEncoder()
        self._family = constriction.stream.model.Categorical(perfect=False)

    def write(self, labels: NDArray[np.integer], probabilities: NDArray[np.float64]) -> None:
        """Encode one label per row of probabilities."""
        rows = np.ascontiguousarray(probabilities, np.float64)
        self._coder.encode(labels.astype(np.int32), self._family, rows)

    def payload(self) -> bytes:
        """What was written so far, as little-endian 32-bit words."""
        return bytes(self._coder.get_compressed().astype("<u4").tobytes())


class RangeDecoder:
    """Reads labels under the probabilities they were written with."""

    def __init__(self, payload: bytes) -> None:
        import constriction

        self._coder = constriction.stream.queue.RangeDecoder(np.frombuffer(payload, "<u4").astype(np.uint32))
        self._family = constriction.stream.model.Categorical(perfect=False)

    def read(self, probabilities: NDArray[np.float64]) -> NDArray[np.int32]:
        """Decode one label per row of probabilities."""
        try:
            labels = self._coder.decode(self._family, np.ascontiguousarray(probabilities, np.float64))
        except (ValueError, AssertionError) as error:
            raise PreqError(f"the bitstream does not fit the predictions ({error})") from None
        return np.asarray(labels, np.int32)
