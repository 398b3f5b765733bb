"""The same labels given other inputs: compared, and said; other labels, order or length are refused as ever."""

import json
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import prequential as pq
from prequential import cli
from prequential.errors import PreqError, PreqWarning
from prequential.measure.comparable import GIVEN_INPUTS, inputs_told
from prequential.report.page.build import page_of
from prequential.runs.record import Record

from ..records import made_record
from ..synthetic import synthetic_record

METHOD = pq.ReplayStreams(num_streams=1, batch_size=8)
NATS = st.lists(st.floats(0, 50), min_size=3, max_size=3)
KINDS = st.lists(st.tuples(NATS, st.sampled_from("pqr")), min_size=2, max_size=6)


def given_inputs(record: Record, inputs: str, **more: Any) -> Record:
    return replace(record, data={**record.data, "inputs": inputs, "input_shape": [len(inputs)], **more})


@given(KINDS)
def test_figures_do_not_depend_on_inputs_and_what_differs_is_said(runs: list[tuple[list[float], str]]) -> None:
    made = [made_record(nats, name=f"run {n}", recipe={"learning_rate": n}) for n, (nats, _) in enumerate(runs)]
    other = [given_inputs(record, inputs) for record, (_, inputs) in zip(made, runs, strict=True)]
    one, two = pq.compare(made), pq.compare(other)
    assert one.rows() == two.rows()
    differ = len({inputs for _, inputs in runs}) > 1
    assert [GIVEN_INPUTS in note for note in two.notes] == [True] * differ
    assert two.sentences()[: len(one.sentences())] == one.sentences()
    with warnings.catch_warnings(record=True, action="always") as said:
        mixed = pq.mixture(other)
    assert mixed.codelength == pq.mixture(made).codelength
    assert mixed.num_inputs == len({inputs for _, inputs in runs})
    assert ["union" in str(each.message) for each in said] == [True] * differ
    for insists in (pq.compare, pq.mixture):
        insists(made, same_inputs=True)
        if differ:
            with pytest.raises(PreqError, match=r"differ in their inputs \(.*; leave out --same-inputs"):
                insists(other, same_inputs=True)


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"data": {"name": "made", "inputs": "o", "labels": "m", "heldout": None}}, "labels"),
        ({"data": {"name": "made", "inputs": "o", "heldout": None}}, "labels"),
        ({"length": 4, "status": "finished"}, "length"),
        (
            {
                "seeds": {"seed": 0, "order_seed": 1, "plan_seed": 0},
                "data": {"name": "made", "inputs": "o", "labels": "m", "heldout": None},
            },
            "order",
        ),
    ],
)
def test_other_labels_order_and_length_are_refused_as_before(change: dict[str, Any], what: str) -> None:
    one, other = made_record([1.0, 2.0], name="one"), made_record([1.0, 2.0], name="other", **change)
    for refuses in (lambda: pq.compare([one, other]), lambda: pq.regret(one, other), lambda: pq.mixture([one, other])):
        with pytest.raises(PreqError, match=f"differ in their {what}"):
            refuses()


def test_inputs_are_called_by_what_tells_them_apart() -> None:
    def told(*facts: tuple[str, str, list[int]]) -> str:
        named: list[tuple[str, Record]] = []
        for number, (inputs, name, shape) in enumerate(facts):
            record = made_record([1.0], name=str(number))
            named.append((f"run {number}", given_inputs(record, inputs, name=name, input_shape=shape)))
        return inputs_told(named).removesuffix(f": {GIVEN_INPUTS}")

    assert told(("a", "pixels", [3, 4]), ("b", "counts", [3, 4]), ("a", "pixels", [3, 4])) == (
        "the inputs differ (pixels: run 0, run 2; counts: run 1)"
    )
    assert told(("a", "made", [3, 8, 8]), ("b", "made", [12])) == "the inputs differ (3 × 8 × 8: run 0; 12: run 1)"
    assert told(("abcdefghij", "made", [3]), ("b", "made", [3])) == "the inputs differ (abcdefgh: run 0; b: run 1)"
    assert told(("a", "run 0", [3]), ("b", "run 1", [3])) == "the inputs differ (run 0; run 1)"
    assert told(*[("a", "one", [3])] * 4, ("b", "two", [3])) == "the inputs differ (one: 4; two: run 4)"
    assert told(("a", "made", [3]), ("a", "made", [3])) == ""


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Sequence[Path]:
    """Three runs: of four columns, of the first two, and of the same two twice as large."""
    folder, generator = tmp_path_factory.mktemp("runs"), np.random.default_rng(0)
    inputs, labels = generator.normal(size=(48, 4)).astype(np.float32), np.arange(48) % 3
    inputs[:, 0] += labels
    views = {"four": inputs, "two": inputs[:, :2], "large": 2 * inputs[:, :2]}
    for name, view in views.items():
        held = (view[:12], labels[:12])
        data = pq.from_arrays(view, labels, heldout=held, name=f"columns {name}").shuffled(0)
        pq.run("mlp1", data, METHOD, seed=0, width=0.05, out=folder / name)
    return [folder / name for name in views]


