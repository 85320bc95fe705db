"""Trained classifiers on disk: plain arrays and a JSON header (core/saved_arrays.py), never a pickle.

The header has the model's name and settings, the labels, the vocabulary and the analyzer; the arrays are what the
estimators need to predict. Everything is checked against everything else when it is read back.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from math import inf
from typing import Any

import numpy as np

from sdretrieval.collection.analyzer import AnalyzerSpec
from sdretrieval.core.saved_arrays import Arrays, Header, load_model, save_arrays
from sdretrieval.learn.classify.classifiers import MODELS, ClassifierModel
from sdretrieval.learn.classify.text_classifier import TextClassifier

KIND = "classifier"


def save_classifier(classifier: TextClassifier, path: str | os.PathLike[str]) -> None:
    """Write a classifier as one file.

    Parameters
    ----------
    classifier : TextClassifier
    path : the file; an existing one is replaced
    """
    arrays: dict[str, np.ndarray] = {"calibration": classifier.calibration}
    if classifier.idf is not None:
        arrays["idf"] = classifier.idf
    own: list[dict[str, Any]] = []  # headers of estimators that save themselves
    for number, estimator in enumerate(classifier.estimators):
        if classifier.model.state:
            parts = {name: np.asarray(getattr(estimator, name)) for name in classifier.model.state}
        else:
            header, parts = estimator.to_arrays()
            own.append(header)
        arrays.update({f"{number}.{name}": value for name, value in parts.items()})
    header = {
        "model": classifier.model.name,
        "parameters": {name: _text(value) for name, value in classifier.parameters.items()},
        "labels": classifier.labels,
        "multi_label": classifier.multi_label,
        "vocabulary": list(classifier.vocabulary),
        "analyzer": classifier.analyzer.to_json(),
        "about": classifier.about,
        "estimators": own,
    }
    save_arrays(path, KIND, header, arrays)


def load_classifier(path: str | os.PathLike[str]) -> TextClassifier:
    """Read the classifier of a file.

    Parameters
    ----------
    path : a file that :func:`save_classifier` wrote

    Returns
    -------
    TextClassifier

    Raises
    ------
    InputError
        Where the file is none, or its parts do not fit together.
    """
    return load_model(path, KIND, _restored, "Train and save it again.")


def _restored(header: Header, arrays: Arrays) -> TextClassifier:
    if header["model"] not in MODELS:
        raise ValueError(f"no model {header['model']!r}")
    model = MODELS[header["model"]]
    labels, vocabulary = _texts(header, "labels"), _texts(header, "vocabulary")
    multi_label = bool(header["multi_label"])
    given = header["parameters"]
    if not all(value is None or isinstance(value, str | bool | int | float) for value in given.values()):
        raise ValueError("a setting is neither text nor a number")
    parameters = model.parameters(given)
    idf = _shaped(arrays["idf"], (len(vocabulary),), "idf") if model.tfidf else None
    calibration = arrays["calibration"]
    _shaped(calibration, (len(labels) if multi_label and len(calibration) > 1 else 1, 2), "calibration")
    if not (calibration[:, 0] > 0).all():
        raise ValueError("a factor of the calibration is not positive")
    estimators = []
    for number in range(len(labels) if multi_label else 1):
        prefix = f"{number}."
        parts = {name.removeprefix(prefix): value for name, value in arrays.items() if name.startswith(prefix)}
        classes = np.array([False, True]) if multi_label else np.array(labels, dtype=str)
        own = None if model.state else header["estimators"][number]
        estimators.append(_estimator(model, parameters, parts, classes, len(vocabulary), own))
    about = header["about"] if isinstance(header["about"], dict) else {}
    return TextClassifier(
        model=model,
        parameters=parameters,
        labels=labels,
        vocabulary=vocabulary,
        analyzer=AnalyzerSpec.from_json(header["analyzer"]),
        estimators=estimators,
        multi_label=multi_label,
        idf=idf,
        calibration=calibration,
        about=about,
    )


def _estimator(
    model: ClassifierModel,
    parameters: dict[str, Any],
    parts: Mapping[str, np.ndarray],
    classes: np.ndarray,
    terms: int,
    own: dict[str, Any] | None,
) -> Any:
    """A fitted estimator from its arrays."""
    if own is not None:
        made = model.estimator.from_arrays(own, dict(parts))
        if made.n_features_in_ != terms or made.classes_.tolist() != classes.tolist():
            raise ValueError("its words or labels are not those of the header")
        return made
    estimator = model.make(parameters)
    sizes = {"classes": len(classes), "rows": 1 if len(classes) == 2 else len(classes), "terms": terms}
    for name, layout in model.state.items():
        value = _shaped(parts[name], tuple(sizes[side] for side in layout.split(" x ")), name)
        # A term's values side by side, as the scoring loops want them.
        setattr(estimator, name, np.asfortranarray(value) if layout == "classes x terms" else value)
    estimator.classes_ = classes
    estimator.n_features_in_ = terms
    return estimator


def _shaped(value: np.ndarray, shape: tuple[int, ...], name: str) -> np.ndarray:
    if value.shape != shape or value.dtype != np.float64:
        raise ValueError(f"{name} has shape {value.shape} and type {value.dtype}, expected {shape} and float64")
    if np.isnan(value).any():
        raise ValueError(f"{name} has values that are not numbers")
    return value


def _texts(header: Mapping[str, Any], name: str) -> list[str]:
    values = header[name]
    if not isinstance(values, list) or not values or not all(isinstance(value, str) for value in values):
        raise ValueError(f"{name} must be a list of texts")
    if len(set(values)) != len(values):
        raise ValueError(f"{name} has one text twice")
    return values


def _text(value: Any) -> Any:
    return "inf" if isinstance(value, float) and value == inf else value  # JSON has no infinity
