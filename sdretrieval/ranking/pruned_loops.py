"""Compiled loops that find the best documents of a plan without scoring the others: see pruned.py.

units    whole numbers of 16 bits, rounded up, in which bounds are added; ``scale`` of them are 1
lists    the postings of a word, or of a common word those of counts above 1 and, apart, those of count 1
blocks   of rare words and of common ones: ``blocks`` and ``starts`` of compact.py
table    a hash table: 1 + the number of a plan's word; 0 where there is none
"""

from __future__ import annotations

import numpy as np

from sdretrieval.core.compiled import ask_ahead, at_least, njit, packed
from sdretrieval.index.compact import BITS, COMMON, SINGLE
from sdretrieval.index.rows import count_of, term_of
from sdretrieval.ranking.loops import evidence, first_at, ordered, select, untouched

SIZE = 1 << BITS
MOST_UNITS = (1 << 16) - 1
PLACES = 1 << 13  # of the hash table
TOGETHER = 32  # documents looked up at once
CHUNK = 64  # documents looked over at a time; words of a row
AHEAD, LINE = 32, 16  # rows asked for ahead; numbers of a row that the processor fetches at once
ASKED, LINE_BYTES = 4096, 64  # postings of the next list asked for ahead, the rest follow by themselves; bytes at once
SCANNING = 4096  # postings that can be walked while a block is looked over
LOOKING_UP = 45  # … while a document is looked up in a list
SCORING = 500  # … while a document is scored from its row
ALL_POSTINGS, ALL_DOCS = 8, 4  # … while one posting, one document is scored exhaustively
LARGEST_RATIO = 1e4  # of what needs no postings, or of negative weights, to what the bounds come to
FOUND, UNBOUNDED, NOT_A_NUMBER = 0, 1, 2  # what a search comes to


@njit(cache=True, nogil=True)
def bounds(weights, A, counts, factors, kind, spread):
    """Of each word and cell the most that w·φ comes to, in units; that of all cells, of those of count 1; the scale.

    There are units for all of them and for the ``spread`` of what needs no postings. The scale is 0 where there is
    nothing to bound. A word of negative weight has no units: a document can do no better than lack it.
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
    if not 0.0 < total + spread < np.inf:
        return units, highest, 0.0
    scale = (MOST_UNITS - n - 2) / ((total + spread) * (1.0 + 1e-9))
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
        if df > COMMON * n_blocks:
            above, at, places = 0, blocks_ptr[terms[i]], blocks[1]
            for b in range(n_blocks):
                above += places[at + 2 * b + 1] - places[at + 2 * b]
            lists[n - 1, 1], gains[n - 1] = 0, highest[i, 0] - highest[i, 1]
            rates[n - 1] = gains[n - 1] / max(above, 1)
            lists[n, 0], lists[n, 1], gains[n] = i, 1, highest[i, 1]
            rates[n] = min(gains[n] / max(df - above, 1), rates[n - 1])  # never before the other part
            n += 1
    order, walked, rest = _falling(rates, n), np.empty((n, 2), np.int64), np.zeros(n + 1, np.int64)
    for j in range(n - 1, -1, -1):
        walked[j, 0], walked[j, 1] = lists[order[j], 0], lists[order[j], 1]
        rest[j] = rest[j + 1] + np.int64(gains[order[j]])
    return walked, rest


@njit(inline="always")
def _falling(rates, n):
    """The places of the first ``n`` numbers, the largest first, equal ones as they stand (Shell's sort: to compile
    NumPy's takes numba longer than all else here)."""
    order, gap = np.arange(n), 1
    while gap < n:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, n):
            place, j = order[i], i
            while j >= gap:
                other = order[j - gap]
                if rates[other] > rates[place] or (rates[other] == rates[place] and other < place):
                    break
                order[j] = other
                j -= gap
            order[j] = place
        gap //= 3
    return order


