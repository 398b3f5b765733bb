"""`preq data`: what is known and what is there. `preq data prepare`: write it into mapped files."""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro
from rich.progress import BarColumn, TextColumn, TimeRemainingColumn

from prequential.cli.parse import UNSET, Word
from prequential.cli.schema import print_schema
from prequential.cli.show import LiveLine, print_list
from prequential.cli.source import SourceFlags
from prequential.errors import PreqError
from prequential.report.text import counted
from prequential.settings import setting
from prequential.terminal import tell


@dataclass(frozen=True, kw_only=True)
class List(SourceFlags):
    """List the data sets that are known, what is present, and where; or tell of one, for a table what becomes of each
    column. `preq data prepare --help` tells of preparing.

    `preq data table:flights.csv --label late`
    """

    data: Annotated[tyro.conf.Positional[Word], tyro.conf.arg(metavar="DATA"), UNSET] = None
    """A data set, or your own: table:PATH, folder:PATH, npz:PATH, hf:NAME."""


@dataclass(frozen=True, kw_only=True)
class Prepare(SourceFlags):
    """Write data into memory-mapped files, once, in sequence order: for data larger than memory, and for images that
    would be decoded again and again. A second call goes on where the first stopped."""

    data: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="DATA")]
    """A data set (see preq data), or your own: folder:PATH, table:PATH, npz:PATH, hf:NAME."""
    to: Annotated[str, tyro.conf.arg(metavar="DIR")]
    """The directory to fill; read it with prepared:DIR."""
    length: int | None = setting(None, hint="all")
    """Take the first N examples of the ordered whole."""


def main_data(flags: List) -> None:
    """List, or tell of one."""
    if flags.data is not None:
        data = flags.load(flags.data)
        held = f", {len(data.heldout):,} held out" if data.heldout is not None else ""
        shape = " × ".join(map(str, data.input_shape))
        tell(f"{data.name}: {counted(len(data), 'example')}{held}, {data.num_classes:,} classes, inputs {shape}")
        print_schema(data.schema)
        return
    if flags.asked():
        raise PreqError(f"--{min(flags.asked())} is about one data set; name it, see preq data --help")
    from prequential.data.download import cache_directory
    from prequential.data.sources import SOURCES, user_directory

    directory = user_directory(flags.data_dir)
    rows = []
    for source in SOURCES.values():
        if source.files is None:
            rows.append((f"{source.name}PATH", source.description, "your own"))
            continue
        size = sum(file.size for file in source.files.remote)
        todo = f"downloaded when needed ({size / 1e6:,.0f} MB)" if size else "put it there yourself"
        rows.append((source.name, source.description, str(source.files.where(directory) or f"not here; {todo}")))
    looked = f"looked in {f'{directory}, then ' if directory else ''}{cache_directory()} and the package"
    print_list(("data", "what it is", "where"), rows, f"{looked}; --data-dir or PREQ_DATA adds a directory")


def main_data_prepare(flags: Prepare) -> None:
    """Write mapped files."""
    from prequential.data.prepare import prepare
    from prequential.data.sources import open_source

    if flags.length is None:
        data = open_source(flags.data, flags.order, flags.order_seed, flags.data_dir, flags.asked())
    else:  # the first N that can be read, as preq run counts them
        data = flags.load(flags.data, flags.length)
    begin = time.monotonic()
    said = TextColumn("{task.fields[said]}")
    with LiveLine(BarColumn(24), said, TimeRemainingColumn(), TextColumn("left")) as bar:
        task = bar.add_task("prepare", total=None, said="")

        def show(done: int, total: int, skipped: int) -> None:
            broken = f"  {skipped:,} broken" if skipped else ""
            bar.update(task, completed=done, total=total, said=f"{done:,}/{total:,}{broken}")

        prepared = prepare(data, flags.to, skip_broken=flags.skip_broken, listener=show)
    size = sum(file.stat().st_size for file in Path(flags.to).rglob("*.npy"))
    skipped = f", {prepared.index.skipped:,} broken ones left out" if prepared.index.skipped else ""
    tell(f"{counted(len(prepared), 'example')}{skipped}, {size / 1e6:,.0f} MB in {time.monotonic() - begin:,.1f} s")
    tell(f"read it with prepared:{flags.to}")
    if data.training_view:
        tell("training then sees whole images; --augment resized-crop makes it see random parts of them")
