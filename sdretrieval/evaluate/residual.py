"""Residual rankings: what a run finds besides the documents that its feedback was given.

A model that learns from judged documents ranks them first, and shows nothing by that. So documents that were judged
for the feedback are taken out of the run and out of the judgments, of every run that is compared, and the rest is
measured.
"""

from __future__ import annotations

from collections.abc import Container, Mapping

from sdretrieval.collection.records import Qrels, Ranking, Run


def residual_run(run: Run, seen: Mapping[str, Container[str]]) -> Run:
    """The run without the documents that were seen for a topic, in the same order."""
    rankings = {}
    for qid, ranking in run.items():
        known = seen.get(qid, ())
        kept = [i for i, docid in enumerate(ranking.docids) if docid not in known]
        rankings[qid] = Ranking.in_order([ranking.docids[i] for i in kept], ranking.scores[kept])
    return Run(rankings, run.tag)


def residual_qrels(qrels: Qrels, seen: Mapping[str, Container[str]]) -> Qrels:
    """The judgments of documents that were not seen; a topic of which none is left is left out."""
    left = {
        qid: {docid: grade for docid, grade in grades.items() if docid not in seen.get(qid, ())}
        for qid, grades in qrels.items()
    }
    return Qrels({qid: grades for qid, grades in left.items() if grades})


def shortened(run: Run, *, judged: Mapping[str, Container[str]] | None = None, depth: int | None = None) -> Run:
    """The first ``depth`` documents of each topic, of them the ``judged`` ones (a condensed list)."""
    rankings = {}
    for qid, ranking in run.items():
        kept = list(range(len(ranking)))[:depth]
        if judged is not None:
            kept = [i for i in kept if ranking.docids[i] in judged.get(qid, ())]
        rankings[qid] = Ranking.in_order([ranking.docids[i] for i in kept], ranking.scores[kept])
    return Run(rankings, run.tag)
