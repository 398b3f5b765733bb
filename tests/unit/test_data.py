"""What enters: arrays, Datasets and idx files; and what is refused."""

import gzip
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import Dataset, TensorDataset

from prequential.data.arrays import from_arrays, from_dataset
from prequential.data.blind import InputsOnly
from prequential.data.prepare import prepare
from prequential.data.sequence import ArraySequence, to_network_input
from prequential.data.sources import load
from prequential.data.sources.mnist import BUNDLED, read_idx
from prequential.errors import PreqError, PreqWarning
from prequential.testing import check_data

from ..conftest import blobs
from .test_sources import picture


def in_memory(name: str, **options: Any) -> ArraySequence:
    data = load(name, **options)
    assert isinstance(data, ArraySequence)
    return data


def test_mnist_is_the_real_thing(mnist: ArraySequence) -> None:
    check_data(mnist)
    given = in_memory("mnist", order="given")
    assert given.labels(np.arange(10)).tolist() == [5, 0, 4, 1, 9, 2, 1, 3, 1, 4]
    assert np.bincount(given.stored_labels.numpy()).tolist() == [
        5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949
    ]  # fmt: skip
    assert sorted(mnist.order.tolist()) == list(range(60_000))
    assert mnist.order_seed == 0


def test_the_order_is_a_function_of_its_seed(mnist: ArraySequence) -> None:
    assert torch.equal(mnist.order, in_memory("mnist", order_seed=0).order)
    assert not torch.equal(mnist.order, in_memory("mnist", order_seed=1).order)
    assert torch.equal(mnist.take(100).order, mnist.order[:100])
    assert mnist.take(100).digests() != mnist.take(101).digests()


def test_arrays_and_tensors_of_any_shape() -> None:
    for inputs in (np.zeros((6, 2, 3, 4)), torch.zeros(6), torch.zeros(6, 7, dtype=torch.float16)):
        data = from_arrays(inputs, [0, 1, 2, 0, 1, 2])
        check_data(data)
        assert data.input_shape == tuple(inputs.shape[1:])
    assert to_network_input(torch.zeros(2, dtype=torch.float64)).dtype == torch.float32
    assert to_network_input(torch.arange(3)).dtype == torch.int64
    check_data(blobs(30))
    frozen = np.zeros((4, 2))
    frozen.flags.writeable = False
    check_data(from_arrays(frozen, [0, 1, 0, 1]))
    check_data(from_arrays(np.zeros((4, 2)), np.array([True, False, True, False])))


def test_digests_see_every_change() -> None:
    inputs, labels = np.arange(12, dtype=np.float32).reshape(4, 3), np.array([0, 1, 2, 1])
    base = from_arrays(inputs, labels).digests()
    changed = inputs.copy()
    changed[3, 2] += 1
    assert from_arrays(changed, labels).digests()["inputs"] != base["inputs"]
    assert from_arrays(inputs.reshape(4, 3, 1), labels).digests()["inputs"] != base["inputs"]
    assert from_arrays(inputs, [0, 1, 2, 2]).digests()["labels"] != base["labels"]
    assert from_arrays(inputs, labels, num_classes=4).digests()["labels"] != base["labels"]
    shuffled = from_arrays(inputs, labels).shuffled(0)
    assert shuffled.digests()["inputs"] != base["inputs"]
    stored_shuffled = from_arrays(inputs[shuffled.order.numpy()], labels[shuffled.order.numpy()])
    assert stored_shuffled.digests() == shuffled.digests(), "a sequence is what it is, however it is stored"


def test_a_sequence_shows_itself_in_one_line(tmp_path: Path) -> None:
    data = from_arrays(np.zeros((1200, 3)), np.arange(1200) % 4, name="points")
    shown = "points, 1,200 examples of Classes(num_classes=4), inputs of shape (3,)>"
    assert repr(data) == f"<ArraySequence: {shown}"
    assert repr(prepare(data, tmp_path / "to")) == f"<MappedSequence: {shown}"
    assert repr(InputsOnly(data, data.target)) == f"<InputsOnly: {shown}"
    picture(tmp_path / "pets" / "ant" / "0.png", kind="PNG")
    picture(tmp_path / "pets" / "bee" / "0.png", kind="PNG")
    images = load(f"folder:{tmp_path / 'pets'}", workers=0)
    assert repr(images) == "<ImageFiles: pets, 2 examples of Classes(num_classes=2), inputs of shape (3, 20, 20)>"


