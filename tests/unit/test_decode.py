"""Encoded images: what comes out of them, and what is refused."""

import io
import pickle
import struct
import warnings
import zlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from PIL import Image, ImageOps

from prequential.data import decode
from prequential.data.decode import BrokenImage, centre_box, crop_box, dimensions, strict_pillow
from prequential.rng import derive, uniforms

DRAWS = st.tuples(*[st.floats(0, 1, exclude_max=True)] * 4)
SIDES = st.integers(1, 40)
SIZES = st.integers(1, 12)


def decode_image(*arguments: Any) -> NDArray[np.uint8]:
    with strict_pillow():
        return decode.decode_image(*arguments)


def pixels(width: int, height: int, seed: int = 0) -> NDArray[np.uint8]:
    """A gradient with noise on it, (height, width, 3)."""
    noise = uniforms(derive(seed, "pixels"), np.arange(width * height * 3)).reshape(height, width, 3)
    slope = np.linspace(0, 1, height)[:, None, None] + np.linspace(0, 1, width)[None, :, None]
    return (100 * slope + 55 * noise).astype(np.uint8)


def file_of(image: Image.Image | NDArray[np.uint8], kind: str = "PNG", **options: Any) -> bytes:
    file = io.BytesIO()
    picture = image if isinstance(image, Image.Image) else Image.fromarray(image)
    picture.save(file, kind, **options)
    return file.getvalue()


def weights(length: int, start: float, stop: float, size: int) -> NDArray[np.float64]:
    """Row i: what each of `length` samples counts in output i when [start, stop] becomes `size` samples."""
    scale = (stop - start) / size
    reach = max(scale, 1.0)
    matrix = np.zeros((size, length))
    for i in range(size):
        centre = start + (i + 0.5) * scale
        matrix[i] = np.maximum(0, 1 - np.abs((np.arange(length) + 0.5 - centre) / reach))
    return matrix / matrix.sum(1, keepdims=True)


def slowly_resized(image: NDArray[np.uint8], box: tuple[float, float, float, float], size: int) -> NDArray[np.float64]:
    height, width, _ = image.shape
    across, down = weights(width, box[0], box[2], size), weights(height, box[1], box[3], size)
    return np.einsum("iy,jx,yxc->cij", down, across, image.astype(np.float64))


def assert_close(one: NDArray[np.uint8], other: NDArray[np.generic], within: float = 1.01) -> None:
    assert one.shape == other.shape
    assert one.dtype == np.uint8
    assert np.abs(one.astype(np.float64) - other.astype(np.float64)).max() <= within


@given(st.integers(1, 5000), st.integers(1, 5000), DRAWS)
def test_a_crop_lies_in_the_image_and_has_the_area_and_shape_drawn(
    width: int, height: int, draws: tuple[float, ...]
) -> None:
    left, top, right, bottom = crop_box(width, height, draws)
    assert 0 <= left < right <= width
    assert 0 <= top < bottom <= height
    area, aspect = 0.08 + 0.92 * draws[0], (3 / 4) * (16 / 9) ** draws[1]
    wanted_width, wanted_height = (area * aspect * width * height) ** 0.5, (area / aspect * width * height) ** 0.5
    assert right - left == pytest.approx(min(wanted_width, width))
    assert bottom - top == pytest.approx(min(wanted_height, height))
    assert left == pytest.approx(draws[2] * (width - (right - left)), abs=1e-6)
    assert top == pytest.approx(draws[3] * (height - (bottom - top)), abs=1e-6)


@given(SIDES, SIDES, SIZES, DRAWS)
@settings(max_examples=60)
def test_random_crops_are_what_a_slow_resize_gives(
    width: int, height: int, size: int, draws: tuple[float, ...]
) -> None:
    image = pixels(width, height)
    decoded = decode_image(file_of(image), size, "x", draws)
    assert_close(decoded, slowly_resized(image, crop_box(width, height, draws), size))
    assert np.array_equal(decoded, decode_image(file_of(image), size, "x", draws))


@given(SIDES, SIDES, SIZES)
@settings(max_examples=60)
def test_centres_are_what_a_slow_resize_gives(width: int, height: int, size: int) -> None:
    image = pixels(width, height)
    assert_close(decode_image(file_of(image), size, "x"), slowly_resized(image, centre_box(width, height), size))


@pytest.mark.parametrize(("width", "height"), [(8, 8), (8, 13), (21, 8)])
def test_an_image_of_the_right_size_is_only_cut(width: int, height: int) -> None:
    image = pixels(width, height)
    top, left = (height - 8) // 2, (width - 8) // 2
    expected = image[top : top + 8, left : left + 8].transpose(2, 0, 1)
    for content in (file_of(image), file_of(image, "WEBP", lossless=True)):
        decoded = decode_image(content, 8, "x")
        assert np.array_equal(decoded, expected)
        assert decoded.flags.c_contiguous
        assert decoded.flags.writeable


