"""What files and names hold is shown and never obeyed: by terminals, by spreadsheets, by browsers."""

import ast
import csv
import json
import math
import re
import unicodedata
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import prequential as pq
from prequential import Record, cli
from prequential.cli.show import print_result
from prequential.cli.sweep_table import print_summary
from prequential.data.decode import BrokenImage
from prequential.errors import PreqError, PreqWarning
from prequential.files import digest_of
from prequential.report.plots import KINDS
from prequential.report.table import in_csv, write_csv
from prequential.runs.record import write_facts
from prequential.settings import settings_of
from prequential.sweeps.summary import Summary, TrialResult
from prequential.terminal import printable

from ..records import made_record
from .test_plots import texts_of

Captured = pytest.CaptureFixture[str]
FORGED = "preq: all is well"
EVIL = (
    f"\x1b]0;title\x07\x1b[2J\r\n{FORGED}\n\u202egnp.exe\u2066\x9b31m\u2028\u200b[/bold][red]=1+1</script><img src=x>"
)
"""A title, a cleared screen, a line of its own, turned writing, markup of three kinds."""
ODD_FILE = "\x1b[2J\n[bold]\u202e"
"""The same for the name of a file."""
SOURCES = Path(cli.__file__).parents[1]
LABELS = [0, 1] * 10


def require_harmless(text: str) -> None:
    """Nothing but letters and our own line breaks, and no line that only a name could have written."""
    unseen = {letter for letter in text if unicodedata.category(letter)[0] == "C" or letter in "\u2028\u2029"}
    assert unseen <= {"\n"}, unseen
    assert not any(line.startswith(FORGED) for line in text.splitlines()), text


@given(st.text())
def test_any_text_becomes_one_harmless_line(text: str) -> None:
    shown = printable(text)
    assert len(shown.splitlines()) <= 1
    assert not any(unicodedata.category(letter) in ("Cc", "Cs", "Zl", "Zp") for letter in shown)
    assert not any(unicodedata.category(letter) == "Cf" and letter not in "\u200c\u200d" for letter in shown)
    assert printable(shown) == shown
    assert shown == text or not text.isprintable()


@given(st.text())
def test_errors_and_warnings_are_one_harmless_line(text: str) -> None:
    for told in (PreqError(text), PreqWarning(text), BrokenImage(text, text)):
        assert str(told) == printable(str(told))


def test_everything_that_is_printed_goes_one_way() -> None:
    """`print` is for `tell`, for help texts (our own), and for workers that talk to their parents."""
    allowed = {
        "terminal.py": {"print"},
        "cli/parse.py": {"print"},
        "data/views.py": {"print"},
        "data/workers.py": {"print"},
    }
    allowed |= {name: {"console.print"} for name in ("report/table.py", "cli/show.py", "cli/watch.py")}
    for file in SOURCES.rglob("*.py"):
        calls = [ast.unparse(node.func) for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Call)]
        printing = {call for call in calls if call == "print" or call.lower().endswith("console.print")}
        printing |= {
            call for call in calls if call.startswith("Console()") or call.endswith(("stdout.write", "stderr.write"))
        }
        assert printing <= allowed.get(file.relative_to(SOURCES).as_posix(), set()), file


def evil_record(**changes: Any) -> Record:
    nats = np.linspace(1.0, 0.1, len(LABELS)).tolist()
    method = {"name": "mi-rs"} | settings_of(pq.ReplayStreams(num_streams=2, batch_size=4))
    facts: dict[str, Any] = {
        "method": method,
        "model": {"name": EVIL, "width": 1.0, "num_parameters": 3, "fingerprint": EVIL, EVIL: EVIL},
        "data": {"name": EVIL, "inputs": "i", "labels": "l", "heldout": {"inputs": EVIL, "labels": EVIL}, EVIL: EVIL},
        "environment": {"engine": EVIL, "device": "cuda", "device_name": EVIL, EVIL: EVIL},
        "source": {"name": EVIL, EVIL: EVIL},
        "conditioned_on": EVIL,
    }
    return replace(made_record(nats, labels=LABELS, **facts), **{"name": EVIL, "path": None} | changes)


