"""The pieces below: sums, manifests, what a build may replace; the command line."""

from __future__ import annotations

import json
import pickle
import zlib
from pathlib import Path

import numpy as np
import pytest
from sharding import DAY, Here, InMemory, Sharding, engine_of, ranker

from benchmarks.sharded import write_collection
from sdretrieval.cli.main import main
from sdretrieval.core.errors import IndexProblem, ParameterError, SdretrievalError
from sdretrieval.core.timeline import coarse_resolution, timeline
from sdretrieval.estimate.time.drift import analyse
from sdretrieval.index.past_statistics import PastStatistics
from sdretrieval.plugins.spark import session
from sdretrieval.plugins.spark.building import Target, check_apart, shard_of
from sdretrieval.plugins.spark.drifting import drift
from sdretrieval.plugins.spark.shard_ranking import ShardOptions
from sdretrieval.plugins.spark.shards import checked_manifest, open_collection, open_shard
from sdretrieval.plugins.spark.storage import Entry, Mounted
from sdretrieval.plugins.spark.totals import Along, Increments, Moments, Totals

# -- sums --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 4])
def test_totals_are_the_one_index_s(n, tmp_path):
    sharding = Sharding(5)
    found, whole = InMemory(sharding.shards(n)).totals, InMemory([sharding.whole]).totals
    found.save(tmp_path / "kept")
    for totals in (found, Totals.load(tmp_path / "kept")):
        assert (totals.n_docs, totals.n_tokens, totals.n_dated) == (whole.n_docs, whole.n_tokens, whole.n_dated)
        assert list(totals.vocabulary) == list(whole.vocabulary)
        assert np.array_equal(totals.df, whole.df) and np.array_equal(totals.cf, whole.cf)
        assert totals.statistics.entropy_sum == sharding.whole.statistics.entropy_sum


def test_damaged_totals_are_named(tmp_path):
    InMemory([Sharding(5).whole]).totals.save(tmp_path / "kept")
    (tmp_path / "kept" / "cf.bin").write_bytes(b"123")
    with pytest.raises(IndexProblem, match=r"cf\.bin has 3 bytes instead of"):
        Totals.load(tmp_path / "kept")
    InMemory([Sharding(5).whole]).totals.save(tmp_path / "kept")  # a second save mends them
    assert Totals.load(tmp_path / "kept").n_docs == 400


@pytest.mark.parametrize("inclusive", [False, True])
def test_past_statistics_are_the_one_index_s(inclusive):
    sharding = Sharding(6, distinct_times=50)
    collection, past = InMemory(sharding.shards(4)), PastStatistics(sharding.whole, inclusive=inclusive)
    times = sorted({0, 10 * DAY, int(sharding.times[3]), 60 * DAY, 200 * DAY})
    found = Here(collection).reduce(Increments.of, (times, inclusive)).statistics(collection.vocabulary)
    for time, statistics in zip(times, found, strict=True):
        wanted = past.at(time)
        assert (statistics.n_docs, statistics.n_tokens) == (wanted.n_docs, wanted.n_tokens)
        assert np.array_equal(statistics.df, wanted.df) and np.array_equal(statistics.cf, wanted.cf)


@pytest.mark.parametrize("distinct", [None, 20])
def test_counts_along_time_are_the_one_index_s(distinct):
    sharding = Sharding(7, distinct_times=distinct)
    runner, whole = Here(InMemory(sharding.shards(3))), sharding.whole
    moments = runner.reduce(Moments.of, 256)
    assert [moments.resolution(m) for m in (256, 32)] == [coarse_resolution(whole.times, m) for m in (256, 32)]
    found = runner.reduce(Along.of, moments.resolution(256))
    line = timeline(whole.by_doc, whole.times, resolution=moments.resolution(256))
    assert np.array_equal(found.times, line.times)
    assert (found.counts != line.counts).nnz == 0


@pytest.mark.parametrize("n", [1, 3, 8])
def test_drift_of_words_is_the_one_index_s(n):
    """Frequencies, bands and volumes, words in any order, one of them in few shards."""
    sharding = Sharding(n)
    whole, collection = sharding.whole, InMemory(sharding.shards(n))
    words, how = [sharding.words[i] for i in (200, 0, 31)], {"bandwidth": 9.0 * DAY, "resolution": 2.0 * DAY}
    wanted = analyse(whole.by_doc, whole.times, words=[whole.term_id(word) for word in words], **how)
    found = drift(Here(collection), [collection.term_id(word) for word in words], **how)
    assert np.array_equal(found.grid, wanted.grid)
    assert np.array_equal(found.documents, wanted.documents) and np.array_equal(found.words, wanted.words)
    for mine, theirs in zip(found.curves, wanted.curves, strict=True):
        for name in ("frequency", "lower", "upper", "design_effect"):
            assert getattr(mine, name) == pytest.approx(getattr(theirs, name), rel=1e-12, nan_ok=True)