def sixteen_bits(channels: int, values: list[int]) -> bytes:
    """A 16-bit PNG of one pixel, which Pillow does not write."""
    kind = {1: 0, 2: 4, 3: 2, 4: 6}[channels]

    def chunk(name: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))

    header = struct.pack(">IIBBBBB", 1, 1, 16, kind, 0, 0, 0)
    content = zlib.compress(b"\0" + struct.pack(f">{channels}H", *values))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", content) + chunk(b"IEND", b"")


def palette(**options: Any) -> bytes:
    image = Image.new("P", (1, 1), 1)
    image.putpalette([0, 0, 0, 200, 100, 50])
    return file_of(image, **options)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (file_of(Image.new("RGB", (1, 1), (10, 20, 30))), [10, 20, 30]),
        (file_of(Image.new("RGB", (1, 1), (10, 20, 30)), transparency=(10, 20, 30)), [255, 255, 255]),
        (file_of(Image.new("RGBA", (1, 1), (10, 20, 30, 255))), [10, 20, 30]),
        (file_of(Image.new("RGBA", (1, 1), (10, 20, 30, 0))), [255, 255, 255]),
        (file_of(Image.new("RGBA", (1, 1), (0, 100, 200, 51))), [204, 224, 244]),
        (file_of(Image.new("L", (1, 1), 77)), [77, 77, 77]),
        (file_of(Image.new("LA", (1, 1), (0, 51))), [204, 204, 204]),
        (file_of(Image.new("1", (1, 1), 1)), [255, 255, 255]),
        (palette(), [200, 100, 50]),
        (palette(transparency=1), [255, 255, 255]),
        (palette(transparency=b"\xff\x00"), [255, 255, 255]),
        (file_of(Image.fromarray(np.full((1, 1), 0x4D00, np.uint16))), [0x4D, 0x4D, 0x4D]),
        (sixteen_bits(1, [0xC3FF]), [0xC3, 0xC3, 0xC3]),
        (sixteen_bits(3, [0x1000, 0x20FF, 0xFFFF]), [0x10, 0x20, 0xFF]),
        (sixteen_bits(4, [0x1000, 0x20FF, 0xFFFF, 0xFFFF]), [0x10, 0x20, 0xFF]),
        (sixteen_bits(2, [0x1234, 0]), [255, 255, 255]),
        (file_of(Image.new("RGB", (1, 1), (10, 20, 30)), "WEBP", lossless=True), [10, 20, 30]),
        (file_of(Image.new("RGBA", (1, 1), (10, 20, 30, 0)), "WEBP", lossless=True), [255, 255, 255]),
        (file_of(Image.new("RGB", (1, 1), (10, 20, 30)), "WEBP"), [10, 20, 30]),
        (file_of(Image.new("RGB", (1, 1), (10, 20, 30)), "JPEG", quality=100), [10, 20, 30]),
        (file_of(Image.new("L", (1, 1), 77), "JPEG", quality=100), [77, 77, 77]),
        (file_of(Image.new("CMYK", (1, 1), (255, 0, 0, 0)), "JPEG", quality=100), [0, 255, 255]),
        (file_of(Image.new("RGB", (1, 1), (10, 20, 30)), "JPEG", quality=100, progressive=True), [10, 20, 30]),
    ],
    ids=lambda value: f"{len(value)} bytes" if isinstance(value, bytes) else "",
)
def test_every_kind_of_image_becomes_rgb(content: bytes, expected: list[int]) -> None:
    tolerance = 0 if content.startswith(b"\x89PNG") else 3
    assert_close(decode_image(content, 1, "x")[:, 0, 0], np.array(expected), tolerance)


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP"])
@pytest.mark.parametrize("turn", range(1, 9))
def test_the_exif_orientation_is_applied(kind: str, turn: int) -> None:
    exif = Image.Exif()
    exif[0x0112] = turn
    content = file_of(pixels(40, 27), kind, exif=exif)
    upright = file_of(ImageOps.exif_transpose(Image.open(io.BytesIO(content))))
    draws = (0.3, 0.8, 0.9, 0.1)
    assert_close(decode_image(content, 9, "x"), decode_image(upright, 9, "x"), 2)
    assert np.array_equal(decode_image(content, 27, "x"), decode_image(upright, 27, "x"))
    assert_close(decode_image(content, 9, "x", draws), decode_image(upright, 9, "x", draws), 2)
    for exif_bytes in (b"II*\0\x08\0\0\0\xff\xff" + b"\x12\x01\x03\0" * 3, b"no TIFF at all"):
        broken = file_of(pixels(40, 27), kind, exif=b"Exif\0\0" + exif_bytes)
        assert decode_image(broken, 9, "x").shape == (3, 9, 9), "the pixels are whole"