@njit(cache=True, nogil=True)
def planned(terms, weights, A, kind, g, term_ptr, blocks_ptr, blocks, n_docs, n_blocks, cells, steps):
    """What a walk needs: units, those of the steps of the static score, lists, what they may add, and the scale, which
    is 0 where there are no bounds.

    Also what negative weights come to, how many postings can be walked while all documents are scored, and by how many
    units the bounds of a document are about too high: they are rounded up word by word.
    """
    width = steps[1]
    spread = abs(g) * 256 * width
    units, highest, scale = bounds(weights, A, cells[0], cells[1], kind, spread)
    start = np.zeros(256, np.uint16)
    for step in range(256 if spread > 0.0 else 0):  # the static score of a step is below its end
        better = step + 1 if g > 0.0 else 256 - step
        start[step] = np.uint16(abs(g) * better * width * (1.0 + 1e-10) * scale) + 1
    lists, rest = lists_of(term_ptr, terms, weights, highest, blocks_ptr, blocks, n_blocks)
    lost, postings = 0.0, 0
    for i in range(len(terms)):
        lost -= min(weights[i], 0.0)
        postings += term_ptr[terms[i] + 1] - term_ptr[terms[i]]
        if not 0.0 <= A[i] < np.inf:
            scale = 0.0
    return units, start, lists, rest, scale, lost, ALL_DOCS * n_docs + ALL_POSTINGS * postings, 2 * postings // n_docs


@njit(cache=True, nogil=True)
def are_too_many(docs, depth, most):
    return len(docs) > 4 * depth and SCORING * len(docs) > most


@njit(cache=True, nogil=True)
def are_telling(scale, completed, lost):
    return scale > 0.0 and scale * max(abs(completed), lost) < LARGEST_RATIO * MOST_UNITS


@njit(cache=True, nogil=True)
def settled(scores, floor, completed, start, scale, lost):
    """What a search comes to that found these scores. What has only words of negative weight was never met."""
    for score in scores:
        if score != score:
            return NOT_A_NUMBER
    return FOUND if not lost or floor > completed + start.max() / scale else UNBOUNDED


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
def _ranges(lists, terms, term_ptr, blocks_ptr, blocks, b, starts, stops, left):
    """Where the postings of the block ``b`` stand, and how many there are in the lists from each on."""
    for j in range(len(lists) - 1, -1, -1):
        term = terms[lists[j, 0]]
        first, at, part = term_ptr[term], blocks_ptr[term], lists[j, 1]
        if part == 2:
            stop = at + term_ptr[term + 1] - first
            low = first_at(blocks[0], at, stop, b)
            starts[j], stops[j] = first + low - at, first + first_at(blocks[0], low, stop, b + 1) - at
        else:
            starts[j], stops[j] = first + blocks[1][at + 2 * b + part], first + blocks[1][at + 2 * b + part + 1]
        starts[j] = min(max(starts[j], first), term_ptr[term + 1])  # whatever the file says
        stops[j] = min(max(stops[j], starts[j]), term_ptr[term + 1])
        left[j] = left[j + 1] + stops[j] - starts[j]