def test_every_reader_takes_them_and_says_so(
    runs: Sequence[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = list(map(str, runs))
    line = "the inputs differ (columns four: four; columns two: two; columns large: large): each code is"
    assert cli.main(["compare", *names, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["data"] == "columns four, columns two, columns large"
    assert len(told["entries"]) == 3
    assert line in told["sentences"][-1].replace("The", "the")
    assert not any("held-out figures are of different" in each for each in told["sentences"])
    assert cli.main(["pareto", *names, "--heldout"]) == 0
    assert f"preq: note: {line}" in capsys.readouterr().err
    for kind in ("regret", "loss", "error", "curve", "calibration", "pareto"):
        path = pq.plot(kind, names, tmp_path / f"{kind}.svg")
        assert path.exists()
    assert cli.main(["watch", *names, "--once"]) == 0
    watched = " ".join(capsys.readouterr().out.split())
    assert watched.count("regret") == 1  # one table
    assert {each.strip() for each in watched.split("·")[0].split(",")} == {f"columns {run.name}" for run in runs}
    assert line in watched
    with pytest.warns(PreqWarning, match="the inputs differ"):
        assert len(pq.regret(*map(pq.load, runs[:2]))) == 48
    page = pq.write_report(runs, tmp_path / "page.html").read_text()
    assert f"The{line[3:]}" in page
    assert "columns two" in page
    for command in ("compare", "pareto", "report", "plot regret", "plot pareto"):
        more = ["-o", str(tmp_path / "no.svg")] if "plot" in command else []
        assert cli.main([*command.split(), *names, *more, "--same-inputs"]) == 2
        assert "differ in their inputs" in capsys.readouterr().err
    with pytest.raises(PreqError, match="differ in their inputs"):
        pq.regret(*map(pq.load, runs[:2]), same_inputs=True)


def test_held_out_figures_of_the_same_inputs_need_the_same_held_out_inputs() -> None:
    one, two = made_record([1.0], name="one"), made_record([1.0], name="two", recipe={"learning_rate": 0.2})
    moved = replace(two, data={**two.data, "heldout": {"inputs": "else", "labels": "hl"}})
    assert not pq.compare([one, two]).notes
    assert "different held-out data" in pq.compare([one, moved]).notes[0]
    (note,) = pq.compare([one, given_inputs(moved, "other")]).notes
    assert GIVEN_INPUTS in note


def test_a_record_of_before_with_a_fingerprint_of_examples_is_read(tmp_path: Path) -> None:
    record = synthetic_record(0, 64)
    changed = replace(record, data={**record.data, "examples": "e"})
    changed.save(tmp_path / "old")
    assert "examples" not in pq.load(tmp_path / "old").data
    assert "The inputs differ" not in page_of(pq.compare([pq.load(tmp_path / "old"), record]))


def test_inputs_without_labels_are_said_where_codes_stand_beside_each_other() -> None:
    data = pq.from_arrays(np.arange(80.0).reshape(40, 2), np.arange(40) % 2, name="made")
    method = pq.ReplayStreams(num_streams=1, batch_size=8)
    few, prefix = (pq.run("mlp1", each, method, seed=0) for each in (data.with_num_labels(16), data.take(16)))
    assert few.data["unlabelled"] == {"number": 24, "left_out": 0}
    assert "unlabelled" not in prefix.data
    assert np.array_equal(few.nats, prefix.nats), "a method that learns from labels alone reads no other input"
    assert few.conditioned_on == prefix.conditioned_on
    with pytest.warns(PreqWarning, match=r"inputs differ \(made with 24 more without labels: the mlp1 run; made: "):
        assert not pq.regret(few, prefix).any()
    with pytest.raises(pq.PreqError, match="differ in their inputs"):
        pq.regret(few, prefix, same_inputs=True)
