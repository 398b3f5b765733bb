"""What was studied before the first label: kept as files, used again, never trusted silently, resumed to the bit."""

import signal
import subprocess
import sys
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import prequential as pq
from prequential.cli import main
from prequential.coding.container import Container
from prequential.data.arrays import from_arrays
from prequential.errors import PreqError, PreqWarning
from prequential.files import digest_of
from prequential.learn.all_inputs import FromAllInputs
from prequential.learn.last_layer import LastLayer
from prequential.learn.studying import digest_of_tensors
from prequential.plain import read_bytes, sealed, unsealed
from prequential.runs import study_files
from prequential.runs.progress import Progress
from prequential.runs.record import Record
from prequential.runs.study_files import ABOUT_FILE, MOST_BYTES

from ..conftest import blobs

Captured = pytest.CaptureFixture[str]
METHOD = pq.AllInputs(
    method=pq.ReplayStreams(num_streams=1, batch_size=32), study_steps=4, study_batch_size=32, beside=1
)
OTHER = pq.AllInputs(method=METHOD.method, study_steps=3, study_batch_size=32, study_seed=1, beside=1)
TWO = pq.Experts([pq.Expert("lenet"), pq.Expert("lenet", method=OTHER)])
"""Experts with a study each."""
AVERAGES = pq.Experts([pq.Expert("lenet", averages=(0.02, 0.005))])
"""Experts of one network that studies once."""
ASKED = [
    *("mnist", "lenet", "--length", "64", "--all-inputs", "--preset", "paper"),
    *("--study-steps", "3", "--study-batch-size", "16"),
]
ASKED += ["--beside", "1", "--streams", "1", "--threads", "1"]


@pytest.fixture(scope="module")
def data() -> Any:
    return pq.load_data("mnist").take(160).with_num_labels(128).without_heldout()


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PREQ_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("prequential.runs.recorder.SECONDS_BETWEEN_PAUSES", 0.0)


def do(data: Any, model: Any = "lenet", method: Any = METHOD, **changes: Any) -> Record:
    return pq.run(model, data, method, **{"seed": 0, "threads": 1} | changes)


def assert_same(one: Record, other: Record) -> None:
    assert one.nats.tobytes() == other.nats.tobytes()
    assert (one.flops, one.status) == (other.flops, other.status)
    assert digests(one) == digests(other)


def digests(record: Record) -> list[str]:
    assert record.study is not None
    return [each["digest"] for each in record.study.get("each", [record.study])]


