"""Indexes of Anserini in other languages: found out by doctor, searched right with --language."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from lucene_writing import without_notes

from sdretrieval.collection.analyzer import AnalyzerSpec
from sdretrieval.collection.corpus import Document
from sdretrieval.collection.trec import read_run
from sdretrieval.index.lucene.indexing import build_index

TEXTS = {
    "de": ["Die Häuser der alten Stadt", "Brücken über den Flüssen", "Der Bürgermeister versprach neue Schulen"],
    "tr": ["Eski şehrin evleri yapıldı", "Irmağın üzerindeki köprüler", "Belediye başkanı yeni okullar vaat etti"],
    "zh": ["老城的房子是由勤劳的工匠建造的", "河上的桥梁连接着各个街区", "市长承诺建设新学校"],
}
QUERIES = {"de": "Brücke am Fluss", "tr": "ırmak köprü", "zh": "桥梁"}  # each finds the second document alone


@pytest.fixture(scope="module")
def foreign(tmp_path_factory) -> dict[str, Path]:
    """Indexes as Anserini leaves them, which say nothing about the analyzer."""
    folder = tmp_path_factory.mktemp("foreign")
    for language, texts in TEXTS.items():
        documents = [Document(f"d{i}", text) for i, text in enumerate(texts)]
        build_index(documents, folder / language, analyzer=AnalyzerSpec(language=language), threads=1)
        without_notes(folder / language)
        (folder / f"{language}.tsv").write_text(f"1\t{QUERIES[language]}\n")
    return {language: folder / language for language in TEXTS}


@pytest.mark.parametrize("language", TEXTS)
@pytest.mark.parametrize("model", ["bm25", "lucene-bm25"])
def test_search_finds_what_the_language_says(foreign, typed, tmp_path, language, model):
    index = foreign[language]
    words = ["search", "--index", index, "--topics", f"{index}.tsv", "--model", model, "--output", tmp_path / "run.txt"]
    outcome = typed(*words, "--language", language)
    assert outcome.code == 0, outcome
    assert read_run(tmp_path / "run.txt")["1"].docids == ["d1"]
    assert json.loads((tmp_path / "run.txt.manifest.json").read_text())["options"]["language"] == language
    outcome = typed(*words)  # without it, what is wrong is told
    assert f"--language {language}" in outcome.err
    assert "of its texts' words" in outcome.err


@pytest.mark.parametrize("language", TEXTS)
def test_doctor_tells_that_the_analyzer_is_assumed_and_wrong(foreign, typed, language):
    outcome = typed("doctor", "--index", foreign[language])
    assert outcome.code == 1
    assert "assumed: the index does not say it" in outcome.out
    assert f"--language {language} (100%)." in outcome.out
    outcome = typed("doctor", "--index", foreign[language], "--language", language)
    assert outcome.code == 0
    assert "assumed" not in outcome.out


def test_explain_takes_the_language(foreign, typed):
    words = ["explain", "--index", foreign["de"], "--query", QUERIES["de"], "--model", "bm25", "--language", "de"]
    outcome = typed(*words)
    assert (outcome.code, outcome.err) == (0, "")
    assert "d1" in outcome.out


def test_an_index_that_says_its_language_is_not_argued_with(refused, typed, tmp_path):
    build_index([Document("a", "Häuser und Brücken")], tmp_path / "ix", analyzer=AnalyzerSpec(language="de"))
    (tmp_path / "t.tsv").write_text("1\tBrücke\n")
    words = ["search", "--index", tmp_path / "ix", "--topics", tmp_path / "t.tsv", "--output", tmp_path / "run.txt"]
    assert typed(*words, "--model", "bm25", "--language", "de").code == 0
    told = refused(*words, "--language", "fr")
    assert "was made with the analyzer" in told
    assert "Leave out --language" in told
