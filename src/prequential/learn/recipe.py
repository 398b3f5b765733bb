"""How a learner learns: every setting of training, checked. No torch."""

from dataclasses import dataclass

from prequential.augmentations import movements, require_augmentations
from prequential.errors import PreqError, require_count, require_flag, require_number, unknown_name
from prequential.settings import use_plain_numbers

OPTIMIZERS = ("adamw", "rmsprop", "sgd")
BATCH_STATISTICS = ("averaged", "averaged-twice", "raw")


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """The settings of training. The defaults are good for small images and a few replays.

    Example:
        >>> Recipe(learning_rate=1e-3).ema_step_size
        0.01
    """

    optimizer: str = "adamw"
    """"adamw", "rmsprop" or "sgd"."""
    learning_rate: float = 3e-3
    """Of the weights; constant over the whole sequence unless `full_rate_steps` says otherwise."""
    full_rate_steps: int = 0
    """From this training step n₀ on the learning rate of step n is multiplied by √(n₀/n). 0: constant."""
    eps: float = 1e-4
    """ε of AdamW and RMSProp; it matters as much as the learning rate."""
    weight_decay: float = 0.1
    """Decoupled in every optimizer: θ ← θ − (learning rate · weight decay)·θ. Not for the temperature."""
    momentum: float = 0.9
    """Momentum of SGD and RMSProp, β₁ of AdamW."""
    ema_step_size: float = 0.01
    """α: after each step θ̄ ← θ̄ + α(θ − θ̄), and θ̄ predicts. 1 switches averaging off."""
    ema_warmup: bool = True
    """Average over about the last fifth of the steps while there are few: α_n = max(α, min(1, 5/n))."""
    batch_statistics: str = "averaged"
    """The batch-norm statistics that predict. "averaged": they follow each batch and the EMA alone averages them (with
    an α of at most 0.1). "averaged-twice": each layer averages its own and the EMA averages that, which lags behind
    and spoils the first predictions. "raw": each layer's own average, beside weights that the EMA averages."""
    label_smoothing: float = 1e-3
    """Smoothing of the training targets; what is charged never sees it."""
    augment: tuple[str, ...] = ()
    """Augmentations of training images, in order: "flip", "shift:2", "cutout:8", "affine", "randaugment", …"""
    average_flips: bool = False
    """Predict from the mean of the logits of each image and its mirror image."""
    average_views: int = 1
    """Predict from the mean of the logits of each image and of views of it, moved as `augment` moves images
    (shift, affine): this many in all, an odd number."""

    def __post_init__(self) -> None:
        use_plain_numbers(self)
        require_augmentations(self.augment)
        object.__setattr__(self, "augment", tuple(self.augment))
        require_flag("average_flips", self.average_flips)
        self._require_views()
        if self.optimizer not in OPTIMIZERS:
            raise unknown_name("optimizer", self.optimizer, OPTIMIZERS)
        require_number("learning_rate", self.learning_rate, above=0)
        require_count("full_rate_steps", self.full_rate_steps, at_least=0)
        require_number("eps", self.eps, above=0)
        require_number("weight_decay", self.weight_decay, at_least=0)
        require_number("momentum", self.momentum, at_least=0, below=1)
        require_flag("ema_warmup", self.ema_warmup)
        if self.batch_statistics not in BATCH_STATISTICS:
            raise unknown_name("kind of batch statistics", self.batch_statistics, BATCH_STATISTICS)
        require_number("ema_step_size", self.ema_step_size, above=0, at_most=1)
        require_number("label_smoothing", self.label_smoothing, at_least=0, below=1)

    def _require_views(self) -> None:
        require_count("average_views", self.average_views)
        if self.average_views % 2 == 0:
            raise PreqError(f"average_views must be odd (the image, and pairs of views), got {self.average_views}")
        if self.average_views > 1 and not movements(self.augment):
            raise PreqError("average_views moves images as training does; add shift:N or affine to augment")
