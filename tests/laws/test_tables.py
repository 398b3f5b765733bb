"""Tables: decisions do not depend on the order of rows, causal inputs not on rows that come later."""

import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prequential.data.tables.build import build
from prequential.data.tables.decide import classes_of, in_order
from prequential.data.tables.frames import from_frame
from prequential.data.tables.roles import find_roles
from prequential.data.tables.schema import Schema
from prequential.data.tables.standardise import standardised_column

NUMBERS = st.one_of(st.none(), st.floats(-1e6, 1e6, width=32))
MOMENTS = st.one_of(st.none(), st.datetimes(datetime.datetime(1950, 1, 1), datetime.datetime(2050, 1, 1)))
TEXTS = st.one_of(st.none(), st.sampled_from(["clear", "grey", "fog", "snow", "hail", "å", "1"]))
ROW = st.tuples(NUMBERS, MOMENTS, TEXTS, st.one_of(st.none(), st.booleans()), st.sampled_from(["no", "yes", "maybe"]))
NAMES = ("number", "moment", "text", "flag", "label")
TYPES = (pa.float64(), pa.timestamp("us"), pa.string(), pa.bool_(), pa.string())
FIRST = [
    (1.0, datetime.datetime(2013, 1, 1, 5), "clear", True, "no"),
    (None, None, None, None, "yes"),
    (2.5, datetime.datetime(2013, 7, 2, 17), "grey", False, "maybe"),
    (2.0, datetime.datetime(2013, 7, 2, 18), "grey", False, "yes"),
]
ROWS = st.lists(ROW, max_size=12).map(lambda rows: FIRST + rows)
"""Every kind of value is there, holes too."""


def table_of(rows: list[Any]) -> pa.Table:
    columns = zip(*rows, strict=True)
    return pa.table([pa.array(values, kind) for values, kind in zip(columns, TYPES, strict=True)], names=list(NAMES))


def inputs_of(table: pa.Table, seed: int | None, schema: Schema | None, how: str = "causal") -> np.ndarray:
    roles = find_roles("t", table.column_names, {}, schema)
    data = build(table, roles, schema=schema, standardise=how, order_seed=seed, where="t", name="t")
    return data.inputs(np.arange(len(data))).numpy()


@given(rows=ROWS, random=st.randoms(use_true_random=False))
def test_decisions_do_not_depend_on_the_order_of_rows(rows: list[Any], random: Any) -> None:
    shuffled = random.sample(rows, len(rows))
    one, other = (from_frame(table_of(each)) for each in (rows, shuffled))
    assert one.schema == other.schema
    assert one.class_names == other.class_names == ("maybe", "no", "yes")
    assert one.schema is not None
    assert Schema.from_plain(one.schema.to_plain(), "here") == one.schema


@pytest.mark.parametrize("how", ["causal", "none"])
@given(rows=ROWS, changed=st.lists(ROW, min_size=16, max_size=16), keep=st.integers(0, 16), seed=st.integers(0, 3))
def test_rows_to_come_move_nothing(how: str, rows: list[Any], changed: list[Any], keep: int, seed: int) -> None:
    """With the schema given, whatever the later rows become; rows are read again later as they were read first."""
    schema = from_frame(table_of(rows)).schema
    keep = min(keep, len(rows))
    others = rows[:keep] + changed[: len(rows) - keep]
    before, after = (inputs_of(table_of(each), None, schema, how) for each in (rows, others))
    assert np.array_equal(before[:keep], after[:keep])
    shuffled = from_frame(table_of(rows), standardise=how, schema=schema).shuffled(seed)
    order = shuffled.order.tolist()
    assert np.array_equal(shuffled.inputs(np.arange(len(rows))).numpy(), inputs_of(table_of(rows), seed, schema, how))
    others = list(rows)
    for place, row in zip(order[keep:], changed, strict=False):
        others[place] = row
    after = inputs_of(table_of(others), seed, schema, how)
    assert np.array_equal(shuffled.inputs(np.arange(keep)).numpy(), after[:keep])


@given(rows=ROWS, keep=st.integers(1, 16))
def test_without_a_schema_values_to_come_move_nothing_that_is_causal(rows: list[Any], keep: int) -> None:
    """Types and holes are known beforehand, as names of columns are; new words and numbers are not."""
    others = [
        row if number < keep else (row[0] and row[0] + 7, row[1], row[2] and f"new {number % 2}", row[3], row[4])
        for number, row in enumerate(rows)
    ]
    before, after = (from_frame(table_of(each), standardise="causal") for each in (rows, others))
    if before.input_shape == after.input_shape:
        seen = np.arange(min(keep, len(rows)))
        assert np.array_equal(before.inputs(seen).numpy(), after.inputs(seen).numpy())


@given(rows=ROWS)
def test_the_whole_table_has_mean_0_and_variance_1(rows: list[Any]) -> None:
    data = from_frame(table_of(rows), columns=["number"])
    inputs = data.inputs(np.arange(len(data))).numpy().astype(np.float64)
    there = inputs[:, 1] == 0
    assert [value[0] is not None for value in rows] == there.tolist()
    assert (inputs[~there, 0] == 0).all(), "a hole is the mean"
    values = np.array([row[0] for row in rows if row[0] is not None])
    expected = (values - values.mean()) / values.std()
    assert np.allclose(inputs[there, 0], expected, rtol=1e-3, atol=1e-3)


@given(seed=st.integers(0, 99), length=st.integers(1, 300), width=st.integers(1, 3))
def test_columns_are_standardised_to_the_bits_of_before(seed: int, length: int, width: int) -> None:
    """As matrices were, down to how sums are rounded: runs of plain tables keep their fingerprints."""
    matrix = np.random.default_rng(seed).lognormal(3, 2, (length, width))
    mean, variance = matrix.mean(0), matrix.var(0)
    moves = (matrix.max(0) > matrix.min(0)) & (variance > 0)
    expected = (matrix - mean) * np.where(moves, 1 / np.sqrt(np.where(moves, variance, 1)), 0)
    for number, column in enumerate(matrix.T.copy()):
        made, _ = standardised_column(column, column[:0], "table", np.arange(length), width == 1)
        assert np.array_equal(made, expected[:, number])


@given(st.lists(st.integers(-(2**70), 2**70), min_size=1, max_size=9))
def test_whole_numbers_are_classes_exactly_and_in_order(numbers: list[int]) -> None:
    names = classes_of([str(number) for number in numbers], range(len(numbers)), "labels")
    assert in_order(names.values()) == tuple(map(str, sorted(set(numbers))))
