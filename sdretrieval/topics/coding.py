"""Codes β and documents z for a given dictionary: greedy coordinate descent, Algorithm 1.

One coordinate of one code is minimised in closed form, (6) with its slip put right (max, not min):

    β_k ← max(0, b_k - λ/2) / a_k,    a_k = ρ + ‖D_k‖²,    b_k = ρ z_k + D_k'φ - Σ_{l≠k} (D'D)_kl β_l

The coordinate that lowers the objective most, by a_k (β̃_k - β_k)², goes first; b is kept up to date through a column of
D'D. (The paper ranks coordinates by |β̃_k - β_k|, which it calls an approximation of that decrease.)

**Only candidates are looked at.** D, β and φ are not negative, so b_k never exceeds ρ z_k + D_k'φ whatever β is: a
topic for which that is at most λ/2 has β_k = 0 at every step and at the optimum. Leaving it out changes nothing, and
it leaves tens of topics of thousands. They are found without looking at the others: φ sums to one, so D_k'φ is at most
the largest D_vk among the context's words, and a candidate has a word of the context for which D_vk > λ/2 - ρ z_k. A
list of such topics for each word (its *heads*) is all that has to be walked.

z is the mean of the codes of its document, (7); codes and z are solved in turn (``rounds``), each exactly, so that the
objective never rises. Given D the problem is convex in codes and z together. Documents are independent: they are shared
out over threads, and the compiled loop lets go of the interpreter.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy.sparse import csc_matrix, csr_matrix

from sdretrieval.topics.hellinger import solve_hellinger

MOST_DENSE = 60_000_000  # entries of D held as a full table: 480 MB
HEADS = (
    0.9  # of λ/2: how large D_vk must be for topic k to stand in the list of word v; the rest is left to ρ z
)
CHUNKS_PER_THREAD = 8  # so that a thread with the long documents does not keep the others waiting


@dataclass(frozen=True, eq=False)
class Coded:
    """What coding gives: β (positions x topics), z (documents x topics), the objective (5), and coordinate steps."""

    codes: csr_matrix
    documents: csr_matrix
    objective: float
    steps: int


def threads_of(n_jobs: int | None) -> int:
    """scikit-learn's meaning of n_jobs, except that None is all processors: nothing is copied to threads."""
    processors = os.cpu_count() or 1
    if n_jobs is None or n_jobs == -1:
        return processors
    return max(1, n_jobs if n_jobs > 0 else processors + 1 + n_jobs)


def in_threads(work: Callable[[int, int], tuple], doc_ptr: NDArray, n_threads: int) -> list[tuple]:
    """``work(first, last)`` over ranges of documents of about as many positions each, in order."""
    edges = np.array([0, len(doc_ptr) - 1])
    if n_threads > 1:
        n_chunks = n_threads * CHUNKS_PER_THREAD
        edges = np.searchsorted(doc_ptr, np.linspace(0, doc_ptr[-1], n_chunks + 1))
        edges[0], edges[-1] = 0, len(doc_ptr) - 1
        edges = np.unique(edges)
    spans = [(int(a), int(b)) for a, b in pairwise(edges.tolist())]
    if len(spans) < 2:
        return [work(*span) for span in spans]
    with ThreadPoolExecutor(n_threads) as pool:
        return list(pool.map(lambda span: work(*span), spans))


def code(
    contexts: csr_matrix,
    doc_ptr: NDArray,
    dictionary: csc_matrix,
    *,
    sparsity: float,
    coupling: float,
    loss: str = "squared",
    start: csr_matrix | None = None,
    gram: NDArray | None = None,
    rounds: int = 3,
    tol: float = 1e-6,
    n_threads: int = 1,
) -> Coded:
    """Codes of all positions and the documents' z, from ``start`` (codes of the same shape) or from nothing.

    ``gram`` is D'D where it is known already. A code is finished when no step lowers its objective by more than
    ``tol`` times ‖φ‖² (squared) or ``tol`` (Hellinger). ``rounds``: turns of codes and z.
    """
    n_topics = dictionary.shape[1]
    by_word = csr_matrix(dictionary)
    hellinger = loss == "hellinger"
    if hellinger:
        gram = np.zeros((1, 1))
    elif gram is None:
        gram = gram_matrix(dictionary, n_threads)
    if start is None:
        start = csr_matrix((contexts.shape[0], n_topics))
    rows = dictionary.shape[0] * n_topics
    if hellinger or sparsity == 0 or rows > MOST_DENSE:
        bar, heads, table = -1.0, by_word, np.zeros((1, 1))
    else:
        bar = HEADS * 0.5 * sparsity
        heads, table = _heads(by_word, bar), by_word.toarray()
    widest = int(np.diff(contexts.indptr).max(initial=0))
    doc_ptr = np.ascontiguousarray(doc_ptr, dtype=np.int64)

    def work(first: int, last: int) -> tuple:
        return _code_documents(
            first, last, doc_ptr, contexts.indptr, contexts.indices, contexts.data,
            by_word.indptr, by_word.indices, by_word.data, heads.indptr, heads.indices, table, bar, gram,
            n_topics, widest, hellinger,
            float(sparsity), float(coupling), rounds if coupling > 0 else 1, float(tol),
            start.indptr, start.indices, start.data,
        )  # fmt: skip

    parts = in_threads(work, doc_ptr, n_threads)
    codes = _stacked([part[:3] for part in parts], n_topics)
    documents = _stacked([part[3:6] for part in parts], n_topics)
    return Coded(codes, documents, float(sum(part[6] for part in parts)), int(sum(part[7] for part in parts)))


