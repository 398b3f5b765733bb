"""Probing, as docs/probing.md shows it: `python experiments/probing.py [emnist] [cifar] [figures] [speed] [--large]`.

Trains networks of ours (kept in runs/probing, or $PREQ_RUNS; gone on with where they are there), then probes their
layers on other labels: MNIST networks on the piece of EMNIST, CIFAR-10 networks on CIFAR-100; `figures` are the single
numbers that the page names. With `--large` two larger networks are trained on all of CIFAR-10, side by side on one
GPU, and probed on CIFAR-100 each in a process of its own. Run again, it trains only what is not finished and maps the
features that are there. For a GPU it needs torch, numpy and the package's own requirements, and no compiler.

Needs PREQ_DATA with the CIFAR binaries, and emnist_balanced_small.npz in it (or in $PREQ_EMNIST). Pictures go to
docs/pictures, what is printed to experiments/probing.txt by `| tee`.
"""

import argparse
import os
import resource
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from shutil import copyfile

import numpy as np
import torch

import prequential as pq
from prequential.cli import main
from prequential.cli.probe import print_probing, write_probing
from prequential.data.sequence import ArraySequence
from prequential.probing.features import representations
from prequential.probing.networks import find_network
from prequential.probing.result import Probing
from prequential.runs.weights import example_digests

