"""Local logistic regression: p_t(y|x) by kernel-weighted conditional likelihood (Zhao, Lebanon & Zhao 2009, section 4).

At time t the weights η maximise (22), penalised:

    ℓ_t(η) = Σ_τ K_h(t - τ) Σ_j log p(y^(τ,j) | x^(τ,j); η)  -  ‖η‖₂² / 2C   or   - ‖η‖₁ / C

    K   a kernel in time (:mod:`sdretrieval.estimate.time.kernels`); online: strictly past data alone
    h   the bandwidth, in the unit of the times; h = ∞ is the global model, the same at all times
    C   as in scikit-learn: the inverse strength of the penalty

K_h is scaled to be 1 at its peak, so that h = ∞ *is* scikit-learn's logistic regression, and a datum at the very time
asked for counts as much as it does there. One model is fitted for each distinct time asked for (for each bin, where
there is a ``resolution``), when it is asked for.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_matrix, issparse
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_sample_weight,
    check_is_fitted,
    validate_data,
)  # scikit-learn's own check has no public name
from threadpoolctl import threadpool_limits

from sdretrieval.core.errors import ParameterError
from sdretrieval.core.parameters import check, choice, count, duration, parameter, positive
from sdretrieval.core.progress import progress
from sdretrieval.core.saved_arrays import (
    Arrays,
    Header,
    check_finite,
    check_indices,
    get_matrix,
    load_model,
    put_matrix,
    save_arrays,
)
from sdretrieval.core.timeline import known_times, middle_of_bin
from sdretrieval.estimate.time.bandwidth import candidate_bandwidths
from sdretrieval.estimate.time.kernels import Floats, Kernel, as_kernel, check_bandwidth
from sdretrieval.learn.evolving.solver import without_empty_columns

KIND = "local logistic regression"
_FAR_BELOW = 30.0  # logits under the lowest: the score of a class that has no datum within reach
_MOST_MODELS = 64  # kept from one call of predict to the next


@dataclass(frozen=True, eq=False)
class LocalModel:
    """The model of one instant: ``coef`` classes x features, as scikit-learn has it (one row for two classes).

    ``present`` are the classes that have data within reach; with one of them there is nothing to fit, and the weighted
    counts of the classes speak. ``weight`` is Σ K over the training data: how much the model rests on.
    """

    present: NDArray[np.intp]
    coef: Floats
    intercept: Floats
    weight: Floats  # by class
    n_iter: int = 1

    def scores(self, X: Any, n_classes: int) -> Floats:
        """Documents x classes, logits up to a constant per document."""
        n = X.shape[0]
        if len(self.present) == 0:
            return np.zeros((n, n_classes))
        if len(self.present) == 1:
            return np.tile(np.log(self.weight + 0.5), (n, 1))
        raw = np.asarray(X @ self.coef.T) + self.intercept
        if len(self.present) == 2:
            raw = np.column_stack([np.zeros(n), raw[:, 0]])
        if len(self.present) == n_classes:
            return raw
        full = np.repeat(raw.min(axis=1, keepdims=True) - _FAR_BELOW, n_classes, axis=1)
        full[:, self.present] = raw
        return full


@dataclass(kw_only=True, repr=False, eq=False)
class LocalLogisticRegression(ClassifierMixin, BaseEstimator):
    """Logistic regression whose weights follow the time.

    Without ``times`` all documents are simultaneous and this is scikit-learn's logistic regression; ``predict`` without
    times means *now*: the last training time, online just after it. Where nothing is within reach the kernel is
    widened to twice the distance of the nearest datum; before the first datum an online model knows nothing, and all
    classes are equally likely. Undated training documents are left out; undated ones to predict are taken as of now.

    Parameters
    ----------
    bandwidth : float or "auto"
        h, in the unit of the times; ``inf`` is the global model; ``"auto"`` is by cross-validation: online, each time
        is predicted from what precedes it; offline, a fold of the documents from the others.
    kernel, online
        The kernel in time, by name; online kernels see strictly past data.
    penalty : {"l2", "l1"}
    C : float or sequence of floats
        Inverse strength of the penalty; of several the best is chosen together with the bandwidth.
    resolution : float, optional
        Times within one bin of this width count as simultaneous (default: the times as they are). An online model
        leaves out the whole bin it predicts.
    bandwidths : sequence of floats, optional
        Candidates for ``"auto"`` (default: a geometric grid, and ∞).
    scoring : {"log_loss", "error"}
        What cross-validation minimises.
    folds, max_fits : int
        Of cross-validation; the latter bounds the models fitted per candidate.
    fit_intercept, class_weight, tol, max_iter, random_state
        As in scikit-learn's LogisticRegression.

    Examples
    --------
    >>> X, y = [[0.0], [1.0], [0.0], [1.0]], ["a", "b", "b", "a"]  # the meaning turns round at time 5
    >>> model = LocalLogisticRegression(bandwidth=2.0, C=10.0).fit(X, y, times=[1, 1, 9, 9])
    >>> model.predict([[1.0], [1.0]], times=[2, 8]).tolist()
    ['b', 'a']
    """

    bandwidth: float | str = parameter(
        "auto",
        "of the kernel: 30d, 12h, inf (global) or auto (by cross-validation)",
        kind="duration",
        low=0.0,
        infinite=True,
        words=("auto",),
    )
    kernel: str | Kernel = "tricube"
    online: bool = parameter(False, "use strictly past documents alone")
    penalty: str = choice("l2", "of the weights", ("l1", "l2"))
    C: float | Sequence[float] = 1.0
    resolution: float | None = duration(
        None, "times within this long count as simultaneous: 1d, 7d, none", words=("none",)
    )
    bandwidths: ArrayLike | None = None
    scoring: str = choice("log_loss", "what cross-validation minimises", ("log_loss", "error"))
    folds: int = parameter(5, "of cross-validation", low=2)
    max_fits: int = count(60, "models fitted per candidate", grid=())
    fit_intercept: bool = True
    class_weight: dict | str | None = None
    tol: float = positive(1e-5, "of scikit-learn's solver")
    max_iter: int = count(1000, "of scikit-learn's solver", grid=())
    random_state: int | None = 0

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    # -- fitting ----------------------------------------------------

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        times: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> LocalLogisticRegression:
        """Keep the data and choose bandwidth and C where they are to be chosen; models are fitted when asked for.

        Parameters
        ----------
        X : documents x features
        y : label of each document
        times, sample_weight : of each document, optional
        groups : of each document, optional
            Documents that tell of each other (a thread): cross-validation offline holds them out together.

        Returns
        -------
        self
        """
        self._check_parameters()
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=np.float64)
        check_classification_targets(y)
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        stamps = np.zeros(X.shape[0]) if times is None else self._snapped(times, X.shape[0])
        kept = np.flatnonzero(np.isfinite(stamps) & (weight > 0))
        if len(kept) == 0:
            raise ParameterError("no training document has a time and a weight", remedy="Check the times.")
        X, y = X[kept], np.asarray(y)[kept]
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ParameterError(
                f"{type(self).__name__} needs two classes or more; the data contains one class: {self.classes_[0]!r}",
                remedy="Check the labels.",
            )
        weight = weight[kept] * self._class_weights(codes, weight[kept])
        group = np.arange(len(stamps)) if groups is None else np.unique(np.asarray(groups), return_inverse=True)[1]
        if len(group) != len(stamps):
            raise ParameterError(f"{len(stamps)} documents but {len(group)} groups", remedy="Give one per document.")
        self._keep(X, codes, stamps[kept], weight, group[kept])
        self.kernel_ = as_kernel(self.kernel, online=self.online or None)
        self._choose()
        return self

    def _check_parameters(self) -> None:
        check(self, type(self).__name__)
        as_kernel(self.kernel)
        strengths = self._strengths()
        if len(strengths) == 0 or not all(np.isfinite(c) and c > 0 for c in strengths):
            raise ParameterError(f"C must be positive and finite, got {self.C!r}")

    def _strengths(self) -> list[float]:
        return [float(c) for c in np.atleast_1d(np.asarray(self.C, dtype=np.float64))]

    def _snapped(self, times: ArrayLike, n: int) -> Floats:
        stamps, dated = known_times(times)
        if len(stamps) != n:
            raise ParameterError(f"{n} documents but {len(stamps)} times", remedy="Give one time per document.")
        if self.resolution is not None:
            stamps = middle_of_bin(stamps, float(self.resolution))
        return np.where(dated, stamps, np.nan)

    def _class_weights(self, codes: NDArray[np.intp], weight: Floats) -> Floats:
        if self.class_weight is None:
            return np.ones(len(codes))
        if self.class_weight == "balanced":
            by_class = weight.sum() / (len(self.classes_) * np.bincount(codes, weights=weight))
        else:
            by_class = compute_class_weight(self.class_weight, classes=self.classes_, y=self.classes_[codes])
        return by_class[codes]

    def _keep(self, X: Any, codes: NDArray[np.intp], stamps: Floats, weight: Floats, groups: NDArray[np.intp]) -> None:
        """In the order of time, so that what is within reach is one slice."""
        with np.errstate(over="ignore"):
            if not np.isfinite(np.square(X.data if issparse(X) else X).sum()):  # the solver would search for ever
                raise ValueError("its features are too large: the sum of their squares is no number")
        order = np.argsort(stamps, kind="stable")
        self._groups = groups[order]
        self._X, self._codes, self._stamps, self._weight = X[order], codes[order], stamps[order], weight[order]
        self._models: dict[float, LocalModel] = {}

    @property
    def now_(self) -> float:
        """The time that predictions without one are made for."""
        last = float(self._stamps[-1])
        return float(np.nextafter(last, inf)) if self.kernel_.online else last

    @property
    def coef_(self) -> Floats:
        """Of the model of now; :meth:`model_at` has those of other times."""
        return self.model_at().coef

    @property
    def intercept_(self) -> Floats:
        return self.model_at().intercept

    @property
    def n_iter_(self) -> int:
        """Iterations of scikit-learn's solver for the model of now."""
        return self.model_at().n_iter

    # -- the model of an instant ----------------------------------------------------

    def model_at(self, t: float | None = None) -> LocalModel:
        """The model of time t (default: now)."""
        check_is_fitted(self)
        at = self.now_ if t is None else float(t)
        if t is not None and self.resolution is not None:
            at = float(middle_of_bin(np.array([at]), float(self.resolution))[0])
        return self._model(at)

    def _model(self, t: float) -> LocalModel:
        if self.bandwidth_ == inf and not self.kernel_.online:
            t = self.now_  # the same at all times
        if t not in self._models:
            if len(self._models) >= _MOST_MODELS:
                self._models.clear()
            self._models[t] = self._fitted(t, self.bandwidth_, self.C_)
        return self._models[t]

    def _fitted(self, t: float, h: float, C: float, without: NDArray[np.bool_] | None = None) -> LocalModel:
        """(22) at t, on all training documents or on those not in ``without``."""
        weight = self._kernel_weights(t, h)
        if without is not None:
            weight = np.where(without, 0.0, weight)
        weight = weight * self._weight
        rows = np.flatnonzero(weight > 0)
        codes, weight = self._codes[rows], weight[rows]
        by_class = np.bincount(codes, weights=weight, minlength=len(self.classes_)).astype(np.float64)
        present = np.flatnonzero(by_class)
        d = self._X.shape[1]
        if len(present) < 2:
            return LocalModel(present, np.zeros((1, d)), np.zeros(1), by_class)
        X, columns = self._X[rows], np.arange(d)
        if issparse(X) and 0 < 2 * len(np.unique(X.indices)) <= d:  # empty columns have weight zero: not worth carrying
            X, columns = without_empty_columns(X)
        with threadpool_limits(limits=1):  # many small problems: threads would wait for each other
            solver = self._solver(C, len(present)).fit(X, codes, sample_weight=weight)
        coef = np.zeros((solver.coef_.shape[0], d))
        coef[:, columns] = solver.coef_
        return LocalModel(present, coef, np.ravel(solver.intercept_), by_class, max(1, int(np.max(solver.n_iter_))))

    def _kernel_weights(self, t: float, h: float) -> Floats:
        """K_h(t - τ) over its peak, widened where it would reach nothing."""
        r = t - self._stamps
        peak = float(self.kernel_.weights(np.array([1.0]), inf)[0])
        weight = self.kernel_.weights(r, h) / peak
        if weight.any():
            return weight
        distance = r[r > 0] if self.kernel_.online else np.abs(r)
        if len(distance) == 0:
            return weight
        return self.kernel_.weights(r, 2.0 * float(distance.min())) / peak

    def _solver(self, C: float, n_classes: int) -> LogisticRegression:
        l1 = self.penalty == "l1"
        # On sparse text lbfgs at its usual tolerance stops far from the optimum; Newton's method does not.
        name = "newton-cg" if not l1 else "liblinear" if n_classes == 2 else "saga"
        return LogisticRegression(
            C=C,
            l1_ratio=1.0 if l1 else 0.0,
            solver=name,
            fit_intercept=self.fit_intercept,
            tol=self.tol,
            max_iter=self.max_iter,
            random_state=self.random_state,
        )

    # -- choosing h and C ----------------------------------------------------

    def _choose(self) -> None:
        strengths = self._strengths()
        instants = np.unique(self._stamps)
        if self.bandwidth == "auto":
            given = self.bandwidths
            grid = candidate_bandwidths(instants, number=8) if given is None else np.unique(np.asarray(given, float))
            if len(instants) == 1:
                grid = np.array([inf])  # one instant: every bandwidth is the same model
            for h in grid:
                check_bandwidth(h, positive=True)
        else:
            grid = np.array([float(self.bandwidth)])
        candidates = [(float(h), C) for h in grid for C in strengths]
        self.cv_results_: dict[str, Floats] = {}
        self.bandwidth_, self.C_ = candidates[0]
        trials = self._trials(instants) if len(candidates) > 1 else []
        if not trials:
            return
        losses = np.array(
            [self._held_out(h, C, trials) for h, C in progress(candidates, label="cross-validation", unit="models")]
        )
        self.bandwidth_, self.C_ = candidates[int(np.argmin(losses))]
        self.cv_results_ = {
            "bandwidth": np.array([h for h, _ in candidates]),
            "C": np.array([C for _, C in candidates]),
            self.scoring: losses,
        }

    def _trials(self, instants: Floats) -> list[tuple[float, NDArray[np.bool_]]]:
        """(time, documents held out) pairs: the documents of one instant, offline those of one fold in it."""
        n = len(self._stamps)
        trials = []
        if self.kernel_.online:  # no fold needed: nothing of the instant itself is within reach
            trials = [(float(t), self._stamps == t) for t in instants[1:]]
        else:
            rng = np.random.default_rng(self.random_state)
            _, first, group = np.unique(self._groups, return_index=True, return_inverse=True)
            fold = np.empty(n, dtype=np.int64)
            for code in range(len(self.classes_)):  # every fold gets its share of each class
                rows = np.sort(first[self._codes[first] == code])  # one document of each group
                fold[rows] = (rng.permutation(len(rows)) + int(rng.integers(self.folds))) % self.folds
            fold = fold[first[group]]
            for t in instants:
                here = self._stamps == t
                trials += [(float(t), here & (fold == k)) for k in np.unique(fold[here])]
        if len(trials) > self.max_fits:
            trials = [trials[i] for i in np.unique(np.linspace(0, len(trials) - 1, self.max_fits).round().astype(int))]
        return trials

    def _held_out(self, h: float, C: float, trials: Iterable[tuple[float, NDArray[np.bool_]]]) -> float:
        """Mean loss of the held-out documents."""
        total, weight = 0.0, 0.0
        for t, held in trials:
            model = self._fitted(t, h, C, None if self.kernel_.online else np.isin(self._groups, self._groups[held]))
            logits = model.scores(self._X[held], len(self.classes_))
            truth, w = self._codes[held], self._weight[held]
            if self.scoring == "error":
                loss = (logits.argmax(axis=1) != truth).astype(np.float64)
            else:
                loss = -np.log(np.maximum(softmax(logits, axis=1)[np.arange(len(truth)), truth], 1e-15))
            total, weight = total + float(w @ loss), weight + float(w.sum())
        return total / weight

    # -- predicting ----------------------------------------------------

    def _scores(self, X: Any, times: ArrayLike | None) -> Floats:
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        n, k = X.shape[0], len(self.classes_)
        if times is None:
            return self._model(self.now_).scores(X, k)
        stamps = self._snapped(times, n)
        stamps = np.where(np.isfinite(stamps), stamps, self.now_)
        scores = np.empty((n, k))
        distinct, group = np.unique(stamps, return_inverse=True)
        for number in progress(range(len(distinct)), label="local models", unit="times"):
            rows = np.flatnonzero(group == number)
            scores[rows] = self._model(float(distinct[number])).scores(X[rows], k)
        return scores

    def decision_function(self, X: Any, times: ArrayLike | None = None) -> Floats:
        """The log-odds of the second class where there are two; else the logits of each class.

        ``times`` are those of the documents; without them all are taken as of now.
        """
        scores = self._scores(X, times)
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores

    def predict_proba(self, X: Any, times: ArrayLike | None = None) -> Floats:
        """P(class|document, time), n x classes."""
        return softmax(self._scores(X, times), axis=1)

    def predict_log_proba(self, X: Any, times: ArrayLike | None = None) -> Floats:
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X, times))

    def predict(self, X: Any, times: ArrayLike | None = None) -> NDArray:
        """The most probable class of each document."""
        scores = self._scores(X, times)
        return self.classes_[scores.argmax(axis=1)]

    def score(
        self, X: Any, y: ArrayLike, times: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> float:
        """Mean accuracy."""
        return float(np.average(self.predict(X, times) == np.asarray(y), weights=sample_weight))  # type: ignore[arg-type]

    # -- saving ----------------------------------------------------

    def to_arrays(self) -> tuple[Header, Arrays]:
        """A JSON header and arrays, from which :meth:`from_arrays` makes this model again."""
        check_is_fitted(self)
        arrays: Arrays = {}
        header = {
            "kernel": self.kernel_.name,
            "online": self.kernel_.online,
            "bandwidth": "inf" if self.bandwidth_ == inf else self.bandwidth_,  # JSON has no infinity
            "C": self.C_,
            **{name: getattr(self, name) for name in ("penalty", "resolution", "tol", "fit_intercept", "max_iter")},
            "shape": put_matrix(arrays, "", csr_matrix(self._X)),
        }
        classes = self.classes_.astype(str) if self.classes_.dtype.kind == "O" else self.classes_
        arrays |= {"codes": self._codes, "stamps": self._stamps, "weight": self._weight, "classes": classes}
        return header, arrays

    @classmethod
    def from_arrays(cls, header: Header, arrays: Arrays) -> LocalLogisticRegression:
        """The fitted model of :meth:`to_arrays`; it predicts, and it need not choose again."""
        model = cls(
            bandwidth=float(header["bandwidth"]),
            C=float(header["C"]),
            online=bool(header["online"]),
            fit_intercept=bool(header["fit_intercept"]),
            **{name: header[name] for name in ("kernel", "penalty", "resolution", "tol", "max_iter")},
        )
        model._check_parameters()
        X = get_matrix(arrays, "", header["shape"])
        codes, stamps, weight, classes = (arrays[name] for name in ("codes", "stamps", "weight", "classes"))
        fit = len(codes) == len(stamps) == len(weight) == X.shape[0] > 0
        if not fit or weight.min() < 0:
            raise ValueError("its parts do not fit together")
        check_indices(codes, len(classes), "classes")
        check_finite(stamps, len(codes), "times")
        check_finite(weight, len(codes), "weights")
        model.classes_, model.n_features_in_ = classes, X.shape[1]
        model.kernel_ = as_kernel(model.kernel, online=model.online or None)
        model.bandwidth_, model.C_, model.cv_results_ = float(model.bandwidth), float(model.C), {}  # type: ignore[arg-type]
        model._keep(
            X, codes.astype(np.intp), stamps.astype(np.float64), weight.astype(np.float64), np.arange(len(codes))
        )
        return model

    def save(self, path: str | os.PathLike[str]) -> None:
        """One file of plain arrays, for :meth:`load`."""
        save_arrays(path, KIND, *self.to_arrays())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> LocalLogisticRegression:
        """The model that :meth:`save` wrote; InputError where the file holds something else."""
        return load_model(path, KIND, cls.from_arrays, "Train and save it again.")
