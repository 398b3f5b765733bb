"""Probing from end to end: networks by word, features that are kept, refusals, what is printed; and weights of runs."""

import gzip
import json
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn

import prequential as pq
from prequential.cli import main
from prequential.data.sequence import DataSequence
from prequential.errors import PreqError
from prequential.lock import DirectoryLock
from prequential.models import build
from prequential.probing import blocks, entry
from prequential.probing import features as features_module
from prequential.probing.closed import NearestNeighbours
from prequential.probing.control import control_labels
from prequential.probing.layers import layers_of
from prequential.probing.networks import Network, find_network
from prequential.probing.picture import names_of
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


@pytest.mark.parametrize(("engine", "studies"), [("eager", False), ("graph", False), ("eager", True)])
def test_kept_weights_are_those_that_predict(tmp_path: Path, engine: str, studies: bool) -> None:
    data, plain = blobs(48), replace(METHOD, calibrate=False)
    # a study replaces the last layer
    method = pq.AllInputs(method=plain, study_steps=2, study_batch_size=16) if studies else plain
    same: dict[str, Any] = {"seed": 0, "width": 0.02, "execution": pq.Execution(engine=engine)}
    kept = pq.run("mlp1", data, method, out=tmp_path / "run", keep_weights=True, **same)
    assert np.array_equal(pq.run("mlp1", data, method, **same).nats, kept.nats)  # it changes nothing
    assert kept.heldout is not None
    assert data.heldout is not None
    rows, net = np.arange(len(data.heldout)), build("mlp1", (5,), 3, width=0.02).eval()
    net.load_state_dict(load_file(tmp_path / "run" / "weights.safetensors"))
    with torch.no_grad():
        loss = nn.functional.cross_entropy(net(data.heldout.inputs(rows)).double(), data.heldout.labels(rows))
    assert float(loss) == pytest.approx(kept.heldout["loss"], rel=1e-6 if studies else 1e-9)
    assert pq.probe(f"run:{tmp_path / 'run'}", blobs(64, seed=1), readouts=QUICK).best.layer == "2"
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


def test_a_run_that_cannot_be_probed_is_told_why(tmp_path: Path) -> None:
    data, several = blobs(48), pq.Experts.of_seeds("mlp1", 2, width=0.02)
    pq.run(several, data, METHOD, seed=0, out=tmp_path / "several")
    pq.run("mlp1", data, METHOD, pq.Recipe(learning_rate=1e30), seed=0, width=0.02, out=tmp_path / "diverged")
    for name, why in {"several": "weights are kept of one network", "diverged": "diverged diverged, and"}.items():
        with pytest.raises(PreqError, match=why):
            pq.probe(f"run:{tmp_path / name}", data)
    with pytest.raises(PreqError, match=f"is the directory of a run; write run:{tmp_path / 'several'}"):
        pq.probe(str(tmp_path / "several"), data)


def test_lazy_layers_find_out_their_sizes(tmp_path: Path) -> None:
    lazy = "from torch import nn\ndef net(): return nn.Sequential(nn.LazyLinear(4), nn.ReLU(), nn.Linear(4, 3))\n"
    (tmp_path / "lazy.py").write_text(lazy)
    word, run = f"{tmp_path / 'lazy.py'}:net", tmp_path / "run"
    pq.run(word, blobs(64), METHOD, seed=0, out=run, keep_weights=True)
    same: dict[str, Any] = {"data": blobs(64, seed=1), "readouts": QUICK}
    found = [pq.probe(each, **same).best for each in (word, f"{word}@{run / 'weights.safetensors'}")]
    assert [each.training.partition(",")[0] for each in found] == ["untrained", "trained on 64 of blobs"]
    module = nn.Sequential(nn.LazyLinear(4), nn.ReLU(), nn.Linear(4, 3))
    assert pq.probe({"mine": module}, **same).best.codelength == pq.probe({"mine": module}, **same).best.codelength


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
    examples = partial(example_digests, data)
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
    found = find_network(f"mlp1@{tmp_path / 'w.safetensors'}", data, partial(example_digests, data), width=0.02)
    assert found.module is not None
    assert found.module(torch.zeros(1, 5)).shape == (1, 3)


