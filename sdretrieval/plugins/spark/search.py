"""search and rerank over shards: topics in, a run out, batch by batch, as retrieval.py has it for one index.

Finished batches are kept until the whole run is written, so that a stopped run goes on where it was: one file each in
``<output>.parts/``, named with a digest of everything that the result depends on.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from sdretrieval.collection.records import Qrels, Ranking, Run, Topic
from sdretrieval.core.errors import ParameterError
from sdretrieval.core.files import atomic_writer
from sdretrieval.core.progress import progress
from sdretrieval.plugins.spark import BATCH
from sdretrieval.plugins.spark.shard_ranking import ShardedEngine, ShardedResult, ShardOptions
from sdretrieval.plugins.spark.shards import Collection
from sdretrieval.plugins.spark.totals import Totals
from sdretrieval.ranking.base import Plan, Ranker
from sdretrieval.ranking.expansion import ExpandedQuery
from sdretrieval.ranking.notes import NoPositionsNote, Note, PruneNote, TimeNote
from sdretrieval.ranking.query import Query
from sdretrieval.ranking.retrieval import Report, check_hits, replaying, topics_of

_NOTES: dict[str, type[Note]] = {kind.__name__: kind for kind in (NoPositionsNote, PruneNote, TimeNote)}


@dataclass(frozen=True, eq=False)
class Answer:
    """One topic's ranking, and what is worth telling about it."""

    qid: str
    ranking: Ranking
    is_empty: bool = False  # no known word
    dropped: int = 0  # documents of the given run that no shard has
    notes: Sequence[Note] = ()
    expansion: str | None = None  # the expanded query, as its file has it; only where it was asked for


def digest(*parts: Any) -> str:
    """Of anything JSON can say."""
    text = json.dumps(parts, sort_keys=True, default=str, ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


class Parts:
    """The finished batches of one run, as JSON, which keeps every digit; without a folder nothing is kept."""

    def __init__(self, folder: Path | None, key: str = "") -> None:
        self.folder, self.key = folder, key

    def load(self, number: int, qids: Sequence[str]) -> list[Answer] | None:
        """A finished batch, or None where it is to be done: never done, of another run, or damaged."""
        if self.folder is None:
            return None
        try:
            answers = [_read(kept) for kept in json.loads(self._path(number).read_text())]
        except (OSError, KeyError, TypeError, ValueError):
            return None
        return answers if [answer.qid for answer in answers] == list(qids) else None

    def save(self, number: int, answers: Sequence[Answer]) -> None:
        if self.folder is None:
            return
        with atomic_writer(self._path(number)) as out:
            json.dump([_written(answer) for answer in answers], out)

    def _path(self, number: int) -> Path:
        assert self.folder is not None
        return self.folder / f"{self.key}-{number:06d}.json"


def _written(answer: Answer) -> dict[str, Any]:
    ranking = answer.ranking.docids, answer.ranking.scores.tolist()
    notes = [(type(note).__name__, asdict(note)) for note in answer.notes]
    return {**vars(answer), "ranking": ranking, "notes": notes}


def _read(kept: dict[str, Any]) -> Answer:
    notes = [_NOTES[kind](**values) for kind, values in kept["notes"]]
    notes = [replace(n, curve=tuple((t, nats) for t, nats in n.curve)) if isinstance(n, TimeNote) else n for n in notes]
    return Answer(**{**kept, "ranking": Ranking(*kept["ranking"]), "notes": notes})


# -- runs --------------------------------------------------------------------------------------------------------


def prepare(collection: Collection, runner: Any) -> None:
    """Sum the statistics over shards where that has not been done."""
    if not collection.has_totals:
        collection.keep_totals(runner.reduce(Totals.of, None))


@dataclass(frozen=True, kw_only=True, eq=False)
class Batching:
    """How batches are worked off.

    ``on_answer`` sees each answer as soon as it is there, in the order of the topics; none is kept then, and the run
    that is returned has no rankings.
    """

    batch: int = BATCH  # topics that share the passes over the shards
    parts: Path | None = None  # the folder where finished batches wait
    plans: Mapping[str, Plan] | None = None  # replayed instead of estimating
    with_expansions: bool = False  # each answer has the expanded query, a line as its file has it
    on_answer: Callable[[Answer], Any] | None = None
    report: Report | None = None  # takes in what is worth telling


def search(
    engine: ShardedEngine,
    topics: Iterable[Topic],
    ranker: Ranker,
    *,
    hits: int = 1000,
    judged: Qrels | None = None,
    prune: int | None = None,
    batching: Batching | None = None,
) -> Run:
    """Rank the whole collection for each topic; as :func:`sdretrieval.search` does."""
    topics = list(topics)
    check_hits(hits)
    twice = [qid for qid, n in Counter(topic.qid for topic in topics).items() if n > 1]
    if twice:
        raise ParameterError(f"topic {twice[0]!r} is given twice", remedy="Each topic needs an id of its own.")
    options = ShardOptions(hits=hits, judged=judged or {}, prune=prune)
    return _Work(engine, topics, ranker, options, batching or Batching()).run()


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
    batching: Batching | None = None,
) -> Run:
    """Rescore the documents of a run, with feedback from its first ones; as :func:`sdretrieval.rerank` does."""
    if missing not in ("error", "drop"):
        raise ParameterError(f"missing must be 'error' or 'drop'; got {missing!r}")
    if hits is not None:
        check_hits(hits)
    chosen = topics_of(run, {topic.qid: topic for topic in topics}, missing)
    candidates = {topic.qid: run[topic.qid].docids for topic in chosen}
    depth = hits if hits is not None else max(map(len, candidates.values()), default=1)
    options = ShardOptions(hits=depth, candidates=candidates, judged=judged or {}, prune=prune, missing=missing)

    def as_given(answer: Answer) -> Answer:
        scores, docids = dict(run[answer.qid]), answer.ranking.docids
        return replace(answer, ranking=Ranking(docids, [scores[docid] for docid in docids], depth))

    return _Work(engine, chosen, ranker, options, batching or Batching(), as_given).run()


