"""Pictures of pages about real runs, on a phone and on a screen, light and dark: `make pictures`."""

import io
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from PIL import Image

import prequential as pq
from prequential.data.shown import ShownExamples
from prequential.sweeps import Choice, LogUniform

from .chromium import Browser, browser

WIDTHS = (390, 1280)
LENGTH = 6000
COLOURS = 128
"""Of a picture: enough for text, lines and small photographs, in a quarter of the bytes."""
METHOD = pq.ReplayStreams(num_streams=8)


def pages(folder: Path) -> dict[str, Path]:
    """A page about two models on MNIST with the digits that were expensive, and one about a sweep."""
    data = pq.load_data("mnist").take(LENGTH)
    runs = [pq.run(model, data, METHOD, seed=0, out=folder / model) for model in ("lenet", "mlp2")]
    space = {"num_streams": Choice((1, 2, 4, 8)), "learning_rate": LogUniform(3e-4, 1e-2)}
    pq.sweep("mlp1", data.take(1000).without_heldout(), METHOD, space=space, trials=18, seed=0, out=folder / "sweep")
    return {
        "runs": pq.write_report(runs, folder / "runs.html", examples=ShownExamples(data)),
        "sweep": pq.write_report(folder / "sweep", folder / "sweep.html"),
    }


def picture(running: Browser, page: Path, width: int, *, dark: bool) -> Image.Image:
    """The whole page as a window of that width shows it."""
    running.dark(dark)
    running.size(width, 900)
    running.open(page)
    running.size(width, running.evaluate("document.documentElement.scrollHeight"))
    running.evaluate("new Promise((done) => setTimeout(done, 300))")  # charts are drawn again when a window changes
    with TemporaryDirectory() as folder:
        running.screenshot(Path(folder) / "page.png")
        content = (Path(folder) / "page.png").read_bytes()
    return Image.open(io.BytesIO(content)).convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)


def main(folder: Path) -> None:
    """Make runs, pages and pictures, and say where they are."""
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as work, browser() as running:
        for name, page in pages(Path(work)).items():
            for width in WIDTHS:
                for dark in (False, True):
                    path = folder / f"{name}-{width}-{'dark' if dark else 'light'}.png"
                    picture(running, page, width, dark=dark).save(path, optimize=True)
                    print(path)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
