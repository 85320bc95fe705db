"""The same on real Spark: local[*] and local-cluster, whose workers are processes of their own; and what clusters do.

All in one file, so that one worker of pytest-xdist runs one Spark. The collections are written as snapshots alone,
without Lucene: what workers rank from.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from needed import spark_for
from sharding import MODELS, TIMES, Sharding, assert_same, one_index, ranker, write_corpus
from shown import as_shown

from sdretrieval.cli.main import main
from sdretrieval.errors import IndexProblem, SdretrievalError
from sdretrieval.integrations.spark import at_once, requests, search
from sdretrieval.integrations.spark.ranking import Judged, ShardedEngine
from sdretrieval.integrations.spark.runners import OnSpark
from sdretrieval.integrations.spark.shards import open_collection
from sdretrieval.integrations.spark.writing import write_collection

pyspark = spark_for(sys.modules[__name__])
pytestmark = pytest.mark.java
CLUSTER = "local-cluster[2,1,1024]"


@pytest.fixture(scope="module")
def collections(tmp_path_factory) -> dict[int, tuple[Sharding, Path]]:
    made = {}
    for n in (1, 3, 8):
        sharding, folder = Sharding(n), tmp_path_factory.mktemp("collections") / f"of-{n}"
        write_collection(folder, sharding.shards(n))
        made[n] = sharding, folder
    return made


@pytest.fixture(scope="module", params=["local[*]", CLUSTER])
def spark(request, tmp_path_factory) -> Iterator:
    from sdretrieval.integrations.spark.session import spark_context

    settings = {"spark.local.dir": str(tmp_path_factory.mktemp("spark"))}
    with spark_context(request.param, settings=settings) as context:
        assert context.master == request.param
        yield context
    work = Path(pyspark.__file__).parent / "work"  # where local-cluster keeps the logs of its executors
    shutil.rmtree(work, ignore_errors=True)


def engine_of(folder: Path, context) -> ShardedEngine:
    collection = open_collection(folder)
    runner = OnSpark(collection, context)
    search.prepare(collection, runner)
    return ShardedEngine(collection, runner)


def found_by(engine: ShardedEngine, model, sharding: Sharding, **options) -> dict:
    results = engine.rank(model, sharding.queries(engine.collection), hits=50, **options)
    return {result.query.qid: result.ranking for result in results}


@pytest.mark.parametrize("n", [1, 3, 8])
def test_every_model_and_time_setting(spark, collections, n):
    """The acceptance test: same documents, same order, scores to 1e-9.

    Settings of time on one number of shards for each kind of Spark; test_sharded_exactness.py has them all on all.
    """
    sharding, folder = collections[n]
    engine = engine_of(folder, spark)
    cases = [(name, None) for name, (model, _) in MODELS.items() if name == model]
    if n == (8 if spark.master == CLUSTER else 3):
        cases += [("sd" if i % 2 else "ql", time) for i, time in enumerate(TIMES)]
    with ThreadPoolExecutor(4) as pool:  # Spark runs jobs side by side
        found = list(pool.map(lambda case: found_by(engine, ranker(*case), sharding), cases))
    for case, rankings in zip(cases, found, strict=True):
        assert_same(rankings, one_index(sharding.whole, ranker(*case), sharding.queries(sharding.whole), hits=50), case)


def test_judged_documents_and_candidates(spark, collections):
    sharding, folder = collections[8]
    engine = engine_of(folder, spark)
    docids, whole = sorted(sharding.docids), sharding.whole
    judged = {"0": Judged(docids[5:9], docids[100:104]), "4": Judged(docids[50:51])}
    candidates = {str(i): docids[40 * i : 40 * i + 60] for i in range(5)}
    from sdretrieval.ranking.engine import Judgments

    numbers = whole.docids.find_many
    wanted = one_index(
        whole, ranker("sd"), sharding.queries(whole), hits=50,
        judged={q: Judgments(numbers(j.relevant), numbers(j.nonrelevant)) for q, j in judged.items()},
        candidates={q: numbers(given) for q, given in candidates.items()},
    )  # fmt: skip
    assert_same(found_by(engine, ranker("sd"), sharding, judged=judged, candidates=candidates), wanted)


def test_workers_start_no_java(spark, collections):
    """pyjnius is what would start it."""
    engine = engine_of(collections[3][1], spark)

    def loaded(shard, shared):
        import sys

        requests.best(shard, ([], []))
        return [name for name in ("jnius", "pyserini") if name in sys.modules]

    assert [answer for _, answer in engine.runner.ask(loaded, None)] == [[], [], []]


def test_statistics_are_kept(spark, collections):
    """Summed once; and those of the past once for the same times."""
    sharding, folder = collections[3]
    engine = engine_of(folder, spark)
    asked = watched(engine)
    found_by(engine, ranker("bm25", "as of"), sharding)
    asked.clear()
    again = engine_of(folder, spark)
    asked = watched(again)
    found_by(again, ranker("bm25", "as of"), sharding)
    assert asked == ["best"]


def watched(engine: ShardedEngine) -> list[str]:
    asked: list[str] = []
    ask = engine.runner.ask

    def noting(request, *more):
        asked.append(getattr(request, "__name__", "?"))
        return ask(request, *more)

    engine.runner.ask = noting  # type: ignore[method-assign]
    return asked


# -- what clusters do --------------------------------------------------------------------------------------------


def once(flag: Path) -> bool:
    """True for the first of all processes that asks."""
    try:
        os.close(os.open(flag, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True


def disturbed(engine: ShardedEngine, disturb, flag: Path) -> None:
    """Let ``disturb()`` happen once, in the task of some shard's best documents."""
    ask, claim = engine.runner.ask, once

    def asking(request, *more):
        def unlucky(shard, *rest):
            if request.__name__ == "best" and shard.number == 1 and claim(flag):
                disturb()
            return request(shard, *rest)

        return ask(unlucky, *more)

    engine.runner.ask = asking  # type: ignore[method-assign]


