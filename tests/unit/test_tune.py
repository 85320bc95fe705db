"""Honest tuning: what is chosen, on which topics, and what is remembered."""

from __future__ import annotations

import json
import math
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sdretrieval.collection.records import Qrels, Ranking, Run, Topic
from sdretrieval.core.errors import InputError, ParameterError
from sdretrieval.evaluate import evaluate
from sdretrieval.evaluate.tune import (
    Problem,
    StagedEngine,
    Trace,
    climb,
    combinations,
    folds_of,
    identity_of,
    sample,
    settings_key,
    space_of,
    tune,
    write_profile,
)
from sdretrieval.index.snapshot import Snapshot
from sdretrieval.ranking.engine import Engine
from sdretrieval.ranking.query import Query
from sdretrieval.ranking.registry import make_ranker, rankers
from sdretrieval.ranking.retrieval import search

# -- the space ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in rankers() if name != "dph"])  # it has no parameters
def test_every_model_declares_a_space_it_accepts(name):
    model = rankers()[name]
    space = space_of(model)
    assert space
    for parameter, values in space.items():
        assert list(values) == sorted(values)  # hill climbing goes to the next one
        for value in values:
            model(**{parameter: value})


def test_chosen_parameters():
    ql = rankers()["ql"]
    assert space_of(ql, ["mu=10, 20,30", "smoothing"]) == {"mu": (10.0, 20.0, 30.0), "smoothing": ("dirichlet", "jm")}
    assert space_of(ql, ["lam"]) == {"lam": space_of(ql)["lam"]}
    assert space_of(make_ranker("sd"), ["fb_docs=5,5,7,5"]) == {"fb_docs": (5, 7)}
    with pytest.raises(ParameterError, match="ql has no parameter 'depth'") as caught:
        space_of(ql, ["depth=1"])
    assert caught.value.remedy == "It has: smoothing, mu, lam."
    with pytest.raises(ParameterError, match="iterations declares no values to try"):
        space_of(rankers()["sd"], ["iterations"])
    with pytest.raises(ParameterError, match="mu must be a number; got 'x'"):
        space_of(ql, ["mu=1,x"])


SPACES = st.dictionaries(
    st.sampled_from("abcd"), st.lists(st.integers(0, 9), min_size=1, max_size=4, unique=True).map(tuple), min_size=1
)


@given(SPACES)
def test_combinations_are_all_and_each_once(space):
    found = list(combinations(space))
    assert len({settings_key(s) for s in found}) == len(found) == math.prod(map(len, space.values()))
    assert all(s[name] in values for s in found for name, values in space.items())


@given(SPACES, st.integers(1, 300), st.integers(0, 5))
def test_a_sample_is_of_different_combinations(space, n, seed):
    total = math.prod(map(len, space.values()))
    found = sample(space, n, seed)
    assert len({settings_key(s) for s in found}) == len(found) == min(n, total)
    assert {settings_key(s) for s in found} <= {settings_key(s) for s in combinations(space)}
    assert found == sample(space, n, seed)


def test_a_sample_of_values_given_twice_comes_to_an_end():
    assert len(sample({"a": (1, 1, 1, 2)}, 3, 0)) >= 2


@given(st.integers(2, 40), st.data())
def test_folds_share_the_topics_out(n, data):
    qids = [f"q{i}" for i in range(n)]
    k, seed = data.draw(st.integers(2, n)), data.draw(st.integers(0, 99))
    folds = folds_of(qids, k, seed)
    assert sorted(qid for fold in folds for qid in fold) == sorted(qids)
    assert max(map(len, folds)) - min(map(len, folds)) <= 1
    assert folds_of(list(reversed(qids)), k, seed) == folds  # whatever the order of the file


def test_folds_that_cannot_be():
    for k in (-1, 0, 1, 4):
        with pytest.raises(ParameterError, match=f"between 2 and the number of topics .3.; got {k}"):
            folds_of(["a", "b", "c"], k, 0)
    assert folds_of([str(i) for i in range(20)], 4, 0) != folds_of([str(i) for i in range(20)], 4, 1)


# -- climbing ----------------------------------------------------------------------------------------------------


