"""``sdretrieval classify`` as it is typed."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

# A few words for each label; documents mix them with words of no label.
WORDS = {
    "sport": ["keeper", "goal", "penalty", "match", "league", "team", "score", "striker", "referee", "cup"],
    "money": ["bank", "interest", "loan", "rate", "share", "profit", "market", "bond", "dividend", "price"],
    "weather": ["rain", "storm", "wind", "flood", "snow", "sun", "cloud", "frost", "thunder", "degree"],
}
COMMON = ["people", "city", "year", "report", "day", "water", "road", "house", "morning", "evening"]


def records(number: int, seed: int, *, several: bool = False) -> list[dict]:
    import random

    dice = random.Random(seed)
    made = []
    for i in range(number):
        labels = dice.sample(sorted(WORDS), dice.choice([1, 2]) if several else 1)
        pool = [word for label in labels for word in WORDS[label]]
        text = " ".join(dice.choices(pool, k=6) + dice.choices(COMMON, k=6))
        made.append(
            {
                "id": f"n{seed}-{i}",
                "contents": text,
                "labels": labels if several else labels[0],
                "split": "train" if i % 3 else "test",
                "date": f"2024-01-{1 + i % 28:02d}",
            }
        )
    return made


def write(path: Path, rows: list[dict]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("classify")
    new = [{"id": row["id"], "contents": row["contents"]} for row in records(10, 3)]
    return {
        "train": write(folder / "train.jsonl", records(90, 1)),
        "test": write(folder / "test.jsonl", records(40, 2)),
        "new": write(folder / "new.jsonl", [*new, {"id": "empty", "contents": " "}]),
        "several": write(folder / "several.jsonl", records(120, 4, several=True)),
        "folder": folder,
    }


@pytest.fixture(scope="module")
def saved(files) -> Path:
    from sdretrieval.cli.main import main

    path = files["folder"] / "news.sdm"
    assert main(["classify", "--train", str(files["train"]), "--save", str(path)]) == 0
    return path


def test_train_save_load_and_label(typed, files, saved, tmp_path):
    outcome = typed("classify", "--load", saved, "--input", files["new"], "--output", tmp_path / "labels.jsonl")
    assert (outcome.code, outcome.out) == (0, "")
    assert "1 documents have no text (empty)" in outcome.err
    rows = [json.loads(line) for line in (tmp_path / "labels.jsonl").read_text().splitlines()]
    truth = {row["id"]: row["labels"] for row in records(10, 3)}
    assert [row["id"] for row in rows] == [*truth, "empty"]  # in the order of the input
    assert sum(row["label"] == truth[row["id"]] for row in rows[:-1]) >= 9
    assert all(1 / 3 <= row["probability"] <= 1 for row in rows[:-1])
    assert rows[-1] == {"id": "empty", "label": None}


def test_labels_as_a_table(typed, files, saved, tmp_path):
    assert typed("classify", "--load", saved, "--input", files["new"], "--output", tmp_path / "l.tsv").code == 0
    rows = [line.split("\t") for line in (tmp_path / "l.tsv").read_text().splitlines()]
    assert {row[1] for row in rows[:-1]} <= set(WORDS)
    assert rows[-1] == ["empty", "", ""]


def test_one_text(typed, saved):
    outcome = typed("classify", "--load", saved, "--text", "The keepers saved three penalties!")
    assert json.loads(outcome.out)["label"] == "sport"  # stemmed as the training documents were
    outcome = typed("classify", "--load", saved, "--text", "zzz")
    assert "no word that the classifier knows" in outcome.err


def test_measures_on_a_test_file(typed, files, saved):
    outcome = typed("classify", "--load", saved, "--test", files["test"])
    assert outcome.code == 0
    for told in ("accuracy", "macro-BEP", "micro-BEP", "confusion: rows are the truth", "learnt 3 labels from 90"):
        assert told in outcome.out
    found = json.loads(typed("classify", "--load", saved, "--test", files["test"], "--json").out)
    assert found["test"]["documents"] == 40
    assert found["test"]["accuracy"] > 0.85
    assert sum(map(sum, found["test"]["confusion"])) == 40
    assert found["labels"] == sorted(WORDS)
    assert found["model"] == "sd"


@pytest.mark.parametrize("model", ["multinomial-jm", "dirichlet", "svm"])
def test_models_by_name(typed, files, model):
    words = ["--train", files["train"], "--model", model, "--split-field", "split", "--json"]
    found = json.loads(typed("classify", *words).out)
    assert found["trained_on"]["documents"] == 60
    assert found["test"]["documents"] == 30
    assert found["test"]["accuracy"] > 0.8


def test_a_model_that_follows_the_time(typed, files, tmp_path):
    words = ["--train", files["train"], "--model", "local-logistic", "--date-field", "date"]
    words += ["--set", "bandwidth=20d", "--set", "resolution=7d"]
    found = json.loads(typed("classify", *words, "--split-field", "split", "--json").out)
    assert found["test"]["accuracy"] > 0.8
    assert typed("classify", *words, "--save", tmp_path / "local.sdm").code == 0
    everywhere = [*words, "--set", "bandwidth=inf", "--split-field", "split", "--json"]
    assert json.loads(typed("classify", *everywhere).out)["parameters"]["bandwidth"] == "inf"
    outcome = typed("classify", "--load", tmp_path / "local.sdm", "--test", files["test"], "--date-field", "date")
    assert "bandwidth=20 d" in outcome.out or "bandwidth=20" in outcome.out


def test_held_out_then_saved_from_all(typed, files, tmp_path):
    outcome = typed("classify", "--train", files["train"], "--held-out", "0.2", "--save", tmp_path / "m.sdm", "--json")
    assert "now learning from all documents" in outcome.err
    found = json.loads(outcome.out)
    assert found["test"]["documents"] == 18
    assert found["trained_on"]["documents"] == 90


def test_folds_and_tuning(typed, files, tmp_path):
    words = ["--train", files["train"], "--model", "multinomial", "--cv", "3", "--confusion", tmp_path / "c.csv"]
    found = json.loads(typed("classify", *words, "--json").out)
    assert [one["documents"] for one in found["folds"]] == [30, 30, 30]
    assert 0.8 < found["mean"]["accuracy"] <= 1
    table = list(csv.reader((tmp_path / "c.csv").read_text().splitlines()))
    assert table[0][1:] == sorted(WORDS)
    assert sum(int(n) for row in table[1:] for n in row[1:]) == 90
    assert "± sd" in typed("classify", *words).out
    tuned = json.loads(typed("classify", *words[:4], "--held-out", ".2", "--tune", "--json").out)
    assert len(tuned["tuning"]) == 5
    best = max(tuned["tuning"], key=lambda trial: trial["value"])
    assert tuned["parameters"]["additive"] == best["additive"]


def test_several_labels_a_document(typed, files, tmp_path):
    words = ["--train", files["several"], "--multi-label"]
    found = json.loads(typed("classify", *words, "--split-field", "split", "--json").out)
    assert found["multi_label"] is True
    assert found["test"]["confusion"] is None
    assert found["test"]["macro_bep"] > 0.8
    assert typed("classify", *words, "--save", tmp_path / "m.sdm").code == 0
    outcome = typed("classify", "--load", tmp_path / "m.sdm", "--text", "bank rate profit storm rain flood snow")
    assert json.loads(outcome.out)["labels"] == ["money", "weather"]


def test_an_index(typed, collection):
    """The fixture's subjects are its labels."""
    words = ["--train", collection.index, "--label-field", "subject", "--cv", "5", "--json"]
    found = json.loads(typed("classify", *words).out)
    assert sum(one["documents"] for one in found["folds"]) == 30
    chosen = json.loads(typed("classify", *words, "--labels", "1", "2").out)
    assert sum(one["documents"] for one in chosen["folds"]) == 10


