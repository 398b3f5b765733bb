"""A page in Debian's Chromium, driven by Playwright: what it asked for, what it complained of, and what it shows."""

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..processes import PATIENCE

FLAGS = ("--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", "--force-color-profile=srgb")


def find_chromium() -> str | None:
    """Where the browser is, if there is one."""
    return os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")


class Browser:
    """A page, and what happened on it since it was opened."""

    def __init__(self, page: Any) -> None:
        self._page = page
        self._requested: list[str] = []
        self._complaints: list[str] = []
        page.on("request", lambda request: self._requested.append(request.url))
        page.on("pageerror", lambda error: self._complaints.append(str(error)))
        page.on("console", lambda said: self._complaints.append(said.text) if said.type != "log" else None)
        page.set_default_timeout(1000 * PATIENCE)

    def open(self, page: Path) -> float:
        """Load a page from a file and wait until it is drawn; gives the seconds from asking to the first picture."""
        self._requested.clear()
        self._complaints.clear()
        begun = time.monotonic()
        self._page.goto(page.absolute().as_uri())
        self.wait_for("document.documentElement?.dataset.ready === 'true'")
        self.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))")
        return time.monotonic() - begun

    def go(self, page: Path) -> None:
        """Load a page from a file that need not be a report."""
        self._requested.clear()
        self._page.goto(page.absolute().as_uri())

    def write(self, text: str) -> None:
        """Type where the focus is."""
        self._page.keyboard.type(text)

    def evaluate(self, expression: str) -> Any:
        """The value of a piece of JavaScript."""
        return self._page.evaluate(expression)

    def wait_for(self, condition: str) -> None:
        """Wait until a piece of JavaScript is true; the page allows nobody to evaluate text, so it is asked often."""
        deadline = time.monotonic() + PATIENCE
        while not self.evaluate(condition):
            assert time.monotonic() < deadline, f"{condition} does not come true"
            time.sleep(0.01)

    def mouse(self, kind: str, x: float, y: float) -> None:
        """Move there, and press or release the button."""
        self._page.mouse.move(x, y)
        if kind in ("down", "up"):
            getattr(self._page.mouse, kind)()

    def key(self, name: str) -> None:
        """Press and release a key."""
        self._page.keyboard.press(name)

    def requested(self) -> list[str]:
        """The addresses that were asked for since the page was opened."""
        return list(self._requested)

    def complaints(self) -> list[str]:
        """What was said on the console, and exceptions."""
        return list(self._complaints)

    def size(self, width: int, height: int) -> None:
        """Make the window so large."""
        self._page.set_viewport_size({"width": width, "height": height})

    def dark(self, on: bool = True) -> None:
        """Prefer dark colours, or light ones."""
        self._page.emulate_media(color_scheme="dark" if on else "light")

    def paper(self, on: bool = True) -> None:
        """Show the page as it would be printed, or as on a screen."""
        self._page.emulate_media(media="print" if on else "screen")

    def screenshot(self, path: Path) -> None:
        """Save the whole page."""
        self._page.screenshot(path=path, full_page=True)

    def print_to(self, path: Path) -> None:
        """Save the page as a PDF, as printing it would."""
        self._page.pdf(path=path, print_background=True, prefer_css_page_size=True)


@contextmanager
def browser() -> Iterator[Browser]:
    """A browser that ends with the block."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        running = playwright.chromium.launch(
            executable_path=find_chromium(), args=FLAGS, chromium_sandbox=os.geteuid() != 0
        )
        yield Browser(running.new_page())
        running.close()
