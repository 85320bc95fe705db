"""An evolving classifier on disk: what it needs to go on with the next frame. Plain arrays and JSON, no pickle."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix, issparse

from sdretrieval.classify.evolving import estimators
from sdretrieval.classify.evolving.functions import Expansion, LinearFunction
from sdretrieval.classify.evolving.history import FrameRecord
from sdretrieval.errors import InputError, ParameterError, SdretrievalError
from sdretrieval.saved import load_arrays, save_arrays

KIND = "evolving classifier"
METHODS = ("SSL", "SSLNaive", "SSLE", "SSLEOffline")


def save(model: estimators.FrameClassifier, path: str | os.PathLike[str]) -> None:
    save_arrays(path, KIND, *to_arrays(model))


def to_arrays(model: estimators.FrameClassifier) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    if not hasattr(model, "frames_"):
        raise ParameterError("a classifier that has seen no frame cannot be saved", remedy="Call fit or partial_fit.")
    parameters = {name: _plain(value) for name, value in model.get_params(deep=False).items()}
    header: dict[str, Any] = {
        "method": type(model).__name__,
        "parameters": parameters,
        "labels": [_plain(label) for label in model._seen],
        "features": int(model.n_features_in_),
        "frames": [record.as_dict() for record in model.frames_],
    }
    arrays: dict[str, np.ndarray] = {}
    if model._functions:
        name, known, function = model._functions[-1]
        header["function"] = {"frame": name, "known": known}
        if isinstance(function, LinearFunction):
            arrays["coef"] = function.coef
        else:
            header["function"]["blocks"] = len(function.blocks)
            for i, (X, alpha) in enumerate(function.blocks):
                arrays[f"alpha{i}"] = alpha
                header["function"][f"X{i}"] = _put(arrays, f"X{i}", X)
    last = getattr(model, "_last", None)
    if last is not None:
        header["last"] = _put(arrays, "last", last[0])
        arrays["last.codes"] = last[1]
    return header, arrays


def load(path: str | os.PathLike[str], wanted: type | None = None) -> Any:
    """The classifier saved at ``path``; of the class ``wanted``, where that is one of the four."""
    header, arrays = load_arrays(path, KIND)
    try:
        model = from_arrays(header, arrays)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, SdretrievalError) as error:
        raise InputError(
            f"is no evolving classifier, or damaged ({error})", file=path, remedy="Save it again, or check the path."
        ) from None
    if wanted is not None and wanted is not estimators.FrameClassifier and type(model) is not wanted:
        raise InputError(f"holds a {type(model).__name__}, expected a {wanted.__name__}", file=path)
    return model


def from_arrays(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> Any:
    if header["method"] not in METHODS:
        raise ValueError(f"no method {header['method']!r}")
    model = getattr(estimators, header["method"])(**header["parameters"])
    model._reset()
    model._seen = list(header["labels"])
    model.n_features_in_ = int(header["features"])
    model.frames_ = [FrameRecord(**record) for record in header["frames"]]
    about = header.get("function")
    if about is not None:
        known = int(about["known"])
        columns = known + (1 if model._open else 0)
        function: LinearFunction | Expansion
        if "coef" in arrays:
            _expect(arrays["coef"], (model.n_features_in_, columns))
            function = LinearFunction(arrays["coef"])
        else:
            blocks = []
            for i in range(int(about["blocks"])):
                X, alpha = _get(arrays, f"X{i}", about[f"X{i}"]), arrays[f"alpha{i}"]
                _expect(alpha, (X.shape[0], columns))
                blocks.append((X, alpha))
            function = Expansion(model._kernel, tuple(blocks))
        if known > len(model._seen):
            raise ValueError("more classes in the function than labels")
        name = about["frame"]
        model._functions = [(name if isinstance(name, int | float) else str(name), known, function)]
    if "last" in header:
        X, codes = _get(arrays, "last", header["last"]), arrays["last.codes"]
        if len(codes) != X.shape[0] or codes.max(initial=-1) >= len(model._seen) or codes.min(initial=-1) < -1:
            raise ValueError("the last frame's labels do not fit it")
        model._last = (X, codes)
    return model


def _expect(array: np.ndarray, shape: tuple[int, ...]) -> None:
    if array.shape != shape or array.dtype.kind != "f" or not np.isfinite(array).all():
        raise ValueError(f"finite numbers of shape {shape} expected, got {array.dtype} of shape {array.shape}")


def _put(arrays: dict[str, np.ndarray], name: str, X: Any) -> list[int] | None:
    """The matrix into ``arrays``; its shape where it is sparse."""
    if not issparse(X):
        arrays[name] = np.asarray(X)
        return None
    arrays |= {f"{name}.data": X.data, f"{name}.indices": X.indices, f"{name}.indptr": X.indptr}
    return [int(size) for size in X.shape]


def _get(arrays: dict[str, np.ndarray], name: str, shape: list[int] | None) -> Any:
    if shape is None:
        X = arrays[name]
        if X.ndim != 2 or X.dtype.kind != "f":
            raise ValueError(f"array {name!r} is no matrix of numbers")
        return X
    parts = (arrays[f"{name}.data"], arrays[f"{name}.indices"], arrays[f"{name}.indptr"])
    X = csr_matrix(parts, shape=tuple(shape))
    X.check_format()
    return X


def _plain(value: Any) -> Any:
    """As JSON has it: NumPy's numbers as Python's."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, list | tuple | np.ndarray):
        return [_plain(one) for one in value]
    return value
