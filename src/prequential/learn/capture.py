"""Work recorded once and replayed: CUDA graphs, and a stand-in elsewhere that simply does the work again."""

import contextlib
import threading
import types
import warnings
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Generic, TypeVar

import torch

from prequential.learn.randomness import generators

Result = TypeVar("Result")
WARM_UPS = 3
"""Runs before a recording, in which libraries choose their kernels and get their memory."""
MAY_WAIT = threading.Lock()
"""Held by a thread that waits for a GPU beside the one that computes, and while something is recorded: waiting is
refused then, whichever thread does it."""


class Tape:
    """What recordings of one learner share, since they are never replayed at the same time: a stream, memory, and a
    generator for what draws."""

    stream: torch.cuda.Stream | None = None

    def __init__(self, device: torch.device) -> None:
        self.device = device
        if device.type == "cuda":
            with torch.cuda.device(device):
                self.stream, self.pool = torch.cuda.Stream(), torch.cuda.graph_pool_handle()  # type: ignore[no-untyped-call]

    @cached_property
    def generator(self) -> torch.Generator:
        """What is recorded inside `drawing` draws from it: on a GPU its own, elsewhere the one that modules draw from.
        A replay is told seed and offset through tensors of the generator, so replays at the same time share none."""
        shared = generators(self.device)[-1]
        return shared if self.stream is None else shared.clone_state()

    @contextlib.contextmanager
    def drawing(self) -> Iterator[None]:
        """Inside, its generator stands in for the one that modules draw from."""
        if self.stream is None:
            yield
            return
        shared = generators(self.device)[-1]
        before = shared.graphsafe_get_state()
        shared.graphsafe_set_state(self.generator)
        try:
            yield
        finally:
            shared.graphsafe_set_state(before)


class Captured(Generic[Result]):
    """A function of no arguments whose tensors stay where they are, recorded when it is made.

    Everything it reads and writes must exist beforehand or be made inside; what differs from one replay to the
    next is written into tensors it reads. On a GPU a replay is one launch, and it returns the same tensors each
    time: use them, or copy them, before the next. Whatever Python does besides is not done again.

    Args:
        work: the function. It runs a few times before it is recorded, so whoever calls puts back what it changes.
        tape: where to record.
    """

    def __init__(self, work: Callable[[], Result], tape: Tape) -> None:
        self._work, self._graph = work, None
        if tape.stream is None:
            return
        with MAY_WAIT, _choosing_kernels(), torch.cuda.device(tape.device):
            outside = torch.cuda.current_stream()
            torch.cuda.synchronize()  # kernels are timed, and other learners may be at work
            try:
                try:
                    with torch.cuda.stream(tape.stream):
                        for _ in range(WARM_UPS):
                            work()
                        with _refusing_to_wait():
                            work()
                finally:
                    torch.cuda.synchronize()  # what was begun must not go on while whoever called puts things back
                graph = torch.cuda.CUDAGraph()
                with torch.cuda.graph(graph, pool=tape.pool, stream=tape.stream, capture_error_mode="thread_local"):
                    self._result = work()
            finally:
                torch.cuda.set_stream(outside)  # a recording that breaks off leaves its own stream behind
        self._graph = graph

    def replay(self) -> Result:
        """Do the work."""
        if self._graph is None:
            return self._work()
        self._graph.replay()
        return self._result


def compiled(function: Callable[..., Result]) -> Callable[..., Result]:
    """The function with its kernels fused by torch.compile, which happens in the first call.

    Random numbers stay torch's own, so that dropout draws what it draws without compiling. Each call compiles
    a copy: torch keeps only a few variants of one function, and every learner is a variant. The function must not be
    wrapped by a decorator of torch, whose code all of them would share.
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
    with contextlib.ExitStack() as afterwards, warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="TensorFloat32 tensor cores")
        afterwards.callback(setattr, torch.backends.cudnn, "benchmark", torch.backends.cudnn.benchmark)
        torch.backends.cudnn.benchmark = not torch.are_deterministic_algorithms_enabled()
        yield


@contextlib.contextmanager
def _refusing_to_wait() -> Iterator[None]:
    """Inside, work that waits for the GPU fails: better here than in a recording, which it would break off."""
    before = torch.cuda.get_sync_debug_mode()
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Synchronization debug mode is a prototype")
            torch.cuda.set_sync_debug_mode("error")
        yield
    finally:
        torch.cuda.set_sync_debug_mode(before)
