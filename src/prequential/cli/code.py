"""`preq encode` and `preq decode`: a length that is the size of a file."""

import io
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import tyro

from prequential.cli.all_inputs import TrustFlags
from prequential.cli.job import JobFlags
from prequential.cli.parse import UNSET, JsonFlag, PathText, flag_group
from prequential.cli.source import AgainFlags, reload
from prequential.errors import PreqError, require_number
from prequential.files import reading, write_atomically, writing
from prequential.report.text import duration
from prequential.runs.studied import FILE, NOT_RECOMPUTED
from prequential.scaling import in_words
from prequential.settings import setting
from prequential.terminal import tell

if TYPE_CHECKING:
    from prequential.data.sequence import LoadedSequence
    from prequential.experts.settings import AnyModel
    from prequential.learn.estimate import Expected

MaxFlops = Annotated[float | None, tyro.conf.arg(metavar="FLOPS", help_behavior_hint="(default: no limit)")]
Output = Annotated[str, tyro.conf.arg(metavar="FILE", aliases=("-o",))]


@flag_group("output")
class Encode(JobFlags, JsonFlag):
    """Run as preq run does and write the labels as a bitstream, from which preq decode gets them back."""

    output: Output
    """The file to write, such as labels.preq."""


@flag_group("model")
class OwnFlags:
    """Code of the user's own, which is never imported because a file names it."""

    model: Annotated[tyro.conf.UseAppendAction[tuple[str, ...]], tyro.conf.arg(metavar="NAME"), UNSET] = ()
    """The model, where it is your own: no code is imported because a file names it. Once for each, where experts are
    your own."""
    method: str | None = None
    """The method, where it is your own, as file.py:Class."""


def own_model(names: Sequence[str]) -> "AnyModel | None":
    """The models that were given, as `decode` takes them."""
    if len(names) <= 1:
        return names[0] if names else None
    from prequential.experts.settings import Experts

    return Experts(list(names))


@flag_group("data")
class DecodedFlags(AgainFlags):
    """The inputs; their order is the bitstream's."""

    data: str | None = None
    """The data set whose inputs were encoded; its labels are not looked at."""
    inputs: PathText = None
    """Or the inputs themselves, a .npy file in sequence order."""
    original_order: bool = False
    """Write the labels in the publisher's order instead of the sequence's (of those that were coded)."""


@flag_group()
class Decode(DecodedFlags, OwnFlags, TrustFlags):
    """Get labels back from a bitstream and the inputs: the model learns them as it decodes."""

    bitstream: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="BITSTREAM")]
    """What preq encode wrote."""
    output: Output
    """Where the labels go, a .npy file."""
    device: str | None = setting(None, hint="the encoder's")
    """Where to decode."""
    max_flops: MaxFlops = None
    """Refuse, before anything is built, what takes more floating-point operations."""


def main_encode(flags: Encode) -> None:
    """Encode, print."""
    job, output = flags.job(), _new_file(flags.output)
    from prequential.cli.show import ProgressBar
    from prequential.runs.codec import encode

    data = flags.load_coded()
    with ProgressBar(flags.chosen_settings.plan_method, len(data), plan_seed=flags.plan_seed) as bar:
        content = encode(data=data, **job, listeners=[bar])
    write_atomically(output, content)
    sizes = sizes_of(content, output)
    flags.result(lambda: sizes, partial(print_sizes, sizes))


def main_decode(flags: Decode) -> None:
    """Decode, write."""
    output = _new_file(flags.output)
    if (flags.data is None) == (flags.inputs is None):
        raise PreqError("decoding needs the inputs; give either --data NAME or --inputs FILE.npy")
    if flags.inputs is not None and flags.original_order:
        raise PreqError("--original-order needs --data: a file of inputs in sequence order knows no other")
    with reading(Path(flags.bitstream)):
        content = Path(flags.bitstream).read_bytes()
    from prequential.cli.show import ProgressBar
    from prequential.coding.container import Container, checked
    from prequential.methods.rebuild import method_from_settings
    from prequential.runs.codec import decode
    from prequential.runs.terms import expect

    header = checked(Container.from_bytes(content, flags.bitstream).header)
    data = _inputs(flags, header)
    own: dict[str, Any] = {"method": flags.method, "device": flags.device}
    model = own_model(flags.model)
    expected, seconds = expect(content, data, model, **own, max_flops=require_most(flags.max_flops))
    tell(f"{len(data):,} labels in {len(content):,} bytes; {described(expected, seconds)}")
    sys.stdout.flush()
    with ProgressBar(method_from_settings(header["method"], flags.method), len(data), plan_seed=0) as bar:
        labels = decode(content, data, model, **own, listeners=[bar], trust_study=flags.trust_study)
    if flags.original_order:
        if data.source_rows is None:
            raise PreqError(f"'{data.name}' is stored in sequence order and knows no other; leave --original-order out")
        labels = labels[np.argsort(data.source_rows.numpy(), kind="stable")]
    buffer = io.BytesIO()
    np.save(buffer, labels, allow_pickle=False)
    write_atomically(output, buffer.getvalue())
    trusted = f" ({NOT_RECOMPUTED})" if flags.trust_study is not None and "study" in header else ""
    tell(f"{len(labels):,} labels, verified{trusted}: {output}")


