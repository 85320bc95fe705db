"""Local context sparse coding (LCSC): a topic model that knows where in a document it is.

Kim, Lee, Lebanon & Park 2015. A *local context* is the distribution of words around a position; contexts are coded as
sparse, non-negative combinations of *topics* (distributions over words), and a document is the mean of its codes.

=============== ====================================================================================================
sequences.py    documents as numbers of words in order: from lists of words, corpus files or a Lucene index
contexts.py     kernels over positions, and local contexts φ(i) as sparse rows
objective.py    the objective (5), written plainly
coding.py       β and z: greedy coordinate descent, squared loss;  hellinger.py the same for the Hellinger distance
dictionary.py   D: projected gradient on the simplex, exact column by column, or by line search (8)-(10)
model.py        the estimator: fit, partial_fit, transform, save, load
segmentation.py where a document changes its subject;  coherence: how long topics stay
pictures.py     strips along a document for terminal, HTML and PNG; the simplex picture
ranking.py      a document model smoothed with its topics and with the best passage: a Ranker
=============== ====================================================================================================
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sdretrieval.topics.model import LocalContextSparseCoding
    from sdretrieval.topics.sequences import Sequences

__all__ = ["LocalContextSparseCoding", "Sequences"]


def __getattr__(name: str) -> Any:
    """Public names are imported when asked for: importing the package loads nothing heavy."""
    if name == "LocalContextSparseCoding":
        from sdretrieval.topics.model import LocalContextSparseCoding

        return LocalContextSparseCoding
    if name == "Sequences":
        from sdretrieval.topics.sequences import Sequences

        return Sequences
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
