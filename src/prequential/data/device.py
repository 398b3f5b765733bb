"""Small arrays on their way to a device."""

import numpy as np
import torch
from numpy.typing import NDArray


def send_to(device: torch.device, values: NDArray[np.int64]) -> torch.Tensor:
    """The values on a device. A GPU is not waited for: they travel through pinned memory, in their turn.

    Example:
        >>> send_to(torch.device("cpu"), np.arange(2))
        tensor([0, 1])
    """
    tensor = torch.from_numpy(values)
    return tensor.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else tensor.to(device)
