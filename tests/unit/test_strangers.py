"""Files that somebody has edited: one line that names the place, at once, whatever they claim."""

import io
import json
import struct
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import prequential as pq
from prequential.cli import main
from prequential.coding.container import Container
from prequential.data.sources import load
from prequential.errors import PreqError
from prequential.plain import MisfitError, checksum_of, parsed, require_shape, sealed, unsealed
from prequential.report.plots.ages import count_ages
from prequential.report.standings import RunReader
from prequential.runs.live import read_standing
from prequential.sweeps.directory import SweepFile
from prequential.sweeps.pruning import best_noted

from ..conftest import blobs
from ..synthetic import synthetic_record

ROOT = Path(__file__).parents[2]
METHOD = pq.ReplayStreams(num_streams=1, batch_size=8)


def rewritten(file: Path, name: str, **changes: Any) -> None:
    """Change a sealed file, and its checksum with it."""
    file.write_bytes(sealed(unsealed(file.read_bytes(), name) | changes, name))


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("{", "Expecting"),
        ("[" * 100_000, "more than 24 levels"),
        ("[" * 30 + "]" * 30, "more than 24 levels"),
        ('{"a": NaN}', "a must be a finite number"),
        ('{"a": [1, -1e999]}', "a.1 must be a finite number"),
        (f'{{"a": {2**128}}}', "a must be a finite number of at most 128 bits"),
        (f'{{"a": {"9" * 5000}}}', "Exceeds the limit"),
        (f'["{"x" * 20_000}"]', "0 must be text of at most 16,384 letters"),
        (r'["\ud800"]', "must be text"),
        (r'{"\u001b[1m": 1e999}', r"\x1b[1m must be"),
    ],
)
def test_only_plain_values_are_read(text: str, complaint: str) -> None:
    with pytest.raises(MisfitError) as caught:
        parsed(text)
    assert complaint in str(caught.value)
    assert str(caught.value).isprintable()


def test_a_shape_names_the_place() -> None:
    shape = {"name": str, "parts": [{"size": range(4)}], "more?": (None, bool), "*": (None, str)}
    require_shape({"name": "a", "parts": [{"size": 3}], "other": None}, shape)
    for changes, complaint in (
        ({"parts": [{"size": 3}, {"size": 4}]}, "parts.1.size must be a whole number in 0 … 3, got 4"),
        ({"parts": [{"size": True}]}, "parts.0.size must be a whole number in 0 … 3, got True"),
        ({"parts": {}}, "parts must be a list, got an object"),
        ({"more": 1}, "more must be null or true or false, got 1"),
        ({"other": 1}, "other must be null or text, got 1"),
        ({"parts": [{}]}, "parts.0.size is missing"),
    ):
        with pytest.raises(MisfitError, match=complaint):
            require_shape({"name": "a", "parts": []} | changes, shape)


@pytest.mark.parametrize(
    "changes",
    [
        *({"length": 1 << 70}, {"length": -1}, {"seeds": {"seed": "0"}}, {"model": {"name": []}}, {"method": {}}),
        *({"status": "done"}, {"seconds": "long"}, {"flops": {"code": 1}}, {"heldout": {"loss": None}}),
        *({"model": {"name": "a"}}, {"data": {"name": "a", "inputs": "0", "labels": "1"}}),
        *({"data": {"name": "a"}}, {"arrays": {}}, {"arrays": 3}, {"environment": {"device": 7}}, {"length": 65}),
    ],
    ids=str,
)
def test_an_edited_record_is_refused_in_one_line(
    changes: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    synthetic_record(0, 64).save(tmp_path / "run")
    rewritten(tmp_path / "run/record.json", "record", **changes)
    assert main(["compare", str(tmp_path / "run")]) == 2
    assert "record.json is damaged" in capsys.readouterr().err
    assert main(["watch", str(tmp_path / "run"), "--once"]) == 0
    assert "unreadable" in capsys.readouterr().out


@pytest.mark.parametrize("number", [0, 1, 5])
def test_a_record_of_fewer_classes_than_its_labels_have_is_refused(number: int, tmp_path: Path) -> None:
    synthetic_record(0, 64).save(tmp_path / "run")
    rewritten(tmp_path / "run/record.json", "record", num_classes=number)
    with pytest.raises(PreqError, match=f"does not fit .*record.json, which has {number} classes"):
        pq.load(tmp_path / "run")


@pytest.mark.parametrize("missing", ["threads", "device"])
def test_a_record_without_its_machine_proves_nothing(
    missing: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record = pq.run("mlp1", blobs(32).without_heldout(), METHOD, seed=0, width=0.02, threads=1, out=tmp_path / "run")
    left = {name: value for name, value in record.environment.items() if name != missing}
    rewritten(tmp_path / "run/record.json", "record", environment=left)
    assert main(["verify", str(tmp_path / "run")]) == 2
    assert f"does not say its {missing}" in capsys.readouterr().err


def test_more_threads_than_the_machine_can_have_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "mnist", "mlp1", "--length", "64", "--threads", "100000"]) == 2
    assert "100000 threads are too many" in capsys.readouterr().err


