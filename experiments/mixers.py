"""What each mixer makes of the same predictions, and how much more any weights could have.

    python experiments/mixers.py mnist                   # four LeNets, 4,096 labels; seeds 0, 1, 2
    python experiments/mixers.py plans                   # the same LeNets, each with a plan seed of its own
    python experiments/mixers.py elec --data-dir DIR     # DIR holds elec.csv: mlp2 and the simple codes, 10,000 labels

Each network is trained once. What it said of every class is kept under --out, and mixed again by each mixer.
"""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

import prequential as pq
from prequential.mixers import Mixing, PureLogistic
from prequential.rng import derive

MIXERS: dict[str, Any] = {
    "Bayes()": pq.Bayes(),
    "Switching()": pq.Switching(),
    'Switching(rate="grid")': pq.Switching(rate="grid"),
    "Logistic(learning_rate=0.005)": pq.Logistic(learning_rate=0.005),
    "Logistic()": pq.Logistic(),
    "Logistic(by_previous_label=True)": pq.Logistic(by_previous_label=True),
}
TRIED: dict[str, Any] = {f"rate {rate:g}": PureLogistic(learning_rate=rate) for rate in (0.001, 0.002, 0.005, 0.01)}
TRIED |= {f"rate {rate:g}": PureLogistic(learning_rate=rate) for rate in (0.02, 0.05, 0.2, 0.5)}
TRIED |= {
    f"rate {rate:g}, falling after {labels}": PureLogistic(learning_rate=rate, full_rate_labels=labels)
    for rate, labels in ((0.02, 64), (0.02, 256), (0.05, 64))
}
TRIED |= {
    f"rate {rate:g}, adamw": PureLogistic(learning_rate=rate, optimizer="adamw") for rate in (0.0003, 0.001, 0.003)
}
SUMS = (0.8, 0.9, 1.2)
"""Of the first weights, in place of 1."""


class Heard(pq.Bayes):
    """A mixer that keeps what the experts said."""

    rows: ClassVar[list[Any]] = []
    labels: ClassVar[list[int]] = []

    def begin(self, num_experts: int, num_classes: int) -> Any:
        mixing: Any = super().begin(num_experts, num_classes)
        learn: Callable[..., None] = mixing.learn

        def keep(experts: Any, label: int) -> None:
            self.rows.append(experts.copy())
            self.labels.append(label)
            learn(experts, label)

        mixing.learn = keep
        return mixing


def heard(
    place: Path, experts: pq.Experts, data: Any, preset: pq.Preset, seed: int, plan_seed: int = 0
) -> tuple[Any, Any]:
    """What each expert said of each class, (labels, experts, classes), and the labels."""
    if not place.exists():
        Heard.rows.clear()
        Heard.labels.clear()
        method = preset.method("mi-rs", {"early_labels": 0})  # as the preset was when the table was made
        pq.run(experts, data, method, preset.recipe, seed=seed, plan_seed=plan_seed, threads=1)
        place.parent.mkdir(parents=True, exist_ok=True)
        np.savez(place, rows=np.stack(Heard.rows), labels=np.array(Heard.labels))
    kept = np.load(place)
    return kept["rows"], kept["labels"]


def four(out: Path, data: Any, preset: pq.Preset, seed: int) -> tuple[Any, Any]:
    """LeNets as `--members 4` has them: all learn from the same batches."""
    experts = pq.Experts.of_seeds("lenet", 4, mixer=Heard())
    return heard(out / f"mnist-{seed}.npz", experts, data, preset, seed)


def four_plans(out: Path, data: Any, preset: pq.Preset, seed: int) -> tuple[Any, Any]:
    """The same, one after the other, each with batches of its own."""
    one, seeds = pq.Experts(["lenet"], Heard()), [seed, *(derive(seed, "expert", number) for number in (1, 2, 3))]
    each = [heard(out / f"plan-{seed}-{i}.npz", one, data, preset, own, i) for i, own in enumerate(seeds)]
    return np.concatenate([rows for rows, _ in each], axis=1), each[0][1]