@njit(inline="always")
def _ones(bits):
    """How many bits are set: by twos, by fours, by eights, and these added up."""
    bits = bits - ((bits >> np.uint64(1)) & np.uint64(0x5555555555555555))
    bits = (bits & np.uint64(0x3333333333333333)) + ((bits >> np.uint64(2)) & np.uint64(0x3333333333333333))
    bits = (bits + (bits >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((bits * np.uint64(0x0101010101010101)) >> np.uint64(56))


@njit(cache=True, nogil=True)
def _reaching(sums, least, found, most):
    """How many sums are at least ``least`` (> 0), and their positions; -1 where they may be more than ``most``."""
    filled, bar = 0, np.uint16(min(least, MOST_UNITS))
    if least > MOST_UNITS:
        return 0
    for first in range(0, len(sums), CHUNK):
        bits = at_least(sums, first, bar)
        if bits:
            if filled + CHUNK > most:
                return -1
            while bits:
                found[filled] = first + _ones(~bits & (bits - np.uint64(1)))  # below the lowest bit
                filled += 1
                bits &= bits - np.uint64(1)
    return filled


@njit(inline="always")
def _ask_for(docs, cells, start, stop):
    """Ask memory for the list that is walked next."""
    stop = min(stop, start + ASKED)
    for k in range(start, stop, LINE_BYTES // 2):
        ask_ahead(docs, k)
    for k in range(start, stop, LINE_BYTES):
        ask_ahead(cells, k)


@njit(inline="always")
def _add(sums, docs, cells, start, stop, units, word):
    """Whole arrays and where to begin: of each part that is cut out numba counts who holds it."""
    start, stop = np.uint64(start), np.uint64(stop)
    whole = start + ((stop - start) & ~np.uint64(7))
    for k in range(start, whole, np.uint64(8)):
        of_eight = packed(cells, k)
        for half in range(2):
            of_four = packed(docs, k + np.uint64(4 * half))
            for _ in range(4):
                sums[of_four & np.uint64(0xFFFF)] += units[word, of_eight & np.uint64(0xFF)]
                of_four, of_eight = of_four >> np.uint64(16), of_eight >> np.uint64(8)
    for k in range(whole, stop):
        sums[docs[k]] += units[word, cells[k]]


@njit(inline="always")
def _look_up(sums, found, n, docs, cells, start, stop, units, word, places):
    """The same for ``n`` found documents alone: by bisection, for some at once, so that none waits for another."""
    for first in range(0, n, len(places)):
        here = found[first : min(first + len(places), n)]
        for c in range(len(here)):
            places[c] = start
        size = np.uint64(stop - start)  # numbers without a sign need no look whether they have one
        while size > 1:
            half = size >> np.uint64(1)
            for c in range(len(here)):
                middle = places[c] + half
                places[c] = middle if docs[middle] <= here[c] else places[c]
            size -= half
        for c in range(len(here)):
            d, at = here[c], places[c]
            sums[d] += units[word, cells[at]] * np.uint16(docs[at] == d)


@njit(inline="always")
def _still(sums, found, n, least):
    """Of the ``n`` found documents keep those whose sums are at least ``least``."""
    kept = 0
    for c in range(n):
        found[kept] = found[c]
        kept += sums[found[c]] >= least
    return kept


@njit(cache=True, nogil=True)
def _walk(sums, lists, rest, starts, stops, left, block_docs, block_cells, units, least, found, look):
    """Add the bounds of lists to the sums of a block; how many documents may reach ``least``, -1 where all may.

    Before the list ``look``, or a later one, the sums are looked over. From then on long lists are not walked, but the
    documents found are looked up in them; where these are few, the lists that are left are left out. Also returns the
    list before which the next block is better looked over, and what the lists left out may add to a sum.
    """
    n, walked, places = -1, 0, np.empty(TOGETHER, np.uint64)
    for j in range(len(lists)):
        size = stops[j] - starts[j]
        if n < 0 and j >= look and least > rest[j] and left[j] > 2 * SCANNING:
            n = _reaching(sums, least - rest[j], found, min(left[j] // (2 * LOOKING_UP), len(found)))
            if n < 0:
                look = j + 1 + (len(lists) - j) // 8
            else:
                look = j - (j > 0 and 4 * LOOKING_UP * n < walked)
        if n == 0 or (n > 0 and SCORING * n < left[j]):
            return n, look, rest[j]
        if j + 1 < len(lists):
            _ask_for(block_docs, block_cells, starts[j + 1], stops[j + 1])
        word = np.uint64(lists[j, 0])
        if n > 0 and LOOKING_UP * n < size:
            _look_up(sums, found, n, block_docs, block_cells, starts[j], stops[j], units, word, places)
        else:
            _add(sums, block_docs, block_cells, starts[j], stops[j], units, word)
            look += n > 0 and look == j
        walked = size
        if 0 < n < size:
            n = _still(sums, found, n, least - rest[j + 1])
    return n, look, 0


@njit(cache=True, nogil=True)
def promising(
    term_ptr, block_docs, block_cells, blocks_ptr, blocks, n_docs, allowed, terms, units, start, steps, lists, rest,
    first, n_walked, n_blocks, depth, least, slack, guess,
):  # fmt: skip
    """The documents of the blocks from ``first`` on whose bounds reach ``least``, their bounds, and ``least``.

    With ``guess`` this is raised to what the blocks so far let expect of the best ``depth``; less ``slack``, by which
    what needs no postings is lower than at its most.
    """
    docs, bounds, filled = np.empty(4 * CHUNK, np.int64), np.empty(4 * CHUNK, np.uint16), 0
    known = bounds.copy()  # without what lists left out may add
    sums, found, look = np.zeros(SIZE, np.uint16), np.empty(SIZE + CHUNK, np.uint16), 0
    starts, stops = np.empty(len(lists), np.int64), np.empty(len(lists), np.int64)
    left, stride = np.zeros(len(lists) + 1, np.int64), _stride(n_walked)
    for step in range(n_walked):
        b = first + step * stride % n_walked
        _ranges(lists, terms, term_ptr, blocks_ptr, blocks, b, starts, stops, left)
        if left[0] == 0:
            continue
        within = min(SIZE, n_docs - (b << BITS))
        sums[:] = 0
        if len(steps) > 0:
            for i in range(within):
                sums[i] = start[steps[(b << BITS) + i]]
        ranges = starts, stops, left
        n, look, more = _walk(sums, lists, rest, *ranges, block_docs, block_cells, units, least, found, look)
        expected = depth * (step + 1) / n_blocks
        rank = int(expected + 4.0 * np.sqrt(expected) + 8.0)
        if n < 0:
            _leave_allowed(sums, b << BITS, within, allowed)
            if guess and least == 1:
                few = 2 * CHUNK * rank < SIZE  # the highest of each chunk tell as well, and sooner
                least = max(least, bar(_highest(sums) if few else sums, rank) - slack)
            n = _reaching(sums, least, found, len(found))
        while filled + n > len(docs):
            docs, bounds = np.concatenate((docs, docs)), np.concatenate((bounds, bounds))
            known = np.concatenate((known, known))
        for c in range(n):
            i = found[c]
            if sums[i] + more >= least and i < within and (len(allowed) == 0 or allowed[(b << BITS) + i]):
                docs[filled], bounds[filled] = (b << BITS) + i, min(sums[i] + more, MOST_UNITS)
                known[filled] = sums[i]
                filled += 1
        if guess and step & (step + 1) == 0 and rank < filled:
            least = max(least, bar(known[:filled], rank) - slack)
    return docs[:filled], bounds[:filled], least


@njit(cache=True, nogil=True)
def best_of_each(
    ptr, terms, weights, A, completed, usual, g, mass, constant, given, cells, steps, depth, allowed, documents
):  # fmt: skip
    """The best documents of some plans of one weighting, their scores and keys, where those of each plan end, and what
    each search came to: FOUND, or why it was given up.

    Everything in one call, for a thread that walks all blocks: other threads go on meanwhile.
    """
    docs, scores, keys = np.empty(0, np.int64), np.empty(0), np.empty(0, np.int64)
    ends, states, filled = np.zeros(len(ptr) - 1, np.int64), np.empty(len(ptr) - 1, np.int64), 0
    for q in range(len(ptr) - 1):
        own = slice(ptr[q], ptr[q + 1])
        plan = terms[own], weights[own], A[own], completed[q], usual[q]
        how = cells, steps, depth, allowed, documents, (g[q], mass[q], constant[q])
        found, values, order, states[q] = _best(*plan, *given, *how)
        if filled + len(found) > len(docs):
            room = len(found) * (len(ptr) - 1 - q) + len(docs)
            docs, scores, keys = _longer(docs, room), _longer(scores, room), _longer(keys, room)
        for array, more in ((docs, found), (keys, order)):
            array[filled : filled + len(found)] = more
        scores[filled : filled + len(found)] = values
        filled += len(found)
        ends[q] = filled
    return docs, scores, keys, ends, states


@njit(inline="always")
def _longer(array, size):
    longer = np.empty(size, array.dtype)
    longer[: len(array)] = array
    return longer


@njit(cache=True, nogil=True)
def _best(
    terms, weights, A, completed, usual, kind, term_ptr, block_docs, block_cells, blocks_ptr, blocks, n_docs, n_blocks,
    cells, steps, depth, allowed, documents, completion,
):  # fmt: skip
    nothing = np.empty(0, np.int64), np.empty(0), np.empty(0, np.int64)
    units, start, lists, rest, scale, lost, most, loose = planned(
        terms, weights, A, kind, completion[0], term_ptr, blocks_ptr, blocks, n_docs, n_blocks, cells, steps
    )
    if not are_telling(scale, completed, lost):
        return *nothing, UNBOUNDED
    rows, B, group, tie, static, share = documents
    slack, first = max(0, int((completed - usual) * scale)) + loose, np.int64(0)
    least = first + 1  # not plain numbers: for each of these numba would compile the walk once more
    for guess in (True, False):
        docs, bounds, reached = promising(
            term_ptr, block_docs, block_cells, blocks_ptr, blocks, n_docs, allowed, terms, units, start, steps[2],
            lists, rest, first, n_blocks, n_blocks, depth, least, slack, guess,
        )  # fmt: skip
        if are_too_many(docs, depth, most):
            return *nothing, UNBOUNDED
        docs, scores, keys, floor = best_rows(
            docs, bounds, depth, completed, scale, rows, terms, weights, A, B, group, kind, tie, static, share,
            completion,
        )  # fmt: skip
        least = in_units(floor, completed, scale)
        if least >= reached:
            break
    return docs, scores, keys, settled(scores, floor, completed, start, scale, lost)


@njit(inline="always")
def _leave_allowed(sums, first, n, allowed):
    if len(allowed) > 0:
        for i in range(n):
            if not allowed[first + i]:
                sums[i] = 0


@njit(inline="always")
def _highest(sums):
    """Of each of so many parts of the sums the highest: of one in ``CHUNK``, as the processor finds it at once."""
    size = len(sums) // CHUNK
    highest = sums[:size].copy()
    for left in range(size, len(sums), size):
        for i in range(size):
            value = sums[np.uint64(left) + np.uint64(i)]
            highest[i] = value if value > highest[i] else highest[i]
    return highest


@njit(cache=True, nogil=True)
def bar(bounds, rank):
    """What at least ``rank`` of the bounds reach, and not many more; 1 where all do."""
    counts = np.zeros(1024, np.int64)
    for bound in bounds:
        counts[bound >> 6] += 1
    total, place = 0, 1023
    while place > 0 and total + counts[place] < rank:
        total += counts[place]
        place -= 1
    return max(np.int64(place << 6), np.int64(1))


@njit(cache=True, nogil=True)
def best_rows(docs, bounds, depth, completed, scale, *given):
    """Those of the documents that may be among the best, the highest bounds first: documents, scores, keys.

    Also what a bound must be to reach the last of the best.
    """
    first, chosen, n = bar(bounds, depth), np.empty(len(docs), np.int64), 0
    for i in range(len(docs)):
        chosen[n] = docs[i]
        n += bounds[i] >= first
    scores, keys = score_rows(chosen[:n], *given)
    met = _met(chosen, 0, n, scores, keys)
    scores, keys = scores[:met], keys[:met]
    least = in_units(_last(scores, keys, depth), completed, scale)
    m = met
    for i in range(len(docs)):
        if least <= bounds[i] < first:
            chosen[m] = docs[i]
            m += 1
    if m > met:
        others, their_keys = score_rows(chosen[met:m], *given)
        m = met + _met(chosen, met, m, others, their_keys)
        scores, keys = np.concatenate((scores, others[: m - met])), np.concatenate((keys, their_keys[: m - met]))
    return chosen[:m], scores, keys, _last(scores, keys, depth)


@njit(inline="always")
def _met(docs, first, stop, scores, keys):
    """Leave out documents that have none of the words, and were found by what needs no postings; how many are left."""
    n = 0
    for i in range(stop - first):
        docs[first + n], scores[n], keys[n] = docs[first + i], scores[i], keys[i]
        n += not untouched(scores[i])
    return n


@njit(inline="always")
def _last(scores, keys, depth):
    """The score, in single precision, of the last of the best; lower than any where they are fewer."""
    return select(keys.copy(), scores.copy(), depth) if len(scores) >= depth else np.float32(-np.inf)


@njit(cache=True, nogil=True)
def in_units(floor, completed, scale):
    """The least sum of bounds at which a score may, rounded to single precision, reach the floor."""
    if floor == -np.inf:
        return 1
    least = (np.float64(floor) - abs(np.float64(floor)) * 2.0**-23 - completed) * scale - 1e-3
    return np.int64(min(max(least, 1.0), MOST_UNITS + 1.0))


@njit(cache=True, nogil=True)
def score_rows(docs, rows, terms, weights, A, B, group, kind, tie, static, share, completion):
    """Scores of given documents, each from its row, and their keys: see loops.keep_best.

    Σ_w s_w φ is added as loops.score_narrow adds. A document that has none of the words gets -0.0 and nothing added to
    it. All in one function: handing arrays on for each document takes longer than its words.
    """
    table, met, doc_ptr, words = hashed(terms), np.empty(CHUNK + 1, np.int64), rows.ptr, rows.words
    (g, mass, constant), scores, keys = completion, np.empty(len(docs)), np.empty(len(docs), np.int64)
    for first in range(0, len(docs), AHEAD):
        end = min(first + AHEAD, len(docs))
        for i in range(end, min(end + AHEAD, len(docs))):  # what says where the rows after these begin
            ask_ahead(doc_ptr, docs[i])
            ask_ahead(group, docs[i])
            ask_ahead(tie, docs[i])
        for i in range(first, end):
            at = doc_ptr[docs[i]]
            for k in range(at, at + 3 * LINE, LINE):
                ask_ahead(words, k)
        for i in range(first, end):
            d, value = docs[i], -0.0
            of_length, stop = group[d], doc_ptr[d + 1]
            for left in range(doc_ptr[d], stop, CHUNK):
                n = 0
                for k in range(left, min(left + CHUNK, stop)):  # without a branch that would have to be guessed
                    met[n] = k
                    n += table[words[k] % np.uint32(PLACES)] > 0  # the lower bits are the term's
                for m in range(n):
                    k = met[m]
                    term, place = term_of(words[k], rows), words[k] % np.uint32(PLACES)
                    while table[place] > 0:
                        w = table[place] - 1
                        if terms[w] == term:
                            count = count_of(words[k], k, rows)
                            value = value + weights[w] * evidence(kind, count, A[w], B[of_length]) + 0.0
                            break
                        place = np.uint32(place + 1) % np.uint32(PLACES)
            if not untouched(value):
                if len(static) > 0:
                    value += g * static[d]
                if len(share) > 0:
                    value += mass * share[of_length]
                value += constant
            scores[i], keys[i] = value, (ordered(np.float32(value)) << 32) | tie[d]
    return scores, keys


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