def test_watch_shows_no_array_that_is_not_the_records(tmp_path: Path) -> None:
    synthetic_record(0, 64).save(tmp_path / "run")
    assert RunReader(tmp_path / "run").read().status == "finished"
    content = bytearray((tmp_path / "run/nats.npy").read_bytes())
    content[200] ^= 1
    (tmp_path / "run/nats.npy").write_bytes(content)
    with pytest.raises(PreqError, match=r"nats.npy is damaged"):
        RunReader(tmp_path / "run").read()


def test_progress_and_best_that_make_no_sense_count_as_none(tmp_path: Path) -> None:
    told = {"position": 3, "errors": 1, "trained_examples": 6, "seconds": 1.5, "nats": 2.0, "host": "here"}
    file = tmp_path / "progress.json"
    for text, is_read in (
        (json.dumps(told), True),
        (json.dumps(told | {"checksum": checksum_of(told)}), True),
        (json.dumps(told | {"position": 4, "checksum": checksum_of(told)}), False),
        (json.dumps(told | {"position": 1e30}), False),
        (json.dumps(told | {"nats": "many"}), False),
        ("[" * 9999, False),
    ):
        file.write_text(text)
        assert (read_standing(tmp_path) is not None) == is_read, text[:80]
    for text in ('{"number": "1"}', "[]", '{"number": -1}', "{", '{"number": 1e400}'):
        (tmp_path / "best.json").write_text(text)
        assert best_noted(tmp_path) is None


@pytest.mark.parametrize("lie", [{"length": 10**11}, {"shard_rows": 1, "length": 10**11}, {"dtype": "|O"}])
def test_a_prepared_index_that_lies_is_refused_at_once(lie: dict[str, Any], tmp_path: Path) -> None:
    pq.prepare(blobs(48), tmp_path / "p")
    rewritten(tmp_path / "p/prepared.json", "content", **lie)
    with pytest.raises(PreqError, match="damaged"):
        load(f"prepared:{tmp_path / 'p'}")


@pytest.mark.parametrize("lie", [{"trials": 1 << 40}, {"trials": "3"}, {"settings": []}, {"study": None}])
def test_a_sweep_that_lies_is_refused(lie: dict[str, Any], tmp_path: Path) -> None:
    settings = {"model": "mlp1", "data": {"name": "a"}, "method": {"name": "mi-rs"}, "recipe": {}}
    content = {"format": 2, "mark": "m", "study": "s", "storage": None, "trials": 3, "settings": settings}
    (tmp_path / "sweep.json").write_text(json.dumps(content))
    assert SweepFile.read(tmp_path).trials == 3
    (tmp_path / "sweep.json").write_text(json.dumps(content | lie))
    with pytest.raises(PreqError, match=rf"sweep.json is damaged: {next(iter(lie))}"):
        SweepFile.read(tmp_path)
    (tmp_path / "sweep.json").write_text(json.dumps(content | {"trials": 4, "checksum": checksum_of(content)}))
    with pytest.raises(PreqError, match="its checksum does not fit"):
        SweepFile.read(tmp_path)


def archive(path: Path, header: str, rows: bytes = b"", **more: bytes) -> str:
    """An npz file whose array of inputs has that header."""
    text = header.ljust(117) + "\n"
    buffer = io.BytesIO()
    np.save(buffer, np.arange(4) % 2)
    with zipfile.ZipFile(path / "a.npz", "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("x.npy", b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode() + rows)
        file.writestr("y.npy", buffer.getvalue())
    return f"npz:{path / 'a.npz'}"


def described(shape: str, kind: str = "<f4") -> str:
    return f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}"


@pytest.mark.parametrize(
    ("header", "complaint"),
    [
        (described("(1000000000000, 784)"), "its size is another"),
        (described("(4, 2)"), "its size is another"),
        (described("(4, 2)", "|O"), "holds pickled objects"),
        (described("(4, 2)", "<f3"), "is damaged"),
        ("{'descr': __import__('os')}", "no array of plain numbers"),
        (described("(" * 9000), "no array of plain numbers"),
    ],
)
def test_an_array_is_sized_before_memory_is_given(tmp_path: Path, header: str, complaint: str) -> None:
    with pytest.raises(PreqError, match=complaint):
        load(archive(tmp_path, header))
    good = archive(tmp_path, described("(4, 2)"), np.arange(8, dtype="f4").tobytes())
    assert load(good).input_shape == (2,)


