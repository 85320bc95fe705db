"""Postings in three bytes: what ranking walks to find which documents may be among the best (ranking/pruned.py).

Documents are cut into blocks of 65,536, so that 16 bits say which document of a block it is. In place of its count a
posting has the number of a **cell**, one of 256: a range of counts and a range of document lengths. Evidence of a count
grows or falls with the count and with the length, so a cell bounds it for whatever weighting, at whatever parameters.
The cells below ``SINGLE`` are of count 1, as most postings are.

    term_ptr       where the postings of a term begin, as in the snapshot
    block_docs     the document within its block
    block_cells    its cell
    starts         of a common word (more than COMMON postings a block): where, counted from its first posting, the
                   postings of each block begin that have a count above 1, and then those of count 1, which follow
    blocks         of another word: the block of each of its postings, which are in the order of the documents
    ptr            where in the one or the other a word begins
    cells          per cell: lowest count, highest count, first length group, last length group
    lengths, group the lengths that occur, ascending, and which of them each document has, as in the snapshot

The exact counts are in the documents' own rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from sdretrieval.core.compiled import njit
from sdretrieval.core.errors import IndexProblem
from sdretrieval.index.sparse import postings_by_term

BITS = 16
FEW = 250_000  # postings: what NumPy and plain loops are done with before numba is imported
COMMON = 4  # postings a block; of a word of fewer it takes less room to say the block of each
SINGLE = 112  # cells of count 1
# The lowest count of a class, and its cells: by length, so many ranges that equally many words are in each.
CLASSES = ((1, SINGLE), (2, 56), (3, 32), (4, 20), (6, 12), (9, 10), (14, 8), (28, 6))


@dataclass(frozen=True, eq=False)
class Compact:
    """The arrays above."""

    block_docs: np.ndarray
    block_cells: np.ndarray
    blocks: np.ndarray
    starts: np.ndarray
    ptr: np.ndarray
    cells: np.ndarray
    lengths: np.ndarray
    group: np.ndarray

    @property
    def n_blocks(self) -> int:
        return _n_blocks(self.group)

    def docs_of(self, term: int, term_ptr: np.ndarray) -> np.ndarray:
        """The documents that have a term, ascending; ``term_ptr`` as in the snapshot."""
        docs, at = self.block_docs[term_ptr[term] : term_ptr[term + 1]].astype(np.int64), self.ptr[term]
        if len(docs) > COMMON * self.n_blocks:
            edges: np.ndarray = self.starts[at : at + 2 * self.n_blocks + 1].astype(np.int64)
            sizes = edges[1:] - edges[:-1]
            fits = sizes.min() >= 0 and sizes.sum() == len(docs)
            block = np.repeat(np.arange(2 * self.n_blocks) >> 1, sizes) if fits else sizes[:0]
        else:
            block = self.blocks[at : at + len(docs)].astype(np.int64)
        if len(block) == len(docs):
            docs = np.sort(docs + (block << BITS))
            if not len(docs) or 0 <= docs[0] <= docs[-1] < len(self.group):
                return docs
        raise IndexProblem("a snapshot's compact postings are not its counts", remedy="Delete the snapshot.")

    @classmethod
    def of(cls, arrays: Mapping[str, np.ndarray]) -> Compact:
        """From the arrays of a snapshot."""
        names = "block_docs block_cells blocks block_starts blocks_ptr cells length_values length_group".split()
        docs, cells, blocks, starts, ptr, bounds, lengths, group = (arrays[name] for name in names)
        return cls(docs, cells, blocks, starts, ptr, bounds.reshape(256, 4), lengths, group)


def compact_arrays(arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The arrays of a snapshot that this module describes, from its postings and lengths."""
    (term_docs, term_counts), outline = postings_by_term(arrays), compact_outline(arrays)
    group, n_blocks = arrays["length_group"], _n_blocks(arrays["length_group"])
    _, cell_of, class_of = _cells(arrays["length_values"], group)
    size = block_sizes(arrays)
    blocks = np.zeros(size["blocks"], np.min_scalar_type(n_blocks))
    starts = np.zeros(size["block_starts"], np.int32)
    docs, codes = np.empty(len(term_docs), np.uint16), np.empty(len(term_docs), np.uint8)
    given = arrays["term_ptr"], term_docs, term_counts, group
    encode = _encode_few if len(term_docs) <= FEW else _encode
    encode(*given, cell_of, class_of, n_blocks, outline["blocks_ptr"], blocks, starts, docs, codes)
    return {**outline, "block_docs": docs, "block_cells": codes, "blocks": blocks, "block_starts": starts}


