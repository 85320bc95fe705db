"""What ``sdretrieval index`` notes inside an index folder: the analyzer, the fields, where the documents came from."""

from __future__ import annotations

import json
from pathlib import Path

from sdretrieval.collection.analyzer import AnalyzerSpec
from sdretrieval.core.errors import IndexProblem

NOTES = "sdretrieval.json"


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
