"""Optimizers on the first 4,096 labels: `python experiments/optimizers.py mnist adamw:0.003 muon:0.006 --seeds 0 1 2`

Each is named with its learning rate, and with a further number its ε; `adamw:0.003x14` has that many streams. MNIST is
under LeNet with the settings of `preq run mnist lenet`, CIFAR under VGG++ (or another `--model`) of an eighth of its
width with settings near those of the preset `best`. Files of CIFAR are looked for in PREQ_DATA. One thread; seconds
are CPU time.
"""

import argparse
import statistics
import time
from dataclasses import replace

import prequential as pq

LENGTHS = 512, 1024, 2048, 4096
MNIST = (
    pq.ReplayStreams(num_streams=8, batch_size=32, early_labels=1024),
    pq.Recipe(full_rate_steps=3000, ema_step_size=3e-3),
)
CIFAR = (
    pq.ReplayStreams(num_streams=10, batch_size=64, first_block=8, min_steps=8),
    pq.Recipe(eps=1e-2, weight_decay=0.2, ema_step_size=0.01, label_smoothing=0.02, augment=("flip", "shift:2")),
)


def settings_of(job: str, name: str) -> tuple[pq.ReplayStreams, pq.Recipe]:
    """What `adamw:0.003:0.001x14` means on these data."""
    method, recipe = MNIST if name == "mnist" else CIFAR
    told, _, streams = job.partition("x")
    optimizer, rate, *eps = told.split(":")
    recipe = replace(recipe, optimizer=optimizer, learning_rate=float(rate), **{"eps": float(eps[0])} if eps else {})
    return (replace(method, num_streams=int(streams)) if streams else method), recipe


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", choices=("mnist", "cifar10", "cifar100"))
    parser.add_argument("jobs", nargs="+", metavar="OPTIMIZER:RATE[:EPS][xSTREAMS]")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--model", help="in the place of lenet or vggpp")
    parser.add_argument("--length", type=int, default=LENGTHS[-1])
    flags = parser.parse_args()
    data = pq.load_data(flags.data).shuffled(seed=0).take(flags.length).without_heldout()
    model, width = ("lenet", 1.0) if flags.data == "mnist" else ("vggpp", 0.125)
    model = flags.model or model
    for job in flags.jobs:
        (method, recipe), found = settings_of(job, flags.data), []
        for seed in flags.seeds:
            begin = time.process_time()
            record = pq.run(model, data, method, recipe, seed=seed, width=width, threads=1)
            nats, seconds = record.nats.cumsum(), time.process_time() - begin
            found.append(float(nats[-1]))
            at = "".join(f"{nats[length - 1]:8,.0f}" for length in LENGTHS if length <= flags.length)
            print(f"{flags.data:9}{model:12}{job:20} seed {seed}{at}{seconds:6.0f} s", flush=True)
        if len(found) > 1:
            error = statistics.stdev(found) / len(found) ** 0.5
            print(f"{flags.data:9}{model:12}{job:20} mean {statistics.mean(found):,.0f} ± {error:,.0f}", flush=True)


if __name__ == "__main__":
    main()
