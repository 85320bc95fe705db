"""What ``sdretrieval index`` notes in an index: the analyzer, the fields, where the documents came from."""

from __future__ import annotations

from pathlib import Path

from sdretrieval.collection.analyzer import AnalyzerSpec
from sdretrieval.index.commit import latest_commit


def read_notes(index: Path) -> dict:
    """Of the present commit; empty for an index made by another tool."""
    return latest_commit(index).notes


def analyzer_of(index: Path) -> AnalyzerSpec:
    """The analyzer an index was built with; Anserini's default where nothing is recorded."""
    return AnalyzerSpec.from_json(read_notes(index).get("analyzer", {}))