def compact_outline(arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Those of them that are told by df and lengths alone. The others need no more than their sizes to be walked."""
    is_common, sizes = _block_sizes(arrays)
    ends = np.where(is_common, np.cumsum(sizes * is_common), np.cumsum(sizes * ~is_common))
    return {"blocks_ptr": ends - sizes, "cells": _cells(arrays["length_values"], arrays["length_group"])[0].ravel()}


def block_sizes(arrays: Mapping[str, np.ndarray]) -> dict[str, int]:
    """How many entries those two have that say where the blocks are."""
    is_common, sizes = _block_sizes(arrays)
    return {"blocks": int(sizes[~is_common].sum()), "block_starts": int(sizes[is_common].sum())}


def _block_sizes(arrays: Mapping[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    n_blocks, df = _n_blocks(arrays["length_group"]), np.diff(arrays["term_ptr"]).astype(np.int64)
    is_common = df > COMMON * n_blocks
    return is_common, np.where(is_common, 2 * n_blocks + 1, df)


def _n_blocks(group: np.ndarray) -> int:
    return -(-len(group) >> BITS)


def _cells(lengths: np.ndarray, group: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The cells; the cell of each class of counts and length group; the class of each count up to the last."""
    shares = np.cumsum(np.bincount(group, minlength=len(lengths)) * lengths)
    shares = shares / max(shares[-1], 1) if len(shares) else shares
    lows = [low for low, _ in CLASSES]
    highs = [low - 1 for low in lows[1:]] + [np.iinfo(np.int32).max]
    cells, cell_of, first = np.zeros((256, 4), np.int64), np.zeros((len(CLASSES), len(lengths)), np.uint8), 0
    for number, ((low, n), high) in enumerate(zip(CLASSES, highs, strict=True)):
        place = np.minimum((shares * n).astype(np.int64), n - 1)
        cell_of[number] = first + place
        for cell in range(n):
            of_cell = np.flatnonzero(place == cell)
            if len(of_cell):
                cells[first + cell] = low, high, of_cell[0], of_cell[-1]
        first += n
    return cells, cell_of, np.searchsorted(lows, np.arange(lows[-1] + 1), side="right") - 1


@njit(cache=True, nogil=True)
def _encode(ptr, docs, counts, group, cell_of, class_of, n_blocks, blocks_ptr, blocks, starts, block_docs, block_cells):
    for t in range(len(ptr) - 1):
        start, stop, at = ptr[t], ptr[t + 1], blocks_ptr[t]
        is_common = stop - start > COMMON * n_blocks
        if is_common:
            for k in range(start, stop):
                starts[at + 2 * (docs[k] >> BITS) + (counts[k] == 1) + 1] += 1
            for b in range(2 * n_blocks):
                starts[at + b + 1] += starts[at + b]
        cursor = starts[at : at + 2 * n_blocks].copy() if is_common else starts[:0]
        for k in range(start, stop):
            place = k
            if is_common:
                part = 2 * (docs[k] >> BITS) + (counts[k] == 1)
                place = start + cursor[part]
                cursor[part] += 1
            else:
                blocks[at + k - start] = docs[k] >> BITS
            block_docs[place] = docs[k] & 0xFFFF
            block_cells[place] = cell_of[class_of[min(counts[k], len(class_of) - 1)], group[docs[k]]]


def _encode_few(
    ptr, docs, counts, group, cell_of, class_of, n_blocks, blocks_ptr, blocks, starts, block_docs, block_cells
):  # fmt: skip
    """:func:`_encode` by NumPy."""
    df = np.diff(ptr)
    term, common = np.repeat(np.arange(len(df)), df), np.flatnonzero(df > COMMON * n_blocks)
    block, is_common = docs >> BITS, (df > COMMON * n_blocks)[term]
    part = np.where(is_common, 2 * block + (counts == 1), 0)
    order = np.argsort(term * (2 * n_blocks) + part, kind="stable")
    codes = cell_of[class_of[np.minimum(counts, len(class_of) - 1)], group[docs]]
    block_docs[:], block_cells[:] = docs[order] & 0xFFFF, codes[order]
    rare = np.flatnonzero(~is_common)
    blocks[blocks_ptr[term[rare]] + rare - ptr[term[rare]]] = block[rare]
    sizes = np.zeros((len(common), 2 * n_blocks + 1), dtype=np.int64)
    np.add.at(sizes, (np.searchsorted(common, term[is_common]), part[is_common] + 1), 1)
    starts[blocks_ptr[common][:, None] + np.arange(2 * n_blocks + 1)] = np.cumsum(sizes, axis=1)
