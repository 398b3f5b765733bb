"""What the documentation says is so: its commands run, its pictures are current, its pages stand alone."""

import importlib.util
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from prequential import cli
from prequential.data.sequence import ArraySequence
from prequential.data.sources import SOURCES
from prequential.data.sources.mnist import mnist
from prequential.data.sources.request import Request

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.glob("*.md"))
SHELL = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILE = re.compile(r'^```python title="([\w.]+)"\n(.*?)^```$', re.MULTILINE | re.DOTALL)
SMALL = {"--length": "64", "--num-labels": "64", "--study-steps": "2", "--trials": "2"}


def imported(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def commands(page: Path) -> list[list[str]]:
    """The lines of a page's shell blocks, with small numbers in the place of large ones."""
    lines = [shlex.split(line) for block in SHELL.findall(page.read_text()) for line in block.splitlines()]
    return [[SMALL.get(before, word) for before, word in zip(["", *line], line, strict=False)] for line in lines]


@pytest.mark.parametrize("page", [page for page in PAGES if commands(page)], ids=lambda page: page.stem)
def test_the_commands_of_a_page_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def quickly_evaluated(request: Request) -> ArraySequence:
        data = mnist(request)
        assert data.heldout is not None
        return replace(data, heldout=data.heldout.take(64))

    monkeypatch.setitem(SOURCES, "mnist", replace(SOURCES["mnist"], read=quickly_evaluated))
    monkeypatch.chdir(tmp_path)
    shutil.copy(ROOT / "tests" / "files" / "flights.csv.gz", tmp_path)
    for name, text in FILE.findall(page.read_text()):
        Path(name).write_text(text)
    for program, *arguments in commands(page):
        if program == "python":
            subprocess.run([sys.executable, *arguments], check=True)
            continue
        assert program == "preq"
        assert cli.main(arguments) == 0, f"preq {shlex.join(arguments)}"


def test_the_pictures_of_plans_are_those_of_the_plans() -> None:
    plans = imported(DOCS / "pictures" / "plans.py")
    drawn = {f"{name}.svg": plans.draw(method, length) for name, (method, length) in plans.METHODS.items()}
    assert {path.name: path.read_text() for path in (DOCS / "pictures").glob("*.svg")} == drawn


def test_every_public_name_is_in_the_reference() -> None:
    import prequential as pq

    shown = {line.rpartition(".")[2] for line in (DOCS / "reference.md").read_text().splitlines() if ":::" in line}
    missing = set(pq.__all__) - shown - {"SPACES"}
    assert not missing, "docs/reference.md shows what pq has"


def test_the_site_builds_and_loads_nothing_from_elsewhere(tmp_path: Path) -> None:
    pytest.importorskip("mkdocs")
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    done = subprocess.run(build, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert {path.stem for path in tmp_path.glob("*.html")} == {"404", *(page.stem for page in PAGES)}
    assert "<math" in (tmp_path / "methods.html").read_text()
    hooks = imported(DOCS / "hooks.py")
    assert hooks.foreign(tmp_path) == []
    font = '<link rel="stylesheet" href="https://fonts.example/roboto.css">'
    (tmp_path / "index.html").write_text(
        f'<a href="https://example.org">{font}<script src=//cdn.example/a.js></script>'
    )
    assert hooks.foreign(tmp_path) == [
        "index.html loads https://fonts.example/roboto.css",
        "index.html loads //cdn.example/a.js",
    ]