@pytest.mark.parametrize("turn", [1, 3, 6])
def test_a_large_jpeg_is_decoded_at_a_lower_scale_and_hardly_differs(
    turn: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    exif = Image.Exif()
    exif[0x0112] = turn
    content = file_of(pixels(1003, 767), "JPEG", quality=95, exif=exif)
    ways: list[Callable[[], NDArray[np.uint8]]] = [
        lambda: decode_image(content, 40, "x"),
        lambda: decode_image(content, 25, "x", (0.4, 0.6, 0.7, 0.2)),
    ]
    fast = [way() for way in ways]
    monkeypatch.setattr(decode, "_OVERSAMPLING", 10**6)
    for one, full in zip(fast, [way() for way in ways], strict=True):
        assert not np.array_equal(one, full)
        assert_close(one, full, 4)
        assert np.abs(one.astype(float) - full).mean() < 0.8


WHOLE = file_of(pixels(60, 50), "JPEG")
PNG = file_of(pixels(60, 50))
WEBP = file_of(pixels(60, 50), "WEBP")


def claiming(width: int, height: int) -> bytes:
    return PNG[:16] + (head := struct.pack(">II", width, height) + PNG[24:29]) + struct.pack(
        ">I", zlib.crc32(b"IHDR" + head)
    ) + PNG[33:]  # fmt: skip


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "the file is empty"),
        (b"hello, world", "it does not begin like a JPEG, PNG or WebP image"),
        (file_of(pixels(4, 4), "GIF"), "it does not begin like"),
        (WHOLE[:20], "does not begin like|truncated"),
        (WHOLE[:-200], "image file is truncated"),
        (WHOLE[:-2], "image file is truncated"),
        (PNG[: len(PNG) // 2], "image file is truncated"),
        (PNG[:60] + b"\xff" * 40 + PNG[100:], "broken data stream|broken PNG file"),
        (WEBP[:-40], "."),
        (claiming(60_000, 60_000), r"Image size \(3600000000 pixels\) exceeds limit"),
        (claiming(10_000, 10_000), r"Image size \(100000000 pixels\) exceeds limit"),
    ],
    ids=lambda value: f"{len(value)} bytes" if isinstance(value, bytes) else "",
)
def test_broken_content_is_refused_in_one_line(content: bytes, reason: str) -> None:
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        before = list(warnings.filters)
        with pytest.raises(BrokenImage, match=rf"^shelf/cat.jpg cannot be decoded: .*({reason})") as caught:
            decode_image(content, 8, "shelf/cat.jpg")
        assert warnings.filters == before
    assert not heard
    assert "\n" not in str(caught.value)
    assert BrokenImage("x", "one\n two").reason == "one two"
    copy = pickle.loads(pickle.dumps(caught.value))
    assert (copy.path, copy.reason) == ("shelf/cat.jpg", caught.value.reason)


def reason_against(content: bytes) -> str | None:
    try:
        assert decode_image(content, 8, "x").shape == (3, 8, 8)
    except BrokenImage as error:
        return error.reason
    return None


@given(st.sampled_from([WHOLE, PNG, WEBP]), st.data())
@settings(max_examples=150)
def test_any_bytes_give_an_image_or_a_reason(content: bytes, data: st.DataObject) -> None:
    changed = bytearray(content)
    for place in data.draw(st.lists(st.integers(0, len(content) - 1), max_size=5)):
        changed[place] = data.draw(st.integers(0, 255))
    kept = bytes(changed[: data.draw(st.integers(len(content) // 2, len(content)))])
    reason = reason_against(kept)
    assert reason is None or (reason and "\n" not in reason)


@given(st.integers(0, len(WHOLE) - 1))
def test_no_part_of_a_jpeg_passes_for_the_whole(length: int) -> None:
    with pytest.raises(BrokenImage):
        decode_image(WHOLE[:length], 8, "x")


def test_threads_leave_the_filters_as_they_were() -> None:
    before = list(warnings.filters)
    with ThreadPoolExecutor(4) as threads:
        images = list(threads.map(lambda _: decode_image(WHOLE, 8, "x"), range(200)))
    assert all(np.array_equal(image, images[0]) for image in images)
    assert warnings.filters == before


def test_dimensions_come_from_the_header_alone() -> None:
    for content in (WHOLE[: len(WHOLE) // 2], PNG[: len(PNG) // 2], WEBP):
        assert dimensions(content, "x") == (60, 50)
    with pytest.raises(BrokenImage, match=r"none\.png cannot be decoded: it does not begin like"):
        dimensions(b"", "none.png")
