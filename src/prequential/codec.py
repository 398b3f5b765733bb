"""Encode and decode: the same loop as a run, with a bitstream at the border that labels cross."""

import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from prequential.coding.container import Container
from prequential.coding.labels import CHECKED_TOGETHER, Decoder, Encoder, block_checks
from prequential.coding.range_coder import MOST_CLASSES
from prequential.data.sequence import DataSequence
from prequential.errors import PreqError, PreqWarning, require_count
from prequential.files import digest_of
from prequential.learn.environment import deterministic, environment, find_num_threads, num_threads, require_threads
from prequential.learn.learner import Learner
from prequential.learn.randomness import seeded
from prequential.learn.recipe import Recipe
from prequential.methods import Method
from prequential.methods.rebuild import method_from_settings
from prequential.models import MODELS, ModelFactory, name_of
from prequential.progress import Listener
from prequential.recorder import Recorder
from prequential.run import execute
from prequential.session import Session, prepare

MATTERS = ("torch", "numpy", "device", "cpu_capability", "platform")
"""What the bits of a prediction may depend on."""


def encode(
    make_model: str | ModelFactory,
    data: DataSequence,
    method: Method | None = None,
    recipe: Recipe | None = None,
    *,
    seed: int,
    plan_seed: int = 0,
    width: float = 1.0,
    device: str = "cpu",
    threads: int | str | None = None,
    listeners: Iterable[Listener] = (),
) -> bytes:
    """The labels as a bitstream of about the codelength, from which `decode` gets them back.

    Takes what `run` takes. The file also holds every setting, so that decoding needs only the inputs.

    Example:
        >>> import prequential as pq
        >>> data = pq.load_data("mnist").take(96)
        >>> bits = pq.encode("mlp1", data, pq.ReplayStreams(num_streams=1), seed=0)
        >>> bool((pq.decode(bits, data) == data.labels(np.arange(96)).numpy()).all())
        True
    """
    require_threads(threads)
    session = prepare(
        make_model, data, method, recipe, seed=seed, plan_seed=plan_seed, width=width, device=device, evaluate=False
    )
    if not session.plan.method.prequential:
        raise PreqError(f"{session.plan.method.name} is not prequential: it has no code to write")
    if data.num_classes > MOST_CLASSES:
        raise PreqError(f"a bitstream holds at most {MOST_CLASSES} classes, the data has {data.num_classes}")
    labels = Encoder(data, session.learner.device)
    with num_threads(find_num_threads(threads, session.learner)):
        header = _header(session)
        recorder = _walk(session, labels, listeners)
    if recorder.diverged:
        raise PreqError(
            f"the label at position {recorder.position - 1} has no finite codelength, so there is nothing to encode; "
            "try a smaller learning rate or a larger eps"
        )
    coded = recorder.arrays()["labels"]
    header |= {"codelength_nats": recorder.total_nats, "labels": digest_of(coded.astype("<u2").tobytes())}
    header["checks"] = block_checks(coded)
    return Container(header, labels.coder.payload()).to_bytes()


def _header(session: Session) -> dict[str, Any]:
    """Everything a decoder must rebuild or compare; the number of threads is the current one."""
    learner = session.learner
    return {
        **{name: session.facts[name] for name in ("method", "recipe", "model", "seeds", "length", "num_classes")},
        "data": {name: session.facts["data"][name] for name in ("name", "input_shape", "inputs")},
        "plan": session.plan.digest(),
        "weights": _weights_digest(learner),
        "device": str(learner.device),
        "environment": environment(learner.device),
    }


def _walk(session: Session, labels: Encoder | Decoder, listeners: Iterable[Listener]) -> Recorder:
    learner = session.learner
    recorder = Recorder(session.plan, learner.data.num_classes)
    with seeded(learner.seed, "run", 0, learner.device), deterministic(learner.device):
        execute(session.plan, learner, labels, recorder, lambda: recorder.report(listeners))
    recorder.report(listeners)
    return recorder


