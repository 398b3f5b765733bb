"""How a plan is executed: by which engine, in which precision. No torch."""

from dataclasses import dataclass
from typing import Any

from prequential.errors import PreqError
from prequential.settings import check_settings, setting

ENGINES = ("auto", "eager", "graph")
PRECISIONS = ("auto", "fp32", "bf16")
COMPILE_FROM = 30_000
"""Training steps from which compiling the network pays: it takes half a minute and saves a quarter of the rest."""


@dataclass(frozen=True, kw_only=True)
class Execution:
    """Choices that change how fast the numbers come, and their last digits.

    Example:
        >>> Execution().on("cuda", num_steps=100_000)
        Execution(engine='graph', precision='bf16', compiled=True, deterministic=False)
        >>> Execution().on("cpu", num_steps=100_000)
        Execution(engine='eager', precision='fp32', compiled=False, deterministic=False)
    """

    engine: str = setting("auto", choices=ENGINES)
    """"eager" (one operation at a time), "graph" (steps recorded once and replayed), or "auto": graph on a GPU."""
    precision: str = setting("auto", choices=PRECISIONS)
    """"fp32", "bf16" (networks compute in bfloat16; weights, optimizer and what is charged do not), or "auto":
    bf16 for the graph engine on a GPU."""
    compiled: bool | None = None
    """Whether torch.compile fuses the network's kernels (graph engine on a GPU). None: where a run is long enough."""
    deterministic: bool = False
    """Whether a GPU must give the same bits each time. A CPU always does."""

    def __post_init__(self) -> None:
        check_settings(self)
        if self.compiled and self.engine == "eager":
            raise PreqError("the eager engine compiles nothing; use engine graph, or leave compiling out")
        if self.compiled and self.deterministic:
            raise PreqError("compiled kernels may give other bits next time; leave out compiling or deterministic")

    def facts(self) -> dict[str, Any]:
        """As the file of a sweep holds it: what was not left to the device is named.

        Example:
            >>> Execution().facts(), Execution(deterministic=True).facts()["deterministic"]
            ({'engine': 'auto', 'precision': 'auto'}, True)
        """
        more = {"compiled": self.compiled, "deterministic": self.deterministic or None}
        named = {name: value for name, value in more.items() if value is not None}
        return {"engine": self.engine, "precision": self.precision} | named

    def on(self, device_type: str, *, num_steps: int, bfloat16: bool = True) -> "Execution":
        """What "auto" means on this kind of device, for a run of that many training steps.

        Args:
            device_type: "cpu", "cuda", …
            num_steps: on batches of the most common size.
            bfloat16: whether the device computes in it rather than emulating it.
        """
        on_gpu = device_type == "cuda"
        engine = self.engine if self.engine != "auto" else "graph" if on_gpu else "eager"
        graphs = on_gpu and engine == "graph"
        precision = self.precision if self.precision != "auto" else "bf16" if graphs and bfloat16 else "fp32"
        if self.compiled and not graphs:
            raise PreqError(f"compiling is for the graph engine on a GPU, this runs on {device_type}; leave it out")
        worth_it = num_steps >= COMPILE_FROM and not self.deterministic
        compiled = graphs and (worth_it if self.compiled is None else self.compiled)
        return Execution(engine=engine, precision=precision, compiled=compiled, deterministic=self.deterministic)
