"""Each compiled loop against the same in plain NumPy, with the array types snapshots have."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_matrix, random_array

from sdretrieval.collection.records import rank_order
from sdretrieval.core.array_folder import read_only
from sdretrieval.core.compiled import Compiled
from sdretrieval.index import rows as rows_module
from sdretrieval.index.rows import Rows, packed_rows, rows_by_term, terms_by_row
from sdretrieval.index.sparse import transpose
from sdretrieval.ranking import loops

N_DOCS, N_TERMS = 40, 60
KINDS = {"log": loops.LOG, "saturating": loops.SATURATING, "floored": loops.FLOORED, "diverging": loops.DIVERGING}


def phi(kind: int, counts: np.ndarray, A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Documents x words; 0 where the word is not."""
    if kind == loops.LOG:
        value = np.log(1 + counts * A[None, :] * B[:, None])
    elif kind == loops.SATURATING:
        value = A[None, :] * counts / (counts + B[:, None])
    elif kind == loops.FLOORED:
        value = np.maximum(0, np.log(1 + counts * A[None, :]) + B[:, None])
    else:
        f = np.maximum(counts, 1)
        rest = 1 - f * B[:, None]
        value = rest**2 / (f + 1) * (f * np.log2(f * A[None, :] * B[:, None]) + np.log2(2 * np.pi * f * rest) / 2)
    return np.where(counts > 0, value, 0.0)


@pytest.fixture(scope="module")
def matrix() -> csr_matrix:
    """Documents x words, one document and one word without anything."""
    random = np.random.default_rng(5)
    sparse = random_array((N_DOCS, N_TERMS), density=0.15, rng=random, format="csr")
    counts = csr_matrix(np.ceil(sparse.toarray() * 5).astype(np.int32))
    dense = counts.toarray()
    dense[7], dense[:, 9] = 0, 0
    return csr_matrix(dense)


@pytest.fixture(scope="module")
def factors() -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(6)
    return random.uniform(0.1, 5.0, N_TERMS), random.uniform(-1.0, 3.0, N_DOCS)


def parts(m: csr_matrix) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """As in a snapshot: 64-bit pointers, 32-bit numbers, read-only."""
    return tuple(map(read_only, (m.indptr.astype(np.int64), m.indices.astype(np.int32), m.data.astype(np.int32))))


def b_of(kind: int, B: np.ndarray) -> np.ndarray:
    if kind == loops.DIVERGING:  # one by the length of a document, which has more words than one
        return 0.1 / (1 + np.abs(B))
    return B if kind == loops.FLOORED else np.abs(B) + 0.1


def test_transpose(matrix: csr_matrix):
    ptr, terms, counts = parts(matrix)
    out = np.empty(N_TERMS + 1, np.int64), np.empty(matrix.nnz, np.int32), np.empty(matrix.nnz, np.int32)
    transpose(ptr, terms, counts, *out)
    wanted = matrix.T.tocsr()
    wanted.sort_indices()
    assert out[0].tolist() == wanted.indptr.tolist()
    assert out[1].tolist() == wanted.indices.tolist()
    assert out[2].tolist() == wanted.data.tolist()


def test_transpose_of_nothing():
    out_ptr = np.ones(3, np.int64)
    nothing = np.zeros(0, np.int32)
    transpose(np.zeros(1, np.int64), nothing, nothing, out_ptr, nothing.copy(), nothing.copy())
    assert out_ptr.tolist() == [0, 0, 0]


@pytest.fixture(params=[16, 30], ids=["all counts in the words", "most in a list"])
def least_bits(request, monkeypatch) -> int:
    monkeypatch.setattr(rows_module, "LEAST_BITS", request.param)
    return request.param


def rows_of(m: csr_matrix) -> Rows:
    """As in a snapshot, of that vocabulary."""
    ptr, terms, counts = parts(m)
    arrays = {"doc_ptr": ptr, "cf": np.ones(m.shape[1]), **packed_rows(terms, counts, m.shape[1])}
    return Rows.of({name: read_only(values) for name, values in arrays.items()})


