"""Augmentation: pure functions of images and draws, compared with slow loops, with Pillow and with F.interpolate."""

import math
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image, ImageEnhance, ImageOps
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn import functional as F

from prequential.augmentations import AUGMENTATIONS, parse_augmentation, require_augmentations
from prequential.data import augment
from prequential.data.augment import Pipeline, draws_for, parse, require_fits
from prequential.data.augment_colour import OPERATIONS
from prequential.data.augment_geometry import flipped, sampled, source_of
from prequential.data.sequence import to_network_input
from prequential.errors import PreqError
from prequential.rng import derive, uniforms

SPECS = [
    ["flip"], ["shift:3"], ["cutout:4"], ["affine"], ["affine:4"], ["elastic"], ["elastic:5"], ["resized-crop"],
    ["resized-crop:0.01"], ["jitter"], ["jitter:1"], ["grey:0.5"], ["randaugment"], ["randaugment:3,30"],
    ["flip", "shift:2", "randaugment:1,15", "cutout:3"],
]  # fmt: skip
BELOW_ONE = 1 - 2.0**-24
Case = tuple[Pipeline, Tensor, Tensor]


def pipeline_of(*specs: str) -> Pipeline:
    pipeline = parse(specs)
    assert pipeline is not None
    return pipeline


def pictures(*shape: int, seed: int = 0, num_levels: int = 256) -> Tensor:
    """Random uint8 images, dark more often than bright."""
    draws = uniforms(derive(seed, "pictures"), np.arange(math.prod(shape))) ** 2
    return torch.from_numpy((np.floor(draws * num_levels) * (255 // (num_levels - 1))).astype(np.uint8)).view(shape)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Images of any layout, with draws that may lie at the ends of their range."""
    pipeline, seed = pipeline_of(*draw(st.sampled_from(SPECS))), draw(st.integers(0, 10**6))
    shape = [draw(st.integers(1, 4)), draw(st.integers(1, 3)), draw(st.integers(6, 11)), draw(st.integers(6, 11))]
    images = to_network_input(pictures(*shape, seed=seed, num_levels=draw(st.sampled_from([2, 16, 256]))))
    images = images.to(draw(st.sampled_from([torch.float32, torch.float64])))
    images = images * torch.linspace(0.4, 1, shape[0])[:, None, None, None].to(images)
    if draw(st.booleans()):
        images = images.contiguous(memory_format=torch.channels_last)
    draws = draws_for(seed, 0, shape[0], pipeline.num_draws, "cpu")
    end = draw(st.sampled_from([None, None, 0.0, 0.5, BELOW_ONE]))
    return pipeline, images, draws if end is None else torch.full_like(draws, end)


def assert_near(result: Tensor, expected: Tensor, tolerance: float = 2e-5) -> None:
    torch.testing.assert_close(result, expected, rtol=0, atol=tolerance)


@given(cases())
@settings(max_examples=150)
def test_images_keep_their_form_and_nothing_is_changed_in_place(case: Case) -> None:
    pipeline, images, draws = case
    copies = images.clone(), draws.clone()
    result = pipeline(images, draws)
    assert torch.equal(result, pipeline(*copies)), "a pure function"
    assert torch.equal(images, copies[0])
    assert torch.equal(draws, copies[1])
    assert (result.shape, result.dtype) == (images.shape, images.dtype)
    for layout in (torch.contiguous_format, torch.channels_last):
        assert result.is_contiguous(memory_format=layout) or not images.is_contiguous(memory_format=layout)
    assert float(result.abs().max()) <= 1 + 1e-6


@given(cases())
@settings(max_examples=100)
def test_a_row_depends_on_its_own_image_and_draws_only(case: Case) -> None:
    pipeline, images, draws = case
    result = pipeline(images, draws)
    order = torch.arange(len(images)).roll(1)
    assert_near(pipeline(images[order], draws[order]), result[order])
    images[1:], draws[1:] = -images[1:], (draws[1:] + 0.3) % 1
    assert_near(pipeline(images, draws)[:1], result[:1])


@given(cases(), st.booleans())
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@pytest.mark.usefixtures("_strict")
def test_many_models_at_once_see_what_each_sees_alone(case: Case, shared: bool) -> None:
    pipeline, images, draws = case
    many_draws = torch.stack([draws, (draws + 0.3) % 1, draws_for(9, 9, len(draws), pipeline.num_draws, "cpu")])
    many = images if shared else torch.stack([images, -images, images / 2])
    result = torch.func.vmap(pipeline, in_dims=(None if shared else 0, 0))(many, many_draws)
    for model in range(3):
        assert_near(result[model], pipeline(images if shared else many[model], many_draws[model]))


@pytest.fixture
def _strict() -> Iterator[None]:
    torch.use_deterministic_algorithms(True)
    torch.set_warn_always(True)
    yield
    torch.use_deterministic_algorithms(False)
    torch.set_warn_always(False)


@pytest.mark.parametrize("specs", SPECS, ids=" ".join)
@pytest.mark.usefixtures("_strict")
def test_no_value_decides_the_course_and_autocast_rounds_nothing(specs: list[str]) -> None:
    pipeline = pipeline_of(*specs)
    for shape in ((4, 3, 8, 9), (2, 1, 28, 28)):
        images = to_network_input(pictures(*shape))
        draws = draws_for(3, 1, shape[0], pipeline.num_draws, "cpu")
        expected = pipeline(images, draws)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            assert torch.equal(pipeline(images, draws), expected)
        with FakeTensorMode() as mode:
            assert pipeline(mode.from_tensor(images), mode.from_tensor(draws)).shape == shape
        assert_near(pipeline(images.double(), draws).float(), expected, 1e-4)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("specs", SPECS, ids=" ".join)
@pytest.mark.usefixtures("_strict")
def test_a_captured_graph_on_a_gpu_gives_what_a_cpu_gives(specs: list[str]) -> None:
    pipeline = pipeline_of(*specs)
    images = to_network_input(pictures(16, 3, 32, 32)).contiguous(memory_format=torch.channels_last)
    draws = [draws_for(0, event, 16, pipeline.num_draws, "cpu") for event in range(3)]
    static = images.cuda(), draws[0].cuda()
    pipeline(*static)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = pipeline(*static)
    for each in draws:
        static[1].copy_(each)
        graph.replay()
        differs = (result.cpu() - pipeline(images, each)).abs() > 1e-4
        assert float(differs.double().mean()) < 1e-3


@given(st.integers(0, 100))
def test_a_flip_undoes_itself_and_comes_for_half_of_the_draws(seed: int) -> None:
    images = to_network_input(pictures(3, 2, 5, 6, seed=seed))
    flip, draws = pipeline_of("flip"), torch.tensor([[0.0], [0.4999], [0.5]])
    once = flip(images, draws)
    assert torch.equal(once, torch.cat([images[:2].flip(3), images[2:]]))
    assert torch.equal(flip(once, draws), images)
    assert torch.equal(flipped(flipped(images)), images)
    assert torch.equal(flipped(images)[..., 0], images[..., 5])
    many = draws_for(seed, 0, 4000, 1, "cpu")
    share = flip(torch.tensor([-1.0, 1.0]).expand(4000, 1, 1, 2), many)[:, 0, 0, 0].add(1).div(2).mean()
    assert abs(float(share) - 0.5) < 0.04


@given(st.integers(0, 10**6), st.integers(1, 4), st.booleans())
@settings(max_examples=40)
def test_shift_and_cutout_touch_the_pixels_a_loop_touches(seed: int, size: int, last: bool) -> None:
    images = to_network_input(pictures(3, 2, 9, 8, seed=seed))
    images = images.contiguous(memory_format=torch.channels_last) if last else images
    draws = draws_for(seed, 0, 3, 2, "cpu")
    shifted, cut = pipeline_of(f"shift:{size}")(images, draws), pipeline_of(f"cutout:{size}")(images, draws)
    # Read at |place|: mirrored below 0 by the absolute value, beyond the last by the list running back.
    rows, columns = [*range(9), *range(7, -1, -1)], [*range(8), *range(6, -1, -1)]
    for b, y, x in product(range(3), range(9), range(8)):
        down, right = (math.floor(float(u) * (2 * size + 1)) - size for u in draws[b])
        source = images[b, :, rows[abs(y - down)], columns[abs(x - right)]]
        assert torch.equal(shifted[b, :, y, x], source)
        top, left = (math.floor(float(u) * n) - size // 2 for u, n in zip(draws[b], (9, 8), strict=True))
        covered = top <= y < top + size and left <= x < left + size
        assert torch.equal(cut[b, :, y, x], images[b, :, y, x] * (not covered))
    assert torch.equal(pipeline_of(f"shift:{size}")(images, torch.full((3, 2), 0.5)), images)


@given(st.integers(0, 10**6), st.sampled_from([0.3, 1.0, 2.0]))
@settings(max_examples=40)
def test_affine_moves_a_plane_as_its_matrix_says(seed: int, strength: float) -> None:
    """Bilinear reading of a linear function is exact, so every entry of the matrix shows."""
    height, width = 15, 22
    y, x = np.mgrid[:height, :width] - np.array([(height - 1) / 2, (width - 1) / 2])[:, None, None]
    draws = draws_for(seed, 0, 1, 5, "cpu")
    turn, zoom, slant, right, down = (strength * (2 * float(u) - 1) for u in draws[0])
    cos, sin = math.cos(math.radians(15 * turn)), math.sin(math.radians(15 * turn))
    forward = np.array([[cos, sin], [-sin, cos]]) @ np.array([[1, math.tan(math.radians(10 * slant))], [0, 1]])
    backward = np.linalg.inv(forward * (1 + 0.1 * zoom))
    moved = np.stack([x - 0.1 * width * right, y - 0.1 * height * down])
    source = np.einsum("ij,jyx->iyx", backward, moved)
    inside = torch.from_numpy((abs(source[0]) < (width - 1) / 2) & (abs(source[1]) < (height - 1) / 2))
    assert inside.double().mean() > 0.2
    for across, along in ((0.03, 0.0), (0.0, 0.05)):
        images = torch.from_numpy(across * x + along * y)[None, None]
        expected = torch.from_numpy(across * source[0] + along * source[1])
        result = pipeline_of(f"affine:{strength}")(images, draws)
        assert_near(result[0, 0][inside], expected[inside], 1e-9)
    noise = to_network_input(pictures(2, 3, height, width, seed=seed))
    assert_near(pipeline_of(f"affine:{strength}")(noise, torch.full((2, 5), 0.5)), noise)
    flat = torch.full((1, 3, height, width), 0.7)
    assert_near(pipeline_of(f"affine:{strength}")(flat, draws), flat)


def keys(distance: float) -> float:
    """The weight of a point in cubic interpolation (Keys 1981, with -3/4)."""
    t = abs(distance)
    near, far = 1.25 * t**3 - 2.25 * t**2 + 1, -0.75 * t**3 + 3.75 * t**2 - 6 * t + 3
    return near if t <= 1 else far if t < 2 else 0.0


@given(st.integers(0, 10**6), st.sampled_from([0.5, 1.0, 2.0]))
@settings(max_examples=20, deadline=None)
def test_elastic_moves_a_plane_by_what_lies_between_the_nodes(seed: int, strength: float) -> None:
    """Bilinear reading of a linear function is exact, so the field shows; a loop makes the same."""
    height, width = 13, 22
    draws = draws_for(seed, 0, 1, 50, "cpu")
    moves = 0.05 * strength * (2 * draws.double().view(2, 5, 5).numpy() - 1)
    source = np.zeros((2, height, width))
    for axis, row, column in product((0, 1), range(height), range(width)):
        v, u = row * 4 / (height - 1), column * 4 / (width - 1)
        source[axis, row, column] = sum(
            moves[axis, min(max(i, 0), 4), min(max(j, 0), 4)] * keys(v - i) * keys(u - j)
            for i in range(math.floor(v) - 1, math.floor(v) + 3)
            for j in range(math.floor(u) - 1, math.floor(u) + 3)
        )
    y, x = np.mgrid[:height, :width] - np.array([(height - 1) / 2, (width - 1) / 2])[:, None, None]
    source = np.stack([x - width * source[0], y - height * source[1]])
    inside = torch.from_numpy((abs(source[0]) < (width - 1) / 2) & (abs(source[1]) < (height - 1) / 2))
    assert inside.double().mean() > 0.5
    for across, along in ((0.03, 0.0), (0.0, 0.05)):
        result = pipeline_of(f"elastic:{strength}")(torch.from_numpy(across * x + along * y)[None, None], draws)
        assert_near(result[0, 0][inside], torch.from_numpy(across * source[0] + along * source[1])[inside], 1e-9)
    noise = to_network_input(pictures(2, 3, height, width, seed=seed))
    assert_near(pipeline_of(f"elastic:{strength}")(noise, torch.full((2, 50), 0.5)), noise)
    flat = torch.full((1, 3, height, width), 0.7)
    assert_near(pipeline_of(f"elastic:{strength}")(flat, draws), flat)


def test_shears_come_before_a_turn_and_a_quarter_turn_is_anticlockwise() -> None:
    images, none = to_network_input(pictures(2, 3, 9, 9)), torch.zeros(2)
    x, y = source_of(images, angle=torch.full((2,), math.pi / 2), slant_x=none, right=none, down=none)
    assert_near(sampled(images, x, y, padding="border"), images.rot90(1, (2, 3)))
    slant_x, slant_y = torch.tensor([0.3, 0.0]), torch.tensor([0.0, 0.2])
    slanted = source_of(images, angle=none + 0.4, slant_x=slant_x, slant_y=slant_y, right=none, down=none)
    x, y = source_of(images, angle=none + 0.4, slant_x=none, right=none, down=none)
    for result, expected in zip(slanted, (x - slant_x[:, None, None] * y, y - slant_y[:, None, None] * x), strict=True):
        assert_near(result, expected)


@given(st.integers(0, 10**6), st.sampled_from([0.01, 0.25, 1.0]), st.sampled_from([(12, 17), (3, 2)]), st.booleans())
@settings(max_examples=200)
def test_a_resized_crop_is_a_box_interpolated(seed: int, smallest: float, sides: tuple[int, int], least: bool) -> None:
    images = to_network_input(pictures(1, 3, *sides, seed=seed)).double()
    draws = draws_for(seed, 0, 1, 4, "cpu") * torch.tensor([0.0 if least else 1.0, 1.0, 1.0, 1.0])
    size, shape, left, top = draws.double()[0].tolist()
    area, aspect = smallest + (1 - smallest) * size, (4 / 3) ** (2 * shape - 1)
    fractions = math.sqrt(area / aspect), math.sqrt(area * aspect)
    height, width = (max(1, min(n, round(n * fraction))) for n, fraction in zip(sides, fractions, strict=True))
    above, first = math.floor(top * (sides[0] - height + 1)), math.floor(left * (sides[1] - width + 1))
    box = images[:, :, above : above + height, first : first + width]
    expected = F.interpolate(box, sides, mode="bilinear", align_corners=False)
    assert_near(pipeline_of(f"resized-crop:{smallest}")(images, draws), expected, 1e-9)


def mid_grey(image: Image.Image) -> tuple[int, ...]:
    return (128,) * len(image.getbands())


def bent(image: Image.Image, *coefficients: float) -> Image.Image:
    """An affine map about the centre: where x and y of each pixel come from."""
    a, b, right, c, d, down = coefficients
    x, y = image.width / 2, image.height / 2
    data = (a, b, x - a * x - b * y + right, c, d, y - c * x - d * y + down)
    return image.transform(
        image.size, Image.Transform.AFFINE, data, Image.Resampling.BILINEAR, fillcolor=mid_grey(image)
    )


EXACT = ("identity", "equalise", "posterise", "solarise")
GEOMETRIC = ("rotate", "shear-x", "shear-y", "translate-x", "translate-y")
PILLOW: dict[str, Callable[[Image.Image, float, int], Image.Image]] = {
    "identity": lambda image, f, sign: image,
    "autocontrast": lambda image, f, sign: ImageOps.autocontrast(image),
    "equalise": lambda image, f, sign: ImageOps.equalize(image),
    "rotate": lambda image, f, sign: image.rotate(30 * f * sign, Image.Resampling.BILINEAR, fillcolor=mid_grey(image)),
    "solarise": lambda image, f, sign: ImageOps.solarize(image, 255 * (1 - f)),  # type: ignore[arg-type]
    "colour": lambda image, f, sign: ImageEnhance.Color(image).enhance(1 + 0.9 * f * sign),
    "posterise": lambda image, f, sign: ImageOps.posterize(image, 8 - round(4 * f)),
    "contrast": lambda image, f, sign: ImageEnhance.Contrast(image).enhance(1 + 0.9 * f * sign),
    "brightness": lambda image, f, sign: ImageEnhance.Brightness(image).enhance(1 + 0.9 * f * sign),
    "sharpness": lambda image, f, sign: ImageEnhance.Sharpness(image).enhance(1 + 0.9 * f * sign),
    "shear-x": lambda image, f, sign: bent(image, 1, -0.3 * f * sign, 0, 0, 1, 0),
    "shear-y": lambda image, f, sign: bent(image, 1, 0, 0, -0.3 * f * sign, 1, 0),
    "translate-x": lambda image, f, sign: bent(image, 1, 0, -150 / 331 * f * sign * image.width, 0, 1, 0),
    "translate-y": lambda image, f, sign: bent(image, 1, 0, 0, 0, 1, -150 / 331 * f * sign * image.height),
}


@pytest.mark.parametrize("num_channels", [1, 3])
@pytest.mark.parametrize("name", OPERATIONS)
def test_every_operation_of_randaugment_is_pillows(name: str, num_channels: int) -> None:
    for magnitude, sign, num_levels in product((0, 9, 14, 30), (-1, 1), (2, 16, 256)):
        stored = pictures(1, num_channels, 32, 25, seed=magnitude, num_levels=num_levels)
        # A flat channel, which has no contrast to stretch and no levels to spread.
        stored[:, -1] = stored[:, -1] if sign > 0 else 77
        draws = torch.tensor([[(OPERATIONS.index(name) + 0.5) / len(OPERATIONS), 0.5 + 0.25 * sign]])
        pipeline = pipeline_of(f"randaugment:1,{magnitude}")
        result = pipeline(to_network_input(stored), draws)
        image = Image.fromarray(stored[0].permute(1, 2, 0).squeeze(-1).numpy())
        expected = torch.from_numpy(np.array(PILLOW[name](image, magnitude / 30, sign))).view(32, 25, num_channels)
        difference = (result[0].permute(1, 2, 0) + 1) * 127.5 - expected
        if name in GEOMETRIC:
            # At the edge of the moved image we mix with the fill and Pillow does not.
            share = pipeline(torch.ones(1, 1, 32, 25), draws)[0, 0]
            difference = difference[(share - 0.5).abs() > 0.4999]
            assert len(difference) > 0.85 * 32 * 25
        assert float(difference.abs().max()) < (0.01 if name in EXACT else 2)


def test_randaugment_fills_with_mid_grey_and_draws_each_operation_alike() -> None:
    images, index = torch.ones(1, 1, 16, 16), OPERATIONS.index("translate-x")
    result = pipeline_of("randaugment:1,30")(images, torch.tensor([[(index + 0.5) / 14, 0.9]]))
    assert result[0, 0, 3].tolist()[:7] == [0.0] * 7
    assert result[0, 0, 3].tolist()[8:] == pytest.approx([1.0] * 8)
    assert set(PILLOW) == set(OPERATIONS)
    assert len(OPERATIONS) == 14


def test_every_operation_of_randaugment_sees_one_image_only() -> None:
    images = to_network_input(pictures(14, 3, 8, 8)) * torch.linspace(0.4, 1, 14)[:, None, None, None]
    draws = torch.stack([(torch.arange(14) + 0.5) / 14, torch.full((14,), 0.7)], dim=1)
    augmented = pipeline_of("randaugment:1,20")
    alone = [augmented(images[row : row + 1], draws[row : row + 1]) for row in range(14)]
    assert_near(augmented(images, draws), torch.cat(alone))


def test_equalising_begins_where_a_step_is_one_pixel() -> None:
    for num_tops in (1, 2):
        stored = pictures(1, 1, 16, 16).clamp(max=250)
        stored.view(-1)[:num_tops] = 251
        draws = torch.tensor([[(OPERATIONS.index("equalise") + 0.5) / 14, 0.0]])
        result = pipeline_of("randaugment:1,9")(to_network_input(stored), draws)
        expected = np.array(ImageOps.equalize(Image.fromarray(stored[0, 0].numpy())))
        assert_near((result[0, 0] + 1) * 127.5, torch.from_numpy(expected).float(), 0.01)
        assert np.array_equal(expected, stored[0, 0].numpy()) == (num_tops == 2)


def test_layers_follow_one_another() -> None:
    images, draws = to_network_input(pictures(9, 3, 8, 8)), draws_for(0, 0, 9, 4, "cpu")
    once = pipeline_of("randaugment:1,20")
    expected = once(once(images, draws[:, :2]), draws[:, 2:])
    assert torch.equal(pipeline_of("randaugment:2,20")(images, draws), expected)
    assert torch.equal(pipeline_of("randaugment:1,20", "randaugment:1,20")(images, draws), expected)


def test_what_is_flat_but_for_rounding_is_not_blown_up() -> None:
    images = 0.3 + 1e-6 * torch.arange(64.0).view(1, 1, 8, 8)
    for name in ("autocontrast", "equalise"):
        draws = torch.tensor([[(OPERATIONS.index(name) + 0.5) / 14, 0.0]])
        assert torch.equal(pipeline_of("randaugment:1,9")(images, draws), images)


def test_halves_are_rounded_up_whatever_rounding_made_of_them() -> None:
    level = torch.arange(255.0)
    draws = torch.tensor([[(OPERATIONS.index("posterise") + 0.5) / 14, 0.0]])
    for noise in (-1e-6, 0.0, 1e-6):
        images = ((level + 0.5) * (2 / 255) - 1 + noise).view(1, 1, 15, 17)
        result = pipeline_of("randaugment:1,0")(images, draws)
        assert_near((result.flatten() + 1) * 127.5, level + 1, 1e-3)


def test_draws_are_uniform_and_belong_to_seed_event_row_and_column(monkeypatch: pytest.MonkeyPatch) -> None:
    draws = draws_for(5, 11, 4096, 20, "cpu")
    assert draws.dtype == torch.float32
    assert abs(float(draws.double().mean()) - 0.5) < 4 / math.sqrt(12 * draws.numel())
    counts, expected = torch.bincount((draws.flatten() * 64).long(), minlength=64).double(), draws.numel() / 64
    assert 30 < float(((counts - expected) ** 2 / expected).sum()) < 110
    assert abs(float(torch.corrcoef(draws.T).fill_diagonal_(0).abs().max())) < 0.08
    assert torch.equal(draws_for(5, 11, 7, 20, "cpu"), draws[:7]), "a row does not know the size of its batch"
    others = [draws_for(seed, event, 64, 20, "cpu") for seed, event in ((1, 2), (2, 1), (1, 3), (12, 0), (1, 20))]
    for one, other in product(others, others):
        assert one is other or float((one == other).double().mean()) < 0.01
    monkeypatch.setattr(augment, "draw_bits", lambda key, counters: np.full(len(counters), 2**64 - 1, np.uint64))
    assert draws_for(0, 0, 1, 1, "cpu").tolist() == [[BELOW_ONE]]


@given(st.integers(1, 10**9 - 1), st.integers(1, 500), st.integers(1, 10), st.integers(0, 30))
def test_numbers_are_read_as_they_are_written(pixels: int, hundredths: int, layers: int, magnitude: int) -> None:
    assert parse_augmentation(f"shift:{pixels}") == ("shift", (pixels,))
    assert parse_augmentation(f"affine:{hundredths / 100}") == ("affine", (hundredths / 100,))
    assert parse_augmentation(f"randaugment:{layers},{magnitude}") == ("randaugment", (layers, magnitude))


def test_names_alone_stand_for_the_defaults() -> None:
    assert parse([]) is None
    assert pipeline_of("affine", "randaugment") == pipeline_of("affine:1", "randaugment:2,9")
    assert pipeline_of("elastic") == pipeline_of("elastic:1")
    assert pipeline_of("resized-crop") == pipeline_of("resized-crop:0.25")
    assert pipeline_of("flip", "shift:1", "cutout:1", "affine", "resized-crop", "randaugment:3,9").num_draws == 20
    require_fits(["flip", "shift:16", "cutout:32", "randaugment"], (3, 32, 40))
    require_fits([], (7,))


KNOWN = ", ".join(AUGMENTATIONS)


@pytest.mark.parametrize(
    ("specs", "complaint"),
    [
        (["flop"], f"unknown augmentation 'flop'; did you mean 'flip'? known: {KNOWN}"),
        ([""], f"unknown augmentation ''; known: {KNOWN}"),
        (["flip:1"], "flip takes no number, got 'flip:1'"),
        (["flip:"], "flip takes no number, got 'flip:'"),
        (["shift:x"], "shift needs a whole number of pixels, such as shift:2, got 'shift:x'"),
        (["shift"], "shift needs a whole number of pixels, such as shift:2, got 'shift'"),
        (["flip", "cutout:0"], "cutout needs a whole number of pixels, such as cutout:8, got 'cutout:0'"),
        (["cutout:2.5"], "cutout needs a whole number of pixels, such as cutout:8, got 'cutout:2.5'"),
        (["cutout:-2"], "cutout needs a whole number of pixels, such as cutout:8, got 'cutout:-2'"),
        (["shift:1\n"], r"shift needs a whole number of pixels, such as shift:2, got 'shift:1\n'"),
        (["shift:٣"], "shift needs a whole number of pixels, such as shift:2, got 'shift:٣'"),
        (["affine:nan"], "affine takes a strength from 0.01 to 5, such as affine:0.5, got 'affine:nan'"),
        (["elastic:0"], "elastic takes a strength from 0.01 to 5, such as elastic:0.5, got 'elastic:0'"),
        (["affine:6"], "affine takes a strength from 0.01 to 5, such as affine:0.5, got 'affine:6'"),
        (
            ["resized-crop:0"],
            "resized-crop takes a smallest area from 0.01 to 1, such as resized-crop:0.25, got 'resized-crop:0'",
        ),
        (
            ["randaugment:2"],
            "randaugment takes a number of layers from 1 to 10 and a magnitude from 0 to 30, "
            "such as randaugment:2,9, got 'randaugment:2'",
        ),
        ("flip", "augmentations must be a list such as ['flip', 'shift:2'], got 'flip'"),
        ([2], "an augmentation must be a name such as 'flip' or 'shift:2', got 2"),
    ],
)
def test_what_is_not_an_augmentation_is_refused_in_one_line(specs: list[str], complaint: str) -> None:
    for check in (require_augmentations, parse, lambda specs: require_fits(specs, (3, 32, 32))):
        with pytest.raises(PreqError) as caught:
            check(specs)
        assert str(caught.value) == complaint


@pytest.mark.parametrize(
    ("spec", "shape", "complaint"),
    [
        ("shift:40", (3, 32, 32), "shift:40 is more than half of a 32x32 image; the most is shift:16"),
        ("cutout:9", (1, 8, 20), "cutout:9 is larger than a 8x20 image; the most is cutout:8"),
        ("randaugment", (1, 2, 20), "randaugment takes images of at least 3x3, got a 2x20 image; leave it out"),
        ("flip", (7,), "flip takes images (channels, height, width), got inputs of shape (7,); leave it out"),
        ("affine", (8, 8), "affine takes images (channels, height, width), got inputs of shape (8, 8); leave it out"),
    ],
)
def test_what_does_not_fit_the_data_is_refused(spec: str, shape: tuple[int, ...], complaint: str) -> None:
    with pytest.raises(PreqError) as caught:
        require_fits([spec], shape)
    assert str(caught.value) == complaint


def test_specs_are_checked_without_torch() -> None:
    code = "import sys, prequential.augmentations; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
