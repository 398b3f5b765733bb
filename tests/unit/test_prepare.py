"""Prepared data: what is written is what was given, in bounded memory, and work that stops goes on."""

import errno
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import prequential as pq
from prequential.data.arrays import from_arrays
from prequential.data.digest import BLOCK_ROWS
from prequential.data.mapped import open_prepared
from prequential.data.prepare import Writer, prepare
from prequential.data.sequence import ArraySequence, DataSequence
from prequential.data.sources import load
from prequential.errors import PreqError
from prequential.testing import check_data

from ..conftest import blobs
from .test_sources import folder_of


def sequence(length: int, *, seed: int = 0, width: int = 3) -> ArraySequence:
    values = np.random.default_rng(seed).integers(0, 256, (length, width), dtype=np.uint8)
    return from_arrays(values, np.arange(length) % 300, num_classes=300).shuffled(seed)


def same(one: DataSequence, other: DataSequence) -> bool:
    positions = np.arange(len(one))
    return (
        one.digests() == other.digests()
        and torch.equal(one.inputs(positions), other.inputs(positions))
        and torch.equal(one.labels(positions), other.labels(positions))
    )


@given(length=st.integers(1, 200), at_once=st.integers(1, 100), cut=st.integers(1, 200))
@settings(max_examples=40)
def test_prepared_data_is_the_same_sequence(
    tmp_path_factory: pytest.TempPathFactory, length: int, at_once: int, cut: int
) -> None:
    folder = tmp_path_factory.mktemp("prepared")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("prequential.data.prepare.BYTES_AT_ONCE", at_once)
        data = sequence(length)
        mapped = prepare(data, folder)
    assert same(data, mapped)
    check_data(mapped)
    shorter = min(cut, length)
    assert mapped.take(shorter).digests() == data.take(shorter).digests()
    scattered = np.random.default_rng(1).integers(0, length, 50)
    assert torch.equal(mapped.inputs(scattered), data.inputs(scattered)), "rows in any order"


def test_blocks_keep_the_fingerprints_of_prefixes(tmp_path: Path) -> None:
    data = sequence(2 * BLOCK_ROWS + 17, width=2)
    mapped = prepare(data, tmp_path)
    for length in (1, BLOCK_ROWS - 1, BLOCK_ROWS, BLOCK_ROWS + 1, 2 * BLOCK_ROWS, len(data)):
        assert mapped.take(length).digests() == data.take(length).digests()


def test_a_run_over_mapped_data_is_the_same_run(tmp_path: Path) -> None:
    data = blobs(200)
    mapped = prepare(data, tmp_path)
    method = pq.ReplayStreams(num_streams=2, batch_size=8)
    one, other = (pq.run("mlp1", each, method, seed=0, width=0.05) for each in (data, mapped))
    assert one.codelength == other.codelength
    assert one.heldout == other.heldout
    assert pq.regret(one, other)[-1] == 0
    assert load(f"prepared:{tmp_path}").digests() == data.digests()
    with pytest.raises(PreqError, match=r"was prepared in the given order, and stays in it; leave --order"):
        load(f"prepared:{tmp_path}", order_seed=1)
    bits = pq.encode("mlp1", mapped, method, seed=0, width=0.05)
    assert np.array_equal(pq.decode(bits, mapped), data.stored_labels.numpy())


class StopsError(Exception):
    """What ends the work in these tests."""


@pytest.mark.parametrize("stop_after", [0, 1, 2, 5, 9])
def test_a_second_prepare_goes_on_where_the_first_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stop_after: int
) -> None:
    monkeypatch.setattr("prequential.data.prepare.BYTES_AT_ONCE", 30)
    monkeypatch.setattr("prequential.data.prepare.SECONDS_BETWEEN_SAVES", -1.0)
    data = sequence(100)
    seen: list[int] = []

    def stop(done: int, total: int, skipped: int) -> None:
        seen.append(done)
        if len(seen) > stop_after:
            raise StopsError

    with pytest.raises(StopsError):
        prepare(data, tmp_path, listener=stop)
    with pytest.raises(PreqError, match=r"no prepared data; .*what was begun goes on with the same command"):
        open_prepared(tmp_path)
    if stop_after:
        with pytest.raises(PreqError, match=r"holds other data: its"):
            prepare(sequence(100, seed=5), tmp_path)
    again: list[int] = []
    mapped = prepare(data, tmp_path, listener=lambda done, *_: again.append(done))
    assert again[0] == seen[-1], "what was done is not done again"
    assert same(data, mapped)
    assert not (tmp_path / "progress.json").exists()
    once_more: list[int] = []
    prepare(data, tmp_path, listener=lambda done, *_: once_more.append(done))
    assert once_more == [], "a finished one is left alone"
    with pytest.raises(PreqError, match=r"holds other data: its (digests|order_seed)"):
        prepare(sequence(100, seed=5), tmp_path)


