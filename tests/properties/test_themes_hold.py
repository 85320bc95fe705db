"""What holds for any documents: contexts and themes are distributions, objectives fall, projections are nearest."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from sdretrieval.learn.lcsc import LocalContextSparseCoding
from sdretrieval.learn.lcsc.contexts import KERNELS, local_contexts
from sdretrieval.learn.lcsc.dictionary import project_in_place
from sdretrieval.learn.lcsc.sequences import sequences

SETTINGS = settings(max_examples=25, deadline=None)
documents = st.lists(st.lists(st.sampled_from("abcdefg"), max_size=12), min_size=1, max_size=5)
vectors = st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=30)


@SETTINGS
@given(documents, st.sampled_from(KERNELS), st.floats(0.2, 6.0))
def test_contexts_are_distributions_over_words_nearby(texts, kernel, bandwidth):
    made = sequences(texts)
    phi = local_contexts(made, kernel=kernel, bandwidth=bandwidth)
    assert phi.shape == (made.n_tokens, len(made.vocabulary))
    if made.n_tokens:
        np.testing.assert_allclose(np.asarray(phi.sum(axis=1)), 1.0)
        assert phi.data.min() > 0
        assert (phi[np.arange(made.n_tokens), made.tokens] > 0).all()  # its own word always counts


@SETTINGS
@given(documents, st.integers(1, 6), st.sampled_from(["squared", "hellinger"]), st.integers(0, 99))
def test_learning_never_raises_the_objective(texts, n_themes, loss, seed):
    if not any(texts):
        return
    model = LocalContextSparseCoding(
        n_themes, loss=loss, coupling=0.05, max_iter=4, tol=0.0, random_state=seed, n_jobs=1
    )
    z = model.fit_transform(texts)
    values = np.array(model.objective_)
    assert (np.diff(values) <= 1e-10 * np.maximum(values[:-1], 1e-12)).all()
    np.testing.assert_allclose(model.components_.sum(axis=1), 1.0)
    assert model.components_.min() >= 0 and (z.nnz == 0 or z.data.min() >= 0)


@SETTINGS
@given(vectors)
def test_projections_are_on_the_simplex_and_nearest(y):
    """Nearest: (y - x)'(u - x) <= 0 for every corner u of the simplex."""
    x = np.array(y)
    project_in_place(x)
    assert x.min() >= 0 and abs(x.sum() - 1) < 1e-12
    rest = np.array(y) - x
    scale = max(1.0, float(np.abs(y).max()))
    assert (rest - rest @ x).max() <= 1e-9 * scale
