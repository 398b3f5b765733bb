"""Labels that are text, as classes: numbered in the order of their texts, whatever the order of the rows."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from prequential.data.tables.schema import names_beyond_numbers
from prequential.errors import PreqError

TEXT_KINDS = "UTO"
"""NumPy's letters for arrays that may hold text."""


def texts_of(labels: Any, what: str = "labels") -> list[str] | None:
    """Labels that are text, as a list; None where they are something else.

    Raises:
        PreqError: where some are text and others are not.

    Example:
        >>> texts_of(["dog", "cat"]), texts_of([0, 1])
        (['dog', 'cat'], None)
    """
    if isinstance(labels, torch.Tensor):
        return None
    if not isinstance(labels, list | tuple):
        array = np.asarray(labels)
        if array.dtype.kind not in TEXT_KINDS or array.ndim != 1:
            return None
        labels = array.tolist()
    if not any(isinstance(label, str) for label in labels):
        return None
    strange = next((n for n, label in enumerate(labels) if not isinstance(label, str)), None)
    if strange is not None:
        found = f"got {labels[strange]!r} at position {strange}"
        raise PreqError(f"{what} must all be text or all whole numbers, {found}; name the class, or remove the row")
    return [str(label) for label in labels]


def names_of(texts: Iterable[str], what: str = "labels") -> tuple[str, ...]:
    """The classes of texts: sorted by their letters' code points, each once.

    Example:
        >>> names_of(["setosa", "versicolor", "setosa"])
        ('setosa', 'versicolor')
    """
    names = tuple(sorted(set(texts)))
    if len(names) < 2:
        raise PreqError(f"{what} hold a single class, '{names[0]}'; there is nothing to predict")
    return names


def names_of_values(labels: NDArray[Any]) -> tuple[str, ...] | None:
    """Labels as names of the classes that they become in their order; None where they are 0, 1, 2, … already.

    Example:
        >>> names_of_values(np.array([7.0, 2.0, 7.0])), names_of_values(np.array([1, 0]))
        (('2', '7'), None)
    """
    return names_beyond_numbers([str(int(v)) if labels.dtype.kind == "f" else str(v) for v in np.unique(labels)])


def checked_names(names: Sequence[str], num_classes: int | None) -> tuple[str, ...]:
    """Names of classes as they are given: different texts, as many as there are classes."""
    if isinstance(names, str) or not all(isinstance(name, str) for name in names):
        raise PreqError(f"class_names must be a list of texts, got {names!r}; give one for each class")
    if len(set(names)) < max(len(names), 2):
        raise PreqError(f"class_names must be at least two different texts, got {list(names)}; name each class once")
    if num_classes not in (None, len(names)):
        raise PreqError(f"class_names has {len(names)} names, and num_classes is {num_classes}; make them agree")
    return tuple(map(str, names))


def numbered_texts(texts: Sequence[str], names: Sequence[str], what: str = "labels") -> NDArray[np.int64]:
    """The number of each text among the names.

    Example:
        >>> numbered_texts(["b", "a", "b"], ("a", "b"))
        array([1, 0, 1])
    """
    numbers = {name: number for number, name in enumerate(names)}
    strange = next((n for n, text in enumerate(texts) if text not in numbers), None)
    if strange is not None:
        few = ", ".join(names[:6]) + (", …" if len(names) > 6 else "")
        raise PreqError(f"{what} hold '{texts[strange]}' at position {strange}, which is none of the classes ({few})")
    return np.fromiter((numbers[text] for text in texts), np.int64, len(texts))
