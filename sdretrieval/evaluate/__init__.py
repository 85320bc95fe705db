"""How good is a run, is it better than another, at which recall, and when.

    from sdretrieval.evaluate import evaluate, compare
    ql, rm = (evaluate(read_run(path), qrels, ["AP", "P@5"]) for path in ("ql.trec", "rm3.trec"))
    rm.mean["AP"], rm.per_topic["AP"]["51"], rm.missing_topics
    for row in compare([rm], ql): print(row.measure, row.difference, row.tests["wilcoxon"].p_value)

====================  ========================================================================================
:mod:`measures`       measures of a run (trec_eval's code through ir_measures): ``evaluate``, ``Evaluator``
:mod:`significance`   paired tests, corrections, effect sizes: ``compare``
:mod:`systems`        how alike two rankings are without judgments; how measures order systems
:mod:`curves`         recall-precision points: ``recall_precision``
:mod:`time_slices`    a measure by period of the query or of the relevant documents
:mod:`residual`       what is found besides the documents that feedback was given
:mod:`inputs`         runs as a command line names them, and what lies beside them
:mod:`fuse`           several runs made one
:mod:`tune`           parameters chosen on some topics, scored on others
:mod:`report`         the page, figures and LaTeX tables
====================  ========================================================================================
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from sdretrieval.evaluate.curves import RecallPrecision, recall_precision
from sdretrieval.evaluate.inputs import read_document_times
from sdretrieval.evaluate.measures import (
    Evaluation,
    Evaluator,
    evaluate,
    natural_order,
    parse_measures,
    register_measure,
)
from sdretrieval.evaluate.significance import TESTS, Comparison, TestResult, compare, compare_values, correct
from sdretrieval.evaluate.time_slices import TimeSlice, choose_period, evaluate_by_time


class _Callable(ModuleType):
    """``from sdretrieval import evaluate`` is this room; called, it is the function of that name."""

    def __call__(self, *args: Any, **kwargs: Any) -> Evaluation:
        return evaluate(*args, **kwargs)


sys.modules[__name__].__class__ = _Callable

__all__ = [
    "TESTS",
    "Comparison",
    "Evaluation",
    "Evaluator",
    "RecallPrecision",
    "TestResult",
    "TimeSlice",
    "choose_period",
    "compare",
    "compare_values",
    "correct",
    "evaluate",
    "evaluate_by_time",
    "natural_order",
    "parse_measures",
    "read_document_times",
    "recall_precision",
    "register_measure",
]
