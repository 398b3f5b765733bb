"""Inputs on their way into a network: clean for prediction, augmented for training."""

from collections.abc import Iterable, Iterator

import numpy as np
import torch
from torch import Tensor, nn

from prequential.augmentations import movements
from prequential.data.augment import draws_for, parse
from prequential.data.augment_geometry import flipped
from prequential.data.optional import Read, capabilities
from prequential.data.sequence import DataSequence, to_network_input
from prequential.events import Event, Indices, Train
from prequential.learn.recipe import Recipe
from prequential.plan import with_reads
from prequential.rng import derive, uniforms


class Inputs:
    """Reads a sequence for a learner. What is random depends on the seed and the number of the event alone."""

    def __init__(
        self, data: DataSequence, recipe: Recipe, *, seed: int, device: torch.device, dtype: torch.dtype
    ) -> None:
        self.data, self.recipe, self.seed, self.device, self.dtype = data, recipe, seed, device, dtype
        self.augmentation = parse(recipe.augment)
        self._views = parse(movements(recipe.augment))
        self._view_draws = self._draws_of_views()

    def clean(self, positions: Indices) -> Tensor:
        """Inputs as they are predicted from."""
        return self.prepared(self.data.inputs(positions))

    def training(self, positions: Indices, event: int) -> Tensor:
        """Inputs as they are trained on: in the sequence's own training view, augmented."""
        inputs = self.prepared(capabilities(self.data).training_inputs(positions, self.crop_key(event)))
        if self.augmentation is None:
            return inputs
        draws = draws_for(self.seed, event, len(inputs), self.augmentation.num_draws, self.device)
        return self.augmented(inputs, draws)

    def augmented(self, inputs: Tensor, draws: Tensor) -> Tensor:
        """Prepared inputs, augmented as these draws say."""
        return inputs if self.augmentation is None else _channels_last(self.augmentation(inputs, draws))

    def prepared(self, stored: Tensor) -> Tensor:
        """Stored inputs on the device, in the network's type and layout."""
        inputs = to_network_input(stored.to(self.device))
        if inputs.dtype == torch.float32 and self.dtype != torch.float32:
            inputs = inputs.to(self.dtype)
        return _channels_last(inputs)

    def logits(self, model: nn.Module, inputs: Tensor) -> Tensor:
        """What a model that predicts makes of clean inputs; averaged over mirror images and moved views if asked."""
        views = self._seen(inputs)
        logits: Tensor = model(views[0] if len(views) == 1 else _channels_last(torch.cat(views))).to(self.dtype)
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
            if len(read):
                yield read, self.crop_key(number) if isinstance(event, Train) else None

    def crop_key(self, event: int) -> int:
        """What decides the sequence's own view of the inputs of a training step."""
        return derive(self.seed, "crop", event)


def _channels_last(inputs: Tensor) -> Tensor:
    return inputs.contiguous(memory_format=torch.channels_last) if inputs.dim() == 4 else inputs
