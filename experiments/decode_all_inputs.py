"""Labels given all inputs, encoded and decoded: `python experiments/decode_all_inputs.py --device cuda`.

The first 4,096 labels of CIFAR-10 given its 50,000 inputs, ResNet-18 after a short study; then two of them, each after
a study of its own, mixed. Who encodes and who decodes are processes of their own. The decoder is given the inputs, with
every label 0, and studies anew. Needs PREQ_DATA with the CIFAR binaries. `--device cpu` takes MNIST and a small
network.
"""

import argparse
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from typing import Any

import numpy as np

import prequential as pq
from prequential.coding.container import Container
from prequential.presets import find_preset

SIZES = {  # labels, steps of the study, passes over the past, width
    "cuda": ("cifar10", "resnet18", 4096, 500, 4, 1.0),
    "cpu": ("mnist", "smallconv", 256, 8, 2, 0.25),
}


def whole(name: str) -> Any:
    return pq.load_data(name).without_heldout()


def given_all_inputs(name: str, num_labels: int) -> Any:
    return whole(name).with_num_labels(num_labels)


def model_of(name: str, method: pq.AllInputs, members: int) -> Any:
    """One network, or several with a study each."""
    if members == 1:
        return name
    return pq.Experts([pq.Expert(name, replace(method, study_seed=seed)) for seed in range(members)])


def encoded(device: str, members: int) -> tuple[bytes, float]:
    """The labels as a bitstream, and what they cost."""
    name, model, num_labels, study_steps, passes, width = SIZES[device]
    data, preset = given_all_inputs(name, num_labels), find_preset("all-inputs", name, model)
    method = preset.with_all_inputs(preset.method("mi-rb", {"num_replays": passes}), {"study_steps": study_steps})
    content = pq.encode(
        model_of(model, method, members), data, method, preset.recipe, seed=0, width=width, device=device
    )
    return content, float(Container.from_bytes(content).header["codelength_nats"])


def decoded(content: bytes, device: str) -> np.ndarray:
    """Labels, from a bitstream and inputs alone."""
    name, _, num_labels, *_ = SIZES[device]
    data = whole(name)
    images = data.stored_inputs[data.order]
    blind = pq.from_arrays(images, np.zeros(len(images), np.int64), num_classes=data.num_classes)
    return pq.decode(content, blind.with_num_labels(num_labels), device=device)


def elsewhere(work: Callable[..., Any], *arguments: Any) -> tuple[Any, float]:
    """What a process of its own returns, and its seconds."""
    begun = time.perf_counter()
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(work, *arguments).result(), time.perf_counter() - begun


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=SIZES, default="cuda")
    flags = parser.parse_args()
    name, model, num_labels, study_steps, *_ = SIZES[flags.device]
    labels = given_all_inputs(name, num_labels).labels(np.arange(num_labels)).numpy()
    print(f"{name}, {num_labels:,} labels given all inputs, {model}, a study of {study_steps} steps, {flags.device}")
    for members in (1, 2):
        (content, nats), there = elsewhere(encoded, flags.device, members)
        found, here = elsewhere(decoded, content, flags.device)
        code = f"{nats:,.1f} nats = {nats / np.log(256):,.0f} bytes, with its header {len(content):,}"
        took = f"{there:.0f} s to encode, {here:.0f} s to decode"
        who = f"{members} networks mixed" if members > 1 else "one network"
        print(f"{who}: {code}; labels identical: {np.array_equal(found, labels)}; {took}", flush=True)


if __name__ == "__main__":
    main()