@pytest.mark.parametrize("time", [None, "density"])
def test_what_shards_send_does_not_grow_with_the_collection(time, monkeypatch):
    """Documents five times as many, and no more bytes: whole shards never travel."""
    model = ranker("sd3", time)
    if time is not None:
        model = model.with_(time_docs=5)  # a hundred documents as evidence: every shard has them
    sizes: list[int] = []

    def weighed(method):
        def asked(self, *request, **more):
            answer = method(self, *request, **more)
            sizes[-1] += len(pickle.dumps(answer))
            return answer

        return asked

    for name in ("ask", "reduce"):
        monkeypatch.setattr(Here, name, weighed(getattr(Here, name)))
    for n_docs in (1000, 5000):
        sizes.append(0)
        sharding = Sharding(1, n_docs=n_docs)
        engine = engine_of(sharding.shards(3))
        engine.rank(model, sharding.queries(engine.collection), ShardOptions(hits=20))
    assert sizes[1] < 1.2 * sizes[0] and sizes[1] < 400_000


# -- on disk -----------------------------------------------------------------------------------------------------


def test_a_folder_that_is_no_collection(tmp_path):
    with pytest.raises(IndexProblem, match="no sharded collection") as caught:
        open_collection(tmp_path)
    assert "--resume" in str(caught.value)
    (tmp_path / "segments_1").touch()
    with pytest.raises(IndexProblem, match="is one index") as caught:
        open_collection(tmp_path)
    assert "sdretrieval search" in str(caught.value)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        *((text, "cannot be read") for text in ("", "[]", "{}", '{"format": 1, "shards": []}')),
        ('{"format": 1, "shards": [{}]}', "cannot be read"),
        ('{"format": 9, "shards": []}', "format 9"),
    ],
)
def test_a_damaged_manifest_or_one_from_the_future(tmp_path, content, told):
    (tmp_path / "collection.json").write_text(content)
    with pytest.raises(IndexProblem, match=rf"collection\.json .*{told}"):
        open_collection(tmp_path)


@pytest.mark.parametrize("name", ["../../etc", "/etc", "", ".hidden", "a/b", "a\\b", 7])
def test_names_in_a_manifest_stay_below_it(name):
    for shard in ({"name": name, "snapshot": "f", "documents": 1}, {"name": "s", "snapshot": name, "documents": 1}):
        with pytest.raises(IndexProblem, match=r"collection\.json cannot be read"):
            checked_manifest(json.dumps({"format": 1, "shards": [shard]}).encode(), "collection.json")


def test_an_address_is_no_folder():
    with pytest.raises(ParameterError, match="only Spark can reach it"):
        open_collection("hdfs://head/collections/news")


def test_a_lost_or_shortened_file_of_a_shard_is_named(tmp_path):
    collection = write_collection(tmp_path / "c", Sharding(3).shards(3))
    next((tmp_path / "c").glob("shard-00001.snapshot/*/doc_words.bin")).unlink()
    cut = next((tmp_path / "c").glob("shard-00002.snapshot/*/term_docs.bin"))
    cut.write_bytes(cut.read_bytes()[:-4])
    for number, told in (
        (1, r"shard-00001 \(2 of 3\) of .*doc_words.bin is missing"),
        (2, r"shard-00002 \(3 of 3\).*term_docs.bin has \d+ bytes instead of"),
    ):
        with pytest.raises(IndexProblem, match=told) as caught:
            collection.snapshot(number)
        assert "built anew meanwhile" in str(caught.value) and "--resume" in str(caught.value)


def test_a_worker_keeps_shards_open_and_notices_where_they_are_not_mounted(tmp_path):
    collection = write_collection(tmp_path / "c", Sharding(1).shards(2))
    InMemory([collection.snapshot(n) for n in range(2)]).totals.save(collection.totals_folder)
    sent = pickle.loads(pickle.dumps(collection.for_workers()))
    assert open_shard(sent, 1) is open_shard(sent, 1)
    (tmp_path / "c").rename(tmp_path / "unmounted")
    with pytest.raises(SdretrievalError, match="on a worker: ") as caught:
        open_shard(sent, 0)
    assert not isinstance(caught.value, IndexProblem) and "mounted at the same place" in str(caught.value)


