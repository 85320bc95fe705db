"""CACM, indexed from its original archive, is the index that Anserini documents."""

from __future__ import annotations

import pytest

from sdretrieval.collection.corpus import Reader
from sdretrieval.index.lucene.indexing import build_index


@pytest.mark.java
@pytest.mark.shared
def test_cacm_has_the_documented_counts(shared_data, tmp_path):
    """Anserini's regression page for CACM (HtmlCollection, default analyzer) gives these three numbers."""
    archive = shared_data / "cacm" / "cacm.tar.gz"
    if not archive.exists():
        pytest.skip(f"{archive} is not on this machine")
    summary = build_index(Reader().read([archive]), tmp_path / "cacm")
    assert (summary.documents, summary.terms, summary.tokens) == (3204, 14363, 320968)
    assert (summary.empty, summary.skipped) == (0, 0)
