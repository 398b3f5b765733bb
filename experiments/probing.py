"""Probing, as docs/probing.md shows it: `python experiments/probing.py [emnist] [cifar] [speed] [--large]`.

Trains networks of ours (kept in runs/probing, resumed where they are there), then probes their layers on other labels:
MNIST networks on the piece of EMNIST, CIFAR-10 networks on CIFAR-100. `--large` trains on all labels, on a GPU.

Needs PREQ_DATA with the CIFAR binaries, and emnist_balanced_small.npz in it (or in $PREQ_EMNIST). Pictures go to
docs/pictures, what is printed to experiments/probing.txt by `| tee`.
"""

import os
import resource
import sys
import time
from pathlib import Path
from shutil import copyfile

from prequential.cli import main

RUNS = Path(os.environ.get("PREQ_RUNS", "runs/probing"))
PICTURES = Path(__file__).parents[1] / "docs" / "pictures"
EMNIST = f"npz:{os.environ.get('PREQ_EMNIST', 'emnist_balanced_small.npz')}"
SMALL = {
    "mnist-lenet": ["mnist", "lenet", "--length", "20000"],
    "mnist-mlp2": ["mnist", "mlp2", "--length", "20000"],
    "cifar10-smallconv": ["cifar10", "smallconv", "--length", "5000", "--width", "0.5"],
    "cifar10-lenet": ["cifar10", "lenet", "--length", "5000"],
}
LARGE = {
    "mnist-lenet": ["mnist", "lenet"],
    "mnist-mlp2": ["mnist", "mlp2"],
    "cifar10-smallconv": ["cifar10", "smallconv", "--device", "cuda"],
    "cifar10-lenet": ["cifar10", "vggpp", "--preset", "best", "--device", "cuda"],
}


def call(*words: str) -> None:
    """One command, as a person would give it, with what it took."""
    print("$ preq", *words, flush=True)
    begun, before = time.perf_counter(), sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
    if main(list(words)):
        sys.exit(1)
    used = sum(resource.getrusage(resource.RUSAGE_SELF)[:2]) - before
    print(f"({time.perf_counter() - begun:.1f} s, {used:.1f} CPU seconds)\n", flush=True)


def network(name: str) -> str:
    """The word of a network that is trained, now if it was not before."""
    out = RUNS / name
    if not (out / "weights.json").exists():
        settings = (LARGE if "--large" in sys.argv else SMALL)[name]
        call("run", *settings, "--threads", "1", "--keep-weights", "--resume", "--out", str(out))
    return f"run:{out}"


def probe(picture: str, *words: str) -> None:
    """A probing whose picture is kept."""
    out = RUNS / picture
    call("probe", *words, "--layers", "all", "--out", str(out))
    copyfile(out / "probe.png", PICTURES / f"{picture}.png")


parts = [word for word in sys.argv[1:] if not word.startswith("-")] or ["emnist", "cifar", "speed"]
if "speed" in parts:  # six representations, four readouts, 2,000 labels; the features are computed anew
    four = ["--readouts", "linear,mlp1,knn,bayes-linear", "--cache", str(RUNS / f"cache-{time.time():.0f}")]
    call("probe", EMNIST, network("mnist-lenet"), "inputs", "--layers", "all", "--length", "2000", *four)
if "emnist" in parts:
    probe("probing-emnist", EMNIST, network("mnist-lenet"), network("mnist-mlp2"), "lenet", "inputs")
if "cifar" in parts:
    trained = [network("cifar10-smallconv"), network("cifar10-lenet")]
    probe("probing-cifar100", "cifar100", *trained, "lenet", "inputs", "--length", "2000")
