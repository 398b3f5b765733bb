"""Why CIFAR under the paper's settings is far from its figures: single changes from `best` towards them, and back.

    python experiments/cifar_gap.py --device cuda --out experiments/cifar_gap.jsonl --minutes 9
    python experiments/cifar_gap.py --table experiments/cifar_gap.jsonl

Each run is 20,000 labels of CIFAR-10 under VGG++ unless its job says otherwise, and one line of JSON when it is done.
Run again, the command goes on with what is missing, and stops in time by not beginning what would not end. Three bases:

    best    our shortest code: the preset of that name
    inside  the same moved into the paper's space: what it draws stays where `best` has it or at the nearest end of the
            interval, what it fixes is as it says, and nothing that it does not mention (constant rate, equal blocks,
            no warm-up of the EMA, no averaged views, flips alone)
    centre  the geometric centre of every interval of the paper's space

A job is BASE, or BASE:CHANGE+CHANGE…, with the changes below; "JOB @ cifar100/50000/1" names data, length and seed.
"""

import argparse
import json
import math
import multiprocessing
import statistics
import sys
import time
from collections import defaultdict
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import fields, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from torch import Tensor, nn

import prequential as pq
from prequential.data.sequence import DataSequence
from prequential.models.vgg import vggpp
from prequential.presets import find_preset

POSITIONS = (512, 1024, 2048, 4096, 8192, 10_000, 20_000, 30_000, 40_000, 50_000)
EQUAL_BLOCKS = {"first_block": None, "min_steps": 0}
NOT_THE_PAPERS = {
    "augment": ("flip",), "average_flips": False, "average_views": 1, "full_rate_steps": 0, "ema_warmup": False,
    "batch_statistics": "averaged-twice",
}  # fmt: skip
INSIDE = NOT_THE_PAPERS | EQUAL_BLOCKS | {
    "learning_rate": 2e-3, "eps": 1e-2, "weight_decay": 0.1, "ema_step_size": 3e-3, "label_smoothing": 0.01,
    "num_streams": 62, "batch_size": 64,
}  # fmt: skip
CENTRE = INSIDE | {"learning_rate": 5.5e-4, "weight_decay": 3.2e-3, "ema_step_size": 1e-2, "num_streams": 50}


class Standardised(nn.Module):
    """Inputs between −1 and 1 → mean 0, variance 1 over CIFAR-10, channel by channel."""

    def forward(self, inputs: Tensor) -> Tensor:
        mean, deviation = inputs.new_tensor([[0.491, 0.482, 0.447], [0.247, 0.243, 0.262]]).view(2, 1, 3, 1, 1)
        standardised: Tensor = (inputs / 2 + 0.5 - mean) / deviation
        return standardised


def standardised_inputs(input_shape: tuple[int, ...], num_classes: int) -> nn.Module:
    """VGG++ behind standardised inputs."""
    return nn.Sequential(Standardised(), vggpp(input_shape, num_classes))


def statistics_of_the_block(input_shape: tuple[int, ...], num_classes: int) -> nn.Module:
    """VGG++ whose batch normalisation looks at the batch it is given, also in a prediction."""
    model = vggpp(input_shape, num_classes)
    for layer in model.modules():
        if isinstance(layer, nn.BatchNorm2d):
            layer.track_running_stats = False
            layer.running_mean = layer.running_var = layer.num_batches_tracked = None
    return model


def blier_ollivier(input_shape: tuple[int, ...], num_classes: int) -> nn.Module:
    """The VGG of Blier & Ollivier, with standardised weights: channel dropout, and a dense layer between two of 0.5."""
    model = vggpp(input_shape, num_classes, channel_dropout=(0.3, 0.4))
    model.classifier = nn.Sequential(
        nn.Dropout(0.5), nn.Linear(512, 512), nn.BatchNorm1d(512), nn.Dropout(0.5), nn.Linear(512, num_classes)
    )
    return model


