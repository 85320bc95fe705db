"""Sorted strings in plain arrays: merged, matched, looked up."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sdretrieval.core.packed_strings import PackedStrings
from sdretrieval.core.sorted_strings import find, joined, pack, places_in, taken, union

WORDS = st.lists(st.text("aäb日𝄞", max_size=4), unique=True, max_size=12)


def sorted_packed(words: list[str]) -> PackedStrings:
    return PackedStrings.pack(sorted(words, key=str.encode), is_sorted=True)


@settings(max_examples=80, deadline=None)
@given(WORDS, WORDS)
def test_union_of_vocabularies(a, b):
    both, of_a, of_b = union(sorted_packed(a), sorted_packed(b))
    assert list(both) == sorted({*a, *b}, key=str.encode)
    assert [both[i] for i in of_a] == list(sorted_packed(a))
    assert [both[i] for i in of_b] == list(sorted_packed(b))
    assert places_in(sorted_packed(a), both).tolist() == of_a.tolist()


@settings(max_examples=80, deadline=None)
@given(WORDS, WORDS)
def test_find_takes_and_joins(a, b):
    strings = PackedStrings.pack(a)
    assert find(strings, pack(b)).tolist() == [a.index(word) if word in a else -1 for word in b]
    some = np.arange(len(a))[::-2]
    assert list(taken(strings, some)) == [a[i] for i in some]
    assert list(joined(pack(a), pack(b))) == a + b


def test_a_vocabulary_that_lacks_words_is_noticed():
    with pytest.raises(ValueError, match="not in the vocabulary"):
        places_in(sorted_packed(["a", "c"]), sorted_packed(["a", "b"]))
