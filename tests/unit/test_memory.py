"""Memory that steps free stays with the process while a run goes, and goes back afterwards."""

import ctypes
import subprocess
import sys

import pytest

import prequential as pq
from prequential.learn import memory

pytestmark = pytest.mark.skipif(
    not hasattr(ctypes.CDLL(None), "gnu_get_libc_version"), reason="the C library of GNU alone has thresholds"
)
MEBIBYTES = 48
"""Of a block: more than the library ever keeps by itself."""
MEASURED = f"""
import resource, pathlib, torch
from prequential.learn.memory import freed_memory_kept

def step():
    torch.ones({MEBIBYTES} * 2**20, dtype=torch.uint8)

def faults():
    step()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(80):
        step()
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

def resident():
    return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() >> 20

print(faults())
with freed_memory_kept():
    print(faults(), resident())
print(resident())
"""


def test_blocks_that_are_freed_serve_the_next_step_and_go_back_at_the_end() -> None:
    """In a process of its own: in one that has run much there are holes that serve as well."""
    printed = subprocess.run([sys.executable, "-c", MEASURED], capture_output=True, text=True, check=True).stdout
    outside, inside, kept, afterwards = map(int, printed.split())
    assert inside < outside / 4, "pages that had to be fetched in eighty steps"
    assert kept - afterwards > MEBIBYTES / 2


def test_a_run_keeps_what_its_steps_free(monkeypatch: pytest.MonkeyPatch) -> None:
    """And codes the same, also where nothing is kept."""
    told: list[tuple[int, int]] = []

    class Library:
        def mallopt(self, threshold: int, size: int) -> int:
            told.append((threshold, size))
            return 1

        def malloc_trim(self, _: int) -> None:
            told.append((0, 0))

    data = pq.load_data("mnist").take(64).without_heldout()
    monkeypatch.setattr(memory, "_c_library", Library)
    kept = pq.run("lenet", data, seed=0, threads=1)
    assert told == [(-1, 2**31 - 1), (-3, 2**26), (-1, 2**26), (-3, 2**25), (0, 0)]
    monkeypatch.setattr(memory, "_c_library", lambda: None)
    assert pq.run("lenet", data, seed=0, threads=1).nats.tolist() == kept.nats.tolist()


@pytest.mark.parametrize("variable", ["MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "GLIBC_TUNABLES"])
def test_what_the_user_has_set_stays(variable: str) -> None:
    asked = "from prequential.learn.memory import _c_library; print(_c_library() is None)"
    for value, left_alone in (("glibc.malloc.check=0" if "GLIBC" in variable else "131072", True), ("", False)):
        made = subprocess.run([sys.executable, "-c", asked], env={variable: value}, capture_output=True, text=True)
        assert made.stdout.strip() == str(left_alone), made.stderr
