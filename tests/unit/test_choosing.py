"""One rule for what choosing costs: ln of all trials that were begun. And which settings mattered."""

import json
import math
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from optuna.distributions import FloatDistribution, IntDistribution
from optuna.trial import create_trial
from torch import nn

import prequential as pq
from prequential.cli import main
from prequential.measure.choosing import num_begun
from prequential.measure.importance import FEWEST_TRIALS, importance
from prequential.rng import derive, uniforms
from prequential.sweeps import Choice, LogUniform, SweepProgress, summarise
from prequential.sweeps.address import storage_url
from prequential.sweeps.directory import SweepFile
from prequential.sweeps.sampling import draw_settings
from prequential.sweeps.storage import open_study
from prequential.sweeps.trials import Outcome

from ..conftest import blobs
from ..laws.test_records import tiny
from ..records import made_record

Captured = pytest.CaptureFixture[str]
METHOD = pq.ReplayStreams(num_streams=2, batch_size=8)
MIXED: dict[str, Any] = {"optimizer": "sgd", "learning_rate": Choice((1e-2, 10.0, 1e30)), "width": Choice((1.0, 2.0))}


def half_broken(input_shape: tuple[int, ...], num_classes: int, width: float) -> nn.Module:
    if width == 2.0:
        raise RuntimeError("it has no such width")
    return tiny(input_shape, num_classes)


@pytest.fixture(autouse=True)
def _pause_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("prequential.runs.recorder.SECONDS_BETWEEN_PAUSES", 0.0)


def do(out: Path, **changes: Any) -> Any:
    arguments: dict[str, Any] = {"space": MIXED, "trials": 5, "seed": 201, "prune": "regret", "out": out}
    return pq.sweep(half_broken, blobs(64), METHOD, **arguments | changes)


