"""The page about runs: everything is in it, nothing is fetched, and mistakes get one line."""

import base64
import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

import prequential as pq
from prequential import cli
from prequential.errors import PreqError
from prequential.report.comparison import compare
from prequential.report.page import page_of, write_report
from prequential.report.page.build import SCRIPTS
from prequential.runs.record import ARRAYS

from ..synthetic import synthetic_record
from .test_imports import BLOCK_TORCH, SOURCE

Captured = pytest.CaptureFixture[str]
VOID = {"meta", "input"}


class Page(HTMLParser):
    """The elements of a page; refuses one whose elements do not close."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {}
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open:
            self.texts.setdefault(self.open[-1], []).append(data)


def data_in(page: str) -> dict[str, object]:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    content: dict[str, object] = json.loads(found[1])
    return content


def floats(text: object) -> np.ndarray:
    return np.frombuffer(base64.b64decode(str(text)), "<f8")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three settings, one of them with two seeds."""
    folder = tmp_path_factory.mktemp("runs")
    synthetic_record(0, 900).save(folder / "a")
    synthetic_record(1, 900).save(folder / "b-0")
    fixed = synthetic_record(1, 900).recipe
    replace(synthetic_record(1, 900, seed=1), recipe=fixed).save(folder / "b-1")
    synthetic_record(4, 900).save(folder / "c")
    return folder


def test_the_curves_in_the_page_are_those_of_the_runs(folder: Path, tmp_path: Path) -> None:
    text = write_report([folder], tmp_path / "report.html").read_text(encoding="utf-8")
    data = data_in(text)
    kept = floats(data["kept"]).astype(int)
    entries, curves = data["entries"], data["curves"]
    assert isinstance(entries, list)
    assert isinstance(curves, list)
    assert [sorted(entry["names"]) for entry in entries if entry["name"] == "b"] == [["b-0", "b-1"]]
    assert len(curves) == 4 + 3  # runs, and codes without a model
    for entry in entries:
        for name, number in zip(entry["names"], entry["runs"], strict=True):
            truth = np.append(0.0, np.cumsum(pq.load(folder / name).nats))
            np.testing.assert_allclose(floats(curves[number]), truth[kept], rtol=1e-12)
    codes = data["codes"]
    assert isinstance(codes, list)
    assert [code["name"] for code in codes] == ["uniform code", "label frequencies", "previous label"]
    np.testing.assert_allclose(floats(curves[codes[0]["curve"]]), kept * np.log(10))


def test_the_page_stands_alone_and_is_always_the_same(folder: Path, tmp_path: Path) -> None:
    text = pq.write_report([str(folder)], tmp_path / "new" / "report.html").read_text(encoding="utf-8")
    page = Page(text)
    assert "http:" not in text
    assert "https:" not in text
    assert not [tag for tag, _ in page.elements if tag in ("link", "img", "iframe", "object", "embed", "base")]
    assert not [own for tag, own in page.elements if "src" in own or "srcset" in own]
    assert all(str(own["href"]).startswith("#") for tag, own in page.elements if "href" in own)
    targets = {own["id"] for _, own in page.elements if own.get("id")}
    assert {str(own["href"])[1:] for _, own in page.elements if "href" in own} <= targets
    ids = [own["id"] for _, own in page.elements if own.get("id")]
    assert len(ids) == len(set(ids))
    assert "default-src 'none'" in text
    assert "{{" not in text.split("<script>")[0]
    assert page_of(compare([pq.load(run) for run in sorted(folder.iterdir())])) == text


def test_it_says_what_the_comparison_says(folder: Path) -> None:
    comparison = compare([pq.load(run) for run in sorted(folder.iterdir())])
    page = Page(page_of(comparison))
    text = page_of(comparison)
    for sentence in comparison.sentences():
        assert re.sub(r"e\^(−?[\d.,]*\d)", r"e<sup>\1</sup>", sentence) in text
    cells = [own["data-value"] for tag, own in page.elements if tag == "td" and own.get("data-value")]
    for entry in comparison.entries:
        assert str(entry.nats) in cells
    marked = re.findall(r'<tr class="(differs|same)"><th scope="row">(?:<span[^>]*>≠ </span>)?([^<]*)', text)
    assert ("differs", "recipe · learning rate") in marked
    assert ("same", "recipe · optimizer") in marked
    assert ("same", "seeds · order seed") in marked
    assert ("differs", "threads") in marked  # of the environments
    for words in ("1 × 28 × 28", "shuffled, order seed 0", "inputs up to the label", "Labels of each class"):
        assert words in text


