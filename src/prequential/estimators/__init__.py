"""Learners that are no networks: classifiers of scikit-learn and river, chosen by the beginning of a model's name.

To add a library, say in `prequential.libraries` where its classifiers are, and list its learner here.
"""

from prequential.estimators.label_by_label import LabelByLabel
from prequential.estimators.refitted import Refitted
from prequential.estimators.without_network import WithoutNetwork
from prequential.libraries import prefix_of

LEARNERS: dict[str, type[WithoutNetwork]] = {"sklearn:": Refitted, "river:": LabelByLabel}
"""Who learns with a model, by the beginning of its name."""


def learner_kind(make_model: object) -> type[WithoutNetwork] | None:
    """Who learns with a model that is no network; None for networks.

    Example:
        >>> learner_kind("river:forest.ARFClassifier").__name__, learner_kind("lenet")
        ('LabelByLabel', None)
    """
    prefix = prefix_of(make_model)
    return None if prefix is None else LEARNERS[prefix]


__all__ = ["LEARNERS", "LabelByLabel", "Refitted", "WithoutNetwork", "learner_kind"]
