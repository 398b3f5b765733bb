"""What a person sees of single examples: what their source calls them, and small pictures."""

import base64
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from prequential.data.optional import capabilities
from prequential.data.sequence import DataSequence, LoadedSequence
from prequential.errors import PreqError

LARGEST = 64
"""The longer side of a small picture, in pixels."""


class OfData(Protocol):
    """What a record says of its data."""

    @property
    def data(self) -> Mapping[str, Any]:
        """Name and fingerprints."""

    @property
    def length(self) -> int:
        """Labels in the sequence."""


@dataclass(frozen=True)
class ShownExample:
    """What a person sees of an example."""

    name: str | None = None
    """What its source calls it, such as the path of an image."""
    picture: str | None = None
    """A small one, as a `data:` address; None where the input is no image."""


@dataclass(frozen=True)
class ShownExamples:
    """The examples of runs on some data: `pq.write_report(runs, "a.html", examples=pq.ShownExamples(data))`.

    Example:
        >>> import prequential as pq
        >>> data = pq.load_data("mnist").take(64).without_heldout()
        >>> record = pq.run("mlp1", data, pq.ReplayStreams(num_streams=1), seed=0)
        >>> ShownExamples(data)(record, [3])[3].picture[:22]
        'data:image/png;base64,'
    """

    data: DataSequence

    def __call__(self, record: OfData, positions: Sequence[int]) -> dict[int, ShownExample]:
        """What is at these positions.

        Raises:
            PreqError: if the run was not made with this data: its labels are others, or in another order.
        """
        data = self.data
        if isinstance(data, LoadedSequence) and len(data) > record.length:
            data = data.take(record.length)
        if data.digests()["labels"] != record.data.get("labels"):
            wanted = f"the '{record.data.get('name')}' of the run, in its order"
            raise PreqError(f"the data '{data.name}' has other labels than {wanted}; give the data of the run")
        more, inputs = capabilities(data), data.inputs(np.asarray(positions, np.int64)).numpy()
        rows = None if more.source_rows is None else more.source_rows[list(positions)].tolist()
        names = [None if rows is None else more.describe(rows[n]) for n in range(len(positions))]
        return {
            position: ShownExample(name, picture_of(values))
            for position, name, values in zip(positions, names, inputs, strict=True)
        }


def picture_of(values: NDArray[Any]) -> str | None:
    """An input as a small PNG in a `data:` address, if it has channels, height and width.

    Example:
        >>> picture_of(np.zeros(3)) is None, picture_of(np.zeros((1, 8, 8), np.uint8)).startswith("data:image/png")
        (True, True)
    """
    if values.ndim != 3 or not 1 <= values.shape[0] <= 4 or min(values.shape[1:]) < 2:
        return None
    if values.dtype != np.uint8:
        real = values.astype(np.float64)
        low, high = real.min(), real.max()
        values = np.rint((real - low) * (255 / (high - low) if high > low else 0)).astype(np.uint8)
    if len(values) == 2:
        values = np.concatenate([values, np.zeros_like(values[:1])])
    picture = Image.fromarray(values[0] if len(values) == 1 else np.ascontiguousarray(values[:3].transpose(1, 2, 0)))
    picture.thumbnail((LARGEST, LARGEST))
    buffer = io.BytesIO()
    picture.save(buffer, "png")
    return f"data:image/png;base64,{base64.b64encode(buffer.getvalue()).decode()}"
