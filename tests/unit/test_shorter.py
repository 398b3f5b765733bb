"""The queue behind the table of the shortest codes: what it runs, in which order, and what it tells."""

import argparse
import doctest
import json
import math
import shlex
from concurrent.futures import Future
from pathlib import Path
from typing import Any, cast

import pytest

import prequential as pq
from prequential.cli.run import Run
from prequential.cli.settings import parse_settings
from prequential.runs.progress import Progress, Pruned

from .test_docs import ROOT, imported

FILES = ("shorter_settings", "shorter_plan", "shorter_table", "shorter")
_, PLAN, TABLE, SHORTER = (imported(ROOT / "experiments" / f"{name}.py") for name in FILES)
WHERE = "all", "cifar10"


def line(job: Any, nats: float | None, **more: Any) -> dict[str, Any]:
    """A result as the queue keeps it."""
    told = {"status": "finished", "labels": 50_000, "seconds": 200.0, "expected_seconds": 200.0, "study_seconds": 700.0}
    told |= {"curve": [[25_000, nats / 2], [50_000, nats]] if nats else []}
    made = {"model": job.setting.model, "study_of": job.study, "command": job.command, "members_nats": {}}
    rates = {"labelled_per_second": 10_000.0, "heldout": {"loss": 0.2, "error_rate": 0.05}}
    return {**job.labels, "key": job.key, "nats": nats, **told, **made, **rates, **more}


def candidates(nats: dict[str, float], where: tuple[str, str] = WHERE) -> list[dict[str, Any]]:
    """Results of all candidates of a line."""
    jobs = [job for job in PLAN.plan([]) if (job.given, job.data) == where and job.row == "candidate"]
    return [line(job, nats.get(job.setting.name, 4_000.0), status="pruned") for job in jobs]


def rows(done: list[dict[str, Any]], row: str, where: tuple[str, str] = WHERE) -> list[Any]:
    return [job for job in PLAN.plan(done) if (job.given, job.data, job.row) == (*where, row)]


def test_the_examples_hold() -> None:
    assert [doctest.testmod(module).failed for module in (PLAN, TABLE)] == [0, 0]


