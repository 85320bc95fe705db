"""Distributions of documents: multinomial, Dirichlet compound multinomial, Dirichlet, smoothed Dirichlet.

Each has ``fit(counts, weights=None, ...)`` and ``log_density(counts)``; counts are documents x terms, sparse or not.

>>> from sdretrieval.distributions import SmoothedDirichlet
>>> SmoothedDirichlet.fit([[1, 1], [1, 1]]).alpha.tolist()
[0.5, 0.5]
"""

from __future__ import annotations

from sdretrieval.distributions.background import general_english
from sdretrieval.distributions.convergence import Convergence
from sdretrieval.distributions.dcm import DCM
from sdretrieval.distributions.dirichlet import Dirichlet
from sdretrieval.distributions.multinomial import Multinomial
from sdretrieval.distributions.smoothed_dirichlet import SmoothedDirichlet

__all__ = ["DCM", "Convergence", "Dirichlet", "Multinomial", "SmoothedDirichlet", "general_english"]
