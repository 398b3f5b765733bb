"""What `fuzz.py` damages: files of tiny real runs, how they are damaged or edited, and the commands that read them."""

import contextlib
import io
import json
import os
import platform
import random
import shutil
import signal
import struct
import subprocess
import traceback
import zipfile
from collections.abc import Callable, Iterator
from copy import deepcopy
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import prequential as pq
from prequential.cli import main, settings
from prequential.coding.container import Container
from prequential.files import digest_of
from prequential.plain import checksum_of
from prequential.runs import recorder
from prequential.runs.record import ARRAYS

LENGTH = 48
METHOD = pq.ReplayStreams(num_streams=1, batch_size=8)
DEEP = "deep" * 4
"""Stands in JSON for what is nested too deeply for its writer."""
NASTY: list[Any] = [
    *(None, True, False, 0, 1, -1, 2, 7, 1.5, -0.0, 2**31, 2**40, 2**53 + 1, 2**63, 10**30, 10**400, 1e308, -1e308),
    *(float("nan"), float("inf"), "", "x", "12", "a" * 70_000, "\x1b[31mred", "\ud800", "\0", "../../etc", "nan"),
    *([], {}, [[]], [0] * 3000, {"name": []}, {"": {"": ""}}, DEEP, {"length": 10**11, "digest": "0" * 32}),
]  # fmt: skip
OPEN_KINDS = ("regret", "loss", "error", "curve", "calibration", "replay")


class Case(NamedTuple):
    """One file that is changed, and the command that reads it."""

    file: Path
    content: bytes
    command: list[str]
    is_edited: bool
    """Changed by someone who also mended the checksums; else damaged."""
    new_name: str = ""
    """Of a file whose name is its checksum."""
    also: tuple[Path, bytes] | None = None
    """Another file that was made to fit."""


class Result(NamedTuple):
    """How a command ended."""

    status: int
    output: str
    errors: str