def test_labels_never_learnt_are_told(typed, files, saved, tmp_path):
    strange = write(tmp_path / "s.jsonl", [*records(5, 7), {"id": "x", "contents": "jazz", "labels": "music"}])
    outcome = typed("classify", "--load", saved, "--test", strange)
    assert "1 test documents bear labels never learnt (music)" in outcome.err


def test_models_are_listed(typed):
    out = typed("classify", "--list-models").out
    for name in ("sd-ce", "dcm", "local-logistic", "smoothing=0.001", "--tune tries"):
        assert name in out


def test_what_is_refused(refused, files, saved, tmp_path):
    train = ["--train", files["train"]]
    assert "nothing to do" in refused("classify", *train)
    assert "nothing to do" in refused("classify", "--load", saved)
    assert "--cv is for --train" in refused("classify", "--load", saved, "--cv", "3")
    assert "are for --train" in refused("classify", "--load", saved, "--model", "svm", "--text", "x")
    undated = refused("classify", *train, "--model", "local-logistic", "--cv", "3")
    assert "none of 90 documents has a date" in undated
    assert "--date-field" in undated
    assert "cannot be combined" in refused("classify", *train, "--cv", "3", "--held-out", "0.2")
    assert "folds must be from 2 to the" in refused("classify", *train, "--cv", "0")
    assert "no classifier 'sf'" in refused("classify", *train, "--model", "sf", "--held-out", "0.2")
    endless = ["--model", "svm", "--set", "C=inf", "--cv", "3"]
    assert "C must be in (0, 1e+12); got inf" in refused("classify", *train, *endless)
    assert "has no parameter" in refused("classify", *train, "--set", "alpha=1", "--held-out", "0.2")
    assert "has a field 'topic'" in refused("classify", *train, "--label-field", "topic", "--held-out", "0.2")
    told = refused("classify", "--train", files["several"], "--held-out", "0.2")
    assert "labels (" in told
    assert "--multi-label" in told
    assert "no such file" in refused("classify", "--load", tmp_path / "absent.sdm", "--text", "x")
    assert "is not a classifier" in refused("classify", "--load", files["train"], "--text", "x")
    assert "(0, 1)" in refused("classify", *train, "--held-out", "2")
    assert "--labels and --largest" in refused("classify", *train, "--labels", "a", "--largest", "2", "--cv", "3")
    assert "no document has the label 'art'" in refused("classify", *train, "--labels", "art", "--cv", "3")
    assert "says 'train' in no document" in refused("classify", *train, "--split-field", "date")
    assert "--output is for" in refused("classify", *train, "--cv", "3", "--output", tmp_path / "x")
    assert "--confusion needs a test" in refused("classify", *train, "--save", "m", "--confusion", tmp_path / "x")
    assert "mixed on the screen" in refused("classify", "--load", saved, "--text", "x", "--json")
    assert "unknown format" in refused("classify", *train, "--cv", "3", "--format", "doc")
