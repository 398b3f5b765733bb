"""What each JSON file must look like that may come from a stranger, as shapes (see `prequential.plain`). No torch."""

from typing import Any

from prequential.plain import MOST_WHOLE, Real

MOST_TRIALS = 1 << 18

COUNT = range(1 << 62)
SOME = range(1, 1 << 40)
THREADS = range(1, 1025)
SEED = range(-MOST_WHOLE, MOST_WHOLE)
SCALAR = (None, bool, Real(), str)
SETTING = (*SCALAR, list, dict)
NAMED = {"name": str, "*": SETTING}
SCALE = (None, range(1, 256), str)
SEEDS = {"seed": SEED, "order_seed": (None, SEED), "plan_seed": SEED}
SOURCE = (
    None,
    {"name": str, "drop?": (None, [str]), "columns?": (None, [str]), "schema?": (None, dict), "*": SCALAR}
    | {"num_labels?": (None, SOME)},
)
NAMES = {"class_names?": (None, [str])}
DATA = {
    **{"name": str, "input_shape?": [COUNT], "inputs": str, "labels?": str, "heldout?": (None, {"*": str})},
    **NAMES,
    "rows?": (None, COUNT),
    "unlabelled?": (None, {"number": COUNT, "left_out": COUNT}),
}
EXPERT = {
    **{"model": str, "width": Real(0), "seed": SEED, "method": NAMED, "recipe": {"*": SETTING}, "averages": [Real(0)]},
    **{"num_parameters": COUNT, "fingerprint": str},
}
MODEL = {
    **{"name": str, "width": Real(0), "num_parameters?": COUNT, "fingerprint?": str},
    **{"experts?": [EXPERT], "mixer?": NAMED, "simple_codes?": bool, "expert_names?": [str]},
}
IDENTITY: dict[str, Any] = {
    **{"method": NAMED, "recipe": {"*": SETTING}, "model": MODEL, "data": DATA | {"labels": str}, "seeds": SEEDS},
    **{"length": SOME, "num_classes": range(1 << 32), "target?": (None, dict), "scale?": SCALE},
    "environment": {"device?": str, "threads?": THREADS, "engine?": str, "precision?": str, "*": SCALAR},
}
CODED_STUDY = {"digest": str, "steps": COUNT, "from": frozenset(("this run", "file"))}
STUDY = CODED_STUDY | {"seconds": Real(0)}
STUDIES = STUDY | {"each?": [STUDY]}
"""What a record or bitstream says of what was studied before the first label."""
FIGURES = (None, {"loss": Real(), "error_rate": Real(), "*": Real()})
STATUSES = frozenset(("finished", "diverged", "pruned", "stopped", "failed", "running"))

