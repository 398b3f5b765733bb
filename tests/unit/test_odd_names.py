"""Directories called anything, read by every command, on terminals and into files that do not know all letters."""

import csv
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import prequential as pq
from prequential import Record, cli
from prequential.cli.watch_table import sparkline
from prequential.errors import PreqWarning
from prequential.report.plots import KINDS
from prequential.settings import settings_of

from ..records import made_record
from .test_plots import texts_of

Captured = pytest.CaptureFixture[str]
NAMES = [
    "[bold]red",
    "a$b_{c$^}",
    "_hidden",
    "{x} %s \\alpha",
    "two\nlines",
    "\x1b[31mred",
    "数据集",
    os.fsdecode(b"b\xff"),
]
"""Markup, formulas, templates, line breaks, commands to terminals, wide letters, and a byte that is no UTF-8."""
SHOWN = ["[bold]red", "a$b_{c$^}", "_hidden", "{x} %s \\alpha", "two\\nlines", "\\x1b[31mred", "数据集", "b\\udcff"]
LABELS = [0, 1] * 10


def made(number: int, name: str) -> Record:
    nats = np.linspace(1.0, 0.1 + number / 10, len(LABELS)).tolist()
    method = {"name": "mi-rs"} | settings_of(pq.ReplayStreams(num_streams=2, batch_size=4))
    return made_record(nats, name=name, labels=LABELS, recipe={"learning_rate": number}, method=method)


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("odd")
    for number, name in enumerate(NAMES):
        replace(made(number, name), path=None).save(folder / name)
    return folder


def call(*arguments: str, encoding: str) -> subprocess.CompletedProcess[bytes]:
    environment = os.environ | {"PYTHONIOENCODING": encoding, "COLUMNS": "120"}
    command = [sys.executable, "-m", "prequential.cli", *arguments]
    return subprocess.run(command, env=environment, capture_output=True, check=False)


@pytest.mark.parametrize("encoding", ["utf-8", "ascii", "cp1252"])
def test_every_terminal_gets_what_it_can_show(odd: Path, encoding: str) -> None:
    for command in ("compare", "watch"):
        done = call(command, str(odd), encoding=encoding)
        assert (done.returncode, done.stderr) == (0, b"")
        text = done.stdout.decode(encoding)
        assert "\x1b" not in text
        for name in SHOWN:
            assert name.replace("数据集", "???" if encoding != "utf-8" else "数据集") in text
    table = call("compare", str(odd), encoding="ascii").stdout.decode()
    assert "e^-" in table or "%" in table
    assert "e^?" not in table


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is always full")
@pytest.mark.parametrize("flags", [[], ["--json"]])
def test_an_output_without_room_is_one_line(odd: Path, flags: list[str]) -> None:
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-m", "prequential.cli", "compare", str(odd), *flags]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, check=False)
    told = b"preq: standard output cannot be written: No space left on device\n"
    assert (done.returncode, done.stderr) == (2, told)


def test_json_and_csv_lead_back_to_the_directories(odd: Path, tmp_path: Path) -> None:
    done = call("compare", "--json", "--csv", str(tmp_path / "t.csv"), str(odd), encoding="utf-8")
    assert done.returncode == 0
    found = {entry["runs"][0]["record"] for entry in json.loads(done.stdout)["entries"]}
    assert found == {str(odd / name) for name in NAMES}
    with (tmp_path / "t.csv").open(encoding="utf-8") as file:
        assert {row["name"] for row in csv.DictReader(file)} == set(SHOWN)


def test_the_page_and_the_notebook_hold_them(odd: Path, tmp_path: Path, capsys: Captured) -> None:
    assert cli.main(["report", str(odd), "-o", str(tmp_path / "r.html")]) == 0
    text = (tmp_path / "r.html").read_text(encoding="utf-8")
    for name in SHOWN:
        assert name in text
    assert "\x1b" not in text


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "weights"])  # which only mixed runs have
def test_pictures_draw_names_as_they_are(odd: Path, kind: str, tmp_path: Path) -> None:
    path = tmp_path / "p.svg"
    folders: list[Record | str | Path] = [odd / name for name in NAMES[:5]]
    pq.plot(kind, folders, path)  # a formula that cannot be read, or a note about a letter, would be an error
    if kind != "replay":
        told = "\n".join(texts_of(path))
        assert all(name in told.replace("\\$", "$") for name in SHOWN[:5])


@pytest.mark.parametrize("kind", ["regret", "loss", "calibration"])
def test_long_names_leave_room_for_the_picture(kind: str, tmp_path: Path) -> None:
    names = [f"{number}{'n' * 180}{number}" for number in range(3)]
    runs = [made(number, name).save(tmp_path / name) for number, name in enumerate(names)]
    pq.plot(kind, runs, tmp_path / "p.svg")  # axes without a size would be a warning of matplotlib, and an error
    told = "\n".join(texts_of(tmp_path / "p.svg"))
    assert all(f"{number}nnn" in told and f"nnn{number}" in told for number in range(3))


def test_letters_that_a_font_lacks_are_told_of_once(odd: Path, tmp_path: Path) -> None:
    with pytest.warns(PreqWarning, match="the font of pictures lacks 据数集; boxes stand for them") as said:
        pq.plot("loss", [odd / "数据集", odd / "_hidden"], tmp_path / "p.png")
    assert len(said) == 1


def test_wide_letters_stay_in_their_columns(odd: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "70")
    assert cli.main(["watch", str(odd)]) == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if "数据集" in line]
    assert "数据集 " in line
    assert "…" not in line


def test_a_loss_that_only_rounding_moves_is_flat() -> None:
    level = float(np.log(10))
    assert sparkline([level, level + 4e-16, level - 9e-15, level]) == "▁▁▁▁"
    assert sparkline([level, level + 1e-3]) == "▁█"
