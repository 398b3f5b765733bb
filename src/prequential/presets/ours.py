"""Our settings: `default`, good on any machine, and `best`, the shortest codes we have found."""

from dataclasses import replace

from prequential.learn.recipe import Recipe
from prequential.methods import Pareto
from prequential.presets.preset import CIFAR, MNISTS, PHOTOGRAPHS, Preset, on_cpu, on_h200, replays

TABLE = Recipe(learning_rate=1e-3, ema_step_size=0.5, weight_decay=1e-2)
BEST_CIFAR = Recipe(
    learning_rate=2e-3,
    eps=1e-2,
    weight_decay=0.2,
    ema_step_size=3e-3,
    label_smoothing=0.02,
    augment=("flip", "shift:2"),
    average_flips=True,
    average_views=5,
)
GROWING = {"first_block": 8, "min_steps": 8}

OURS = (
    Preset(
        name="default",
        data=("csv:*",),
        description="tables: gentle steps, a fast average, four replays",
        recipe=TABLE,
        settings=replays(4, 16),
        reached=(on_cpu(20_558, "csv:elec.csv mlp2 --label label --order given", seeds=3),),
    ),
    Preset(
        name="default",
        data=(*CIFAR, *PHOTOGRAPHS, "cloc"),
        description="photographs: few replays and a large ε, which keeps deep nets tame while there is little data",
        recipe=Recipe(eps=1e-2),
    ),
    Preset(
        name="default",
        data=MNISTS,
        description="few replays, a learning rate that falls, a slow EMA with warm-up: good codes in a minute on a CPU",
        recipe=Recipe(full_rate_steps=3000, ema_step_size=3e-3),
        reached=(on_cpu(3104, "mnist lenet"),),
    ),
    Preset(
        name="default",
        description="few replays, fast steps that do not slow down, EMA warm-up: good codes in minutes on a CPU",
    ),
    Preset(
        name="best",
        data=("mnist",),
        model=("lenet",),
        description="sixty replays, a large ε, a learning rate that falls, blocks that grow",
        recipe=Recipe(learning_rate=2e-3, full_rate_steps=10_000, eps=1e-2, ema_step_size=3e-3),
        settings=replays(60, 32) | GROWING,
        reached=(on_h200(2817, "mnist lenet --preset best", standard_error=32, tried=9),),
    ),
    Preset(
        name="best",
        data=MNISTS,
        description="small affine changes, eighty replays, a learning rate that falls, blocks that grow",
        recipe=Recipe(learning_rate=1e-3, full_rate_steps=8000, ema_step_size=3e-3, augment=("affine",)),
        settings=replays(80, 32) | GROWING,
        reached=(on_h200(1199, "mnist smallconv --preset best", standard_error=21, tried=13),),
    ),
    Preset(
        name="plain",
        data=MNISTS,
        description="short codes without augmentation: forty replays, a learning rate that falls, blocks that grow",
        recipe=Recipe(learning_rate=1e-3, full_rate_steps=4000, ema_step_size=3e-3),
        settings=replays(40, 32) | GROWING,
        reached=(on_h200(1634, "mnist smallconv --preset plain", standard_error=18, tried=3),),
    ),
    Preset(
        name="best",
        data=("cifar10",),
        description="shift and cutout, averaged over flips and shifts, strong weight decay, eighty replays, a learning "
        "rate that falls, blocks that grow",
        recipe=replace(BEST_CIFAR, augment=("flip", "shift:2", "cutout:8"), full_rate_steps=5000, ema_step_size=1.5e-3),
        settings=replays(80, 64) | GROWING,
        reached=(on_h200(18154, "cifar10 vggpp --preset best", standard_error=42, tried=4),),
    ),
    Preset(
        name="best",
        data=("cifar100",),
        description="shift, averaged over flips and shifts, strong weight decay, sixty replays, blocks that grow",
        recipe=BEST_CIFAR,
        settings=replays(60, 64) | {"first_block": 16, "min_steps": 8},
        reached=(on_h200(85743, "cifar100 vggpp --preset best", standard_error=348, tried=4),),
    ),
    Preset(
        name="best",
        data=("csv:*",),
        description="tables in time order: as default, replaying what is recent more often (Pareto ages)",
        recipe=TABLE,
        settings=replays(4, 16) | {"age_law": Pareto(2000.0)},
        reached=(on_cpu(20_110, "csv:elec.csv mlp2 --label label --order given --preset best", seeds=3),),
    ),
    Preset(
        name="best",
        data=(*PHOTOGRAPHS, "cloc"),
        description="RandAugment and flips, averaged over flips, EMA warm-up",
        recipe=Recipe(
            learning_rate=1e-3,
            eps=1e-2,
            weight_decay=0.1,
            ema_step_size=3e-3,
            label_smoothing=0.01,
            augment=("flip", "randaugment"),
            average_flips=True,
        ),
        settings=replays(25, 128),
    ),
)