class Pictures(Dataset[tuple[np.ndarray, int]]):
    def __init__(self, *, ragged: bool = False) -> None:
        self._ragged = ragged

    def __len__(self) -> int:
        return 5

    def __getitem__(self, index: int) -> tuple[np.ndarray, int]:
        side = 4 + (self._ragged and index == 3)
        return np.full((side, side), index, np.uint8), index % 2


def test_any_map_style_dataset_will_do() -> None:
    data = from_dataset(Pictures(), heldout=Pictures())
    check_data(data)
    assert data.name == "pictures"
    assert data.stored_inputs.dtype == torch.uint8
    tensors = TensorDataset(torch.zeros(4, 3), torch.tensor([0, 1, 1, 0]))
    assert from_dataset(tensors, num_classes=5).num_classes == 5
    tensors.features = {"colour": [1.0, 2.0]}  # type: ignore[attr-defined]  # which is nobody's list of classes
    assert from_dataset(tensors).class_names is None


X = np.zeros((4, 2), np.float32)


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (lambda: from_arrays(X, [0, 1, 2]), "4 inputs but 3 labels; give one label per input"),
        (lambda: from_arrays(X, [0, 1, 2, 9], num_classes=3), r"in 0 … 2 .3 classes., got 9 at position 3"),
        (lambda: from_arrays(X, [0, -1, 2, 1]), "got -1 at position 1"),
        (lambda: from_arrays(X, [0.0, 1.0, 1.0, 0.0]), "whole numbers, got torch.float64; convert with"),
        (lambda: from_arrays(X, [b"a", b"b", b"a", b"b"]), "labels must be numbers, got |S1".replace("|", "[|]")),
        (
            lambda: from_arrays(X, ["a", "b", None, "b"]),
            "must all be text or all whole numbers, got None",
        ),
        (lambda: from_arrays(X, np.zeros((4, 1), int)), r"one whole number per example, got shape \(4, 1\)"),
        (lambda: from_arrays(X * np.nan, [0, 1, 0, 1]), "example 0 holds NaN or infinity"),
        (lambda: from_arrays(np.array([[0.0], [np.inf]]), [0, 1]), "example 1 holds NaN"),
        (lambda: from_arrays(X[:0], []), r"the data is empty: inputs have shape \(0, 2\)"),
        (lambda: from_arrays(X, [0, 1, 0, 1], num_classes=1), "num_classes must be a whole number of at least 2"),
        (lambda: from_arrays([[1.0, 2.0], [3.0]], [0, 1]), "inputs must form one array: setting an array element"),
        (lambda: from_arrays(X, [0, 1, 0, 1], heldout=X), r"heldout must be a pair .inputs, labels., got ndarray"),  # type: ignore[arg-type]
        (lambda: from_arrays(X.astype(float) + 1e300, [0, 1, 0, 1]), "example 0 holds NaN or infinity"),
        (lambda: from_dataset([(np.zeros(2), "cat")]), "labels hold a single class, 'cat'; there is nothing"),
        (lambda: from_dataset([("text", 0)]), "the input of item 0 must be numbers, got <U4"),
        (lambda: from_arrays(X.astype(object), [0, 1, 0, 1]), "inputs must be numbers, got object"),
        (lambda: from_arrays(X, [0, 1, 0, 1], heldout=(X[:, :1], [0] * 4)), "held-out inputs are"),
        (lambda: from_arrays(X, [0, 1, 0, 1], heldout=(X, [0, 1, 0, 2])), "got 2 at position 3"),
        (lambda: from_arrays(X, [0, 1, 0, 1]).take(5), "length 5 is more than the 4 examples of 'arrays'"),
        (lambda: from_arrays(X, [0, 1, 0, 1]).take(0), "length must be a whole number of at least 1, got 0"),
        (lambda: from_dataset(Pictures(ragged=True)), r"item 3 of the Dataset is torch.uint8 of shape \(5, 5\)"),
        (lambda: from_dataset(TensorDataset(torch.zeros(3, 1))), r"item 0 .* must be \(input, label\)"),
        (lambda: from_dataset(TensorDataset(torch.zeros(0), torch.zeros(0))), "the Dataset is empty"),
        (lambda: from_dataset(iter([1])), "needs a map-style Dataset"),  # type: ignore[arg-type]
        (lambda: load("mnits"), "unknown data set 'mnits'; did you mean 'mnist'"),
        (lambda: load("mnist", data_dir="/nowhere"), "the data directory /nowhere is not there"),
    ],
)
def test_bad_data_is_refused_in_one_line(make: Callable[[], object], complaint: str) -> None:
    with pytest.raises(PreqError, match=complaint) as caught:
        make()
    assert "\n" not in str(caught.value)


