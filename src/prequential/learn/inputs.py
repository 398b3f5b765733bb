"""Inputs on their way into a network: clean for prediction, augmented for training."""

from collections.abc import Iterable, Iterator

import numpy as np
import torch
from torch import Tensor, nn

from prequential.data.augment import draws_for, flipped, parse
from prequential.data.sequence import DataSequence, Read, to_network_input, training_inputs
from prequential.events import Calibrate, Event, Indices, Predict, Reinit, ShrinkPerturb, Train
from prequential.learn.recipe import Recipe
from prequential.plan import is_span
from prequential.rng import derive


class Inputs:
    """Reads a sequence for a learner. What is random depends on the seed and the number of the event alone."""

    def __init__(
        self, data: DataSequence, recipe: Recipe, *, seed: int, device: torch.device, dtype: torch.dtype
    ) -> None:
        self.data, self.recipe, self.seed, self.device, self.dtype = data, recipe, seed, device, dtype
        self._augment = parse(recipe.augment)

    def clean(self, positions: Indices) -> Tensor:
        """Inputs as they are predicted from."""
        return self.prepared(self.data.inputs(positions))

    def training(self, positions: Indices, event: int) -> Tensor:
        """Inputs as they are trained on: in the sequence's own training view, augmented."""
        inputs = self.prepared(training_inputs(self.data, positions, self._crop_key(event)))
        if self._augment is None:
            return inputs
        draws = draws_for(self.seed, event, len(inputs), self._augment.num_draws, self.device)
        return _channels_last(self._augment(inputs, draws))

    def prepared(self, stored: Tensor) -> Tensor:
        """Stored inputs on the device, in the network's type and layout."""
        inputs = to_network_input(stored.to(self.device))
        if inputs.dtype == torch.float32 and self.dtype != torch.float32:
            inputs = inputs.to(self.dtype)
        return _channels_last(inputs)

    def logits(self, model: nn.Module, inputs: Tensor) -> Tensor:
        """What a model that predicts makes of clean inputs; averaged with those of the mirrored ones if asked."""
        logits: Tensor = model(inputs)
        return (logits + model(flipped(inputs))) / 2 if self.recipe.average_flips else logits

    def reads(self, events: Iterable[Event], first: int) -> Iterator[Read]:
        """What a learner reads for these events, the first of which has number `first`."""
        at_hand: tuple[int, int] | None = None
        for number, event in enumerate(events, first):
            match event:
                case Predict(start, stop, False):
                    at_hand = start, stop
                    yield np.arange(start, stop), None
                case Train(indices):
                    at_hand = None
                    yield indices, self._crop_key(number)
                case Calibrate(indices) if not is_span(indices, at_hand):
                    yield indices, None
                case Reinit() | ShrinkPerturb():
                    at_hand = None

    def _crop_key(self, event: int) -> int:
        return derive(self.seed, "crop", event)


def _channels_last(inputs: Tensor) -> Tensor:
    return inputs.contiguous(memory_format=torch.channels_last) if inputs.dim() == 4 else inputs
