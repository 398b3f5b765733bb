"""Runs that are given all inputs, on the command line: flags and their mistakes, presets, files of experts, plans."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import prequential as pq
from prequential.cli import main
from prequential.cli.experts import ExpertFlags
from prequential.cli.settings import parse_settings
from prequential.data import augment_geometry
from prequential.data.augment import draws_for, parse
from prequential.data.optional import SequenceDefaults
from prequential.errors import PreqError
from prequential.methods.all_inputs import given_all_inputs
from prequential.presets import PRESETS, find_preset
from prequential.presets.listed import listed
from prequential.sweeps.spaces import Resolved, require_space, resolve

from ..conftest import blobs

Captured = pytest.CaptureFixture[str]
FEW = [
    *("--num-labels", "64", "--all-inputs", "--preset", "plain", "--streams", "1"),
    *("--study-batch-size", "16", "--threads", "1"),
]


def told(capsys: Captured, *arguments: str) -> dict[str, Any]:
    """What a command prints as JSON."""
    capsys.readouterr()
    assert main([*arguments, "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def settled(*arguments: str, models: tuple[str, ...] = ("lenet",)) -> Any:
    return parse_settings(ExpertFlags, "run", list(arguments)).settled(models, "mnist")


def test_the_flags_are_those_of_the_settings() -> None:
    given = "--all-inputs --study-steps 7 --study-seed 2 --beside 5 --threshold 0.8 --threshold-kind relative"
    method = settled(*given.split(), "--preset", "paper", "--streams", "3", "--weak-views", "shift:2", "flip").method
    wanted = pq.AllInputs(method=pq.ReplayStreams(num_streams=3), study_steps=7, study_seed=2, beside=5, threshold=0.8)
    assert (method.method, method.study_steps, method.beside) == (wanted.method, 7, 5)
    assert (method.threshold_kind, method.weak_views) == ("relative", ("shift:2", "flip"))


def test_a_plan_shows_what_is_studied_and_what_stands_beside(capsys: Captured) -> None:
    plan = "plan", "--all-inputs", "--study-steps", "2", "--length", "100", "--streams", "1"
    assert main([*plan]) == 0
    out = capsys.readouterr().out
    for words in ("Study      100 inputs", "EndStudy   100 inputs", "; beside 96 inputs", "600 inputs without labels"):
        assert words in out
    found = told(capsys, *plan)
    assert (found["studies"], found["studied_examples"], found["beside_examples"]) == (2, 200, 600)
    found = told(capsys, "plan", "mnist", "lenet", *FEW, "--study-steps", "2", "--study-batch-size", "8")
    assert found["studied_examples"] == 16
    assert found["flops"] > told(capsys, "plan", "mnist", "lenet", *FEW)["flops"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--beside", "3"], "--beside is about inputs without labels.*add --all-inputs"),
        (["--study-steps", "3"], "--study-steps is about inputs without labels"),
        (["--all-inputs", "--method", "erm"], "erm has no code of labels that inputs could shorten"),
        (["--all-inputs", "--threshold", "2"], "threshold must be a number"),
        (["--all-inputs", "--threshold-kind", "loose"], "unknown kind of threshold 'loose'"),
        (["--all-inputs", "--study-views", "swirl"], "swirl"),
    ],
)
def test_mistakes_are_told_in_words(arguments: list[str], words: str) -> None:
    with pytest.raises(PreqError, match=words):
        settled(*arguments)


def test_views_that_inputs_cannot_have_are_refused_before_anything_is_studied() -> None:
    images = pq.from_arrays(np.zeros((32, 1, 8, 8), np.float32), np.arange(32) % 2)
    for name in ("study_views", "weak_views", "strong_views"):
        for data, spec, words in (
            (images, "shift:5", "shift:5 is more than half of a 8x8 image"),
            (blobs(32), "flip", "flip takes images .*, got inputs of shape"),
        ):
            own: dict[str, Any] = {name: [spec]}
            method = pq.AllInputs(method=pq.ReplayStreams(num_streams=1), study_steps=1, study_batch_size=8, **own)
            with pytest.raises(PreqError, match=words):
                pq.run("mlp1", data, method, seed=0, width=0.1)
            unused = replace(method, study_steps=0, beside=0)
            assert pq.run("mlp1", data, unused, seed=0, width=0.1).status == "finished"


def test_a_classifier_that_is_no_network_is_refused_alone_and_is_an_expert_beside_networks() -> None:
    forest = "sklearn:linear_model.LogisticRegression"
    with pytest.raises(PreqError, match=r"--all-inputs is about networks, and 'sklearn:.*' is none"):
        settled("--all-inputs", models=(forest,))
    method = pq.AllInputs(method=pq.ReplayStreams(num_streams=1, batch_size=8), beside=1)
    for model in (forest, pq.Experts([forest, forest])):
        with pytest.raises(PreqError, match="all inputs are given to networks, and 'sklearn:"):
            pq.run(model, blobs(32), method, seed=0)
    both = settled("--all-inputs", models=("mlp1", forest))
    assert given_all_inputs(both.plan_method)
    record = pq.run(pq.Experts(["mlp1", forest]), blobs(32), method, seed=0, width=0.1)
    assert record.status == "finished"
    assert record.conditioned_on == "all inputs"


def test_inputs_that_contain_targets_are_not_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SequenceDefaults, "inputs_contain_targets", True)
    method = pq.AllInputs(method=pq.ReplayStreams(num_streams=1, batch_size=8))
    with pytest.raises(PreqError, match="contain its targets"):
        pq.run("mlp1", blobs(32), method, seed=0)


def test_experts_of_a_file_have_studies_of_their_own(tmp_path: Path) -> None:
    file = tmp_path / "experts.toml"
    file.write_text(
        "[[expert]]\nmodel = 'lenet'\n[[expert]]\nmodel = 'lenet'\nall_inputs = { study_seed = 1 }\n"
        "[[expert]]\nmodel = 'mlp1'\nall_inputs = false\n"
    )
    found = settled("--experts", str(file), "--all-inputs", "--study-steps", "4", models=())
    given = [given_all_inputs(method) for _, method, _ in found.models]
    assert [each and (each.study_seed, each.study_steps) for each in given] == [(0, 4), (1, 4), None]
    with pytest.raises(PreqError, match=r"expert 2 .lenet.: it has settings of all_inputs.*add --all-inputs"):
        settled("--experts", str(file), models=())
    file.write_text("[[expert]]\nmodel = 'lenet'\nall_inputs = false\n[[expert]]\nmodel = 'sklearn:tree.Tree'\n")
    with pytest.raises(PreqError, match=r"no expert is given all inputs: .* leave --all-inputs out"):
        settled("--experts", str(file), "--all-inputs", models=())
    with pytest.raises(PreqError, match=r"unknown setting of all_inputs 'study_sed'.*study_seed"):
        listed([{"model": "lenet", "all_inputs": {"study_sed": 1}}])
    with pytest.raises(PreqError, match="unknown setting of all_inputs 'num_inputs'"):
        listed([{"model": "lenet", "all_inputs": {"num_inputs": 1}}])
    with pytest.raises(PreqError, match="all_inputs must be a table of settings, or false, got 3"):
        listed([{"model": "lenet", "all_inputs": 3}])


def test_a_preset_says_what_holds_with_all_inputs() -> None:
    preset = pq.Preset(name="", description="", all_inputs={"study_steps": 9, "weak_views": ["flip"]})
    method = given_all_inputs(preset.with_all_inputs(pq.ReplayStreams(), {"study_steps": 3}))
    assert method is not None
    assert (method.study_steps, method.weak_views) == (3, ("flip",))


@pytest.mark.parametrize(("data", "beside"), [("cifar10", 3), ("cifar100", 5)])
def test_the_presets_of_cifar_do_what_the_prototype_did(
    data: str, beside: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its strong views moved pixels by 4.2 on average: turned by up to half a radian, to 0.6 … 1.2 of the area, with
    sides stretched by up to √1.25, and moved by up to a tenth of a side."""
    given = find_preset("all-inputs", data, "resnet18").all_inputs
    assert given["beside"] == beside
    places: list[Tensor] = []

    def sampled(images: Tensor, x: Tensor, y: Tensor, padding: str) -> Tensor:
        places.extend((x, y))
        return images

    monkeypatch.setattr(augment_geometry, "sampled", sampled)
    (spec,) = (each for each in given["strong_views"] if each.startswith("affine"))
    pipeline = parse([spec])
    assert pipeline is not None
    (affine,) = pipeline.operations
    affine(torch.zeros(512, 3, 32, 32), draws_for(0, 0, 512, affine.num_draws, "cpu"))
    right, down = places[0] - (torch.arange(32) - 15.5), places[1] - (torch.arange(32)[:, None] - 15.5)
    assert float(torch.hypot(right, down).mean()) == pytest.approx(4.2, rel=0.1)


