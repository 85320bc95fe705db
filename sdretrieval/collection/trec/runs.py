"""Runs and judgments: read strictly, written whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from os import fspath
from typing import Any

import numpy as np

from sdretrieval.collection.records import Qrels, Ranking, Run
from sdretrieval.collection.trec import run_loops
from sdretrieval.collection.trec.metadata import after_metadata, metadata_lines
from sdretrieval.collection.trec.trec_file import Path, TrecFile, check_writable
from sdretrieval.core.array_folder import read_only
from sdretrieval.core.compiled import is_loaded
from sdretrieval.core.errors import ParameterError, shown
from sdretrieval.core.files import atomic_writer

# trec_eval keeps an array with a place for every relevance level up to the highest: a level of a billion
# in a damaged file would cost gigabytes.
HIGHEST_RELEVANCE = 1_000_000
MANY = 20_000  # lines: until so many are written, loading the loop that writes them takes longer

_RUN_FORM = "Each line is: qid Q0 docid rank score tag."
_QRELS_FORM = "Each line is: qid 0 docid relevance."


def read_run(path: Path) -> Run:
    """Read a run, plain or gzipped; topics stay in the order of the file, each list comes in rank order.

    A comment of ir_metadata before the first line is passed over; ``read_metadata`` reads it.
    """
    file = TrecFile(path)
    found: dict[str, tuple[dict[str, float], list[int]]] = {}  # scores, and the lines they stood on
    tag = ""
    last: str | None = None
    rows = file.rows(6, _RUN_FORM, after_metadata(path, file.lines()))
    for line, (qid, _, docid, rank, score, line_tag) in rows:
        if qid != last:
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
        scores[docid] = value
        lines.append(line)
    file.check_filled(found, _RUN_FORM)
    scored = ((qid, scores) for qid, (scores, _) in found.items())
    return Run({qid: Ranking(list(of), np.fromiter(of.values(), float, len(of))) for qid, of in scored}, tag)


def write_run(
    path: Path, run: Mapping[str, Ranking], tag: str | None = None, metadata: Mapping[str, Any] | None = None
) -> None:
    """Write a run, plain or (by its name) ``.gz``.

    Scores are written with as many digits as it takes to read back the same number: rounding them would
    make ties, and so another order.

    Parameters
    ----------
    run
        Rankings by topic. A topic without documents has no line in this format.
    tag
        The last column; the run's own where it is not given.
    metadata
        Written before the first line, as ir_metadata has it. trec_eval does not read such a file.
    """
    check_writable("topic id", run)
    with run_writer(path, tag if tag is not None else str(getattr(run, "tag", "sdretrieval")), metadata) as add:
        for qid, ranking in run.items():
            add(qid, ranking)


@contextmanager
def run_writer(
    path: Path, tag: str, metadata: Mapping[str, Any] | None = None
) -> Iterator[Callable[[str, Ranking], None]]:
    """Write a run topic by topic, as its rankings are found; the file is in place only when all are.

    >>> with run_writer("run.txt", "mine") as add:  # doctest: +SKIP
    ...     add("1", Ranking(["a", "b"], [1.0, 2.0]))
    """
    check_writable("tag", [tag])
    lines = 0
    with atomic_writer(path) as stream:
        stream.write("" if metadata is None else metadata_lines(metadata))

        def add(qid: str, ranking: Ranking) -> None:
            nonlocal lines
            check_writable("topic id", [qid])
            check_writable("docid", ranking.docids)
            lines += len(ranking)
            is_worth_it = lines > MANY and is_loaded() and _is_plain(ranking.scores)
            stream.write((_lines_compiled if is_worth_it else _lines)(f"{qid} Q0 ", ranking, f" {tag}\n"))

        yield add
        if not lines:
            raise ParameterError(f"no topic of run {tag!r} has a document: nothing to write to {fspath(path)}")


def _lines(start: str, ranking: Ranking, end: str) -> str:
    return "".join([f"{start}{docid} {rank} {score!r}{end}" for rank, (docid, score) in enumerate(ranking, 1)])


def _is_plain(scores: np.ndarray) -> bool:
    """Whether Python writes them without an exponent, and the loop can."""
    size = np.abs(scores)
    return bool(((size == 0) | ((size >= run_loops.LEAST) & (size < run_loops.BOUND))).all())


def _lines_compiled(start: str, ranking: Ranking, end: str) -> str:
    """The same."""
    first, docids, last = (np.frombuffer(t.encode(), np.uint8) for t in (start, " ".join(ranking.docids), end))
    out = np.empty(len(docids) + len(ranking) * (len(first) + len(last) + run_loops.LONGEST), np.uint8)
    bits = read_only(np.ascontiguousarray(ranking.scores, dtype=np.float64).view(np.int64))
    return out[: run_loops.add_lines(out, docids, bits, first, last)].tobytes().decode()


def read_qrels(path: Path) -> Qrels:
    """Read judgments, plain or gzipped; the second column is ignored."""
    file = TrecFile(path)
    found: dict[str, tuple[dict[str, int], list[int]]] = {}  # judgments, and the lines they stood on
    for line, (qid, _, docid, relevance) in file.rows(4, _QRELS_FORM):
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
        judged[docid] = int(relevance)
        lines.append(line)
    file.check_filled(found, _QRELS_FORM)
    return Qrels({qid: judged for qid, (judged, _) in found.items()})


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