def test_shards_are_told_by_docid_alone():
    """crc32 of the docid's bytes: the same on every machine, whatever Python's own hash of a string is there."""
    assert [shard_of(docid, 7) for docid in ("d1", "dé", "")] == [zlib.crc32(d.encode()) % 7 for d in ("d1", "dé", "")]
    spread = np.bincount([shard_of(f"doc{i}", 8) for i in range(8000)], minlength=8)
    assert spread.min() > 800


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
    "name", ["shard-000.jsonl", "shard-00000.jsonl", "shard-00000", "shard-notes/", "collection.json/", "statistics"]
)
@pytest.mark.parametrize("flags", [{"overwrite": True, "resume": False}, {"overwrite": False, "resume": True}])
def test_what_is_no_collection_is_never_replaced(tmp_path, name, flags):
    """Pieces of a corpus are often called shards, too."""
    (tmp_path / "shard-00001").mkdir()
    (tmp_path / name).mkdir() if name.endswith("/") else (tmp_path / name).write_text("of the user's")
    storage = Listed(tmp_path)
    for target in (Target("x://h/news", storage), Target(str(tmp_path), Mounted())):
        with pytest.raises(IndexProblem, match="is not a sharded collection"):
            target.check(**flags)
        target.clear(set())  # even if it came to that
    assert (tmp_path / name).exists() and storage.deleted == ["shard-00001"]


def test_what_a_build_clears_away(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "precious").touch()
    place = tmp_path / "news"
    folders = [
        *(f"shard-0000{n}{end}" for n in (0, 1) for end in ("", ".snapshot")),
        *("shard-00000.attempt-7-ab", ".shard-00000.attempt-7-ab.7.x_y.building", "statistics"),
    ]
    files = ["collection.json", "collection.json.12ab.tmp", ".collection.json.crc", ".collection.json.7.tmp"]
    for name in folders:
        (place / name).mkdir(parents=True)
    for name in files:
        (place / name).touch()
    listed, mounted = Target("x://h/news", Listed(place)), Target(str(place), Mounted())
    for target in (listed, mounted):
        target.check(overwrite=True, resume=False)
    listed.clear({"shard-00000"})
    kept = {"shard-00000", "shard-00000.snapshot", "collection.json"}
    assert set(listed.storage.deleted) == {*folders, *files} - kept
    (place / "shard-00002").symlink_to(tmp_path / "elsewhere")
    (place / "shard-00003").symlink_to(tmp_path / "nowhere")
    mounted.check(overwrite=True, resume=False)
    mounted.begin({0})
    assert {path.name for path in place.iterdir()} == kept - {"collection.json"}
    assert (tmp_path / "elsewhere" / "precious").exists()


def test_a_collection_is_not_built_over_its_input(tmp_path):
    docs = tmp_path / "data" / "docs"
    docs.mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "data")
    for target, source in (
        (docs, docs),
        (tmp_path / "data", docs),
        (tmp_path / "link", docs),
        (docs, tmp_path / "link" / "docs"),
        ("x://h/data", "x://h/data"),
        ("x://h/data", "x://h/data/docs/a.jsonl"),
    ):
        with pytest.raises(ParameterError, match="over its own input"):
            check_apart(target, [Path("other"), "x://h/other", source])
    for target, source in (
        (docs / "news", docs),
        (tmp_path / "data" / "doc", docs),
        ("x://h/data/news", "x://h/data"),
        ("x://h/dat", "x://h/data"),
        (Path("x"), "x://h/data"),
        ("x://h/a", docs),
    ):
        check_apart(target, [source])


# -- the command line --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--index", "i", "--topics", "https://me:secret@h/x"), "--topics https://…: only --index"),
        (("--index", "s3a://AKIA:sec/ret@bucket/x", "--topics", "t"), "s3a://…: an address with a password"),
        (("--index", "i", "--topics", "hdfs://h/x"), "--topics hdfs://h/x: only --index"),
        (("--index", "hdfs://h/i", "--topics", "topics.tsv", "--tag", "http://x"), "Spark was started"),
    ],
)
def test_places_are_looked_at_before_spark_starts(capsys, tmp_path, monkeypatch, words, told):
    def never(*given, **settings):
        raise SdretrievalError("Spark was started")

    monkeypatch.chdir(tmp_path)
    Path("topics.tsv").write_text("1\toil\n")
    monkeypatch.setattr(session, "spark_context", never)
    assert main(["spark", "search", *words, "--output", str(tmp_path / "run")]) == 2
    err = capsys.readouterr().err
    assert told in err and "sec" not in err and "me:" not in err
