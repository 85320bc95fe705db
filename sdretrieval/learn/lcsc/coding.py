"""Codes β and documents z for a given dictionary: greedy coordinate descent, Algorithm 1, on the objective (5):

    Σ_n Σ_i  ρ ‖β(i) - z‖²  +  loss(φ(i), D β(i))  +  λ ‖β(i)‖₁

      φ(i)  local context at position i        β(i) >= 0  its code        z  the document: the mean of its codes, (7)
      D     words x themes, columns in the simplex
      loss  ‖φ - Dβ‖², or the Hellinger distance ‖√φ - √(Dβ)‖² (hellinger.py)

With the squared loss a coordinate of a code is minimised in closed form, (6) with its slip put right (max, not min):

    β_k ← max(0, b_k - λ/2) / a_k,    a_k = ρ + ‖D_k‖²,    b_k = ρ z_k + D_k'φ - Σ_{l≠k} (D'D)_kl β_l

The coordinate that lowers the objective most, by a_k (β̃_k - β_k)², goes first; b is kept up to date through a column of
D'D. (The paper ranks coordinates by |β̃_k - β_k|, which it calls an approximation of that decrease.)

**Only candidates are looked at.** D, β and φ are not negative, so b_k never exceeds ρ z_k + D_k'φ whatever β is: a
theme for which that is at most λ/2 has β_k = 0 at every step and at the optimum. Leaving it out changes nothing, and
it leaves tens of themes of thousands. They are found without looking at the others: φ sums to one, so D_k'φ is at most
the largest D_vk among the context's words, and a candidate has a word of the context for which D_vk > λ/2 - ρ z_k. A
list of such themes for each word (its *heads*) is all that has to be walked.

z is the mean of the codes of its document, (7); codes and z are solved in turn (``rounds``), each exactly, so that the
objective never rises. Given D the problem is convex in codes and z together. Documents are independent: they are shared
out over threads, and the compiled loop lets go of the interpreter.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_matrix, csr_matrix

from sdretrieval.core.compiled import njit
from sdretrieval.learn.lcsc.contexts import arrays_of
from sdretrieval.learn.lcsc.hellinger import code_hellinger

LOSSES = ("squared", "hellinger")
MOST_DENSE = 60_000_000  # entries of D held as a full table: 480 MB
HEADS = 0.9  # of λ/2: how large D_vk must be for theme k to stand in the list of word v; the rest is left to ρ z
CHUNKS_PER_THREAD = 8  # so that a thread with the long documents does not keep the others waiting


@dataclass(frozen=True, eq=False)
class Coded:
    """What coding gives: β (positions x themes), z (documents x themes), the objective (5), and coordinate steps."""

    codes: csr_matrix
    documents: csr_matrix
    objective: float
    steps: int


def losses(contexts: csr_matrix, dictionary: csc_matrix, codes: csr_matrix, loss: str = "squared") -> NDArray:
    """loss(φ(i), Dβ(i)) of each position."""
    fitted = csr_matrix(codes @ csr_matrix(dictionary.T))
    if loss == "hellinger":  # Σφ + Σ Dβ - 2 Σ_v √(φ_v (Dβ)_v)
        return _sums(contexts) + _sums(fitted) - 2 * _sums(contexts.sqrt().multiply(fitted.sqrt()))
    difference = csr_matrix(contexts - fitted)
    return _sums(difference.multiply(difference))


def _sums(matrix: csr_matrix) -> NDArray:
    return np.asarray(csr_matrix(matrix).sum(axis=1)).ravel()


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
    n_words, n_themes = dictionary.shape
    by_word = heads = csr_matrix(dictionary)
    bar, table = -1.0, np.zeros((1, 1))
    hellinger = loss == "hellinger"
    if hellinger:
        gram = np.zeros((1, 1))
    elif gram is None:
        gram = gram_matrix(dictionary, n_threads)
    if not hellinger and sparsity > 0 and n_words * n_themes <= MOST_DENSE:
        bar = HEADS * 0.5 * sparsity
        heads, table = _heads(by_word, bar), by_word.toarray()
    if start is None:
        start = csr_matrix((contexts.shape[0], n_themes))
    given = arrays_of(contexts), arrays_of(start), (arrays_of(by_word), arrays_of(heads), bar, table, gram)
    weights, rounds = (float(sparsity), float(coupling), float(tol)), rounds if coupling > 0 else 1
    doc_ptr = np.ascontiguousarray(doc_ptr, dtype=np.int64)

    def work(first: int, last: int) -> tuple:
        return _code_documents(first, last, doc_ptr, *given, n_themes, hellinger, weights, rounds)

    parts = in_threads(work, doc_ptr, n_threads)
    codes, documents = (_stacked([part[i] for part in parts], n_themes) for i in (0, 1))
    return Coded(codes, documents, float(sum(part[2] for part in parts)), int(sum(part[3] for part in parts)))


def _heads(by_word: csr_matrix, bar: float) -> csr_matrix:
    """The entries of D over ``bar``."""
    heads = by_word.copy()
    heads.data[heads.data <= bar] = 0.0
    heads.eliminate_zeros()
    return heads


def _stacked(parts: list[tuple], n_themes: int) -> csr_matrix:
    """Chunks of rows as one matrix."""
    if not parts:
        return csr_matrix((0, n_themes))
    lengths, themes, values = (np.concatenate(part) for part in zip(*parts, strict=True))
    ptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return csr_matrix((values, themes, ptr), shape=(len(lengths), n_themes))


def gram_matrix(dictionary: csc_matrix, n_threads: int = 1) -> NDArray[np.float64]:
    """D'D, dense: 8 K² bytes (128 MB for 4,000 themes)."""
    n_words, n_themes = dictionary.shape
    if dictionary.nnz > 0.1 * n_words * n_themes:
        dense = dictionary.toarray()
        return np.ascontiguousarray(dense.T @ dense)
    by_word = csr_matrix(dictionary)
    by_word.sort_indices()
    gram = np.zeros((n_themes, n_themes))

    def work(first: int, last: int) -> tuple:
        _gram_rows(first, last, arrays_of(dictionary), arrays_of(by_word), gram)
        return ()

    in_threads(work, np.arange(n_themes + 1), n_threads)
    _mirror(gram)
    return gram


