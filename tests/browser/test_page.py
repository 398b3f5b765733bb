"""The report in a real browser, opened from a file. `make test-browser` installs the browser and runs this."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import prequential as pq
from prequential.data.shown import ShownExamples

from ..synthetic import synthetic_record
from .chromium import Browser, browser, find_chromium

pytest.importorskip("playwright", reason="there is no playwright; make test-browser installs it")
pytestmark = pytest.mark.skipif(
    find_chromium() is None, reason="there is no chromium; make test-browser installs Debian's"
)
INKED = """(() => {
  const drawn = document.querySelector('#KIND canvas.lines');
  const canvas = new OffscreenCanvas(drawn.width, drawn.height);
  const pen = canvas.getContext('2d', { willReadFrequently: true });
  pen.drawImage(drawn, 0, 0);
  const pixels = pen.getImageData(0, 0, canvas.width, canvas.height).data;
  const colours = {};
  for (let i = 0; i < pixels.length; i += 4) {
    if (pixels[i + 3] < 255) continue;
    const colour = '#' + [0, 1, 2].map((k) => pixels[i + k].toString(16).padStart(2, '0')).join('');
    colours[colour] = (colours[colour] || 0) + 1;
  }
  return colours;
})()"""
NAMES = ["small", "one</script><b>odd", "two</script><b>odd"]
BLUE, VERMILION, GREEN = "#0072b2", "#d55e00", "#009e73"


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browser() as running:
        running.size(1280, 900)
        yield running


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three runs, two of them with names that mean something in HTML."""
    runs = [synthetic_record(number, 9000, name=name) for number, name in enumerate(NAMES)]
    return pq.write_report(runs, tmp_path_factory.mktemp("page") / "report.html")


@pytest.fixture
def opened(chromium: Browser, page: Path) -> Browser:
    chromium.size(1280, 900)
    chromium.open(page)
    return chromium


def inked(running: Browser, kind: str) -> dict[str, int]:
    """How many pixels of a chart have each colour."""
    found: dict[str, int] = running.evaluate(INKED.replace("KIND", kind))
    return found


def choose(running: Browser, control: str, value: str) -> None:
    running.evaluate(
        f"(() => {{ const box = document.getElementById('{control}'); box.value = '{value}';"
        "box.dispatchEvent(new Event('change')); })()"
    )


def legend(running: Browser) -> dict[str, str]:
    items = "[...document.querySelectorAll('#legend li')]"
    pairs = f"{items}.map((li) => [li.querySelector('.name').textContent, li.querySelector('output').textContent])"
    return dict(running.evaluate(pairs))


def box_of(running: Browser, kind: str) -> Any:
    running.evaluate(f"document.getElementById('{kind}').scrollIntoView({{behavior: 'instant', block: 'center'}})")
    box = f"document.querySelector('#{kind} .plot').getBoundingClientRect()"
    return running.evaluate(f"(({{x, y, width, height}}) => [x, y, width, height])({box})")


def in_sight(running: Browser) -> tuple[float, float]:
    found: list[float] = running.evaluate("[plots.view.from, plots.view.to]")
    return found[0], found[1]


def test_the_charts_are_drawn_and_nothing_is_fetched(opened: Browser, page: Path) -> None:
    for kind in ("regret", "loss", "codelength"):
        colours = inked(opened, kind)
        for colour in (BLUE, VERMILION, GREEN):
            assert colours.get(colour, 0) > 100, f"{kind} has no line in {colour}"
    assert opened.requested() == [page.as_uri()]
    assert opened.complaints() == []
    assert opened.evaluate("document.querySelectorAll('b').length") == 3  # of the captions, none from a name


def test_a_flat_loss_is_drawn_flat_and_a_stream_on_a_linear_axis(chromium: Browser, tmp_path: Path) -> None:
    uniform = replace(synthetic_record(0, 600, name="flat"), nats=np.full(600, np.log(1000)))
    flat = replace(uniform, seeds={**uniform.seeds, "order_seed": None})
    chromium.open(pq.write_report([flat, replace(flat, recipe={"other": 1})], tmp_path / "flat.html"))
    assert chromium.evaluate("document.getElementById('axis').value") == "linear"
    assert in_sight(chromium) == (0, 600)
    assert chromium.evaluate("plots.charts[0].x.marks(8).map(positionMark)[0]") == "0"
    for chart, least in ((0, 1.0), (1, 0.1)):
        assert chromium.evaluate(f"plots.charts[{chart}].y.high - plots.charts[{chart}].y.low") > least
    assert chromium.complaints() == []


