"""A browser without a window, driven through a pipe by the DevTools protocol. Needs Debian's chromium and nothing else.

Messages are JSON with a zero byte behind; the browser reads them from its file 3 and answers on its file 4.
"""

import base64
import fcntl
import json
import os
import select
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

from ..processes import PATIENCE

FLAGS = (
    "--headless=new", "--remote-debugging-pipe", "--no-first-run", "--no-default-browser-check", "--disable-gpu",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
    "--hide-scrollbars", "--force-color-profile=srgb", "--force-device-scale-factor=1",
)  # fmt: skip


def find_chromium() -> str | None:
    """Where the browser is, if there is one."""
    return os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")


class Browser:
    """A page in a browser: what it was asked for, what it logged, and what it shows."""

    def __init__(self, program: str, profile: Path) -> None:
        ours, theirs = os.pipe(), os.pipe()
        far = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in (ours[0], theirs[1])]
        sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
        command = [program, *FLAGS, *sandbox, f"--user-data-dir={profile}", "about:blank"]
        quiet = [(os.POSIX_SPAWN_OPEN, file, os.devnull, os.O_WRONLY, 0) for file in (1, 2)]
        handed = [(os.POSIX_SPAWN_DUP2, end, file) for end, file in zip(far, (3, 4), strict=True)]
        self._process = os.posix_spawn(program, command, dict(os.environ), file_actions=[*quiet, *handed])
        for end in (*far, ours[0], theirs[1]):
            os.close(end)
        self._out, self._in = ours[1], theirs[0]
        self._waiting, self._number = b"", 0
        self._session: str | None = None
        self.events: list[dict[str, Any]] = []
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.send(f"{domain}.enable")

    def __enter__(self) -> "Browser":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        os.close(self._out)  # the browser ends with its pipe
        deadline = time.monotonic() + PATIENCE
        while os.waitpid(self._process, os.WNOHANG) == (0, 0):
            if time.monotonic() > deadline:
                os.kill(self._process, signal.SIGKILL)
            time.sleep(0.02)
        os.close(self._in)

    def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Ask for something and wait for the answer; what happens meanwhile is kept in `events`."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        for answer in self._messages():
            if answer.get("id") == self._number:
                assert "error" not in answer, f"{method}: {answer['error']}"
                result: dict[str, Any] = answer["result"]
                return result
        raise AssertionError(f"the browser ended during {method}")

    def _messages(self) -> Iterator[dict[str, Any]]:
        deadline = time.monotonic() + PATIENCE
        while True:
            while b"\0" in self._waiting:
                text, _, self._waiting = self._waiting.partition(b"\0")
                message = json.loads(text)
                if "method" in message:
                    self.events.append(message)
                yield message
            assert select.select([self._in], [], [], max(deadline - time.monotonic(), 0))[0], "the browser says nothing"
            received = os.read(self._in, 1 << 20)
            if not received:
                return
            self._waiting += received

    def open(self, page: Path) -> float:
        """Load a page from a file and wait until it is drawn; gives the seconds from asking to the first picture."""
        self.events.clear()
        begun = time.monotonic()
        self.send("Page.navigate", url=page.absolute().as_uri())
        self.wait_for("document.documentElement?.dataset.ready === 'true'")
        self.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))")
        return time.monotonic() - begun

    def evaluate(self, expression: str) -> Any:
        """The value of a piece of JavaScript."""
        answer = self.send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def wait_for(self, condition: str) -> None:
        """Wait until a piece of JavaScript is true."""
        deadline = time.monotonic() + PATIENCE
        while not self.evaluate(condition):
            assert time.monotonic() < deadline, f"{condition} does not come true"
            time.sleep(0.01)

    def mouse(self, kind: str, x: float, y: float, *, pressed: bool = False) -> None:
        """Move, press or release the mouse."""
        button = {"button": "left", "buttons": 1, "clickCount": 1} if pressed else {}
        self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, **button)

    def key(self, name: str) -> None:
        """Press and release a key."""
        text = {"text": name} if len(name) == 1 else {}
        self.send("Input.dispatchKeyEvent", type="keyDown", key=name, **text)
        self.send("Input.dispatchKeyEvent", type="keyUp", key=name)

    def requested(self) -> list[str]:
        """The addresses that were asked for since the page was opened."""
        return [event["params"]["request"]["url"] for event in self.events if event["method"].endswith("WillBeSent")]

    def complaints(self) -> list[str]:
        """Errors and warnings on the console, and exceptions."""
        found = []
        for event in self.events:
            parameters = event["params"]
            if event["method"] == "Runtime.exceptionThrown":
                found.append(json.dumps(parameters["exceptionDetails"]))
            if event["method"] == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "warning", "assert"):
                found.append(json.dumps(parameters["args"]))
            if event["method"] == "Log.entryAdded" and parameters["entry"]["level"] in ("error", "warning"):
                found.append(parameters["entry"]["text"])
        return found

    def size(self, width: int, height: int) -> None:
        """Make the window so large."""
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def dark(self, on: bool = True) -> None:
        """Prefer dark colours, or light ones."""
        features = [{"name": "prefers-color-scheme", "value": "dark" if on else "light"}]
        self.send("Emulation.setEmulatedMedia", features=features)

    def screenshot(self, path: Path, *, whole: bool = True) -> None:
        """Save what is seen, or the whole page."""
        answer = self.send("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(answer["data"]))

    def print_to(self, path: Path) -> None:
        """Save the page as a PDF, as printing it would."""
        answer = self.send("Page.printToPDF", printBackground=True, preferCSSPageSize=True)
        path.write_bytes(base64.b64decode(answer["data"]))


@contextmanager
def browser(profile: Path, program: Callable[[], str | None] = find_chromium) -> Iterator[Browser]:
    """A browser that ends with the block."""
    found = program()
    assert found is not None
    with Browser(found, profile) as running:
        yield running
