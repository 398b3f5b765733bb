"""Which of several learners study, and what they give to each other."""

from collections.abc import Iterable

from prequential.learn.all_inputs import FromAllInputs


def who_study(learners: Iterable[object]) -> list[FromAllInputs]:
    """Those among learners that study; of those who do the same study, the first does it for all."""
    found = [each for each in learners if isinstance(each, FromAllInputs) and each.given.study_steps]
    return [each for each in found if studies_first(each, found)]


def studies_first(learner: FromAllInputs, learners: Iterable[object]) -> bool:
    """Whether no learner before it among these does the same study."""
    others = (each for each in learners if isinstance(each, FromAllInputs))
    return next(each for each in others if each.study_identity == learner.study_identity) is learner


def share_study(learner: FromAllInputs, learners: Iterable[object]) -> None:
    """Give what one has studied to those who do the same study."""
    for each in learners:
        if isinstance(each, FromAllInputs) and each is not learner and each.study_identity == learner.study_identity:
            each.take_study(learner.studied)
