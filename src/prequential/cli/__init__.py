"""The command `preq`: parse, call, print. No logic lives here.

A command `x` is a function `main_x`. Its arguments are parsed as the class of flags that it takes; what it gives is the
exit status, nothing being 0.
"""

import codecs
import errno
import importlib
import inspect
import io
import os
import sys
import warnings
from collections.abc import Callable
from textwrap import fill
from typing import Any

from prequential import __version__
from prequential.cli.streams import patient_streams
from prequential.errors import PreqError, PreqWarning, in_one_line, require_known
from prequential.terminal import note, tell

COMMANDS = {
    "run": "learn a sequence and print its description length",
    "encode": "the same, with the labels written as a bitstream of that length",
    "decode": "get the labels back from a bitstream and the inputs",
    "verify": "prove a saved run: encode, decode without labels, compare",
    "plan": "list, count, check and cost what a method would do, before it runs",
    "models": "the models there are, with parameters and FLOPs for a data set",
    "data": "the data sets there are; preq data prepare NAME writes mapped files",
    "presets": "settings that belong together, and the codelengths they reached",
    "sweep": "run trials whose settings are drawn from a space; preq sweep show DIR",
    "watch": "where runs stand, while they go, from their directories",
    "probe": "which layer of which frozen network explains the labels best",
    "labels": "which labels of a run were expensive, and which classes are confused",
    "compare": "which run explains the data best, by how much, and how surely",
    "plot": "pictures: regret, loss, error, curve, calibration, weights, replay, pareto",
    "report": "one page about runs for any browser: table, live plots, settings",
    "pareto": "what runs reached for what they cost: codelength against FLOPs",
}

_HOMES = {"encode": "code", "decode": "code", "models": "listing", "presets": "listing"}
"""The modules of commands that do not have one of their own name."""
_OF_TWO_WORDS = ("data prepare", "sweep show")
"""Commands beside the one that their first word is."""

HELP = f"""preq {__version__}: the description length of labelled data under neural networks

usage: preq COMMAND ...

{chr(10).join(fill(f"  {name:<8} {what}", 80, subsequent_indent=" " * 11) for name, what in COMMANDS.items())}

start here:
  preq run mnist lenet                        MNIST, in about a minute
  preq run mnist nets.py:make_net             your own model, in a file
  preq run table:t.csv mlp2 --label class     your own data; folder:, npz: too
  preq run mnist lenet --method file.py:Mine  your own method
  preq compare runs                           which run is best, and how surely
  preq COMMAND --help                         every setting, with its default
"""

PLAIN = {"−": "-", "–": "-", "·": "|", "±": "+-", "∞": "inf", "…": "...", "│": "|", "─": "-"}
PLAIN |= dict(zip("▁▂▃▄▅▆▇█", "__.-=+*#", strict=True))
"""What stands for letters of ours where they cannot be written."""
EXIT_MISTAKE, EXIT_DIVERGED, EXIT_INTERRUPTED = 2, 3, 130


@patient_streams()
def main(arguments: list[str] | None = None) -> int:
    """Run one command; the exit status is 0, 2 (a mistake), 3 (diverged) or 128 + the signal that stopped it."""
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # read once, when torch is loaded
    arguments = sys.argv[1:] if arguments is None else arguments
    _spell_plainly()
    try:
        with warnings.catch_warnings():
            warnings.showwarning = note
            warnings.simplefilter("always", PreqWarning)
            status = _dispatch(arguments)
            sys.stdout.flush()
            return status
    except PreqError as error:
        return _mistake(error)
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        return _mistake(f"preq {arguments[0]} needs torch, which is not installed here; reading runs works without")
    except MemoryError as error:
        return _mistake(f"there is not enough memory for this ({in_one_line(error)})")
    except KeyboardInterrupt:
        tell("preq: interrupted", error=True)
        return EXIT_INTERRUPTED
    except OSError as error:
        if error.errno != errno.ENOSPC or error.filename is not None:
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is still to be written goes nowhere
        return _mistake(f"standard output cannot be written: {error.strerror}")


def _mistake(text: object) -> int:
    tell(f"preq: {text}", error=True)
    return EXIT_MISTAKE


def _dispatch(arguments: list[str]) -> int:
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        tell(*HELP.splitlines())
        return 0
    if arguments[0] in ("-V", "--version", "version"):
        tell(f"preq {__version__}")
        return 0
    from prequential.files import require_platform

    require_platform()
    first, words = arguments[0], arguments[: 2 if " ".join(arguments[:2]) in _OF_TWO_WORDS else 1]
    require_known("command", first, COMMANDS)
    module = importlib.import_module(f"prequential.cli.{_HOMES.get(first, first)}")
    from prequential.cli.settings import parse_settings

    work: Callable[[Any], int | None] = getattr(module, "_".join(["main", *words]))
    kind: type = inspect.get_annotations(work)["flags"]
    return work(parse_settings(kind, " ".join(words), arguments[len(words) :])) or 0


def _spell_plainly() -> None:
    """Let standard output write what its encoding lacks as something near it, or as "?": never fail over a letter."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        codecs.register_error("plain", _plain)
        sys.stdout.reconfigure(errors="plain")


def _plain(error: Any) -> tuple[str, int]:
    return "".join(PLAIN.get(letter, "?") for letter in error.object[error.start : error.end]), error.end