CHANGES: dict[str, dict[str, Any]] = {
    "flips only": {"augment": ("flip",), "average_views": 1},
    "no cutout": {"augment": ("flip", "shift:2")},
    "shift:2": {"augment": ("flip", "shift:2")},
    "shift:4": {"augment": ("flip", "shift:4")},
    "cutout": {"augment": ("flip", "cutout:8")},
    "randaugment": {"augment": ("flip", "randaugment")},
    "no averaging": {"average_flips": False, "average_views": 1},
    "average flips": {"average_flips": True},
    "constant rate": {"full_rate_steps": 0},
    "falling rate": {"full_rate_steps": 5000},
    "equal blocks": EQUAL_BLOCKS,
    "growing blocks": {"first_block": 8, "min_steps": 8},
    "no warm-up": {"ema_warmup": False},
    "warm-up": {"ema_warmup": True},
    "statistics averaged": {"batch_statistics": "averaged"},
    "statistics twice": {"batch_statistics": "averaged-twice"},
    "statistics raw": {"batch_statistics": "raw"},
    "statistics of the block": {"model": statistics_of_the_block},
    "no weight standardisation": {"model": "vgg16-bn"},
    "channel dropout": {"model": partial(vggpp, channel_dropout=(0.3, 0.4), dropout=0.5)},
    "channel dropout halved": {"model": partial(vggpp, channel_dropout=(0.15, 0.2), dropout=0.25)},
    "dropout of the features": {"model": partial(vggpp, dropout=0.5)},
    "Blier & Ollivier": {"model": blier_ollivier},
    "depth 13": {"model": "vggpp-13"},
    "depth 19": {"model": "vggpp-19"},
    "standardised inputs": {"model": standardised_inputs},
    "wrn-28-10": {"model": "wrn-28-10"},
    **{f"decay {value}": {"weight_decay": value} for value in (3.2e-3, 0.01, 0.03, 0.1, 0.2, 0.3, 1.0, 3.0)},
    **{f"rate {value}": {"learning_rate": value} for value in (1e-4, 3e-4, 5.5e-4, 1e-3, 2e-3, 3e-3)},
    **{f"epsilon {value}": {"eps": value} for value in (1e-8, 1e-4, 1e-3, 1e-2, 0.1, 1.0)},
    **{f"EMA {value}": {"ema_step_size": value} for value in (1e-3, 1.5e-3, 3e-3, 0.01, 0.03, 0.1, 1.0)},
    **{f"smoothing {value}": {"label_smoothing": value} for value in (0.0, 0.01, 0.02, 0.1)},
    **{f"{value} streams": {"num_streams": value} for value in (22, 25, 44, 50, 62, 80, 100)},
    **{f"batch {value}": {"batch_size": value} for value in (32, 64, 128)},
}

FROM_BEST = (
    "flips only", "no cutout", "no averaging", "constant rate", "equal blocks", "no warm-up", "statistics twice",
    "statistics raw", "no weight standardisation", "decay 0.1", "decay 0.0032", "smoothing 0.01", "EMA 0.003",
    "62 streams",
)  # fmt: skip
FROM_INSIDE = (
    "shift:2", "shift:4", "cutout", "channel dropout", "channel dropout halved", "dropout of the features",
    "Blier & Ollivier", "no weight standardisation", "statistics averaged", "statistics raw",
    "statistics of the block", "warm-up", "falling rate", "growing blocks", "average flips", "depth 13", "depth 19",
    "standardised inputs", "decay 0.01", "decay 0.3", "decay 1.0", "decay 3.0", "rate 0.0003", "rate 0.001",
    "rate 0.003", "epsilon 0.0001", "epsilon 0.001", "epsilon 0.1", "EMA 0.001", "EMA 0.01", "EMA 0.03",
    "batch 32", "batch 128", "100 streams", "randaugment",
)  # fmt: skip
JOBS = (
    "best", "inside", *(f"inside:{name}" for name in FROM_INSIDE), *(f"best:{name}" for name in FROM_BEST), "centre",
)  # fmt: skip


@lru_cache(maxsize=2)
def data_of(name: str, length: int) -> DataSequence:
    data = pq.load_data(name)
    return data if length == len(data) else data.take(length)


def run(job: str, data: str, length: int, seed: int, options: dict[str, Any]) -> dict[str, Any]:
    """One run, as the line that is kept of it."""
    base, _, changes = job.partition(":")
    preset = find_preset("best", data, "vggpp")
    settings: dict[str, Any] = {"best": {}, "inside": INSIDE, "centre": CENTRE}[base]
    for change in filter(None, changes.split("+")):
        settings = settings | CHANGES[change]
    of_recipe = {f.name for f in fields(pq.Recipe)}
    recipe = replace(preset.recipe, **{name: value for name, value in settings.items() if name in of_recipe})
    own = {name: value for name, value in settings.items() if name not in (*of_recipe, "model")}
    record = pq.run(
        settings.get("model", "vggpp"), data_of(data, length), preset.method("mi-rs", own), recipe, seed=seed, **options
    )
    made = record.environment
    curve = {p: round(float(record.nats[:p].sum()), 1) for p in POSITIONS if p <= len(record.nats)}
    return {
        "job": job, "data": data, "length": length, "seed": seed, "status": record.status,
        "nats": record.codelength, "errors": record.errors, "curve": curve,
        "uncalibrated_nats": float(record.uncalibrated_nats.sum(dtype=float)), "heldout": record.heldout,
        "seconds": round(record.seconds, 1), "device": made["device_name"], "torch": made["torch"],
        "engine": made["engine"], "precision": made["precision"], "compiled": made["compiled"],
    }  # fmt: skip


