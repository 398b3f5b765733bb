"""Encoded images (JPEG, PNG, WebP) as uint8 arrays: pure functions of the bytes and, for crops, of the draws.

Needs no torch: a decoding worker imports it. The result is RGB: grey is repeated, palettes are looked up, CMYK is
converted, transparent pixels stand on white, of 16 bits the upper 8 are kept, EXIF orientation is applied, ICC not.
"""

import io
import math
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray
from PIL import ExifTags, Image, UnidentifiedImageError

from prequential.errors import PreqError
from prequential.terminal import printable

EXTENSIONS = (".jpg", ".jpeg", ".png", ".webp")
"""The endings of files that are taken for images, compared without regard to case."""
MIN_AREA = 0.08
"""The smallest share of the image a random crop shows."""
Box = tuple[float, float, float, float]
"""Left, top, right, bottom."""

_FORMATS = ("JPEG", "PNG", "WEBP")
_LOG_ASPECT = math.log(4 / 3)
_OVERSAMPLING = 2
_SIDEWAYS, _MIRRORED, _UPENDED = (5, 6, 7, 8), (2, 3, 7, 8), (3, 4, 6, 7)
"""Orientations, as EXIF numbers them, of pixels that are stored so."""
_FILTERS = threading.Lock()


class BrokenImage(PreqError):  # noqa: N818  # named for the thing
    """A file that does not hold a whole image. `path` says which, `reason` why, in one line.

    Example:
        >>> print(BrokenImage("cat.jpg", "the file is empty"))
        cat.jpg cannot be decoded: the file is empty
    """

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(path, reason)
        self.path, self.reason = path, " ".join(reason.split())

    def __str__(self) -> str:
        return printable(f"{self.path} cannot be decoded: {self.reason}")


