"""Cuts, errors of cuts, run lengths; strips and pages."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from sdretrieval.core.errors import ParameterError
from sdretrieval.learn.lcsc.pictures import binned, by_appearance, html_strip, png_strips, terminal_strip
from sdretrieval.learn.lcsc.segmentation import p_k, segment, spans, theme_shares, window_diff


def cost(shares, cuts) -> float:
    return sum(((shares[a:b] - shares[a:b].mean(axis=0)) ** 2).sum() for a, b in spans(cuts, len(shares)))


@pytest.mark.parametrize("n_segments", [1, 2, 3, 4])
def test_cuts_are_the_best_of_all(n_segments):
    """By trying every cut of ten positions."""
    shares = np.random.default_rng(0).dirichlet(np.ones(3), 10)
    found = segment(shares, n_segments=n_segments)
    best = min(cost(shares, cuts) for cuts in itertools.combinations(range(1, 10), n_segments - 1))
    assert len(found) == n_segments - 1
    assert cost(shares, found) == pytest.approx(best, rel=1e-12)


def test_the_number_of_segments_is_found_where_it_is_plain():
    rng = np.random.default_rng(1)
    blocks = [np.tile(row, (50, 1)) for row in ([1.0, 0, 0], [0, 1.0, 0], [0, 0, 1.0], [1.0, 0, 0])]
    shares = np.concatenate(blocks) + rng.normal(0, 0.05, (200, 3))
    assert segment(shares) == [50, 100, 150]
    assert segment(rng.normal(0, 1, (120, 3))) == []


def test_cuts_of_long_documents_fall_between_units():
    shares = np.repeat(np.eye(2), 1500, axis=0)
    assert segment(shares, n_segments=2) == [1500]
    assert segment(shares, n_segments=2, unit=700) in ([1400], [2100])


def test_cuts_of_next_to_nothing():
    assert segment(np.zeros((0, 3))) == [] and segment(np.ones((1, 3)), n_segments=4) == []
    assert segment(np.eye(3), n_segments=9) == [1, 2]
    for wrong in ({"n_segments": 0}, {"unit": 0}):
        with pytest.raises(ParameterError):
            segment(np.eye(3), **wrong)


def test_errors_of_cuts_by_hand():
    """Six positions, one true cut at 3: k = round(6 / 4) = 2; pairs (0,2) (1,3) (2,4) (3,5)."""
    assert p_k([3], [3], 6) == 0 and window_diff([3], [3], 6) == 0
    # nothing cut: the pairs (1,3) and (2,4) are wrong
    assert p_k([3], [], 6) == 0.5 and window_diff([3], [], 6) == 0.5
    # cut at 2: (0,2) is wrongly parted, (2,4) wrongly together
    assert p_k([3], [2], 6) == 0.5
    # cut everywhere: P_k misses only what is parted rightly, WindowDiff counts boundaries
    assert p_k([3], [1, 2, 3, 4, 5], 6) == 0.5 and window_diff([3], [1, 2, 3, 4, 5], 6) == 1.0


def test_shares():
    shares = theme_shares(csr_matrix([[1.0, 3.0], [0.0, 0.0], [2.0, 0.0]]))
    np.testing.assert_allclose(shares, [[0.25, 0.75], [0, 0], [1, 0]])


# -- pictures ------------------------------------------------------------------------------------------------------

SHARES = np.concatenate([np.tile([0.0, 1.0, 0.0], (30, 1)), np.tile([0.7, 0.3, 0.0], (30, 1))])
LABELS = ["sea <ship> & sail", "bread", "unused"]


def test_bins_are_means():
    np.testing.assert_allclose(binned(SHARES, 2), [[0, 1, 0], [0.7, 0.3, 0]])
    assert binned(SHARES, 500).shape == (60, 3)


def test_themes_stand_in_the_order_of_where_they_are():
    assert by_appearance(SHARES, 5) == [1, 0] and by_appearance(SHARES, 1) == [1]


def test_terminal_strip():
    lines = terminal_strip(SHARES, LABELS, width=6, boundaries=[30]).splitlines()
    assert lines[0] == "    1 ███▃▃▃  bread"
    assert lines[1] == "    0    ▆▆▆  sea <ship> & sail"
    assert lines[2] == " cuts    |  "
    assert terminal_strip(np.zeros((0, 3)), LABELS) == "(an empty document)"


def test_page_is_whole_and_escaped():
    page = html_strip(SHARES, LABELS, title="<script>", boundaries=[30])
    assert page.startswith("<!doctype html>") and page.rstrip().endswith("</html>")
    assert "<script" not in page and "sea &lt;ship&gt; &amp; sail" in page
    assert page.count("<polygon") == 2 and "stroke-dasharray" in page and "http" not in page


def test_pictures_are_png(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).resolve().parents[2])
    from benchmarks.results_topics import mean_run_length, png_simplex

    assert mean_run_length(np.array([[0, 1], [0, 1], [0, 1], [1, 0]])) == 2.0
    png_strips(tmp_path / "strip.png", [("one", SHARES), ("two", SHARES)], labels=LABELS, boundaries=[30])
    rng = np.random.default_rng(0)
    png_simplex(
        tmp_path / "simplex.png",
        "abc",
        contexts=[rng.dirichlet(np.ones(3), 5)] * 2,
        documents=rng.dirichlet(np.ones(3), 2),
        themes=np.eye(3)[:2],
    )
    for name in ("strip.png", "simplex.png"):
        assert (tmp_path / name).read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
