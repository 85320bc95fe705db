"""search and rerank over shards: topics in, a run out, batch by batch, as retrieval.py has it for one index."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from sdretrieval.errors import ParameterError
from sdretrieval.integrations.spark import BATCH
from sdretrieval.integrations.spark.batches import Answer, Parts, digest
from sdretrieval.integrations.spark.expansions import line_of, mark_of
from sdretrieval.integrations.spark.ranking import Judged, ShardedEngine, ShardedResult
from sdretrieval.integrations.spark.shards import OnDisk
from sdretrieval.integrations.spark.totals import plus
from sdretrieval.integrations.spark.watching import alive, tasks
from sdretrieval.progress import bar
from sdretrieval.ranking.base import Plan, Ranker
from sdretrieval.ranking.query import Query
from sdretrieval.records import Qrels, Ranking, Run, Topic
from sdretrieval.retrieval import Report, _topics_of, check_hits, replaying

Rankings = Generator[tuple[str, Ranking], None, None]
AT_ONCE = 2  # batches under way: while the driver estimates the models of one, workers rank the other


def prepare(collection: OnDisk, runner: Any) -> None:
    """Sum the statistics over shards where that has not been done."""
    from sdretrieval.integrations.spark import requests

    if not collection.has_totals:
        collection.keep_totals(runner.reduce(requests.totals, None, plus, with_totals=False))


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
    plans: Mapping[str, Plan] | None = None,
    on_expansion: Callable[[str], Any] | None = None,
    on_ranking: Callable[[str, Ranking], Any] | None = None,
    on_last: Callable[[], Any] | None = None,
    report: Report | None = None,
) -> Run:
    """Rank the whole collection for each topic; ``parts`` is where finished batches wait.

    ``plans``: replay these instead of estimating. ``on_expansion`` sees each topic's expanded query, a line as its file
    has it, in the order of the topics; those of finished batches too. ``on_ranking`` sees each ranking as soon as it
    is there, in the same order; it is then not kept, and the run that is returned has none. ``on_last`` is told when
    the last batch is there, and Spark is needed no more.
    """
    topics = list(topics)
    check_hits(hits)
    twice = [qid for qid, n in Counter(topic.qid for topic in topics).items() if n > 1]
    if twice:
        raise ParameterError(f"topic {twice[0]!r} is given twice", remedy="Each topic needs an id of its own.")
    options = {"hits": hits, "prune": prune, "judged": _judged(judged)}
    work = _Work(engine, ranker, batch, options, parts, plans, with_expansions=on_expansion is not None)
    rankings = _ranked(work, topics, report or Report(), on_expansion, on_last)
    return _run(rankings, ranker, on_ranking)


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
    plans: Mapping[str, Plan] | None = None,
    on_expansion: Callable[[str], Any] | None = None,
    on_ranking: Callable[[str, Ranking], Any] | None = None,
    on_last: Callable[[], Any] | None = None,
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
    work = _Work(engine, ranker, batch, options, parts, plans, with_expansions=on_expansion is not None)

    def as_given(qid: str, ranking: Ranking) -> Ranking:
        scores = dict(run[qid])
        return Ranking(ranking.docids, [scores[docid] for docid in ranking.docids], depth)

    rankings = _ranked(work, chosen, report, on_expansion, on_last, as_given)
    return _run(rankings, ranker, on_ranking)


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


def _run(
    rankings: Rankings, ranker: Ranker, on_ranking: Callable[[str, Ranking], Any] | None
) -> Run:
    with closing(rankings):
        if on_ranking is None:
            return Run(dict(rankings), ranker.name)
        for qid, ranking in rankings:
            on_ranking(qid, ranking)
    return Run({}, ranker.name)


def _ranked(
    work: _Work,
    topics: list[Topic],
    report: Report,
    on_expansion: Callable[[str], Any] | None,
    on_last: Callable[[], Any] | None,
    empty: Callable[[str, Ranking], Ranking] | None = None,
) -> Rankings:
    """Rankings in the order of the topics; ``empty`` replaces those of topics without a known word."""
    with work.bar(len(topics)) as shown, closing(work.answers(topics, on_last)) as answers:
        for answer in answers:
            if on_expansion is not None:
                assert answer.expansion is not None
                on_expansion(answer.expansion)
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
            shown.update()
            is_replaced = answer.is_empty and empty is not None
            yield answer.qid, empty(answer.qid, answer.ranking) if is_replaced else answer.ranking  # type: ignore[misc]


class _Work:
    """Topics cut into batches, each ranked or taken from what was kept, in order."""

    def __init__(
        self,
        engine: ShardedEngine,
        ranker: Ranker,
        batch: int,
        options: Mapping[str, Any],
        parts: Path | None,
        plans: Mapping[str, Plan] | None = None,
        *,
        with_expansions: bool = False,
    ) -> None:
        self.engine, self.options, self.plans, self.with_expansions = engine, dict(options), plans, with_expansions
        self.ranker = ranker if plans is None else replaying(ranker, plans)
        self.size = engine.batch_size(ranker, batch, options["hits"])
        self.folder, self.is_rehearsed, self.is_ranked = parts, False, False

    def answers(
        self, topics: Sequence[Topic], on_last: Callable[[], Any] | None = None
    ) -> Generator[Answer, None, None]:
        kept = self._kept(topics)
        batches = [topics[i : i + self.size] for i in range(0, len(topics), self.size)]
        waiting: deque[Future[list[Answer]]] = deque()
        with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="batch") as pool:
            try:
                for number, batch in enumerate(batches):
                    waiting.append(self._submitted(pool, number, batch, kept))
                    if len(waiting) >= min(AT_ONCE, len(batches)) and not self.is_rehearsed:
                        self._rehearse(batches[0])
                    if len(waiting) > AT_ONCE:
                        yield from waiting.popleft().result()
                while waiting:
                    answers = waiting.popleft().result()
                    if not waiting:
                        self.is_ranked = True
                        if on_last is not None:
                            on_last()
                    yield from answers
            except BaseException:  # Ctrl-C above all: a batch may take minutes
                for future in waiting:
                    future.cancel()
                with suppress(Exception):
                    self.engine.runner.cancel()
                raise

    def _rehearse(self, topics: Sequence[Topic]) -> None:
        self.is_rehearsed = True
        self.engine.rehearse(self.ranker, Query.from_topic(self.engine.collection, topics[0]))  # type: ignore[arg-type]

    def _submitted(
        self, pool: ThreadPoolExecutor, number: int, topics: Sequence[Topic], kept: Parts
    ) -> Future[list[Answer]]:
        """A batch on its way. Topics are analysed here, by the thread that Java knows."""
        done = kept.load(number, [topic.qid for topic in topics])
        if done is not None:
            return pool.submit(lambda: done)
        queries = [Query.from_topic(self.engine.collection, topic) for topic in topics]  # type: ignore[arg-type]

        def rank() -> list[Answer]:
            answers = [self._answer(result) for result in self.engine.rank(self.ranker, queries, **self.options)]
            kept.save(number, answers)
            return answers

        return pool.submit(rank)

    def _kept(self, topics: Sequence[Topic]) -> Parts:
        asked = [[topic.qid, topic.text, topic.time] for topic in topics]
        settings = {**self.options, "judged": _plain(self.options.get("judged"))}
        if self.plans is not None:
            settings["plans"] = mark_of(self.plans, [topic.qid for topic in topics])
        key = digest(
            self.engine.collection.fingerprint, self.ranker.name, self.ranker.settings(), asked, settings, self.size
        )
        return Parts(self.folder, key, with_expansions=self.with_expansions)

    def _answer(self, result: ShardedResult) -> Answer:
        line = line_of(result, self.engine.collection, self.ranker.name) if self.with_expansions else None
        notes = {name: value for name, value in result.notes.items() if name in ("time", "pruned", "dropped")}
        is_empty = result.query.is_empty and not len(result.plan.model)
        return Answer(result.query.qid, result.ranking, is_empty, notes, line)

    @contextmanager
    def bar(self, n_topics: int) -> Iterator[Any]:
        """Topics done; and since a whole batch is done at once, how far Spark is with its tasks."""
        context = getattr(self.engine.runner, "context", None)
        with bar(total=n_topics, label="ranking", unit="topic") as shown:

            def look() -> None:
                if context is not None and not self.is_ranked:
                    shown.set_postfix_str(tasks(context), refresh=False)

            with alive(shown, look):
                yield shown


def _plain(judged: Mapping[str, Judged] | None) -> Any:
    return judged and {qid: [list(j.relevant), list(j.nonrelevant)] for qid, j in judged.items()}
