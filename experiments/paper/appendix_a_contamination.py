"""Appendix A: duplicates void a held-out split, not a codelength. The paper argues it; here is the experiment.

Each of 3,000 images of MNIST stands three times in the data, 9,000 labels in random order. A table of exact matches
(labels of images that were seen; uniform for others) is judged against LeNet twice: by a random held-out tenth after
training on the rest, and by codelength. Three seeds, a CPU.
"""

import math
from pathlib import Path

import numpy as np
import torch
from findings import difference, mean_of, table
from jobs import SEEDS, Result, read

import prequential as pq

COPIES = 3
DOUBT = 1e-3
"""What the table leaves for other labels than the one it has seen."""


def data_of(seed: int, num_images: int) -> tuple[torch.Tensor, torch.Tensor, np.ndarray]:
    """Images, labels, and which image each one is a copy of."""
    whole = pq.load_data("mnist", order_seed=seed).take(num_images)
    index = np.random.default_rng(seed).permutation(np.repeat(np.arange(num_images), COPIES))
    return whole.inputs(index), whole.labels(index), index


def table_nats(index: np.ndarray, seen: np.ndarray) -> np.ndarray:
    """What the table of exact matches pays for each label, given which images it has seen before."""
    return np.where(seen, -math.log(1 - DOUBT), math.log(10))


def one(seed: int, num_images: int) -> Result:
    images, labels, index = data_of(seed, num_images)
    first = np.zeros(len(index), bool)
    first[np.unique(index, return_index=True)[1]] = True
    data = pq.from_arrays(images, labels, num_classes=10)
    code = pq.run("lenet", data, seed=seed, plan_seed=seed)
    cut = len(index) // 10
    kept = np.isin(index[:cut], index[cut:])
    held, rest = (images[:cut], labels[:cut]), (images[cut:], labels[cut:])
    split = pq.from_arrays(*rest, num_classes=10, heldout=held)
    erm = pq.run("lenet", split, pq.FullDataset(epochs=10), seed=seed, plan_seed=seed)
    assert erm.heldout is not None
    return {
        "seed": seed, "lenet code": code.codelength, "table code": float(table_nats(index, ~first).sum()),
        "lenet held-out": erm.heldout["loss"], "table held-out": float(table_nats(index[:cut], kept).mean()),
        "lenet errors": erm.heldout["error_rate"], "table errors": float(0.9 * (1 - kept.mean())),
    }  # fmt: skip


def main() -> None:
    import argparse
    import json

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    parser.add_argument("--images", type=int, default=3000)
    parser.add_argument("--small", action="store_true", help="1,000 images")
    parser.add_argument("--table", action="store_true", help="run nothing; print what was found")
    flags = parser.parse_args()
    flags.out.mkdir(parents=True, exist_ok=True)
    file = flags.out / f"{Path(__file__).stem}{'_small' * flags.small}.jsonl"
    if not flags.table:
        lines = [one(seed, 1000 if flags.small else flags.images) for seed in SEEDS]
        file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    done = read(file)
    if not done:
        print("nothing yet")
        return
    found = {name: {line["seed"]: line[name] for line in done} for name in done[0] if name != "seed"}
    table(
        {
            "model": model, "codelength, nats": mean_of(found[f"{model} code"]),
            "held-out loss": mean_of(found[f"{model} held-out"], 4),
            "held-out error": mean_of(found[f"{model} errors"], 4),
        }
        for model in ("lenet", "table")
    )  # fmt: skip
    code = difference(found["lenet code"], found["table code"])
    print(f"by codelength the table is {code} than LeNet: {code.verdict()}")
    loss = difference(*({s: 1e4 * v for s, v in found[f"{m} held-out"].items()} for m in ("table", "lenet")))
    print(f"by 10,000 held-out labels LeNet would be {loss} than the table: {loss.verdict()}")


if __name__ == "__main__":
    main()