def nats(mixing: Mixing, rows: Any, labels: Any) -> float:
    """The length of the code."""
    total = 0.0
    for experts, label in zip(rows, labels.tolist(), strict=True):
        total -= mixing.row(experts)[label]
        mixing.tell(label)
    return float(total)


def in_hindsight(rows: Any, labels: Any, floor: float = -20.0) -> float:
    """Of the best constant exponents, which only somebody knows who has seen all labels: Newton's method."""
    said = np.maximum(rows, floor)
    truth, weights = said[np.arange(len(labels)), :, labels], np.full(rows.shape[1], 1 / rows.shape[1])
    for _ in range(12):
        pooled = np.einsum("i,tic->tc", weights, said)
        pooled -= np.logaddexp.reduce(pooled, axis=1, keepdims=True)
        expected = np.einsum("tc,tic->ti", np.exp(pooled), said)
        centred = said - expected[:, :, None]
        curvature = np.einsum("tc,tic,tjc->ij", np.exp(pooled), centred, centred)
        weights = weights - np.linalg.lstsq(curvature, (expected - truth).sum(axis=0), rcond=None)[0]
    return float(-pooled[np.arange(len(labels)), labels].sum())


def table(columns: list[tuple[Any, Any]]) -> None:
    """A line for each mixer, a column for each run."""
    alone = [-rows[np.arange(len(labels)), :, labels].sum(axis=0) for rows, labels in columns]
    for each in alone:
        print("alone:", ", ".join(f"{own:.1f}" for own in each), f"(mean {each.mean():.1f})")

    def line(name: str, found: list[float]) -> None:
        gains = [1 - own / each.mean() for own, each in zip(found, alone, strict=True)]
        said = "  ".join(f"{own:8.1f} {gain:6.1%}" for own, gain in zip(found, gains, strict=True))
        print(f"{name:34s}{said}" + (f"   {np.mean(gains):.1%}" if len(found) > 1 else ""), flush=True)

    def mixings(mixer: Any) -> list[Any]:
        return [mixer.begin(*rows.shape[1:]) for rows, _ in columns]

    for name, mixer in MIXERS.items():
        line(name, [nats(mixing, *each) for mixing, each in zip(mixings(mixer), columns, strict=True)])
    print("logistic mixing without the Bayesian mixture around it, of one learning rate:")
    for name, mixer in TRIED.items():
        line(name, [nats(mixing, *each) for mixing, each in zip(mixings(mixer), columns, strict=True)])
    for total in SUMS:
        begun = mixings(PureLogistic())
        for mixing in begun:
            mixing.parameters *= total
        line(f"rate 0.005, first sum {total}", [nats(m, *each) for m, each in zip(begun, columns, strict=True)])
    line("best constant weights in hindsight", [in_hindsight(*each) for each in columns])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("mnist", "plans", "elec"))
    parser.add_argument("--data-dir", type=Path, default=Path())
    parser.add_argument("--out", type=Path, default=Path("runs/mixers"))
    flags = parser.parse_args()
    if flags.what != "elec":
        data, preset = pq.load_data("mnist").take(4096).without_heldout(), pq.find_preset("default", "mnist", "lenet")
        make = four_plans if flags.what == "plans" else four
        table([make(flags.out, data, preset, seed) for seed in range(3)])
    else:
        stream = pq.load_data(f"table:{flags.data_dir / 'elec.csv'}", order="given", label="label")
        experts, preset = pq.Experts(["mlp2"], Heard(), simple_codes=True), pq.find_preset("best", "table:elec", "mlp2")
        table([heard(flags.out / "elec-0.npz", experts, stream.take(10_000).without_heldout(), preset, 0)])


if __name__ == "__main__":
    main()
