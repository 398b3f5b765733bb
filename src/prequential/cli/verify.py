"""`preq verify`: a run proved by encoding it again and decoding it elsewhere."""

import shlex
import subprocess
import sys
import tempfile
import warnings
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import tyro

from prequential.cli.all_inputs import TrustFlags
from prequential.cli.code import MaxFlops, OwnFlags, own_model, print_sizes, require_most, sizes_of
from prequential.cli.parse import JsonFlag, flag_group
from prequential.cli.source import AgainFlags, named_again, reload, source_arguments
from prequential.errors import PreqError
from prequential.learn.execution import Execution
from prequential.methods.rebuild import method_from_settings
from prequential.presets import recipe_from_settings
from prequential.runs.leftovers import remove_leftovers
from prequential.runs.record import Record, load
from prequential.scaling import INTENSITY

if TYPE_CHECKING:
    from prequential.data.sequence import LoadedSequence

MOST_EXAMPLES = 100_000
"""That are made because a record says so."""


@flag_group()
class Verify(AgainFlags, OwnFlags, TrustFlags, JsonFlag):
    """Prove a run: encode it again, decode it in a fresh process that has no labels, and compare."""

    run: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="RUN")]
    """The directory of a finished run."""
    max_flops: MaxFlops = None
    """Refuse, before anything is built, what takes more floating-point operations (to encode, and again to decode)."""


def main_verify(flags: Verify) -> None:
    """Encode, decode elsewhere, compare."""
    record = load(flags.run)
    remove_leftovers(record.path, record.status)
    if record.status != "finished" or not record.prequential:
        raise PreqError(f"{flags.run} holds no finished code (status {record.status}, {record.method['name']})")
    if unknown := next((name for name in ("device", "threads") if name not in record.environment), None):
        raise PreqError(f"{flags.run} does not say its {unknown} any more: its record was changed, and proves nothing")
    from prequential.learn.estimate import require_flops
    from prequential.models import is_package_model, name_of
    from prequential.runs.codec import encode_and_score
    from prequential.runs.session import make_session
    from prequential.runs.studies import Studies
    from prequential.runs.terms import experts_again, most_flops_of

    names = [expert["model"] for expert in record.model.get("experts", ())] or [record.model["name"]]
    given = {name_of(model) for model in flags.model}
    for name in names:
        if not is_package_model(name) and name not in given:
            again = f"give it again (--model {shlex.quote(name)})"
            raise PreqError(f"the model '{name}' is not one of the package; {again}")
    seeds, made, data = record.seeds, record.environment, _data(flags, record)
    recipe, width, model = recipe_from_settings(record.recipe), record.model["width"], record.model["name"]
    if "experts" in record.model:
        model = experts_again(record.model, own_model(flags.model), flags.method, data)
        method = model.method
    else:
        method = method_from_settings(record.method, flags.method)
    if require_most(flags.max_flops) is not None:
        require_flops(most_flops_of(model, data, method, seeds["plan_seed"], recipe, width), flags.max_flops)
    shared = seeds["plan_seed"], width, made["device"], _as_recorded(record)
    session = make_session(model, data, method, [recipe], [seeds["seed"]], *shared, evaluate=False)
    trusted = None if flags.trust_study is None or record.study is None else Path(flags.trust_study)
    studies = Studies(trusted=trusted, expected=record.study)
    content, nats = encode_and_score(session, made["threads"], studies=studies)
    different = np.flatnonzero(~np.isclose(nats, record.nats, rtol=1e-9, atol=1e-12))
    if len(different):
        raise PreqError(
            f"{flags.run} is not what its settings give here: from label {different[0]} on its nats differ "
            f"({record.codelength:,.1f} in the record, {nats.sum():,.1f} now; made with torch "
            f"{made['torch']} on {made['device_name']}, {made['cpu_capability']}, {made['threads']} threads)"
        )
    with tempfile.TemporaryDirectory() as folder:
        labels = _decode_elsewhere(Path(folder), content, data, flags)
    if not np.array_equal(labels, record.labels):
        raise PreqError(f"the labels decoded are not those of {flags.run}")
    sizes = sizes_of(content, None) | {"record_nats": record.codelength, "labels_identical": True}
    if record.study is not None:
        sizes |= {"study_recomputed": trusted is None}
    flags.result(lambda: sizes, partial(print_sizes, sizes))


