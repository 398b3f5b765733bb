"""Methods that go through what is known in epochs: CI/FS and CI/CF, chunk by chunk, and ERM, the conventional way."""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain, pairwise
from typing import Any, ClassVar

import numpy as np

from prequential.errors import PreqError, require_count
from prequential.events import Calibrate, Evaluate, Event, Indices, Predict, Reinit, ShrinkPerturb, Train
from prequential.methods.method import PASSES, InBatches, Work, cut_into_batches, num_batches
from prequential.rng import derive, permutation, uniforms
from prequential.settings import setting

PREDICT_SIZE = 512
"""Labels predicted by one event: nothing is learned between them, this only bounds memory."""
Part = tuple[int, Callable[[], Iterator[Event]]]
"""A part of a plan: how many events, and what makes them."""


def require_split_points(points: Any) -> None:
    """Refuse anything but whole numbers that increase.

    Example:
        >>> require_split_points([32, 32, 64])
        Traceback (most recent call last):
        ...
        prequential.errors.PreqError: split points must increase strictly, got [32, 32, 64]; remove the repeated 32
    """
    if not hasattr(points, "__len__") or isinstance(points, str | dict):
        raise PreqError(f"split points must be whole numbers such as (64, 512), got {points}")
    if not len(points):
        raise PreqError("split points must be at least one position, got none; leave them out for 64, 128, …")
    for point in points:
        require_count("a split point", point)
    for before, after in pairwise(map(int, points)):
        if after <= before:
            repair = f"remove the repeated {after}" if after == before else "sort them"
            raise PreqError(f"split points must increase strictly, got {list(map(int, points))}; {repair}")


class InEpochs(InBatches):
    """A method whose plan is made of parts, most of them epochs, so that whole parts can be jumped over."""

    epochs: int

    @abstractmethod
    def parts(self, length: int, seed: int) -> Iterator[Part]:
        """The plan, part by part."""

    def events(self, length: int, seed: int) -> Iterator[Event]:
        return events_of(self.parts(length, seed))

    def enter(self, length: int, seed: int, start: int) -> tuple[Iterator[Event], int]:
        parts, reached = self.parts(length, seed), 0
        for num_events, make in parts:
            if start < reached + num_events:
                return chain(make(), events_of(parts)), reached
            reached += num_events
        return iter(()), reached

    def passes_work(self, num_examples: int, *, calibrated: bool) -> Work:
        """At most how much epochs over so many examples are, a tenth of which may calibrate instead."""
        num_steps = self.epochs * num_batches(num_examples, self.batch_size)
        shown = num_steps * min(self.batch_size, num_examples) if calibrated else 0
        return Work(num_steps * (1 + calibrated), shown, self.epochs * num_examples)

    def passes(self, seed: int, purpose: str, training: Indices, calibration: Indices) -> Iterator[Part]:
        """Epochs over `training`, with one step on the temperature per step where there is `calibration`."""
        num_steps = num_batches(len(training), self.batch_size)
        size = min(self.batch_size, len(calibration))

        def one_epoch(epoch: int) -> Iterator[Event]:
            order = permutation(derive(seed, purpose, epoch), len(training))
            for step, batch in enumerate(cut_into_batches(training[order], self.batch_size), epoch * num_steps):
                yield Train(batch)
                if size:
                    yield Calibrate(calibration[(np.arange(size) + step * size) % len(calibration)])

        for epoch in range(self.epochs):
            yield num_steps * (2 if size else 1), partial(one_epoch, epoch)


def events_of(parts: Iterable[Part]) -> Iterator[Event]:
    """The events of the parts, one after the other."""
    return chain.from_iterable(make() for _, make in parts)


