"""Table 1, CIFAR-10 and CIFAR-100: VGG++ by MI/RS, and by conventional training (ERM), drawn from the paper's space.

The space is the paper's with what its figures suggest beyond its text (docs/cifar.md): crops, raw batch statistics. 16
draws are run on 6,000 labels, the better half on 20,000, the best two to the end. ERM is halved by its held-out loss,
since it has no codelength: that favours it. The paper took the best of more; what the best of fewer would be is shown.
With --narrow: VGG++ of an eighth of its width, 1,000, 2,000 and 4,096 labels, a sixth of the passes that are drawn.
"""

import math
from pathlib import Path

from findings import expected_best, table
from jobs import NARROW, Job, Result, Scale, drawn, draws_of, main

import prequential as pq

STAGES = {
    Scale.FULL: ((6_000, 16), (20_000, 8), (50_000, 2)),
    Scale.NARROW: ((1_000, 16), (2_000, 8), (NARROW["length"], 2)),
}
"""Labels, and how many draws are run on them."""
FEWER_PASSES = {Scale.FULL: 1, Scale.NARROW: 6}
WIDTHS = {Scale.FULL: 1.0, Scale.NARROW: NARROW["width"]}
PAPER = {
    ("cifar10", "mi-rs"): "22,100 nats, 6,600 errors, 0.24, 5.8 %; Table 2: 23,300",
    ("cifar10", "erm"): "0.21, 6.9 %",
    ("cifar100", "mi-rs"): "93,700 nats, 23,100 errors, 1.14, 32.0 %; Table 2: 89,100",
    ("cifar100", "erm"): "1.14, 28.1 %",
}


def score(line: Result) -> float:
    """What draws are compared by."""
    if line["nats"] is not None:
        return line["nats"]
    return line["heldout"]["loss"] if line["heldout"] else math.inf


def found(done: list[Result], data: str, method: str, length: int) -> list[Result]:
    asked = {"data": data, "method": method, "length": length, "status": "finished"}
    lines = (r for r in done if all(r[k] == v for k, v in asked.items()))
    return sorted((line for line in lines if math.isfinite(score(line))), key=score)


def chosen_for(stage: int, scale: Scale, done: list[Result], data: str, method: str) -> list[int]:
    """The draws that are run at a stage: all, or the best on fewer labels once those are known."""
    num_draws = STAGES[scale][stage][1]
    if stage == 0:
        return list(range(num_draws))
    shorter, _ = STAGES[scale][stage - 1]
    before = chosen_for(stage - 1, scale, done, data, method)
    ended = [r for r in done if (r["data"], r["method"], r["length"]) == (data, method, shorter)]
    best = found(done, data, method, shorter)[:num_draws]  # those that diverged are not among them
    return [line["draw"] for line in best] if len(ended) == len(before) else []


def plan(scale: Scale, done: list[Result]) -> list[Job]:
    jobs = []
    for stage, (length, _) in enumerate(STAGES[scale]):
        for data, method in PAPER:
            for draw in chosen_for(stage, scale, done, data, method):
                settings = draws_of("cifar", draw)
                kind = pq.ReplayStreams if method == "mi-rs" else pq.FullDataset
                name = "num_streams" if method == "mi-rs" else "epochs"
                passes = {name: settings["num_streams"] // FEWER_PASSES[scale]}
                labels = {"data": data, "method": method, "length": length, "draw": draw, "seed": 0}
                jobs.append(
                    Job(
                        labels=labels, data=data, length=length, model="vggpp", recipes=[drawn("cifar", draw)],
                        method=kind(batch_size=settings["batch_size"], **passes), width=WIDTHS[scale],
                    )
                )  # fmt: skip
    return jobs


def tell(done: list[Result], picture: Path) -> None:
    rows = []
    for (data, method), paper in PAPER.items():
        for length in sorted({r["length"] for r in done}):
            lines = found(done, data, method, length)
            if lines:
                best, coded = lines[0], method != "erm"
                half = expected_best([score(r) for r in lines], (len(lines) + 1) // 2)
                rows.append(
                    {
                        "data": data, "method": method, "labels": f"{length:,}", "runs": len(lines),
                        "nats": f"{best['nats']:,.0f}" if coded else "–", "errors": best["errors"] if coded else "–",
                        "held-out loss": f"{best['heldout']['loss']:.3f}",
                        "error": f"{best['heldout']['error_rate']:.1%}", "draw": best["draw"],
                        "expected best of half as many": f"{half:,.{0 if coded else 4}f}",
                        "the paper": paper if length == STAGES[Scale.FULL][-1][0] else "",
                    }
                )  # fmt: skip
    table(rows)


if __name__ == "__main__":
    main(__file__, __doc__, plan, tell, scales=(Scale.FULL, Scale.NARROW))
