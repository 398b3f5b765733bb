"""The files beside the code that would silently go out of date."""

import re
from pathlib import Path

import yaml  # type: ignore[import-untyped]

import prequential as pq

ROOT = Path(__file__).parents[2]


def test_the_citation_names_this_version() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["version"] == pq.__version__


def test_pre_commit_runs_what_make_test_lints_with() -> None:
    makefile = (ROOT / "Makefile").read_text()
    recipe = makefile.partition("\ntest:")[2].partition("\n\n")[0]
    linted = [tool for tool in re.findall(r"\$\(BIN\)/([\w-]+)", recipe) if tool not in ("pip", "pytest")]
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"][0]["hooks"]
    assert linted
    assert [Path(hook["entry"].split()[0]).name for hook in hooks] == linted


def test_the_workflow_runs_make_test_on_every_python_that_is_supported() -> None:
    jobs = yaml.safe_load((ROOT / ".github/workflows/test.yml").read_text())["jobs"]
    assert any("make test" in step.get("run", "") for step in jobs["test"]["steps"])
    oldest = re.search(r'requires-python = ">=([\d.]+)"', (ROOT / "pyproject.toml").read_text())
    assert oldest is not None
    assert jobs["test"]["strategy"]["matrix"]["python"][0] == oldest[1]
