"""Building an index: what is in it, and what is left when something goes wrong."""

from __future__ import annotations

import errno
import json
import os
import random
import threading
from pathlib import Path

import pytest
from shown import as_shown

from sdretrieval.collection.analyzer import LANGUAGES, STEMMERS, AnalyzerSpec
from sdretrieval.collection.corpus import Document, Problems, Reader
from sdretrieval.core.disk import scratch_folder
from sdretrieval.core.errors import IndexProblem, InputError, JavaError, ParameterError
from sdretrieval.index.commit import latest_commit
from sdretrieval.index.index_notes import analyzer_of, read_notes
from sdretrieval.index.lucene import committing, indexing
from sdretrieval.index.lucene.analysis import analyze
from sdretrieval.index.lucene.indexing import build_index, time_term

JANUARY = 1704067200000  # date -d 2024-01-01T00:00:00Z +%s, in ms
DOCUMENTS = [
    Document("d1", "Foxes were running, running away", JANUARY, {"title": "Foxes", "n": [1, 2.5], "é": {}}),
    Document("d2", "the fox 😀", None),
    Document("d3", "tea", JANUARY - 1),
]
# Languages that Anserini's indexer and Pyserini's analysis of queries do not share.


def tree(folder: Path) -> list[str]:
    """Everything below a folder, hidden files too."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def terms_of(index: Path, field: str = "contents") -> list[str]:
    from sdretrieval.core.jvm import java_class

    reader = java_class("io.anserini.index.IndexReaderUtils").getReader(str(index))
    try:
        terms = java_class("org.apache.lucene.index.MultiTerms").getTerms(reader, field)
        walk, found = terms.iterator() if terms else None, []
        while walk and (term := walk.next()) is not None:
            found.append(term.utf8ToString())
        return found
    finally:
        reader.close()


def raw_of(index: Path, docid: str) -> dict | None:
    from sdretrieval.core.jvm import java_class

    utilities = java_class("io.anserini.index.IndexReaderUtils")
    reader = utilities.getReader(str(index))
    try:
        raw = utilities.documentRaw(reader, docid)
        return None if raw is None else json.loads(raw)
    finally:
        reader.close()


# Without Java --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ms", [0, -1, JANUARY, -62135596800000, 253402300799999])  # years 1 to 9999
def test_time_terms_sort_as_times_and_lose_nothing(ms):
    assert time_term(ms) < time_term(ms + 1)
    assert int(time_term(ms)[1:]) - 10**18 == ms
    assert len(time_term(ms)) == 20


def test_duplicate_ids_name_both_places(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"id": "1", "contents": "x"}\n{"id": "2", "contents": "x"}\n')
    (tmp_path / "b.jsonl").write_text('{"id": "3", "contents": "x"}\n\n{"id": "2", "contents": "y"}\n')
    with pytest.raises(InputError) as caught:
        build_index(Reader().read([tmp_path]), tmp_path / "out" / "index")
    assert str(caught.value).startswith(
        f"{tmp_path}/b.jsonl:3: document id '2' was already used at {tmp_path}/a.jsonl:2"
    )
    assert tree(tmp_path) == ["a.jsonl", "b.jsonl"]  # not even the parent folder that was made for it


def test_files_with_the_same_name_are_duplicates_and_the_way_out_is_named(tmp_path):
    for folder in ("x", "y"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.txt").write_text(folder)
    with pytest.raises(InputError) as caught:
        build_index(Reader().read([tmp_path]), tmp_path / "index")
    assert "document id 'a' was already used at " + str(tmp_path / "x" / "a.txt") in str(caught.value)
    assert "--docid path" in str(caught.value)


@pytest.mark.parametrize(
    ("document", "told"),
    [
        (Document("a b", "x"), "(made in Python): the id 'a b' has a blank in it"),
        (Document("", "x"), "the id is empty"),
        (Document("a", "x", fields={"id": 1, "sdr_time": 2}), "fields may not be named id, sdr_time"),
    ],
)
def test_documents_made_in_python_are_checked_too(tmp_path, document, told):
    with pytest.raises(InputError) as caught:
        build_index([document], tmp_path / "index")
    assert told in str(caught.value)
    assert tree(tmp_path) == []


@pytest.mark.parametrize(
    ("documents", "told"),
    [
        ([], "no document to index (0 empty, 0 skipped as bad)"),
        ([Document("1", " \n"), Document("2", "")], "no document to index (2 empty"),
    ],
)
def test_an_empty_corpus_is_an_error(tmp_path, documents, told):
    with pytest.raises(InputError) as caught:
        build_index(documents, tmp_path / "index")
    assert told in str(caught.value)
    assert tree(tmp_path) == []


def test_a_corpus_of_bad_documents_only_shows_the_first(tmp_path):
    (tmp_path / "a.jsonl").write_text("no json\nnor this\n")
    problems = Problems(skip=True)
    with pytest.raises(InputError, match=r"2 skipped as bad; the first: .*a\.jsonl:1: malformed JSON"):
        build_index(Reader(problems=problems).read([tmp_path]), tmp_path / "index", problems=problems)


@pytest.mark.parametrize("error", [RuntimeError("reader broke"), KeyboardInterrupt(), SystemExit(143)])
def test_nothing_is_left_when_reading_stops(tmp_path, error):
    def documents():
        yield Document("1", "x")
        raise error

    with pytest.raises(type(error)):
        build_index(documents(), tmp_path / "index")
    assert tree(tmp_path) == []


def test_full_disk_while_writing_documents(tmp_path, monkeypatch):
    def write(self, line):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(indexing._Shards, "write", write)
    with pytest.raises(IndexProblem) as caught:
        build_index(DOCUMENTS, tmp_path / "index")
    assert "no room left while building" in str(caught.value)
    assert "Free some space" in str(caught.value)
    assert tree(tmp_path) == []


def test_an_existing_index_is_not_touched_without_overwrite(tmp_path):
    (tmp_path / "index").mkdir()
    (tmp_path / "index" / "segments_1").write_text("old")
    with pytest.raises(IndexProblem) as caught:
        build_index(DOCUMENTS, tmp_path / "index")
    assert "--overwrite" in str(caught.value)
    assert tree(tmp_path) == ["index", "index/segments_1"]


def test_a_folder_that_is_no_index_is_never_overwritten(tmp_path):
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter1.tex").write_text("years of work")
    with pytest.raises(IndexProblem, match="is not a Lucene index"):
        build_index(DOCUMENTS, tmp_path / "thesis", overwrite=True)
    (tmp_path / "file").write_text("x")
    with pytest.raises(IndexProblem, match="is not a folder"):
        build_index(DOCUMENTS, tmp_path / "file", overwrite=True)
    assert tree(tmp_path) == ["file", "thesis", "thesis/chapter1.tex"]


def test_a_failed_rebuild_keeps_the_old_index(tmp_path):
    (tmp_path / "index").mkdir()
    (tmp_path / "index" / "segments_1").write_text("old")
    with pytest.raises(InputError):
        build_index([Document("a b", "x")], tmp_path / "index", overwrite=True)
    assert (tmp_path / "index" / "segments_1").read_text() == "old"
    assert tree(tmp_path) == ["index", "index/segments_1"]


def test_the_old_index_comes_back_when_the_new_one_cannot_be_moved(tmp_path, monkeypatch):
    (tmp_path / "index").mkdir()
    (tmp_path / "index" / "segments_1").write_text("old")
    (tmp_path / "build").mkdir()
    with pytest.raises(FileNotFoundError):
        committing._move_into_place(tmp_path / "build" / "missing", tmp_path / "index")
    assert tree(tmp_path) == ["build", "index", "index/segments_1"]


def test_leftovers_of_a_killed_build_are_cleared_but_not_those_of_a_living_one(tmp_path):
    fcntl = pytest.importorskip("fcntl")
    for name in (".index.building", ".index.1.x.building", ".index.2.y.building", ".other.building"):
        (tmp_path / name / "documents").mkdir(parents=True)
        (tmp_path / name / "lock").touch()
    with (tmp_path / ".index.2.y.building" / "lock").open("w") as living:
        fcntl.flock(living, fcntl.LOCK_EX)
        with pytest.raises(InputError):
            build_index([], tmp_path / "index")
    assert sorted(p.name for p in tmp_path.iterdir()) == [".index.2.y.building", ".other.building"]


def test_there_is_one_writer_at_a_time(tmp_path, monkeypatch):
    fcntl = pytest.importorskip("fcntl")
    monkeypatch.setattr(committing, "PATIENCE", 0.1)
    (tmp_path / ".index.building").mkdir()
    with (tmp_path / ".index.building" / "lock").open("w") as living:
        fcntl.flock(living, fcntl.LOCK_EX)
        with pytest.raises(IndexProblem, match="another process is writing"):
            build_index(DOCUMENTS, tmp_path / "index")
        assert tree(tmp_path) == [".index.building", ".index.building/lock"]


def test_a_folder_that_another_takes_away_meanwhile_is_made_again(tmp_path, monkeypatch):
    """Between mkdir's attempt and its look at what stands there; a file in its place is told."""
    make, calls = Path.mkdir, []

    def gone(self: Path, *given, **named) -> None:
        calls.append(self)
        if len(calls) == 1:
            raise FileExistsError(errno.EEXIST, "File exists", str(self))
        make(self, *given, **named)

    monkeypatch.setattr(Path, "mkdir", gone)
    with scratch_folder(tmp_path / "work") as free:
        assert free and len(calls) == 2
    (tmp_path / "work").write_text("a file")
    with pytest.raises(FileExistsError), scratch_folder(tmp_path / "work"):
        pass


