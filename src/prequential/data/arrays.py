"""From the user's arrays or Dataset to a sequence, checked on the way in."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np
import torch
from numpy.typing import ArrayLike

from prequential.data.sequence import ArraySequence
from prequential.data.tables.matrix import named_labels, standardised_inputs
from prequential.errors import PreqError, require_count

Arrays: TypeAlias = ArrayLike | torch.Tensor | Sequence[Any]


def from_arrays(
    inputs: Arrays,
    labels: Arrays | None = None,
    *,
    num_classes: int | None = None,
    heldout: tuple[Arrays, Arrays] | None = None,
    name: str = "arrays",
    source: Mapping[str, Any] | None = None,
    standardise: str | None = None,
    class_names: Sequence[str] | None = None,
) -> ArraySequence:
    """A sequence from arrays, in the order given.

    Args:
        inputs: NumPy array or tensor of any shape, one row per example. uint8 is taken as image
            intensities and scaled; whole numbers of other types (tokens) reach the model as they are.
            Arrays are not copied: leave them alone while the sequence is in use.
        labels: whole numbers from 0, or texts, one per row; texts are numbered in the order of their letters. None for
            inputs whose labels are to be decoded.
        num_classes: how many classes there are. Default: the largest label plus one.
        heldout: inputs and labels that are only evaluated at the end.
        name: what tables call it.
        source: what `load_data` would have to be asked for to give it again, if it can.
        standardise: for rows of numbers: "table", mean 0 and variance 1 over all rows; "causal", over the rows up to
            each one; or "none". Holes (NaN) then become the mean, and a further column tells where they were.
            Default: inputs are taken as they are.
        class_names: what the classes are called. Default: the texts, where labels are texts.

    Example:
        >>> data = from_arrays(np.zeros((6, 3), np.float32), [0, 1, 2, 0, 1, 2])
        >>> len(data), data.num_classes, data.input_shape
        (6, 3, (3,))
    """
    if standardise is not None:
        inputs, heldout, table = standardised_inputs(inputs, heldout, standardise, name)
        made = from_arrays(
            inputs, labels, num_classes=num_classes, heldout=heldout, name=name, source=source, class_names=class_names
        )
        return table(made)
    stored_inputs = _checked_inputs(inputs)
    if labels is None:
        hidden = torch.full((len(stored_inputs),), -1)
        return ArraySequence(stored_inputs, hidden, num_classes or 2, torch.arange(len(hidden)), name=name)
    labels, names = named_labels(labels, class_names)
    class_names, num_classes = names, num_classes if names is None else num_classes or max(len(names), 2)
    stored_labels, num_classes = _checked_labels(labels, num_classes)
    if class_names is not None and len(class_names) != num_classes:
        raise PreqError(f"{len(class_names)} class names but {num_classes} classes; name each class once")
    if len(stored_inputs) != len(stored_labels):
        raise PreqError(f"{len(stored_inputs)} inputs but {len(stored_labels)} labels; give one label per input")
    held = None
    if heldout is not None:
        if not isinstance(heldout, tuple | list) or len(heldout) != 2:
            raise PreqError(f"heldout must be a pair (inputs, labels), got {type(heldout).__name__}")
        held_labels = named_labels(heldout[1], class_names)[0]
        held = from_arrays(
            heldout[0], held_labels, num_classes=num_classes, name=f"{name} (held-out)", class_names=class_names
        )
        if held.input_shape != tuple(stored_inputs.shape[1:]) or held.stored_inputs.dtype != stored_inputs.dtype:
            raise PreqError(
                f"held-out inputs are {held.stored_inputs.dtype} of shape {held.input_shape}, the others "
                f"{stored_inputs.dtype} of shape {tuple(stored_inputs.shape[1:])}; make them alike"
            )
    order = torch.arange(len(stored_labels))
    return ArraySequence(
        stored_inputs, stored_labels, num_classes, order,
        name=name, heldout=held, source=source, class_names=names,
    )  # fmt: skip


class MapDataset(Protocol):
    """A map-style torch Dataset: it has a length, and item i is (input, label)."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int, /) -> Any: ...


