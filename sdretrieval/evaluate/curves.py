"""Recall-precision points: how precision falls as more of the relevant documents are demanded.

Pr(r) = N_rel(r) / r        (5.30)   precision at rank r
Re(r) = N_rel(r) / N_rel    (5.32)   recall at rank r

At each of eleven recall levels the interpolated precision is the best Pr(r) at any rank with at least that
recall (trec_eval's ``iprec_at_recall``, ir_measures' ``IPrec@R``), averaged over topics: the curves of
Figures 5.2 to 5.6.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sdretrieval.evaluate.measures import QrelsLike, RunLike, evaluate

RECALL_LEVELS = tuple(step / 10 for step in range(11))
CURVE_MEASURES = tuple(f"IPrec@{level}" for level in RECALL_LEVELS)


@dataclass(frozen=True)
class RecallPrecision:
    """Interpolated precision at the eleven recall levels, averaged and per topic."""

    name: str
    recall: tuple[float, ...]
    precision: tuple[float, ...]
    per_topic: Mapping[str, tuple[float, ...]]


def recall_precision(
    run: RunLike, qrels: QrelsLike, *, complete: bool = False, rel: int | None = None, name: str | None = None
) -> RecallPrecision:
    """The eleven points of one run. Parameters as of :func:`~sdretrieval.evaluate.measures.evaluate`.

    >>> recall_precision({"1": {"a": 2.0, "b": 1.0}}, {"1": {"a": 1, "c": 1}}).precision[:7]
    (1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0)
    """
    found = evaluate(run, qrels, CURVE_MEASURES, complete=complete, rel=rel, name=name)
    return RecallPrecision(
        name=found.name,
        recall=RECALL_LEVELS,
        precision=tuple(found.mean[m] for m in CURVE_MEASURES),
        per_topic={qid: tuple(found.per_topic[m][qid] for m in CURVE_MEASURES) for qid in found.topics},
    )