@pytest.mark.java
def test_a_writer_waits_for_one_who_only_clears_up(tmp_path, monkeypatch):
    fcntl = pytest.importorskip("fcntl")
    monkeypatch.setattr(committing, "PATIENCE", 300)
    (tmp_path / ".index.building").mkdir()
    with (tmp_path / ".index.building" / "lock").open("w") as clearing:
        fcntl.flock(clearing, fcntl.LOCK_EX)
        threading.Timer(0.2, fcntl.flock, (clearing.fileno(), fcntl.LOCK_UN)).start()
        build_index(DOCUMENTS, tmp_path / "index")
    assert not (tmp_path / ".index.building").exists()


@pytest.mark.parametrize("name", [".index.building", ".index.17.abc_1.building"])
def test_an_index_that_was_moved_aside_is_put_back_before_anything_is_cleared(tmp_path, name):
    """As the renames of an earlier version left it when killed between them, and ours of what Lucene cannot read."""
    (tmp_path / name / "replaced").mkdir(parents=True)
    (tmp_path / name / "replaced" / "segments_1").write_text("old")
    (tmp_path / name / "index").mkdir()
    committing.clear_abandoned(tmp_path / "index")
    assert tree(tmp_path) == ["index", "index/segments_1"]


def test_threads_must_be_positive(tmp_path):
    with pytest.raises(ParameterError, match="threads must be at least 1, got 0"):
        build_index(DOCUMENTS, tmp_path / "index", threads=0)


