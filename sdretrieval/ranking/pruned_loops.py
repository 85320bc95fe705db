"""Compiled loops that find the best documents of a plan without scoring the others: see pruned.py.

units    whole numbers of 16 bits, rounded up, in which bounds are added; ``scale`` of them are 1
lists    the postings of a word, or of a common word those of counts above 1 and, apart, those of count 1
words    a hash table: 1 + the number of a plan's word; 0 where there is none
"""

from __future__ import annotations

import numpy as np

from sdretrieval.core.compiled import njit
from sdretrieval.index.compact import BITS, SINGLE
from sdretrieval.ranking.loops import evidence, first_at, ordered, select, untouched

SIZE = 1 << BITS
MOST_UNITS = (1 << 16) - 1
PLACES = 1 << 13  # of the hash table
CHUNK = 64  # documents looked over at a time, as most have none that may be among the best; words of a row
RESCORING = 400  # postings that can be walked while one document is scored from its row
AHEAD, LINE = 32, 16  # rows fetched ahead; numbers of a row that the processor fetches at once
SCANNING = 16384  # postings that can be walked while a block is looked over


@njit(cache=True, nogil=True)
def bounds(weights, A, counts, factors, kind):
    """Of each word and cell the most that w·φ comes to, in units; that of all cells, of those of count 1; the scale.

    The scale is 0 where there is nothing to bound. A word of negative weight has no units: a document can do no better
    than lack it.
    """
    n = len(weights)
    values, most, total = np.zeros((n, 256)), np.zeros((n, 2)), 0.0
    for i in range(n):
        if weights[i] < 0.0:
            continue
        for cell in range(256):
            if counts[cell] > 0:
                value = weights[i] * evidence(kind, counts[cell], A[i], factors[cell])
                values[i, cell] = value
                most[i, 0] = max(most[i, 0], value)
                if cell < SINGLE:
                    most[i, 1] = max(most[i, 1], value)
        total += most[i, 0]
    units, highest = np.zeros((n, 256), np.uint16), np.zeros((n, 2), np.int64)
    if not 0.0 < total < np.inf:
        return units, highest, 0.0
    scale = (MOST_UNITS - n) / (total * (1.0 + 1e-9))
    for i in range(n):
        if weights[i] >= 0.0:
            for cell in range(256):
                units[i, cell] = np.uint16(values[i, cell] * (1.0 + 1e-10) * scale) + 1
            for part in range(2):
                highest[i, part] = np.int64(most[i, part] * (1.0 + 1e-10) * scale) + 1
    return units, highest, scale


@njit(cache=True, nogil=True)
def lists_of(term_ptr, terms, weights, highest, blocks_ptr, blocks, n_blocks):
    """The lists in the order of walking, and how much those from each on may add to a document.

    A list is a word and a part: 0 counts above 1, 1 counts of 1, 2 all. Those that lower the bound of a document by
    most for each posting are walked first.
    """
    n, lists = 0, np.empty((2 * len(terms), 2), np.int64)
    gains, rates = np.empty(len(lists)), np.empty(len(lists))
    for i in range(len(terms)):
        df = term_ptr[terms[i] + 1] - term_ptr[terms[i]]
        if df == 0 or weights[i] < 0.0:
            continue
        lists[n, 0], lists[n, 1], gains[n], rates[n] = i, 2, highest[i, 0], highest[i, 0] / df
        n += 1
        if df > 2 * n_blocks:
            above, at = 0, blocks_ptr[terms[i]]
            for b in range(n_blocks):
                above += blocks[at + 2 * b + 1] - blocks[at + 2 * b]
            lists[n - 1, 1], gains[n - 1] = 0, highest[i, 0] - highest[i, 1]
            rates[n - 1] = gains[n - 1] / max(above, 1)
            lists[n, 0], lists[n, 1], gains[n] = i, 1, highest[i, 1]
            rates[n] = min(gains[n] / max(df - above, 1), rates[n - 1])  # never before the other part
            n += 1
    order = np.argsort(-rates[:n], kind="mergesort")
    rest = np.zeros(n + 1, np.int64)
    for j in range(n - 1, -1, -1):
        rest[j] = rest[j + 1] + np.int64(gains[order[j]])
    return lists[order], rest


@njit(cache=True, nogil=True)
def hashed(terms):
    """The hash table of some terms."""
    words = np.zeros(PLACES, np.uint16)
    for i in range(len(terms)):
        place = terms[i] % PLACES
        while words[place] > 0:
            place = (place + 1) % PLACES
        words[place] = i + 1
    return words


