"""Residual rankings: what a run finds besides the documents that its feedback was given.

A model that learns from judged documents ranks them first, and shows nothing by that. So documents that were judged
for the feedback are taken out of the run and out of the judgments, of every run that is compared, and the rest is
measured.
"""

from __future__ import annotations

from collections.abc import Container, Mapping

from sdretrieval.collection.records import Qrels, Run


def residual_run(run: Run, seen: Mapping[str, Container[str]]) -> Run:
    """The run without the documents that were seen for a topic, in the same order."""
    return Run({qid: ranking.without(seen.get(qid, ())) for qid, ranking in run.items()}, run.tag)


def residual_qrels(qrels: Qrels, seen: Mapping[str, Container[str]]) -> Qrels:
    """The judgments of documents that were not seen; a topic of which none is left is left out."""
    left = {
        qid: {docid: grade for docid, grade in grades.items() if docid not in seen.get(qid, ())}
        for qid, grades in qrels.items()
    }
    return Qrels({qid: grades for qid, grades in left.items() if grades})


def shortened(run: Run, *, judged: Mapping[str, Container[str]] | None = None, depth: int | None = None) -> Run:
    """The first ``depth`` documents of each topic, of them the ``judged`` ones (a condensed list)."""
    rankings = run.rankings if depth is None else {qid: ranking.top(depth) for qid, ranking in run.items()}
    if judged is not None:
        rankings = {qid: ranking.only(judged.get(qid, ())) for qid, ranking in rankings.items()}
    return Run(rankings, run.tag)
