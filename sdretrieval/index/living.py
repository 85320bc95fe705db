"""Documents added to, replaced in and deleted from an index that is there: one commit each, and the snapshot follows.

Everything that is computed afterwards is what an index built anew from the same documents would give: deleted documents
are written out of the segments that had them, so that Lucene's own statistics do not count them either.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from sdretrieval.collection.analyzer import AnalyzerSpec
from sdretrieval.collection.corpus.record import Document, Problems
from sdretrieval.core.errors import IndexProblem, ParameterError
from sdretrieval.index.commit import latest_commit
from sdretrieval.index.lucene.committing import commit_index, writing_to
from sdretrieval.index.lucene.indexing import ASIDE, IndexSummary, Stored, index_aside, index_bytes, notes_of
from sdretrieval.index.snapshot import Snapshot, open_snapshot


def append_documents(
    documents: Iterable[Document],
    index_path: str | os.PathLike[str],
    *,
    replace: bool = False,
    analyzer: AnalyzerSpec | None = None,
    threads: int = 1,
    problems: Problems | None = None,
    notes: dict[str, Any] | None = None,
) -> IndexSummary:
    """Add documents to an index made by ``sdretrieval index``, in one commit, and bring its snapshot up to date.

    Parameters
    ----------
    documents
        From a :class:`~sdretrieval.collection.corpus.Reader`, or made in Python.
    replace
        Documents whose id the index has take the place of those; without it they are bad documents.
    analyzer
        An error where it is not the index's own, by which texts are analysed in any case.
    problems
        Where bad documents are reported; the first one is an error where it is not given.
    notes
        Kept in the commit beside what is there.

    Returns
    -------
    IndexSummary
        Of the index afterwards; ``added`` and ``deleted`` of the change.
    """
    index, gone = Path(index_path), []
    with writing_to(index) as building:
        commit = latest_commit(index)
        spec, stored = _made_with(index, commit.notes, analyzer)
        known = open_snapshot(index).docids

        def check(document: Document) -> None:
            if known.find(document.docid) >= 0:
                if not replace:
                    told = f"document id {document.docid!r} is in the index already"
                    raise document.place.error(told, "Pass --replace to put the new document in its place.")
                gone.append(document.docid)

        added = index_aside(documents, building, spec, stored, threads=threads, problems=problems, check=check)
        began = time.perf_counter()
        all_notes = notes_of(spec, added, {**_kept(commit.notes), **(notes or {})}, stored)
        commit_index(index, building, all_notes, added=building / ASIDE, delete=gone, append=True)
        added.added, added.deleted = added.documents, len(gone)
    return _of_now(added, index, began)


def delete_documents(docids: Iterable[str], index_path: str | os.PathLike[str]) -> IndexSummary:
    """Delete documents from an index by their ids, in one commit, and bring its snapshot up to date."""
    index, gone, began = Path(index_path), list(dict.fromkeys(docids)), time.perf_counter()
    with writing_to(index) as building:
        commit, known = latest_commit(index), open_snapshot(index).docids
        unknown = [docid for docid in gone if known.find(docid) < 0]
        if unknown or not gone:
            told = f"no document of {index} has the id {unknown[0]!r}" if unknown else "no ids to delete"
            more = f", nor {len(unknown) - 1:,} more of those given" if len(unknown) > 1 else ""
            raise ParameterError(f"{told}{more}.", remedy="Nothing was deleted; correct the ids.")
        commit_index(index, building, commit.notes, delete=gone, append=True)
    return _of_now(IndexSummary(deleted=len(gone)), index, began)


def _made_with(index: Path, notes: dict[str, Any], asked: AnalyzerSpec | None) -> tuple[AnalyzerSpec, Stored]:
    if "analyzer" not in notes:
        raise IndexProblem(
            f"{index} was made by another tool, which did not note how its texts were analysed.",
            remedy="Add documents with that tool, or index all of them with `sdretrieval index`.",
        )
    spec = AnalyzerSpec.from_json(notes["analyzer"])
    if asked is not None and asked != spec:
        raise ParameterError(f"the analyzer of {index} is {spec.to_json()}, not {asked.to_json()}.")
    return spec, Stored(**notes.get("stored", {}))


def _kept(notes: dict[str, Any]) -> dict[str, Any]:
    """Of the notes of the commit before: what is not said anew."""
    return {name: value for name, value in notes.items() if name not in ("created_by", "anserini", "summary")}


def _of_now(change: IndexSummary, index: Path, began: float) -> IndexSummary:
    """What the index is after a change; its snapshot is made."""
    snapshot: Snapshot = open_snapshot(index)
    change.documents, change.tokens, change.terms = snapshot.n_docs, snapshot.n_tokens, snapshot.n_terms
    change.undated, change.earliest, change.latest = snapshot.time_span()
    change.bytes = index_bytes(index)
    change.seconds_indexing += time.perf_counter() - began
    return change
