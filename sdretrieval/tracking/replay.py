"""A whole stream at once, where it is a matrix and the documents to learn from are given: the same scores as the
online loop, to the last bit, many times faster. For experiments: between two learnt documents a topic's model does
not move, so its scores are one pass over the rows in between. The background must not grow."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sdretrieval.errors import ParameterError
from sdretrieval.tracking.background import Background
from sdretrieval.tracking.documents import StreamDocument
from sdretrieval.tracking.models import TrackingModel
from sdretrieval.tracking.tracker import Tracker

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


@dataclass(frozen=True, eq=False)
class MatrixStream:
    """Documents in the order they come: ``counts`` rows over the background's word numbers."""

    counts: csr_matrix
    docids: Sequence[str]
    times: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return int(self.counts.shape[0])

    def document(self, row: int) -> StreamDocument:
        span = slice(self.counts.indptr[row], self.counts.indptr[row + 1])
        time = None if self.times is None else int(self.times[row])
        return StreamDocument.make(self.docids[row], self.counts.indices[span], self.counts.data[span], time)

    def __iter__(self):
        return (self.document(row) for row in range(len(self)))


@dataclass(frozen=True, eq=False)
class Evidence:
    """e and b of every document of a stream; models that score alike can share one."""

    words: NDArray[np.int64]
    values: NDArray[np.float64]
    background: NDArray[np.float64]

    @classmethod
    def of(cls, model: TrackingModel, background: Background, stream: MatrixStream) -> Evidence:
        ptr = stream.counts.indptr
        values, b = np.zeros(stream.counts.nnz), np.zeros(len(stream))
        for row in range(len(stream)):
            if ptr[row + 1] > ptr[row]:
                values[ptr[row] : ptr[row + 1]], b[row] = model.evidence(stream.document(row), background)
        return cls(stream.counts.indices.astype(np.int64), values, b)


def replay(
    model: TrackingModel,
    background: Background,
    stream: MatrixStream,
    seeds: Mapping[str, int | Sequence[int]],
    feedback: Mapping[str, Iterable[int]] | None = None,
    *,
    evidence: Evidence | None = None,
    **options: Any,
) -> dict[str, NDArray[np.float64]]:
    """Topic -> scores of the documents from the one after its (last) seed on.

    ``seeds``: the row or rows of each topic's seeds; ``feedback``: the rows it learns from, those up to the last seed
    ignored.
    """
    if background.grows:
        raise ParameterError("a stream can only be replayed over a background that does not grow")
    if not stream.counts.has_sorted_indices:
        raise ParameterError("the rows of the counts must be sorted: call sort_indices()")
    from sdretrieval.tracking.loops import score_rows

    made = Evidence.of(model, background, stream) if evidence is None else evidence
    ptr, n = stream.counts.indptr, len(stream)
    dense = np.zeros(max(int(stream.counts.shape[1]), len(background.words)))
    found: dict[str, NDArray[np.float64]] = {}
    for name, given in seeds.items():
        rows = [given] if isinstance(given, int | np.integer) else list(given)
        tracker = Tracker(model, background, **options)
        tracker.add_topic(name, [stream.document(row) for row in rows])
        seed = max(rows)
        topic = tracker.topics[0]
        scores = np.zeros(n)
        start = seed + 1
        for row in [*sorted({row for row in (feedback or {}).get(name, ()) if row > seed}), None]:
            stop = n if row is None else row + 1
            dense[topic.words] = topic.weights
            score_rows(ptr, made.words, made.values, made.background, start, stop, dense, topic.k, topic.c, scores)
            dense[topic.words] = 0.0
            if row is not None:
                tracker._learn(0, stream.document(row), float(scores[row]), tracker.labelled)
            start = stop
        found[name] = scores[seed + 1 :]
    return found
