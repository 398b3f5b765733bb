"""Data sets by name and the user's own: the publishers' formats, and what is refused."""

import gzip
import socket
import struct
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from PIL import Image

import prequential as pq
from prequential.data.images import ImageFiles
from prequential.data.optional import capabilities
from prequential.data.sequence import ArraySequence
from prequential.data.sources import SOURCES, find_source, load
from prequential.data.sources.cifar import HUNDRED, TEN, Layout
from prequential.errors import PreqError, PreqWarning
from prequential.testing import check_data


@pytest.fixture(autouse=True)
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PREQ_CACHE", str(tmp_path / "cache"))


def idx(values: np.ndarray) -> bytes:
    return bytes([0, 0, 8, values.ndim]) + struct.pack(f">{values.ndim}I", *values.shape) + values.tobytes()


def numbers(*shape: int, below: int = 256, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, below, shape).astype(np.uint8)


@pytest.mark.parametrize(("split", "num_classes"), [("balanced", 47), ("letters", 26), ("byclass", 62), ("digits", 10)])
def test_emnist_is_read_upright_and_from_zero(tmp_path: Path, split: str, num_classes: int) -> None:
    folder = tmp_path / "EMNIST" / "raw"
    folder.mkdir(parents=True)
    first = 1 if split == "letters" else 0
    images, labels = {}, {}
    for part, count in (("train", 9), ("test", 4)):
        images[part] = numbers(count, 28, 28, seed=count)
        labels[part] = (np.arange(count) % num_classes + first).astype(np.uint8)
        stem = folder / f"emnist-{split}-{part}"
        Path(f"{stem}-images-idx3-ubyte.gz").write_bytes(gzip.compress(idx(images[part])))
        Path(f"{stem}-labels-idx1-ubyte").write_bytes(idx(labels[part]))
    data = load(f"emnist-{split}", data_dir=tmp_path, order="given")
    check_data(data)
    assert data.num_classes == num_classes
    assert np.array_equal(data.inputs(np.arange(9)).numpy()[:, 0], images["train"].transpose(0, 2, 1))
    assert data.labels(np.arange(9)).tolist() == (labels["train"].astype(int) - first).tolist()
    assert data.heldout is not None
    assert len(data.heldout) == 4
    Path(folder / f"emnist-{split}-test-labels-idx1-ubyte").unlink()
    with pytest.raises(PreqError, match=f"emnist-{split}-test-labels-idx1-ubyte cannot be read: No such file"):
        load(f"emnist-{split}", data_dir=tmp_path)


def cifar_files(layout: Layout, folder: Path) -> dict[str, np.ndarray]:
    folder.mkdir(parents=True)
    rows = {}
    for number, name in enumerate((*layout.train, layout.test)):
        count = 10_000 if name == layout.test else 50_000 // len(layout.train)
        block = numbers(count, layout.label_bytes + 3072, seed=number)
        block[:, : layout.label_bytes] = numbers(count, layout.label_bytes, below=layout.num_classes, seed=number)
        (folder / name).write_bytes(block.tobytes())
        rows[name] = block
    return rows


@pytest.mark.parametrize("name", ["cifar10", "cifar100"])
def test_cifar_binary_version(tmp_path: Path, name: str) -> None:
    layout = TEN if name == "cifar10" else HUNDRED
    rows = cifar_files(layout, tmp_path / layout.folder)
    data = load(name, data_dir=tmp_path, order="given")
    assert len(data) == 50_000
    assert data.input_shape == (3, 32, 32)
    last = rows[layout.train[-1]][-1]
    assert data.labels(np.array([49_999])).item() == last[layout.label_bytes - 1]
    assert np.array_equal(data.inputs(np.array([49_999])).numpy().reshape(-1), last[layout.label_bytes :])
    assert data.heldout is not None
    assert data.heldout.labels(np.array([0])).item() == rows[layout.test][0, layout.label_bytes - 1]
    file = tmp_path / layout.folder / layout.train[-1]
    file.write_bytes(file.read_bytes()[:-7])
    with pytest.raises(
        PreqError, match=rf"{file.name} is truncated: [\d,]+ bytes, wanted [\d,]+ .* images of 3,07[34]"
    ):
        load(name, data_dir=tmp_path)
    file.write_bytes(rows[file.name].tobytes() + b"x")
    with pytest.raises(PreqError, match=r"is too long"):
        load(name, data_dir=tmp_path)
    rows[file.name][5, layout.label_bytes - 1] = 200
    file.write_bytes(rows[file.name].tobytes())
    with pytest.raises(PreqError, match=r"got 200 at position"):
        load(name, data_dir=tmp_path)