@njit(inline="always")
def _ranges(lists, terms, term_ptr, blocks_ptr, blocks, b, starts, stops):
    """Where the postings of the block ``b`` stand; how many there are in all."""
    total = 0
    for j in range(len(lists)):
        term = terms[lists[j, 0]]
        first, at, part = term_ptr[term], blocks_ptr[term], lists[j, 1]
        if part == 2:
            stop = blocks_ptr[term + 1]
            low = first_at(blocks, at, stop, b)
            starts[j], stops[j] = first + low - at, first + first_at(blocks, low, stop, b + 1) - at
        else:
            starts[j], stops[j] = first + blocks[at + 2 * b + part], first + blocks[at + 2 * b + part + 1]
        starts[j] = min(max(starts[j], first), term_ptr[term + 1])  # whatever the file says
        stops[j] = min(max(stops[j], starts[j]), term_ptr[term + 1])
        total += stops[j] - starts[j]
    return total


@njit(cache=True, nogil=True)
def _reaching(sums, least, found, most):
    """How many sums are at least ``least`` (> 0), and their positions; -1 where they may be more than ``most``."""
    filled, bar = 0, np.uint16(min(least, MOST_UNITS))
    if least > MOST_UNITS:
        return 0
    for left in range(0, len(sums), CHUNK):
        highest = np.uint16(0)
        for i in range(left, left + CHUNK):
            highest = max(highest, sums[i])
        if highest >= bar:
            if filled + CHUNK > most:
                return -1
            for i in range(left, left + CHUNK):
                if sums[i] >= bar:
                    found[filled] = i
                    filled += 1
    return filled


