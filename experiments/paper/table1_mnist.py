"""Table 1, MNIST: LeNet and MnistNet by MI/RS, and by conventional training (ERM), drawn from the paper's space.

64 draws for LeNet, 8 for MnistNet, each of the two methods. Draws that share a number of replay streams (or epochs)
are run as one stack, so the number is not drawn but laid out in equal steps of its logarithm. With --small: 8 draws of
LeNet, 4,096 labels.
"""

from pathlib import Path

from findings import best_of, expected_best, table
from jobs import SMALL, Job, Result, Scale, drawn, main

import prequential as pq

DRAWS = {"lenet": (64, (30, 42, 59, 84)), "mnistnet": (8, (42, 71))}
PAPER = {
    ("lenet", "mi-rs"): "4,400 nats, 1,362 errors, 0.03, 1.0 %",
    ("lenet", "erm"): "0.03, 0.8 %",
    ("mnistnet", "mi-rs"): "2,100 nats, 643 errors, 0.02, 0.5 %",
    ("mnistnet", "erm"): "0.02, 0.5 %",
}


def plan(scale: Scale, done: list[Result]) -> list[Job]:
    small = scale is Scale.SMALL
    jobs = []
    for model, (num, streams) in {"lenet": (8, (8,))}.items() if small else DRAWS.items():
        size = num // len(streams)
        for part, number in enumerate(streams):
            recipes = [drawn("mnist", part * size + i) for i in range(size)]
            for method in (pq.ReplayStreams(num_streams=number), pq.FullDataset(epochs=number)):
                labels = {"model": model, "method": method.name, "passes": number, "seed": 0}
                length = SMALL["length"] if small else None
                jobs.append(
                    Job(labels=labels, data="mnist", length=length, model=model, method=method, recipes=recipes)
                )
    return jobs


def tell(done: list[Result], picture: Path) -> None:
    rows = []
    for (model, method), paper in PAPER.items():
        lines = [r for r in done if (r["model"], r["method"]) == (model, method) and r["status"] == "finished"]
        if not lines:
            continue
        coded = method != "erm"
        best = best_of(lines)[0] if coded else min(lines, key=lambda r: r["heldout"]["loss"])
        values = [r["nats"] if coded else r["heldout"]["loss"] for r in lines]
        digits = 0 if coded else 4
        rows.append(
            {
                "model": model, "method": method, "runs": len(lines),
                "nats": f"{best['nats']:,.0f}" if coded else "–", "errors": best["errors"] if coded else "–",
                "held-out loss": f"{best['heldout']['loss']:.4f}", "error": f"{best['heldout']['error_rate']:.2%}",
                "FLOPs": f"{best['flops']['code']:.1e}",
                "expected best of 4": f"{expected_best(values, min(4, len(values))):,.{digits}f}",
                "the paper": paper,
            }
        )  # fmt: skip
    table(rows)
    for model in DRAWS:
        pairs = [[errors_of(done, model, method)[draw] for method in ("mi-rs", "erm")] for draw in shared(done, model)]
        more, fewer = sum(code > erm for code, erm in pairs), sum(code < erm for code, erm in pairs)
        print(f"{model}: by MI/RS more held-out errors than by ERM in {more} of {len(pairs)} draws, fewer in {fewer}")


def errors_of(done: list[Result], model: str, method: str) -> dict[tuple[int, int], float]:
    """Held-out error rate of each draw, by passes and place in the stack, which MI/RS and ERM share."""
    lines = [r for r in done if (r["model"], r["method"], r["status"]) == (model, method, "finished")]
    return {(r["passes"], r["member"]): r["heldout"]["error_rate"] for r in lines}


def shared(done: list[Result], model: str) -> set[tuple[int, int]]:
    return set(errors_of(done, model, "mi-rs")) & set(errors_of(done, model, "erm"))


if __name__ == "__main__":
    main(__file__, __doc__, plan, tell)