def test_a_climb_reaches_the_top_of_a_hill():
    space = {"a": tuple(range(9)), "b": tuple(range(9)), "word": ("x", "y", "z")}
    asked = []

    def height(s):
        asked.append(settings_key(s))
        return -abs(s["a"] - 7) - 2 * abs(s["b"] - 1) + (s["word"] == "z")

    assert climb({"a": 0, "b": 8, "word": "x"}, space, height, 500) == {"a": 7, "b": 1, "word": "z"}
    assert len(set(asked)) == len(asked) < 100  # nothing twice; a grid would be 243


def test_a_climb_stays_where_all_is_flat():
    assert climb({"a": 3}, {"a": (1, 2, 3, 4)}, lambda s: 0.5, 500) == {"a": 3}


def test_a_climb_may_start_between_the_values():
    assert climb({"a": 25}, {"a": (10, 20, 30)}, lambda s: s["a"], 500) == {"a": 30}
    assert climb({"a": 99}, {"a": (10, 20, 30)}, lambda s: -s["a"], 500) == {"a": 10}
    assert climb({"a": 10}, {"a": (20,)}, lambda s: -s["a"], 500) == {"a": 10}


@given(st.integers(1, 30), st.integers(0, 1000))
def test_a_climb_keeps_to_its_budget_and_never_ends_lower(budget, seed):
    heights = np.random.default_rng(seed).random((6, 6))
    asked = []

    def height(s):
        asked.append((s["a"], s["b"]))
        return heights[s["a"], s["b"]]

    top = climb({"a": 2, "b": 3}, {"a": tuple(range(6)), "b": tuple(range(6))}, height, budget)
    assert asked[0] == (2, 3)
    assert len(asked) - 1 <= budget
    assert heights[top["a"], top["b"]] == max(heights[place] for place in asked)


# -- tuning over a table of values -------------------------------------------------------------------------------

SPACE = {"mu": (100.0, 200.0, 500.0), "lam": (0.1, 0.5, 0.9)}
QIDS = [f"q{i}" for i in range(7)]


class Table:
    """A problem whose values are made up: by setting and topic, from a seed."""

    measure, hits, candidates = "AP", 1000, None

    def __init__(self, seed: int, changed: dict[str, int] | None = None) -> None:
        self.seed, self.changed, self.asked = seed, changed or {}, []
        self.qids = QIDS
        self.queries = [SimpleNamespace(qid=qid, text=f"words of {qid}") for qid in QIDS]
        self.qrels = Qrels({qid: {"d1": 1} for qid in QIDS})
        self.snapshot = SimpleNamespace(fingerprint="f" * 32)

    def identity(self, ranker) -> dict:
        return identity_of(self, ranker)

    def values(self, ranker) -> dict[str, float]:
        self.asked.append((ranker.mu, ranker.lam))
        # Each topic has its own dice, so that one topic's values may change and no other's do.
        return {
            qid: float(
                np.random.default_rng(
                    [self.seed, self.changed.get(qid, 0), int(ranker.mu), int(ranker.lam * 10), i]
                ).random()
            )
            for i, qid in enumerate(QIDS)
        }


RANKER = make_ranker("ql", ["mu=200"])
METHODS = pytest.mark.parametrize("method", ["grid", "random", "hill"])


@METHODS
@settings(deadline=None, max_examples=40)
@given(seed=st.integers(0, 10_000), other=st.integers(1, 10_000), fold=st.integers(0, 2))
def test_a_fold_never_looks_at_its_own_topics(method, seed, other, fold):
    """Whatever the values of the topics held out, the same setting is chosen for them."""
    options = {"method": method, "folds": 3, "seed": seed, "budget": 5 if method == "random" else 500}
    held_out = folds_of(QIDS, 3, seed)[fold]
    plain = tune(Table(seed), RANKER, SPACE, **options)
    changed = tune(Table(seed, dict.fromkeys(held_out, other)), RANKER, SPACE, **options)
    assert changed.fold_settings[fold] == plain.fold_settings[fold]
    for qid in QIDS:  # and the reported values of the fold are the changed ones, of that setting
        where = next(i for i, f in enumerate(folds_of(QIDS, 3, seed)) if qid in f)
        chosen = RANKER.with_(**changed.fold_settings[where])
        assert changed.values[qid] == Table(seed, dict.fromkeys(held_out, other)).values(chosen)[qid]


def test_the_test_above_can_fail():
    """Choosing on all topics does change with the values held out."""
    differ = 0
    for seed in range(30):
        held_out = folds_of(QIDS, 3, seed)[0]
        plain = tune(Table(seed), RANKER, SPACE, method="grid", folds=3, seed=seed)
        changed = tune(Table(seed, dict.fromkeys(held_out, 1)), RANKER, SPACE, method="grid", folds=3, seed=seed)
        differ += plain.settings != changed.settings
    assert differ > 0


