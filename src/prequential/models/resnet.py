"""Residual networks (He et al. 2016), with the names of torchvision's, whose weights load."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from prequential.errors import PreqError
from prequential.models.shapes import Shape, group, require_image, scaled

BLOCKS = {18: (2, 2, 2, 2), 34: (3, 4, 6, 3), 50: (3, 4, 6, 3), 101: (3, 4, 23, 3)}
"""How many blocks each depth has at each of the four resolutions."""
SMALL_SIDE = 64
"""Below this side an image is small: a 3×3 stem that keeps the resolution, and no max-pooling."""


def resnet(
    input_shape: Shape, output_size: int, *, depth: int = 50, width: float = 1.0, zero_init: bool = False
) -> nn.Module:
    """Residual network: basic blocks (18, 34 layers) or bottlenecks (50, 101); for small images a 3×3 stem.

    At sides of 64 and more the stem is a 7×7 convolution of stride 2 and a 3×3 max-pooling, as in the
    original. A bottleneck has its stride in the 3×3 convolution. All normalisations begin at scale 1, as
    torchvision does unless asked otherwise; with `zero_init` the last of each block begins at 0, so that a
    fresh network is shallow and its first predictions are tame.

    Example:
        >>> with torch.device("meta"):
        ...     model = resnet((3, 224, 224), 1000, depth=50)
        >>> sum(p.numel() for p in model.parameters())
        25557032
    """
    if depth not in BLOCKS:
        raise PreqError(f"a residual network has {', '.join(map(str, BLOCKS))} layers, got {depth}")
    require_image(f"resnet{depth}", input_shape, at_least=4)
    channels = [scaled(size, width) for size in (64, 128, 256, 512)]
    small = min(input_shape[1:]) < SMALL_SIDE
    model = ResNet(input_shape[0], output_size, channels, depth, small=small)
    for block in model.modules():
        if zero_init and isinstance(block, BasicBlock | Bottleneck):
            nn.init.zeros_(block.bn2.weight if isinstance(block, BasicBlock) else block.bn3.weight)
    return model


class ResNet(nn.Module):
    """Stem, four groups of blocks, average, dense layer."""

    def __init__(self, input_channels: int, output_size: int, channels: list[int], depth: int, *, small: bool) -> None:
        super().__init__()
        kind, blocks = Bottleneck if depth >= 50 else BasicBlock, BLOCKS[depth]
        size, outputs = channels[0], [number * kind.expansion for number in channels]
        kernel, stride = (3, 1) if small else (7, 2)
        self.conv1, self.bn1 = _normalised(input_channels, size, kernel, stride)
        self.maxpool = nn.Identity() if small else nn.MaxPool2d(3, stride=2, padding=1)
        self.layer1 = group(kind, size, channels[0], outputs[0], blocks[0], stride=1)
        self.layer2 = group(kind, outputs[0], channels[1], outputs[1], blocks[1], stride=2)
        self.layer3 = group(kind, outputs[1], channels[2], outputs[2], blocks[2], stride=2)
        self.layer4 = group(kind, outputs[2], channels[3], outputs[3], blocks[3], stride=2)
        self.fc = nn.Linear(outputs[3], output_size)
        for layer in self.modules():
            if isinstance(layer, nn.Conv2d):
                nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, inputs: Tensor) -> Tensor:
        # pooling before ReLU: the same function, on a quarter of the values
        features: Tensor = F.relu(self.maxpool(self.bn1(self.conv1(inputs))), inplace=True)
        features = self.layer4(self.layer3(self.layer2(self.layer1(features))))
        logits: Tensor = self.fc(features.mean(dim=(2, 3)))
        return logits


class BasicBlock(nn.Module):
    """Two 3×3 convolutions beside the identity."""

    expansion = 1

    def __init__(self, inputs: int, channels: int, *, stride: int) -> None:
        super().__init__()
        self.conv1, self.bn1 = _normalised(inputs, channels, 3, stride)
        self.conv2, self.bn2 = _normalised(channels, channels, 3)
        self.downsample = _shortcut(inputs, channels, stride)

    def forward(self, inputs: Tensor) -> Tensor:
        hidden = F.relu(self.bn1(self.conv1(inputs)), inplace=True)
        kept = inputs if self.downsample is None else self.downsample(inputs)
        return F.relu(torch.add(self.bn2(self.conv2(hidden)), kept), inplace=True)


class Bottleneck(nn.Module):
    """Convolutions of 1×1, 3×3 and 1×1, the last with four times the channels, beside the identity."""

    expansion = 4

    def __init__(self, inputs: int, channels: int, *, stride: int) -> None:
        super().__init__()
        outputs = channels * self.expansion
        self.conv1, self.bn1 = _normalised(inputs, channels, 1)
        self.conv2, self.bn2 = _normalised(channels, channels, 3, stride)
        self.conv3, self.bn3 = _normalised(channels, outputs, 1)
        self.downsample = _shortcut(inputs, outputs, stride)

    def forward(self, inputs: Tensor) -> Tensor:
        hidden = F.relu(self.bn1(self.conv1(inputs)), inplace=True)
        hidden = F.relu(self.bn2(self.conv2(hidden)), inplace=True)
        kept = inputs if self.downsample is None else self.downsample(inputs)
        return F.relu(torch.add(self.bn3(self.conv3(hidden)), kept), inplace=True)


def _normalised(inputs: int, outputs: int, kernel: int, stride: int = 1) -> tuple[nn.Conv2d, nn.BatchNorm2d]:
    convolution = nn.Conv2d(inputs, outputs, kernel, stride=stride, padding=kernel // 2, bias=False)
    return convolution, nn.BatchNorm2d(outputs)


def _shortcut(inputs: int, outputs: int, stride: int) -> nn.Sequential | None:
    same = inputs == outputs and stride == 1
    return None if same else nn.Sequential(*_normalised(inputs, outputs, 1, stride))
