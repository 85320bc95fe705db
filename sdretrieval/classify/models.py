"""The classifiers of ``sdretrieval classify`` by name: how each is made, which settings it has, what is kept of it."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from math import inf
from typing import Any

from sdretrieval.errors import ParameterError


@dataclass(frozen=True)
class Setting:
    """A parameter that ``--set`` may change; ``grid`` are the values that ``--tune`` tries."""

    name: str
    default: Any
    help: str
    kind: str = "number"  # number, number or none, flag, duration, or the choices parted by |
    grid: tuple = ()

    def read(self, text: str) -> Any:
        """The value a text stands for."""
        word = text.strip().lower()
        if self.kind == "flag":
            if word in ("true", "yes", "on", "1", "false", "no", "off", "0"):
                return word in ("true", "yes", "on", "1")
            raise ParameterError(f"{self.name} must be true or false, got {text!r}")
        if "|" in self.kind:
            if word in self.kind.split("|"):
                return word
            raise ParameterError(f"{self.name} must be one of {self.kind.replace('|', ', ')}, got {text!r}")
        if self.kind == "duration":
            from sdretrieval.temporal.timeline import parse_duration

            return word if word == "auto" else None if word == "none" else parse_duration(word)
        if self.kind == "number or none" and word == "none":
            return None
        try:
            return float(word)
        except ValueError:
            raise ParameterError(f"{self.name} must be a number, got {text!r}") from None


@dataclass(frozen=True)
class ClassifierModel:
    """One kind of classifier."""

    name: str
    help: str
    make: Callable[[dict[str, Any]], Any]
    settings: tuple[Setting, ...]
    # Fitted attributes that predicting needs, with their shapes ("rows": one for two classes, as scikit-learn has it);
    # empty where the estimator saves itself.
    state: Mapping[str, str]
    tfidf: bool = False  # rows are tf-idf of length one instead of counts
    timed: bool = False
    probabilistic: bool = False  # its scores are log-odds already

    @property
    def defaults(self) -> dict[str, Any]:
        return {setting.name: setting.default for setting in self.settings}

    def parameters(self, given: Mapping[str, Any] | Iterable[str] = ()) -> dict[str, Any]:
        """All settings, the given ones (a mapping, or texts ``name=value``) in the place of their defaults."""
        values = self.defaults
        known = {setting.name: setting for setting in self.settings}
        if isinstance(given, Mapping):
            pairs = [(str(name), value) for name, value in given.items()]
        else:
            pairs = [self._pair(text) for text in given]
        for name, value in pairs:
            if name not in known:
                close = difflib.get_close_matches(name, known, 1)
                raise ParameterError(
                    f"{self.name} has no parameter {name!r}" + (f"; did you mean {close[0]!r}?" if close else ""),
                    remedy=f"It has: {', '.join(known)}." if known else None,
                )
            values[name] = known[name].read(value) if isinstance(value, str) else value
        return values

    def _pair(self, text: str) -> tuple[str, str]:
        name, equals, value = text.partition("=")
        if not equals:
            raise ParameterError(f"--set takes NAME=VALUE, got {text!r}")
        return name.strip(), value

    def grid(self) -> list[dict[str, Any]]:
        """Every combination that ``--tune`` tries."""
        combinations: list[dict[str, Any]] = [{}]
        for setting in self.settings:
            if setting.grid:
                combinations = [{**one, setting.name: value} for one in combinations for value in setting.grid]
        return combinations


_PRIOR = Setting("fit_prior", False, "class priors from the training set instead of uniform ones", "flag")
_BETA = "β of (4.10), added to every word's count in general English"
_TERMS = {"alpha_": "classes x terms", "class_log_prior_": "classes"}
_LINEAR = {"coef_": "rows x terms", "intercept_": "rows"}


def _multinomial(method: str) -> Callable[[dict[str, Any]], Any]:
    def make(values: dict[str, Any]) -> Any:
        from sdretrieval.classify import MultinomialClassifier

        return MultinomialClassifier(method=method, **values)

    return make


def _smoothed_dirichlet(cross_entropy: bool) -> Callable[[dict[str, Any]], Any]:
    def make(values: dict[str, Any]) -> Any:
        from sdretrieval.classify import SmoothedDirichletClassifier

        return SmoothedDirichletClassifier(cross_entropy=cross_entropy, **values)

    return make


def _dcm(values: dict[str, Any]) -> Any:
    from sdretrieval.classify import DCMClassifier

    return DCMClassifier(**values)


def _dirichlet(values: dict[str, Any]) -> Any:
    from sdretrieval.classify import DirichletClassifier

    return DirichletClassifier(**values)


def _logistic(values: dict[str, Any]) -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(max_iter=1000, **values)


def _svm(values: dict[str, Any]) -> Any:
    from sklearn.svm import LinearSVC

    return LinearSVC(**values)


def _local_logistic(values: dict[str, Any]) -> Any:
    from sdretrieval.classify import LocalLogisticRegression

    return LocalLogisticRegression(**values)


_SD_SETTINGS = (
    Setting("smoothing", 1e-3, "λ, the share of a document's own words",
            grid=(1e-5, 1e-4, 1e-3, 1e-2, 0.1, 0.3, 0.5, 0.7, 0.9)),
    Setting("background_additive", 0.1, _BETA),
    Setting("scale", 1.0, "S: sharpens probabilities, changes no decision between equal priors"),
    _PRIOR,
)  # fmt: skip
_SD_STATE = {**_TERMS, "background_": "terms", "divergence_": "classes"}
_SCALES = (10.0, 100.0, 1000.0, 10_000.0)

MODELS: dict[str, ClassifierModel] = {
    model.name: model
    for model in (
        ClassifierModel(
            "sd", "smoothed Dirichlet: geometric means of smoothed documents", _smoothed_dirichlet(False),
            _SD_SETTINGS, _SD_STATE,
        ),
        ClassifierModel(
            "sd-ce", "smoothed Dirichlet, cross entropy alone (no normaliser)", _smoothed_dirichlet(True),
            _SD_SETTINGS, _SD_STATE,
        ),
        ClassifierModel(
            "multinomial", "naive Bayes with Laplace smoothing", _multinomial("laplace"),
            (Setting("additive", 0.01, "δ, added to every count", grid=(1.0, 0.1, 0.01, 1e-3, 1e-4)), _PRIOR),
            {"feature_log_prob_": "classes x terms", "class_log_prior_": "classes"},
        ),
        ClassifierModel(
            "multinomial-jm", "naive Bayes with Jelinek-Mercer smoothing", _multinomial("jelinek-mercer"),
            (
                Setting("smoothing", 0.7, "λ, the share of a class's own estimate",
                        grid=(0.1, 0.3, 0.5, 0.7, 0.9, 0.99)),
                Setting("background_additive", 1e-3, _BETA),
                _PRIOR,
            ),
            {"feature_log_prob_": "classes x terms", "class_log_prior_": "classes"},
        ),
        ClassifierModel(
            "dcm", "Dirichlet compound multinomial", _dcm,
            (
                Setting("scale", 1000.0, "S, the same for all classes; none: estimated", "number or none", _SCALES),
                Setting("additive", 0.01, "δ of (4.11)", grid=(0.1, 0.01, 1e-3, 1e-4)),
                _PRIOR,
            ),
            {**_TERMS, "scale_": "classes"},
        ),
        ClassifierModel(
            "dirichlet", "Dirichlet over smoothed documents", _dirichlet,
            (
                Setting("smoothing", 0.1, "λ, the share of a document's own words", grid=(1e-3, 1e-2, 0.1, 0.5, 0.9)),
                Setting("scale", 1000.0, "S, the same for all classes; none: estimated", "number or none", _SCALES),
                Setting("background_additive", 0.01, _BETA),
                _PRIOR,
            ),
            {**_TERMS, "background_": "terms", "class_offset_": "classes", "scale_": "classes"},
        ),
        ClassifierModel(
            "svm", "linear support vector machine on tf-idf (scikit-learn)", _svm,
            (Setting("C", 1.0, "inverse strength of the penalty", grid=(0.1, 0.3, 1.0, 3.0, 10.0)),),
            _LINEAR, tfidf=True,
        ),
        ClassifierModel(
            "logistic", "logistic regression on tf-idf (scikit-learn)", _logistic,
            (Setting("C", 10.0, "inverse strength of the penalty", grid=(1.0, 3.0, 10.0, 30.0, 100.0)),),
            _LINEAR, tfidf=True, probabilistic=True,
        ),
        ClassifierModel(
            "local-logistic", "logistic regression on tf-idf whose weights follow the time", _local_logistic,
            (
                Setting("bandwidth", "auto", "of the kernel: 30d, 12h, inf (global) or auto (by cross-validation)",
                        "duration"),
                Setting("C", 10.0, "inverse strength of the penalty", grid=(1.0, 3.0, 10.0, 30.0, 100.0)),
                Setting("resolution", None, "times within this long count as simultaneous: 1d, 7d, none", "duration"),
                Setting("online", False, "use strictly past documents alone", "flag"),
                Setting("penalty", "l2", "of the weights", "l1|l2"),
                Setting("kernel", "tricube", "in time", "uniform|triangular|epanechnikov|tricube|gaussian"),
            ),
            {}, tfidf=True, timed=True, probabilistic=True,
        ),
    )
}  # fmt: skip


def classifier_model(name: str) -> ClassifierModel:
    if name not in MODELS:
        close = difflib.get_close_matches(name, MODELS, 1)
        raise ParameterError(
            f"no classifier {name!r}" + (f"; did you mean {close[0]!r}?" if close else ""),
            remedy=f"One of: {', '.join(MODELS)}.",
        )
    return MODELS[name]


def describe() -> str:
    """The models and their settings, for ``--list-models``."""
    lines = []
    for model in MODELS.values():
        lines.append(f"{model.name:<15} {model.help}")
        for setting in model.settings:
            shown = str(setting.default).lower() if isinstance(setting.default, bool) else setting.default
            shown = "inf" if shown == inf else "none" if shown is None else shown
            tried = f"; --tune tries {', '.join(f'{v:g}' for v in setting.grid)}" if setting.grid else ""
            lines.append(f"    {setting.name}={shown}  {setting.help}{tried}")
    return "\n".join(lines)
