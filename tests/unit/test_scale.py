"""uint8 inputs: scaled by a rule that is stated, shown and kept, and refused where it cannot tell."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import prequential as pq
from prequential.cli import main
from prequential.data.scale import scale_of
from prequential.data.sequence import to_network_input
from prequential.data.sources import load
from prequential.errors import PreqError
from prequential.learn.inputs import Inputs
from prequential.plain import sealed, unsealed

METHOD = pq.ReplayStreams(num_streams=1, batch_size=16)
SMALL = ("mlp1", "--width", "0.05", "--threads", "1", "--streams", "1")


def marks(length: int = 64, largest: int = 1) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Inputs from 0 to `largest`, which tell the label."""
    labels = np.arange(length) % 2
    return (labels[:, None] * largest * np.array([[1, 0, 1]])).astype(np.uint8), labels


def archive(tmp_path: Path, largest: int = 1) -> str:
    inputs, labels = marks(largest=largest)
    np.savez(tmp_path / "marks.npz", x=inputs, y=labels)
    return f"npz:{tmp_path / 'marks.npz'}"


def shown(data: Any) -> torch.Tensor:
    """What a network is given of the first rows."""
    inputs = Inputs(data, pq.Recipe(), seed=0, device=torch.device("cpu"), dtype=torch.float32)
    return inputs.clean(np.arange(4))


@pytest.mark.parametrize("largest", [0, 1, 16, 127])
def test_what_may_be_no_image_is_refused_with_the_flag_that_settles_it(tmp_path: Path, largest: int) -> None:
    inputs, labels = marks(largest=largest)
    complaint = rf"first 64 rows go up to {largest}; give --scale 255 if they are images, --scale {max(largest, 1)} for"
    for data in (pq.from_arrays(inputs, labels), load(archive(tmp_path, largest)), Own()):
        if isinstance(data, Own):
            data.largest = largest
        with pytest.raises(PreqError, match=complaint):
            pq.run("mlp1", data, METHOD, seed=0, width=0.05, out=tmp_path / "run")
        with pytest.raises(PreqError, match=complaint):
            pq.prepare(data, tmp_path / "prepared")
        assert not (tmp_path / "run").exists(), "nothing was written"


class Own:
    """A sequence that derives from nothing."""

    name, num_classes, input_shape, order_seed, heldout, largest = "own", 2, (3,), None, None, 1
    scale: Any = None

    def __len__(self) -> int:
        return 64

    def inputs(self, positions: NDArray[np.int64]) -> torch.Tensor:
        return torch.from_numpy(marks(largest=self.largest)[0][positions])

    def labels(self, positions: NDArray[np.int64]) -> torch.Tensor:
        return torch.from_numpy(marks()[1][positions])

    def digests(self) -> dict[str, str]:
        return {"inputs": "a", "labels": "b"}


@given(largest=st.integers(1, 255), scale=st.one_of(st.none(), st.just("none"), st.integers(1, 255)))
def test_a_scale_brings_zero_to_minus_one_and_itself_to_one(largest: int, scale: int | str | None) -> None:
    data = pq.from_arrays(*marks(largest=largest), scale=scale)
    if (scale is None and largest < 128) or (isinstance(scale, int) and scale < largest):
        with pytest.raises(PreqError, match="scale"):
            scale_of(data)
        return
    assert scale_of(data) == (255 if scale is None else scale)
    values, stored = shown(data), data.inputs(np.arange(4)).to(torch.float32)
    assert values.dtype == torch.float32
    wanted = stored if scale == "none" else stored * (2 / int(scale or 255)) - 1
    assert torch.equal(values, wanted)
    assert torch.equal(shown(data.shuffled(0).take(60).without_heldout()), shown(data.shuffled(0)))


def test_images_are_scaled_as_ever() -> None:
    stored = torch.arange(256).to(torch.uint8)
    assert torch.equal(to_network_input(stored), stored.to(torch.float32).mul_(2 / 255).sub_(1))
    assert scale_of(load("mnist")) == 255
    assert scale_of(pq.from_arrays(np.zeros((4, 2)), [0, 1, 0, 1])) is None, "others are not scaled"


@pytest.mark.parametrize("scale", [0, 256, -1, True, "all", 1.5, "", [255]])
def test_what_is_no_scale(scale: Any) -> None:
    with pytest.raises(PreqError, match=r"scale must be a whole number from 1 to 255 or 'none', got"):
        pq.from_arrays(*marks(), scale=scale)


def test_a_scale_for_what_is_not_scaled(tmp_path: Path) -> None:
    inputs, labels = marks()
    with pytest.raises(PreqError, match=r"scale is about uint8, and the inputs are torch.float32; leave it out"):
        pq.from_arrays(inputs.astype(np.float32), labels, scale=255)
    np.savez(tmp_path / "table.npz", x=inputs.astype(np.int16), y=labels)
    with pytest.raises(PreqError, match=r"--scale is about uint8, and 'x' of .* is int16; leave it out"):
        load(f"npz:{tmp_path / 'table.npz'}", scale="255")
    with pytest.raises(PreqError, match="scale has no meaning for mnist; it belongs to npz:, hf:, prepared:"):
        load("mnist", scale="255")
    pq.prepare(load(f"npz:{tmp_path / 'table.npz'}"), tmp_path / "to")
    with pytest.raises(PreqError, match="holds float32 inputs, got --scale 255; leave it out"):
        load(f"prepared:{tmp_path / 'to'}", scale=255)


