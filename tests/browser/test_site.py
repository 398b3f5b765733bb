"""The site of the documentation, opened from disk: its search finds, its palette follows the system."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from .chromium import Browser, browser, find_chromium

pytest.importorskip("playwright", reason="there is no playwright; make test-browser installs it")
pytest.importorskip("mkdocs")
pytestmark = pytest.mark.skipif(
    find_chromium() is None, reason="there is no chromium; make test-browser installs Debian's"
)
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site."""
    folder = tmp_path_factory.mktemp("site")
    build = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    return folder


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browser() as running:
        running.size(1280, 900)
        yield running


def test_search_finds_from_disk_and_asks_no_other_host(chromium: Browser, site: Path) -> None:
    chromium.go(site / "index.html")
    chromium.evaluate("document.querySelector('[data-md-component=search-query]').focus()")
    chromium.write("target encoding")
    chromium.wait_for("document.querySelector('.md-search-result__list a') !== null")
    found = chromium.evaluate("[...document.querySelectorAll('.md-search-result__list a')].map((a) => a.href)")
    assert any("comparing-inputs.html" in url for url in found)
    assert all(url.startswith(("file:", "data:")) for url in chromium.requested())


@pytest.mark.parametrize(("is_dark", "palette"), [(False, "default"), (True, "slate")])
def test_the_palette_follows_the_system(chromium: Browser, site: Path, is_dark: bool, palette: str) -> None:
    chromium.dark(is_dark)
    chromium.go(site / "index.html")
    chromium.wait_for(f"document.body.dataset.mdColorScheme === '{palette}'")
