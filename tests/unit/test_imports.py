"""What may be imported without torch, and how small the files are."""

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import prequential as pq

from ..conftest import blobs

BLOCK_TORCH = (
    "import sys, importlib.abc, importlib.util\n"
    "class Block(importlib.abc.MetaPathFinder):\n"
    "    def find_spec(self, name, path, target=None):\n"
    "        if name.split('.')[0] == 'torch': raise ModuleNotFoundError('torch is blocked', name='torch')\n"
    "sys.meta_path.insert(0, Block())\n"
    "pass"
)
BLOCK_ALL_BUT_TORCH = BLOCK_TORCH.replace(
    "== 'torch'", "in ('rich', 'tyro', 'constriction', 'matplotlib', 'optuna', 'pooch', 'pyarrow', 'pandas', 'sklearn')"
)
SOURCE = Path(pq.__file__).parent
READING_COMMANDS = [
    ["compare", "RUNS"],
    ["compare", "RUNS", "--json", "--csv", "OUT.csv"],
    ["compare", "--help"],
    ["plot", "regret", "RUNS", "-o", "OUT.svg"],
    ["plot", "replay", "RUNS", "-o", "OUT.png"],
    ["labels", "RUNS/0", "--csv", "OUT.csv"],
    ["report", "RUNS", "-o", "OUT.html"],
    ["pareto", "RUNS", "-o", "OUT.pdf", "--csv", "OUT.csv"],
    ["watch", "RUNS", "--once"],
]
"""What must work where there is no torch; RUNS is a folder of two runs, OUT a path to write to."""


def test_a_plan_is_listed_without_loading_what_draws_tables() -> None:
    done = python("import sys, prequential.cli.plan; sys.exit('rich' in sys.modules)")
    assert done.returncode == 0, done.stderr


def python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)


def test_importing_the_package_imports_no_torch() -> None:
    done = python("import prequential, sys; sys.exit('torch' in sys.modules or 'numpy' in sys.modules)")
    assert done.returncode == 0, done.stderr


def test_run_is_the_function_whatever_was_imported_first() -> None:
    done = python("import prequential.runs.run, prequential as pq; print(pq.run.__name__, pq.load.__name__)")
    assert done.stdout == "run load\n", done.stderr
    assert set(dir(pq)) >= set(pq.__all__)
    with pytest.raises(AttributeError, match="no attribute 'ruin'"):
        pq.ruin  # type: ignore[attr-defined]  # noqa: B018


def test_imports_of_before_still_work_and_say_what_to_write_now() -> None:
    code = "from prequential.sweep import Choice, LogUniform, Uniform, sweep; import prequential as pq; "
    done = python(f"{code}print(Uniform is pq.Between, Choice is pq.Choice, sweep is pq.sweep, callable(pq.sweep))")
    assert done.stdout == "True True True True\n", done.stderr
    with pytest.warns(DeprecationWarning, match="Uniform of prequential.sweep is Between of prequential.sweeps now"):
        assert importlib.import_module("prequential.sweep").Uniform is pq.Between
    with pytest.raises(AttributeError, match="has no attribute 'Uniforn'"):
        importlib.import_module("prequential.sweep").Uniforn  # noqa: B018


def test_a_run_that_studies_and_mixes_needs_what_comes_with_torch_alone(tmp_path: Path) -> None:
    run, studies = str(tmp_path / "run"), str(tmp_path / "studies")
    code = f"""{BLOCK_ALL_BUT_TORCH}
import prequential as pq
data = pq.load_data("mnist").take(16).without_heldout()
small = pq.ReplayBuffer(num_replays=1, batch_size=8)
given = pq.AllInputs(method=small, study_steps=1, study_batch_size=4, beside=1)
record = pq.run(pq.Experts.of_seeds("lenet", 2), data, given, seed=0, out={run!r}, study_dir={studies!r})
print(record.status, pq.load({run!r}).study["from"])
"""
    done = python(code)
    assert done.stdout == "finished this run\n", done.stderr


def test_plans_records_measures_and_pictures_work_without_torch(tmp_path: Path) -> None:
    for seed in (0, 1):
        pq.run("mlp1", blobs(64), pq.ReplayStreams(num_streams=1, batch_size=8), seed=seed, out=tmp_path / str(seed))
    done = python(
        f"{BLOCK_TORCH}\n"
        "import prequential as pq, prequential.events, prequential.rng, prequential.reference, prequential.presets\n"
        "from prequential.report.plots import plot\n"
        f"one, other = pq.load({str(tmp_path / '0')!r}), pq.load({str(tmp_path / '1')!r})\n"
        f"plot('curve', one, {str(tmp_path / 'curve.svg')!r})\n"
        "pq.Plan(pq.ReplayStreams(), 1000).check(); pq.Recipe(); print(pq.regret(one, other)[-1])\n"
    )
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) != 0
    assert (tmp_path / "curve.svg").stat().st_size > 1000


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    for seed in (0, 1):
        pq.run("mlp1", blobs(64), pq.ReplayStreams(num_streams=1, batch_size=8), seed=seed, out=folder / str(seed))
    return folder


@pytest.mark.parametrize("command", READING_COMMANDS, ids=" ".join)
def test_commands_that_read_records_need_no_torch(command: list[str], runs: Path, tmp_path: Path) -> None:
    arguments = [word.replace("RUNS", str(runs)).replace("OUT", str(tmp_path / "out")) for word in command]
    done = python(f"{BLOCK_TORCH}\nfrom prequential.cli import main\nraise SystemExit(main({arguments!r}))")
    assert done.returncode == 0, done.stderr
    assert done.stdout
    for word, path in zip(command, arguments, strict=True):
        assert "OUT" not in word or Path(path).stat().st_size > 0


def test_a_command_that_needs_torch_says_so() -> None:
    done = python(f"{BLOCK_TORCH}\nfrom prequential.cli import main\nraise SystemExit(main(['run', 'mnist', 'lenet']))")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "preq: preq run needs torch, which is not installed here; reading runs works without\n"


def test_every_module_of_reports_can_be_imported_without_torch() -> None:
    modules = sorted(f"prequential.report.{path.stem}" for path in (SOURCE / "report").glob("[!_]*.py"))
    done = python(f"{BLOCK_TORCH}\nimport prequential.report, {', '.join(modules)}")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda path: str(path.relative_to(SOURCE)))
def test_files_and_functions_stay_small(path: Path) -> None:
    text = path.read_text()
    assert text.count("\n") <= 250
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            documented = ast.get_docstring(node) is not None
            first = node.body[1] if documented and len(node.body) > 1 else node.body[0]
            assert node.end_lineno is not None
            assert node.end_lineno - first.lineno < 50, f"{node.name} is longer than a screen"


def test_no_module_shares_its_name_with_a_public_function_of_measures() -> None:
    done = python("import prequential.measure, prequential as pq; print(pq.mixture.__name__, pq.pareto_front.__name__)")
    assert done.stdout == "mixture pareto_front\n", done.stderr
    names = {path.stem for folder in ("measure", "report", "report/plots") for path in (SOURCE / folder).glob("*.py")}
    assert not names & {name for name in pq.__all__ if callable(getattr(pq, name))}
    assert not {"mixture.py", "pareto.py", "measure.py"} & {path.name for path in SOURCE.glob("*.py")}
