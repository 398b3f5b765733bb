"""Sweeps that share a study: no trial lost, none run twice, whoever dies."""

import contextlib
import itertools
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from optuna.study import Study
from optuna.trial import Trial
from sqlalchemy.exc import IntegrityError

import prequential as pq
from prequential.cli import main
from prequential.errors import PreqError
from prequential.report.runs import find_runs
from prequential.runs.signals import StopRequest
from prequential.sweeps import summarise
from prequential.sweeps.directory import set_aside
from prequential.sweeps.ledger import Ledger, attempts_that_count
from prequential.sweeps.sampling import draw_settings
from prequential.sweeps.storage import Pulse, open_study
from prequential.sweeps.trials import Outcome

from ..conftest import blobs
from ..laws.test_records import tiny
from ..processes import GATED, PATIENCE, Gate, start, start_preq, wait_for
from .test_sweep import FILE, METHOD, SPACE

GRACE = 8.0


class Machines:
    """Directories that share a study, and a clock that moves when told."""

    def __init__(self, url: str) -> None:
        self.url, self.now = url, 0.0
        self.all: list[Ledger] = []
        self.alive: list[Ledger] = []

    def begin(self, mark: str, num_trials: int) -> Ledger:
        ledger = ledger_of(self.url, "shared", mark, num_trials)
        self.all.append(ledger)
        self.alive.append(ledger)
        return ledger

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        for ledger in self.alive:
            assert ledger._pulse is not None
            ledger._pulse.beat()

    def sleep_long(self) -> None:
        for _ in range(10):
            self.sleep(GRACE / 8)


@pytest.fixture
def machines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machines]:
    them = Machines(url_of(tmp_path))
    monkeypatch.setattr(sys.modules["prequential.sweeps.storage"], "monotonic", lambda: them.now)
    monkeypatch.setattr(Pulse, "_go", lambda self: None)
    monkeypatch.setattr(sys.modules["prequential.sweeps.ledger"], "sleep", them.sleep)
    yield them
    for ledger in them.all:
        ledger.close()


def url_of(path: Path) -> str:
    return f"sqlite:///{path}/shared.db"


def ledger_of(url: str, name: str, mark: str, num_trials: int) -> Ledger:
    settings: dict[str, Any] = {"space": SPACE, "seed": 0, "sampler": "random", "grace_seconds": GRACE}
    return Ledger(url, name, mark=mark, num_trials=num_trials, **settings)


def numbers_of(trials: Any) -> list[int]:
    return [each.number for each in trials or ()]


def numbers(ledger: Ledger) -> list[int]:
    return [each.number for trials in iter(ledger.take, None) for each in trials]


def test_the_trials_of_a_dead_directory_are_taken_over_by_one_of_the_others(machines: Machines) -> None:
    dead, alive, one, other = (machines.begin(mark, 4) for mark in ("dead", "alive", "one", "other"))
    lost = [dead.take(), dead.take()]
    assert alive.take() is not None
    assert numbers(one) == [3]
    machines.alive.remove(dead)
    machines.sleep(GRACE / 8)
    assert [one.take(), other.take()] == [None, None]
    machines.sleep_long()
    assert [other.take(), one.take()] == lost  # the same settings and seed, shared among those who are there
    assert other.take() is None
    machines.sleep_long()
    assert [each.take() for each in (one, other, alive)] == [None] * 3  # "alive" has not finished, but is not dead
    assert not dead.settle(Outcome(0, "finished", value=1.0))  # it comes back too late
    for ledger, number in ((other, 0), (one, 1), (alive, 2), (one, 3)):
        assert ledger.settle(Outcome(number, "finished", value=float(number)))
    assert not dead.settle(Outcome(1, "failed", error="after its end"))
    found = attempts_that_count(open_study(machines.url, "shared", create=False), 4)
    assert {n: (each.value, each.state.name) for n, each in found.items()} == {n: (n, "COMPLETE") for n in range(4)}
    assert sorted(dead.taken_by_others()) == [0, 1, 2, 3]
    assert sorted(other.taken_by_others()) == [1, 2, 3]


