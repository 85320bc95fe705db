"""Plain English text becomes the same terms without Java as with it."""

from __future__ import annotations

import gzip
import json
import re
from functools import cache
from itertools import product

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sdretrieval.collection.analyzer import AnalyzerSpec
from sdretrieval.index.lucene.analysis import analyze, java_analyzer, words_by
from sdretrieval.index.lucene.plain_analysis import STOP_WORDS, plain_words

pytestmark = pytest.mark.java
SPECS = [AnalyzerSpec(stemmer=stemmer, stopwords=stop) for stemmer, stop in product(("porter", "none"), (True, False))]
ENDINGS = (
    "s es ies sses eed ed ing at bl iz y ational tional enci anci izer bli alli entli eli ousli ization ation "
    "ator alism iveness fulness ousness aliti iviti biliti logi icate ative alize iciti ical ful ness al ance "
    "ence er ic able ible ant ement ment ent ion sion tion ou ism ate iti ous ive ize e ll l"
).split()
texts = st.text(st.characters(max_codepoint=127)) | st.text("ab1_.':,;- sS#*")
words = st.tuples(st.text("aeiouybcdlstwxz1_'.", max_size=8), st.lists(st.sampled_from(ENDINGS), max_size=3)).map(
    lambda parts: parts[0] + "".join(parts[1])
)
in_java = cache(lambda spec: words_by(java_analyzer(spec)))


@given(texts)
@example("John'S cat's 'tis dogs' a:b 1:2 x.y 3.4 x,y 3,4 x;y 3;4 a_b __ _1 x'1 such " + " ".join(STOP_WORDS))
@example("fixing snowed playing fizzed falling missed hopping agreed feed skies ties happily dying yyy filing")
def test_any_ascii_text(text):
    for spec in SPECS:
        assert plain_words(text, spec) == in_java(spec)(text)


@given(st.lists(words, min_size=10).map(" ".join))
def test_words_of_all_endings(text):
    assert plain_words(text, SPECS[0]) == in_java(SPECS[0])(text)


@pytest.mark.shared
def test_real_words_and_topics(shared_data):
    lines = [line for file in shared_data.glob("*/topics.tsv") for line in file.read_text("utf-8").splitlines()]
    asked = [text for _, _, text in (line.partition("\t") for line in lines) if text.isascii()]
    seen: set[str] = set()
    for name in ("cacm", "cranfield", "npl", "snopes"):
        with gzip.open(shared_data / name / "docs.jsonl.gz", "rt", encoding="utf-8") as stream:
            seen.update(*(re.findall("[!-~]+", json.loads(line)["contents"]) for line in stream))
    assert len(seen) > 50_000 and len(asked) > 2_000
    for text in (*asked, " ".join(sorted(seen))):
        assert plain_words(text, SPECS[0]) == in_java(SPECS[0])(text)


@pytest.mark.parametrize("text", ["naïve cafés", "don’t", "x" * 256])
def test_all_else_is_left_to_java(text):
    assert plain_words(text, SPECS[0]) is None
    assert analyze(text) == in_java(SPECS[0])(text) != []


def test_other_analyzers_are_left_to_java():
    for spec in (AnalyzerSpec(language="de"), AnalyzerSpec(language="whitespace"), AnalyzerSpec(stemmer="krovetz")):
        assert plain_words("The Houses", spec) is None
        assert analyze("The Houses", spec) == in_java(spec)("The Houses") != analyze("The Houses")
