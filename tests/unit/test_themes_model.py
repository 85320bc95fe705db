"""The estimator: section 5.1's example, the objective, batches, files, and bad input."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from sdretrieval.core.errors import InputError, ParameterError
from sdretrieval.core.saved_arrays import save_arrays
from sdretrieval.learn.lcsc import LocalContextSparseCoding, Sequences
from sdretrieval.learn.lcsc.sequences import sequences

# Section 5.1: a goes with b in the first two, with c in the others; all four have three of each.
EXAMPLE = [list("abababccc"), list("bababaccc"), list("acacacbbb"), list("cacacabbb")]


def two_subjects(n_docs: int = 12, seed: int = 0) -> list[list[str]]:
    """Documents whose first half is about one thing and whose second half about another."""
    rng = np.random.default_rng(seed)
    sea, bread = ["sea", "ship", "port", "wave", "sail"], ["bread", "flour", "oven", "yeast", "salt"]
    return [
        [*rng.choice(sea if d % 2 else bread, 20).tolist(), *rng.choice(bread if d % 2 else sea, 20).tolist()]
        for d in range(n_docs)
    ]


@pytest.mark.parametrize("loss", ["squared", "hellinger"])
@pytest.mark.parametrize("seed", range(5))
def test_the_example_of_section_5_1(loss, seed):
    """Two themes, one between a and b, one between a and c; Dz of x1, x2 apart from Dz of x3, x4 (Figure 2)."""
    model = LocalContextSparseCoding(
        2, bandwidth=0.7, loss=loss, random_state=seed, max_iter=100, tol=1e-7, coding_tol=1e-9
    )
    z = model.fit_transform(EXAMPLE)
    assert model.vocabulary_ == ("a", "b", "c")
    (ab, ac) = sorted(model.components_.tolist(), key=lambda theme: theme[2])
    assert ab[2] < 1e-3 and min(ab[0], ab[1]) > 0.2  # between a and b
    assert ac[1] < 1e-3 and min(ac[0], ac[2]) > 0.2  # between a and c
    Dz = z @ model.components_
    within = max(np.linalg.norm(Dz[0] - Dz[1]), np.linalg.norm(Dz[2] - Dz[3]))
    between = min(np.linalg.norm(Dz[i] - Dz[j]) for i in (0, 1) for j in (2, 3))
    assert between > 2 * within
    assert (Dz[:2, 1] > Dz[:2, 2]).all() and (Dz[2:, 2] > Dz[2:, 1]).all()


def test_counts_cannot_tell_the_example_apart_and_contexts_can():
    """Bags of words are alike in section 5.1."""
    assert len({tuple(row) for row in sequences(EXAMPLE).counts.toarray().tolist()}) == 1


@pytest.mark.parametrize("loss", ["squared", "hellinger"])
@pytest.mark.parametrize("step", ["columns", "gradient"])
@pytest.mark.parametrize("coupling", [1e-4, 0.5])
def test_the_objective_never_rises(loss, step, coupling):
    model = LocalContextSparseCoding(
        7, loss=loss, dictionary_step=step, coupling=coupling, max_iter=15, tol=0.0, coding_tol=1e-4, random_state=1
    )
    model.fit(two_subjects())
    values = np.array(model.objective_)
    assert len(values) == model.n_iter_ + 1 > 3
    assert (np.diff(values) <= 1e-12 * values[:-1]).all()
    assert values[-1] < 0.9 * values[0]


def test_transform_of_the_training_documents_is_what_fitting_gave():
    """Given the themes, codes and z are one convex problem: they do not depend on where one starts."""
    options = {"coupling": 1e-4, "max_iter": 5, "coding_tol": 1e-12, "random_state": 0, "rounds": 5}
    model = LocalContextSparseCoding(4, **options)
    z = model.fit_transform(two_subjects())
    np.testing.assert_allclose(model.transform(two_subjects()).toarray(), z.toarray(), atol=1e-4)


def test_two_subjects_are_told_apart_along_a_document():
    model = LocalContextSparseCoding(2, bandwidth=2.0, max_iter=30, random_state=0).fit(two_subjects())
    codes = model.code([two_subjects()[1]]).codes.toarray()
    first, second = codes[:15].sum(axis=0).argmax(), codes[-15:].sum(axis=0).argmax()
    assert first != second
    assert {word for word, _ in model.top_words(int(first), 5)} == {"sea", "ship", "port", "wave", "sail"}


def test_same_seed_same_themes_whatever_the_threads():
    one = LocalContextSparseCoding(5, random_state=3, n_jobs=1, max_iter=4).fit(two_subjects())
    two = LocalContextSparseCoding(5, random_state=3, n_jobs=3, max_iter=4).fit(two_subjects())
    np.testing.assert_array_equal(one.components_, two.components_)


@pytest.mark.parametrize("loss", ["squared", "hellinger"])
def test_batches_come_near_what_all_at_once_gives(loss):
    documents = two_subjects(60)
    options = {"loss": loss, "random_state": 0, "max_iter": 12, "bandwidth": 2.0, "tol": 1e-4}
    whole = LocalContextSparseCoding(2, **options).fit(documents)
    batched = LocalContextSparseCoding(2, batch_size=10, **options).fit(documents)

    def value(model):
        return model.code(documents).objective

    assert value(batched) < 1.1 * value(whole)
    assert batched.objective_[-1] < batched.objective_[0]


def test_partial_fit_keeps_the_words_of_the_first_batch():
    model = LocalContextSparseCoding(3, random_state=0)
    model.partial_fit(two_subjects(6)).partial_fit([["sea", "unheard-of"], ["bread"]])
    assert "unheard-of" not in model.vocabulary_
    assert model.transform([["unheard-of"], ["sea"]]).shape == (2, 3)


def test_batches_from_a_stream_with_a_given_vocabulary():
    documents = sequences(two_subjects(20))
    model = LocalContextSparseCoding(2, random_state=0, max_iter=3)
    model.fit_batches(
        lambda: (documents.select(range(i, i + 5)) for i in range(0, 20, 5)), vocabulary=documents.vocabulary
    )
    assert model.n_iter_ <= 3 and model.components_.shape == (2, 10)


def test_more_themes_than_contexts_and_words():
    model = LocalContextSparseCoding(30, random_state=0, max_iter=3).fit([["a", "b"], ["c"]])
    assert model.components_.shape == (30, 3)
    np.testing.assert_allclose(model.components_.sum(axis=1), 1.0)


def test_which_words_count():
    texts = [["the", "cat"], ["the", "dog"], ["the", "cat", "once"]]
    model = LocalContextSparseCoding(1, min_df=2, max_df=0.9, random_state=0).fit(texts)
    assert model.vocabulary_ == ("cat",)
    assert LocalContextSparseCoding(1, max_features=1, random_state=0).fit(texts).vocabulary_ == ("the",)


def test_texts_are_split_as_scikit_learn_does():
    assert LocalContextSparseCoding(1, random_state=0).fit(["The cat, a dog!"]).vocabulary_ == ("cat", "dog", "the")


# -- manners of scikit-learn ---------------------------------------------------------------------------------------


def test_clone_pipeline_and_names():
    from sklearn.pipeline import make_pipeline
    from sklearn.svm import LinearSVC

    model = clone(LocalContextSparseCoding(4, bandwidth=2.0, random_state=0))
    assert model.bandwidth == 2.0
    documents = two_subjects(20)
    # the order of subjects cannot be told from z, but what stands in a document can
    texts = [d[:20] for d in documents]
    kinds = ["sea" if "sea" in d or "ship" in d else "bread" for d in texts]
    pipeline = make_pipeline(model, LinearSVC(random_state=0)).fit(texts, kinds)
    assert pipeline.score(texts, kinds) == 1.0
    assert model.get_feature_names_out().tolist() == ["topic0", "topic1", "topic2", "topic3"]


def test_bad_parameters_are_named():
    good = LocalContextSparseCoding()
    bad = {"kernel": "box", "loss": "l1", "dictionary_step": "newton", "tol": "small", "coupling": float("nan")}
    bad |= {"bandwidth": -1.0, "sparsity": -1e-9, "max_iter": -1, "n_components": 1.5}
    bad |= dict.fromkeys(("batch_size", "min_df", "max_df", "rounds", "max_features"), 0)
    for name, value in [*bad.items(), ("n_components", 0)]:
        with pytest.raises(ParameterError, match=name):
            clone(good).set_params(**{name: value}).fit([["a", "b"]])


@pytest.mark.parametrize("documents", ["one text", [1, 2], [["a", 3]], np.ones((2, 3))])
def test_documents_that_are_not_words_in_order_are_refused(documents):
    with pytest.raises(ParameterError):
        LocalContextSparseCoding(1).fit(documents)


def test_nothing_to_learn_from():
    for documents in ([], [[]], [["rare"], ["other"]]):
        with pytest.raises(ParameterError, match="no words to learn from"):
            LocalContextSparseCoding(1, min_df=2).fit(documents)


def test_words_and_themes_that_are_not_known():
    with pytest.raises(NotFittedError):
        LocalContextSparseCoding().transform([["a"]])
    model = LocalContextSparseCoding(2, random_state=0).fit(two_subjects())
    assert model.transform([[], ["unknown"]]).nnz == 0
    assert model.transform([]).shape == (0, 2)
    with pytest.raises(ParameterError, match="no theme 2"):
        model.top_words(2)


# -- files ---------------------------------------------------------------------------------------------------------


def test_saved_and_loaded(tmp_path):
    model = LocalContextSparseCoding(3, bandwidth=2.0, loss="hellinger", random_state=0).fit(two_subjects())
    model.save(tmp_path / "model")
    again = LocalContextSparseCoding.load(tmp_path / "model")
    assert again.get_params() == model.get_params()
    assert again.vocabulary_ == model.vocabulary_ and again.objective_ == model.objective_
    np.testing.assert_array_equal(again.components_, model.components_)
    np.testing.assert_array_equal(again.transform(two_subjects()).toarray(), model.transform(two_subjects()).toarray())


def test_files_that_are_no_themes(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        LocalContextSparseCoding.load(tmp_path / "missing")
    (tmp_path / "text").write_text("not a model")
    with pytest.raises(InputError, match="text"):
        LocalContextSparseCoding.load(tmp_path / "text")
    parameters = LocalContextSparseCoding(1).get_params()
    whole = {"parameters": parameters, "vocabulary": ["a", "b"], "objective": [], "n_iter": 0}
    column = {"ptr": np.array([0, 2]), "words": np.array([0, 1]), "weights": np.array([0.5, 0.5])}
    for header, arrays in (
        ({**whole, "parameters": {**parameters, "bandwidth": -1}}, column),
        ({**whole, "parameters": {"surprise": 1}}, column),
        ({**whole, "vocabulary": ["a"]}, column),
        (whole, {**column, "weights": np.array([0.5, 0.9])}),
        (whole, {**column, "words": np.array([0, 7])}),
        (whole, {**column, "ptr": np.array([0, 5])}),
        (whole, {"ptr": column["ptr"]}),
    ):
        save_arrays(tmp_path / "bad", "topic model", header, arrays)
        with pytest.raises(InputError, match="is not a topic model this version can use"):
            LocalContextSparseCoding.load(tmp_path / "bad")


# -- sequences -----------------------------------------------------------------------------------------------------


def test_sequences_select_and_change_words():
    documents = sequences([["b", "a"], [], ["c", "b", "b"]])
    assert documents.vocabulary == ("a", "b", "c")
    chosen = documents.select([2, 0])
    assert [chosen.words(d) for d in range(2)] == [["c", "b", "b"], ["b", "a"]]
    assert chosen.docids == ("2", "0")
    assert documents.select(np.array([False, False, True])).words(0) == ["c", "b", "b"]
    fewer = documents.with_vocabulary(["b"])
    assert [fewer.words(d) for d in range(3)] == [["b"], [], ["b", "b"]]
    np.testing.assert_array_equal(documents.counts.toarray(), [[1, 1, 0], [0, 0, 0], [0, 2, 1]])


def test_sequences_need_a_docid_each():
    with pytest.raises(ParameterError, match="docids"):
        Sequences(np.zeros(0, dtype=np.int32), np.array([0, 0]), (), ("a", "b"))
