"""Corpora in the formats people have, read into one kind of record.

Reading order: ``record`` (what a document is, and what makes one bad), ``sources`` (files, folders,
archives), a module per kind of format (``jsonl``, ``trec_sgml``, ``delimited``, ``whole_files``), ``reading`` (the
loop).
"""

from sdretrieval.collection.corpus.reading import FORMATS, Reader, read_corpus
from sdretrieval.collection.corpus.record import Document, FieldMap, Problems

__all__ = ["FORMATS", "Document", "FieldMap", "Problems", "Reader", "read_corpus"]
