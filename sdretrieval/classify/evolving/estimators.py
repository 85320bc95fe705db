"""SSL, SSL-naive, SSL-E online and offline, in scikit-learn's manner.

All learn from frames: ``fit(X, y, times=…)`` goes through all of them, ``partial_fit(X, y)`` takes the next one.
A document without a label has None, NaN, '' or the value of ``unlabelled`` (-1, as in scikit-learn) in y.

One function per class, against the rest: ±1 on labelled documents, squared loss. Where the classes are not given
beforehand, one more function is carried along, that of *a class nobody has seen yet*: -1 on every labelled document so
far. A label that turns up later starts from it, and so has exactly the function it would have had, had it been
announced at the start.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Hashable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_matrix, issparse, vstack
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import validate_data

from sdretrieval.classify.evolving.frames import frame_names, in_order
from sdretrieval.classify.evolving.functions import Expansion, KernelFunction, LinearFunction
from sdretrieval.classify.evolving.graph import laplacian, neighbour_graph
from sdretrieval.classify.evolving.history import FrameRecord
from sdretrieval.classify.evolving.solver import (
    DenseKernel,
    KernelMatrix,
    LinearKernel,
    RandomWalkKernel,
    joined,
    project,
    solve,
)
from sdretrieval.errors import ParameterError
from sdretrieval.progress import progress

Floats = NDArray[np.float64]
Function = LinearFunction | Expansion
MOST_DENSE = 20_000  # documents whose n x n kernel matrix is still made


class FrameClassifier(ClassifierMixin, BaseEstimator):
    """What the four have in common. See :class:`SSLE` for the parameters."""

    def __init__(
        self,
        *,
        gamma_A: float = 0.01,
        gamma_I: float = 100.0,
        neighbours: int = 10,
        sigma: float | str = "median",
        kernel: str = "linear",
        gamma: float = 1.0,
        frame: str = "month",
        classes: Sequence[Hashable] | None = None,
        unlabelled: Any = -1,
        remember: int | None = None,
        solver: str = "auto",
        tol: float = 1e-10,
    ) -> None:
        self.gamma_A = gamma_A
        self.gamma_I = gamma_I
        self.neighbours = neighbours
        self.sigma = sigma
        self.kernel = kernel
        self.gamma = gamma
        self.frame = frame
        self.classes = classes
        self.unlabelled = unlabelled
        self.remember = remember
        self.solver = solver
        self.tol = tol

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags

    # -- frames ----------------------------------------------------

    def fit(
        self, X: Any, y: ArrayLike, times: ArrayLike | None = None, frames: ArrayLike | None = None
    ) -> FrameClassifier:
        """From the beginning, through all frames in order: by ``frames`` (any names that sort), else by ``times``
        (ms since 1970 UTC) in bins of ``frame``, else all documents are one frame. Undated documents are left out."""
        self._reset()
        X, y = self._validated(X, y, reset=True, least=1)
        names = self._names(X.shape[0], times, frames)
        groups = in_order(names)
        if not groups:
            raise ParameterError("no document has a date, so there is no frame", remedy="Check the times.")
        if self.kernel == "precomputed" and len(groups) > 1:
            raise ParameterError(
                "a precomputed kernel over several frames comes frame by frame",
                remedy="Call partial_fit(K_t, y, cross=K_(t,t-1)) for each frame, or use SSLEOffline.",
            )
        for name, rows in progress(groups, label="frames", unit="frames"):
            self._step(X[rows], self._codes(y[rows]), _plain(name), None)
        return self

    def partial_fit(
        self, X: Any, y: ArrayLike, classes: ArrayLike | None = None, *, frame: Any = None,
        cross: ArrayLike | None = None,
    ) -> FrameClassifier:  # fmt: skip
        """The next frame, whenever it comes. ``cross``: K_{t,t-1}, where the kernel is precomputed.

        ``classes``, as in scikit-learn: announces labels that later frames will have; it may be left out.

        A frame without documents leaves the classifier as it is. One without labels, or with labels of one class, is
        solved like any other: history and neighbours speak where labels do not (SSL, without history, then answers 0).
        """
        new = not hasattr(self, "frames_")
        if new:
            self._reset()
        X, y = self._validated(X, y, reset=new, least=0)
        if classes is not None:
            self._codes(np.asarray(classes))
        name = f"{len(self.frames_) + 1:04d}" if frame is None else _plain(frame)
        self._step(X, self._codes(y), name, None if cross is None else np.asarray(cross, dtype=np.float64))
        return self

    def _reset(self) -> None:
        for name, value in (("gamma_A", self.gamma_A), ("gamma_I", self.gamma_I)):
            if not np.isfinite(value) or value < 0 or (value == 0 and name == "gamma_A"):
                wanted = "positive" if name == "gamma_A" else "zero or positive"
                raise ParameterError(f"{name} must be {wanted} and finite, got {value}")
        if self.remember is not None and self.remember < 1:
            raise ParameterError(f"remember must be 1 or more, or None for all, got {self.remember}")
        self._kernel = KernelFunction(self.kernel, self.gamma)
        self._seen: list = [] if self.classes is None else list(dict.fromkeys(self.classes))
        self.frames_: list[FrameRecord] = []
        self._functions: list[tuple[Any, int, Function]] = []  # (frame, classes known then, function)

    def _validated(self, X: Any, y: ArrayLike, *, reset: bool, least: int) -> tuple[Any, NDArray]:
        wide = self.kernel == "precomputed" and hasattr(self, "n_features_in_")  # its width is the frame's size
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=reset or wide, ensure_min_samples=least)
        if y is None:
            raise ValueError(
                f"requires y to be passed, but the target y is None: {type(self).__name__} needs a label or a mark "
                "for 'unlabelled' for every document"
            )
        given = y if isinstance(y, np.ndarray) else np.array(y, dtype=object)
        if given.ndim == 2 and given.shape[1] == 1:
            from sklearn.exceptions import DataConversionWarning

            warnings.warn("A column-vector y was passed when a 1d array was expected.", DataConversionWarning)
            given = given.ravel()
        if given.ndim != 1 or len(given) != X.shape[0]:
            raise ParameterError(f"{X.shape[0]} documents but labels of shape {given.shape}")
        if self.kernel == "precomputed" and X.shape[0] != X.shape[1]:
            raise ParameterError(f"a precomputed kernel matrix must be square, got {X.shape[0]} x {X.shape[1]}")
        if self.kernel == "linear" and not issparse(X):
            X = csr_matrix(X)
        return X, given

    def _names(self, n: int, times: ArrayLike | None, frames: ArrayLike | None) -> NDArray:
        if frames is not None:
            names = np.asarray(frames)
        elif times is not None:
            names = frame_names(times, self.frame)
        else:
            names = np.zeros(n, dtype=np.int64)
        if names.shape != (n,):
            raise ParameterError(f"{n} documents but {names.shape} frames or times", remedy="Give one per document.")
        return names

    # -- labels ----------------------------------------------------

    def _codes(self, y: NDArray) -> NDArray[np.int64]:
        """Number of each document's class in ``_seen``, -1 for unlabelled; new labels are taken up if they may be."""
        if y.dtype.kind == "f" and (y[np.isfinite(y)] != np.floor(y[np.isfinite(y)])).any():
            raise ValueError(f"Unknown label type: continuous. {type(self).__name__} wants classes as labels")
        number = {label: i for i, label in enumerate(self._seen)}
        codes = np.full(len(y), -1, dtype=np.int64)
        fresh = []
        for i, label in enumerate(y.tolist()):
            if label is None or label == "" or label != label or _same(label, self.unlabelled):
                continue
            if isinstance(label, float) and np.isinf(label):
                raise ValueError("Input y contains infinity or a value too large for a label")
            if label not in number:
                if self.classes is not None:
                    known = ", ".join(map(repr, self._seen[:10]))
                    raise ParameterError(
                        f"label {label!r} is none of the classes given: {known}",
                        remedy="Add it to classes, or leave classes out to take labels as they come.",
                    )
                number[label] = len(number)
                fresh.append(label)
            codes[i] = number[label]
        if len({isinstance(label, str) for label in number}) > 1:
            raise ParameterError(f"labels are partly text, partly numbers: {list(number)[:5]!r}")
        # In sorted order among themselves, so that the order of a frame's documents changes nothing.
        start = len(self._seen)
        self._seen += sorted(fresh)
        renumber = {number[label]: start + i for i, label in enumerate(sorted(fresh))}
        for row in np.flatnonzero(codes >= start):
            codes[row] = renumber[int(codes[row])]
        return codes

    @property
    def _open(self) -> bool:
        return self.classes is None

    @property
    def classes_(self) -> NDArray:
        """The labels seen so far (or given), sorted."""
        if not hasattr(self, "_seen"):
            raise AttributeError("classes_")
        return np.array(sorted(self._seen)) if self._seen else np.zeros(0)

    def _targets(self, codes: NDArray[np.int64]) -> Floats:
        """±1 for labelled documents, 0 for others; the last column is that of the class nobody has seen."""
        columns = len(self._seen) + (1 if self._open else 0)
        labelled = codes >= 0
        Y = np.zeros((len(codes), columns))
        Y[labelled] = -1.0
        Y[np.flatnonzero(labelled), codes[labelled]] = 1.0
        return Y

    def _with_all_classes(self, function: Function, known: int) -> Function:
        """A function of when ``known`` classes were known, with a column for each class of now."""
        now = len(self._seen)
        if not self._open or known == now:
            return function
        return function.with_columns([*range(known), *[known] * (now - known), known], [1.0] * (now + 1))

    # -- one frame ----------------------------------------------------

    def _step(self, X: Any, codes: NDArray[np.int64], name: Any, cross: Floats | None) -> None:
        if X.shape[0] == 0:
            self.frames_.append(FrameRecord(str(name), 0, 0, 0, 0.0, 0.0, 0, "no documents: the classifier stays"))
            return
        kernel, L = self._prepared(X)
        previous = self._previous()
        function, values, iterations = self._fitted(X, codes, kernel, L, previous, cross)
        self._record(str(name), codes, L, values, function, previous, cross, iterations)
        self._functions.append((name, len(self._seen), function))
        if self.remember is not None:
            del self._functions[: -self.remember]

    def _prepared(self, X: Any) -> tuple[KernelMatrix, csr_matrix]:
        W = neighbour_graph(X, neighbours=self.neighbours, sigma=self.sigma, precomputed=self.kernel == "precomputed")
        return self._matrix(X), laplacian(W)

    def _matrix(self, X: Any) -> KernelMatrix:
        if self.kernel == "linear":
            return LinearKernel(X)
        if X.shape[0] > MOST_DENSE:
            raise ParameterError(
                f"{X.shape[0]} documents at once are too many for the {self.kernel} kernel's matrix",
                remedy="Use shorter frames, or the linear kernel.",
            )
        return DenseKernel(np.asarray(X) if self.kernel == "precomputed" else self._kernel.between(X, X))

    def _previous(self) -> Function | None:
        """f_{t-1}, for the temporal cost and, in SSL-E, for what it is named after."""
        if not self._functions:
            return None
        _, known, function = self._functions[-1]
        return self._with_all_classes(function, known)

    def _fitted(
        self, X: Any, codes: NDArray[np.int64], kernel: KernelMatrix, L: csr_matrix, previous: Function | None,
        cross: Floats | None,
    ) -> tuple[Function, Floats, int]:  # fmt: skip
        """SSL: (1) with the squared loss, nothing carried over."""
        answer = solve(
            kernel, L * (self.gamma_I / len(codes) ** 2), codes >= 0, self._targets(codes),
            gamma_A=self.gamma_A, solver=self.solver, tol=self.tol,
        )  # fmt: skip
        if not (codes >= 0).any():
            warnings.warn("a frame without labels tells SSL nothing: its classifier is zero")
        return self._function(X, answer.beta), answer.values, answer.iterations

    def _function(self, X: Any, alpha: Floats) -> Function:
        if self.kernel == "linear":
            return LinearFunction(np.asarray(X.T @ alpha))
        return Expansion(self._kernel, ((X, alpha),))

    def _record(
        self, name: str, codes: NDArray[np.int64], L: csr_matrix, values: Floats, function: Function,
        previous: Function | None, cross: Floats | None, iterations: int,
    ) -> None:  # fmt: skip
        k = len(self._seen)
        columns = [k - 1] if k <= 2 and k > 0 else list(range(k))  # two classes: one function and its mirror image
        n = len(codes)
        spatial = np.einsum("ij,ij->j", values, L @ values) / n**2
        if previous is None:
            moved = function.norms()
        elif isinstance(function, Expansion):
            assert isinstance(previous, Expansion)
            if self.kernel == "precomputed" and cross is None and function.blocks[-1][0] is not previous.blocks[-1][0]:
                moved = np.full(values.shape[1], np.nan)
            else:
                moved = function.distances(previous, cross)
        else:
            moved = function.distances(previous)  # type: ignore[arg-type]
        present = np.unique(codes[codes >= 0])
        note = "" if len(present) > 1 else "no labels" if len(present) == 0 else "labels of one class"
        self.frames_.append(
            FrameRecord(
                name, n, int((codes >= 0).sum()), len(present), float(spatial[columns].sum()),
                float(moved[columns].sum()), iterations, note,
            )
        )  # fmt: skip

    # -- predicting ----------------------------------------------------

    def decision_function(self, X: Any, times: ArrayLike | None = None, frames: ArrayLike | None = None) -> Floats:
        """f(x) for each class; for two classes that of the second alone.

        By the latest classifier, or where times or frames are given by that of the frame each document falls in: of
        the last frame not after it (documents before the first frame get the first).
        """
        X = self._checked(X)
        if not self._seen:
            raise ParameterError("no label has been seen in any frame yet", remedy="Label some documents.")
        if not self._functions:  # classes were given, and all frames so far were empty
            scores = np.zeros((X.shape[0], len(self._seen)))
        elif times is None and frames is None:
            scores = self._scores(X, len(self._functions) - 1)
        else:
            names = self._names(X.shape[0], times, frames)
            which = self._latest(names)
            scores = np.empty((X.shape[0], len(self._seen)))
            for number in np.unique(which):
                rows = np.flatnonzero(which == number)
                scores[rows] = self._scores(X[rows], int(number))
        scores = scores[:, np.argsort(np.array(self._seen), kind="stable")]
        return scores[:, 1] if len(self._seen) == 2 else scores

    def _latest(self, names: NDArray) -> NDArray[np.intp]:
        """For each frame asked for, the last classifier of a frame not after it; numbers compare as numbers."""
        known = [name for name, _, _ in self._functions]
        wanted, which = np.unique(names, return_inverse=True)
        as_text = any(isinstance(name, str) for name in [*known, *wanted.tolist()])
        kept = [str(name) for name in known] if as_text else known
        numbers = np.empty(len(wanted), dtype=np.intp)
        for i, name in enumerate(map(str, wanted.tolist()) if as_text else wanted.tolist()):
            upto = [j for j, one in enumerate(kept) if one <= name]
            numbers[i] = len(kept) - 1 if name == "" else upto[-1] if upto else 0
        return numbers[which]

    def _checked(self, X: Any) -> Any:
        if not hasattr(self, "frames_"):
            raise NotFittedError(f"This {type(self).__name__} instance is not fitted yet: call fit or partial_fit.")
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        return csr_matrix(X) if self.kernel == "linear" and not issparse(X) else X

    def _scores(self, X: Any, number: int) -> Floats:
        """By the classifier of one frame, a column for each class in the order they were seen."""
        _, known, function = self._functions[number]
        return self._with_all_classes(function, known).values(X)[:, : len(self._seen)]

    def predict(self, X: Any, times: ArrayLike | None = None, frames: ArrayLike | None = None) -> NDArray:
        scores = self.decision_function(X, times, frames)
        classes = self.classes_
        if scores.ndim == 1:
            return classes[(scores > 0).astype(int)]
        return classes[scores.argmax(axis=1)]

    def score(
        self, X: Any, y: ArrayLike, times: ArrayLike | None = None, frames: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> float:  # fmt: skip
        """Mean accuracy."""
        return float(np.average(self.predict(X, times, frames) == np.asarray(y), weights=sample_weight))  # type: ignore[arg-type]

    def widen(self, n_features: int) -> None:
        """From now on expect more features; those so far stay the first. For vocabularies that grow."""
        so_far = getattr(self, "n_features_in_", 0)
        if n_features < so_far:
            raise ParameterError(f"features can only be added: there are {so_far}, got {n_features}")
        self._functions = [(name, known, function.widened(n_features)) for name, known, function in self._functions]
        self.n_features_in_ = n_features

    # -- saving ----------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """All that is needed to go on with the next frame; of the classifiers the latest."""
        from sdretrieval.classify.evolving.state import save

        save(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Any:
        from sdretrieval.classify.evolving.state import load

        return load(path, cls)


def _plain(name: Any) -> Any:
    """A frame's name as a number of Python's, or as text."""
    name = name.item() if isinstance(name, np.generic) else name
    return name if isinstance(name, int | float) else str(name)


def _same(label: Any, mark: Any) -> bool:
    """-1 marks the unlabelled among numbers; the text '-1' is a label like any other."""
    return mark is not None and isinstance(label, str) == isinstance(mark, str) and label == mark


class SSL(FrameClassifier):
    """Manifold regularisation (1) with the squared loss, on each frame by itself.

    Parameters: those of :class:`SSLE`, without ``representer``. There γ_A weighs ‖f_t‖²_K.
    """


class SSLNaive(FrameClassifier):
    """SSL on the current frame and the one before it, as if they were one."""

    _last: tuple[Any, NDArray[np.int64]] | None = None

    def _step(self, X: Any, codes: NDArray[np.int64], name: Any, cross: Floats | None) -> None:
        if self.kernel == "precomputed":
            raise ParameterError("SSLNaive has no precomputed kernel: it puts two frames together")
        here: tuple[Any, NDArray[np.int64]] = (X, codes)
        before = self._last
        if X.shape[0] and before is not None:
            stack = vstack if issparse(X) else np.vstack
            X, codes = stack([before[0], X]), np.concatenate([before[1], codes])
            X = csr_matrix(X) if issparse(X) else X
        super()._step(X, codes, name, cross)
        if here[0].shape[0]:
            self._last = here

    def _reset(self) -> None:
        super()._reset()
        self._last = None

    def widen(self, n_features: int) -> None:
        from sdretrieval.classify.evolving.functions import widen

        super().widen(n_features)
        if self._last is not None:
            self._last = (widen(self._last[0], n_features), self._last[1])


class SSLE(FrameClassifier):
    """SSL-E online: f_t minimises (12), the loss on the labels of frame t, γ_I ‖f_t‖²_I, and γ_A ‖f_t - f_{t-1}‖²_K.

    Parameters
    ----------
    gamma_A, gamma_I : γ_A > 0 and γ_I >= 0. In the first frame f_0 = 0. Note the 1/n² of (2): for frames of some
        hundred documents γ_I must be in the thousands before neighbours are heard.
    representer : ``"frame"`` keeps f_t in the span of frame t's documents, (14) and (18), as the paper does: what the
        classifier knew of words that this month does not use is forgotten. ``"history"`` is the minimiser of (12)
        itself, (13): with the linear kernel it costs no more, indeed less, and forgets nothing.
    neighbours, sigma : of the graph, see :mod:`~sdretrieval.classify.evolving.graph`.
    kernel, gamma : ``"linear"``, ``"rbf"`` with exp(-gamma ‖x - x'‖²), or ``"precomputed"``.
    frame : what a frame is in ``fit(…, times=…)``: year, month, week, day, hour, or a length of time.
    classes : where all are known beforehand; a label outside them is then an error, else it is a new class.
    unlabelled : in y, besides None, NaN and ''.
    remember : how many frames' classifiers are kept to predict documents of the past by (None: all).
    solver, tol : ``"cg"``, ``"direct"`` or ``"auto"``; the bound on the error of f_t in the kernel's norm.

    Attributes: ``classes_``, ``frames_`` (a :class:`~sdretrieval.classify.evolving.history.FrameRecord` each).

    >>> X = [[1.0, 0.1], [0.9, 0.2], [0.1, 1.0], [0.2, 0.9]]
    >>> model = SSLE(neighbours=1).partial_fit(X, ["a", None, "b", None])
    >>> model.predict(X).tolist()
    ['a', 'a', 'b', 'b']
    >>> model.partial_fit(X, [None] * 4).predict([[3.0, 1.0]]).tolist()  # nothing labelled: history speaks
    ['a']
    """

    def __init__(
        self,
        *,
        gamma_A: float = 0.01,
        gamma_I: float = 100.0,
        representer: str = "frame",
        neighbours: int = 10,
        sigma: float | str = "median",
        kernel: str = "linear",
        gamma: float = 1.0,
        frame: str = "month",
        classes: Sequence[Hashable] | None = None,
        unlabelled: Any = -1,
        remember: int | None = None,
        solver: str = "auto",
        tol: float = 1e-10,
    ) -> None:
        super().__init__(
            gamma_A=gamma_A, gamma_I=gamma_I, neighbours=neighbours, sigma=sigma, kernel=kernel, gamma=gamma,
            frame=frame, classes=classes, unlabelled=unlabelled, remember=remember, solver=solver, tol=tol,
        )  # fmt: skip
        self.representer = representer

    def _reset(self) -> None:
        super()._reset()
        if self.representer not in ("frame", "history"):
            raise ParameterError(f"representer must be 'frame' or 'history', got {self.representer!r}")
        if self.representer == "history" and self.kernel == "precomputed":
            raise ParameterError("a precomputed kernel knows only the last frame: representer must be 'frame'")

    def _fitted(
        self, X: Any, codes: NDArray[np.int64], kernel: KernelMatrix, L: csr_matrix, previous: Function | None,
        cross: Floats | None,
    ) -> tuple[Function, Floats, int]:  # fmt: skip
        prior = None if previous is None else self._on_frame(previous, X, cross)
        answer = solve(
            kernel, L * (self.gamma_I / len(codes) ** 2), codes >= 0, self._targets(codes), prior,
            gamma_A=self.gamma_A, solver=self.solver, tol=self.tol,
        )  # fmt: skip
        if previous is None or prior is None:
            return self._function(X, answer.beta), answer.values, answer.iterations
        if self.representer == "frame":  # α of (18)
            alpha = answer.beta + project(kernel, prior, solver=self.solver)
            return self._function(X, alpha), answer.values, answer.iterations
        if isinstance(previous, LinearFunction):
            return LinearFunction(previous.coef + X.T @ answer.beta), answer.values, answer.iterations
        return Expansion(self._kernel, (*previous.blocks, (X, answer.beta))), answer.values, answer.iterations

    def _on_frame(self, previous: Function, X: Any, cross: Floats | None) -> Floats:
        """f_{t-1} on the documents of frame t: K_{t,t-1} α_{t-1}."""
        if self.kernel != "precomputed":
            return previous.values(X)
        assert isinstance(previous, Expansion)
        wanted = (X.shape[0], previous.blocks[-1][1].shape[0])
        if cross is None or cross.shape != wanted:
            got = "none" if cross is None else f"one of shape {cross.shape}"
            raise ParameterError(
                f"a precomputed kernel needs K_(t,t-1), {wanted[0]} x {wanted[1]}, to go on; got {got}",
                remedy="Pass it as cross=.",
            )
        return cross @ previous.blocks[-1][1]


class SSLEOffline(FrameClassifier):
    """SSL-E offline (6): the classifiers of all frames at once, so that later frames inform earlier ones too.

    Parameters: those of :class:`SSLE`, without ``representer``: (7) spans all frames. No ``partial_fit``.
    """

    def fit(self, X: Any, y: ArrayLike, times: ArrayLike | None = None, frames: ArrayLike | None = None) -> SSLEOffline:
        self._reset()
        X, y = self._validated(X, y, reset=True, least=1)
        groups = in_order(self._names(X.shape[0], times, frames))
        if not groups:
            raise ParameterError("no document has a date, so there is no frame", remedy="Check the times.")
        order = np.concatenate([rows for _, rows in groups])
        sizes = [len(rows) for _, rows in groups]
        codes = self._codes(y)[order]
        precomputed = self.kernel == "precomputed"
        total = X.shape[0]
        X = X[np.ix_(order, order)] if precomputed else X[order]
        bounds = np.concatenate([[0], np.cumsum(sizes)])
        spans = [slice(a, b) for a, b in pairwise(bounds)]
        graphs = []
        for span in progress(spans, label="graphs", unit="frames"):
            part = X[span, span] if precomputed else X[span]
            W = neighbour_graph(part, neighbours=self.neighbours, sigma=self.sigma, precomputed=precomputed)
            graphs.append(laplacian(W))
        smooth = joined([L * (self.gamma_I / n**2) for L, n in zip(graphs, sizes, strict=True)])
        if self.kernel == "linear":
            kernel = RandomWalkKernel(X, sizes)
        else:
            kernel = RandomWalkKernel(self._matrix(X).dense(), sizes, precomputed=True)
        answer = solve(
            kernel, smooth, codes >= 0, self._targets(codes), gamma_A=self.gamma_A, solver=self.solver, tol=self.tol
        )
        functions = self._all_functions(kernel, X, answer.beta, order, total)
        for number, ((name, _), span) in enumerate(zip(groups, spans, strict=True)):
            previous = functions[number - 1] if number else None
            self._record(
                str(name), codes[span], graphs[number], answer.values[span], functions[number], previous, None,
                answer.iterations,
            )  # fmt: skip
            self._functions.append((_plain(name), len(self._seen), functions[number]))
        return self

    def _all_functions(
        self, kernel: RandomWalkKernel, X: Any, beta: Floats, order: NDArray[np.intp], total: int
    ) -> list[Function]:
        """f_t = Σ_s min(s, t) Σ_i β_is K(·, x_is)."""
        frames = range(len(kernel.sizes))
        if self.kernel == "linear":
            functions: list[Function] = []
            for weights in kernel.weights(beta):
                coef = np.zeros((X.shape[1], beta.shape[1]))
                coef[kernel.columns] = weights
                functions.append(LinearFunction(coef))
            return functions
        expansions = [np.minimum(kernel.frame + 1.0, t + 1.0)[:, None] * beta for t in frames]
        if self.kernel == "precomputed":  # predict is given K(new, training documents) in the order of fit
            back = np.zeros(total, dtype=np.intp)
            back[order] = np.arange(len(order))
            left_out = np.ones(total, dtype=bool)
            left_out[order] = False
            expansions = [np.where(left_out[:, None], 0.0, alpha[back]) for alpha in expansions]
            X = X[np.ix_(back, back)]
        return [Expansion(self._kernel, ((X, alpha),)) for alpha in expansions]

    @property
    def partial_fit(self) -> Any:
        raise AttributeError("SSLEOffline learns all frames at once: call fit with all of them, or use SSLE")