def _heads(by_word: csr_matrix, bar: float) -> csr_matrix:
    """The entries of D over ``bar``."""
    heads = by_word.copy()
    heads.data[heads.data <= bar] = 0.0
    heads.eliminate_zeros()
    return heads


def gram_matrix(dictionary: csc_matrix, n_threads: int = 1) -> NDArray[np.float64]:
    """D'D, dense: 8 K² bytes (128 MB for 4,000 topics)."""
    n_words, n_topics = dictionary.shape
    if dictionary.nnz > 0.1 * n_words * n_topics:
        dense = dictionary.toarray()
        return np.ascontiguousarray(dense.T @ dense)
    by_word = csr_matrix(dictionary)
    by_word.sort_indices()
    gram = np.zeros((n_topics, n_topics))

    def work(first: int, last: int) -> tuple:
        _gram_rows(
            first, last, dictionary.indptr, dictionary.indices, dictionary.data,
            by_word.indptr, by_word.indices, by_word.data, gram,
        )  # fmt: skip
        return ()

    in_threads(work, np.arange(n_topics + 1), n_threads)
    _mirror(gram)
    return gram


@njit(cache=True, nogil=True)
def _gram_rows(first, last, ptr, words, values, w_ptr, w_topics, w_values, gram):
    """Rows of the upper triangle; the topics of a word ascend."""
    for k in range(first, last):
        row = gram[k]
        for t in range(ptr[k], ptr[k + 1]):
            w, x = words[t], values[t]
            for u in range(w_ptr[w + 1] - 1, w_ptr[w] - 1, -1):
                if w_topics[u] < k:
                    break
                row[w_topics[u]] += x * w_values[u]


@njit(cache=True, nogil=True)
def _mirror(gram):
    block = 64  # so that both triangles stay in the cache
    n = len(gram)
    for i0 in range(0, n, block):
        for j0 in range(i0, n, block):
            for i in range(i0, min(n, i0 + block)):
                for j in range(max(i + 1, j0), min(n, j0 + block)):
                    gram[j, i] = gram[i, j]


def _stacked(parts: list[tuple], n_topics: int) -> csr_matrix:
    """Chunks of rows as one matrix."""
    if not parts:
        return csr_matrix((0, n_topics))
    lengths = np.concatenate([part[0] for part in parts])
    ptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    topics, values = (np.concatenate([part[i] for part in parts]) for i in (1, 2))
    return csr_matrix((values, topics, ptr), shape=(len(lengths), n_topics))


@njit(cache=True, nogil=True)
def _solve_squared(n, topics, gram, b, beta, rho, lam, tol, max_steps):
    """Greedy coordinate descent over n candidates. b excludes a coordinate's own term, as in the paper."""
    steps = 0
    half = 0.5 * lam
    while steps < max_steps:
        best, chosen, value = tol, -1, 0.0
        for c in range(n):
            a = rho + gram[topics[c], topics[c]]
            new = (b[c] - half) / a if b[c] > half else 0.0
            gain = a * (new - beta[c]) ** 2
            if gain > best:
                best, chosen, value = gain, c, new
        if chosen < 0:
            break
        change = value - beta[chosen]
        beta[chosen] = value
        own = b[chosen]
        row = gram[topics[chosen]]
        for c in range(n):
            b[c] -= change * row[topics[c]]
        b[chosen] = own
        steps += 1
    return steps


@njit(cache=True, nogil=True)
def _longer(array, needed):
    if needed <= len(array):
        return array
    result = np.empty(max(needed, 2 * len(array)), dtype=array.dtype)
    result[: len(array)] = array
    return result


