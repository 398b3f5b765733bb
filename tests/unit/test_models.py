"""The models against published sizes, hand-made forward passes and other people's weights; and their names."""

import copy
import importlib
import itertools
import pickle
import sys
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn import functional as F

import prequential as pq
from prequential.data.arrays import from_arrays
from prequential.data.sequence import ArraySequence
from prequential.errors import PreqError
from prequential.learn.estimate import cost_per_example
from prequential.learn.learner import Learner
from prequential.learn.randomness import noting_draws, seeded
from prequential.models import MODELS, build, find_factory, is_package_model, name_of, summary_of
from prequential.models.deit import Block, deit, deit_tiny
from prequential.models.mnistnet import mnistnet
from prequential.models.resnet import BasicBlock, Bottleneck, resnet
from prequential.models.vgg import UnevenAverage, vgg, vgg_bn, vggpp
from prequential.models.weight_standardisation import CONVOLUTIONS, StandardisedWeight, standardise_weights
from prequential.models.wide_resnet import WideBlock, nearest_depth, wide_resnet
from prequential.rng import derive, uniforms
from prequential.testing import check_model

IMAGENET, CIFAR, GREY = (3, 224, 224), (3, 32, 32), (1, 28, 28)
NARROW = {"vgg16": 0.1, "vgg16-bn": 0.1, "vggpp": 0.1, "wrn-28-10": 0.05, "deit-s": 0.2, "deit-tiny": 0.4}
NARROW |= {"simplecnn3": 0.1, "simplecnn7": 0.1} | {f"resnet{depth}": 0.1 for depth in (18, 34, 50, 101)}
"""Widths at which a forward pass takes milliseconds."""


def on_meta(name: str, input_shape: tuple[int, ...], num_classes: int, width: float = 1.0) -> nn.Module:
    with torch.device("meta"):
        return build(name, input_shape, num_classes, width=width)


def width_for(name: str) -> float:
    return NARROW.get(name.removesuffix("-ws"), 1.0)


def size_of(model: nn.Module) -> int:
    return sum(p.numel() for p in model.parameters())


def random(*shape: int) -> Tensor:
    """Numbers between −1 and 1, the same each time."""
    return torch.from_numpy(2 * uniforms(derive(0, "random"), np.arange(int(np.prod(shape)))) - 1).view(*shape)


def pictures(length: int, input_shape: tuple[int, ...] = GREY, num_classes: int = 3) -> ArraySequence:
    """Classes as blurred patterns of stripes."""
    draws = uniforms(derive(0, "pictures"), np.arange(length * int(np.prod(input_shape)))).reshape(length, *input_shape)
    labels = np.arange(length) % num_classes
    stripes = np.cos(np.arange(input_shape[-1])[None, :] * (1 + labels[:, None]) / 2)[:, None, None, :]
    return from_arrays((draws + stripes).astype(np.float32), labels, num_classes=num_classes)


@pytest.mark.parametrize(
    ("name", "input_shape", "num_classes", "size"),
    [
        ("vgg11", IMAGENET, 1000, 132_863_336),
        ("vgg13", IMAGENET, 1000, 133_047_848),
        ("vgg16", IMAGENET, 1000, 138_357_544),
        ("vgg19", IMAGENET, 1000, 143_667_240),
        ("vgg11-bn", IMAGENET, 1000, 132_868_840),
        ("vgg13-bn", IMAGENET, 1000, 133_053_736),
        ("vgg19-bn", IMAGENET, 1000, 143_678_248),
        ("vggpp-19", IMAGENET, 1000, 143_678_248 - 5_504),
        ("vgg16-bn", IMAGENET, 1000, 138_365_992),
        ("vggpp", IMAGENET, 1000, 138_365_992 - 4_224),
        ("vgg16", CIFAR, 10, 14_728_266 - 2 * 4_224),
        ("vgg16-bn", CIFAR, 10, 14_728_266),
        ("vggpp", CIFAR, 10, 14_728_266 - 4_224),
        ("wrn-28-10", CIFAR, 10, 36_479_194),
        ("wrn-16-1", CIFAR, 10, 175_066),
        ("wrn-40-4", CIFAR, 10, 8_949_210),
        ("wrn-28-10-ws", CIFAR, 10, 36_479_194),
        ("resnet18", IMAGENET, 1000, 11_689_512),
        ("resnet34", IMAGENET, 1000, 21_797_672),
        ("resnet50", IMAGENET, 1000, 25_557_032),
        ("resnet101", IMAGENET, 1000, 44_549_160),
        ("resnet50-ws", IMAGENET, 1000, 25_557_032),
        ("resnet18", CIFAR, 10, 11_173_962),
        ("simplecnn3", GREY, 10, 1_124_180),
        ("simplecnn5", GREY, 10, 1_128_180),
        ("simplecnn7", GREY, 10, 2_291_972),
        ("deit-s", IMAGENET, 1000, 22_050_664),
        ("deit-tiny", CIFAR, 10, 1_803_850),
    ],
)
def test_models_have_their_known_sizes(name: str, input_shape: tuple[int, ...], num_classes: int, size: int) -> None:
    assert size_of(on_meta(name, input_shape, num_classes)) == size


