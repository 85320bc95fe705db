"""``sdretrieval evolve`` end to end on a small stream whose classes are known."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from sdretrieval.cli.main import main
from sdretrieval.core.errors import InputError
from sdretrieval.core.times import UNDATED, parse_time
from sdretrieval.learn.evolving.run import load_run, save_run
from sdretrieval.learn.labelled import LabelledCorpus

WORDS = {
    "ship": ["ship", "sail", "harbour", "anchor", "mast", "deck"],
    "farm": ["farm", "wheat", "barn", "plough", "field", "cow"],
}
COMMON = ["the", "day", "was", "long", "and", "men", "went", "out", "early", "with", "bread"]


def documents(months: int = 4, n: int = 14, seed: int = 0) -> list[dict]:
    rng = np.random.default_rng(seed)
    made = []
    for month in range(months):
        for i in range(n):
            label = ("ship", "farm")[i % 2]
            text = [*rng.choice(WORDS[label], 3), *rng.choice(COMMON, 3)]
            made.append(
                {
                    "id": f"{month}-{i}",
                    "contents": " ".join(text),
                    "date": f"2001-{month + 1:02d}-{i + 1:02d}",
                    "labels": [label],
                }
            )
    return made


def corpus_of(records: list[dict], name: str = "somewhere") -> LabelledCorpus:
    """What read_labelled would give, without Java."""
    vocabulary = sorted({word for record in records for word in record["contents"].split()})
    counts = np.zeros((len(records), len(vocabulary)))
    for row, record in enumerate(records):
        for word in record["contents"].split():
            counts[row, vocabulary.index(word)] += 1
    return LabelledCorpus(
        docids=[record["id"] for record in records],
        counts=csr_matrix(counts),
        vocabulary=vocabulary,
        labels=tuple(tuple(record.get("labels", ())) for record in records),
        times=np.array([parse_time(record["date"]) if "date" in record else UNDATED for record in records]),
        name=name,
    )


@pytest.fixture
def evolve(monkeypatch, capsys):
    """Run the verb on records: (exit code, standard output, standard error)."""

    def call(records: list[dict], *arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr("sdretrieval.learn.labelled.read_labelled", lambda *_, **__: corpus_of(records))
        code = main(["evolve", "--input", "somewhere", *arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


def lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_unlabelled_documents_are_predicted(evolve, tmp_path) -> None:
    records = documents()
    truth = [record["labels"][0] for record in records]
    for record in records[4::3]:
        record.pop("labels")
    code, out, err = evolve(records, "--output", str(tmp_path / "p.jsonl"), "--gamma-i", "10")
    assert code == 0 and "wrote 56 predictions" in err
    assert [line.split()[0] for line in out.splitlines()[1:]] == ["2001-01", "2001-02", "2001-03", "2001-04"]
    predictions = lines(tmp_path / "p.jsonl")
    assert [p["id"] for p in predictions] == [r["id"] for r in records]
    assert np.mean([p["predicted"] == t for p, t in zip(predictions, truth, strict=True)]) > 0.8
    assert all(p["labelled"] == bool(p["label"]) for p in predictions)
    assert set(predictions[0]["scores"]) == {"farm", "ship"}


@pytest.mark.parametrize("method", ["ssl-e", "ssl", "ssl-naive", "offline"])
def test_hidden_labels_are_measured(evolve, method: str) -> None:
    code, out, _ = evolve(documents(n=20), "--method", method, "--labels-per-frame", "6", "--gamma-i", "1", "--json")
    assert code == 0
    frames = json.loads(out)["frames"]
    assert [frame["labelled"] if method != "ssl-naive" else 6 for frame in frames] == [6] * 4
    assert np.mean([frame["auc"] for frame in frames]) > 0.8
    assert all(frame["accuracy"] is not None and frame["temporal_cost"] > 0 for frame in frames)


def test_summary_and_plot(evolve, tmp_path) -> None:
    plot = tmp_path / "new" / "costs.png"
    code, out, _ = evolve(documents(), "--label-fraction", "0.4", "--plot", str(plot))
    assert code == 0 and plot.read_bytes().startswith(b"\x89PNG")
    assert "mean (sd) over 4 frames, on documents whose label was hidden: AUC" in out.splitlines()[-1]


def test_a_table_of_predictions(evolve, tmp_path) -> None:
    evolve(documents(), "--labels-per-frame", "4", "--output", str(tmp_path / "p.tsv"))
    with open(tmp_path / "p.tsv") as stream:
        rows = list(csv.DictReader(stream, delimiter="\t"))
    assert len(rows) == 56 and sum(row["labelled"] == "yes" for row in rows) == 16
    assert {row["predicted"] for row in rows} == {"ship", "farm"}


@pytest.mark.parametrize("method", ["ssl-e", "ssl-naive"])
def test_resumed_is_as_if_never_stopped(evolve, tmp_path, method: str) -> None:
    """With a vocabulary that differs from part to part, and frames given again, which are skipped."""
    records = documents()
    records[-1]["contents"] += " zeppelin"
    for record in records[3::3]:
        record.pop("labels")
    flags = ("--method", method, "--gamma-i", "10")
    whole, first, second = (str(tmp_path / name) for name in ("whole", "first", "second"))
    evolve(records, *flags, "--output", whole)
    state = str(tmp_path / "state")
    evolve(records[:28], *flags, "--save", state)
    code, _, err = evolve(records[14:], "--resume", state, "--output", second, "--save", first)
    assert code == 0 and "14 documents are of frames up to 2001-02, seen before: left out" in err
    assert lines(Path(second)) == lines(Path(whole))[28:]
    model, words = load_run(first)
    assert len(model.frames_) == 4 and words.documents == 56 and "zeppelin" in words.numbers


def test_only_some_classes(evolve) -> None:
    records = documents()
    records[0]["labels"] = ["mine"]
    records[1]["labels"] = ["farm", "mine"]
    code, _, err = evolve(records, "--classes", "ship", "farm")
    assert code == 0 and "1 documents have other labels only: left out" in err


def test_a_frame_without_labels_and_undated_documents(evolve, tmp_path) -> None:
    records = documents()
    for record in records[14:28]:
        record["labels"] = []
    del records[0]["date"]
    code, out, err = evolve(records, "--output", str(tmp_path / "p.jsonl"), "--gamma-i", "1")
    assert code == 0 and "1 documents have no date" in err
    assert out.splitlines()[2].endswith("no labels")
    assert {p["predicted"] for p in lines(tmp_path / "p.jsonl") if p["frame"] == "2001-02"} == {"ship", "farm"}


@pytest.mark.parametrize(
    ("change", "flags", "message"),
    [
        (lambda r: r[3].update(labels=["ship", "farm"]), (), r"somewhere: document '0-3' has 2 labels (ship, farm)"),
        (lambda r: [one.pop("labels") for one in r], (), "no document has a label in the field 'labels'"),
        (lambda r: [one.pop("date") for one in r], (), "none of 56 documents has a date"),
        (None, ("--classes", "ship", "plane"), "no document has the label 'plane'"),
        (None, ("--gamma-a", "0"), "gamma_A must be positive"),
        (None, ("--frame", "fortnight"), "not a length of time: 'fortnight'"),
        (None, ("--labels-per-frame", "0"), "at least one document per frame"),
        (None, ("--label-fraction", "2"), "must be in (0, 1], got 2.0"),
        (None, ("--plot", "costs.bmp"), "a figure is .png, .svg or .pdf"),
        (None, ("--method", "ssl", "--representer", "frame"), "--representer is of ssl-e"),
        (None, ("--method", "offline", "--save", "x"), "the offline method cannot go on"),
        (None, ("--resume", "nowhere"), "nowhere: no such file"),
    ],
)
def test_bad_input(evolve, tmp_path, monkeypatch, change, flags, message: str) -> None:
    monkeypatch.chdir(tmp_path)
    records = documents()
    if change is not None:
        change(records)
    code, out, err = evolve(records, *flags)
    assert code == 2 and message in err
    assert not out and not list(tmp_path.iterdir())


def test_resuming_with_what_does_not_fit(evolve, tmp_path) -> None:
    state = str(tmp_path / "state")
    evolve(documents(), "--save", state)
    for flags, message in (
        (("--method", "ssl"), "holds a SSLE: --method ssl cannot go on from it"),
        (("--frame", "day"), "--frame day: "),
        ((), "every document is of a frame up to 2001-04"),
    ):
        code, _, err = evolve(documents(), "--resume", state, *flags)
        assert code == 2 and message in err
    model, words = load_run(state)
    words.analyzer = "another"
    save_run(state, model, words)
    later = documents(months=5)[-14:]
    code, _, err = evolve(later, "--resume", state)
    assert code == 2 and "those before them by another" in err
    (tmp_path / "text").write_text("nothing")
    with pytest.raises(InputError, match="evolving run"):
        load_run(tmp_path / "text")


@pytest.mark.java
def test_from_a_file_through_lucene(tmp_path, capsys) -> None:
    records = documents()
    for record in records[3::3]:
        record.pop("labels")
    del records[-1]["date"]
    source = tmp_path / "docs.jsonl"
    source.write_text("\n".join(json.dumps(record) for record in records))
    assert main(["evolve", "--input", str(source), "--output", str(tmp_path / "p.jsonl"), "--gamma-i", "10"]) == 0
    predictions = lines(tmp_path / "p.jsonl")
    assert len(predictions) == 55
    assert np.mean([p["predicted"] == ("ship", "farm")[i % 2] for i, p in enumerate(predictions)]) > 0.8
