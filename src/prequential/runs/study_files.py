"""Studies as files: what a network has learned from inputs alone, in half precision and in parts that are easily taken
along, and what it belongs to.

A study is a folder: `study.json`, sealed, and .safetensors files that are named by their digests. Tensors are flat
there and cut where a file is full; `3.1024` is what follows the first 1024 numbers of the fourth tensor.
"""

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save
from torch import Tensor

from prequential.data.download import cache_directory
from prequential.errors import PreqError
from prequential.files import digest_of, write_atomically, writing
from prequential.formats import STUDY_FILE
from prequential.learn.all_inputs import FromAllInputs
from prequential.learn.environment import arithmetic
from prequential.learn.studying import digest_of_tensors
from prequential.models import name_of
from prequential.plain import MisfitError, read_bytes, require_shape, sealed, unsealed
from prequential.runs.weights import tensors_in
from prequential.settings import settings_of

ABOUT_FILE, FORMAT = "study.json", 1
MOST_BYTES = 15_000_000
"""Of a file."""
ROOM = MOST_BYTES - 100_000
"""The same for numbers, without a header."""
DECIDE = ("prequential", "torch", "device_name", "cuda", "platform", "engine", "precision")
"""Of the environment and of how it computes, what the bits of a study depend on …"""
OF_THE_CPU, ON_A_CPU, ELSEWHERE = ("cpu_capability", "processor"), ("threads",), ("compiled", "deterministic")
"""… and what besides: the first weights are drawn on a CPU, which decides their last bits wherever the bits of a study
are the same each time; on a CPU they are, with so many threads."""


def default_folder() -> Path:
    """Where studies are kept unless another place is named: `studies` in the cache of the package."""
    return cache_directory() / "studies"


def place_of(folder: Path, learner: FromAllInputs) -> Path:
    """The folder of a learner's study: for other inputs, settings, code of the network or arithmetic it is another."""
    made = arithmetic(learner)
    is_cpu = learner.device.type == "cpu"
    names = DECIDE + (ON_A_CPU if is_cpu else ELSEWHERE) + (OF_THE_CPU if is_cpu or made["deterministic"] else ())
    told = {"key": learner.study_key, "begins": learner.begins_as, **{name: made[name] for name in names}}
    return folder / digest_of(json.dumps(told, sort_keys=True).encode())


def write_study(place: Path, learner: FromAllInputs, seconds: float) -> None:
    """Keep what a learner has studied, in so many seconds."""
    with writing(place):
        place.mkdir(parents=True, exist_ok=True)
    parts = []
    for content in map(save, _parts([tensor.cpu() for tensor in learner.studied])):
        parts.append(digest_of(content))
        write_atomically(place / _name(parts[-1]), content)
    given = learner.given
    settings = {name: value for name, value in settings_of(given).items() if name.startswith("study")}
    about = {
        **{"format": FORMAT, "key": learner.study_key, "digest": learner.study_digest, "parts": parts},
        **{"steps": given.study_steps, "seconds": seconds, "settings": settings, "model": name_of(learner.factory)},
        **{"inputs": learner.data.digests()["inputs"], "environment": arithmetic(learner)},
    }
    write_atomically(place / ABOUT_FILE, sealed(about, "study"))


def _parts(tensors: Sequence[Tensor]) -> Iterator[dict[str, Tensor]]:
    """The tensors, flat, in dictionaries that are files."""
    part, room = dict[str, Tensor](), ROOM
    for number, tensor in enumerate(tensors):
        flat, start = tensor.reshape(-1), 0
        while start < len(flat) or (not len(flat) and not start):
            count = min(room // flat.element_size(), len(flat) - start)
            if count:
                part[f"{number}.{start}"] = flat[start : start + count].clone()
                room -= count * flat.element_size()
                start += count
            elif len(flat):
                yield part
                part, room = {}, ROOM
            else:
                break
    if part:
        yield part


def _name(digest: str) -> str:
    return f"{digest}.safetensors"


def read_about(place: Path) -> dict[str, Any]:
    """What the file in a folder says of a study.

    Raises:
        PreqError: where there is none, or it is damaged.
    """
    try:
        about = unsealed(read_bytes(place / ABOUT_FILE), "study")
        require_shape(about, STUDY_FILE)
    except MisfitError as error:
        raise PreqError(f"{place / ABOUT_FILE} is damaged: {error}") from None
    if about["format"] != FORMAT:
        raise PreqError(f"{place / ABOUT_FILE} has format {about['format']}, this version reads {FORMAT}")
    return about


def read_study(place: Path, learner: FromAllInputs) -> tuple[list[Tensor], dict[str, Any]]:
    """What is in a folder of the study of a learner, and what is told of it; every digest is checked.

    Raises:
        PreqError: for a study of something else, or one that is not whole.
    """
    about = read_about(place)
    if about["key"] != learner.study_key:
        raise PreqError(f"{place} holds a study of other inputs, another model or other settings")
    pieces: dict[int, list[tuple[int, Tensor]]] = {}
    for digest in about["parts"]:
        for name, tensor in _read_part(place, digest).items():
            if not re.fullmatch(r"[0-9]{1,9}\.[0-9]{1,15}", name) or tensor.dim() != 1:
                raise PreqError(f"{place} is damaged: it has a tensor '{ascii(name)[1:21]}'")
            which, start = map(int, name.split("."))
            pieces.setdefault(which, []).append((start, tensor))
    found = []
    for number, wanted in enumerate(learner.studied):
        those = [piece for _, piece in sorted(pieces.pop(number, []), key=lambda each: each[0])]
        flat = torch.cat(those) if those else torch.empty(0, dtype=wanted.dtype)
        if flat.dtype != wanted.dtype or flat.numel() != wanted.numel():
            raise PreqError(f"{place} is damaged: tensor {number} is not like that of the network")
        found.append(flat.view(wanted.shape))
    if pieces or digest_of_tensors(found) != about["digest"]:
        raise PreqError(f"{place} is damaged: its tensors are not those that it tells of")
    return found, about


def _read_part(place: Path, digest: str) -> dict[str, Tensor]:
    if not re.fullmatch("[0-9a-f]{32}", digest):
        raise PreqError(f"{place / ABOUT_FILE} is damaged: '{ascii(digest)[1:21]}' names no part")
    file = place / _name(digest)
    content = read_bytes(file, MOST_BYTES)
    if digest_of(content) != digest:
        raise PreqError(f"{file} is damaged: its content does not fit its name")
    return tensors_in(content, file)