def told(capsys: Captured, *command: str) -> Any:
    capsys.readouterr()
    assert main([*command, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def assert_all_charge(out: Path, number: int, capsys: Captured) -> None:
    """Every command that tells of the best charges ln of this number."""
    for command in (["sweep", "show"], ["compare"], ["pareto"]):
        assert told(capsys, *command, str(out))["choice_nats"] == math.log(number), command
    cost = f"of {number} begun trials afterwards costs ln {number} = {math.log(number):.2f} nats more"
    for command in (["compare"], ["pareto"]):
        main([*command, str(out)])
        assert cost in " ".join(capsys.readouterr().out.split())
    page = out.parent / "page.html"
    assert main(["report", str(out), "-o", str(page)]) == 0
    assert cost in page.read_text()


def test_all_trials_that_were_begun_are_charged_whatever_became_of_them(tmp_path: Path, capsys: Captured) -> None:
    summary = do(tmp_path / "s")
    assert all(summary.counts[status] for status in ("finished", "diverged", "pruned", "failed")), summary.counts
    assert summary.choice_nats == math.log(5)
    assert_all_charge(tmp_path / "s", 5, capsys)
    (tmp_path / "linked").symlink_to(summary.best.path)
    assert told(capsys, "compare", str(tmp_path / "linked"))["choice_nats"] == math.log(5)  # one of five, however named
    made_record([1.0] * 64, num_classes=3).save(tmp_path / "alone")
    only = told(capsys, "compare", str(tmp_path / "alone"))
    assert only["choice_nats"] == 0.0


def test_what_waits_is_not_charged(tmp_path: Path, capsys: Captured) -> None:
    def stop(progress: SweepProgress) -> None:
        if progress.done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        do(tmp_path / "s", listeners=[stop])
    summary = summarise(tmp_path / "s")
    assert summary.counts["waiting"] == 5 - summary.num_begun > 0
    assert_all_charge(tmp_path / "s", summary.num_begun, capsys)
    file = tmp_path / "s/sweep.json"
    whole = file.read_text()
    damages: list[dict[str, Any]] = [{}, {"begun": "many"}, {"begun": True}, {"begun": [[]]}, {"begun": -1}]
    for damage in damages:  # the directories still tell
        content = {name: value for name, value in json.loads(whole).items() if name != "begun"}
        file.write_text(json.dumps(content | damage))
        assert num_begun(tmp_path / "s") == summary.num_begun
    file.write_text(whole)
    do(tmp_path / "s", resume=True)
    assert_all_charge(tmp_path / "s", 5, capsys)


def test_what_others_have_begun_who_share_the_study_is_charged_too(tmp_path: Path, capsys: Captured) -> None:
    space = {"learning_rate": LogUniform(1e-3, 1e-1)}
    shared: dict[str, Any] = {"space": space, "storage": f"sqlite:///{tmp_path}/shared.db"}
    do(tmp_path / "one", trials=2, **shared)
    do(tmp_path / "other", trials=5, **shared)
    assert len(list((tmp_path / "other/trials").iterdir())) == 3
    assert_all_charge(tmp_path / "other", 5, capsys)
    both = told(capsys, "compare", str(tmp_path / "one"), str(tmp_path / "other"))
    assert both["choice_nats"] == pytest.approx(math.log(5))  # one study, whose trials count once


def test_a_pruned_trial_that_is_found_again_is_counted_as_it_was(tmp_path: Path) -> None:
    space = {"learning_rate": Choice((1e-2, 10.0)), "seed": Choice((1, 2))}
    before = do(tmp_path / "s", space=space)
    assert before.saved["share"] > 0
    (tmp_path / "s/study.db").unlink()  # what a trial has come to is known from its record alone
    again = do(tmp_path / "s", space=space, resume=True)
    assert again.trials == before.trials
    assert again.saved == before.saved


KINDS: dict[str, Any] = {
    "num_streams": IntDistribution(1, 64, log=True), "learning_rate": FloatDistribution(1e-4, 1e-2, log=True),
}  # fmt: skip


def synthetic(out: Path, seed: int, trials: int, codelength: Callable[[Any], float]) -> Any:
    """A sweep whose codelengths are a known function of its settings; nothing is trained."""
    space = {"num_streams": LogUniform(1, 64, whole=True), "learning_rate": LogUniform(1e-4, 1e-2)}
    facts = {"model": "m", "method": {"name": "mi-rs"}, "data": {"name": "made"}}
    out.mkdir()
    begun = SweepFile.begin(out, facts, trials=trials, resume=False, storage=None)
    made = []
    for number in range(trials):
        settings = draw_settings(space, seed, number)
        noise = float(uniforms(derive(seed, "noise", number), np.zeros(1, np.int64))[0])
        result = asdict(Outcome(number, "finished", value=codelength(settings) + 20 * noise))
        attributes = {"number": number, "result": {name: each for name, each in result.items() if each is not None}}
        made.append(create_trial(params=settings, distributions=KINDS, value=result["value"], user_attrs=attributes))
    open_study(storage_url(out, None), begun.study, create=True).add_trials(made)
    return summarise(out)


@pytest.mark.parametrize("seed", [0, 3, 5])
def test_importance_is_right_where_the_function_is_known(tmp_path: Path, seed: int) -> None:
    """Streams explain more than four fifths of the codelength, the learning rate tells the best few apart."""

    def codelength(settings: Any) -> float:
        short_of_enough = max(0.0, 3 - math.log2(settings["num_streams"]))
        return 500 + 100 * short_of_enough + 60 * (math.log10(settings["learning_rate"]) + 3) ** 2

    summary = synthetic(tmp_path / "s", seed, 24, codelength)
    streams = np.log([each.settings["num_streams"] for each in summary.trials])
    assert np.corrcoef(streams, [each.codelength for each in summary.trials])[0, 1] ** 2 > 0.8
    assert list(summary.importance) == ["num_streams", "learning_rate"]
    assert summary.importance["num_streams"] > 0.75
    assert summary.importance["learning_rate"] < 0.25


def test_importance_sees_an_optimum_inside_and_choices(tmp_path: Path) -> None:
    found = synthetic(tmp_path / "s", 0, 40, lambda each: 400 * (math.log10(each["learning_rate"]) + 3) ** 2).importance
    assert found["learning_rate"] > 0.7
    assert found["num_streams"] < 0.2
    names = [("adamw", "sgd", "rmsprop")[number % 3] for number in range(30)]
    shares = importance([{"optimizer": name, "seed": n // 3} for n, name in enumerate(names)], [len(n) for n in names])
    assert shares == {"optimizer": pytest.approx(1.0), "seed": 0.0}


def test_too_few_trials_are_said_to_be_too_few(tmp_path: Path, capsys: Captured) -> None:
    summary = synthetic(tmp_path / "s", 0, FEWEST_TRIALS - 1, lambda each: float(each["num_streams"]))
    assert summary.importance is None
    assert main(["sweep", "show", str(tmp_path / "s")]) == 0
    assert "importance: not told by fewer than 16 finished trials (here 15)" in capsys.readouterr().out
    synthetic(tmp_path / "t", 0, FEWEST_TRIALS, lambda each: float(each["num_streams"]))
    assert main(["sweep", "show", str(tmp_path / "t")]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "of the order of the 16 finished trials each explains alone)" in said


@given(
    drawn=st.lists(st.tuples(st.integers(1, 9), st.floats(-9, 9), st.floats(-99, 99)), min_size=16, max_size=30),
    order=st.randoms(use_true_random=False),
)
def test_importance_depends_on_nothing_but_orders(drawn: list[tuple[int, float, float]], order: Any) -> None:
    def shares(scale: Callable[[float], float]) -> dict[str, float]:
        found = importance([{"a": a, "b": scale(b)} for a, b, _ in drawn], [scale(value) for _, _, value in drawn])
        assert found is not None
        return found

    drawn = [(a, round(b, 3), round(value, 3)) for a, b, value in drawn]  # what is equal stays so when it is scaled
    before = shares(lambda value: value)
    assert all(0 <= share <= 1 for share in before.values())
    assert shares(lambda value: 3 * value + 7) == pytest.approx(before, abs=1e-6)
    order.shuffle(drawn)
    assert shares(lambda value: value) == pytest.approx(before, abs=1e-6)