def from_dataset(
    dataset: MapDataset, *, num_classes: int | None = None, heldout: MapDataset | None = None, name: str | None = None
) -> ArraySequence:
    """A sequence from a map-style torch Dataset whose items are (input, label), in its own order.

    Every item is read once, now, and kept in memory: a Dataset that augments at random is thereby frozen.

    Example:
        >>> from torch.utils.data import TensorDataset
        >>> dataset = TensorDataset(torch.zeros(4, 1, 8, 8), torch.tensor([0, 1, 1, 0]))
        >>> from_dataset(dataset).input_shape
        (1, 8, 8)
    """
    inputs, labels = _read_all(dataset)
    held = None if heldout is None else _read_all(heldout)
    return from_arrays(
        inputs, labels, num_classes=num_classes, heldout=held, name=name or type(dataset).__name__.lower()
    )


def _read_all(dataset: MapDataset) -> tuple[torch.Tensor, torch.Tensor]:
    if not hasattr(dataset, "__len__") or not hasattr(dataset, "__getitem__"):
        kind = type(dataset).__name__
        raise PreqError(f"from_dataset needs a map-style Dataset (with __len__ and __getitem__), got {kind}")
    inputs: list[torch.Tensor] = []
    labels: list[Any] = []
    for index in range(len(dataset)):
        item = dataset[index]
        if not isinstance(item, tuple | list) or len(item) != 2:
            raise PreqError(f"item {index} of the Dataset must be (input, label), got {type(item).__name__}")
        value = _as_tensor(f"the input of item {index}", item[0])
        if inputs and (value.shape != inputs[0].shape or value.dtype != inputs[0].dtype):
            raise PreqError(
                f"item {index} of the Dataset is {value.dtype} of shape {tuple(value.shape)}, item 0 is "
                f"{inputs[0].dtype} of shape {tuple(inputs[0].shape)}; resize or convert them alike"
            )
        inputs.append(value)
        labels.append(item[1])
    if not inputs:
        raise PreqError("the Dataset is empty; give at least one example")
    return torch.stack(inputs), _as_tensor("labels", [np.asarray(label).item() for label in labels])


def _as_tensor(what: str, values: Arrays) -> torch.Tensor:
    if isinstance(values, torch.Tensor):
        return values.detach().cpu()
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise PreqError(f"{what} must form one array: {error}; make the rows alike") from None
    if array.dtype.kind not in "buif":
        raise PreqError(f"{what} must be numbers, got {array.dtype}; convert them first")
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    try:
        contiguous = np.ascontiguousarray(array)
        return torch.from_numpy(contiguous if contiguous.flags.writeable else contiguous.copy())
    except TypeError:
        raise PreqError(f"{what} of type {array.dtype} are not supported; convert to float32 or int64") from None


def _checked_inputs(inputs: Arrays) -> torch.Tensor:
    tensor = _as_tensor("inputs", inputs)
    if tensor.dim() == 0 or len(tensor) == 0:
        raise PreqError(f"the data is empty: inputs have shape {tuple(tensor.shape)}; give at least one example")
    if tensor.is_complex():
        raise PreqError(f"inputs must be real numbers, got {tensor.dtype}")
    if tensor.is_floating_point():
        for start in range(0, len(tensor), 4096):
            finite = torch.isfinite(tensor[start : start + 4096].to(torch.float32))
            finite = finite.reshape(len(finite), -1).all(1)
            if not finite.all():
                position = start + int((~finite).nonzero()[0])
                raise PreqError(f"inputs must be finite, example {position} holds NaN or infinity; remove or fill it")
    return tensor


def _checked_labels(labels: Arrays, num_classes: int | None) -> tuple[torch.Tensor, int]:
    """Whole numbers below the number of classes, which is the least possible where it is not given."""
    tensor = _as_tensor("labels", labels)
    if tensor.dim() != 1:
        raise PreqError(f"labels must be one whole number per example, got shape {tuple(tensor.shape)}")
    if tensor.is_floating_point() or tensor.is_complex():
        raise PreqError(f"labels must be whole numbers, got {tensor.dtype}; convert with labels.astype(int)")
    tensor = tensor.to(torch.int64)
    if num_classes is None:
        num_classes = max(int(tensor.max()) + 1, 2) if len(tensor) else 2
    require_count("num_classes", num_classes, at_least=2)
    bad = ((tensor < 0) | (tensor >= num_classes)).nonzero()
    if len(bad):
        position = int(bad[0])
        raise PreqError(
            f"labels must be in 0 … {num_classes - 1} ({num_classes} classes), got {int(tensor[position])} at "
            f"position {position}; renumber the classes or set num_classes"
        )
    return tensor, num_classes