@METHODS
@pytest.mark.parametrize("seed", range(5))
def test_the_number_is_that_of_the_trace(tmp_path, method, seed):
    """Cross-validation by hand, over the lines of the trace."""
    trace = tmp_path / "trace.jsonl"
    found = tune(Table(seed), RANKER, SPACE, method=method, folds=3, seed=seed, budget=20, trace=trace)
    _, *lines = [json.loads(line) for line in trace.read_text().splitlines()]
    table = {settings_key(line["settings"]): line["values"] for line in lines}
    assert len(table) == len(lines) == found.tried
    assert lines[0]["settings"] == {"mu": 200.0, "lam": 0.5}
    assert found.default_values == lines[0]["values"]
    scored = {}
    for held_out, chosen in zip(folds_of(QIDS, 3, seed), found.fold_settings, strict=True):
        others = [qid for qid in QIDS if qid not in held_out]

        def mean(values, others=others):
            return np.mean([values[qid] for qid in others])

        reached = mean(table[settings_key(chosen)])
        if method != "hill":  # a climb may not have met the best of what other folds met
            assert reached == max(map(mean, table.values()))
        assert reached >= mean(lines[0]["values"])
        scored.update({qid: table[settings_key(chosen)][qid] for qid in held_out})
    assert found.values == scored
    assert found.mean == pytest.approx(np.mean(list(scored.values())), abs=1e-15)
    if method != "hill":
        best = max(lines, key=lambda line: np.mean(list(line["values"].values())))
        assert found.settings == best["settings"]


@METHODS
def test_no_setting_is_run_twice(method):
    problem = Table(3)
    found = tune(problem, RANKER, SPACE, method=method, folds=3)
    assert len(set(problem.asked)) == len(problem.asked) == found.tried
    assert problem.asked[0] == (200.0, 0.5)


def test_the_budget_of_random_and_hill():
    problem = Table(1)
    tune(problem, RANKER, SPACE, method="random", folds=3, budget=4)
    assert len(problem.asked) in (4, 5)  # the start may be among the sample
    problem = Table(1)
    tune(problem, RANKER, SPACE, method="hill", folds=3, budget=1)
    assert len(problem.asked) <= 2  # all climbs begin with the same step


def test_ties_go_to_the_setting_started_from():
    class Flat(Table):
        def values(self, ranker):
            return dict.fromkeys(QIDS, 0.5)

    for method in ("grid", "random", "hill"):
        found = tune(Flat(0), RANKER, SPACE, method=method, folds=3)
        assert found.settings == {"mu": 200.0, "lam": 0.5}
        assert found.mean == found.default_mean == 0.5


def test_what_cannot_be_tuned_is_said_before_anything_is_run(tmp_path):
    trace = tmp_path / "trace.jsonl"
    problem = Table(0)
    for space, options, told in (
        ({}, {}, "nothing to tune: ql"),
        ({"mu": (100.0, 0.0)}, {}, "mu .* must be in .0, 1e\\+09.; got 0.0"),
        (SPACE, {"method": "best"}, "unknown method 'best'"),
        (SPACE, {"method": "grid", "budget": 8}, "a grid over mu, lam has 9 settings, more than the budget of 8"),
        (SPACE, {"folds": 8}, "folds must be between 2 and the number of topics .7.; got 8"),
    ):
        with pytest.raises(ParameterError, match=told):
            tune(problem, RANKER, space, trace=trace, **options)
    assert problem.asked == []
    assert not trace.exists()
    assert tune(problem, RANKER, SPACE, method="grid", budget=9, folds=3).tried == 9


# -- the trace ---------------------------------------------------------------------------------------------------


