"""Learners that study inputs alone before the first label."""

import json
from collections.abc import Iterable
from contextlib import nullcontext
from functools import cached_property, partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from prequential.data.augment import draws_for, parse
from prequential.data.optional import capabilities
from prequential.errors import PreqError
from prequential.events import Indices
from prequential.files import digest_of
from prequential.learn.inputs import measured_together
from prequential.learn.last_layer import giving_features, require_flat_features, with_last_layer
from prequential.learn.learner import Learner
from prequential.learn.probe import fingerprint_of
from prequential.learn.randomness import FOREIGN, seeded
from prequential.learn.recipe import Recipe
from prequential.learn.repeated import FEW
from prequential.learn.study import Study, measure_statistics
from prequential.methods.all_inputs import AllInputs
from prequential.models import name_of

STUDIED, STUDY = "studied", "study"
"""What its tensors are called besides those of every learner."""


class Studying(Learner):
    """A learner that studies inputs before the first label, where the settings say so.

    Everything random in a study is derived from the study's seed and the number of its step, so that runs which share
    the seed share the study, whatever else they do.

    Args:
        given: the settings of the study.
        arguments, settings: those of a Learner.
    """

    def __init__(self, *arguments: Any, given: AllInputs, **settings: Any) -> None:
        self.given = given
        super().__init__(*arguments, **settings)

    def _fresh_model(self, event: int, recipe: Recipe, seed: int) -> nn.Module:
        """What a study begins with is the study's, whatever the seed of the run is."""
        return super()._fresh_model(event, recipe, self.given.study_seed if self.given.study_steps else seed)

    def _built(self) -> nn.Module:
        model = super()._built()
        return with_last_layer(model, self.target.output_size, name_of(self.factory)) if self._studies else model

    @property
    def _studies(self) -> bool:
        return self.given.study_steps > 0

    def _build(self, calibration_rate_factor: float) -> None:
        super()._build(calibration_rate_factor)
        given = self.given
        self._study: Study | None = None
        self.studied: list[Tensor] = []
        """What the study gave, in half precision: the tensors of the network; before it ends, zeros."""
        if self._studies:
            views = parse(given.study_views or self.recipe.augment)
            with seeded(given.study_seed, "study", -1, self.device):
                self._study = Study(self.model, given, views)
            self.inputs.study_seed = given.study_seed
            self.studied = [torch.zeros_like(tensor, dtype=_halved(tensor)) for tensor in self.raw_tensors.all]
            _ = self.study_key  # while the weights are those it begins with

    @cached_property
    def study_key(self) -> str:
        """What decides a study, besides the machine: equal only if what it gives is the same."""
        given, data = self.given, self.data
        told = {name: getattr(given, name) for name in vars(given) if name.startswith("study")}
        told |= {"views": given.study_views or self.recipe.augment, "num_inputs": given.num_inputs}
        told |= {
            "inputs": data.digests()["inputs"],
            "view": capabilities(data).training_view,
            "scale": self.inputs.scale,
        }
        told |= {"model": name_of(self.factory), "width": self.width, "weights": fingerprint_of(self.averaged)}
        if self.recipe.batch_statistics == "raw":  # what is studied has another order then
            told |= {"batch_statistics": "raw"}
        return digest_of(json.dumps(told, sort_keys=True).encode())

    @cached_property
    def begins_as(self) -> str:
        """What the network makes of a few inputs before it has studied, to three digits: its code decides a study too,
        and no other digest knows of it."""
        inputs, seed = self.inputs.clean(np.arange(FEW) % len(self.data)), self.given.study_seed
        with torch.no_grad():
            fresh = self._fresh_model(-1, self.recipe, seed)
            with (
                seeded(seed, "begins as", 0, self.device, FOREIGN),
                self.computing(),
                giving_features(fresh),
            ):
                features = fresh(inputs).double().flatten(1)
        sizes = torch.stack([features.abs().mean(1), features.square().mean(1).sqrt()])
        return " ".join(f"{size:.3g}" for size in sizes.flatten().tolist())

    @property
    def study_identity(self) -> tuple[str, str]:
        """Learners that share it do the same study."""
        return self.study_key, self.begins_as

    def probe(self, num_examples: int) -> None:
        super().probe(num_examples)
        if self._studies:
            few = self.inputs.clean(np.zeros(2, np.int64))
            require_flat_features(self.averaged, few, name_of(self.factory))

    def study_steps(self, batches: Indices, event: int) -> None:
        """Steps of the study, a row each; none where what it gives was given."""
        self._forget()
        if self._study is not None:
            for indices in batches:
                self._study_once(self._study, indices)

    def _study_once(self, study: Study, indices: Indices) -> None:
        seed, step = self.given.study_seed, int(study.count)
        inputs = self.inputs.studied(indices, seed, step)
        draws = draws_for(seed, step, len(inputs), study.num_draws, self.device) if study.num_draws else None
        with seeded(seed, "study", step, self.device, self.drew_on) if self.drew_on else nullcontext():
            study.move(study.gradients(inputs, draws, self.computing))

    @torch.no_grad()
    def end_study(self, indices: Indices) -> None:
        """Take statistics at these positions, round the weights, and begin to learn from them."""
        if self._study is None:
            return
        with self.computing():
            measure_statistics(self.model, [partial(self.inputs.clean, p) for p in measured_together(indices)])
        if not all(bool(tensor.isfinite().all()) for tensor in self.raw_tensors.averaged):
            raise PreqError("the study has diverged; try a smaller --study-learning-rate")
        halved = [tensor.to(_halved(tensor)) for tensor in self.raw_tensors.all]
        if not all(bool(tensor.isfinite().all()) for tensor in halved):
            largest = max(float(tensor.abs().max()) for tensor in self.raw_tensors.averaged if tensor.numel())
            raise PreqError(
                f"the study gave numbers of up to {largest:.3g}, more than the {torch.finfo(torch.float16).max:,.0f} "
                "that half precision holds; bring inputs to about −1 … 1 (--scale, from_arrays(…, scale=…))"
            )
        self.take_study(halved)

    @torch.no_grad()
    def take_study(self, studied: list[Tensor]) -> None:
        """Begin with what a study gave; whatever was studied here is left."""
        for kept, tensor in zip(self.studied, studied, strict=True):
            kept.copy_(tensor)
        self._study = self.inputs.study_seed = None
        self.reinit(-1)

    @property
    def is_studying(self) -> bool:
        """Whether a study is under way, or still to come."""
        return self._study is not None

    @property
    def study_digest(self) -> str | None:
        """Of what the study gave; None before its end, or where there is none."""
        if not self.studied or self.is_studying:
            return None
        return digest_of_tensors(self.studied)

    def _fresh_tensors(self, event: int) -> Any:
        """Whoever starts anew starts from what was studied."""
        fresh = super()._fresh_tensors(event)
        for mine, studied in zip(fresh.all, self.studied, strict=False):
            mine.copy_(studied)
        return fresh

    def tensors(self) -> dict[str, list[Tensor]]:
        found = super().tensors()
        if self._study is not None:
            return found | {STUDY: self._study.tensors()}
        return found | ({STUDIED: self.studied} if self.studied else {})

    def expect(self, names: set[str]) -> None:
        """Make ready to be restored from tensors of these names."""
        if STUDY not in names:
            self._study = self.inputs.study_seed = None


def _halved(tensor: Tensor) -> torch.dtype:
    return torch.float16 if tensor.is_floating_point() else tensor.dtype


def digest_of_tensors(tensors: Iterable[Tensor]) -> str:
    """Of their numbers, one after the other."""
    return digest_of(b"".join(tensor.cpu().contiguous().numpy().tobytes() for tensor in tensors))
