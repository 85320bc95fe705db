"""Corpora in the formats people have, read into one kind of record.

Reading order: ``record`` (what a document is, and what makes one bad), ``sources`` (files, folders,
archives), one module per format (``jsonl``, ``trec_sgml``, ``html``, ``plain_text``, ``tables``), ``reading``
(the loop).
"""

from sdretrieval.corpus.problems import Problems
from sdretrieval.corpus.reading import FORMATS, Reader, read_corpus
from sdretrieval.corpus.record import Document, FieldMap

__all__ = ["FORMATS", "Document", "FieldMap", "Problems", "Reader", "read_corpus"]
