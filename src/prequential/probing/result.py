"""What probing found: a ranking of representations by the description length of the labels."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from prequential.conditioning import ALL_INPUTS
from prequential.probing.coding import Code, Floats

WINDOW = 100
"""Labels over which the rolling loss is averaged."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Probed:
    """One representation, and the code of the labels given it."""

    name: str
    """Network and layer, marked where the network was trained on some of these examples."""
    network: str
    layer: str
    training: str
    """What is known of what the network was trained on."""
    share_seen: float | None
    """The share of these examples that it was trained on; None where that is not known."""
    num_features: int
    num_classes: int
    code: Code
    control: Code | None = None
    """The code of the control labels, where one was asked for."""

    @property
    def codelength(self) -> float:
        """Nats of all labels."""
        return float(self.code.nats.sum())

    @property
    def nats_per_label(self) -> float:
        """Their mean."""
        return self.codelength / len(self.code.nats)

    @property
    def control_codelength(self) -> float | None:
        """Nats of the control labels; None where there is no control."""
        return None if self.control is None else float(self.control.nats.sum())

    @property
    def data_efficiency(self) -> int | None:
        """The first number of labels after which the last hundred cost less than ½ ln C each; None if they never do."""
        return first_below(self.code.nats, 0.5 * math.log(self.num_classes))

    def weights_of_readouts(self) -> dict[str, Floats]:
        """The weight of each readout along the labels: the experts of one (its rates, its scales) together."""
        kinds = [expert.partition(" ")[0] for expert in self.code.experts]
        return {name: self.code.weights[:, [kind == name for kind in kinds]].sum(1) for name in dict.fromkeys(kinds)}

    def in_charge(self) -> list[tuple[int, str]]:
        """The readout with most of the weight in each stretch of the labels, and the number of labels it begins after.

        The stretches double: the first eighth, the second, the second quarter, the second half.
        """
        after, readouts = self.code.weights_after, self.weights_of_readouts()
        length, leaders = len(self.code.nats), list[tuple[int, str]]()
        for start, stop in pairwise([0, *(length // part for part in (8, 4, 2, 1))]):
            here = (after > start) & (after <= stop)
            if here.any():
                leader = max(readouts, key=lambda name: float(readouts[name][here].mean()))
                leaders.append((start, leader))
        return leaders

    def as_json(self, best: float) -> dict[str, Any]:
        """Plain values."""
        told = {name: getattr(self, name) for name in ("name", "network", "layer", "training", "share_seen")}
        alone = self.code.expert_nats.sum(0).tolist()
        return told | {
            "num_features": self.num_features,
            "codelength_nats": self.codelength,
            "nats_per_label": self.nats_per_label,
            "log_odds_of_best": self.codelength - best,
            "data_efficiency": self.data_efficiency,
            "in_charge": [{"after": after, "readout": readout} for after, readout in self.in_charge()],
            "experts": dict(zip(self.code.experts, alone, strict=True)),
            "control_nats": self.control_codelength,
        }


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Probing:
    """Representations from the shortest code of the labels to the longest."""

    data: str
    length: int
    num_classes: int
    ranking: tuple[Probed, ...]
    readouts: tuple[str, ...]
    is_online: bool
    """False: coded block by block, as Voita and Titov do."""
    frequencies_nats: float
    """What the frequencies of the labels cost, which need no features."""
    conditioned_on: str = ALL_INPUTS
    """Features are standardised over all inputs."""

    @property
    def best(self) -> Probed:
        """The representation with the shortest code."""
        return self.ranking[0]

    def log_odds(self, probed: Probed) -> float:
        """ln of the odds of the best against it: the nats between them."""
        return probed.codelength - self.best.codelength

    def __repr__(self) -> str:
        told = f"{self.best.name}, {self.best.codelength:,.1f} nats"
        return f"<Probing of {self.length:,} labels of {self.data}: best of {len(self.ranking)} is {told}>"

    def as_json(self) -> dict[str, Any]:
        """The object that `--json` prints."""
        same = {name: getattr(self, name) for name in ("data", "length", "num_classes", "conditioned_on")}
        return same | {
            "readouts": list(self.readouts),
            "code": "online" if self.is_online else "blocks",
            "uniform_nats": self.length * math.log(self.num_classes),
            "frequencies_nats": self.frequencies_nats,
            "ranking": [each.as_json(self.best.codelength) for each in self.ranking],
        }

    @staticmethod
    def ranked(probed: Sequence[Probed]) -> tuple[Probed, ...]:
        """From the shortest code to the longest."""
        return tuple(sorted(probed, key=lambda each: each.codelength))


def first_below(nats: np.ndarray[Any, np.dtype[np.float64]], level: float, window: int = WINDOW) -> int | None:
    """The first number of labels after which the mean of the last `window` is below a level.

    Example:
        >>> first_below(np.array([2.0, 2.0, 0.0, 0.0]), 1.5, window=2), first_below(np.ones(4), 0.5, window=2)
        (3, None)
    """
    sums = np.cumsum(np.append(0.0, nats))
    if len(nats) < window:
        return None
    is_below = sums[window:] - sums[:-window] < level * window
    return int(is_below.argmax()) + window if is_below.any() else None
