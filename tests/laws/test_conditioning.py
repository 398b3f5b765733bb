"""What a code is conditioned on: the widest of its parts, and said where codes differ in it."""

import re
import warnings
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

import prequential as pq
from prequential.cli import main
from prequential.conditioning import ALL_INPUTS, INPUTS_SO_FAR, ORDER, difference, widest
from prequential.errors import PreqError, PreqWarning
from prequential.plan import Plan
from prequential.report.page.build import page_of
from prequential.runs.run import run_stack

from ..conftest import blobs
from ..records import made_record
from ..synthetic import synthetic_record

PARTS = st.lists(st.sampled_from(ORDER), max_size=4)
METHOD = pq.ReplayStreams(num_streams=1, batch_size=8)


@given(PARTS, PARTS)
def test_the_widest_is_an_upper_bound_of_its_parts(some: list[str], others: list[str]) -> None:
    assert widest(*some, *others) == widest(widest(*some), widest(*others)) == widest(*others, *some)
    assert widest(*some) in [*some, INPUTS_SO_FAR]
    assert all(ORDER.index(part) <= ORDER.index(widest(*some)) for part in some)


@pytest.mark.parametrize("part", ["everything", None, 1])
def test_what_is_not_in_the_order_is_refused(part: Any) -> None:
    with pytest.raises(PreqError, match="conditioned_on must be 'inputs up to the label' or 'all inputs', got"):
        widest(INPUTS_SO_FAR, part)


class Wide(pq.ReplayStreams):
    conditioned_on = ALL_INPUTS


class WideModel(nn.Linear):
    conditioned_on = ALL_INPUTS


def narrow_net() -> nn.Module:
    return nn.Sequential(nn.Linear(5, 3))


def wide_net() -> nn.Module:
    return nn.Sequential(nn.Linear(5, 3))


wide_net.conditioned_on = ALL_INPUTS  # type: ignore[attr-defined]


def wide_part() -> nn.Module:
    return nn.Sequential(nn.ReLU(), WideModel(5, 3))


@pytest.mark.parametrize("method", [METHOD, Wide(num_streams=1, batch_size=8)], ids=["narrow plan", "wide plan"])
@pytest.mark.parametrize("looked_at", ORDER)
@pytest.mark.parametrize("net", [narrow_net, wide_net, wide_part, partial(wide_net)], ids=["narrow", *["wide"] * 3])
def test_a_record_keeps_the_widest_of_plan_data_and_model(method: Any, looked_at: str, net: Any) -> None:
    data = replace(blobs(24), conditioned_on=looked_at)
    record = pq.run(net, data, method, seed=0)
    is_wide = isinstance(method, Wide) or looked_at == ALL_INPUTS or net is not narrow_net
    assert record.conditioned_on == (ALL_INPUTS if is_wide else INPUTS_SO_FAR)
    assert np.array_equal(record.nats, pq.run(narrow_net, blobs(24), METHOD, seed=0).nats) or net is wide_part


def test_members_of_a_stack_are_conditioned_as_alone() -> None:
    records = run_stack(wide_net, blobs(24), METHOD, [pq.Recipe()] * 2, seeds=[0, 1])
    assert [record.conditioned_on for record in records] == [ALL_INPUTS] * 2


def test_a_plan_says_what_its_method_declares() -> None:
    assert Plan(METHOD, 8).conditioned_on == INPUTS_SO_FAR
    assert Plan(Wide(), 64).conditioned_on == ALL_INPUTS
    odd = type("Odd", (pq.ReplayStreams,), {"conditioned_on": "tomorrow"})
    with pytest.raises(PreqError, match=r"conditioned_on must be .*, got 'tomorrow'"):
        pq.run(narrow_net, blobs(24), odd(num_streams=1, batch_size=8), seed=0)


def test_a_model_that_looks_at_no_one_knows_what_is_refused() -> None:
    class Odd(nn.Linear):
        conditioned_on = "the answers"

    with pytest.raises(PreqError, match="got 'the answers'"):
        pq.run(lambda: Odd(5, 3), blobs(24), METHOD, seed=0)


@given(st.lists(st.tuples(st.text("ab", min_size=1), st.sampled_from([*ORDER, "of before"])), max_size=8))
def test_a_difference_is_told_only_where_there_is_one(given: list[tuple[str, str]]) -> None:
    told = difference(given)
    values = {looked_at for _, looked_at in given}
    assert bool(told) == (len(values) > 1)
    assert "\n" not in told
    if told:
        assert all(value in told for value in values)


def told_in(records: list[pq.Record]) -> list[str]:
    return [sentence for sentence in pq.compare(records).sentences() if "different inputs" in sentence]


def pair(**changes: Any) -> list[pq.Record]:
    return [made_record([1.0, 2.0], name="one"), made_record([1.0, 1.0], name="two", **changes)]


def test_a_comparison_says_what_codes_were_told_where_that_differs() -> None:
    assert told_in(pair(recipe={"learning_rate": 0.3})) == []
    expected = "codes are given different inputs (inputs up to the label: one; all inputs: two)."
    (sentence,) = told_in(pair(conditioned_on=ALL_INPUTS))
    assert sentence == f"The {expected}"
    comparison = pq.compare(pair(conditioned_on=ALL_INPUTS))
    assert [entry.difference for entry in comparison.entries] == [0.0, 1.0], "they are compared all the same"
    page = page_of(comparison)
    assert expected in page
    assert "all inputs; inputs up to the label" in page


def test_a_run_without_a_code_is_told_nothing() -> None:
    erm = made_record([], name="erm", prequential=False, conditioned_on=ALL_INPUTS, length=2, status="finished")
    assert told_in([made_record([1.0, 2.0], name="one"), erm]) == []


def test_regret_warns_where_codes_were_told_different_inputs() -> None:
    with pytest.warns(
        PreqWarning, match=r"given different inputs \(inputs up to the label: runs/one; all inputs: runs/two\)"
    ):
        assert pq.regret(*pair(conditioned_on=ALL_INPUTS)).tolist() == [0.0, 1.0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pq.regret(*pair())


def test_a_mixture_is_conditioned_on_the_widest_of_its_records() -> None:
    assert pq.mixture(pair()).conditioned_on == INPUTS_SO_FAR
    assert pq.mixture(pair(conditioned_on=ALL_INPUTS)).conditioned_on == ALL_INPUTS


def test_pareto_and_pictures_say_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = [synthetic_record(0, 64), synthetic_record(1, 64, conditioned_on=ALL_INPUTS)]
    for number, record in enumerate(runs):
        record.save(tmp_path / "runs" / str(number))
    assert main(["pareto", str(tmp_path / "runs"), "-o", str(tmp_path / "pareto.svg")]) == 0
    told = "preq: note: the codes are given different inputs (inputs up to the label: 0; all inputs: 1)"
    assert told in capsys.readouterr().err
    for kind in ("regret", "loss", "error", "curve"):
        pq.plot(kind, str(tmp_path / "runs"), tmp_path / f"{kind}.svg")
    for path in tmp_path.glob("*.svg"):
        # each line of a note is a comment above its letters
        text = re.sub(r" -->.*?<!-- ", " ", path.read_text(), flags=re.DOTALL)
        assert "codes are given different inputs" in text, path.name
