"""Wide residual networks (Zagoruyko & Komodakis 2016)."""

from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from prequential.errors import PreqError, require_count
from prequential.models.shapes import Shape, group, require_image, scaled


def wide_resnet(
    input_shape: Shape,
    output_size: int,
    *,
    depth: int = 28,
    widening: int = 10,
    width: float = 1.0,
    dropout: float = 0.0,
) -> nn.Module:
    """WideResNet-DEPTH-WIDENING: pre-activation blocks of two 3×3 convolutions at three resolutions.

    `depth` counts convolutions and is 6n + 4 for n blocks at each resolution; `widening` is the factor k on the
    16, 32 and 64 channels, `width` one more on all of them, and `dropout` stands between the convolutions of
    a block. Images of any size: the features are averaged over the last resolution.

    Example:
        >>> with torch.device("meta"):
        ...     model = wide_resnet((3, 32, 32), 10, depth=28, widening=10)
        >>> sum(p.numel() for p in model.parameters())
        36479194
    """
    require_image(f"wrn-{depth}-{widening}", input_shape, at_least=4)
    require_count("the widening of a wide residual network", widening)
    require_count("the depth of a wide residual network", depth, at_least=10)
    if depth % 6 != 4:
        raise PreqError(f"the depth of a wide residual network must be 6n + 4, got {depth}; try {nearest_depth(depth)}")
    channels = [scaled(16, width), *(scaled(size * widening, width) for size in (16, 32, 64))]
    return WideResNet(input_shape[0], output_size, channels, num_blocks=(depth - 4) // 6, dropout=dropout)


def nearest_depth(depth: int) -> int:
    """The depth 6n + 4 that is nearest.

    Example:
        >>> nearest_depth(27), nearest_depth(5)
        (28, 10)
    """
    return max(10, round((depth - 4) / 6) * 6 + 4)


class WideResNet(nn.Module):
    """Stem, three groups of blocks, batch normalisation, average, dense layer."""

    def __init__(
        self, input_channels: int, output_size: int, channels: list[int], *, num_blocks: int, dropout: float
    ) -> None:
        super().__init__()
        block = partial(WideBlock, dropout=dropout)
        self.conv1 = nn.Conv2d(input_channels, channels[0], 3, padding=1, bias=False)
        self.group1 = group(block, channels[0], channels[1], channels[1], num_blocks, stride=1)
        self.group2 = group(block, channels[1], channels[2], channels[2], num_blocks, stride=2)
        self.group3 = group(block, channels[2], channels[3], channels[3], num_blocks, stride=2)
        self.bn = nn.BatchNorm2d(channels[3])
        self.fc = nn.Linear(channels[3], output_size)
        for layer in self.modules():
            if isinstance(layer, nn.Conv2d):
                nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu")
        nn.init.zeros_(self.fc.bias)

    def forward(self, inputs: Tensor) -> Tensor:
        features: Tensor = self.group3(self.group2(self.group1(self.conv1(inputs))))
        logits: Tensor = self.fc(F.relu(self.bn(features), inplace=True).mean(dim=(2, 3)))
        return logits


class WideBlock(nn.Module):
    """x + conv(relu(bn(conv(relu(bn(x)))))); where the shape changes, a 1×1 convolution of relu(bn(x)) for x."""

    def __init__(self, inputs: int, outputs: int, *, stride: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.bn1 = nn.BatchNorm2d(inputs)
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.dropout = nn.Dropout(dropout)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        same = inputs == outputs and stride == 1
        self.shortcut = None if same else nn.Conv2d(inputs, outputs, 1, stride=stride, bias=False)

    def forward(self, inputs: Tensor) -> Tensor:
        activated = F.relu(self.bn1(inputs), inplace=True)
        hidden = self.dropout(F.relu(self.bn2(self.conv1(activated)), inplace=True))
        kept = inputs if self.shortcut is None else self.shortcut(activated)
        return torch.add(self.conv2(hidden), kept)
