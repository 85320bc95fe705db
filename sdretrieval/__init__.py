"""sdretrieval: exact pseudo-relevance feedback and time-aware ranking over Lucene indexes.

Importing this package starts no JVM and imports neither pyserini nor torch.
"""

from __future__ import annotations

__version__ = "0.1.0"