def check_disturbed(spark, collections, tmp_path, disturb) -> None:
    sharding, folder = collections[3]
    engine = engine_of(folder, spark)
    disturbed(engine, disturb, tmp_path / "happened")
    found = found_by(engine, ranker("sd"), sharding)
    assert (tmp_path / "happened").exists()
    assert_same(found, one_index(sharding.whole, ranker("sd"), sharding.queries(sharding.whole), hits=50))


def only_on_a_cluster(spark) -> None:
    if spark.master != CLUSTER:
        pytest.skip("run on local-cluster alone: there are executors to lose, and building takes long")


def test_an_executor_is_killed(spark, collections, tmp_path):
    """The whole process, with the Python workers below it, while it ranks."""
    only_on_a_cluster(spark)
    before = executors(spark)

    def kill():
        import os
        import signal
        import time

        with open(f"/proc/{os.getppid()}/stat") as stream:  # the worker's parent is the daemon, whose is the executor
            executor = int(stream.read().rpartition(")")[2].split()[1])
        os.kill(executor, signal.SIGKILL)
        time.sleep(30)

    check_disturbed(spark, collections, tmp_path, kill)
    assert before - executors(spark), "one of them is gone"


def executors(spark) -> set[int]:
    """Process ids of the executors that answer."""

    def executor(_):
        with open(f"/proc/{os.getppid()}/stat") as stream:
            return int(stream.read().rpartition(")")[2].split()[1])

    return set(spark.parallelize(range(8), 8).map(executor).collect())


def test_a_task_fails_once(spark, collections, tmp_path):
    """It is run again, and nothing is there twice: Ranking itself refuses a docid that is."""
    only_on_a_cluster(spark)

    def fail():
        raise OSError("the network was away")

    check_disturbed(spark, collections, tmp_path, fail)


@pytest.mark.parametrize("size", [10, 3_000_000])
def test_what_all_tasks_share_goes_along_or_is_broadcast(spark, collections, size):
    runner, shared = engine_of(collections[3][1], spark).runner, b"x" * size
    for own in (None, {2: "two", 0: "none"}):
        found = runner.ask(lambda shard, given, *more: (len(given), *more), shared, own)
        wanted = dict.fromkeys(range(3), ()) if own is None else {n: (mine,) for n, mine in own.items()}
        assert dict(found) == {n: (size, *mine) for n, mine in wanted.items()}


def test_on_one_machine_a_task_takes_several_shards(spark, collections):
    """On a cluster each has its own, which may be tried again elsewhere."""

    def partition(shard, shared):
        from pyspark import TaskContext

        return TaskContext.get().partitionId()

    found = engine_of(collections[8][1], spark).runner.ask(partition, None)
    assert [number for number, _ in found] == list(range(8))
    tasks = min(8, at_once(spark.master) or 8)
    assert sorted({task for _, task in found}) == list(range(tasks))


