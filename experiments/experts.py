"""What mixing gains: seeds of one network on MNIST; a network, simple codes and trees on two streams.

    python experiments/experts.py mnist                    # four LeNets, 4,096 labels; one with four times the steps
    python experiments/experts.py elec --data-dir DIR      # DIR holds elec.csv and covtype.csv; three seeds each
    python experiments/experts.py covtype --data-dir DIR
    python experiments/experts.py elec --data-dir DIR --trees    # with an adaptive random forest among the experts

Each run is kept under --out and found again; the table is printed from the records. Experts of the streams: mlp2 with
the preset `best` of tables and the simple codes, by logistic mixing with weights for each previous label.
"""

import argparse
from pathlib import Path
from typing import Any

import numpy as np

import prequential as pq
from prequential.presets import find_preset

LENGTHS = {"elec": 45_312, "covtype": 50_000}
FOREST = "river:forest.ARFClassifier"


def kept(out: Path, make_model: Any, data: Any, method: Any, recipe: Any, seed: int) -> pq.Record:
    return pq.run(make_model, data, method, recipe, seed=seed, threads=1, out=out, resume=True)


def mnist(out: Path) -> None:
    data, recipe = pq.load_data("mnist").take(4096).without_heldout(), pq.Recipe()
    few, many = pq.ReplayStreams(num_streams=8), pq.ReplayStreams(num_streams=35)  # 36 is four times 9
    experts = pq.Experts.of_seeds("lenet", 4, mixer="logistic")
    pq.run("lenet", data.take(256), few, recipe, seed=0, threads=1)  # what a first run loads is nobody's time
    for seed in range(3):
        mixed = kept(out / f"mnist-four-{seed}", experts, data, few, recipe, seed)
        alone = mixed.expert_nats.sum(axis=0)
        one = kept(out / f"mnist-one-{seed}", "lenet", data, few, recipe, seed)
        longer = kept(out / f"mnist-longer-{seed}", "lenet", data, many, recipe, seed)
        gain, each = 1 - mixed.codelength / alone.mean(), ", ".join(f"{nats:.0f}" for nats in alone)
        print(f"seed {seed}: four LeNets {mixed.codelength:.1f} nats, {gain:.1%} below the mean of the four ({each}),")
        print(
            f"  {mixed.seconds / one.seconds:.2f} times the time of one; four times the steps: {longer.codelength:.1f}"
        )


def stream(name: str, out: Path, data_dir: Path, *, trees: bool) -> None:
    length, preset = LENGTHS[name], find_preset("best", "table:stream", "mlp2")
    data = pq.load_data(f"table:{data_dir / name}.csv", order="given", label="label").take(length).without_heldout()
    method, models = preset.method("mi-rs", {}), ["mlp2", *([FOREST] if trees else [])]
    found = []
    for seed in range(1 if trees else 3):
        experts = pq.Experts(models, mixer=pq.Logistic(by_previous_label=True), simple_codes=True)
        place = out / f"{name}{'-trees' if trees else ''}-{seed}"
        record = kept(place, experts, data, method, preset.recipe, seed)
        found.append(record.codelength / length)
        alone = zip(record.expert_names, record.expert_nats.sum(axis=0) / length, strict=True)
        told = ", ".join(f"{each} {nats:.4f}" for each, nats in alone)
        print(f"{name}, seed {seed}: {found[-1]:.4f} nats per label ({told}), {record.seconds:.0f} s", flush=True)
    print(f"{name}: {np.mean(found):.4f} nats per label, the mean of {len(found)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("mnist", *LENGTHS))
    parser.add_argument("--data-dir", type=Path, default=Path())
    parser.add_argument("--out", type=Path, default=Path("runs/experts"))
    parser.add_argument("--trees", action="store_true")
    flags = parser.parse_args()
    if flags.what == "mnist":
        mnist(flags.out)
    else:
        stream(flags.what, flags.out, flags.data_dir, trees=flags.trees)


if __name__ == "__main__":
    main()
