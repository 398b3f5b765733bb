"""The command `preq`: parse, call, print. No logic lives here."""

import os
import sys
import warnings
from typing import TextIO

from prequential import __version__
from prequential.errors import PreqError, PreqWarning, unknown_name

COMMANDS = {
    "run": "learn a sequence and print its description length",
    "plan": "list, count and check what a method would do; no model is run",
    "models": "the models there are",
    "data": "the data sets there are",
}

HELP = f"""preq {__version__}: the description length of labelled data under neural networks

usage: preq COMMAND ...

{chr(10).join(f"  {name:<8} {what}" for name, what in COMMANDS.items())}

start here:
  preq run mnist lenet                        MNIST by 8 replay streams, about a minute
  preq run mnist nets.py:make_net             your own model: a function that returns an nn.Module
  preq COMMAND --help                         every setting, with its default
"""

EXIT_MISTAKE, EXIT_DIVERGED, EXIT_INTERRUPTED = 2, 3, 130


def main(arguments: list[str] | None = None) -> int:
    """Run one command; the exit status is 0, 2 (a mistake), 3 (diverged) or 130 (interrupted)."""
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # read once, when torch is loaded
    arguments = sys.argv[1:] if arguments is None else arguments
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            warnings.simplefilter("always", PreqWarning)
            return _dispatch(arguments)
    except PreqError as error:
        print(f"preq: {error}", file=sys.stderr)
        return EXIT_MISTAKE
    except KeyboardInterrupt:
        print("preq: interrupted", file=sys.stderr)
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    print(f"preq: note: {message}", file=sys.stderr)


def _dispatch(arguments: list[str]) -> int:
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        print(HELP, end="")
        return 0
    if arguments[0] in ("-V", "--version", "version"):
        print(f"preq {__version__}")
        return 0
    command, rest = arguments[0], arguments[1:]
    if command == "run":
        from prequential.cli.run import main_run

        return main_run(rest)
    if command == "plan":
        from prequential.cli.plan import main_plan

        return main_plan(rest)
    if command in ("models", "data"):
        from prequential.cli.listing import main_data, main_models

        return main_models(rest) if command == "models" else main_data(rest)
    raise unknown_name("command", command, COMMANDS)