def test_what_is_under_way_is_cancelled(spark, collections, tmp_path):
    """As by Ctrl-C: nobody waits for tasks that take long, and nothing more is asked."""
    runner = engine_of(collections[3][1], spark).runner

    def slow(shard, note):
        Path(note).touch()
        time.sleep(600)

    with ThreadPoolExecutor(1) as pool:
        waiting, end = pool.submit(runner.ask, slow, str(tmp_path / "begun")), time.monotonic() + 300
        while not (tmp_path / "begun").exists():
            assert time.monotonic() < end
            time.sleep(0.02)
        runner.cancel()
        with pytest.raises(Exception, match="cancelled"):
            waiting.result(300)
    with pytest.raises(SdretrievalError, match="cancelled"):
        runner.ask(requests.locate, None)
    assert len(engine_of(collections[3][1], spark).runner.ask(lambda shard, _: 1, None)) == 3  # another goes on


def test_a_lost_file_is_named(spark, collections, tmp_path):
    folder = tmp_path / "broken"
    shutil.copytree(collections[3][1], folder)
    engine = engine_of(folder, spark)
    lost = next(folder.glob("shard-00001.snapshot/*/doc_terms.bin"))
    lost.unlink()
    with pytest.raises(
        IndexProblem, match=r"shard shard-00001 \(2 of 3\) of .*broken.*doc_terms.bin is missing"
    ) as caught:
        found_by(engine, ranker("sd"), collections[3][0])
    assert "--resume" in str(caught.value)


def test_a_file_cut_short_is_named(spark, collections, tmp_path):
    folder = tmp_path / "cut"
    shutil.copytree(collections[3][1], folder)
    cut = next(folder.glob("shard-00002.snapshot/*/term_docs.bin"))
    cut.write_bytes(cut.read_bytes()[:-4])
    with pytest.raises(IndexProblem, match=r"shard-00002.*term_docs.bin has \d+ bytes instead of"):
        found_by(engine_of(folder, spark), ranker("bm25"), collections[3][0])


# -- the commands ------------------------------------------------------------------------------------------------


def spark_command(*words: object) -> int:
    """`sdretrieval spark …` in this process: it finds the running Spark."""
    return main(["spark", *map(str, words)])


@pytest.fixture(scope="module")
def corpus(tmp_path_factory) -> SimpleNamespace:
    """The demo's documents in two files beside one of no known format; one index of them, and what it finds."""
    folder = tmp_path_factory.mktemp("corpus")
    lines = write_corpus(folder)
    (folder / "docs" / "notes.xyz").write_text("not a document")
    index, topics = folder / "one", folder / "demo" / "topics.tsv"
    times = folder / "demo" / "topics.times.tsv"
    assert main(["index", "--input", str(folder / "docs"), "--index", str(index), "--date-field", "date"]) == 0
    return SimpleNamespace(folder=folder, docs=folder / "docs", index=index, topics=topics, times=times, lines=lines)


@pytest.fixture(scope="module")
def built(spark, corpus) -> Path:
    only_on_a_cluster(spark)
    folder = corpus.folder / "sharded"
    words = ("--input", corpus.docs, "--index", folder, "--shards", 3, "--date-field", "date")
    assert spark_command("index", *words) == 0
    return folder


def test_index_makes_shards_that_are_indexes(built, corpus, capsys):
    from sdretrieval.snapshot import open_snapshot

    manifest = json.loads((built / "collection.json").read_text())
    assert manifest["documents"] == 240 and len(manifest["shards"]) == 3
    snapshots = [open_snapshot(built / shard["name"]) for shard in manifest["shards"]]
    whole = open_snapshot(corpus.index)
    assert sorted(docid for s in snapshots for docid in s.docids) == sorted(whole.docids)
    assert list(open_collection(built).totals.vocabulary) == list(whole.vocabulary)
    assert not list(built.glob("*.attempt-*")) and not list(built.glob(".*"))


@pytest.mark.parametrize(
    "flags",
    [
        ("--model", "sd3"),
        ("--model", "sd", "--prune", "30"),
        ("--time-prior", "recency", "--as-of", "query-time"),
        ("--model", "lucene-qld", "--time-prior", "density"),
    ],
)
def test_search_writes_the_run_of_one_index(built, corpus, tmp_path, flags):
    shared = ("--topics", corpus.topics, "--topic-times", corpus.times, "--hits", "50", *flags)
    one, many = tmp_path / "one.txt", tmp_path / "many.txt"
    assert main(["search", "--index", str(corpus.index), "--output", str(one), *map(str, shared)]) == 0
    assert spark_command("search", "--index", built, "--output", many, "--batch", "5", *shared) == 0
    assert many.read_bytes() == one.read_bytes()
    assert not Path(f"{many}.parts").exists()
    note = json.loads(Path(f"{many}.manifest.json").read_text())
    assert note["verb"] == "spark search" and note["index"]["documents"] == 240