# With Java -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    folder = tmp_path_factory.mktemp("built")
    index = folder / "deep" / "index"
    return index, build_index([*DOCUMENTS, Document("d4", "   ")], index, notes={"source": {"format": "x"}})


@pytest.mark.java
def test_summary(built):
    index, summary = built
    assert summary.documents == 3
    assert summary.tokens == 8  # fox were run run awai | fox 😀 | tea; "the" is a stop word
    assert summary.terms == 6
    assert (summary.undated, summary.earliest, summary.latest) == (1, JANUARY - 1, JANUARY)
    assert (summary.empty, summary.empty_docids, summary.skipped) == (1, ["d4"], 0)
    assert summary.bytes == sum(p.stat().st_size for p in index.iterdir() if p.name.startswith("_"))
    values = summary.to_json()
    assert (values["earliest"], values["latest"]) == ("2023-12-31T23:59:59.999Z", "2024-01-01T00:00:00Z")
    assert json.loads(json.dumps(values)) == values


@pytest.mark.java
def test_only_the_index_is_there(built):
    index, _ = built
    assert [p.name for p in index.parent.iterdir()] == ["index"]
    assert sum(p.suffix == ".si" for p in index.iterdir()) == 1  # one segment


@pytest.mark.java
def test_terms_are_those_of_the_analyzer(built):
    assert terms_of(built[0]) == sorted({term for d in DOCUMENTS for term in analyze(d.contents)})


