"""Probing from end to end: networks by word, features that are kept, refusals, what is printed; and weights of runs."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn

import prequential as pq
from prequential.cli import main
from prequential.errors import PreqError
from prequential.probing import features as features_module
from prequential.probing.layers import layers_of
from prequential.probing.networks import find_network
from prequential.runs.weights import example_digests, read_about, read_tensors

from ..conftest import blobs

METHOD = pq.ReplayStreams(num_streams=1, batch_size=8)
QUICK = ["nearest-mean", "bayes-linear"]


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PREQ_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    pq.run("mlp1", blobs(48).without_heldout(), METHOD, seed=0, width=0.02, out=tmp_path / "run", keep_weights=True)
    return tmp_path / "run"


def test_a_run_keeps_its_averaged_weights_and_what_it_learned(kept: Path) -> None:
    tensors, digest = read_tensors(kept / "weights.safetensors")
    about = read_about(kept, digest)
    assert about is not None
    assert (about.model, about.width, about.input_shape, about.output_size) == ("mlp1", 0.02, (5,), 3)
    assert {tuple(t.shape) for t in tensors.values()} == {(10, 5), (10,), (3, 10), (3,)}
    assert about.share_of(example_digests(blobs(48).shuffled(seed=5).take(20))) == 1
    assert about.share_of(example_digests(blobs(48, seed=1))) == 0
    assert pq.load(kept).status == "finished"


def test_kept_weights_are_those_that_predict(kept: Path) -> None:
    again = pq.run("mlp1", blobs(48).without_heldout(), METHOD, seed=0, width=0.02)
    assert np.array_equal(again.nats, pq.load(kept).nats)  # keeping them changes nothing
    with pytest.raises(PreqError, match="needs a directory"):
        pq.run("mlp1", blobs(48), METHOD, seed=0, width=0.02, keep_weights=True)


def test_a_finished_run_without_weights_is_told(tmp_path: Path) -> None:
    def start(*, keep_weights: bool) -> None:
        out = tmp_path / "run"
        pq.run("mlp1", blobs(48), METHOD, seed=0, width=0.02, out=out, resume=True, keep_weights=keep_weights)

    start(keep_weights=False)
    with pytest.raises(PreqError, match="kept no weights"):
        start(keep_weights=True)
    with pytest.raises(PreqError, match="kept no weights; run it again with --keep-weights"):
        pq.probe(f"run:{tmp_path / 'run'}", blobs(48))


def test_a_network_that_saw_the_examples_is_refused_or_marked(kept: Path) -> None:
    seen, unseen = blobs(48), blobs(48, seed=1)
    both = [
        torch.cat(parts) for parts in zip(*((d.stored_inputs, d.stored_labels) for d in (seen, unseen)), strict=True)
    ]
    data = pq.from_arrays(*both).shuffled(seed=3)
    with pytest.raises(PreqError, match=r"\(50.0%\) learned these very examples.*--allow-seen"):
        pq.probe(f"run:{kept}", data, readouts=QUICK)
    found = pq.probe(f"run:{kept}", data, readouts=QUICK, allow_seen=True)
    assert found.best.share_seen == 0.5
    assert found.best.name.endswith("[50.0% seen]")
    assert "50.0% of these examples seen" in found.best.training
    other = pq.probe(f"run:{kept}", blobs(70, seed=1), readouts=QUICK)
    assert other.best.share_seen == 0
    assert "none of these examples seen" in other.best.training


def test_tensors_that_do_not_fit_are_listed(kept: Path, tmp_path: Path) -> None:
    data, tensors = blobs(40, seed=1), load_file(kept / "weights.safetensors")
    examples = example_digests(data)
    file = tmp_path / "other.safetensors"
    save_file(tensors, file)
    found = find_network(f"mlp1@{file}", data, examples, width=0.02)
    assert (found.training, found.share_seen) == ("training data unknown", None)
    first, *others = tensors
    save_file({name: tensors[name] for name in others} | {"strange": torch.zeros(1)}, file)
    with pytest.raises(PreqError, match=rf"missing: {first}; not of the model: strange"):
        find_network(f"mlp1@{file}", data, examples, width=0.02)
    save_file(tensors | {first: torch.zeros(7, 7)}, file)
    with pytest.raises(PreqError, match=rf"of another shape: {first} of \(7, 7\) for"):
        find_network(f"mlp1@{file}", data, examples, width=0.02)
    file.write_bytes(b"nothing")
    with pytest.raises(PreqError, match=r"no whole \.safetensors file"):
        find_network(f"mlp1@{file}", data, examples, width=0.02)


def test_a_head_of_another_size_is_found_by_its_shape(kept: Path, tmp_path: Path) -> None:
    data = blobs(40, num_classes=4, seed=1)
    save_file(load_file(kept / "weights.safetensors"), tmp_path / "w.safetensors")
    found = find_network(f"mlp1@{tmp_path / 'w.safetensors'}", data, example_digests(data), width=0.02)
    assert found.module is not None
    assert found.module(torch.zeros(1, 5)).shape == (1, 3)


@pytest.mark.parametrize("name", ["weights.json", "trained_on.npy", "weights.safetensors"])
def test_damage_to_what_was_kept_is_told(kept: Path, name: str) -> None:
    file = kept / name
    content = bytearray(file.read_bytes())
    for place in range(0, len(content), max(1, len(content) // 40)):
        broken = bytearray(content)
        broken[place] ^= 4
        file.write_bytes(broken)
        with pytest.raises(PreqError, match=r"damaged|no whole|does not fit"):
            find_network(f"run:{kept}", blobs(40, seed=1), example_digests(blobs(40, seed=1)))
    file.write_bytes(content[: len(content) // 2])
    with pytest.raises(PreqError):
        find_network(f"run:{kept}", blobs(40, seed=1), example_digests(blobs(40, seed=1)))


def test_features_are_computed_once_and_anew_when_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data, calls = blobs(70), list[int]()
    compute = features_module._compute

    def counted(*words: Any) -> None:
        calls.append(1)
        compute(*words)

    monkeypatch.setattr(features_module, "_compute", counted)
    first = pq.probe("mlp1", data, width=0.02, layers="all", readouts=QUICK)
    again = pq.probe("mlp1", data, width=0.02, layers="all", readouts=QUICK)
    assert len(calls) == 1
    assert [each.codelength for each in first.ranking] == [each.codelength for each in again.ranking]
    pq.probe("mlp1", data, width=0.02, layers="all", readouts=QUICK, seed=1)  # other weights
    assert len(calls) == 2
    file = next((tmp_path / "cache" / "features").glob("*.npy"))
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    for seed in range(2):
        pq.probe("mlp1", data, width=0.02, layers="all", readouts=QUICK, seed=seed)
    assert len(calls) == 3
    assert not list((tmp_path / "cache" / "features").glob(".*"))


def test_layers_by_name_and_their_mistakes() -> None:
    net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Flatten(), nn.Linear(2 * 9, 3))
    assert layers_of(net, "all", torch.zeros(2, 1, 5, 5), "net") == ["1", "3"]
    data = pq.from_arrays(np.random.default_rng(0).normal(size=(70, 1, 5, 5)), np.arange(70) % 3)
    found = pq.probe({"net": net}, data, layers=["0", "3"], readouts=QUICK)
    assert {(each.layer, each.num_features, each.training) for each in found.ranking} == {
        ("0", 18, "training data unknown"),
        ("3", 3, "training data unknown"),
    }
    with pytest.raises(PreqError, match="unknown layer of net 'conv1'"):
        pq.probe({"net": net}, data, layers="conv1")
    with pytest.raises(PreqError, match="unknown readout 'svm'"):
        pq.probe({"net": net}, data, readouts=["svm"])
    with pytest.raises(PreqError, match=r"cannot take inputs of shape \(5,\)"):
        pq.probe({"net": net}, blobs(40))
    with pytest.raises(PreqError, match="a row for each of 70 examples"):
        pq.probe(np.zeros((39, 2)), data)


def test_a_better_representation_is_ranked_first_and_odds_are_nats() -> None:
    data = blobs(150)
    rows = data.stored_inputs.numpy()
    noise = np.random.default_rng(0).normal(size=rows.shape)
    found = pq.probe({"noise": noise, "signal": rows}, data, readouts=["linear", "knn"])
    assert [each.name for each in found.ranking] == ["signal", "noise"]
    assert found.best.data_efficiency is not None
    assert found.log_odds(found.ranking[1]) == found.ranking[1].codelength - found.best.codelength > 10
    assert {readout for _, readout in found.best.in_charge()} <= {"linear", "knn", "frequencies"}
    assert found.conditioned_on == "all inputs"


def test_the_command(kept: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = blobs(64, seed=1)
    table = np.column_stack([other.stored_inputs.numpy(), np.arange(64) % 8, other.stored_labels.numpy()])
    names = [*(f"x{number}" for number in range(5)), "place", "label"]
    (tmp_path / "t.csv").write_text("\n".join([",".join(names), *(",".join(map(str, row)) for row in table)]) + "\n")
    words = [f"table:{tmp_path / 't.csv'}", "--label", "label", "--readouts", "nearest-mean", "--width", "0.02"]
    assert (
        main(["probe", words[0], "mlp1", "inputs", *words[1:], "--control", "place", "--out", str(tmp_path / "o")]) == 0
    )
    printed = capsys.readouterr().out
    assert "untrained" in printed
    assert "control" in printed
    assert (tmp_path / "o" / "probe.png").stat().st_size > 1000
    told = json.loads((tmp_path / "o" / "probe.json").read_text())
    assert told["ranking"][0]["control_nats"] > 0
    assert main(["probe", words[0], "mlp1", *words[1:], "--voita", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["code"] == "blocks"
    assert main(["probe", words[0], "mlp1", *words[1:], "--control", "x0"]) == 2
    assert "untrained network" in capsys.readouterr().err
    assert main(["probe", words[0], f"run:{kept}", *words[1:]]) == 2
    assert "takes inputs of shape (5,)" in capsys.readouterr().err
    assert main(["probe", words[0]]) == 2
    assert "needs at least one network" in capsys.readouterr().err
    assert main(["probe", "mnist", "lenet", "--voita"]) == 2
    assert "--voita needs one readout" in capsys.readouterr().err