def call(command: list[str]) -> Result:
    """A command, in this process."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            status = main(command)
        except SystemExit as end:
            status = end.code if isinstance(end.code, int) else 1
        except BaseException:
            status = 1
            traceback.print_exc()
    said = [stream.buffer.getvalue().decode(errors="replace") for stream in (out, err)]
    return Result(status, *said)


def make_fast() -> None:
    """Leave out what every call pays and no file can change: parsing the same words, syncing, new processes."""
    parse, known = settings.parse_settings, dict[tuple[str, ...], Any]()

    def parse_once(kind: type, command: str, arguments: list[str]) -> Any:
        words = (command, *arguments)
        if words not in known:
            known[words] = parse(kind, command, arguments)
        return known[words]

    settings.parse_settings = parse_once
    os.fsync = lambda fd: None
    import matplotlib.figure  # noqa: F401  # the first time it starts a process of its own

    subprocess.run = in_this_process  # type: ignore[assignment]


def in_this_process(command: list[str], **_: object) -> Any:
    """What `preq verify` starts, without the start."""
    result = call(command[3:])
    return subprocess.CompletedProcess(command, result.status, result.output, result.errors)


def make_originals(folder: Path) -> None:
    """Tiny real runs, and what is made of them; nothing if they are there."""
    if (folder / "made").exists():
        return
    chance = np.random.default_rng(0)
    labels = chance.integers(0, 3, LENGTH + 16)
    inputs = (chance.normal(size=(3, 5))[labels] * 2 + chance.normal(size=(LENGTH + 16, 5))).astype(np.float32)
    folder.mkdir(parents=True, exist_ok=True)
    train, held = slice(LENGTH), slice(LENGTH, None)
    np.savez(
        folder / "data.npz", x_train=inputs[train], y_train=labels[train], x_test=inputs[held], y_test=labels[held]
    )
    np.savez_compressed(folder / "small.npz", inputs=(inputs * 8 + 128).astype(np.uint8), labels=labels)
    data = pq.load_data(f"npz:{folder / 'data.npz'}")
    small: dict[str, Any] = {"width": 0.02, "threads": 1}
    for seed in (0, 1):
        pq.run("mlp1", data, METHOD, seed=seed, out=folder / f"runs/{seed}", **small)
    stop = [lambda p: signal.raise_signal(signal.SIGTERM) if p.position >= LENGTH // 2 else None]
    recorder.SECONDS_BETWEEN_PAUSES = 0.0  # else so short a run ends before it listens
    with contextlib.suppress(pq.Interrupted):
        pq.run("mlp1", data, METHOD, seed=0, out=folder / "half", checkpoint_seconds=0, listeners=stop, **small)
    shutil.copytree(folder / "half", folder / "died/run")
    record = json.loads((folder / "half/record.json").read_text())["record"] | {"status": "running"}
    (folder / "died/run/record.json").write_bytes(resealed_record(record))
    half = pq.load(folder / "half")  # so that the record tells the same where the progress is not believed
    told: dict[str, Any] = {
        "position": len(half.nats),
        "errors": half.errors,
        "trained_examples": 32,
        "seconds": half.seconds,
    }
    told |= {"nats": 20.0, "host": platform.node()}
    (folder / "died/run/progress.json").write_text(json.dumps(told | {"checksum": checksum_of(told)}))
    pq.prepare(data, folder / "prepared")
    space = {"learning_rate": pq.LogUniform(1e-3, 1e-2), "num_streams": 1, "batch_size": 8}
    pq.sweep("mlp1", data, space=space, trials=2, seed=0, out=folder / "sweep", width=0.02)
    np.save(folder / "inputs.npy", data.inputs(np.arange(LENGTH)).numpy())
    (folder / "labels.preq").write_bytes(pq.encode("mlp1", data, METHOD, seed=0, **small))
    pq.run("mlp1", data, METHOD, seed=0, out=folder / "kept", keep_weights=True, **small)
    np.savez(
        folder / "probed.npz", inputs=np.concatenate([inputs[:8], inputs + 1]), labels=np.append(labels[:8], labels)
    )
    if call(probe_command(folder, f"run:{folder / 'kept'}")).status or not list((folder / "features").iterdir()):
        raise SystemExit("the network cannot be probed")
    (folder / "made").touch()


def resealed_record(content: Any) -> bytes:
    text = json.dumps(content, indent=1, ensure_ascii=False).encode(errors="replace")
    return json.dumps({"checksum": digest_of(text), "record": content}, indent=1).encode()


def damaged(content: bytes, chance: random.Random) -> bytes:
    """Flipped bits, a truncation, or bytes that are inserted, overwritten or exchanged."""
    values, place = bytearray(content), chance.randrange(max(len(content), 1))
    some = chance.choice([1, 2, 4, 64])
    match chance.randrange(6):
        case 0:
            del values[place:]
        case 1:
            values[place:place] = chance.randbytes(some)
        case 2:
            values[place : place + some] = chance.choice([b"\0", b"\xff"]) * len(values[place : place + some])
        case 3:
            other = chance.randrange(max(len(content), 1))
            values[place : place + 1] = content[other : other + 1]
            values[other : other + 1] = content[place : place + 1]
        case _:
            for _ in range(chance.choice([1, 1, 1, 2, 8])):
                values[chance.randrange(len(values))] ^= 1 << chance.randrange(8)
    return bytes(values)


def edited(whole: Any, chance: random.Random) -> Any:
    """Plain values of which a few are something else, gone, or more."""
    whole = json.loads(json.dumps(whole))
    for _ in range(chance.choice([1, 1, 1, 2, 3])):
        places = list(_places(whole))
        if not places:
            return deepcopy(chance.choice(NASTY))
        inside, key = chance.choice(places)
        value = inside[key]
        match chance.randrange(6):
            case 0:
                del inside[key]
            case 1 if isinstance(inside, dict):
                inside[chance.choice(["zz", "name", "length", "", "\x1b"])] = inside.pop(key)
            case 2 if isinstance(value, int | float) and not isinstance(value, bool):
                third = value / 3 if abs(value) < 1e300 else 0.5  # edited again and again, a whole number is no float
                inside[key] = chance.choice([-value, value + 1, value * 2, value * 1000, value * 10**12, third])
            case 3:
                other, elsewhere = chance.choice(places)
                inside[key] = json.loads(json.dumps(other.get(elsewhere) if isinstance(other, dict) else value))
            case _:
                inside[key] = deepcopy(chance.choice(NASTY))  # a later change may be inside it
    return whole


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    keys = value.keys() if isinstance(value, dict) else range(len(value))
    for key in list(keys):
        yield value, key
        if isinstance(value[key], dict | list):
            yield from _places(value[key])


def _deepened(text: str, chance: random.Random) -> str:
    depth = chance.choice([20, 200, 100_000])
    return text.replace(f'"{DEEP}"', "[" * depth + "]" * depth)


def _edited_json(content: bytes, chance: random.Random, seal: Callable[[Any], bytes], inner: str = "") -> bytes:
    whole = json.loads(content)
    changed = edited(whole[inner] if inner else whole, chance)
    try:
        return _deepened(seal(changed).decode(), chance).encode(errors="replace")
    except (ValueError, RecursionError):
        return _deepened(json.dumps(changed), chance).encode(errors="replace")


def _plain(value: Any) -> bytes:
    return json.dumps(value, indent=1).encode()


def _sealed_loosely(content: Any, name: str = "content") -> bytes:
    text = json.dumps(content, indent=1, ensure_ascii=False).encode(errors="replace")
    return json.dumps({"checksum": digest_of(text), name: content}, indent=1).encode()


OFTEN = ["compare"] * 8 + ["folder"] * 4 + ["watch"] * 8 + ["pareto"] * 8 + ["verify", "plot", "report"]
"""Commands that read runs, as often as they come; the last ones are slow."""


def record_case(folder: Path, chance: random.Random, flops: str) -> Case:
    """A file of a run, and a command that reads runs."""
    where = folder / chance.choice(["runs/0", "runs/0", "died/run"])
    file = where / chance.choice(["record.json"] * 8 + [f"{chance.choice(ARRAYS)}.npy"] * 3 + ["progress.json"])
    file = file if file.exists() else where / "record.json"
    runs = [str(where), str(folder / "runs/1")]
    command = {
        "compare": ["compare", *runs, "--json", "--prefix"], "folder": ["compare", str(where.parent), "--json"],
        "watch": ["watch", str(where), "--once"], "pareto": ["pareto", *runs, "--json"],
        "verify": ["verify", str(where), "--json"],
        "plot": ["plot", chance.choice(OPEN_KINDS), *runs, "-o", str(folder / "out.svg"), "--prefix"],
        "report": ["report", *runs, "-o", str(folder / "out.html")],
    }[chance.choice(OFTEN)]  # fmt: skip
    content = file.read_bytes()
    if file.suffix == ".json" and chance.random() < 0.8:
        seal, name = (resealed_record, "record") if file.name == "record.json" else (_without_checksum, "")
        content = _edited_json(content, chance, seal, name)
        return Case(file, content, command, is_edited=True)
    return Case(file, damaged(content, chance), command, is_edited=False)


def prepared_case(folder: Path, chance: random.Random, flops: str) -> Case:
    """The index of prepared data, or its arrays."""
    file = folder / "prepared" / chance.choice(["prepared.json"] * 6 + PREPARED_ARRAYS)
    command = ["run", f"prepared:{folder / 'prepared'}", "mlp1", *FLAGS]
    content = file.read_bytes()
    if file.suffix == ".json" and chance.random() < 0.8:
        return Case(file, _edited_json(content, chance, _sealed_loosely, "content"), command, is_edited=True)
    return Case(file, damaged(content, chance), command, is_edited=False)


PREPARED_ARRAYS = ["labels.npy", "inputs.npy", "heldout/labels.npy"]
FLAGS = ["--width", "0.02", "--streams", "1", "--batch-size", "8", "--threads", "1", "--seed", "0", "--json"]


def sweep_case(folder: Path, chance: random.Random, flops: str) -> Case:
    """What a sweep is about."""
    where = str(folder / "sweep")
    command = chance.choice([["sweep", "show", where, "--json"], ["sweep", "show", where], ["watch", where, "--once"]])
    file = folder / "sweep/sweep.json"
    if chance.random() < 0.8:
        return Case(file, _edited_json(file.read_bytes(), chance, _without_checksum), command, is_edited=True)
    return Case(file, damaged(file.read_bytes(), chance), command, is_edited=False)


def _without_checksum(value: Any) -> bytes:
    """A sweep as those of before are."""
    return _plain({k: v for k, v in value.items() if k != "checksum"} if isinstance(value, dict) else value)


def checkpoint_case(folder: Path, chance: random.Random, flops: str) -> Case:
    """The newest checkpoint of a run that was stopped, in a copy that goes on."""
    return checkpoint_of("", [], folder, chance)


def checkpoint_of(kind: str, words: list[str], folder: Path, chance: random.Random) -> Case:
    """The same, of a kind of run and the words that ask for it."""
    copy = folder / f"{kind}resumed"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(folder / f"{kind}half", copy)
    file = max((copy / "checkpoints").iterdir())
    command = ["run", f"npz:{folder / 'data.npz'}", "mlp1", *words, *FLAGS, "--out", str(copy), "--resume"]
    content = file.read_bytes()
    if chance.random() < 0.3:
        return Case(file, damaged(content, chance), command, is_edited=False)
    size = 8 + struct.unpack("<Q", content[:8])[0]
    header = json.loads(content[8:size])
    if chance.random() < 0.7:
        header["__metadata__"]["prequential"] = _edited_json(
            header["__metadata__"]["prequential"].encode(), chance, _plain
        ).decode()
        text = json.dumps(header).encode()
    else:
        text = _edited_json(json.dumps(header).encode(), chance, _plain)
    content = struct.pack("<Q", len(text)) + text + content[size:]
    if chance.random() < 0.1:
        content = content[: size - 40] + damaged(content[size - 40 :], chance)
    return Case(file, content, command, True, f"{file.name[:14]}-{digest_of(content)}.safetensors")


SHAPES = ["(1000000000000,)", "(48, 1000000000)", "(-1,)", "()", "(0,)", "(48,)", "(47, 5)", "(((", "(2**9,)"]
TYPES = ["<f4", "<i8", "|O", "|S9", "<f8", ">f4", "|b1", "<U4", "[('a', '<f4')]", "<c8", "<M8[s]", "|V4"]


def npz_case(folder: Path, chance: random.Random, flops: str) -> Case:
    """An archive of arrays."""
    file = folder / chance.choice(["data.npz", "small.npz"])
    command = ["run", f"npz:{file}", "mlp1", *FLAGS]
    if chance.random() < 0.4:
        return Case(file, damaged(file.read_bytes(), chance), command, is_edited=False)
    with zipfile.ZipFile(file) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    name = chance.choice(list(members))
    header, rows = members[name][:128], members[name][128:]
    shape, kind = chance.choice(SHAPES), chance.choice(TYPES)
    match chance.randrange(5):
        case 0:
            text = f"{{'descr': {kind if kind[0] == '[' else repr(kind)}, 'fortran_order': False, 'shape': {shape}, }}"
            header = b"\x93NUMPY\x01\x00" + struct.pack("<H", 118) + text.ljust(117).encode() + b"\n"
        case 1:
            header = header.replace(b"(48", f"({chance.choice([0, 1, 47, 49, 10**12, -3])}".encode())
        case 2:
            header = header.replace(b"'descr': '", b"'descr': '" + chance.choice([b"|O", b">", b"=", b"("]))
        case 3:
            header = damaged(header, chance)
        case _:
            rows = chance.choice([rows[: len(rows) // 2], rows * 2, bytes(1 << 24), damaged(rows, chance)])
    members[name] = header + rows
    if chance.random() < 0.2:
        members[chance.choice(["\x1b[1m.npy", "x.npy", "../up.npy", "a"])] = members.pop(chance.choice(list(members)))
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", chance.choice([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])) as archive:
        for each, content in members.items():
            archive.writestr(each, content)
    return Case(file, buffer.getvalue(), command, is_edited=True)


def preq_case(folder: Path, chance: random.Random, flops: str, name: str = "labels.preq") -> Case:
    """A bitstream."""
    file = folder / name
    inputs, output = str(folder / "inputs.npy"), str(folder / "labels.npy")
    command = ["decode", str(file), "--inputs", inputs, "-o", output, *flops.split()]
    content = file.read_bytes()
    if chance.random() < 0.3:
        return Case(file, damaged(content, chance), command, is_edited=False)
    container = Container.from_bytes(content)
    if chance.random() < 0.15:
        broken = Container(container.header, damaged(container.payload, chance))
        return Case(file, broken.to_bytes(), command, is_edited=True)
    header = _edited_json(json.dumps(container.header).encode(), chance, _plain)
    digests = [bytes.fromhex(digest_of(part)) for part in (header, container.payload)]
    prefix = struct.pack("<4sB3xIQ16s16s", b"PREQ", 2, len(header), len(container.payload), *digests)
    return Case(file, prefix + header + container.payload, command, is_edited=True)


def probe_command(folder: Path, word: str) -> list[str]:
    """Probe some examples that the network has seen and more that it has not."""
    place = ["--cache", str(folder / "features"), "--readouts", "nearest-mean", "--layers", "all"]
    return ["probe", f"npz:{folder / 'probed.npz'}", word, *place, "--width", "0.02", "--allow-seen", "--json"]


def weights_case(folder: Path, chance: random.Random, flops: str) -> Case:
    """What a run has kept of its weights."""
    file = folder / "kept" / chance.choice(["weights.json"] * 2 + ["weights.safetensors"] * 2 + ["trained_on.npy"])
    words = [f"run:{folder / 'kept'}", f"mlp1@{folder / 'kept/weights.safetensors'}"]
    command, content = probe_command(folder, chance.choice(words)), file.read_bytes()
    if chance.random() < 0.4 or file.suffix == ".npy":
        return Case(file, damaged(content, chance), command, is_edited=False)
    if file.suffix == ".json":
        seal = partial(_sealed_loosely, name="weights")
        return Case(file, _edited_json(content, chance, seal, "weights"), command, is_edited=True)
    size = 8 + struct.unpack("<Q", content[:8])[0]
    text = _edited_json(content[8:size], chance, _plain)
    content = struct.pack("<Q", len(text)) + text + content[size:]
    if chance.random() < 0.5:
        return Case(file, content, command, is_edited=True)
    about = file.with_name("weights.json")  # which goes with the edited ones
    told = json.loads(about.read_bytes())["weights"] | {"weights": digest_of(content)}
    return Case(file, content, command, True, also=(about, _sealed_loosely(told, "weights")))


def features_case(folder: Path, chance: random.Random, flops: str) -> Case:
    """Features that were computed before."""
    file = chance.choice(sorted((folder / "features").glob("*.*")))
    command, content = probe_command(folder, f"run:{folder / 'kept'}"), file.read_bytes()
    if file.suffix == ".json" and chance.random() < 0.8:
        seal = partial(_sealed_loosely, name="features")
        return Case(file, _edited_json(content, chance, seal, "features"), command, is_edited=True)
    return Case(file, damaged(content, chance), command, is_edited=False)


KINDS = {
    "record": record_case, "prepared": prepared_case, "sweep": sweep_case, "checkpoint": checkpoint_case,
    "npz": npz_case, "preq": preq_case, "weights": weights_case, "features": features_case,
}  # fmt: skip
