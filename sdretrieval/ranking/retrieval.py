"""search and rerank: topics in, a run out. What the command line calls, and what scripts should.

>>> from sdretrieval import search, read_topics            # doctest: +SKIP
>>> run = search("indexes/cran", read_topics("topics.tsv"), "sd3", hits=1000)
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from sdretrieval.collection.records import Qrels, Ranking, Run, Topic
from sdretrieval.core.errors import InputError, ParameterError
from sdretrieval.core.progress import progress
from sdretrieval.index.positions import open_with_positions
from sdretrieval.index.snapshot import Snapshot, open_snapshot
from sdretrieval.ranking.base import Plan, Ranker
from sdretrieval.ranking.engine import Engine, Judgments, RankOptions, Result
from sdretrieval.ranking.mixed_run import MixedRun, mixed_before_priors
from sdretrieval.ranking.models.lucene_models import LuceneRanker
from sdretrieval.ranking.notes import AutoTimeNote, NoPositionsNote, Note, PruneNote
from sdretrieval.ranking.pairs import PairHooks
from sdretrieval.ranking.query import Query
from sdretrieval.ranking.registry import make_ranker
from sdretrieval.ranking.wrapper import Hooks, innermost, rewrapped

Index = str | os.PathLike[str] | Snapshot


@dataclass
class Report:
    """What is worth telling about a batch of queries besides the run."""

    empty_topics: list[str] = field(default_factory=list)  # no known word: no documents
    pruned: list[float] = field(default_factory=list)  # share of the weights given up, per query
    timeless: list[str] = field(default_factory=list)  # no time, so no recency
    time_weights: list[float] = field(default_factory=list)  # of the time prior, per query
    time_chosen: dict[str, AutoTimeNote] = field(default_factory=dict)  # by the automatic time prior, per query
    time_curves: dict[str, tuple[tuple[int, float], ...]] = field(default_factory=dict)  # what times add, per query
    without_positions: list[str] = field(default_factory=list)  # neighbouring words were not looked for
    dropped: int = 0  # documents of the given run that are not in the index

    def read(self, qid: str, notes: Iterable[Note]) -> None:
        """Take in what was done to a query."""
        for note in notes:
            if isinstance(note, PruneNote):
                self.pruned.append(note.lost)
            elif isinstance(note, NoPositionsNote):
                self.without_positions.append(qid)
            else:
                self.time_weights.append(note.weight)
                if note.curve:
                    self.time_curves[qid] = note.curve
                if isinstance(note, AutoTimeNote):
                    self.time_chosen[qid] = note
                if not note.has_time:
                    self.timeless.append(qid)


def search(
    index: Index,
    topics: Iterable[Topic],
    model: str | Ranker = "blend",
    *,
    hits: int = 1000,
    threads: int = 1,
    judged: Qrels | None = None,
    prune: int | None = None,
    plans: Mapping[str, Plan] | None = None,
    on_result: Callable[[Result], None] | None = None,
    report: Report | None = None,
) -> Run:
    """Rank the whole collection for each topic.

    Parameters
    ----------
    index : path or Snapshot
        A Lucene index: Anserini's, Pyserini's or ours.
    topics : iterable of Topic
        What to search for; :func:`~sdretrieval.collection.trec.read_topics` reads files of them.
    model : str or Ranker
        A name that ``sdretrieval models`` lists, or a model made by :func:`~sdretrieval.ranking.registry.make_ranker`.
    hits : int
        Documents for each topic.
    threads : int
        How many threads rank; the results are the same.
    judged : Qrels, optional
        Relevance feedback instead of pseudo-feedback, for the topics it has.
    prune : int, optional
        Keep only so many words of the final query: faster, not exact.
    plans : mapping of str to Plan, optional
        Replay these instead of estimating (ranking/expansion.py).
    on_result : callable, optional
        Sees each full result.
    report : Report, optional
        Filled with what is worth telling besides the run.

    Returns
    -------
    Run
        A ranking for each topic, in the topics' order.
    """
    topics, ranker = list(topics), model if isinstance(model, Ranker) else make_ranker(model)
    check_hits(hits)
    if not all(isinstance(topic, Topic) for topic in topics):
        raise ParameterError(
            "search takes topics: records with an id and a text",
            remedy='For a query as typed: Index("indexes/mine").search("its words").',
        )
    twice = [qid for qid, n in Counter(topic.qid for topic in topics).items() if n > 1]
    if twice:
        raise ParameterError(f"topic {twice[0]!r} is given twice", remedy="Each topic needs an id of its own.")
    snapshot = as_snapshot(index, ranker)
    as_it_is = plans is None and on_result is None and prune is None
    if as_it_is and isinstance(ranker, LuceneRanker) and snapshot.index is not None:
        from sdretrieval.index.lucene.search import Similarity, lucene_search  # starts Java

        similarity = Similarity(ranker.similarity, ranker.settings())
        how: dict[str, Any] = {"tag": ranker.name, "hits": hits, "analyzer": snapshot.analyzer}
        return lucene_search(snapshot.index, topics, similarity, **how)
    engine = Engine(snapshot, threads=threads)
    queries = [Query.from_topic(snapshot, topic) for topic in topics]
    if plans is not None:
        ranker = replaying(ranker, plans)
    options = RankOptions(hits=hits, judged=judgments_of(snapshot, judged), prune=prune)
    results = engine.rank(ranker, queries, options)
    return _collect(snapshot, results, len(queries), ranker.name, on_result, report)


def rerank(
    index: Index,
    run: Run,
    topics: Iterable[Topic],
    model: str | Ranker = "blend",
    *,
    hits: int | None = None,
    threads: int = 1,
    missing: str = "error",
    judged: Qrels | None = None,
    prune: int | None = None,
    plans: Mapping[str, Plan] | None = None,
    on_result: Callable[[Result], None] | None = None,
    report: Report | None = None,
    run_weight: float = 0.0,
) -> Run:
    """Rescore the documents of a run, with feedback from its first ones; the same documents come out.

    A topic of which the index knows no word keeps the run's order and scores.

    Parameters
    ----------
    index, topics, model, threads, judged, prune, plans, on_result, report
        As in :func:`search`.
    run : Run
        The documents to rescore.
    hits : int, optional
        Documents for each topic; as many as the run has where it is not given.
    missing : str
        ``"drop"`` leaves out documents that are not in the index, and topics of the run without a text;
        ``"error"`` stops at them.
    run_weight : float
        Mixes the run's own scores in: (1-w) of the model's and w of the run's, both standardised over the topic's
        documents, since the two are on scales of their own. Time priors are added to the mixture.

    Returns
    -------
    Run
        A ranking for each topic of the run.
    """
    if not 0.0 <= run_weight <= 1.0:
        raise ParameterError(f"run_weight must be between 0 and 1; got {run_weight}")
    ranker = model if isinstance(model, Ranker) else make_ranker(model)
    if missing not in ("error", "drop"):
        raise ParameterError(f"missing must be 'error' or 'drop'; got {missing!r}")
    if hits is not None:
        check_hits(hits)
    snapshot, report = as_snapshot(index, ranker), report or Report()
    chosen, candidates = candidates_of(snapshot, run, topics, missing, report)
    engine = Engine(snapshot, threads=threads)
    queries = [Query.from_topic(snapshot, topic) for topic in chosen]
    if plans is not None:
        ranker = replaying(ranker, plans)
    longest = max((len(c) for c in candidates.values()), default=0)
    depth = hits if hits is not None else longest
    options = RankOptions(hits=depth, candidates=candidates, judged=judgments_of(snapshot, judged), prune=prune)
    name = ranker.name
    if run_weight:
        own = {qid: _own_scores(snapshot, run[qid], docs) for qid, docs in candidates.items()}
        ranker = mixed_before_priors(ranker, lambda model: MixedRun(ranker=model, own=own, weight=run_weight))
    results = engine.rank(ranker, queries, options)
    found = _collect(snapshot, results, len(queries), name, on_result, report)
    for qid in report.empty_topics:
        scores = dict(run[qid])
        kept = snapshot.docids.take(candidates[qid])
        found.rankings[qid] = Ranking(kept, [scores[docid] for docid in kept], depth)
    return found


def _own_scores(snapshot: Snapshot, given: Ranking, docs: np.ndarray) -> dict[int, float]:
    """A run's scores of some documents, by their numbers."""
    scores = dict(given)
    return {doc: scores[docid] for doc, docid in zip(docs.tolist(), snapshot.docids.take(docs), strict=True)}


