"""Text labels, rows that are dictionaries, vectors of Hugging Face, scikit-learn's sets; whole numbers into models."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from torch import nn

import prequential as pq
from prequential.data.optional import capabilities
from prequential.errors import PreqError
from prequential.testing import check_data

QUICK = pq.ReplayStreams(num_streams=1, batch_size=8)
X = np.arange(8.0).reshape(4, 2)


@settings(max_examples=30)
@given(st.lists(st.text(max_size=3), min_size=2, max_size=12), st.randoms(use_true_random=False))
def test_classes_of_text_do_not_depend_on_the_order_of_rows(texts: list[str], chance: Any) -> None:
    texts = [*texts, "a", "b"]
    shuffled = chance.sample(texts, len(texts))
    one, other = (pq.from_arrays(np.zeros((len(texts), 1)), each) for each in (texts, shuffled))
    assert one.class_names == other.class_names == tuple(sorted(set(texts)))
    assert one.class_names is not None
    assert [one.class_names[label] for label in one.stored_labels] == texts
    check_data(one)


@pytest.mark.parametrize(
    "labels",
    [
        ["oak", "ash", "oak", "elm"],
        ("oak", "ash", "oak", "elm"),
        np.array(["oak", "ash", "oak", "elm"]),
        np.array(["oak", "ash", "oak", "elm"], object),
        np.array(["oak", "ash", "oak", "elm"], np.dtypes.StringDType()),
    ],
)
def test_text_is_numbered_as_it_sorts(labels: Any) -> None:
    data = pq.from_arrays(X, labels, heldout=(X[:1], ["elm"]))
    assert (data.num_classes, data.class_names) == (3, ("ash", "elm", "oak"))
    assert data.stored_labels.tolist() == [2, 0, 2, 1]
    assert data.heldout is not None
    assert (data.heldout.stored_labels.tolist(), data.heldout.class_names) == ([1], data.class_names)
    assert data.shuffled(3).take(2).class_names == data.class_names
    plain = pq.from_arrays(X, [2, 0, 2, 1])
    assert plain.class_names is None
    assert plain.digests() == data.digests(), "names are told, and are no part of what is coded"


def test_names_of_classes_can_be_given() -> None:
    named = pq.from_arrays(X, [0, 1, 0, 1], class_names=["no", "yes", "maybe"])
    assert (named.num_classes, named.class_names) == (3, ("no", "yes", "maybe"))
    ordered = pq.from_arrays(X, ["yes", "no", "yes", "no"], class_names=("yes", "no"))
    assert ordered.stored_labels.tolist() == [0, 1, 0, 1]


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (lambda: pq.from_arrays(X, ["a", "b", None, "a"]), "all be text or all whole numbers, got None at position 2"),
        (lambda: pq.from_arrays(X, ["a", 1, "b", "a"]), "got 1 at position 1; name the class, or remove the row"),
        (lambda: pq.from_arrays(X, ["a"] * 4), "labels hold a single class, 'a'; there is nothing to predict"),
        (lambda: pq.from_arrays(X, list("abca"), num_classes=2), "3 names, and num_classes is 2; make them agree"),
        (lambda: pq.from_arrays(X, list("abca"), heldout=(X, list("abcd"))), "'d' at position 3, which is none of"),
        (lambda: pq.from_arrays(X, list("abca"), heldout=(X, [0, 1, 2, 0])), "some are text and some are not"),
        (lambda: pq.from_arrays(X, [0, 1, 0, 1], class_names="ab"), "class_names must be a list of texts, got 'ab'"),
        (lambda: pq.from_arrays(X, [0, 1, 0, 1], class_names=["a", "a"]), "at least two different texts"),
        (lambda: pq.from_arrays(X, [0, 1, 0, 2], class_names=["a", "b"]), "got 2 at position 3"),
        (lambda: pq.from_dataset([{"a": 1.0, "b": 2.0}]), "which key of item 0 is the label. give label=…; it has"),
        (lambda: pq.from_dataset([{"y": 1}]), "has no key besides 'y'; there is nothing to predict from"),
        (lambda: pq.from_dataset([{"a": 1.0, "y": 0}], label="z"), "unknown key of item 0 of the Dataset 'z'"),
        (lambda: pq.from_dataset([{"a": "text", "y": 0}]), "'a' of item 0 holds text; give numbers, or name the keys"),
        (lambda: pq.from_dataset([{"a": [1, [2]], "y": 0}]), "'a' of item 0 must be numbers"),
    ],
)  # fmt: skip
def test_what_is_no_text_label_and_no_row(make: Callable[[], object], complaint: str) -> None:
    with pytest.raises(PreqError, match=complaint):
        make()


def test_rows_may_be_dictionaries() -> None:
    rows: Any = [{"size": float(n), "class": "ab"[n % 2], "grid": np.full((2, 2), n), "note": "x"} for n in range(4)]
    data = pq.from_dataset(rows, inputs=["size", "grid"], name="rows")
    assert (data.input_shape, data.class_names) == ((5,), ("a", "b"))
    assert data.inputs(np.array([3])).tolist() == [[3.0] * 5]
    assert pq.from_dataset(rows, inputs="grid", heldout=rows[:1]).input_shape == (2, 2)
    grey, colour = (Image.fromarray(np.zeros((5, 4, *more), np.uint8)) for more in ((), (3,)))
    assert pq.from_dataset([{"image": grey, "label": 0}]).input_shape == (1, 5, 4)
    assert pq.from_dataset([{"image": colour, "label": 0}]).input_shape == (3, 5, 4)


class Tokens(nn.Module):
    """A model that takes whole numbers and nothing else."""

    def __init__(self, num_classes: int) -> None:
        super().__init__()
        self.words, self.last = nn.Embedding(20, 4), nn.Linear(4, num_classes)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        assert not tokens.is_floating_point()
        return self.last(self.words(tokens).mean(1))


@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.int16, np.bool_])
@pytest.mark.parametrize("engine", ["eager", "graph", "stack"])
def test_whole_numbers_stay_where_the_model_wants_them(dtype: Any, engine: str) -> None:
    values = np.random.default_rng(0).integers(0, 3, (24, 6)).astype(dtype)
    whole, real = (pq.from_arrays(inputs, values[:, 0] > 0) for inputs in (values, values.astype(np.float32)))

    def nats(model: Any, data: Any) -> Any:
        if engine == "stack":
            return pq.run_stack(model, data, QUICK, [pq.Recipe()] * 2, seeds=[0, 1])[1].nats
        return pq.run(model, data, QUICK, seed=0, execution=pq.Execution(engine=engine)).nats

    assert np.array_equal(nats("mlp1", whole), nats("mlp1", real)), "a linear layer is given floats of the same value"
    if dtype is not np.bool_:
        assert np.isfinite(nats(Tokens, whole)).all()
    if engine == "eager":
        with pytest.raises(PreqError, match=r"the model '.*Tokens' fails when predicting"):
            nats(Tokens, real)


def hub(folder: Path, make: Callable[[Any], Any]) -> str:
    datasets = pytest.importorskip("datasets", reason="the extra hf is not installed")
    datasets.disable_progress_bars()
    make(datasets).save_to_disk(folder)
    return f"hf:{folder}"


def embedded(datasets: Any) -> Any:
    chance = np.random.default_rng(0)
    kinds = np.array(["cat", "ant", "bee"])[chance.integers(0, 3, 96)]
    means = {"ant": -2.0, "bee": 0.0, "cat": 2.0}
    rows = [(chance.normal(means[kind], 1.0, 5)).tolist() for kind in kinds]
    return datasets.Dataset.from_dict({"embedding": rows, "weight": chance.normal(size=96), "class": kinds.tolist()})


def test_hugging_face_vectors_with_text_labels(tmp_path: Path) -> None:
    spec = hub(tmp_path / "animals", embedded)
    data = pq.load_data(spec, order_seed=0)
    record = pq.run("mlp1", data, QUICK, seed=0)
    assert (data.input_shape, data.class_names) == ((6,), ("ant", "bee", "cat"))
    assert record.codelength < 96 * np.log(3)
    assert record.worst(1)[0].label_name in ("ant", "bee", "cat")
    check_data(data)


def test_hugging_face_rows_as_a_dataset(tmp_path: Path) -> None:
    hub(tmp_path / "animals", embedded)
    import datasets

    rows = datasets.load_from_disk(tmp_path / "animals")
    data = pq.from_dataset(rows)
    assert (data.input_shape, data.class_names) == ((6,), ("ant", "bee", "cat"))
    named = rows.cast_column("class", datasets.ClassLabel(names=["cat", "bee", "ant", "dog"]))
    assert pq.from_dataset(named).class_names == ("cat", "bee", "ant", "dog")
    loaded = pq.load_data(hub(tmp_path / "named", lambda _: named), order="given")
    assert loaded.class_names == ("cat", "bee", "ant"), "the classes that occur, in the order of their numbers"


def test_tokens_pictures_and_mistakes_of_hugging_face(tmp_path: Path) -> None:
    tokens = {"input_ids": [[n % 7, 3, n % 5] for n in range(16)], "label": ["x", "y"] * 8}
    spec = hub(tmp_path / "tokens", lambda d: d.Dataset.from_dict(tokens))
    whole = pq.load_data(spec, standardise="none", order="given")
    assert whole.inputs(np.array([1])).tolist() == [[1, 3, 1]]
    assert not whole.inputs(np.array([1])).is_floating_point()
    assert pq.run(Tokens, whole, QUICK, seed=0).status == "finished"
    assert pq.load_data(spec).inputs(np.array([1])).is_floating_point()

    def pictures(d: Any) -> Any:
        features = d.Features({"pixels": d.Array2D((3, 4), "uint8"), "label": d.Value("string")})
        columns = {"pixels": [np.full((3, 4), n, np.uint8) for n in range(4)], "label": list("abab")}
        train = d.Dataset.from_dict(columns, features)
        return d.DatasetDict({"train": train, "test": train.select([1, 2])})

    data = pq.load_data(hub(tmp_path / "pixels", pictures), order="given")
    assert (data.input_shape, data.inputs(np.array([2])).dtype) == ((1, 3, 4), torch.uint8)
    assert (data.scale, pq.load_data(f"hf:{tmp_path / 'pixels'}", scale="3").scale) == (None, 3)
    with pytest.raises(PreqError, match="--scale is about uint8, and the inputs of tokens are int64; leave it out"):
        pq.load_data(spec, scale="3")
    assert data.heldout is not None
    assert data.heldout.labels(np.arange(2)).tolist() == [1, 0]
    assert capabilities(data.heldout).class_names == ("a", "b")
    ragged = {"v": [[1.0], [2.0, 3.0]], "label": ["a", "b"]}
    with pytest.raises(PreqError, match="column 'v' holds rows of different lengths, or holes; pad or fill them"):
        pq.load_data(hub(tmp_path / "ragged", lambda d: d.Dataset.from_dict(ragged)))
    holes = {"v": [1.0, 2.0, 3.0], "label": ["a", "b", None]}
    with pytest.raises(PreqError, match=r"column 'label' of holes must all be text .* got None at position 2"):
        pq.load_data(hub(tmp_path / "holes", lambda d: d.Dataset.from_dict(holes)))


def test_scikit_learns_digits() -> None:
    load_digits = pytest.importorskip("sklearn.datasets").load_digits
    images, labels = load_digits().images, load_digits().target
    data = pq.from_arrays(images[:, None] / 8 - 1, labels, name="digits").shuffled(seed=0).take(256)
    record = pq.run("mlp1", data, QUICK, seed=0)
    assert record.codelength < 0.5 * 256 * np.log(10)
    assert images[record.worst(1)[0].row].shape == (8, 8)


def test_scikit_learns_wine() -> None:
    wine = pytest.importorskip("sklearn.datasets").load_wine()
    inputs = (wine.data - wine.data.mean(0)) / wine.data.std(0)
    data = pq.from_arrays(inputs, wine.target_names[wine.target], name="wine").shuffled(seed=0)
    record = pq.run("mlp1", data, QUICK, seed=0)
    assert record.class_names == ("class_0", "class_1", "class_2")
    assert record.codelength < 0.5 * 178 * np.log(3)


def test_scikit_learns_breast_cancer() -> None:
    cancer = pytest.importorskip("sklearn.datasets").load_breast_cancer()
    inputs = (cancer.data - cancer.data.mean(0)) / cancer.data.std(0)
    data = pq.from_arrays(inputs, cancer.target_names[cancer.target], name="cancer").shuffled(seed=0)
    record = pq.run("mlp1", data, QUICK, seed=0)
    assert [each.name for each in record.by_class()] == ["benign", "malignant"]
    assert record.codelength < 0.3 * 569 * np.log(2)


def test_numbers_that_are_renumbered_keep_their_names(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x,label\n" + "".join(f"{n},{(7, 3)[n % 2]}\n" for n in range(8)))
    data = pq.load_data(f"csv:{tmp_path / 'a.csv'}")
    assert data.class_names == ("3", "7")
    assert pq.load_data(hub(tmp_path / "n", lambda d: d.Dataset.from_csv(str(tmp_path / "a.csv")))).class_names == (
        "3",
        "7",
    )
