"""Sweeps: many runs whose settings are drawn from a space, as one.

`prequential.sweep` is the function; what a space is written with is imported from here.
"""

from prequential.sweep.conduct import sweep
from prequential.sweep.conductor import SweepInterrupted, SweepProgress
from prequential.sweep.distributions import Choice, LogUniform, Uniform
from prequential.sweep.ray_executor import RayTasks
from prequential.sweep.spaces import SPACES, Space
from prequential.sweep.summary import Summary, TrialResult, summarise

__all__ = [
    "SPACES",
    "Choice",
    "LogUniform",
    "RayTasks",
    "Space",
    "Summary",
    "SweepInterrupted",
    "SweepProgress",
    "TrialResult",
    "Uniform",
    "summarise",
    "sweep",
]
