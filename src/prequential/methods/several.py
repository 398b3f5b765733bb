"""What is asked of a method, and of a joint one of each. No torch."""

from prequential.methods.all_inputs import AllInputs
from prequential.methods.joint import Joint
from prequential.methods.method import Method


def for_inputs(method: Method, num_inputs: int) -> Method:
    """A method for data with so many inputs, of a joint one each: the number is put in where all are given."""
    if isinstance(method, Joint):
        return Joint.of([for_inputs(each, num_inputs) for each in method.methods])
    return method.of(num_inputs) if isinstance(method, AllInputs) else method


def num_study_steps(method: Method) -> int:
    """Steps of studies in its plan, of a joint one those of all.

    Example:
        >>> from prequential.methods import ReplayStreams
        >>> num_study_steps(AllInputs(method=ReplayStreams(), study_steps=5)), num_study_steps(ReplayStreams())
        (5, 0)
    """
    methods = method.methods if isinstance(method, Joint) else (method,)
    return sum(each.study_steps for each in methods if isinstance(each, AllInputs))
