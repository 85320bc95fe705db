"""Speed of search against Anserini's SearchCollection -rm3: same index, topics, threads and hits, in one run.

Must hold: the whole command, start-up and writing included, >= 10 x faster; queries per second once loaded >= 40 x for
rm3 and pruned sd, >= 15 x for exact sd. Anserini's own figure "once loaded" is its whole command less the time it
takes for one topic.

    python -m benchmarks.ranking_speed            # 50,000 documents, 500 topics
    python -m benchmarks.ranking_speed --growth   # time per query and memory from 10,000 to 200,000 documents
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.corpus import Corpus

FEEDBACK = {"fb_docs": 100, "fb_terms": 100}
HITS, THREADS = 1000, 2
ROUNDS = 8  # all topics, so many times over: the mean counts

# model, settings, pruning, how many times Anserini's rate it must reach
CASES = [
    ("rm3 (Anserini's, term by term)", "rm3", {"mode": "anserini", "original_query_weight": 0.5, **FEEDBACK}, None, 40),
    ("rm3", "rm3", FEEDBACK, None, 40),
    ("sd3", "sd3", FEEDBACK, None, 40),
    ("sd, pruned to 100 words", "sd", {"fb_docs": 100}, 100, 40),
    ("sd, exact", "sd", {"fb_docs": 100}, None, 15),
    ("rm, exact", "rm", {"fb_docs": 100}, None, None),
]

LOADED = """
import json, resource, sys, time
from sdretrieval.ranking.registry import make_ranker
from sdretrieval.ranking.engine import Engine, RankOptions
from sdretrieval.ranking.query import Query
from sdretrieval.index.snapshot import open_snapshot
from sdretrieval.collection.trec import read_topics
index, topics, hits, threads, rounds, cases = json.loads(sys.argv[1])
def resident():
    return {line.split(":")[0]: int(line.split()[1]) // 1024 for line in open("/proc/self/status")
            if line.startswith(("RssAnon", "RssFile"))}
snapshot = open_snapshot(index)
queries = [Query.from_topic(snapshot, topic) for topic in read_topics(topics)]
engine = Engine(snapshot, threads=threads)
before = resident()
for model, settings, prune in cases:
    ranker = make_ranker(model, settings)
    list(engine.rank(ranker, queries[:64], RankOptions(hits=hits, prune=prune)))
    began, found = time.perf_counter(), 0
    for _ in range(rounds):  # Anserini takes most of a minute: a second of ours alone would say little
        found += sum(len(result.docs) for result in engine.rank(ranker, queries, RankOptions(hits=hits, prune=prune)))
    seconds = (time.perf_counter() - began) / rounds
    print(json.dumps({"seconds": seconds, "queries": len(queries), "hits": found,
                      "postings": snapshot.n_postings, "before": before, "after": resident()}), flush=True)
"""


def anserini_command(index: Path, topics: Path, output: Path) -> list[str]:
    from sdretrieval.core.anserini import anserini_jar
    from sdretrieval.core.jvm import find_java

    return [
        str(find_java().home / "bin" / "java"),
        "-cp",
        str(anserini_jar()),
        "io.anserini.search.SearchCollection",
        "-index",
        str(index),
        "-topics",
        str(topics),
        "-topicReader",
        "TsvString",
        "-output",
        str(output),
        "-bm25",
        "-rm3",
        "-rerankCutoff",
        "100",
        "-rm3.fbDocs",
        "100",
        "-rm3.fbTerms",
        "100",
        "-hits",
        str(HITS),
        "-threads",
        str(THREADS),
    ]


def our_command(index: Path, topics: Path, output: Path, model: str, settings: dict) -> list[str]:
    sets = [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]
    return [
        sys.executable,
        "-m",
        "sdretrieval.cli.main",
        "search",
        "--index",
        str(index),
        "--topics",
        str(topics),
        "--model",
        model,
        *sets,
        "--output",
        str(output),
        "--hits",
        str(HITS),
        "--threads",
        str(THREADS),
    ]


def seconds(command: list[str]) -> float:
    began = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    return time.perf_counter() - began


def loaded(index: Path, topics: Path, cases: list) -> list[dict]:
    argument = json.dumps([str(index), str(topics), HITS, THREADS, ROUNDS, cases])
    out = subprocess.run([sys.executable, "-c", LOADED, argument], check=True, capture_output=True, text=True).stdout
    return [json.loads(line) for line in out.splitlines()]


def compare() -> None:
    corpus = Corpus()
    index, topics = corpus.index(), corpus.topics
    with tempfile.TemporaryDirectory(dir=corpus.folder) as folder:
        one_topic, output = Path(folder) / "one.tsv", Path(folder) / "run.txt"
        one_topic.write_text(topics.read_text().splitlines()[0] + "\n")
        seconds(our_command(index, one_topic, output, "rm3", FEEDBACK))  # snapshot built, code compiled
        whole = seconds(anserini_command(index, topics, output))
        start = seconds(anserini_command(index, one_topic, output))
        ours = seconds(our_command(index, topics, output, "rm3", FEEDBACK))
    n = corpus.n_topics
    print(f"{corpus.n_docs:,} documents, {n} topics, {HITS} hits, {THREADS} threads, 100 feedback documents, 100 words")
    print(f"whole command: Anserini -rm3 {whole:.1f} s, sdretrieval search --model rm3 {ours:.1f} s")
    print(f"  {whole / ours:.1f} x  (limit 10)")
    peer = (n - 1) / max(whole - start, 1e-9)
    print(f"once loaded: Anserini -rm3 {peer:.1f} queries a second")
    measured = loaded(index, topics, [case[1:4] for case in CASES])
    for (label, _, _, _, limit), m in zip(CASES, measured, strict=True):
        rate = m["queries"] / m["seconds"]
        wanted = f"(limit {limit})" if limit else ""
        print(f"  {label:<32} {rate:8.0f} queries a second  {rate / peer:6.1f} x  {wanted}")


def growth() -> None:
    print("documents   postings     ms/query: sd3   sd pruned   sd exact   memory of the process's own, mapped (MB)")
    cases = [("sd3", FEEDBACK, None), ("sd", {"fb_docs": 100}, 100), ("sd", {"fb_docs": 100}, None)]
    for n_docs in (10_000, 50_000, 200_000):
        corpus = Corpus(n_docs=n_docs, mean_words=200)
        found = loaded(corpus.index(), corpus.topics, cases)
        times = [1000 * m["seconds"] / m["queries"] for m in found]
        after = found[-1]["after"]
        print(
            f"{n_docs:9,} {found[0]['postings']:11,} {times[0]:15.2f} {times[1]:11.2f} {times[2]:10.2f}"
            f"   {after['RssAnon']:6d} {after['RssFile']:6d}",
            flush=True,
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--growth", action="store_true")
    growth() if parser.parse_args().growth else compare()