def test_a_sweep_waits_for_what_others_run(machines: Machines) -> None:
    one, other = machines.begin("one", 2), machines.begin("other", 2)
    taken = one.take()
    assert numbers(other) == [1]
    other.settle(Outcome(1, "finished", value=1.0))
    machines.alive.remove(one)
    assert other.wait(StopRequest())
    assert machines.now > GRACE
    assert other.take() == taken
    other.settle(Outcome(0, "failed", error="no such width"))
    assert not other.wait(StopRequest())
    third = machines.begin("third", 2)
    machines.alive.remove(other)
    machines.sleep_long()
    assert not third.wait(StopRequest())  # a failed trial is run again by its own directory, if at all
    assert third.take() is None
    assert machines.begin("other", 2).take() == taken


def test_a_sweep_that_is_stopped_waits_no_longer(machines: Machines) -> None:
    one, other = machines.begin("one", 1), machines.begin("other", 1)
    assert one.take() is not None
    stop = StopRequest()
    stop.signal_number = 15
    assert not other.wait(stop)
    one.settle(Outcome(0, "stopped"))
    machines.alive.remove(one)
    assert other.wait(StopRequest())  # one does not come back for it


def test_a_trial_whose_worker_died_is_still_taken_over(machines: Machines) -> None:
    one, other = machines.begin("one", 1), machines.begin("other", 1)
    taken = one.take()
    one.settle(Outcome(0, "failed", error="its process died", died=True))
    machines.alive.remove(one)
    assert other.wait(StopRequest())
    assert other.take() == taken


def test_a_trial_whose_taker_was_killed_before_it_could_sign_is_taken_over(machines: Machines) -> None:
    one, other = machines.begin("one", 2), machines.begin("other", 2)
    one._study.enqueue_trial({}, user_attrs={"number": 0})
    one._study.ask()
    assert numbers(one) == [1]
    assert other.take() is None
    assert other.wait(StopRequest())
    assert numbers(other) == [0]


def test_one_who_was_away_himself_takes_nobody_for_dead(machines: Machines) -> None:
    mine, other = machines.begin("mine", 1), machines.begin("other", 1)
    assert other.take() is not None
    machines.alive.remove(other)
    machines.sleep(GRACE / 8)
    machines.sleep(10 * GRACE)  # the database, or this machine, was away for long
    assert mine.take() is None
    machines.sleep_long()
    assert mine.take() is not None


def test_what_a_longer_sweep_has_queued_is_not_lost_to_a_shorter_one(machines: Machines) -> None:
    one, other = machines.begin("one", 1), machines.begin("other", 3)
    other._study.enqueue_trial({}, user_attrs={"number": 2})
    assert numbers(one) == [0]
    assert numbers(other) == [1, 2]


def test_what_one_has_queued_who_was_killed_then_is_taken_by_another(machines: Machines) -> None:
    one, other = machines.begin("one", 2), machines.begin("other", 2)
    one._study.enqueue_trial({"learning_rate": 0.01, "num_streams": 2}, user_attrs={"number": 0})
    machines.alive.remove(one)
    assert sorted(numbers(other)) == [0, 1]


def test_of_several_that_queue_the_same_trial_at_once_one_runs_it(machines: Machines) -> None:
    one, other = machines.begin("one", 3), machines.begin("other", 3)
    assert numbers_of(one.take()) == [0]
    other._study.enqueue_trial({}, user_attrs={"number": 0})  # as by one who has not seen it
    assert [numbers_of(other.take()) for _ in range(3)] == [[1], [2], []]
    assert one.settle(Outcome(0, "finished", value=1.0))