@pytest.mark.parametrize("job", PLAN.plan([]), ids=lambda job: job.name)
def test_a_command_does_what_the_queue_does(job: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    words = shlex.split(job.command)
    assert words[:2] == ["preq", "run"]
    flags = parse_settings(Run, "run", words[2:])
    found, (method, recipe), width = flags.chosen_settings, job.settled(), flags.width or 1.0
    assert (found.method, found.recipe) == (method, recipe)
    assert (flags.data, width, flags.seed) == (job.data, job.setting.width, job.seed)
    model, asked = SHORTER.model_of(job), cast(Any, found.make_model())
    if job.members == 1:
        assert asked == model == job.setting.model
    else:
        each = [experts.completed(method, recipe, width, job.seed, 64).facts() for experts in (model, asked)]
        assert each[0] == each[1]
        assert len(each[0]["experts"]) == job.members
        twins = job.given == "all" or job.setting.model in SHORTER.STACKED
        wanted = len(set(job.models)) if twins else job.members
        so_far = [each["method"]["name"] for each in each[0]["experts"]] if job.setting.others_so_far else []
        assert so_far == (["all-inputs", "all-inputs", "mi-rb", "mi-rb"] if so_far else [])
        assert len({id(expert.model) for expert in model.each}) == wanted


def test_those_of_the_prototype_are_as_it_had_them() -> None:
    """What it changed of its defaults where it reached 9,850 nats of CIFAR-10 twice, and 60,258 of CIFAR-100."""
    common = {"lr": 2e-3, "eps": 1e-2, "body": 0.3, "pad": 3, "min_steps": 4}
    wanted = {
        ("cifar10", "30 replays, 3 beside"): (30, 3, 0.9, 0.1, 1.5e-3, 0.01, 12, 8),
        ("cifar10", "10 replays, 7 beside"): (10, 7, 0.8, 0.05, 3e-3, 0.0, 8, 8),
        ("cifar100", "10 replays, 5 beside"): (10, 5, 0.7, 0.05, 3e-3, 0.0, 8, 16),
    }
    found = {}
    for job in PLAN.plan([]):
        if (job.data, job.setting.name) in wanted and job.row == "candidate":
            given, recipe = job.settled()
            method, (_, shift, cutout) = given.method, recipe.augment
            each = method.num_replays, given.beside, given.threshold, recipe.weight_decay, recipe.ema_step_size
            covered = int(cutout.removeprefix("cutout:"))
            found[job.data, job.setting.name] = (*each, recipe.label_smoothing, covered, method.first_block)
            rates = {"lr": recipe.learning_rate, "eps": recipe.eps, "body": given.body_rate}
            assert {**rates, "pad": int(shift.removeprefix("shift:")), "min_steps": method.min_steps} == common
            assert method.name == "mi-rb"
    assert found == wanted


def test_every_run_has_a_name_of_its_own_and_the_cheap_ones_wait_for_nothing() -> None:
    for tiny in (False, True):
        jobs = PLAN.plan([], tiny=tiny)
        assert len({job.name for job in jobs}) == len({job.key for job in jobs}) == len(jobs)
        assert {job.row for job in jobs if not job.waits_for and not job.setting.models} == {"candidate"}
    assert max(pq.Plan(job.settled()[0], job.length).counts().trained_examples for job in jobs) < 2_000
    assert len([job for job in jobs if job.row == "candidate"]) == 41


def test_what_is_chosen_is_chosen_by_nats_alone() -> None:
    done = candidates({"10 replays, 7 beside": 3_900.0})
    for each in done:
        each["heldout"] = {"loss": 0.1, "error_rate": 0.5 if each["nats"] < 4_000 else 0.01}
    (single, *_), (mixed,) = rows(done, "single"), rows(done, "mixed")
    assert single.setting == mixed.setting
    assert (single.setting.name, single.waits_for) == ("10 replays, 7 beside", "")
    assert rows(done[:-1], "single")[0].waits_for == "candidates"
    done[1] |= {"nats": None, "status": "diverged"}
    assert rows(done, "single")[0].setting.name == "30 replays, 3 beside"
    done[1] = line(rows([], "candidate")[1], None, status="failed")
    assert rows(PLAN.results(done), "single")[0].waits_for == "candidates"
    assert rows(PLAN.results([*done, done[1]]), "single")[0].setting.name == "30 replays, 3 beside"


def test_what_learns_slowly_and_ends_low_is_chosen() -> None:
    """By 10,000 labels of 50,000: 7,500 nats of which 2,640 in the second half are more than 7,660 with 2,450."""
    done, where = candidates({}, ("so-far", "cifar10")), ("so-far", "cifar10")
    for each, (nats, late) in zip(done, [(7_500.0, 2_640.0), (7_660.0, 2_450.0)], strict=False):
        each |= {"nats": nats, "labels": 10_000, "curve": [[5_000, nats - late], [10_000, nats]]}
    for each in done[2:]:
        each |= {"nats": 9_000.0, "labels": 10_000, "curve": [[5_000, 6_000.0], [10_000, 9_000.0]]}
    assert PLAN.whole_nats(done[0]) == pytest.approx(7_500 + 20_000 * 2_640 / 5_000)
    assert PLAN.chosen(where, done)[0].name == done[1]["setting"] == "resnet18-ws, 80 replays"


def test_of_codes_that_are_alike_the_one_of_fewest_flops_is_chosen() -> None:
    """What 10,000 labels of CIFAR-100 gave on an H200: 16,375.4 nats, 16,374.6 with less work, and 16,885.0."""
    done, where = candidates({}, ("all", "cifar100")), ("all", "cifar100")
    found = {"30 replays, 7 beside": (4_000.0, 4e16), "30 replays, 3 beside": (4_019.0, 2e16)}
    for each in done:
        nats, flops = found.get(each["setting"], (4_021.0, 1e16))
        each |= {"nats": nats, "curve": [[25_000, nats / 2], [50_000, nats]], "flops": {"code": flops}}
    assert PLAN.chosen(where, done)[0].name == "30 replays, 3 beside"
    for each in done:
        each["nats"] -= 1.0 if "3 beside" not in each["setting"] else -1.0
    assert PLAN.chosen(where, done)[0].name == "30 replays, 7 beside"


def test_what_is_left_out_is_made_up_for_in_minutes() -> None:
    done = candidates({})
    (whole, *others), (pilot,) = rows(done, "single"), rows(done, "pilot")
    assert [(job.seed, job.is_timed) for job in (whole, *others)] == [(0, True), (1, False), (2, False)]
    assert rows(done, "without study")[0].waits_for == "the whole run and the pilot"
    done += [line(whole, 9_700.0), line(pilot, 6_000.0, labelled_per_second=40_000.0, shared=True)]
    assert rows(done, "without study")[0].waits_for == "the whole run and the pilot"
    del done[-1]["shared"]
    wanted = {"without study": 179, "without beside": 159, "without either": 719}
    for row, passes in wanted.items():
        (job,) = rows(done, row)
        assert (job.waits_for, job.settled()[0].method.num_replays) == ("", passes)
        assert (job.seconds, job.is_timed) == (200.0 if row == "without beside" else 900.0, False)
    (alone,) = rows(done, "inputs so far", ("so-far", "cifar10"))
    assert alone.settled()[0].num_replays == 719
    assert alone.settled()[1] == whole.settled()[1]
    given = {row: rows(done, row)[0].settled()[0] for row in wanted}
    assert [(each.study_steps > 0, each.beside > 0) for each in given.values()] == [
        (False, True),
        (True, False),
        (False, False),
    ]


def test_the_table_tells_what_was_reached_and_what_is_missing(capsys: pytest.CaptureFixture[str]) -> None:
    where = "so-far", "cifar10"
    done = candidates({"vggpp, 80 replays": 3_900.0}, where)
    mixed, *_ = rows(done, "mixed", where)
    done.append(line(mixed, 16_000.0, members_nats={"vggpp 1": 18_000.0, "vggpp 2": 18_200.0, "vggpp 3": 18_400.0}))
    known = {each["key"] for each in done}
    TABLE.tell(done, [job for job in PLAN.plan(done) if job.key not in known])
    reached, missing = capsys.readouterr().out.split("What is missing")
    (told,) = (text for text in reached.splitlines() if "inputs so far  cifar10   18,154" in text)
    assert "18,200 ± 115 (3)" in told
    assert "  16,000  " in told
    assert "mixed ≤ 16,600: yes" in told
    assert "  13     " in told
    assert "single ≤ 9,600: open; mixed ≤ 9,000: open" in reached
    assert "inputs so far  cifar10   candidate" not in missing
    assert "waits for candidates" in missing


def test_a_study_is_expected_once_and_speeds_are_learned_from_results() -> None:
    first, second, *_ = rows([], "candidate")
    assert PLAN.seconds_left(first, []) > 500
    done, kept = [line(first, 4_000.0, seconds=400.0)], {first.study}
    assert PLAN.seconds_left(second, done, kept) == pytest.approx(2 * PLAN.expected(second)[1])
    done.append(line(first, 4_000.0, seconds=4_000.0, shared=True))
    assert PLAN.seconds_left(second, done, kept) == pytest.approx(2 * PLAN.expected(second)[1])
    assert PLAN.seconds_left(second, done) > 500  # another machine kept it
    minutes = [float(row["minutes"]) for row in TABLE.rows_missing(rows([], "candidate"), [])]
    assert minutes[0] > 8 > 3 > max(minutes[1:])


def test_nothing_is_begun_that_cannot_get_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SHORTER, "KNOWN", tmp_path / "nothing.jsonl")  # results say how fast runs are
    flags = {
        "out": tmp_path,
        "tiny": False,
        "session": None,
        "at_once": 1,
        "device": "cpu",
        "compile": "auto",
        "shared": False,
    }
    short, long = PLAN.plan([])[0], rows([], "candidate")[0]

    def worth(job: Any, **more: Any) -> bool:
        return bool(SHORTER.Queue(argparse.Namespace(**flags | more))._is_worth(job))

    assert [worth(short, minutes=2), worth(long, minutes=2), worth(long, minutes=9)] == [True, False, True]
    assert [worth(long, minutes=9, session=8), worth(long, minutes=9, session=20)] == [False, True]
    assert not worth(rows([], "single")[0], minutes=60)
    done = candidates({})
    monkeypatch.setattr(SHORTER.Queue, "known", lambda _: done)
    assert [worth(rows(done, "pilot")[0], minutes=60, shared=shared) for shared in (False, True)] == [True, False]
    monkeypatch.undo()
    monkeypatch.setattr(SHORTER, "KNOWN", tmp_path / "nothing.jsonl")
    assert not worth(rows([], "candidate")[1], minutes=9, session=8)
    (tmp_path / SHORTER.RESULTS).write_text(json.dumps(line(long, 4_000.0)) + "\n")
    assert worth(rows([], "candidate")[1], minutes=9, session=8)  # its study is kept here
    queue = SHORTER.Queue(argparse.Namespace(**flags, minutes=60))
    queue._running[Future()] = 0.0, long, None
    assert [queue._is_worth(job) for job in (rows([], "candidate")[1], short)] == [False, True]


