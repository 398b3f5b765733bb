"""Sweeps: the same trials whatever happens to the processes, none lost, none twice, and what is said of them."""

import json
import math
import multiprocessing
import shutil
import signal
import sys
import warnings
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import optuna
import pytest
from torch import nn

import prequential as pq
from prequential.cli import main
from prequential.cli.sweep_table import print_summary
from prequential.errors import PreqError
from prequential.lock import DirectoryLock
from prequential.methods.joint import Joint
from prequential.plan import Plan
from prequential.runs.progress import Progress, Pruned
from prequential.runs.record import Record
from prequential.runs.signals import StopRequest
from prequential.settings import settings_of
from prequential.sweeps import Between, Choice, LogUniform, SweepInterrupted, SweepProgress, summarise
from prequential.sweeps.address import storage_url, without_password
from prequential.sweeps.directory import SweepFile
from prequential.sweeps.execute import Processes, _Worker
from prequential.sweeps.ledger import Ledger, attempts_that_count
from prequential.sweeps.pruning import ByRegret, is_hopeless, note_best
from prequential.sweeps.sampling import draw_settings
from prequential.sweeps.spaces import Resolved
from prequential.sweeps.storage import open_study
from prequential.sweeps.trials import Outcome, Trial, TrialRunner, Work

from ..conftest import blobs
from ..laws.test_records import tiny
from ..processes import GATED, PATIENCE, Gate, start_preq, wait_for

METHOD = pq.ReplayStreams(num_streams=2, batch_size=8)
SPACE: dict[str, Any] = {"learning_rate": LogUniform(1e-3, 1e-1), "num_streams": LogUniform(1, 3, whole=True)}
LENGTH = 64
FILE = """
from prequential.sweeps import Choice, LogUniform
space = {"num_streams": LogUniform(10, 14, whole=True), "learning_rate": LogUniform(1e-4, 1e-1), "batch_size": 8}
"""


def do(out: Path, **changes: Any) -> Any:
    """A sweep of three small trials."""
    arguments: dict[str, Any] = {"space": SPACE, "trials": 3, "seed": 0, "out": out}
    return pq.sweep(tiny, blobs(LENGTH), METHOD, **arguments | changes)


def study_of(directory: Path) -> Any:
    name = json.loads((directory / "sweep.json").read_text())["study"]
    return open_study(storage_url(directory, None), name, create=False)


def attempts_of(directory: Path) -> list[Any]:
    """What the study has of each trial."""
    return list(attempts_that_count(study_of(directory), 1000).values())


def assert_same_trials(one: Path, other: Path, number: int) -> None:
    for k in range(number):
        mine, theirs = pq.load(one / f"trials/{k:05d}"), pq.load(other / f"trials/{k:05d}")
        assert mine.nats.tobytes() == theirs.nats.tobytes()
        assert (mine.recipe, mine.method, mine.seeds) == (theirs.recipe, theirs.method, theirs.seeds)