def test_the_scale_is_shown_first_kept_and_proved(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec, out = archive(tmp_path), str(tmp_path / "run")
    assert main(["run", spec, *SMALL, "--out", out]) == 2
    assert capsys.readouterr().err.startswith("preq: what are the uint8 inputs of 'marks' out of?")
    assert main(["run", spec, *SMALL, "--out", out, "--scale", "1"]) == 0
    assert capsys.readouterr().out.splitlines()[0] == "uint8 inputs: 0 to 1 brought to -1 to 1"
    record = pq.load(out)
    assert record.scale == 1
    assert record.source == {"name": spec, "scale": "1"}
    assert main(["verify", out, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["labels_identical"]
    assert main(["run", spec, *SMALL, "--out", out, "--scale", "none", "--resume"]) == 2
    assert "scale 1 then, none now" in capsys.readouterr().err
    assert main(["run", spec, *SMALL, "--scale", "none", "--json"]) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out)["codelength_nats"] != record.codelength
    assert printed.err == "uint8 inputs: as they are\n"


def test_records_of_before_are_proved_and_gone_on_with(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec = archive(tmp_path)
    now = pq.run("mlp1", load(spec, scale=255), METHOD, seed=0, width=0.05, threads=1)
    before = replace(now, scale=None, source={"name": spec}).save(tmp_path / "before")
    assert "scale" not in json.loads((tmp_path / "before" / "record.json").read_text())["record"]
    assert main(["verify", str(tmp_path / "before")]) == 0
    assert "every label identical" in capsys.readouterr().out
    again = pq.run("mlp1", load(spec, scale=255), METHOD, seed=0, width=0.05, out=before.path, resume=True)
    assert again.codelength == before.codelength
    with pytest.raises(PreqError, match="scale 255 then, 1 now"):
        pq.run("mlp1", load(spec, scale=1), METHOD, seed=0, width=0.05, out=before.path, resume=True)


def test_nothing_is_said_of_inputs_that_are_not_scaled(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    inputs, labels = marks()
    np.savez(tmp_path / "table.npz", x=inputs.astype(np.float32), y=labels)
    assert main(["run", f"npz:{tmp_path / 'table.npz'}", *SMALL, "--out", str(tmp_path / "run")]) == 0
    assert "scale" not in json.loads((tmp_path / "run" / "record.json").read_text())["record"]
    assert main(["verify", str(tmp_path / "run")]) == 0
    assert "uint8" not in capsys.readouterr().out


@pytest.mark.parametrize("scale", [1, "none", 255])
def test_a_decoder_takes_the_encoders_scale(scale: int | str) -> None:
    inputs, labels = marks()
    bits = pq.encode("mlp1", pq.from_arrays(inputs, labels, scale=scale), METHOD, seed=0, width=0.05)
    assert np.array_equal(pq.decode(bits, pq.from_arrays(inputs)), labels)
    with pytest.raises(PreqError, match=rf"had the scale {scale}, this data has 7; read it with --scale {scale}"):
        pq.decode(bits, pq.from_arrays(inputs, scale=7))


def test_prepared_data_keeps_its_scale(tmp_path: Path) -> None:
    inputs, labels = marks()
    mapped = pq.prepare(pq.from_arrays(inputs, labels, scale=1), tmp_path / "to")
    assert scale_of(mapped) == scale_of(load(f"prepared:{tmp_path / 'to'}", scale=1)) == 1
    assert torch.equal(shown(mapped.take(8)), shown(pq.from_arrays(inputs, labels, scale=1)))
    with pytest.raises(PreqError, match="was prepared with the scale 1, got --scale 255; leave it out"):
        load(f"prepared:{tmp_path / 'to'}", scale=255)
    with pytest.raises(PreqError, match="holds other data: its scale is 1, not none"):
        pq.prepare(pq.from_arrays(inputs, labels, scale="none"), tmp_path / "to")


def test_prepared_data_of_before_is_read(tmp_path: Path) -> None:
    inputs, labels = marks()
    data = pq.from_arrays(inputs, labels, scale=255)
    pq.prepare(data, tmp_path / "to")
    index = unsealed((tmp_path / "to" / "prepared.json").read_bytes(), "content")
    del index["scale"]
    (tmp_path / "to" / "prepared.json").write_bytes(sealed(index, "content"))
    before = load(f"prepared:{tmp_path / 'to'}")
    with pytest.raises(PreqError, match="give --scale 255 if they are images"):
        scale_of(before)
    settled = load(f"prepared:{tmp_path / 'to'}", scale="255")
    assert torch.equal(shown(settled), shown(data))
    assert settled.source == {"name": f"prepared:{tmp_path / 'to'}", "scale": 255}
    assert pq.prepare(data, tmp_path / "to").digests() == data.digests(), "and is known for the same"