def test_rows_by_term_and_back(matrix: csr_matrix, least_bits: int):
    wanted, by_term = rows_of(matrix), matrix.T.tocsr()
    by_term.sort_indices()
    n_large = int((matrix.data >= 1 << (32 - least_bits)).sum())
    out = np.empty(N_DOCS + 1, np.int64), np.empty(matrix.nnz, np.uint32)
    large = np.empty(n_large, np.int64), np.empty(n_large, np.int32)
    rows_by_term(*parts(by_term), least_bits, *out, *large)
    order = np.argsort(large[0])
    found = wanted._replace(ptr=out[0], words=out[1], large_at=large[0][order], large_counts=large[1][order])
    for ours, theirs in zip(found, wanted, strict=True):
        assert np.array_equal(ours, theirs)
    back = np.empty(N_TERMS + 1, np.int64), np.empty(matrix.nnz, np.int32), np.empty(matrix.nnz, np.int32)
    terms_by_row(wanted, *back)
    for ours, theirs in zip(back, parts(by_term), strict=True):
        assert ours.tolist() == theirs.tolist()
    for span in ((0, None), (0, 17), (17, 60), (60, 60), (matrix.nnz - 1, matrix.nnz)):
        terms, counts = wanted.taken(*span)
        assert terms.tolist() == matrix.indices[slice(*span)].tolist()
        assert counts.tolist() == matrix.data[slice(*span)].tolist()


def test_rows_of_nothing():
    none, out_ptr, words = np.zeros(0, np.int32), np.ones(3, np.int64), np.zeros(0, np.uint32)
    rows_by_term(np.zeros(1, np.int64), none, none, 16, out_ptr, words, np.zeros(0, np.int64), none.copy())
    assert out_ptr.tolist() == [0, 0, 0]
    out_ptr[:] = 1
    terms_by_row(rows_of(csr_matrix((0, 2), dtype=np.int32)), out_ptr, none.copy(), none.copy())
    assert out_ptr.tolist() == [0, 0, 0]


def walked(matrix: csr_matrix, factors, kind: int, size: int, weights, groups: int, wide: bool) -> np.ndarray:
    """Sums by document and plan, in spans of documents one after the other and blocks of the given size."""
    A, by_group = factors[0], b_of(kind, factors[1])[:groups]
    group = read_only(np.arange(N_DOCS, dtype=np.int32) % groups)
    terms = np.flatnonzero(np.diff(weights.indptr))
    given = weights[terms]
    ptr, docs, counts = parts(matrix.T.tocsr())
    tables = loops.evidence_tables(ptr, terms, A[terms], by_group, kind, 5 * groups)
    scores = np.full((weights.shape[1], N_DOCS), -0.0)
    for start, stop in ((0, 13), (13, 13), (13, N_DOCS)):
        cursor = loops.first_postings(ptr, docs, terms, start)
        assert cursor.tolist() == [ptr[t] + np.searchsorted(docs[ptr[t] : ptr[t + 1]], start) for t in terms]
        for left in range(start, stop, size):
            right = min(left + size, stop)
            args = (
                ptr,
                docs,
                counts,
                terms,
                given.indptr.astype(np.int64),
                given.indices.astype(np.int64),
                given.data,
                A[terms],
                by_group,
                group,
                kind,
                *tables,
                cursor,
                left,
                right,
            )
            if wide:
                block = np.full((right - left, len(scores)), -0.0)
                loops.score_wide(*args, block)
                scores[:, left:right] = block.T
            else:
                loops.score_narrow(*args, left, scores)
    return scores.T


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
@pytest.mark.parametrize("size", [1, 7, 8192])
@pytest.mark.parametrize("share", [0.05, 0.9], ids=["few-plans-a-word", "most"])
@pytest.mark.parametrize("groups", [2, N_DOCS], ids=["table", "no-table"])
def test_score_narrow_and_wide(matrix: csr_matrix, factors, kind: int, size: int, share: float, groups: int):
    """Any block size, words that few or that most plans have, weights of both signs: the equation; the same bits."""
    B = b_of(kind, factors[1])[:groups][np.arange(N_DOCS) % groups]
    random = np.random.default_rng(7)
    weights = random_array((N_TERMS, 9), density=share, rng=random, format="csr")
    weights.data -= 0.3
    narrow = walked(matrix, factors, kind, size, weights, groups, wide=False)
    wide = walked(matrix, factors, kind, size, weights, groups, wide=True)
    np.testing.assert_allclose(narrow, phi(kind, matrix.toarray(), factors[0], B) @ weights.toarray(), atol=1e-13)
    assert np.array_equal(narrow, wide)
    met = (matrix.toarray() > 0).astype(int) @ (weights.toarray() != 0).astype(int) > 0
    assert np.array_equal(~((narrow == 0) & np.signbit(narrow)), met)
    out = np.empty(N_DOCS, np.int64)
    for q in range(9):
        n = loops.touched(np.ascontiguousarray(narrow[:, q]), out)
        assert out[:n].tolist() == np.flatnonzero(met[:, q]).tolist()