def test_a_space_changes_what_is_wrapped_and_what_wraps_it() -> None:
    base = Resolved(pq.AllInputs(method=pq.ReplayStreams()), pq.Recipe(), 1.0, 0)
    space = {"num_streams": pq.Choice((2, 3)), "beside": pq.Choice((1, 2))}
    require_space(space, base.method)
    found = given_all_inputs(resolve({"passes": 3, "beside": 2}, base).method)
    assert found is not None
    assert (found.beside, found.method) == (2, pq.ReplayStreams(num_streams=3))


def test_a_sweep_is_given_all_inputs(tmp_path: Path, capsys: Captured) -> None:
    space = tmp_path / "space.py"
    space.write_text("import prequential as pq\nspace = {'learning_rate': pq.LogUniform(1e-3, 1e-2)}\n")
    sweep = "sweep", "mnist", "mlp1", *FEW, "--beside", "1", "--width", "0.1", "--space", f"{space}:space"
    found = told(capsys, *sweep, "--trials", "2", "--out", str(tmp_path / "sweep"))
    assert found["finished"] == 2
    with pytest.raises(PreqError, match="not stacked"):
        pq.sweep(
            "mlp1", blobs(32), pq.AllInputs(method=pq.ReplayStreams()), space={"learning_rate": pq.LogUniform(1e-3, 1)},
            seed=0, out=tmp_path / "stack", stack=2,
        )  # fmt: skip


