"""The report of a sweep in a real browser: settings as columns, a chart of the cost, on a phone and on paper."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import prequential as pq

from ..synthetic import synthetic_record
from .chromium import Browser, browser, find_chromium

pytest.importorskip("playwright", reason="there is no playwright; make test-browser installs it")
pytestmark = pytest.mark.skipif(
    find_chromium() is None, reason="there is no chromium; make test-browser installs Debian's"
)
BROKEN = r"""(() => {
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const found = [];
  while (walker.nextNode()) {
    const node = walker.currentNode;
    if (node.parentElement.closest("script, style, template, .long")) continue;
    for (const match of node.data.matchAll(/[−+-]?\d[\d,.]*\d%?/g)) {
      const range = document.createRange();
      range.setStart(node, match.index);
      range.setEnd(node, match.index + match[0].length);
      if (new Set([...range.getClientRects()].map(({ top }) => Math.round(top))).size > 1) found.push(match[0]);
    }
  }
  return found;
})()"""
"""Numbers on the page that go on in the next line."""
PLACES = "[...document.querySelectorAll('label, select, button, figure, h2')].map((e) => e.getBoundingClientRect().top)"


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browser() as running:
        yield running


@pytest.fixture(scope="module")
def sweep(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Eighteen trials that differ in streams and learning rate, and cost as much as they have streams."""
    folder = tmp_path_factory.mktemp("sweep")
    (folder / "sweep.json").write_text(json.dumps({}))
    for number in range(18):
        flops = {"code": 1e9 * (1 + number % 50), "heldout": 1.0}
        record = synthetic_record(number, 3000, flops=flops, model={"name": "net", "width": 1.0, "num_parameters": 9})
        record.save(folder / "trials" / f"{number:05d}")
    return folder


@pytest.fixture(scope="module")
def page(sweep: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return pq.write_report(sweep, tmp_path_factory.mktemp("page") / "report.html")


def test_settings_are_columns_and_the_cost_is_drawn(chromium: Browser, page: Path) -> None:
    chromium.size(1280, 900)
    chromium.open(page)
    heads = chromium.evaluate("[...document.querySelectorAll('#comparison-table thead th')].map((e) => e.textContent)")
    assert heads[:4] == ["run", "streams", "lr", "nats"]
    names = chromium.evaluate("[...document.querySelectorAll('#comparison-table tbody th')].map((e) => e.textContent)")
    assert all(name.startswith("streams ") for name in names[:18])
    assert chromium.evaluate("document.querySelectorAll('#cost .roomy circle').length") == 18
    boxes = "[...document.querySelectorAll('#cost svg text')].map((e) => e.getBoundingClientRect().toJSON())"
    texts = [box for box in chromium.evaluate(boxes) if box["width"]]
    inside = chromium.evaluate("document.querySelector('#cost svg').getBoundingClientRect().toJSON()")
    assert all(inside["left"] <= box["left"] and box["right"] <= inside["right"] for box in texts)
    chromium.evaluate("document.querySelectorAll('#comparison-table thead button')[1].click()")
    streams = "[...document.querySelectorAll('#comparison-table tbody tr')].map((e) => Number(e.cells[1].textContent))"
    ordered = chromium.evaluate(streams)[:18]
    assert ordered == sorted(ordered)
    assert chromium.complaints() == []


@pytest.mark.parametrize("width", [320, 390])
def test_no_number_is_broken_on_a_phone(chromium: Browser, page: Path, sweep: Path, tmp_path: Path, width: int) -> None:
    few = pq.write_report([sweep / "trials" / f"{number:05d}" for number in range(6)], tmp_path / "few.html")
    chromium.size(width, 900)
    for each in (page, few):
        chromium.open(each)
        chromium.evaluate("for (const details of document.querySelectorAll('details')) details.open = true")
        assert chromium.evaluate(BROKEN) == []
        assert chromium.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("width", [390, 1280])
def test_the_chart_of_the_cost_is_one_whose_letters_can_be_read(chromium: Browser, page: Path, width: int) -> None:
    chromium.size(width, 900)
    chromium.open(page)
    drawings = "[...document.querySelectorAll('#cost svg')].filter((each) => each.getBoundingClientRect().width)"
    assert chromium.evaluate(f"{drawings}.length") == 1
    scale = f"(([svg]) => svg.getBoundingClientRect().width / svg.viewBox.baseVal.width)({drawings})"
    assert 12.5 * chromium.evaluate(scale) > 10  # pixels of a letter


@pytest.mark.parametrize("width", [390, 1280])
def test_hiding_a_run_moves_nothing(chromium: Browser, sweep: Path, tmp_path: Path, width: int) -> None:
    trials = [sweep / "trials" / f"{number:05d}" for number in range(4)]
    chromium.size(width, 900)
    chromium.open(pq.write_report(trials, tmp_path / "few.html"))
    chromium.evaluate("for (const details of document.querySelectorAll('details')) details.open = true")
    before = chromium.evaluate(PLACES)
    chromium.evaluate("document.querySelectorAll('#legend input')[1].click()")
    assert chromium.evaluate("plots.state.shown.size") == 3
    assert chromium.evaluate(PLACES) == before
    chromium.evaluate("document.querySelectorAll('#legend input')[1].click()")
    assert chromium.evaluate(PLACES) == before


def test_no_sheet_of_paper_holds_a_footer_alone(chromium: Browser, page: Path) -> None:
    shown = "['footer', '.paper'].map((each) => document.querySelector(each).getBoundingClientRect().height > 0)"
    chromium.size(1280, 900)
    chromium.open(page)
    assert chromium.evaluate(shown) == [True, False]
    chromium.paper()
    assert chromium.evaluate(shown) == [False, True]  # what it says stands at the top
    chromium.paper(False)
