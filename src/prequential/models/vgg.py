"""VGG (Simonyan & Zisserman 2015), plain, batch-normalised, and the VGG++ of the paper."""

from collections import OrderedDict
from typing import Any

import torch
from torch import Tensor, nn

from prequential.errors import PreqError, require_number
from prequential.models.shapes import Shape, require_image, scaled
from prequential.models.weight_standardisation import standardise_weights

CHANNELS = (64, 128, 256, 512, 512)
"""Of the 3×3 convolutions between one max-pooling and the next."""
CONVOLUTIONS = {11: (1, 1, 2, 2, 2), 13: (2, 2, 2, 2, 2), 16: (2, 2, 3, 3, 3), 19: (2, 2, 4, 4, 4)}
"""How many there are, by depth, which also counts the three dense layers of the original."""
LARGE_SIDE = 112
"""From this side on an image is large: 7×7 features and three dense layers, as in the original."""


def vgg(
    input_shape: Shape,
    output_size: int,
    *,
    depth: int = 16,
    width: float = 1.0,
    dropout: float | None = None,
    channel_dropout: tuple[float, float] = (0.0, 0.0),
    normalised: bool = False,
    biased: bool = True,
) -> nn.Sequential:
    """VGG-DEPTH: 3×3 convolutions with biases and no normalisation, max-pooled five times.

    Images with a side of 112 or more get dense layers of 4096 and 4096 before the classes; smaller ones are averaged
    to 512 features and have one dense layer. `dropout` stands behind each hidden dense layer of the large head
    (0.5 unless given) and before the dense layer of the small one (none unless given). Names of layers and weights are
    those of torchvision, whose weights load at 224×224. With `channel_dropout`, `normalised` and not `biased` it is
    what `vgg_bn` and `vggpp` ask for.

    Example:
        >>> sum(p.numel() for p in vgg((3, 32, 32), 10).parameters())
        14719818
    """
    require_image(f"vgg{depth}{'-bn' if normalised else ''}" if biased else "vggpp", input_shape, at_least=4)
    if depth not in CONVOLUTIONS:
        raise PreqError(f"VGG has a depth of {', '.join(map(str, CONVOLUTIONS))}, got {depth}")
    for share in (dropout or 0.0, *channel_dropout):
        require_number("dropout", share, at_least=0, below=1)
    layers: list[nn.Module] = []
    channels, height, breadth = input_shape
    large = min(height, breadth) >= LARGE_SIDE
    for stage, size in enumerate(scaled(number, width) for number in CHANNELS):
        dropped = channel_dropout[min(stage, 1)]
        for num_left in reversed(range(CONVOLUTIONS[depth][stage])):
            layers.append(nn.Conv2d(channels, size, 3, padding=1, bias=biased))
            channels = size
            if normalised:
                layers.append(nn.BatchNorm2d(channels))
            layers.append(nn.ReLU(inplace=True))
            if dropped and num_left:
                layers.append(nn.Dropout2d(dropped))
        if min(height, breadth) >= 2:
            # before ReLU: the same function, on a quarter of the values
            layers.insert(-1, nn.MaxPool2d(2))
            height, breadth = height // 2, breadth // 2
    side = 7 if large else 1
    even, window = not (height % side or breadth % side), (height // side, breadth // side)
    pooled = nn.AvgPool2d(window) if even else UnevenAverage(side, height, breadth)
    model = nn.Sequential(OrderedDict(features=nn.Sequential(*layers), avgpool=pooled, flatten=nn.Flatten()))
    if large:
        model.classifier = _dense(channels * 49, scaled(4096, width), output_size, 0.5 if dropout is None else dropout)
    else:
        if dropout:
            model.dropout = nn.Dropout(dropout)
        model.classifier = nn.Linear(channels, output_size)
    _initialise(model)
    return model


def vgg_bn(input_shape: Shape, output_size: int, *, width: float = 1.0, **settings: Any) -> nn.Sequential:
    """VGG-DEPTH with batch normalisation after each of its 3×3 convolutions.

    Settings are `depth` and `dropout`, those of `vgg`.

    Example:
        >>> sum(p.numel() for p in vgg_bn((3, 32, 32), 10).parameters())
        14728266
    """
    return vgg(input_shape, output_size, width=width, **settings, normalised=True)


def vggpp(input_shape: Shape, output_size: int, *, width: float = 1.0, **settings: Any) -> nn.Sequential:
    """VGG++ of the paper: VGG with batch normalisation and weight-standardised convolutions.

    The convolutions have no biases, which batch normalisation would take out again: at depth 16 that is 4,224
    parameters fewer than `vgg_bn`, so 14,724,042 at 32×32 with 10 classes and 138,361,768 at 224×224 with 1,000.
    `channel_dropout` drops whole channels behind every convolution but the last before a pooling: the first number up
    to the first pooling, the second from there on. Blier & Ollivier's VGG has 0.3 and 0.4 there. Further settings are
    `depth` and `dropout`, those of `vgg`.

    Example:
        >>> sum(p.numel() for p in vggpp((3, 32, 32), 10).parameters())
        14724042
    """
    plain = vgg(input_shape, output_size, width=width, **settings, normalised=True, biased=False)
    return standardise_weights(plain)


def _dense(features: int, hidden: int, output_size: int, dropout: float) -> nn.Sequential:
    layers: list[nn.Module] = []
    for size in (features, hidden):
        layers += [nn.Linear(size, hidden), nn.ReLU(inplace=True), nn.Dropout(dropout)]
    return nn.Sequential(*layers, nn.Linear(hidden, output_size))


class UnevenAverage(nn.Module):
    """What nn.AdaptiveAvgPool2d does where its windows overlap, as two products of matrices.

    Torch's own has no deterministic gradient on a GPU, and a code needs one.
    """

    def __init__(self, side: int, height: int, breadth: int) -> None:
        super().__init__()
        self.register_buffer("rows", _windows(side, height), persistent=False)
        self.register_buffer("columns", _windows(side, breadth).T.contiguous(), persistent=False)

    def forward(self, features: Tensor) -> Tensor:
        assert isinstance(self.rows, Tensor)
        assert isinstance(self.columns, Tensor)
        return self.rows @ features @ self.columns


def _windows(side: int, size: int) -> Tensor:
    """A row for each of `side` windows over `size` values, which averages what lies in it."""
    left, values = torch.arange(side)[:, None], torch.arange(size)
    inside = (values >= left * size // side) & (values < ((left + 1) * size + side - 1) // side)
    return inside.float() / inside.sum(dim=1, keepdim=True)


def _initialise(model: nn.Module) -> None:
    """Variances that ReLU keeps from layer to layer, for without batch normalisation nothing else does.

    The logits begin small, so that the first predictions are close to uniform.
    """
    for layer in model.modules():
        if isinstance(layer, nn.Conv2d | nn.Linear):
            nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)
    last = [layer for layer in model.modules() if isinstance(layer, nn.Linear)][-1]
    nn.init.normal_(last.weight, std=0.01)
