"""How a run ends: by what it measured, never by when somebody looked."""

import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import prequential as pq
from prequential.errors import PreqWarning
from prequential.methods import Method

from ..conftest import blobs
from .test_records import tiny

LENGTH = 24
WILD = pq.Recipe(optimizer="sgd", learning_rate=1e30)
AT_ONCE = pq.ReplayStreams(num_streams=6, batch_size=LENGTH)
"""All labels are predicted before the first step."""


class Overflowing(nn.Linear):
    """Has a buffer that no prediction needs and that soon is no number."""

    seen: Tensor

    def __init__(self) -> None:
        super().__init__(5, 3)
        self.register_buffer("seen", torch.full((), 1e38))

    def forward(self, inputs: Tensor) -> Tensor:
        if self.training:
            self.seen.mul_(10)
        return super().forward(inputs)


CASES: list[tuple[str, Any, Method, pq.Recipe, str]] = [
    ("mi-rs", tiny, AT_ONCE, WILD, "finished"),
    ("mi-rb", tiny, pq.ReplayBuffer(num_replays=6, batch_size=LENGTH), WILD, "finished"),
    ("ci-fs", tiny, pq.ChunksFromScratch(epochs=4, batch_size=8), WILD, "finished"),
    ("unused", Overflowing, AT_ONCE, pq.Recipe(), "finished"),
    ("erm", tiny, pq.FullDataset(epochs=4, batch_size=8), WILD, "diverged"),
    ("erm unused", Overflowing, pq.FullDataset(epochs=4, batch_size=8), pq.Recipe(), "diverged"),
]


@pytest.mark.parametrize("stacked", [False, True])
@pytest.mark.parametrize("is_heldout", [False, True])
@pytest.mark.parametrize(("model", "method", "recipe", "status"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_how_a_run_ends_does_not_depend_on_the_clock(
    model: Any, method: Method, recipe: pq.Recipe, status: str, is_heldout: bool, stacked: bool, tmp_path: Path
) -> None:
    """The code is whole when every label was predicted; what becomes of the weights afterwards does not undo it."""
    data = blobs(LENGTH) if is_heldout or not method.prequential else blobs(LENGTH).without_heldout()

    def run(seconds: float) -> pq.Record:
        with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings(action="ignore", category=PreqWarning):
            patch.setattr("prequential.runs.recorder.SECONDS_BETWEEN_PAUSES", seconds)
            if stacked:
                return pq.run_stack(model, data, method, [recipe] * 2, seeds=[0, 1])[0]
            out = tmp_path / f"{seconds}"
            return pq.run(model, data, method, recipe, seed=0, out=out, checkpoint_seconds=0)

    often, never = run(0.0), run(1e9)
    assert often.status == never.status == status
    assert often.nats.tobytes() == never.nats.tobytes()
    assert (often.errors, often.codelength, often.heldout) == (never.errors, never.codelength, never.heldout)
    assert len(often.nats) == (LENGTH if method.prequential else 0)


def test_a_held_out_result_that_is_no_number_is_left_out_with_a_word() -> None:
    with pytest.warns(PreqWarning, match="diverged after the last label: no held-out result"):
        record = pq.run(tiny, blobs(LENGTH), AT_ONCE, WILD, seed=0)
    assert (record.status, record.heldout) == ("finished", None)
    assert record.summary()["heldout"] is None
