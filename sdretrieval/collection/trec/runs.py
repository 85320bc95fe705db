"""Runs and judgments: read strictly, written whole."""

from __future__ import annotations

import logging
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from os import fspath
from typing import Literal

import numpy as np

from sdretrieval.collection.records import Qrels, Ranking, Run
from sdretrieval.collection.trec.trec_file import Path, TrecFile, check_writable, shown, size_of
from sdretrieval.core.errors import InputError, ParameterError
from sdretrieval.core.files import atomic_writer

Missing = Literal["error", "drop"]

log = logging.getLogger(__name__)

# trec_eval keeps an array with a place for every relevance level up to the highest: a level of a billion
# in a damaged file would cost gigabytes.
HIGHEST_RELEVANCE = 1_000_000

_RUN_FORM = "Each line is: qid Q0 docid rank score tag."
_QRELS_FORM = "Each line is: qid 0 docid relevance."


def read_run(
    path: Path,
    *,
    known_docids: Container[str] | None = None,
    known_topics: Container[str] | None = None,
    missing: Missing = "error",
    collection: str = "the index",
) -> Run:
    """Read a run; topics stay in the order of the file, each list comes in rank order.

    Parameters
    ----------
    path
        Plain or gzipped.
    known_docids, known_topics
        What the run may speak of; anything where they are not given.
    missing
        ``drop`` leaves out lines on anything else and logs how many they were; ``error`` refuses them.
    collection
        What errors call the home of the docids.

    Returns
    -------
    Run
    """
    file = TrecFile(path)
    known = _Known(file, known_docids, known_topics, missing, collection)
    found: dict[str, tuple[dict[str, float], list[int]]] = {}  # scores, and the lines they stood on
    tag = ""
    last: str | None = None
    for line, (qid, _, docid, rank, score, line_tag) in file.rows(6, _RUN_FORM):
        if qid != last:
            if not known.topic(qid, line):
                continue
            file.check_token(line, "topic id", qid)
            if not found:
                file.check_token(line, "tag", line_tag)
                tag = line_tag
            scores, lines = found.setdefault(qid, ({}, []))
            last = qid
        try:
            value = float(score)
        except ValueError:
            value = np.nan
        # Python also reads 1_000 and Arabic digits, which trec_eval takes for 1 and 0.
        if value != value or "_" in score or not score.isascii():
            file.fail(line, f"score {shown(score)} is not a number", _RUN_FORM)
        if not rank.isdecimal():
            file.fail(line, f"rank {shown(rank)} is not a whole number", _RUN_FORM)
        if not docid.isprintable():
            file.check_token(line, "docid", docid)
        if docid in scores:
            file.fail_again(line, qid, docid, lines[list(scores).index(docid)])
        if known.docid(docid, line):
            scores[docid] = value
            lines.append(line)
    rankings = {
        qid: Ranking(list(scores), np.fromiter(scores.values(), float, len(scores)))
        for qid, (scores, _) in found.items()
        if scores
    }
    known.report(left=len(rankings), form=_RUN_FORM)
    return Run(rankings, tag)


def write_run(path: Path, run: Mapping[str, Ranking], tag: str | None = None) -> None:
    """Write a run, plain or (by its name) ``.gz``.

    Scores are written with as many digits as it takes to read back the same number: rounding them would
    make ties, and so another order.

    Parameters
    ----------
    run
        Rankings by topic. A topic without documents has no line in this format.
    tag
        The last column; the run's own where it is not given.
    """
    check_writable("topic id", run)
    with run_writer(path, tag if tag is not None else str(getattr(run, "tag", "sdretrieval"))) as add:
        for qid, ranking in run.items():
            add(qid, ranking)


@contextmanager
def run_writer(path: Path, tag: str) -> Iterator[Callable[[str, Ranking], None]]:
    """Write a run topic by topic, as its rankings are found; the file is in place only when all are.

    >>> with run_writer("run.txt", "mine") as add:  # doctest: +SKIP
    ...     add("1", Ranking(["a", "b"], [1.0, 2.0]))
    """
    check_writable("tag", [tag])
    is_empty = True
    with atomic_writer(path) as stream:

        def add(qid: str, ranking: Ranking) -> None:
            nonlocal is_empty
            check_writable("topic id", [qid])
            check_writable("docid", ranking.docids)
            is_empty = is_empty and not len(ranking)
            start, end = f"{qid} Q0 ", f" {tag}\n"
            hits = enumerate(ranking, 1)
            stream.write("".join([f"{start}{docid} {rank} {score!r}{end}" for rank, (docid, score) in hits]))

        yield add
        if is_empty:
            raise ParameterError(f"no topic of run {tag!r} has a document: nothing to write to {fspath(path)}")


