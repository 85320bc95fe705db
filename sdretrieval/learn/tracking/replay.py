"""A whole stream at once, where it is a matrix and the documents to learn from are given: the same scores as the
online loop, to the last bit, many times faster. For experiments: between two learnt documents a story's model does
not move, so its scores are one pass over the rows in between. The background must not grow."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sdretrieval.core.errors import ParameterError
from sdretrieval.learn.tracking.story import Floats
from sdretrieval.learn.tracking.story_models import TrackingModel
from sdretrieval.learn.tracking.stream_background import Background, StreamDocument
from sdretrieval.learn.tracking.tracker import Tracker

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

    def __iter__(self) -> Iterator[StreamDocument]:
        return map(self.document, range(len(self)))


@dataclass(frozen=True, eq=False)
class Evidence:
    """e and b of every document of a stream; models that score alike can share one."""

    words: NDArray[np.int64]
    values: Floats
    background: Floats

    @classmethod
    def of(cls, model: TrackingModel, background: Background, stream: MatrixStream) -> Evidence:
        ptr = stream.counts.indptr
        values, b = np.zeros(stream.counts.nnz), np.zeros(len(stream))
        for row, document in enumerate(stream):
            if document.length:
                values[ptr[row] : ptr[row + 1]], b[row] = model.evidence(document, background)
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
) -> dict[str, Floats]:
    """Story -> scores of the documents from the one after its (last) seed on.

    ``seeds``: the row or rows of each story's seeds; ``feedback``: the rows it learns from, those up to the last seed
    ignored; ``options``: those of :class:`Tracker`.
    """
    if background.grows:
        raise ParameterError("a stream can only be replayed over a background that does not grow")
    if not stream.counts.has_sorted_indices:
        raise ParameterError("the rows of the counts must be sorted: call sort_indices()")
    from sdretrieval.learn.tracking.score_loops import score_rows  # numba

    made = Evidence.of(model, background, stream) if evidence is None else evidence
    arrays = (stream.counts.indptr, made.words, made.values, made.background)
    dense = np.zeros(max(int(stream.counts.shape[1]), len(background.words)))
    found: dict[str, Floats] = {}
    for name, given in seeds.items():
        rows = [given] if isinstance(given, int | np.integer) else list(given)
        tracker = Tracker(model, background, **options)
        tracker.add_story(name, [stream.document(row) for row in rows])
        [story] = tracker.stories
        last_seed = max(rows)
        scores, start = np.zeros(len(stream)), last_seed + 1
        learnt = sorted({row for row in (feedback or {}).get(name, ()) if row > last_seed})
        for row in [*learnt, None]:
            stop = len(stream) if row is None else row + 1
            dense[story.words] = story.weights
            score_rows(*arrays, start, stop, dense, story.k, story.c, scores)
            dense[story.words] = 0.0
            if row is not None:
                tracker.learn(name, stream.document(row), labelled=tracker.labelled, score=float(scores[row]))
            start = stop
        found[name] = scores[last_seed + 1 :]
    return found
