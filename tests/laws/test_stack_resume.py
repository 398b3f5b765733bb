"""Checkpoints of stacks: whatever stops a stack, every member goes on to the same bits."""

import re
import signal
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import prequential as pq
from prequential.errors import PreqError, PreqWarning
from prequential.methods import Method
from prequential.plan import Plan
from prequential.runs.directory import RunDirectory, discard_stack, stack_place
from prequential.runs.measured import Measured
from prequential.runs.progress import Progress
from prequential.runs.record import ARRAYS, Record
from prequential.runs.run import Interrupted, run_stack
from prequential.stack.learner import StackedLearner

from ..conftest import blobs
from ..unit.test_resume import Crash, file_operations
from .resuming import require_same_bits
from .test_records import IDS, METHODS, tiny

LENGTH = 56
RECIPES = [pq.Recipe(), pq.Recipe(learning_rate=1e30), pq.Recipe(learning_rate=1e-2, ema_step_size=0.3)]
"""The second diverges after a few steps."""


class OneByOne(StackedLearner):
    steps_at_once = 1


@pytest.fixture(autouse=True)
def _pause_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("prequential.runs.recorder.SECONDS_BETWEEN_PAUSES", 0.0)
    monkeypatch.setattr("prequential.runs.live.SECONDS_BETWEEN_WRITES", 1e9)  # file operations that depend on no clock


def start(
    folder: Path | None, *, resume: bool = True, stop_at: int | None = None, method: Method = METHODS[0], **more: Any
) -> list[Record]:
    """A stack of three that saves its state at every pause, and is asked to stop at a position."""

    def ask(progress: Progress) -> None:
        if stop_at is not None and progress.position >= stop_at:
            signal.raise_signal(signal.SIGTERM)

    arguments: dict[str, Any] = {"recipes": RECIPES, "seeds": [0, 1, 2], "checkpoint_seconds": 0, "listeners": [ask]}
    if folder is not None:
        arguments |= {"out": [folder / name for name in "abc"], "resume": resume}
    return run_stack(tiny, blobs(LENGTH), method, **arguments | more)


def assert_same(found: list[Record], wanted: list[Record]) -> None:
    for one, other in zip(found, wanted, strict=True):
        for name in ARRAYS:
            assert getattr(one, name).tobytes() == getattr(other, name).tobytes(), name
        assert (one.heldout, one.flops, one.status) == (other.heldout, other.flops, other.status)


def assert_only_records(folder: Path) -> None:
    wanted = sorted([*(f"{name}.npy" for name in ARRAYS), "lock", "record.json"])
    assert sorted(path.name for path in folder.iterdir()) == ["a", "b", "c"]
    assert all(sorted(file.name for file in path.iterdir()) == wanted for path in folder.iterdir())


@pytest.fixture(scope="module")
def undisturbed() -> list[Record]:
    return start(None)


@pytest.fixture
def stopped(tmp_path: Path) -> Path:
    """A stack that was asked to stop half-way."""
    with pytest.raises(Interrupted):
        start(tmp_path, stop_at=30)
    return tmp_path


@settings(max_examples=8)
@given(st.sampled_from(METHODS), st.lists(st.integers(0, 70), max_size=3), st.sampled_from(["adamw", "rmsprop", "sgd"]))
def test_stopping_after_any_events_and_going_on_gives_the_same_bits(
    method: Method, stops: list[int], optimizer: str
) -> None:
    data = blobs(40)
    recipes = [replace(recipe, optimizer=optimizer) for recipe in RECIPES]
    plan, factor = Plan(method, len(data), 0, heldout=True), method.calibration_rate_factor

    def fresh() -> StackedLearner:
        return OneByOne(tiny, data, recipes, seeds=[0, 1, 2], calibration_rate_factor=factor)

    require_same_bits(plan, data, fresh, stops, num_members=3)


@pytest.mark.parametrize("method", METHODS, ids=IDS)
def test_a_resumed_stack_is_the_same_to_the_bit(tmp_path: Path, method: Method) -> None:
    for stop in (1, 40):
        with pytest.raises(Interrupted) as caught:
            start(tmp_path, stop_at=stop, method=method)
        assert caught.value.signal_number == signal.SIGTERM
        assert all(len(record.nats) >= stop or np.isinf(record.nats[-1]) for record in caught.value.records)
        assert {pq.load(tmp_path / name).status for name in "abc"} == {"stopped"}
    records = start(tmp_path, method=method)
    assert [record.status for record in records] == ["finished", "diverged", "finished"]
    assert_same(records, start(None, method=method))
    assert_same([pq.load(tmp_path / name) for name in "abc"], records)
    assert_only_records(tmp_path)


