"""An evolving classifier on disk: what it needs to go on with the next frame. Plain arrays and JSON, no pickle."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from sdretrieval.core.errors import ParameterError
from sdretrieval.core.saved_arrays import Arrays, Header, get_matrix, put_matrix
from sdretrieval.learn.evolving.frames import FrameRecord
from sdretrieval.learn.evolving.functions import Expansion, Function, LinearFunction

if TYPE_CHECKING:
    from sdretrieval.learn.evolving.frame_classifier import FrameClassifier

KIND = "evolving classifier"


def to_arrays(model: FrameClassifier) -> tuple[Header, Arrays]:
    """A JSON header and arrays, from which :func:`from_arrays` makes the classifier again."""
    if not model.started:
        raise ParameterError("a classifier that has seen no frame cannot be saved", remedy="Call fit or partial_fit.")
    header: Header = {
        "method": type(model).__name__,
        "parameters": {name: _plain(value) for name, value in model.get_params(deep=False).items()},
        "labels": [_plain(label) for label in model.seen_],
        "features": int(model.n_features_in_),
        "frames": [asdict(record) for record in model.frames_],
    }
    arrays: Arrays = {}
    if model.functions_:
        name, known, function = model.functions_[-1]
        header["function"] = about = {"frame": name, "known": known}
        if isinstance(function, LinearFunction):
            arrays["coef"] = function.coef
        else:
            about["blocks"] = len(function.blocks)
            for i, (X, alpha) in enumerate(function.blocks):
                arrays[f"alpha{i}"] = alpha
                about[f"X{i}"] = put_matrix(arrays, f"X{i}", X)
    if model.last_ is not None:
        header["last"] = put_matrix(arrays, "last", model.last_[0])
        arrays["last.codes"] = model.last_[1]
    return header, arrays


def from_arrays(header: Header, arrays: Arrays, methods: Mapping[str, type[FrameClassifier]]) -> Any:
    """The classifier of :func:`to_arrays`, of one of the ``methods``; ValueError where parts do not fit together."""
    if header["method"] not in methods:
        raise ValueError(f"no method {header['method']!r}")
    model = methods[header["method"]](**header["parameters"])
    model.start()
    model.seen_ = list(header["labels"])
    for labels in (model.seen_, list(header["parameters"].get("classes") or ())):
        if not any(all(isinstance(label, kind) for label in labels) for kind in (str, (int, float))):
            raise ValueError("labels are not all texts, or all numbers")
    model.n_features_in_ = int(header["features"])
    model.frames_ = [FrameRecord(**record) for record in header["frames"]]
    if "function" in header:
        name, known = header["function"]["frame"], int(header["function"]["known"])
        if known > len(model.seen_):
            raise ValueError("more classes in the function than labels")
        function = _function(header["function"], arrays, model, model.columns(known))
        model.functions_ = [(name if isinstance(name, int | float) else str(name), known, function)]
    if "last" in header:
        X, codes = get_matrix(arrays, "last", header["last"]), arrays["last.codes"]
        if len(codes) != X.shape[0] or codes.max(initial=-1) >= len(model.seen_) or codes.min(initial=-1) < -1:
            raise ValueError("the last frame's labels do not fit it")
        model.last_ = (X, codes)
    return model


def _function(about: Mapping[str, Any], arrays: Arrays, model: FrameClassifier, columns: int) -> Function:
    if "coef" in arrays:
        return LinearFunction(_expected(arrays["coef"], (model.n_features_in_, columns)))
    blocks = []
    for i in range(int(about["blocks"])):
        X = get_matrix(arrays, f"X{i}", about[f"X{i}"])
        blocks.append((X, _expected(arrays[f"alpha{i}"], (X.shape[0], columns))))
    return Expansion(model.feature_kernel_, tuple(blocks))


def _expected(array: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    if array.shape != shape or array.dtype.kind != "f" or not np.isfinite(array).all():
        raise ValueError(f"finite numbers of shape {shape} expected, got {array.dtype} of shape {array.shape}")
    return array


def _plain(value: Any) -> Any:
    """As JSON has it: NumPy's numbers as Python's."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, list | tuple | np.ndarray):
        return [_plain(one) for one in value]
    return value
