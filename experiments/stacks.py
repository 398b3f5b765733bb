"""A stack is as good as the runs it stands for: `python experiments/stacks.py`

    1  float64, the first 256 labels: eight members of a stack against eight learners of the plain engine; the nats of
       every label agree to 1e-6
    2  float32, 1,024 labels: `preq sweep --stack 8` against the same sweep one trial after another, the same
       settings and seeds; the mean codelengths of the eight agree to 0.5 %

MLP with two hidden layers and LeNet on MNIST by MI/RS; learning rate, ε, weight decay and EMA step of the eight are
drawn from a space around the defaults. A stack hashes its dropout from (seed, event, layer), the plain engine draws
its own from torch's generator. So 1 compares the MLP without dropout, and with dropout in a plain engine that is told
the stack's draws; in 2 the trials of the MLP with dropout differ as seeds do, and those of the other two by rounding.
"""

import argparse
import json
import math
import statistics
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

import prequential as pq
from prequential.coding.labels import Scorer
from prequential.events import Indices
from prequential.learn.learner import Learner
from prequential.models import build
from prequential.models.mlp import mlp
from prequential.plan import Plan
from prequential.runs.loop import execute
from prequential.runs.recorder import Recorder
from prequential.stack.dropout import HashedDropout, begin_pass, dropout_keys, hash_dropout
from prequential.stack.learner import StackedLearner
from prequential.sweeps import LogUniform
from prequential.sweeps.sampling import draw_settings, run_seed

MEMBERS = 8
SPACE_FILE = "experiments/stacks.py:SPACE"
SPACE = {
    "learning_rate": LogUniform(1e-3, 1e-2),
    "eps": LogUniform(1e-5, 1e-3),
    "weight_decay": LogUniform(1e-3, 1.0),
    "ema_step_size": LogUniform(1e-2, 1e-1),
}
"""Around the default settings; most of the paper's space learns next to nothing from so few labels."""


class ToldDraws(Learner):
    """The plain engine with the dropout of a stack: hashed layers, whose keys it sets before each step."""

    def _train(self, indices: Indices, labels: torch.Tensor, event: int) -> None:
        layers = [layer for layer in self.model.modules() if isinstance(layer, HashedDropout)]
        for layer, key in zip(layers, dropout_keys([self.seed], event, 1, len(layers))[0, 0], strict=True):
            layer.key.fill_(int(key))
        begin_pass(self.model)
        super()._train(indices, labels, event)


def calm_mlp2(input_shape: tuple[int, ...], num_classes: int) -> torch.nn.Module:
    """The MLP without dropout."""
    return mlp(input_shape, num_classes, dropout=0.0)


def hashed(name: str, input_shape: tuple[int, ...], num_classes: int) -> torch.nn.Module:
    """A model of the package whose dropout is that of a stack."""
    model = build(name, input_shape, num_classes)
    hash_dropout(model)
    return model


def largest_difference(model: Any, alone: Any, kind: type[Learner], streams: int, length: int) -> tuple[float, float]:
    """Between the nats of a stack in float64 and those of its members, each by itself in the plain engine; and the
    mean codelength."""
    data = pq.load_data("mnist").take(length).without_heldout()
    method = pq.ReplayStreams(num_streams=streams, batch_size=32)
    recipes = [pq.Recipe(**draw_settings(SPACE, 0, number)) for number in range(MEMBERS)]
    seeds = [run_seed(0, number) for number in range(MEMBERS)]
    plan = Plan(method, length)
    common: dict[str, Any] = {"dtype": torch.float64, "calibration_rate_factor": method.calibration_rate_factor}
    stack = StackedLearner(model, data, recipes, seeds=seeds, **common)
    stacked = Recorder(plan, data.target, [None] * MEMBERS)
    execute(plan, stack, Scorer(data, stack.device), stacked)
    worst = 0.0
    for member, recipe, seed in zip(stacked.members, recipes, seeds, strict=True):
        learner = kind(alone, data, recipe, seed=seed, **common)
        learner.probe(32)
        recorder = Recorder(plan, data.target)
        execute(plan, learner, Scorer(data, learner.device), recorder)
        worst = max(worst, float(np.abs(member.arrays()["nats"] - recorder.members[0].arrays()["nats"]).max()))
    return worst, statistics.mean(member.total_nats for member in stacked.members)


