"""Expanded queries in files: written, read back to the last bit, edited, refused, compared."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from places import placed

from sdretrieval.collection.records import Qrels, Ranking, Run, Topic
from sdretrieval.core.errors import InputError, ParameterError
from sdretrieval.index.snapshot import Snapshot
from sdretrieval.ranking.base import Plan
from sdretrieval.ranking.engine import Engine
from sdretrieval.ranking.expansion import (
    ExpandedQuery,
    ExpansionWriter,
    describe_weighting,
    diff,
    diff_topic,
    read_expanded_queries,
    read_expansions,
    weighting_from_json,
    weighting_to_json,
)
from sdretrieval.ranking.query import Query
from sdretrieval.ranking.registry import make_ranker, rankers
from sdretrieval.ranking.retrieval import rerank, search
from sdretrieval.ranking.term_model import TermModel
from sdretrieval.ranking.weighting import BM25, WEIGHTINGS, Dirichlet, JelinekMercer, Weighting

VARIANTS = [
    *((name, []) for name in rankers()),
    ("ql", ["smoothing=jm"]),
    ("rm", ["smoothing=dirichlet"]),
    ("rm3", ["scoring=lm", "first_stage=ql"]),
    ("rm3", ["mode=anserini"]),
    ("sd", ["smoothing=dirichlet"]),
    ("sd", ["iterations=0", "posterior=exact"]),
    ("sd3", ["scoring=lm", "first_stage=sd"]),
]
TOPICS = [Topic("1", "w03 w17 w17"), Topic("2", "w00 nowhere"), Topic("é 3", "w29"), Topic("4", "nowhere")]


@pytest.fixture
def snapshot(monkeypatch) -> Snapshot:
    rng = np.random.default_rng(7)
    words = [f"w{i:02d}" for i in range(30)]
    counts = rng.poisson(0.15 + 2.0 / np.arange(1, 31), size=(50, 30))
    monkeypatch.setattr(Snapshot, "analyze", lambda self, text: text.split())
    return placed(Snapshot.from_counts(counts, words, name="small"))


def saved(path, snapshot, model, settings=(), **options) -> Run:
    with ExpansionWriter(path, snapshot, model) as save:
        return search(snapshot, TOPICS, make_ranker(model, settings), on_result=save, **options)


def line(**changes) -> str:
    return json.dumps({"qid": "1", "terms": {"w03": 1.0}} | changes)


# -- replay --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("model", "settings"), VARIANTS, ids=str)
def test_replay_gives_the_same_run_to_the_last_bit(tmp_path, snapshot, model, settings):
    run = saved(tmp_path / "q.jsonl", snapshot, model, settings)
    plans = read_expansions(tmp_path / "q.jsonl", snapshot)
    again = search(snapshot, TOPICS, make_ranker(model, settings), plans=plans)
    assert len(run["1"]) > 20
    assert list(run) == list(again) == ["1", "2", "é 3", "4"]
    assert all(run[qid] == again[qid] for qid in run)


@pytest.mark.parametrize("model", ["sd", "rm"])
def test_the_exact_models_are_replayed_with_their_background(tmp_path, snapshot, model):
    """Without it the test above would say less: both spread over the whole vocabulary."""
    saved(tmp_path / "q.jsonl", snapshot, model)
    plans = read_expansions(tmp_path / "q.jsonl", snapshot)
    assert plans["1"].model.background != 0


def test_pairs_of_a_blend_are_written_and_a_word_deleted_takes_its_pairs_along(tmp_path, snapshot):
    run = saved(tmp_path / "q.jsonl", snapshot, "blend")
    query = read_expanded_queries(tmp_path / "q.jsonl")["1"]
    assert query.pairs and all(a in query.terms and b in query.terms for a, b, _, _ in query.pairs)
    word = query.pairs[0][0]
    plan = replace(query, terms={w: weight for w, weight in query.terms.items() if w != word}).plan(snapshot)
    assert plan.pairs is None or not (plan.pairs.terms == snapshot.term_id(word)).any()
    # Any model ranks them, and without them it is another run.
    plans = read_expansions(tmp_path / "q.jsonl", snapshot)
    assert search(snapshot, TOPICS, "bm25", plans=plans)["1"] == run["1"]
    bare = {qid: replace(plan, pairs=None) for qid, plan in plans.items()}
    assert search(snapshot, TOPICS, "blend", plans=bare)["1"] != run["1"]


def test_a_pruned_run_is_replayed_without_pruning_again(tmp_path, snapshot):
    run = saved(tmp_path / "q.jsonl", snapshot, "rm", prune=5)
    plans = read_expansions(tmp_path / "q.jsonl", snapshot)
    assert len(plans["1"].model) == 5
    assert search(snapshot, TOPICS, "rm", plans=plans)["1"] == run["1"]


@pytest.mark.parametrize("model", ["sd", "rm3", "sd3"])
def test_rerank_is_replayed_too(tmp_path, snapshot, model):
    given = Run({"1": Ranking([f"d{i}" for i in range(0, 50, 2)], -np.arange(25.0))})
    with ExpansionWriter(tmp_path / "q.jsonl", snapshot) as save:
        run = rerank(snapshot, given, TOPICS[:1], model, on_result=save)
    plans = read_expansions(tmp_path / "q.jsonl", snapshot)
    assert rerank(snapshot, given, TOPICS[:1], model, plans=plans)["1"] == run["1"]


def test_judged_feedback_with_negative_weights_is_replayed(tmp_path, snapshot):
    judged = Qrels({"1": {"d3": 1, "d9": 1, "d5": 0, "d6": 0}})
    run = saved(tmp_path / "q.jsonl", snapshot, "sd", judged=judged)
    query = read_expanded_queries(tmp_path / "q.jsonl")["1"]
    assert min(query.terms.values()) < 0
    assert query.feedback == (("d3", 0.5), ("d9", 0.5))
    plans = read_expansions(tmp_path / "q.jsonl", snapshot)
    assert search(snapshot, TOPICS, "sd", plans=plans)["1"] == run["1"]


def test_a_word_of_weight_zero_survives(tmp_path, snapshot):
    """It lets documents be ranked, so leaving it out would be another run."""
    (tmp_path / "q.jsonl").write_text(line(terms={"w03": 1.0, "w29": 0.0}) + "\n")
    plan = read_expansions(tmp_path / "q.jsonl", snapshot)["1"]
    assert [snapshot.term(t) for t in plan.model.terms] == ["w03", "w29"]


# -- the file ------------------------------------------------------------------------------------------------


def test_a_line_says_what_a_person_wants_to_know(tmp_path, snapshot):
    saved(tmp_path / "q.jsonl", snapshot, "sd3", ["fb_docs=3"])
    first = json.loads((tmp_path / "q.jsonl").read_text().splitlines()[0])
    assert list(first) == ["qid", "query", "model", "weighting", "background", "with_constant", "terms", "feedback"]
    assert (first["qid"], first["query"], first["model"]) == ("1", "w03 w17 w17", "sd3")
    assert first["weighting"] == {"type": "bm25", "k1": 0.9, "b": 0.4, "lucene_lengths": False}
    weights = list(first["terms"].values())
    assert weights == sorted(weights, reverse=True)
    assert len(first["feedback"]) == 3
    assert sum(item["weight"] for item in first["feedback"]) == pytest.approx(1)
    assert "é 3" in (tmp_path / "q.jsonl").read_text()  # readable, not escaped


def test_reading_and_writing_again_changes_nothing(tmp_path, snapshot):
    saved(tmp_path / "q.jsonl", snapshot, "sd")
    lines = [
        json.dumps(query.to_json(), ensure_ascii=False)
        for query in read_expanded_queries(tmp_path / "q.jsonl").values()
    ]
    assert lines == (tmp_path / "q.jsonl").read_text().splitlines()


def test_a_failure_on_the_way_leaves_the_old_file(tmp_path, snapshot):
    path = tmp_path / "q.jsonl"
    path.write_text("old")
    with pytest.raises(KeyboardInterrupt), ExpansionWriter(path, snapshot) as save:
        search(snapshot, TOPICS, "sd", on_result=save)
        raise KeyboardInterrupt
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["q.jsonl"]


def test_weights_that_are_not_numbers_are_not_written(tmp_path, snapshot):
    query = Query.from_words(snapshot, ["w03"], qid="7")
    (result,) = Engine(snapshot).rank(make_ranker("bm25"), [query])
    result.plan = Plan(TermModel(query.terms, np.array([np.nan])), BM25())
    with pytest.raises(ParameterError, match="topic '7': a weight is not a finite number"):  # noqa: SIM117
        with ExpansionWriter(tmp_path / "q.jsonl", snapshot) as save:
            save(result)
    assert not (tmp_path / "q.jsonl").exists()


@pytest.mark.parametrize("name", WEIGHTINGS)
def test_weightings_come_back_equal(name):
    weighting = WEIGHTINGS[name]()
    data = json.loads(json.dumps(weighting_to_json(weighting)))
    assert data["type"] == name
    assert weighting_from_json(data) == weighting


def test_a_foreign_weighting_cannot_be_written_but_described():
    class Foreign(Weighting):
        pass

    with pytest.raises(ParameterError, match="Foreign cannot be written"):
        weighting_to_json(Foreign())
    assert describe_weighting(Foreign()) == "Foreign"

    class Named(BM25):
        name = "named"

    assert weighting_from_json(weighting_to_json(Named(k1=2.0))) == Named(k1=2.0)
    del WEIGHTINGS["named"]
    assert describe_weighting(BM25(0.9, 0.4, True)) == "bm25 k1=0.9 b=0.4 lucene_lengths"


# -- edited by hand ------------------------------------------------------------------------------------------


def test_a_line_needs_only_topic_and_words(tmp_path, snapshot):
    (tmp_path / "q.jsonl").write_text('{"qid": "1", "terms": {"w17": 2, "w03": 0.5}}\n\n')
    plan = read_expansions(tmp_path / "q.jsonl", snapshot)["1"]
    assert [snapshot.term(t) for t in plan.model.terms] == ["w03", "w17"]
    assert plan.model.weights.tolist() == [0.5, 2.0]
    assert (plan.model.background, plan.weighting, plan.with_constant) == (0.0, BM25(0.9, 0.4), False)


def test_an_edited_expansion_ranks_as_it_says(tmp_path, snapshot):
    """Two words of weight 1 under BM25 are the plain BM25 query."""
    (tmp_path / "q.jsonl").write_text(line(terms={"w03": 1, "w29": 1}))
    plans = read_expansions(tmp_path / "q.jsonl", snapshot)
    edited = search(snapshot, [Topic("1", "whatever")], "sd3", plans=plans)
    assert edited["1"] == search(snapshot, [Topic("1", "w03 w29")], "bm25")["1"]


def test_partial_weightings_take_defaults():
    assert weighting_from_json({"b": 0.75}) == BM25(0.9, 0.75)
    assert weighting_from_json({"type": "dirichlet"}) == Dirichlet(1000.0)
    assert weighting_from_json({"type": "jm", "lam": 0.3}) == JelinekMercer(0.3)


REFUSED = [
    ("{", "not JSON"),
    ("[1]", "an object is expected on each line, not a list"),
    ("null", "an object is expected on each line, not null"),
    ("[" * 100_000, "not JSON"),
    ('{"terms": {}}', "'qid' is missing"),
    ('{"qid": "1"}', "'terms' is missing"),
    ('{"qid": 1, "terms": {}}', "qid must be text, not a number"),
    ('{"qid": "", "terms": {}}', "qid is empty"),
    (line(terms=["w03"]), "terms must be {word: weight}, not a list"),
    (line(terms={"w03": "1"}), "the weight of 'w03' must be a number; got '1'"),
    (line(terms={"w03": None}), "the weight of 'w03' must be a number; got None"),
    (line(terms={"w03": True}), "the weight of 'w03' must be a number; got True"),
    ('{"qid": "1", "terms": {"w03": NaN}}', "not JSON: NaN is not JSON"),
    ('{"qid": "1", "terms": {"w03": -Infinity}}', "not JSON: -Infinity is not JSON"),
    ('{"qid": "1", "terms": {"w03": 1e999}}', "not JSON: 1e999 is too large a number"),
    ('{"qid": "1", "terms": {"w03": 1' + "0" * 400 + "}}", "not JSON: 10000000000000000000… is too large a number"),
    ('{"qid": "1", "terms": {"w03": 1, "w03": 2}}', "not JSON: 'w03' is given twice"),
    (line(backgroud=1), "an expanded query has no key 'backgroud'"),
    (line(query=3), "query must be text"),
    (line(with_constant=1), "with_constant must be true or false; got 1"),
    (line(background="much"), "background must be a number; got 'much'"),
    (line(background=0.1), "weighting bm25 has no background; got 0.1"),
    (line(weighting="bm25"), 'weighting must be like {"type": "bm25"}, not text'),
    (line(weighting={"type": "bm26"}), "unknown weighting 'bm26'"),
    (line(weighting={"type": ["jm"]}), "unknown weighting ['jm']"),
    (line(weighting={"type": "jm", "mu": 3}), "weighting jm has no key 'mu'"),
    (line(weighting={"type": "jm", "lam": 1}), "lam of weighting jm (λ) must be in (0, 1); got 1"),
    (line(weighting={"type": "dirichlet", "mu": 0}), "mu of weighting dirichlet (μ) must be positive; got 0"),
    (line(weighting={"type": "bm25", "b": 1.5}), "b of weighting bm25 must be in [0, 1]; got 1.5"),
    (line(weighting={"type": "bm25", "k1": "x"}), "k1 of weighting bm25 must be a number; got 'x'"),
    (line(weighting={"type": "bm25", "lucene_lengths": 1}), "lucene_lengths of weighting bm25 must be true"),
    (line(pairs={}), "pairs must be a list, not an object"),
    (line(pairs=[["w03", "w04"]]), 'each pair must be {"words": [two of them], "in_order": …, "near": …}'),
    (line(pairs=[{"words": ["w03"]}]), 'each pair must be {"words": [two of them]'),
    (line(pairs=[{"words": ["w03", 4]}]), "a word of a pair must be text"),
    (line(pairs=[{"words": ["w03", "w03"], "near": "x"}]), "near of the pair 'w03' 'w03' must be a number; got 'x'"),
    (line(pairs=[{"words": ["w03", "w03"], "far": 1}]), "a pair has no key 'far'"),
    (line(pairs=[{"words": ["w03", "w03"]}], weighting={"type": "jm"}), "weighting jm has no evidence of pairs"),
    (line(feedback={}), "feedback must be a list, not an object"),
    (line(feedback=["d1"]), 'each feedback document must be {"docid": …, "weight": …}'),
    (line(feedback=[{"docid": 1}]), "the docid of a feedback document must be text"),
    (line(feedback=[{"docid": "d1", "weight": "x"}]), "the weight of feedback document 'd1' must be a number"),
    (line(terms={"w03": 1, "zzz": 1, "yyy": 2}), "topic '1': word 'zzz' is not in index 'small' (nor are 1"),
    (line(qid="0"), "topic '0' is on line 1 already"),
]


@pytest.mark.parametrize(("text", "told"), REFUSED, ids=[told[:40] for _, told in REFUSED])
def test_refused_with_file_and_line(tmp_path, snapshot, text, told):
    path = tmp_path / "q.jsonl"
    path.write_text(line(qid="0") + "\n\n" + text + "\n")
    with pytest.raises(InputError) as error:
        read_expansions(path, snapshot)
    assert error.value.message.startswith(f"{path}:3: {told}")


def test_an_empty_file_is_refused(tmp_path, snapshot):
    (tmp_path / "q.jsonl").write_text("\n")
    with pytest.raises(InputError, match="no expanded queries in it"):
        read_expansions(tmp_path / "q.jsonl", snapshot)


def test_unknown_words_can_be_dropped(tmp_path, snapshot):
    (tmp_path / "q.jsonl").write_text(line(terms={"zzz": 1, "w03": 2.5, "aaa": 1}))
    dropped: list[str] = []
    plan = read_expansions(tmp_path / "q.jsonl", snapshot, missing="drop", dropped=dropped)["1"]
    assert plan.model.weights.tolist() == [2.5]
    assert dropped == ["zzz", "aaa"]
    with pytest.raises(InputError, match="missing must be error or drop; got 'ignore'"):
        read_expansions(tmp_path / "q.jsonl", snapshot, missing="ignore")


# -- comparing -----------------------------------------------------------------------------------------------


def test_diff_by_hand():
    """A = (heat 3, wing 1), B = (heat 4, flow -4): cosine 12 / (√10 · √32), one word of three in common."""
    a = ExpandedQuery("1", {"heat": 3.0, "wing": 1.0})
    b = ExpandedQuery("1", {"heat": 4.0, "flow": -4.0})
    d = diff_topic(a, b)
    assert d.cosine == pytest.approx(12 / np.sqrt(320))
    assert d.jaccard == pytest.approx(1 / 3)
    assert [(c.word, c.weight_a, c.share_a, c.share_b) for c in d.only_a] == [("wing", 1.0, 0.25, 0.0)]
    assert [(c.word, c.weight_b, c.change) for c in d.only_b] == [("flow", -4.0, -0.5)]
    assert [(c.word, c.share_a, c.share_b, c.change) for c in d.changed] == [("heat", 0.75, 0.5, -0.25)]
    assert (d.common, d.unchanged, d.strongest_in_common(1), d.strongest_in_common(5)) == (1, 0, 0, 1)
    assert d.to_json()["changed"][0] == {
        "word": "heat",
        "a": 3.0,
        "b": 4.0,
        "share_a": 0.75,
        "share_b": 0.5,
        "change": -0.25,
    }


def test_diff_of_a_scaled_query_is_all_alike():
    a = ExpandedQuery("1", {"x": 1e-200, "y": 2e-200})
    d = diff_topic(a, ExpandedQuery("1", {"x": 10.0, "y": 20.0}))
    assert d.cosine == pytest.approx(1)
    assert [c.change for c in d.changed] == pytest.approx([0, 0])


def test_diff_reports_an_edited_weight_and_nothing_else():
    a = ExpandedQuery("1", {"x": 1.0, "y": 2.0, "z": 3.0})
    d = diff_topic(a, ExpandedQuery("1", {"x": 1.0, "y": 2.5, "z": 3.0}))
    assert [c.word for c in d.changed] == ["y"]
    assert (d.unchanged, d.only_a, d.only_b) == (2, (), ())


@pytest.mark.parametrize(("a", "b", "alike"), [({}, {}, 1.0), ({}, {"x": 1.0}, 0.0), ({"y": 1.0}, {"x": 1.0}, 0.0)])
def test_diff_of_empty_and_disjoint_queries(a, b, alike):
    d = diff_topic(ExpandedQuery("1", a), ExpandedQuery("1", b))
    assert (d.cosine, d.jaccard) == (alike, alike)


def test_diff_keeps_topics_apart():
    a = {qid: ExpandedQuery(qid, {"x": 1.0}) for qid in ("3", "1", "2")}
    b = {qid: ExpandedQuery(qid, {"x": 2.0}) for qid in ("1", "3", "9")}
    d = diff(a, b)
    assert [t.qid for t in d.topics] == ["3", "1"]
    assert (d.only_a, d.only_b) == (("2",), ("9",))
