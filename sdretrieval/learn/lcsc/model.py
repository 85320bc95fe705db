"""The estimator: scikit-learn's manners, token sequences instead of counts.

>>> model = LocalContextSparseCoding(n_components=2, bandwidth=0.7, random_state=0)
>>> z = model.fit_transform([["a", "b", "a", "b"], ["c", "d", "c", "d"]])
>>> z.shape
(2, 2)
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from scipy.sparse import csc_matrix, csr_matrix, diags
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from sdretrieval.core.errors import ParameterError
from sdretrieval.core.parameters import check, choice, count, parameter, positive
from sdretrieval.core.progress import bar
from sdretrieval.core.saved_arrays import Arrays, Header, load_model, save_arrays
from sdretrieval.learn.lcsc.coding import LOSSES, Coded, code, losses
from sdretrieval.learn.lcsc.contexts import KERNELS, MOST_BANDWIDTH, local_contexts
from sdretrieval.learn.lcsc.dictionary import Sums, column_step, gradient_step, hellinger_step, hellinger_weights
from sdretrieval.learn.lcsc.seeding import seed_dictionary
from sdretrieval.learn.lcsc.sequences import Sequences, sequences

KIND = "topic model"  # in the file
Documents = Sequences | Iterable[str | Sequence[str]]
SAMPLE = 20_000  # positions looked at for a context that is fitted badly
LEAST_ROUNDS = 2  # of codes and z where no later step follows
FORGETTING = 2.0  # how fast old batches fade: weight (1 - 1/t)^FORGETTING at the t-th


def _optional_count(help: str) -> Any:
    return parameter(None, help, low=1, kind="whole", words=("none",))


@dataclass(repr=False, eq=False)
class LocalContextSparseCoding(TransformerMixin, BaseEstimator):
    """Themes of local contexts, and documents as the mean of their codes.

    Documents are lists of words, texts (split as scikit-learn does), or Sequences (from a Lucene index or corpus
    files). Words keep their order: a matrix of counts will not do. The parameters are the fields below.

    Attributes
    ----------
    components_ : array, themes x words
    dictionary_ : sparse matrix, words x themes
    vocabulary_ : tuple of str
    objective_ : list of float
        After each step; all documents at once, it never rises.
    n_iter_ : int
    """

    n_components: int = count(100, "number of themes; may exceed the number of words", "K")
    _: KW_ONLY
    bandwidth: float = positive(1.0, "of the kernel, in words", "h", high=MOST_BANDWIDTH)
    kernel: str = choice("gaussian", "over positions (contexts.py)", KERNELS)
    loss: str = choice("squared", "what a code pays for not fitting its context", LOSSES)
    sparsity: float = parameter(1e-2, "what a code pays for its size", symbol="λ", low=0.0)
    coupling: float = parameter(1e-4, "what codes pay for leaving their document", symbol="ρ", low=0.0)
    max_iter: int = parameter(10, "dictionary steps over all documents, at most", low=0)
    tol: float = parameter(1e-3, "it stops where the objective falls by a smaller share", low=0.0)
    batch_size: int | None = _optional_count("documents at a time, older ones fading; none: all at once")
    dictionary_step: str = choice("columns", "of the squared loss (dictionary.py)", ("columns", "gradient"))
    min_df: int = count(1, "only words of so many documents or more")
    max_df: float = positive(1.0, "only words of at most such a share of the documents")
    max_features: int | None = _optional_count("only so many words, the most frequent")
    rounds: int = count(1, "turns of codes and z (coding.py)")
    coding_tol: float = parameter(1e-5, "when a code is finished (coding.py)", low=0.0)
    n_jobs: int | None = None
    random_state: int | None = None

    def check_parameters(self) -> None:
        """Raise a ParameterError for the first parameter outside its range."""
        check(self, type(self).__name__)

    # -- training ------------------------------------------------------------------------------------------------
    def fit(self, X: Documents, y: object = None) -> LocalContextSparseCoding:
        """Learn themes from all documents at once, or in batches where ``batch_size`` says so.

        Parameters
        ----------
        X : Sequences, or list of texts or of lists of words
        y : ignored

        Returns
        -------
        self
        """
        self._fit(X)
        return self

    def fit_transform(self, X: Documents, y: object = None, **fit_params: object) -> csr_matrix:
        """Learn themes and return z of the same documents; all at once, the codes of the last step are z's."""
        documents, coded = self._fit(X)
        return coded.documents if coded is not None else self.transform(documents)

    def _fit(self, X: Documents) -> tuple[Sequences, Coded | None]:
        self.check_parameters()
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
        with bar(total=self.max_iter, label="themes", unit=" steps") as shown:
            for _ in range(self.max_iter):
                self.dictionary_ = self._step(self._gather(contexts, coded))
                self._reseed(contexts, coded, rng)
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

        Runs ``max_iter`` passes; ``objective_`` has the objective of each pass, every batch coded by the themes of
        its moment. Words are those of ``vocabulary``, or of the first batch.
        """
        self.check_parameters()
        if vocabulary is not None:
            self.vocabulary_ = tuple(vocabulary)
        self._forget()
        for epoch in range(self.max_iter):
            total = 0.0
            with bar(label=f"themes, pass {epoch + 1} of {self.max_iter}", unit=" batches") as shown:
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
        self.check_parameters()
        if not hasattr(self, "_batches_seen"):
            self._forget()
        self.objective_.append(self._partial(sequences(X)).objective)
        return self

    def _forget(self) -> None:
        self.objective_ = []
        self._batches_seen = 0
        self._sums: Sums | csc_matrix | None = None

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
        sums = self._gather(contexts, coded)
        self._sums = sums if self._sums is None else self._sums * share + sums
        self.dictionary_ = self._step(self._sums)
        return coded

    def _gather(self, contexts: csr_matrix, coded: Coded) -> Any:
        """What a dictionary step needs of contexts and codes; of several batches these add up."""
        if self.loss == "hellinger":
            return hellinger_weights(contexts, coded.codes, self.dictionary_)
        return Sums.of(contexts, coded.codes)

    def _step(self, sums: Any) -> csc_matrix:
        if self.loss == "hellinger":
            return hellinger_step(self.dictionary_, csc_matrix(sums))
        if self.dictionary_step == "gradient":
            return gradient_step(self.dictionary_, sums, steps=3)
        return column_step(self.dictionary_, sums)

    def _reseed(self, contexts: csr_matrix, coded: Coded, rng: np.random.Generator) -> None:
        """Themes that no context uses become the worst fitted of some contexts: their codes are 0, so the objective
        stays."""
        unused = np.flatnonzero(np.bincount(coded.codes.indices, minlength=self.n_components) == 0)
        if not len(unused):
            return
        rows = np.sort(rng.permutation(contexts.shape[0])[:SAMPLE])
        bad = losses(contexts[rows], self.dictionary_, coded.codes[rows], self.loss)
        worst = rows[np.argsort(-bad, kind="stable")[: len(unused)]]
        places = unused[: len(worst)]
        keep = np.ones(self.n_components)
        keep[places] = 0.0
        shape = (len(worst), self.n_components)
        put = csc_matrix((np.ones(len(worst)), (np.arange(len(worst)), places)), shape=shape)
        self.dictionary_ = csc_matrix(self.dictionary_ @ diags(keep) + csc_matrix(contexts[worst].T) @ put)
        self.dictionary_.eliminate_zeros()

    # -- using ---------------------------------------------------------------------------------------------------
    def transform(self, X: Documents) -> csr_matrix:
        """z of each document. Words the model does not know are left out.

        Parameters
        ----------
        X : Sequences, or list of texts or of lists of words

        Returns
        -------
        sparse matrix, documents x themes
        """
        return self.code(X).documents

    def code(self, X: Documents) -> Coded:
        """β of every position and z of every document."""
        documents = self.known_words(X)
        return self._code(self._contexts(documents), documents, rounds=max(self.rounds, LEAST_ROUNDS))

    def known_words(self, X: Documents) -> Sequences:
        """Documents in the model's words."""
        check_is_fitted(self, "dictionary_")
        return sequences(X, vocabulary=self.vocabulary_)

    def top_words(self, theme: int, n: int = 10) -> list[tuple[str, float]]:
        """The heaviest words of a theme, with their weights."""
        check_is_fitted(self, "dictionary_")
        D = self.dictionary_
        if not 0 <= theme < D.shape[1]:
            raise ParameterError(f"no theme {theme}: there are {D.shape[1]}, counted from 0")
        span = slice(D.indptr[theme], D.indptr[theme + 1])
        words, weights = D.indices[span], D.data[span]
        best = np.lexsort((words, -weights))[:n]
        return [(self.vocabulary_[words[i]], float(weights[i])) for i in best]

    @property
    def components_(self) -> np.ndarray:
        """Themes x words, dense, as in scikit-learn."""
        check_is_fitted(self, "dictionary_")
        return np.ascontiguousarray(self.dictionary_.toarray().T)

    def get_feature_names_out(self, input_features: object = None) -> np.ndarray:
        check_is_fitted(self, "dictionary_")
        return np.array([f"topic{k}" for k in range(self.dictionary_.shape[1])], dtype=object)

    # -- disk ----------------------------------------------------------------------------------------------------
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write one file of arrays and a JSON header (core/saved_arrays.py); what batches have gathered is not kept.

        Parameters
        ----------
        path : path of the file, which is replaced as a whole
        """
        check_is_fitted(self, "dictionary_")
        parameters = self.get_params()
        header = {
            "parameters": {k: v.item() if isinstance(v, np.generic) else v for k, v in parameters.items()},
            "vocabulary": list(self.vocabulary_),
            "objective": list(self.objective_),
            "n_iter": int(getattr(self, "n_iter_", 0)),
        }
        D = self.dictionary_
        save_arrays(path, KIND, header, {"ptr": D.indptr, "words": D.indices, "weights": D.data})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> LocalContextSparseCoding:
        """Read a model as it was saved.

        Parameters
        ----------
        path : what :meth:`save` wrote; an InputError is raised for anything else

        Returns
        -------
        LocalContextSparseCoding
        """
        return load_model(path, KIND, cls._restored, "Train it again.")

    @classmethod
    def _restored(cls, header: Header, arrays: Arrays) -> LocalContextSparseCoding:
        parameters = header["parameters"]
        if not all(isinstance(value, str | int | float | None) for value in parameters.values()):
            raise ValueError("a parameter is neither text nor a number")
        if not isinstance(jobs := parameters.get("n_jobs"), int | None) or abs(jobs or 1) > 1000:
            raise ValueError(f"n_jobs is {jobs!r}")
        model = cls(**parameters)
        model.check_parameters()
        model.vocabulary_ = tuple(header["vocabulary"])
        if not all(isinstance(word, str) for word in model.vocabulary_):
            raise ValueError("a word is no text")
        model.objective_, model.n_iter_ = list(header["objective"]), int(header["n_iter"])
        shape = (len(model.vocabulary_), model.n_components)
        D = csc_matrix((arrays["weights"].astype(float), arrays["words"], arrays["ptr"]), shape=shape)
        D.check_format(full_check=True)
        sums = np.asarray(D.sum(axis=0)).ravel()
        if not (np.isfinite(D.data).all() and D.data.min(initial=0) >= 0 and np.allclose(sums, 1.0, atol=1e-6)):
            raise ValueError("its themes are not distributions")
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
        self, contexts: csr_matrix, documents: Sequences, start: csr_matrix | None = None, rounds: int | None = None
    ) -> Coded:
        return code(
            contexts,
            documents.ptr,
            self.dictionary_,
            sparsity=self.sparsity,
            coupling=self.coupling,
            loss=self.loss,
            start=start,
            rounds=self.rounds if rounds is None else rounds,
            tol=self.coding_tol,
            # None is all processors, unlike scikit-learn's: nothing is copied to threads
            n_threads=effective_n_jobs(-1 if self.n_jobs is None else self.n_jobs),
        )

    def _learn_words(self, documents: Sequences) -> Sequences:
        words: Iterable[str] = documents.vocabulary
        if (self.min_df, self.max_df, self.max_features) != (1, 1.0, None):
            words = documents.frequent_words(min_df=self.min_df, max_df=self.max_df, most=self.max_features)
        self.vocabulary_ = tuple(words)
        return documents.with_vocabulary(self.vocabulary_)

    def _rng(self) -> np.random.Generator:
        return np.random.default_rng(self.random_state)


def _batches(documents: Sequences, size: int, rng: np.random.Generator) -> Iterator[Sequences]:
    order = rng.permutation(len(documents))
    for start in range(0, len(order), size):
        yield documents.select(order[start : start + size])
