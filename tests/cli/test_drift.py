"""``sdretrieval drift`` on a small dated collection whose drift is known."""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import re
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_matrix, hstack
from simulated_drift import random_drift

from sdretrieval.cli import drift as verb
from sdretrieval.cli.main import main
from sdretrieval.core.errors import IndexProblem, ParameterError
from sdretrieval.core.timeline import DAY
from sdretrieval.core.times import UNDATED, parse_time
from sdretrieval.estimate.time.drift import analyse, bins_between, wilson, word_curves
from sdretrieval.estimate.time.local_likelihood import LocalLikelihood
from sdretrieval.index.snapshot import Snapshot

START = parse_time("2020-01-01")


def collection() -> tuple[csr_matrix, list[str], np.ndarray]:
    """300 documents over 60 days; 'x$burst' doubles as a mathtext trap and peaks on day 40, 'zzz' never moves."""
    rng = np.random.default_rng(0)
    base = random_drift(30, rng, amplitude=0.0, end=60.0)
    counts, days = base.sample(300, 40, rng)
    peak = 12 * np.exp(-0.5 * ((days - 40) / 4) ** 2)
    extra = csr_matrix(np.stack([rng.poisson(peak), rng.poisson(4.0, 300)], axis=1))
    words = [f"w{i:02d}" for i in range(30)] + ["x$burst", "zzz"]
    times = START + (days * DAY).astype(np.int64)
    times[::50] = UNDATED
    return csr_matrix(hstack([counts, extra])), words, times


@pytest.fixture
def snapshot(monkeypatch) -> Snapshot:
    counts, words, times = collection()
    made = Snapshot.from_counts(counts, words, times=times)
    monkeypatch.setattr("sdretrieval.index.snapshot.open_snapshot", lambda path: made)
    monkeypatch.setattr(Snapshot, "analyze", lambda self, text: text.lower().split())
    return made


def drift(*arguments: str) -> int:
    parser = argparse.ArgumentParser()
    verb.configure(parser)
    return verb.run(parser.parse_args(["--index", "somewhere", *arguments]))


def test_summary_names_the_word_that_drifts(snapshot, capsys) -> None:
    assert drift() == 0
    out = capsys.readouterr().out
    lines = out.splitlines()
    assert lines[0] == "294 documents from 2020-01-01 to 2020-02-29, 6 without a date left out"
    fastest = lines[next(i for i, line in enumerate(lines) if "occurrences" in line) + 1].split()
    assert fastest[0] == "x$burst"
    assert "2020-02-06" <= fastest[3] <= "2020-02-13"  # day 40 is February 10