@dataclass(frozen=True)
class InputsOnly:
    """A sequence without its labels."""

    data: DataSequence
    num_classes: int
    heldout: None = None

    def __len__(self) -> int:
        return len(self.data)

    @property
    def name(self) -> str:
        return self.data.name

    @property
    def input_shape(self) -> tuple[int, ...]:
        return self.data.input_shape

    @property
    def order_seed(self) -> int | None:
        return self.data.order_seed

    def inputs(self, positions: NDArray[np.int64]) -> torch.Tensor:
        return self.data.inputs(positions)

    def labels(self, positions: NDArray[np.int64]) -> torch.Tensor:
        raise PreqError("a decoder has no labels")

    def digests(self) -> dict[str, str]:
        return self.data.digests()


def decode(
    content: bytes,
    data: DataSequence,
    make_model: str | ModelFactory | None = None,
    *,
    listeners: Iterable[Listener] = (),
) -> NDArray[np.int64]:
    """The labels of a bitstream, in sequence order.

    Args:
        content: what `encode` gave.
        data: the inputs, in the order they were encoded in; its labels are never looked at.
        make_model: the model, where it is not one of the package: code is never imported because a file names it.

    Raises:
        PreqError: if the file is damaged, the inputs or the model are not the encoder's, or the
            arithmetic here turns out to differ. Wrong labels are never returned.
    """
    container = Container.from_bytes(content)
    try:
        session = _rebuild(container.header, InputsOnly(data, int(container.header["num_classes"])), make_model)
        threads, checks = container.header["environment"]["threads"], list(container.header["checks"])
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        if isinstance(error, PreqError):
            raise
        raise PreqError(f"the bitstream's header is damaged or incomplete ({error!r})") from None
    require_count("threads", threads, at_most=1024)
    if len(checks) != -(-session.plan.length // CHECKED_TOGETHER):
        raise PreqError(f"the bitstream's header is damaged: {len(checks)} is not its number of checks")
    labels = Decoder(session.plan.length, session.learner.device, container.payload, checks)
    try:
        with num_threads(threads):
            _walk(session, labels, listeners)
            decoded = labels.labels()
    except PreqError as error:
        raise PreqError(f"{error}{_because(container.header, session.learner)}") from None
    if digest_of(decoded.astype("<u2").tobytes()) != container.header["labels"]:
        raise PreqError(
            f"the decoded labels are not those that were encoded{_because(container.header, session.learner)}"
        )
    return decoded


def _rebuild(header: dict[str, Any], data: InputsOnly, make_model: str | ModelFactory | None) -> Session:
    if len(data) != header["length"]:
        raise PreqError(f"the bitstream is about {header['length']} labels, the data has {len(data)} inputs")
    if data.digests()["inputs"] != header["data"]["inputs"]:
        raise PreqError(
            f"these are not the inputs that were encoded ('{header['data']['name']}', order seed "
            f"{header['seeds']['order_seed']}); give the same data in the same order"
        )
    name = header["model"]["name"]
    if make_model is None and name not in MODELS:
        raise PreqError(f"the model '{name}' is not one of the package; give it again (--model {name})")
    if make_model is not None and name_of(make_model) != name:
        raise PreqError(f"the bitstream was made with the model '{name}', got '{name_of(make_model)}'")
    session = prepare(
        make_model or name,
        data,
        method_from_settings(header["method"]),
        Recipe(**header["recipe"]),
        seed=header["seeds"]["seed"],
        plan_seed=header["seeds"]["plan_seed"],
        width=header["model"]["width"],
        device=header["device"],
        evaluate=False,
    )
    if session.plan.digest() != header["plan"]:
        raise PreqError("the plan differs from the encoder's; was the file made by another version?")
    if _weights_digest(session.learner) != header["weights"]:
        raise PreqError(f"the model '{name}' starts from other weights than the encoder's; is it the same code?")
    if different := _because(header, session.learner):
        warnings.warn(f"decoding may fail{different}", PreqWarning, stacklevel=3)
    return session


def _weights_digest(learner: Learner) -> str:
    tensors = (*learner.model.parameters(), *learner.model.buffers())
    return digest_of(b"".join(tensor.detach().cpu().contiguous().numpy().tobytes() for tensor in tensors))


def _because(header: dict[str, Any], learner: Learner) -> str:
    here, there = environment(learner.device), header["environment"]
    differences = [
        f"{name} {there.get(name)} there, {here[name]} here" for name in MATTERS if there.get(name) != here[name]
    ]
    return f" ({'; '.join(differences)})" if differences else ""