def test_evidence_tables(matrix: csr_matrix, factors):
    """Only words with many postings have one, and only while there is room."""
    ptr, _, _ = parts(matrix.T.tocsr())
    A, B = factors[0], np.array([0.5, 2.0])
    terms = np.arange(0, N_TERMS, 2)
    common = np.flatnonzero(np.diff(ptr)[terms] > 4)
    assert 3 < len(common) < len(terms)
    for most, n in ((10**6, len(common)), (7, 3), (0, 0)):
        tables, row_of = loops.evidence_tables(ptr, terms, A[terms], B, loops.LOG, most)
        assert np.flatnonzero(row_of >= 0).tolist() == common[:n].tolist()
        np.testing.assert_allclose(tables, np.log1p(np.outer(A[terms[common[:n]]], B)), rtol=1e-12)
    assert len(loops.evidence_tables(ptr, terms, A[terms], B, loops.SATURATING, 10**6)[0]) == 0


@pytest.mark.parametrize("plans", [1, 9], ids=["most-plans-have-it", "few"])
@pytest.mark.parametrize(
    ("kind", "b", "weights"),
    [
        (loops.LOG, 1.0, [1.0, -1.0]),  # x - x
        (loops.FLOORED, -9.0, [1.0, -1.0]),  # floored at 0
        (loops.FLOORED, -9.0, [-1.0, -1.0]),  # and that times a negative weight
        (loops.LOG, 1.0, [-0.0, 0.0]),
        (loops.DIVERGING, 1.0, [1.0, 1.0]),  # documents that have one word only
        (loops.DIVERGING, 1.0, [-1.0, -1.0]),
        (loops.DIVERGING, 0.01, [1.0, -1.0]),
    ],
)
def test_a_document_whose_evidence_comes_to_nothing_was_met(plans, kind, b, weights):
    """Its sum is 0.0, while that of an unmet document stays -0.0; and of a plan without the words."""
    counts = csr_matrix(np.array([[1, 1], [1, 0]] + [[0, 0]] * 7))
    ptr, docs, f = parts(counts.T.tocsr())
    args = (
        ptr,
        docs,
        f,
        np.arange(2),
        np.arange(3, dtype=np.int32),
        np.zeros(2, np.int32),
        np.array(weights),
        np.ones(2),
        np.full(1, b),
        np.zeros(9, np.int32),
        kind,
        np.zeros((0, 1)),
        np.full(2, -1, np.int32),
    )
    narrow, wide = np.full((plans, 9), -0.0), np.full((9, plans), -0.0)
    loops.score_narrow(*args, ptr[:2].copy(), 0, 9, 0, narrow)
    loops.score_wide(*args, ptr[:2].copy(), 0, 9, wide)
    for scores in (narrow, wide.T):
        assert scores[0, 0] == 0.0
        assert np.signbit(scores[0]).tolist() == [False, bool(scores[0, 1] < 0)] + [True] * 7
        assert np.signbit(scores[1:]).all()


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_score_candidates(matrix: csr_matrix, factors, kind: int, least_bits: int):
    A, B = factors[0], b_of(kind, factors[1])
    docs = np.array([5, 7, 0, 39, 5])
    weights = np.where(np.arange(N_TERMS) % 3 == 0, 0.0, np.linspace(-1, 1, N_TERMS))
    scores = np.full(len(docs), np.nan)
    loops.score_candidates(rows_of(matrix), docs, weights, A, B[docs], kind, scores)
    np.testing.assert_allclose(scores, (phi(kind, matrix.toarray(), A, B) @ weights)[docs], atol=1e-13)


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_background_scores(matrix: csr_matrix, factors, kind: int, least_bits: int):
    A, B = factors[0], b_of(kind, factors[1])
    p = np.asarray(matrix.sum(axis=0)).ravel() / matrix.sum()
    scores = np.full(N_DOCS, np.nan)
    loops.background_scores(rows_of(matrix), p, A, B, kind, 3, 30, scores)
    np.testing.assert_allclose(scores[3:30], (phi(kind, matrix.toarray(), A, B) @ p)[3:30], atol=1e-14)
    assert np.isnan(scores[:3]).all() and np.isnan(scores[30:]).all()


