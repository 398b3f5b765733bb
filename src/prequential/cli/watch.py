"""`preq watch RUN…`: where runs stand, while they go."""

import os
import sys
import time
from contextlib import suppress
from dataclasses import dataclass

from rich.console import Console
from rich.live import Live

from prequential.cli.parse import Runs, parse
from prequential.cli.watch_table import view
from prequential.errors import PreqError, require_count, require_number
from prequential.report.watching import Snapshot, Watcher

LINES_AROUND = 8
"""Of a terminal: what titles and notes take."""


@dataclass(frozen=True, kw_only=True)
class WatchFlags:
    """Show where runs stand, from their directories, until all are over. Ctrl-C leaves; it does not disturb them.

    `preq watch runs/lenet sweeps/a`

    Columns: labels coded, nats, nats per label, errors, regret (nats behind the best at the same position), labels
    per second, time left, and where there is room the next-step loss over the second half of what is coded. A run
    whose process is gone without a word has "died"; it goes on with --resume.
    """

    directories: Runs
    """Runs, folders of runs, or sweeps; runs that begin below a folder later are shown too."""
    once: bool = False
    """Print where they stand now, and leave; so it is too where standard output is no terminal."""
    every: float = 1.0
    """Seconds between two looks."""
    top: int = 20
    """How many runs are shown; the rest is counted."""


def main_watch(arguments: list[str]) -> int:
    """Parse, look, show."""
    flags = parse(WatchFlags, "watch", arguments)
    if not flags.directories:
        raise PreqError("preq watch needs at least one directory of runs; name one, see preq watch --help")
    require_number("--every", flags.every, at_least=0.1)
    require_count("--top", flags.top)
    console = Console(file=sys.stdout)
    watcher = Watcher(flags.directories)
    if flags.once or not sys.stdout.isatty():
        _print(console, watcher.snapshot(), flags.top)
        return 0
    with suppress(KeyboardInterrupt):
        _follow(console, watcher, flags)
    return 0


def _print(console: Console, snapshot: Snapshot, top: int) -> None:
    plain = console.options.ascii_only
    console.print(view(snapshot, top=top, width=_width(console), plain=plain), highlight=False)


def _width(console: Console) -> int:
    return console.width if console.is_terminal or "COLUMNS" in os.environ else max(console.width, 80)


def _follow(console: Console, watcher: Watcher, flags: WatchFlags) -> None:
    plain = console.options.ascii_only
    with Live(console=console, auto_refresh=False, vertical_overflow="crop", transient=True) as live:
        while not (snapshot := watcher.snapshot()).is_over:
            fitting = max(1, min(flags.top, console.height - LINES_AROUND - 2 * len(snapshot.groups)))
            live.update(view(snapshot, top=fitting, width=console.width, plain=plain), refresh=True)
            time.sleep(flags.every)
    _print(console, snapshot, flags.top)
    console.print("nothing is running any more", highlight=False)