def test_seconds_of_all_parts_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[list[float]] = []
    now = 0.0  # by a clock that moves while it is told how far the stack is
    monkeypatch.setattr("prequential.runs.recorder.time", SimpleNamespace(perf_counter=lambda: now))

    def note(progress: Progress) -> None:
        nonlocal now
        heard[-1].append(progress.seconds)
        now += 1
        if progress.position >= 20 * len(heard):
            signal.raise_signal(signal.SIGTERM)

    for _ in range(2):
        heard.append([])
        with pytest.raises(Interrupted) as caught:
            start(tmp_path, listeners=[note])
    first, second = heard
    assert first == list(range(len(first)))
    assert first[-2] < second[0] <= len(first)  # the last two were saved at the same event, and either may be taken
    assert second == [second[0] + k for k in range(len(second))]
    assert sum(record.seconds for record in caught.value.records) == pytest.approx(
        second[-1]
    )  # the clock stands from the end on


def test_an_erm_stack_resumes(tmp_path: Path) -> None:
    erm = pq.FullDataset(epochs=30, batch_size=8)

    def ask(progress: Progress) -> None:
        if progress.trained_examples > 1000:
            signal.raise_signal(signal.SIGTERM)

    with pytest.raises(Interrupted):
        start(tmp_path, method=erm, listeners=[ask])
    assert_same(start(tmp_path, method=erm), start(None, method=erm))


