"""Which inputs explain the labels best? Photographs as pixels at 32×32, at 16×16, and as colour histograms.

The labels and their order are the same in every run, the inputs are not: each code length is that of the labels given
these inputs, for a receiver who holds them (docs/comparing-inputs.md).

    python examples/inputs.py PHOTOS                    # a folder with a sub-folder for each class; two minutes
    python examples/inputs.py PHOTOS --labels 100       # a first impression
    preq compare runs/inputs
    preq report runs/inputs -o inputs.html

Nothing here was fitted with the labels. Features that were (a histogram whose bins were chosen to tell the classes
apart, an embedding trained on these photographs' classes) would void the comparison.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import prequential as pq
from prequential.data.sequence import ArraySequence

MODELS = {"pixels-32": "lenet", "pixels-16": "lenet", "histogram": "mlp2"}
"""For each kind of inputs a small network that suits it; the same settings for all."""
BINS = 4
"""Of each channel: 4³ colours."""
METHOD = pq.ReplayStreams(num_streams=8, batch_size=16)
RECIPE = pq.Recipe(learning_rate=1e-3)
"""Lower than the default, which is meant for more labels; not searched for."""


def pixels(photos: Path, size: int) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """The middle of each photograph, `size` pixels wide, and its class; in the order of the files."""
    data = pq.load_data(f"folder:{photos}", size=size, crop="centre", order="given")
    positions = np.arange(len(data))
    return data.inputs(positions).numpy(), data.labels(positions).numpy()


def histograms(images: NDArray[np.uint8]) -> NDArray[np.float32]:
    """How often each of BINS³ colours occurs in an image: square roots of the shares, so that rare ones count too.

    Example:
        >>> histograms(np.zeros((1, 3, 8, 8), np.uint8))[0, :3].tolist()
        [1.0, 0.0, 0.0]
    """
    red, green, blue = (images.astype(np.int64) * BINS // 256).transpose(1, 0, 2, 3).reshape(3, len(images), -1)
    colours = (red * BINS + green) * BINS + blue
    counts = np.stack([np.bincount(row, minlength=BINS**3) for row in colours])
    shares: NDArray[np.float32] = np.sqrt(counts / colours.shape[1]).astype(np.float32)
    return shares


def views(photos: Path, labels: int) -> dict[str, ArraySequence]:
    """The same labels in the same order with each kind of inputs."""
    fine, classes = pixels(photos, 32)
    coarse, _ = pixels(photos, 16)
    inputs: dict[str, NDArray[Any]] = {"pixels-32": fine, "pixels-16": coarse, "histogram": histograms(fine)}
    return {name: pq.from_arrays(each, classes, name=name).shuffled(0).take(labels) for name, each in inputs.items()}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Compare photographs as pixels and as colour histograms.")
    parser.add_argument("photos", type=Path, help="a folder with a sub-folder for each class")
    parser.add_argument("--labels", type=int, default=600, help="how many labels to code (default 600)")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--out", type=Path, default=Path("runs/inputs"))
    flags = parser.parse_args(arguments)
    for name, data in views(flags.photos, flags.labels).items():
        for seed in flags.seeds:
            place = flags.out / f"{name}-seed{seed}"
            pq.run(MODELS[name], data, METHOD, RECIPE, seed=seed, out=place, resume=True)
    runs = [pq.load(flags.out / f"{name}-seed{seed}") for name in MODELS for seed in flags.seeds]
    print(pq.compare(runs))
    print(f"page: {pq.write_report(runs, flags.out / 'inputs.html')}")


if __name__ == "__main__":
    os.environ.setdefault("COLUMNS", "100")
    try:
        main()
    except pq.PreqError as error:
        sys.exit(f"inputs: {error}")
