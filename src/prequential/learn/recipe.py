"""How a learner learns: every setting of training, checked. No torch."""

from dataclasses import dataclass

from prequential.augmentations import movements, require_augmentations
from prequential.errors import PreqError
from prequential.settings import check_settings, setting, with_setting

OPTIMIZERS = ("adamw", "rmsprop", "sgd", "muon")
BATCH_STATISTICS = ("averaged", "averaged-twice", "raw")


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """The settings of training. The defaults are good for small images and a few replays.

    Example:
        >>> Recipe(learning_rate=1e-3).ema_step_size
        0.01
    """

    optimizer: str = setting("adamw", choices=OPTIMIZERS)
    """adamw, rmsprop, sgd or muon.

    muon: hidden layers by momentum that is made orthogonal, which takes more work; the rest by adamw."""
    learning_rate: float = setting(3e-3, above=0, flag="lr", short="lr", stack="vector")
    """Learning rate of the weights, constant over the whole sequence unless it is told to fall."""
    full_rate_steps: int = setting(0, at_least=0, hint="all", stack="vector")
    """From this training step on the learning rate falls as 1/sqrt(step).

    With n₀ of them the rate of step n > n₀ is multiplied by √(n₀/n). 0: constant."""
    eps: float = setting(1e-4, above=0, short="eps", stack="vector")
    """Epsilon of adamw (also within muon) and rmsprop; it matters as much as the learning rate."""
    weight_decay: float = setting(0.1, at_least=0, short="decay", stack="vector")
    """Weight decay.

    Decoupled in every optimizer: θ ← θ − (learning rate · weight decay)·θ. Not for the temperature."""
    momentum: float = setting(0.9, at_least=0, below=1, stack="vector")
    """Momentum of sgd, rmsprop and muon, beta1 of adamw."""
    ema_step_size: float = setting(0.01, above=0, at_most=1, flag="ema", short="ema", stack="vector")
    """Step size of the weight average that predicts; 1 switches it off.

    With α of it, after each step θ̄ ← θ̄ + α(θ − θ̄), and θ̄ predicts."""
    ema_warmup: bool = setting(True, off="Start the average slowly, as the paper does.")
    """Average over about the last fifth of the steps while there are few: α_n = max(α, min(1, 5/n))."""
    batch_statistics: str = setting("averaged", choices=BATCH_STATISTICS, called="kind of batch statistics")
    """Batch-norm statistics that predict: averaged (by the EMA alone), averaged-twice (by each layer, then by the EMA)
    or raw (by each layer alone).

    averaged: they follow each batch and the EMA alone averages them (with an α of at most 0.1). averaged-twice: each
    layer averages its own and the EMA averages that, which lags behind and spoils the first predictions. raw: each
    layer's own average, beside weights that the EMA averages."""
    label_smoothing: float = setting(1e-3, at_least=0, below=1, short="smoothing", stack="vector")
    """Smoothing of the training targets; what is charged never sees it."""
    augment: tuple[str, ...] = setting((), check=require_augmentations, hint="none")
    """Augmentations of training images, in order: flip, shift:N, cutout:N, affine, elastic, resized-crop, jitter,
    grey, randaugment ..."""
    average_flips: bool = setting(False)
    """Predict from each image and its mirror image together: from the mean of their logits."""
    average_views: int = setting(1, at_least=1)
    """Predict from so many views of each image together, moved as training moves them (an odd number).

    From the mean of the logits of the image and of views of it, moved as `augment` moves images (shift, affine)."""

    def __post_init__(self) -> None:
        check_settings(self)
        if self.average_views % 2 == 0:
            raise PreqError(f"average_views must be odd (the image, and pairs of views), got {self.average_views}")
        if self.average_views > 1 and not movements(self.augment):
            raise PreqError("average_views moves images as training does; add shift:N or affine to augment")


VECTORS = with_setting(Recipe, stack="vector")
"""Settings that are numbers along a stack, one for each member."""
SHARED = with_setting(Recipe, stack="shared")
"""Settings that decide what is computed, and not only with which numbers: the members of a stack share them."""
