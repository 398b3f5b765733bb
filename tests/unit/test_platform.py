"""Where the package runs, and that it knows which it is however it came there."""

import importlib.metadata
import platform
import re
import tomllib
from pathlib import Path

import pytest

import prequential as pq
from prequential.cli import main
from prequential.errors import PreqError
from prequential.files import PLATFORMS, write_atomically
from prequential.version import VERSION

from ..conftest import blobs
from ..laws.test_records import tiny

ROOT = Path(__file__).parents[2]
METHOD = pq.ReplayStreams(num_streams=1, batch_size=8)


def test_a_source_tree_without_metadata_runs_and_encodes(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing_installed(name: str) -> importlib.metadata.Distribution:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "distribution", nothing_installed)
    data = blobs(16)
    record = pq.run(tiny, data, METHOD, seed=0)
    assert record.environment["prequential"] == pq.__version__ == VERSION
    assert len(pq.decode(pq.encode(tiny, data, METHOD, seed=0), data, tiny)) == 16


def test_the_version_is_written_in_one_place() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert project["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "prequential.version.VERSION"}
    sources = [path.name for path in (ROOT / "src").rglob("*.py") if re.search(rf'"{VERSION}"', path.read_text())]
    assert sources == ["version.py"]


@pytest.mark.parametrize("system", ["Windows", "Plan9", ""])
def test_another_platform_is_told_in_one_line(
    system: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(platform, "system", lambda: system)
    assert main(["--version"]) == 0
    assert main(["run", "mnist", "mlp1", "--out", str(tmp_path / "run")]) == 2
    told = f"prequential needs Linux or macOS, this is {system or 'neither'}; use "
    error = capsys.readouterr().err
    assert error.startswith(f"preq: {told}")
    assert error.count("\n") == 1
    for write in (
        lambda: pq.run(tiny, blobs(16), METHOD, seed=0, out=tmp_path / "run"),
        lambda: write_atomically(tmp_path / "file", b"x"),
    ):
        with pytest.raises(PreqError, match=told):
            write()
    assert not list(tmp_path.iterdir())


def test_readme_and_metadata_name_the_platforms() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    systems = {line.rpartition(" :: ")[2].lower() for line in project["classifiers"] if line.startswith("Operating")}
    assert systems == {name.lower() for name in PLATFORMS.values()}
    assert " or ".join(PLATFORMS.values()) in (ROOT / "README.md").read_text()