@pytest.mark.java
def test_times_are_terms(built):
    assert terms_of(built[0], "sdr_time") == [time_term(JANUARY - 1), time_term(JANUARY)]


@pytest.mark.java
def test_other_fields_come_back(built):
    raw = raw_of(built[0], "d1")
    assert raw == {"id": "d1", "contents": DOCUMENTS[0].contents, **DOCUMENTS[0].fields, "sdr_time": time_term(JANUARY)}
    assert raw_of(built[0], "d2") == {"id": "d2", "contents": "the fox 😀"}
    assert raw_of(built[0], "d4") is None


@pytest.mark.java
def test_notes_are_in_the_commit(built):
    notes = read_notes(built[0])
    assert notes["analyzer"] == {"language": "en", "stemmer": "porter", "stopwords": True}
    assert notes["source"] == {"format": "x"}
    assert notes["stored"] == {"raw": True, "positions": True, "docvectors": False}
    assert notes["summary"]["documents"] == 3
    assert analyzer_of(built[0]) == AnalyzerSpec()


@pytest.mark.java
@pytest.mark.parametrize("language", [code for code in LANGUAGES if code != "th"])  # not every Java can do Thai
def test_every_language_indexes_as_it_analyses(tmp_path, language):
    text = "The running foxes' houses, naïve cafés; 東京の大学 данные книги 12345 कुत्ते বাংলা نصوص 한국어 #tag"
    spec = AnalyzerSpec(language=language)
    build_index([Document("a", text, JANUARY)], tmp_path / "index", analyzer=spec, threads=1)
    assert terms_of(tmp_path / "index") == sorted(set(analyze(text, spec)), key=lambda term: term.encode())
    assert terms_of(tmp_path / "index", "sdr_time") == [time_term(JANUARY)]
    assert analyzer_of(tmp_path / "index") == spec


@pytest.mark.java
@pytest.mark.parametrize("stemmer", STEMMERS)
@pytest.mark.parametrize("stopwords", [True, False])
def test_every_stemmer_indexes_as_it_analyses(tmp_path, stemmer, stopwords):
    text = "The running foxes' houses were marketed nationally"
    spec = AnalyzerSpec(stemmer=stemmer, stopwords=stopwords)
    build_index([Document("a", text, JANUARY)], tmp_path / "index", analyzer=spec, threads=1)
    assert terms_of(tmp_path / "index") == sorted(set(analyze(text, spec)))
    assert terms_of(tmp_path / "index", "sdr_time") == [time_term(JANUARY)]


@pytest.mark.java
def test_overwriting_replaces_the_whole_index(tmp_path):
    build_index(DOCUMENTS, tmp_path / "index")
    before = tree(tmp_path)
    build_index([Document("new", "only this")], tmp_path / "index", overwrite=True)
    assert terms_of(tmp_path / "index") == ["onli"]
    assert set(before) & set(tree(tmp_path)) == {"index", "index/write.lock"}
    assert [p.name for p in tmp_path.iterdir()] == ["index"]


@pytest.mark.java
def test_readers_keep_the_commit_they_opened(tmp_path):
    from sdretrieval.index.lucene.contents import opened

    build_index(DOCUMENTS, tmp_path / "index")
    with opened(tmp_path / "index") as reader:
        build_index([Document("new", "only this")], tmp_path / "index", overwrite=True)
        assert reader.numDocs() == 3
        assert reader.storedFields().document(0).get("raw")
    with opened(tmp_path / "index") as reader:
        assert reader.numDocs() == 1