@njit(cache=True, nogil=True)
def _gram_rows(first, last, by_theme, by_word, gram):
    """Rows of the upper triangle; the themes of a word ascend."""
    ptr, words, values = by_theme
    w_ptr, w_themes, w_values = by_word
    for k in range(first, last):
        row = gram[k]
        for t in range(ptr[k], ptr[k + 1]):
            w, x = words[t], values[t]
            for u in range(w_ptr[w + 1] - 1, w_ptr[w] - 1, -1):
                if w_themes[u] < k:
                    break
                row[w_themes[u]] += x * w_values[u]


@njit(cache=True, nogil=True)
def _mirror(gram):
    block = 64  # so that both triangles stay in the cache
    n = len(gram)
    for i0 in range(0, n, block):
        for j0 in range(i0, n, block):
            for i in range(i0, min(n, i0 + block)):
                for j in range(max(i + 1, j0), min(n, j0 + block)):
                    gram[j, i] = gram[i, j]


@njit(cache=True, nogil=True)
def _solve_squared(themes, gram, b, beta, rho, lam, tol, max_steps):
    """Greedy coordinate descent over candidates. b excludes a coordinate's own term, as in the paper."""
    steps = 0
    half = 0.5 * lam
    n = len(themes)
    while steps < max_steps:
        best, chosen, value = tol, -1, 0.0
        for c in range(n):
            a = rho + gram[themes[c], themes[c]]
            new = (b[c] - half) / a if b[c] > half else 0.0
            gain = a * (new - beta[c]) ** 2
            if gain > best:
                best, chosen, value = gain, c, new
        if chosen < 0:
            break
        change = value - beta[chosen]
        beta[chosen] = value
        own = b[chosen]
        row = gram[themes[chosen]]
        for c in range(n):
            b[c] -= change * row[themes[c]]
        b[chosen] = own
        steps += 1
    return steps


