"""A reader that has gone, or a full disk behind standard output, costs no result: files are written all the same."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from prequential.cli import main
from prequential.errors import PreqError

from ..processes import PATIENCE
from ..records import made_record

HERE = "import sys; from prequential.cli import main; sys.exit(max([main(line.split()) for line in sys.argv[1:]]))"
READING = {
    "pareto runs -o front.png --csv front.csv": ["front.png", "front.csv"],
    "pareto runs --json -o other.png": ["other.png"],
    "compare runs --csv table.csv": ["table.csv"],
    "plot loss runs -o loss.svg": ["loss.svg"],
    "report runs -o page.html": ["page.html"],
    "watch --once runs": [],
    "plan --length 100 --events 1000": [],
}
WORKING = {
    "run digits.npz mlp1 --streams 1 --out one --picture one.png": ["one/record.json", "one.png"],
    "encode digits.npz mlp1 --streams 1 -o labels.preq": ["labels.preq"],
    "decode labels.preq --data digits.npz -o labels.npy": ["labels.npy"],
    "data prepare digits.npz --to prepared": ["prepared/prepared.json"],
    "sweep digits.npz mlp1 --space space.py:space --trials 2 --out many": ["many/trials/00001/record.json"],
}
"""What each command must have written when it ends."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs, one of them not finished, which is told on standard error; data; a space."""
    place = tmp_path_factory.mktemp("pipes")
    for number in range(3):
        record = made_record([1.0, 0.5 + number], name=f"{number}", recipe={"learning_rate": number})
        record.save(place / f"runs/{number}")
    replace(record, status="stopped", path=None).save(place / "runs/3")
    rng = np.random.default_rng(0)
    np.savez(place / "digits.npz", inputs=rng.random((64, 4), np.float32), labels=np.arange(64) % 2)
    (place / "space.py").write_text("from prequential import Choice\nspace = {'learning_rate': Choice((1e-3, 1e-2))}\n")
    return place


def call(folder: Path, lines: list[str], output: int, errors: int) -> int:
    """One process for all the commands; nothing waits in a buffer."""
    environment = os.environ | {"PYTHONUNBUFFERED": "1", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", HERE, *(line.replace("digits.npz", "npz:digits.npz") for line in lines)]
    done = subprocess.run(
        command, cwd=folder, env=environment, stdout=output, stderr=errors, timeout=PATIENCE, check=False
    )
    return done.returncode


@pytest.mark.parametrize("commands", [READING, WORKING], ids=["reading", "working"])
def test_every_file_is_written_when_nobody_reads_what_is_said(folder: Path, commands: dict[str, list[str]]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        assert call(folder, list(commands), writer, writer) == 0
    finally:
        os.close(writer)
    assert [name for names in commands.values() for name in names if not (folder / name).exists()] == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is always full")
def test_every_file_is_written_before_standard_output_is(folder: Path) -> None:
    with Path("/dev/full").open("w") as full:
        line = "pareto runs -o second.png --csv second.csv"
        assert call(folder, [line], full.fileno(), subprocess.DEVNULL) == 2
    assert (folder / "second.png").exists()
    assert (folder / "second.csv").exists()


def test_streams_that_were_closed_from_the_beginning_do_no_harm(folder: Path) -> None:
    command = f"{sys.executable} -m prequential.cli compare runs --csv third.csv >&- 2>&-"
    assert subprocess.run(["sh", "-c", command], cwd=folder, timeout=PATIENCE, check=False).returncode == 0
    assert (folder / "third.csv").exists()


def test_a_picture_is_drawn_before_the_result_is_printed_and_costs_none_if_it_cannot_be(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = []

    def fail(*_: object) -> None:
        before.append(capsys.readouterr().out)
        raise PreqError("cannot write it: no room")

    monkeypatch.setattr("prequential.cli.run.plot", fail)
    line = ["run", f"npz:{folder}/digits.npz", "mlp1", "--streams", "1", "--picture", f"{folder}/x.png", "--json"]
    assert main(line) == 2
    said = capsys.readouterr()
    assert before == [""]
    assert json.loads(said.out)["length"] == 64
    assert said.err.endswith("preq: cannot write it: no room\n")