def test_the_list_of_models() -> None:
    assert " ".join(MODELS) == (
        "mlp1 mlp2 mlp3 lenet smallconv mnistnet simplecnn3 simplecnn5 simplecnn7 "
        "vgg11 vgg13 vgg16 vgg19 vgg11-bn vgg13-bn vgg16-bn vgg19-bn "
        "vggpp vggpp-11 vggpp-13 vggpp-19 wrn-16-1 wrn-28-10 "
        "resnet18 resnet34 resnet50 resnet101 deit-s deit-tiny"
    )


@pytest.mark.parametrize("name", MODELS)
def test_width_scales_every_model(name: str) -> None:
    narrow, plain, broad = (size_of(on_meta(name, GREY, 10, width)) for width in (0.5, 1.0, 2.0))
    assert narrow < plain < broad
    assert 2.2 * plain < broad < 4.5 * plain or name.startswith("mlp")


class InDouble(nn.Module):
    """A model in float64: over a hundred layers, rounding in float32 looks like a dependence on the batch."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model.double()

    def forward(self, inputs: Tensor) -> Any:
        return self.model(inputs.double())


@pytest.mark.parametrize("name", [*NARROW, "wrn-16-1", "wrn-10-2-ws", "resnet18-ws", "lenet-ws"])
@pytest.mark.parametrize("input_shape", [GREY, (3, 32, 48)])
def test_models_obey_the_laws(name: str, input_shape: tuple[int, ...]) -> None:
    def factory(input_shape: tuple[int, ...], num_classes: int) -> nn.Module:
        return InDouble(build(name, input_shape, num_classes, width=width_for(name)))

    check_model(factory, input_shape, 7)


@pytest.mark.parametrize("name", ["vggpp", "wrn-16-1", "deit-tiny", "lenet-ws"])
def test_models_obey_the_laws_in_single_precision(name: str) -> None:
    check_model(name, GREY, 10)


@pytest.mark.parametrize(
    "name", [*NARROW, "wrn-16-1", "smallconv-ws", "mnistnet-ws", "vgg16-ws", "resnet50-ws", "deit-tiny-ws"]
)
def test_every_model_trains_on_small_batches(name: str) -> None:
    data = pictures(16)
    recipe = pq.Recipe(learning_rate=1e-3, ema_step_size=1.0)
    learner = Learner(name, data, recipe, seed=0, width=width_for(name))
    before = [p.detach().clone() for p in learner.model.parameters()]
    for event, indices in enumerate([np.arange(2), np.arange(2, 6), np.arange(6, 9)]):
        learner.train(indices, data.labels(indices), event)
    assert learner.finite() == [True]
    assert learner.predict(0, 16).log_probabilities.isfinite().all()
    moved = [not torch.equal(b, p) for b, p in zip(before, learner.model.parameters(), strict=True)]
    assert all(moved), "some parameter has no influence on the logits"
    assert all(p.stride(1) == 1 for p in learner.model.parameters() if p.dim() == 4), "not channels last"


def test_a_weight_standardised_net_learns_a_sequence() -> None:
    def factory() -> nn.Module:
        return standardise_weights(nn.Sequential(nn.Conv2d(1, 4, 5), nn.ReLU(), nn.Flatten(), nn.LazyLinear(3)))

    record = pq.run(factory, pictures(96), pq.ReplayStreams(num_streams=4, batch_size=8), seed=0)
    assert record.status == "finished"
    assert (record.codelength or np.inf) < 0.6 * 96 * np.log(3)
    assert record.flops is not None


def test_the_signal_keeps_its_size_through_a_vgg_without_normalisation() -> None:
    with seeded(0, "vgg", 0):
        model: Any = build("vgg16", CIFAR, 10, width=0.25).eval()
        inputs = torch.randn(8, *CIFAR)
    features = model.features(inputs)
    assert 0.3 < float(features.detach().square().mean().sqrt()) < 3
    assert float(model(inputs).detach().abs().max()) < 1, "the first predictions are close to uniform"


@pytest.mark.parametrize(
    ("name", "standardised"), [("vgg16-bn", 0), ("vggpp", 13), ("vgg16-ws", 13), ("resnet18-ws", 20)]
)
def test_vggpp_and_the_suffix_standardise_every_convolution(name: str, standardised: int) -> None:
    model = on_meta(name, CIFAR, 10)
    assert sum(isinstance(layer, StandardisedWeight) for layer in model.modules()) == standardised
    assert standardised in (0, sum(isinstance(layer, nn.Conv2d) for layer in model.modules()))


@pytest.mark.parametrize("side", [32, 112])
@pytest.mark.parametrize("make", [vgg, vgg_bn, vggpp])
def test_dropout_of_vgg_is_never_ignored(make: Any, side: int) -> None:
    with torch.device("meta"):
        shares = [
            [
                layer.p
                for layer in make((3, side, side), 10, width=0.1, **given).modules()
                if isinstance(layer, nn.Dropout)
            ]
            for given in ({}, {"dropout": 0.3}, {"dropout": 0.0})
        ]
    large = side == 112
    assert shares == ([[0.5] * 2, [0.3] * 2, [0.0] * 2] if large else [[], [0.3], []])


def test_channel_dropout_stands_where_blier_and_ollivier_have_it() -> None:
    with torch.device("meta"):
        model: Any = vggpp(CIFAR, 10, width=0.1, channel_dropout=(0.3, 0.4))
    names = [type(layer).__name__ for layer in model.features]
    dropped = [layer.p for layer in model.modules() if isinstance(layer, nn.Dropout2d)]
    assert dropped == [0.3] + [0.4] * 7
    assert all(before == "ReLU" for before, name in itertools.pairwise(names) if name == "Dropout2d")
    assert names.count("MaxPool2d") == 5


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"depth": 12}, "VGG has a depth of 11, 13, 16, 19, got 12"),
        ({"dropout": 1.0}, "dropout must be"),
        ({"channel_dropout": (0.3, -0.1)}, "dropout must be"),
    ],
)
def test_a_vgg_that_cannot_be_is_refused(settings: dict[str, Any], told: str) -> None:
    with pytest.raises(PreqError, match=told):
        vggpp(CIFAR, 10, **settings)


@given(st.sampled_from([1, 7]), st.integers(1, 20), st.integers(1, 20))
def test_uneven_averages_are_those_of_adaptive_pooling(side: int, height: int, breadth: int) -> None:
    features = random(2, 3, height, breadth)
    ours = UnevenAverage(side, height, breadth).double()(features)
    torch.testing.assert_close(ours, F.adaptive_avg_pool2d(features, side), atol=1e-7, rtol=1e-6)


def test_mnistnet_has_the_layers_of_blier_and_ollivier() -> None:
    def block(channels: int, size: int) -> list[str]:
        return [f"Conv2d {channels} {size} (3, 3) (1, 1) biased", f"BatchNorm2d {size}", "ReLU"]

    def described(layer: nn.Module) -> str:
        name = type(layer).__name__
        match layer:
            case nn.Conv2d():
                sizes = f"{layer.in_channels} {layer.out_channels} {layer.kernel_size} {layer.padding}"
                return f"{name} {sizes} {'plain' if layer.bias is None else 'biased'}"
            case nn.BatchNorm2d():
                return f"{name} {layer.num_features}"
            case nn.Linear():
                return f"{name} {layer.in_features} {layer.out_features}"
            case nn.Dropout() | nn.Dropout2d():
                return f"{name} {layer.p}"
            case nn.MaxPool2d():
                return f"{name} {layer.kernel_size}"
        return name

    wanted, channels = [], 1
    for size, rate in [(32, 0.3), (64, 0.4), (128, 0.4), (256, 0.4)]:
        wanted += [*block(channels, size), f"Dropout2d {rate}", *block(size, size), "MaxPool2d 2"]
        channels = size
    wanted += ["Flatten", "Dropout 0.5", "Linear 256 256", "Dropout 0.5", "Linear 256 256", "Dropout 0.5"]
    assert [described(layer) for layer in build("mnistnet", GREY, 10).children()] == [*wanted, "Linear 256 10"]
    calm = mnistnet(GREY, 10, width=0.1, dropout=0.0)
    assert all(layer.p == 0 for layer in calm if isinstance(layer, nn.Dropout | nn.Dropout2d))


@pytest.mark.parametrize("input_shape", [(1, 16, 16), (3, 17, 31), (2, 45, 33), (1, 28, 28)])
def test_mnistnet_takes_images_of_any_size_from_16_pixels_on(input_shape: tuple[int, ...]) -> None:
    model = build("mnistnet", input_shape, 7, width=0.1)
    assert model(torch.zeros(2, *input_shape)).shape == (2, 7)


@pytest.mark.parametrize("input_shape", [(1, 15, 28), (1, 28, 15), (1, 8, 8), (28, 28), (784,)])
def test_mnistnet_refuses_what_cannot_be_halved_four_times(input_shape: tuple[int, ...]) -> None:
    with pytest.raises(PreqError, match=r"mnistnet takes images \(channels, height, width\) of at least 16×16, got"):
        build("mnistnet", input_shape, 10)


@pytest.mark.parametrize(
    ("name", "kernel", "channels", "left"),
    [
        ("simplecnn3", 3, [1, 32, 48, 64, 80, 96, 112, 128, 144, 160, 176], 8),
        ("simplecnn5", 5, [1, 32, 64, 96, 128, 160], 8),
        ("simplecnn7", 7, [1, 48, 96, 144, 192], 4),
    ],
)
def test_simple_networks_have_the_layers_of_an_and_others(
    name: str, kernel: int, channels: list[int], left: int
) -> None:
    *layers, flat, dense, last = build(name, GREY, 10).children()
    for number, (inputs, outputs) in enumerate(itertools.pairwise(channels)):
        convolution, normalisation, relu = layers[3 * number : 3 * number + 3]
        assert isinstance(convolution, nn.Conv2d)
        assert (convolution.in_channels, convolution.out_channels) == (inputs, outputs)
        assert convolution.kernel_size == (kernel, kernel)
        assert (convolution.padding, convolution.stride) == ((0, 0), (1, 1))
        assert "bias" not in dict(convolution.named_parameters())
        assert isinstance(normalisation, nn.BatchNorm2d)
        assert isinstance(relu, nn.ReLU)
    assert len(layers) == 3 * (len(channels) - 1)
    assert isinstance(flat, nn.Flatten)
    assert isinstance(dense, nn.Linear)
    assert (dense.in_features, dense.out_features) == (channels[-1] * left**2, 10)
    assert "bias" not in dict(dense.named_parameters())
    assert isinstance(last, nn.BatchNorm1d)
    least = (kernel - 1) * (len(channels) - 1) + 1
    assert build(name, (3, least, 40), 7, width=0.1)(torch.zeros(2, 3, least, 40)).shape == (2, 7)
    with pytest.raises(PreqError, match=rf"{name} takes images .* of at least {least}×{least}, got"):
        build(name, (3, least - 1, 40), 7)


@pytest.mark.parametrize("side", [28, 32, 64, 111, 112, 224, 256])
def test_the_size_of_the_image_decides_the_head_of_vgg(side: int) -> None:
    model = build("vgg16-bn", (1, side, side), 5, width=0.05)
    dense = [layer for layer in model.modules() if isinstance(layer, nn.Linear)]
    assert len(dense) == (3 if side >= 112 else 1)
    assert sum(isinstance(layer, nn.MaxPool2d) for layer in model.modules()) == (4 if side < 32 else 5)
    with torch.no_grad():
        assert model(torch.zeros(2, 1, side, side)).shape == (2, 5)


def batch_norm(features: Tensor, layer: nn.BatchNorm2d) -> Tensor:
    """Normalisation of a batch in training, written out."""
    mean, variance = features.mean((0, 2, 3), keepdim=True), features.var((0, 2, 3), unbiased=False, keepdim=True)
    normed = (features - mean) / (variance + 1e-5).sqrt()
    return normed * layer.weight[:, None, None] + layer.bias[:, None, None]


def shaken(module: nn.Module) -> nn.Module:
    """The module in float64 with every parameter random, so that no term is zero or one."""
    with seeded(0, "shaken", 0), torch.no_grad():
        for parameter in module.parameters():
            parameter.normal_()
    return module.double()


def projected(inputs: Tensor, downsample: nn.Sequential | None, stride: int) -> Tensor:
    """What stands beside a block that changes the shape."""
    assert downsample is not None
    convolution, norm = downsample
    assert isinstance(convolution, nn.Conv2d)
    assert isinstance(norm, nn.BatchNorm2d)
    return batch_norm(F.conv2d(inputs, convolution.weight, None, stride), norm)


@pytest.mark.parametrize(("channels", "stride"), [(4, 1), (6, 2), (6, 1), (4, 2)])
def test_a_basic_block_is_what_it_says(channels: int, stride: int) -> None:
    block, inputs = BasicBlock(4, channels, stride=stride), random(3, 4, 8, 8)
    shaken(block)
    hidden = batch_norm(F.conv2d(inputs, block.conv1.weight, None, stride, 1), block.bn1).clamp(min=0)
    hidden = batch_norm(F.conv2d(hidden, block.conv2.weight, None, 1, 1), block.bn2)
    kept = inputs
    if (channels, stride) != (4, 1):
        kept = projected(inputs, block.downsample, stride)
    torch.testing.assert_close(block(inputs), (hidden + kept).clamp(min=0))


def test_a_bottleneck_has_its_stride_in_the_middle() -> None:
    block, inputs = Bottleneck(4, 2, stride=2), random(3, 4, 8, 8)
    shaken(block)
    hidden = batch_norm(F.conv2d(inputs, block.conv1.weight), block.bn1).clamp(min=0)
    hidden = batch_norm(F.conv2d(hidden, block.conv2.weight, None, 2, 1), block.bn2).clamp(min=0)
    hidden = batch_norm(F.conv2d(hidden, block.conv3.weight), block.bn3)
    kept = projected(inputs, block.downsample, 2)
    torch.testing.assert_close(block(inputs), (hidden + kept).clamp(min=0))
    assert Bottleneck(8, 2, stride=1).downsample is None


@pytest.mark.parametrize("depth", [18, 50])
def test_a_resnet_of_zero_blocks_is_its_stem(depth: int) -> None:
    model: Any = resnet(GREY, 3, depth=depth, width=0.1, zero_init=True).eval()
    features = model.bn1(model.conv1(random(2, *GREY).float())).clamp(min=0)
    first, *others = model.layer1
    after = first(features)
    for block in others:
        after = block(after)
    assert torch.equal(after, features if first.downsample is None else first.downsample(features).clamp(min=0))


@pytest.mark.parametrize(("channels", "stride"), [(4, 1), (6, 2), (4, 2)])
def test_a_wide_block_activates_first(channels: int, stride: int) -> None:
    block, inputs = WideBlock(4, channels, stride=stride), random(3, 4, 8, 8)
    shaken(block)
    activated = batch_norm(inputs, block.bn1).clamp(min=0)
    hidden = batch_norm(F.conv2d(activated, block.conv1.weight, None, stride, 1), block.bn2).clamp(min=0)
    kept = inputs if block.shortcut is None else F.conv2d(activated, block.shortcut.weight, None, stride)
    torch.testing.assert_close(block(inputs.clone()), F.conv2d(hidden, block.conv2.weight, None, 1, 1) + kept)


def test_a_transformer_block_is_what_it_says() -> None:
    block = Block(128, 2, rate=0.0)
    tokens = random(3, 5, 128)
    with seeded(0, "block", 0), torch.no_grad():
        for parameter in block.double().parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))

    def normed(values: Tensor, layer: nn.LayerNorm) -> Tensor:
        centred = values - values.mean(-1, keepdim=True)
        return centred / (centred.square().mean(-1, keepdim=True) + 1e-6).sqrt() * layer.weight + layer.bias

    qkv = normed(tokens, block.norm1) @ block.attn.qkv.weight.T + block.attn.qkv.bias
    heads = []
    for head in range(2):
        query, key, value = (qkv[..., 128 * part + 64 * head :][..., :64] for part in range(3))
        heads.append(torch.softmax(query @ key.mT / 8, dim=-1) @ value)
    hidden = tokens + torch.cat(heads, dim=-1) @ block.attn.proj.weight.T + block.attn.proj.bias
    inner = normed(hidden, block.norm2) @ block.mlp.fc1.weight.T + block.mlp.fc1.bias
    inner = inner * (1 + torch.erf(inner / 2**0.5)) / 2
    torch.testing.assert_close(block(tokens), hidden + inner @ block.mlp.fc2.weight.T + block.mlp.fc2.bias)


def test_a_transformer_reads_patches_in_order_and_answers_at_the_class_token() -> None:
    model: Any = deit((1, 8, 12), 3, heads=1, depth=1)
    image = random(1, 1, 8, 12).float()
    patches = model.patch_embed(image)
    kernel, bias = model.patch_embed.proj.weight.flatten(1), model.patch_embed.proj.bias
    torch.testing.assert_close(patches[0, 3], kernel @ image[0, 0, 4:8, 0:4].flatten() + bias)
    tokens = torch.cat([model.cls_token, patches], 1) + model.pos_embed
    torch.testing.assert_close(model(image), model.head(model.norm(model.blocks(tokens)[:, 0])))


def test_stochastic_depth_leaves_out_examples_in_training_alone() -> None:
    with seeded(0, "block", 0):
        block, tokens = Block(64, 1, rate=0.25), random(400, 2, 64).float()
        nn.init.zeros_(block.mlp.fc2.weight)  # so that attention is the only change
        nn.init.zeros_(block.mlp.fc2.bias)
        change = block.eval()(tokens) - tokens
        trained = block.train()(tokens) - tokens
    left_out = (trained == 0).all(-1).all(-1)
    assert 60 < int(left_out.sum()) < 140
    torch.testing.assert_close(trained[~left_out], change[~left_out] / 0.75, atol=1e-5, rtol=1e-5)
    model = deit(GREY, 3, heads=1, depth=3, stochastic_depth=0.2)
    assert [layer.rate for layer in model.modules() if isinstance(layer, Block)] == [0, 0.1, 0.2]


@pytest.mark.parametrize(
    ("make", "setting", "draws"),
    [
        (partial(wide_resnet, depth=10, widening=1), {}, False),
        (partial(wide_resnet, depth=10, widening=1), {"dropout": 0.3}, True),
        (partial(deit_tiny, width=0.3), {}, False),
        (partial(deit_tiny, width=0.3), {"stochastic_depth": 0.1}, True),
    ],
)
def test_training_draws_only_if_asked_to(
    make: Callable[..., nn.Module], setting: dict[str, float], draws: bool
) -> None:
    model = make(GREY, 3, **setting)
    for mode, drew in ((True, draws), (False, False)):
        with noting_draws(torch.device("cpu")) as drew_on:
            model.train(mode)(torch.zeros(2, *GREY))
        assert drew_on == (frozenset({"cpu"}) if drew else frozenset())


def test_attention_is_counted() -> None:
    cost = cost_per_example(on_meta("deit-s", IMAGENET, 1000), torch.zeros(2, *IMAGENET))
    dense = 197 * 12 * 12 * 384**2 + 196 * 384 * 768 + 384 * 1000
    assert cost is not None
    assert cost.forward == 2 * (dense + 12 * 2 * 197**2 * 384)


@st.composite
def convolutions(draw: st.DrawFn) -> Any:
    kind: Any = draw(st.sampled_from(CONVOLUTIONS))
    groups = draw(st.integers(1, 3))
    inputs, outputs = (groups * draw(st.integers(1, 3)) for _ in range(2))
    return kind(inputs, outputs, draw(st.integers(1, 3)), groups=groups)


@given(convolutions(), st.sampled_from([torch.float32, torch.float64]), st.booleans())
def test_weights_are_standardised_for_each_output_channel(layer: Any, dtype: torch.dtype, training: bool) -> None:
    layer = layer.to(dtype).train(training)
    weight = layer.weight.detach().double().numpy()
    if layer.transposed:  # (inputs, outputs of a group, …) → (outputs, inputs of a group, …)
        weight = np.concatenate(np.split(weight, layer.groups), axis=1).swapaxes(0, 1)
    filters = weight.reshape(len(weight), -1)
    fan_in = filters.shape[1]
    if fan_in == 1:
        with pytest.raises(PreqError, match="has none"):
            standardise_weights(layer)
        return
    centred = filters - filters.mean(1, keepdims=True)
    wanted = (centred / np.sqrt(fan_in * filters.var(1, keepdims=True) + 1e-5)).reshape(weight.shape)
    got = standardise_weights(layer).weight.detach()
    assert got.dtype == dtype
    ours = got.double().numpy()
    if layer.transposed:
        ours = np.concatenate(np.split(ours, layer.groups), axis=1).swapaxes(0, 1)
    np.testing.assert_allclose(ours, wanted, atol=1e-5 if dtype == torch.float32 else 1e-12)
    spread = filters.var(1) * fan_in
    np.testing.assert_allclose(ours.reshape(len(ours), -1).var(1) * fan_in, spread / (spread + 1e-5), rtol=1e-4)


def small_net() -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(2, 4, 3), nn.ReLU(), nn.Conv2d(4, 4, 1, groups=4), nn.ConvTranspose2d(4, 2, 2))


def test_standardised_models_are_ordinary_models() -> None:
    plain, model = small_net().double(), small_net().double()
    model.load_state_dict(plain.state_dict())
    originals = list(model.parameters())
    assert standardise_weights(model) is model
    assert {id(p) for p in model.parameters()} == {id(p) for p in originals}, "an optimizer must not lose its weights"
    inputs = random(3, 2, 6, 6)
    outputs = model(inputs)
    assert torch.equal(standardise_weights(model)(inputs), outputs), "twice is once"
    assert torch.equal(copy.deepcopy(model)(inputs), outputs)
    assert torch.equal(model.eval()(inputs), outputs)
    state = model.state_dict()
    assert {key for key in state if "original" in key} == {f"{n}.parametrizations.weight.original" for n in (0, 3)}
    other = standardise_weights(small_net().double())
    other.load_state_dict(state)
    assert torch.equal(other(inputs), outputs)
    key = "0.parametrizations.weight.original"
    changed = torch.func.functional_call(model, state | {key: 3 * state[key] + 0.5}, inputs)
    torch.testing.assert_close(changed, outputs, atol=1e-4, rtol=1e-4)
    assert not torch.allclose(torch.func.functional_call(model, state | {key: state[key].square()}, inputs), outputs)
    with torch.device("meta"):
        assert standardise_weights(small_net())(torch.zeros(3, 2, 6, 6)).shape == outputs.shape


@pytest.mark.parametrize("shape", [(8, 3, 3, 3), (8, 4, 1, 1), (8, 1, 3, 5)])
@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
def test_standardisation_keeps_the_layout_of_memory(shape: tuple[int, ...], layout: torch.memory_format) -> None:
    layer = nn.Conv2d(shape[1], shape[0], (shape[2], shape[3]))
    layer.weight.data = layer.weight.data.clone(memory_format=layout)
    wanted = layer.weight.stride()
    assert standardise_weights(layer).weight.stride() == wanted


def test_gradients_pass_through_standardisation() -> None:
    model = standardise_weights(nn.Conv2d(2, 3, 2).double())
    names, weights = zip(*model.named_parameters(), strict=True)

    def outputs(*values: Tensor) -> Tensor:
        return torch.func.functional_call(model, dict(zip(names, values, strict=True)), random(2, 2, 4, 4))

    assert torch.autograd.gradcheck(outputs, weights)
    constant = nn.Conv2d(2, 3, 2)
    nn.init.ones_(constant.weight)
    assert not standardise_weights(constant).weight.any(), "a filter of equal weights becomes zero"


def test_standardisation_is_traced_as_one_graph() -> None:
    model = standardise_weights(small_net())
    inputs = random(3, 2, 6, 6).float()
    traced = torch.compile(model, fullgraph=True, backend="eager")
    torch.testing.assert_close(traced(inputs), model(inputs))


def test_what_cannot_be_standardised_is_told() -> None:
    for model in (nn.Linear(2, 2), nn.Sequential(), nn.Conv2d(3, 3, 1, groups=3)):
        with pytest.raises(PreqError, match=f"is for convolutions, got a {type(model).__name__} that has none"):
            standardise_weights(model)
    with pytest.raises(PreqError, match="a lazy convolution has no weights to standardise yet; run the model"):
        standardise_weights(nn.Sequential(nn.LazyConv2d(3, 3)))
    with pytest.raises(PreqError, match=r"^the model 'mlp2' has no convolution to standardise; leave out -ws$"):
        build("mlp2-ws", GREY, 10)


def imported(name: str) -> Any:
    """An optional library, or the reason why it cannot be had here."""
    try:
        return importlib.import_module(name)
    except Exception as error:  # beside a torch of another build torchvision raises RuntimeError
        pytest.skip(f"{name} cannot be imported here ({type(error).__name__}: {error})")


def same_state(mine: nn.Module, other: nn.Module) -> bool:
    shapes = [{key: value.shape for key, value in model.state_dict().items()} for model in (mine, other)]
    return shapes[0] == shapes[1]


def test_weights_of_torchvision_load_and_mean_the_same() -> None:
    theirs = imported("torchvision.models")
    for name in ("resnet18", "resnet34", "resnet50", "resnet101", "vgg16", "vgg16-bn"):
        with torch.device("meta"):
            assert same_state(on_meta(name, IMAGENET, 1000), getattr(theirs, name.replace("-", "_"))()), name
    for name in ("resnet18", "resnet50"):
        other = shake_statistics(getattr(theirs, name)().eval())
        mine = build(name, (3, 64, 96), 1000).eval()
        mine.load_state_dict(other.state_dict())
        inputs = random(2, 3, 64, 96).float()
        torch.testing.assert_close(mine(inputs), other(inputs), rtol=1e-4, atol=1e-4)


def shake_statistics(model: nn.Module) -> nn.Module:
    for key, buffer in model.named_buffers():
        if key.endswith(("running_mean", "running_var")):
            buffer.uniform_(0.5, 1.5)
    return model


def test_weights_of_timm_load_and_mean_the_same() -> None:
    other = imported("timm").create_model("deit_small_patch16_224", pretrained=False).eval()
    mine = build("deit-s", IMAGENET, 1000).eval()
    assert same_state(mine, other)
    mine.load_state_dict(other.state_dict())
    inputs = random(2, *IMAGENET).float()
    torch.testing.assert_close(mine(inputs), other(inputs), rtol=1e-4, atol=1e-4)


def test_the_names_of_weights_are_those_of_the_published_files() -> None:
    fifty = set(on_meta("resnet50", IMAGENET, 1000).state_dict())
    assert {"conv1.weight", "bn1.running_var", "layer1.0.downsample.0.weight", "layer1.0.downsample.1.bias"} <= fifty
    assert {"layer3.5.conv3.weight", "layer4.2.bn3.num_batches_tracked", "fc.weight", "fc.bias"} <= fifty
    assert len(fifty) == 320
    vgg = set(on_meta("vgg16", IMAGENET, 1000).state_dict())
    convolutions = [0, 2, 5, 7, 10, 12, 14, 17, 19, 21, 24, 26, 28]
    layers = [f"features.{n}" for n in convolutions] + [f"classifier.{n}" for n in (0, 3, 6)]
    assert vgg == {f"{layer}.{kind}" for layer in layers for kind in ("weight", "bias")}
    deit_s = on_meta("deit-s", IMAGENET, 1000).state_dict()
    block = ["norm1", "attn.qkv", "attn.proj", "norm2", "mlp.fc1", "mlp.fc2"]
    layers = [f"blocks.{n}.{layer}" for n in range(12) for layer in block] + ["patch_embed.proj", "norm", "head"]
    assert set(deit_s) == {f"{layer}.{kind}" for layer in layers for kind in ("weight", "bias")} | {
        "cls_token",
        "pos_embed",
    }
    assert deit_s["pos_embed"].shape == (1, 197, 384)


@pytest.mark.parametrize(
    "name", [*MODELS, *(f"{name}-ws" for name in MODELS), "wrn-40-2", "wrn-10-1-ws", "wrn-9994-9999"]
)
def test_names_of_the_package_come_back(name: str) -> None:
    assert is_package_model(name)
    assert name_of(find_factory(name)) == name
    if name not in MODELS:
        assert name_of(pickle.loads(pickle.dumps(find_factory(name)))) == name


def test_each_model_says_what_it_is_in_a_line() -> None:
    summaries = {name: summary_of(name) for name in MODELS}
    assert all(20 < len(summary) < 110 and summary.endswith(".") for summary in summaries.values())
    sized = ("mlp", "wrn", "resnet", "vgg", "simplecnn")
    alone = [*(name for name in MODELS if not name.startswith(sized)), "vgg16", "vgg16-bn", "vggpp", "simplecnn3"]
    assert len({summaries[name] for name in alone}) == len(alone)
    assert summary_of("wrn-40-2") == summaries["wrn-16-1"]
    assert "standardised" in summary_of("lenet-ws")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("resnet-18", "unknown model 'resnet-18'; did you mean 'resnet18'? known: mlp1, "),
        ("resnet-50-ws", "unknown model 'resnet-50'; did you mean 'resnet50'? "),
        ("vgg++", "unknown model 'vgg++'; did you mean 'vgg"),
        ("deit", "unknown model 'deit'; did you mean 'deit-s'? "),
        ("lenet-ws-ws", "unknown model 'lenet-ws'; did you mean 'lenet'? "),
        ("wrn-27-10", "with a depth of 6n + 4, got 'wrn-27-10'; did you mean 'wrn-28-10'?"),
        ("wrn-28", "is called wrn-DEPTH-WIDENING with a depth of 6n + 4, got 'wrn-28'; did you mean 'wrn-28-10'?"),
        ("wrn-4-2", "got 'wrn-4-2'; did you mean 'wrn-10-2'?"),
        ("wrn-28-0", "got 'wrn-28-0'; did you mean 'wrn-28-10'?"),
        ("wrn-x", "got 'wrn-x'; did you mean 'wrn-28-10'?"),
        ("wrn-9999-2", "got 'wrn-9999-2'; did you mean 'wrn-9994-2'?"),
        ("wrn-100000000-2", "got 'wrn-100000000-2'; did you mean 'wrn-28-10'?"),
    ],
)
def test_mistaken_names_are_answered_with_a_suggestion(name: str, message: str) -> None:
    with pytest.raises(PreqError) as caught:
        find_factory(name)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not is_package_model(name)


@given(st.integers(0, 10_000))
def test_the_suggested_depth_is_a_depth(depth: int) -> None:
    nearest = nearest_depth(depth)
    assert nearest % 6 == 4
    assert nearest >= 10
    assert abs(nearest - depth) <= 3 or depth < 7


@pytest.mark.parametrize(
    ("name", "input_shape", "message"),
    [
        ("vggpp", (784,), "vggpp takes images"),
        ("resnet50", (3, 2, 2), "resnet50 takes images"),
        ("wrn-22-2", (3, 32), "wrn-22-2 takes images"),
        ("deit-tiny", (1, 30, 30), "patches of 4×4, got a side of 30 pixels; crop or pad it to a multiple of 4"),
        ("deit-s", (3, 224, 230), "patches of 16×16, got a side of 230 pixels"),
    ],
)
def test_images_that_do_not_fit_are_refused(name: str, input_shape: tuple[int, ...], message: str) -> None:
    with pytest.raises(PreqError) as caught:
        build(name, input_shape, 10)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_settings_that_do_not_fit_are_refused() -> None:
    with pytest.raises(PreqError, match=r"must be 6n \+ 4, got 15; try 16"):
        wide_resnet(CIFAR, 10, depth=15)
    with pytest.raises(PreqError, match="widening of a wide residual network must be a whole number of at least 1"):
        wide_resnet(CIFAR, 10, widening=0)
    with pytest.raises(PreqError, match="a residual network has 18, 34, 50, 101 layers, got 20"):
        resnet(CIFAR, 10, depth=20)
    with pytest.raises(PreqError, match="stochastic_depth must be a number at least 0 and below 1, got 1"):
        deit_tiny(CIFAR, 10, stochastic_depth=1.0)


def fake_timm(calls: list[dict[str, Any]]) -> Any:
    """What we use of timm: one model that takes images of one size, one that takes any."""

    def create_model(architecture: str, **settings: Any) -> nn.Module:
        calls.append(settings)
        if architecture == "resnet18" and "img_size" in settings:
            raise TypeError("ResNet.__init__() got an unexpected keyword argument 'img_size'")
        if settings["num_classes"] == 13:
            raise TypeError("something else")
        return nn.Sequential(nn.Flatten(), nn.LazyLinear(settings["num_classes"]))

    names = ["resnet18", "vit_small_patch16_224"]
    return SimpleNamespace(create_model=create_model, list_models=lambda: names, is_model=lambda name: name in names)


def test_models_of_timm(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[dict[str, Any]] = []
    monkeypatch.setitem(sys.modules, "timm", fake_timm(calls))
    given = {"pretrained": False, "num_classes": 10, "in_chans": 3}
    build("timm:vit_small_patch16_224", CIFAR, 10)
    build("timm:vit_small_patch16_224", (3, 32, 48), 10)
    assert calls == [given | {"img_size": 32}, given | {"img_size": (32, 48)}]
    calls.clear()
    build("timm:resnet18", CIFAR, 10)
    assert calls[-1] == given
    assert name_of(find_factory("timm:resnet18")) == "timm:resnet18"
    assert not is_package_model("timm:resnet18")
    assert not is_package_model("timm:resnet18-ws")
    for name, num_classes, message in [
        ("timm:resnet-18", 10, "timm has no model 'resnet-18'; did you mean resnet18?"),
        ("timm:qqq", 10, "timm has no model 'qqq'; timm.list_models() names those it has"),
        ("timm:vit_small_patch16_224", 13, "could not be built (TypeError: something else)"),
    ]:
        with pytest.raises(PreqError) as caught:
            build(name, CIFAR, num_classes)
        assert str(caught.value).endswith(message)
    assert calls[-1].get("img_size") == 32, "only a complaint about the size of images is answered by leaving it out"
    with pytest.raises(PreqError, match="takes images"):
        build("timm:resnet18", (3,), 10)
    with pytest.raises(PreqError, match="no width to scale"):
        build("timm:resnet18", CIFAR, 10, width=2.0)


def test_timm_that_is_not_there_or_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail_with(error: Exception) -> Callable[[str], Any]:
        def import_module(name: str) -> Any:
            raise error

        return import_module

    monkeypatch.setattr(importlib, "import_module", fail_with(ModuleNotFoundError("No module", name="timm")))
    with pytest.raises(PreqError, match=r"^models of timm need the library; pip install 'prequential\[timm\]'$"):
        find_factory("timm:resnet18")
    monkeypatch.setattr(importlib, "import_module", fail_with(RuntimeError("operator torchvision::nms\nis missing")))
    with pytest.raises(PreqError, match=r"timm cannot be imported \(RuntimeError: operator torchvision::nms\); do"):
        find_factory("timm:resnet18")
