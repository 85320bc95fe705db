"""The flags about time on search and rerank, from parsing to the run."""

from __future__ import annotations

import argparse
import json

import numpy as np
import pytest

from sdretrieval.cli import time_options
from sdretrieval.cli.main import main
from sdretrieval.collection.trec import read_run
from sdretrieval.core.errors import ParameterError
from sdretrieval.ranking.manifest import manifest_path
from sdretrieval.ranking.registry import make_ranker
from sdretrieval.ranking.time.prior import Density, Recency
from sdretrieval.ranking.time.wrappers import AsOf, Auto, LocalBackground, TimedFeedback, TimePrior
from sdretrieval.ranking.wrapper import wrapper_of

DAY = 86_400_000


def parsed(*flags: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    time_options.add_time_arguments(parser)
    return parser.parse_args(flags)


def model(*flags: str):
    return time_options.time_from(parsed(*flags), make_ranker("sd3"))


def test_without_flags_the_model_is_the_plain_one():
    plain = make_ranker("sd3")
    assert time_options.time_from(parsed(), plain) is plain


def test_a_named_prior_has_the_shipped_defaults():
    recency, density = model("--time-prior", "recency"), model("--time-prior", "density")
    assert recency.prior == Recency() and density.prior == Density()
    assert recency.weight is None and recency.time_docs == 50 and recency.evidence == "score"


def test_every_flag_arrives():
    timed = model(
        "--time-prior",
        "density",
        "--kernel",
        "tricube",
        "--bandwidth",
        "12h",
        "--time-weight",
        "0.4",
        "--time-evidence",
        "rank",
        "--time-docs",
        "30",
        "--background",
        "penalised",
        "--feedback-time",
        "mode",
        "--feedback-time-weight",
        "0.5",
        "--as-of",
        "query-time",
    )
    assert isinstance(timed, AsOf)
    prior = wrapper_of(timed, TimePrior)
    assert prior.prior == Density(kernel="tricube", bandwidth=DAY / 2)
    assert (prior.weight, prior.evidence, prior.time_docs) == (0.4, "rank", 30)
    background = wrapper_of(timed, LocalBackground).drifting
    assert (background.method, background.at, background.bandwidth) == ("penalised", "query", DAY / 2)
    feedback = wrapper_of(timed, TimedFeedback).time
    assert (feedback.near, feedback.weight, feedback.kernel) == ("mode", 0.5, "tricube")


def test_auto_may_be_said_aloud():
    assert model("--time-prior", "recency", "--bandwidth", "auto", "--time-weight", "auto") == model(
        "--time-prior", "recency"
    )


def test_the_automatic_prior_takes_documents_alone():
    assert model("--time-prior", "auto").prior == Auto()
    assert model("--time-prior", "auto", "--time-docs", "30", "--bandwidth", "auto").prior == Auto(docs=30)
    timed = model("--time-prior", "auto", "--feedback-time", "query", "--bandwidth", "5d", "--as-of", "query-time")
    assert timed.name == "sd3+time-auto+timed-feedback+as-of"


@pytest.mark.parametrize(
    "flags, told",
    [
        (["--kernel", "tricube"], "--time-prior"),
        (["--bandwidth", "7d"], "--time-prior"),
        (["--time-weight", "1"], "--time-prior"),
        (["--background-at", "query"], "--background"),
        (["--feedback-time-weight", "1"], "--feedback-time"),
        (["--time-prior", "recency", "--bandwidth", "soon"], "not a length of time"),
        (["--time-prior", "recency", "--bandwidth", "0d"], "positive"),
        (["--time-prior", "recency", "--bandwidth", "cv"], "density"),
        (["--time-prior", "recency", "--time-weight", "much"], "much"),
        (["--time-prior", "recency", "--time-weight", "-1"], "zero or positive"),
        (["--background", "local", "--background-at", "document", "--as-of", "query-time"], "as-of"),
        (["--time-prior", "auto", "--time-weight", "1"], "--time-weight is what --time-prior auto finds"),
        (["--time-prior", "auto", "--bandwidth", "2d"], "--bandwidth is what --time-prior auto finds"),
        (["--time-prior", "auto", "--time-docs", "1"], "at least 2"),
    ],
)
def test_flags_that_make_no_sense_are_refused_with_a_reason(flags, told):
    with pytest.raises(ParameterError) as caught:
        model(*flags)
    assert told in str(caught.value)


# -- through an index ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """A small generated collection, indexed."""
    from sdretrieval.collection.corpus import Reader
    from sdretrieval.demo import write_demo
    from sdretrieval.index.lucene.indexing import build_index

    folder = tmp_path_factory.mktemp("demo")
    files = write_demo(folder, n_docs=600, n_topics=10)
    build_index(Reader(date="date").read([files.documents]), folder / "index", threads=1)
    return folder


def run(verb: str, demo, output, *flags: str) -> int:
    topics = ["--topics", str(demo / "topics.tsv"), "--topic-times", str(demo / "topics.times.tsv")]
    common = ["--index", str(demo / "index"), *topics, "--output", str(output), "--threads", "1"]
    return main([verb, *common, *flags])


pytestmark_java = pytest.mark.java


@pytestmark_java
@pytest.mark.parametrize("name", ["bm25", "ql", "tfidf", "rm", "rm3", "sd", "sd3", "lucene-bm25"])
def test_search_and_rerank_with_time_for_every_model(demo, tmp_path, name, capsys):
    plain, timed, again = (tmp_path / f for f in ("plain.txt", "timed.txt", "again.txt"))
    assert run("search", demo, plain, "--model", name) == 0
    flags = ["--model", name, "--time-prior", "recency", "--time-weight", "1", "--bandwidth", "20d"]
    assert run("search", demo, timed, *flags) == 0
    assert run("rerank", demo, again, "--run", str(plain), *flags) == 0
    first, second, third = read_run(plain), read_run(timed), read_run(again)
    assert second.tag == f"{name}+recency"
    assert any(first[q].docids != second[q].docids for q in first)
    for qid in first:
        assert sorted(third[qid].docids) == sorted(first[qid].docids)
    assert "time prior (recency): weight 1.00 on average" in capsys.readouterr().err
    settings = json.loads(manifest_path(timed).read_text())["parameters"]["time"]
    assert settings["prior"]["bandwidth"] == 20 * DAY and settings["weight"] == 1.0


@pytestmark_java
def test_the_automatic_prior_says_what_it_chose(demo, tmp_path, capsys):
    plain, timed, again = (tmp_path / f for f in ("plain.txt", "timed.txt", "again.txt"))
    assert run("search", demo, plain) == 0
    assert run("search", demo, timed, "--time-prior", "auto", "--as-of", "query-time") == 0
    told = capsys.readouterr().err
    assert "time prior (auto): " in told and "of 10 topics" in told
    chosen = json.loads(manifest_path(timed).read_text())["time prior by topic"]
    assert len(chosen) == 10 and all("nats" in why for why in chosen.values())
    assert run("rerank", demo, again, "--run", str(plain), "--run-weight", "1", "--time-prior", "auto") == 0
    assert read_run(again).tag == "blend+time-auto"


@pytestmark_java
def test_a_runs_own_scores_take_a_prior(demo, tmp_path):
    """At --run-weight 1 the model has no say; the prior has."""
    plain, timed = tmp_path / "plain.txt", tmp_path / "timed.txt"
    assert run("search", demo, plain, "--model", "ql") == 0
    flags = ["--run-weight", "1", "--time-prior", "recency", "--time-weight", "1", "--bandwidth", "20d"]
    assert run("rerank", demo, timed, "--run", str(plain), "--model", "bm25", *flags) == 0
    first, second = read_run(plain), read_run(timed)
    assert any(first[qid].docids != second[qid].docids for qid in first)


@pytestmark_java
def test_as_of_returns_the_past_and_the_leak_check_says_what_changed(demo, tmp_path, capsys):
    from sdretrieval.collection.trec import read_topics
    from sdretrieval.index.snapshot import open_snapshot

    output = tmp_path / "past.txt"
    assert run("search", demo, output, "--as-of", "query-time", "--leak-check") == 0
    times = {t.qid: t.time for t in read_topics(demo / "topics.tsv", times=demo / "topics.times.tsv")}
    snapshot = open_snapshot(demo / "index")
    found = read_run(output)
    for qid in found:
        numbers = snapshot.docids.find_many(list(found[qid].docids))
        assert (np.asarray(snapshot.times)[numbers] < times[qid]).all()
    assert "leak check, first 10 documents of 10 topics" in capsys.readouterr().err


@pytestmark_java
def test_only_documents_of_a_period_are_ranked(demo, tmp_path, capsys):
    from sdretrieval.core.times import format_time
    from sdretrieval.index.snapshot import open_snapshot

    snapshot, output, again = open_snapshot(demo / "index"), tmp_path / "run.txt", tmp_path / "again.txt"
    low, high = (int(ms) for ms in np.quantile(np.asarray(snapshot.times), (0.3, 0.7)))
    limits = ["--from", format_time(low), "--until", format_time(high)]
    assert run("search", demo, output, *limits, "--time-prior", "auto", "--as-of", "query-time", "--leak-check") == 0
    found = read_run(output)
    numbers = snapshot.docids.find_many([docid for qid in found for docid in found[qid].docids])
    times = np.asarray(snapshot.times)[numbers]
    assert len(times) and times.min() >= low and times.max() < high
    settings = json.loads(manifest_path(output).read_text())["parameters"]["time"]
    assert (settings["from"], settings["until"]) == (limits[1], limits[3])
    assert run("rerank", demo, again, "--run", str(output), *limits) == 0
    assert run("search", demo, again, "--from", limits[3], "--until", limits[1]) != 0
    assert "is empty" in capsys.readouterr().err


def test_a_limit_that_is_no_time_is_refused(capsys):
    with pytest.raises(SystemExit):
        parsed("--from", "yesterday")
    assert "not a time: 'yesterday'" in capsys.readouterr().err


@pytestmark_java
def test_a_saved_expansion_replays_with_time(demo, tmp_path):
    """The prior stays when the queries are read from a file: the same documents come out."""
    saved, first, second = (tmp_path / f for f in ("queries.jsonl", "first.txt", "second.txt"))
    flags = ["--time-prior", "density", "--model", "sd3"]
    run("search", demo, first, *flags, "--save-expansion", str(saved))
    run("search", demo, second, *flags, "--expansion", str(saved))
    before, after = read_run(first), read_run(second)
    for qid in before:
        assert list(before[qid].docids)[:20] == list(after[qid].docids)[:20]


@pytestmark_java
@pytest.mark.parametrize("prior", ["auto", "recency"])
@pytest.mark.parametrize("name", ["sd", "bm25"])
def test_explain_adds_up_with_time(demo, tmp_path, capsys, prior, name):
    """The document's words and parts add up to the score that search gives it, of the past alone."""
    flags = ["--model", name, "--time-prior", prior, "--as-of", "query-time"]
    output = tmp_path / "run.txt"
    assert run("search", demo, output, *flags) == 0
    qid, ranking = next((qid, r) for qid, r in read_run(output).items() if len(r))
    docid, score = ranking.docids[3], ranking.scores[3]
    topics = ["--topics", str(demo / "topics.tsv"), "--topic-times", str(demo / "topics.times.tsv"), "--qid", qid]
    command = ["explain", "--index", str(demo / "index"), *topics, "--docid", docid, *flags]
    capsys.readouterr()
    assert main([*command, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    document = told["documents"][0]
    added = sum(word["contribution"] for word in document["words"]) + sum(document["parts"].values())
    assert document["score"] == pytest.approx(score, abs=1e-4) and added == pytest.approx(score, abs=1e-4)
    assert told["model"] == f"{name}+{'time-auto' if prior == 'auto' else prior}+as-of"
    assert document["rank"] == 4
    assert main(command) == 0
    assert "time prior" in capsys.readouterr().out


@pytestmark_java
def test_tune_with_time(demo, tmp_path, capsys):
    profile, tuned = tmp_path / "bm25.json", ["--as-of", "query-time", "--time-prior", "auto", "--model", "bm25"]
    qrels = ["--qrels", str(demo / "qrels.txt"), "--params", "k1=0.6,1.2", "--method", "grid", "--folds", "2"]
    assert run("tune", demo, profile, *tuned, *qrels) == 0
    assert set(json.loads(profile.read_text())) == {"bm25"}
    trace = (tmp_path / "bm25.json.trace.jsonl").read_text()
    assert "bm25+time-auto+as-of" in trace
    output = tmp_path / "run.txt"
    assert run("search", demo, output, *tuned, "--profile", str(profile)) == 0


@pytestmark_java
def test_times_of_further_topics_are_a_note(demo, tmp_path, capsys):
    times = tmp_path / "times.tsv"
    times.write_text((demo / "topics.times.tsv").read_text() + "another\t2011-01-01\n")
    common = ["--index", str(demo / "index"), "--topics", str(demo / "topics.tsv"), "--topic-times", str(times)]
    assert main(["search", *common, "--output", str(tmp_path / "run.txt"), "--as-of", "query-time"]) == 0
    assert "1 times are of topics not asked about: another" in capsys.readouterr().err


@pytestmark_java
def test_topics_without_times_are_told_of(demo, tmp_path, capsys):
    common = ["--index", str(demo / "index"), "--topics", str(demo / "topics.tsv")]
    common += ["--output", str(tmp_path / "run.txt")]
    assert main(["search", *common, "--time-prior", "recency"]) == 0
    assert "no recency for topics without a time (10)" in capsys.readouterr().err
    assert main(["search", *common, "--as-of", "query-time"]) == 2
    assert "--topic-times" in capsys.readouterr().err
