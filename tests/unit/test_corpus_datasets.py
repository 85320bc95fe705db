"""ir_datasets ids, with a dataset registered here: no network."""

from __future__ import annotations

import json
import sys
from typing import NamedTuple

import pytest

from sdretrieval.cli.main import main
from sdretrieval.core.errors import InputError, ParameterError
from sdretrieval.core.jvm import start_jvm
from sdretrieval.plugins import datasets
from sdretrieval.plugins.named import named_topics, qrels_of

ir_datasets = pytest.importorskip("ir_datasets")


class Author(NamedTuple):
    name: str


class Story(NamedTuple):
    doc_id: str
    title: str
    text: str
    date: str
    authors: tuple[Author, ...] = ()

    def default_text(self):
        return f"{self.title} {self.text}"


class Question(NamedTuple):
    query_id: str
    title: str
    description: str
    time: str

    def default_text(self):
        return self.title


@pytest.fixture(scope="module")
def dataset():
    """The name of a registered dataset with documents, topics and qrels; ``…/bare`` has documents only."""
    from ir_datasets.datasets.base import Dataset
    from ir_datasets.formats import BaseDocs, BaseQrels, BaseQueries, TrecQrel

    class Docs(BaseDocs):
        def docs_iter(self):
            yield Story("s1", "Tea", "leaves and water", "2024-05-01", (Author("A. B."),))
            yield Story("s2", "Time", "passes", "2024-05-02")

        def docs_cls(self):
            return Story

        def docs_count(self):
            return 2

        def docs_namespace(self):
            return "sdr"

    class Queries(BaseQueries):
        def queries_iter(self):
            yield Question("1", "tea", "about tea leaves", "Tue Feb 08 12:30:27 +0000 2011")

        def queries_cls(self):
            return Question

    class Judgments(BaseQrels):
        def qrels_iter(self):
            yield TrecQrel("1", "s1", 2, "0")
            yield TrecQrel("1", "s2", 0, "0")

        def qrels_defs(self):
            return {2: "highly", 0: "not"}

    if "sdr-test" not in ir_datasets.registry:
        ir_datasets.registry.register("sdr-test", Dataset(Docs(), Queries(), Judgments()))
        ir_datasets.registry.register("sdr-test/bare", Dataset(Docs()))
    return "sdr-test"


def test_documents_with_the_datasets_own_text(dataset):
    first, second = datasets.documents(dataset)
    assert (first.docid, first.contents) == ("s1", "Tea leaves and water")
    assert first.fields == {"title": "Tea", "date": "2024-05-01", "authors": [{"name": "A. B."}]}
    assert second.place == ("ir_datasets:sdr-test", 2)


def test_chosen_fields_and_dates(dataset):
    first, _ = datasets.documents(dataset, contents=("text",), date="date")
    assert first.contents == "leaves and water"
    assert first.time == 1714521600000  # date -d 2024-05-01T00:00:00Z +%s
    with pytest.raises(InputError, match="no field 'body'; there is 'doc_id', 'title', 'text', 'date'"):
        list(datasets.documents(dataset, contents=("body",)))


def test_topics_with_times(dataset):
    (topic,) = datasets.topics(dataset)
    assert (topic.qid, topic.text) == ("1", "tea")
    assert topic.time == 1297168227000  # date -d 2011-02-08T12:30:27Z +%s
    assert datasets.topics(dataset, field="description")[0].text == "about tea leaves"
    with pytest.raises(ParameterError, match="no field 'narrative'"):
        datasets.topics(dataset, field="narrative")


def test_qrels(dataset):
    assert {qid: dict(row) for qid, row in datasets.qrels(dataset).items()} == {"1": {"s1": 2, "s2": 0}}


def test_a_part_that_is_missing_is_answered_with_the_relatives_that_have_it(dataset):
    with pytest.raises(InputError) as caught:
        datasets.topics("sdr-test/bare")
    assert "has no topics" in str(caught.value)
    assert "It is part of: sdr-test." in str(caught.value)
    with pytest.raises(InputError, match="has no qrels"):
        datasets.qrels("sdr-test/bare")


def test_unknown_id():
    with pytest.raises(ParameterError, match="knows no dataset 'sdr-nowhere'"):
        datasets.load("sdr-nowhere")


def test_without_the_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "ir_datasets", None)
    with pytest.raises(ParameterError, match="pip install ir_datasets"):
        datasets.load("vaswani")


@pytest.mark.java
def test_index_by_dataset_id(dataset, tmp_path, capsys):
    words = ["--dataset", dataset, "--index", str(tmp_path / "mine"), "--date-field", "date", "--json"]
    assert main(["index", *words]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert (summary["documents"], summary["tokens"], summary["undated"]) == (2, 5, 0)  # "and" is a stop word
    assert summary["latest"] == "2024-05-02T00:00:00Z"


@pytest.mark.java
def test_topics_and_qrels_by_their_ids_on_the_command_line(dataset, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for words in (
        f"index --dataset {dataset} --index ix",
        f"search --index ix --topics {dataset} --model bm25 --output run.txt",
        f"search --index ix --topics irds:{dataset} --topic-field description --model bm25 --output run.txt",
        f"evaluate {dataset} run.txt AP",
        f"report {dataset} run.txt --topics {dataset} --output report.html",
    ):
        assert main(words.split()) == 0, capsys.readouterr().err
    assert json.loads((tmp_path / "run.txt.manifest.json").read_text())["inputs"] == {
        "topics": {"file": f"irds:{dataset}"}
    }


def test_pyserinis_names(monkeypatch, tmp_path):
    """As Pyserini's functions answer; without a network nothing of theirs can be fetched."""
    start_jvm()  # before Pyserini does
    try:
        search = pytest.importorskip("pyserini.search", reason="Pyserini is not installed")
    except OSError as error:
        assert named_topics("robust04") is None
        pytest.skip(f"Pyserini fetches lists of names when it is imported: {error}")
    monkeypatch.setattr(
        search, "get_topics", {"robust04": {301: {"title": "Organized Crime", "narrative": "…"}}}.__getitem__
    )
    monkeypatch.setattr(search, "get_qrels", {"robust04": {301: {"FBIS3-1": "1"}}}.__getitem__)
    assert [(topic.qid, topic.text) for topic in named_topics("robust04")] == [("301", "Organized Crime")]
    assert named_topics("robust04", "narrative")[0].text == "…"
    assert {qid: dict(grades) for qid, grades in qrels_of("robust04").items()} == {"301": {"FBIS3-1": 1}}
    assert named_topics("nobody's") is None
    monkeypatch.setattr(search, "get_topics", lambda name: 1 / 0)
    with pytest.raises(InputError, match="could not be fetched"):
        named_topics("robust04")
    (tmp_path / "robust04").write_text("1\ttea\n")
    monkeypatch.chdir(tmp_path)
    assert named_topics("robust04") is None  # a file goes first
