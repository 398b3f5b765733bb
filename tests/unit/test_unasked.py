"""What a record names as its data is used where fingerprints confirm it; of other files nothing is told or fetched."""

import os
import socket
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import prequential as pq
from prequential.cli import main
from prequential.coding.container import Container
from prequential.data import download
from prequential.data.sources import SOURCES, open_source
from prequential.data.sources.request import NotHere
from prequential.errors import PreqError

Captured = pytest.CaptureFixture[str]
SECRET = "hunter2"
LENGTH = 24
JOB = ["--streams", "1", "--batch-size", "8", "--threads", "1", "--width", "0.05", "--json"]


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """Every way out is noted and closed; the cache is empty."""
    asked: list[str] = []

    def refuse(what: str) -> Callable[..., Any]:
        def refused(*arguments: Any, **_: Any) -> Any:
            asked.append(f"{what} {arguments}")
            raise OSError("there is no network in this test")

        return refused

    monkeypatch.setattr(socket.socket, "connect", refuse("connect"))
    monkeypatch.setattr(socket, "getaddrinfo", refuse("look up"))
    monkeypatch.setattr(download, "_download", refuse("download"))
    monkeypatch.setenv("PREQ_CACHE", str(tmp_path / "cache"))
    return asked


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table, and a finished run on it beside it."""
    folder = tmp_path_factory.mktemp("honest")
    rows = "\n".join(f"{i % 7},{i % 3},{i % 2}" for i in range(LENGTH))
    (folder / "t.csv").write_text(f"a,b,class\n{rows}\n")
    assert main(["run", *JOB, f"csv:{folder / 't.csv'}", "mlp1", "--out", str(folder / "run")]) == 0
    return folder


def renamed(table: Path, to: Path, source: dict[str, Any] | None, **changes: Any) -> str:
    """The run, as a stranger hands it over: with another source."""
    replace(pq.load(table / "run"), source=source, path=None, **changes).save(to)
    return str(to)


def secrets(folder: Path) -> dict[str, str]:
    """Files that somebody may have, as each kind of source names them."""
    (folder / "passwords").write_text(f"{SECRET}\nroot:{SECRET}:0\n")
    (folder / "s.csv").write_text(f"{SECRET},b,class\n1,{SECRET},0\n2,3,1\n")
    (folder / "ok.csv").write_text("a,b,class\n1,2,0\n2,3,1\n")
    np.savez(folder / "s.npz", **{SECRET: np.zeros(2), "b": np.zeros(2), "c": np.zeros(2)})  # type: ignore[arg-type]
    for name in ("a", "b"):
        (folder / "pictures" / name).mkdir(parents=True)
        (folder / "pictures" / name / f"{SECRET}.txt").write_text(SECRET)
        (folder / "pictures" / name / f"{SECRET}.png").write_bytes(b"no image")
    (folder / "odd").mkdir()
    (folder / "odd" / "prepared.json").write_text(f'{{"checksum": "{SECRET}", "content": {{"name": "{SECRET}"}}}}')
    kinds = {"list": "passwords", "csv": "s.csv", "npz": "s.npz", "folder": "pictures", "prepared": "odd", "hf": "odd"}
    named = {kind: f"{kind}:{folder / name}" for kind, name in kinds.items()}
    of_text = {f"{kind} of text": f"{kind}:{folder / 'passwords'}" for kind in kinds}
    return named | of_text | {"another table": f"csv:{folder / 'ok.csv'}"}


def test_what_is_not_the_data_of_the_run_is_not_told_of(table: Path, tmp_path: Path, capsys: Captured) -> None:
    for number, (kind, name) in enumerate(secrets(tmp_path).items()):
        options: list[dict[str, Any]] = [{}, {"label": "wrong"}, {"size": 16}]
        for part, more in enumerate(options):
            run = renamed(table, tmp_path / f"{number}-{part}", {"name": name} | more)
            capsys.readouterr()
            assert main(["verify", run]) == 2, kind
            out, err = capsys.readouterr()
            assert not out
            assert SECRET not in err, kind
            assert len(err.splitlines()) == 1, kind
            assert f"names '{name}' as its data, which is not used: " in err
            assert err.endswith("name the data yourself (--data)\n")


def test_the_same_where_only_the_name_of_the_data_says_so(table: Path, tmp_path: Path, capsys: Captured) -> None:
    data = pq.load(table / "run").data | {"name": secrets(tmp_path)["list"]}
    assert main(["verify", renamed(table, tmp_path / "run", None, data=data)]) == 2
    assert SECRET not in "".join(capsys.readouterr())


def test_no_record_calls_the_network(
    table: Path, tmp_path: Path, capsys: Captured, no_network: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    datasets = pytest.importorskip("datasets")

    def ask(name: str) -> None:
        no_network.append(f"hub {name}")
        raise OSError("there is no network in this test")

    monkeypatch.setattr(datasets, "load_dataset", ask)
    names = [name for name, source in SOURCES.items() if source.files is not None and source.files.remote]
    for number, name in enumerate([*names, "hf:somebody/data", "hf:https://example.org/x", "hf:s3://bucket/x"]):
        assert main(["verify", renamed(table, tmp_path / f"{number}", {"name": name})]) == 2
        err = capsys.readouterr().err
        assert "which is not used: " in err
        assert "unasked" in err or "the Hub is not asked" in err
    assert len(names) >= 9
    assert no_network == []
    assert main(["verify", str(tmp_path / "0"), "--data", "hf:somebody/data"]) == 2
    assert no_network == ["hub somebody/data"], "who asks for it gets it"
    assert main(["verify", str(tmp_path / "0"), "--data", "cifar10"]) == 2
    assert no_network[1].startswith("download")


def test_devices_and_pipes_are_not_opened(table: Path, tmp_path: Path, capsys: Captured) -> None:
    os.mkfifo(tmp_path / "pipe")
    for number, path in enumerate([tmp_path / "pipe", Path("/dev/zero"), Path("/dev/stdin")]):
        for kind in ("csv", "list", "npz"):
            run = renamed(table, tmp_path / f"{number}{kind}", {"name": f"{kind}:{path}"})
            assert main(["verify", run]) == 2
            assert "is neither a file nor a folder" in capsys.readouterr().err
    (tmp_path / "list.txt").write_text("pipe 0\n/dev/zero 1\n")
    images: dict[str, Any] = {"name": f"list:{tmp_path / 'list.txt'}", "skip_broken": True, "size": 8}
    assert main(["verify", renamed(table, tmp_path / "images", images)]) == 2
    assert "holds what is no file" in capsys.readouterr().err


@pytest.mark.parametrize(
    "source",
    [
        {"name": "rgb-mnist", "examples": 10**12},
        {"name": "mnist", "order": "given"},
        {"name": "mnist", "unasked": False},
        {"name": "csv:\0"},
    ],
)
def test_sources_that_no_run_of_ours_has(source: dict[str, Any], table: Path, tmp_path: Path, capsys: Captured) -> None:
    run = renamed(table, tmp_path / "run", source)
    assert main(["verify", run]) == 2
    assert "as its data, which is not used: " in capsys.readouterr().err
    assert main(["verify", run, "--data", "rgb-mnist"]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


@pytest.mark.parametrize(
    "source",
    [
        {"name": 3},
        {"label": "class"},
        *({"name": "csv:t.csv", **more} for more in ({"label": ["a"]}, {"schema": "s.json"})),
    ],
)
def test_sources_that_no_record_can_have(source: dict[str, Any], table: Path, tmp_path: Path, capsys: Captured) -> None:
    run = renamed(table, tmp_path / "run", source)
    for named in ([], ["--data", "rgb-mnist"]):
        assert main(["verify", run, *named]) == 2
        assert "record.json is damaged: source." in capsys.readouterr().err


def test_data_that_has_moved_is_named_again(table: Path, tmp_path: Path, capsys: Captured) -> None:
    run = renamed(table, tmp_path / "run", {"name": "csv:elsewhere.csv", "label": "class"})
    assert main(["verify", run]) == 2
    assert "elsewhere.csv is not there; check the path behind 'csv:'; name the data yourself" in capsys.readouterr().err
    assert main(["verify", run, "--data", f"csv:{table / 't.csv'}"]) == 0
    capsys.readouterr()
    (tmp_path / "other.csv").write_text((table / "t.csv").read_text().replace("3", "4"))
    assert main(["verify", run, "--data", f"csv:{tmp_path / 'other.csv'}"]) == 2
    assert "other.csv' is not what" in capsys.readouterr().err
    assert main(["verify", run, "--data", f"csv:{table / 't.csv'}", "--label", "nothing"]) == 2
    assert "unknown column of" in capsys.readouterr().err, "who names a file is told of it"


def test_resume_and_decode_read_what_they_are_told_to(
    table: Path, tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    stranger, opened = secrets(tmp_path)["list"], list[str]()
    run = renamed(table, tmp_path / "run", {"name": stranger})
    assert main(["encode", *JOB, f"csv:{table / 't.csv'}", "mlp1", "-o", str(tmp_path / "honest.preq")]) == 0
    honest = Container.from_bytes((tmp_path / "honest.preq").read_bytes())
    header = honest.header | {"data": honest.header["data"] | {"name": stranger}, "source": {"name": stranger}}
    (tmp_path / "odd.preq").write_bytes(Container(header, honest.payload).to_bytes())

    def noting(name: str, *arguments: Any, **options: Any) -> Any:
        opened.append(name)
        return open_source(name, *arguments, **options)

    monkeypatch.setattr("prequential.data.sources.open_source", noting)
    csv = f"csv:{table / 't.csv'}"
    assert main(["run", *JOB, csv, "mlp1", "--out", run, "--resume"]) == 0
    assert main(["decode", str(tmp_path / "odd.preq"), "--data", csv, "-o", str(tmp_path / "labels.npy")]) == 0
    assert main(["decode", str(tmp_path / "odd.preq"), "-o", str(tmp_path / "more.npy")]) == 2
    assert opened == [csv, csv]
    capsys.readouterr()


def test_notes_of_data_that_is_confirmed_are_told(
    table: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = SOURCES["csv:"].read

    def noting(request: Any) -> Any:
        warnings.warn("two columns are constant", pq.errors.PreqWarning, stacklevel=1)
        return read(request)

    monkeypatch.setitem(SOURCES, "csv:", replace(SOURCES["csv:"], read=noting))
    assert main(["verify", str(table / "run")]) == 0
    assert capsys.readouterr().err == "preq: note: two columns are constant\n"


def test_unasked_data_is_what_is_here(table: Path) -> None:
    assert len(open_source(f"csv:{table / 't.csv'}", None, None, None, {}, unasked=True)) == LENGTH
    assert len(open_source("mnist", None, None, None, {}, unasked=True)) == 60_000
    with pytest.raises(NotHere, match="cifar10 is not on this machine, and nothing is downloaded unasked"):
        open_source("cifar10", None, None, None, {}, unasked=True)
    with pytest.raises(PreqError, match="is not there"):
        open_source("csv:nowhere.csv", None, None, None, {})
