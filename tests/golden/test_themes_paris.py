"""Section 5.2 on the real article: themes of LCSC stay where they are, LDA's are scattered (Figure 3).

The paper shows a picture; the numbers are of this implementation (docs/RESULTS.md: runs of 115 words against 17, P_k
.36 against .50 on the article's sections), the bounds here are half of the difference.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sdretrieval.learn.lcsc import LocalContextSparseCoding
from sdretrieval.learn.lcsc.segmentation import p_k, segment, theme_shares

pytestmark = [pytest.mark.java, pytest.mark.shared]


def test_themes_of_the_paris_article_are_coherent(shared_data, monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).resolve().parents[2])  # the article is read as in docs/RESULTS.md
    from benchmarks.results_topics import BLOCK, lda_shares, mean_run_length, paris

    text = paris()
    document, sections = text.document, text.sections
    n = document.n_tokens
    model = LocalContextSparseCoding(15, bandwidth=25, sparsity=1e-3, max_iter=40, random_state=0).fit(document)
    ours = theme_shares(model.code(document).codes)
    theirs = lda_shares(document, [(a, min(a + BLOCK, n)) for a in range(0, n, BLOCK)], 15)
    runs = [mean_run_length(shares) for shares in (ours, theirs)]
    errors = [p_k(sections, segment(shares, n_segments=len(sections) + 1), n) for shares in (ours, theirs)]
    assert runs[0] > 3 * runs[1]
    assert errors[0] < errors[1] - 0.05
    values = np.array(model.objective_)
    assert (np.diff(values) <= 1e-12 * values[:-1]).all()  # up to rounding, which differs from processor to processor