def test_copy_rows(matrix: csr_matrix, least_bits: int):
    docs = np.array([5, 7, 39, 0, 5])
    wanted = matrix[docs]
    out_ptr = wanted.indptr.astype(np.int64)
    out_terms, out_counts = np.empty(wanted.nnz, np.int32), np.empty(wanted.nnz, np.int32)
    loops.copy_rows(rows_of(matrix), docs, out_ptr, out_terms, out_counts)
    assert out_terms.tolist() == wanted.indices.tolist()
    assert out_counts.tolist() == wanted.data.tolist()


@pytest.mark.parametrize("use_log", [False, True])
def test_sum_rows(matrix: csr_matrix, factors, use_log: bool):
    A, B = factors[0], np.abs(factors[1])
    weights = np.where(np.arange(N_DOCS) < np.array([[10], [0], [25]]), np.linspace(0.1, 1, N_DOCS), 0.0)
    totals, counts = np.zeros((3, N_TERMS)), matrix.toarray()
    loops.sum_rows(*parts(matrix), weights, B, 1 / A, use_log, totals)
    value = np.log1p(counts * A * B[:, None]) if use_log else counts * B[:, None]
    np.testing.assert_allclose(totals, weights @ value, atol=1e-13)


def test_log1p_keeps_tiny_evidence():
    """λ_M2 may be so small that 1 + x is 1: the geometric mean must not lose it."""
    totals, one = np.zeros((1, 1)), np.array([1], np.int32)
    given = np.array([0, 1]), np.array([0], np.int32), one, np.ones((1, 1)), np.array([1e-20]), np.ones(1)
    loops.sum_rows(*given, True, totals)
    assert totals[0, 0] == 1e-20


@pytest.mark.parametrize("n", [1, 3, 5])
def test_keep_largest(n: int):
    lists = np.array(
        [[0.2, -1.0, 0.4, 0.2, 0.0, 0.2], [0.0, -3.0, 0.0, 0.0, -0.5, 0.0], [0.0, 0.0, 0.0, 0.3, 0.0, 0.0]]
    )
    loops.keep_largest(lists, n)
    first = {1: [0, 0, 1, 0, 0, 0], 3: [0.25, 0, 0.5, 0.25, 0, 0], 5: [0.2, 0, 0.4, 0.2, 0, 0.2]}[n]
    np.testing.assert_allclose(lists, [first, [0] * 6, [0, 0, 0, 1, 0, 0]], atol=1e-15)


def test_score_rows(matrix: csr_matrix, factors):
    A, B = factors[0], np.abs(factors[1])
    weights = np.where(np.arange(N_TERMS) % 3 == 0, 0.0, np.linspace(-1, 1, N_TERMS))
    scores = np.full(N_DOCS, np.nan)
    loops.score_rows(*parts(matrix), weights, B, 1 / A, scores)
    np.testing.assert_allclose(scores, phi(loops.LOG, matrix.toarray(), A, B) @ weights, atol=1e-13)