def test_rgb_mnist_hides_channels_by_leaving_them_out(mnist: ArraySequence) -> None:
    views = {c: load(f"rgb-mnist:{c}", examples=500) for c in ("R", "RG", "RGB")}
    whole = load("rgb-mnist", examples=500)
    check_data(whole)
    assert whole.digests() == views["RGB"].digests()
    positions = np.arange(500)
    for number, view in enumerate(views.values(), 1):
        assert view.input_shape == (number, 28, 28)
        assert np.array_equal(view.inputs(positions), whole.inputs(positions)[:, :number])
        assert np.array_equal(view.labels(positions), whole.labels(positions))
    given = load("rgb-mnist", examples=500, order="given")
    digits = {
        image.numpy().tobytes(): int(label)
        for image, label in zip(mnist.stored_inputs[:, 0], mnist.stored_labels, strict=True)
    }
    for position in range(20):
        red = given.inputs(np.array([position])).numpy()[0, 0].tobytes()
        assert digits[red] == given.labels(np.array([position])).item()
    assert load("rgb-mnist", examples=500, data_seed=1).digests() != whole.digests()
    assert whole.heldout is not None
    assert len(whole.heldout) == 10_000
    assert len(load("rgb-mnist")) == 100_000


def test_views_of_the_same_examples_can_be_compared() -> None:
    method = pq.ReplayStreams(num_streams=1, batch_size=16)
    records = [
        pq.run("mlp1", load(name, examples=64).without_heldout(), method, seed=0, width=0.1)
        for name in ("rgb-mnist:R", "rgb-mnist")
    ]
    with pytest.warns(PreqWarning, match="the inputs differ"):
        assert len(pq.regret(*records)) == 64
    other = pq.run("mlp1", load("rgb-mnist", examples=64, data_seed=3).without_heldout(), method, seed=0, width=0.1)
    with pytest.raises(PreqError, match=r"differ in their"):
        pq.regret(records[0], other)


def picture(path: Path, *, shade: int = 0, size: tuple[int, int] = (24, 20), kind: str = "JPEG") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(numbers(size[1], size[0], 3, seed=shade)).save(path, kind)
    return path


def folder_of(root: Path, *, per_class: int = 4) -> Path:
    for label, name in enumerate(("ant", "bee", "cat")):
        for number in range(per_class):
            kind = ("JPEG", "PNG", "WEBP")[number % 3]
            extension = {"JPEG": "JPG", "PNG": "png", "WEBP": "webp"}[kind]
            picture(root / name / f"{number}.{extension}", shade=10 * label + number, kind=kind)
    return root


def images(name: str, **options: Any) -> ImageFiles:
    data = load(name, workers=0, **options)
    assert isinstance(data, ImageFiles)
    return data


def test_a_folder_of_images(tmp_path: Path) -> None:
    root = folder_of(tmp_path / "pets")
    data = images(f"folder:{root}", order="given")
    check_data(data)
    assert (data.name, data.num_classes, data.input_shape, len(data)) == ("pets", 3, (3, 20, 20), 12)
    assert data.labels(np.arange(12)).tolist() == [0] * 4 + [1] * 4 + [2] * 4
    positions = np.arange(6)
    one, again, other = (data.training_inputs(positions, key) for key in (1, 1, 2))
    assert np.array_equal(one, again), "a training view is a function of its key"
    assert not np.array_equal(one, other)
    centred = images(f"folder:{root}", order="given", crop="centre", size=8)
    assert centred.input_shape == (3, 8, 8)
    assert np.array_equal(centred.training_inputs(positions, 1), centred.inputs(positions))
    shuffled = images(f"folder:{root}")
    assert sorted(shuffled.order.tolist()) == list(range(12))
    assert shuffled.take(5).digests() != shuffled.take(6).digests()
    assert shuffled.digests()["labels"] != data.digests()["labels"]
    assert load(f"folder:{root}", order="given", size=8).digests()["inputs"] != data.digests()["inputs"]