def in_float64(streams: int, length: int) -> None:
    print(f"float64, {length} labels, {MEMBERS} members: the largest difference of a label's nats (limit 1e-6),")
    print("and the mean codelength")
    for words, model, alone, kind in (
        ("lenet", "lenet", "lenet", Learner),
        ("mlp2 without dropout", calm_mlp2, calm_mlp2, Learner),
        ("mlp2, told the stack's dropout", "mlp2", partial(hashed, "mlp2"), ToldDraws),
    ):
        found, nats = largest_difference(model, alone, kind, streams, length)
        verdict = "agrees" if found <= 1e-6 else "DIFFERS"
        print(f"  {words:<32} {found:.1e}  {verdict}  {nats:7.1f} nats", flush=True)


def swept(model: str, out: Path, flags: str) -> tuple[list[pq.Record], float]:
    """The records of a sweep in the order of its trials, and its seconds."""
    job = f"sweep mnist {model} --space {SPACE_FILE} --trials {MEMBERS} --seed 0 {flags}"
    print(f"  preq {job}", flush=True)
    begin = time.perf_counter()
    command = [sys.executable, "-m", "prequential.cli", *job.split(), "--out", str(out), "--json"]
    told = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    assert told["finished"] == MEMBERS, told
    return [pq.load(path) for path in sorted((out / "trials").iterdir())], time.perf_counter() - begin


def in_float32(model: str, streams: int, length: int) -> None:
    print(f"float32, {length} labels, {model}:")
    job = f"--streams {streams} --length {length}"
    with tempfile.TemporaryDirectory() as folder:
        stacked, stack_seconds = swept(model, Path(folder) / "stack", f"{job} --stack {MEMBERS}")
        single, seconds = swept(model, Path(folder) / "single", f"{job} --jobs 1")
    for one, other in zip(stacked, single, strict=True):
        assert (one.recipe, one.method, one.seeds, one.data) == (other.recipe, other.method, other.seeds, other.data)
        assert (one.environment["engine"], other.environment["engine"]) == ("stack", "eager")
    lengths = [[float(record.nats.sum()) for record in records] for records in (stacked, single)]
    print("  trial     stack    single  difference")
    for number, (one, other) in enumerate(zip(*lengths, strict=True)):
        print(f"  {number:>5}  {one:8.2f}  {other:8.2f}    {one / other - 1:+.3%}")
    means = [statistics.mean(each) for each in lengths]
    share = means[0] / means[1] - 1
    spread = statistics.stdev(math.log(one / other) for one, other in zip(*lengths, strict=True))
    verdict = "agrees" if abs(share) <= 0.005 else "DIFFERS"
    print(f"   mean  {means[0]:8.2f}  {means[1]:8.2f}    {share:+.3%}  {verdict} (limit 0.5 %)")
    print(f"  the differences have a standard deviation of {spread:.2%}, their mean one of {spread / MEMBERS**0.5:.2%}")
    print(f"  {stack_seconds:.0f} seconds as a stack, {seconds:.0f} one by one", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", type=int, default=4)
    flags = parser.parse_args()
    torch.set_num_threads(1)
    print(f"python experiments/stacks.py --streams {flags.streams}: cpu, one thread, torch {torch.__version__}\n")
    begin = time.perf_counter()
    in_float64(flags.streams, 256)
    for model in ("lenet", "experiments/stacks.py:calm_mlp2", "mlp2"):
        print()
        in_float32(model, flags.streams, 1024)
    print(f"\n{time.perf_counter() - begin:.0f} seconds")


if __name__ == "__main__":
    main()