PROGRAM = """
import os, sys, time
from pathlib import Path
from sdretrieval.cli.main import main
from sdretrieval.integrations.spark import requests
from sdretrieval.integrations.spark.runners import OnSpark

kind, begun = sys.argv.pop(1), Path(os.environ.get("BEGUN", ""))

def ask(self, *given):
    begun.touch()
    while not self._is_cancelled:
        time.sleep(0.05)
    raise RuntimeError("cancelled")

def summed(*given):
    begun.touch()
    time.sleep(600)

if kind == "ranking":
    OnSpark.ask = ask
if kind == "summing":
    requests.totals = summed
sys.exit(main())
"""


def as_a_program(kind: str, built: Path, corpus, output: Path) -> subprocess.Popen:
    words = ("spark", "search", "--master", "local[2]", "--index", built, "--topics", corpus.topics, "--output", output)
    command = [sys.executable, "-c", PROGRAM, kind, *map(str, words)]
    # Not as text, in which the line ends of a progress bar would be others.
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def test_a_program_of_its_own_writes_the_same_says_no_more_and_leaves_nothing(built, corpus, tmp_path, monkeypatch):
    """It forks its workers from itself, and ends Spark's JVM before its own end."""
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    one, many = tmp_path / "one.txt", tmp_path / "many.txt"
    assert main(["search", "--index", str(corpus.index), "--output", str(one), "--topics", str(corpus.topics)]) == 0
    process = as_a_program("whole", built, corpus, many)
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    told = rf"{re.escape(str(many))}: \d+ topics, \d+ documents, [\d.]+ s\n"
    assert out == b"" and re.fullmatch(told, as_shown(err.decode()))
    assert many.read_bytes() == one.read_bytes()
    assert {path.name for path in tmp_path.iterdir()} == {
        "tmp", *(f"{name}{end}" for name in ("one.txt", "many.txt") for end in ("", ".manifest.json"))
    }  # fmt: skip
    assert not list((tmp_path / "tmp").glob("sdretrieval-[!s]*"))


@pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
@pytest.mark.parametrize("kind", ["ranking", "summing"])
def test_a_program_that_is_terminated_cleans_up(
    built, corpus, tmp_path, tmp_path_factory, monkeypatch, number, code, kind
):
    """A batch system's limit comes as SIGTERM: while the run is being written, or while Spark is waited for."""
    folder = tmp_path_factory.mktemp("without sums")
    collection, begun = folder / "news", folder / "begun"
    monkeypatch.setenv("BEGUN", str(begun))
    shutil.copytree(built, collection, ignore=shutil.ignore_patterns("statistics" if kind == "summing" else ""))
    process = as_a_program(kind, collection, corpus, tmp_path / "run.txt")
    end = time.monotonic() + 300
    while not begun.exists():
        assert process.poll() is None and time.monotonic() < end, process.communicate()
        time.sleep(0.05)
    assert len(list(tmp_path.glob(".run.txt.*.tmp"))) == (kind == "ranking")
    children = {int(pid) for pid in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()}
    process.send_signal(number)
    _, err = process.communicate(timeout=300)
    assert process.returncode == code, err
    assert b"nothing half-written was left behind" in err and b"Traceback" not in err
    assert list(tmp_path.iterdir()) == []
    while any(Path(f"/proc/{pid}").exists() for pid in children):
        assert time.monotonic() < end, children
        time.sleep(0.05)


def test_rerank_writes_the_run_of_one_index(built, corpus, tmp_path):
    first, one, many = (tmp_path / name for name in ("first.txt", "one.txt", "many.txt"))
    topics = ("--topics", str(corpus.topics))
    assert main(["search", "--index", str(corpus.index), "--model", "bm25", "--output", str(first), *topics]) == 0
    assert main(["rerank", "--index", str(corpus.index), "--run", str(first), "--output", str(one), *topics]) == 0
    assert spark_command("rerank", "--index", built, "--run", first, "--output", many, *topics) == 0
    assert many.read_bytes() == one.read_bytes()


def test_classify_labels_every_document(built, corpus, tmp_path):
    from sdretrieval.classify.saved_models import save_classifier
    from sdretrieval.classify.text_classifier import train
    from sdretrieval.labelled import LabelledCorpus
    from sdretrieval.snapshot import open_snapshot

    whole = open_snapshot(corpus.index)
    halves = tuple(("early",) if t < np.median(whole.times) else ("late",) for t in whole.times)
    known = LabelledCorpus(
        list(whole.docids), whole.by_doc.astype(float), whole.vocabulary, halves, np.asarray(whole.times),
        analyzer=whole.analyzer,
    )  # fmt: skip
    classifier = train(known, "sd")
    save_classifier(classifier, tmp_path / "halves.model")
    output = tmp_path / "labels.tsv"
    assert spark_command("classify", "--index", built, "--load", tmp_path / "halves.model", "--output", output) == 0
    rows = dict(line.split("\t")[:2] for line in output.read_text().splitlines())
    wanted = dict(zip(known.docids, (labels[0] for labels in classifier.predict(known)), strict=True))
    assert rows == wanted