def test_workers_read_ahead_what_the_loop_will_ask_for(tmp_path: Path) -> None:
    root = folder_of(tmp_path / "pets", per_class=6)
    method = pq.ReplayStreams(num_streams=1, batch_size=4)
    lengths = []
    for workers in (0, 2):
        data = load(f"folder:{root}", workers=workers, size=16)
        lengths.append(pq.run("lenet", data, method, seed=0, width=0.5).codelength)
    assert lengths[0] == lengths[1], "who decodes decides nothing"


@pytest.mark.parametrize(
    ("spoil", "complaint"),
    [
        (lambda root: (root / "dog").mkdir(), r"the class folder .*dog holds no JPEG, PNG or WebP image; fill or"),
        (lambda root: (root / "bee" / "9.jpg").symlink_to("/etc/hostname"), r"9.jpg is a link that leads out of"),
        (lambda root: (root / "dog").symlink_to("/etc"), r"dog is a link that leads out of"),
        (lambda root: [(root / name).rename(root / "bee" / name) for name in ("ant", "cat")], "has 1 sub-folders"),
    ],
)  # fmt: skip
def test_a_folder_that_is_not_right(tmp_path: Path, spoil: Callable[[Path], object], complaint: str) -> None:
    root = folder_of(tmp_path / "pets")
    spoil(root)
    with pytest.raises(PreqError, match=complaint):
        load(f"folder:{root}")


def test_a_link_inside_and_other_files_are_no_mistake(tmp_path: Path) -> None:
    root = folder_of(tmp_path / "pets")
    (root / "bee" / "8.jpg").symlink_to(root / "bee" / "0.JPG")
    (root / "bee" / ".hidden").write_text("x")
    assert len(load(f"folder:{root}")) == 13
    (root / "bee" / "notes.txt").write_text("x")
    with pytest.warns(PreqWarning, match=r"1 file under .* is no JPEG, PNG or WebP and is left out"):
        assert len(load(f"folder:{root}")) == 13


def test_a_broken_image_is_named_or_skipped(tmp_path: Path) -> None:
    root = folder_of(tmp_path / "pets")
    broken = root / "bee" / "0.JPG"
    broken.write_bytes(broken.read_bytes()[:200])
    data = images(f"folder:{root}", order="given")
    with pytest.raises(
        PreqError, match=r"bee/0.JPG \(position 4\) is broken: .*; replace it, or leave such images out"
    ):
        data.inputs(np.arange(12))
    with pytest.warns(PreqWarning, match=r"1 of 12 images of 'pets' is broken and left out \(.*bee/0.JPG"):
        rest = images(f"folder:{root}", order="given", skip_broken=True)
    assert len(rest) == 11
    check_data(rest)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        shuffled, whole = images(f"folder:{root}", skip_broken=True), images(f"folder:{root}")
    assert shuffled.order.tolist() == [row for row in whole.order.tolist() if row != 4], "the others keep their order"
    for path in root.rglob("*.*"):
        path.write_bytes(b"no image")
    with pytest.raises(PreqError, match=r"is broken|cannot be decoded|not an image|not a JPEG"):
        load(f"folder:{root}", skip_broken=True)


def test_imagenet_in_its_official_layouts(tmp_path: Path) -> None:
    root = tmp_path / "imagenet"
    for label, name in enumerate(("n01440764", "n02102040")):
        for number in range(3):
            picture(root / "train" / name / f"{name}_{number}.JPEG", shade=10 * label + number)
    for number in range(2):
        picture(root / "val" / f"ILSVRC2012_val_{number:08d}.JPEG", shade=50 + number)
    with pytest.raises(PreqError, match=r"there is no LOC_val_solution.csv"):
        load("imagenet", data_dir=tmp_path, workers=0)
    rows = (
        "ImageId,PredictionString",
        "ILSVRC2012_val_00000000,n02102040 1 2 3",
        "ILSVRC2012_val_00000001,n01440764 1 ",
    )
    solution = "\n".join(rows)
    (root / "LOC_val_solution.csv").write_text(solution)
    data = load("imagenet", data_dir=tmp_path, workers=0, order="given")
    check_data(data)
    assert data.heldout is not None
    assert data.heldout.labels(np.arange(2)).tolist() == [1, 0]
    (root / "LOC_val_solution.csv").write_text(solution.replace("n02102040", "n99999999"))
    with pytest.raises(PreqError, match=r"row 1 of .*LOC_val_solution.csv names no class"):
        load("imagenet", data_dir=tmp_path)
    for number, name in enumerate(("n02102040", "n01440764")):
        picture(root / "val" / name / f"{number}.JPEG", shade=50 + number)
        (root / "val" / f"ILSVRC2012_val_{number:08d}.JPEG").unlink()
    sorted_layout = load("imagenet", data_dir=tmp_path, workers=0)
    assert sorted_layout.heldout is not None
    assert sorted_layout.heldout.labels(np.arange(2)).tolist() == [0, 1]
    with pytest.raises(PreqError, match=r"ImageNet .* put train/<class>"):
        load("imagenet", data_dir=root / "val")


