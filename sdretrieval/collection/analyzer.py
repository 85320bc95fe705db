"""How text becomes terms: Anserini's analyzer choices, as a description that needs no Java.

A query must be analysed as its documents were: :class:`AnalyzerSpec` is what ``sdretrieval index`` writes into the
index folder and what every later command reads back. index/lucene/analysis.py does the analysing.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields

from sdretrieval.core.errors import ParameterError

# Anserini's codes; "whitespace" takes the words as they stand.
LANGUAGES = tuple("en ar bn da de es fa fi fr hi hu id it ja ko nl no pl pt ru sv te th tr uk zh whitespace".split())
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

    def __str__(self) -> str:
        """As messages say it."""
        kept = "removed" if self.stopwords else "kept"
        return f"language {self.language}, stemmer {self.stemmer}, stop words {kept}"

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
