"""A small convolutional network of our own, which learns small images fast."""

from torch import nn

from prequential.models.shapes import Shape, flat_size, require_image, scaled


def smallconv(input_shape: Shape, output_size: int, *, width: float = 1.0, dropout: float = 0.5) -> nn.Sequential:
    """3×3 convolutions 32-32-pool-64-64-pool and a dense layer of 256, batch-normalised, with dropout.

    Example:
        >>> sum(p.numel() for p in smallconv((1, 28, 28), 10).parameters())
        871082
    """
    require_image("smallconv", input_shape, at_least=4)
    narrow, broad, dense = (scaled(size, width) for size in (32, 64, 256))
    layers: list[nn.Module] = []
    channels = input_shape[0]
    for stage in (narrow, broad):
        for _ in range(2):
            layers += [nn.Conv2d(channels, stage, 3, padding=1, bias=False), nn.BatchNorm2d(stage), nn.ReLU()]
            channels = stage
        layers += [nn.MaxPool2d(2), nn.Dropout(dropout / 2)]
    layers.append(nn.Flatten())
    layers += [nn.Linear(flat_size(layers, input_shape), dense, bias=False), nn.BatchNorm1d(dense), nn.ReLU()]
    return nn.Sequential(*layers, nn.Dropout(dropout), nn.Linear(dense, output_size))
