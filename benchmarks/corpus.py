"""Real text of any size for measuring speed: by ../shared/tools/scale_corpus.py, made and indexed once below .cache."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from benchmarks.collections import ROOT
from sdretrieval.collection.corpus import Reader
from sdretrieval.index.lucene.indexing import build_index

CACHE = ROOT / ".cache" / "benchmarks"
TOOL = ROOT.parent / "shared" / "tools" / "scale_corpus.py"


def documents(passages: int) -> Path:
    """The passages, with topics.tsv beside them."""
    folder = CACHE / f"scale-{passages}"
    if not (folder / "topics.tsv").is_file():
        if not TOOL.is_file():
            sys.exit(f"{TOOL} is not there: it makes the corpus of real text that this benchmark measures on")
        subprocess.run([sys.executable, str(TOOL), str(folder), "--passages", str(passages)], check=True)
    return folder / "docs.jsonl"


def corpus(passages: int) -> tuple[Path, Path]:
    """Index and topics, made where they are not there."""
    docs = documents(passages)
    index = docs.with_name("index")
    if not index.exists():
        build_index(Reader(date="date").read([docs]), index, store_docvectors=True, store_raw=False)
    return index, docs.with_name("topics.tsv")
