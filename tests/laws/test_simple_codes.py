"""The simple codes are codes: causal, complete, and what a slow count says."""

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prequential.targets import simple_codes
from prequential.targets.simple_codes import frequency_code, previous_label_code, uniform_code

Code = Callable[[np.ndarray, int], np.ndarray]
CODES = [uniform_code, frequency_code, previous_label_code]
LABELS = st.lists(st.integers(0, 3), max_size=40).map(np.array)


@pytest.mark.parametrize("code", CODES)
def test_probabilities_of_all_sequences_sum_to_one(code: Code) -> None:
    sequences = itertools.product(range(3), repeat=4)
    assert sum(math.exp(-code(np.array(s), 3).sum()) for s in sequences) == pytest.approx(1)


@given(labels=LABELS)
def test_they_are_what_a_slow_count_says(labels: np.ndarray) -> None:
    counts, before = [0.5] * 4, None
    follows: dict[int | None, list[float]] = {}
    for position, label in enumerate(labels.tolist()):
        context = follows.setdefault(before, [0.5] * 4)
        assert frequency_code(labels, 4)[position] == pytest.approx(-math.log(counts[label] / sum(counts)))
        assert previous_label_code(labels, 4)[position] == pytest.approx(-math.log(context[label] / sum(context)))
        counts[label] += 1
        context[label] += 1
        before = label


@pytest.mark.parametrize("code", CODES)
@given(labels=LABELS, cut=st.integers(0, 40))
def test_a_prefix_does_not_depend_on_what_follows(code: Code, labels: np.ndarray, cut: int) -> None:
    assert np.array_equal(code(labels, 4)[:cut], code(labels[:cut], 4))


@given(st.lists(st.integers(0, 2), max_size=80), st.integers(1, 9))
def test_counting_block_by_block_is_counting(labels: list[int], size: int) -> None:
    sequence = np.array(labels, np.uint8)
    for code in (frequency_code, previous_label_code):
        whole = code(sequence, 3)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(simple_codes, "BLOCK_SIZE", size)
            np.testing.assert_array_equal(code(sequence, 3), whole)