def as_snapshot(index: Index, ranker: Ranker | None = None) -> Snapshot:
    """The snapshot of an index, with what a model will read besides."""
    if isinstance(index, Snapshot):
        return index
    path = Path(index)
    reads_positions = ranker is not None and innermost(ranker).reads_positions
    return open_with_positions(lambda: open_snapshot(path)) if reads_positions else open_snapshot(path)


def check_hits(hits: int) -> None:
    if hits < 1:
        raise ParameterError(f"hits must be at least 1; got {hits}")


def replaying(ranker: Ranker, plans: Mapping[str, Plan]) -> Ranker:
    """The model with plans given instead of estimated, in the same wrappers."""
    return rewrapped(ranker, lambda model: Replay(plans=plans, base=model))


@dataclass(frozen=True, kw_only=True)
class Replay(Ranker):
    """Ranks with plans that were estimated before, and perhaps edited, instead of estimating anew."""

    plans: Mapping[str, Plan]
    base: Ranker

    @property
    def name(self) -> str:  # type: ignore[override]
        return self.base.name

    def hooks(self, engine: Engine) -> Hooks | None:
        has_pairs = any(plan.pairs is not None for plan in self.plans.values())
        return PairHooks(engine) if has_pairs else self.base.hooks(engine)

    def first(self, query: Query, statistics: Any) -> Plan:
        try:
            return self.plans[query.qid]
        except KeyError:
            raise InputError(
                f"topic {query.qid!r} has no expansion in the file", remedy="Add it, or leave the topic out."
            ) from None