def test_names_of_directories_stay_text(tmp_path: Path) -> None:
    names = ["<b>bold", "x <img src=y onerror=alert(1)>", "a&amp;b", '"quoted"', "{{css}}", "it's `e^3`"]
    names += ["one</script><i>", "two</script><i>"]  # the ends are alike, so that the names hold more of the paths
    records = [synthetic_record(number, 60, name=name) for number, name in enumerate(names)]
    page = Page(text := page_of(compare(records)))
    assert not [tag for tag, _ in page.elements if tag in ("img", "i")]
    assert "<b>bold" not in text
    assert "onerror=alert(1)>" not in text
    assert set(names) <= set(page.texts["th"])
    found = data_in(text)["entries"]
    assert isinstance(found, list)
    assert {entry["name"] for entry in found} == set(names)


def test_where_all_diverged_there_are_no_odds_and_one_run_has_no_posterior() -> None:
    whole = synthetic_record(1, 300)
    cut = {name: getattr(whole, name)[:1] for name in ("labels", "predicted", "confidence", "uncalibrated_nats")}
    lost = [replace(synthetic_record(n, 300), nats=np.array([np.inf]), status="diverged", **cut) for n in (2, 3)]
    for records in (lost, [whole]):
        page = Page(text := page_of(compare(records)))
        assert "nan" not in [cell.lower() for cell in page.texts["td"]]
        assert "−∞" not in page.texts["td"]
        assert "posterior" not in page.texts["button"]
        assert "odds against it" not in text


def test_a_stream_begins_with_a_linear_axis() -> None:
    shuffled = synthetic_record(1, 60)
    stream = replace(shuffled, seeds={**shuffled.seeds, "order_seed": None})
    assert data_in(page_of(compare([shuffled])))["linear"] is False
    assert data_in(page_of(compare([stream])))["linear"] is True


def test_runs_that_diverged_or_have_no_code_are_in_it(tmp_path: Path) -> None:
    whole = synthetic_record(1, 300)
    cut = {name: getattr(whole, name)[:121] for name in ("labels", "predicted", "confidence", "uncalibrated_nats")}
    lost = replace(synthetic_record(2, 300), nats=np.append(whole.nats[:120], np.inf), status="diverged", **cut)
    none = {name: getattr(whole, name)[:0] for name in ("nats", *cut)}
    erm = replace(synthetic_record(3, 300), prequential=False, method={"name": "erm"}, **none)
    text = write_report([whole, lost, erm], tmp_path / "r.html").read_text(encoding="utf-8")
    Page(text)
    data = data_in(text)
    entries, curves = data["entries"], data["curves"]
    assert isinstance(entries, list)
    assert isinstance(curves, list)
    assert [entry["finite"] for entry in entries] == [True, False]
    kept = floats(data["kept"])
    assert 120 in kept
    assert kept[len(floats(curves[1])) - 1] == 120
    assert 'data-value="Infinity">∞' in text
    assert "net3-003" in text
    one = write_report(whole, tmp_path / "one.html").read_text(encoding="utf-8")
    assert re.search(r"<h1>synthetic · [\d,]+ labels, 10 classes · 1 run</h1>", one)


def test_a_run_named_twice_is_shown_once(folder: Path, tmp_path: Path) -> None:
    text = write_report([folder / "a", folder, folder / "c"], tmp_path / "r.html").read_text(encoding="utf-8")
    assert " classes · 4 runs of 3 settings</h1>" in text
    with pytest.raises(PreqError, match="runs are records or directories of runs, got int"):
        write_report([3], tmp_path / "r.html")  # type: ignore[list-item]
    with pytest.raises(PreqError, match=r"a report is a page, got 'r\.txt'; end the name in \.html"):
        write_report(folder, tmp_path / "r.txt")


def test_many_settings_become_rows_with_what_differs() -> None:
    text = page_of(compare([synthetic_record(number, 120) for number in range(40)]))
    Page(text)
    assert "What differs, best run first (4 of 16 settings)" in text
    assert "The same in all runs: 12 settings" in text


def test_a_long_page_stays_small_and_says_how_exact_it_is() -> None:
    records = [synthetic_record(number, 40_000) for number in range(3)]
    text = page_of(compare(records))
    kept = floats(data_in(text)["kept"])
    assert len(kept) == 4000
    assert {0, 20_000, 40_000} <= set(kept.tolist()) or np.abs(kept - 20_000).min() < 30
    assert "Codelengths are kept after 3,999 numbers of labels" in text
    assert len(text) < 500_000