def test_hiding_a_run_takes_its_line_away_and_gives_room_to_the_others(opened: Browser) -> None:
    before = opened.evaluate("plots.charts[0].y.high")
    assert inked(opened, "regret")[GREEN] > 100
    opened.evaluate("document.querySelectorAll('#legend input')[2].click()")
    assert GREEN not in inked(opened, "regret")
    assert GREEN not in inked(opened, "loss")
    assert inked(opened, "regret")[VERMILION] > 100
    assert opened.evaluate("plots.charts[0].y.high") < before
    assert opened.evaluate("document.querySelectorAll('#numbers tbody tr:not(.kept)').length") == 2
    opened.evaluate("document.getElementById('none').click()")
    assert VERMILION not in inked(opened, "regret")
    opened.evaluate("document.getElementById('all').click()")
    assert inked(opened, "regret")[GREEN] > 100
    assert opened.complaints() == []


def test_the_reference_changes_the_regret(opened: Browser) -> None:
    records = {name: synthetic_record(number, 9000, name=name) for number, name in enumerate(NAMES)}
    lengths = {name: record.codelength or 0.0 for name, record in records.items()}
    first = legend(opened)
    best = min(lengths, key=lambda name: lengths[name])
    assert first[best] == "0.0"
    names = opened.evaluate("plots.series.map(({name}) => name)")
    for reference in names[:3]:
        choose(opened, "reference", f"entry:{names.index(reference)}")
        told = legend(opened)
        for name in names[:3]:
            regret = lengths[name] - lengths[reference]
            text = f"{abs(regret):,.1f}"
            assert told[name] == (text if text == "0.0" else ("−" if regret < 0 else "+") + text)
        shown = opened.evaluate("document.querySelector('.reference-name').textContent")
        assert shown == reference
    before = inked(opened, "regret")
    choose(opened, "reference", "code:0")
    assert inked(opened, "regret") != before
    assert all(legend(opened)[name].startswith("−") for name in names[:3])
    assert opened.complaints() == []


def test_pointing_tells_the_values(opened: Browser) -> None:
    x, y, width, height = box_of(opened, "regret")
    opened.mouse("move", x + width * 0.7, y + height * 0.5)
    tip = "document.querySelector('#regret .tip')"
    assert not opened.evaluate(f"{tip}.hidden")
    text = opened.evaluate(f"{tip}.textContent")
    assert text.startswith("after ")
    assert "nats" in text
    assert opened.evaluate(f"{tip}.querySelectorAll('tr').length") == 3
    index = opened.evaluate("plots.cursor")
    worst = opened.evaluate(f"Math.max(...plots.charts[0].lines.map(({{values}}) => values[{index}]))")
    assert f"{worst:,.1f}" in text
    opened.mouse("move", x + width / 2, max(y - 80, 1))
    assert opened.evaluate(f"{tip}.hidden")


def test_dragging_zooms_all_charts_and_back(opened: Browser) -> None:
    assert in_sight(opened) == (1, 9000)
    x, y, width, height = box_of(opened, "loss")
    opened.mouse("down", x + width * 0.5, y + height / 2)
    opened.mouse("up", x + width * 0.8, y + height / 2)
    low, high = in_sight(opened)
    assert 1 < low < high < 9000
    assert opened.evaluate("plots.charts.every(({x}) => x.low === plots.view.from)")
    opened.evaluate("document.getElementById('whole').click()")
    assert in_sight(opened) == (1, 9000)
    choose(opened, "axis", "linear")
    assert in_sight(opened) == (0, 9000)
    opened.evaluate("document.getElementById('closer').click()")
    assert in_sight(opened) == (2250, 6750)


def test_the_keyboard_reads_and_zooms(opened: Browser) -> None:
    opened.evaluate("document.querySelector('#regret .plot').focus()")
    opened.key("ArrowLeft")
    spoken = opened.evaluate("document.getElementById('spoken').textContent")
    assert spoken.startswith("after 8,9")
    assert "small" in spoken
    opened.key("+")
    assert in_sight(opened)[0] > 1
    opened.key("Escape")
    assert in_sight(opened) == (1, 9000)


