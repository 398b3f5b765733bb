"""Published description lengths, for tables to stand beside. No torch.

Nats are as printed in the sources, that is with two to four digits.
"""

from collections import namedtuple
from dataclasses import dataclass
from typing import Any

PAPER = "Bornschein, Li & Hutter, Sequential Learning of Neural Networks for Prequential MDL, ICLR 2023"
BLIER = "Blier & Ollivier, The Description Length of Deep Learning Models, NeurIPS 2018"
SMALL_DATA = "Bornschein, Visin & Osindero, Small Data, Big Decisions, ICML 2020"

MOVED = "by their script, training images are shifted by up to ±20 % and flipped"
STOPS = "training stops by the loss on the very block that is coded then, which a decoder would have to be told"

LENGTHS = {"mnist": 60_000, "cifar10": 50_000, "cifar100": 50_000, "imagenet": 1_281_167}


@dataclass(frozen=True)
class Published:
    """A row of a published table."""

    data: str
    model: str
    method: str
    nats: float | None
    """None for ERM, which has no codelength."""
    errors: int | None
    heldout_loss: float | None
    heldout_error: float | None
    """A share, not percent."""
    flops: float | None
    source: str = PAPER
    note: str = ""
    """What must be known to compare with it; printed below a table that has the row."""

    @property
    def length(self) -> int:
        """Labels in the data set."""
        return LENGTHS[self.data]

    @property
    def label(self) -> str:
        """What a column of a table calls it."""
        return "paper" if self.source == PAPER else f"{self.source.split(',')[0]} {self.source[-4:]}"


_ROWS: tuple[tuple[str, str, tuple[Any, ...], tuple[Any, ...]], ...] = (
    ("mnist", "lenet", (4.4e3, 1362, 0.03, 0.010, 1.4e13), (0.03, 0.008, 1.5e13)),
    ("mnist", "mnistnet", (2.1e3, 643, 0.02, 0.005, 4.5e14), (0.02, 0.005, 3.2e14)),
    ("cifar10", "vggpp", (22.1e3, 6_600, 0.24, 0.058, 5.9e15), (0.21, 0.069, 8.0e15)),
    ("cifar10", "wrn-28-10", (22.9e3, 7_500, 0.23, 0.074, 3.7e16), (0.20, 0.067, 5.4e16)),
    ("cifar100", "vggpp", (93.7e3, 23_100, 1.14, 0.320, 4.2e15), (1.14, 0.281, 2.6e15)),
    ("cifar100", "wrn-28-10", (87.0e3, 22_300, 1.10, 0.303, 2.5e16), (1.08, 0.283, 4.3e16)),
    ("imagenet", "vggpp", (2.55e6, 549_000, 1.63, 0.368, 7.5e18), ()),
    ("imagenet", "resnet34", (2.35e6, 507_000, 1.30, 0.309, 1.6e18), (1.25, 0.299, 7.0e17)),
    ("imagenet", "resnet50", (2.21e6, 496_000, 1.29, 0.291, 8.5e17), (1.15, 0.287, 1.9e18)),
    ("imagenet", "resnet50", (1.93e6, 431_000, 1.06, 0.261, 4.0e18, PAPER, "tuned by hand"), ()),
    ("imagenet", "resnet101", (1.97e6, 447_000, 1.20, 0.282, 3.1e18), (1.10, 0.266, 4.6e18)),
    ("imagenet", "deit-s", (2.73e6, 588_000, 1.40, 0.317, 1.2e18), (1.22, 0.281, 4.8e18)),
)
"""Data and model; nats, errors, held-out loss, held-out error and FLOPs by MI/RS; the last three by ERM, if printed."""
TABLE_1 = (
    *(Published(data, model, "mi-rs", *code) for data, model, code, _ in _ROWS),
    *(Published(data, model, "erm", None, None, *erm) for data, model, _, erm in _ROWS if erm),
)
"""The paper's Table 1: the best run of each sweep by MI/RS, and ERM with the same sweep."""


Ablation = namedtuple("Ablation", "data model none calibration smoothing standardisation all")
"""A row of the paper's Table 2: nats by MI/RS without its three techniques (`none`), with each, and with `all` of
them: +FC, forward calibration; +LS, label smoothing; +WS, weight standardisation, None where the table has no figure;
+ALL."""
TABLE_2 = (
    Ablation("cifar10", "vggpp", 32.4e3, 31.8e3, 32.1e3, 26.4e3, 23.3e3),
    Ablation("cifar100", "vggpp", 103.4e3, 100.7e3, 102.8e3, 93.1e3, 89.1e3),
    Ablation("imagenet", "resnet50", 2.33e6, 2.27e6, 2.28e6, None, 2.21e6),
)
"""The paper's Table 2. For VGG++ its last column is not the figure of Table 1: longer for CIFAR-10, shorter for
CIFAR-100. The paper does not say why."""

EARLIER = (
    Published("mnist", "mnistnet", "ci-fs", 2.8e3, None, None, 0.005, None, BLIER, f"{MOVED}; {STOPS}"),
    Published("cifar10", "vggpp", "ci-fs", 31.4e3, None, None, 0.067, None, BLIER, f"a similar VGG; {MOVED}"),
    Published("imagenet", "resnet50", "ci-fs", 3.32e6, None, None, None, None, SMALL_DATA),
)
"""Earlier results that Table 1 cites."""


def published(data: str, model: str, method: str) -> Published | None:
    """The paper's row for this data, model and method, else the earlier one, else None.

    Example:
        >>> published("mnist", "lenet", "mi-rs").nats
        4400.0
    """
    key = (data, model, method)
    return next((row for row in (*TABLE_1, *EARLIER) if (row.data, row.model, row.method) == key), None)


def other_figure(row: Published) -> float | None:
    """The nats that the paper's Table 2 has for a row of its Table 1, where they are not the same.

    Example:
        >>> other_figure(published("cifar100", "vggpp", "mi-rs"))
        89100.0
    """
    key = (row.data, row.model) if row.source == PAPER and row.method == "mi-rs" else None
    return next((each.all for each in TABLE_2 if (each.data, each.model) == key and each.all != row.nats), None)
