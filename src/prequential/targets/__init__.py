"""What is coded at each position: a target. Each kind is one small class that knows everything about it. No torch.

Its loss and its tensors are the other half, a module of `prequential.learn` for each kind (`learn/classes.py`).
"""

from prequential.targets.classes import Classes
from prequential.targets.target import Target

__all__ = ["Classes", "Target"]