def test_the_expensive_labels_have_pictures_and_sort(chromium: Browser, tmp_path: Path) -> None:
    images = np.random.default_rng(0).integers(0, 256, (64, 1, 8, 8), np.uint8)
    data = pq.from_arrays(images, np.array(["dark", "bright"])[images[:, 0, 0, 0] // 128], name="made").shuffled(0)
    record = pq.run("mlp1", data, pq.ReplayStreams(num_streams=1, batch_size=8), seed=0)
    page = pq.write_report(record, tmp_path / "report.html", examples=ShownExamples(data))
    for width in (1280, 390):
        chromium.size(width, 900)
        chromium.open(page)
        pictures = "[...document.querySelectorAll('#labels img')]"
        assert chromium.evaluate(f"{pictures}.map((each) => each.naturalWidth)") == [8] * 20
        assert chromium.evaluate("document.documentElement.scrollWidth") <= width
    head = "[...document.querySelectorAll('#labels-table th')].find((th) => th.textContent === 'position')"
    chromium.evaluate(f"{head}.querySelector('button').click()")
    column = chromium.evaluate(f"{head}.cellIndex")
    cells = f"[...document.querySelectorAll('#labels-table tbody tr')].map((row) => row.cells[{column}].textContent)"
    assert [int(text) for text in chromium.evaluate(cells)] == sorted(each.position for each in record.worst(20))


def test_heads_sort_their_table(opened: Browser) -> None:
    column = (
        "[...document.querySelectorAll('#comparison-table tbody tr')].map((row) => Number(row.cells[1].dataset.value))"
    )
    head = "document.querySelectorAll('#comparison-table thead th')[1]"
    rising = opened.evaluate(column)
    assert rising == sorted(rising)
    opened.evaluate(f"{head}.querySelector('button').click(), {head}.querySelector('button').click()")
    assert opened.evaluate(column) == rising[::-1]
    assert opened.evaluate(f"{head}.getAttribute('aria-sort')") == "descending"
    opened.evaluate("document.getElementById('only-differences').click()")
    rows = "[...document.querySelectorAll('#setting-table tbody tr')].filter((row) => !row.hidden)"
    assert set(opened.evaluate(f"{rows}.map((row) => row.className)")) == {"differs"}


def test_dark_narrow_and_on_paper(opened: Browser, tmp_path: Path) -> None:
    light = opened.evaluate("getComputedStyle(document.documentElement).backgroundColor")
    opened.dark()
    opened.wait_for("plots.theme.text === '#e8eaed'")
    assert opened.evaluate("getComputedStyle(document.documentElement).backgroundColor") != light
    assert inked(opened, "regret")[BLUE] > 100
    opened.size(420, 900)
    opened.wait_for("plots.charts[0].width < 420")
    assert opened.evaluate("document.documentElement.scrollWidth") <= 420
    assert inked(opened, "regret")[BLUE] > 50
    opened.print_to(tmp_path / "report.pdf")
    assert (tmp_path / "report.pdf").read_bytes().startswith(b"%PDF")
    assert opened.evaluate("document.documentElement.className") == ""
    assert opened.complaints() == []
    opened.dark(False)


def test_two_hundred_runs_open_in_time(chromium: Browser, tmp_path: Path) -> None:
    page = pq.write_report([synthetic_record(number, 60_000) for number in range(200)], tmp_path / "report.html")
    assert page.stat().st_size < 25e6
    chromium.size(1280, 900)
    seconds = min(chromium.open(page) for _ in range(3))
    assert seconds < 3
    assert chromium.requested() == [page.as_uri()]
    assert chromium.complaints() == []
    assert chromium.evaluate("plots.state.shown.size") == 10
    assert inked(chromium, "regret")[BLUE] > 100
    chromium.evaluate("document.getElementById('all').click()")
    assert chromium.evaluate("plots.state.shown.size") == 200
    filter_ = "document.getElementById('filter')"
    chromium.evaluate(f"{filter_}.value = 'net3-', {filter_}.dispatchEvent(new Event('input'))")
    found = "[...document.querySelectorAll('#legend li')].filter((li) => !li.hidden).length"
    assert chromium.evaluate(found) == len([number for number in range(200) if number % 7 == 3])
