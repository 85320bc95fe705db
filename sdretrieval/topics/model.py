"""The estimator: scikit-learn's manners, token sequences instead of counts.

>>> model = LocalContextSparseCoding(n_components=2, bandwidth=0.7, random_state=0)
>>> z = model.fit_transform([["a", "b", "a", "b"], ["c", "d", "c", "d"]])
>>> z.shape
(2, 2)
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from scipy.sparse import csc_matrix, csr_matrix, diags
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.exceptions import NotFittedError

from sdretrieval.errors import InputError, ParameterError
from sdretrieval.progress import bar
from sdretrieval.saved import load_arrays, save_arrays
from sdretrieval.topics.coding import Coded, code, threads_of
from sdretrieval.topics.contexts import kernel_weights, local_contexts
from sdretrieval.topics.dictionary import Sums, column_step, gradient_step, hellinger_step, hellinger_weights
from sdretrieval.topics.objective import LOSSES, losses
from sdretrieval.topics.seeding import seed_dictionary
from sdretrieval.topics.sequences import Sequences, sequences

KIND = "topic model"
Documents = Sequences | Iterable[str | Sequence[str]]
SAMPLE = 20_000  # positions looked at for a context that is fitted badly
LEAST_ROUNDS = 2  # of codes and z where no later step follows
FORGETTING = 2.0  # how fast old batches fade: weight (1 - 1/t)^FORGETTING at the t-th


class LocalContextSparseCoding(TransformerMixin, BaseEstimator):
    """Topics of local contexts, and documents as the mean of their codes.

    Documents are lists of words, texts (split as scikit-learn does), or :class:`~sdretrieval.topics.Sequences` (from a
    Lucene index or corpus files). Words keep their order: a matrix of counts will not do.

    n_components   K, the number of topics; may exceed the number of words
    bandwidth      h, in words; ``kernel`` gaussian, constant or triangular (contexts.py)
    loss           "squared" or "hellinger"
    sparsity       λ: how much a code pays for its size;  ``coupling`` ρ: how much codes pay for leaving their document
    max_iter       dictionary steps over all documents; it stops before where the objective falls by less than ``tol``
    batch_size     documents at a time; None for all at once. With batches the sums of older ones fade
    dictionary_step  "columns" or "gradient" (dictionary.py; squared loss only)
    min_df, max_df, max_features   which words count: at least in so many documents, at most in such a share
    rounds, coding_tol             turns of codes and z, and when a code is finished (coding.py)

    Attributes: ``components_`` (topics x words), ``dictionary_`` (words x topics, sparse), ``vocabulary_``,
    ``objective_`` after each step (all at once: never rising), ``n_iter_``.
    """

    def __init__(
        self,
        n_components: int = 100,
        *,
        bandwidth: float = 1.0,
        kernel: str = "gaussian",
        loss: str = "squared",
        sparsity: float = 1e-2,
        coupling: float = 1e-4,
        max_iter: int = 10,
        tol: float = 1e-3,
        batch_size: int | None = None,
        dictionary_step: str = "columns",
        min_df: int = 1,
        max_df: float = 1.0,
        max_features: int | None = None,
        rounds: int = 1,
        coding_tol: float = 1e-5,
        n_jobs: int | None = None,
        random_state: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.bandwidth = bandwidth
        self.kernel = kernel
        self.loss = loss
        self.sparsity = sparsity
        self.coupling = coupling
        self.max_iter = max_iter
        self.tol = tol
        self.batch_size = batch_size
        self.dictionary_step = dictionary_step
        self.min_df = min_df
        self.max_df = max_df
        self.max_features = max_features
        self.rounds = rounds
        self.coding_tol = coding_tol
        self.n_jobs = n_jobs
        self.random_state = random_state

    # -- training ------------------------------------------------------------------------------------------------
    def fit(self, X: Documents, y: object = None) -> LocalContextSparseCoding:
        """Learn topics. All documents at once, or in batches where ``batch_size`` says so."""
        self._fit(X)
        return self

    def fit_transform(self, X: Documents, y: object = None, **fit_params: object) -> csr_matrix:
        """Learn topics and return z of the same documents; all at once, the codes of the last step are z's."""
        documents, coded = self._fit(X)
        return coded.documents if coded is not None else self.transform(documents)

    def _fit(self, X: Documents) -> tuple[Sequences, Coded | None]:
        self._check()
        documents = self._learn_words(sequences(X))
        self.objective_: list[float] = []
        if self.batch_size is not None and self.batch_size < len(documents):
            self.fit_batches(lambda: _batches(documents, int(self.batch_size or 1), self._rng()))
            return documents, None
        contexts = self._contexts(documents)
        self.dictionary_ = seed_dictionary(contexts, self.n_components, self._rng())
        coded = self._code(contexts, documents)
        self.objective_.append(coded.objective)
        self.n_iter_ = 0
        rng = self._rng()
        with bar(total=self.max_iter, label="topics", unit=" steps") as shown:
            for _ in range(self.max_iter):
                self._improve(contexts, coded, rng)
                coded = self._code(contexts, documents, coded.codes)
                self.objective_.append(coded.objective)
                self.n_iter_ += 1
                shown.update()
                before, after = self.objective_[-2:]
                if before - after <= self.tol * abs(before):
                    break
        return documents, coded

    def fit_batches(
        self, batches: Callable[[], Iterable[Sequences]], *, vocabulary: Sequence[str] | None = None
    ) -> LocalContextSparseCoding:
        """Learn from documents that need not fit in memory: ``batches()`` starts another pass over them.

        Runs ``max_iter`` passes; ``objective_`` has the objective of each pass, every batch coded by the topics of
        its moment. Words are those of ``vocabulary``, or of the first batch.
        """
        self._check()
        if vocabulary is not None:
            self.vocabulary_ = tuple(vocabulary)
        self._forget()
        self.objective_ = []
        for epoch in range(self.max_iter):
            total = 0.0
            with bar(label=f"topics, pass {epoch + 1} of {self.max_iter}", unit=" batches") as shown:
                for batch in batches():
                    total += self._partial(batch).objective
                    shown.update()
            self.objective_.append(total)
            if len(self.objective_) > 1:
                before, after = self.objective_[-2:]
                if abs(before - after) <= self.tol * abs(before):
                    break
        self.n_iter_ = len(self.objective_)
        return self

    def partial_fit(self, X: Documents, y: object = None) -> LocalContextSparseCoding:
        """Learn from one more batch. The first one decides which words count."""
        self._check()
        if not hasattr(self, "_batches_seen"):
            self._forget()
            self.objective_ = []
        coded = self._partial(sequences(X))
        self.objective_.append(coded.objective)
        return self

    def _forget(self) -> None:
        self._batches_seen = 0
        self._sums: Sums | None = None
        self._weights: csc_matrix | None = None

    def _partial(self, batch: Sequences) -> Coded:
        if not hasattr(self, "vocabulary_"):
            batch = self._learn_words(batch)
        batch = batch.with_vocabulary(self.vocabulary_)
        contexts = self._contexts(batch)
        if self._batches_seen == 0:
            self.dictionary_ = seed_dictionary(contexts, self.n_components, self._rng())
        coded = self._code(contexts, batch)
        self._batches_seen += 1
        share = (1.0 - 1.0 / self._batches_seen) ** FORGETTING
        if self.loss == "hellinger":
            weights = hellinger_weights(contexts, coded.codes, self.dictionary_)
            self._weights = weights if self._weights is None else csc_matrix(self._weights * share + weights)
            self.dictionary_ = hellinger_step(self.dictionary_, self._weights)
        else:
            sums = Sums.of(contexts, coded.codes)
            self._sums = sums if self._sums is None else self._sums.faded(share) + sums
            self._sums.energy = max(self._sums.energy, 0.0)
            self.dictionary_ = self._step(self._sums)
        return coded

    def _improve(self, contexts: csr_matrix, coded: Coded, rng: np.random.Generator) -> None:
        """One dictionary step, and new topics in place of those that no context uses."""
        if self.loss == "hellinger":
            weights = hellinger_weights(contexts, coded.codes, self.dictionary_)
            self.dictionary_ = hellinger_step(self.dictionary_, weights)
        else:
            self.dictionary_ = self._step(Sums.of(contexts, coded.codes))
        used = np.zeros(self.n_components, dtype=bool)
        used[coded.codes.indices] = True
        if not used.all():
            self._reseed(np.flatnonzero(~used), contexts, coded, rng)

    def _step(self, sums: Sums) -> csc_matrix:
        if self.dictionary_step == "gradient":
            return gradient_step(self.dictionary_, sums, steps=3)
        return column_step(self.dictionary_, sums)

    def _reseed(
        self, unused: np.ndarray, contexts: csr_matrix, coded: Coded, rng: np.random.Generator
    ) -> None:
        """Idle topics become the worst fitted of some contexts: their codes are 0, so the objective stays."""
        rows = np.sort(rng.permutation(contexts.shape[0])[:SAMPLE])
        bad = losses(contexts[rows], self.dictionary_, coded.codes[rows], self.loss)
        worst = rows[np.argsort(-bad, kind="stable")[: len(unused)]]
        fresh = csc_matrix(contexts[worst].T)
        keep = np.ones(self.n_components)
        keep[unused[: len(worst)]] = 0.0
        place = csc_matrix(
            (np.ones(len(worst)), (np.arange(len(worst)), unused[: len(worst)])),
            shape=(len(worst), self.n_components),
        )
        made = csc_matrix(self.dictionary_ @ diags(keep) + fresh @ place)
        made.eliminate_zeros()
        self.dictionary_ = made

    # -- using ---------------------------------------------------------------------------------------------------
    def transform(self, X: Documents) -> csr_matrix:
        """z of each document: documents x topics, sparse. Words the model does not know are left out."""
        return self.code(X).documents

    def code(self, X: Documents) -> Coded:
        """β of every position and z of every document."""
        documents = self.known_words(X)
        return self._code(self._contexts(documents), documents, rounds=max(self.rounds, LEAST_ROUNDS))

    def known_words(self, X: Documents) -> Sequences:
        """Documents in the model's words."""
        self._check_fitted()
        return sequences(X, vocabulary=self.vocabulary_)

    def top_words(self, topic: int, n: int = 10) -> list[tuple[str, float]]:
        """The heaviest words of a topic, with their weights."""
        self._check_fitted()
        if not 0 <= topic < self.dictionary_.shape[1]:
            raise ParameterError(f"no topic {topic}: there are {self.dictionary_.shape[1]}, counted from 0")
        span = slice(self.dictionary_.indptr[topic], self.dictionary_.indptr[topic + 1])
        words, weights = self.dictionary_.indices[span], self.dictionary_.data[span]
        best = np.lexsort((words, -weights))[:n]
        return [(self.vocabulary_[words[i]], float(weights[i])) for i in best]

    @property
    def components_(self) -> np.ndarray:
        """Topics x words, dense, as in scikit-learn."""
        self._check_fitted()
        return np.ascontiguousarray(self.dictionary_.toarray().T)

    def get_feature_names_out(self, input_features: object = None) -> np.ndarray:
        self._check_fitted()
        return np.array([f"topic{k}" for k in range(self.dictionary_.shape[1])], dtype=object)

    # -- disk ----------------------------------------------------------------------------------------------------
    def save(self, path: str | os.PathLike[str]) -> None:
        """One file of arrays and a JSON header (saved.py); what batches have gathered is not kept."""
        self._check_fitted()
        parameters = {name: _plain(value) for name, value in self.get_params().items()}
        header = {
            "parameters": parameters, "vocabulary": list(self.vocabulary_), "objective": list(self.objective_),
            "n_iter": int(getattr(self, "n_iter_", 0)),
        }  # fmt: skip
        D = self.dictionary_
        save_arrays(path, KIND, header, {"ptr": D.indptr, "words": D.indices, "weights": D.data})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> LocalContextSparseCoding:
        """A model as it was saved; an InputError for anything else."""
        header, arrays = load_arrays(path, KIND)
        try:
            model = cls(**header["parameters"])
            model._check()
            model.vocabulary_ = tuple(header["vocabulary"])
            model.objective_, model.n_iter_ = list(header["objective"]), int(header["n_iter"])
            shape = (len(model.vocabulary_), model.n_components)
            D = csc_matrix((arrays["weights"].astype(float), arrays["words"], arrays["ptr"]), shape=shape)
            D.check_format(full_check=True)
            sums = np.asarray(D.sum(axis=0)).ravel()
            if not (
                np.isfinite(D.data).all() and D.data.min(initial=0) >= 0 and np.allclose(sums, 1.0, atol=1e-6)
            ):
                raise ValueError("its topics are not distributions")
        except (KeyError, TypeError, ValueError, IndexError, ParameterError) as error:
            raise InputError(
                f"is a {KIND} that cannot be used ({error})", file=path, remedy="Train it again."
            ) from None
        model.dictionary_ = D
        return model

    # -- small things --------------------------------------------------------------------------------------------
    def _contexts(self, documents: Sequences) -> csr_matrix:
        contexts = local_contexts(documents, kernel=self.kernel, bandwidth=self.bandwidth)
        if contexts.shape[0] == 0 and not hasattr(self, "dictionary_"):
            raise ParameterError(
                "no words to learn from: the documents are empty, or min_df, max_df and max_features leave none",
                remedy="Lower min_df, or check the documents.",
            )
        return contexts

    def _code(
        self,
        contexts: csr_matrix,
        documents: Sequences,
        start: csr_matrix | None = None,
        rounds: int | None = None,
    ) -> Coded:
        return code(
            contexts, documents.ptr, self.dictionary_, sparsity=self.sparsity, coupling=self.coupling, loss=self.loss,
            start=start, rounds=self.rounds if rounds is None else rounds, tol=self.coding_tol,
            n_threads=threads_of(self.n_jobs),
        )  # fmt: skip

    def _learn_words(self, documents: Sequences) -> Sequences:
        wanted = (self.min_df, self.max_df, self.max_features) != (1, 1.0, None)
        words = documents.vocabulary
        if wanted:
            words = tuple(
                documents.frequent_words(min_df=self.min_df, max_df=self.max_df, most=self.max_features)
            )
        self.vocabulary_ = tuple(words)
        return documents.with_vocabulary(self.vocabulary_)

    def _rng(self) -> np.random.Generator:
        return np.random.default_rng(self.random_state)

    def _check(self) -> None:
        for name, low, open_ in (
            ("n_components", 1, False), ("sparsity", 0, False), ("coupling", 0, False), ("max_iter", 0, False),
            ("tol", 0, False), ("rounds", 1, False), ("coding_tol", 0, False), ("min_df", 1, False),
            ("max_df", 0, True),
        ):  # fmt: skip
            value = getattr(self, name)
            number = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
            if not number or not np.isfinite(value) or value < low or (open_ and value == low):
                raise ParameterError(f"{name} must be {'over' if open_ else 'at least'} {low}; got {value!r}")
        for name in ("n_components", "max_iter", "rounds"):
            if int(getattr(self, name)) != getattr(self, name):
                raise ParameterError(f"{name} must be a whole number; got {getattr(self, name)!r}")
        for name in ("batch_size", "max_features"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ParameterError(f"{name} must be at least 1, or None; got {value!r}")
        if self.loss not in LOSSES:
            raise ParameterError(f"no loss {self.loss!r}", remedy=f"One of: {', '.join(LOSSES)}.")
        if self.dictionary_step not in ("columns", "gradient"):
            raise ParameterError(f"dictionary_step must be columns or gradient; got {self.dictionary_step!r}")
        kernel_weights(self.kernel, self.bandwidth)  # checks both

    def _check_fitted(self) -> None:
        if not hasattr(self, "dictionary_"):
            raise NotFittedError("this LocalContextSparseCoding is not fitted yet: call fit() first")


def _batches(documents: Sequences, size: int, rng: np.random.Generator) -> Iterator[Sequences]:
    order = rng.permutation(len(documents))
    for start in range(0, len(order), size):
        yield documents.select(order[start : start + size])


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
