"""Long texts of the topics benchmark, small enough to follow by hand."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.results_topics import article, cuts_table, mean_and_error

TEXT = """Harbours are old.
== History ==
The ferry left. Ships came.
=== Middle ages ===
Walls rose.
== Trade ==
Wheat and bread.
== See also ==
Lists of ferries.
"""


@pytest.mark.java
def test_an_article_without_headings_stop_words_and_lists_of_links() -> None:
    text = article(TEXT)
    assert text.document.words(0) == [
        "harbour",
        "old",
        "ferri",
        "left",
        "ship",
        "came",
        "wall",
        "rose",
        "wheat",
        "bread",
    ]
    assert text.sections == [2, 8]
    assert text.parts == [2, 6, 8]
    assert text.paragraphs == [(0, 2), (2, 6), (6, 8), (8, 10)]


def test_of_several_texts_means_errors_and_paired_differences() -> None:
    ours, theirs = [[10.0, 0.1, 0.2, 0.3, 0.4], [20.0, 0.3, 0.2, 0.3, 0.4]], [[5.0, 0.2, 0.2, 0.3, 0.4]] * 2
    found = [{"ours": a, "theirs": b, "even": [float("nan"), *b[1:]]} for a, b in zip(ours, theirs, strict=True)]
    header, _, first, second, last = cuts_table(found, less="ours").splitlines()
    assert header.endswith("| less |")
    assert first == "| ours | 15.0 (5.0) | 0.200 (0.100) / 0.200 (0.000) | 0.300 (0.000) / 0.400 (0.000) |  |"
    assert second.endswith("| +0.000 (0.100) |")
    assert last.startswith("| even | — |")
    assert cuts_table(found[:1]).splitlines()[2] == "| ours | 10.0 | 0.100 / 0.200 | 0.300 / 0.400 |"
    assert mean_and_error(np.array([1.0, 3.0]), 1, "+") == "+2.0 (1.0)"
