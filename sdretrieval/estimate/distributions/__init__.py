"""Distributions of documents: multinomial, Dirichlet compound multinomial, Dirichlet, smoothed Dirichlet.

Each has ``fit(counts, weights=None, ...)`` and ``log_density(counts)``; counts are documents x terms, sparse or not.

>>> from sdretrieval.estimate.distributions import SmoothedDirichlet
>>> SmoothedDirichlet.fit([[1, 1], [1, 1]]).alpha.tolist()
[0.5, 0.5]
"""

from __future__ import annotations

from sdretrieval.estimate.distributions.dcm import DCM
from sdretrieval.estimate.distributions.dirichlet import Dirichlet
from sdretrieval.estimate.distributions.fitting import Convergence
from sdretrieval.estimate.distributions.general_english import general_english
from sdretrieval.estimate.distributions.multinomial import Multinomial
from sdretrieval.estimate.distributions.smoothed_dirichlet import SmoothedDirichlet

__all__ = ["DCM", "Convergence", "Dirichlet", "Multinomial", "SmoothedDirichlet", "general_english"]
