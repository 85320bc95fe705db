"""The classifiers of ``sdretrieval classify`` by name: the estimator of each, its parameters, what is kept of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from sdretrieval.core.errors import ParameterError
from sdretrieval.core.parameters import Domain, domains, nearest, read_settings, setting_pairs, show
from sdretrieval.estimate.time.kernels import kernel_names
from sdretrieval.learn.classify.base import GenerativeClassifier
from sdretrieval.learn.classify.generative import (
    DCMClassifier,
    DirichletClassifier,
    MultinomialClassifier,
    SmoothedDirichletClassifier,
)
from sdretrieval.learn.classify.local_logistic import LocalLogisticRegression


@dataclass(frozen=True, kw_only=True)
class ClassifierModel:
    """One kind of classifier: an estimator, and those of its parameters that ``--set`` may change."""

    name: str
    help: str
    estimator: Any  # a scikit-learn estimator's class
    domains: Mapping[str, Domain]
    fixed: Mapping[str, Any] = field(default_factory=dict)  # further arguments of the estimator
    # Fitted attributes that predicting needs, with their shapes: classes, terms, or "rows", one for two classes as
    # scikit-learn has it; empty where the estimator saves itself.
    state: Mapping[str, str] = field(default_factory=dict)
    generative: bool = False  # it has joint log probabilities
    tfidf: bool = False  # rows are tf-idf of length one instead of counts
    timed: bool = False
    probabilistic: bool = False  # its scores are log-odds already

    def make(self, values: Mapping[str, Any]) -> Any:
        return self.estimator(**self.fixed, **values)

    def parameters(self, given: Mapping[str, Any] | Iterable[str] = ()) -> dict[str, Any]:
        """All parameters, the given ones (a mapping, or texts ``name=value``) in the place of their defaults."""
        read = read_settings(self.name, self.domains, given, see="sdretrieval classify --list-models")
        return {
            name: domain.check(read.get(name, domain.default), name, self.name) for name, domain in self.domains.items()
        }

    def grid(self, given: Mapping[str, Any] | Iterable[str] = ()) -> list[dict[str, Any]]:
        """Every combination that ``--tune`` tries; the given parameters stay."""
        pairs = dict(setting_pairs(given))
        fixed = self.parameters(pairs)
        free = {name: domain.grid for name, domain in self.domains.items() if domain.grid and name not in pairs}
        return [{**fixed, **dict(zip(free, values, strict=True))} for values in product(*free.values())]


def _generative(name: str, help: str, estimator: type[GenerativeClassifier], *names: str, **fixed: Any):
    """A model of which the estimator itself knows parameters and state."""
    return ClassifierModel(
        name=name,
        help=help,
        estimator=estimator,
        domains=_declared(estimator, *names),
        fixed=fixed,
        state=estimator.state,
        generative=True,
    )


def _declared(estimator: Any, *names: str) -> dict[str, Domain]:
    """Some of an estimator's own parameters."""
    known = domains(estimator)
    return {name: known[name][1] for name in names}


_SD = ("smoothing", "background_additive", "scale", "fit_prior")
_C = Domain("inverse strength of the penalty", low=0.0, open=True, infinite=True)
_LOGISTIC_C = replace(_C, default=10.0, grid=(1.0, 3.0, 10.0, 30.0, 100.0))
_LINEAR = {"coef_": "rows x terms", "intercept_": "rows"}

_ALL = (
    _generative(
        "sd",
        "smoothed Dirichlet: geometric means of smoothed documents",
        SmoothedDirichletClassifier,
        *_SD,
        calibrate=False,  # TextClassifier does it
    ),
    _generative(
        "sd-ce",
        "smoothed Dirichlet, cross entropy alone (no normaliser)",
        SmoothedDirichletClassifier,
        *_SD,
        cross_entropy=True,
        calibrate=False,
    ),
    _generative("multinomial", "naive Bayes with Laplace smoothing", MultinomialClassifier, "additive", "fit_prior"),
    _generative(
        "multinomial-jm",
        "naive Bayes with Jelinek-Mercer smoothing",
        MultinomialClassifier,
        *("smoothing", "background_additive", "fit_prior"),
        method="jelinek-mercer",
    ),
    _generative("dcm", "Dirichlet compound multinomial", DCMClassifier, "scale", "additive", "fit_prior"),
    _generative(
        "dirichlet",
        "Dirichlet over smoothed documents",
        DirichletClassifier,
        *("smoothing", "scale", "background_additive", "fit_prior"),
    ),
    ClassifierModel(
        name="svm",
        help="linear support vector machine on tf-idf (scikit-learn)",
        estimator=LinearSVC,
        # With an enormous C liblinear does not come to an end.
        domains={"C": replace(_C, default=1.0, high=1e12, infinite=False, grid=(0.1, 0.3, 1.0, 3.0, 10.0))},
        fixed={"random_state": 0},  # the order of its steps
        state=_LINEAR,
        tfidf=True,
    ),
    ClassifierModel(
        name="logistic",
        help="logistic regression on tf-idf (scikit-learn)",
        estimator=LogisticRegression,
        domains={"C": _LOGISTIC_C},
        fixed={"max_iter": 1000},
        state=_LINEAR,
        tfidf=True,
        probabilistic=True,
    ),
    ClassifierModel(
        name="local-logistic",
        help="logistic regression on tf-idf whose weights follow the time",
        estimator=LocalLogisticRegression,
        domains={
            **_declared(LocalLogisticRegression, "bandwidth"),
            "C": replace(_LOGISTIC_C, infinite=False),
            **_declared(LocalLogisticRegression, "resolution", "online", "penalty"),
            "kernel": Domain("in time", choices=kernel_names(), default="tricube"),
        },
        tfidf=True,
        timed=True,
        probabilistic=True,
    ),
)
MODELS = {model.name: model for model in _ALL}


def classifier_model(name: str) -> ClassifierModel:
    if name not in MODELS:
        raise ParameterError(f"no classifier {name!r}{nearest(name, MODELS)}", remedy=f"One of: {', '.join(MODELS)}.")
    return MODELS[name]


def describe() -> str:
    """The models and their parameters, for ``--list-models``."""
    lines = []
    for model in MODELS.values():
        lines.append(f"{model.name:<15} {model.help}")
        for name, domain in model.domains.items():
            tried = f"; --tune tries {', '.join(f'{v:g}' for v in domain.grid)}" if domain.grid else ""
            lines.append(f"    {name}={show(domain.default)}  {domain.help}{tried}")
    return "\n".join(lines)
