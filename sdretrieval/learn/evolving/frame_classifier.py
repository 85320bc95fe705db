"""What SSL, SSL-naive, SSL-E online and offline share: frames, labels, predictions, in scikit-learn's manner.

All learn from frames: ``fit(X, y, times=…)`` goes through all of them, ``partial_fit(X, y)`` takes the next one.
A document without a label has None, NaN, '' or the value of ``unlabelled`` (-1, as in scikit-learn) in y.

One function per class, against the rest: ±1 on labelled documents. Where the classes are not given
beforehand, one more function is carried along, that of *a class nobody has seen yet*: -1 on every labelled document so
far. A label that turns up later starts from it, and so has exactly the function it would have had, had it been
announced at the start.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_matrix, issparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from sdretrieval.core.errors import InputError, ParameterError, few
from sdretrieval.core.parameters import check, choice, count, parameter, positive
from sdretrieval.core.progress import progress
from sdretrieval.core.saved_arrays import load_model, save_arrays
from sdretrieval.learn.evolving import state
from sdretrieval.learn.evolving.frames import FrameRecord, best_classes, frame_names, in_order
from sdretrieval.learn.evolving.functions import KERNELS, Expansion, FeatureKernel, Function, LinearFunction
from sdretrieval.learn.evolving.graph import laplacian, neighbour_graph
from sdretrieval.learn.evolving.solver import SOLVERS, DenseGram, Floats, Gram, LinearGram, Solution, solve, solve_hinge

MOST_DENSE = 20_000  # documents whose n x n kernel matrix is still made


@dataclass(kw_only=True, repr=False, eq=False)
class FrameClassifier(ClassifierMixin, BaseEstimator):
    """Base of the four, and SSL itself. See :class:`~sdretrieval.learn.evolving.SSLE` for the parameters."""

    methods: ClassVar[dict[str, type[FrameClassifier]]] = {}  # the subclasses by name
    has_history: ClassVar[bool] = False  # a frame's classifier depends on the one before it

    gamma_A: float = positive(0.01, "γ_A, nearness to the previous classifier")
    gamma_I: float = parameter(100.0, "γ_I, agreement of neighbours, divided by n²", low=0.0)
    neighbours: int = count(10, "of each document in the graph")
    sigma: float | str = positive("median", "σ of the graph", kind="number", infinite=True, words=("median",))
    kernel: str = choice("linear", "of documents, not of times", KERNELS)
    gamma: float = positive(1.0, "of exp(-gamma ‖x - x'‖²)", infinite=True)
    frame: str = "month"
    classes: Sequence[Hashable] | None = None
    unlabelled: Any = -1
    remember: int | None = parameter(None, "frames whose classifiers are kept", kind="whole", low=1, words=("none",))
    loss: str = choice("squared", "on the labelled documents, V of (1)", ("squared", "squared-hinge"))
    solver: str = choice("auto", "of the linear systems", SOLVERS)
    tol: float = 1e-10

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        FrameClassifier.methods[cls.__name__] = cls

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags

    # -- frames ----------------------------------------------------

    def fit(
        self, X: Any, y: ArrayLike, times: ArrayLike | None = None, frames: ArrayLike | None = None
    ) -> FrameClassifier:
        """Learn from the beginning, through all frames in order.

        Parameters
        ----------
        X : documents x features, or the kernel matrix where the kernel is precomputed
        y : label of each document, or a mark that it has none
        times : of each document, ms since 1970 UTC, put in bins of ``frame``; undated documents are left out
        frames : the frame of each document instead, by any names that sort; without both all are one frame

        Returns
        -------
        self
        """
        X, y, groups = self._begin(X, y, times, frames)
        if self.kernel == "precomputed" and len(groups) > 1:
            raise ParameterError(
                "a precomputed kernel over several frames comes frame by frame",
                remedy="Call partial_fit(K_t, y, cross=K_(t,t-1)) for each frame, or use SSLEOffline.",
            )
        for name, rows in progress(groups, label="frames", unit="frames"):
            self._step(X[rows], self._codes(y[rows]), plain_name(name), None)
        return self

    def partial_fit(
        self,
        X: Any,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        *,
        frame: Any = None,
        cross: ArrayLike | None = None,
    ) -> FrameClassifier:
        """Learn from the next frame, whenever it comes.

        A frame without documents leaves the classifier as it is. One without labels, or with labels of one class, is
        solved like any other: history and neighbours speak where labels do not (SSL, without history, then answers 0).

        Parameters
        ----------
        X, y : as in :meth:`fit`
        classes : labels that later frames will have, as in scikit-learn; may be left out
        frame : its name (default: its number)
        cross : K_{t,t-1}, where the kernel is precomputed

        Returns
        -------
        self
        """
        new = not self.started
        if new:
            self.start()
        X, y = self._validated(X, y, reset=new, least=0)
        if classes is not None:
            self._codes(np.asarray(classes))
        name = f"{len(self.frames_) + 1:04d}" if frame is None else plain_name(frame)
        self._step(X, self._codes(y), name, None if cross is None else np.asarray(cross, dtype=np.float64))
        return self

    @property
    def started(self) -> bool:
        """Whether it has begun to learn."""
        return "frames_" in vars(self)

    def start(self) -> None:
        """Check the parameters and forget all frames."""
        check(self, type(self).__name__)
        self.feature_kernel_ = FeatureKernel(self.kernel, self.gamma)
        self.seen_: list = [] if self.classes is None else list(dict.fromkeys(self.classes))
        self.frames_: list[FrameRecord] = []
        self.functions_: list[tuple[Any, int, Function]] = []  # (frame, classes known then, function)
        self.last_: tuple[Any, NDArray[np.int64]] | None = None  # the last frame, where a method needs it again

    def _begin(
        self, X: Any, y: ArrayLike, times: ArrayLike | None, frames: ArrayLike | None
    ) -> tuple[Any, NDArray, list[tuple[Any, NDArray[np.intp]]]]:
        """X, y and the rows of each frame."""
        self.start()
        X, y = self._validated(X, y, reset=True, least=1)
        groups = in_order(self._names(X.shape[0], times, frames))
        if not groups:
            raise ParameterError("no document has a date, so there is no frame", remedy="Check the times.")
        return X, y, groups

    def _validated(self, X: Any, y: ArrayLike, *, reset: bool, least: int) -> tuple[Any, NDArray]:
        wide = self.kernel == "precomputed" and hasattr(self, "n_features_in_")  # its width is the frame's size
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=reset or wide, ensure_min_samples=least)
        if y is None:
            raise ValueError(
                f"requires y to be passed, but the target y is None: {type(self).__name__} needs a label or a mark "
                "for 'unlabelled' for every document"
            )
        given = column_or_1d(y if isinstance(y, np.ndarray) else np.array(y, dtype=object), warn=True)
        if len(given) != X.shape[0]:
            raise ParameterError(f"{X.shape[0]} documents but labels of shape {given.shape}")
        if self.kernel == "precomputed" and X.shape[0] != X.shape[1]:
            raise ParameterError(f"a precomputed kernel matrix must be square, got {X.shape[0]} x {X.shape[1]}")
        return self._sparse(X), given

    def _sparse(self, X: Any) -> Any:
        return csr_matrix(X) if self.kernel == "linear" and not issparse(X) else X

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
        """Number of each document's class in ``seen_``, -1 for unlabelled; new labels are taken up if they may be."""
        if y.dtype.kind == "f" and (y[np.isfinite(y)] != np.floor(y[np.isfinite(y)])).any():
            raise ValueError(f"Unknown label type: continuous. {type(self).__name__} wants classes as labels")
        given = [None if self._is_unlabelled(label) else label for label in y.tolist()]
        labels = [label for label in given if label is not None]
        if any(isinstance(label, float) and np.isinf(label) for label in labels):
            raise ValueError("Input y contains infinity or a value too large for a label")
        known = set(self.seen_)
        fresh = list(dict.fromkeys(label for label in labels if label not in known))
        if fresh and self.classes is not None:
            raise ParameterError(
                f"label {fresh[0]!r} is none of the classes given: {few(map(repr, self.seen_))}",
                remedy="Add it to classes, or leave classes out to take labels as they come.",
            )
        if len({isinstance(label, str) for label in [*self.seen_, *fresh]}) > 1:
            raise ParameterError(f"labels are partly text, partly numbers: {[*self.seen_, *fresh][:5]!r}")
        self.seen_ += sorted(fresh)  # so that the order of a frame's documents changes nothing
        number = {label: i for i, label in enumerate(self.seen_)}
        return np.array([-1 if label is None else number[label] for label in given], dtype=np.int64)

    def _is_unlabelled(self, label: Any) -> bool:
        """-1 marks the unlabelled among numbers; the text '-1' is a label like any other."""
        mark = self.unlabelled
        if label is None or label == "" or label != label:
            return True
        return mark is not None and isinstance(label, str) == isinstance(mark, str) and label == mark

    @property
    def classes_(self) -> NDArray:
        """The labels seen so far (or given), sorted."""
        if not self.started:
            raise AttributeError("classes_")
        return np.array(sorted(self.seen_)) if self.seen_ else np.zeros(0)

    def columns(self, known: int) -> int:
        """Functions carried where so many classes are known: one more where further classes may come."""
        return known + (1 if self.classes is None else 0)

    def _targets(self, codes: NDArray[np.int64]) -> Floats:
        """±1 for labelled documents, 0 for others; the last column is that of the class nobody has seen."""
        labelled = codes >= 0
        Y = np.zeros((len(codes), self.columns(len(self.seen_))))
        Y[labelled] = -1.0
        Y[np.flatnonzero(labelled), codes[labelled]] = 1.0
        return Y

    def _function_of(self, number: int) -> Function:
        """The classifier of one frame, with a column for each class of now."""
        _, known, function = self.functions_[number]
        now = len(self.seen_)
        if self.classes is not None or known == now:
            return function
        return function.with_columns([*range(known), *[known] * (now - known), known])

    # -- one frame ----------------------------------------------------

    def _step(self, X: Any, codes: NDArray[np.int64], name: Any, cross: Floats | None) -> None:
        if X.shape[0] == 0:
            self.frames_.append(FrameRecord(str(name), 0, 0, 0, 0.0, 0.0, 0, "no documents: the classifier stays"))
            return
        if not self.has_history and not (codes >= 0).any():
            warnings.warn("a frame without labels tells SSL nothing: its classifier is zero")
        gram, L = self._gram(X), self._laplacian(X)
        previous = self._function_of(-1) if self.functions_ else None
        prior = None if previous is None else self._prior(previous, X, cross)
        answer = self._solve(gram, L * (self.gamma_I / len(codes) ** 2), codes, prior)
        function = self._function(X, gram, answer, previous, prior)
        self._keep(name, codes, L, answer.values, function, previous, cross, answer.iterations)
        if self.remember is not None:
            del self.functions_[: -self.remember]

    def _laplacian(self, X: Any) -> csr_matrix:
        precomputed = self.kernel == "precomputed"
        return laplacian(neighbour_graph(X, neighbours=self.neighbours, sigma=self.sigma, precomputed=precomputed))

    def _gram(self, X: Any) -> Gram:
        if self.kernel == "linear":
            return LinearGram(X)
        if X.shape[0] > MOST_DENSE:
            raise ParameterError(
                f"{X.shape[0]} documents at once are too many for the {self.kernel} kernel's matrix",
                remedy="Use shorter frames, or the linear kernel.",
            )
        return DenseGram(np.asarray(X) if self.kernel == "precomputed" else self.feature_kernel_.between(X, X))

    def _solve(
        self, gram: Gram, smoothness: csr_matrix, codes: NDArray[np.int64], prior: Floats | None = None
    ) -> Solution:
        return (solve_hinge if self.loss == "squared-hinge" else solve)(
            gram,
            smoothness,
            codes >= 0,
            self._targets(codes),
            prior,
            gamma_A=self.gamma_A,
            solver=self.solver,
            tol=self.tol,
        )

    def _prior(self, previous: Function, X: Any, cross: Floats | None) -> Floats | None:
        """f_{t-1} on the documents of frame t; SSL carries nothing over."""
        return None

    def _function(
        self, X: Any, gram: Gram, answer: Solution, previous: Function | None, prior: Floats | None
    ) -> Function:
        """f_t from β."""
        return self._spanned(X, answer.beta)

    def _spanned(self, X: Any, alpha: Floats) -> Function:
        """Σ_i α_i K(·, x_i)."""
        if self.kernel == "linear":
            return LinearFunction(np.asarray(X.T @ alpha))
        return Expansion(self.feature_kernel_, ((X, alpha),))

    def _keep(
        self,
        name: Any,
        codes: NDArray[np.int64],
        L: csr_matrix,
        values: Floats,
        function: Function,
        previous: Function | None,
        cross: Floats | None,
        iterations: int,
    ) -> None:
        """A frame's classifier and what is to be said of it."""
        k, n = len(self.seen_), len(codes)
        columns = [k - 1] if k <= 2 and k > 0 else list(range(k))  # two classes: one function and its mirror image
        spatial = np.einsum("ij,ij->j", values, L @ values) / n**2
        moved = function.norms() if previous is None else function.distances(previous, cross)
        present = len(np.unique(codes[codes >= 0]))
        note = ("no labels", "labels of one class", "")[min(present, 2)]
        costs = float(spatial[columns].sum()), float(moved[columns].sum())
        self.frames_.append(FrameRecord(str(name), n, int((codes >= 0).sum()), present, *costs, iterations, note))
        self.functions_.append((name, k, function))

    # -- predicting ----------------------------------------------------

    def decision_function(self, X: Any, times: ArrayLike | None = None, frames: ArrayLike | None = None) -> Floats:
        """f(x) for each class; for two classes that of the second alone.

        Parameters
        ----------
        X : documents x features, or K(these, the last frame's documents) where the kernel is precomputed
        times, frames : as in :meth:`fit`: each document is scored by the classifier of the last frame not after its
            own (before the first frame by the first); without both by the latest classifier

        Returns
        -------
        array of n values, or of n x classes
        """
        check_is_fitted(self, "frames_")
        X = self._sparse(validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False))
        if not self.seen_:
            raise ParameterError("no label has been seen in any frame yet", remedy="Label some documents.")
        k = len(self.seen_)
        if not self.functions_:  # classes were given, and all frames so far were empty
            scores = np.zeros((X.shape[0], k))
        elif times is None and frames is None:
            scores = self._function_of(-1).values(X)[:, :k]
        else:
            which = self._latest(self._names(X.shape[0], times, frames))
            scores = np.empty((X.shape[0], k))
            for number in np.unique(which):
                rows = np.flatnonzero(which == number)
                scores[rows] = self._function_of(int(number)).values(X[rows])[:, :k]
        scores = scores[:, np.argsort(np.array(self.seen_), kind="stable")]
        return scores[:, 1] if k == 2 else scores

    def _latest(self, names: NDArray) -> NDArray[np.intp]:
        """For each frame asked for, the last classifier of a frame not after it; numbers compare as numbers."""
        known = [name for name, _, _ in self.functions_]
        wanted, which = np.unique(names, return_inverse=True)
        asked = wanted.tolist()
        if any(isinstance(name, str) for name in [*known, *asked]):
            known, asked = list(map(str, known)), list(map(str, asked))
        numbers = np.empty(len(asked), dtype=np.intp)
        for i, name in enumerate(asked):
            upto = [j for j, one in enumerate(known) if one <= name]
            numbers[i] = len(known) - 1 if name == "" else upto[-1] if upto else 0
        return numbers[which]

    def predict(self, X: Any, times: ArrayLike | None = None, frames: ArrayLike | None = None) -> NDArray:
        """The best class of each document; parameters as in :meth:`decision_function`."""
        scores = self.decision_function(X, times, frames)
        return best_classes(self.classes_, scores)

    def score(
        self,
        X: Any,
        y: ArrayLike,
        times: ArrayLike | None = None,
        frames: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        """Mean accuracy."""
        return float(np.average(self.predict(X, times, frames) == np.asarray(y), weights=sample_weight))  # type: ignore[arg-type]

    def widen(self, n_features: int) -> None:
        """From now on expect more features; those so far stay the first. For vocabularies that grow."""
        so_far = getattr(self, "n_features_in_", 0)
        if n_features < so_far:
            raise ParameterError(f"features can only be added: there are {so_far}, got {n_features}")
        self.functions_ = [(name, known, function.widened(n_features)) for name, known, function in self.functions_]
        self.n_features_in_ = n_features

    # -- saving ----------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """All that is needed to go on with the next frame; of the classifiers the latest."""
        save_arrays(path, state.KIND, *state.to_arrays(self))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Any:
        """The classifier that :meth:`save` wrote; InputError where the file holds something else."""
        model = load_model(path, state.KIND, lambda header, arrays: state.from_arrays(header, arrays, cls.methods))
        if not isinstance(model, cls):
            raise InputError(f"holds a {type(model).__name__}, expected a {cls.__name__}", file=path)
        return model


def plain_name(name: Any) -> Any:
    """A frame's name as a number of Python's, or as text."""
    name = name.item() if isinstance(name, np.generic) else name
    return name if isinstance(name, int | float) else str(name)