@pytest.mark.parametrize("most", [1, 3, 1000])
def test_sum_cut_rows(matrix: csr_matrix, most: int):
    """Each row cut by sorting: most frequent first, then the lower word; the rows added one after the other."""
    usable = np.arange(N_TERMS) % 4 != 0
    weights = np.linspace(0.5, 2, N_DOCS).astype(np.float32)
    total, order = np.zeros(N_TERMS, np.float32), np.full(matrix.nnz, -1)
    met = loops.sum_cut_rows(*parts(matrix), usable, most, weights, total, order)
    wanted = np.zeros(N_TERMS, np.float32)
    for row, weight in zip(matrix.toarray(), weights, strict=True):
        words = sorted((w for w in range(N_TERMS) if usable[w] and row[w]), key=lambda w: (-row[w], w))[:most]
        length = np.float32(row[words].sum())
        for w in words:
            wanted[w] += np.float32(row[w]) / length * weight
    assert total.tolist() == wanted.tolist()
    assert sorted(order[:met].tolist()) == np.flatnonzero(wanted).tolist()


def test_merge():
    random = np.random.default_rng(8)
    for _ in range(50):
        a, b = (np.where(random.random(12) < 0.5, random.choice([-1.0, 0.5, 1.0], 12), 0.0) for _ in range(2))
        terms, weights = np.empty(24, np.int64), np.empty(24)
        n = loops.merge(np.flatnonzero(a), a[a != 0], np.flatnonzero(b), b[b != 0], terms, weights)
        assert terms[:n].tolist() == np.flatnonzero(a + b).tolist()
        assert weights[:n].tolist() == (a + b)[a + b != 0].tolist()


@pytest.mark.parametrize("n", [1, 3, 50])
def test_largest(n: int):
    random = np.random.default_rng(n)
    for values in (random.integers(0, 5, 50).astype(float), random.normal(size=50), np.zeros(50)):
        kept = np.empty(n, np.int64)
        loops.largest(values, kept)
        assert kept.tolist() == sorted(np.lexsort((np.arange(50), -values))[:n].tolist())


@pytest.mark.parametrize("depth", [1, 5, 40, 1000])
@pytest.mark.parametrize("plans", [1, 3])
def test_keep_best(depth: int, plans: int):
    """Against records.rank_order, with ties, signs, zeros of both signs, and differences only doubles see.

    Every part of the completion takes part: general English, the background's share by length, the constant.
    """
    random = np.random.default_rng(depth)
    values = np.array([-2.5, -1e-30, -0.0, 0.0, 1.0, 1.0 + 1e-12, 3.25, np.inf, -np.inf, 1e300])
    for trial in range(40):
        n = int(random.integers(1, 400))
        shape = (plans, n)
        scores = np.where(random.random(shape) < 0.5, random.choice(values, shape), random.normal(size=shape))
        tie, group = (read_only(a.astype(np.int32)) for a in (random.permutation(n), random.integers(0, 4, n)))
        static, share = (random.normal(size=n), random.normal(size=4)) if trial % 2 else (np.zeros(0), np.zeros(0))
        g, mass, constant = random.normal(size=(3, plans))
        allowed = random.random(n) < 0.8 if trial % 5 else np.zeros(0, bool)
        room = (plans, 2 * min(depth, n) + 64)
        keys, kept = np.empty(room, np.int64), np.empty(room)
        filled, floors = np.zeros(plans, np.int64), np.full(plans, -np.inf, np.float32)
        middle = n // 2
        for left, right in ((0, middle), (middle, n)):
            block = np.full((plans, n), np.nan)  # the room may be wider than the block
            block[:, : right - left] = scores[:, left:right]
            assert loops.keep_best(
                block,
                right - left,
                left,
                allowed,
                static,
                g,
                share,
                group,
                mass,
                constant,
                tie,
                min(depth, n),
                keys,
                kept,
                filled,
                floors,
            )
        for q in range(plans):
            complete = scores[q]
            if len(static):
                complete = complete + g[q] * static + mass[q] * share[group]
            complete = complete + constant[q]
            counts = ~((scores[q] == 0) & np.signbit(scores[q]))
            docs = np.flatnonzero(counts & allowed if len(allowed) else counts)
            best = docs[rank_order(tie[docs], complete[docs], depth)]
            order = np.argsort(keys[q, : filled[q]])[::-1][:depth]
            assert (keys[q, order] & 0xFFFFFFFF).tolist() == tie[best].tolist()
            np.testing.assert_allclose(kept[q, order], complete[best], rtol=1e-12)


