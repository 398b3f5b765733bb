"""Comparisons as a person sees them: the table, the sentences, the files, notebooks, and what is refused."""

import csv
import html.parser
import json
import math
import os
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import prequential as pq
from prequential import PreqError, Record, cli
from prequential.lock import DirectoryLock

from ..records import made_record

Captured = pytest.CaptureFixture[str]
LENGTH = 40
LABELS = [0] * 20 + [1] * 20


def made(nats: float, *, name: str, rate: float = 0.1, **changes: Any) -> Record:
    first = changes.pop("first", nats)
    values = [first] * (LENGTH // 2) + [nats] * (LENGTH - LENGTH // 2)
    return made_record(values, name=name, labels=LABELS, recipe={"learning_rate": rate}, **changes)


def erm(name: str = "erm", **changes: Any) -> Record:
    facts = {"method": {"name": "erm"}, "status": "finished", "heldout": {"loss": 0.1, "error_rate": 0.02}}
    return made_record([], name=name, length=LENGTH, prequential=False, **facts | changes)


def saved(folder: Path, *records: Record) -> Path:
    for record in records:
        assert record.path is not None
        replace(record, path=None).save(folder / record.path.relative_to("runs"))
    return folder


RUNS = [
    made(0.5, name="good-0", seed=0, first=1.0),
    made(0.75, name="good-1", seed=1, first=1.0),
    made(1.0, name="fair-0", rate=0.2, seed=0, first=0.5),
    made(1.5, name="fair-1", rate=0.2, seed=1, first=0.5),
    made(500.0, name="bad", rate=0.3),
    made_record([0.5, math.inf], name="lost", length=LENGTH, labels=LABELS, recipe={"learning_rate": 0.4}),
]


def test_every_figure_of_an_entry() -> None:
    comparison = pq.compare([*RUNS, erm()])
    good, fair, bad, lost = comparison.entries
    assert [entry.name for entry in comparison.entries] == ["good", "fair", "bad", "lost"]
    assert (good.runs, fair.runs, bad.runs) == (["good-0", "good-1"], ["fair-0", "fair-1"], ["bad"])
    assert (good.nats, good.standard_error, good.errors) == (32.5, 2.5, 20.0)
    assert good.bits_per_label == pytest.approx(32.5 / 40 / math.log(2))
    assert comparison.simple["uniform"] == pytest.approx(40 * math.log(2))
    assert comparison.simple["previous"] < comparison.simple["uniform"] < comparison.simple["frequencies"]
    for code, nats in comparison.simple.items():
        assert good.savings[code] == pytest.approx(1 - 32.5 / nats)
    assert (good.heldout_loss, good.heldout_error, good.flops, good.seconds) == (0.5, 0.25, 100.0, 2.0)
    assert (fair.difference, fair.log_odds, fair.leads_from, good.leads_from) == (2.5, 2.5, 36, 36)
    assert fair.early_share == good.early_share == -0.8
    assert (good.p_value, fair.p_value) == (None, 0.5)  # differences 0 and 5: t = 1 with one degree of freedom
    assert (bad.difference, bad.p_value, bad.leads_from) == (20_000 - 32.5, None, 0)
    assert (lost.nats, lost.difference, lost.log_posterior, lost.errors) == (math.inf, math.inf, -math.inf, None)
    assert (lost.leads_from, lost.early_share, lost.savings["uniform"]) == (1, None, -math.inf)
    (without,) = comparison.uncoded
    assert (without.name, without.heldout_loss, without.flops) == ("erm", 0.1, 100.0)
    assert comparison.sentences() == [
        "good needs 2.5 nats less than fair, odds 12 : 1; it leads from position 36 on; "
        "it was behind after the first 10 % of the data.",
        "Seed by seed the difference is 2.5 ± 2.5 nats over 2 shared seeds: p = 0.500 (paired t-test); "
        "these seeds alone do not show that the settings differ.",
        "Infinite, since a label got probability 0 or a prediction was no number: lost.",
        "None beats a code without any model: the code of the previous label with "
        f"{comparison.simple['previous']:.1f} nats.",
        "Choosing the best of 4 settings afterwards costs ln 4 = 1.39 nats more.",
        "Without a codelength, so that only held-out figures are shown: erm.",
    ]


def test_other_things_that_sentences_say() -> None:
    one, other = made(0.25, name="one"), made(0.5, name="other", rate=0.2)
    said = pq.compare([one, other]).sentences()
    assert said[0].endswith(
        "it leads from position 0 on; 10 % of its advantage was earned in the first 10 % of the data."
    )
    assert said[1] == "One seed each: whether other seeds would say the same is not tested."
    assert pq.compare([one]).sentences()[0].startswith("one does not beat a code without any model: the code of ")
    assert pq.compare([one, made(0.01, name="x", rate=0.2)]).sentences()[2].startswith("1 of 2 does not beat a code ")
    tie = pq.compare([one, replace(other, nats=one.nats)])
    assert tie.sentences()[0] == "one and other have codes of the same length."
    assert [entry.leads_from for entry in tie.entries] == [None, None]
    lost = [made_record([math.inf], name=name, length=9, recipe={"r": name}) for name in "abcde"]
    both = pq.compare(lost)
    assert both.sentences()[0] == "No code is finite."
    assert (
        "Infinite, since a label got probability 0 or a prediction was no number: a, b, c and 2 more."
        in both.sentences()
    )
    assert len(both.sentences()) == 3  # nothing of tests, nor of choosing a best one
    for entry in both.entries:
        assert np.isnan([entry.difference, entry.log_odds, entry.log_posterior]).all()
    assert both.heads() == ["run", "nats", "bits per label", "FLOPs", "seconds"]
    half = pq.compare([one, made(0.5, name="o-0", rate=0.2), replace(lost[0], length=40, recipe={"learning_rate": 0.2},
                       seeds={**one.seeds, "seed": 1})]).sentences()  # fmt: skip
    assert "Infinite, since a label got probability 0 or a prediction was no number: net (1 of 2 seeds)." in half
    assert pq.compare([one, made_record([math.inf], name="z", length=40, recipe={})]).sentences()[0] == (
        "one is the only one with a finite code."
    )
    mixed = pq.compare([one, made(0.25, name="one-1", seed=1), made(0.5, name="other", rate=0.2, seed=1)])
    assert "1 shared seed: whether other seeds would say the same is not tested." in mixed.sentences()
    turned = [made(0.5, name="s-0"), made(0.6, name="s-1", seed=1), made(0.1, name="s-2", seed=2),
              made(0.45, name="t-0", rate=0.2), made(0.5, name="t-1", rate=0.2, seed=1)]  # fmt: skip
    assert pq.compare(turned).best.name == "s"
    assert pq.compare(turned).sentences()[1].startswith("Seed by seed the difference is −3.0 ± 1.0 nats over 2 shared")
    assert pq.compare(turned).sentences()[1].endswith(" differ, and over these seeds t is ahead.")
    elsewhere = replace(other, data={**one.data, "heldout": {"inputs": "x", "labels": "y"}})
    assert "of different held-out data" in pq.compare([one, elsewhere]).sentences()[-1]
    beaten = pq.compare([made(0.01, name="x")]).sentences()
    assert beaten[0].startswith("x beats the simple codes; the best of these is the code of the previous")
    two = pq.compare([made(0.01, name="x"), made(0.02, name="y", rate=0.2)]).sentences()
    assert two[2].startswith("All beat the simple codes; the best of these is ")


def test_what_rounding_does_is_told_as_nothing() -> None:
    uniform = math.log(10)
    later = [uniform] * 20 + [1.0] * 20
    seeds = [made_record(later, name=f"a-{seed}", seed=seed, num_classes=10, labels=LABELS) for seed in range(6)]
    other = made_record([uniform] * 20 + [2.0] * 20, name="b", num_classes=10, labels=LABELS, recipe={"r": 1})
    assert sum([uniform] * 6) / 6 != uniform
    assert pq.compare([*seeds, other]).best.leads_from == 20
    near = pq.compare([seeds[0], replace(other, nats=np.array(later) + 1e-3)])
    assert near.sentences()[0] == "a-0 and b have codes of the same length."
    behind = [made_record([1.0] * 4 + [nats] * 36, name=name, labels=LABELS, recipe={"r": name})
              for name, nats in (("x", 1.0), ("y", 2.0))]  # fmt: skip
    behind[0].nats[0] += 0.01
    compared = pq.compare(behind)
    assert compared.best.early_share == pytest.approx(-0.01 / 35.99)
    assert compared.rows()[0][compared.heads().index("early share")] == "0%"
    assert "0 % of its advantage was earned in the first 10 %" in compared.sentences()[0]


def test_a_single_run_has_no_odds_and_one_label_is_one() -> None:
    alone = pq.compare([made_record([0.1], name="a", labels=[0])])
    assert not {"odds of the best", "posterior"} & set(alone.heads())
    assert "made · 1 label, 2 classes · 1 run<" in alone._repr_html_()
    part = pq.compare([made(1.0, name="a"), made_record([1.0] * 9, name="b", length=LENGTH, recipe={})], prefix=True)
    assert "made · 9 of 40 labels, 2 classes · 2 runs<" in part._repr_html_()


def test_what_cannot_be_compared_is_refused_with_the_reason() -> None:
    one = made(1.0, name="one")
    for other, reason in [
        (replace(one, length=50), r"differ in their length \(50 and 40\); compare runs on the same labels"),
        (replace(one, data={**one.data, "labels": "m"}), "differ in their labels"),
        (
            replace(one, seeds={**one.seeds, "order_seed": 1}, data={**one.data, "labels": "m"}),
            r"differ in their order \(1 and 0\)",
        ),
        (replace(erm(), data={**one.data, "labels": "m"}), r"erm and runs/one differ in their labels \(m and l\)"),
        (erm(status="stopped"), r"runs/erm is not finished \(stopped\); leave it out$"),
        (
            replace(made_record([1.0, 2.0], name="two", length=LENGTH), status="pruned"),
            r"two is not finished \(pruned at label 2 of 40\); leave it out, or compare .* --prefix",
        ),
    ]:
        with pytest.raises(PreqError, match=reason):
            pq.compare([one, other])
    with pytest.raises(PreqError, match="none of these runs has a codelength"):
        pq.compare([erm()])
    with pytest.raises(PreqError, match="at least one record, got none"):
        pq.compare([])
    with pytest.raises(PreqError, match="several records, got one"):
        pq.compare(one)  # type: ignore[arg-type]
    with pytest.raises(PreqError, match="of records, got str; load a directory"):
        pq.compare(["runs/one"])  # type: ignore[list-item]


def test_a_prefix_is_what_all_have_coded() -> None:
    whole, part = made(1.0, name="whole"), made_record([2.0] * 7, name="part", length=LENGTH, labels=LABELS)
    part = replace(part, recipe={"learning_rate": 5})
    late = made_record([0.5] * 9 + [math.inf], name="late", length=LENGTH, recipe={"r": 1}, labels=LABELS)
    early = made_record([0.5, math.inf], name="early", length=LENGTH, recipe={"r": 2}, labels=LABELS)
    comparison = pq.compare([whole, part, late, early, erm()], prefix=True)
    assert [(entry.name, entry.nats) for entry in comparison.entries] == [
        ("late", 3.5), ("whole", 7.0), ("part", 14.0), ("early", math.inf),
    ]  # fmt: skip
    assert comparison.length == 7
    assert comparison.simple["uniform"] == pytest.approx(7 * math.log(2))
    assert comparison.sentences()[0] == "Only the first 7 of 40 labels are compared."
    entry = comparison.entries[1]
    assert (entry.flops, entry.seconds, entry.heldout_loss, comparison.uncoded[0].seconds) == (None, None, None, 2.0)
    assert "FLOPs" in comparison.heads()  # of erm
    assert len(entry.records[0].to_pandas()) == 7
    assert pq.regret(entry.records[0], comparison.entries[2].records[0])[-1] == -7
    with pytest.raises(PreqError, match=r"none has no label to show yet \(a run keeps .*\); leave it out"):
        pq.compare([whole, made_record([], name="none", length=LENGTH)], prefix=True)
    assert pq.compare([whole, made(2.0, name="b", rate=1.0)], prefix=True).best.seconds == 2.0


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return saved(tmp_path / "sweep", *RUNS, erm())


@pytest.mark.parametrize("columns", [80, 240])
def test_the_table_fits_its_terminal(
    columns: int, folder: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    assert cli.main(["compare", str(folder)]) == 0
    said = capsys.readouterr()
    assert said.err == ""
    lines = said.out.splitlines()
    assert lines[0] == "made · 40 labels, 2 classes · 7 runs of 5 settings"
    assert max(map(len, lines)) <= columns
    heads = [number for number, line in enumerate(lines) if line.startswith("run ")]
    assert len(heads) == (1 if columns == 240 else 3)
    first = [line.partition(" ")[0] for line in lines[heads[0] + 2 :][:8]]
    ranked = ["(previous)", "(uniform)", "(frequencies)", "good", "fair", "bad", "lost"]
    assert first[:7] == sorted(ranked, key=lambda name: _nats(lines, heads[0], name))
    assert (first[7:] == ["erm"]) == (columns == 240)
    text = " ".join(said.out.split())
    for words in (
        "good 2 32.5 2.5 1.172 0.0 1 92.4%", "fair 2 35.0 5.0 1.262 2.5 12 7.6%", "lost 1 ∞ – ∞ ∞ ∞ 0",
        "bad 1 20,000.0 – 721.348 19,967.5 e^19,968 e^−19,968", "0.1000 2.00% 100 2.0",
        "20 0.5000 25.00% 100 2.0", "good needs 2.5 nats less than fair",
    ):  # fmt: skip
        assert words in text


def _nats(lines: list[str], head: int, name: str) -> float:
    cells = next(line for line in lines[head:] if line.startswith(f"{name} ")).split()
    return float(cells[1 if name[0] == "(" else 2].replace(",", "").replace("∞", "inf"))


def test_large_numbers_and_long_names_are_never_cut(
    tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = "a-name-that-is-longer-than-any-terminal-has-room-for-and-that-needs-several-lines"
    saved(tmp_path, made(123_456.0, name=f"{long}-0"), made(7_654_321.0, name=f"{long}-1", rate=2.0))
    for columns in (50, 80, 120):
        monkeypatch.setenv("COLUMNS", str(columns))
        assert cli.main(["compare", str(tmp_path)]) == 0
        said = capsys.readouterr().out
        assert max(map(len, said.splitlines())) <= columns
        assert "…" not in said
        for words in ("306,172,840.0", "301,234,600.0", "e^301,234,600", "e^−301,234,600"):
            assert words in said


def test_only_the_best_are_printed_of_many(tmp_path: Path, capsys: Captured) -> None:
    saved(tmp_path, *(made(1.0 + number, name=f"run{number:02d}", rate=number) for number in range(25)))
    assert cli.main(["compare", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert "… and 5 more; --top 25 shows them" in said
    assert "run19" in said
    assert "run20" not in said
    assert cli.main(["compare", str(tmp_path), "--top", "25"]) == 0
    assert "run24" in (said := capsys.readouterr().out)
    assert "seeds" not in said[: said.index("run00")]
    assert "more; --top" not in said


def test_json_and_csv_hold_everything(folder: Path, tmp_path: Path, capsys: Captured) -> None:
    table = tmp_path / "new" / "table.csv"
    assert cli.main(["compare", str(folder), "--json", "--csv", str(table)]) == 0
    said = capsys.readouterr()
    told = json.loads(said.out, parse_constant=pytest.fail)
    assert said.out.count("\n") == 1
    assert said.err == f"csv: {table}\n"
    assert (told["data"], told["length"], told["num_classes"], told["left_out"]) == ("made", LENGTH, 2, {})
    assert set(told["simple_codes_nats"]) == {"uniform", "frequencies", "previous"}
    good, fair, bad, lost = told["entries"]
    assert good["runs"] == [
        {"name": f"good-{s}", "seed": s, "codelength_nats": n, "record": str(folder / f"good-{s}")}
        for s, n in [(0, 30.0), (1, 35.0)]
    ]
    assert (fair["difference_nats"], fair["p_value"], fair["diverged"]) == (2.5, 0.5, False)
    assert bad["log_posterior"] == pytest.approx(-19967.5 - math.log1p(math.exp(-2.5)))
    assert (bad["posterior"], lost["codelength_nats"], lost["diverged"]) == (0.0, None, True)
    assert [setting["name"] for setting in told["without_codelength"]] == ["erm"]
    assert told["sentences"][0].startswith("good needs 2.5 nats less")
    with table.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["name"] for row in rows] == ["good", "fair", "bad", "lost", "erm"]
    assert (rows[3]["codelength_nats"], rows[4]["codelength_nats"], rows[0]["runs"]) == ("inf", "", "good-0, good-1")
    assert float(rows[1]["saved_uniform"]) == pytest.approx(fair["saved_uniform"])


def test_unfinished_runs_of_a_sweep_are_left_out_and_named_ones_refused(folder: Path, capsys: Captured) -> None:
    for number in range(4):
        part = made_record([1.0, 2.0], name=f"stopped{number}", length=LENGTH, labels=LABELS, status="pruned")
        saved(folder, replace(part, seeds={**part.seeds, "seed": number}, recipe={"learning_rate": 9}))
    assert cli.main(["compare", str(folder)]) == 0
    said = capsys.readouterr()
    names = ", ".join(str(folder / f"stopped{number}") for number in range(3))
    assert said.err == f"preq: note: left out 4 runs not finished (pruned): {names} and 1 more\n"
    assert "stopped" not in said.out
    assert cli.main(["compare", str(folder), str(folder / "stopped2")]) == 2
    assert capsys.readouterr().err.startswith(f"preq: {folder / 'stopped2'} is not finished (pruned at label 2 of 40)")
    assert cli.main(["compare", str(folder), "--prefix"]) == 0
    said = capsys.readouterr()
    assert said.err == ""
    assert "Only the first 2 of 40 labels are compared." in said.out
    for name in [*(str(run.path)[5:] for run in RUNS), "erm"]:
        shutil.rmtree(folder / name)
    assert cli.main(["compare", str(folder)]) == 2
    assert capsys.readouterr().err == (
        "preq: there is no run to show: 4 not finished (pruned); --prefix compares the labels that all have coded\n"
    )


def break_nothing(run: Path) -> None:
    pass


def forget_a_fact(run: Path) -> None:
    sealed = json.loads((run / "record.json").read_text())
    sealed["record"]["seconds"] = 3.0
    (run / "record.json").write_text(json.dumps(sealed))


@pytest.mark.parametrize(
    ("breaks", "arguments", "complaint"),
    [
        (break_nothing, "", "preq compare needs at least one run; name its directory, see preq compare --help"),
        (break_nothing, "RUN/nowhere", "RUN/nowhere is no directory; name one that preq run or preq sweep wrote"),
        (lambda run: [file.unlink() for file in run.iterdir()], "RUN", "RUN holds no run; name a directory that preq"),
        (lambda run: (run / "record.json").unlink(), "RUN", "RUN holds no run; name a directory that preq run"),
        (lambda run: (run / "nats.npy").unlink(), "RUN", "RUN/nats.npy cannot be read: No such file or directory"),
        (lambda run: (run / "nats.npy").write_bytes(b""), "RUN", "RUN/nats.npy is damaged: it is no array of at"),
        (lambda run: (run / "nats.npy").write_text("x" * 500), "RUN", "RUN/nats.npy is damaged: it is no array of"),
        (lambda run: os.truncate(run / "nats.npy", 200), "RUN", "RUN/nats.npy is truncated: it has no room"),
        (lambda run: np.save(run / "labels.npy", np.ones(40)), "RUN", "RUN/labels.npy is damaged: its content does"),
        (lambda run: (run / "record.json").write_text('{"checksum"'), "RUN", "RUN/record.json is damaged: Expecting"),
        (lambda run: (run / "record.json").write_text("[1, 2]"), "RUN", "RUN/record.json is not a record"),
        (lambda run: (run / "record.json").write_bytes(b"\xff\xfe\x00"), "RUN", "RUN/record.json is damaged: 'utf-8'"),
        (forget_a_fact, "RUN", "RUN/record.json is damaged: its checksum does not fit its content"),
        (break_nothing, "RUN --csv /proc/table.csv", "cannot write /proc/table.csv: "),
        (break_nothing, "RUN --csv RUN", "cannot write RUN: Is a directory; make room or choose another place"),
        (break_nothing, "RUN --csv RUN/nats.npy/table.csv", "cannot write RUN/nats.npy/table.csv: "),
        (break_nothing, "RUN --top 0", "--top must be a whole number of at least 1, got 0"),
        (break_nothing, "RUN --prefixes", "unrecognized options: --prefixes"),
    ],
)
def test_mistakes_get_one_line_and_status_2(
    breaks: Any, arguments: str, complaint: str, tmp_path: Path, capsys: Captured
) -> None:
    run = saved(tmp_path, RUNS[0]) / "good-0"
    breaks(run)
    assert cli.main(["compare", *arguments.replace("RUN", str(run)).split()]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith(f"preq: {complaint.replace('RUN', str(run))}")
    assert said.err.count("\n") == 1


class Reader(html.parser.HTMLParser):
    """The texts of a page, and the tags they stand in."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.texts: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_notebooks_show_tables_in_which_everything_is_escaped() -> None:
    evil = "<script>alert('&')</script>"
    model = {"name": evil, "width": 1.0, "num_parameters": 1, "fingerprint": ""}
    record = replace(made(1.0, name="x"), model=model, path=Path(f"runs/{evil.replace('/', '|')}"))
    comparison = pq.compare([record, *RUNS[:2], erm()])
    for shown in (Reader(record._repr_html_()), Reader(comparison._repr_html_())):
        assert set(shown.tags) <= {"table", "caption", "thead", "tbody", "tr", "th", "td", "div"}
        assert any("<script>" in text for text in shown.texts)
    texts = Reader(comparison._repr_html_()).texts
    assert texts[: 1 + len(comparison.heads())] == [
        "made · 40 labels, 2 classes · 4 runs of 3 settings",
        *comparison.heads(),
    ]
    assert {"good", "erm", "(previous)", "32.5", "50.0%"} <= {*texts, "50.0%"}
    assert texts[-1] == comparison.sentences()[-1]
    assert {"40.0", "1.4427", "20", "25.00%", "finished"} <= set(Reader(record._repr_html_()).texts)
    assert "∞" in RUNS[-1]._repr_html_()
    assert "2 of 40" in RUNS[-1]._repr_html_()
    assert "–" in Reader(erm()._repr_html_()).texts


def test_a_comparison_prints_as_the_command_does(
    folder: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    comparison = pq.compare([pq.load(run) for run in sorted(folder.iterdir())])
    for columns in ("80", "200"):
        monkeypatch.setenv("COLUMNS", columns)
        assert cli.main(["compare", str(folder)]) == 0
        assert capsys.readouterr().out == f"{comparison}\n"
    assert repr(comparison) == "<Comparison of 5 on made: good with 32.5 nats>"


def test_a_run_whose_process_is_gone_has_died(folder: Path, capsys: Captured) -> None:
    dead = replace(made_record([1.0, 2.0], length=LENGTH, labels=LABELS), status="running", path=None).save(
        folder / "x"
    )
    assert cli.main(["compare", str(folder)]) == 0
    assert capsys.readouterr().err == f"preq: note: left out 1 run not finished (died): {folder / 'x'}\n"
    assert cli.main(["compare", str(folder), str(folder / "x")]) == 2
    assert "x is not finished (died at label 2 of 40); leave it out" in capsys.readouterr().err
    with DirectoryLock(folder / "x"), pytest.raises(PreqError, match="running at label 2 of 40"):
        pq.compare([*RUNS, dead])


def test_runs_of_a_folder_that_cannot_be_read_are_left_out(folder: Path, capsys: Captured) -> None:
    (folder / "bad" / "nats.npy").write_bytes(b"")
    assert cli.main(["compare", str(folder)]) == 0
    assert "left out 1 run that cannot be read (" in capsys.readouterr().err


def test_nothing_is_rounded_to_minus_zero() -> None:
    later = [made_record([1.0] * 4 + [nats] * 36, name=name, labels=LABELS, recipe={"r": name})
             for name, nats in (("x", 1.0), ("y", 2.0))]  # fmt: skip
    later[0].nats[0] += 0.01
    assert "; 0 % of its advantage" in pq.compare(later).sentences()[0]


def test_records_and_comparisons_become_data_frames() -> None:
    frame, table = RUNS[0].to_pandas(), RUNS[0].to_arrow()
    columns = ["position", "nats", "uncalibrated_nats", "label", "predicted", "confidence", "temperature"]
    assert list(frame.columns) == table.column_names == columns
    assert len(frame) == table.num_rows == LENGTH
    assert frame["nats"].sum() == RUNS[0].codelength
    assert frame["temperature"].tolist() == [2 * (position // 2) for position in range(LENGTH)]
    assert [str(kind) for kind in table.schema.types] == [
        "int64", "double", "float", "uint8", "uint8", "float", "float"
    ]  # fmt: skip
    comparison = pq.compare([*RUNS, erm()])
    assert comparison.to_pandas()["name"].tolist() == ["good", "fair", "bad", "lost", "erm"]
    assert comparison.to_arrow().to_pylist() == comparison.values()
    assert erm().to_arrow().num_rows == 0


@pytest.mark.parametrize(("name", "package"), [("to_pandas", "pandas"), ("to_arrow", "pyarrow")])
def test_a_missing_package_is_named(name: str, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    for value in (RUNS[0], pq.compare(RUNS)):
        with pytest.raises(PreqError, match=f"this needs {package}, which is not installed; pip install {package}"):
            getattr(value, name)()


def test_reading_a_record_does_not_copy_its_arrays(tmp_path: Path) -> None:
    import tracemalloc

    length = 400_000
    replace(made_record(np.ones(length).tolist(), labels=[0] * length), path=None).save(tmp_path / "large")
    tracemalloc.start()
    record = pq.load(tmp_path / "large")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    size = sum(getattr(record, name).nbytes for name in ("nats", "uncalibrated_nats", "labels", "predicted"))
    size += record.confidence.nbytes + record.temperature_positions.nbytes + record.temperatures.nbytes
    assert peak < size + 500_000
