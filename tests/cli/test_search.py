"""``sdretrieval search`` as it is typed, over a real Lucene index."""

from __future__ import annotations

import gzip
import json
import os
import signal
import threading
import time
from pathlib import Path

import pytest

from sdretrieval.collection.trec import read_qrels, read_run
from sdretrieval.index.snapshot import open_snapshot
from sdretrieval.ranking.profile_files import read_profile
from sdretrieval.ranking.registry import make_ranker

FEEDBACK = ["tfidf", "rm", "rm3", "sd", "sd3"]
OWN = ["bm25", "ql", *FEEDBACK]
LUCENE = ["lucene-bm25", "lucene-qld", "lucene-qljm"]


@pytest.fixture
def search(typed, collection, tmp_path):
    """``search("--model", "ql") -> (run, what it said)``; the run is in ``tmp_path / "run.txt"``."""

    def go(*words: object, output: str = "run.txt", topics: Path = collection.topics):
        path = tmp_path / output
        outcome = typed("search", "--index", collection.index, "--topics", topics, "--output", path, *words)
        assert (outcome.code, outcome.out) == (0, ""), outcome
        return read_run(path), outcome.err

    return go


@pytest.fixture
def said_no(refused, collection, tmp_path):
    """``said_no("--hits", 0)``: refused, and no run was left."""

    def go(*words: object) -> str:
        flags = ["--index", collection.index, "--topics", collection.topics, "--output", tmp_path / "no" / "run.txt"]
        told = refused("search", *flags, *words)  # of a flag given twice the last counts
        assert not (tmp_path / "no").exists()
        return told

    return go


def manifest_of(run: Path) -> dict:
    return json.loads(Path(f"{run}.manifest.json").read_text())


# -- models ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", OWN + LUCENE)
def test_every_model_finds_the_obvious(search, collection, tmp_path, model):
    run, said = search("--model", model)
    qrels = read_qrels(collection.qrels)
    assert list(run) == list(qrels)
    assert run.tag == model
    for qid, ranking in run.items():
        assert qrels[qid][ranking.docids[0]] > 0, (qid, ranking)
    documents = sum(map(len, run.values()))
    assert said.startswith(f"{tmp_path / 'run.txt'}: 6 topics, {documents} documents, ")
    if model in FEEDBACK:  # document 3 has no word of the query, only words of its neighbours
        assert "doc03" in run["1"].docids
    else:
        assert "doc03" not in run["1"].docids


@pytest.mark.parametrize("model", LUCENE)
def test_lucene_and_the_plan_of_its_similarity_agree(search, collection, tmp_path, typed, model):
    """Ranked inside Lucene, and rescored here from the snapshot: equal up to the digits that Anserini keeps (it
    rounds scores to four decimals, and takes 1e-6 off ties)."""
    inside, _ = search("--model", model)
    flags = ["--index", collection.index, "--topics", collection.topics, "--output", tmp_path / "again.txt"]
    typed("rerank", "--run", tmp_path / "run.txt", "--model", model, *flags)
    again = read_run(tmp_path / "again.txt")
    for qid, ranking in inside.items():
        assert dict(again[qid]) == pytest.approx(dict(ranking), rel=1e-6, abs=6e-5)


def test_settings_and_profiles_reach_the_model(search, tmp_path):
    def parameters(*words: object) -> dict:
        search(*words)
        return manifest_of(tmp_path / "run.txt")["parameters"]

    assert parameters("--model", "sd") == make_ranker("sd").settings()
    assert parameters("--model", "sd", "--profile", "default") == make_ranker("sd").settings()
    paper = parameters("--model", "sd", "--profile", "paper")
    assert {name: paper[name] for name in read_profile("paper")["sd"]} == read_profile("paper")["sd"]
    assert paper == make_ranker("sd", profile="paper").settings()
    assert parameters("--model", "rm3", "--profile", "anserini")["mode"] == "anserini"
    both = parameters("--model", "sd", "--profile", "paper", "--set", "fb_docs=3", "--set", "precision=0.5")
    assert both == {**paper, "fb_docs": 3, "precision": 0.5}
    (tmp_path / "mine.json").write_text('{"sd": {"fb_docs": 4}, "ql": {"mu": 7}}')
    assert parameters("--model", "sd", "--profile", tmp_path / "mine.json")["fb_docs"] == 4


# -- how many, how fast ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", ["sd3", "lucene-bm25"])
def test_hits_cut_the_ranking(search, model):
    whole, _ = search("--model", model)
    cut, _ = search("--model", model, "--hits", 2)
    for qid, ranking in whole.items():
        assert cut[qid] == ranking.top(2)