def test_a_damaged_name_in_an_archive_takes_nothing_away(tmp_path: Path) -> None:
    x, y = np.zeros((4, 2), "f4"), np.arange(4) % 2
    np.savez(tmp_path / "a.npz", x_train=x, y_train=y, x_test=x, y_test=y)
    content = (tmp_path / "a.npz").read_bytes()
    at = content.rindex(b"x_test")
    (tmp_path / "a.npz").write_bytes(content[:at] + b"x_tesu" + content[at + 6 :])
    with pytest.raises(PreqError, match=r"cannot be read as .npz"):
        load(f"npz:{tmp_path / 'a.npz'}")


def test_damage_that_hides_an_array_of_an_archive_is_noticed(tmp_path: Path) -> None:
    x, y = np.zeros((4, 2), "f4"), np.arange(4) % 2
    np.savez(tmp_path / "a.npz", x_train=x, y_train=y, x_test=x, y_test=y)
    content = bytearray((tmp_path / "a.npz").read_bytes())
    comment_length = content.rindex(b"PK\x01\x02", 0, content.rindex(b"PK\x01\x02")) + 32
    content[comment_length] = len(content) - content.rindex(b"PK\x01\x02") - 22  # it swallows the entry after it
    (tmp_path / "a.npz").write_bytes(content)
    with pytest.raises(PreqError, match="its list of arrays is not as long as it says"):
        load(f"npz:{tmp_path / 'a.npz'}")


def test_decode_says_what_it_takes_and_refuses_more(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    data = blobs(64)
    content = pq.encode("mlp1", data, METHOD, seed=0, width=0.02)
    np.save(tmp_path / "inputs.npy", data.stored_inputs.numpy())
    container = Container.from_bytes(content)
    endless = Container(
        container.header | {"method": {"name": "ci-fs", "split_points": [16], "epochs": 1 << 39}}, container.payload
    )
    for name, bits in (("right", content), ("endless", endless.to_bytes())):
        (tmp_path / f"{name}.preq").write_bytes(bits)

    def decode(name: str, *flags: str) -> tuple[int, str, str]:
        words = ["decode", str(tmp_path / f"{name}.preq"), "--inputs", str(tmp_path / "inputs.npy")]
        return main([*words, "-o", str(tmp_path / f"{name}.npy"), *flags]), *capsys.readouterr()

    status, out, _ = decode("right", "--max-flops", "1e9")
    assert status == 0
    assert "64 labels in" in out.splitlines()[0]
    assert "a plan of at most 32 events" in out.splitlines()[0]
    with pytest.raises(PreqError, match=r"takes about .* FLOPs, more than --max-flops 10"):
        pq.decode(content, data, max_flops=10)
    status, _, err = decode("endless", "--max-flops", "1e9")
    assert status == 2
    assert "FLOPs, more than --max-flops 1e+09" in err
    monkeypatch.setattr("prequential.runs.codec.make_session", lambda *_, **__: pytest.fail("a network was built"))
    with pytest.raises(PreqError, match="FLOPs, more than"):
        pq.decode(endless.to_bytes(), data, max_flops=1e9)
    assert decode("right", "--max-flops", "-1")[0] == 2


def test_verify_refuses_more_than_it_may(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = load("mnist").take(64).without_heldout()
    pq.run("mlp1", data, METHOD, seed=0, width=0.02, out=tmp_path / "run")
    assert main(["verify", str(tmp_path / "run"), "--max-flops", "1000"]) == 2
    assert "more than --max-flops 1000" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("method", "length"),
    [
        (pq.ChunksFromScratch(split_points=(16,), epochs=1 << 40), 64),
        (pq.ReplayStreams(num_streams=1_000_000, batch_size=1 << 20), 1 << 20),
        (METHOD, 1 << 39),
    ],
)
def test_replays_that_nobody_can_count_are_not_drawn(method: pq.Method, length: int) -> None:
    with pytest.raises(PreqError, match="replays more than can be counted here"):
        count_ages(method, length, 0)


def test_2000_damaged_and_edited_files() -> None:
    command = [sys.executable, str(ROOT / "benchmarks/fuzz.py"), "--count", "2000", "--seed", "17"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