def _data(flags: Verify, record: Record) -> "LoadedSequence":
    """The data of the run, confirmed by its fingerprints: what the user names, or what the record does.

    A record may name any file. What nobody asked for is read in silence, nothing is fetched for it, and where it is not
    the data of the run nothing is told of what it holds.
    """
    from prequential.data.sources.request import NotHere

    named = record.source or {"name": record.data["name"]}
    if flags.data is not None:
        if (data := _confirmed(named_again(flags.data, record.source), flags, record)) is None:
            raise PreqError(f"the data '{flags.data}' is not what {flags.run} was made with")
        return data
    try:
        with warnings.catch_warnings(record=True) as notes:
            data, reason = _confirmed(named, flags, record, unasked=True), "it is not what the run was made with"
    except Exception as error:  # of whatever a file holds that is something else
        data, notes, reason = None, [], str(error) if isinstance(error, NotHere) else "it cannot be read as that"
    if data is None:
        told = f"{flags.run} names '{named.get('name')}' as its data, which is not used: {reason}"
        raise PreqError(f"{told}; name the data yourself (--data)")
    for note in notes:
        warnings.warn(note.message, stacklevel=3)
    return data


def _confirmed(
    source: dict[str, Any], flags: Verify, record: Record, *, unasked: bool = False
) -> "LoadedSequence | None":
    """The data of a source that a record tells of, if the run was made with it, else None."""
    from prequential.data.sources.request import NotHere

    size = source.get("examples")
    if flags.examples is None and isinstance(size, int) and size > max(MOST_EXAMPLES, len(record.nats)):
        raise NotHere(f"it would be made of {size:,} examples; give --data and --examples for that")
    here = {name: value for name, value in source.items() if name != "workers"}  # that is for this machine to say
    data = reload(here | flags.asked(), record.seeds["order_seed"], flags.data_dir, unasked=unasked)
    data = data.take(record.length)
    if data.scale is None:  # as the run had it, whatever the rule says now
        data = data.with_scale(record.scale or INTENSITY)
    return data if all(data.digests()[part] == record.data[part] for part in ("labels", "inputs")) else None


def _as_recorded(record: Record) -> Execution:
    """How the run was executed, if its bits can be computed again at all."""
    made = {"engine": "eager", "precision": "fp32"} | record.environment
    if not made["device"].startswith("cpu") and not made.get("deterministic"):
        raise PreqError(
            f"{record.path} was made on {made['device_name']}, which gave bits that it may not give again; "
            "make the run with --deterministic to verify it"
        )
    return Execution(engine=made["engine"], precision=made["precision"], compiled=False, deterministic=True)


def _decode_elsewhere(folder: Path, content: bytes, data: "LoadedSequence", flags: Verify) -> np.ndarray:
    """Decode in a fresh process that is given the bitstream and the inputs, and nothing else.

    Inputs that are read with work, such as images, whose files are what was fingerprinted and of which training may see
    another view, are read from their source again.
    """
    bitstream, inputs, output = folder / "labels.preq", folder / "inputs.npy", folder / "labels.npy"
    bitstream.write_bytes(content)
    command = [sys.executable, "-m", "prequential.cli", "decode", str(bitstream), "-o", str(output)]
    if data.reads_slowly and data.source is not None:
        command += source_arguments(data.source, flags.data_dir)
    else:
        np.save(inputs, data.inputs(np.arange(data.num_inputs)).numpy(), allow_pickle=False)
        command += ["--inputs", str(inputs)]
    trust = "--trust-study", flags.trust_study
    for flag, own in (*(("--model", model) for model in flags.model), ("--method", flags.method), trust):
        command += [flag, own] if own else []
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        reason = (done.stderr.splitlines() or ["no word"])[-1]
        raise PreqError(f"decoding failed: {reason.removeprefix('preq: ')}")
    labels: np.ndarray = np.load(output, allow_pickle=False)
    return labels