@njit(cache=True, nogil=True)
def _code_squared(themes, phi, dots, gram, z, beta, lam, rho, tol, sums):
    """One code, in place; adds to ``sums`` its part of the objective but for z, its square, and the steps."""
    n = len(themes)
    b, norm = np.empty(n), 0.0
    for t in range(len(phi)):
        norm += phi[t] * phi[t]
    for c in range(n):
        b[c] = dots[themes[c]] + rho * z[themes[c]]
    for c in range(n):
        if beta[c] > 0.0:
            row = gram[themes[c]]
            for o in range(n):
                if o != c:
                    b[o] -= beta[c] * row[themes[o]]
    sums[2] += _solve_squared(themes, gram, b, beta, rho, lam, tol * norm, 20 * n + 100)
    sums[0] += norm
    for c in range(n):
        if beta[c] > 0.0:  # ‖φ - Dβ‖² = ‖φ‖² - Σ_k β_k (D_k'φ + D_k'(φ - Dβ))
            k = themes[c]
            rest = b[c] - rho * z[k] - gram[k, k] * beta[c]
            sums[0] += beta[c] * (lam - dots[k] - rest)
            sums[1] += beta[c] * beta[c]


@njit(cache=True, nogil=True)
def _meet(theme, place, met, n):
    """Note a theme once; returns how many are noted."""
    if place[theme] < 0:
        place[theme] = n
        met[n] = theme
        n += 1
    return n


@njit(cache=True, nogil=True)
def _meet_context(words, phi, walked, table, by_heads, of_z, of_code, place, met, dots):
    """Themes of a context's words, of z and of the code to start from: how many. Their D_k'φ goes to ``dots``."""
    ptr, themes, weights = walked
    n = 0
    for t in range(len(words)):
        for u in range(ptr[words[t]], ptr[words[t] + 1]):
            n = _meet(themes[u], place, met, n)
            if not by_heads:
                dots[themes[u]] += phi[t] * weights[u]
    for k in of_z:
        n = _meet(k, place, met, n)
    for k in of_code:
        n = _meet(k, place, met, n)
    if by_heads:
        for t in range(len(words)):
            row = table[words[t]]
            for u in range(n):
                dots[met[u]] += phi[t] * row[met[u]]
    for u in range(n):
        place[met[u]] = -1
    return n


@njit(cache=True, nogil=True)
def _mean(themes, values, length, z, met, known):
    """z of a document's codes, (7); returns how many themes it has."""
    n = 0
    for t in range(len(themes)):
        k = themes[t]
        if not known[k]:
            known[k] = True
            met[n] = k
            n += 1
        z[k] += values[t] / length
    return n


@njit(cache=True, nogil=True)
def _append(array, end, values):
    """``values`` from place ``end`` on; in a longer array where there is no room."""
    needed = end + len(values)
    if needed > len(array):
        longer = np.empty(max(needed, 2 * len(array)), dtype=array.dtype)
        longer[:end] = array[:end]
        array = longer
    array[end:needed] = values
    return array


@njit(cache=True, nogil=True)
def _code_positions(begin, contexts, D, hellinger, weights, z, z_themes, old, now, scratch, sums):
    """One round: codes of a document's positions from the ``old`` ones, written over ``now``; z stays as it is."""
    c_ptr, c_words, c_values = contexts
    by_word, heads, bar, table, gram = D
    lam, rho, tol = weights
    old_ptr, old_themes, old_values = old
    now_ptr, now_themes, now_values = now
    dots, place, met, cand, beta, beta_of = scratch
    largest_z = 0.0
    for k in z_themes:
        largest_z = max(largest_z, z[k])
    by_heads = bar >= 0.0 and rho * largest_z <= 0.5 * lam - bar
    walked = heads if by_heads else by_word
    if rho * largest_z <= 0.5 * lam:  # then no theme without a word of the context can take part
        z_themes = z_themes[:0]
    for i in range(len(old_ptr) - 1):
        row = slice(c_ptr[begin + i], c_ptr[begin + i + 1])
        words, phi = c_words[row], c_values[row]
        own = old_themes[old_ptr[i] : old_ptr[i + 1]]
        n_met = _meet_context(words, phi, walked, table, by_heads, z_themes, own, place, met, dots)
        for t in range(old_ptr[i], old_ptr[i + 1]):
            beta_of[old_themes[t]] = old_values[t]
        n = 0
        for k in met[:n_met]:
            if hellinger or dots[k] + rho * z[k] > 0.5 * lam or beta_of[k] > 0.0:
                cand[n], beta[n] = k, beta_of[k]
                n += 1
        if hellinger:
            code_hellinger(cand[:n], words, phi, by_word, z, beta, lam, rho, tol, place, sums)
        else:
            _code_squared(cand[:n], phi, dots, gram, z, beta, lam, rho, tol, sums)
        for k in met[:n_met]:
            dots[k] = beta_of[k] = 0.0
        kept = 0
        for c in range(n):
            if beta[c] > 0.0:
                cand[kept], beta[kept] = cand[c], beta[c]
                kept += 1
        now_themes = _append(now_themes, now_ptr[i], cand[:kept])
        now_values = _append(now_values, now_ptr[i], beta[:kept])
        now_ptr[i + 1] = now_ptr[i] + kept
    return now_ptr, now_themes, now_values


