"""A table of a million rows and twenty columns, ready to run: how long it takes to read, and how much memory.

`python benchmarks/table.py` makes the table once (numbers, text, dates, booleans, holes), reads it in a fresh process
and then reads a million batches' worth of rows from it. The gate: at most 15 s and 1.5 GB over imports on two cores,
after which memory is flat. Processor time is printed beside the clock, because the machine may be shared.
"""

import importlib
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROWS = 1_000_000
MOST_SECONDS, MOST_GB = 15, 1.5


def make(path: Path, rows: int) -> None:
    import numpy as np
    import pyarrow as pa
    from pyarrow import csv

    draw = np.random.default_rng(0)

    def with_holes(values: np.ndarray) -> pa.Array:
        return pa.array(values, mask=draw.random(rows) < 0.05)

    seconds = 1_356_998_400 + np.sort(draw.integers(0, 3 * 365 * 86_400, rows))
    words = np.array([f"word {n}" for n in range(5_000)])
    columns = {f"number {n}": pa.array(draw.normal(size=rows).round(6)) for n in range(6)}
    columns |= {f"holed {n}": with_holes(draw.normal(size=rows).round(6)) for n in range(3)}
    columns |= {f"count {n}": pa.array(draw.integers(0, 1000, rows)) for n in range(3)}
    columns |= {f"few {n}": with_holes(words[draw.integers(0, 12, rows)]) for n in range(2)}
    columns |= {f"many {n}": pa.array(words[draw.integers(0, 5_000, rows)]) for n in range(2)}
    columns |= {"flag": pa.array(draw.random(rows) < 0.3)}
    columns |= {"when": pa.array(seconds.astype("datetime64[s]")), "day": pa.array(seconds.astype("datetime64[D]"))}
    noise = draw.normal(size=rows)
    columns |= {"label": pa.array(np.where(columns["number 0"].to_numpy() + noise > 0, "up", "down"))}
    csv.write_csv(pa.table(columns), path)


def resident() -> float:
    """Gigabytes in use now."""
    with Path("/proc/self/statm").open() as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e9


def measure(path: str) -> None:
    import numpy as np
    import torch

    from prequential.data.sources import load

    for name in ("compute", "csv"):
        importlib.import_module(f"pyarrow.{name}")
    torch.set_num_threads(2)
    imported, begin, processor = resident(), time.monotonic(), time.process_time()
    data = load(path, label="label", time="when")
    digests = data.digests()  # as a run does before its first event
    seconds, used = time.monotonic() - begin, time.process_time() - processor
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9
    after = []
    for start in range(0, 20):
        for _ in range(500):
            data.inputs(np.arange(start * 1000, start * 1000 + 64))
        after.append(resident())
    told = {"rows": len(data), "inputs": data.input_shape[0], "seconds": seconds, "processor_seconds": used}
    told |= {"gb_over_imports": peak - imported, "gb_kept": after[0] - imported, "gb_later": after[-1] - imported}
    print(json.dumps(told | {"digest": digests["inputs"]}))


def main() -> None:
    if len(sys.argv) > 1:
        measure(sys.argv[1])
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "million.csv"
        make(path, ROWS)
        size = path.stat().st_size / 1e6
        done = subprocess.run([sys.executable, __file__, f"table:{path}"], capture_output=True, text=True, check=True)
    told = json.loads(done.stdout)
    load = " ".join(f"{each:.1f}" for each in os.getloadavg())
    print(f"{platform.machine()}, {os.cpu_count()} cores, load {load} (shared with other work)")
    print(f"{told['rows']:,} rows, 20 columns, {size:,.0f} MB of text → {told['inputs']} inputs")
    print(
        f"ready in {told['seconds']:.1f} s ({told['processor_seconds']:.1f} s of processor time); gate {MOST_SECONDS} s"
    )
    print(f"at most {told['gb_over_imports']:.2f} GB over imports, gate {MOST_GB} GB; ", end="")
    print(f"{told['gb_kept']:.2f} GB kept, {told['gb_later']:.2f} GB after 10,000 batches")
    kept = told["seconds"] <= MOST_SECONDS and told["gb_over_imports"] <= MOST_GB
    flat = abs(told["gb_later"] - told["gb_kept"]) < 0.01
    print("kept" if kept and flat else "MISSED")
    raise SystemExit(not (kept and flat))


if __name__ == "__main__":
    main()