@METHODS
@pytest.mark.parametrize("torn", ["", '{"settings": {"mu": 1', '{"settings": {"mu": 100.0, "lam": 0.1}, "values": {}}'])
def test_a_trace_cut_anywhere_is_continued(tmp_path, method, torn):
    trace = tmp_path / "trace.jsonl"
    options = {"method": method, "folds": 3, "budget": 6 if method == "random" else 500, "trace": trace}
    whole = Table(5)
    found = tune(whole, RANKER, SPACE, **options)
    lines = trace.read_text().splitlines(keepends=True)
    for kept in (1, 2, len(lines) // 2, len(lines)):
        trace.write_text("".join(lines[:kept]) + torn)
        problem = Table(5)
        again = tune(problem, RANKER, SPACE, **options)
        assert problem.asked == whole.asked[kept - 1 :]
        assert trace.read_text() == "".join(lines)
        assert (again.resumed, again.tried) == (kept - 1, found.tried)
        assert (again.settings, again.values) == (found.settings, found.values)
        assert again.fold_settings == found.fold_settings


def test_another_method_goes_on_with_the_same_trace(tmp_path):
    trace = tmp_path / "trace.jsonl"
    tune(Table(5), RANKER, SPACE, method="grid", folds=3, trace=trace)
    problem = Table(5)
    resumed = tune(problem, RANKER, SPACE, method="hill", folds=4, seed=9, trace=trace)
    assert problem.asked == []
    assert resumed.values == tune(Table(5), RANKER, SPACE, method="hill", folds=4, seed=9).values


def test_identity_tells_tunings_apart():
    base = identity_of(Table(0), RANKER)
    assert identity_of(Table(1), RANKER) == base
    others = []
    for name, value in (
        ("measure", "P@5"),
        ("hits", 10),
        ("candidates", {"q1": np.array([1, 2])}),
        ("snapshot", SimpleNamespace(fingerprint="e" * 32)),
        ("qrels", Qrels({qid: {"d1": 2} for qid in QIDS})),
        ("queries", [SimpleNamespace(qid=qid, text="other words") for qid in QIDS]),
    ):
        problem = Table(0)
        setattr(problem, name, value)
        others.append(identity_of(problem, RANKER))
    others.append(identity_of(Table(0), RANKER.with_(smoothing="jm")))
    others.append(identity_of(Table(0), make_ranker("lucene-qld")))
    assert len({json.dumps(other) for other in [base, *others]}) == len(others) + 1


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("not json", ":2: not a trace line"),
        ("[]", ":2: not a trace line"),
        ('{"settings": {"mu": 1.0}}', ":2: not a trace line: no 'values'"),
        ('{"settings": {"mu": 1.0}, "values": {"q0": 1.0}}', ":2: not a trace line: it has other topics"),
        ('{"settings": {"mu": 1.0}, "values": {"q0": "high"}}', ":2: not a trace line"),
    ],
)
def test_a_damaged_line_is_named(tmp_path, line, told):
    path = tmp_path / "trace.jsonl"
    path.write_text('{"tuning": {"model": "ql"}}\n' + line + "\n")
    with pytest.raises(InputError) as caught:
        Trace(path, {"model": "ql"}, QIDS)
    assert f"{path}{told}" in caught.value.message


def test_what_is_no_trace(tmp_path):
    path = tmp_path / "trace.jsonl"
    for content in (b"\xff\n", b'{"tuning": 1', b'{"tuning": 1\n', b"[" * 100_000 + b"\n"):
        path.write_bytes(content)
        with pytest.raises(InputError, match="not a trace"):
            Trace(path, {}, QIDS)
        assert path.read_bytes() == content
    with pytest.raises(InputError, match="not a trace"):
        Trace(tmp_path, {}, QIDS)


def test_two_tunings_do_not_share_a_trace(tmp_path):
    trace = Trace(tmp_path / "trace.jsonl", {}, QIDS)
    with pytest.raises(InputError, match="another tuning is using this trace"):
        Trace(tmp_path / "trace.jsonl", {}, QIDS)
    trace.close()
    Trace(tmp_path / "trace.jsonl", {}, QIDS).close()


def test_without_a_file_nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tune(Table(0), RANKER, SPACE, folds=3)
    assert list(tmp_path.iterdir()) == []


# -- real collections --------------------------------------------------------------------------------------------

WORDS = [f"w{i:02d}" for i in range(40)]


@pytest.fixture(scope="module")
def snapshot() -> Snapshot:
    """700 documents, so that more than are remembered per first pass match a query."""
    dice = np.random.default_rng(7)
    themes = dice.dirichlet(np.full(len(WORDS), 0.2), size=8)
    counts = np.array([dice.multinomial(dice.integers(5, 80), themes[i % 8]) for i in range(700)])
    return Snapshot.from_counts(counts, WORDS)


@pytest.fixture(scope="module")
def queries(snapshot) -> list[Query]:
    return [Query.from_words(snapshot, words, qid=str(i)) for i, words in enumerate((["w01", "w02"], ["w10"], ["w20"]))]


