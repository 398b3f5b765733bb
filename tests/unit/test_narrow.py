"""Every table and every help text on a terminal of 80 columns."""

from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console
from rich.progress import Progress

import prequential as pq
from prequential.cli import COMMANDS
from prequential.cli.show import columns_for
from prequential.methods import Method

from ..conftest import blobs
from ..narrow import WIDTH, assert_fits, assert_narrow, printed

Captured = pytest.CaptureFixture[str]
LONG = "a-rather-long-name-of-a-run-with-the-learning-rate-0.001-and-sixty-streams"


@pytest.mark.parametrize("command", COMMANDS)
def test_help_texts(command: str, capsys: Captured) -> None:
    assert_narrow([command, "--help"], capsys)


def test_the_list_of_commands(capsys: Captured) -> None:
    assert_fits(printed([], WIDTH, capsys))


@pytest.mark.parametrize("command", [["models"], ["presets"], ["presets", "best"]], ids=" ".join)
def test_lists(command: list[str], capsys: Captured) -> None:
    assert_narrow(command, capsys)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs of several methods with long names, and all kinds of ends."""
    folder = tmp_path_factory.mktemp("runs")
    methods: list[Method] = [
        pq.ReplayStreams(num_streams=1, batch_size=8),
        pq.ChunksFromScratch(epochs=1, batch_size=8),
    ]
    for number, method in enumerate(methods):
        pq.run("mlp1", blobs(96), method, seed=number, width=0.05, out=folder / f"{LONG}-{number}")
    one = pq.load(folder / f"{LONG}-0")
    for number, nats in enumerate((12_345_678.0, 1e9)):
        record = replace(one, nats=one.nats * nats, recipe=one.recipe | {"learning_rate": nats}, path=None)
        record.save(folder / f"large{number}")
    replace(one, status="running", path=None).save(folder / "died")
    return folder


@pytest.mark.parametrize("command", ["compare", "pareto", "watch"])
def test_tables_of_runs(command: str, runs: Path, capsys: Captured) -> None:
    narrow = printed([command, str(runs)], WIDTH, capsys)
    assert_fits(narrow)
    if command != "watch":  # which keeps the ends of names
        assert (
            LONG.replace("-", "") in narrow.replace("\n", " ").replace(" ", "").replace("-", "") or "rather" in narrow
        )
        assert "…" not in narrow


@pytest.mark.parametrize("width", [40, 60, 80, 100, 160])
@pytest.mark.parametrize("length", [96, 60_000, 12_800_000])
def test_a_progress_line_keeps_its_time_left(width: int, length: int) -> None:
    console = Console(file=StringIO(), width=width, force_terminal=True)
    bar = Progress(*columns_for(width, length), console=console)
    fields = {"position": f"{length:,}/{length:,}", "nats": "123,456", "rate": "0.1234", "errors": "12,345"}
    bar.add_task("run", total=10, completed=5, **fields)  # type: ignore[arg-type]
    console.print(bar.get_renderable())
    assert isinstance(console.file, StringIO)
    (line,) = [line for line in console.file.getvalue().splitlines() if line.strip()]
    assert line.rstrip().endswith("left")
    assert "-:--:--" in line