def work_off(jobs: list[tuple[str, str, int, int]], flags: argparse.Namespace) -> None:
    """Run what fits into the minutes, several at once, and keep a line of each."""
    end = time.monotonic() + 60 * flags.minutes
    options = {"device": flags.device, "execution": pq.Execution(compiled=flags.compile or None)}
    alone: dict[int, float] = defaultdict(float)  # seconds of a run of that length, had it the device for itself
    context = multiprocessing.get_context("spawn")
    running: dict[Future[dict[str, Any]], tuple[float, tuple[str, str, int, int]]] = {}
    with ProcessPoolExecutor(flags.at_once, mp_context=context) as pool:
        while jobs or running:
            while jobs and len(running) < flags.at_once:
                if time.monotonic() + alone[jobs[0][2]] * (len(running) + 1) > end:
                    break
                job = jobs.pop(0)
                running[pool.submit(run, *job, options)] = time.monotonic(), job
            if not running:
                break
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                begun, job = running.pop(future)
                alone[job[2]] = max(alone[job[2]], (time.monotonic() - begun) / (len(running) + 1))
                if (error := future.exception()) is not None:
                    print(f"{job} failed: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
                    continue
                line = json.dumps(future.result())
                with flags.out.open("a") as file:
                    file.write(line + "\n")
                print(line, flush=True)
    print(f"{len(jobs)} runs are left", flush=True)


def read(log: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.read_text().splitlines() if line.startswith("{")] if log.exists() else []


def print_table(log: Path) -> None:
    """Means over seeds and standard errors, the shortest first, with the difference to the base it began from."""
    found = defaultdict(list)
    for result in read(log):
        found[result["data"], result["length"], result["job"]].append(result)
    of = {key: statistics.mean(r["nats"] for r in results) for key, results in found.items()}
    title = "nats        ±   seeds    base    4,096   errors   loss   error   seconds  change"
    for data, length in sorted({key[:2] for key in found}):
        print(f"{data}, {length:,} labels\n{title}")
        for key in sorted((k for k in found if k[:2] == (data, length)), key=lambda k: (k[2].split(":")[0], of[k])):
            results = found[key]
            nats = [r["nats"] for r in results]
            error = f"{statistics.stdev(nats) / math.sqrt(len(nats)):6.0f}" if len(nats) > 1 else "     –"
            base = of.get((data, length, key[2].split(":")[0]))
            change = f"{of[key] - base:+8,.0f}" if base is not None and ":" in key[2] else "        "
            mean = partial(_mean, results)
            print(
                f"{of[key]:8,.0f}{error} {len(nats):4}   {change} {mean('curve', '4096'):8,.0f} "
                f"{mean('errors'):8,.0f}  {mean('heldout', 'loss'):5.3f}  {mean('heldout', 'error_rate'):6.2%}  "
                f"{mean('seconds'):6.0f}  {key[2]}"
            )
        print()


def _mean(results: list[dict[str, Any]], *path: str) -> float:
    values: list[float] = []
    for result in results:
        value: Any = result
        for name in path:
            value = value[name]
        values.append(value)
    return statistics.mean(values)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("jobs", nargs="*", default=JOBS, metavar="BASE:CHANGE+CHANGE", help="instead of the table's")
    parser.add_argument("--data", default="cifar10")
    parser.add_argument("--length", type=int, default=20_000)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--compile", action="store_true", help="pays for long runs")
    parser.add_argument("--at-once", type=int, default=6, help="runs side by side")
    parser.add_argument("--minutes", type=float, default=9.0)
    parser.add_argument("--out", type=Path, default=Path("experiments/cifar_gap.jsonl"))
    parser.add_argument("--table", type=Path, metavar="LOG", help="print a log as a table")
    flags = parser.parse_args()
    if flags.table is not None:
        print_table(flags.table)
        return
    done = {(r["job"], r["data"], r["length"], r["seed"]) for r in read(flags.out)}
    wanted = []
    for seed in flags.seeds:
        for text in flags.jobs:
            job, _, place = text.partition(" @ ")
            data, length, own_seed = place.split("/") if place else (flags.data, flags.length, seed)
            wanted.append((job, data, int(length), int(own_seed)))
    work_off([job for job in dict.fromkeys(wanted) if job not in done], flags)


if __name__ == "__main__":
    main()