RECORD = IDENTITY | {
    "data": {name.removesuffix("?") if name == "heldout?" else name: shape for name, shape in IDENTITY["data"].items()},
    **{"prequential": bool, "status": STATUSES, "heldout": FIGURES, "seconds": Real(0)},
    **{
        "flops": (None, {"code": Real(0), "heldout": Real(0), "study?": Real(0)}),
        "arrays": {"*": {"length": COUNT, "digest": str}},
    },
    **{"conditioned_on?": str, "source?": SOURCE},
    **{"name?": (None, str), "method_title?": (None, str), "left_out?": (None, {"*": COUNT})},
    "study?": (None, STUDIES),
}
"""`record.json` of a run."""
PROGRESS = {
    **{"position": COUNT, "errors": COUNT, "trained_examples": COUNT, "seconds": Real(0), "host": str},
    "nats": (None, Real()),
    **{"studied_steps?": COUNT, "study_steps?": COUNT, "study_seconds?": Real(0)},
}
"""`progress.json` of a run that goes on."""
COUNTERS = dict.fromkeys(("num_events", "position", "num_predictions", "trained_examples"), COUNT)
CHECKPOINT = {
    **{"members": [str], "facts": [IDENTITY], "evaluate": (None, bool), "threads": THREADS},
    "counters": {
        **{"seconds": Real(0), "members": [COUNTERS | {"heldout": FIGURES, "diverged": bool}]},
        **{"studied_steps?": COUNT, "studies?": [STUDY | {"key": str}]},
    },
    "contents": [{"*": [(COUNT, str)]}],
}
"""What a checkpoint says beside its tensors."""
SAFETENSORS = {"__metadata__": {"prequential": str}, "*": {"dtype": str, "shape": [COUNT], "data_offsets": [COUNT]}}
"""The header of a checkpoint."""
TENSORS = {"__metadata__?": {"*": str}, "*": SAFETENSORS["*"]}
"""The header of any .safetensors file."""
KEPT_WEIGHTS = {
    **{"format": COUNT, "model": str, "width": Real(0), "input_shape": [COUNT], "output_size": SOME, "data": str},
    **{"weights": str, "trained_on": {"length": COUNT, "digest": str}},
}
"""`weights.json` beside the record of a run that kept its weights."""
FEATURES = {"num_features": SOME, "digest": str}
"""What is kept beside the features of a layer."""
STUDY_FILE = {
    **{"format": COUNT, "key": str, "digest": str, "parts": [str], "steps": COUNT, "seconds": Real(0)},
    **{"settings": {"*": SETTING}, "model": str, "inputs": str, "environment": {"*": SCALAR}},
}
"""`study.json` of what was learned from inputs alone."""
BITSTREAM = IDENTITY | {
    **{"data": DATA, "model": MODEL | {"num_parameters": range(1 << 34)}},
    **{"num_classes": range(2, (1 << 16) + 1), "num_events": SOME, "codelength_nats": Real(), "checks": [str]},
    **{"plan": str, "fingerprint": str, "labels": str, "device": str},
    "environment": IDENTITY["environment"] | {"threads": THREADS},
    "study?": CODED_STUDY | {"each?": [CODED_STUDY]},
}
"""The header of a bitstream."""
ROWS = range(1, (1 << 26) + 1)
"""Of a source; which row an example is of is told only where they are no more."""
NUMBER_TYPES = frozenset(("|b1", "|u1", "|i1", "<u2", "<i2", "<u4", "<i4", "<u8", "<i8", "<f2", "<f4", "<f8"))
PREPARED = {
    **{"name": str, "num_classes": range(1 << 32), "input_shape": [COUNT], "length": SOME, "order_seed": (None, SEED)},
    **{"dtype": NUMBER_TYPES, "label_dtype": NUMBER_TYPES, "conditioned_on?": str, "given?": str},
    **{"skipped?": COUNT, "scale?": SCALE, **NAMES, "rows?": (None, ROWS)},
    **{"source?": SOURCE, "shard_rows?": (None, SOME)},
    **{"blocks": {"inputs": [str], "labels": [str]}, "digests": {"inputs": str, "labels": str, "*": str}},
}
"""`prepared.json` of prepared data."""
PREPARING = {"identity": dict, "num_read": COUNT, "num_rows": COUNT, "skipped": COUNT, "blocks": PREPARED["blocks"]}
"""What says how far preparing has come."""
SWEEP = {
    **{"mark": str, "study": str, "storage": (None, str), "trials": range(1, MOST_TRIALS), "begun?": COUNT},
    "settings": {
        **{"model": str, "data": {"name": str, "*": SETTING}, "method": NAMED, "recipe?": {"*": SETTING}},
        **{"width?": Real(0), "seed?": SEED, "sampler?": str, "prune?": (None, str), "space?": dict},
        **{"experts?": [{"model": str, "*": SETTING}], "mixer?": NAMED, "simple_codes?": bool},
    },
}
"""`sweep.json` of a sweep."""
BEST = {"number": range(MOST_TRIALS)}
"""`best.json` of a sweep."""
TRACKED = {"*": {"run": str, "position": COUNT, "identity": (None, str)}}
"""What is remembered of the trackers of a run."""