@pytest.mark.parametrize("model", ["sd3", "lucene-bm25"])
def test_threads_do_not_change_a_byte(search, tmp_path, model):
    written = set()
    for threads in (1, 2, 5):
        search("--model", model, "--threads", threads)
        written.add((tmp_path / "run.txt").read_bytes())
    assert len(written) == 1


@pytest.mark.parametrize("model", ["sd", "rm", "lucene-bm25"])
def test_pruning_says_what_it_gave_up(search, tmp_path, model):
    whole, _ = search("--model", model, "--save-expansion", tmp_path / "q.jsonl")
    lost = []
    for line in (tmp_path / "q.jsonl").read_text().splitlines():
        sizes = sorted((abs(w) for w in json.loads(line)["terms"].values()), reverse=True)
        lost.append(100 * (1 - sum(sizes[:1]) / sum(sizes)))
    pruned, said = search("--model", model, "--prune", 1)
    assert f"pruning gave up {sum(lost) / 6:.2f} % of the weights on average, {max(lost):.2f} % at most" in said
    assert pruned["1"] != whole["1"]
    unpruned, said = search("--model", model, "--prune", 10_000)
    assert "pruning gave up 0.00 %" in said
    assert list(unpruned["1"].docids) == list(whole["1"].docids)


# -- expanded queries --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", FEEDBACK)
def test_a_saved_expansion_replays_to_the_same_run(search, tmp_path, model):
    search("--model", model, "--save-expansion", tmp_path / "q.jsonl")
    search("--model", model, "--expansion", tmp_path / "q.jsonl", output="again.txt")
    assert (tmp_path / "again.txt").read_bytes() == (tmp_path / "run.txt").read_bytes()


def test_a_topic_of_unknown_words_is_ranked_by_its_expansion(search, tmp_path):
    (tmp_path / "topics.tsv").write_text("7\tzzyzx\n")
    (tmp_path / "q.jsonl").write_text('{"qid": "7", "terms": {"comet": 1}}\n')
    run, said = search("--expansion", tmp_path / "q.jsonl", topics=tmp_path / "topics.tsv")
    assert len(run["7"]) == 2
    assert "no known word" not in said


def test_expansions_that_do_not_fit(said_no, tmp_path):
    path = tmp_path / "q.jsonl"
    path.write_text('{"qid": "1", "terms": {"comet": 1}}\n')
    assert "topic '2' has no expansion in the file" in said_no("--expansion", path)
    path.write_text('{"qid": "1", "terms": {"zzyzx": 1}}\n')
    assert f"{path}:1: " in said_no("--expansion", path)
    path.write_text("not json\n")
    assert f"{path}:1: not JSON" in said_no("--expansion", path)


# -- judged feedback ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", FEEDBACK)
def test_judged_documents_teach(search, tmp_path, model):
    """Instead of the first hit; and from docids on the command line as from a file."""
    (tmp_path / "judged.txt").write_text("1 0 doc04 1\n1 0 doc05 0\n1 0 unheard-of 1\n")
    (tmp_path / "topic.tsv").write_text("1\tharbour flood\n")
    flags = ["--model", model, "--set", "fb_docs=1", "--save-expansion", tmp_path / "q.jsonl"]
    run, said = search(*flags, "--feedback-qrels", tmp_path / "judged.txt", topics=tmp_path / "topic.tsv")
    feedback = json.loads((tmp_path / "q.jsonl").read_text())["feedback"]
    assert [(d["docid"], d["weight"]) for d in feedback] == [("doc04", 1.0)]
    assert "learn" not in said
    listed, _ = search(*flags, "--relevant", "doc04", "--nonrelevant", "doc05", topics=tmp_path / "topic.tsv")
    assert listed == run


def test_judgments_that_teach_nothing_are_told(search, collection, tmp_path):
    (tmp_path / "judged.txt").write_text("1 0 doc04 1\n2 0 doc06 0\n3 0 unheard-of 1\n")
    _, said = search("--feedback-qrels", tmp_path / "judged.txt")
    assert "no judged relevant document in the index for 5 topics (2, 3, 4, 5, 6)" in said
    plain, _ = search("--model", "bm25")
    run, said = search("--model", "bm25", "--feedback-qrels", collection.qrels)
    assert "bm25 learns from no documents" in said
    assert run == plain


def test_judged_documents_that_cannot_be(said_no, collection):
    assert "docid 'doc99' is not in index 'tiny' (30 documents)" in said_no("--relevant", "doc01", "doc99")
    assert "docid 'doc99'" in said_no("--nonrelevant", "doc99")
    assert "'doc01' is given as relevant and as not" in said_no("--relevant", "doc01", "--nonrelevant", "doc01")
    assert "not both" in said_no("--feedback-qrels", collection.qrels, "--relevant", "doc01")
    assert f"{collection.topics}:1: expected 4 columns" in said_no("--feedback-qrels", collection.topics)