@pytest.mark.java
def test_what_lucene_cannot_read_is_replaced_all_the_same(tmp_path):
    (tmp_path / "index").mkdir()
    (tmp_path / "index" / "segments_1").write_text("old")
    build_index(DOCUMENTS, tmp_path / "index", overwrite=True)
    assert latest_commit(tmp_path / "index").notes["summary"]["documents"] == 3
    assert [p.name for p in tmp_path.iterdir()] == ["index"]


@pytest.mark.java
def test_what_a_killed_commit_left_is_removed_by_the_next_command(tmp_path):
    build_index(DOCUMENTS, tmp_path / "index")
    before = tree(tmp_path)
    for name in ("pending_segments_9", "_7.fdt", "_7_Lucene99_0.doc"):
        (tmp_path / "index" / name).write_text("half")
    (tmp_path / "index" / "mine.txt").write_text("not Lucene's")
    (tmp_path / ".index.building" / "documents").mkdir(parents=True)
    committing.clear_abandoned(tmp_path / "index")
    assert tree(tmp_path) == sorted([*before, "index/mine.txt"])


@pytest.mark.java
def test_an_empty_folder_may_be_the_target(tmp_path):
    (tmp_path / "index").mkdir()
    assert build_index(DOCUMENTS, tmp_path / "index").documents == 3


@pytest.mark.java
def test_many_shards_and_threads_lose_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(indexing, "DOCUMENTS_PER_SHARD", 7)
    documents = [Document(f"d{i}", f"word{i} same", i) for i in range(1000)]
    summary = build_index(documents, tmp_path / "index", threads=4)
    assert (summary.documents, summary.tokens, summary.terms) == (1000, 2000, 1001)
    assert raw_of(tmp_path / "index", "d777")["sdr_time"] == time_term(777)


@pytest.mark.java
def test_terms_are_counted_over_several_segments_too(tmp_path, monkeypatch):
    monkeypatch.setattr(indexing, "DOCUMENTS_PER_SHARD", 50)
    documents = [Document(f"d{i}", f"word{i % 30} same") for i in range(400)]
    summary = build_index(documents, tmp_path / "index", threads=4, optimize=False)
    assert (summary.documents, summary.tokens, summary.terms) == (400, 800, 31)


@pytest.mark.java
def test_nothing_but_stop_words(tmp_path):
    summary = build_index([Document("1", "the of and")], tmp_path / "index")
    assert (summary.documents, summary.tokens, summary.terms) == (1, 0, 0)


@pytest.mark.java
def test_raw_text_and_positions_may_be_left_out(tmp_path):
    build_index(DOCUMENTS, tmp_path / "index", store_raw=False, store_positions=False)
    assert raw_of(tmp_path / "index", "d1") is None
    assert not any(p.suffix == ".pos" for p in (tmp_path / "index").iterdir())


@pytest.mark.java
def test_values_json_has_no_word_for(tmp_path):
    import datetime

    import numpy as np

    fields = {"when": datetime.date(2024, 1, 1), "n": np.int64(7), "v": np.arange(2), "s": {"b", "a"}}
    build_index([Document("1", "x", fields=fields)], tmp_path / "index")
    assert raw_of(tmp_path / "index", "1") == {
        "id": "1",
        "contents": "x",
        "when": "2024-01-01",
        "n": 7,
        "v": [0, 1],
        "s": ["a", "b"],
    }


@pytest.mark.java
def test_a_value_that_is_not_json_is_a_bad_document(tmp_path):
    with pytest.raises(InputError, match="document '1' cannot be stored as JSON"):
        build_index([Document("1", "x", fields={"f": float("nan")})], tmp_path / "index")
    assert tree(tmp_path) == []


@pytest.mark.java
def test_what_anserini_prints_becomes_the_error(tmp_path, monkeypatch, capfd):
    """Anserini only logs a document it cannot read and goes on; here that is an error."""
    monkeypatch.setattr(indexing._Shards, "write", _spoiled(indexing._Shards.write))
    with pytest.raises(JavaError) as caught:
        build_index(DOCUMENTS, tmp_path / "index")
    assert "of 3 documents, then failed: " in str(caught.value)
    assert tree(tmp_path) == []
    assert as_shown(capfd.readouterr().err) == ""  # no Java stack trace