def described(expected: "Expected", seconds: float | None) -> str:
    """What work takes, for a person."""
    work, flops = expected.work, expected.flops
    events = "a plan of unknown size" if work is None else f"a plan of at most {work.events:,} events"
    if flops is None or seconds is None:
        return f"{events}, FLOPs unknown"
    years = seconds / (365.25 * 24 * 3600)
    time = f"{years:,.3g} years" if years > 1 else f"{seconds:.1f} s" if seconds < 60 else duration(seconds)
    return f"{events}, {flops:.3g} FLOPs, about {time}"


def require_most(flops: float | None) -> float | None:
    """Refuse a limit that is none."""
    if flops is not None:
        require_number("--max-flops", flops, above=0)
    return flops


def _inputs(flags: Decode, header: dict[str, Any]) -> "LoadedSequence":
    from prequential.data.arrays import from_arrays

    num_labels = flags.num_labels
    if num_labels is None and header["data"].get("unlabelled") is not None:
        num_labels = header["length"]
    if flags.inputs is not None:
        try:
            mapped = np.lib.format.open_memmap(flags.inputs, mode="r")
        except Exception as error:  # a foreign file fails in many ways
            raise PreqError(f"{flags.inputs} cannot be read as .npy: {str(error).splitlines()[0]}") from None
        data = from_arrays(np.array(mapped), None)
        return data.with_num_labels(min(num_labels, len(data))) if num_labels else data
    assert flags.data is not None
    source = {"name": flags.data, **flags.asked(), "num_labels": num_labels}
    return reload(source, header["seeds"].get("order_seed"), flags.data_dir).take(header["length"])


def sizes_of(content: bytes, output: Path | None) -> dict[str, object]:
    """What a bitstream takes, and what its labels cost."""
    from prequential.coding.container import Container

    container = Container.from_bytes(content)
    nats, bits = container.header["codelength_nats"], 8 * len(container.payload)
    study = {"study": container.header["study"]} if "study" in container.header else {}
    return {
        "codelength_nats": nats,
        "codelength_bits": nats / np.log(2),
        "payload_bits": bits,
        "header_bits": 8 * len(content) - bits,
        "scale": container.header.get("scale"),
        "file": None if output is None else str(output),
        **study,
    }


def print_sizes(sizes: dict[str, object]) -> None:
    """For a person."""
    if isinstance(scale := sizes["scale"], int | str):
        tell(in_words(scale))
    tell(f"codelength  {sizes['codelength_bits']:>12,.0f} bits  ({sizes['codelength_nats']:,.1f} nats)")
    tell(f"bitstream   {sizes['payload_bits']:>12,} bits  (+ {sizes['header_bits']:,} bits of header)")
    if isinstance(study := sizes.get("study"), dict):
        told = f"{study['steps']:,} steps before the first label, digest {study['digest']}"
        tell(f"study       {told}{', from a file' if study['from'] == FILE else ''}")
    if "labels_identical" in sizes:
        tell(f"record      {sizes['record_nats']:>12,.1f} nats; decoded without labels, every label identical")
    if sizes.get("study_recomputed") is False:
        tell(NOT_RECOMPUTED)
    if sizes["file"]:
        tell(f"file: {sizes['file']}")


def _new_file(name: str) -> Path:
    path = Path(name)
    if path.exists() and (path.stat().st_size or not path.is_file()):  # an empty one is what a kill left of us below
        raise PreqError(f"{path} is already there; choose another name or remove it")
    with writing(path):  # now, not after the work
        path.touch()
        path.unlink()
    return path