@pytest.mark.parametrize("row", ["candidate", "mixed"])
def test_a_run_stops_in_time_and_goes_on(row: str, tmp_path: Path) -> None:
    jobs = [job for job in PLAN.plan([], tiny=True) if (job.given, job.data, job.row) == ("all", "mnist", row)]
    assert SHORTER.run(jobs[0], tmp_path / "a", "cpu", "auto", 0.0) is None
    again, at_once = (SHORTER.run(jobs[0], tmp_path / name, "cpu", "auto", math.inf) for name in "ab")
    assert again["nats"] == at_once["nats"]
    assert again["study"]["digest"] == at_once["study"]["digest"]
    wanted = {"candidate": (24, 0), "mixed": (48, 4)}
    assert (again["labels"], len(again["members_nats"])) == wanted[row]
    # listeners are told a few times a second: so short a run may be over before
    assert again["status"] in {"candidate": ("pruned", "finished"), "mixed": ("finished",)}[row]
    assert again["study_seconds"] >= 0 < again["labelled_per_second"]


def test_a_candidate_ends_where_it_is_compared() -> None:
    watch = SHORTER.Watch(24, math.inf)
    assert watch.labelled_per_second is None
    watch(Progress(8, 48, 1.0, 0, 10, 1.0))
    watch(Progress(16, 48, 1.0, 0, 20, 2.0))
    with pytest.raises(Pruned):
        watch(Progress(24, 48, 1.0, 0, 60, 4.0))
    assert watch.labelled_per_second == 20.0
