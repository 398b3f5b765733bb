"""Table 1, WRN-28-10 on CIFAR-10 and CIFAR-100 by MI/RS (the paper: worse than VGG++ on CIFAR-10, better on CIFAR-100).

Two recipes, K = 20, 20,000 labels; the better one to the end. It is compared with VGG++ of table1_cifar.py.
"""

from pathlib import Path

from jobs import Job, Result, Scale, best_of, main, of_the_paper, table

import prequential as pq

RECIPES = {"EMA 0.03": {"ema_step_size": 0.03}, "EMA 0.03, decay 0.03": {"ema_step_size": 0.03, "weight_decay": 0.03}}
PAPER = {"cifar10": "22,900 nats, 7,500 errors, 0.23, 7.4 %", "cifar100": "87,000 nats, 22,300 errors, 1.10, 30.3 %"}


def plan(scale: Scale, done: list[Result]) -> list[Job]:
    jobs = []
    for data in PAPER:
        tried = best_of(done, data=data, length=20_000)
        wanted = [(name, 20_000) for name in RECIPES]
        if len([r for r in done if (r["data"], r["length"]) == (data, 20_000)]) == len(RECIPES):
            wanted.append((tried[0]["recipe"], 50_000))
        for name, length in wanted:
            labels = {"data": data, "recipe": name, "length": length, "seed": 0}
            recipe = of_the_paper(data, **RECIPES[name])
            method = pq.ReplayStreams(num_streams=20, batch_size=64)
            jobs.append(
                Job(
                    labels=labels,
                    data=data,
                    length=length,
                    model="wrn-28-10",
                    method=method,
                    recipes=[recipe],
                    compiled=False,
                )
            )
    return jobs


def tell(done: list[Result], picture: Path) -> None:
    table(
        {
            "data": r["data"], "labels": f"{r['length']:,}", "recipe": r["recipe"], "nats": f"{r['nats']:,.0f}",
            "errors": f"{r['errors']:,}", "held-out loss": f"{r['heldout']['loss']:.3f}",
            "error": f"{r['heldout']['error_rate']:.1%}", "FLOPs": f"{r['flops']['code']:.1e}",
            "the paper": PAPER[r["data"]] if r["length"] == 50_000 else "",
        }
        for r in sorted(done, key=lambda r: (r["data"], r["length"], r["nats"]))
    )  # fmt: skip


if __name__ == "__main__":
    main(__file__, __doc__, plan, tell, scales=(Scale.FULL,))
