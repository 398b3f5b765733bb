"""More inputs than labels: positions below the length are coded; those from there on are inputs alone."""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray

from prequential.data.arrays import from_arrays
from prequential.data.digest import BLOCK_ROWS, digests_of_each
from prequential.data.fingerprints import Hashing, Positions, hashing
from prequential.data.optional import Read, capabilities, is_sequence
from prequential.data.sequence import DataSequence, LoadedSequence, shorter
from prequential.errors import PreqError, PreqWarning, require_count
from prequential.rng import derive


def with_num_labels(data: LoadedSequence, num_labels: int) -> "PartlyLabelled":
    """See `LoadedSequence.with_num_labels`."""
    require_count("num_labels", num_labels)
    if num_labels > len(data):
        raise PreqError(f"num_labels {num_labels} is more than the {len(data)} labels of '{data.name}'; give fewer")
    source = None if data.source is None else {**data.source, "num_labels": int(num_labels)}
    made = PartlyLabelled(data, int(num_labels), np.arange(data.num_inputs), source=source)
    return made.without_heldout_inputs()


def with_unlabelled(data: LoadedSequence, inputs: Any) -> "PartlyLabelled":
    """See `LoadedSequence.with_unlabelled`."""
    more: DataSequence = inputs if is_sequence(inputs) else from_arrays(inputs, name="inputs without labels")
    _require_alike(more, data)
    made = PartlyLabelled(data, len(data), np.arange(data.num_inputs + capabilities(more).num_inputs), more)
    return made.without_heldout_inputs()


def _require_alike(more: DataSequence, data: LoadedSequence) -> None:
    """Refuse inputs that the network of the others cannot take, or would take for something else."""
    firsts = (each.inputs(np.zeros(1, np.int64))[0] for each in (more, data))
    got, wanted = (f"{first.dtype} of shape {tuple(first.shape)}" for first in firsts)
    if got != wanted:
        told = f"inputs without labels must be like those of '{data.name}'"
        raise PreqError(f"{told}, got {got}, wanted {wanted}; make them alike")
    scale = capabilities(more).scale
    if None not in (scale, data.scale) and scale != data.scale:
        raise PreqError(
            f"inputs without labels have the scale {scale}, those of '{data.name}' have {data.scale}; make them alike"
        )


def _of_whole(name: str) -> Any:
    """What holds of the sequence that the labels are from."""
    return property(attrgetter(f"whole.{name}"))