def test_workers_report_to_optunas_pruners(tmp_path: Path) -> None:
    space = {"learning_rate": Choice((1e-2, 10.0)), "num_streams": 1}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        summary = pq.sweep(
            "mlp1", blobs(256), METHOD, space=space, trials=4, seed=0, out=tmp_path / "s", prune="median", jobs=2
        )
    assert summary.counts["finished"] + summary.counts["pruned"] == 4
    assert all(attempt.intermediate_values for attempt in attempts_of(tmp_path / "s"))


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five trials, run without a disturbance; tests only look."""
    out = tmp_path_factory.mktemp("sweep") / "s"
    do(out, trials=5)
    return out


def test_a_sweep_gives_run_directories_a_study_and_a_summary(finished: Path) -> None:
    summary = summarise(finished)
    assert summary.counts == dict.fromkeys(summary.counts, 0) | {"finished": 5}
    records = [pq.load(finished / f"trials/{k:05d}") for k in range(5)]
    assert len({record.recipe["learning_rate"] for record in records}) == 5
    assert len({record.seeds["seed"] for record in records}) == 5
    for trial, record, told in zip(summary.trials, records, study_of(finished).trials, strict=True):
        assert trial.codelength == record.codelength == told.value
        assert trial.settings["learning_rate"] == record.recipe["learning_rate"]
        assert trial.settings["num_streams"] == record.method["num_streams"]
        assert (trial.flops, trial.heldout, trial.seconds) == (
            (record.flops or {})["code"], record.heldout, record.seconds,
        )  # fmt: skip
    assert summary.best is not None
    assert summary.best.codelength == min(record.codelength or math.inf for record in records)
    assert summary.choice_nats == math.log(5)
    assert summary.interval is not None
    assert summary.interval[0] == summary.best.codelength <= summary.interval[1]
    assert [record.codelength for record in summary.records()] == [trial.codelength for trial in summary.ranked]
    assert summary.importance is None


def test_a_longer_sweep_begins_with_the_trials_of_a_shorter_one(tmp_path: Path, finished: Path) -> None:
    do(tmp_path / "s", trials=2)
    before = (tmp_path / "s/trials/00001/record.json").stat().st_mtime_ns
    told: list[SweepProgress] = []
    summary = do(tmp_path / "s", trials=5, resume=True, listeners=[told.append])
    assert [(each.done, each.trials) for each in told] == [(2, 5), (3, 5), (4, 5), (5, 5)]
    assert told[-1].best == summary.best.codelength
    assert (tmp_path / "s/trials/00001/record.json").stat().st_mtime_ns == before
    assert_same_trials(tmp_path / "s", finished, 5)


def test_a_lost_study_is_found_again_in_the_run_directories(tmp_path: Path, finished: Path) -> None:
    do(tmp_path / "s")
    before = (tmp_path / "s/trials/00002/record.json").stat().st_mtime_ns
    (tmp_path / "s/study.db").unlink()
    with pytest.raises(PreqError, match="has lost its study"):
        summarise(tmp_path / "s")
    assert do(tmp_path / "s", resume=True).counts["finished"] == 3
    assert (tmp_path / "s/trials/00002/record.json").stat().st_mtime_ns == before


def test_other_settings_and_other_directories_are_refused(tmp_path: Path, finished: Path) -> None:
    changes: list[tuple[dict[str, Any], str]] = [
        ({"resume": False}, "already holds a sweep; choose another directory, or resume it"),
        ({"seed": 1}, "settings differ from the sweep in .*: seed 0 then, 1 now"),
        ({"space": SPACE | {"eps": 1.0}}, "space.eps None then, 1.0 now"),
        ({"sampler": "tpe"}, "sampler random then, tpe now"),
        ({"prune": "regret"}, "prune None then, regret now"),
        ({"recipe": pq.Recipe(eps=0.5)}, "recipe.eps 0.0001 then, 0.5 now"),
        ({"sampler": "tpf"}, "unknown sampler 'tpf'; did you mean 'tpe'"),
        ({"trials": 0}, "trials must be a whole number of at least 1, got 0"),
        ({"stack": 4, "prune": "regret"}, "a stack runs its trials to their end"),
    ]
    for change, complaint in changes:
        with pytest.raises(PreqError, match=complaint):
            do(finished, **{"resume": True, "trials": 5} | change)
    (tmp_path / "mine.txt").touch()
    with pytest.raises(PreqError, match=r"is not empty \(it has mine.txt\)"):
        do(tmp_path)
    with pytest.raises(PreqError, match="erm has no codelength to prune by"):
        pq.sweep(tiny, blobs(LENGTH), pq.FullDataset(), space=SPACE, seed=0, out=tmp_path / "e", prune="regret")


def test_a_new_sweep_with_a_mistake_leaves_a_directory_that_can_be_used(tmp_path: Path) -> None:
    def no_model(input_shape: tuple[int, ...], num_classes: int) -> nn.Module:
        raise PreqError("there is no such model")

    arguments: dict[str, Any] = {
        "make_model": tiny, "data": blobs(LENGTH), "method": METHOD, "space": SPACE, "trials": 2, "seed": 0,
        "out": tmp_path / "s",
    }  # fmt: skip
    mistakes: list[tuple[dict[str, Any], str]] = [
        ({"make_model": no_model}, "there is no such model"),
        ({"storage": "nothing://at.all"}, "the storage nothing://at.all cannot be used"),
        ({"space": {"learning_rate": (1e-3, 1e-1), "eps": LogUniform(1e-4, 1.0)}}, "cannot be used: learning_rate"),
        ({"space": {"label_smoothing": Between(0, 2)}, "trials": 9}, "below 1, got 1.*; so trial . would draw it"),
    ]
    for change, complaint in mistakes:
        with pytest.raises(PreqError, match=complaint):
            pq.sweep(**arguments | change)
        assert not (tmp_path / "s/sweep.json").exists()
    do(tmp_path / "s", trials=2)
    with pytest.raises(PreqError, match="already holds a sweep"):
        do(tmp_path / "s", trials=2)
    assert summarise(tmp_path / "s").counts["finished"] == 2  # the mistake of beginning twice takes nothing back


def test_a_mistake_that_is_made_again_and_again_costs_no_trial(tmp_path: Path) -> None:
    BROKEN.clear()
    arguments: dict[str, Any] = {
        "space": {"width": Choice((1.0, 2.0))}, "trials": 2, "seed": 1, "out": tmp_path / "s", "resume": True,
    }  # fmt: skip

    def stop(progress: SweepProgress) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):  # so that it has begun
        pq.sweep(fragile, blobs(LENGTH), METHOD, **arguments, listeners=[stop])
    BROKEN.update({1.0, 2.0})
    for _ in range(4):
        with pytest.raises(PreqError, match="no such width today"):
            pq.sweep(fragile, blobs(LENGTH), METHOD, **arguments)
    BROKEN.clear()
    assert pq.sweep(fragile, blobs(LENGTH), METHOD, **arguments).counts["finished"] == 2


@pytest.mark.usefixtures("_time_passes_by_waiting")
def test_one_that_joins_with_a_mistake_fails_no_trial_of_the_others(tmp_path: Path) -> None:
    def joined(out: str, trials: int) -> Any:
        url = f"sqlite:///{tmp_path}/shared.db"
        space: dict[str, Any] = {"width": Choice((1.0, 2.0))}
        more: dict[str, Any] = {"trials": trials, "seed": 1, "storage": url, "grace_seconds": 8.0, "resume": True}
        return pq.sweep(fragile, blobs(LENGTH), METHOD, space=space, out=tmp_path / out, **more)

    BROKEN.clear()
    joined("one", 1)
    BROKEN.update({1.0, 2.0})
    with pytest.raises(PreqError, match="no such width today"):
        joined("other", 3)
    BROKEN.clear()
    assert joined("one", 3).counts["finished"] == 3


def test_each_directory_prunes_by_the_best_it_has(tmp_path: Path) -> None:
    space: dict[str, Any] = {"learning_rate": Choice((1e-2, 10.0))}
    good_then_bad = [{"learning_rate": 1e-2}, {"learning_rate": 10.0}]
    seed = next(seed for seed in range(99) if [draw_settings(space, seed, n) for n in (0, 1)] == good_then_bad)
    more: dict[str, Any] = {"space": space, "seed": seed, "storage": f"sqlite:///{tmp_path}/x.db", "prune": "regret"}
    do(tmp_path / "one", trials=1, **more)
    summary = do(tmp_path / "other", trials=2, **more)
    assert summary.best.number == 0  # it is in the other directory
    assert json.loads((tmp_path / "other/best.json").read_text()) == {"number": 1}


def test_a_storage_that_fails_on_the_way_is_told_in_one_line(tmp_path: Path) -> None:
    def spoil(progress: SweepProgress) -> None:
        if progress.done == 1:
            (tmp_path / "s/study.db").write_bytes(b"no longer a database " * 400)

    with pytest.raises(PreqError, match=r"study.db can no longer be used \(.*\); trials that have run are kept"):
        do(tmp_path / "s", listeners=[spoil])
    (tmp_path / "s/study.db").unlink()
    assert do(tmp_path / "s", resume=True).counts["finished"] == 3


def test_a_directory_may_have_any_name(tmp_path: Path) -> None:
    out = tmp_path / "what? 100%20 #1"
    assert do(out, trials=1).counts["finished"] == 1
    assert (out / "study.db").exists()
    assert [path.name for path in tmp_path.iterdir()] == [out.name]


def test_samplers_that_learn_from_trials_cannot_draw_stacks(tmp_path: Path) -> None:
    with pytest.raises(PreqError, match="a stack draws its trials before any has run, and tpe learns from them"):
        do(tmp_path / "s", sampler="tpe", stack=2)
    with pytest.raises(PreqError, match="a stack has an engine of its own, and 'eager' was asked for"):
        do(tmp_path / "s", execution=pq.Execution(engine="eager"), stack=2)


def test_stacks_have_every_optimizer_each_by_itself(tmp_path: Path) -> None:
    space = SPACE | {"optimizer": Choice(("sgd", "muon"))}
    found = do(tmp_path / "s", space=space, trials=6, stack=6)
    assert found.counts["finished"] == 6
    assert {trial.settings["optimizer"] for trial in found.trials} == {"sgd", "muon"}


def test_a_diverged_trial_is_a_result(tmp_path: Path) -> None:
    space = {"optimizer": "sgd", "learning_rate": Choice((1e-2, 1e30))}
    summary = do(tmp_path / "s", space=space, trials=4)
    assert summary.counts["diverged"] > 0
    assert summary.counts["diverged"] + summary.counts["finished"] == 4
    for trial in summary.trials:
        assert (trial.codelength == math.inf) == (trial.settings["learning_rate"] == 1e30)
    assert summary.best.settings["learning_rate"] == 1e-2


BROKEN: set[float] = set()


def fragile(input_shape: tuple[int, ...], num_classes: int, width: float) -> nn.Module:
    if width in BROKEN:
        raise RuntimeError("no such width today")
    return tiny(input_shape, num_classes)


def test_a_failed_trial_is_told_and_run_again_a_few_times(tmp_path: Path) -> None:
    def again() -> Any:
        space = {"width": Choice((1.0, 2.0))}
        return pq.sweep(
            fragile, blobs(LENGTH), METHOD, space=space, trials=4, seed=1, out=tmp_path / "s", resume=True
        )  # fmt: skip

    BROKEN.update({1.0, 2.0})
    with pytest.raises(PreqError, match="no such width today"):
        again()  # wrong for the first is wrong for all
    BROKEN.clear()
    BROKEN.add(2.0)
    summary = again()
    widths = [trial.settings["width"] for trial in summary.trials]
    assert [trial.status for trial in summary.trials] == ["failed" if w == 2.0 else "finished" for w in widths]
    assert set(widths) == {1.0, 2.0}
    assert "no such width today" in next(trial.error for trial in summary.trials if trial.error)
    BROKEN.clear()
    assert again().counts["finished"] == 4
    BROKEN.add(2.0)
    (tmp_path / "s").rename(tmp_path / "old")
    for _ in range(4):
        summary = again()
    failed = [trial for trial in attempts_of(tmp_path / "s") if trial.state.name == "FAIL"]
    assert [trial.user_attrs["failures"] for trial in failed] == [3] * summary.counts["failed"]


@pytest.fixture
def _pause_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("prequential.runs.recorder.SECONDS_BETWEEN_PAUSES", 0.0)


@pytest.mark.usefixtures("_pause_often")
@pytest.mark.parametrize("rule", ["regret", "regret:0.1"])
def test_pruning_by_regret_keeps_the_prefix_and_the_best(tmp_path: Path, rule: str) -> None:
    space = {"learning_rate": Choice((1e-2, 10.0)), "seed": Choice((1, 2))}
    whole, pruned = do(tmp_path / "whole", space=space, trials=6), do(tmp_path / "s", space=space, trials=6, prune=rule)
    assert pruned.best == replace(whole.best, path=pruned.best.path, seconds=pruned.best.seconds)
    stopped = [trial for trial in pruned.trials if trial.status == "pruned"]
    assert stopped
    for trial in stopped:
        record, undisturbed = pq.load(trial.path), pq.load(tmp_path / f"whole/trials/{trial.number:05d}")
        assert 0 < len(record.nats) == trial.positions < LENGTH
        assert (record.nats == undisturbed.nats[: len(record.nats)]).all()
        assert record.status == "pruned"
        assert not (trial.path / "checkpoints").exists()
        assert 0 < trial.trained_share < 1
        finished = [pq.load(t.path) for t in pruned.trials[: trial.number] if t.status == "finished"]
        curve = np.cumsum(min(finished, key=lambda record: record.codelength or math.inf).nats)
        factor = 0.1 if ":" in rule else 1.0
        assert is_hopeless(float(record.nats.sum()), len(record.nats), curve, factor)
        before = len(record.nats) - METHOD.batch_size
        assert before == 0 or not is_hopeless(float(record.nats[:before].sum()), before, curve, factor)
    assert 0 < pruned.saved["share"] < 1
    assert do(tmp_path / "s", space=space, trials=6, prune=rule, resume=True).trials == pruned.trials


def test_a_trial_is_compared_with_the_best_of_the_moment(tmp_path: Path, finished: Path) -> None:
    (tmp_path / "trials").symlink_to(finished / "trials")
    listener = ByRegret(tmp_path, factor=0.0)
    reached = {path: float(pq.load(path).nats[:32].sum()) for path in (finished / "trials").iterdir()}
    for path in sorted(reached, key=lambda path: -reached[path]):
        progress = Progress(32, LENGTH, reached[path] + 1e-9, 0, 0, 0.0)
        listener(progress)  # ahead of everything noted so far
        note_best(tmp_path, int(path.name))
        with pytest.raises(Pruned):
            listener(progress)


@pytest.mark.usefixtures("_pause_often")
def test_a_listener_may_end_a_run_for_good(tmp_path: Path) -> None:
    def end(progress: Progress) -> None:
        if progress.position >= 32:
            raise Pruned

    for out in (None, tmp_path / "run"):
        record = pq.run(tiny, blobs(LENGTH), METHOD, seed=0, out=out, checkpoint_seconds=0, listeners=[end])
        assert (record.status, len(record.nats)) == ("pruned", 32)
        assert record.flops is not None
    assert pq.run(tiny, blobs(LENGTH), METHOD, seed=0, out=tmp_path / "run", resume=True).status == "pruned"


@pytest.mark.usefixtures("_pause_often")
def test_the_share_of_a_pruned_trial_counts_what_experts_of_a_joint_plan_trained_on(tmp_path: Path) -> None:
    def end(progress: Progress) -> None:
        if progress.position >= 32:
            raise Pruned

    other = pq.ReplayStreams(num_streams=1, batch_size=8)
    experts = pq.Experts([tiny, pq.Expert(tiny, method=other)], "bayes")
    work = Work(experts, blobs(LENGTH), Resolved(METHOD, pq.Recipe(), 1.0, 0), tmp_path, {})
    whole = Plan(Joint((METHOD, other)), LENGTH, 0, heldout=True).counts().trained_examples
    assert whole == LENGTH * (3 + 2)
    (first,), (again,) = (TrialRunner(work)([Trial(0, {}, seed=0)], listeners=[end]) for _ in range(2))
    assert first.status == again.status == "pruned"
    assert first.trained_share == again.trained_share == (32 - 8) * (3 + 2) / whole


@pytest.mark.usefixtures("_pause_often")
def test_optunas_pruners_hear_the_codelength_at_the_same_prefixes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules["prequential.sweeps.pruning"], "NUM_REPORTS", 16)
    space = {"learning_rate": Choice((1e-2, 10.0)), "seed": Choice((1, 2, 3))}
    summary = do(tmp_path / "s", space=space, trials=9, prune="median")
    assert summary.counts["pruned"] + summary.counts["finished"] == 9
    assert summary.counts["pruned"] > 0
    for told in study_of(tmp_path / "s").trials:
        nats = np.cumsum(pq.load(tmp_path / f"s/trials/{told.number:05d}").nats)
        assert told.intermediate_values == {step: nats[step - 1] for step in told.intermediate_values}
        if told.state.name == "COMPLETE":
            assert sorted(told.intermediate_values) == list(range(4, LENGTH, 4))


def test_other_samplers_go_on_where_they_were(tmp_path: Path) -> None:
    first = do(tmp_path / "s", sampler="tpe", trials=3)
    both = do(tmp_path / "s", sampler="tpe", trials=5, resume=True)
    assert both.trials[:3] == first.trials
    assert len({trial.settings["learning_rate"] for trial in both.trials}) == 5
    assert [trial.status for trial in both.trials] == ["finished"] * 5


def test_trials_without_a_codelength_are_ordered_by_held_out_loss(tmp_path: Path, capsys: Any) -> None:
    summary = pq.sweep(tiny, blobs(LENGTH), pq.FullDataset(epochs=1), space=SPACE, trials=2, seed=0, out=tmp_path / "s")
    losses = [(trial.heldout or {})["loss"] for trial in summary.ranked]
    assert losses == sorted(losses)
    assert summary.interval is None
    assert main(["sweep", "show", str(tmp_path / "s")]) == 0
    assert "ordered by their loss on held-out data" in capsys.readouterr().out
    space = {"optimizer": "sgd", "learning_rate": Choice((1e30, 1e31))}
    lost = pq.sweep(tiny, blobs(LENGTH), pq.FullDataset(), space=space, trials=2, seed=0, out=tmp_path / "lost")
    assert lost.counts["diverged"] == 2
    assert lost.best is None


def test_trials_that_agree_are_handed_over_as_stacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    def run_stack(make_model: Any, data: Any, method: Any, recipes: Any, *, seeds: Any, out: Any, **more: Any) -> Any:
        assert len(seeds) == len(out) == len(recipes) <= 2
        assert more == {
            "width": 1.0, "plan_seed": 0, "device": "cpu", "execution": pq.Execution(), "resume": True,
            "listeners": more["listeners"], "listeners_of_each": [[]] * len(seeds), "checkpoint_seconds": 60.0,
            "threads": 1,
        }  # fmt: skip
        seen.append(len(recipes))
        parts = zip(recipes, seeds, out, strict=True)
        records: list[Record] = [pq.run(make_model, data, method, r, seed=s).save(path) for r, s, path in parts]
        return records

    monkeypatch.setattr("prequential.runs.run.run_stack", run_stack)
    space = SPACE | {"num_streams": LogUniform(1, 40, whole=True)}
    summary = do(tmp_path / "s", space=space, trials=5, stack=2, grid=2)
    assert summary.counts["finished"] == sum(seen) == 5
    assert {trial.settings["num_streams"] for trial in summary.trials} <= {1, 40}
    assert max(seen) == 2
    (tmp_path / "s/study.db").unlink()
    (tmp_path / "s/trials/00003/record.json").unlink()
    again = do(tmp_path / "s", space=space, trials=5, stack=2, grid=2, resume=True)
    assert sum(seen) == 6  # only the one whose record was lost
    assert [trial.codelength for trial in again.trials] == [trial.codelength for trial in summary.trials]


def trials_of(url: str, mark: str, num_trials: int) -> Ledger:
    settings: dict[str, Any] = {"space": SPACE, "seed": 0, "sampler": "random", "grace_seconds": 1e6}
    return Ledger(url, "shared", mark=mark, num_trials=num_trials, **settings)


def test_directories_that_share_a_study_share_its_trials(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/shared.db"
    one, other = trials_of(url, "one", 6), trials_of(url, "other", 6)
    taken = [each.take() for each in (one, other, one, other)]
    numbers = [trials[0].number for trials in taken if trials]
    assert sorted(numbers) == [0, 1, 2, 3]
    one.settle(Outcome(numbers[0], "finished", value=3.0))
    other.settle(Outcome(numbers[1], "failed", error="its process died", died=True))
    one.close()
    resumed = trials_of(url, "one", 6)
    left = [trials[0].number for trials in iter(resumed.take, None)]
    assert left == [numbers[2], 4, 5]
    assert other.take() == taken[1]  # a trial whose process died is run again
    assert other.take() is None
    resumed.close()
    other.close()


def test_a_password_is_written_nowhere(tmp_path: Path) -> None:
    url = "postgresql://me:secret@nowhere.invalid/sweeps"
    with pytest.raises(PreqError, match=r"the storage postgresql://me@nowhere.invalid/sweeps cannot be used") as caught:
        do(tmp_path / "s", storage=url)
    assert "secret" not in str(caught.value)
    SweepFile.begin(tmp_path / "s", {"model": "m", "method": {}}, trials=1, resume=False, storage=url)
    assert "secret" not in (tmp_path / "s/sweep.json").read_text()
    assert without_password("sqlite:///a.db") == "sqlite:///a.db"
    assert without_password("mysql://h/d?password=secret&charset=utf8") == "mysql://h/d?charset=utf8"


def test_show_prints_a_table_or_one_object(finished: Path, capsys: Any) -> None:
    assert main(["sweep", "show", str(finished), "--top", "2"]) == 0
    printed = capsys.readouterr().out
    words_of_each_line = (
        "5 trials: 5 finished",
        "bootstrap 95 % interval of the best",
        "nats (one-sided: none of its samples can be below the best found)",
        "importance: not told by fewer than 16 finished trials (here 5)",
        "of choosing",
        "FLOPs",
    )
    for words in ("nats + ln n", "streams", "record of the best", *words_of_each_line):
        assert words in " ".join(printed.split())
    assert max(len(line) for line in printed.splitlines() if not line.startswith("record of")) <= 80
    assert main(["sweep", "show", str(finished), "--top", "2", "--json"]) == 0
    told, summary = json.loads(capsys.readouterr().out), summarise(finished)
    assert len(told["best"]) == 2
    assert summary.best is not None
    assert told["codelength_nats"] == told["best"][0]["codelength_nats"] == summary.best.codelength
    assert told["total_nats"] == pytest.approx(told["codelength_nats"] + math.log(5))
    assert main(["sweep", "show", str(finished.parent)]) == 2
    assert "holds no sweep" in capsys.readouterr().err
    assert main(["sweep", "show", str(finished), "--top", "-1"]) == 2
    assert "--top must be a whole number of at least 1, got -1" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("method", "head"),
    [
        (pq.ReplayStreams(), "streams"),
        (pq.ReplayBuffer(), "replays"),
        (pq.ChunksFromScratch(), "epochs"),
        (pq.ChunksFineTuned(), "epochs"),
        (pq.FullDataset(), "epochs"),
    ],
    ids=lambda each: getattr(each, "name", each),
)
def test_passes_over_the_past_are_called_as_the_method_has_them(
    finished: Path, capsys: Any, method: Any, head: str
) -> None:
    summary = summarise(finished)
    shares = {"num_streams": 0.8, "learning_rate": 0.1}
    print_summary(replace(summary, facts={**summary.facts, "method": settings_of(method)}, importance=shares), 2)
    table, _, said = capsys.readouterr().out.partition("trials:")
    importance = next(line for line in said.splitlines() if line.startswith("importance:"))
    for name in ("streams", "replays", "epochs", "num_"):
        assert (name in table) == (name in importance) == (name == head)


def test_a_trial_whose_process_is_gone_has_died(finished: Path, tmp_path: Path, capsys: Any) -> None:
    shutil.copytree(finished, tmp_path / "s")
    summary = summarise(tmp_path / "s")
    running = [replace(trial, status="running") for trial in summary.trials[:2]]
    for trial in running:
        assert trial.path is not None
        record = pq.load(trial.path)
        shutil.rmtree(trial.path)
        replace(record, status="running", path=None).save(trial.path)
    assert running[0].path is not None
    assert running[1].path is not None
    with DirectoryLock(running[0].path):
        print_summary(replace(summary, trials=(*running, *summary.trials[2:])), 2)
        told = replace(summary, trials=(*running, *summary.trials[2:])).as_json(1)
        assert (told["finished"], told["running"], told["died"]) == (3, 1, 1)
    assert "5 trials: 3 finished, 1 running, 1 died\n" in capsys.readouterr().out
    (running[1].path / "record.json").unlink()  # killed before it had written one
    assert replace(summary, trials=(running[1],)).standing()["died"] == 1
    print_summary(replace(summary, trials=summary.trials[:1]), 2)
    assert "1 trial: 1 finished\n" in capsys.readouterr().out


def test_what_is_said_of_a_sweep_that_found_little(finished: Path, tmp_path: Path, capsys: Any) -> None:
    summary = summarise(finished)
    assert summary.best is not None
    pruned = [replace(trial, status="pruned", flops=None) for trial in summary.trials if trial != summary.best]
    print_summary(replace(summary, trials=(summary.best, *pruned)), 10)
    said = capsys.readouterr().out
    assert "… ∞: too few trials ran to their end" in said
    assert "pruning saved 0%: about 0.0 seconds\n" in said
    print_summary(replace(summary, trials=tuple(replace(trial, codelength=None) for trial in pruned)), 10)
    said = capsys.readouterr().out
    assert "nats + ln n" in said
    assert "held-out" not in said


@pytest.mark.parametrize(
    ("more", "widths"),
    [((), None), (("--stack", "2", "--grid", "2"), {0.25, 4.0}), (("--width", "1"), set())],
    ids=["one by one", "stacked", "width given"],
)
def test_the_sweeps_of_pareto_fronts_draw_the_width(
    tmp_path: Path, more: tuple[str, ...], widths: set[float] | None
) -> None:
    flags = f"sweep mnist lenet --space mnist-pareto --streams 1 --length 64 --trials 4 --seed 1 --out {tmp_path / 's'}"
    assert main([*flags.split(), *more]) == 0
    summary = summarise(tmp_path / "s")
    assert summary.counts["finished"] == 4
    found = {trial.settings["width"] for trial in summary.trials if "width" in trial.settings}
    assert found == widths if widths is not None else len(found) == 4 and min(found) >= 0.25 and max(found) <= 4
    for record in summary.records():
        assert record.model["width"] in (found or {1.0})
        assert "early_labels" not in record.method  # the preset's, which the paper has not
    if found:
        assert len({record.model["num_parameters"] for record in summary.records()}) == len(found)


def command(tmp_path: Path, *more: str) -> list[str]:
    (tmp_path / "mine.py").write_text(FILE)
    flags = f"sweep mnist {GATED} --width 0.05 --length 256 --space {tmp_path}/mine.py:space --trials 3"
    return [*flags.split(), "--checkpoint-seconds", "0", *more]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT], ids=lambda number: number.name)
def test_a_sweep_that_was_stopped_goes_on_to_the_same_trials(
    tmp_path: Path, number: signal.Signals, capsys: Any, undisturbed: Path
) -> None:
    out, gate = tmp_path / "s", Gate(tmp_path / "gate", step=40, most_seconds=1.0)
    assert main(command(tmp_path, "--out", str(out), "--trials", "1")) == 0
    process = start_preq([*command(tmp_path, "--jobs", "2", "--out", str(out)), "--resume"], gate.environment)
    wait_for(lambda: len(gate.waiting) == 2, process)
    assert all(list(out.glob(f"trials/{number:05d}/checkpoints/*.safetensors")) for number in (1, 2))
    process.send_signal(number)
    _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == (-9 if number == signal.SIGKILL else 130)
    assert ("--resume goes on" in said) == (number == signal.SIGINT)
    done = {path: path.stat().st_mtime_ns for path in out.glob("trials/*/record.json") if over(path)}
    assert [path.parent.name for path in done] == ["00000"]
    capsys.readouterr()
    assert main(command(tmp_path, "--out", str(out), "--resume", "--json")) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["trials"], told["finished"]) == (3, 3)
    assert [trial.state.name for trial in attempts_of(out)] == ["COMPLETE"] * 3
    assert all(path.stat().st_mtime_ns == then for path, then in done.items())
    assert sorted(path.name for path in (out / "trials").iterdir()) == [f"{k:05d}" for k in range(3)]
    assert_same_trials(out, undisturbed, 3)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("undisturbed")
    assert main(command(path, "--out", str(path / "s"))) == 0
    return path / "s"


def over(path: Path) -> bool:
    return json.loads(path.read_text())["record"]["status"] == "finished"


def test_a_trial_whose_process_dies_is_run_again(tmp_path: Path) -> None:
    (tmp_path / "nets.py").write_text(
        "import os, pathlib, signal\n"
        "from prequential.models import build\n"
        "def net(input_shape, num_classes):\n"
        "    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, [])\n"
        f"    pathlib.Path({str(tmp_path)!r}, f'blocked-{{os.getpid()}}').write_text(str(signal.SIGINT in blocked))\n"
        f"    flag = pathlib.Path({str(tmp_path / 'died')!r})\n"
        "    if not flag.exists():\n"
        "        flag.touch()\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        "    return build('mlp1', input_shape, num_classes, width=0.05)\n"
    )
    (tmp_path / "mine.py").write_text(FILE)
    flags = f"sweep mnist {tmp_path}/nets.py:net --length 64 --space {tmp_path}/mine.py:space --trials 1 --jobs 2"
    process = start_preq([*flags.split(), "--streams", "1", "--out", str(tmp_path / "s"), "--json"])
    told, said = process.communicate(timeout=PATIENCE)
    assert "its process died (signal 9)" in said
    heard_ctrl_c = [file.read_text() for file in tmp_path.glob("blocked-*")]
    assert heard_ctrl_c == ["True"] * 2  # the first worker, too, is asked to stop through its pipe alone
    assert json.loads(told)["finished"] == 1
    assert all(trial["settings"].keys() == {"learning_rate"} for trial in json.loads(told)["best"])


def test_a_worker_that_a_signal_to_all_ends_is_stopped_and_has_not_failed() -> None:
    ours, theirs = multiprocessing.Pipe()
    theirs.close()
    worker = _Worker(SimpleNamespace(join=lambda: None, exitcode=-15), ours)
    executor, stop = Processes(1), StopRequest()
    executor._workers.append(worker)
    stop.signal_number = signal.SIGTERM
    assert list(executor.done({worker: (Trial(3, {}, 0),)}, stop)) == [(worker, [Outcome(3, "stopped")])]


@pytest.mark.parametrize("when", ["before the run listens", "when the run has nothing left to do"])
def test_a_request_to_stop_is_heard_whenever_it_comes(tmp_path: Path, when: str, monkeypatch: Any) -> None:
    asked: list[bool] = []

    def interrupt(*_: object) -> None:
        if not asked:
            asked.append(True)
            signal.raise_signal(signal.SIGINT)

    def make(input_shape: tuple[int, ...], num_classes: int) -> nn.Module:
        if when == "before the run listens":
            interrupt()
        return tiny(input_shape, num_classes)

    if when != "before the run listens":
        monkeypatch.setattr("prequential.runs.session.flops_of", interrupt)
    monkeypatch.setattr("prequential.runs.recorder.SECONDS_BETWEEN_PAUSES", 0.0)
    out = tmp_path / "s"
    with pytest.raises(SweepInterrupted):
        pq.sweep(make, blobs(LENGTH), METHOD, space=SPACE, trials=3, seed=0, out=out)
    first = pq.load(out / "trials/00000")
    assert first.status == ("stopped" if when == "before the run listens" else "finished")
    assert not (out / "trials/00001").exists()


def test_a_model_that_cannot_be_sent_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PreqError, match="must be sent to worker processes, which is not possible here"):
        pq.sweep(lambda: tiny((5,), 3), blobs(8), METHOD, space=SPACE, trials=2, seed=0, out=tmp_path / "s", jobs=2)
    assert optuna.logging.get_verbosity() == optuna.logging.WARNING


def test_brute_force_tries_every_setting_once_and_says_where_they_end(tmp_path: Path) -> None:
    space = {"num_streams": Choice((1, 2)), "seed": Between(1, 2, whole=True)}
    do(tmp_path / "s", space=space, sampler="brute-force", trials=2)
    summary = do(tmp_path / "s", space=space, sampler="brute-force", trials=4, resume=True)
    assert len({tuple(sorted(trial.settings.items())) for trial in summary.trials}) == 4
    assert summary.counts["finished"] == 4
    with pytest.raises(PreqError, match=r"tries each of the 4 settings of the space once, got 5 trials; ask for 4"):
        do(tmp_path / "s", space=space, sampler="brute-force", trials=5, resume=True)
    with pytest.raises(PreqError, match="learning_rate has no end of them"):
        do(tmp_path / "t", sampler="brute-force")
    assert not (tmp_path / "t").exists()


def test_a_model_that_ends_in_a_softmax_is_told_of_once(tmp_path: Path) -> None:
    def ending() -> nn.Module:
        return nn.Sequential(nn.Linear(5, 3), nn.Softmax(1))

    with warnings.catch_warnings(record=True, action="always") as told:
        pq.sweep(ending, blobs(LENGTH), METHOD, space=SPACE, trials=3, seed=0, out=tmp_path / "s")
    assert ["sum to one" in str(each.message) for each in told] == [True]


def test_a_sweep_says_how_inputs_reach_the_network(tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "space.py").write_text(FILE)
    arguments = ["mnist", "mlp1", "--length", "32", "--trials", "1", "--width", "0.1"]
    assert main(["sweep", *arguments, "--space", f"{tmp_path}/space.py:space", "--out", str(tmp_path / "s")]) == 0
    first = capsys.readouterr().out
    assert "uint8 inputs: 0 to 255 brought to -1 to 1\n" in first
    (tmp_path / "s/trials/00000/record.json").write_text("{")
    assert main(["sweep", "show", str(tmp_path / "s")]) == 0
    assert "uint8" not in capsys.readouterr().out


def test_data_that_has_changed_since_is_refused_and_costs_no_trial(tmp_path: Path, capsys: Any) -> None:
    table, space, out = tmp_path / "t.csv", tmp_path / "space.py", tmp_path / "sweep"
    rows = [f"{number % 7},{number % 3},{'ab'[number % 2]}" for number in range(80)]
    table.write_text("\n".join(["x,y,label", *rows]))
    space.write_text(FILE)
    sweep = ["sweep", f"table:{table}", "mlp1", "--label", "label", "--order", "given", "--width", "0.05"]
    sweep += ["--length", "64", "--space", f"{space}:space", "--out", str(out)]
    assert main([*sweep, "--trials", "1"]) == 0
    table.write_text("\n".join(["x,y,label", *rows[::-1]]))
    assert main([*sweep, "--trials", "2", "--resume"]) == 2
    assert "the data is not what trial 0 was about: its labels are others" in capsys.readouterr().err
    counts = summarise(out).counts
    assert (counts["finished"], counts["failed"]) == (1, 0)
    table.write_text("\n".join(["x,y,label", *rows]))
    assert main([*sweep, "--trials", "2", "--resume"]) == 0
    pq.compare(summarise(out).records())
    assert "not about the same data" not in capsys.readouterr().out


def test_machines_that_share_a_study_but_not_the_data_are_told_of(tmp_path: Path, finished: Path, capsys: Any) -> None:
    summary = summarise(finished)
    first, *others = summary.trials
    print_summary(replace(summary, trials=(replace(first, data={"labels": "5f", "inputs": "a0"}), *others)), 3)
    said = " ".join(capsys.readouterr().out.split())
    assert "the trials are not about the same data (other labels and inputs)" in said


def test_a_trial_that_has_only_begun_is_running(tmp_path: Path) -> None:
    """It loads its data, or builds its model; when the sweep is gone it has died."""
    method, space = pq.ReplayStreams(num_streams=1, batch_size=16), {"learning_rate": LogUniform(1e-4, 1e-2)}
    pq.sweep("mlp1", blobs(48), method, space=space, trials=2, seed=0, out=tmp_path / "s", width=0.02)
    summary = summarise(tmp_path / "s")
    begun = replace(summary.trials[0], status="running")
    assert begun.path is not None
    (begun.path / "record.json").unlink()
    assert replace(summary, trials=(begun,)).standing()["died"] == 1
    with DirectoryLock(tmp_path / "s"):
        assert replace(summary, trials=(begun,)).standing()["running"] == 1
