"""What saving costs, and how fast a long plan is entered.

    python benchmarks/checkpoint.py

Saving: the time of one checkpoint (arrays synced, weights, optimizer and averages written and synced), as a
share of the default interval of 60 s. Entering: the time to event 9,900,000 of plans of ten million events.
"""

import statistics
import tempfile
import time
from itertools import islice
from pathlib import Path

import prequential as pq
from prequential.data.optional import capabilities
from prequential.methods import Method
from prequential.plan import Plan
from prequential.runs.directory import RunDirectory
from prequential.runs.recorder import Recorder
from prequential.runs.session import make_session

PLANS: list[tuple[Method, int]] = [
    (pq.ReplayStreams(num_streams=8), 29_100_000),
    (pq.ReplayStreams(num_streams=50), 6_100_000),
    (pq.ReplayStreams(num_streams=8, age_law=pq.Pareto(180.0)), 29_100_000),
    (pq.ReplayStreams(num_streams=8, first_block=4, min_steps=8), 29_100_000),
    (pq.ReplayBuffer(num_replays=8, capacity=10_000), 29_100_000),
    (pq.ReplayBuffer(num_replays=8, capacity=10_000, replacement="reservoir"), 29_100_000),
    (pq.ChunksFromScratch(epochs=50), 4_000_000),
    (pq.ChunksFineTuned(epochs=50), 4_000_000),
    (pq.FullDataset(epochs=300), 1_200_000),
]


def save_seconds(model: str) -> float:
    data = pq.load_data("mnist").without_heldout()
    session = make_session(model, data, None, [None], [0])
    with tempfile.TemporaryDirectory() as folder:
        recorder = Recorder(session.plan, capabilities(data).target, [Path(folder)])
        directory = RunDirectory([Path(folder)], session, stacked=False, every_seconds=60.0)
        times = []
        for number in range(10):
            recorder.members[0].num_events = recorder.members[0].position = number * 6000
            begin = time.perf_counter()
            directory.save([0], session.learner, recorder)
            times.append(time.perf_counter() - begin)
        recorder.close()
    return statistics.median(times)


def main() -> None:
    for model in ("lenet", "mlp3", "smallconv"):
        seconds = save_seconds(model)
        print(f"saving {model:<9} {seconds * 1e3:7.1f} ms, {seconds / 60:.3%} of 60 s (limit 2 %)")
    for method, length in PLANS:
        begin = time.perf_counter()
        events = list(islice(Plan(method, length).events(9_900_000), 1))
        seconds = time.perf_counter() - begin
        print(f"entering {method.title} at event 9,900,000: {seconds:.2f} s (limit 1 s), {len(events)} event(s) read")


if __name__ == "__main__":
    main()