@pytest.fixture(scope="module")
def qrels() -> Qrels:
    return Qrels({str(i): {f"d{d}": 1 for d in range(i, 700, 8)} for i in range(3)})


def test_remembered_first_passes_change_nothing(snapshot, queries):
    plain, staged = Engine(snapshot), StagedEngine(snapshot)
    for name, settings_ in (
        ("sd3", [{"fb_docs": n, "precision": k} for n in (5, 250, 400, 10) for k in (0.1, 0.5)]),
        ("rm3", [{"fb_docs": 5}, {"fb_docs": 300}, {"fb_docs": 5, "b": 1.0}, {"fb_docs": 5, "first_stage": "ql"}]),
        ("tfidf", [{"fb_docs": 5}, {"fb_docs": 700}]),
    ):
        for changes in settings_:
            ranker = make_ranker(name).with_(**changes)
            for a, b in zip(plain.rank(ranker, queries), staged.rank(ranker, queries), strict=True):
                assert a.docs.tolist() == b.docs.tolist(), (name, changes)
                assert a.scores.tolist() == b.scores.tolist()
                assert a.feedback.docs.tolist() == b.feedback.docs.tolist()


def test_a_shared_first_pass_is_walked_once(snapshot, queries, monkeypatch):
    walked = []
    first = Engine.first_documents
    monkeypatch.setattr(
        Engine, "first_documents", lambda self, results, depth: walked.extend(results) or first(self, results, depth)
    )
    staged = StagedEngine(snapshot)
    for n in (5, 10, 50, 100):
        for precision in (0.1, 0.5):
            list(staged.rank(make_ranker("sd3").with_(fb_docs=n, precision=precision), queries))
    assert len(walked) == len(queries)
    list(staged.rank(make_ranker("sd3").with_(fb_docs=300), queries))
    list(staged.rank(make_ranker("sd3").with_(fb_docs=300), queries))
    assert len(walked) <= 2 * len(queries)
    list(staged.rank(make_ranker("sd3").with_(fb_docs=5, k1=3.0), queries))
    assert len(walked) <= 3 * len(queries)


def test_values_are_those_of_a_search(snapshot, queries, qrels, monkeypatch):
    monkeypatch.setattr(Snapshot, "analyze", lambda self, text: text.split())
    problem = Problem(snapshot, queries, qrels, measure="P@5", hits=100)
    topics = [Topic(query.qid, query.text) for query in queries]
    for changes in ({"fb_docs": 5}, {"fb_docs": 50}, {"original_query_weight": 0.9}):
        ranker = make_ranker("sd3").with_(**changes)
        measured = evaluate(search(snapshot, topics, ranker, hits=100), qrels, ["P@5"]).per_topic["P@5"]
        assert problem.values(ranker) == measured


def test_only_topics_with_relevant_documents_count(snapshot, queries):
    unknown = Query.from_words(snapshot, ["zzyzx"], qid="9")
    qrels = Qrels({"0": {"d0": 1}, "1": {"d1": 0}, "9": {"d5": 1}, "77": {"d1": 1}})
    problem = Problem(snapshot, [*queries, unknown], qrels)
    assert problem.qids == ["0", "9"]
    assert problem.values(make_ranker("bm25"))["9"] == 0.0  # nothing found is nothing, not left out
    with pytest.raises(InputError, match="1 of the topics have relevant documents"):
        Problem(snapshot, queries, qrels)


def test_reranking_ranks_the_candidates_alone(snapshot, queries, qrels):
    candidates = {query.qid: np.array([8, 9, 10, 16, 17, 18]) for query in queries}
    problem = Problem(snapshot, queries, qrels, measure="R@1000", candidates=candidates)
    values = problem.values(make_ranker("bm25"))
    run = Run({q: Ranking([f"d{d}" for d in docs], np.zeros(len(docs))) for q, docs in candidates.items()}, "x")
    assert values == evaluate(run, qrels, ["R@1000"]).per_topic["R@1000"]
    assert all(values.values())


def test_a_profile_says_all_and_is_taken_back(tmp_path):
    ranker = make_ranker("sd3", ["fb_docs=7", "smoothing=dirichlet", "precision=0.125"])
    write_profile(tmp_path / "best.json", ranker)
    assert make_ranker("sd3", profile=str(tmp_path / "best.json")) == ranker
    assert json.loads((tmp_path / "best.json").read_text()) == {"sd3": ranker.settings()}
