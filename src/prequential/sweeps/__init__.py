"""Sweeps: many runs whose settings are drawn from a space, as one."""

from prequential.sweeps.conduct import SweepInterrupted, SweepProgress
from prequential.sweeps.entry import sweep
from prequential.sweeps.ray_executor import RayTasks
from prequential.sweeps.sampling import Between, Choice, LogUniform, Space
from prequential.sweeps.spaces import SPACES
from prequential.sweeps.summary import Summary, TrialResult, summarise

__all__ = [
    "SPACES",
    "Between",
    "Choice",
    "LogUniform",
    "RayTasks",
    "Space",
    "Summary",
    "SweepInterrupted",
    "SweepProgress",
    "TrialResult",
    "summarise",
    "sweep",
]
