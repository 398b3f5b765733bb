"""What a sweep costs besides its trials: sampling, storage and bookkeeping.

    python benchmarks/sweep.py

Twelve LeNets on 1,024 labels of MNIST from the paper's space, one after the other in this process. The time inside
`run` is that of the trials; the rest of the sweep's time is the overhead. Optuna is imported within that rest.
"""

import sys
import tempfile
import time
from typing import Any
from unittest import mock

import torch

import prequential as pq
from results import machine

LIMIT = 0.02


def main() -> None:
    torch.set_num_threads(1)
    data = pq.load_data("mnist").take(1024)
    pq.run("lenet", data.take(64), pq.ReplayStreams(num_streams=1), seed=0)  # what torch does once
    inside = 0.0
    module = sys.modules["prequential.runs.run"]
    plain = module.run

    def timed(*arguments: Any, **settings: Any) -> pq.Record:
        nonlocal inside
        begin = time.perf_counter()
        record: pq.Record = plain(*arguments, **settings)
        inside += time.perf_counter() - begin
        return record

    with mock.patch.object(module, "run", timed), tempfile.TemporaryDirectory() as folder:
        begin = time.perf_counter()
        summary = pq.sweep("lenet", data, space="mnist", trials=12, seed=0, out=f"{folder}/sweep")
        whole = time.perf_counter() - begin
    share = (whole - inside) / whole
    print(machine())
    print(f"{summary.counts['finished']} trials: {whole:.2f} s, of it in the runs {inside:.2f} s")
    print(f"overhead: {whole - inside:.2f} s = {share:.2%} (limit {LIMIT:.0%})")
    if share > LIMIT:
        raise SystemExit("over the limit")


if __name__ == "__main__":
    main()
