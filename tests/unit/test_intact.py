"""Prepared data that was changed in place: noticed when it is first read, and before anything trusts the whole."""

import contextlib
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import prequential as pq
from prequential.cli import main
from prequential.data.mapped import MappedSequence, open_prepared
from prequential.data.pieces import Pieces
from prequential.data.sequence import ArraySequence
from prequential.errors import PreqError
from prequential.files import HEADER_SIZE
from prequential.plain import sealed, unsealed

METHOD = pq.ReplayStreams(num_streams=1, batch_size=8)
BLOCK, NAMES = 16, ("inputs", "labels")


@pytest.fixture(autouse=True)
def _small_blocks() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for module in ("digest", "pieces", "prepare"):
            patch.setattr(f"prequential.data.{module}.BLOCK_ROWS", BLOCK)
        yield


def sequence(length: int = 72) -> ArraySequence:
    values = np.random.default_rng(0).integers(0, 256, (length, 3), dtype=np.uint8)
    labels = np.arange(length) % 4
    return pq.from_arrays(
        values, labels, num_classes=4, heldout=(values[:20].copy(), labels[:20]), name="small"
    ).shuffled(1)


def change(directory: Path, name: str, row: int, row_size: int = 1) -> None:
    """One bit of a file, in place; its size and its time stay."""
    with (directory / f"{name}.npy").open("r+b") as file:
        file.seek(HEADER_SIZE + row * row_size)
        byte = file.read(1)[0]
        file.seek(-1, 1)
        file.write(bytes([byte ^ 1]))


@given(length=st.integers(2, 72), name=st.sampled_from(NAMES), row=st.integers(0, 71), cut=st.integers(1, 72))
@settings(max_examples=25)
def test_a_changed_row_is_never_read(
    tmp_path_factory: pytest.TempPathFactory, length: int, name: str, row: int, cut: int
) -> None:
    folder, row, cut = tmp_path_factory.mktemp("to"), row % length, 1 + (cut - 1) % length
    data = sequence(length=length) if length >= 20 else sequence(72).take(length).without_heldout()
    pq.prepare(data, folder)
    change(folder, name, row, 3 if name == "inputs" else 1)
    mapped = open_prepared(folder).take(cut)
    for position in range(cut):
        where = np.array([position])
        if position // BLOCK == row // BLOCK:
            with pytest.raises(PreqError, match=rf"{name}.npy is not what was prepared: rows \d+ to \d+ were changed"):
                getattr(mapped, name)(where)
        else:
            assert torch.equal(getattr(mapped, name)(where), getattr(data, name)(where))
    if row // BLOCK * BLOCK < cut:
        with pytest.raises(PreqError, match="is not what was prepared"):
            mapped.require_intact()
    else:
        mapped.require_intact()


