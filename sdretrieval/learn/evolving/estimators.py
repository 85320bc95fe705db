"""SSL, SSL-naive, SSL-E online and offline; what they share is in frame_classifier.py."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_matrix, issparse, vstack

from sdretrieval.core.errors import ParameterError
from sdretrieval.core.parameters import choice
from sdretrieval.core.progress import progress
from sdretrieval.learn.evolving.frame_classifier import FrameClassifier, plain_name
from sdretrieval.learn.evolving.functions import Expansion, Function, LinearFunction, widen
from sdretrieval.learn.evolving.solver import (
    DenseGram,
    Floats,
    Gram,
    RandomWalkGram,
    Solution,
    joined,
    project,
    random_walk,
)


class SSL(FrameClassifier):
    """Manifold regularisation (1), on each frame by itself.

    Parameters: those of :class:`SSLE`, without ``representer``. There γ_A weighs ‖f_t‖²_K.
    """


class SSLNaive(FrameClassifier):
    """SSL on the current frame and the one before it, as if they were one. Parameters: those of :class:`SSL`."""

    def _step(self, X: Any, codes: NDArray[np.int64], name: Any, cross: Floats | None) -> None:
        if self.kernel == "precomputed":
            raise ParameterError("SSLNaive has no precomputed kernel: it puts two frames together")
        here, before = (X, codes), self.last_
        if X.shape[0] and before is not None:
            X = csr_matrix(vstack([before[0], X])) if issparse(X) else np.vstack([before[0], X])
            codes = np.concatenate([before[1], codes])
        super()._step(X, codes, name, cross)
        if here[0].shape[0]:
            self.last_ = here

    def widen(self, n_features: int) -> None:
        super().widen(n_features)
        if self.last_ is not None:
            self.last_ = (widen(self.last_[0], n_features), self.last_[1])


@dataclass(kw_only=True, repr=False, eq=False)
class SSLE(FrameClassifier):
    """SSL-E online: f_t minimises (12), the loss on the labels of frame t, γ_I ‖f_t‖²_I, and γ_A ‖f_t - f_{t-1}‖²_K.

    Parameters
    ----------
    gamma_A, gamma_I : float
        γ_A > 0 and γ_I >= 0. In the first frame f_0 = 0. Note the 1/n² of (2): for frames of some hundred documents
        γ_I must be in the thousands before neighbours are heard.
    representer : {"frame", "history"}
        ``"frame"`` keeps f_t in the span of frame t's documents, (14) and (18), as the paper does: what the classifier
        knew of words that this month does not use is forgotten. ``"history"`` is the minimiser of (12) itself, (13):
        with the linear kernel it costs no more, indeed less, and forgets nothing.
    neighbours, sigma
        Of the graph, see :mod:`~sdretrieval.learn.evolving.graph`.
    kernel, gamma
        ``"linear"``, ``"rbf"`` with exp(-gamma ‖x - x'‖²), or ``"precomputed"``.
    frame : str
        What a frame is in ``fit(…, times=…)``: year, month, week, day, hour, or a length of time.
    classes : sequence, optional
        Where all are known beforehand; a label outside them is then an error, else it is a new class.
    unlabelled
        In y, besides None, NaN and ''.
    remember : int, optional
        How many frames' classifiers are kept to predict documents of the past by (default: all).
    loss : {"squared", "squared-hinge"}
        V of (1): (y - f)², or max(0, 1 - y f)², some rounds of the same system.
    solver, tol
        ``"cg"``, ``"direct"`` or ``"auto"``; the bound on the error of f_t in the kernel's norm.

    Attributes
    ----------
    classes_ : the labels seen so far, sorted
    frames_ : a :class:`~sdretrieval.learn.evolving.frames.FrameRecord` of each frame

    Examples
    --------
    >>> X = [[1.0, 0.1], [0.9, 0.2], [0.1, 1.0], [0.2, 0.9]]
    >>> model = SSLE(neighbours=1).partial_fit(X, ["a", None, "b", None])
    >>> model.predict(X).tolist()
    ['a', 'a', 'b', 'b']
    >>> model.partial_fit(X, [None] * 4).predict([[3.0, 1.0]]).tolist()  # nothing labelled: history speaks
    ['a']
    """

    has_history: ClassVar[bool] = True

    representer: str = choice("frame", "what f_t is made of", ("frame", "history"))

    def start(self) -> None:
        super().start()
        if self.representer == "history" and self.kernel == "precomputed":
            raise ParameterError("a precomputed kernel knows only the last frame: representer must be 'frame'")

    def _function(
        self, X: Any, gram: Gram, answer: Solution, previous: Function | None, prior: Floats | None
    ) -> Function:
        if previous is None or prior is None:
            return self._spanned(X, answer.beta)
        if self.representer == "frame":  # α of (18)
            return self._spanned(X, answer.beta + project(gram, prior, solver=self.solver))
        if isinstance(previous, LinearFunction):
            return LinearFunction(previous.coef + X.T @ answer.beta)
        return Expansion(self.feature_kernel_, (*previous.blocks, (X, answer.beta)))

    def _prior(self, previous: Function, X: Any, cross: Floats | None) -> Floats:
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
        return previous.values(cross)


class SSLEOffline(FrameClassifier):
    """SSL-E offline (6): the classifiers of all frames at once, so that later frames inform earlier ones too.

    Parameters: those of :class:`SSLE`, without ``representer``: (7) spans all frames. No ``partial_fit``.
    """

    def fit(self, X: Any, y: ArrayLike, times: ArrayLike | None = None, frames: ArrayLike | None = None) -> SSLEOffline:
        """Learn all frames; parameters as in :meth:`SSLE.fit`."""
        X, y, groups = self._begin(X, y, times, frames)
        order = np.concatenate([rows for _, rows in groups])
        sizes = [len(rows) for _, rows in groups]
        codes = self._codes(y)[order]
        precomputed = self.kernel == "precomputed"
        given, X = X, X[np.ix_(order, order)] if precomputed else X[order]
        spans = [slice(a, b) for a, b in pairwise(np.cumsum([0, *sizes]))]
        graphs = [
            self._laplacian(X[span, span] if precomputed else X[span])
            for span in progress(spans, label="graphs", unit="frames")
        ]
        smooth = joined([L * (self.gamma_I / n**2) for L, n in zip(graphs, sizes, strict=True)])
        linear = RandomWalkGram(X, sizes) if self.kernel == "linear" else None
        gram = linear or DenseGram(random_walk(sizes) * self._gram(X).dense())
        answer = self._solve(gram, smooth, codes)
        if linear is not None:
            functions = self._linear(linear, answer.beta)
        else:  # of a precomputed kernel, predict is given K(new, training documents) in the order of fit
            documents, places = (given, order) if precomputed else (X, np.arange(len(order)))
            functions = self._expansions(documents, places, sizes, answer.beta)
        previous, steps = None, answer.iterations
        for (name, _), span, L, function in zip(groups, spans, graphs, functions, strict=True):
            self._keep(plain_name(name), codes[span], L, answer.values[span], function, previous, None, steps)
            previous = function
        return self

    def _linear(self, gram: RandomWalkGram, beta: Floats) -> list[Function]:
        """f_t = Σ_s min(s, t) Σ_i β_is K(·, x_is) as weights of features."""
        weights = gram.weights(beta)
        coefs = np.zeros((len(weights), self.n_features_in_, beta.shape[1]))
        coefs[:, gram.columns] = weights
        return [LinearFunction(coef) for coef in coefs]

    def _expansions(self, X: Any, places: NDArray[np.intp], sizes: list[int], beta: Floats) -> list[Function]:
        """The same for other kernels; ``places``: of the frames' documents among those of X."""
        frame = np.repeat(np.arange(1.0, len(sizes) + 1.0), sizes)
        alphas = np.zeros((len(sizes), X.shape[0], beta.shape[1]))
        for t, alpha in enumerate(alphas, 1):
            alpha[places] = np.minimum(frame, t)[:, None] * beta
        return [Expansion(self.feature_kernel_, ((X, alpha),)) for alpha in alphas]

    @property
    def partial_fit(self) -> Any:
        raise AttributeError("SSLEOffline learns all frames at once: call fit with all of them, or use SSLE")
