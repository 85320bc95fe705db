"""Text classification with generative models (thesis chapter 4), as scikit-learn estimators."""

from __future__ import annotations

from sdretrieval.classify.bep import break_even_precision, break_even_precisions, macro_bep, micro_bep
from sdretrieval.classify.evolving import SSL, SSLE, SSLEOffline, SSLNaive
from sdretrieval.classify.generative import (
    DCMClassifier,
    DirichletClassifier,
    MultinomialClassifier,
    SmoothedDirichletClassifier,
)
from sdretrieval.classify.local_logistic import LocalLogisticRegression
from sdretrieval.classify.ranking import RelevantAgainstRest

__all__ = [
    "SSL",
    "SSLE",
    "DCMClassifier",
    "DirichletClassifier",
    "LocalLogisticRegression",
    "MultinomialClassifier",
    "RelevantAgainstRest",
    "SSLEOffline",
    "SSLNaive",
    "SmoothedDirichletClassifier",
    "break_even_precision",
    "break_even_precisions",
    "macro_bep",
    "micro_bep",
]