@njit(inline="always")
def _walk(sums, lists, rest, starts, stops, postings, block_docs, block_cells, units, least, found):
    """Add the bounds of lists to the sums of a block as far as is worth it; how many documents may reach ``least``."""
    walked, looked = 0, 0
    for j in range(len(lists)):
        left = postings - walked
        if least > rest[j] and left > SCANNING and walked - looked >= SCANNING:
            looked = walked
            n = _reaching(sums, least - rest[j], found, left // RESCORING)
            if n >= 0:
                return n
        table = units[lists[j, 0]]
        for k in range(starts[j], stops[j]):
            sums[block_docs[k]] += table[block_cells[k]]
        walked += stops[j] - starts[j]
    return _reaching(sums, least, found, len(found))


@njit(inline="always")
def _score(start, stop, doc_terms, doc_counts, terms, weights, A, factor, kind, words, met):
    """Σ_w s_w φ of a document from its row, added as loops.score_narrow adds: -0.0 where it has none of the words."""
    value = -0.0
    for left in range(start, stop, CHUNK):
        n = 0
        for k in range(left, min(left + CHUNK, stop)):  # without a branch that the processor would have to guess
            met[n] = k
            n += words[np.uint32(doc_terms[k]) % np.uint32(PLACES)] > 0
        for m in range(n):
            k = met[m]
            place = np.uint32(doc_terms[k]) % np.uint32(PLACES)
            while words[place] > 0:
                i = words[place] - 1
                if terms[i] == doc_terms[k]:
                    value = value + weights[i] * evidence(kind, doc_counts[k], A[i], factor) + 0.0
                    break
                place = np.uint32(place + 1) % np.uint32(PLACES)
    return value


@njit(cache=True, nogil=True)
def best_documents(
    term_ptr, block_docs, block_cells, blocks_ptr, blocks, doc_ptr, doc_terms, doc_counts, group, allowed, tie,
    terms, weights, A, B, kind, words, units, scale, lists, rest, static, g, share, mass, constant, completed,
    first, n_walked, n_blocks, depth, floor, guess, keys, values,
):  # fmt: skip
    """The documents of the blocks from ``first`` on that may be among the best ``depth``.

    Returns how many they are, the floor that they had to reach, whether all scores are numbers, and nothing of use.
    ``floor`` is a score that the last of the best is known to reach; ``completed`` is the most that what needs no
    postings comes to. With ``guess`` the floor is raised to what the blocks so far let expect; then it must be checked
    in the end. Scores and keys are those of loops.keep_best.
    """
    filled, is_number, warm, wanted = 0, True, 0, np.empty(SIZE, np.int64)
    sums, found, met = np.zeros(SIZE, np.uint16), np.empty(SIZE + CHUNK, np.int32), np.empty(CHUNK + 1, np.int64)
    starts, stops = np.empty(len(lists), np.int64), np.empty(len(lists), np.int64)
    stride = _stride(n_walked)
    for step in range(n_walked):
        b = first + step * stride % n_walked
        in_block = _ranges(lists, terms, term_ptr, blocks_ptr, blocks, b, starts, stops)
        if in_block == 0:
            continue
        sums[:] = 0
        least = _in_units(floor, completed, scale)
        n = _walk(sums, lists, rest, starts, stops, in_block, block_docs, block_cells, units, least, found)
        bar = _bar(sums, found, n, depth) if n > 2 * depth and floor == -np.inf else 0
        for turn in range(1 + (bar > 0)):  # the most promising first: then few of the others are left
            chosen = _chosen(sums, found, n, turn, bar, least, b, len(group), allowed, wanted)
            for c in range(chosen):
                if c % AHEAD == 0:
                    warm ^= _fetch(wanted[c : min(c + AHEAD, chosen)], doc_ptr, doc_terms, doc_counts, group)
                d = wanted[c]
                of_length = group[d]
                value = _score(
                    doc_ptr[d], doc_ptr[d + 1], doc_terms, doc_counts, terms, weights, A, B[of_length], kind, words, met
                )
                if untouched(value):
                    continue
                if len(static) > 0:
                    value += g * static[d]
                if len(share) > 0:
                    value += mass * share[of_length]
                value += constant
                if np.float32(value) < floor:
                    continue
                is_number = is_number and value == value
                keys[filled] = (ordered(np.float32(value)) << 32) | tie[d]
                values[filled] = value
                filled += 1
                if filled == len(keys):
                    floor, filled = max(floor, select(keys, values, depth)), depth
            if filled >= depth and (floor == -np.inf or filled > depth + depth // 2):
                floor, filled = max(floor, select(keys[:filled], values, depth)), depth
            least = _in_units(floor, completed, scale)
        if guess and step & (step + 1) == 0 and step + 1 < n_walked:
            expected = depth * (step + 1) / n_blocks
            rank = int(expected + 4.0 * np.sqrt(expected) + 8.0)
            if rank < filled:
                floor = max(floor, select(keys[:filled], values, rank))
    return filled, floor, is_number, warm


@njit(cache=True, nogil=True)
def score_rows(doc_ptr, doc_terms, doc_counts, docs, terms, weights, A, B, group, kind, scores):
    """Σ_w s_w φ of given documents, each from its row: see _score."""
    words, met = hashed(terms), np.empty(CHUNK + 1, np.int64)
    for i in range(len(docs)):
        d = docs[i]
        scores[i] = _score(
            doc_ptr[d], doc_ptr[d + 1], doc_terms, doc_counts, terms, weights, A, B[group[d]], kind, words, met
        )


@njit(inline="always")
def _chosen(sums, found, n, turn, bar, least, b, n_docs, allowed, wanted):
    """The found documents whose turn it is: those that reach the bar, where there is one, come first."""
    chosen = 0
    for c in range(n):
        i = found[c]
        d = (b << BITS) + i
        if bar > 0 and ((sums[i] >= bar) != (turn == 0) or sums[i] < least):
            continue
        if d < n_docs and (len(allowed) == 0 or allowed[d]):
            wanted[chosen] = d
            chosen += 1
    return chosen


@njit(inline="always")
def _fetch(docs, doc_ptr, doc_terms, doc_counts, group):
    """Read the beginnings of rows, so that the processor waits for memory once for all of them; a number of no use."""
    warm = 0
    for c in range(len(docs)):
        warm += group[docs[c]] + doc_ptr[docs[c]]
    last = len(doc_terms) - 1
    for c in range(len(docs)):
        at = doc_ptr[docs[c]]
        for k in range(at, at + 3 * LINE, LINE):
            warm += doc_terms[min(k, last)] + doc_counts[min(k, last)]
    return warm


@njit(inline="always")
def _in_units(floor, completed, scale):
    """The least sum of bounds at which a score may, rounded to single precision, reach the floor."""
    if floor == -np.inf:
        return 1
    least = (np.float64(floor) - abs(np.float64(floor)) * 2.0**-23 - completed) * scale - 1e-3
    return np.int64(min(max(least, 1.0), MOST_UNITS + 1.0))


@njit(inline="always")
def _bar(sums, found, n, depth):
    """A sum of bounds that at least ``depth`` of the found documents reach, and not many more."""
    counts = np.zeros(1024, np.int64)
    for c in range(n):
        counts[sums[found[c]] >> 6] += 1
    total, place = 0, 1023
    while place > 0 and total + counts[place] < depth:
        total += counts[place]
        place -= 1
    return place << 6


@njit(inline="always")
def _stride(n):
    """A step with which a walk through n blocks, round and round, meets each once and soon all parts."""
    step = max(1, int(0.618 * n))
    while _common_factor(step, n) > 1:
        step += 1
    return step


@njit(inline="always")
def _common_factor(a, b):
    while b:
        a, b = b, a % b
    return a
