"""The scripts behind `The paper, checked`, with made-up results: queues come to an end, and what was found is told."""

import doctest
import hashlib
import runpy
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pytest

from .test_docs import ROOT, imported

FOLDER = ROOT / "experiments" / "paper"
SHARED = ("findings", "jobs")
FINDINGS, JOBS = (imported(FOLDER / f"{name}.py") for name in SHARED)
SCRIPTS = sorted(path for path in FOLDER.glob("*.py") if path.stem not in (*SHARED, "appendix_a_contamination"))
MOST_ROUNDS = 10


def test_the_examples_hold() -> None:
    assert [doctest.testmod(module).failed for module in (FINDINGS, JOBS)] == [0, 0]


def given_to_main(script: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Any, Sequence[Any]]:
    """Plan, tale and scales."""
    given: list[Any] = []
    monkeypatch.setattr(JOBS, "main", lambda *arguments, **more: given.extend((arguments, more)))
    monkeypatch.syspath_prepend(FOLDER)
    runpy.run_path(str(script), run_name="__main__")
    (_, _, plan, tell, *scales), more = given
    return plan, tell, more.get("scales", scales[0] if scales else (JOBS.Scale.FULL, JOBS.Scale.SMALL))


def results(job: Any) -> Iterator[dict[str, Any]]:
    """Of each member, decided by its name alone."""
    has_code, length = job.method.name != "erm", job.length or 60_000
    positions = np.unique(np.geomspace(16, length, 48).astype(int))
    for member, recipe in enumerate(job.recipes):
        share = hashlib.sha256(f"{job.key}{member}".encode()).digest()[0] / 256
        nats = 0.3 * length * (1 + share)
        yield {
            **job.labels, "key": job.key, "member": member, "members": len(job.recipes), "status": "finished",
            "nats": nats if has_code else None, "errors": int(nats / 3) if has_code else None,
            "uncalibrated_nats": 1.02 * nats if has_code else None, "flops": {"code": 1e12 * (1 + share)},
            "heldout": {"loss": 0.1 + share, "error_rate": 0.05 + share / 10},
            "curve": [[int(p), nats * p / length] for p in positions] if has_code else [],
            "settings": JOBS.settings_of(recipe), "seconds": 60.0, "machine": "none",
        }  # fmt: skip


@pytest.mark.parametrize("diverged", [False, True], ids=["", "the first diverged"])
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_queue_comes_to_its_end_and_tells_what_it_found(
    script: Path, diverged: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plan, tell, scales = given_to_main(script, monkeypatch)
    if script.stem == "c7_drift":  # its other data are files of other packages
        scales = [JOBS.Scale.SMALL]
    for scale in scales:
        done: list[dict[str, Any]] = []
        for _ in range(MOST_ROUNDS):
            known = {line["key"] for line in done}
            missing = [job for job in plan(scale, done) if job.key not in known]
            if not missing:
                break
            assert len({job.key for job in missing}) == len(missing)
            done += [line for job in missing for line in results(job)]
            if diverged:
                done[0] |= {"status": "diverged", "nats": float("inf"), "heldout": None}
        assert done
        assert not missing
        capsys.readouterr()
        tell(done, tmp_path / "picture.png")
        plt.close("all")
        told = capsys.readouterr().out
        assert told
        if diverged:
            continue
        assert "nan" not in told
        assert "not known yet" not in told or script.stem == "c7_drift"  # as above


def test_draws_that_diverge_hold_up_no_search(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan, tell, (scale, _) = given_to_main(FOLDER / "table1_cifar.py", monkeypatch)
    first = plan(scale, [])
    done = [line for job in first for line in results(job)]
    for line in done:
        if line["draw"] == 3:
            line |= {"heldout": None} | ({"status": "diverged", "nats": float("inf")} if line["nats"] else {})
    later = [job.labels for job in plan(scale, done) if job.key not in {line["key"] for line in done}]
    assert len(first) == 4 * 16
    assert len(later) == 4 * 8
    assert all(labels["draw"] != 3 for labels in later)
    tell(done, tmp_path / "picture.png")