class _Work:
    """Topics cut into batches, each ranked or taken from what was kept, in order.

    ``empty`` changes the answers of topics without a known word.
    """

    def __init__(
        self,
        engine: ShardedEngine,
        topics: Sequence[Topic],
        ranker: Ranker,
        options: ShardOptions,
        batching: Batching,
        empty: Callable[[Answer], Answer] | None = None,
    ) -> None:
        self.engine, self.topics, self.options, self.batching, self.empty = engine, topics, options, batching, empty
        self.ranker = ranker if batching.plans is None else replaying(ranker, batching.plans)
        self.size = engine.batch_size(ranker, batching.batch, options.hits)
        self.parts = Parts(batching.parts, self._key())

    def run(self) -> Run:
        report, on_answer = self.batching.report or Report(), self.batching.on_answer
        rankings: dict[str, Ranking] = {}
        for answer in progress(self._answers(), total=len(self.topics), label="ranking", unit="topic"):
            if answer.is_empty:
                report.empty_topics.append(answer.qid)
                answer = answer if self.empty is None else self.empty(answer)
            report.read(answer.qid, answer.notes)
            report.dropped += answer.dropped
            if on_answer is None:
                rankings[answer.qid] = answer.ranking
            else:
                on_answer(answer)
        return Run(rankings, self.ranker.name)

    def _answers(self) -> Iterator[Answer]:
        for number, start in enumerate(range(0, len(self.topics), self.size)):
            batch = self.topics[start : start + self.size]
            answers = self.parts.load(number, [topic.qid for topic in batch])
            if answers is None:
                queries = [Query.from_topic(self.engine.collection, topic) for topic in batch]  # type: ignore[arg-type]
                answers = [self._answer(result) for result in self.engine.rank(self.ranker, queries, self.options)]
                self.parts.save(number, answers)
            yield from answers

    def _answer(self, result: ShardedResult) -> Answer:
        line = None
        if self.batching.with_expansions:
            standing_in = SimpleNamespace(vocabulary=self.engine.collection.vocabulary, docids=result.heard)
            line = ExpandedQuery.of(result, standing_in, self.ranker.name).to_line()  # type: ignore[arg-type]
        is_empty = result.query.is_empty and not len(result.plan.model)
        return Answer(result.query.qid, result.ranking, is_empty, result.dropped, result.notes, line)

    def _key(self) -> str:
        """Of everything that the answers depend on."""
        asked = [[topic.qid, topic.text, topic.time] for topic in self.topics]
        settings = {**vars(self.options), "judged": {qid: dict(g) for qid, g in self.options.judged.items()}}
        if self.batching.plans is not None:
            settings["plans"] = [_described(self.batching.plans.get(topic.qid)) for topic in self.topics]
        fingerprint, model = self.engine.collection.fingerprint, (self.ranker.name, self.ranker.settings())
        return digest(fingerprint, model, asked, settings, self.size, self.batching.with_expansions)


def _described(plan: Plan | None) -> list[Any] | None:
    """To the last digit: a batch ranked with one plan must not be taken up for another."""
    if plan is None:
        return None
    model = plan.model
    numbers = [model.terms.tolist(), model.weights.tolist(), float(model.background)]
    return [*numbers, repr(plan.weighting), plan.with_constant]