def test_drift_writes_the_curves_of_one_index(built, corpus, tmp_path):
    from sdretrieval.snapshot import open_snapshot
    from sdretrieval.temporal.drift import analyse
    from sdretrieval.temporal.timeline import DAY, WEEK

    whole, output = open_snapshot(corpus.index), tmp_path / "drift.csv"
    frequent = (whole.term(i) for i in np.argsort(-whole.cf).tolist())
    word = next(term for term in frequent if whole.analyze(term) == [term])
    words = ("--words", word, "--bandwidth", "10d", "--resolution", "week")
    assert spark_command("drift", "--index", built, "--output", output, *words) == 0
    wanted = analyse(
        whole.by_doc, whole.times, words=[whole.term_id(word)], bandwidth=10.0 * DAY, resolution=float(WEEK)
    )
    header, *rows = [line.split(",") for line in output.read_text().splitlines()]
    assert header == ["time", "documents", "words", "word", "frequency", "lower", "upper"]
    assert [int(row[1]) for row in rows] == wanted.documents.tolist()
    curve = [float(row[4]) if row[4] else np.nan for row in rows]
    assert curve == pytest.approx(wanted.curves[0].frequency.tolist(), rel=1e-5, nan_ok=True)


def test_a_build_that_was_stopped_goes_on(built, corpus, tmp_path, capsys):
    folder = tmp_path / "stopped"
    shutil.copytree(built, folder)
    (folder / "collection.json").unlink()
    shutil.rmtree(folder / "shard-00001")
    left = (folder / "shard-00000" / "sdretrieval.json").stat().st_mtime_ns
    words = ("--input", corpus.docs, "--index", folder, "--shards", 3, "--date-field", "date")
    assert spark_command("index", *words) == 2
    assert "holds a build that was stopped" in capsys.readouterr().err
    assert spark_command("index", *words, "--resume") == 0
    assert "2 shards were there already" in capsys.readouterr().err
    assert (folder / "shard-00000" / "sdretrieval.json").stat().st_mtime_ns == left
    assert open_collection(folder).manifest["documents"] == 240


def test_an_existing_collection_is_not_overwritten_unasked(built, corpus, capsys):
    words = ("--input", corpus.docs, "--index", built, "--shards", 3)
    assert spark_command("index", *words) == 2
    assert "exists" in capsys.readouterr().err
    assert spark_command("index", *words[:3], corpus.docs, "--shards", 3, "--overwrite") == 2
    assert "over its own input" in capsys.readouterr().err


def test_a_docid_in_two_files_is_found(spark, corpus, tmp_path, capsys):
    only_on_a_cluster(spark)
    for name in ("a.jsonl", "b.jsonl"):
        (tmp_path / name).write_text("".join(corpus.lines[:5]))
    words = ("--input", tmp_path / "a.jsonl", tmp_path / "b.jsonl", "--index", tmp_path / "twice", "--shards", 2)
    assert spark_command("index", *words) == 2
    told = capsys.readouterr().err
    assert "b.jsonl:" in told and "was already used at" in told and "a.jsonl:" in told
    assert not (tmp_path / "twice" / "collection.json").exists()
    assert spark_command("index", *words, "--skip-bad", "--overwrite") == 0
    told = capsys.readouterr()
    assert "skipped 5 bad documents" in told.err and "documents    5" in told.out


def test_flags_that_do_not_go_together(spark, collections, corpus, tmp_path, capsys):
    only_on_a_cluster(spark)
    shared = ("--index", collections[3][1], "--topics", corpus.topics, "--output", tmp_path / "x")
    for words, told in (
        (("search", *shared, "--conf", "nonsense"), "--conf takes KEY=VALUE"),
        (("search", *shared, "--leak-check"), "--leak-check is for one index"),
        (("search", *shared, "--background", "local", "--topic-times", corpus.times), "needs a bandwidth"),
        (("index", "--dataset", "vaswani", "--index", tmp_path / "y", "--shards", 2), "--dataset is for"),
    ):
        assert spark_command(*words) == 2
        assert told in capsys.readouterr().err
