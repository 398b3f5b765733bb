"""Where the time of a training step goes, by class of kernel."""

import re
from collections import defaultdict
from collections.abc import Callable

import torch
from torch.profiler import ProfilerActivity, profile

CLASSES = {
    "optimizer and EMA": r"multi_tensor_apply|triton_for_fused|foreach",
    "weight standardisation": r"layer_norm|RowwiseMoments",
    "pooling": r"max_pool|avg_pool|pool2d",
    "normalisation": r"batch_norm",
    "convolution": r"xmma|implicit_gemm|ImplicitGemm|cudnn|convolve|wgrad|dgrad|AddPadding|convolution",
    "dense layers": r"gemm|nvjet|cutlass|splitK",
    "gather and augmentation": r"index_select|flip|rshift|gather",
}
"""Class → the names of its kernels. A kernel of several, fused by the compiler, counts for the first."""


def by_class(work: Callable[[], object], num_steps: int) -> dict[str, float]:
    """Microseconds of GPU time per step in each class; `work` does `num_steps` of them."""
    found: dict[str, float] = defaultdict(float)
    for name, microseconds in kernels(work).items():
        which = next((c for c, pattern in CLASSES.items() if re.search(pattern, name)), "other")
        found[which] += microseconds / num_steps
    return found


def kernels(work: Callable[[], object]) -> dict[str, float]:
    """Microseconds of GPU time by kernel."""
    work()
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CUDA, ProfilerActivity.CPU]) as profiler:
        work()
        torch.cuda.synchronize()
    found: dict[str, float] = defaultdict(float)
    for event in profiler.events() or ():
        if str(event.device_type).endswith("CUDA"):
            found[event.name] += event.device_time
    return found
