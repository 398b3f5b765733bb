"""Inputs on their way into a network: clean for prediction, augmented for training.

A captured program finds its batch in a slot: gathered from data that lives on the device, or streamed to it. Before a
replay the host calls `place`, with the positions of the batch (they may be fewer than the slot holds) and, for inputs
as they are trained on, a key. Inside, the program calls `take` with the same positions on the device, and is given the
batch as network input.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator

import numpy as np
import torch
from torch import Tensor, nn

from prequential.augmentations import movements
from prequential.data.augment import draws_for, parse
from prequential.data.augment_geometry import flipped
from prequential.data.optional import Read, capabilities
from prequential.data.sequence import DataSequence, to_network_input
from prequential.events import EndStudy, Event, Indices, Study, Train
from prequential.learn.probe import type_taken
from prequential.learn.recipe import Recipe
from prequential.rng import derive, uniforms
from prequential.walks import with_reads

SHARE = 0.4
"""Of the free memory of a GPU, what resident data may take."""
COPIED_AT_ONCE = 1 << 26
MEASURED_AT_ONCE = 500
"""Inputs of which statistics are taken together at the end of a study."""
IN_FLIGHT = 4
"""Batches that wait on the device for their turn."""


class Inputs:
    """Reads a sequence for a learner. What is random depends on the seed and the number of the event alone."""

    def __init__(
        self, data: DataSequence, recipe: Recipe, *, seed: int, device: torch.device, dtype: torch.dtype
    ) -> None:
        self.data, self.recipe, self.seed, self.device, self.dtype = data, recipe, seed, device, dtype
        self.scale = capabilities(data).scale
        self.augmentation = parse(recipe.augment)
        self._views = parse(movements(recipe.augment))
        self._view_draws = self._draws_of_views()
        self._whole_as: torch.dtype | None = None
        self._is_suited = False
        self.study_seed: int | None = None
        """Of the study that reads here, while there is one."""

    def suit(self, model: nn.Module) -> None:
        """Find out once whether the model takes inputs of whole numbers as they are, or as floats."""
        if not self._is_suited:
            self._is_suited, few = True, to_network_input(self.data.inputs(np.zeros(2, np.int64)), self.scale)
            if not few.is_floating_point():
                self._whole_as = type_taken(model, few.to(self.device), self.dtype)

    def clean(self, positions: Indices) -> Tensor:
        """Inputs as they are predicted from."""
        return self.prepared(self.data.inputs(positions))

    def training(self, positions: Indices, event: int) -> Tensor:
        """Inputs as they are trained on: in the sequence's own training view, augmented."""
        inputs = self.training_view(positions, event)
        if self.augmentation is None:
            return inputs
        draws = draws_for(self.seed, event, len(inputs), self.augmentation.num_draws, self.device)
        return self.augmented(inputs, draws)

    def training_view(self, positions: Indices, event: int) -> Tensor:
        """Inputs in the sequence's own training view, before they are augmented."""
        return self.prepared(capabilities(self.data).training_inputs(positions, self.crop_key(event)))

    def studied(self, positions: Indices, study_seed: int, step: int) -> Tensor:
        """The same for a step of a study, which no seed but its own decides."""
        key = self.study_crop_key(study_seed, step)
        return self.prepared(capabilities(self.data).training_inputs(positions, key))

    def augmented(self, inputs: Tensor, draws: Tensor) -> Tensor:
        """Prepared inputs, augmented as these draws say."""
        return inputs if self.augmentation is None else channels_last(self.augmentation(inputs, draws))

    def prepared(self, stored: Tensor) -> Tensor:
        """Stored inputs on the device, in the network's type and layout."""
        inputs = to_network_input(stored.to(self.device), self.scale)
        if self._whole_as is not None:
            inputs = inputs.to(self._whole_as)
        if inputs.dtype == torch.float32 and self.dtype != torch.float32:
            inputs = inputs.to(self.dtype)
        return channels_last(inputs)

    def logits(self, model: Callable[[Tensor], Tensor], inputs: Tensor) -> Tensor:
        """What a model that predicts makes of clean inputs; averaged over mirror images and moved views if asked."""
        views = self._seen(inputs)
        logits = model(views[0] if len(views) == 1 else channels_last(torch.cat(views))).to(self.dtype)
        return logits if len(views) == 1 else logits.view(len(views), len(inputs), -1).mean(0)

    def _seen(self, inputs: Tensor) -> list[Tensor]:
        """What a prediction looks at."""
        views = [inputs]
        if self._views is not None:
            views += [self._views(inputs, draws.expand(len(inputs), -1)) for draws in self._view_draws]
        return [*views, *map(flipped, views)] if self.recipe.average_flips else views

    def _draws_of_views(self) -> Tensor:
        """A row for each moved view: in pairs, each the opposite of the other."""
        num_pairs, num_draws = self.recipe.average_views // 2, 0 if self._views is None else self._views.num_draws
        draws = uniforms(derive(0, "views"), np.arange(num_pairs * num_draws)).reshape(num_pairs, num_draws)
        pairs = np.concatenate([draws, np.nextafter(1, 0) - draws]).astype(np.float32)
        return torch.from_numpy(pairs).clamp(max=1 - 2.0**-24).to(self.device)

    def reads(self, events: Iterable[Event], first: int) -> Iterator[Read]:
        """What a learner reads for these events, the first of which has number `first`; not what own events read."""
        for number, event, read in with_reads(events, first):
            if isinstance(event, Study | EndStudy):
                yield from self._studied(event, number)
            elif len(read):
                yield read, self.crop_key(number) if isinstance(event, Train) else None

    def _studied(self, event: Study | EndStudy, number: int) -> Iterator[Read]:
        """What a study reads for an event of that number, which is that of its step: plans begin with it."""
        if self.study_seed is not None and isinstance(event, Study):
            yield event.indices, self.study_crop_key(self.study_seed, number)
        elif self.study_seed is not None:
            yield from ((part, None) for part in measured_together(event.indices))

    def crop_key(self, event: int) -> int:
        """What decides the sequence's own view of the inputs of a training step."""
        return derive(self.seed, "crop", event)

    @staticmethod
    def study_crop_key(study_seed: int, step: int) -> int:
        """The same for a step of a study."""
        return derive(study_seed, "study crop", step)


