"""The examples run, as a stranger would run them, on less data."""

import functools
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from prequential.data.sources import mnist

from .test_docs import ROOT, imported

Captured = pytest.CaptureFixture[str]


def test_your_model_is_thirty_lines_and_the_wide_one_explains_more() -> None:
    path = ROOT / "examples" / "your_model.py"
    assert len(path.read_text().splitlines()) <= 30
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    narrow, wide, uniform = (float(number) for number in re.findall(r"([\d.]+) nats", done.stdout))
    assert wide < narrow - 100 < uniform - 100


def test_feature_selection_compares_and_draws(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.setattr(mnist, "NUM_HELDOUT", 64)
    example = imported(ROOT / "examples" / "feature_selection.py")
    monkeypatch.setitem(example.METHODS, "erm", replace(example.METHODS["erm"], epochs=1))
    arguments = ["--examples", "96", "--seeds", "0", "1", "--jobs", "1", "--out", str(tmp_path)]
    monkeypatch.setattr(example.pq, "load_data", functools.cache(example.pq.load_data))
    example.main(arguments)
    first = capsys.readouterr().out
    assert re.search(r"^  seed 1 +\d+\.\d +\d+\.\d +\d+\.\d  (R|RG|RGB): ", first, re.MULTILINE)
    assert "R has ERM's lowest held-out loss in " in first
    assert all(len(line) <= 90 for line in first.splitlines() if str(tmp_path) not in line)
    assert (tmp_path / "regret.png").stat().st_size > 10_000
    with pytest.raises(SystemExit, match="feature_selection: examples must be"):
        example.main(["--examples", "1", "--jobs", "1", "--out", str(tmp_path / "other")])


def test_inputs_are_compared_on_photographs(tmp_path: Path, capsys: Captured) -> None:
    example, generator = imported(ROOT / "examples" / "inputs.py"), np.random.default_rng(0)
    for number in range(24):
        colour = np.full((40, 40, 3), (255 * (number % 2), 90, 30)) + generator.integers(-20, 20, (40, 40, 3))
        path = tmp_path / "photos" / f"class{number % 2}" / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(colour.clip(0, 255).astype(np.uint8)).save(path)
    out = tmp_path / "runs"
    example.main([str(tmp_path / "photos"), "--labels", "24", "--seeds", "0", "--out", str(out)])
    said = " ".join(capsys.readouterr().out.split())
    assert "The inputs differ (pixels-32: pixels-32-seed0; pixels-16:" in said
    assert (out / "inputs.html").stat().st_size > 50_000
