"""LeNet-5, the way it is written today: ReLU and max-pooling."""

from torch import nn

from prequential.models.shapes import Shape, flat_size, require_image, scaled


def lenet(input_shape: Shape, output_size: int, *, width: float = 1.0) -> nn.Sequential:
    """Two 5×5 convolutions (6 channels, padded; 16), max-pooled, then dense layers of 120 and 84.

    Pooling stands before ReLU: the same function, on a quarter of the values.

    Example:
        >>> sum(p.numel() for p in lenet((1, 28, 28), 10).parameters())
        61706
    """
    require_image("lenet", input_shape, at_least=12)
    first, second, third, fourth = (scaled(size, width) for size in (6, 16, 120, 84))
    layers: list[nn.Module] = [nn.Conv2d(input_shape[0], first, 5, padding=2), nn.MaxPool2d(2), nn.ReLU()]
    layers += [nn.Conv2d(first, second, 5), nn.MaxPool2d(2), nn.ReLU(), nn.Flatten()]
    layers += [nn.Linear(flat_size(layers, input_shape), third), nn.ReLU()]
    layers += [nn.Linear(third, fourth), nn.ReLU(), nn.Linear(fourth, output_size)]
    return nn.Sequential(*layers)
