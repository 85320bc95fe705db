"""Collections of counts, given an order of words: for models that look at where words stand."""

from __future__ import annotations

import numpy as np

from sdretrieval.index.snapshot import Snapshot


def placed(snapshot: Snapshot) -> Snapshot:
    """The same collection, the words of each document shuffled into places: always the same for its docid."""
    found = []
    for d in range(snapshot.n_docs):
        rng = np.random.default_rng(list(snapshot.docids[d].encode()))
        span = slice(snapshot.doc_ptr[d], snapshot.doc_ptr[d + 1])
        words = np.repeat(snapshot.doc_terms[span], snapshot.doc_counts[span])
        found += [(term, d, place) for place, term in enumerate(rng.permutation(words).tolist())]
    snapshot.arrays["positions"] = np.array([place for *_, place in sorted(found)], dtype=np.int32)
    return snapshot