def test_cloc_keeps_time_order(tmp_path: Path) -> None:
    root = tmp_path / "cloc"
    for number in range(6):
        picture(root / "images" / f"{number}.jpg", shade=number)
    (root / "train.txt").write_text("".join(f"images/{n}.jpg {(7 * n) % 5}\n" for n in (3, 0, 2, 1)))
    (root / "test.txt").write_text("images/4.jpg, 6\nimages/5.jpg, 0\n")
    data = load("cloc", data_dir=tmp_path, workers=0)
    check_data(data)
    assert data.order_seed is None
    assert data.labels(np.arange(4)).tolist() == [1, 0, 4, 2]
    assert data.num_classes == 7
    shuffled = load("cloc", data_dir=tmp_path, workers=0, order="shuffled")
    assert shuffled.order_seed == 0
    same = load(f"list:{root / 'train.txt'}", workers=0, order="given")
    assert same.labels(np.arange(4)).tolist() == [1, 0, 4, 2]
    (root / "train.txt").write_text("images/0.jpg zero\n")
    with pytest.raises(PreqError, match=r"line 1 is 'images/0.jpg zero', wanted a path and a class number"):
        load("cloc", data_dir=tmp_path)
    with pytest.raises(PreqError, match=r"CLOC .* has no download: put train.txt"):
        load("cloc", data_dir=root)