def decode_image(content: bytes, size: int, name: str, draws: Sequence[float] | None = None) -> NDArray[np.uint8]:
    """The centre of an image, or the part that `crop_box` gives for some draws, resized to (3, size, size).

    Of the centre the shorter side becomes `size`, the longer is cut. Bilinear with antialiasing; an image whose shorter
    side is `size` already is only cut. A JPEG much larger than needed is decoded at 1/2, 1/4 or 1/8 of its size. `name`
    is what an error calls the image. To be called inside `strict_pillow`.

    Example:
        >>> file = io.BytesIO()
        >>> Image.new("RGB", (640, 480), (255, 128, 0)).save(file, "PNG")
        >>> image = decode_image(file.getvalue(), 224, "orange.png")
        >>> image.shape, image[:, 0, 0].tolist()
        ((3, 224, 224), [255, 128, 0])
    """
    if not content:
        raise BrokenImage(name, "the file is empty")
    with _errors_as_broken(name), Image.open(io.BytesIO(content), formats=_FORMATS) as image:
        if image.format == "PNG":
            image.load()  # its EXIF may stand behind the pixels
        turn = _orientation(image)
        width, height = image.size
        upright = (height, width) if turn in _SIDEWAYS else (width, height)
        box = _as_stored(centre_box(*upright) if draws is None else crop_box(*upright, draws), turn, width, height)
        shrink = _decode_smaller(image, int(min(box[2] - box[0], box[3] - box[1])) // size)
        picture = _resize(_to_rgb(image), (box[0] / shrink, box[1] / shrink, box[2] / shrink, box[3] / shrink), size)
        return _planes(picture, turn)


def dimensions(content: bytes, name: str) -> tuple[int, int]:
    """Width and height as the header of a file says, before any turn by EXIF. No pixel is decoded."""
    with strict_pillow(), _errors_as_broken(name), Image.open(io.BytesIO(content), formats=_FORMATS) as image:
        return image.size


def centre_box(width: int, height: int) -> Box:
    """The largest square in the middle, at whole pixels.

    Example:
        >>> centre_box(5, 2)
        (1, 0, 3, 2)
    """
    side = min(width, height)
    left, top = (width - side) // 2, (height - side) // 2
    return left, top, left + side, top + side


def crop_box(width: int, height: int, draws: Sequence[float]) -> Box:
    """A random part of an image, as a function of four uniform numbers in [0, 1).

    The first draw gives the share of the area, uniform in [MIN_AREA, 1]; the second the ratio of width to
    height, log-uniform in [3/4, 4/3]; the others where it lies. A side that is longer than the image's is
    cut to it, so that four draws are always enough.

    Example:
        >>> [round(side) for side in crop_box(1000, 1000, [0.0, 0.5, 0.0, 0.5])]
        [0, 359, 283, 641]
    """
    area, aspect, across, down = draws
    area = (MIN_AREA + (1 - MIN_AREA) * area) * width * height
    root = math.exp(_LOG_ASPECT * (aspect - 0.5))
    box_width, box_height = min(math.sqrt(area) * root, width), min(math.sqrt(area) / root, height)
    left, top = across * (width - box_width), down * (height - box_height)
    return left, top, min(left + box_width, width), min(top + box_height, height)


def _as_stored(box: Box, turn: int, width: int, height: int) -> Box:
    """Where a box of the upright image lies among the stored pixels: so that only the result need be turned."""
    left, top, right, bottom = box
    if turn in _SIDEWAYS:
        left, top, right, bottom = top, left, bottom, right
    if turn in _MIRRORED:
        left, right = width - right, width - left
    if turn in _UPENDED:
        top, bottom = height - bottom, height - top
    return left, top, right, bottom


def _decode_smaller(image: Image.Image, ratio: int) -> int:
    """Have a JPEG decoded at 1/2, 1/4 or 1/8, where `ratio` (of crop to result) leaves enough to resize from."""
    shrink = next((each for each in (8, 4, 2) if each * _OVERSAMPLING <= ratio), 1)
    width, height = image.size
    return shrink if shrink > 1 and image.draft(None, (width // shrink, height // shrink)) is not None else 1


def _orientation(image: Image.Image) -> int:
    """As EXIF says; 1 (upright) where it is silent or cannot be read: the pixels are whole all the same."""
    try:
        orientation = image.getexif().get(ExifTags.Base.Orientation, 1)
    except Exception:  # a broken EXIF block fails in any way its bytes lead to
        return 1
    return orientation if isinstance(orientation, int) else 1


def _to_rgb(image: Image.Image) -> Image.Image:
    image.load()
    if image.mode.startswith("I"):
        return Image.fromarray((np.asarray(image) >> 8).astype(np.uint8)).convert("RGB")
    if image.has_transparency_data:
        ground = Image.new("RGBA", image.size, "white")
        ground.alpha_composite(image.convert("RGBA"))
        return ground.convert("RGB")
    return image if image.mode == "RGB" else image.convert("RGB")


def _resize(picture: Image.Image, box: Box, size: int) -> Image.Image:
    if picture.size == (size, size) and box[2] - box[0] == box[3] - box[1] == size:
        return picture
    return picture.resize((size, size), Image.Resampling.BILINEAR, box)


def _planes(picture: Image.Image, turn: int) -> NDArray[np.uint8]:
    """One plane per colour, upright. Pillow gives the colours of each row apart faster than numpy parts them."""
    width, height = picture.size
    rows = np.frombuffer(picture.tobytes("raw", "RGB;L"), np.uint8).reshape(height, 3, width)
    rows = rows[:: -1 if turn in _UPENDED else 1, :, :: -1 if turn in _MIRRORED else 1]
    return np.ascontiguousarray(rows.transpose((1, 2, 0) if turn in _SIDEWAYS else (1, 0, 2)))


@contextmanager
def _errors_as_broken(name: str) -> Iterator[None]:
    """Whatever Pillow says against an image is a BrokenImage."""
    try:
        yield
    except (PreqError, MemoryError):
        raise
    except UnidentifiedImageError:
        raise BrokenImage(name, "it does not begin like a JPEG, PNG or WebP image") from None
    except Exception as error:  # a decoder fails in any way the bytes lead to
        raise BrokenImage(name, getattr(error, "strerror", None) or str(error) or type(error).__name__) from error


@contextmanager
def strict_pillow() -> Iterator[None]:
    """Inside, what Pillow warns of is an error, and what it says against metadata is not heard.

    The filters are the whole process's: one thread is inside at a time, and may have others decode for it.
    """
    with _FILTERS, warnings.catch_warnings():
        warnings.filterwarnings("error", module=r"PIL\.")
        warnings.filterwarnings("ignore", module=r"PIL\.(Tiff|Jpeg)ImagePlugin")
        yield
