"""CI/FS and CI/CF: chunks, trained from scratch or fine-tuned."""

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import numpy as np

from prequential.errors import PreqError, require_count, require_number
from prequential.events import Calibrate, Evaluate, Event, Predict, Reinit, ShrinkPerturb, Train
from prequential.methods.method import MethodDefaults, cut_into_batches, require_batch_fits
from prequential.rng import derive, permutation, uniforms

PREDICT_SIZE = 512
"""Labels predicted by one event: nothing is learned between them, this only bounds memory."""


@dataclass(frozen=True, kw_only=True)
class Chunks(MethodDefaults):
    """Settings and stages of the chunk incremental methods; subclasses say how a stage begins.

    At each split point s the past is divided once and for all: 90 % of the positions train, 10 %
    calibrate the temperature (a hash of seed and position decides). After a fixed number of epochs
    the labels up to the next split point are predicted. Labels before the first one are coded uniformly.
    """

    batch_size: int = 32
    """Examples per training step."""
    epochs: int = 20
    """Passes over the past at each split point."""
    split_points: tuple[int, ...] | None = None
    """Where training happens; those past the end of the data are not reached. Off: 64, 128, 256, …"""
    calibrate: bool = True
    """Calibrate the temperature on 10 % of the past; otherwise all of it trains."""

    def __post_init__(self) -> None:
        require_count("batch_size", self.batch_size)
        require_count("epochs", self.epochs)
        if self.split_points is None:
            return
        if not self.split_points:
            raise PreqError("split points must be at least one position, got none; leave them out for 64, 128, …")
        for point in self.split_points:
            require_count("a split point", point)
        for before, after in pairwise(self.split_points):
            if after <= before:
                repair = f"remove the repeated {after}" if after == before else "sort them"
                raise PreqError(f"split points must increase strictly, got {list(self.split_points)}; {repair}")

    @abstractmethod
    def begin_stage(self, is_first: bool) -> Iterator[Event]:
        """What happens to the weights before a stage."""

    def splits(self, length: int) -> list[int]:
        """The split points before `length`.

        Example:
            >>> ChunksFromScratch().splits(1000)
            [64, 128, 256, 512]
        """
        points = self.split_points or [64 << k for k in range(length.bit_length())]
        return [point for point in points if point < length]

    def events(self, length: int, seed: int) -> Iterator[Event]:
        require_batch_fits(self.batch_size, length)
        splits = self.splits(length)
        bounds = [*splits, length]
        yield from _predict(0, bounds[0], uniform=True)
        for split, next_split in pairwise(bounds):
            yield from self.stage(split, seed, is_first=split == splits[0])
            yield from _predict(split, next_split)

    def closing(self, length: int, seed: int) -> Iterator[Event]:
        yield from self.stage(length, seed, is_first=not self.splits(length))
        yield Evaluate()

    def stage(self, split: int, seed: int, *, is_first: bool) -> Iterator[Event]:
        """Train on the positions before `split`, with one step on the temperature per step."""
        yield from self.begin_stage(is_first)
        past = np.arange(split)
        held_back = uniforms(derive(seed, "held back"), past) < 0.1 * self.calibrate
        training, calibration = past[~held_back], past[held_back]
        size = min(self.batch_size, len(calibration))
        num_steps = 0
        for epoch in range(self.epochs):
            order = permutation(derive(seed, f"epochs before {split}", epoch), len(training))
            for batch in cut_into_batches(training[order], self.batch_size):
                if len(batch) == 1 < self.batch_size:
                    continue
                yield Train(batch)
                if size:
                    places = (np.arange(size) + num_steps * size) % len(calibration)
                    yield Calibrate(calibration[places])
                num_steps += 1


def _predict(start: int, stop: int, *, uniform: bool = False) -> Iterator[Event]:
    for begin in range(start, stop, PREDICT_SIZE):
        yield Predict(begin, min(begin + PREDICT_SIZE, stop), uniform)


@dataclass(frozen=True, kw_only=True)
class ChunksFromScratch(Chunks):
    """Chunk incremental, from scratch (CI/FS): every stage starts from fresh weights."""

    name: ClassVar[str] = "ci-fs"
    title: ClassVar[str] = "CI/FS"

    def begin_stage(self, is_first: bool) -> Iterator[Event]:
        yield Reinit()


@dataclass(frozen=True, kw_only=True)
class ChunksFineTuned(Chunks):
    """Chunk incremental, continual fine-tuning (CI/CF), optionally with shrink and perturb."""

    name: ClassVar[str] = "ci-cf"
    title: ClassVar[str] = "CI/CF"

    shrink: float = 1.0
    """Before each stage but the first, θ ← shrink·θ + perturb·(fresh initialisation)."""
    perturb: float = 0.0
    """See shrink."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require_number("shrink", self.shrink, at_least=0, at_most=1)
        require_number("perturb", self.perturb, at_least=0)

    def begin_stage(self, is_first: bool) -> Iterator[Event]:
        if not is_first and (self.shrink, self.perturb) != (1.0, 0.0):
            yield ShrinkPerturb(self.shrink, self.perturb)