def test_the_command_writes_and_says_where(folder: Path, tmp_path: Path, capsys: Captured) -> None:
    page = tmp_path / "new" / "report.html"
    assert cli.main(["report", str(folder / "a"), str(folder / "c"), "-o", str(page)]) == 0
    said = capsys.readouterr()
    assert said.err == ""
    assert said.out == f"report: {page} ({page.stat().st_size / 1e6:.1f} MB)\n"
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")
    with pytest.raises(SystemExit):
        cli.main(["report", "--help"])
    assert "without the internet" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ("", "preq report needs at least one run; name its directory, see preq report --help"),
        ("RUNS -o report.pdf", "a report is a page, got 'report.pdf'; end the name in .html"),
        ("RUNS -o /proc/no/report.html", "cannot write /proc/no/report.html: No such file"),
        ("RUNS -o FOLDER.html", "the report "),
        ("/nowhere/at/all -o r.html", "/nowhere/at/all is no directory; name one that preq run"),
        ("EMPTY -o r.html", "EMPTY holds no run; name a directory that preq run"),
        ("RUNS TORN -o r.html", "TORN/nats.npy is truncated: "),
        ("RUNS GONE -o r.html", "GONE/labels.npy cannot be read: No such file"),
        ("RUNS FOREIGN -o r.html", "FOREIGN/record.json is not a record"),
        ("RUNS OTHER -o r.html", ""),
        ("RUNS STOPPED -o r.html", "STOPPED is not finished (stopped at label 100 of 900)"),
        ("RUNS --out r.html", "unrecognized options: --out"),
    ],
)
def test_mistakes_get_one_line_and_leave_nothing(
    arguments: str, complaint: str, folder: Path, tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("EMPTY", "FOREIGN", "FOLDER.html"):
        Path(name).mkdir()
    Path("FOREIGN/record.json").write_text("[1, 2]")
    record = synthetic_record(0, 900)
    record.save("TORN")
    os.truncate("TORN/nats.npy", 4000)
    record.save("GONE")
    Path("GONE/labels.npy").unlink()
    replace(record, data=record.data | {"labels": "4" * 32}).save("OTHER")
    arrays = {name: getattr(record, name)[:100] for name in ARRAYS}
    replace(record, status="stopped", **arrays).save("STOPPED")
    before = sorted(Path().rglob("*"))
    assert cli.main(["report", *(str(folder) if word == "RUNS" else word for word in arguments.split())]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith(f"preq: {complaint}") or "differ in their labels" in said.err
    assert said.err.count("\n") == 1
    assert sorted(Path().rglob("*")) == before


def test_unfinished_runs_are_shown_as_far_as_all_go(folder: Path, tmp_path: Path, capsys: Captured) -> None:
    record = synthetic_record(2, 900)
    arrays = {name: getattr(record, name)[:100] for name in ARRAYS}
    replace(record, status="stopped", **arrays).save(tmp_path / "stopped")
    page = tmp_path / "r.html"
    assert cli.main(["report", str(folder), str(tmp_path / "stopped"), "--prefix", "-o", str(page)]) == 0
    text = page.read_text(encoding="utf-8")
    assert "Only the first 100 of 900 labels are compared." in text
    assert floats(data_in(text)["kept"])[-1] == 100


def test_unfinished_runs_of_a_sweep_are_left_out_and_named(tmp_path: Path, capsys: Captured) -> None:
    record = synthetic_record(2, 900)
    arrays = {name: getattr(record, name)[:100] for name in ARRAYS}
    for number in range(2):
        synthetic_record(number, 900).save(tmp_path / "sweep" / f"{number}")
        replace(record, status="pruned", **arrays).save(tmp_path / "sweep" / f"pruned-{number}")
    page = tmp_path / "r.html"
    assert cli.main(["report", str(tmp_path / "sweep"), "-o", str(page)]) == 0
    note = f"left out 2 runs not finished (pruned): {tmp_path}/sweep/pruned-0, {tmp_path}/sweep/pruned-1"
    assert capsys.readouterr().err == f"preq: note: {note}\n"
    text = page.read_text(encoding="utf-8")
    assert f"<li>L{note[1:]}.</li>" in text
    assert " classes · 2 runs</h1>" in text


def test_none_of_it_needs_torch(folder: Path, tmp_path: Path) -> None:
    code = (
        f"{BLOCK_TORCH}\nimport prequential.report\nfrom prequential.cli import main\n"
        f"raise SystemExit(main(['report', {str(folder)!r}, '-o', {str(tmp_path / 'r.html')!r}]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("report: ")


def test_the_files_of_the_page_are_in_use_and_short() -> None:
    files = sorted(path for path in (SOURCE / "report" / "page" / "files").iterdir() if path.is_file())
    assert {path.name for path in files} == {
        *SCRIPTS,
        "page.html",
        "labels.html",
        "experts.html",
        "tables.html",
        "page.css",
    }
    for path in files:
        assert path.read_text(encoding="utf-8").count("\n") <= 250
    root = SOURCE.parents[1]
    if (root / "pyproject.toml").is_file():
        assert '"report/page/files/*"' in (root / "pyproject.toml").read_text()
