"""The networks that An et al. (2020) made for MNIST: convolutions without padding or pooling, and one dense layer."""

from torch import nn

from prequential.models.shapes import Shape, flat_size, require_image, scaled

CHANNELS = {
    3: (32, 48, 64, 80, 96, 112, 128, 144, 160, 176),
    5: (32, 64, 96, 128, 160),
    7: (48, 96, 144, 192),
}
"""By the side of the kernel, that of each convolution."""


def simplecnn(input_shape: Shape, output_size: int, *, kernel_size: int, width: float = 1.0) -> nn.Sequential:
    """An et al.'s convolutions without padding or pooling, batch-normalised, their logits too.

    Their M3, M5 and M7, by their code: no layer but the normalisations has a bias, and nothing shrinks the image but
    the kernels, by k − 1 a layer. They train on images that are turned by up to 20° and moved by up to 20 % of a side,
    which here is no part of a network but of a recipe (`augment`). `width`, and images of other sizes, are ours.

    Args:
        input_shape: of images with at least 21×21 pixels, or 25×25 for kernels of 7×7.
        output_size: of the labels.
        kernel_size: of all convolutions: 3, 5 or 7.
        width: scales the channels.

    Example:
        >>> [sum(p.numel() for p in simplecnn((1, 28, 28), 10, kernel_size=k).parameters()) for k in (3, 5, 7)]
        [1124180, 1128180, 2291972]
    """
    sizes = [scaled(size, width) for size in CHANNELS[kernel_size]]
    require_image(f"simplecnn{kernel_size}", input_shape, at_least=len(sizes) * (kernel_size - 1) + 1)
    layers: list[nn.Module] = []
    channels = input_shape[0]
    for size in sizes:
        layers += [nn.Conv2d(channels, size, kernel_size, bias=False), nn.BatchNorm2d(size), nn.ReLU()]
        channels = size
    layers.append(nn.Flatten())
    dense = nn.Linear(flat_size(layers, input_shape), output_size, bias=False)
    return nn.Sequential(*layers, dense, nn.BatchNorm1d(output_size))
