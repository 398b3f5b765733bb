"""The recipes of a stack: what its members share, and what is a vector along them."""

from collections.abc import Sequence

import torch
from torch import Tensor

from prequential.data.optional import capabilities
from prequential.data.sequence import DataSequence
from prequential.errors import PreqError
from prequential.learn import functional
from prequential.learn.recipe import SHARED, VECTORS, Recipe


class Vectors:
    """Each numeric setting as a float64 vector along the members.

    Example:
        >>> Vectors([Recipe(eps=1e-4), Recipe(eps=1e-8)], "cpu").eps
        tensor([1.0000e-04, 1.0000e-08], dtype=torch.float64)
    """

    def __init__(self, recipes: Sequence[Recipe], device: torch.device | str) -> None:
        self.common = recipes[0]
        values = {name: [float(getattr(recipe, name)) for recipe in recipes] for name in VECTORS}
        self._vectors = {name: torch.tensor(each, dtype=torch.float64, device=device) for name, each in values.items()}
        self._rates_fall = any(recipe.full_rate_steps for recipe in recipes)

    def __getattr__(self, name: str) -> Tensor:
        if name not in VECTORS:
            raise AttributeError(name)
        return self._vectors[name]

    def rates(self, num_steps: Tensor) -> Tensor:
        """The learning rates of the n-th training step since the last fresh start, from 1."""
        if not self._rates_fall:
            return self.learning_rate
        return functional.learning_rate(self.learning_rate, num_steps, full_steps=self.full_rate_steps)

    def ema_step_sizes(self, num_steps: Tensor) -> Tensor:
        """α of each member in the n-th training step."""
        return functional.ema_step_size(self.ema_step_size, num_steps, warmup=self.common.ema_warmup)


def require_alike(recipes: Sequence[Recipe]) -> None:
    """Refuse recipes that cannot be followed by one computation.

    Example:
        >>> require_alike([Recipe(), Recipe(optimizer="sgd")])
        Traceback (most recent call last):
        ...
        prequential.errors.PreqError: the members of a stack must share optimizer, got adamw and sgd; stack them apart
    """
    for name in SHARED:
        found = list(dict.fromkeys(_shown(getattr(recipe, name)) for recipe in recipes))
        if len(found) > 1:
            raise PreqError(
                f"the members of a stack must share {name}, got {' and '.join(found[:2])}; stack them apart"
            )


def _shown(value: object) -> str:
    return (",".join(value) or "none") if isinstance(value, tuple) else str(value)


def require_members(recipes: Sequence[Recipe], seeds: Sequence[int], data: DataSequence) -> None:
    """Refuse a stack without members, or of a sequence that shows each run something else."""
    if not recipes or len(recipes) != len(seeds):
        raise PreqError(f"a stack needs a recipe and a seed for each member, got {len(recipes)} and {len(seeds)}")
    if capabilities(data).training_differs:
        raise PreqError(
            f"'{data.name}' has its own view of the inputs for each run, and a stack shows all members the same; "
            "run its trials one by one"
        )