def read_qrels(
    path: Path,
    *,
    known_docids: Container[str] | None = None,
    known_topics: Container[str] | None = None,
    missing: Missing = "error",
    collection: str = "the index",
) -> Qrels:
    """Read judgments; the second column is ignored.

    Parameters
    ----------
    path, known_docids, known_topics, missing, collection
        As in :func:`read_run`.

    Returns
    -------
    Qrels
    """
    file = TrecFile(path)
    known = _Known(file, known_docids, known_topics, missing, collection)
    found: dict[str, tuple[dict[str, int], list[int]]] = {}  # judgments, and the lines they stood on
    for line, (qid, _, docid, relevance) in file.rows(4, _QRELS_FORM):
        if not known.topic(qid, line):
            continue
        if qid not in found:
            file.check_token(line, "topic id", qid)
        judged, lines = found.setdefault(qid, ({}, []))
        digits = relevance[1:] if relevance[0] in "+-" else relevance
        if not (digits.isdecimal() and digits.isascii()):
            file.fail(line, f"relevance {shown(relevance)} is not a whole number", _QRELS_FORM)
        # Length first: Python takes its time over a number of a million digits.
        if len(digits.lstrip("0")) > 7 or int(digits) > HIGHEST_RELEVANCE:
            remedy = f"Levels are small numbers such as 0, 1, 2. {_QRELS_FORM}"
            file.fail(line, f"relevance {shown(relevance)} is beyond {HIGHEST_RELEVANCE}", remedy)
        if not docid.isprintable():
            file.check_token(line, "docid", docid)
        if docid in judged:
            file.fail_again(line, qid, docid, lines[list(judged).index(docid)])
        if known.docid(docid, line):
            judged[docid] = int(relevance)
            lines.append(line)
    judgments = {qid: judged for qid, (judged, _) in found.items() if judged}
    known.report(left=len(judgments), form=_QRELS_FORM)
    return Qrels(judgments)


def write_qrels(path: Path, qrels: Mapping[str, Mapping[str, int]]) -> None:
    """Write judgments as ``qid 0 docid relevance``, plain or (by its name) ``.gz``."""
    check_writable("topic id", qrels)
    if not any(map(len, qrels.values())):
        raise ParameterError(f"no topic has a judgment: nothing to write to {fspath(path)}")
    with atomic_writer(path) as stream:
        for qid, judged in qrels.items():
            check_writable("docid", judged)
            for docid, relevance in judged.items():
                if not -HIGHEST_RELEVANCE <= relevance <= HIGHEST_RELEVANCE or relevance != int(relevance):
                    raise ParameterError(
                        f"relevance of {docid!r} for topic {qid!r} must be a whole number "
                        f"up to {HIGHEST_RELEVANCE}, got {shown(relevance)}"
                    )
                stream.write(f"{qid} 0 {docid} {int(relevance)}\n")


class _Known:
    """What a run or qrels file may speak of, and what became of the rest."""

    def __init__(
        self,
        file: TrecFile,
        docids: Container[str] | None,
        topics: Container[str] | None,
        missing: Missing,
        collection: str,
    ) -> None:
        if missing not in ("error", "drop"):
            raise ParameterError(f"missing must be 'error' or 'drop', got {missing!r}")
        self.file = file
        # `in` reads a sequence from its start, for every line of the file: a set does not.
        self.docids = frozenset(docids) if isinstance(docids, Sequence) else docids
        self.topics = frozenset(topics) if isinstance(topics, Sequence) else topics
        self.drop = missing == "drop"
        self.collection = collection
        self.dropped = 0

    def topic(self, qid: str, line: int) -> bool:
        if self.topics is None or qid in self.topics:
            return True
        return self._absent(line, f"topic {shown(qid)} is not among the topics{size_of(self.topics, '')}")

    def docid(self, docid: str, line: int) -> bool:
        if self.docids is None or docid in self.docids:
            return True
        size = size_of(self.docids, " documents")
        return self._absent(line, f"docid {shown(docid)} is not in {self.collection}{size}", "re-index, or ")

    def _absent(self, line: int, message: str, remedy: str = "") -> bool:
        if not self.drop:
            remedy += "pass missing='drop' (--missing drop) to leave such lines out."
            self.file.fail(line, message, remedy[0].upper() + remedy[1:])
        self.dropped += 1
        return False

    def report(self, *, left: int, form: str) -> None:
        path = self.file.path
        if left and self.dropped:
            log.warning("%s: %d lines on unknown topics or docids dropped", fspath(path), self.dropped)
        elif self.dropped:
            message = f"all {self.dropped} lines are on unknown topics or docids"
            remedy = f"Is this the file that belongs to {self.collection}?"
            raise InputError(message, file=path, remedy=remedy)
        elif not left:
            raise InputError("the file is empty", file=path, remedy=form)
