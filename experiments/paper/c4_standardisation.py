"""C.4: weight standardisation shortens the code of VGG, more than it helps conventional training (ERM); for ResNets the
paper calls it not conclusive.

CIFAR-10 and CIFAR-100, VGG and ResNet-18 with and without it, by MI/RS and by ERM with as many passes, 20,000 labels,
K = 25, one recipe, three seeds. With --narrow: networks of an eighth of the width, 4,096 labels, K = 12, six seeds.
"""

from itertools import product
from pathlib import Path

from findings import by_seed, difference, mean_of, table
from jobs import MORE_SEEDS, NARROW, NARROW_PASSES, SEEDS, Job, Result, Scale, main, of_the_paper

import prequential as pq

PAIRS = {"vgg16": {True: "vggpp", False: "vgg16-bn"}, "resnet18": {True: "resnet18-ws", False: "resnet18"}}
DATA, METHODS = ("cifar10", "cifar100"), ("mi-rs", "erm")


def plan(scale: Scale, done: list[Result]) -> list[Job]:
    narrow = scale is Scale.NARROW
    passes, batch_size = (NARROW_PASSES, 32) if narrow else (25, 64)
    seeds = (*SEEDS, *MORE_SEEDS) if narrow else SEEDS
    methods = {
        "mi-rs": pq.ReplayStreams(num_streams=passes, batch_size=batch_size),
        "erm": pq.FullDataset(epochs=passes, batch_size=batch_size),
    }
    return [
        Job(
            labels={"data": data, "network": network, "method": method, "ws": ws, "seed": seed}, data=data,
            length=NARROW["length"] if narrow else 20_000, model=PAIRS[network][ws],
            width=NARROW["width"] if narrow else 1.0, method=methods[method],
            recipes=[of_the_paper(data, ema_step_size=0.03)], seed=seed,
        )
        for data, seed, network, method, ws in product(DATA, seeds, PAIRS, METHODS, (True, False))
    ]  # fmt: skip


def tell(done: list[Result], picture: Path) -> None:
    rows = []
    for data, network, method in product(DATA, PAIRS, METHODS):
        cell = {"data": data, "network": network, "method": method}
        for ws in (True, False):
            coded = method != "erm" and any(r["data"] == data for r in done)
            rows.append(
                {
                    **cell, "ws": "with" if ws else "without",
                    "nats": mean_of(by_seed(done, **cell, ws=ws)) if coded else "–",
                    "held-out loss": mean_of(by_seed(done, "heldout.loss", **cell, ws=ws), 3),
                    "held-out errors": mean_of(errors(done, **cell, ws=ws)),
                }
            )  # fmt: skip
        if method != "erm":
            gap = difference(by_seed(done, **cell, ws=True), by_seed(done, **cell, ws=False))
            print(f"{data}, {network}: without it the code is {gap}: {gap.verdict()}")
        gap = difference(errors(done, **cell, ws=True), errors(done, **cell, ws=False))
        low, high = gap.interval
        print(f"  {method}: without it {gap.mean:+,.0f} held-out errors ({low:+,.0f} to {high:+,.0f}): {gap.verdict()}")
    table(rows)
    for data, network in product(DATA, PAIRS):
        gains = [gains_of(done, data, network, method) for method in METHODS]
        more = difference(gains[1], gains[0])
        low, high = more.interval
        told = f"{more.mean:+,.0f} held-out errors more are saved by MI/RS than by ERM ({low:+,.0f} to {high:+,.0f})"
        print(f"{data}, {network}: {told}: {more.verdict()}")


def errors(done: list[Result], **labels: object) -> dict[int, float]:
    """Among 10,000 held-out images, by seed."""
    return {seed: 10_000 * rate for seed, rate in by_seed(done, "heldout.error_rate", **labels).items()}


def gains_of(done: list[Result], data: str, network: str, method: str) -> dict[int, float]:
    """How many held-out errors fewer there are with it, by seed."""
    cell = {"data": data, "network": network, "method": method}
    with_it, without = (errors(done, **cell, ws=ws) for ws in (True, False))
    return {seed: without[seed] - with_it[seed] for seed in sorted(set(with_it) & set(without))}


if __name__ == "__main__":
    main(__file__, __doc__, plan, tell, scales=(Scale.FULL, Scale.NARROW))