# -- files -------------------------------------------------------------------------------------------------------


def test_a_compressed_run_is_the_same_run(search, tmp_path):
    search()
    search(output="run.txt.gz")
    plain = (tmp_path / "run.txt").read_bytes()
    packed = (tmp_path / "run.txt.gz").read_bytes()
    assert gzip.decompress(packed) == plain
    search(output="run.txt.gz")
    assert (tmp_path / "run.txt.gz").read_bytes() == packed


def test_the_manifest_makes_the_run_again(search, typed, collection, tmp_path):
    # What must be told: which index and which files, how the topics were read, what was judged.
    (tmp_path / "topics.jsonl").write_text('{"qid": "1", "title": "flood", "desc": "harbour cellars"}\n')
    (tmp_path / "times.tsv").write_text("1\t2024-03-01\n")
    flags = "--model sd --profile paper --set fb_docs=2 --hits 7 --tag mine --prune 20 --topic-field title+desc".split()
    flags += ["--topic-times", tmp_path / "times.tsv", "--relevant", "doc02"]
    search(*flags, topics=tmp_path / "topics.jsonl")
    run = tmp_path / "run.txt"
    told = manifest_of(run)
    snapshot = open_snapshot(collection.index)
    analyzer = {"analyzer": snapshot.analyzer.to_json()}
    assert told["verb"] == "search"
    assert told["model"] == "sd"
    assert told["parameters"] == make_ranker("sd", ["fb_docs=2"], profile="paper").settings()
    assert told["index"] == {"name": "tiny", "fingerprint": snapshot.fingerprint, "documents": 30, **analyzer}
    wanted = {"hits": 7, "prune": 20, "profile": "paper", "tag": "mine", "topic_field": "title+desc"}
    assert told["options"].items() >= {**wanted, "relevant": ["doc02"], "nonrelevant": []}.items()
    assert {name: entry["file"] for name, entry in told["inputs"].items()} == {
        "topics": str(tmp_path / "topics.jsonl"),
        "times": str(tmp_path / "times.tsv"),
    }
    before = run.read_bytes()
    assert all(line.endswith(b" mine") for line in before.splitlines())
    run.unlink()
    assert typed(*told["command"][1:]).code == 0
    assert run.read_bytes() == before
    again = manifest_of(run)
    assert {**again, "made": ""} == {**told, "made": ""}


def test_a_changed_input_shows_in_the_manifest(search, tmp_path):
    topics = tmp_path / "topics.tsv"
    digests = []
    for text in ("1\tflood\n", "1\tflood harbour\n"):
        topics.write_text(text)
        search(topics=topics)
        digests.append(manifest_of(tmp_path / "run.txt")["inputs"]["topics"]["sha256"])
    assert digests[0] != digests[1]


def test_a_pipe_gets_the_run_and_no_manifest(search, typed, collection, tmp_path):
    search()
    pipe, received = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: received.append(pipe.read_bytes()), daemon=True)
    reader.start()
    flags = ["--index", collection.index, "--topics", collection.topics]
    assert typed("search", *flags, "--output", pipe).code == 0
    reader.join(timeout=100)
    assert received == [(tmp_path / "run.txt").read_bytes()]
    assert pipe.is_fifo()
    assert not Path(f"{pipe}.manifest.json").exists()


def test_an_output_that_cannot_be_is_said_before_any_work(refused, collection, tmp_path):
    """The index does not exist either: had work begun, that would have been said."""
    (tmp_path / "file").write_text("")
    flags = ["--index", tmp_path / "nowhere", "--topics", collection.topics]
    assert "is a folder" in refused("search", *flags, "--output", tmp_path)
    assert "is not a folder" in refused("search", *flags, "--output", tmp_path / "file" / "run.txt")
    told = refused("search", *flags, "--output", tmp_path / "run.txt", "--save-expansion", tmp_path)
    assert "is a folder" in told
    assert "no index" in refused("search", *flags, "--output", tmp_path / "run.txt")