@dataclass(frozen=True, kw_only=True)
class Chunks(InEpochs):
    """Settings and stages of the chunk incremental methods; subclasses say how a stage begins.

    At each split point s the past is divided once and for all: 90 % of the positions train, 10 %
    calibrate the temperature (a hash of seed and position decides). After a fixed number of epochs
    the labels up to the next split point are predicted. Labels before the first one are coded uniformly.
    """

    epochs: int = setting(20, at_least=1, short="epochs", role=PASSES)
    """Passes over the past at each split point."""
    split_points: tuple[int, ...] | None = setting(None, check=require_split_points, hint="64 128 256 ...")
    """Positions where training happens; those past the end of the data are not reached."""
    calibrate: bool = setting(True, flag="calibration", off="Leave the softmax temperature at 1.")
    """Calibrate the temperature on 10 % of the past; otherwise all of it trains."""

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

    def parts(self, length: int, seed: int) -> Iterator[Part]:
        """The uniform beginning, then stage (epoch by epoch) and prediction in turn."""
        self.require_fits(length)
        splits = self.splits(length)
        bounds = [*splits, length]
        yield _predict(0, bounds[0], uniform=True)
        for split, next_split in pairwise(bounds):
            yield from self.stage(split, seed, is_first=split == splits[0])
            yield _predict(split, next_split)

    def most_work(self, length: int) -> Work:
        self.require_fits(length)
        splits = self.splits(length)
        stages = [self.passes_work(split, calibrated=self.calibrate) for split in splits]
        num_predicts = sum(-(-(end - begin) // PREDICT_SIZE) for begin, end in pairwise([0, *splits, length]))
        events, evaluated, trained = (sum(parts) for parts in zip(Work(0, 0, 0), *stages, strict=True))
        return Work(num_predicts + len(stages) + events, length - min([*splits, length]) + evaluated, trained)

    def closing(self, length: int, seed: int) -> Iterator[Event]:
        yield from events_of(self.stage(length, seed, is_first=not self.splits(length)))
        yield Evaluate()

    def stage(self, split: int, seed: int, *, is_first: bool) -> Iterator[Part]:
        """Train on the positions before `split`, with one step on the temperature per step."""
        begin = list(self.begin_stage(is_first))
        yield len(begin), lambda: iter(begin)
        past = np.arange(split)
        held_back = uniforms(derive(seed, "held back"), past) < 0.1 * self.calibrate
        yield from self.passes(seed, f"epochs before {split}", past[~held_back], past[held_back])


def _predict(start: int, stop: int, *, uniform: bool = False) -> Part:
    spans = [(begin, min(begin + PREDICT_SIZE, stop)) for begin in range(start, stop, PREDICT_SIZE)]
    return len(spans), lambda: (Predict(*span, uniform) for span in spans)


@dataclass(frozen=True, kw_only=True)
class ChunksFromScratch(Chunks):
    """Chunk incremental, from scratch (CI/FS): every stage starts from fresh weights."""

    name: ClassVar[str] = "ci-fs"
    title: ClassVar[str] = "CI/FS"
    about: ClassVar[str] = "chunks, from scratch"

    def begin_stage(self, is_first: bool) -> Iterator[Event]:
        yield Reinit()


@dataclass(frozen=True, kw_only=True)
class ChunksFineTuned(Chunks):
    """Chunk incremental, continual fine-tuning (CI/CF), optionally with shrink and perturb."""

    name: ClassVar[str] = "ci-cf"
    title: ClassVar[str] = "CI/CF"
    about: ClassVar[str] = "chunks, fine-tuned"

    shrink: float = setting(1.0, at_least=0, at_most=1)
    """Before each stage but the first, weights are multiplied by this ...

    That is, θ ← shrink·θ + perturb·(fresh initialisation)."""
    perturb: float = setting(0.0, at_least=0)
    """... and this share of a fresh initialisation is added."""

    def begin_stage(self, is_first: bool) -> Iterator[Event]:
        if not is_first and (self.shrink, self.perturb) != (1.0, 0.0):
            yield ShrinkPerturb(self.shrink, self.perturb)


@dataclass(frozen=True, kw_only=True)
class FullDataset(InEpochs):
    """Empirical risk minimisation: train on everything for E epochs, then look at held-out data.

    Everything is revealed at once and no temperature is fitted. Not prequential: it has no codelength.
    """

    name: ClassVar[str] = "erm"
    title: ClassVar[str] = "ERM"
    about: ClassVar[str] = "the whole data set, no code"
    prequential: ClassVar[bool] = False

    epochs: int = setting(10, at_least=1, short="epochs", role=PASSES)
    """Passes over the data."""

    def most_work(self, length: int) -> Work:
        self.require_fits(length)
        return self.passes_work(length, calibrated=False)

    def parts(self, length: int, seed: int) -> Iterator[Part]:
        self.require_fits(length)
        return self.passes(seed, "epochs", np.arange(length), np.arange(0))