def _spoiled(write):
    return lambda self, line: write(self, line[:-1] if '"d2"' in line else line)


@pytest.mark.java
def test_interrupt_while_lucene_works(tmp_path, monkeypatch):
    """Ctrl-C stops Lucene's threads and leaves nothing; the next build works."""
    chance = random.Random(1)
    texts = (" ".join(f"w{chance.randrange(50000)}" for _ in range(300)) for _ in range(4000))
    documents = [Document(f"d{i}", text) for i, text in enumerate(texts)]

    class Interrupted:
        def __init__(self, **options):
            self.n = 0

        def __enter__(self):
            return self

        def __exit__(self, *error):
            if error == (None, None, None):  # Lucene was done before anyone looked, on a busy machine
                raise KeyboardInterrupt

        def update(self, n):
            raise KeyboardInterrupt

    monkeypatch.setattr(indexing, "bar", Interrupted)
    with pytest.raises(KeyboardInterrupt):
        build_index(documents, tmp_path / "index")
    assert tree(tmp_path) == []
    monkeypatch.undo()
    assert build_index(DOCUMENTS, tmp_path / "index").documents == 3


def anserinis_own(collection: str, corpus: Path, index: Path) -> None:
    """An index of two documents by Anserini's own reader of a format."""
    arguments = (
        f"-collection {collection} -generator DefaultLuceneDocumentGenerator -threads 1 -optimize -quiet".split()
    )
    indexing._run_anserini([*arguments, "-input", str(corpus), "-index", str(index)], 2)


@pytest.mark.java
def test_trec_documents_have_the_terms_anserini_gives_them(tmp_path):
    """Oracle: Anserini's own TrecCollection on the same file."""
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    (corpus / "a.trec").write_text(
        "<DOC>\n<DOCNO> A-1 </DOCNO>\n<DATE>910514\n</DATE>\n"
        "<HEADLINE>\nTea &amp; prices&mdash;rising\n</HEADLINE>\n"
        "<BYLINE>\nBy NOBODY\n</BYLINE>\n<TEXT>\nHalf<b>hearted</b> 3 < 4 <3> text.<BR>More\n"
        "<P>\n<F P=105> one</F> <F P=106>two</F></P>\n<!-- PJG comment -->last\n</TEXT>\n</DOC>\n"
        "<DOC>\n<DOCNO>A-2</DOCNO>\n<DOCID>17</DOCID>\n<DATE>\n<P>\nJanuary 1, 1989\n</P>\n</DATE>\n"
        "<TEXT>\n<P>\nSecond caf&eacute;\n</P>\n</TEXT>\n<GRAPHIC>\nPhoto\n</GRAPHIC>\n</DOC>\n"
    )
    ours = build_index(Reader().read([corpus]), tmp_path / "ours")
    anserinis_own("TrecCollection", corpus, tmp_path / "theirs")
    assert terms_of(tmp_path / "ours") == terms_of(tmp_path / "theirs")
    assert (ours.tokens, ours.terms) == indexing._statistics(tmp_path / "theirs", 2)


@pytest.mark.java
def test_html_documents_have_the_terms_anserini_gives_them(tmp_path):
    """Oracle: Anserini's own HtmlCollection on the same folder."""
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    (corpus / "one.html").write_text("<title>T</title><p>One<b>word</b><p>caf&eacute; 😀<script>no</script>")
    (corpus / "two.html").write_text("plain, with\nline breaks < and > signs")
    ours = build_index(Reader().read([corpus]), tmp_path / "ours")
    anserinis_own("HtmlCollection", corpus, tmp_path / "theirs")
    assert terms_of(tmp_path / "ours") == terms_of(tmp_path / "theirs")
    assert terms_of(tmp_path / "ours", "id") == terms_of(tmp_path / "theirs", "id") == ["one", "two"]
    assert (ours.tokens, ours.terms) == indexing._statistics(tmp_path / "theirs", 2)