def measured_together(positions: Indices) -> list[Indices]:
    """Positions in parts, as the statistics at the end of a study are taken."""
    return np.array_split(positions, -(-len(positions) // MEASURED_AT_ONCE))


def channels_last(inputs: Tensor) -> Tensor:
    """Images with their channels last in memory; other inputs as they are."""
    return inputs.contiguous(memory_format=torch.channels_last) if inputs.dim() == 4 else inputs


class Resident:
    """All inputs on the device as they are stored, images with their channels last; batches are gathered there."""

    def __init__(self, inputs: Inputs) -> None:
        self._inputs = inputs
        data = inputs.data
        first = data.inputs(np.zeros(1, np.int64))
        self._is_image = first.dim() == 4
        shape = first.permute(0, 2, 3, 1).shape[1:] if self._is_image else first.shape[1:]
        num_inputs = capabilities(data).num_inputs
        self._rows = torch.empty(num_inputs, *shape, dtype=first.dtype, device=inputs.device)
        step = max(1, COPIED_AT_ONCE // max(first.nbytes, 1))
        for start in range(0, num_inputs, step):
            rows = data.inputs(np.arange(start, min(start + step, num_inputs)))
            self._rows[start : start + step] = rows.permute(0, 2, 3, 1) if self._is_image else rows

    def place(self, positions: Indices, key: int | None) -> None:
        pass

    def take(self, positions: Tensor) -> Tensor:
        rows = self._rows.index_select(0, positions)
        return self._inputs.prepared(rows.permute(0, 3, 1, 2) if self._is_image else rows)


class Streamed:
    """A buffer on the device that holds the batch of the next replay: read from the sequence, and copied from pinned
    memory while the device computes."""

    def __init__(self, inputs: Inputs, size: int, copying: torch.cuda.Stream | None) -> None:
        self._inputs, self._copying = inputs, copying
        stored = inputs.data.inputs(np.zeros(1, np.int64))
        self._batch = stored.new_empty((size, *stored.shape[1:]), device=inputs.device).zero_()
        self._copied: deque[torch.cuda.Event] = deque()

    def place(self, positions: Indices, key: int | None) -> None:
        data, stream = self._inputs.data, self._copying
        stored = data.inputs(positions) if key is None else capabilities(data).training_inputs(positions, key)
        if stream is None:
            self._batch[: len(stored)] = stored
            return
        if len(self._copied) == IN_FLIGHT:
            self._copied.popleft().synchronize()
        computing = torch.cuda.current_stream(self._batch.device)
        with torch.cuda.stream(stream):
            arrived = stored.pin_memory().to(self._batch.device, non_blocking=True)
        computing.wait_stream(stream)
        self._batch[: len(arrived)].copy_(arrived)
        arrived.record_stream(computing)
        done = torch.cuda.Event()  # type: ignore[no-untyped-call]
        done.record(computing)
        self._copied.append(done)

    def take(self, positions: Tensor) -> Tensor:
        return self._inputs.prepared(self._batch)


Slot = Resident | Streamed


def make_feed(inputs: Inputs) -> Callable[[int], Slot]:
    """Gives every program its slot, for batches of a size: resident where the data is quickly read, looks the same in
    training as in prediction, and fits."""
    data, device, free, copying = inputs.data, inputs.device, 1 << 31, None
    if device.type == "cuda":
        unused = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        free = torch.cuda.mem_get_info(device)[0] + unused
        copying = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
    fits = capabilities(data).num_inputs * data.inputs(np.zeros(1, np.int64)).nbytes <= SHARE * free
    if fits and not capabilities(data).reads_slowly:
        resident = Resident(inputs)
        return lambda size: resident
    return lambda size: Streamed(inputs, size, copying)
