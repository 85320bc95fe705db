"""``sdretrieval themes`` from end to end, on the tests' own collection."""

from __future__ import annotations

import json

import pytest

pytestmark = pytest.mark.java


@pytest.fixture(scope="module")
def article(tmp_path_factory):
    """A text with two halves, and a corpus of it and another document."""
    folder = tmp_path_factory.mktemp("article")
    sea = "The storm drove waves over the harbour and ships lost their sails. "
    bread = "Bakers knead flour with yeast and ovens bake loaves of bread. "
    (folder / "article.txt").write_text(sea * 12 + bread * 12)
    lines = [{"id": "a", "contents": sea * 3}, {"id": "b", "contents": bread * 3}, {"id": "c", "contents": ""}]
    (folder / "corpus.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


@pytest.fixture(scope="module")
def model(article):
    from sdretrieval.cli.main import main

    files = ["--input", str(article / "article.txt"), "--output", str(article / "model")]
    assert main(["themes", "fit", *files, *"--n-topics 2 --bandwidth 4 --steps 20".split()]) == 0
    return article / "model"


def test_topics_is_another_name(typed, model):
    assert typed("topics", "show", "--model", model).out == typed("themes", "show", "--model", model).out != ""
    assert "themes (topics)" in typed("--help").out


def test_show(typed, model):
    outcome = typed("themes", "show", "--model", model, "--words", 3)
    assert outcome.code == 0 and len(outcome.out.splitlines()) == 2
    told = json.loads(typed("themes", "show", "--model", model, "--json", "--topics", 1).out)
    assert [topic["topic"] for topic in told] == [1]
    assert all(0 < weight <= 1 for weight in told[0]["words"].values())


def test_strip_in_the_terminal_and_in_files(typed, model, article, tmp_path):
    outcome = typed("themes", "strip", "--model", model, "--input", article / "article.txt", "--segments", 2)
    assert outcome.code == 0 and "█" in outcome.out and "cuts" in outcome.out
    for name, start in (("strip.html", b"<!doctype"), ("strip.png", b"\x89PNG")):
        words = ["--model", model, "--input", article / "article.txt", "--output", tmp_path / name]
        assert typed("themes", "strip", *words).code == 0
        assert (tmp_path / name).read_bytes().startswith(start)


def test_segment_finds_the_turn(typed, model, article):
    """Eight words in each sentence about the sea: twelve of them make the first half."""
    words = ["--model", model, "--input", article / "article.txt", "--segments", 2]
    told = json.loads(typed("themes", "segment", *words, "--json").out)
    first, second = told["segments"]
    assert abs(second["first"] - told["words"] / 2) <= 12 and first["topic"] != second["topic"]
    assert len(typed("themes", "segment", *words).out.splitlines()) == 2


def test_transform(typed, model, article, tmp_path):
    words = ["--model", model, "--input", article / "corpus.jsonl", "--output", tmp_path / "z"]
    outcome = typed("themes", "transform", *words)
    assert outcome.code == 0
    lines = [json.loads(line) for line in (tmp_path / "z").read_text().splitlines()]
    assert [line["id"] for line in lines] == ["a", "b", "c"]
    best = [max(line["topics"], key=line["topics"].get) for line in lines[:2]]
    assert best[0] != best[1] and lines[2]["topics"] == {}


def test_themes_of_an_index_and_a_search_with_them(typed, collection, monkeypatch, tmp_path):
    """Fitted beside the index; the ranking model finds them, and says so where there are none."""
    import shutil

    from sdretrieval.index.snapshot import open_snapshot
    from sdretrieval.learn.lcsc.sequences import index_sequences

    index = tmp_path / "tiny"
    shutil.copytree(collection.index, index)
    snapshot, output = open_snapshot(index), tmp_path / "run.txt"
    words = ["--index", index, "--topics", collection.topics, "--model", "passage", "--output", output]
    assert typed("search", *words).code == 0 and output.is_file()
    told = typed("search", *words, "--set", "topic_weight=0.2")
    assert told.code != 0 and "has no topics yet" in told.err and "topic_weight=0" in told.err
    outcome = typed("themes", "fit", "--index", index, "--n-topics", 6, "--bandwidth", 3, "--batch", 10, "--steps", 3)
    assert outcome.code == 0 and "6 themes of 30 documents" in outcome.err
    assert index.with_name("tiny.topics").is_file() and index.with_name("tiny.positions").is_file()
    plain = output.read_text()
    assert typed("search", *words, "--set", "topic_weight=0.2").code == 0 and output.read_text() != plain
    # the file beside the index says what analysing again says, and a damaged one is not believed
    from sdretrieval.learn.lcsc.passage_ranking import kept_sequences

    index.with_name("tiny.positions").write_bytes(b"damaged")
    assert (kept_sequences(snapshot).tokens == index_sequences(snapshot).tokens).all()


def test_bad_input_is_told(refused, model, article, tmp_path):
    text = article / "article.txt"
    assert "no such file" in refused("themes", "show", "--model", tmp_path / "none")
    assert "--output is needed" in refused("themes", "fit", "--input", text)
    assert "n_components" in refused("themes", "fit", "--input", text, "--output", tmp_path / "m", "--n-topics", 0)
    assert "bandwidth" in refused("themes", "fit", "--input", text, "--output", tmp_path / "m", "--bandwidth", -1)
    strip = ["strip", "--model", model]
    assert ".html or .png" in refused("themes", *strip, "--input", text, "--output", tmp_path / "x.gif")
    assert "no theme 7" in refused("themes", "show", "--model", model, "--topics", 7)
    corpus = article / "corpus.jsonl"
    assert "--docid" in refused("themes", *strip, "--input", corpus)
    assert "no document 'z'" in refused("themes", *strip, "--input", corpus, "--docid", "z")
    assert "no word that the themes know" in refused("themes", *strip, "--input", corpus, "--docid", "c")