# -- bad input ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (["--model", "bm52"], "unknown model 'bm52'; did you mean 'bm25'?\n  One of: bm25, ql"),
        (["--set", "fb_docs=0"], "blend: fb_docs (N) must be "),
        (["--set", "fb_docs=2.5"], "fb_docs must be a whole number; got '2.5'"),
        (["--set", "fb_docs"], "--set takes name=value; got 'fb_docs'"),
        (["--set", "depth=3"], "blend has no parameter 'depth'\n  It has: parts, fb_docs, "),
        (["--model", "sd", "--set", "lambda_query=1"], "lambda_query (λ_M1) must be in (0, 1); got 1.0"),
        (["--model", "sd", "--set", "lambda_first=0"], "lambda_first (λ_E1) must be in (0, 1); got 0.0"),
        (["--model", "rm", "--set", "lambda_model=-0.1"], "lambda_model (λ_M) must be in (0, 1); got -0.1"),
        (["--model", "rm", "--set", "lambda_query=nan"], "must be in (0, 1); got nan"),
        (["--model", "ql", "--set", "smoothing=none"], "smoothing must be one of dirichlet, jm; got 'none'"),
        (["--profile", "best"], "no profile 'best'\n  One of default, paper, anserini, or the path"),
        (["--tag", "my run"], "tag 'my run' has a space in it"),
        (["--topic-format", "xml"], "unknown topic format 'xml'"),
        (["--topic-field", "narr"], "tsv topics have one text"),
        (["--topics", "/no/such.tsv"], "/no/such.tsv: no such file"),
        (["--index", "/no/such"], "no index at /no/such."),
        (["--expansion", "/no/such.jsonl"], "/no/such.jsonl: no such file"),
    ],
)
def test_one_clear_error(said_no, flags, told):
    assert told in said_no(*flags)


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (["--hits", "0"], "argument --hits: must be at least 1, got 0"),
        (["--hits", "ten"], "argument --hits: 'ten' is not a whole number"),
        (["--threads", "-1"], "argument --threads: must be at least 1, got -1"),
        (["--prune", "0"], "argument --prune: must be at least 1, got 0"),
    ],
)
def test_numbers_that_cannot_be(typed, collection, tmp_path, flags, told):
    words = ["--index", collection.index, "--topics", collection.topics, "--output", tmp_path / "run.txt"]
    outcome = typed("search", *words, *flags)
    assert outcome.code == 2
    assert outcome.err.endswith(f"sdretrieval search: error: {told}\n")


def test_what_is_no_index(said_no, collection, tmp_path):
    assert "is not a Lucene index" in said_no("--index", tmp_path)
    assert f"no index at {collection.topics}." in said_no("--index", collection.topics)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "no topics"),
        ("1\t  \n", ":1: topic '1' has no text"),
        ("1\tflood\n1\tharbour\n", ":2: topic '1' again: first on line 1"),
        ("flood harbour\n", ":1: cannot tell the topic format"),
        ("7\tzzyzx\n8\tthe of and\n", "no documents for these 2 topics: none of their words is in the index"),
    ],
)
def test_topics_that_say_nothing(said_no, tmp_path, text, told):
    path = tmp_path / "topics.tsv"
    path.write_text(text)
    said = said_no("--topics", path)
    assert str(path) in said
    assert told in said


@pytest.mark.parametrize("model", [*OWN, *LUCENE])
def test_a_topic_of_unknown_words_has_no_documents(search, tmp_path, model):
    (tmp_path / "topics.tsv").write_text("7\tzzyzx\n8\tthe of and\n1\tharbour flood zzyzx\n")
    run, said = search("--model", model, topics=tmp_path / "topics.tsv")
    assert list(run) == ["1"]
    assert "topics 7, 8" in said


# -- interruption ------------------------------------------------------------------------------------------------

# Waits once work has begun until the signal is on its way, so that it comes in the middle; all told through files.
SLOW_RANKING = """
import pathlib, time
from sdretrieval.ranking.registry import rankers
model = rankers()["blend"]
first = model.first
def slowly(self, query, statistics):
    if query.qid == "4":
        pathlib.Path({mark!r}).touch()
        while not pathlib.Path({sent!r}).exists():
            time.sleep(0.01)
    return first(self, query, statistics)
model.first = slowly
"""


def test_ctrl_c_leaves_the_old_run_and_nothing_else(started, ended, collection, tmp_path):
    mark, sent, folder = tmp_path / "mark", tmp_path / "sent", tmp_path / "runs"
    folder.mkdir()
    (folder / "run.txt").write_text("an earlier run\n")
    words = ["search", "--index", collection.index, "--topics", collection.topics, "--output", folder / "run.txt"]
    words += ["--save-expansion", folder / "q.jsonl", "--threads", 2]
    process = started(*words, code=SLOW_RANKING.format(mark=str(mark), sent=str(sent)))
    deadline = time.monotonic() + 300
    while not mark.exists() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    assert mark.exists(), ended(process)
    process.send_signal(signal.SIGINT)
    sent.touch()  # a thread that ranks cannot be interrupted: it is waited for
    outcome = ended(process)
    assert (outcome.code, outcome.out) == (130, "")
    assert outcome.err == "sdretrieval search: interrupted; nothing half-written was left behind\n"
    assert [path.name for path in folder.iterdir()] == ["run.txt"]
    assert (folder / "run.txt").read_text() == "an earlier run\n"