@pytest.mark.parametrize("word", ["run:{}", "mlp1@{}/weights.safetensors"])
@pytest.mark.parametrize("name", ["weights.json", "trained_on.npy", "weights.safetensors"])
def test_damage_to_what_was_kept_is_told(kept: Path, name: str, word: str) -> None:
    file, data = kept / name, blobs(40, seed=1)
    content = bytearray(file.read_bytes())
    for place in range(0, len(content), max(1, len(content) // 40)):
        broken = bytearray(content)
        broken[place] ^= 4
        file.write_bytes(broken)
        with pytest.raises(PreqError, match=r"damaged|no whole|does not fit"):
            find_network(word.format(kept), data, partial(example_digests, data), width=0.02)
    file.write_bytes(content[: len(content) // 2])
    with pytest.raises(PreqError):
        find_network(word.format(kept), data, partial(example_digests, data), width=0.02)


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


class Changing(nn.Module):
    """Whose code may change while its weights and its print stay."""

    def __init__(self) -> None:
        super().__init__()
        self.inside = nn.Linear(5, 4)
        self.last = nn.Linear(4, 3)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return self.last(self.inside(inputs))


def test_features_are_computed_anew_when_code_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    data, net = blobs(70), Changing()
    first = pq.probe({"net": net}, data, layers="inside", readouts=["knn"])
    again = pq.probe({"net": net}, data, layers="inside", readouts=["knn"])
    alike = torch.zeros(5)  # from which nobody learns, whatever the weights are
    monkeypatch.setattr(Changing, "forward", lambda self, inputs: self.last(self.inside(inputs * alike)))
    changed = pq.probe({"net": net}, data, layers="inside", readouts=["knn"])
    assert first.best.codelength == again.best.codelength != changed.best.codelength


def test_a_module_stays_as_it_was() -> None:
    net = nn.Sequential(nn.Linear(5, 4), nn.BatchNorm1d(4), nn.Linear(4, 3))
    pq.probe(net, blobs(70), readouts=["knn"])
    assert net.training
    assert net[1].training
    assert all(parameter.requires_grad for parameter in net.parameters())
    assert not net[0]._forward_hooks
    net.doubled = next(net.parameters()) * 2  # what has a history cannot be copied
    with pytest.raises(PreqError, match=r"Sequential cannot be copied to be frozen .*; give its features"):
        pq.probe(net, blobs(70))


def test_examples_are_digested_only_where_weights_tell_what_they_learned(
    kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = list[int]()

    def counted(data: DataSequence) -> Any:
        calls.append(len(data))
        return example_digests(data)

    monkeypatch.setattr(entry, "example_digests", counted)
    pq.probe({"a": "mlp1", "b": "inputs", "c": nn.Sequential(nn.Linear(5, 3))}, blobs(70, seed=1), readouts=["knn"])
    assert not calls
    pq.probe([f"run:{kept}", f"mlp1@{kept / 'weights.safetensors'}"], blobs(70, seed=1), readouts=["knn"])
    assert calls == [70]


@pytest.mark.parametrize("kind", [np.int16, np.bool_])
def test_inputs_of_whole_numbers_are_a_representation(kind: type) -> None:
    rows: np.ndarray[Any, Any] = np.random.default_rng(0).integers(0, 2, (70, 6)).astype(kind)
    data = pq.from_arrays(rows, rows[:, 0].astype(int))
    given = pq.probe({"rows": rows}, data, readouts=["knn"])
    assert pq.probe("inputs", data, readouts=["knn"]).best.codelength == given.best.codelength


OWN = """
from torch import nn

def small(input_shape, num_classes):
    net = nn.Sequential(nn.Linear(*input_shape, 4), nn.Linear(4, num_classes))
    assert float(net[0].weight.detach().abs().max()) < 9  # which tensors without content cannot say
    return net
"""


def test_a_factory_of_ones_own_is_built_for_real(tmp_path: Path) -> None:
    (tmp_path / "nets.py").write_text(OWN)
    save_file(
        {"0.weight": torch.ones(4, 5), "0.bias": torch.ones(4), "1.weight": torch.ones(7, 4), "1.bias": torch.ones(7)},
        tmp_path / "w.safetensors",
    )
    word, data = f"{tmp_path / 'nets.py'}:small@{tmp_path / 'w.safetensors'}", blobs(40)
    found = find_network(word, data, partial(example_digests, data))
    assert found.module is not None
    assert found.module(torch.zeros(1, 5)).shape == (1, 7)


def test_blocks_ask_and_tell_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: dict[str, list[int]] = {"predict": [], "observe": []}
    for name, found in sizes.items():
        inner = getattr(NearestNeighbours, name)
        monkeypatch.setattr(
            NearestNeighbours,
            name,
            lambda self, rows, *more, inner=inner, found=found: found.append(len(rows)) or inner(self, rows, *more),
        )
    monkeypatch.setattr(blocks, "PREDICTED_AT_ONCE", 100)
    pq.probe("inputs", blobs(700), readouts=["knn"], voita=True)
    assert max(sizes["predict"]) == 100
    assert max(sizes["observe"]) == 64


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


class Rectifying(nn.Module):
    """ReLU and a sum by functions, as ResNets do."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.head = nn.Linear(5, 4), nn.Linear(4, 3)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return self.head((self.body(inputs) + 1).relu())


def test_last_is_what_the_last_layer_of_weights_is_given() -> None:
    net, data = Rectifying().eval(), blobs(16)
    (found,) = features_module.representations(Network("net", net, "untrained"), data, "last")
    inputs = data.inputs(np.arange(16))
    assert found.name == "net input of head Linear"
    np.testing.assert_allclose(found.features, (net.body(inputs) + 1).relu().detach(), rtol=1e-6)
    assert layers_of(net, "input of head,body", torch.zeros(1, 5), "net") == ["input of head", "body"]
    resnet = build("resnet18", (3, 8, 8), 10, width=0.1).eval()
    assert layers_of(resnet, "last", torch.zeros(2, 3, 8, 8), "net") == ["input of fc"]
    assert layers_of(build("lenet", (1, 28, 28), 10).eval(), "last", torch.zeros(2, 1, 28, 28), "net") == ["10"]
    assert layers_of(nn.Sequential(nn.Linear(5, 2)), "last", torch.zeros(2, 5), "net") == ["input of 0"]
    with pytest.raises(PreqError, match="unknown layer of net 'input of it'"):
        layers_of(net, "input of it", torch.zeros(1, 5), "net")


def test_the_values_of_a_control_never_have_all_one_class() -> None:
    for seed in range(30):
        made = control_labels(np.arange(64) % 3, np.arange(64) // 60, seed=seed)
        assert set(made) == {0, 1}
    with pytest.raises(PreqError, match=r"all values of the control would have one class \(1 different\)"):
        pq.probe("inputs", blobs(64), readouts=["knn"], control=np.zeros(64))


@pytest.mark.parametrize(("word", "what"), [("run:", "directory"), ("mlp1@", "file")])
def test_a_word_that_names_nothing_is_told(word: str, what: str) -> None:
    with pytest.raises(PreqError, match=f"'{word}' names no {what}; write it behind the"):
        pq.probe(word, blobs(64))


def test_two_who_probe_by_one_cache_at_once_do_not_disturb_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second has written all of the same features just before the first replaces what it wrote."""
    data, replace_file = blobs(64), Path.replace
    expected = pq.probe("mlp1", data, readouts=QUICK, width=0.02, cache=tmp_path / "alone").best.codelength
    late = list[Path]()

    def replaced(path: Path, target: Path) -> Path:
        if path.suffix == ".tmp" and ".json." in path.name and not late:
            late.append(path)
            pq.probe("mlp1", data, readouts=QUICK, width=0.02)
        return replace_file(path, target)

    monkeypatch.setattr(Path, "replace", replaced)
    assert pq.probe("mlp1", data, readouts=QUICK, width=0.02).best.codelength == expected
    assert late


def test_what_was_no_network_or_array_is_told() -> None:
    data = blobs(64)
    with pytest.raises(PreqError, match=r"the features 'features' form no one array; .* in a dictionary"):
        pq.probe(["inputs", np.zeros((64, 2))], data)  # type: ignore[arg-type]
    with pytest.raises(PreqError, match="'features' hold what is no finite number"):
        pq.probe(np.full((64, 2), 1e39), data)
    assert pq.probe("inputs", data, readouts="knn,nearest-mean").readouts == ("knn", "nearest-mean")


@pytest.mark.parametrize("kind", [torch.int64, torch.complex64, torch.bool])
def test_tensors_of_another_type_are_listed(kind: torch.dtype, kept: Path, tmp_path: Path) -> None:
    tensors = dict(load_file(kept / "weights.safetensors"))
    save_file({**tensors, "1.bias": tensors["1.bias"].to(kind)}, tmp_path / "w.safetensors")
    with pytest.raises(PreqError, match=f"does not fit 'mlp1': of another type: 1.bias of {kind} for torch.float32"):
        pq.probe(f"mlp1@{tmp_path / 'w.safetensors'}", blobs(64, seed=1), width=0.02)
    save_file({name: each.bfloat16() for name, each in tensors.items()}, tmp_path / "w.safetensors")
    assert pq.probe(f"mlp1@{tmp_path / 'w.safetensors'}", blobs(64, seed=1), readouts=["knn"], width=0.02).best


def test_layers_whose_weights_are_computed_are_layers() -> None:
    net = build("lenet-ws", (1, 28, 28), 10, width=0.5).eval()
    plain = build("lenet", (1, 28, 28), 10, width=0.5).eval()
    assert layers_of(net, "all", torch.zeros(1, 1, 28, 28), "net") == layers_of(
        plain, "all", torch.zeros(1, 1, 28, 28), "n"
    )


def test_a_layer_is_taken_before_the_next_writes_into_it() -> None:
    """nn.ReLU(inplace=True) would leave no negative number in what the layer before it gave."""
    data, first = blobs(70), nn.Linear(5, 4)
    given = first(data.stored_inputs).detach()
    found = features_module.representations(
        Network("net", nn.Sequential(first, nn.ReLU(inplace=True)).requires_grad_(False), ""), data, "0"
    )
    assert np.allclose(next(found).features, given.numpy(), atol=1e-6)


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


def test_a_picture_calls_runs_by_the_end_of_their_directories() -> None:
    data = blobs(64)
    probing = pq.probe({"a": data.stored_inputs.numpy()}, data, readouts=["knn"])
    words = ["run:runs/one/lenet", "run:runs/two/lenet", "run:runs/one/mlp", "lenet", "inputs"]
    each = [replace(probing.best, network=word, name=f"{word} 5 ReLU") for word in words]
    assert names_of(replace(probing, ranking=tuple(each))) == {
        "run:runs/one/lenet": "one/lenet", "run:runs/two/lenet": "two/lenet", "run:runs/one/mlp": "mlp",
        "lenet": "lenet", "inputs": "inputs",
    }  # fmt: skip


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
    assert main(["probe", "mnist", "lenet", "--control", "place"]) == 2
    assert "--control names a column of a table" in capsys.readouterr().err
    assert main(["probe", "mnist", "lenet", "--voita"]) == 2
    assert "--voita needs one readout" in capsys.readouterr().err


def test_a_control_is_read_as_the_data_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the data directory, and unpacked to as much as was allowed."""
    rows = [f"{number % 7},{number % 4},{number % 2}" for number in range(400)]
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress("\n".join(["x,place,label", *rows]).encode()))
    monkeypatch.setattr("prequential.data.packed.ALWAYS", 1000)
    monkeypatch.setattr("prequential.data.packed.MOST_FOLD", 1)
    words = ["probe", "table:t.csv.gz", "inputs", "--label", "label", "--data-dir", str(tmp_path), "--control", "place"]
    assert main([*words, "--readouts", "nearest-mean", "--json"]) == 2
    assert "--max-unpacked" in capsys.readouterr().err
    assert main([*words, "--readouts", "nearest-mean", "--json", "--max-unpacked", "1"]) == 0
    assert json.loads(capsys.readouterr().out)["ranking"][0]["control_nats"] > 0


def test_a_run_that_is_not_over_can_go_on(tmp_path: Path) -> None:
    run = tmp_path / "run"
    record = pq.run("mlp1", blobs(48), METHOD, seed=0, width=0.02)
    replace(record, status="running", path=None).save(run)
    with pytest.raises(PreqError, match=r"died, and weights are kept at the end; --resume --keep-weights goes on"):
        pq.probe(f"run:{run}", blobs(48))
    with (
        DirectoryLock(run),
        pytest.raises(PreqError, match=r"is running, and weights are kept at the end.*wait for it"),
    ):
        pq.probe(f"run:{run}", blobs(48))


def test_a_run_called_as_a_model_is_told_from_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    pq.run("mlp1", blobs(48), METHOD, seed=0, width=0.02, out="mlp1", keep_weights=True)
    probing = pq.probe(["run:mlp1", "mlp1"], blobs(64, seed=1), width=0.02)
    assert names_of(probing) == {"run:mlp1": "run:mlp1", "mlp1": "mlp1"}
