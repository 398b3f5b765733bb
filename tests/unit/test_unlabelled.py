"""Few labels, many inputs: from the command line, from images and tables, and what is refused."""

import json
import pickle
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from PIL import Image

import prequential as pq
from prequential.cli import main
from prequential.cli.source import named_again, reload
from prequential.data.blind import InputsOnly
from prequential.data.optional import capabilities
from prequential.data.sources import load
from prequential.errors import PreqError, PreqWarning
from prequential.learn.inputs import Inputs, Resident, make_feed
from prequential.testing import check_data

METHOD = pq.ReplayStreams(num_streams=1, batch_size=8)
SMALL = ("mlp1", "--width", "0.05", "--threads", "1", "--streams", "1", "--batch-size", "8")


def archive(tmp_path: Path, length: int = 64) -> str:
    """Inputs that tell the label."""
    labels = np.arange(length) % 2
    inputs = np.stack([labels * 200, np.arange(length), labels * 100], axis=1).astype(np.uint8)
    np.savez(tmp_path / "marks.npz", x=inputs, y=labels)
    return f"npz:{tmp_path / 'marks.npz'}"


def pictures(root: Path, number: int, *, shade: int = 0) -> str:
    draws = np.random.default_rng(shade)
    for count in range(number):
        folder = root / ("cat", "dog")[count % 2]
        folder.mkdir(parents=True, exist_ok=True)
        pixels = draws.integers(0, 255, (12, 10, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / f"{count}.png")
    return f"folder:{root}"


def test_a_code_of_few_labels_is_decoded_and_proved(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name, few, prefix, file = archive(tmp_path), tmp_path / "few", tmp_path / "prefix", tmp_path / "labels.preq"
    assert main(["run", name, *SMALL, "--num-labels", "24", "--out", str(few)]) == 0
    assert "40 inputs without labels" in capsys.readouterr().out
    assert main(["run", name, *SMALL, "--length", "24", "--out", str(prefix)]) == 0
    one, other = pq.load(few), pq.load(prefix)
    assert one.source == {"name": name, "num_labels": 24}
    assert one.data["labels"] == other.data["labels"]
    assert one.data["inputs"] == load(name).digests()["inputs"] != other.data["inputs"]
    assert np.array_equal(one.nats, other.nats)
    for more in ((), ("--data", name), ("--data", name, "--num-labels", "24")):
        capsys.readouterr()
        assert main(["verify", str(few), *more]) == 0
        assert "every label identical" in capsys.readouterr().out
    assert main(["verify", str(few), "--num-labels", "20"]) != 0
    assert main(["labels", str(few), "--data", name]) == 0
    assert main(["compare", str(few), str(prefix)]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "inputs differ (marks with 40 more without labels: few; marks: prefix)" in told
    assert main(["encode", name, *SMALL, "--num-labels", "24", "-o", str(file)]) == 0
    for number, said in enumerate([[], ["--num-labels", "24"]]):
        output = tmp_path / f"{number}.npy"
        assert main(["decode", str(file), "--data", name, *said, "-o", str(output)]) == 0
        assert np.array_equal(np.load(output), one.labels)


def test_a_resumed_run_and_a_sweep_have_the_same_data(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name, out = archive(tmp_path), tmp_path / "run"
    command = ["run", name, *SMALL, "--out", str(out)]
    assert main([*command, "--num-labels", "24"]) == 0
    assert main([*command, "--num-labels", "24", "--resume", "--json"]) == 0
    capsys.readouterr()
    assert main([*command, "--length", "24", "--resume"]) != 0
    assert "inputs" in capsys.readouterr().err
    sweep = ["sweep", name, *SMALL, "--num-labels", "24", "--space", "mnist", "--trials", "1"]
    assert main([*sweep, "--lr", "0.001", "--out", str(tmp_path / "sweep")]) == 0
    assert json.loads((tmp_path / "sweep" / "sweep.json").read_text())["settings"]["data"]["num_labels"] == 24
    (trial,) = (tmp_path / "sweep").glob("**/record.json")
    assert pq.load(trial.parent).data["unlabelled"] == {"number": 40, "left_out": 0}


@pytest.mark.parametrize(
    ("command", "complaint"),
    [
        (("run", "{}", "mlp1", "--num-labels", "65"), "num_labels 65 is more than the 64 labels of 'marks'"),
        (("run", "{}", "mlp1", "--num-labels", "0"), "num_labels must be a whole number of at least 1, got 0"),
        (("run", "{}", "mlp1", "--num-labels", "9", "--length", "9"), "got 9 and 9; leave one out"),
        (("encode", "{}", "mlp1", "--num-labels", "9", "--length", "8", "-o", "x.preq"), "got 8 and 9; leave one out"),
        (("plan", "{}", "mlp1", "--num-labels", "9", "--length", "8"), "got 8 and 9; leave one out"),
        (("plan", "--num-labels", "9"), "--num-labels 9 is about data, got none; name it, or give --length"),
    ],
)
def test_what_cannot_be_asked_for(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: tuple[str, ...],
    complaint: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    name = archive(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert main([part.format(name) for part in command]) == 2
    assert complaint in capsys.readouterr().err


def test_a_plan_is_as_long_as_the_labels(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", archive(tmp_path), "mlp1", "--num-labels", "40", "--json", "--threads", "1"]) == 0
    assert json.loads(capsys.readouterr().out)["length"] == 40


def numbers(*shape: int, dtype: Any = np.float32) -> NDArray[Any]:
    return np.arange(np.prod(shape)).reshape(shape).astype(dtype)


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        (
            lambda: numbers(4, 2),
            r"must be like those of 'arrays', got torch.float32 of shape \(2,\), wanted torch.floa",
        ),
        (lambda: numbers(4, 3, dtype=np.float64), r"got torch.float64 of shape \(3,\), wanted torch.float32 of shape"),
        (lambda: pq.from_arrays(numbers(2, 1), [0, 1]), r"got torch.float32 of shape \(1,\), wanted torch.float32"),
        (lambda: numbers(0, 3), "the data is empty"),
        (lambda: numbers(2, 3) * np.nan, "inputs must be finite"),
        (lambda: "mnist", "inputs must be numbers"),
    ],
)
def test_inputs_of_another_kind_are_refused(given: Callable[[], Any], complaint: str) -> None:
    data = pq.from_arrays(numbers(4, 3), [0, 1, 0, 1])
    with pytest.raises(PreqError, match=complaint):
        data.with_unlabelled(given())


def test_what_else_is_refused(tmp_path: Path) -> None:
    bright, dark = (pq.from_arrays(numbers(4, 3, dtype=np.uint8), [0, 1, 0, 1], scale=scale) for scale in (255, 16))
    with pytest.raises(PreqError, match="the scale 16, those of 'arrays' have 255"):
        bright.with_unlabelled(dark)
    few = bright.with_num_labels(2)
    with pytest.raises(PreqError, match="prepared data has a label for each; prepare the whole"):
        pq.prepare(few, tmp_path / "prepared")
    with pytest.raises(PreqError, match="shuffle before you say"):
        few.shuffled(0)
    with pytest.raises(PreqError, match="length 3 is more than the 2 examples"):
        few.take(3)


def test_a_bitstream_is_refused_with_other_inputs() -> None:
    draws = np.random.default_rng(0)
    inputs, labels = draws.normal(size=(40, 3)).astype(np.float32), np.arange(40) % 2
    data = pq.from_arrays(inputs, labels)
    few = data.with_num_labels(16)
    content = pq.encode("mlp1", few, METHOD, seed=0, width=0.05)
    hidden = pq.from_arrays(inputs).with_num_labels(16)
    assert np.array_equal(pq.decode(content, hidden), labels[:16])
    with pytest.raises(
        PreqError, match=r"given 40 inputs for 16 labels, this data has 16; give the same \(--num-labels"
    ):
        pq.decode(content, data.take(16))
    inputs[30] += 1
    with pytest.raises(PreqError, match="not the inputs that were encoded"):
        pq.decode(content, pq.from_arrays(inputs).with_num_labels(16))
    short = pq.encode("mlp1", data.take(16), METHOD, seed=0, width=0.05)
    with pytest.raises(PreqError, match="given 16 inputs for 16 labels, this data has 40"):
        pq.decode(short, few)


def test_what_a_decoder_holds_and_what_lives_on_a_device() -> None:
    data = pq.from_arrays(numbers(40, 3), np.arange(40) % 2).with_num_labels(16)
    blind = InputsOnly(data, data.target)
    assert (len(blind), capabilities(blind).num_inputs, capabilities(blind).num_left_out) == (16, 40, 0)
    assert "24 without labels" in repr(data)
    assert "24 without labels" in repr(blind)
    reading = Inputs(blind, pq.Recipe(), seed=0, device=torch.device("cpu"), dtype=torch.float32)
    slot = make_feed(reading)(8)
    assert isinstance(slot, Resident)
    assert torch.equal(slot.take(torch.tensor([39, 2])), data.inputs(np.array([39, 2])))


def test_images_are_read_by_position_and_ahead(tmp_path: Path) -> None:
    name = pictures(tmp_path / "pets", 12)
    data = load(name, num_labels=5, size=8, workers=0)
    whole = load(name, size=8, workers=0)
    assert data.source == {**(whole.source or {}), "num_labels": 5}
    assert data.digests() == {**whole.digests(), "labels": whole.take(5).digests()["labels"]}
    assert torch.equal(data.inputs(np.array([3, 11])), whole.inputs(np.array([3, 11])))
    assert torch.equal(data.training_inputs(np.array([3, 11]), 7), whole.training_inputs(np.array([3, 11]), 7))
    assert (data.training_view, data.reads_slowly, data.training_differs) == ("random crops", True, True)
    check_data(data)
    again = reload(named_again(name, data.source), data.order_seed, None)
    assert (len(again), again.num_inputs) == (5, 12)
    other = load(pictures(tmp_path / "others", 6, shade=1), size=8, workers=0)
    both = whole.with_unlabelled(other)
    found = torch.cat([whole.inputs(np.array([0])), other.inputs(np.array([0, 5]))])
    assert torch.equal(both.inputs(np.array([0, 12, 17])), found)
    check_data(both)
    assert both.source is None, "it cannot be asked for by name"


def test_images_that_are_held_out_are_known_by_their_files_or_their_pixels(tmp_path: Path) -> None:
    name = pictures(tmp_path / "pets", 6)
    held = load(pictures(tmp_path / "others", 6, shade=1), size=8, workers=0)
    data: Any = replace(load(name, size=8, workers=0), heldout=held)  # type: ignore[type-var]
    for same in (held, held.inputs(np.arange(6))):
        with pytest.warns(PreqWarning, match="6 of 6 inputs without labels equal held-out ones"):
            made = data.with_unlabelled(same)
        assert (made.num_inputs, made.num_left_out) == (6, 6)


def test_broken_images_are_left_out_before_labels_are_counted(tmp_path: Path) -> None:
    name = pictures(tmp_path / "pets", 8)
    (tmp_path / "pets" / "cat" / "0.png").write_bytes(b"no image")
    with pytest.warns(PreqWarning, match="1 of 8 images"):
        data = load(name, num_labels=3, size=8, workers=0, skip_broken=True)
    with pytest.warns(PreqWarning, match="1 of 8 images"):
        prefix = load(name, size=8, workers=0, skip_broken=True).take(3)
    assert data.num_inputs == 7
    assert data.digests()["labels"] == prefix.digests()["labels"]
    with pytest.raises(PreqError, match="leave broken examples out before"):
        data.without_broken()
    broken = load(name, size=8, workers=0).with_num_labels(3)
    _, reasons = broken.read(np.arange(8))
    assert len(reasons) == 1


@pytest.mark.parametrize("standardise", ["table", "causal", "none"])
def test_a_table_is_the_same_with_few_labels(tmp_path: Path, standardise: str) -> None:
    rows = "\n".join(f"{n % 7},{n * 1.5},{'up' if n % 3 else 'down'}" for n in range(30))
    (tmp_path / "t.csv").write_text(f"a,b,label\n{rows}\n")
    asked: dict[str, Any] = {"label": "label", "standardise": standardise}
    whole, data = (load(f"table:{tmp_path / 't.csv'}", num_labels=number, **asked) for number in (None, 10))
    assert data.digests() == {**whole.digests(), "labels": whole.take(10).digests()["labels"]}
    assert data.schema == whole.schema
    assert data.conditioned_on == whole.conditioned_on
    assert data.class_names == ("down", "up")
    record = pq.run("mlp1", data, METHOD, seed=0, width=0.05)
    assert np.array_equal(record.nats, pq.run("mlp1", whole.take(10), METHOD, seed=0, width=0.05).nats)
    assert record.source is not None
    assert record.source["num_labels"] == 10


class Reading:
    """A sequence of one's own, which may go wrong in one way."""

    name, num_classes, input_shape, order_seed, heldout = "own", 2, (3,), None, None

    def __init__(self, num_inputs: Any = 12, labels: int = 8, kind: torch.dtype = torch.float32) -> None:
        self.num_inputs, self._num_labels, self._kind = num_inputs, labels, kind

    def __len__(self) -> int:
        return 8

    def inputs(self, positions: NDArray[np.int64]) -> torch.Tensor:
        rows = torch.from_numpy(numbers(12, 3)[positions])
        return rows if positions.max() < 8 else rows.to(self._kind)

    def labels(self, positions: NDArray[np.int64]) -> torch.Tensor:
        return torch.from_numpy((np.arange(12) % 2)[: self._num_labels][positions])

    def digests(self) -> dict[str, str]:
        return {"inputs": "a", "labels": "b"}


def mistakes() -> Iterator[tuple[Reading, str]]:
    yield Reading(7), "num_inputs is 7, less than the 8 labels"
    yield Reading(9.5), "num_inputs is 9.5, not a whole number"
    yield Reading(labels=12), "there is a label at position 8, behind the 8 labels"
    yield Reading(kind=torch.float64), "inputs without labels are torch.float64"


def test_a_sequence_of_ones_own_is_checked() -> None:
    check_data(Reading())
    assert capabilities(Reading()).num_inputs == 12
    for wrong, complaint in mistakes():
        with pytest.raises(AssertionError, match=complaint):
            check_data(wrong)
    joined = pq.from_arrays(numbers(4, 3) + 100, [0, 1, 0, 1]).with_unlabelled(Reading())
    assert joined.num_inputs == 16
    check_data(joined)


def test_the_process_of_a_sweep_is_given_the_same_sequence() -> None:
    data = pq.from_arrays(numbers(9, 3), np.arange(9) % 2).with_num_labels(4)
    assert pickle.loads(pickle.dumps(data)).digests() == data.digests()
