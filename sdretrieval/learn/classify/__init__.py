"""Text classification with generative models (thesis chapter 4), as scikit-learn estimators."""

from __future__ import annotations

from sdretrieval.learn.classify.against_rest import RelevantAgainstRest
from sdretrieval.learn.classify.bep import break_even_precision, break_even_precisions, macro_bep, micro_bep
from sdretrieval.learn.classify.generative import (
    DCMClassifier,
    DirichletClassifier,
    MultinomialClassifier,
    SmoothedDirichletClassifier,
)
from sdretrieval.learn.classify.local_logistic import LocalLogisticRegression
from sdretrieval.learn.classify.mixture import MultinomialMixture, SmoothedDirichletMixture
from sdretrieval.learn.evolving import SSL, SSLE, SSLEOffline, SSLNaive

__all__ = [
    "SSL",
    "SSLE",
    "DCMClassifier",
    "DirichletClassifier",
    "LocalLogisticRegression",
    "MultinomialClassifier",
    "MultinomialMixture",
    "RelevantAgainstRest",
    "SSLEOffline",
    "SSLNaive",
    "SmoothedDirichletClassifier",
    "SmoothedDirichletMixture",
    "break_even_precision",
    "break_even_precisions",
    "macro_bep",
    "micro_bep",
]
