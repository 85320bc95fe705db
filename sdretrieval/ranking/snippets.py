"""The part of a text that shows best why it was found, with the words of the query marked.

A word is marked where the collection's analyzer makes one of the wanted terms of it, so *flooding* is marked for
*floods*. Words are analysed one at a time and remembered: a collection has few that are often seen.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from functools import lru_cache
from typing import NamedTuple

Piece = tuple[str, bool]  # a stretch of text, and whether it is marked

_WORD = re.compile(r"[^\W_]+(?:['’.][^\W_]+)*")
_REST = r"[^\W_]*(?:['’.][^\W_]+)*"
LONGEST_TEXT = 40_000  # characters that are looked at
LONGEST_WORD = 80
REMEMBERED = 200_000  # words


@lru_cache(maxsize=1000)
def _beginning_with(letters: str) -> re.Pattern[str]:
    """Words with one of these first letters: the others are passed over without a look at them."""
    return re.compile(rf"(?<![^\W_])(?<![^\W_]['’.])(?i:[{re.escape(letters)}]){_REST}")


class Word(NamedTuple):
    start: int
    end: int
    terms: frozenset[str]  # those wanted that it stands for


class Marker:
    """Marks words by what an analyzer makes of them; any thread may ask.

    ``keeps_first``: the analyzer only ever changes the ends of words, as English stemming does, so that words with
    another first letter than a wanted term's need not be analysed.
    """

    def __init__(self, analyze: Callable[[str], Sequence[str]], *, keeps_first: bool = False) -> None:
        self._analyze, self._keeps_first = analyze, keeps_first
        self._terms: dict[str, Sequence[str]] = {}

    def terms(self, word: str) -> Sequence[str]:
        """What the analyzer makes of one word."""
        known = self._terms.get(word)
        if known is None:
            if len(self._terms) >= REMEMBERED:
                self._terms = {}
            known = self._terms[word] = tuple(self._analyze(word)) if len(word) <= LONGEST_WORD else ()
        return known

    def found(self, text: str, wanted: Collection[str]) -> list[Word]:
        """The words of a text that stand for wanted terms, in order."""
        wanted = frozenset(wanted)
        if not wanted:
            return []
        pattern = _beginning_with("".join(sorted({term[0] for term in wanted}))) if self._keeps_first else _WORD
        matches = ((m, wanted.intersection(self.terms(m[0].lower()))) for m in pattern.finditer(text))
        return [Word(m.start(), m.end(), terms) for m, terms in matches if terms]

    def snippet(self, text: str, wanted: Collection[str], length: int = 240) -> list[Piece]:
        """About ``length`` characters of a text, around the most different terms wanted; the first where none is."""
        text = " ".join(text[:LONGEST_TEXT].split())
        words = self.found(text, wanted)
        start, end = best_window(words, length, len(text))
        while 0 < start < len(text) and not text[start - 1].isspace():  # whole words
            start -= 1
        while end < len(text) and not text[end].isspace() and end - start < 2 * length:
            end += 1
        return _pieces(text, start, end, words)

    def whole(self, text: str, wanted: Collection[str]) -> list[Piece]:
        """A text with the words marked that stand for wanted terms; very long ones are cut."""
        return _pieces(text, 0, min(len(text), LONGEST_TEXT), self.found(text[:LONGEST_TEXT], wanted))


def best_window(words: Sequence[Word], length: int, total: int) -> tuple[int, int]:
    """The stretch of ``length`` characters with the most different terms, then the most words, then the earliest."""
    best, key = 0, (0, 0)
    for first, word in enumerate(words):
        inside = [other for other in words[first : first + length] if other.end <= word.start + length]
        different = len(frozenset().union(*(other.terms for other in inside)))
        if (different, len(inside)) > key:
            best, key = first, (different, len(inside))
    if not words or total <= length:
        return 0, min(length, total)
    start = max(0, min(words[best].start - length // 6, total - length))
    return start, min(start + length, total)


def _pieces(text: str, start: int, end: int, words: Sequence[Word]) -> list[Piece]:
    pieces: list[Piece] = [("… ", False)] if start else []
    for word in words:
        if word.start >= start and word.end <= end:
            pieces += [(text[start : word.start], False), (text[word.start : word.end], True)]
            start = word.end
    pieces += [(text[start:end], False), (" …" if end < len(text) else "", False)]
    return [piece for piece in pieces if piece[0]]
