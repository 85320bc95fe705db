"""Documents as sequences of words, each word a number: what local contexts are made of.

Words come from lists of words, from text (split as scikit-learn does), from corpus files, or from a Lucene index. The
last two are analysed by Lucene itself, about 3,000 newsgroup posts a second: an index hands over its stored text, which
is cheaper than gathering term positions out of the postings and needs none to be indexed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from sdretrieval.core.errors import IndexProblem, ParameterError

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    from sdretrieval.collection.analyzer import AnalyzerSpec
    from sdretrieval.index.snapshot import Snapshot

_WORD = re.compile(r"(?u)\b\w\w+\b")  # scikit-learn's default
Words = Callable[[str], list[str]]


@dataclass(frozen=True, eq=False)
class Sequences:
    """``tokens[ptr[d]:ptr[d + 1]]`` are the words of document ``d`` in order, as numbers into ``vocabulary``."""

    tokens: np.ndarray  # int32
    ptr: np.ndarray  # int64, one longer than there are documents
    vocabulary: tuple[str, ...]
    docids: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.docids:
            object.__setattr__(self, "docids", tuple(str(d) for d in range(len(self))))
        if len(self.docids) != len(self):
            raise ParameterError(f"{len(self)} documents, but {len(self.docids)} docids")

    def __len__(self) -> int:
        return len(self.ptr) - 1

    @property
    def n_tokens(self) -> int:
        return len(self.tokens)

    @property
    def lengths(self) -> np.ndarray:
        return np.diff(self.ptr)

    @cached_property
    def word_number(self) -> dict[str, int]:
        return {word: number for number, word in enumerate(self.vocabulary)}

    def words(self, document: int) -> list[str]:
        span = self.tokens[self.ptr[document] : self.ptr[document + 1]]
        return [self.vocabulary[t] for t in span.tolist()]

    @cached_property
    def counts(self) -> csr_matrix:
        """How often each word stands in each document: documents x words."""
        from scipy.sparse import csr_matrix  # slow to import

        ones = np.ones(self.n_tokens)
        matrix = csr_matrix((ones, self.tokens.astype(np.int32), self.ptr), shape=(len(self), len(self.vocabulary)))
        matrix.sum_duplicates()
        return matrix

    def select(self, rows: Iterable[int]) -> Sequences:
        """Some of the documents, in this order."""
        rows = np.asarray(list(rows) if not isinstance(rows, np.ndarray) else rows)
        if rows.dtype == bool:
            rows = np.flatnonzero(rows)
        lengths = self.lengths[rows]
        ptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        places = np.repeat(self.ptr[rows] - ptr[:-1], lengths) + np.arange(ptr[-1])
        return Sequences(self.tokens[places], ptr, self.vocabulary, tuple(self.docids[r] for r in rows.tolist()))

    def with_vocabulary(self, vocabulary: Sequence[str]) -> Sequences:
        """The same documents in another vocabulary; words outside it are left out and the gaps close."""
        if tuple(vocabulary) == self.vocabulary:
            return self
        number = {word: i for i, word in enumerate(vocabulary)}
        renamed = np.array([number.get(word, -1) for word in self.vocabulary], dtype=np.int32)
        tokens = renamed[self.tokens] if len(self.tokens) else self.tokens
        kept = tokens >= 0
        before = np.concatenate([[0], np.cumsum(kept)]).astype(np.int64)
        return Sequences(tokens[kept], before[self.ptr], tuple(vocabulary), self.docids)

    def frequent_words(self, *, min_df: int = 1, max_df: float = 1.0, most: int | None = None) -> list[str]:
        """Words in at least ``min_df`` documents and at most a share ``max_df`` of them; the ``most`` frequent ones."""
        df = np.bincount(self.counts.indices, minlength=len(self.vocabulary))
        kept = (df >= max(min_df, 1)) & (df <= max_df * max(len(self), 1))
        numbers = np.flatnonzero(kept)
        if most is not None and len(numbers) > most:
            cf = np.bincount(self.tokens, minlength=len(self.vocabulary))
            numbers = np.sort(numbers[np.argsort(-cf[numbers], kind="stable")[:most]])
        return [self.vocabulary[i] for i in numbers.tolist()]


def split_words(text: str) -> list[str]:
    """Lower-cased words of two letters or more, as scikit-learn splits text."""
    return _WORD.findall(text.lower())


def lucene_words(spec: AnalyzerSpec | None = None) -> Words:
    """Text to words with Lucene, in one call to Java per text. Starts the JVM at first use."""
    from sdretrieval.collection.analyzer import AnalyzerSpec  # only where it is needed
    from sdretrieval.core.jvm import java_class  # starts Java
    from sdretrieval.index.lucene.analysis import java_analyzer  # starts Java

    analyzer, utilities = java_analyzer(spec or AnalyzerSpec()), java_class("io.anserini.analysis.AnalyzerUtils")

    def words(text: str) -> list[str]:
        # Java's list as one string "[a, b, c]": taking words one by one costs three times as much. No analyzer
        # makes words with blanks in them.
        joined = utilities.analyze(analyzer, text).toString()[1:-1]
        return joined.split(", ") if joined else []

    return words


def sequences(
    documents: Sequences | Iterable[str | Sequence[str]],
    *,
    vocabulary: Sequence[str] | None = None,
    docids: Iterable[str] = (),
    words: Words = split_words,
) -> Sequences:
    """Sequences from texts or lists of words. Without a ``vocabulary`` it is the sorted words that occur.

    >>> sequences(["b a b", ["a"]], words=str.split).tokens.tolist()
    [1, 0, 1, 0]
    """
    if isinstance(documents, Sequences):
        return documents if vocabulary is None else documents.with_vocabulary(vocabulary)
    if isinstance(documents, str):
        raise ParameterError("documents must be a list of texts, not one text", remedy="Put it in a list.")
    number: dict[str, int] = {} if vocabulary is None else {word: i for i, word in enumerate(vocabulary)}
    tokens: list[np.ndarray] = []
    for place, document in enumerate(documents):
        is_words = isinstance(document, (list, tuple)) and all(isinstance(word, str) for word in document)
        if not isinstance(document, str) and not is_words:
            raise ParameterError(
                f"document {place} must be a text or a list of words; got {type(document).__name__}",
                remedy="Themes need words in order: counts will not do.",
            )
        found = words(document) if isinstance(document, str) else document
        if vocabulary is None:
            numbers = [number.setdefault(word, len(number)) for word in found]
        else:
            numbers = [number[word] for word in found if word in number]
        tokens.append(np.array(numbers, dtype=np.int32))
    ptr = np.concatenate([[0], np.cumsum([len(t) for t in tokens])]).astype(np.int64)
    flat = np.concatenate(tokens) if tokens else np.zeros(0, dtype=np.int32)
    made = Sequences(flat, ptr, tuple(number), tuple(docids))
    return made if vocabulary is not None else made.with_vocabulary(sorted(number))


def index_sequences(index: Path | Snapshot) -> Sequences:
    """The documents of a Lucene index, in the snapshot's order and vocabulary, from their stored text.

    Lucene's ``segments`` keep deleted documents; a snapshot leaves them out, and so does this.
    """
    from sdretrieval.index.snapshot import Snapshot, open_snapshot  # only where it is needed

    snapshot = index if isinstance(index, Snapshot) else open_snapshot(Path(index))
    if snapshot.index is None:
        raise IndexProblem("a collection made in memory has no texts", remedy="Open an index.")
    texts = _stored_texts(snapshot.index)
    vocabulary = [snapshot.term(t) for t in range(snapshot.n_terms)]
    docids = [snapshot.docids[d] for d in range(snapshot.n_docs)]
    made = sequences(texts, vocabulary=vocabulary, words=lucene_words(snapshot.analyzer))
    if len(made) != snapshot.n_docs or not np.array_equal(made.lengths, snapshot.doc_lengths):
        raise IndexProblem(
            f"the texts stored in {snapshot.index} are not what was indexed (other words came out)",
            remedy="Re-index with `sdretrieval index`, which stores text and analyzer alike.",
        )
    return replace(made, docids=tuple(docids))


def _stored_texts(index: Path) -> Iterator[str]:
    from sdretrieval.index.lucene.contents import stored_records  # starts Java

    for place, record in enumerate(stored_records(index)):
        if record is None or not isinstance(record.get("contents"), str):
            raise IndexProblem(
                f"{index} does not store the text of its documents (the first is number {place})",
                remedy="Re-index with `sdretrieval index`, which does, or give the corpus with --input.",
            )
        yield record["contents"]


def corpus_sequences(
    paths: Iterable[str | Path], *, analyzer: AnalyzerSpec | None = None, vocabulary: Sequence[str] | None = None
) -> Sequences:
    """The documents of corpus files that ``sdretrieval index`` reads, analysed by Lucene."""
    from sdretrieval.collection.corpus import Reader  # only where it is needed
    from sdretrieval.core.progress import progress  # only where it is needed

    docids: list[str] = []

    def texts() -> Iterator[str]:
        for document in progress(Reader().read(list(paths)), label="analysing", unit=" documents"):
            docids.append(document.docid)
            yield document.contents

    made = sequences(texts(), vocabulary=vocabulary, words=lucene_words(analyzer))
    return replace(made, docids=tuple(docids))
