"""Does an analyzer fit an index that does not say which made it? Its own stored texts tell.

Analysed as they were for the index, all words of a stored text are terms of the index; another analyzer makes words
that are not.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

from sdretrieval.collection.analyzer import LANGUAGES, STEMMERS, AnalyzerSpec
from sdretrieval.core.errors import JavaError
from sdretrieval.core.jvm import java_class
from sdretrieval.index.lucene.analysis import analyze
from sdretrieval.index.lucene.contents import opened, parsed_fields

DOCUMENTS, CHARACTERS = 20, 4000  # how much text is looked at
DOUBTFUL = 0.98  # marked-up raw texts have some words that no analyzer explains


class AnalyzerFit:
    """An index, asked which analyzers fit it."""

    def __init__(self, reader) -> None:
        term = java_class("org.apache.lucene.index.Term")
        self.known = cache(lambda word: reader.docFreq(term("contents", word)) > 0)
        self.texts = list(_texts(reader))

    def share(self, spec: AnalyzerSpec) -> float | None:
        """Of the different words that the analyzer makes of stored texts, the share that are terms; None where no text
        is stored."""
        words = {word for text in self.texts for word in analyze(text, spec)}
        return sum(map(self.known, words)) / len(words) if words else None

    def best(self) -> list[tuple[AnalyzerSpec, float]]:
        """All analyzers that this Java has, the best first; of equals, in the order of :data:`LANGUAGES`."""
        specs = [AnalyzerSpec(stemmer=stemmer, stopwords=stop) for stop in (True, False) for stemmer in STEMMERS]
        specs += [AnalyzerSpec(language=language) for language in LANGUAGES if language != "en"]
        shares = []
        for spec in specs:
            with suppress(JavaError):  # where this Java lacks its data
                shares.append((spec, self.share(spec) or 0.0))
        return sorted(shares, key=lambda pair: -pair[1])


@contextmanager
def analyzer_fit(index: Path) -> Iterator[AnalyzerFit]:
    with opened(index) as reader:
        yield AnalyzerFit(reader)


def _texts(reader) -> Iterator[str]:
    """Texts of documents spread over the index, as far as they are stored."""
    stored, count = reader.storedFields(), reader.maxDoc()
    for number in range(0, count, max(1, count // DOCUMENTS)):
        document = stored.document(number)
        fields = parsed_fields(document.get("raw")) or {"contents": document.get("contents")}
        text = fields.get("contents")
        if isinstance(text, str):
            yield text[:CHARACTERS].rpartition(" ")[0] or text[:CHARACTERS]  # no word cut in two
