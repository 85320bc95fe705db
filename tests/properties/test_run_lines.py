"""Lines of a run are the same, compiled or not: Python's own digits."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sdretrieval.collection.records import Ranking
from sdretrieval.collection.trec import runs, write_run
from sdretrieval.collection.trec.run_loops import BOUND, LEAST

sizes = st.one_of(
    st.floats(LEAST, BOUND, exclude_max=True),
    st.floats(LEAST, BOUND, exclude_max=True, width=32),
    st.builds(lambda digits, places: digits / 10**places, st.integers(1, 10**15), st.integers(0, 8)),
    st.builds(lambda whole, places: whole * 2.0**-places, st.integers(1, 2**20), st.integers(0, 13)),
).filter(lambda size: LEAST <= size < BOUND)
scores = st.sampled_from([0.0, -0.0]) | sizes | sizes.map(lambda size: -size)


def lines(scores: list[float]) -> tuple[str, str]:
    ranking = Ranking.in_order([f"d{i}ä" for i in range(len(scores))], np.array(scores, dtype=float))
    assert runs._is_plain(ranking.scores)
    return runs._lines_compiled("q1 Q0 ", ranking, " mine\n"), runs._lines("q1 Q0 ", ranking, " mine\n")


@given(st.lists(scores))
@example([2.0**k for k in range(-13, 52)])
@example([float(np.nextafter(2.0**k, end)) for k in range(-12, 52) for end in (0.0, np.inf)])
@example([-LEAST, BOUND - 0.5, 0.3, 1 / 3, 2 / 3, 9.5, 1e15, 5e-324 + LEAST])
def test_scores_have_the_digits_that_python_gives_them(scores):
    compiled, plain = lines(scores)
    assert compiled == plain


def test_many_scores():
    rng = np.random.default_rng(7)
    for size in (1e-3, 1.0, 20.0, 1e6, 1e14):
        compiled, plain = lines((rng.random(20_000) * size + LEAST).tolist())
        assert compiled == plain


@pytest.mark.parametrize("score", [LEAST / 2, BOUND, 1e300, 5e-324, np.inf])
def test_other_scores_are_python_s(score, tmp_path, monkeypatch):
    """Also where the loop would be taken; and the whole run is the same with it as without it."""
    lines([1.0])
    run = {"1": Ranking(["a", "b"], [score, -1.5]), "2": Ranking(["c"], [0.1]), "3": Ranking([], [])}
    for many, name in ((0, "compiled"), (10, "plain")):
        monkeypatch.setattr(runs, "MANY", many)
        write_run(tmp_path / name, run, "mine")
    written = (tmp_path / "compiled").read_text()
    assert written == (tmp_path / "plain").read_text()
    assert f"1 Q0 a 1 {score!r} mine\n" in written