def test_json_is_complete_and_valid(snapshot, capsys) -> None:
    drift("--json", "--words", "ZZZ", "x$burst")
    data = json.loads(capsys.readouterr().out, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert [curve["word"] for curve in data["curves"]] == ["zzz", "x$burst"]
    assert data["documents"] == {"dated": 294, "undated": 6}
    assert sum(data["documents_over_time"]) == 294
    assert len(data["times"]) == len(data["curves"][0]["frequency"]) == len(data["documents_over_time"]) == 60
    held_out = data["held_out"]
    assert held_out["offline"]["best"] > held_out["global"]
    assert held_out["offline"]["best"] > held_out["extreme_local"]
    assert held_out["offline"]["best"] > held_out["online"]["best"]


def test_output_folder_holds_plots_and_tables(snapshot, tmp_path: Path, capsys) -> None:
    folder = tmp_path / "new" / "drift"
    drift("--output", str(folder), "--words", "x$burst", "w00", "--bandwidth", "5")
    drawn = {f"{what}.{kind}" for what in ("likelihood", "volume", "words") for kind in ("csv", "png", "svg")}
    assert {path.name for path in folder.iterdir()} == drawn | {"drift.json", "fastest.csv"}
    for name in ("words.png", "volume.png", "likelihood.png"):
        assert (folder / name).read_bytes().startswith(b"\x89PNG\r\n")
    assert "x$burst" in (folder / "words.svg").read_text()  # as it is, not as mathematics
    with open(folder / "words.csv") as stream:
        rows = list(csv.DictReader(stream))
    assert {row["word"] for row in rows} == {"x$burst", "w00"}
    assert all(float(row["lower"]) <= float(row["frequency"]) <= float(row["upper"]) for row in rows)
    assert "wrote 11 files" in capsys.readouterr().err
    picture = (folder / "words.svg").read_bytes()
    drift("--output", str(folder), "--words", "x$burst", "w00", "--bandwidth", "5")
    assert (folder / "words.svg").read_bytes() == picture, "the same twice"


def test_given_bandwidth_and_resolution_are_used(snapshot, capsys) -> None:
    drift("--json", "--bandwidth", "36h", "--resolution", "week", "--words", "zzz")
    data = json.loads(capsys.readouterr().out)
    assert data["bandwidth_days"] == 1.5
    assert data["bandwidth_chosen_by"] == "given"
    assert data["resolution_days"] == 7
    assert len(data["times"]) in (9, 10)


def test_undated_index_is_a_clear_error(monkeypatch) -> None:
    counts, words, _ = collection()
    made = Snapshot.from_counts(counts, words)
    monkeypatch.setattr("sdretrieval.index.snapshot.open_snapshot", lambda path: made)
    with pytest.raises(IndexProblem, match=r"none of its 300 documents has a date(.|\n)*--date-field"):
        drift()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--words", "nosuch"), "'nosuch': the term 'nosuch' stands in no document"),
        (("--words", "two words"), "analysed to two words"),
        (("--words", " "), "a stop word"),
        (("--bandwidth", "soon"), "not a length of time: 'soon'"),
        (("--resolution", "1 blink"), "not a length of time"),
        (("--resolution", "1s"), "Choose a coarser resolution"),
    ],
)
def test_mistakes_are_named(snapshot, arguments: tuple[str, ...], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        drift(*arguments)


@pytest.mark.parametrize("flag", ["--fastest", "--vocabulary"])
def test_numbers_of_words_begin_at_one(snapshot, flag: str, capsys) -> None:
    with pytest.raises(SystemExit):
        drift(flag, "0")
    assert f"{flag}: must be at least 1, got 0" in capsys.readouterr().err


def test_output_must_not_be_a_file(snapshot, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("mine")
    with pytest.raises(ParameterError, match="is a file"):
        drift("--output", str(tmp_path / "taken"))
    assert (tmp_path / "taken").read_text() == "mine"


def test_all_documents_on_one_day(monkeypatch, capsys, tmp_path: Path) -> None:
    made = Snapshot.from_counts(csr_matrix([[3, 1], [2, 2], [1, 4]]), ["a", "b"], times=[START, START, START])
    monkeypatch.setattr("sdretrieval.index.snapshot.open_snapshot", lambda path: made)
    assert drift("--output", str(tmp_path)) == 0
    assert {path.stem for path in tmp_path.glob("*.png")} == {"volume"}
    out = capsys.readouterr().out
    assert "infinite (global)" in out
    assert "no word is told better by a local model" in out


def test_a_single_document(monkeypatch, capsys) -> None:
    made = Snapshot.from_counts(csr_matrix([[3, 1]]), ["a", "b"], times=[START])
    monkeypatch.setattr("sdretrieval.index.snapshot.open_snapshot", lambda path: made)
    assert drift() == 0
    assert capsys.readouterr().out.startswith("1 documents from 2020-01-01 to 2020-01-01")


@pytest.mark.java
def test_from_documents_to_drift(tmp_path: Path, capsys) -> None:
    """A real index: words are analysed as the documents were, and times come from their dates."""
    with open(tmp_path / "docs.jsonl", "w") as stream:
        for i in range(60):
            text = "election elections results" if i >= 40 else "football results"
            record = {"id": f"d{i}", "contents": text, "date": f"2021-{i // 20 + 1:02d}-{i % 20 + 1:02d}"}
            stream.write(json.dumps(record) + "\n")
    index = str(tmp_path / "index")
    documents = str(tmp_path / "docs.jsonl")
    assert main(["index", "--input", documents, "--index", index, "--date-field", "date"]) == 0
    capsys.readouterr()
    assert main(["drift", "--index", index, "--words", "Elections", "--bandwidth", "1w", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["curves"][0]["word"] == "elect"
    frequency = dict(zip(data["times"], data["curves"][0]["frequency"], strict=True))
    assert frequency["2021-01-10T12:00:00Z"] == 0
    assert frequency["2021-03-10T12:00:00Z"] == pytest.approx(2 / 3)
    assert {"elect", "footbal"} <= {word["word"] for word in data["fastest"]}


@pytest.mark.shared
def test_real_news_drifts(shared_data: Path) -> None:
    """Every second story of 1987: local beats global and extreme local, offline beats online (Figure 5)."""
    numbers: dict[str, int] = {}
    indptr, indices, times = [0], [], []
    with gzip.open(shared_data / "reuters21578" / "docs.jsonl.gz", "rt") as stream:
        for line in islice(stream, 0, None, 2):
            record = json.loads(line)
            for word in re.findall(r"[a-z]{2,}", record["contents"].lower()):
                indices.append(numbers.setdefault(word, len(numbers)))
            indptr.append(len(indices))
            times.append(parse_time(record["date"]))
    counts = csr_matrix((np.ones(len(indices)), indices, indptr), shape=(len(times), len(numbers)))
    counts.sum_duplicates()
    result = analyse(counts, np.array(times), most_words=3000)
    best = result.offline.scores.max()
    assert best > result.global_score + 0.003
    assert best > result.extreme_local + 0.003
    assert best > result.online.scores.max() + 0.003
    assert np.isfinite(result.bandwidth)


# -- the analysis ----------------------------------------------------------------------------------------------


def test_curves_follow_the_true_drift() -> None:
    """The Poisson means are known: 12 against 12 + 40 + 4 words on day 40, where the kernel rounds little off."""
    counts, words, times = collection()
    result = analyse(counts, times, words=[words.index("x$burst")], bandwidth=3.0 * DAY)
    curve = result.curves[0]
    top = int(np.nanargmax(curve.frequency))
    assert abs((result.grid[top] - START) / DAY - 40) < 3
    assert curve.frequency[top] == pytest.approx(12 / 56, rel=0.15)
    assert 3 * DAY <= result.offline.bandwidth <= 15 * DAY


@pytest.mark.parametrize("concentration", [None, 20.0])
def test_bands_cover_the_truth_even_for_bursty_words(concentration: float | None) -> None:
    """95 % bands without drift, over many samples and times: near 95 %. (12) alone would cover 70 % of the bursty."""
    rng = np.random.default_rng(1)
    still = random_drift(60, rng, amplitude=0.0, end=100.0)
    truth = still.theta(0.0)[0]
    grid, words = np.array([10.0, 50.0, 90.0]), [0, 4, 20]
    hits = []
    for _ in range(60):
        counts, times = still.sample(300, 50, rng, concentration=concentration)
        model = LocalLikelihood(counts, times, 20.0)
        for curve in word_curves(model, counts, words, grid):
            hits.append((curve.lower <= truth[curve.term]) & (truth[curve.term] <= curve.upper))
    assert 0.9 < np.mean(hits) < 0.985  # 540 bands, a third of them independent


def test_wilson_by_hand() -> None:
    """Newcombe 1998, table I: 81/263 gives .2553 to .3662; 0/20 gives 0 to .1611; 1/29 gives .0061 to .1718."""
    lower, upper = wilson(np.array([81 / 263, 0.0, 1 / 29]), np.array([263.0, 20.0, 29.0]), 1.959964)
    assert lower == pytest.approx([0.2553, 0.0, 0.0061], abs=5e-5)
    assert upper == pytest.approx([0.3662, 0.1611, 0.1718], abs=5e-5)


def test_gaps_have_no_curve() -> None:
    counts = csr_matrix([[3, 1], [2, 2], [1, 3], [4, 1]])
    times = np.array([0, 1, 30, 31], dtype=np.int64) * DAY + 5
    result = analyse(counts, times, words=[0], bandwidth=3.0 * DAY)
    known = np.isfinite(result.curves[0].frequency)
    assert known[:4].all() and not known[5:27].any() and known[28:].all()
    assert np.array_equal(known, np.isfinite(result.curves[0].upper))


def test_bins_between_covers_both_ends() -> None:
    bins = bins_between(5 * DAY + 1.0, 7 * DAY + 3.0, DAY)
    assert (bins / DAY).tolist() == [5.5, 6.5, 7.5]
