"""The published figures: as printed, as README and results quote them, and what our presets use beyond them."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from prequential.cli.show import print_result
from prequential.presets import find_preset
from prequential.reference import TABLE_1, TABLE_2, other_figure, published
from prequential.sweeps import SPACES
from prequential.sweeps.sampling import Choice, Distribution

from ..records import made_record

ROOT = Path(__file__).parents[2]
PAGES = (ROOT / "README.md", ROOT / "docs" / "results.md")
PRINTED = """
    CIFAR-10 & VGG++ & 32.4k & 31.8k & 32.1k & 26.4k & 23.3K
    CIFAR-100 & VGG++ & 103.4k & 100.7k & 102.8k & 93.1k & 89.1k
    ImageNet & ResNet50 & 2.33M & 2.27M & 2.28M & & 2.21M
"""
"""Table 2 as the paper prints it, without the differences in brackets."""


def number(text: str) -> float | None:
    factors = {"K": 1e3, "M": 1e6}
    return float(text[:-1]) * factors[text[-1].upper()] if text else None


def test_table_2_is_the_papers() -> None:
    names = {"CIFAR-10": "cifar10", "CIFAR-100": "cifar100", "ImageNet": "imagenet", "VGG++": "vggpp"}
    rows = [[cell.strip() for cell in line.split("&")] for line in PRINTED.strip().splitlines()]
    assert [(each.data, each.model) for each in TABLE_2] == [
        (names[data], names.get(model, model.lower())) for data, model, *_ in rows
    ]
    for each, (_, _, *cells) in zip(TABLE_2, rows, strict=True):
        assert tuple(each)[2:] == pytest.approx(tuple(map(number, cells)))


def test_every_row_of_table_2_is_about_a_row_of_table_1() -> None:
    found = {
        (row.data, row.model): other_figure(row)
        for row in TABLE_1
        if row.nats is not None and (row.data, row.model) in {(each.data, each.model) for each in TABLE_2}
    }
    first = {key: published(*key, "mi-rs") for key in found}
    assert {key: row.nats for key, row in first.items() if row is not None} == {
        ("cifar10", "vggpp"): 22_100, ("cifar100", "vggpp"): 93_700, ("imagenet", "resnet50"): 2_210_000,
    }  # fmt: skip
    assert [other_figure(row) for row in first.values() if row is not None] == [23_300, 89_100, None]
    for key in (("mnist", "lenet", "mi-rs"), ("cifar100", "vggpp", "erm"), ("imagenet", "resnet50", "ci-fs")):
        row = published(*key)
        assert row is not None
        assert other_figure(row) is None


def test_both_figures_of_the_paper_stand_below_a_run(capsys: pytest.CaptureFixture[str]) -> None:
    record = made_record([1.0] * 50_000, num_classes=100)
    model = record.model | {"name": "vggpp"}
    environment = {"device": "cpu", "threads": 1, "torch": "2"}
    record = replace(record, data=record.data | {"name": "cifar100"}, model=model, environment=environment)
    print_result(record)
    said = capsys.readouterr().out
    assert "93,700" in said
    assert "the paper's Table 2 has 89,100 nats for the same data and model" in said
    print_result(replace(record, model=model | {"name": "wrn-28-10"}))
    said = capsys.readouterr().out
    assert "87,000" in said
    assert "Table 2" not in said


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
@pytest.mark.parametrize("data", ["cifar10", "cifar100"])
def test_the_results_name_all_the_papers_figures(data: str, page: Path) -> None:
    title = {"cifar10": "CIFAR-10", "cifar100": "CIFAR-100"}[data]
    line = next(line for line in page.read_text().splitlines() if line.startswith(f"| {title}, VGG++, `best`"))
    vgg, wide = published(data, "vggpp", "mi-rs"), published(data, "wrn-28-10", "mi-rs")
    assert vgg is not None
    assert wide is not None
    for nats in (vgg.nats, other_figure(vgg), wide.nats):
        assert f"{nats:,.0f}" in line


def has(allowed: Any, value: Any) -> bool:
    if isinstance(allowed, Choice):
        return value in allowed.values
    if isinstance(allowed, Distribution):
        interval: Any = allowed
        return bool(interval.low <= value <= interval.high)
    return bool(allowed == value)


ALWAYS = {"ema_warmup", "batch_statistics", "first_block", "min_steps"}
BEYOND: list[tuple[str, str, str, str, set[str]]] = [
    ("best", "cifar10", "vggpp", "cifar", {
        "augment", "average_flips", "average_views", "weight_decay", "label_smoothing", "full_rate_steps",
    }),
    ("best", "cifar100", "vggpp", "cifar", {
        "augment", "average_flips", "average_views", "weight_decay", "label_smoothing",
    }),
    ("best", "mnist", "lenet", "mnist", {"optimizer", "learning_rate", "full_rate_steps", "augment", "average_views"}),
    ("plain", "mnist", "smallconv", "mnist", {"full_rate_steps"}),
    ("best", "mnist", "smallconv", "mnist", {"full_rate_steps", "augment"}),
]  # fmt: skip
"""What docs/results.md says each preset uses that the paper's sweep could not draw."""
NAMES = [" ".join(each[:3]) for each in BEYOND]


@pytest.mark.parametrize(("name", "data", "model", "space", "beyond"), BEYOND, ids=NAMES)
def test_presets_go_beyond_the_papers_sweeps_as_the_results_say(
    name: str, data: str, model: str, space: str, beyond: set[str]
) -> None:
    preset, allowed = find_preset(name, data, model), SPACES[space]
    settings = vars(preset.recipe) | {
        "num_streams" if key == "passes" else key: value for key, value in preset.settings.items()
    }
    unlike = {key for key, value in settings.items() if key not in allowed or not has(allowed[key], value)}
    assert unlike == beyond | ALWAYS
