"""search and rerank over shards, in one process: batches, what waits of a stopped run, saved and replayed queries."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from sharding import DAY, MODELS, Sharding, engine_of, one_index, ranker

from sdretrieval.collection.records import Qrels, Ranking, Run, Topic
from sdretrieval.core.errors import InputError, ParameterError
from sdretrieval.index.snapshot import Snapshot
from sdretrieval.plugins.spark.search import Answer, Batching, Parts, rerank, search
from sdretrieval.plugins.spark.shard_ranking import ShardedEngine
from sdretrieval.ranking.base import Ranker
from sdretrieval.ranking.engine import Engine, RankOptions
from sdretrieval.ranking.expansion import ExpandedQuery, read_expansions
from sdretrieval.ranking.notes import PruneNote, TimeNote
from sdretrieval.ranking.query import Query
from sdretrieval.ranking.retrieval import Report, judgments_of, replaying

CASES: list[tuple[str, str | None]] = [
    *((name, None) for name in MODELS),
    ("sd3", "recency"),
    ("rm3", "as of"),
    ("sd", "local background"),
    ("rm", "timed feedback"),
]


@pytest.fixture(scope="module")
def sharding() -> Sharding:
    return Sharding(2)


@pytest.fixture(scope="module")
def shared(sharding) -> ShardedEngine:
    return engine_of(sharding.shards(3))


class Stopping:
    """An engine that can be stopped (Ctrl-C) when it comes to a topic; and which topics it has ranked."""

    def __init__(self, engine: ShardedEngine) -> None:
        self.engine, self.at, self.ranked = engine, "", []  # type: ignore[var-annotated]

    def __getattr__(self, name: str):
        return getattr(self.engine, name)

    def rank(self, model, queries, options):
        if any(query.qid == self.at for query in queries):
            raise KeyboardInterrupt
        self.ranked += [query.qid for query in queries]
        return self.engine.rank(model, queries, options)


@pytest.fixture
def engine(shared) -> Stopping:
    return Stopping(shared)


@pytest.fixture(scope="module")
def topics(sharding) -> list[Topic]:
    return [Topic(str(i), " ".join(words), (50 + 9 * i) * DAY) for i, words in enumerate(sharding.texts())]


# -- batches -----------------------------------------------------------------------------------------------------


def test_a_kept_batch_comes_back(tmp_path):
    late = TimeNote("recency", 0.5, 0.1, 20.0, float("inf"), True, ((10**12, 0.5), (10**12 + 1, -0.2)))
    notes = [PruneNote(0.25), TimeNote("recency", 0.5, 0.1, 20.0, float("inf"), False), late]
    answers = [
        Answer("1", Ranking(["d1", "dé"], [2.5, 0.1 + 0.2]), False, 3, notes, "{}"),
        Answer("2", Ranking([], []), True),
    ]
    parts = Parts(tmp_path / "run.parts", "key")
    assert parts.load(0, ["1", "2"]) is None
    parts.save(0, answers)
    found = parts.load(0, ["1", "2"])
    assert found is not None and [{**vars(a), "notes": list(a.notes)} for a in found] == [
        {**vars(a), "notes": list(a.notes)} for a in answers
    ]
    assert parts.load(0, ["1", "3"]) is None and Parts(tmp_path / "run.parts", "other").load(0, ["1", "2"]) is None
    next((tmp_path / "run.parts").iterdir()).write_bytes(b"cut short")
    assert parts.load(0, ["1", "2"]) is None


@pytest.mark.parametrize("batch", [1, 2, 100])
def test_answers_are_handed_on_as_they_come_and_not_kept(engine, topics, batch):
    """The same ones, in the order of the topics, whatever the batches."""
    wanted, seen = search(engine, topics, ranker("sd3"), hits=20), []
    assert list(wanted) == [topic.qid for topic in topics]
    how = Batching(batch=batch, on_answer=lambda answer: seen.append((answer.qid, answer.ranking)))
    run = search(engine, topics, ranker("sd3"), hits=20, batching=how)
    assert len(run) == 0 and run.tag == wanted.tag and seen == list(wanted.items())
    seen.clear()
    assert len(rerank(engine, wanted, topics, ranker("rm"), batching=how)) == 0
    assert dict(seen) == rerank(engine, wanted, topics, ranker("rm")).rankings


# -- what waits of a stopped run ---------------------------------------------------------------------------------


def ranked_by(engine: Stopping, topics: Sequence[Topic], parts: Path, model: str = "sd3", **how) -> tuple[Run, list]:
    """A run of single topics, and what was ranked for it."""
    engine.ranked = []
    run = search(engine, topics, ranker(model), hits=20, batching=Batching(batch=1, parts=parts, **how))  # type: ignore[arg-type]
    return run, sorted(engine.ranked)


def stop(engine: Stopping, topics: Sequence[Topic], parts: Path, **how) -> list[str]:
    """At the fourth topic; what was ranked before."""
    engine.at = "3"
    with pytest.raises(KeyboardInterrupt):
        ranked_by(engine, topics, parts, **how)
    engine.at = ""
    assert engine.ranked == ["0", "1", "2"]
    return engine.ranked


def test_a_stopped_run_goes_on_after_its_last_batch(engine, topics, tmp_path):
    wanted = search(engine, topics, ranker("sd3"), hits=20)
    done = stop(engine, topics, tmp_path)
    found, ranked = ranked_by(engine, topics, tmp_path)
    assert found == wanted and not set(done) & set(ranked) and "3" in ranked
    assert ranked_by(engine, topics, tmp_path)[1] == []
    assert len(ranked_by(engine, topics, tmp_path, "bm25")[1]) == len(topics), "another model takes up nothing"
    again = ranked_by(engine, topics, tmp_path, with_expansions=True)[1]
    assert len(again) == len(topics), "nor does a run that saves the queries as well"


def lines_of(engine, topics: Sequence[Topic], **options) -> list[str]:
    """Of --save-expansion."""
    lines: list[str] = []
    how = Batching(with_expansions=True, on_answer=lambda answer: lines.append(answer.expansion))
    search(engine, topics, ranker("sd3"), hits=20, batching=how, **options)
    return lines


def test_a_resumed_run_saves_what_was_estimated_before(engine, topics, tmp_path):
    wanted, lines = lines_of(engine, topics), []
    how = {"with_expansions": True, "on_answer": lambda answer: lines.append(answer.expansion)}
    stop(engine, topics, tmp_path, **how)
    assert lines == wanted[: len(lines)], "each once, in order"
    lines.clear()
    ranked = ranked_by(engine, topics, tmp_path, **how)[1]
    assert lines == wanted and not {"0", "1"} & set(ranked), "taken up, not estimated again"


def test_other_plans_take_up_nothing(engine, shared, topics, tmp_path):
    """A weight changed in its last digit makes another run; so does estimating."""
    lines, parts, everything = lines_of(engine, topics), tmp_path / "parts", [topic.qid for topic in topics]
    plans = read_expansions(saved(tmp_path / "lines.jsonl", lines), shared.collection)
    assert ranked_by(engine, topics, parts, plans=plans)[1] == everything
    assert ranked_by(engine, topics, parts, plans=plans)[1] == []
    changed = json.loads(lines[4])
    changed["terms"][next(iter(changed["terms"]))] *= 1.0 + 2.0**-50
    other = read_expansions(saved(tmp_path / "o.jsonl", [*lines[:4], json.dumps(changed)]), shared.collection)
    assert ranked_by(engine, topics, parts, plans=other)[1] == everything
    assert ranked_by(engine, topics, parts)[1] == everything


# -- expanded queries --------------------------------------------------------------------------------------------


def saved(path: Path, lines: Sequence[str]) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def queries_of(whole: Snapshot, topics: Sequence[Topic]) -> list[Query]:
    queries = []
    for topic in topics:
        query = Query.from_words(whole, topic.text.split(), qid=topic.qid, time=topic.time)
        queries.append(Query(**{**vars(query), "text": topic.text}))
    return queries


def lines_of_one_index(whole: Snapshot, model: Ranker, topics: Sequence[Topic], **options) -> list[str]:
    results = Engine(whole).rank(model, queries_of(whole, topics), RankOptions(**options))
    return [ExpandedQuery.of(result, whole, model.name).to_line() for result in results]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_lines_are_the_one_index_s_and_replay_to_the_same_run(case, engine, sharding, topics, tmp_path):
    """Words, weights, feedback documents and theirs; then ranked from the file, over shards and in one index."""
    model, answers = ranker(*case), []
    search(engine, topics, model, hits=40, batching=Batching(batch=2, with_expansions=True, on_answer=answers.append))
    lines = [answer.expansion for answer in answers]
    assert lines == lines_of_one_index(sharding.whole, model, topics, hits=40)
    assert any(json.loads(line)["feedback"] for line in lines) == model.uses_feedback
    file = saved(tmp_path / "lines.jsonl", lines)
    again = search(engine, topics, model, hits=40, batching=Batching(plans=read_expansions(file, engine.collection)))
    replayed = replaying(model, read_expansions(file, sharding.whole))
    of_one = one_index(sharding.whole, replayed, queries_of(sharding.whole, topics), hits=40)
    for qid, ranking in again.items():
        assert ranking.docids == of_one[qid].docids and ranking.scores.tolist() == of_one[qid].scores.tolist()
    if case[1] is None:  # with a time the replayed model lacks the feedback that some priors ask
        assert dict(again) == {answer.qid: answer.ranking for answer in answers}


def test_pruned_and_judged(engine, sharding, topics):
    """What is saved is the plan that ranked; judged documents are named, whatever shard they are in."""
    docids = sorted(sharding.docids)
    judged = Qrels({"0": dict.fromkeys(docids[5:9], 1) | dict.fromkeys(docids[100:104], 0), "4": {docids[50]: 1}})
    lines, known = lines_of(engine, topics, judged=judged, prune=7), judgments_of(sharding.whole, judged)
    assert lines == lines_of_one_index(sharding.whole, ranker("sd3"), topics, hits=20, judged=known, prune=7)
    assert [item["docid"] for item in json.loads(lines[0])["feedback"]] == docids[5:9]
    assert all(len(json.loads(line)["terms"]) <= 7 for line in lines)


def test_reranking(engine, sharding, topics, tmp_path):
    docids, lines = sorted(sharding.docids), []
    run = Run({t.qid: Ranking(docids[i : i + 60], range(60, 0, -1)) for i, t in enumerate(topics)}, "given")
    how = Batching(with_expansions=True, on_answer=lambda answer: lines.append(answer.expansion))
    rerank(engine, run, topics, ranker("sd"), batching=how)
    numbers = {qid: sharding.whole.docids.find_many(given.docids) for qid, given in run.items()}
    assert lines == lines_of_one_index(sharding.whole, ranker("sd"), topics, hits=60, candidates=numbers)
    plans = read_expansions(saved(tmp_path / "lines.jsonl", lines), engine.collection)
    replayed = rerank(engine, run, topics, ranker("sd"), batching=Batching(plans=plans))
    assert replayed == rerank(engine, run, topics, ranker("sd"))


# -- what can be wrong -------------------------------------------------------------------------------------------


def test_rerank_drops_or_refuses_unknown_documents(engine, sharding, topics):
    run = search(engine, topics, ranker("bm25"), hits=30)
    run.rankings["3"] = Ranking(sharding.docids[:4], [4.0, 3.0, 2.0, 1.0])  # no word of topic 3 is known
    assert rerank(engine, run, topics, ranker("sd3"))["3"] == run["3"]
    run.rankings["0"] = Ranking([*run["0"].docids, "nowhere"], [*run["0"].scores, 0.0])
    told = r"topic 0: docid 'nowhere' is in no shard .* \(400 documents; 1 of the topic's 31"
    with pytest.raises(InputError, match=told):
        rerank(engine, run, topics, ranker("sd3"))
    report = Report()
    found = rerank(engine, run, topics, ranker("sd3"), missing="drop", batching=Batching(report=report))
    assert report.dropped == 1 and "nowhere" not in found["0"].docids and len(found["0"]) == 30


def test_topics_given_twice_and_bad_hits_are_refused(engine, topics):
    with pytest.raises(ParameterError, match="'0' is given twice"):
        search(engine, [topics[0], topics[0]], ranker("bm25"))
    with pytest.raises(ParameterError, match="hits must be at least 1"):
        search(engine, topics, ranker("bm25"), hits=0)
