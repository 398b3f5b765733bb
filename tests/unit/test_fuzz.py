"""Random damage to bitstreams, checkpoints and records: a clean error or a verified right answer, nothing else.

PREQ_FUZZ=2000 tries more.
"""

import os
import random
import shutil
import signal
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import prequential as pq
from prequential.data.arrays import from_arrays
from prequential.errors import PreqError, PreqWarning
from prequential.runs.record import ARRAYS, Record

from ..conftest import blobs
from ..laws.test_records import tiny
from ..processes import PATIENCE

TRIES = int(os.environ.get("PREQ_FUZZ", "500"))
METHOD = pq.ReplayStreams(num_streams=1, batch_size=8)


def damaged(content: bytes, chance: random.Random) -> bytes:
    """A truncation, a few flipped bits, or inserted bytes."""
    kind, place = chance.randrange(3), chance.randrange(len(content))
    if kind == 0:
        return content[:place]
    if kind == 1:
        values = bytearray(content)
        for _ in range(chance.choice([1, 1, 1, 2, 8])):
            values[chance.randrange(len(values))] ^= 1 << chance.randrange(8)
        return bytes(values)
    return content[:place] + chance.randbytes(chance.choice([1, 4, 64])) + content[place:]


@contextmanager
def time_limit(seconds: int) -> Iterator[None]:
    def give_up(number: int, frame: object) -> None:
        raise TimeoutError(f"hangs for more than {seconds} s")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def attempt(action: Callable[[], bool]) -> bool:
    """Whether the damage was told; the only other way to end well is the right answer."""
    with time_limit(int(PATIENCE)), warnings.catch_warnings(action="ignore", category=PreqWarning):
        try:
            assert action(), "a wrong answer was handed over as right"
        except PreqError as error:
            complaint = str(error)
        else:
            return False
    assert "\n" not in complaint
    return True


def test_damaged_bitstreams() -> None:
    data = blobs(48)
    content = pq.encode("mlp1", data, METHOD, seed=0, width=0.02)
    blind = from_arrays(data.stored_inputs, None)
    chance, told = random.Random(1), 0

    def decodes_right(broken: bytes) -> bool:
        return np.array_equal(pq.decode(broken, blind), data.stored_labels.numpy())

    for _ in range(TRIES // 2):
        broken = damaged(content, chance)
        told += attempt(partial(decodes_right, broken))
    assert told >= 0.99 * (TRIES // 2)


def same(one: Record, other: Record) -> bool:
    return (
        all(getattr(one, name).tobytes() == getattr(other, name).tobytes() for name in ARRAYS)
        and one.summary() | {"record": None} == other.summary() | {"record": None}
        and (one.method, one.recipe, one.data) == (other.method, other.recipe, other.data)
    )


def test_damaged_records(tmp_path: Path) -> None:
    record = pq.run("mlp1", blobs(48), METHOD, seed=0, width=0.02, out=tmp_path / "run")
    chance, told = random.Random(2), 0
    files = sorted(p for p in (tmp_path / "run").iterdir() if p.name != "lock")
    for _ in range(TRIES // 4):
        file = chance.choice(files)
        content = file.read_bytes()
        file.write_bytes(damaged(content, chance))
        told += attempt(lambda: same(pq.load(tmp_path / "run"), record))
        file.write_bytes(content)
    assert told > 0.8 * (TRIES // 4)


def test_damaged_checkpoints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("prequential.runs.recorder.SECONDS_BETWEEN_PAUSES", 0.0)

    def start(out: Path, stop_at: int = 1000) -> Record:
        return pq.run(
            tiny,
            blobs(64),
            METHOD,
            seed=0,
            out=out,
            resume=True,
            checkpoint_seconds=0,
            listeners=[lambda p: signal.raise_signal(signal.SIGTERM) if p.position >= stop_at else None],
        )

    undisturbed = start(tmp_path / "whole")
    with pytest.raises(pq.Interrupted):
        start(tmp_path / "stopped", stop_at=40)
    chance = random.Random(3)

    def resumes_right(out: Path) -> bool:
        return same_code(start(out), undisturbed)

    files = sorted(p.relative_to(tmp_path / "stopped") for p in (tmp_path / "stopped").rglob("*.*") if p.is_file())
    for number in range(TRIES // 4):
        out = tmp_path / f"try{number}"
        shutil.copytree(tmp_path / "stopped", out)
        for file in chance.sample(files, chance.choice([1, 1, 2])):
            (out / file).write_bytes(damaged((out / file).read_bytes(), chance))
        attempt(partial(resumes_right, out))
        shutil.rmtree(out)


def same_code(one: Record, other: Record) -> bool:
    return one.status == "finished" and one.nats.tobytes() == other.nats.tobytes() and one.heldout == other.heldout