@njit(cache=True, nogil=True)
def _code_documents(first, last, doc_ptr, contexts, start, D, n_themes, hellinger, weights, rounds):
    """Of documents first to last: lengths, themes and values of the codes; the same of z; objective; steps."""
    s_ptr, s_themes, s_values = start
    _, rho, _ = weights
    origin = doc_ptr[first]
    out_len, out_end = np.zeros(doc_ptr[last] - origin, dtype=np.int64), 0
    out_themes, out_values = np.empty(1024, dtype=np.int32), np.empty(1024)
    z_len, z_end = np.zeros(last - first, dtype=np.int64), 0
    z_themes, z_values = np.empty(1024, dtype=np.int32), np.empty(1024)
    z, met = np.zeros(n_themes), np.empty(n_themes, dtype=np.int32)
    known = np.zeros(n_themes, dtype=np.bool_)
    objective = 0.0
    sums = np.zeros(3)  # loss and λ‖β‖₁, ‖β‖², steps
    scratch = (
        np.zeros(n_themes),  # D_k'φ
        np.full(n_themes, -1, dtype=np.int64),  # the place of a theme among those met
        np.empty(n_themes, dtype=np.int32),  # themes met
        np.empty(n_themes, dtype=np.int32),  # candidates
        np.empty(n_themes),  # their β
        np.zeros(n_themes),  # the code to start from, by theme
    )
    for d in range(first, last):
        begin, stop = doc_ptr[d], doc_ptr[d + 1]
        length = stop - begin
        if length == 0:
            continue
        codes = slice(s_ptr[begin], s_ptr[stop])
        old_ptr = (s_ptr[begin : stop + 1] - s_ptr[begin]).astype(np.int64)
        old = old_ptr, s_themes[codes].astype(np.int32), s_values[codes].copy()
        now = np.zeros(length + 1, dtype=np.int64), np.empty(8, dtype=np.int32), np.empty(8)
        n = _mean(old[1], old[2], length, z, met, known)
        for _ in range(rounds):
            sums[:2] = 0.0
            now = _code_positions(begin, contexts, D, hellinger, weights, z, met[:n], old, now, scratch, sums)
            for k in met[:n]:
                z[k], known[k] = 0.0, False
            end = now[0][length]
            n = _mean(now[1][:end], now[2][:end], length, z, met, known)
            old, now = now, old
        end = old[0][length]
        out_themes, out_values = _append(out_themes, out_end, old[1][:end]), _append(out_values, out_end, old[2][:end])
        out_end += end
        out_len[begin - origin : stop - origin] = np.diff(old[0])
        z_themes, z_values = _append(z_themes, z_end, met[:n]), _append(z_values, z_end, z[met[:n]])
        z_end += n
        z_len[d - first] = n
        z_squares = 0.0
        for k in met[:n]:
            z_squares += z[k] * z[k]
            z[k], known[k] = 0.0, False
        objective += sums[0] + rho * (sums[1] - length * z_squares)
    codes_found = out_len, out_themes[:out_end].copy(), out_values[:out_end].copy()
    z_found = z_len, z_themes[:z_end].copy(), z_values[:z_end].copy()
    return codes_found, z_found, objective, sums[2]
