"""Tables and long texts of the topics benchmark, small enough to follow by hand."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks import results_topics
from benchmarks.kept import BESIDE
from benchmarks.results_topics import News, article, beside, cuts_table, features_table, gain, held_out, sparsest
from benchmarks.tables import mean_and_error
from sdretrieval.learn.lcsc.sequences import sequences

TEXT = """Harbours are old.
== History ==
The ferry left. Ships came.
=== Middle ages ===
Walls rose.
== Trade ==
Wheat and bread.
== See also ==
Lists of ferries.
"""


@pytest.mark.java
def test_an_article_without_headings_stop_words_and_lists_of_links() -> None:
    text = article(TEXT)
    assert text.document.words(0) == "harbour old ferri left ship came wall rose wheat bread".split()
    assert text.sections == [2, 8]
    assert text.parts == [2, 6, 8]
    assert text.paragraphs == [(0, 2), (2, 6), (6, 8), (8, 10)]


def test_of_several_texts_means_errors_and_paired_differences() -> None:
    ours, theirs = [[10.0, 0.1, 0.2, 0.3, 0.4], [20.0, 0.3, 0.2, 0.3, 0.4]], [[5.0, 0.2, 0.2, 0.3, 0.4]] * 2
    found = [{"ours": a, "theirs": b, "even": [float("nan"), *b[1:]]} for a, b in zip(ours, theirs, strict=True)]
    header, _, first, second, last = cuts_table(found, less="ours").splitlines()
    assert header.endswith("| less |")
    assert first == "| ours | 15.0 (5.0) | 0.200 (0.100) / 0.200 (0.000) | 0.300 (0.000) / 0.400 (0.000) |  |"
    assert second.endswith("| +0.000 (0.100) |")
    assert last.startswith("| even | — |")
    assert cuts_table(found[:1]).splitlines()[2] == "| ours | 10.0 | 0.100 / 0.200 | 0.300 / 0.400 |"
    assert mean_and_error(np.array([1.0, 3.0]), 1, "+") == "+2.0 (1.0)"


def test_gains_are_paired_over_documents() -> None:
    right = {"plain": "1100", "root": "1110", "tf-idf": "0000"}, {"plain": "1000", "root": "0000", "tf-idf": "0000"}
    one, other = (
        {"features as": how, "right": told, "by features": {key: 25 * value.count("1") for key, value in told.items()}}
        for how, told in zip(("root", "plain"), right, strict=True)
    )
    assert gain(one, other) == "+50.0 (28.9)"  # differences 0, 1, 1, 0
    assert gain(one, other, "plain") == "+25.0 (25.0)"
    *_, last = features_table({"unigrams": other, "topics": one}).splitlines()
    assert last == "| topics | 50.0, +25.0 (25.0) | 75.0, +75.0 (25.0) | 0.0, +0.0 (0.0) |"


def test_of_equally_good_sparsities_the_largest_is_taken() -> None:
    right = {1e-4: "1111111110", 1e-3: "1111111101", 1e-2: "1111110000", 1e-1: "0000000000"}
    found = {
        lam: {"features as": "root", "right": {"root": told}, "accuracy": 10.0 * told.count("1")}
        for lam, told in right.items()
    }
    assert sparsest(found) == 1e-3
    assert beside(found, "λ", 1e-2) == (
        "90.0 at λ = 0.0001 (+30.0 (15.3)), 90.0 at λ = 0.001 (+30.0 (15.3)), 60.0 at λ = 0.01, "
        "0.0 at λ = 0.1 (-60.0 (16.3))"
    )


def test_what_chooses_is_held_out_of_the_training_documents() -> None:
    train = sequences([[f"w{i}"] for i in range(12)])
    task = News("few", train, sequences([["test"]]), np.array(["a", "b"] * 6), np.array(["a"]))
    part = held_out(task)
    seen, kept = ([one.words(d)[0] for d in range(len(one))] for one in (part.train, part.test))
    assert sorted(seen + kept) == sorted(f"w{i}" for i in range(12))
    assert len(kept) == 4
    for words, labels in ((seen, part.y_train), (kept, part.y_test)):
        assert list(labels) == ["ab"[int(word[1:]) % 2] for word in words]


def test_what_a_run_finds_comes_into_its_tables(monkeypatch) -> None:
    def made(task, *which, **more) -> dict:
        accuracies = dict.fromkeys(("plain", "root", "tf-idf"), 75.0)
        return {
            "accuracy": 75.0, "validation": 50.0, "features as": "root", "by features": accuracies, "seconds": 60.0,
            "right": dict.fromkeys(accuracies, "1110"), "objective": [9.0, *range(7, 1, -1)], "microseconds": 5.0,
        }  # fmt: skip

    train = sequences([["w"]] * 12)
    few = News("few", train, train, np.array(["a", "b"] * 6), np.array(["a", "b"] * 6))
    for name in ("lcsc", "ngrams", "lda"):
        monkeypatch.setattr(results_topics, name, made)
    monkeypatch.setattr(results_topics, "news", lambda name: few)
    monkeypatch.setattr(results_topics, "_draw_curves", lambda *_: None)
    shown, beside_it = results_topics.section(("news",)).split(BESIDE)
    assert "| all 20 | 75.0 (paper 74.1) | 75.0 (paper 34.4) | 75.0 (paper 80.8) | +0.0 (0.0) |" in shown
    assert beside_it.lstrip().startswith("**By how features enter**") and "features enter**" not in shown
    assert "| LCSC, K = 4,000, λ = 0.1 | 75.0, +0.0 (0.0) |" in beside_it  # all are as good: the largest λ
    assert "75.0, +0.0 (0.0) to the squared loss (60 s to learn, squared 60)." in beside_it
