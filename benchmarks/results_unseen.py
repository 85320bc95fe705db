"""Queries that had no part in any choice of the default, for Default in docs/RESULTS.md.

    python -m benchmarks.results_unseen

A report of jira, or the message of rhelp that begins a thread, is the query itself: its first 30 or 120 words, where
the topics that the default was chosen on have its subject. It is left out of its own ranking. Classes of Reuters-21578
and of 20 Newsgroups are sought by their names, the relevant studies of a systematic review by its title.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np

from benchmarks.collections import SHARED, Collection
from benchmarks.kept import kept
from benchmarks.tables import standard_error, table
from sdretrieval.collection.records import Qrels, Topic
from sdretrieval.evaluate import evaluate
from sdretrieval.evaluate.residual import residual_run
from sdretrieval.ranking.registry import make_ranker
from sdretrieval.ranking.retrieval import search
from sdretrieval.ranking.time.wrappers import AsOf

MODELS = ("bm25", "sdm", "rm3", "sd3", "blend")
WORDS = (30, 120)
EVERY = {"jira": 10, "rhelp": 4}
CLASSES = ("reuters21578", "20news-bydate")


class Case(NamedTuple):
    """Topics of a collection; ``as_of``: searched as of their times."""

    collection: Collection
    topics: list[Topic]
    qrels: Qrels
    as_of: bool = False


def cases() -> Iterator[tuple[str, Case]]:
    for name, every in EVERY.items():
        c = Collection(name)
        if not c.available:
            continue
        topics = c.topics[::every]
        texts = {row["id"]: row["contents"].split() for row in documents(c)}
        judged = {t.qid: {d: g for d, g in c.qrels.get(t.qid, {}).items() if d != t.qid} for t in topics}
        for n in WORDS:
            asked = [replace(t, text=" ".join(texts[t.qid][:n])) for t in topics]
            yield f"{name}, {n} words", Case(c, asked, Qrels(judged), as_of=name == "jira")
    for c in filter(lambda c: c.available, map(Collection, CLASSES)):
        yield f"{c.name}, names", Case(c, *classes(c))
    for folder in sorted((SHARED / "reviews").glob("*/")):
        title = (folder / "topic.txt").read_text(encoding="utf-8").strip()
        rows = (line.split("\t") for line in (folder / "labels.tsv").read_text(encoding="utf-8").splitlines())
        labels = {docid: int(label) for docid, label in rows if label in ("0", "1")}
        yield "reviews, titles", Case(Collection(f"reviews/{folder.name}"), [Topic("1", title)], Qrels({"1": labels}))


def documents(c: Collection) -> Iterator[dict[str, Any]]:
    with gzip.open(c.folder / "docs.jsonl.gz", "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def classes(c: Collection) -> tuple[list[Topic], Qrels]:
    """The names of the classes as queries, and their documents."""
    found: dict[str, dict[str, int]] = {}
    for row in documents(c):
        for label in row.get("labels", ()):
            found.setdefault(label, {})[row["id"]] = 1
    return [Topic(label, label.replace("-", " ").replace(".", " ")) for label in sorted(found)], Qrels(found)


def values(case: Case, model: str) -> dict[str, dict[str, float]]:
    """AP and P@5 of each topic that has relevant documents."""
    ranker = make_ranker(model)
    run = search(case.collection.snapshot, case.topics, AsOf(ranker=ranker) if case.as_of else ranker, threads=2)
    judged = {qid: grades for qid, grades in case.qrels.items() if case.qrels.relevant(qid)}
    others = residual_run(run, {qid: (qid,) for qid in run})  # a report does not find itself
    found = evaluate(others, Qrels(judged), ("AP", "P@5"), complete=True)
    return {measure: dict(found.per_topic[measure]) for measure in ("AP", "P@5")}


def measured() -> dict[str, dict[str, dict[str, list[float]]]]:
    """set -> model -> measure -> the values of its topics."""
    made: dict[str, dict[str, dict[str, list[float]]]] = {}
    for label, some in groupby(cases(), key=lambda item: item[0]):
        of_set = made.setdefault(label, {model: {"AP": [], "P@5": []} for model in MODELS})
        for _, case in some:
            for model in MODELS:
                for measure, found in values(case, model).items():
                    of_set[model][measure] += [found[qid] for qid in sorted(found)]
    return made


def section() -> str:
    text = (
        "### Queries that had no part in any choice\n\n"
        "MAP (standard error of the difference to BM25) / P@5 / topics hurt. Long queries are the first words of a bug "
        "report or message, which is left out of its ranking; jira as of the query's time.\n\n"
    )
    rows = {}
    for label, found in kept("default/unseen", measured).items():
        base = np.array(found["bm25"]["AP"])
        cells = (_cell(np.array(of["AP"]), base, np.mean(of["P@5"])) for of in found.values())
        rows[label] = [str(len(base)), *cells]
    return text + table(["", "topics", *MODELS], rows)


def _cell(ap: np.ndarray, base: np.ndarray, p5: float) -> str:
    difference = ap - base
    if not difference.any():
        return f"{ap.mean():.4f} / {p5:.3f}"
    hurt = ((-difference > 0.01) & (-difference > 0.1 * base)).mean()
    return f"{ap.mean():.4f} ({standard_error(difference):.4f}) / {p5:.3f} / {hurt:.2f}"


if __name__ == "__main__":
    print(section())