def test_one_who_is_overtaken_takes_another_trial(machines: Machines, monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = machines.begin("one", 2), machines.begin("other", 2)
    taken, ask = list[Any](), one._study.ask

    def be_overtaken() -> Any:
        if not taken:
            taken.extend(other.take() or ())
        return ask()

    monkeypatch.setattr(one._study, "ask", be_overtaken)
    for each in (one, other):
        monkeypatch.setattr(each, "_turn", contextlib.nullcontext())  # as in a database that locks rows
    assert numbers_of(one.take()) == [1]
    assert numbers_of(taken) == [0]
    assert [one.take(), other.take()] == [None, None]


def test_one_that_is_killed_at_any_write_goes_on_with_the_same_trials(tmp_path: Path) -> None:
    def run_all(ledger: Ledger) -> dict[int, Any]:
        settings = {}
        for (trial,) in iter(ledger.take, None):
            settings[trial.number] = trial.settings
            assert ledger.settle(Outcome(trial.number, "finished", value=float(trial.number)))
        return settings

    def dying_at(step: int) -> pytest.MonkeyPatch:
        patch, calls = pytest.MonkeyPatch(), itertools.count(1)

        def replace(kind: type, name: str) -> None:
            really = getattr(kind, name)

            def call(*arguments: Any, **more: Any) -> Any:
                result = really(*arguments, **more)
                if next(calls) == step:
                    raise KeyboardInterrupt
                return result

            patch.setattr(kind, name, call)

        for name in ("add_trial", "ask", "tell"):
            replace(Study, name)
        replace(Trial, "set_user_attr")
        return patch

    given: dict[str, Any] = {"space": SPACE, "seed": 0, "sampler": "random", "mark": "me", "num_trials": 2}
    for step in range(1, 11):  # a trial is queued, asked for, signed, given a result and ended
        patch = dying_at(step)
        with pytest.raises(KeyboardInterrupt):
            run_all(Ledger(url_of(tmp_path), f"{step}", **given))
        patch.undo()
        settings = run_all(Ledger(url_of(tmp_path), f"{step}", **given))
        assert settings.items() <= {n: draw_settings(SPACE, 0, n) for n in range(2)}.items()
        found = attempts_that_count(open_study(url_of(tmp_path), f"{step}", create=False), 2)
        assert {n: (each.value, each.state.name) for n, each in found.items()} == {n: (n, "COMPLETE") for n in range(2)}
        assert {n: each.params for n, each in found.items()} == {n: draw_settings(SPACE, 0, n) for n in range(2)}


def test_a_run_that_others_have_taken_over_does_not_count_here(tmp_path: Path) -> None:
    arguments: dict[str, Any] = {"space": SPACE, "trials": 2, "seed": 0, "out": tmp_path / "s"}
    storage = url_of(tmp_path)

    def sweep() -> Any:
        return pq.sweep(tiny, blobs(32), METHOD, **arguments, storage=storage, resume=True, grace_seconds=GRACE)

    pq.sweep(tiny, blobs(32), METHOD, **arguments | {"trials": 1}, storage=storage)
    shutil.copytree(tmp_path / "s/trials/00000", tmp_path / "s/trials/00001")  # as if it had been begun here
    name = json.loads((tmp_path / "s/sweep.json").read_text())["study"]
    another = ledger_of(storage, name, "another", 2)
    assert numbers(another) == [1]
    another.settle(Outcome(1, "finished", value=1.0))
    another.close()
    assert [trial.path is None for trial in sweep().trials] == [False, True]
    assert [run.name for run in find_runs([tmp_path / "s"])] == ["00000"]
    set_aside(tmp_path / "s", 1)  # twice does no harm
    with pytest.raises(PreqError, match="grace_seconds must be a number above 0, got 0"):
        pq.sweep(tiny, blobs(32), METHOD, **arguments | {"out": tmp_path / "t"}, storage=storage, grace_seconds=0)


@pytest.mark.usefixtures("_time_passes_by_waiting")
def test_a_sweep_ends_when_all_trials_are_over_also_those_of_the_dead(tmp_path: Path) -> None:
    arguments: dict[str, Any] = {"space": SPACE, "seed": 0, "out": tmp_path / "s", "storage": url_of(tmp_path)}
    pq.sweep(tiny, blobs(32), METHOD, **arguments, trials=1)
    name = json.loads((tmp_path / "s/sweep.json").read_text())["study"]
    dead = ledger_of(url_of(tmp_path), name, "dead", 2)
    assert numbers(dead) == [1]
    dead.close()
    summary = pq.sweep(tiny, blobs(32), METHOD, **arguments, trials=2, resume=True, grace_seconds=GRACE)
    assert summary.counts["finished"] == 2
    assert (tmp_path / "s/trials/00001/record.json").exists()


def test_tables_that_others_have_just_made_are_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module, failures = sys.modules["prequential.sweeps.storage"], list[Exception]()
    failures += [IntegrityError("INSERT", {}, Exception("pg_type")), RuntimeError("table studies already exists")]
    really = module._open_storage

    def storage(url: str) -> Any:
        if failures:
            raise failures.pop()
        return really(url)

    monkeypatch.setattr(module, "_open_storage", storage)
    assert open_study(url_of(tmp_path), "shared", create=True).trials == []
    failures.append(RuntimeError("no such host"))
    with pytest.raises(PreqError, match=r"cannot be used \(RuntimeError: no such host\)"):
        open_study(url_of(tmp_path), "shared", create=True)
    failures.append(ModuleNotFoundError("No module named 'psycopg'"))
    with pytest.raises(PreqError, match=r"its driver is not installed; pip install 'prequential\[postgres\]'"):
        open_study(url_of(tmp_path), "shared", create=True)


TAKER = """
import sys
from prequential.sweeps import Between
from prequential.sweeps.ledger import Ledger
ledger = Ledger(sys.argv[1], "x", space={"eps": Between(0, 1)}, seed=0, sampler="random", mark=sys.argv[2],
    num_trials=30, grace_seconds=1e6)
print(*(trials[0].number for trials in iter(ledger.take, None)))
ledger.close()
"""


def take_at_once(url: str) -> None:
    """Three processes begin at once; each trial must be taken once."""
    line = [sys.executable, "-c", TAKER, url]
    takers = [start([*line, mark], stdout=subprocess.PIPE, text=True) for mark in "abc"]
    taken = [int(number) for taker in takers for number in taker.communicate(timeout=PATIENCE)[0].split()]
    assert sorted(taken) == list(range(30))


def test_processes_that_begin_at_once_take_each_trial_once(tmp_path: Path) -> None:
    take_at_once(url_of(tmp_path))


def command(tmp_path: Path, *more: str) -> list[str]:
    (tmp_path / "mine.py").write_text(FILE)
    flags = f"sweep mnist {GATED} --width 0.1 --length 384 --space {tmp_path}/mine.py:space --trials 4"
    return [*flags.split(), "--checkpoint-seconds", "0", *more]


def assert_shared_fairly(tmp_path: Path, outs: list[Path], url: str) -> None:
    """Every trial is over once, in one of the directories, and is what it would have been alone."""
    assert main(command(tmp_path, "--out", str(tmp_path / "undisturbed"))) == 0
    alone = summarise(tmp_path / "undisturbed")
    for out in outs:
        assert [(trial.number, trial.status) for trial in summarise(out, url).trials] == [
            (trial.number, "finished") for trial in alone.trials
        ]
        assert [trial.settings for trial in summarise(out, url).trials] == [trial.settings for trial in alone.trials]
    runs = [run for run in find_runs(outs) if pq.load(run).status == "finished"]
    assert sorted(run.name for run in runs) == [f"{k:05d}" for k in range(4)]
    for run in runs:
        assert pq.load(run).nats.tobytes() == pq.load(tmp_path / "undisturbed/trials" / run.name).nats.tobytes()


def kill_one_of_two(tmp_path: Path, url: str) -> None:
    """Two sweeps on one study; the first to stand in the middle of a trial is killed and never comes back."""
    outs, gate = [tmp_path / "one", tmp_path / "other"], Gate(tmp_path / "gate", step=40)
    shared = ["--storage", url, "--grace-seconds", "3", "--json"]
    sweeps = [start_preq(command(tmp_path, *shared, "--out", str(out)), gate.environment) for out in outs]
    killed = [sweep.pid for sweep in sweeps].index(wait_for(lambda: gate.waiting, *sweeps)[0])
    assert list(outs[killed].glob("trials/*/checkpoints/*.safetensors"))
    sweeps[killed].kill()
    sweeps[killed].communicate()
    gate.open()
    told, said = sweeps[1 - killed].communicate(timeout=PATIENCE)
    assert said == ""
    assert (json.loads(told)["trials"], json.loads(told)["finished"]) == (4, 4)
    assert_shared_fairly(tmp_path, outs, url)


def test_the_other_one_finishes_what_a_killed_sweep_had_begun(tmp_path: Path) -> None:
    kill_one_of_two(tmp_path, url_of(tmp_path))