@dataclass(frozen=True, eq=False, repr=False)
class PartlyLabelled(LoadedSequence):
    """A sequence with more inputs than labels. Make one with `with_num_labels` or `with_unlabelled`."""

    whole: LoadedSequence
    """The labels, and inputs."""
    num_labels: int
    places: Positions
    """For each position where its input is: in `whole`, or so far behind its end in `more`."""
    more: DataSequence | None = None
    left_out: int = 0
    source: Mapping[str, Any] | None = None

    name = _of_whole("name")
    num_classes = _of_whole("num_classes")
    target = _of_whole("target")
    input_shape = _of_whole("input_shape")
    order_seed = _of_whole("order_seed")
    heldout = _of_whole("heldout")
    origin = _of_whole("origin")
    conditioned_on = _of_whole("conditioned_on")
    scale = _of_whole("scale")
    training_view = _of_whole("training_view")
    listing = _of_whole("listing")
    schema = _of_whole("schema")
    class_names = _of_whole("class_names")
    num_rows = _of_whole("num_rows")

    def __len__(self) -> int:
        return self.num_labels

    @property
    def num_inputs(self) -> int:
        return len(self.places)

    @property
    def num_left_out(self) -> int:
        return self.left_out + self.whole.num_left_out

    @property
    def training_differs(self) -> bool:
        return any(capabilities(each).training_differs for each in self._parts)

    @property
    def reads_slowly(self) -> bool:
        return any(capabilities(each).reads_slowly for each in self._parts)

    @property
    def _parts(self) -> list[DataSequence]:
        return [self.whole] if self.more is None else [self.whole, self.more]

    @property
    def source_rows(self) -> torch.Tensor | None:
        rows = self.whole.source_rows
        return None if rows is None else rows[: self.num_labels]

    def describe(self, row: int) -> str | None:
        return self.whole.describe(row)

    def labels(self, positions: Positions) -> torch.Tensor:
        self._require_within(positions, self.num_labels)
        return self.whole.labels(positions)

    def inputs(self, positions: Positions) -> torch.Tensor:
        return self._gathered(positions, *(each.inputs for each in self._parts))

    def training_inputs(self, positions: Positions, key: int) -> torch.Tensor:
        def view(part: DataSequence, own: int) -> Callable[[Positions], torch.Tensor]:
            return lambda places: capabilities(part).training_inputs(places, own)

        keys = (key, derive(key, "inputs without labels"))  # else both would draw the same crops
        return self._gathered(positions, *map(view, self._parts, keys))

    def _gathered(self, positions: Positions, *reads: Callable[[Positions], torch.Tensor]) -> torch.Tensor:
        """What is read at these positions, each from where it is."""
        places, is_more = self._found(positions)
        if not is_more.any():
            return reads[0](places)
        beyond = reads[1](places[is_more] - self.whole.num_inputs)
        if is_more.all():
            return beyond
        rows = beyond.new_empty((len(places), *beyond.shape[1:]))
        rows[torch.from_numpy(is_more)] = beyond
        rows[torch.from_numpy(~is_more)] = reads[0](places[~is_more])
        return rows

    def _found(self, positions: Positions) -> tuple[Positions, NDArray[np.bool_]]:
        """Where the inputs at these positions are, and which of them are in `more`."""
        self._require_within(positions, self.num_inputs)
        places = self.places[positions]
        return places, places >= self.whole.num_inputs

    def _require_within(self, positions: Positions, stop: int) -> None:
        if len(positions) and (positions.min() < 0 or positions.max() >= stop):
            told = f"{self.num_labels} labels, {self.num_inputs} inputs"
            raise IndexError(f"positions must lie in [0, {stop}) ({told}), got {positions.min()} to {positions.max()}")

    def read(self, positions: Positions) -> tuple[NDArray[Any], list[tuple[int, str]]]:
        """See `SequenceDefaults`."""
        broken = list[tuple[int, str]]()
        _, is_more = self._found(positions)

        def reading(part: DataSequence, rows: Positions) -> Callable[[Positions], torch.Tensor]:
            def read(places: Positions) -> torch.Tensor:
                values, reasons = capabilities(part).read(places)
                broken.extend((int(rows[row]), reason) for row, reason in reasons)
                return torch.from_numpy(values)

            return read

        numbered = (np.flatnonzero(~is_more), np.flatnonzero(is_more))
        return self._gathered(positions, *map(reading, self._parts, numbered)).numpy(), sorted(broken)

    def read_ahead(self, reads: Iterator[Read]) -> None:
        """Told to the one that is slow; to the one with the labels if both are, for what is told can be heard once."""
        slow = next((number for number, each in enumerate(self._parts) if capabilities(each).reads_slowly), None)
        if slow is None:
            return

        def own() -> Iterator[Read]:
            for positions, key in reads:
                places, is_more = self._found(positions)
                found = places[is_more] - self.whole.num_inputs if slow else places[~is_more]
                if len(found):
                    yield found, derive(key, "inputs without labels") if slow and key is not None else key

        capabilities(self._parts[slow]).read_ahead(own())

    def take(self, length: int) -> Self:
        """The first `length` labels; the inputs without labels stay, and those of the labels left out do not."""
        length = shorter(self, length)
        return replace(
            self, num_labels=length, places=np.concatenate([self.places[:length], self.places[self.num_labels :]])
        )

    def shuffled(self, seed: int) -> Self:
        """The labels in a random order, as without the inputs behind them, which stay as they are."""
        if self.num_labels != len(self.whole) or not hasattr(self.whole, "shuffled"):
            raise PreqError(
                f"'{self.name}' cannot be shuffled any more; shuffle before you say how many labels there are"
            )
        return replace(self, whole=self.whole.shuffled(seed))

    def without_heldout(self) -> Self:
        """The same sequence with no held-out data; inputs that were left out for it stay out."""
        return replace(self, whole=self.whole.without_heldout())

    def with_scale(self, scale: Any) -> Self:
        return replace(self, whole=self.whole.with_scale(scale))

    def without_broken(self) -> Self:
        if self.reads_slowly:
            raise PreqError("leave broken examples out before you say how many labels there are, not after it")
        return self

    def require_intact(self) -> None:
        for part in self._parts:
            capabilities(part).require_intact()

    def hashed(self, positions: Positions) -> NDArray[Any]:
        def row(read: Hashing) -> Callable[[Positions], torch.Tensor]:
            return lambda places: torch.from_numpy(read(places))

        return self._gathered(positions, *map(row, hashing(*self._parts)[0])).numpy()

    @property
    def hashed_as(self) -> tuple[object, ...]:
        return hashing(*self._parts)[1]

    @property
    def known_blocks(self) -> Sequence[str]:
        """Those of the other sequence, as far as it is read from front to back."""
        shared = min(self.num_inputs, self.whole.num_inputs)
        is_moved = self.places[:shared] != np.arange(shared)
        return self.whole.known_blocks[: (int(is_moved.argmax()) if is_moved.any() else shared) // BLOCK_ROWS]

    def without_heldout_inputs(self) -> Self:
        """The same, without the inputs without labels that equal held-out ones: these are counted, and it is said."""
        candidates = np.arange(self.num_labels, self.num_inputs)
        if self.heldout is None or not len(candidates):
            return self
        (own, held), _ = hashing(self, self.heldout)
        known = set(digests_of_each(np.arange(len(self.heldout)), held))
        is_held = np.fromiter((each in known for each in digests_of_each(candidates, own)), bool, len(candidates))
        if not (number := int(is_held.sum())):
            return self
        told = f"{number:,} of {len(candidates):,} inputs without labels equal held-out ones of '{self.name}'"
        warnings.warn(f"{told} and are left out", PreqWarning, stacklevel=4)
        return replace(self, places=np.delete(self.places, candidates[is_held]), left_out=self.left_out + number)
