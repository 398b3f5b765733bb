"""RESULTS.md: a section for each benchmark, replaced when it is measured again."""

import datetime
import os
import platform
import re
from pathlib import Path

import torch

import prequential as pq

RESULTS = Path(__file__).parent / "RESULTS.md"
HEADING = """# What we claim about speed, measured

Written by `make bench` and `make bench-gpu`. Every figure is a ratio of things measured in one run, or stands beside
the machine's own peak measured in the same run.
"""


def write_section(title: str, command: str, body: str) -> None:
    """Put a section into RESULTS.md, in place of the one with the same title."""
    text = RESULTS.read_text() if RESULTS.exists() else HEADING
    section = f"## {title}\n\n{machine()}, `{command}`\n\n{body.strip()}\n"
    pattern = re.compile(rf"^## {re.escape(title)}$.*?(?=^## |\Z)", re.DOTALL | re.MULTILINE)
    known = pattern.search(text) is not None
    text = pattern.sub(lambda _: section + "\n", text) if known else f"{text.rstrip()}\n\n{section}"
    RESULTS.write_text(text.rstrip() + "\n")


def machine() -> str:
    """Machine, versions and date on one line."""
    if torch.cuda.is_available():
        name = f"{torch.cuda.get_device_name()}, CUDA {torch.version.cuda}"
    else:
        name = f"{os.cpu_count()} cores, {platform.machine()} {torch.backends.cpu.get_cpu_capability()}"
    date = datetime.datetime.now(datetime.UTC).date().isoformat()
    return (
        f"{name}, Python {platform.python_version()}, torch {torch.__version__}, prequential {pq.__version__}, {date}"
    )


def table(heads: list[str], rows: list[list[str]]) -> str:
    """A Markdown table."""
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])
