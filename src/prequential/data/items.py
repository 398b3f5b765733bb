"""What an item of a Dataset holds: an input and a label, as a pair or under the keys of a dictionary."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from prequential.errors import PreqError, unknown_name

USUAL_KEYS = ("label", "labels", "class", "target", "y")


@dataclass(frozen=True)
class Keys:
    """Where dictionaries have what; None: found from the first."""

    label: str | None = None
    inputs: Sequence[str] | None = None

    def __post_init__(self) -> None:
        if isinstance(self.inputs, str):
            object.__setattr__(self, "inputs", [self.inputs])

    def found(self, item: Mapping[str, Any], index: int) -> tuple[str, list[str]]:
        """The key of the label, and those of the input."""
        wanted = [*([] if self.label is None else [self.label]), *(self.inputs or [])]
        if missing := [key for key in wanted if key not in item]:
            raise unknown_name(f"key of item {index} of the Dataset", missing[0], item)
        usual = [key for key in item if str(key).lower() in USUAL_KEYS]
        if self.label is None and len(usual) != 1:
            raise PreqError(
                f"which key of item {index} is the label? give label=…; it has: {', '.join(map(str, item))}"
            )
        label = usual[0] if self.label is None else self.label
        inputs = [key for key in item if key != label] if self.inputs is None else list(self.inputs)
        if not inputs:
            raise PreqError(
                f"item {index} of the Dataset has no key besides '{label}'; there is nothing to predict from"
            )
        return label, inputs

    def class_names(self, dataset: Any) -> list[str] | None:
        """The names that a data set of Hugging Face gives the classes of its label, if it does. Of other Datasets
        `features` may be anything."""
        features = getattr(dataset, "features", None)
        names = getattr(features.get(self.label), "names", None) if isinstance(features, Mapping) else None
        return list(names) if names else None


def example_of(item: Any, index: int, keys: Keys) -> tuple[Any, Any, Keys]:
    """The input and the label of an item, and the keys it has them under: those of the first item are everyone's, since
    dictionaries need not list theirs in one order.

    Example:
        >>> example_of({"height": 1.5, "pixels": [0.0, 1.0], "y": 3}, 0, Keys())
        (array([1.5, 0. , 1. ]), 3, Keys(label='y', inputs=['height', 'pixels']))
    """
    if isinstance(item, Mapping):
        label, inputs = keys.found(item, index)
        values = [_numbers(item[key], f"'{key}' of item {index}") for key in inputs]
        given = values[0] if len(values) == 1 else np.concatenate([value.ravel() for value in values])
        return given, _single(item[label], index), Keys(label, inputs)
    if isinstance(item, tuple | list) and len(item) == 2:
        return item[0], _single(item[1], index), keys
    raise PreqError(f"item {index} of the Dataset must be (input, label) or a dictionary, got {type(item).__name__}")


def _single(label: Any, index: int) -> Any:
    values = np.asarray(label)
    if values.size != 1:
        raise PreqError(f"item {index} of the Dataset must have one label, got {values.size}; choose one of them")
    return values.item()


def _numbers(value: Any, what: str) -> Any:
    """An array; of a picture with channels, these come first."""
    try:
        array = value.detach().cpu().numpy() if isinstance(value, torch.Tensor) else np.asarray(value)
    except (ValueError, TypeError) as error:
        raise PreqError(f"{what} must be numbers: {error}; convert them first") from None
    if array.dtype.kind not in "buif":
        kind = "text" if array.dtype.kind in "UST" else str(array.dtype)
        raise PreqError(f"{what} holds {kind}; give numbers, or name the keys of the input (inputs=[…])")
    is_picture = hasattr(value, "getbands")
    return (array[None] if array.ndim == 2 else array.transpose(2, 0, 1)) if is_picture else array