RUNS = Path(os.environ.get("PREQ_RUNS", "runs/probing"))
PICTURES = Path(__file__).parents[1] / "docs" / "pictures"
EMNIST = f"npz:{os.environ.get('PREQ_EMNIST', 'emnist_balanced_small.npz')}"
SMALL = {
    "mnist-lenet": ["mnist", "lenet", "--length", "20000"],
    "mnist-mlp2": ["mnist", "mlp2", "--length", "20000"],
    "cifar10-smallconv": ["cifar10", "smallconv", "--length", "5000", "--width", "0.5"],
    "cifar10-lenet": ["cifar10", "lenet", "--length", "5000"],
}
LARGE = {  # what the stages give, and what comes of it
    "vggpp": "features.6,features.13,features.23,features.33,avgpool,classifier",
    "resnet18": "bn1,layer1.1,layer2.1,layer3.1,layer4.1,fc",
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
        call("run", *SMALL[name], "--threads", "1", "--keep-weights", "--resume", "--out", str(out))
    return f"run:{out}"


def probe(picture: str, *words: str) -> None:
    """A probing whose picture is kept."""
    out = RUNS / picture
    call("probe", *words, "--layers", "all", "--out", str(out))
    copyfile(out / "probe.png", PICTURES / f"{picture}.png")


def print_figures() -> None:
    """The single numbers of the page."""
    words = {name: network(name) for name in SMALL}
    for name in SMALL:
        heldout = pq.load(RUNS / name).heldout
        assert heldout is not None
        print(f"{name}: held-out error {heldout['error_rate']:.1%}")
    emnist = pq.load_data(EMNIST)
    found = find_network(words["mnist-mlp2"], emnist, partial(example_digests, emnist))
    for each in representations(found, emnist, "all"):
        answering = np.count_nonzero(np.asarray(each.features).any(0))
        print(f"{each.name}: {answering} of {each.features.shape[1]} units answer to any of {len(emnist):,} images")
    call("probe", EMNIST, "mlp2", "inputs", "--layers", "all", "--length", "2000")


def trained(model: str, flags: argparse.Namespace) -> str:
    """The word of a larger network: the preset `best`, with fewer replays."""
    out = RUNS / f"cifar10-{model}-large"
    words = ["run", "cifar10", model, "--preset", "best", "--streams", str(flags.streams), "--keep-weights", "--resume"]
    words += [*flags.small, "--device", flags.device, "--compile", "no", "--threads", "4", "--out", str(out)]
    if not (out / "weights.json").exists():
        RUNS.mkdir(parents=True, exist_ok=True)
        with (RUNS / f"{out.name}.log").open("ab") as log:
            done = subprocess.run([sys.executable, "-m", "prequential.cli", *words], stdout=log, stderr=log)
        if done.returncode:
            raise SystemExit(f"preq {' '.join(words)} failed; see {log.name}")
    print("$ preq", *words, flush=True)
    return f"run:{out}"


def large_part(model: str, is_trained: bool, flags: argparse.Namespace) -> Probing:
    """One network, trained if need be, and probed."""
    begun = time.perf_counter()
    word = trained(model, flags) if is_trained else model
    between = time.perf_counter()
    torch.set_num_threads(flags.threads)
    words = [word] if is_trained or model != "vggpp" else [word, "inputs"]
    data = pq.load_data("cifar100") if flags.probed is None else _written(flags.probed)
    data = data.take(flags.labels)
    found = pq.probe(words, data, layers=LARGE[model], cache=RUNS / "features", width=flags.width)
    print(f"{word}: {between - begun:.0f} s to train, {time.perf_counter() - between:.0f} s to probe", flush=True)
    return found


FIRST = Path("cifar100_first.npz")


def write_first(labels: int) -> None:
    """The first examples of CIFAR-100, where all of it does not get onto a machine."""
    data = pq.load_data("cifar100")
    rows = np.arange(labels)
    images = data.stored_inputs[data.order[rows]]
    np.savez_compressed(FIRST, inputs=images, labels=data.labels(rows).numpy())
    print(f"{len(images):,} images of type {images.dtype}: {FIRST}")


def _written(file: Path) -> ArraySequence:
    """They, read again."""
    told = np.load(file)
    return pq.from_arrays(told["inputs"], told["labels"], num_classes=100, name="cifar100")


def large(flags: argparse.Namespace) -> None:
    """Both networks, trained and untrained, as one ranking."""
    begun = time.perf_counter()
    jobs = [(model, is_trained) for is_trained in (True, False) for model in LARGE]
    with ProcessPoolExecutor(len(jobs), mp_context=get_context("spawn")) as pool:
        parts = list(pool.map(large_part, *zip(*jobs, strict=True), [flags] * len(jobs)))
    found = replace(parts[0], ranking=Probing.ranked([each for part in parts for each in part.ranking]))
    for model in LARGE:
        record = pq.load(RUNS / f"cifar10-{model}-large")
        assert record.heldout is not None
        told = f"{record.codelength:,.0f} nats, held-out error {record.heldout['error_rate']:.1%}"
        print(f"{model} on cifar10: {told}, {record.environment.get('device_name', 'CPU')}")
    out = RUNS / "probing-cifar100-large"
    out.mkdir(exist_ok=True)
    write_probing(found, out)
    print_probing(found)
    print(f"({time.perf_counter() - begun:.0f} s in all; result and picture: {out})")


def read_flags() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", default=["emnist", "cifar", "figures", "speed"])
    parser.add_argument("--large", action="store_true", help="two larger CIFAR-10 networks on a GPU, and nothing else")
    parser.add_argument("--device", default="cuda", help="of --large")
    parser.add_argument("--streams", type=int, default=30, help="replays of --large")
    parser.add_argument("--labels", type=int, default=2000, help="of CIFAR-100 that --large probes")
    parser.add_argument("--probed", type=Path, metavar="FILE", help=f"{FIRST}, where CIFAR-100 is not at hand")
    parser.add_argument("--write-first", action="store_true", help=f"write {FIRST}, and nothing else")
    parser.add_argument("--threads", type=int, default=4, help="of each of the four that probe")
    parser.add_argument("--length", type=int, default=None, help="of CIFAR-10, to try --large with few")
    parser.add_argument("--width", type=float, default=1.0, help="of the networks, likewise")
    flags = parser.parse_args()
    flags.small = ["--width", str(flags.width), *(["--length", str(flags.length)] if flags.length else [])]
    return flags


if __name__ == "__main__":
    flags = read_flags()
    if flags.write_first:
        write_first(flags.labels)
        sys.exit()
    if flags.large:
        large(flags)
        sys.exit()
    if "speed" in flags.parts:  # six representations, four readouts, 2,000 labels; the features are computed anew
        four = ["--readouts", "linear,mlp1,knn,bayes-linear", "--cache", str(RUNS / f"cache-{time.time():.0f}")]
        call("probe", EMNIST, network("mnist-lenet"), "inputs", "--layers", "all", "--length", "2000", *four)
    if "emnist" in flags.parts:
        probe("probing-emnist", EMNIST, network("mnist-lenet"), network("mnist-mlp2"), "lenet", "inputs")
    if "cifar" in flags.parts:
        networks = [network("cifar10-smallconv"), network("cifar10-lenet")]
        probe("probing-cifar100", "cifar100", *networks, "lenet", "inputs", "--length", "2000")
    if "figures" in flags.parts:
        print_figures()