@pytest.mark.parametrize("name", [name for name, source in SOURCES.items() if source.files and source.files.remote])
def test_offline_the_error_names_file_size_and_place(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def offline(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr("socket.getaddrinfo", offline)
    monkeypatch.setattr("pooch.core.time", SimpleNamespace(sleep=lambda seconds: None))
    with pytest.raises(
        PreqError, match=r"(cifar-100?-binary.tar.gz|gzip.zip|-ubyte.gz) \(.*B\) cannot be downloaded: .*put it into"
    ):
        load(name)


@pytest.mark.parametrize(
    ("ask", "complaint"),
    [
        (lambda: load("mnist", label="y"), "label has no meaning for mnist; it belongs to table:, csv:, npz:, hf:"),
        (lambda: load("mnist", lable="y"), "unknown data option 'lable'; did you mean 'label'?"),
        (lambda: load("mnist", order="sorted"), "unknown order 'sorted'"),
        (lambda: load("mnist", order="given", order_seed=3), "order 'given' has no seed, got order_seed 3"),
        (lambda: load("mnist:R"), "'mnist' has no variant 'R'; leave the colon out"),
        (lambda: load("rgb-mnist:GB"), "'rgb-mnist' has no variant 'GB'; it has: rgb-mnist:R"),
        (lambda: load("cifar"), "unknown data set 'cifar'; did you mean 'cifar10'"),
        (lambda: load("folder:/nowhere/at/all"), "/nowhere/at/all is not there; check the path behind 'folder:'"),
        (lambda: load("folder:"), "'folder:' names no path; write folder:PATH"),
        (lambda: load("folder:/etc/hostname"), "is a file; folder: takes a folder"),
        (lambda: load("csv:/nowhere.csv", standardise="yes"), "unknown way to standardise 'yes'"),
        (lambda: load("folder:/etc", crop="left"), "unknown crop 'left'"),
        (lambda: load(3), "data is asked for by name, such as 'mnist'"),  # type: ignore[arg-type]
        (lambda: load("mnist", data_dir=3), "the data directory must be a path, got 3"),  # type: ignore[arg-type]
        (lambda: load("prepared:/etc"), "/etc holds no prepared data; see preq data prepare --help"),
    ],
)  # fmt: skip
def test_what_cannot_be_asked_for(ask: Callable[[], object], complaint: str) -> None:
    with pytest.raises(PreqError, match=complaint):
        ask()


def test_names_with_a_colon_are_taken_apart() -> None:
    assert find_source("csv:C:/a.csv")[1] == "C:/a.csv"
    assert find_source("rgb-mnist:RG")[0].name == "rgb-mnist"


def test_a_shuffled_view_never_gets_the_batches_of_another(tmp_path: Path) -> None:
    data = load(f"folder:{folder_of(tmp_path / 'pets')}", order="given", workers=1)
    assert isinstance(data, ImageFiles)
    positions = np.arange(4)
    shuffled = data.shuffled(1)
    expected = images(f"folder:{tmp_path / 'pets'}", order_seed=1).inputs(positions)
    data.read_ahead(iter([(positions, None)]))
    data.inputs(np.array([9]))
    assert np.array_equal(shuffled.inputs(positions), expected)


def test_images_are_read_from_several_threads(tmp_path: Path) -> None:
    data = load(f"folder:{folder_of(tmp_path / 'pets', per_class=8)}", order="given", workers=1)
    spans = [np.arange(start, start + 4) for start in range(0, 24, 4)]
    expected = [data.inputs(span) for span in spans]
    capabilities(data).read_ahead(iter([(span, None) for span in spans]))
    with ThreadPoolExecutor(6) as threads:
        found = list(threads.map(data.inputs, spans))
    assert all(np.array_equal(one, other) for one, other in zip(expected, found, strict=True))


def test_what_training_sees_belongs_to_a_run_and_to_its_code(tmp_path: Path) -> None:
    spec = f"folder:{folder_of(tmp_path / 'pets')}"
    random, centre = (images(spec, size=16, crop=crop) for crop in ("random", "centre"))
    method = pq.ReplayStreams(num_streams=1, batch_size=4)
    bits = pq.encode("lenet", random, method, seed=0, width=0.5)
    assert np.array_equal(pq.decode(bits, random), random.labels(np.arange(12)).numpy())
    with pytest.raises(PreqError, match=r"the encoder trained on random crops, this data gives whole inputs; .*--crop"):
        pq.decode(bits, centre)
    pq.run("lenet", random, method, seed=0, width=0.5, out=tmp_path / "run")
    with pytest.raises(PreqError, match=r"training_view"):
        pq.run("lenet", centre, method, seed=0, width=0.5, out=tmp_path / "run", resume=True)


def test_links_to_folders_and_absurd_labels(tmp_path: Path) -> None:
    root = folder_of(tmp_path / "pets")
    (root / "bee" / "again").symlink_to(root / "bee")
    with pytest.raises(PreqError, match=r"again is a link to a folder; copy the images, or remove it"):
        load(f"folder:{root}")
    (root / "bee" / "again").unlink()
    for label in ("99999999999999999999999", "2000000000", "-1", "1.5"):
        (root / "list.txt").write_text(f"ant/0.JPG {label}\n")
        with pytest.raises(PreqError, match=r"line 1 is 'ant/0.JPG .*', wanted a path and a class number"):
            load(f"list:{root / 'list.txt'}")
    (root / "list.txt").write_text(f"{root / 'ant' / '0.JPG'} 0\nbee/0.JPG 1\n")
    check_data(load(f"list:{root / 'list.txt'}", workers=0))


def test_fashion_mnist_is_not_taken_for_mnist(tmp_path: Path) -> None:
    for stem in ("train", "t10k"):
        count = 60_000 if stem == "train" else 10_000
        (tmp_path / f"{stem}-images-idx3-ubyte").write_bytes(idx(np.zeros((count, 28, 28), np.uint8)))
        labels = np.resize(np.array([9, 0, 0, 3, 0, 2, 7, 2, 5, 5], np.uint8), count)
        (tmp_path / f"{stem}-labels-idx1-ubyte").write_bytes(idx(labels))
    with pytest.raises(PreqError, match=r"are Fashion-MNIST's; ask for fashion-mnist"):
        load("mnist", data_dir=tmp_path)
    (tmp_path / "fashion-mnist").mkdir()
    for file in list(tmp_path.glob("*ubyte")):
        file.rename(tmp_path / "fashion-mnist" / file.name)
    assert load("fashion-mnist", data_dir=tmp_path).name == "fashion-mnist"
