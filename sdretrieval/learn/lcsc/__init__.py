"""Local context sparse coding (LCSC): themes that know where in a document they are.

Kim, Lee, Lebanon & Park 2015. A *local context* is the distribution of words around a position; contexts are coded as
sparse, non-negative combinations of *themes* (latent topics: distributions over words), and a document is the mean of
its codes.

=================== ================================================================================================
sequences.py        documents as numbers of words in order: from lists of words, corpus files or a Lucene index
contexts.py         kernels over positions, local contexts φ(i) as sparse rows, the best passage
coding.py           the objective (5); β and z: greedy coordinate descent;  hellinger.py one code, Hellinger distance
dictionary.py       D: projected gradient on the simplex, exact column by column, or by line search (8)-(10)
seeding.py          themes to start from
model.py            the estimator: fit, partial_fit, transform, save, load
segmentation.py     where a document changes its subject; errors of cuts
pictures.py         strips along a document for terminal, HTML and PNG
passage_ranking.py  a document model smoothed with its themes and with the best passage: a Ranker
=================== ================================================================================================
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sdretrieval.learn.lcsc.model import LocalContextSparseCoding
    from sdretrieval.learn.lcsc.sequences import Sequences

__all__ = ["LocalContextSparseCoding", "Sequences"]


def __getattr__(name: str) -> Any:
    """Public names are imported when asked for: scikit-learn and numba take their time to load."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = "model" if name == "LocalContextSparseCoding" else "sequences"
    return getattr(importlib.import_module(f"{__name__}.{home}"), name)
