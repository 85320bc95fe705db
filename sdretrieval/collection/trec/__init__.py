"""TREC's files: topics, runs and judgments, read strictly and written whole.

Reading is strict because a silently skipped line is a silently wrong number: each error names the file and
the line, what was found there and the way out. Any file may be gzipped. Writing goes through a temporary
file, and refuses what could not be read back.

=========  ==========================================================================================
run        ``qid Q0 docid rank score tag``; the order is decided by the scores (:func:`rank_order`),
           as trec_eval does, never by the rank column or the order of lines; ir_metadata may come first
qrels      ``qid iteration docid relevance``
trec       ``<top>`` with ``<num> <title> <desc> <narr>``, closed or not, with or without their labels
microblog  the same with ``<querytime>``, and ``<query>`` or ``<title>``
tsv        qid, text and, optionally, time, separated by tabs; a header line ``qid query`` may come first
jsonl      one object per line with ``qid`` or ``id``; ``text``, ``query`` or ``title``; ``time``
smart      ``.I`` and ``.W``, as CISI and Cranfield
cacm       ``<DOC> <DOCNO>``, as Anserini ships the CACM queries
=========  ==========================================================================================

Reading order: runs.py; topics.py, what all formats of topics share; topic_formats.py, one parser per format.
"""

from __future__ import annotations

from sdretrieval.collection.trec.metadata import read_metadata
from sdretrieval.collection.trec.runs import HIGHEST_RELEVANCE, read_qrels, read_run, run_writer, write_qrels, write_run
from sdretrieval.collection.trec.topic_formats import TOPIC_FORMATS
from sdretrieval.collection.trec.topics import read_times, read_topics, write_topics

__all__ = [
    "HIGHEST_RELEVANCE",
    "TOPIC_FORMATS",
    "read_metadata",
    "read_qrels",
    "read_run",
    "read_times",
    "read_topics",
    "run_writer",
    "write_qrels",
    "write_run",
    "write_topics",
]