def idx(values: np.ndarray) -> bytes:
    return bytes([0, 0, 8, values.ndim]) + struct.pack(f">{values.ndim}I", *values.shape) + values.tobytes()


def test_idx_files_are_read_plain_and_packed(tmp_path: Path) -> None:
    values = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
    (tmp_path / "plain").write_bytes(idx(values))
    (tmp_path / "packed.gz").write_bytes(gzip.compress(idx(values)))
    for name in ("plain", "packed.gz"):
        assert np.array_equal(read_idx(tmp_path / name), values)


GOOD = idx(np.arange(24, dtype=np.uint8).reshape(2, 3, 4))


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (GOOD[:-1], r"is truncated: 23 bytes of values, its header \(2, 3, 4\) says 24"),
        (GOOD + b"!", "is too long: 25 bytes"),
        (GOOD[:9], "is truncated inside its header"),
        (b"PK\x03\x04" + GOOD, "is not an idx file of bytes: it begins with 504b0304"),
        (b"", "is not an idx file of bytes: it begins with nothing"),
        (b"\0\0\x08\x03" + b"\xff" * 12, "claims 79228162458924105385300197375 bytes of values"),
        (gzip.compress(GOOD, mtime=0)[:-9], "cannot be read: Compressed file ended"),
        (gzip.compress(GOOD, mtime=0)[:12] + b"\xff" * 20, "cannot be read|is not an idx file"),
        (None, "cannot be read: No such file"),
    ],
    ids=["short", "long", "header", "foreign", "empty", "huge", "short gzip", "broken gzip", "absent"],
)
def test_broken_idx_files_are_named(tmp_path: Path, content: bytes | None, complaint: str) -> None:
    packed = content is not None and content[:2] == b"\x1f\x8b"
    path = tmp_path / f"images-idx3-ubyte{'.gz' * packed}"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(PreqError, match=complaint) as caught:
        read_idx(path)
    assert str(path) in str(caught.value)


def test_a_directory_of_the_users_goes_before_the_bundled_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw = tmp_path / "MNIST" / "raw"
    raw.mkdir(parents=True)
    for packed in BUNDLED.glob("*.gz"):
        (raw / packed.stem).write_bytes(gzip.decompress(packed.read_bytes()))
    labels = raw / "train-labels-idx1-ubyte"
    labels.write_bytes(labels.read_bytes()[:8] + bytes(60_000))
    assert not in_memory("mnist", data_dir=tmp_path).stored_labels.any()
    monkeypatch.setenv("PREQ_DATA", str(tmp_path))
    assert not in_memory("mnist").stored_labels.any()
    labels.write_bytes(labels.read_bytes()[:-1])
    with pytest.raises(PreqError, match="train-labels-idx1-ubyte is truncated"):
        load("mnist")
    labels.unlink()
    with pytest.raises(PreqError, match="train-labels-idx1-ubyte cannot be read: No such file"):
        load("mnist")
    monkeypatch.setenv("PREQ_DATA", str(tmp_path / "MNIST"))
    with pytest.raises(PreqError, match="train-labels"):
        load("mnist", data_dir=raw)
    with pytest.warns(PreqWarning, match="holds no MNIST files; the bundled ones are used"):
        assert in_memory("mnist").stored_labels.any()
