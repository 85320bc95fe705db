"""Plain English text to terms without Java: to the same terms as Anserini's DefaultEnglishAnalyzer.

Starting Java takes longer than ranking a query, and most queries are ASCII. Of Lucene's chain that is: words by
Unicode's rules (UAX #29), a possessive 's off, lower case, no stop words, Porter's stemmer as Lucene has it. Whatever
this is not sure of is left to Java.
"""

from __future__ import annotations

import re
from functools import lru_cache

from sdretrieval.collection.analyzer import AnalyzerSpec

# Letters, digits and underscores; between two letters also one of .':  and between two digits one of .',;
_WORD = re.compile(r"\w+(?:(?:(?<=[a-z])[.':](?=[a-z])|(?<=\d)[.',;](?=\d))\w+)*", re.ASCII | re.IGNORECASE)
LONGEST_WORD = 255  # characters; Lucene cuts longer ones into pieces
STOP_WORDS = frozenset(
    "a an and are as at be but by for if in into is it no not of on or such that the their then there these they this "
    "to was will with".split()
)
# Porter's steps 2 and 3: of these endings the first that a word has is looked at. And his step 4: they all go.
_LONG = (
    "ational-ate tional-tion enci-ence anci-ance izer-ize bli-ble alli-al entli-ent eli-e ousli-ous ization-ize "
    "ation-ate ator-ate alism-al iveness-ive fulness-ful ousness-ous aliti-al iviti-ive biliti-ble logi-log"
)
_SHORT = "icate-ic ative- alize-al iciti-ic ical-ic ful- ness-"
_CHANGES = [[pair.split("-") for pair in step.split()] for step in (_LONG, _SHORT)]
_LAST = re.compile(
    r"(?:al|ance|ence|er|ic|able|ible|ant|ement|ment|ent|(?<=[st])ion|ou|ism|ate|iti|ous|ive|ize)\Z"  # the longest
)


def plain_words(text: str, spec: AnalyzerSpec) -> list[str] | None:
    """The terms of a text, in order; None where it takes Java to tell."""
    if spec.language != "en" or spec.stemmer == "krovetz" or not text.isascii():
        return None
    words = [word for word in _WORD.findall(text) if word.strip("_")]
    if any(len(word) > LONGEST_WORD for word in words):
        return None
    words = [word[:-2] if word.endswith(("'s", "'S")) else word for word in words]
    kept = [word for word in map(str.lower, words) if not (spec.stopwords and word in STOP_WORDS)]
    return [stem(word) for word in kept] if spec.stemmer == "porter" else kept


@lru_cache(maxsize=1 << 16)
def stem(word: str) -> str:
    """Martin Porter's stemmer (1980) with his two later changes, step by step, as Lucene's PorterStemmer has it."""
    if len(word) < 3:
        return word
    word = _without_past(_without_plural(word))
    if word.endswith("y") and "v" in _shape(word[:-1]):
        word = word[:-1] + "i"
    for changes in _CHANGES:
        word = _changed(word, changes)
    return _tidied(_without_last(word))


def _shape(word: str) -> str:
    """A letter c for each consonant and v for each vowel. A y after a consonant is a vowel; all but letters are c."""
    shape = ""
    for letter in word:
        is_vowel = letter in "aeiou" or (letter == "y" and shape.endswith("c"))
        shape += "v" if is_vowel else "c"
    return shape


def _measure(word: str) -> int:
    """Porter's m: how many times consonants follow vowels."""
    return _shape(word).count("vc")


def _is_short(word: str) -> bool:
    """Porter's *o: a consonant, a vowel, and a consonant other than w, x, y at the end."""
    return _shape(word).endswith("cvc") and word[-1] not in "wxy"


def _is_double(word: str) -> bool:
    return word[-1:] == word[-2:-1] and _shape(word).endswith("c")


def _without_plural(word: str) -> str:
    if word.endswith(("sses", "ies")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and word[-2] != "s" else word


def _without_past(word: str) -> str:
    if word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) > 0 else word
    stem = word.removesuffix("ed") if word.endswith("ed") else word.removesuffix("ing")
    if stem == word or "v" not in _shape(stem):
        return word
    if stem.endswith(("at", "bl", "iz")):
        return stem + "e"
    if _is_double(stem):
        return stem if stem[-1] in "lsz" else stem[:-1]
    return stem + "e" if _measure(stem) == 1 and _is_short(stem) else stem


def _changed(word: str, changes: list[list[str]]) -> str:
    for ending, other in changes:
        if word.endswith(ending):
            stem = word.removesuffix(ending)
            return stem + other if _measure(stem) > 0 else word
    return word


def _without_last(word: str) -> str:
    found = _LAST.search(word)
    return word[: found.start()] if found and _measure(word[: found.start()]) > 1 else word


def _tidied(word: str) -> str:
    """Without a last e, or one of two l, where enough is left."""
    m = _measure(word)
    if word.endswith("e") and (m > 1 or (m == 1 and not _is_short(word[:-1]))):
        word = word[:-1]
    return word[:-1] if m > 1 and word.endswith("ll") else word
