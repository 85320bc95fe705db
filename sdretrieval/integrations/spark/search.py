"""search and rerank over shards: topics in, a run out, batch by batch, as retrieval.py has it for one index."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from sdretrieval.errors import ParameterError
from sdretrieval.integrations.spark.batches import Answer, Parts, digest
from sdretrieval.integrations.spark.ranking import Judged, ShardedEngine, ShardedResult
from sdretrieval.integrations.spark.shards import OnDisk
from sdretrieval.progress import progress
from sdretrieval.ranking.base import Ranker
from sdretrieval.ranking.query import Query
from sdretrieval.records import Qrels, Ranking, Run, Topic
from sdretrieval.retrieval import Report, _topics_of, check_hits

BATCH = 128  # topics that share the passes over the shards
AT_ONCE = 2  # batches under way: while the driver estimates the models of one, workers rank the other


def prepare(collection: OnDisk, runner: Any) -> None:
    """Sum the statistics over shards where that has not been done."""
    from sdretrieval.integrations.spark import requests

    if not collection.has_totals:
        runner.reduce(requests.totals, None, _plus, with_totals=False).save(collection.totals_folder)


def _plus(a: Any, b: Any) -> Any:
    return a.plus(b)


def search(
    engine: ShardedEngine,
    topics: Iterable[Topic],
    ranker: Ranker,
    *,
    hits: int = 1000,
    judged: Qrels | None = None,
    prune: int | None = None,
    batch: int = BATCH,
    parts: Path | None = None,
    report: Report | None = None,
) -> Run:
    """Rank the whole collection for each topic; ``parts`` is where finished batches wait."""
    topics = list(topics)
    check_hits(hits)
    twice = [qid for qid, n in Counter(topic.qid for topic in topics).items() if n > 1]
    if twice:
        raise ParameterError(f"topic {twice[0]!r} is given twice", remedy="Each topic needs an id of its own.")
    work = _Work(engine, ranker, batch, {"hits": hits, "prune": prune, "judged": _judged(judged)}, parts)
    return _run(work, topics, ranker, report or Report())


def rerank(
    engine: ShardedEngine,
    run: Run,
    topics: Iterable[Topic],
    ranker: Ranker,
    *,
    hits: int | None = None,
    missing: str = "error",
    judged: Qrels | None = None,
    prune: int | None = None,
    batch: int = BATCH,
    parts: Path | None = None,
    report: Report | None = None,
) -> Run:
    """Rescore the documents of a run, with feedback from its first ones; as :func:`sdretrieval.rerank` does."""
    if missing not in ("error", "drop"):
        raise ParameterError(f"missing must be 'error' or 'drop'; got {missing!r}")
    if hits is not None:
        check_hits(hits)
    report = report or Report()
    chosen = _topics_of(run, {topic.qid: topic for topic in topics}, missing)
    candidates = {topic.qid: run[topic.qid].docids for topic in chosen}
    depth = hits if hits is not None else max(map(len, candidates.values()), default=1)
    options = {
        "hits": depth, "prune": prune, "judged": _judged(judged), "candidates": candidates, "missing": missing,
    }  # fmt: skip
    work = _Work(engine, ranker, batch, options, parts)
    found = _run(work, chosen, ranker, report)
    for qid in report.empty_topics:  # no word of them is known: they keep the run's order
        scores, kept = dict(run[qid]), found[qid].docids
        found.rankings[qid] = Ranking(kept, [scores[docid] for docid in kept], depth)
    return found


def _judged(judged: Qrels | None) -> dict[str, Judged] | None:
    if judged is None:
        return None
    return {
        qid: Judged(
            [docid for docid, grade in grades.items() if grade > 0],
            [docid for docid, grade in grades.items() if grade <= 0],
        )
        for qid, grades in judged.items()
    }


def _run(work: _Work, topics: list[Topic], ranker: Ranker, report: Report) -> Run:
    rankings = {}
    for answer in progress(work.answers(topics), total=len(topics), label="ranking", unit="topic"):
        rankings[answer.qid] = answer.ranking
        notes = answer.notes
        if answer.is_empty:
            report.empty_topics.append(answer.qid)
        if "time" in notes:
            report.time_weights.append(notes["time"]["weight"])
            if "recency" in notes["time"]:
                report.timeless.append(answer.qid)
        if "pruned" in notes:
            report.pruned.append(notes["pruned"])
        report.dropped += notes.get("dropped", 0)
    return Run(rankings, ranker.name)


class _Work:
    """Topics cut into batches, each ranked or taken from what was kept, in order."""

    def __init__(
        self, engine: ShardedEngine, ranker: Ranker, batch: int, options: Mapping[str, Any], parts: Path | None
    ) -> None:
        self.engine, self.ranker, self.options = engine, ranker, dict(options)
        self.size = engine.batch_size(ranker, batch, options["hits"])
        self.folder = parts

    def answers(self, topics: Sequence[Topic]) -> Iterator[Answer]:
        kept = self._kept(topics)
        batches = [topics[i : i + self.size] for i in range(0, len(topics), self.size)]
        waiting: deque[Future[list[Answer]]] = deque()
        with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="batch") as pool:
            try:
                for number, batch in enumerate(batches):
                    waiting.append(self._submitted(pool, number, batch, kept))
                    if len(waiting) > AT_ONCE:
                        yield from waiting.popleft().result()
                while waiting:
                    yield from waiting.popleft().result()
            except BaseException:
                for future in waiting:
                    future.cancel()
                raise

    def _submitted(
        self, pool: ThreadPoolExecutor, number: int, topics: Sequence[Topic], kept: Parts
    ) -> Future[list[Answer]]:
        """A batch on its way. Topics are analysed here, by the thread that Java knows."""
        done = kept.load(number, [topic.qid for topic in topics])
        if done is not None:
            return pool.submit(lambda: done)
        queries = [Query.from_topic(self.engine.collection, topic) for topic in topics]  # type: ignore[arg-type]

        def rank() -> list[Answer]:
            answers = [_answer(result) for result in self.engine.rank(self.ranker, queries, **self.options)]
            kept.save(number, answers)
            return answers

        return pool.submit(rank)

    def _kept(self, topics: Sequence[Topic]) -> Parts:
        asked = [[topic.qid, topic.text, topic.time] for topic in topics]
        settings = {**self.options, "judged": _plain(self.options.get("judged"))}
        key = digest(
            self.engine.collection.fingerprint, self.ranker.name, self.ranker.settings(), asked, settings, self.size
        )
        return Parts(self.folder, key)


def _plain(judged: Mapping[str, Judged] | None) -> Any:
    return judged and {qid: [list(j.relevant), list(j.nonrelevant)] for qid, j in judged.items()}


def _answer(result: ShardedResult) -> Answer:
    notes = {name: value for name, value in result.notes.items() if name in ("time", "pruned", "dropped")}
    return Answer(result.query.qid, result.ranking, result.query.is_empty and not len(result.plan.model), notes)
