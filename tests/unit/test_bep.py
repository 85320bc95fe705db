"""Break-even precision (4.2)-(4.4)."""

from __future__ import annotations

import numpy as np
import pytest

from sdretrieval.core.errors import ParameterError
from sdretrieval.learn.classify import break_even_precision, break_even_precisions, macro_bep, micro_bep


def test_precision_where_it_equals_recall():
    random = np.random.default_rng(0)
    for _ in range(20):
        relevant = random.random(30) < 0.3
        relevant[0] = True
        scores = random.permutation(30).astype(float)
        ranked = relevant[np.argsort(-scores)]
        hits = np.cumsum(ranked)
        precision, recall = hits / np.arange(1, 31), hits / relevant.sum()
        wanted = precision[np.isclose(np.arange(1, 31), relevant.sum())][0]
        assert wanted == recall[relevant.sum() - 1]
        assert break_even_precision(relevant, scores) == pytest.approx(wanted)


def test_ties_count_as_a_random_order_would():
    random = np.random.default_rng(1)
    relevant = np.array([1, 0, 1, 0, 0, 1, 0], dtype=bool)
    scores = np.array([3, 2, 2, 2, 2, 1, 1], dtype=float)
    found = [break_even_precision(relevant, scores + 1e-6 * random.random(7)) for _ in range(4000)]
    assert break_even_precision(relevant, scores) == pytest.approx((1 + 2 / 4) / 3)
    assert np.mean(found) == pytest.approx(break_even_precision(relevant, scores), abs=0.02)


def test_macro_and_micro():
    relevant = np.array([[1, 0], [1, 1], [1, 0], [0, 0]], dtype=bool)
    scores = np.array([[4.0, 4.0], [3.0, 1.0], [1.0, 2.0], [2.0, 3.0]])
    assert break_even_precisions(relevant, scores).tolist() == [pytest.approx(2 / 3), 0.0]
    assert macro_bep(relevant, scores) == pytest.approx(1 / 3)
    assert micro_bep(relevant, scores) == pytest.approx(0.5)


def test_a_topic_without_relevant_documents_is_left_out():
    relevant = np.array([[1, 0], [0, 0]], dtype=bool)
    scores = np.array([[2.0, 2.0], [1.0, 1.0]])
    assert np.isnan(break_even_precisions(relevant, scores)[1])
    assert macro_bep(relevant, scores) == micro_bep(relevant, scores) == 1.0


@pytest.mark.parametrize(("relevant", "scores"), [([1, 0], [1.0]), ([1, 0], [1.0, np.nan])])
def test_bad_lists(relevant, scores):
    with pytest.raises(ParameterError):
        break_even_precision(relevant, scores)
