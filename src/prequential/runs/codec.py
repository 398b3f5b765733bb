"""Encode and decode: the same loop as a run, with a bitstream at the border that labels cross."""

import warnings
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prequential.coding.container import Container
from prequential.coding.labels import Decoder, Encoder, block_checks
from prequential.coding.range_coder import MOST_CLASSES
from prequential.data.optional import capabilities
from prequential.data.sequence import DataSequence
from prequential.errors import PreqError, PreqWarning
from prequential.experts.settings import AnyModel
from prequential.files import digest_of
from prequential.learn.environment import arithmetic, require_threads, unlike
from prequential.learn.execution import Execution
from prequential.learn.recipe import Recipe
from prequential.methods import Method
from prequential.mixers.kept import expert_names
from prequential.runs.loop import execute
from prequential.runs.progress import Listener
from prequential.runs.recorder import Recorder
from prequential.runs.session import LearnerFactory, Session, make_session
from prequential.runs.studies import Studies, told_of_studies
from prequential.runs.terms import execution_of, read_terms, same_bits

GIVEN = ("name", "input_shape", "inputs", "training_view", "unlabelled")
"""What a bitstream says of its data."""


def encode(
    make_model: AnyModel,
    data: DataSequence,
    method: Method | None = None,
    recipe: Recipe | None = None,
    *,
    seed: int,
    plan_seed: int = 0,
    width: float = 1.0,
    device: str = "cpu",
    execution: Execution | None = None,
    threads: int | str | None = None,
    listeners: Iterable[Listener] = (),
    learner: LearnerFactory | None = None,
    study_dir: str | Path | None = None,
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
    shared = plan_seed, width, device, same_bits(execution or Execution())
    session = make_session(make_model, data, method, [recipe], [seed], *shared, evaluate=False, learner=learner)
    return encode_and_score(session, threads, listeners, Studies.of_run(study_dir, has_out=False))[0]


def encode_and_score(
    session: Session,
    threads: int | str | None,
    listeners: Iterable[Listener] = (),
    studies: Studies | None = None,
) -> tuple[bytes, NDArray[np.float64]]:
    """The bitstream of a session without held-out data, and the nats of each label."""
    require_threads(threads)
    if not session.plan.method.prequential:
        raise PreqError(f"{session.plan.method.name} is not prequential: it has no code to write")
    data = session.learner.data
    capabilities(data).require_intact()
    if (num_symbols := capabilities(data).target.num_symbols) > MOST_CLASSES:
        raise PreqError(f"a bitstream holds at most {MOST_CLASSES} classes, the data has {num_symbols}")
    labels = Encoder(data, session.learner.device)
    with session.at_work(session.learner, threads):
        header = _header(session)
        recorder = _walk(session, labels, listeners, studies or Studies())
    (measured,) = recorder.members
    if measured.status == "diverged":
        raise PreqError(
            f"the label at position {recorder.position - 1} has no finite codelength, so there is nothing to encode; "
            "try a smaller learning rate or a larger eps"
        )
    arrays = measured.arrays()
    header |= {
        "num_events": recorder.num_events,
        "codelength_nats": measured.total_nats,
        "labels": digest_of(arrays["labels"].astype("<u2").tobytes()),
        "checks": block_checks(arrays["labels"]),
        **_without_seconds(told_of_studies(recorder)),
    }
    return Container(header, labels.coder.payload()).to_bytes(), arrays["nats"]


def _header(session: Session) -> dict[str, Any]:
    """Everything a decoder must rebuild or compare; the number of threads is the current one."""
    learner, (facts,) = session.learner, session.facts
    told, names = facts.facts(), ("method", "recipe", "model", "seeds", "length", "num_classes", "target", "scale")
    return {
        **{name: told[name] for name in names if name in told},
        "data": {name: facts.data[name] for name in GIVEN if name in facts.data},
        "plan": session.plan.digest(),
        "fingerprint": facts.model["fingerprint"],
        "device": str(learner.device),
        "environment": arithmetic(learner),
    }


def _without_seconds(told: Any) -> Any:
    """What is told of studies, without what differs from time to time."""
    if isinstance(told, list):
        return [_without_seconds(each) for each in told]
    if not isinstance(told, dict):
        return told
    return {name: _without_seconds(value) for name, value in told.items() if name != "seconds"}


def _walk(session: Session, labels: Encoder | Decoder, listeners: Iterable[Listener], studies: Studies) -> Recorder:
    target, num_experts = capabilities(session.learner.data).target, len(expert_names(session.facts[0].model))
    recorder, heard = Recorder(session.plan, target, num_experts=num_experts), [list(listeners)]
    with closing(recorder):
        studies.begin(session.learner, recorder)
        execute(session.plan, session.learner, labels, recorder, lambda: recorder.report((), heard), studies=studies)
        recorder.report((), heard)
    return recorder


def decode(
    content: bytes,
    data: DataSequence,
    make_model: AnyModel | None = None,
    *,
    method: str | type[Method] | None = None,
    device: str | None = None,
    listeners: Iterable[Listener] = (),
    learner: LearnerFactory | None = None,
    max_flops: float | None = None,
    trust_study: str | Path | None = None,
) -> NDArray[np.int64]:
    """The labels of a bitstream, in sequence order.

    Args:
        content: what `encode` gave.
        data: the inputs, in the order they were encoded in; its labels are never looked at.
        make_model: the model, where it is not one of the package: code is never imported because a file names it.
        method: the class of the method, or `file.py:Class`, where it is not one of the package.
        device: where to decode, if not on the encoder's device.
        learner: the encoder's own learner, where it had one.
        max_flops: a bitstream that takes more to decode is refused before anything is built.
        trust_study: a directory with what the encoder studied (`study_dir`), to be used in place of studying again. It
            must fit the digest in the bitstream. A file of that size can hold every label: trust only your own.

    Raises:
        PreqError: if the file is damaged, the inputs or the model are not the encoder's, or the
            arithmetic here turns out to differ. Wrong labels are never returned.
    """
    container, told = read_terms(content, data, make_model, method, max_flops)
    header = container.header
    shared = told.plan_seed, told.width, device or header["device"], execution_of(header, learner)
    made = told.model, told.data, told.method, [told.recipe], [header["seeds"]["seed"]]
    session = make_session(*made, *shared, evaluate=False, learner=learner)
    _require_same(header, session)
    labels = Decoder(told.data, session.learner.device, container.payload, header["checks"])
    studies = Studies(trusted=None if trust_study is None else Path(trust_study), expected=header.get("study"))
    try:
        with session.at_work(session.learner, header["environment"]["threads"]):
            _walk(session, labels, listeners, studies)
            decoded = labels.labels()
        if digest_of(decoded.astype("<u2").tobytes()) != header["labels"]:
            raise PreqError("the decoded labels are not those that were encoded")
    except PreqError as error:
        raise PreqError(f"{error}{unlike(header['environment'], session.learner)}") from None
    return decoded


def _require_same(header: dict[str, Any], session: Session) -> None:
    """Refuse to decode by another plan or from other weights, and warn where the arithmetic may differ."""
    if session.plan.digest(header["num_events"]) != header["plan"]:
        raise PreqError("the plan differs from the encoder's; was the file made by another version?")
    if session.facts[0].model["fingerprint"] != header["fingerprint"]:
        name = header["model"]["name"]
        raise PreqError(f"the model '{name}' is not the encoder's: other layers or other weights; is it the same code?")
    if different := unlike(header["environment"], session.learner):
        warnings.warn(f"decoding may fail{different}", PreqWarning, stacklevel=3)