@njit(cache=True, nogil=True)
def _code_documents(
    first, last, doc_ptr, c_ptr, c_words, c_values, w_ptr, w_topics, w_values, h_ptr, h_topics, table, bar, gram,
    n_topics, widest, hellinger, lam, rho, rounds, tol, s_ptr, s_topics, s_values,
):  # fmt: skip
    n_positions = doc_ptr[last] - doc_ptr[first]
    out_len = np.zeros(n_positions, dtype=np.int64)
    out_topics = np.empty(8 * n_positions + 16, dtype=np.int32)
    out_values = np.empty(8 * n_positions + 16)
    out_end = 0
    z_len = np.zeros(last - first, dtype=np.int64)
    z_topics = np.empty(64 * (last - first) + 16, dtype=np.int32)
    z_values = np.empty(64 * (last - first) + 16)
    z_end = 0
    objective = 0.0
    steps = 0

    dots = np.zeros(n_topics)  # D_k'φ
    place = np.full(n_topics, -1, dtype=np.int64)  # of a topic among those met
    met = np.empty(n_topics, dtype=np.int64)
    cand = np.empty(n_topics, dtype=np.int64)
    b = np.empty(n_topics)
    beta = np.empty(n_topics)
    beta_of = np.zeros(n_topics)  # the code to start from, by topic
    z = np.zeros(n_topics)
    z_met = np.empty(n_topics, dtype=np.int64)
    z_known = np.zeros(n_topics, dtype=np.bool_)
    if hellinger:
        D = np.zeros((64, max(widest, 1)))  # rows of D for the context's words, by candidate
        z_cand = np.empty(n_topics)
        done = np.empty(n_topics, dtype=np.bool_)
        s_fit, r_fit, root_phi = np.empty(widest), np.empty(widest), np.empty(widest)
    now_topics = np.empty(1024, dtype=np.int32)  # codes of this document, this round
    now_values = np.empty(1024)
    old_topics = np.empty(1024, dtype=np.int32)  # … and of the round before
    old_values = np.empty(1024)

    for d in range(first, last):
        begin, stop = doc_ptr[d], doc_ptr[d + 1]
        length = stop - begin
        if length == 0:
            continue
        # the codes to start from, and their mean
        amount = s_ptr[stop] - s_ptr[begin]
        old_topics, old_values = _longer(old_topics, amount), _longer(old_values, amount)
        old_ptr = np.zeros(length + 1, dtype=np.int64)
        now_ptr = np.zeros(length + 1, dtype=np.int64)
        for t in range(amount):
            old_topics[t] = s_topics[s_ptr[begin] + t]
            old_values[t] = s_values[s_ptr[begin] + t]
        for i in range(length):
            old_ptr[i + 1] = s_ptr[begin + i + 1] - s_ptr[begin]
        n_z = 0
        for t in range(amount):
            k = old_topics[t]
            if not z_known[k]:
                z_known[k] = True
                z_met[n_z] = k
                n_z += 1
            z[k] += old_values[t] / length
        data_part = 0.0
        squares = 0.0
        for _ in range(rounds):
            end = 0
            data_part = 0.0
            squares = 0.0
            largest_z = 0.0
            for t in range(n_z):
                largest_z = max(largest_z, z[z_met[t]])
            by_heads = bar >= 0.0 and rho * largest_z <= 0.5 * lam - bar
            for i in range(length):
                row, row_end = c_ptr[begin + i], c_ptr[begin + i + 1]
                n_met = 0
                norm = 0.0
                for t in range(row, row_end):
                    phi = c_values[t]
                    norm += phi * phi
                    w = c_words[t]
                    if by_heads:
                        for u in range(h_ptr[w], h_ptr[w + 1]):
                            k = h_topics[u]
                            if place[k] < 0:
                                place[k] = n_met
                                met[n_met] = k
                                n_met += 1
                    else:
                        for u in range(w_ptr[w], w_ptr[w + 1]):
                            k = w_topics[u]
                            if place[k] < 0:
                                place[k] = n_met
                                met[n_met] = k
                                n_met += 1
                            dots[k] += phi * w_values[u]
                if (
                    rho * largest_z > 0.5 * lam
                ):  # only then may a topic without a word of the context take part
                    for t in range(n_z):
                        k = z_met[t]
                        if place[k] < 0:
                            place[k] = n_met
                            met[n_met] = k
                            n_met += 1
                for t in range(old_ptr[i], old_ptr[i + 1]):
                    k = old_topics[t]
                    beta_of[k] = old_values[t]
                    if place[k] < 0:
                        place[k] = n_met
                        met[n_met] = k
                        n_met += 1
                if by_heads:
                    for t in range(row, row_end):
                        phi = c_values[t]
                        table_row = table[c_words[t]]
                        for u in range(n_met):
                            dots[met[u]] += phi * table_row[met[u]]
                n = 0
                for t in range(n_met):
                    k = met[t]
                    place[k] = -1
                    if hellinger or dots[k] + rho * z[k] > 0.5 * lam or beta_of[k] > 0.0:
                        cand[n] = k
                        beta[n] = beta_of[k]
                        n += 1
                # -- one code
                if hellinger:
                    m = row_end - row
                    if n > D.shape[0]:
                        D = np.zeros((max(n, 2 * D.shape[0]), max(widest, 1)))
                    for c in range(n):
                        place[cand[c]] = c
                        z_cand[c] = z[cand[c]]
                        for v in range(m):
                            D[c, v] = 0.0
                    for v in range(m):
                        root_phi[v] = np.sqrt(c_values[row + v])
                        w = c_words[row + v]
                        for u in range(w_ptr[w], w_ptr[w + 1]):
                            D[place[w_topics[u]], v] = w_values[u]
                    for c in range(n):
                        place[cand[c]] = -1
                    steps += solve_hellinger(
                        n, D, m, c_values[row:row_end], root_phi, z_cand, beta, rho, lam, tol, 20 * n + 100,
                        s_fit, r_fit, done,
                    )  # fmt: skip
                    for v in range(m):
                        fit = 0.0
                        for c in range(n):
                            fit += D[c, v] * beta[c]
                        data_part += c_values[row + v] - 2.0 * root_phi[v] * np.sqrt(fit)
                    for c in range(n):
                        data_part += (1.0 + lam) * beta[c]
                        squares += beta[c] * beta[c]
                else:
                    for c in range(n):
                        b[c] = dots[cand[c]] + rho * z[cand[c]]
                    for c in range(n):
                        if beta[c] > 0.0:
                            gram_row = gram[cand[c]]
                            for o in range(n):
                                if o != c:
                                    b[o] -= beta[c] * gram_row[cand[o]]
                    steps += _solve_squared(n, cand, gram, b, beta, rho, lam, tol * norm, 20 * n + 100)
                    data_part += norm
                    for c in range(n):
                        if beta[c] > 0.0:  # ‖φ - Dβ‖² = ‖φ‖² - Σ_k β_k (D_k'φ + D_k'(φ - Dβ))
                            k = cand[c]
                            rest = b[c] - rho * z[k] - gram[k, k] * beta[c]
                            data_part += beta[c] * (lam - dots[k] - rest)
                            squares += beta[c] * beta[c]
                for t in range(n_met):
                    dots[met[t]] = 0.0
                    beta_of[met[t]] = 0.0
                now_topics, now_values = _longer(now_topics, end + n), _longer(now_values, end + n)
                for c in range(n):
                    if beta[c] > 0.0:
                        now_topics[end] = cand[c]
                        now_values[end] = beta[c]
                        end += 1
                now_ptr[i + 1] = end
            # -- z of the new codes, (7)
            for t in range(n_z):
                z[z_met[t]] = 0.0
                z_known[z_met[t]] = False
            n_z = 0
            for t in range(end):
                k = now_topics[t]
                if not z_known[k]:
                    z_known[k] = True
                    z_met[n_z] = k
                    n_z += 1
                z[k] += now_values[t] / length
            old_topics, now_topics = now_topics, old_topics
            old_values, now_values = now_values, old_values
            old_ptr, now_ptr = now_ptr, old_ptr
        # -- write it out
        end = old_ptr[length]
        out_topics, out_values = _longer(out_topics, out_end + end), _longer(out_values, out_end + end)
        for t in range(end):
            out_topics[out_end + t] = old_topics[t]
            out_values[out_end + t] = old_values[t]
        out_end += end
        for i in range(length):
            out_len[begin - doc_ptr[first] + i] = old_ptr[i + 1] - old_ptr[i]
        z_topics, z_values = _longer(z_topics, z_end + n_z), _longer(z_values, z_end + n_z)
        z_squares = 0.0
        for t in range(n_z):
            k = z_met[t]
            z_topics[z_end + t] = k
            z_values[z_end + t] = z[k]
            z_squares += z[k] * z[k]
            z[k] = 0.0
            z_known[k] = False
        z_end += n_z
        z_len[d - first] = n_z
        objective += data_part + rho * (squares - length * z_squares)
    return (
        out_len, out_topics[:out_end].copy(), out_values[:out_end].copy(),
        z_len, z_topics[:z_end].copy(), z_values[:z_end].copy(), objective, steps,
    )  # fmt: skip
