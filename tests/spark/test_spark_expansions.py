"""Expanded queries over shards: the lines that one index writes, replayed to the same runs, and kept with batches."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from sharding import DAY, MODELS, Sharding, one_index, ranker

from sdretrieval.errors import InputError
from sdretrieval.integrations.spark import search
from sdretrieval.integrations.spark.expansions import read_plans
from sdretrieval.integrations.spark.ranking import ShardedEngine
from sdretrieval.integrations.spark.runners import Here
from sdretrieval.integrations.spark.shards import InMemory
from sdretrieval.ranking.base import Ranker
from sdretrieval.ranking.engine import Engine, Judgments
from sdretrieval.ranking.expansion import ExpandedQuery, read_expansions
from sdretrieval.ranking.query import Query
from sdretrieval.records import Qrels, Run, Topic
from sdretrieval.retrieval import replaying
from sdretrieval.snapshot import Snapshot

CASES: list[tuple[str, str | None]] = [
    *((name, None) for name in MODELS),
    ("sd3", "recency"), ("rm3", "as of"), ("sd", "local background"), ("rm", "timed feedback"),
]  # fmt: skip


class Analysed(InMemory):
    """Blanks part words: no Java in these tests."""

    def analyze(self, text: str) -> list[str]:
        return text.split()


@pytest.fixture(scope="module")
def sharding() -> Sharding:
    return Sharding(2)


@pytest.fixture(scope="module")
def engine(sharding) -> ShardedEngine:
    collection = Analysed(sharding.shards(3))
    return ShardedEngine(collection, Here(collection))


@pytest.fixture(scope="module")
def topics(sharding) -> list[Topic]:
    return [Topic(str(i), " ".join(words), (50 + 9 * i) * DAY) for i, words in enumerate(sharding.texts())]


def queries_of(whole: Snapshot, topics: Sequence[Topic]) -> list[Query]:
    queries = []
    for topic in topics:
        query = Query.from_words(whole, topic.text.split(), qid=topic.qid, time=topic.time)
        queries.append(Query(**{**vars(query), "text": topic.text}))
    return queries


def lines_of_one_index(whole: Snapshot, model: Ranker, topics: Sequence[Topic], **options) -> list[str]:
    results = Engine(whole).rank(model, queries_of(whole, topics), **options)
    return [ExpandedQuery.of(result, whole, model.name).to_line() for result in results]


def saved(path: Path, lines: Sequence[str]) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_lines_are_the_one_index_s_and_replay_to_the_same_run(case, engine, sharding, topics, tmp_path):
    """Words, weights, feedback documents and theirs; then ranked from the file, over shards and in one index."""
    model, lines = ranker(*case), []
    run = search.search(engine, topics, model, hits=40, batch=2, on_expansion=lines.append)
    assert lines == lines_of_one_index(sharding.whole, model, topics, hits=40)
    learns = any(json.loads(line)["feedback"] for line in lines)
    assert learns == model.uses_feedback
    file = saved(tmp_path / "lines.jsonl", lines)
    plans = read_plans(file, engine.collection)
    again = search.search(engine, topics, model, hits=40, plans=plans)
    replayed = replaying(model, read_expansions(file, sharding.whole))
    of_one = one_index(sharding.whole, replayed, queries_of(sharding.whole, topics), hits=40)
    for qid, ranking in again.items():
        assert ranking.docids == of_one[qid].docids and ranking.scores.tolist() == of_one[qid].scores.tolist()
    if case[1] is None:  # with a time the replayed model lacks the feedback that some priors ask
        assert again == run


def test_an_edited_line_is_what_ranks(engine, sharding, topics, tmp_path):
    lines: list[str] = []
    run = search.search(engine, topics, ranker("rm3"), hits=40, on_expansion=lines.append)
    record = json.loads(lines[0])
    record["terms"] = {sharding.words[11]: 1.0, sharding.words[60]: 0.25}
    file = saved(tmp_path / "edited.jsonl", [json.dumps(record), *lines[1:]])
    found = search.search(engine, topics, ranker("rm3"), hits=40, plans=read_plans(file, engine.collection))
    plans = read_expansions(file, sharding.whole)
    wanted = one_index(sharding.whole, replaying(ranker("rm3"), plans), queries_of(sharding.whole, topics), hits=40)
    assert found["0"] != run["0"] and found["1"] == run["1"]
    assert {qid: ranking.docids for qid, ranking in found.items()} == {q: r.docids for q, r in wanted.items()}


def test_pruned_and_judged(engine, sharding, topics):
    """What is saved is the plan that ranked; judged documents are named, whatever shard they are in."""
    docids, lines, numbers = sorted(sharding.docids), [], sharding.whole.docids.find_many
    judged = Qrels({"0": dict.fromkeys(docids[5:9], 1) | dict.fromkeys(docids[100:104], 0), "4": {docids[50]: 1}})
    search.search(engine, topics, ranker("sd3"), hits=40, judged=judged, prune=7, on_expansion=lines.append)
    known = {
        "0": Judgments(numbers(docids[5:9]), numbers(docids[100:104])),
        "4": Judgments(numbers(docids[50:51]), numbers([])),
    }
    assert lines == lines_of_one_index(sharding.whole, ranker("sd3"), topics, hits=40, judged=known, prune=7)
    assert [item["docid"] for item in json.loads(lines[0])["feedback"]] == docids[5:9]
    assert all(len(json.loads(line)["terms"]) <= 7 for line in lines)


def test_reranking(engine, sharding, topics, tmp_path):
    docids, lines = sorted(sharding.docids), []
    run = Run({t.qid: search.Ranking(docids[i : i + 60], range(60, 0, -1)) for i, t in enumerate(topics)}, "given")
    found = search.rerank(engine, run, topics, ranker("sd"), on_expansion=lines.append)
    numbers = {qid: sharding.whole.docids.find_many(given.docids) for qid, given in run.items()}
    assert lines == lines_of_one_index(sharding.whole, ranker("sd"), topics, hits=60, candidates=numbers)
    plans = read_plans(saved(tmp_path / "lines.jsonl", lines), engine.collection)
    assert search.rerank(engine, run, topics, ranker("sd"), plans=plans) == found


# -- batches that wait -------------------------------------------------------------------------------------------


class Stopping:
    """An engine that is stopped (Ctrl-C) when it comes to a topic; and which topics it has ranked."""

    def __init__(self, engine: ShardedEngine) -> None:
        self.engine, self.at, self.ranked = engine, "", []  # type: ignore[var-annotated]

    def __getattr__(self, name: str):
        return getattr(self.engine, name)

    def rank(self, model, queries, **options):
        if any(query.qid == self.at for query in queries):
            raise KeyboardInterrupt
        self.ranked += [query.qid for query in queries]
        return self.engine.rank(model, queries, **options)


def stopped(engine: ShardedEngine, topics: Sequence[Topic], parts: Path, **options) -> Stopping:
    """A run of single topics that was stopped at the fourth."""
    stopping = Stopping(engine)
    stopping.at = "3"
    with pytest.raises(KeyboardInterrupt):
        search.search(stopping, topics, ranker("sd3"), hits=20, batch=1, parts=parts, **options)  # type: ignore[arg-type]
    assert {"0", "1"} <= set(stopping.ranked) and "3" not in stopping.ranked
    stopping.at = ""
    return stopping


def go_on(stopping: Stopping, topics: Sequence[Topic], parts: Path, **options) -> tuple[Run, list[str]]:
    """The run, and what was ranked for it."""
    stopping.ranked = []
    run = search.search(stopping, topics, ranker("sd3"), hits=20, batch=1, parts=parts, **options)  # type: ignore[arg-type]
    return run, stopping.ranked


def test_a_resumed_run_saves_what_was_estimated_before(engine, topics, tmp_path):
    wanted: list[str] = []
    run = search.search(engine, topics, ranker("sd3"), hits=20, on_expansion=wanted.append)
    before: list[str] = []
    stopping = stopped(engine, topics, tmp_path, on_expansion=before.append)
    lines: list[str] = []
    found, ranked = go_on(stopping, topics, tmp_path, on_expansion=lines.append)
    assert found == run and lines == wanted
    assert not {"0", "1"} & set(ranked), "taken up, not estimated again"
    assert before == wanted[: len(before)], "each once, in order"


def test_a_part_without_expansions_is_done_again_where_they_are_wanted(engine, topics, tmp_path):
    wanted: list[str] = []
    search.search(engine, topics, ranker("sd3"), hits=20, on_expansion=wanted.append)
    lines: list[str] = []
    _, ranked = go_on(stopped(engine, topics, tmp_path), topics, tmp_path, on_expansion=lines.append)
    assert lines == wanted and sorted(ranked) == [topic.qid for topic in topics]
    _, ranked = go_on(Stopping(engine), topics, tmp_path)
    assert ranked == [], "and one with them serves a run that wants none"


def test_other_plans_take_up_nothing(engine, sharding, topics, tmp_path):
    """A weight changed in its last digit makes another run; so does estimating."""
    lines: list[str] = []
    search.search(engine, topics, ranker("sd3"), hits=20, on_expansion=lines.append)
    plans = read_plans(saved(tmp_path / "lines.jsonl", lines), engine.collection)
    parts, stopping = tmp_path / "parts", Stopping(engine)
    everything = sorted(topic.qid for topic in topics)
    assert sorted(go_on(stopping, topics, parts, plans=plans)[1]) == everything
    assert go_on(stopping, topics, parts, plans=plans)[1] == []
    changed = json.loads(lines[4])
    changed["terms"][next(iter(changed["terms"]))] *= 1.0 + 2.0**-50
    other = read_plans(saved(tmp_path / "o.jsonl", [*lines[:4], json.dumps(changed)]), engine.collection)
    assert sorted(go_on(stopping, topics, parts, plans=other)[1]) == everything
    assert sorted(go_on(stopping, topics, parts)[1]) == everything


# -- what can be wrong -------------------------------------------------------------------------------------------


def test_words_that_no_shard_has(engine, tmp_path):
    file = saved(tmp_path / "x.jsonl", ['{"qid": "0", "terms": {"ä0": 1}}', '{"qid": "1", "terms": {"nowhere": 1}}'])
    with pytest.raises(InputError, match=r"x\.jsonl:2: topic '1': word 'nowhere' is not in index 'in memory'"):
        read_plans(file, engine.collection)
    dropped: list[str] = []
    plans: Mapping = read_plans(file, engine.collection, "drop", dropped)
    assert dropped == ["nowhere"] and len(plans["1"].model) == 0


def test_a_topic_without_a_line(engine, topics, tmp_path):
    plans = read_plans(saved(tmp_path / "x.jsonl", ['{"qid": "0", "terms": {"ä0": 1}}']), engine.collection)
    with pytest.raises(InputError, match="topic '1' has no expansion in the file"):
        search.search(engine, topics, ranker("sd3"), plans=plans)
