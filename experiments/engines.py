"""Engines agree, on a GPU: `python experiments/engines.py`

    1  fp32, the first 512 labels, each of five seeds: graph within 0.5 % of eager
    2  fp32, 4,096 labels, the mean of five seeds: graph within 2 % of eager
    3  float64, twenty training steps: every weight to 1e-9
    4  --deterministic: two runs, and one that was stopped and resumed, give the same bits
    5  labels encoded on the GPU decode on the GPU
    6  inputs that stream to the GPU give the same bits as inputs that live there

LeNet on MNIST by MI/RS with 8 streams. Training is chaotic: rounding errors grow, so that two eager runs in fp32
differ as well; the third column shows by how much.
"""

import argparse
import statistics
import tempfile
from pathlib import Path
from unittest import mock

import numpy as np
import torch

import prequential as pq
from prequential.learn import inputs as learn_inputs
from prequential.learn.graph import GraphLearner
from prequential.learn.learner import Learner

METHOD = pq.ReplayStreams(num_streams=8, batch_size=32)
RECIPE = pq.Recipe(learning_rate=1e-3)
SAME_BITS = pq.Execution(engine="graph", deterministic=True)


def codelength(length: int, seed: int, device: str, engine: str, *, compiled: bool = False) -> float:
    data = pq.load_data("mnist").take(length).without_heldout()
    run = pq.run("lenet", data, METHOD, RECIPE, seed=seed, device=device,
                 execution=pq.Execution(engine=engine, precision="fp32", compiled=compiled))  # fmt: skip
    return float(run.nats.sum())


def agree(length: int, device: str) -> None:
    ways = [("eager", False), ("eager", False), ("graph", False), ("graph", device != "cpu")]
    found = [[codelength(length, seed, device, e, compiled=c) for e, c in ways] for seed in range(5)]
    print(f"{length} labels, nats: seed, eager, then how much others differ: eager again, graph, graph compiled")
    for seed, (eager, *others) in enumerate(found):
        print(f"  {seed}  {eager:9.2f}" + "".join(f"  {other / eager - 1:+.3%}" for other in others), flush=True)
    means = [statistics.mean(column) for column in zip(*found, strict=True)]
    print("  mean of five: " + "".join(f"  {mean / means[0] - 1:+.3%}" for mean in means[1:]), flush=True)


def double_precision(device: str) -> None:
    data = pq.load_data("mnist").take(640)
    batches = np.arange(640).reshape(20, 32)
    labels = data.labels(np.arange(640)).view(20, 32).to(device)
    weights = []
    for kind in (Learner, GraphLearner):
        learner = kind("lenet", data, RECIPE, seed=0, device=device, dtype=torch.float64)
        learner.probe(32)
        learner.train_steps(batches, labels, 0)
        weights.append(torch.cat([t.flatten() for t in learner.raw_tensors.averaged + learner.ema_tensors.averaged]))
    print(f"float64, 20 steps: largest difference of a weight {float((weights[0] - weights[1]).abs().max()):.1e}")


def same_bits(device: str) -> None:
    data = pq.load_data("mnist").take(4096).without_heldout()

    def run(**more: object) -> pq.Record:
        return pq.run("smallconv", data, METHOD, RECIPE, seed=0, device=device, execution=SAME_BITS, **more)

    one, two = run(), run()
    print(f"deterministic, twice the same bits: {one.nats.tobytes() == two.nats.tobytes()} ({one!r})")

    def stop(progress: object) -> None:
        if progress.position >= 2000:
            raise RuntimeError("stopped on purpose")

    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "run"
        try:
            run(out=out, checkpoint_seconds=0.2, listeners=[stop])
        except RuntimeError as error:
            print(f"  {error} at label {len(pq.load(out).nats)}")
        resumed = run(out=out, resume=True)
    print(f"  resumed, the same bits: {one.nats.tobytes() == resumed.nats.tobytes()}", flush=True)


def round_trip(device: str) -> None:
    data = pq.load_data("mnist").take(2048).without_heldout()
    bits = pq.encode("lenet", data, METHOD, RECIPE, seed=0, device=device, execution=pq.Execution(engine="graph"))
    identical = np.array_equal(pq.decode(bits, data, device=device), data.labels(np.arange(2048)).numpy())
    print(f"encoded {len(bits):,} bytes; decoded labels identical: {identical}")


def streamed(device: str) -> None:
    data = pq.load_data("mnist").take(1024).without_heldout()

    def nats() -> bytes:
        run = pq.run("lenet", data, METHOD, RECIPE, seed=0, device=device, execution=SAME_BITS)
        return run.nats.tobytes()

    resident = nats()
    with mock.patch.object(learn_inputs, "SHARE", 0.0):
        print(f"streamed inputs, the same bits as resident ones: {resident == nats()}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda")
    device = parser.parse_args().device
    name = torch.cuda.get_device_name() if device.startswith("cuda") else device
    print(f"python experiments/engines.py --device {device}: {name}, torch {torch.__version__}")
    double_precision(device)
    same_bits(device)
    round_trip(device)
    streamed(device)
    agree(512, device)
    agree(4096, device)


if __name__ == "__main__":
    main()