def test_each_piece_is_hashed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mapped, hashed, check = pq.prepare(sequence(), tmp_path), list[tuple[int, int]](), Pieces._check

    def counted(pieces: Pieces, block: int) -> None:
        hashed.append((id(pieces), block))
        check(pieces, block)

    monkeypatch.setattr(Pieces, "_check", counted)
    mapped.inputs(np.array([3, 17]))
    assert [block for _, block in hashed] == [0, 1], "nothing but what is read"
    record = pq.run("mlp1", mapped, METHOD, seed=0, width=0.05)
    mapped.require_intact()
    assert mapped.heldout is not None
    kept = (mapped.input_pieces, mapped.label_pieces, mapped.heldout.input_pieces, mapped.heldout.label_pieces)
    assert sorted(hashed) == sorted((id(each), block) for each in kept for block in range(len(each._good)))
    assert record.data["inputs"] == sequence().digests()["inputs"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("part", ["", "heldout"])
def test_a_run_on_changed_data_never_finishes(tmp_path: Path, name: str, part: str) -> None:
    pq.prepare(sequence(), tmp_path / "to")
    change(tmp_path / "to" / part, name, 19, 3 if name == "inputs" else 1)
    with pytest.raises(PreqError, match=f"{part}.*{name}.npy is not what was prepared: rows 16 to"):
        pq.run("mlp1", open_prepared(tmp_path / "to"), METHOD, seed=0, width=0.05, out=tmp_path / "run")
    if (tmp_path / "run" / "record.json").exists():
        assert pq.load(tmp_path / "run").status == "failed"


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_proved_encoded_or_gone_on_with(
    tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    mapped, out = pq.prepare(sequence(), tmp_path / "to"), tmp_path / "run"

    def stop(progress: Any) -> None:
        if progress.position >= 40:
            signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr("prequential.runs.recorder.SECONDS_BETWEEN_PAUSES", 0.0)
    half = tmp_path / "half"
    with pytest.raises(pq.Interrupted):
        pq.run("mlp1", mapped, METHOD, seed=0, width=0.05, out=half, listeners=[stop], checkpoint_seconds=0)
    pq.run("mlp1", mapped, METHOD, seed=0, width=0.05, threads=1, out=out)
    change(tmp_path / "to", name, 2, 3 if name == "inputs" else 1)  # of what the first half has seen
    assert main(["verify", str(out)]) == 2
    assert f"{name}.npy is not what was prepared: rows 0 to 15 were changed" in capsys.readouterr().err
    changed = open_prepared(tmp_path / "to")
    with pytest.raises(PreqError, match="rows 0 to 15 were changed"):
        pq.run("mlp1", changed, METHOD, seed=0, width=0.05, out=half, resume=True)
    with pytest.raises(PreqError, match="rows 0 to 15 were changed"):
        pq.encode("mlp1", open_prepared(tmp_path / "to"), METHOD, seed=0, width=0.05)


def edited(directory: Path, change_it: Callable[[dict[str, Any]], object]) -> MappedSequence:
    """The data with another index, whose checksum fits."""
    index = unsealed((directory / "prepared.json").read_bytes(), "content")
    change_it(index)
    (directory / "prepared.json").write_bytes(sealed(index, "content"))
    return open_prepared(directory)


def test_an_index_that_vouches_for_other_content_is_refused(tmp_path: Path) -> None:
    pq.prepare(sequence(64), tmp_path / "one")
    pq.prepare(sequence(64).shuffled(2), tmp_path / "other")
    other = unsealed((tmp_path / "other" / "prepared.json").read_bytes(), "content")
    forged = edited(tmp_path / "other", lambda index: index.update(digests=sequence(64).digests()))
    with pytest.raises(PreqError, match=r"inputs.npy is not what was prepared: rows 48 to 63"):
        forged.require_intact()
    assert other["digests"] != sequence(64).digests()
    with pytest.raises(PreqError, match="lacks fingerprints: 3 blocks for 64 rows"):
        edited(tmp_path / "one", lambda index: index["blocks"]["inputs"].pop())


def test_a_label_out_of_range_is_told_in_words(tmp_path: Path) -> None:
    pq.prepare(sequence(), tmp_path / "to")
    few = edited(tmp_path / "to", lambda index: index.update(num_classes=3))
    for data in (few, few.without_heldout()):
        with pytest.raises(PreqError, match=r"labels must be in 0 … 2, got 3|labels.npy is not what was prepared"):
            pq.run("mlp1", data, METHOD, seed=0, width=0.05)


@pytest.mark.parametrize("rows", [1, 40, 72], ids=["begun", "half", "finished"])
@pytest.mark.parametrize("part", ["", "heldout"])
def test_two_data_sets_are_not_prepared_into_one(
    tmp_path: Path, rows: int, part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("prequential.data.prepare.BYTES_AT_ONCE", 3)
    data, other = sequence(), sequence()
    assert other.heldout is not None
    changed = other.heldout if part else other
    changed.stored_inputs[changed.order[0]] ^= 1  # the labels stay

    def stop(done: int, *_: int) -> None:
        if done == rows < 72:
            raise KeyboardInterrupt

    with contextlib.suppress(KeyboardInterrupt):
        pq.prepare(data, tmp_path, listener=stop)
    if part and rows < 72:
        assert pq.prepare(other, tmp_path).heldout is not None, "which had not been begun"
        return
    with pytest.raises(PreqError, match=f"{part} holds other data: its inputs are not those of 'small"):
        pq.prepare(other, tmp_path)
    again = pq.prepare(data, tmp_path)
    again.require_intact()
    assert again.digests() == data.digests()


class Wrong:
    """A sequence of one's own that says less classes than it has."""

    name, num_classes, input_shape, order_seed, heldout = "own", 3, (3,), None, None

    def __len__(self) -> int:
        return 64

    def inputs(self, positions: np.ndarray) -> torch.Tensor:
        return sequence().inputs(positions)

    def labels(self, positions: np.ndarray) -> torch.Tensor:
        return sequence().labels(positions)

    def digests(self) -> dict[str, str]:
        return {"inputs": "a", "labels": "b"}


def test_a_label_out_of_range_of_ones_own() -> None:
    with pytest.raises(PreqError, match="labels must be in 0 … 2, got 3"):
        pq.run("mlp1", Wrong(), METHOD, seed=0, width=0.05)
    held = Wrong()
    held.num_classes, held.heldout = 4, Wrong()  # type: ignore[assignment]
    pq.run("mlp1", held, METHOD, seed=0, width=0.05)
    held.num_classes = 5
    held.heldout.labels = lambda positions: torch.full((len(positions),), 5)  # type: ignore[attr-defined]
    with pytest.raises(PreqError, match="labels must be in 0 … 4, got 5"):
        pq.run("mlp1", held, METHOD, seed=0, width=0.05)
