"""How long a report takes to make and to open, how large it is, and how much memory it needs.

    python benchmarks/report.py

Synthetic records are written to a temporary folder, `preq report` runs on them in a process of its own, and the page is
opened in a headless Chromium from a file (the last column is empty where there is none).
"""

import argparse
import os
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.browser.chromium import browser, find_chromium  # noqa: E402
from tests.synthetic import synthetic_record  # noqa: E402

CASES = {"small": (2, 60_000), "sweep": (200, 60_000), "large": (500, 60_000), "long": (1, 10_000_000)}
CASES |= {"longest": (2, 37_000_000)}


@dataclass(frozen=True)
class Result:
    """What one report took."""

    seconds: float
    megabytes: float
    peak_mebibytes: float
    open_seconds: float | None


def measure(num_runs: int, length: int) -> Result:
    with tempfile.TemporaryDirectory() as folder:
        for number in range(num_runs):
            synthetic_record(number, length).save(Path(folder) / "runs" / f"net{number % 7}-{number:03d}")
        page = Path(folder) / "report.html"
        code = "import sys; from prequential.cli import main; sys.exit(main(sys.argv[1:]))"
        begin = time.perf_counter()
        arguments = [sys.executable, "-c", code, "report", str(Path(folder) / "runs"), "-o", str(page)]
        quiet = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
        child = os.posix_spawn(sys.executable, arguments, dict(os.environ), file_actions=quiet)
        _, status, usage = os.wait4(child, 0)
        seconds = time.perf_counter() - begin
        assert status == 0, f"preq report ended with {status}"
        opened = open_seconds(page) if find_chromium() else None
        return Result(seconds, page.stat().st_size / 1e6, usage.ru_maxrss / 1024, opened)


def open_seconds(page: Path) -> float:
    """The median of three, each from asking for the page until it is drawn."""
    with browser() as running:
        running.size(1280, 900)
        return sorted(running.open(page) for _ in range(3))[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", help=f"of {', '.join(CASES)} (default: all)")
    cases = parser.parse_args().cases or list(CASES)
    print(f"{'runs':>5} {'positions':>11} {'made in':>9} {'size':>9} {'peak memory':>12} {'opens in':>9}")
    for name in cases:
        num_runs, length = CASES[name]
        result = measure(num_runs, length)
        opened = "–" if result.open_seconds is None else f"{result.open_seconds:.2f} s"
        print(
            f"{num_runs:>5} {length:>11,} {result.seconds:>7.1f} s {result.megabytes:>6.1f} MB "
            f"{result.peak_mebibytes:>8,.0f} MiB {opened:>9}",
            flush=True,
        )


if __name__ == "__main__":
    main()
