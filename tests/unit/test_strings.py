"""PackedStrings: a list of strings in two arrays, with look-ups by their bytes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sdretrieval.core.packed_strings import PackedStrings, byte_order

NAMES = ["b", "", "ä", "B", "ab", "a", "𝄞", "日本", "a b"]


@pytest.fixture
def packed() -> PackedStrings:
    return PackedStrings.pack(NAMES)


def test_reads_like_the_list_it_was_made_from(packed: PackedStrings):
    assert list(packed) == NAMES
    assert len(packed) == 9
    assert [packed[i] for i in range(9)] == NAMES
    assert packed[-1] == "a b"
    assert packed[2:5] == NAMES[2:5]
    assert packed[np.int64(3)] == "B"
    assert packed.take([8, 0, 8]) == ["a b", "b", "a b"]
    assert packed.take(np.zeros(0, dtype=np.int64)) == []
    assert "日本" in packed and "日" not in packed
    for position in (9, -10):
        with pytest.raises(IndexError):
            packed[position]


def test_order_is_that_of_the_bytes(packed: PackedStrings):
    """UTF-8 by hand: '' < B(42) < a(61) < 'a b' < ab < b(62) < ä(c3 a4) < 日本(e6…) < 𝄞(f0…)."""
    assert packed.take(packed.order) == ["", "B", "a", "a b", "ab", "b", "ä", "日本", "𝄞"]
    assert byte_order(packed.data, packed.ptr).tolist() == packed.order.tolist()


def test_sorted_strings_need_no_order_and_none_at_all_are_fine():
    packed = PackedStrings.pack(["B", "a", "ä"], is_sorted=True)
    assert packed.order.tolist() == [0, 1, 2]
    assert [packed.find(s) for s in ("B", "a", "ä", "A", "z")] == [0, 1, 2, -1, -1]
    packed = PackedStrings.pack([])
    assert len(packed) == 0 and list(packed) == [] and packed.find("a") == -1
    assert packed.find_many(["a"]).tolist() == [-1]
    assert packed.order.tolist() == []


def test_a_table_and_bisection_find_the_first_of_equal_strings():
    packed = PackedStrings.pack(["x", "same", "same", "a"])
    assert packed.find("same") == 1
    assert packed.find_many(["same", "a", "x", "no"]).tolist() == [1, 3, 0, -1]
    assert packed.find("same") == 1  # through the table that find_many made


def test_few_look_ups_make_no_table():
    packed = PackedStrings.pack([f"{i:04d}" for i in range(1000)])
    assert packed.find_many(["0007", "none"]).tolist() == [7, -1]
    assert packed._positions is None
    assert packed.find("a\udc80") == -1  # no UTF-8, as read with surrogateescape: absent rather than an error


@settings(max_examples=60, derandomize=True, deadline=None, database=None)
@given(st.lists(st.text(max_size=5), unique=True, max_size=30), st.lists(st.text(max_size=5), max_size=10))
def test_both_ways_to_look_up_agree_with_the_list(strings: list[str], others: list[str]):
    def position(string: str) -> int:
        return strings.index(string) if string in strings else -1

    wanted = [position(s) for s in strings + others]
    assert [PackedStrings.pack(strings).find(s) for s in strings + others] == wanted
    assert PackedStrings.pack(strings).find_many(strings + others).tolist() == wanted


def test_pickled_strings_are_the_same_and_small():
    import pickle

    words = [f"doc-{i}" for i in range(1000)] + ["", "é" * 300]
    strings = PackedStrings.pack(words)
    again = pickle.loads(pickle.dumps(strings))
    assert list(again) == words
    assert again.ptr.dtype == np.int64 and again.order.tolist() == strings.order.tolist()
    assert again.find("doc-7") == 7
    short = PackedStrings.pack(words[:1000], is_sorted=True)
    assert len(pickle.dumps(short)) < len("".join(words[:1000])) + 1000 + 500
    part = PackedStrings(short.data, short.ptr[10:21])
    assert list(pickle.loads(pickle.dumps(part))) == words[10:20]
    assert list(pickle.loads(pickle.dumps(PackedStrings.pack([])))) == []