def test_a_preset_is_made_for_all_inputs() -> None:
    given, alone = (settled(*words.split()).method for words in ("--all-inputs", "--preset all-inputs"))
    assert (given.study_steps, given.beside, given.body_rate) == (600, 7, 1.0)
    assert given.method == alone == pq.ReplayStreams(num_streams=60, batch_size=32, first_block=8, min_steps=8)
    assert settled("--all-inputs", "--preset", "best").method.study_steps == 0


def test_presets_for_cifar_are_for_networks_with_normalisation_in_every_layer() -> None:
    def asked(data: str, model: str, *flags: str) -> Any:
        return parse_settings(ExpertFlags, "run", ["--all-inputs", *flags]).settled((model,), data).method

    replays, many = asked("cifar10", "resnet18", "--method", "mi-rb"), asked("cifar100", "wrn-28-10")
    assert (replays.study_steps, replays.beside, replays.threshold, replays.study_optimizer) == (16000, 3, 0.9, "sgd")
    assert replays.method == pq.ReplayBuffer(num_replays=30, batch_size=128, first_block=8, min_steps=4)
    assert (many.beside, many.threshold, many.method.num_streams) == (5, 0.7, 10)
    assert asked("cifar10", "mlp2").study_steps == 0
    assert asked("mnist", "resnet18").study_steps == 600
    assert find_preset("best", "cifar10", "resnet18").settings["passes"] == 80
    ran = {preset.data: bool(preset.reached) for preset in PRESETS if preset.name == "all-inputs"}
    assert {data: has_run for data, has_run in ran.items() if "cifar" in data[0]} == {
        ("cifar10",): True,
        ("cifar100",): False,
    }