def test_a_full_disk_is_one_line_and_the_work_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("prequential.data.prepare.BYTES_AT_ONCE", 30)
    monkeypatch.setattr("prequential.data.prepare.SECONDS_BETWEEN_SAVES", -1.0)
    data, real, room = sequence(100), os.pwrite, [12]

    def pwrite(file: int, content: Any, offset: int) -> int:
        room[0] -= 1
        if room[0] < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(file, bytes(content)[: max(1, len(content) // 2)], offset)  # the system may write less than asked

    monkeypatch.setattr(os, "pwrite", pwrite)
    with pytest.raises(PreqError, match=r"cannot write .*: No space left on device; make room or choose another place"):
        prepare(data, tmp_path)
    room[0] = 10**9
    again: list[int] = []
    assert same(data, prepare(data, tmp_path, listener=lambda done, *_: again.append(done)))
    assert again[0] > 0


@pytest.mark.parametrize(("seconds", "done"), [(-1.0, 40), (1e9, 0)])
def test_killed_in_the_middle(tmp_path: Path, seconds: float, done: int) -> None:
    code = (
        "import os, signal, sys, numpy as np, prequential.data.prepare as p\n"
        "from tests.unit.test_prepare import sequence\n"
        f"p.BYTES_AT_ONCE, p.SECONDS_BETWEEN_SAVES = 30, {seconds}\n"
        "p.prepare(sequence(100), sys.argv[1], listener=lambda d, *_: d < 50 or os.kill(os.getpid(), signal.SIGKILL))\n"
    )
    assert subprocess.run([sys.executable, "-c", code, str(tmp_path)]).returncode == -9
    again: list[int] = []
    assert same(sequence(100), prepare(sequence(100), tmp_path, listener=lambda done, *_: again.append(done)))
    assert done <= again[0] <= done + 10


def test_broken_images_are_left_out_and_counted(tmp_path: Path) -> None:
    root = folder_of(tmp_path / "pets")
    for name in ("ant/0.JPG", "cat/2.webp"):
        (root / name).write_bytes((root / name).read_bytes()[:50])
    data = load(f"folder:{root}", workers=0)
    with pytest.raises(PreqError, match=r"\(position \d+\) is broken"):
        prepare(data, tmp_path / "all")
    mapped = prepare(data, tmp_path / "good", skip_broken=True)
    assert len(mapped) == 10
    assert mapped.index.skipped == 2
    with pytest.warns(UserWarning, match="2 of 12 images"):
        rest = load(f"folder:{root}", workers=0, skip_broken=True)
    positions = np.arange(10)
    assert torch.equal(mapped.inputs(positions), rest.inputs(positions)), "left out in the same way as on the fly"
    assert torch.equal(mapped.labels(positions), rest.labels(positions))
    assert prepare(data, tmp_path / "good", skip_broken=True).digests() == mapped.digests()
    for path in root.rglob("*.*"):
        path.write_bytes(b"no image")
    with pytest.raises(PreqError, match=r"every example is broken; there is nothing to prepare|is broken|cannot be"):
        prepare(data, tmp_path / "none", skip_broken=True)


@pytest.mark.parametrize(
    ("spoil", "complaint"),
    [
        (lambda d: (d / "labels.npy").unlink(), "labels.npy cannot be read: No such file"),
        (lambda d: (d / "inputs.npy").write_bytes(b"x" * 300), r"inputs.npy is damaged: 300 bytes where \d+"),
        (lambda d: os.truncate(d / "inputs.npy", 200), "inputs.npy is damaged: 200 bytes"),
        (lambda d: (d / "prepared.json").write_text("{"), "prepared.json is damaged"),
        (lambda d: (d / "prepared.json").write_text('{"content": {}, "checksum": "x"}'), "checksum does not fit"),
        (lambda d: (d / "prepared.json").write_text((d / "prepared.json").read_text().replace("300", "3")), "damaged"),
    ],
)  # fmt: skip
def test_damaged_files_are_refused(tmp_path: Path, spoil: Any, complaint: str) -> None:
    prepare(sequence(50), tmp_path)
    spoil(tmp_path)
    with pytest.raises(PreqError, match=complaint):
        open_prepared(tmp_path)


def test_a_directory_with_other_things_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("x")
    with pytest.raises(PreqError, match=r"is not empty \(thesis.tex\); choose another directory"):
        prepare(sequence(10), tmp_path)
    (tmp_path / "file").write_text("x")
    with pytest.raises(PreqError, match="cannot write"):
        prepare(sequence(10), tmp_path / "file")


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from prequential.cli import main

    rows = "\n".join(f"{i % 7},{i % 2}" for i in range(80))
    (tmp_path / "t.csv").write_text(f"a,label\n{rows}\n")
    to = tmp_path / "to"
    assert main(["data", "prepare", f"csv:{tmp_path / 't.csv'}", "--to", str(to), "--order", "given"]) == 0
    assert "80 examples, 0 MB" in capsys.readouterr().out
    assert main(["run", f"prepared:{to}", "mlp1", "--width", "0.1", "--threads", "1", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["data"] == "t"
    direct = [
        "run",
        f"csv:{tmp_path / 't.csv'}",
        "mlp1",
        "--order",
        "given",
        "--width",
        "0.1",
        "--threads",
        "1",
        "--json",
    ]
    assert main(direct) == 0
    assert json.loads(capsys.readouterr().out)["codelength_nats"] == result["codelength_nats"]
    assert main(["data", "prepare", "mnits", "--to", str(to)]) == 2
    assert "did you mean 'mnist'" in capsys.readouterr().err


def test_other_options_are_other_data(tmp_path: Path) -> None:
    rows = "\n".join(f"{i % 7},{i % 2}" for i in range(40))
    (tmp_path / "t.csv").write_text(f"a,label\n{rows}\n")
    spec = f"csv:{tmp_path / 't.csv'}"
    prepare(load(spec, standardise="causal"), tmp_path / "to")
    with pytest.raises(PreqError, match=r"holds other data: its (source|conditioned_on)"):
        prepare(load(spec, standardise="none"), tmp_path / "to")


def test_a_finished_directory_with_skipped_images_knows_its_labels(tmp_path: Path) -> None:
    root = folder_of(tmp_path / "pets")
    (root / "ant" / "0.JPG").write_bytes(b"no image")
    prepare(load(f"folder:{root}", workers=0), tmp_path / "to", skip_broken=True)
    (root / "ant").rename(root / "dog")
    with pytest.raises(PreqError, match=r"holds other data: its given"):
        prepare(load(f"folder:{root}", workers=0), tmp_path / "to", skip_broken=True)


def test_the_users_arrays_are_not_overwritten(tmp_path: Path) -> None:
    np.save(tmp_path / "labels.npy", np.arange(1000))
    with pytest.raises(PreqError, match=r"is not empty \(labels.npy\)"):
        prepare(sequence(10), tmp_path)
    assert len(np.load(tmp_path / "labels.npy")) == 1000


def test_what_cannot_be_prepared(tmp_path: Path) -> None:
    with pytest.raises(PreqError, match="'arrays' has no labels"):
        prepare(from_arrays(np.zeros((4, 2))), tmp_path / "a")
    with pytest.raises(
        PreqError, match=r"inputs cannot be prepared: .npy has no such type \(.*BFloat16\); convert to float32"
    ):
        prepare(from_arrays(torch.zeros(4, 2, dtype=torch.bfloat16), [0, 1, 0, 1]), tmp_path / "b")
    with pytest.raises(PreqError, match=r"prepare takes a sequence, .* got list"):
        prepare([1, 2], tmp_path / "c")  # type: ignore[arg-type]
    with pytest.raises(PreqError, match="prepare needs the path of a directory, got 3"):
        prepare(sequence(3), 3)  # type: ignore[arg-type]
    zeros = np.zeros((4, 2), np.int16)
    other = from_arrays(torch.zeros(4, 2, dtype=torch.bfloat16), [0, 1, 0, 1])
    assert other.digests() != from_arrays(zeros, [0, 1, 0, 1]).digests()


def test_positions_beyond_the_end_are_refused(tmp_path: Path) -> None:
    mapped = prepare(sequence(20), tmp_path).take(10)
    assert mapped.inputs(np.empty(0, np.int64)).shape == (0, 3)
    for positions in ([10], [-1], [0, 15]):
        with pytest.raises(IndexError, match=r"positions must lie in \[0, 10\)"):
            mapped.inputs(np.array(positions))
        with pytest.raises(IndexError):
            mapped.labels(np.array(positions))


def test_a_directory_begun_in_another_format_is_not_gone_on_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(done: int, *_: int) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("prequential.data.prepare.FORMAT", 1)
        with pytest.raises(KeyboardInterrupt):
            prepare(sequence(10), tmp_path, listener=stop)
    with pytest.raises(PreqError, match="holds other data: its format is 1, not 2; choose another directory"):
        prepare(sequence(10), tmp_path)


def test_stopping_at_once_still_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("prequential.data.prepare.BYTES_AT_ONCE", 30)
    data, seen = sequence(100), []

    def stop(done: int, total: int, skipped: int) -> None:
        seen.append(done)
        if done >= 50:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        prepare(data, tmp_path, listener=stop)
    again: list[int] = []
    assert same(data, prepare(data, tmp_path, listener=lambda done, *_: again.append(done)))
    assert again[0] == 50, "no time had passed for a regular save"


@pytest.mark.parametrize("fails_in", ["append", "commit"])
def test_stopping_inside_a_span_writes_no_row_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails_in: str
) -> None:
    monkeypatch.setattr("prequential.data.prepare.BYTES_AT_ONCE", 30)
    data, real, calls = sequence(100), os.pwrite, [0]

    def pwrite(file: int, content: Any, offset: int) -> int:
        calls[0] += 1
        if fails_in == "append" and calls[0] == 5:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(file, content, offset)

    commit = Writer.commit

    def commit_or_stop(self: Writer, *, num_read: int, skipped: int) -> None:
        if calls[0] > 6:
            raise KeyboardInterrupt
        commit(self, num_read=num_read, skipped=skipped)

    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", pwrite)
        if fails_in == "commit":
            patch.setattr(Writer, "commit", commit_or_stop)
        with pytest.raises((PreqError, KeyboardInterrupt)):
            prepare(data, tmp_path)
    assert same(data, prepare(data, tmp_path))