@pytest.fixture(scope="module")
def evil(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs that say what no run of ours says, in a directory that is called so, one of them beyond reading."""
    folder = tmp_path_factory.mktemp("evil") / ODD_FILE
    for number in range(2):
        evil_record(recipe={"learning_rate": 0.1 + number, EVIL: EVIL}).save(folder / f"{number}")
    own = {"name": EVIL, "batch_size": 4}
    evil_record(method=own, method_title=EVIL, conditioned_on="x", name=None).save(folder / "own")
    (folder / "strange").mkdir()
    record = {"format": EVIL, "data": {"name": EVIL}}
    text = json.dumps(record, indent=1, ensure_ascii=False)
    content = {"checksum": digest_of(text.encode()), "record": record}
    (folder / "strange" / "record.json").write_text(json.dumps(content), encoding="utf-8")
    return folder


def commands_over(folder: Path, made: Path) -> list[list[str]]:
    runs = [str(folder / name) for name in ("0", "1", "own")]
    return [
        ["compare", *runs, "--csv", str(made / "compare.csv")],
        ["compare", str(folder)],
        ["compare", str(folder / "strange")],
        ["pareto", *runs, "--csv", str(made / "pareto.csv")],
        ["watch", str(folder)],
        ["watch", str(folder / "nowhere")],
        ["report", *runs, "-o", str(made / "r.html")],
        ["verify", runs[0]],
        ["verify", str(folder / "strange")],
        ["sweep", "show", str(folder / "0")],
        ["plot", "curve", *runs, "-o", str(made / f"{ODD_FILE}.svg")],
        ["plot", EVIL, *runs, "-o", str(made / "p.svg")],
        ["run", EVIL, EVIL],
        ["run", "mnist", EVIL],
        [EVIL],
    ]


@pytest.mark.parametrize("colour", [False, True])
def test_no_command_obeys_what_a_record_holds(
    colour: bool, evil: Path, tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    if colour:
        monkeypatch.setenv("FORCE_COLOR", "1")
    for command in commands_over(evil, tmp_path):
        with warnings.catch_warnings(action="ignore"):
            cli.main(command)
        out, err = capsys.readouterr()
        assert out + err
        require_harmless(re.sub("\x1b\\[[0-9;]*m", "", out) if colour else out)
        if not colour:  # a live line moves the cursor
            require_harmless(err)


def test_what_python_shows_of_them_is_harmless(evil: Path) -> None:
    records = [pq.load(evil / name) for name in ("0", "1", "own")]
    comparison, mixed = (
        pq.compare(records),
        pq.mixture([replace(record, conditioned_on="all inputs") for record in records]),
    )
    data = replace(pq.from_arrays(np.zeros((4, 2), np.float32), np.array([0, 1, 0, 1])), name=EVIL)
    for text in (repr(records[0]), repr(comparison), str(comparison), repr(data), repr(mixed)):
        require_harmless(text)
    for html in (records[0]._repr_html_(), comparison._repr_html_()):
        require_harmless(html)
        assert "<img" not in html
        assert "<script" not in html


def test_the_end_of_a_run_and_of_a_sweep(evil: Path, capsys: Captured) -> None:
    print_result(pq.load(evil / "own"))
    trials = tuple(
        TrialResult(number, status, error=EVIL, value=1.0, settings={EVIL: EVIL}, codelength=1.0, path=Path(EVIL))
        for number, status in enumerate(["finished", "failed", EVIL])
    )
    facts = {"data": {"name": EVIL}, "model": EVIL, "method": {"name": EVIL}}
    print_summary(Summary(Path(EVIL), facts, trials, {EVIL: 1.0}, 3, True), top=3)
    out = capsys.readouterr().out
    require_harmless(out)
    assert "trial 1 failed: \\x1b" in out


def csv_with_odd_names(folder: Path) -> str:
    path = folder / f"{ODD_FILE}.csv"
    path.write_text(f"a\x1b[31m\u202e,b,class\n{'1,2,0' + chr(10)}{'2,1,1' + chr(10)}")
    return f"csv:{path}"


def npz_with_odd_names(folder: Path) -> str:
    arrays: dict[str, Any] = {"a\x1b[2J\n": np.zeros((4, 2)), "[/bold]\u202e": np.array([0, 1, 0, 1]), "c": np.zeros(2)}
    np.savez(folder / "odd.npz", **arrays)
    return f"npz:{folder / 'odd.npz'}"


@pytest.mark.parametrize("made", [csv_with_odd_names, npz_with_odd_names])
@pytest.mark.parametrize("flags", [[], ["--label", "wrong"], ["--label", "\x1b[2J\n"]])
def test_names_inside_data_files(
    made: Callable[[Path], str], flags: list[str], tmp_path: Path, capsys: Captured
) -> None:
    for command in (["models"], ["plan", "--length", "4", "--model", "mlp1", "--data"]):
        with warnings.catch_warnings(action="ignore"):
            status = cli.main([*command, made(tmp_path), *flags])
        out, err = capsys.readouterr()
        require_harmless(out)
        require_harmless(err)
        assert status in (0, 2)
        assert out + err


def test_a_warning_is_one_line(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    def warn(_: list[str]) -> int:
        warnings.warn(EVIL, PreqWarning, stacklevel=1)
        warnings.warn(EVIL, UserWarning, stacklevel=1)
        return 0

    monkeypatch.setattr(cli, "_dispatch", warn)
    with warnings.catch_warnings(action="always"):
        cli.main([])
    err = capsys.readouterr().err
    require_harmless(err)
    assert len(err.splitlines()) == 2


@given(st.one_of(st.text(), st.builds("".join, st.lists(st.sampled_from("=+-@\t\r ＝＋－＠1.e"), min_size=1))))
def test_no_cell_of_a_table_is_a_formula(text: str) -> None:
    cell = in_csv(text)
    assert isinstance(cell, str)
    begin = unicodedata.normalize("NFKC", cell[:1])
    assert begin not in ("=", "@", "\t", "\r", "\n")
    assert begin not in ("+", "-") or math.isfinite(float(cell))
    assert cell.removeprefix("'") == printable(text).removeprefix("'")


def test_csv_holds_numbers_as_they_are(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"a": -1.5, "=b": "=1+1", "c": "-2e-3"},
        {"a": None, "=b": "+cmd|' /C calc'!A0", "c": "\t=1"},
    ]
    with write_csv(tmp_path / "t.csv", rows).open(newline="") as file:
        head, *body = csv.reader(file)
    assert head == ["a", "'=b", "c"]
    assert body == [["-1.5", "'=1+1", "-2e-3"], ["", "'+cmd|' /C calc'!A0", "\\t=1"]]


def test_every_cell_of_a_file_of_runs_is_harmless(evil: Path, tmp_path: Path, capsys: Captured) -> None:
    for number, begin in enumerate("=+-@"):
        model = {"name": f"{begin}cmd", "width": 1.0, "num_parameters": 3}
        record = evil_record(name=f"{begin}1+1", model=model, recipe={"learning_rate": 1.0 + number})
        record.save(tmp_path / "runs" / f"{number}")
    for command in ("compare", "pareto"):
        path = tmp_path / f"{command}.csv"
        assert cli.main([command, str(tmp_path / "runs"), "--csv", str(path)]) == 0
        with path.open(newline="") as file:
            cells = [cell for row in csv.reader(file) for cell in row]
        assert not [cell for cell in cells if cell[:1] in ("=", "+", "-", "@", "\t", "\r") and not _is_number(cell)]
        assert "'=cmd" in cells
    capsys.readouterr()


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def test_the_page_shows_markup_and_runs_none(evil: Path, tmp_path: Path, capsys: Captured) -> None:
    with warnings.catch_warnings(action="ignore"):
        assert (
            cli.main(["report", *(str(evil / name) for name in ("0", "1", "own")), "-o", str(tmp_path / "r.html")]) == 0
        )
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    require_harmless(page)
    assert page.count("</script>") == page.count("<script") == 2
    assert "<img" not in page
    assert "&lt;img src=x&gt;" in page
    data = page.partition('id="data">')[2].partition("</script>")[0]
    assert "<" not in data
    assert json.loads(data)["entries"]
    capsys.readouterr()


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "weights"])  # which only mixed runs have
def test_pictures_hold_no_commands(kind: str, evil: Path, tmp_path: Path) -> None:
    with warnings.catch_warnings(action="ignore"):
        pq.plot(kind, [evil / "0", evil / "1"], tmp_path / "p.svg")
    for text in texts_of(tmp_path / "p.svg"):
        require_harmless(text)


def test_facts_with_odd_values_are_damage_told_in_one_line(tmp_path: Path, capsys: Captured) -> None:
    write_facts(tmp_path, evil_record().facts() | {"status": EVIL}, {EVIL: (1, EVIL)})
    for command in ("compare", "watch", "verify"):
        cli.main([command, str(tmp_path)])
        out, err = capsys.readouterr()
        require_harmless(out)
        require_harmless(err)