@pytest.fixture(scope="module")
def alone(data: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[Record, Path]:
    """A run that keeps what it studied, and where."""
    folder = tmp_path_factory.mktemp("studies")
    return do(data, study_dir=folder), folder


@pytest.fixture
def kept(alone: tuple[Record, Path], tmp_path: Path) -> Path:
    """A copy of what it kept."""
    (place,) = alone[1].iterdir()
    (tmp_path / "kept" / place.name).mkdir(parents=True)
    for file in place.iterdir():
        (tmp_path / "kept" / place.name / file.name).write_bytes(file.read_bytes())
    return tmp_path / "kept"


def test_a_study_is_kept_and_used_again(data: Any, tmp_path: Path) -> None:
    first = do(data, out=tmp_path / "first")
    assert first.study is not None
    assert (first.study["steps"], first.study["from"]) == (4, "this run")
    assert 0 < first.study["seconds"] < first.seconds
    assert first.flops is not None
    assert 0 < first.flops["study"] < first.flops["code"]
    again = do(data, out=tmp_path / "again")
    assert again.study is not None
    assert again.study == first.study | {"from": "file"}
    assert_same(first, again)
    assert again.summary()["study"]["from"] == "file"
    assert pq.load(tmp_path / "again").study == again.study
    # another run seed shares the study, another study seed does not
    assert do(data, seed=1).study == again.study
    other = do(data, method=OTHER)
    assert digests(other) != digests(first)
    assert len(list((tmp_path / "cache" / "studies").iterdir())) == 1  # a run that is not kept keeps no study


def test_files_are_small_and_whole(
    data: Any, alone: tuple[Record, Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (place,) = alone[1].iterdir()
    assert all(file.stat().st_size <= MOST_BYTES for file in place.iterdir())
    monkeypatch.setattr(study_files, "ROOM", 10_000)
    cut = do(data, study_dir=tmp_path / "cut")
    (place,) = (tmp_path / "cut").iterdir()
    assert len(list(place.glob("*.safetensors"))) > 5
    assert all(file.stat().st_size < 12_000 for file in place.iterdir())
    again = do(data, study_dir=tmp_path / "cut")
    assert again.study is not None
    assert again.study["from"] == "file"
    assert_same(cut, again)


@pytest.mark.parametrize("name", [ABOUT_FILE, ".safetensors"])
@pytest.mark.parametrize("where", [0.1, 0.5, 0.99, None], ids=["begin", "middle", "end", "short"])
def test_a_damaged_study_is_computed_anew_and_that_is_said(
    data: Any, alone: tuple[Record, Path], kept: Path, name: str, where: float | None
) -> None:
    (file,) = kept.glob(f"*/*{name}")
    content = bytearray(file.read_bytes())
    if where is None:
        content = content[:-10]
    else:
        content[int(where * len(content))] ^= 4
    file.write_bytes(content)
    with pytest.warns(PreqWarning, match="the study is computed anew: .*"):
        again = do(data, study_dir=kept)
    assert again.study is not None
    assert again.study["from"] == "this run"
    assert_same(again, alone[0])


def forge(kept: Path, **changes: Any) -> dict[str, Any]:
    """Change what a file says, and seal it again, as one who wants to deceive would."""
    (file,) = kept.glob(f"*/{ABOUT_FILE}")
    about = unsealed(read_bytes(file), "study") | changes
    file.write_bytes(sealed(about, "study"))
    return about


def poison(kept: Path) -> str:
    """Replace what was studied by something else that fits in every way; gives its digest."""
    from safetensors.torch import load, save

    (file,) = kept.glob("*/*.safetensors")
    tensors = {name: tensor + (tensor.dtype == torch.float16) for name, tensor in load(file.read_bytes()).items()}
    ordered = [tensors[name] for name in sorted(tensors, key=lambda name: int(name.partition(".")[0]))]
    content = save(tensors)
    (file.parent / f"{digest_of(content)}.safetensors").write_bytes(content)
    forge(kept, parts=[digest_of(content)], digest=digest_of_tensors(ordered))
    return digest_of_tensors(ordered)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"key": "0" * 32}, "a study of other inputs"),
        ({"digest": "0" * 32}, "its tensors are not those"),
        ({"parts": []}, "tensor 0 is not like that of the network"),
        ({"parts": ["../../secret"]}, "names no part"),
        ({"parts": ["0" * 32]}, "cannot be read"),
        ({"format": 2}, "has format 2, this version reads 1"),
        ({"steps": -1}, "steps must be a whole number"),
    ],
)
def test_a_foreign_study_is_not_used(
    data: Any, alone: tuple[Record, Path], kept: Path, changes: dict[str, Any], words: str
) -> None:
    forge(kept, **changes)
    with pytest.warns(PreqWarning, match=words):
        again = do(data, study_dir=kept)
    assert_same(again, alone[0])


def encoded_of(model: Any, data: Any, **changes: Any) -> bytes:
    return pq.encode(model, data, METHOD, seed=0, threads=1, **changes)


encoded = partial(encoded_of, "lenet")


def blind(data: Any) -> Any:
    """The same inputs, every label 0."""
    inputs = data.inputs(np.arange(data.num_inputs)).numpy()
    return from_arrays(inputs, np.zeros(len(inputs), np.int64), num_classes=10).with_num_labels(len(data))