def test_finished_stacks_are_returned_and_begun_ones_not_overwritten(
    stopped: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(PreqError, match=r"a already holds a run; choose another directory, or resume it"):
        start(stopped, resume=False)
    records = start(stopped)
    monkeypatch.setattr("prequential.runs.course._Going", None)
    assert_same(start(stopped), records)
    with pytest.raises(PreqError, match="resume needs the directory of the run"):
        run_stack(tiny, blobs(40), METHODS[0], RECIPES, seeds=[0, 1, 2], resume=True)


def test_other_settings_are_refused_with_what_differs(stopped: Path) -> None:
    before = {path: path.read_bytes() for path in stopped.rglob("*") if path.is_file()}
    changes: list[tuple[dict[str, Any], str]] = [
        ({"recipes": [*RECIPES[:2], pq.Recipe()]}, r"run in .*c: recipe.learning_rate 0.01 then, 0.003 now"),
        ({"seeds": [0, 1, 5]}, "seeds.seed 2 then, 5 now"),
        ({"method": METHODS[1]}, "method.num_streams 3 then, 2 now"),
        ({"plan_seed": 1}, "seeds.plan_seed 0 then, 1 now"),
        ({"evaluate": False}, "evaluate True then, False now"),
        ({"execution": pq.Execution(precision="bf16")}, "precision fp32 then, bf16 now"),
    ]
    for change, complaint in changes:
        with pytest.raises(PreqError, match="settings differ from the run in") as caught:
            start(stopped, **change)
        assert re.search(complaint, str(caught.value))
    assert before == {path: path.read_bytes() for path in stopped.rglob("*") if path.is_file()}


@pytest.mark.parametrize("names", ["ab", "abcd", "dabc"])
def test_a_stack_of_other_members_begins_anew_with_a_note(
    stopped: Path, names: str, undisturbed: list[Record], recwarn: pytest.WarningsRecorder
) -> None:
    recipes, out = [*RECIPES, pq.Recipe()], [stopped / name for name in names]
    numbers = ["abcd".index(name) for name in names]
    records = start(None, recipes=[recipes[n] for n in numbers], seeds=numbers)
    found = start(stopped, recipes=[recipes[n] for n in numbers], seeds=numbers, out=out)
    assert_same(found, records)
    notes = [str(each.message) for each in recwarn if issubclass(each.category, PreqWarning)]
    (note,) = notes
    assert ("holds a stack of other members" if names[0] == "a" else "a holds no checkpoint; the run begins") in note
    assert not list(stopped.glob("*.stack"))


def test_members_may_come_in_another_order(stopped: Path, undisturbed: list[Record]) -> None:
    out = [stopped / name for name in "acb"]
    found = start(stopped, recipes=[RECIPES[n] for n in (0, 2, 1)], seeds=[0, 2, 1], out=out)
    assert_same([found[n] for n in (0, 2, 1)], undisturbed)


@pytest.mark.parametrize("damage", ["truncated", "foreign", "array"])
def test_an_older_checkpoint_serves_where_the_newest_is_damaged(
    stopped: Path, damage: str, undisturbed: list[Record]
) -> None:
    older, newest = sorted((stopped / "a.stack" / "checkpoints").iterdir())
    if damage == "truncated":
        newest.write_bytes(newest.read_bytes()[:-5])
    elif damage == "foreign":
        newest.write_bytes(b"\x80\x04cos\nsystem\n(S'touch /tmp/owned'\ntR.")
    else:
        nats = stopped / "c" / "nats.npy"
        values = bytearray(nats.read_bytes())
        position = int(older.read_bytes().rpartition(b'position\\": ')[2].partition(b",")[0])
        values[128 + 8 * position + 3] ^= 1
        nats.write_bytes(values)
    with pytest.warns(PreqWarning, match="cannot be used: .*; trying an older one"):
        assert_same(start(stopped), undisturbed)
    assert_only_records(stopped)


def test_without_a_whole_checkpoint_the_stack_begins_anew_with_a_note(stopped: Path, undisturbed: list[Record]) -> None:
    for file in (stopped / "a.stack" / "checkpoints").iterdir():
        file.write_bytes(b"")
    with warnings.catch_warnings(record=True) as notes:
        warnings.simplefilter("always")
        assert_same(start(stopped), undisturbed)
    assert "is whole; the run begins" in str(notes[-1].message)
    assert_only_records(stopped)


def test_files_of_a_stranger_are_never_touched(tmp_path: Path) -> None:
    stranger = tmp_path / "a.stack" / "labels.npy"
    stranger.parent.mkdir()
    stranger.write_bytes(b"mine")
    discard_stack(tmp_path / "a")
    with pytest.raises(PreqError, match=r"a\.stack is where the state of the stack goes, and is not empty"):
        start(tmp_path)
    assert stranger.read_bytes() == b"mine"
    with pytest.raises(Interrupted):
        start(tmp_path / "other", stop_at=20)
    (tmp_path / "other" / "a.stack" / "mine").write_bytes(b"mine")
    start(tmp_path / "other")
    assert [file.name for file in (tmp_path / "other" / "a.stack").iterdir()] == ["mine"]


def test_a_stack_may_be_moved(stopped: Path, undisturbed: list[Record]) -> None:
    (stopped / "old").mkdir()
    for path in ("a", "b", "c", "a.stack"):
        (stopped / path).rename(stopped / "old" / path)
    with warnings.catch_warnings(action="error"):
        assert_same(start(stopped / "old"), undisturbed)


def crashes() -> Iterator[int]:
    """Operations from the beginning and from the end: the first checkpoints, the records, and cleaning up."""
    yield from [3, 13, 22, 100, 113]
    yield from [-65, -30, -13, -5, -1]


def test_a_crash_at_any_file_operation_loses_only_time(tmp_path: Path, undisturbed: list[Record]) -> None:
    total = 0

    def count(name: str, subject: object) -> None:
        nonlocal total
        total += 1

    with file_operations(count):
        start(tmp_path / "whole", resume=False)
    assert total > 200
    for crash_at in sorted(number % total for number in crashes()):
        seen = 0

        def crash(name: str, subject: object, crash_at: int = crash_at) -> None:
            nonlocal seen
            seen += 1
            if seen > crash_at:
                raise Crash

        folder = tmp_path / f"crash{crash_at}"
        with file_operations(crash), pytest.raises(Crash):
            start(folder, resume=False)
        with warnings.catch_warnings(action="error", category=PreqWarning):
            warnings.filterwarnings("ignore", ".*holds no checkpoint", PreqWarning)
            assert_same(start(folder), undisturbed)
        assert_only_records(folder)


def test_records_that_were_written_before_a_kill_stay(tmp_path: Path, undisturbed: list[Record]) -> None:
    real, written = Measured.cut, []

    def die(member: Measured) -> None:
        assert member.path is not None
        if member.path.name == "c":
            raise Crash
        written.append(member.path.name)
        real(member)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Measured, "cut", die)
        with pytest.raises(Crash):
            start(tmp_path)
    kept = {name: (tmp_path / name / "record.json").stat().st_mtime_ns for name in written}
    assert sorted(kept) == ["a", "b"]
    sizes: list[int] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RunDirectory, "clear", lambda _: sizes.append(len(list(stack_place(tmp_path / "a").iterdir()))))
        assert_same(start(tmp_path), undisturbed)
    assert sizes == [1]
    assert kept == {name: (tmp_path / name / "record.json").stat().st_mtime_ns for name in written}
    assert_same(start(tmp_path), undisturbed)
    assert_only_records(tmp_path)
