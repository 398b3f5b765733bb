"""RGB-MNIST: three random MNIST digits as the channels of one image; the label is the red one's.

Green and blue say nothing about the label, so a model that is given only red should have the shorter
code. Conditioning on fewer channels leaves the others out.
"""

from dataclasses import replace

import numpy as np
import torch

from prequential.data.sequence import ArraySequence
from prequential.data.sources.mnist import mnist
from prequential.data.sources.request import Request
from prequential.rng import derive, integers_below

CONDITIONINGS = ("R", "RG", "RGB")
NUM_EXAMPLES, NUM_HELDOUT = 100_000, 10_000


def rgb_mnist(request: Request) -> ArraySequence:
    """The examples, conditioned on the channels behind the colon (default RGB)."""
    channels = request.argument or "RGB"
    digits = mnist(replace(request, order_seed=None))
    assert digits.heldout is not None
    seed = request.options.data_seed or 0
    train = _mixed(digits, request.options.examples or NUM_EXAMPLES, len(channels), derive(seed, "rgb-mnist"))
    held = _mixed(digits.heldout, NUM_HELDOUT, len(channels), derive(seed, "rgb-mnist held-out"))
    data = replace(train, name=request.name, source=request.source, heldout=replace(held, name="held-out"))
    return request.ordered(data)


def _mixed(digits: ArraySequence, length: int, num_channels: int, key: int) -> ArraySequence:
    """Which digits are put together depends on the seed alone, not on how many channels are kept."""
    chosen = torch.from_numpy(integers_below(len(digits), key, np.arange(3 * length)).reshape(length, 3))
    images = digits.stored_inputs[:, 0][chosen[:, :num_channels].reshape(-1)]
    return ArraySequence(
        images.reshape(length, num_channels, *images.shape[1:]),
        digits.stored_labels[chosen[:, 0]],
        digits.num_classes,
        torch.arange(length),
        examples=chosen,
    )
