"""What `fuzz.py` damages of mixed runs: records and their arrays, checkpoints, bitstreams, lists of experts."""

import contextlib
import io
import random
import shutil
import signal
from pathlib import Path
from typing import Any

import numpy as np

import fuzz_files as files
import prequential as pq
from prequential.mixers.kept import EXPERT_ARRAYS
from prequential.runs.record import ARRAYS

LISTED = """\
simple_codes = true
[mixer]
name = "switching"
rate = 0.01
[[expert]]
model = "mlp1"
averages = [0.3, 0.03]
[[expert]]
model = "mlp2"
members = 2
width = 0.05
recipe = { learning_rate = 3e-3 }
method = { passes = 2 }
"""
OFTEN = ["compare"] * 6 + ["folder"] * 3 + ["watch"] * 6 + ["pareto"] * 4 + ["weights"] * 3 + ["verify", "report"]


def make_mixed(folder: Path) -> None:
    """Two mixed runs, one that was stopped half-way, a bitstream and a list of experts; nothing if they are there."""
    if (folder / "experts.toml").exists():
        return
    data = pq.load_data(f"npz:{folder / 'data.npz'}")
    small: dict[str, Any] = {"width": 0.02, "threads": 1}
    alike = pq.Experts.of_seeds("mlp1", 2, mixer=pq.Logistic(by_previous_label=True), simple_codes=True)
    other = pq.Expert("mlp1", pq.ReplayBuffer(num_replays=1, batch_size=8), averages=(0.3, 0.03))
    differ = pq.Experts(["mlp1", other], mixer=pq.Switching(rate="grid"))
    for number, experts in enumerate((alike, differ)):
        pq.run(experts, data, files.METHOD, seed=0, out=folder / f"mixed/{number}", **small)
    stop = [lambda p: signal.raise_signal(signal.SIGTERM) if p.position >= files.LENGTH // 2 else None]
    with contextlib.suppress(pq.Interrupted):
        pq.run(
            *(alike, data, files.METHOD),
            seed=0,
            out=folder / "mixed-half",
            checkpoint_seconds=0,
            listeners=stop,
            **small,
        )
    (folder / "mixed.preq").write_bytes(pq.encode(differ, data, files.METHOD, seed=0, **small))
    (folder / "experts.toml").write_text(LISTED)


def mixed_case(folder: Path, chance: random.Random, flops: str) -> files.Case:
    """One of these files, and a command that reads it."""
    makers = [_record_case] * 6 + [_checkpoint_case, _bitstream_case, _bitstream_case, _list_case]
    return chance.choice(makers)(folder, chance, flops)


def _record_case(folder: Path, chance: random.Random, flops: str) -> files.Case:
    where = folder / chance.choice(["mixed/0", "mixed/1", "mixed-half"])
    arrays = [*EXPERT_ARRAYS * 3, *ARRAYS]
    file = where / chance.choice(["record.json"] * 2 + [f"{chance.choice(arrays)}.npy"])
    file = file if file.exists() else where / "record.json"
    runs, out = [str(where), str(folder / "runs/1")], str(folder / "out.svg")
    command = {
        "compare": ["compare", *runs, "--json", "--prefix"], "folder": ["compare", str(where), "--json"],
        "watch": ["watch", str(where), "--once"], "pareto": ["pareto", *runs, "--json"],
        "weights": ["plot", "weights", str(where), "-o", out, "--prefix"],
        "verify": ["verify", str(where), "--json"], "report": ["report", *runs, "-o", str(folder / "out.html")],
    }[chance.choice(OFTEN)]  # fmt: skip
    content = file.read_bytes()
    if file.suffix == ".npy" and chance.random() < 0.5:
        return files.Case(file, _edited_array(file, chance), command, is_edited=True)
    if file.suffix == ".json" and chance.random() < 0.8:
        content = files._edited_json(content, chance, files.resealed_record, "record")
        return files.Case(file, content, command, is_edited=True)
    return files.Case(file, files.damaged(content, chance), command, is_edited=False)


def _edited_array(file: Path, chance: random.Random) -> bytes:
    """Other numbers, another type or another shape; the record's checksums, if it has any, stay."""
    values, buffer = np.load(file), io.BytesIO()
    match chance.randrange(4):
        case 0:
            values = values.copy()
            values.reshape(-1)[chance.randrange(values.size)] = np.array(chance.choice([-1, 0, 2, 10**6])).astype(
                values.dtype
            )
        case 1:
            values = values.astype(chance.choice(["<f4", "<f8", "<i8", "|b1", "<c16", "|S3"]))
        case 2:
            values = chance.choice([values[:-1], values[:0], values[..., None], values.reshape(-1), values.T])
        case _:
            values = np.full(values.shape, chance.choice([float("nan"), float("inf"), -1.0, 1e300]))
    np.save(buffer, values)
    return buffer.getvalue()


def _checkpoint_case(folder: Path, chance: random.Random, flops: str) -> files.Case:
    words = ["--members", "2", "--with-simple-codes", "--mixer", "logistic", "--by-previous-label"]
    return files.checkpoint_of("mixed-", words, folder, chance)


def _bitstream_case(folder: Path, chance: random.Random, flops: str) -> files.Case:
    return files.preq_case(folder, chance, flops, "mixed.preq")


def _list_case(folder: Path, chance: random.Random, flops: str) -> files.Case:
    file = folder / "experts.toml"
    command = ["plan", f"npz:{folder / 'data.npz'}", "--experts", str(file), "--json", "--batch-size", "8"]
    if chance.random() < 0.4:
        return files.Case(file, files.damaged(file.read_bytes(), chance), command, is_edited=True)
    lines = LISTED.splitlines()
    for _ in range(chance.choice([1, 1, 2])):
        place = chance.randrange(len(lines))
        key, found, _ = lines[place].partition(" = ")
        odd = [
            "-1",
            "0",
            "nan",
            "inf",
            "1e400",
            "10**9",
            '""',
            '"x"',
            "[]",
            "{}",
            "true",
            "9" * 30,
            '"' + "a" * 9000 + '"',
        ]
        lines[place] = chance.choice(["", lines[place] * 2, f"{key} = {chance.choice(odd)}" if found else f"[{key}]"])
    return files.Case(file, "\n".join(lines).encode(), command, is_edited=True)


def restore(folder: Path, out: Path) -> None:
    """A run that was stopped, as it was before it went on."""
    shutil.rmtree(out)
    shutil.copytree(folder / out.name.replace("resumed", "half"), out)


KINDS = files.KINDS | {"mixed": mixed_case}
