"""MnistNet: the VGG-like network that Blier & Ollivier (2018) used for MNIST."""

from torch import nn

from prequential.models.shapes import Shape, flat_size, require_image, scaled

PAIRS = ((32, 0.6), (64, 0.8), (128, 0.8), (256, 0.8))
"""Channels of each pair of convolutions, and its share of the dropout between the two."""
DENSE = 256


def mnistnet(input_shape: Shape, output_size: int, *, width: float = 1.0, dropout: float = 0.5) -> nn.Sequential:
    """Blier & Ollivier's 3×3 convolutions 32-32-64-64-128-128-256-256, batch-normalised, with dropout of channels.

    Theirs, by their script, are the layers and their order, the rates and the biases; between the dense layers there
    is nothing but dropout. Initial weights and constants of batch normalisation are PyTorch's instead of Keras's;
    `width`, other rates and images of other sizes are ours. They train with shifts of up to ±20 % and flips, which
    here are no part of a network but of a recipe (`augment`).

    Args:
        input_shape: of images with at least 16×16 pixels, which are halved four times.
        output_size: of the labels.
        width: scales channels and dense layers.
        dropout: the rate before each dense layer. Between the convolutions of a pair whole channels are dropped, at
            0.6 of it in the first pair and at 0.8 in the others: at 0.3 and 0.4.

    Example:
        >>> sum(p.numel() for p in mnistnet((1, 28, 28), 10).parameters())
        1307754
    """
    require_image("mnistnet", input_shape, at_least=16)
    layers: list[nn.Module] = []
    channels, dense = input_shape[0], scaled(DENSE, width)
    for size, share in PAIRS:
        stage = scaled(size, width)
        layers += [nn.Conv2d(channels, stage, 3, padding=1), nn.BatchNorm2d(stage), nn.ReLU()]
        layers += [nn.Dropout2d(share * dropout)]
        layers += [nn.Conv2d(stage, stage, 3, padding=1), nn.BatchNorm2d(stage), nn.ReLU(), nn.MaxPool2d(2)]
        channels = stage
    layers.append(nn.Flatten())
    layers += [nn.Dropout(dropout), nn.Linear(flat_size(layers, input_shape), dense)]
    layers += [nn.Dropout(dropout), nn.Linear(dense, dense)]
    return nn.Sequential(*layers, nn.Dropout(dropout), nn.Linear(dense, output_size))
