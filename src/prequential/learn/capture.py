"""Work recorded once and replayed: CUDA graphs, and a stand-in elsewhere that simply does the work again."""

import contextlib
import types
import warnings
from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

import torch

Result = TypeVar("Result")
WARM_UPS = 3
"""Runs before a recording, in which libraries choose their kernels and get their memory."""


class Captured(Generic[Result]):
    """A function of no arguments whose tensors stay where they are, recorded on its first use.

    Everything it reads and writes must exist beforehand or be made inside; what differs from one replay to the
    next is written into tensors it reads. On a GPU a replay is one launch, and it returns the same tensors each
    time: use them, or copy them, before the next.

    Args:
        work: the function. It runs a few times before it is recorded, so whoever calls puts back what it changes.
        device: where its tensors are.
        pool: memory shared with other recordings, from `shared_pool`.
    """

    def __init__(self, work: Callable[[], Result], device: torch.device, pool: Any = None) -> None:
        self._work, self._device, self._graph = work, device, None
        if device.type != "cuda":
            return
        with _choosing_kernels(), torch.cuda.device(device):
            side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                for _ in range(WARM_UPS):
                    work()
            torch.cuda.current_stream().wait_stream(side)
            torch.cuda.synchronize()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, pool=pool):
                self._result = work()
        self._graph = graph

    def replay(self) -> Result:
        """Do the work."""
        if self._graph is None:
            return self._work()
        self._graph.replay()
        return self._result


def shared_pool(device: torch.device) -> Any:
    """Memory that several recordings may share, if they are never replayed at the same time."""
    return torch.cuda.graph_pool_handle() if device.type == "cuda" else None


def compiled(function: Callable[..., Result]) -> Callable[..., Result]:
    """The function with its kernels fused by torch.compile, which happens in the first call.

    Random numbers stay torch's own, so that dropout draws what it draws without compiling. Each call compiles
    a copy: torch keeps only a few variants of one function, and every learner is a variant.
    """
    owner = getattr(function, "__self__", None)
    plain = getattr(function, "__func__", function)
    copy = types.FunctionType(
        plain.__code__.replace(), plain.__globals__, plain.__name__, plain.__defaults__, plain.__closure__
    )
    bound = copy if owner is None else types.MethodType(copy, owner)
    return torch.compile(bound, dynamic=False, options={"fallback_random": True})


@contextlib.contextmanager
def _choosing_kernels() -> Iterator[None]:
    """Inside, cuDNN measures which of its kernels is fastest, where bits need not be the same each time."""
    before = torch.backends.cudnn.benchmark
    torch.backends.cudnn.benchmark = not torch.are_deterministic_algorithms_enabled()
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="TensorFloat32 tensor cores")
            yield
    finally:
        torch.backends.cudnn.benchmark = before
