"""Sweeps of stacks: a stack that was stopped or killed is found again, by whoever goes on with the sweep."""

import itertools
import json
import random
import signal
import time
import warnings
from pathlib import Path
from typing import Any

import pytest

import prequential as pq
from prequential.cli import main
from prequential.errors import PreqWarning
from prequential.learn.recipe import SHARED, VECTORS, Recipe
from prequential.runs.directory import RunDirectory
from prequential.runs.measured import Measured
from prequential.sweeps import LogUniform, SweepInterrupted
from prequential.sweeps.ledger import Ledger
from prequential.sweeps.spaces import Resolved
from prequential.sweeps.trials import Outcome, Trial, finished_before

from ..conftest import blobs
from ..laws.test_records import tiny
from ..processes import PATIENCE, Gate, start_preq, wait_for
from .test_sweep import METHOD, assert_same_trials, attempts_of, command

SPACE: dict[str, Any] = {"learning_rate": LogUniform(1e-3, 1e-1), "eps": LogUniform(1e-4, 1.0)}


@pytest.fixture(autouse=True)
def _pause_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("prequential.runs.recorder.SECONDS_BETWEEN_PAUSES", 0.0)


def do(out: Path, **changes: Any) -> Any:
    """A sweep of four trials, three of which are one stack."""
    arguments: dict[str, Any] = {"space": SPACE, "trials": 4, "stack": 3, "seed": 0, "out": out, "resume": True}
    return pq.sweep(tiny, blobs(64), METHOD, **arguments | {"checkpoint_seconds": 0} | changes)


def stop_after(saves: int, out: Path, **changes: Any) -> None:
    """Ask the sweep to stop after so many checkpoints."""
    real, count = RunDirectory.save, itertools.count(1)

    def save(*arguments: Any) -> None:
        real(*arguments)
        if next(count) == saves:
            signal.raise_signal(signal.SIGTERM)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RunDirectory, "save", save)
        with pytest.raises(SweepInterrupted):
            do(out, **changes)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("stacks") / "s"
    do(out)
    return out


def names(out: Path) -> list[str]:
    return sorted(path.name for path in (out / "trials").iterdir())


def test_a_stopped_stack_goes_on_to_the_same_trials(tmp_path: Path, undisturbed: Path) -> None:
    out, begun, real = tmp_path / "s", list[int](), RunDirectory.begin

    def begin(home: RunDirectory, numbers: list[int]) -> None:
        begun.append(len(numbers))
        real(home, numbers)

    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings(action="error"):
        patch.setattr(RunDirectory, "begin", begin)
        for saves in (2, 5):
            stop_after(saves, out)
            assert names(out) == ["00000", "00000.stack", "00001", "00002"]
        assert do(out).counts["finished"] == 4
    assert begun == [3, 1]  # each began once
    assert names(out) == ["00000", "00001", "00002", "00003"]
    assert_same_trials(out, undisturbed, 4)


@pytest.mark.parametrize("change", [{"stack": 2}, {"stack": 4}, {"trials": 5, "stack": 5}, {"stack": None}])
def test_what_is_stacked_otherwise_begins_anew(tmp_path: Path, change: dict[str, Any]) -> None:
    out = tmp_path / "s"
    stop_after(3, out)
    with warnings.catch_warnings(record=True) as notes:
        warnings.simplefilter("always")
        summary = do(out, **change)
    said = [str(note.message) for note in notes if note.category is PreqWarning]
    assert len(said) == (change["stack"] is not None)
    assert all("holds a stack of other members; the run begins" in each for each in said)
    assert summary.counts["finished"] == change.get("trials", 4)
    assert names(out) == [f"{number:05d}" for number in range(summary.counts["finished"])]
    engines = {pq.load(trial.path).environment["engine"] for trial in summary.trials}
    assert engines == ({"eager"} if change["stack"] is None else {"stack"})


def test_a_trial_alone_keeps_what_a_stack_has_finished_of_it(tmp_path: Path, undisturbed: Path) -> None:
    out, real = tmp_path / "s", Measured.cut

    def die(member: Measured) -> None:
        if member.path is not None and member.path.name == "00002":
            raise KeyboardInterrupt
        real(member)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Measured, "cut", die)
        with pytest.raises(SweepInterrupted):
            do(out)
    assert "00000.stack" in names(out)
    summary = do(out, stack=None)
    assert [pq.load(trial.path).environment["engine"] for trial in summary.trials] == ["stack"] * 2 + ["eager"] * 2
    assert_same_trials(out, undisturbed, 2)
    assert names(out) == names(undisturbed)
    assert finished_before(out / "trials" / "00009", in_stack=False) is None


def test_a_trial_that_ran_alone_may_be_stacked(tmp_path: Path, undisturbed: Path) -> None:
    out = tmp_path / "s"
    do(out, stack=None, trials=1)
    summary = do(out)
    engines = [pq.load(trial.path).environment["engine"] for trial in summary.trials]
    assert engines == ["eager", "stack", "stack", "stack"]


def test_trials_whose_process_died_come_back_together_and_then_alone(tmp_path: Path) -> None:
    base = Resolved(METHOD, Recipe(), 1.0, 0)
    ledger = Ledger(
        f"sqlite:///{tmp_path}/study.db", "s", space=SPACE, seed=0, sampler="random", mark="me", num_trials=5,
        stack=(3, base),
    )  # fmt: skip

    def die(trials: tuple[Trial, ...]) -> None:
        for each in trials:
            ledger.settle(Outcome(each.number, "failed", error="its process died", died=True))

    def numbers(trials: tuple[Trial, ...] | None) -> list[int]:
        return [each.number for each in trials or ()]

    first, second = ledger.take(), ledger.take()
    assert first is not None
    assert second is not None
    die(first)
    again = ledger.take()
    assert again == first
    die(again)
    assert [numbers(ledger.take()) for _ in range(4)] == [[0], [1], [2], []]
    die(second)
    assert ledger.take() == second
    ledger.close()


def test_every_setting_of_a_recipe_is_shared_or_a_vector() -> None:
    assert {*SHARED, *VECTORS} == set(Recipe.__dataclass_fields__)


def test_kills_at_random_moments_change_nothing(tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("prequential.runs.recorder.SECONDS_BETWEEN_PAUSES", 0.1)
    flags = command(tmp_path, "--streams", "20", "--stack", "3")
    assert main([*flags, "--out", str(tmp_path / "whole")]) == 0
    out, chance = tmp_path / "s", random.Random(0)
    for step in (100, 200):
        gate = Gate(tmp_path / f"gate-{step}", step)  # it does not get further, however late the kill comes
        seen = set(out.glob("trials/*.stack/checkpoints/*.safetensors"))
        process = start_preq([*flags, "--out", str(out), "--resume"], gate.environment)
        wait_for(lambda: set(out.glob("trials/*.stack/checkpoints/*.safetensors")) - seen, process)  # noqa: B023
        time.sleep(chance.uniform(0, 0.3))
        process.kill()
        _, said = process.communicate(timeout=PATIENCE)
        assert process.returncode == -signal.SIGKILL, said
    assert list(out.glob("trials/*.stack/checkpoints/*.safetensors"))
    capsys.readouterr()
    assert main([*flags, "--out", str(out), "--resume", "--json"]) == 0
    told, said = capsys.readouterr()
    assert (json.loads(told)["finished"], said) == (3, "")
    assert [trial.state.name for trial in attempts_of(out)] == ["COMPLETE"] * 3
    assert names(out) == ["00000", "00001", "00002"]
    assert_same_trials(out, tmp_path / "whole", 3)