def test_keep_best_refuses_what_is_not_a_number():
    nothing, one = np.zeros(0), np.zeros(1)
    assert not loops.keep_best(
        np.array([[1.0, np.nan]]),
        2,
        0,
        np.zeros(0, bool),
        nothing,
        one,
        nothing,
        read_only(np.zeros(2, np.int32)),
        one,
        one,
        read_only(np.arange(2, dtype=np.int32)),
        2,
        np.zeros((1, 68), np.int64),
        np.zeros((1, 68)),
        np.zeros(1, np.int64),
        np.zeros(1, np.float32),
    )


def test_order_keys():
    """The order is the ranking's: ties in single precision, signs, zeros and infinities among them."""
    rng = np.random.default_rng(7)
    scores = np.concatenate([rng.normal(size=200).round(1), [0.0, -0.0, np.inf, -np.inf, 1.0, 1.0 + 1e-9]])
    tie = rng.permutation(len(scores)).astype(np.int32)
    keys, are_numbers = loops.order_keys(scores, tie)
    assert are_numbers and np.argsort(keys)[::-1].tolist() == rank_order(tie, scores).tolist()
    assert not loops.order_keys(np.array([1.0, np.nan]), tie[:2])[1]


def test_every_compiled_loop_is_compared_here():
    compiled = {name for name, value in vars(loops).items() if isinstance(value, Compiled) and name[0] != "_"}
    tested = {name.removeprefix("test_") for name in globals() if name.startswith("test_")}
    parts = {"evidence", "first_at", "first_postings", "ordered", "score_narrow", "score_wide", "touched", "untouched"}
    parts |= {"count_of", "term_of"}
    assert compiled <= tested | parts | {"select"}, compiled - tested


@pytest.mark.parametrize("others", [0.0, 12.5])
def test_associations(matrix: csr_matrix, others: float):
    """Against mutual information from the four cases as probabilities."""
    random = np.random.default_rng(9)
    rows = csr_matrix(matrix.toarray()[:8])
    weights, df = random.uniform(0.5, 1.5, 8), random.integers(0, 30, N_TERMS)
    wanted, values, total = np.array([3, 17, 40]), np.array([1.0, 0.5, 2.0]), np.zeros(N_TERMS)
    ptr, place, _ = parts(rows)
    outside = 40 if others else 0
    loops.associations(ptr, place.astype(np.int64), weights, df, outside, others, wanted, values, total)

    has, n = rows.toarray() > 0, weights.sum() + others
    u = np.maximum(df - has.sum(axis=0), 0) / 40  # the share of the documents outside

    def information(q: int, t: int, share: float) -> tuple[float, float]:
        value, both = 0.0, (weights[has[:, q] & has[:, t]].sum() + others * share) / n
        p_q, p_t = ((weights[has[:, w]].sum() + others * u[w]) / n for w in (q, t))
        cases = ((both, p_q, p_t), (p_q - both, p_q, 1 - p_t), (p_t - both, 1 - p_q, p_t))
        for p, x, y in (*cases, (1 - p_q - p_t + both, 1 - p_q, 1 - p_t)):
            value += p * np.log(p / (x * y)) if p > 1e-12 else 0.0
        return value, both - p_q * p_t

    expected = np.zeros(N_TERMS)
    for q, v in zip(wanted, values, strict=True):
        for t in range(N_TERMS):
            found, together = information(q, t, u[q] * u[t])
            itself, _ = information(q, q, u[q])
            if has[:, q].any() and has[:, t].any() and t != q and together > 0 and itself > 1e-12:
                expected[t] += v * found / itself
    assert expected.any()
    np.testing.assert_allclose(total, expected, rtol=1e-10, atol=1e-14)