def test_a_decoder_studies_anew_and_never_believes_a_file_silently(
    data: Any, alone: tuple[Record, Path], kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    labels = data.labels(np.arange(128)).numpy()
    content = encoded(data, study_dir=kept)
    header = Container.from_bytes(content).header
    assert header["study"] == {"digest": digests(alone[0])[0], "steps": 4, "from": "file"}
    assert (pq.decode(content, blind(data)) == labels).all()
    assert (pq.decode(content, blind(data), trust_study=kept) == labels).all()
    honest, poisoned = digests(alone[0])[0], poison(kept)
    with pytest.raises(PreqError, match=f"has no study of digest {honest}"):
        pq.decode(content, blind(data), trust_study=kept)
    monkeypatch.setenv("PREQ_CACHE", str(kept.parent))
    kept.rename(kept.parent / "studies")
    forged = encoded(data)  # one that was made with the poisoned file
    assert Container.from_bytes(forged).header["study"]["digest"] == poisoned
    with pytest.raises(PreqError, match=rf"other weights here \(digest {honest}\) than there \(digest {poisoned}\)"):
        pq.decode(forged, blind(data))  # the decoder has the same file in its cache, and does not look


def test_a_study_without_a_digest_to_hold_it_against_is_not_trusted(data: Any, kept: Path) -> None:
    container = Container.from_bytes(encoded(data, study_dir=kept))
    without = {name: value for name, value in container.header.items() if name != "study"}
    with pytest.raises(PreqError, match="no digest that a study could be held against"):
        pq.decode(Container(without, container.payload).to_bytes(), data, trust_study=kept)


def test_experts_tell_of_each_of_their_studies(data: Any, alone: tuple[Record, Path], tmp_path: Path) -> None:
    both = do(data, TWO, study_dir=tmp_path / "both")
    assert both.study is not None
    assert [each["steps"] for each in both.study["each"]] == [4, 3]
    assert digests(both)[0] == digests(alone[0])[0]
    assert both.study["digest"] == digest_of("".join(digests(both)).encode())
    assert len(list((tmp_path / "both").iterdir())) == 2
    again = do(data, TWO, study_dir=tmp_path / "both")
    assert again.study is not None
    assert again.study["from"] == "file"
    assert_same(both, again)
    shared = do(data, pq.Experts.of_seeds("lenet", 2))
    assert shared.study is not None
    assert "each" not in shared.study  # one study for both
    assert (shared.flops or {})["study"] == (alone[0].flops or {})["study"]
    content = pq.encode(TWO, data, METHOD, seed=0, threads=1, study_dir=tmp_path / "both")
    for trusted in (None, tmp_path / "both"):
        assert (pq.decode(content, blind(data), trust_study=trusted) == data.labels(np.arange(128)).numpy()).all()


@pytest.mark.parametrize(
    "model", ["lenet", TWO, pq.Experts.of_seeds("lenet", 2), AVERAGES], ids=["one", "two studies", "shared", "averages"]
)
def test_a_run_that_is_stopped_in_its_study_and_after_it_goes_on_to_the_same_bits(
    data: Any, tmp_path: Path, model: Any
) -> None:
    def ask(progress: Progress) -> None:
        if (progress.studied_steps, progress.position) in stops:
            stops.discard((progress.studied_steps, progress.position))
            signal.raise_signal(signal.SIGTERM)

    stops = {(4, 0), (7, 0), (7, 64)} if model is TWO else {(1, 0), (3, 0), (4, 0), (4, 64)}
    number = len(stops)
    given = {"out": tmp_path / "run", "resume": True, "checkpoint_seconds": 0, "study_dir": tmp_path / "none"}
    for _ in range(number):
        with pytest.raises(pq.Interrupted):
            do(data, model, listeners=[ask], **given)
    resumed, whole = do(data, model, **given), do(data, model)
    assert_same(resumed, whole)
    assert resumed.study is not None
    assert resumed.study["from"] == "this run"


def test_averages_of_one_network_study_once(data: Any, alone: tuple[Record, Path]) -> None:
    record = do(data, AVERAGES, study_dir=alone[1])
    assert record.study is not None
    assert record.study == (alone[0].study or {}) | {"from": "file"}  # what a network alone has studied
    assert record.expert_nats is not None
    of_recipe = do(data, recipe=pq.Recipe(ema_step_size=0.02))
    assert record.expert_nats[:, 0].tobytes() == of_recipe.nats.tobytes()
    assert (record.flops or {})["study"] == (alone[0].flops or {})["study"]
    assert (of_recipe.flops or {})["code"] < (record.flops or {})["code"]  # which predicts twice


SMALL = pq.AllInputs(method=pq.ReplayStreams(num_streams=1, batch_size=8), study_steps=4, study_batch_size=16, beside=1)


class Power(nn.Module):
    """What it does is neither a weight nor printed."""

    power, dropout = 1, 0.0

    def forward(self, inputs: Tensor) -> Tensor:
        return nn.functional.dropout(inputs.relu() ** self.power, self.dropout, self.training)


def net(num_norms: int = 1, **of_power: float) -> Any:
    """A factory of one name, whatever it makes."""

    def mine(input_shape: tuple[int, ...], num_classes: int) -> nn.Module:
        norms, power = [nn.BatchNorm1d(8) for _ in range(num_norms)], Power()
        vars(power).update(of_power)
        return nn.Sequential(nn.Linear(input_shape[0], 8), *norms, power, nn.Linear(8, num_classes))

    return mine


def where(record: Record) -> str:
    assert record.study is not None
    return str(record.study["from"])


def test_a_network_whose_code_has_changed_studies_anew(tmp_path: Path) -> None:
    kept: dict[str, Any] = {"method": SMALL, "study_dir": tmp_path / "kept"}
    first = do(blobs(64), net(), **kept)
    assert [where(do(blobs(64), net(), **kept)), where(first)] == ["file", "this run"]
    changed = do(blobs(64), net(power=2), **kept)
    assert where(changed) == "this run"
    assert digests(changed) != digests(first)
    both = do(blobs(64), pq.Experts([pq.Expert(net(), seed=0), pq.Expert(net(power=2), seed=0)]), method=SMALL)
    assert digests(both) == [*digests(first), *digests(changed)]
    dropped = pq.Experts([pq.Expert(net(dropout=rate), seed=0) for rate in (0.1, 0.5)])
    assert len(digests(do(blobs(64), dropped, method=SMALL))) == 2


def test_a_network_that_is_changed_in_the_middle_of_its_study_is_refused(tmp_path: Path) -> None:
    def stop(progress: Progress) -> None:
        if progress.studied_steps == 2:
            signal.raise_signal(signal.SIGTERM)

    kept: dict[str, Any] = {"method": SMALL, "out": tmp_path / "run", "checkpoint_seconds": 0, "resume": True}
    with pytest.raises(pq.Interrupted):
        do(blobs(64), net(), **kept, listeners=[stop])
    with pytest.raises(PreqError, match="the model gives something else for the same weights"):
        do(blobs(64), net(power=2), **kept)
    assert do(blobs(64), net(), **kept).status == "finished"


def test_experts_that_treat_their_statistics_differently_study_apart() -> None:
    recipes = [pq.Recipe(batch_statistics=kind, ema_step_size=0.3) for kind in ("averaged", "raw")]
    model = net(num_norms=2)
    both = do(blobs(64), pq.Experts([pq.Expert(model, recipe=recipe, seed=0) for recipe in recipes]), method=SMALL)
    alone = [do(blobs(64), model, method=SMALL, recipe=recipe) for recipe in recipes]
    assert both.expert_nats is not None
    assert [column.tolist() for column in both.expert_nats.T] == [record.nats.tolist() for record in alone]


class Own(FromAllInputs):
    """A learner that studies in its own way."""

    def study_steps(self, batches: Any, event: int) -> None:
        super().study_steps(batches, event)
        with torch.no_grad():
            self.model[0].weight.mul_(1.1)  # type: ignore[index]


def test_a_learner_of_ones_own_neither_keeps_its_study_nor_takes_another(tmp_path: Path) -> None:
    given = SMALL.of(64)
    kept: dict[str, Any] = {"method": SMALL, "study_dir": tmp_path / "kept"}
    own = do(blobs(64), net(), **kept, learner=partial(Own, given=given))
    assert not (tmp_path / "kept").exists()
    honest = do(blobs(64), net(), **kept)
    assert where(honest) == "this run"
    assert digests(honest) != digests(own)
    again = do(blobs(64), net(), **kept, learner=partial(Own, given=given))
    assert (where(again), digests(again)) == ("this run", digests(own))


def test_studies_are_told_in_the_order_of_the_experts_wherever_they_are_from(data: Any, tmp_path: Path) -> None:
    do(data, method=OTHER, study_dir=tmp_path / "kept")  # that of the second alone
    content = encoded_of(TWO, data, study_dir=tmp_path / "kept")
    told = Container.from_bytes(content).header["study"]
    assert [(each["steps"], each["from"]) for each in told["each"]] == [(4, "this run"), (3, "file")]
    assert (pq.decode(content, blind(data)) == data.labels(np.arange(128)).numpy()).all()


def test_a_study_that_half_precision_cannot_hold_is_told() -> None:
    inputs = blobs(64).stored_inputs.numpy() * 1e4
    data: Any = from_arrays(inputs, np.arange(64) % 3, num_classes=3)
    with pytest.raises(
        PreqError, match=r"up to .*e\+\d+, more than the 65,504 that half precision holds; bring inputs"
    ):
        do(data, net(), method=SMALL)


def test_a_damaged_study_beside_it_does_not_keep_one_from_being_trusted(data: Any, kept: Path) -> None:
    content = encoded(data, study_dir=kept)
    (kept / "0").mkdir()
    (kept / "0" / ABOUT_FILE).write_text("{}")
    assert (pq.decode(content, blind(data), trust_study=kept) == data.labels(np.arange(128)).numpy()).all()


KILLED = """
import os, signal, sys
import prequential as pq
from prequential.runs import recorder
recorder.SECONDS_BETWEEN_PAUSES = 0.0
data = pq.load_data("mnist").take(160).with_num_labels(128).without_heldout()
method = pq.AllInputs(
    method=pq.ReplayStreams(num_streams=1, batch_size=32), study_steps=4, study_batch_size=32, beside=1
)
out, step, position = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
def die(progress):
    if progress.studied_steps >= step and progress.position >= position:
        os.kill(os.getpid(), signal.SIGKILL)
pq.run("lenet", data, method, seed=0, threads=1, out=out, resume=True, checkpoint_seconds=0, listeners=[die])
"""


def test_a_killed_study_and_a_killed_run_go_on_to_the_same_bits(
    data: Any, alone: tuple[Record, Path], tmp_path: Path
) -> None:
    for step, position in ((3, 0), (4, 64)):
        command = [sys.executable, "-c", KILLED, str(tmp_path / "run"), str(step), str(position)]
        assert subprocess.run(command, capture_output=True).returncode == -signal.SIGKILL
    assert_same(do(data, out=tmp_path / "run", resume=True), alone[0])


def test_commands_tell_what_was_studied(tmp_path: Path, capsys: Captured) -> None:
    out, stream, labels = tmp_path / "run", tmp_path / "labels.preq", tmp_path / "labels.npy"
    assert main(["run", *ASKED, "--out", str(out)]) == 0
    text = capsys.readouterr().out
    assert "given                    all inputs" in text
    assert "of it studying" in text
    assert main(["encode", *ASKED, "--members", "2", "-o", str(stream)]) == 0
    assert "3 steps before the first label" in capsys.readouterr().out
    decode = ["decode", str(stream), "--data", "mnist", "-o"]
    assert main([*decode, str(labels), "--trust-study", str(tmp_path / "cache" / "studies")]) == 0
    assert "verified (study not recomputed)" in capsys.readouterr().out
    assert main(["verify", str(out)]) == 0
    said = capsys.readouterr().out
    assert "every label identical" in said
    assert "not recomputed" not in said
    assert main(["verify", str(out), "--trust-study", str(tmp_path / "cache" / "studies"), "--json"]) == 0
    assert '"study_recomputed": false' in capsys.readouterr().out
    honest, poisoned = digests(pq.load(out))[0], poison(tmp_path / "cache" / "studies")
    assert main(["run", *ASKED, "--out", str(tmp_path / "poisoned")]) == 0
    assert "from a file" in capsys.readouterr().out
    assert main(["verify", str(tmp_path / "poisoned")]) == 2
    told = capsys.readouterr().err
    assert honest in told
    assert poisoned in told
    assert main(["run", *ASKED[:4], "--study-dir", "x"]) == 2
    assert "--study-dir is about what is studied of all inputs" in capsys.readouterr().err


def test_progress_tells_studying_from_learning(data: Any) -> None:
    heard: list[Progress] = []
    do(data, listeners=[heard.append])
    assert [(each.studied_steps, each.study_steps, each.position) for each in heard[:3]] == [
        (1, 4, 0),
        (2, 4, 0),
        (3, 4, 0),
    ]
    assert heard[-1].studied_steps == 4


def test_features_that_a_study_has_made_small_are_standardised() -> None:
    """Nothing in the loss of a study depends on their scale, so that weight decay takes it down."""
    features = 0.02 * torch.randn(256, 4, generator=torch.Generator().manual_seed(0))
    assert LastLayer(4, 2).standardise(features).std(0).min() > 0.97


def no_bias(input_shape: Any, output_size: int) -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, output_size, bias=False))


