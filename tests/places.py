"""Collections of counts, given an order of words: for models that look at where words stand."""

from __future__ import annotations

import numpy as np

from sdretrieval.index.snapshot import Snapshot, places_of


def placed(snapshot: Snapshot) -> Snapshot:
    """The same collection, the words of each document shuffled into places: always the same for its docid."""
    texts = []
    for d in range(snapshot.n_docs):
        rng = np.random.default_rng(list(snapshot.docids[d].encode()))
        span = slice(snapshot.doc_ptr[d], snapshot.doc_ptr[d + 1])
        words = np.repeat(snapshot.doc_terms[span], snapshot.doc_counts[span])
        texts.append(rng.permutation(words).tolist())
    snapshot.places = places_of(texts)
    return snapshot
