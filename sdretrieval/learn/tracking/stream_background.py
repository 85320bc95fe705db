"""General English for a stream: from an earlier corpus, or from the stream so far, never from its future.

    p_w = (cf_w + a) / (T + a max(V + 1, 1000))      θ^GE; cf of T tokens and V words seen, a = 1/2
    idf_w = log((N + 1) / (N_w + 1/2))               thesis (6.2)

A stream brings words nobody has seen: each of them has the probability of the one unseen word in the formula, so
that no ratio to general English is infinite; p sums to one over the words seen and one unseen, and to a little more
over a whole stream. Before anything is seen all words are as likely as one in a thousand.

What models see is a *frozen* copy of the counts. A background that grows takes a new copy whenever the number of
tokens has grown by a tenth: a rule that depends on the past alone, and whose copies become rare as the stream gets
long (each one means that all stories are estimated anew).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sdretrieval.core.errors import ParameterError
from sdretrieval.core.saved_arrays import check_finite

if TYPE_CHECKING:
    from sdretrieval.index.snapshot import Snapshot

ADDED = 0.5  # a
LEAST_WORDS = 1000  # of a language, however little of it was seen
GROWTH = 1.1  # tokens at the next copy, over tokens at the last one


@dataclass(frozen=True, eq=False, slots=True)
class StreamDocument:
    """``words`` ascending, each once; ``time`` in ms since 1970 UTC, None where unknown."""

    docid: str
    words: NDArray[np.int64]
    counts: NDArray[np.float64]
    time: int | None
    length: float  # |D|, the sum of the counts

    @classmethod
    def make(cls, docid: str, words: ArrayLike, counts: ArrayLike, time: int | None = None) -> StreamDocument:
        """From word numbers in any order."""
        words, counts = np.asarray(words, np.int64), np.asarray(counts, np.float64)
        if len(words) != len(counts):
            raise ParameterError(f"document {docid!r}: {len(words)} words, but {len(counts)} counts")
        if len(words) > 1 and not (words[1:] > words[:-1]).all():
            order = np.argsort(words, kind="stable")
            words, counts = words[order], counts[order]
            if (words[1:] == words[:-1]).any():
                raise ParameterError(f"document {docid!r}: a word is listed twice")
        if len(counts) and not (counts > 0).all():
            raise ParameterError(f"document {docid!r}: counts must be positive, got {counts.min()}")
        return cls(str(docid), words, counts, time, float(counts.sum()))


class Background:
    """Word numbers, counts so far and the frozen copy of them that models see.

    >>> background = Background(grows=False)
    >>> background.count(background.document("d1", ["oil", "price", "oil"]))
    >>> background.freeze()
    >>> background.p(background.numbers(["oil", "never seen"])).round(3).tolist()
    [0.005, 0.001]
    """

    def __init__(self, *, grows: bool = True) -> None:
        self.grows = grows
        self.words: list[str] = []
        self._number: dict[str, int] = {}
        self.n_docs = self.n_tokens = 0
        self._cf, self._df = np.zeros(1024), np.zeros(1024)
        self._frozen_cf, self._frozen_df = np.zeros(1024), np.zeros(1024)
        self._frozen_docs = self._frozen_tokens = self._frozen_words = 0
        self._entropy: float | None = None

    # -- making one ----------------------------------------------------------------------------------------------
    @classmethod
    def of_counts(cls, counts: Any, vocabulary: Iterable[str], *, grows: bool = False) -> Background:
        """From a matrix of counts, documents x words: an earlier corpus. ``grows``: go on counting the stream."""
        from scipy.sparse import csr_matrix  # slow to import

        matrix, words = csr_matrix(counts), list(vocabulary)
        if matrix.shape[1] != len(words):
            raise ParameterError(f"counts have {matrix.shape[1]} columns, but there are {len(words)} words")
        cf, df = (np.asarray(each.sum(axis=0)).ravel() for each in (matrix, matrix > 0))
        return cls._earlier(words, cf, df, matrix.shape[0], int(matrix.sum()), grows)

    @classmethod
    def of_snapshot(cls, snapshot: Snapshot, *, grows: bool = False) -> Background:
        """From an index's snapshot."""
        words, size = list(snapshot.vocabulary), (snapshot.n_docs, snapshot.n_tokens)
        return cls._earlier(words, snapshot.cf, snapshot.df, *size, grows)

    @classmethod
    def _earlier(cls, words: list[str], cf: Any, df: Any, n_docs: int, n_tokens: int, grows: bool) -> Background:
        made = cls(grows=grows)
        numbers = made.numbers(words)
        made._cf[numbers], made._df[numbers] = cf, df
        made.n_docs, made.n_tokens = n_docs, n_tokens
        made.freeze()
        return made

    # -- words and documents -------------------------------------------------------------------------------------
    def numbers(self, words: Sequence[str]) -> NDArray[np.int64]:
        """The numbers of words; new ones are given to words never met."""
        known, listed = self._number, self.words
        result = np.empty(len(words), np.int64)
        for i, word in enumerate(words):
            number = known.get(word)
            if number is None:
                number = known[word] = len(listed)
                listed.append(word)
            result[i] = number
        if len(listed) > len(self._cf):
            more = np.zeros(max(len(listed), 2 * len(self._cf)) - len(self._cf))
            for name in ("_cf", "_df", "_frozen_cf", "_frozen_df"):
                setattr(self, name, np.concatenate([getattr(self, name), more]))
        return result

    def document(
        self, docid: str, terms: Iterable[str] | Mapping[str, float], time: int | None = None
    ) -> StreamDocument:
        """A document of the stream from its terms in order, or from terms with their counts."""
        counts = terms if isinstance(terms, Mapping) else Counter(terms)
        return StreamDocument.make(docid, self.numbers(list(counts)), np.fromiter(counts.values(), float), time)

    # -- counting ------------------------------------------------------------------------------------------------
    def count(self, document: StreamDocument) -> None:
        """Add a document to the live counts (the frozen copy stays as it is)."""
        self._cf[document.words] += document.counts
        self._df[document.words] += 1
        self.n_docs += 1
        self.n_tokens += int(document.length)

    @property
    def due(self) -> bool:
        """Whether it is time for a new copy."""
        return self.n_tokens > GROWTH * self._frozen_tokens

    def freeze(self) -> None:
        """Let models see the counts as they are now."""
        self._frozen_cf, self._frozen_df = self._cf.copy(), self._df.copy()
        self._frozen_docs, self._frozen_tokens = self.n_docs, self.n_tokens
        self._frozen_words = int((self._cf > 0).sum())
        self._entropy = None

    # -- what models see -----------------------------------------------------------------------------------------
    def p(self, words: NDArray[np.integer]) -> NDArray[np.float64]:
        """θ^GE of some words."""
        return (self._frozen_cf[words] + ADDED) / self._total

    def idf(self, words: NDArray[np.integer]) -> NDArray[np.float64]:
        return np.log((self._frozen_docs + 1) / (self._frozen_df[words] + 0.5))  # (6.2)

    @property
    def entropy_sum(self) -> float:
        """Σ_w p_w log p_w over the words seen and the one unseen."""
        if self._entropy is None:
            p = np.append((self._frozen_cf[self._frozen_cf > 0] + ADDED) / self._total, ADDED / self._total)
            self._entropy = float(p @ np.log(p))
        return self._entropy

    @property
    def _total(self) -> float:
        return self._frozen_tokens + ADDED * max(self._frozen_words + 1, LEAST_WORDS)

    # -- saving --------------------------------------------------------------------------------------------------
    def to_state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        n = len(self.words)
        header = {
            "grows": self.grows,
            "docs": [self.n_docs, self._frozen_docs],
            "words": n,
            "tokens": [self.n_tokens, self._frozen_tokens],
            "frozen_words": self._frozen_words,
        }
        text = np.frombuffer("\n".join(self.words).encode("utf-8", "surrogatepass"), np.uint8)
        arrays: dict[str, np.ndarray] = {"words": text, "cf": self._cf[:n], "df": self._df[:n]}
        if self.grows:  # one that does not has nothing else
            arrays |= {"frozen_cf": self._frozen_cf[:n], "frozen_df": self._frozen_df[:n]}
        return header, arrays

    @classmethod
    def from_state(cls, header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Background:
        made = cls(grows=bool(header["grows"]))
        text = arrays["words"].tobytes().decode("utf-8", "surrogatepass")
        made.numbers(text.split("\n") if text else [])
        n = len(made.words)
        if n != header["words"]:
            raise ValueError(f"there are {n} words, not {header['words']}")
        for name in ("cf", "df", "frozen_cf", "frozen_df"):
            if name in arrays or not name.startswith("frozen"):
                check_finite(arrays[name], n, name)
        made._cf[:n], made._df[:n] = arrays["cf"], arrays["df"]
        made._frozen_cf[:n] = arrays.get("frozen_cf", arrays["cf"])
        made._frozen_df[:n] = arrays.get("frozen_df", arrays["df"])
        made.n_docs, made._frozen_docs = (int(value) for value in header["docs"])
        made.n_tokens, made._frozen_tokens = (int(value) for value in header["tokens"])
        made._frozen_words = int(header["frozen_words"])
        return made