def _collect(snapshot: Snapshot, results, total: int, tag: str, on_result, report: Report | None) -> Run:
    rankings = {}
    for result in progress(results, total=total, label="ranking", unit="topic"):
        rankings[result.query.qid] = Ranking.in_order(snapshot.docids.take(result.docs), result.scores)
        if report is not None:
            if result.query.is_empty and not len(result.plan.model):  # a replayed plan brings its own words
                report.empty_topics.append(result.query.qid)
            report.read(result.query.qid, result.notes)
        if on_result is not None:
            on_result(result)
    return Run(rankings, tag)


def candidates_of(
    snapshot: Snapshot, run: Run, topics: Iterable[Topic], missing: str = "error", report: Report | None = None
) -> tuple[list[Topic], dict[str, np.ndarray]]:
    """The topics of a run, and their documents as numbers of the snapshot, in rank order."""
    report = report or Report()
    chosen = topics_of(run, {topic.qid: topic for topic in topics}, missing)
    return chosen, {topic.qid: _documents(snapshot, run, topic.qid, missing, report) for topic in chosen}


def topics_of(run: Run, by_qid: Mapping[str, Topic], missing: str) -> list[Topic]:
    unknown = [qid for qid in run if qid not in by_qid]
    if unknown and missing != "drop":
        raise InputError(
            f"topic {unknown[0]!r} of the run has no text among the {len(by_qid)} topics ({len(unknown)} such topics)",
            remedy="Give the topic file the run was made with, or pass --missing drop.",
        )
    return [by_qid[qid] for qid in run if qid in by_qid]


def _documents(snapshot: Snapshot, run: Run, qid: str, missing: str, report: Report) -> np.ndarray:
    docids = run[qid].docids
    numbers = snapshot.docids.find_many(docids)
    absent = np.flatnonzero(numbers < 0)
    if len(absent):
        if missing != "drop":
            raise InputError(
                f"topic {qid}: docid {docids[int(absent[0])]!r} is not in index {snapshot.name!r} "
                f"({snapshot.n_docs} documents; {len(absent)} of the topic's {len(docids)} are not)",
                remedy="Re-index, or pass --missing drop.",
            )
        report.dropped += len(absent)
    return numbers[numbers >= 0]


def judgments_of(snapshot: Snapshot, judged: Qrels | None) -> dict[str, Judgments]:
    """Qrels in document numbers; judged documents that are not in the index cannot teach anything.

    In the order of their docids: sums over them are then the same to the last bit however Lucene numbers documents.
    """
    result = {}

    def by_docid(numbers: np.ndarray) -> np.ndarray:
        return numbers[np.argsort(snapshot.docid_rank[numbers])]

    for qid, grades in (judged or {}).items():
        numbers = snapshot.docids.find_many(list(grades))
        relevance = np.fromiter(grades.values(), dtype=np.int64, count=len(grades))
        result[qid] = Judgments(
            by_docid(numbers[(numbers >= 0) & (relevance > 0)]), by_docid(numbers[(numbers >= 0) & (relevance <= 0)])
        )
    return result


def queries_of(snapshot: Snapshot, topics: Sequence[Topic]) -> list[Query]:
    return [Query.from_topic(snapshot, topic) for topic in topics]