def test_weights_that_fit_no_model_are_refused_before_the_run(tmp_path: Path) -> None:
    """A study leaves the last layer with a bias."""
    plain = pq.ReplayStreams(num_streams=1, batch_size=16)
    method = pq.AllInputs(method=plain, study_steps=2, study_batch_size=16)
    with pytest.raises(PreqError, match=r"others there \(3.bias\), so that its weights cannot be kept"):
        pq.run(no_bias, blobs(48), method, seed=0, out=tmp_path / "run", keep_weights=True)
    assert not (tmp_path / "run").exists()
    pq.run(no_bias, blobs(48), plain, seed=0, out=tmp_path / "plain", keep_weights=True)


@pytest.mark.parametrize(
    ("device", "deterministic", "is_another"), [("cpu", False, True), ("cuda", False, False), ("cuda", True, True)]
)
def test_another_cpu_means_another_study_where_bits_are_the_same_each_time(
    device: str, deterministic: bool, is_another: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    learner: Any = SimpleNamespace(device=torch.device(device), study_key="key", begins_as="0.1 0.2")
    names = (*study_files.DECIDE, *study_files.ON_A_CPU, *study_files.ELSEWHERE, *study_files.OF_THE_CPU)

    def found(**changes: Any) -> Path:
        here = dict.fromkeys(names, "here") | {"deterministic": deterministic} | changes
        monkeypatch.setattr(study_files, "arithmetic", lambda _: here)
        return study_files.place_of(Path("studies"), learner)

    assert (found() != found(processor="another")) == is_another
    assert found() != found(torch="another")
