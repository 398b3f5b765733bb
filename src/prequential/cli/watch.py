"""`preq watch RUN…`: where runs stand, while they go."""

import sys
import time
from contextlib import suppress
from dataclasses import dataclass

from rich.console import Console
from rich.live import Live

from prequential.cli.parse import Runs
from prequential.cli.watch_table import view
from prequential.errors import require_count, require_number
from prequential.report.watching import Snapshot, Watcher
from prequential.terminal import tell

LINES_AROUND = 8
"""Of a terminal: what titles and notes take."""


@dataclass(frozen=True, kw_only=True)
class WatchFlags:
    """Show where runs stand, from their directories, until all are over. Ctrl-C leaves; it does not disturb them.

    `preq watch runs/lenet sweeps/a`

    Columns: labels coded, nats, nats per label, errors, regret (nats behind the best at the same position), labels
    per second, time left, and where there is room the next-step loss over the second half of what is coded. A run
    that is given all inputs is "studying" before the first label; the time left is that of the study then, with ">"
    before it. A run whose process is gone without a word has "died"; it goes on with --resume.
    """

    directories: Runs
    """Runs, folders of runs, or sweeps; runs that begin below a folder later are shown too."""
    once: bool = False
    """Print where they stand now, and leave; so it is too where standard output is no terminal."""
    every: float = 1.0
    """Seconds between two looks."""
    top: int = 20
    """How many runs are shown; the rest is counted."""


def main_watch(flags: WatchFlags) -> None:
    """Look, show."""
    require_number("--every", flags.every, at_least=0.1)
    require_count("--top", flags.top)
    console, watcher = Console(file=sys.stdout), Watcher(flags.directories)
    is_live = sys.stdout.isatty() and not flags.once
    with suppress(KeyboardInterrupt):
        snapshot = _follow(console, watcher, flags) if is_live else watcher.snapshot()
        console.print(view(snapshot, top=flags.top, width=console.width), highlight=False)
        if is_live:
            tell("nothing is running any more")


def _follow(console: Console, watcher: Watcher, flags: WatchFlags) -> Snapshot:
    """Show where runs stand until all are over, and give where they stood then."""
    with Live(console=console, auto_refresh=False, vertical_overflow="crop", transient=True) as live:
        while not (snapshot := watcher.snapshot()).is_over:
            fitting = max(1, min(flags.top, console.height - LINES_AROUND - 2 * len(snapshot.groups)))
            live.update(view(snapshot, top=fitting, width=console.width), refresh=True)
            time.sleep(flags.every)
    return snapshot
