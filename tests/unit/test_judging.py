"""Judging: a journal that loses nothing, the learner against a plain solver, agreement, stopping, projects."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import hypergeom
from sklearn.metrics import cohen_kappa_score
from sklearn.svm import LinearSVC

from sdretrieval.collection.records import Qrels, Run, Topic
from sdretrieval.core.errors import InputError, ParameterError, SdretrievalError
from sdretrieval.evaluate import evaluate
from sdretrieval.evaluate.measures import as_run
from sdretrieval.index.snapshot import Snapshot
from sdretrieval.learn.judging import Features, Learner, Project, certificate, price, read_judged, recall_bound
from sdretrieval.learn.judging.agreement import agreement
from sdretrieval.learn.judging.journal import Journal, entry_of, written
from sdretrieval.learn.judging.learner import COST, ENOUGH, FIRST, FIRST_COUNTS, PATIENCE, RATIO, TOPIC_SHARE
from sdretrieval.learn.judging.simulation import simulate
from sdretrieval.learn.judging.stopping import RecallWatch
from sdretrieval.ranking.interactive import Index

WORDS = "bee hive honey queen swarm rail train track steam coal rain snow wind cloud storm".split()


def collection(n: int = 120, seed: int = 0) -> tuple[Snapshot, np.ndarray]:
    """Documents about bees (one in eight, relevant), trains or the weather."""
    rng = np.random.default_rng(seed)
    theme = rng.choice([0, 1, 2], size=n, p=[0.125, 0.5, 0.375])
    p = np.full((3, 15), 0.02)
    for t in range(3):
        p[t, 5 * t : 5 * t + 5] = 0.16
    counts = np.array([rng.multinomial(12, p[t] / p[t].sum()) for t in theme])
    return Snapshot.from_counts(counts, WORDS), theme == 0


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.setattr(Snapshot, "analyze", lambda self, text: text.split())
    made = Project(Index(collection()[0]), folder=tmp_path)
    made.add_topics([Topic("1", "bee honey"), Topic("2", "steam")])
    return made


# -- the journal ---------------------------------------------------------------------------------------------------


@given(st.lists(st.text(max_size=20), max_size=12), st.integers(0, 400), st.booleans())
@settings(max_examples=60)
def test_a_torn_end_is_cut_off_and_nothing_else(texts: list[str], cut: int, add: bool) -> None:
    path = Path(os.environ.get("TMPDIR", "/tmp")) / f"sdretrieval-journal-{os.getpid()}"
    path.unlink(missing_ok=True)
    try:
        first = Journal(path, lambda entry: None)
        for text in texts:
            first.add(lambda text=text: {"do": "judge", "text": text})
        whole = path.read_bytes() if texts else b""
        cut = min(cut, len(whole))
        path.write_bytes(whole[: len(whole) - cut])
        kept = whole[: len(whole) - cut].count(b"\n")
        seen: list[str] = []
        second = Journal(path, lambda entry: seen.append(entry["text"]))
        second.refresh()
        assert seen == texts[:kept]
        if add:
            second.add(lambda: {"do": "judge", "text": "more"})
            seen.clear()
            Journal(path, lambda entry: seen.append(entry["text"])).refresh()
            assert seen == [*texts[:kept], "more"]
    finally:
        path.unlink(missing_ok=True)


def test_damage_inside_is_an_error_that_names_the_line(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    journal = Journal(path, lambda entry: None)
    for i in range(3):
        journal.add(lambda i=i: {"do": "judge", "i": i})
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0] + lines[1].replace(b'"i":1', b'"i":7') + lines[2])
    with pytest.raises(InputError, match=f"{path}:2: not an entry"):
        Journal(path, lambda entry: None).refresh()
    path.write_bytes(lines[1] + lines[0])
    with pytest.raises(InputError, match="entry 1 follows 2"):
        Journal(path, lambda entry: None).refresh()


@pytest.mark.parametrize("line", [b"", b"x", b"00000000 {}", written({"n": "1", "do": "x"})[:-1], b"\xff" * 20])
def test_no_entry(line: bytes) -> None:
    assert entry_of(line) is None


def test_two_writers_take_turns(tmp_path: Path) -> None:
    seen: list[list[int]] = [[], []]
    one, two = (Journal(tmp_path / "j", lambda e, s=s: s.append(e["i"])) for s in seen)
    for i in range(10):
        (one if i % 2 else two).add(lambda i=i: {"do": "judge", "i": i})
    one.refresh()
    two.refresh()
    assert seen[0] == seen[1] == list(range(10))


KILLED = """
import os, random, sys, time
from pathlib import Path
from sdretrieval.learn.judging.journal import Journal

path = Path(sys.argv[1])
for _ in range(int(sys.argv[2])):
    out, into = os.pipe()
    child = os.fork()
    if not child:
        os.close(out)
        journal = Journal(path, lambda entry: None)
        while True:
            n = journal.add(lambda: {"do": "judge", "text": "x" * random.randrange(3000)})["n"]
            os.write(into, b"%d " % n)
    os.close(into)
    told = os.read(out, 1 << 16)
    time.sleep(random.random() / 50)
    os.kill(child, 9)
    os.waitpid(child, 0)
    told += os.read(out, 1 << 20)
    os.close(out)
    seen = []
    Journal(path, lambda entry: seen.append(entry["n"])).refresh()
    assert seen == list(range(1, len(seen) + 1)) and seen[-1] >= max(map(int, told.split())), (seen[-3:], told[-20:])
print(seen[-1])
"""


def test_killed_at_any_moment_no_click_is_lost(tmp_path: Path) -> None:
    """What was told to be written is there."""
    words = [sys.executable, "-c", KILLED, str(tmp_path / "journal"), os.environ.get("SDRETRIEVAL_KILLS", "10")]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


# -- the learner ---------------------------------------------------------------------------------------------------


def test_the_solver_finds_what_liblinear_finds() -> None:
    snapshot, relevant = collection()
    features = Features.of(snapshot)
    learner = Learner(features, ["bee"])
    docs = [*np.flatnonzero(relevant)[:6], *np.flatnonzero(~relevant)[:90]]
    for doc in docs:
        learner.learn(int(doc), bool(relevant[doc]))
    x = dense(features)
    weight = {True: RATIO * len(docs) / (6 * (1 + RATIO)), False: len(docs) / (90 * (1 + RATIO))}
    svm = LinearSVC(C=COST, class_weight=weight, tol=1e-6, max_iter=100_000).fit(x[docs], relevant[docs])
    topic = np.zeros(snapshot.n_terms)
    topic[snapshot.term_id("bee")] = 1.0
    expected = x @ (svm.coef_[0] + TOPIC_SHARE * np.linalg.norm(svm.coef_[0]) / 7 * topic)
    assert np.corrcoef(learner.scores, expected)[0, 1] > 0.999
    assert np.abs(learner.scores - expected).max() < 0.02 * np.abs(expected).max()


@given(st.lists(st.tuples(st.integers(0, 30), st.sampled_from([True, False, None])), max_size=25))
@settings(max_examples=25)
def test_what_was_learnt_does_not_depend_on_how(clicks: list[tuple[int, bool | None]]) -> None:
    """Judged, judged otherwise, taken back: about the same as judging what counts in the end."""
    features = Features.of(collection(40)[0])
    one, two = Learner(features, ["bee", "honey"]), Learner(features, ["bee", "honey"])
    for doc, label in clicks:
        one.learn(doc, label)
        one.best()
    two.set(one.labels)
    assert np.abs(one.scores - two.scores).max() < 0.05 * max(1.0, np.abs(two.scores).max())


def test_it_finds_what_is_relevant_first_whatever_the_order() -> None:
    snapshot, relevant = collection()
    played = simulate(Learner(Features.of(snapshot), ["bee"]), relevant)
    assert played.wss(0.95) > 0.6
    order = np.random.default_rng(1).permutation(len(relevant))
    other = Snapshot.from_counts(snapshot.by_doc[order].toarray(), list(snapshot.vocabulary))
    again = simulate(Learner(Features.of(other), ["bee"]), relevant[order])
    assert abs(again.wss(0.95) - played.wss(0.95)) <= 0.01


def dense(features: Features) -> np.ndarray:
    x = np.zeros((features.snapshot.n_docs, features.snapshot.n_terms))
    for doc in range(len(x)):
        terms, values = features.row(doc)
        x[doc, terms] = values
    return x


@given(st.lists(st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=40), min_size=1, max_size=8))
@settings(max_examples=25)
def test_words_at_the_start_count_more(documents: list[list[str]]) -> None:
    snapshot = Snapshot.from_words(documents)
    features = Features.of(snapshot)
    for d, document in enumerate(documents):
        expected = {w: document.count(w) + FIRST_COUNTS * document[:FIRST].count(w) for w in document}
        span = slice(snapshot.doc_ptr[d], snapshot.doc_ptr[d + 1])
        terms = [snapshot.term(int(t)) for t in snapshot.doc_terms[span]]
        assert dict(zip(terms, features.counts[span].tolist(), strict=True)) == expected
    plain = Features.of(Snapshot.from_counts(snapshot.by_doc.toarray(), list(snapshot.vocabulary)))
    assert (plain.counts == snapshot.doc_counts).all()  # no positions there
    weights = np.arange(snapshot.n_terms, dtype=np.float32) - 2
    assert np.allclose(features.rated(weights), dense(features) @ (weights / features.idf), atol=1e-4)
    x = dense(features)
    assert np.allclose(features.typical, (x @ x.T).mean(axis=1), atol=1e-5)


def test_where_the_words_lead_nowhere_typical_documents_follow() -> None:
    features = Features.of(collection(120)[0])
    learner, x = Learner(features, ["bee"]), dense(features)
    for click in range(3 * PATIENCE):
        doc, unseen = learner.best(), np.ones(len(x), dtype=bool)
        assert doc is not None
        judged = list(learner.labels)
        unseen[judged] = False
        if PATIENCE <= click < 2 * PATIENCE:  # all documents' mean, of as many as are unseen, less that of the judged
            rating = x @ (x.sum(axis=0) / unseen.sum() - x[judged].mean(axis=0))
        else:
            rating = learner.scores
        assert rating[doc] >= rating[unseen].max() - 1e-5
        learner.learn(doc, False)
    for doc in [doc for doc in range(len(x)) if doc not in learner.labels][: ENOUGH + PATIENCE]:
        learner.learn(doc, sum(learner.labels.values()) < ENOUGH)
    doc = learner.best()
    assert doc is not None and learner.scores[doc] == max(
        learner.scores[d] for d in range(len(x)) if d not in learner.labels
    )


def test_nothing_left_and_nothing_known() -> None:
    features = Features.of(collection(5)[0])
    learner = Learner(features, ["unheard-of"])
    for _ in range(5):
        doc = learner.best()
        assert doc is not None
        learner.learn(doc, False)
    assert learner.best() is None
    with pytest.raises(ParameterError, match="nothing to find"):
        simulate(Learner(features), np.zeros(5, dtype=bool))


# -- agreement -----------------------------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=30))
def test_kappa_is_scikit_learns(pairs: list[tuple[int, int]]) -> None:
    one, two = ({("1", str(i)): pair[k] for i, pair in enumerate(pairs)} for k in (0, 1))
    found = agreement("a", "b", one, {**two, ("1", "only b"): 1})
    y = np.array(pairs) > 0
    if len(np.unique(y)) == 1:
        assert found.kappa is None
    else:
        assert found.kappa == pytest.approx(cohen_kappa_score(*y.T))
    assert found.both == len(pairs)
    assert len(found.disagreements) == (y[:, 0] != y[:, 1]).sum()


# -- stopping ------------------------------------------------------------------------------------------------------


def test_the_bound_is_true_as_often_as_it_says() -> None:
    """Against the assumption's own edge: documents in random order, and looked at after every click."""
    rng, wrong = np.random.default_rng(0), 0
    for _ in range(300):
        hits = rng.permutation(np.arange(150) < rng.integers(1, 40))
        watch = RecallWatch(150, 0.8, 0.9)
        stop = next((n for n, hit in enumerate(hits, 1) if watch.click(bool(hit))), 150)
        wrong += hits[:stop].sum() / hits.sum() < 0.8
    assert wrong / 300 <= 0.1 + 2 * np.sqrt(0.1 * 0.9 / 300)


@given(st.lists(st.booleans(), max_size=60), st.integers(0, 40))
def test_the_bound_and_the_watch_say_the_same(clicks: list[bool], unseen: int) -> None:
    documents = len(clicks) + unseen
    bound = recall_bound(clicks, documents)
    assert 0 <= bound.recall <= 1
    assert bound.found <= bound.at_most <= bound.found + unseen
    watch, said = RecallWatch(documents, 0.8), False
    for n, click in enumerate(clicks, 1):
        said = watch.click(click)
        now = recall_bound(clicks[:n], documents, target=0.8)
        assert said == (now.recall >= 0.8 - 1e-9 and now.found > 0)
    if not unseen and any(clicks):
        assert bound.recall == 1


@given(st.integers(1, 60), st.integers(1, 300), st.sampled_from([0.7, 0.8, 0.95]))
def test_a_price_is_the_least_sample_that_certifies(found: int, unseen: int, target: float) -> None:
    named = price(found, unseen, target)
    if named.sample:
        assert certificate(found, unseen, named.sample, 0).recall >= target - 1e-9
        if named.sample > 1:
            assert certificate(found, unseen, named.sample - 1, 0).recall < target
    else:
        assert found / (found + unseen) >= target - 1e-9


def test_certificates_are_true_as_often_as_they_say() -> None:
    """Exactly, by the hypergeometric distribution: the chance of samples whose certificate is false."""
    for missing in (0, 1, 3, 10, 40):
        wrong = sum(
            hypergeom.pmf(hits, 100, missing, 30)
            for hits in range(min(30, missing) + 1)
            if certificate(10, 100, 30, hits).recall > (10 + hits) / (10 + missing) + 1e-12
        )
        assert wrong <= 0.05


@pytest.mark.parametrize("call", [
    lambda: recall_bound([True], 10, 1.0),
    lambda: price(3, 10, 0.0),
    lambda: certificate(1, 10, 11, 0),
    lambda: RecallWatch(10, 2.0),
])  # fmt: skip
def test_shares_outside_their_range(call) -> None:
    with pytest.raises(ParameterError):
        call()


# -- projects ------------------------------------------------------------------------------------------------------


def test_judge_undo_and_open_again(project: Project, tmp_path: Path) -> None:
    offer = project.next("1", "ann")
    assert offer is not None and offer.left == 120 and offer.words
    project.judge("1", offer.docid, 1, "ann", note="clear", way=offer.way)
    project.judge("1", offer.docid, 0, "ann")
    project.judge("1", "d3", 2, "ann")
    project.judge("1", "d4", None, "ann")
    assert project.qrels()["1"] == {offer.docid: 0, "d3": 2}
    assert (undone := project.undo("ann")) is not None and undone.docid == "d4"
    project.undo("ann")
    project.undo("ann")
    assert project.qrels()["1"] == {offer.docid: 1}
    assert project.judgments()[0].note == "clear"
    assert project.undo("nobody") is None
    again = Project(project.index, folder=tmp_path)
    assert again.qrels() == project.qrels() == read_judged(project.folder)
    assert again.topics == project.topics


def test_two_processes_see_each_other(project: Project, tmp_path: Path) -> None:
    other = Project(project.index, folder=tmp_path)
    offer = project.next("1", "ann")
    assert offer is not None
    project.judge("1", offer.docid, 0, "ann")
    following = other.next("1", "bob")
    assert following is not None and following.docid != offer.docid
    assert other.next("1", "bob", "second").docid == offer.docid  # type: ignore[union-attr]


def test_two_assessors(project: Project) -> None:
    for docid, ann, bob in (("d1", 1, 1), ("d2", 1, 0), ("d3", 0, 0), ("d4", 0, 0)):
        project.judge("1", docid, ann, "ann")
        project.judge("1", docid, bob, "bob")
    found = project.agreement("ann", "bob")
    assert (found.both, found.share, found.kappa) == (4, 0.75, 0.5)
    assert found.disagreements == (("1", "d2", 1, 0),)
    assert project.qrels()["1"]["d2"] == 1  # the higher of as many
    project.judge("1", "d2", 0, "carl")
    assert project.qrels()["1"]["d2"] == 0
    assert project.assessors == ["ann", "bob", "carl"]


def test_pools_and_measures(project: Project) -> None:
    rank = lambda docids: {d: -float(i) for i, d in enumerate(docids)}  # noqa: E731
    a = as_run({"1": rank(["d1", "d2", "d3"]), "2": rank(["d5", "d6"])})
    b = as_run({"1": rank(["d3", "d4", "d1"]), "2": rank(["d6", "d7"])})
    project.add_run("a", a)
    project.add_run("b", b)
    assert project.pool_from_runs(depth=2) == 4 + 3
    assert project.pool_from_runs(depth=2) == 0
    offer = project.next(None, way="runs")
    assert offer is not None and offer.docid in project.state(offer.qid).pool
    truth = {"1": {"d1": 1, "d2": 0, "d3": 0, "d4": 1}, "2": {"d5": 0, "d6": 1, "d7": 0}}
    while (offer := project.next(None, way="runs")) is not None:
        project.judge(offer.qid, offer.docid, truth[offer.qid][offer.docid])
    for one in project.measures(["AP", "P@5", "nDCG@10"]):
        exact = evaluate({"a": a, "b": b}[one.run], truth, [one.measure]).mean[one.measure]
        assert one.low == pytest.approx(exact) and one.high == pytest.approx(exact)
        assert one.estimate == pytest.approx(exact) and one.judged == 1
    assert project.better("a", "b").certain or project.better("a", "b").difference == 0
    assert isinstance(project.pools(), Run) and set(project.pools()["2"].docids) == {"d5", "d6", "d7"}


@pytest.mark.parametrize("way", ["pool", "random", "runs"])
def test_every_way_goes_through_the_pool_of_a_topic(project: Project, way: str) -> None:
    pool = [f"d{i}" for i in range(12)]
    run = as_run({"1": {docid: -float(i) for i, docid in enumerate(pool)}})
    project.pool_from_runs([run])  # a pool made elsewhere, without the runs that it is of
    if way == "runs":
        with pytest.raises(ParameterError, match="no runs to tell apart"):
            project.next("1", "ann", way)
        project.add_run("a", run)
    offered = []
    while (offer := project.next("1", "ann", way)) is not None:
        assert (offer.way, offer.left) == (way, len(pool) - len(offered))
        offered.append(offer.docid)
        project.judge("1", offer.docid, 0, "ann", way=way)
    assert sorted(offered) == sorted(pool)
    assert way == "runs" or (offered == pool) == (way == "pool")


def test_a_certificate_drawn_once(project: Project) -> None:
    assert project.certificate("1") is None
    for docid in ("d1", "d2", "d3"):
        project.judge("1", docid, 1)
    named = project.certify("1", target=0.5)
    assert named == project.price("1", target=0.5) and project.certificate("1") == named.sample
    while (offer := project.next("1", way="certificate")) is not None:
        project.judge("1", offer.docid, 0, way=offer.way)
    proven = project.certificate("1")
    assert not isinstance(proven, int) and proven is not None
    assert proven.recall >= 0.5 and proven.assumption == ""


def test_qrels_in_and_out(project: Project) -> None:
    given_ = Qrels({"1": {"d1": 2, "d2": -1}})
    assert project.import_qrels(given_, "trec") == 2
    assert project.import_qrels(given_, "trec") == 0
    assert project.qrels()["1"] == {"d1": 2, "d2": 0}


@pytest.mark.parametrize("wrong, told", [
    (lambda p: p.judge("1", "nowhere", 1), "not in index"),
    (lambda p: p.judge("9", "d1", 1), "no topic '9'"),
    (lambda p: p.judge("1", "d1", -1), "whole number from 0"),
    (lambda p: p.judge("1", "d1", 1.5), "whole number"),
    (lambda p: p.judge("1", "d1", True), "whole number"),
    (lambda p: p.judge("1", "d1", 1, "two words"), "has a space"),
    (lambda p: p.judge("1", "d1", 1, note="x" * 5000), "at most 4000"),
    (lambda p: p.next("1", way="guess"), "no way 'guess'"),
    (lambda p: p.next(), "which topic"),
    (lambda p: p.next("1", way="certificate"), "no sample"),
    (lambda p: p.add_topics([Topic("a b", "x")]), "has a space"),
    (lambda p: p.add_topics([Topic("a", " ")]), "no text"),
    (lambda p: p.add_run("../x", Run({})), "cannot be the name"),
    (lambda p: p.better("a", "b"), "no run 'a'"),
    (lambda p: p.measures(["RR"]), "no bounds"),
    (lambda p: p.pool_from_runs([], 0), "at least 1"),
    (lambda p: Project(p.index, "../../etc", folder=p.folder), "cannot be the name"),
    (lambda p: Project(p.index, "..", folder=p.folder), "cannot be the name"),
])  # fmt: skip
def test_wrong_use_says_so(project: Project, wrong, told: str) -> None:
    with pytest.raises(SdretrievalError, match=told):
        wrong(project)


def test_a_journal_of_another_kind(tmp_path: Path) -> None:
    (tmp_path / "journal.log").write_bytes(written({"n": 1, "do": "dance"}))
    with pytest.raises(InputError, match="'dance'"):
        read_judged(tmp_path)
    (tmp_path / "journal.log").write_bytes(written({"n": 1, "do": "judge", "qid": "1"}))
    with pytest.raises(InputError, match="lacks or mistypes"):
        read_judged(tmp_path)
    with pytest.raises(InputError, match="no judging project"):
        read_judged(tmp_path / "nothing")


def test_words_of_a_topic_are_those_that_stand_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A word that every document repeats may weigh much, and says little: it does not come among the first."""
    monkeypatch.setattr(Snapshot, "analyze", lambda self, text: text.split())
    snapshot, relevant = collection()
    counts = np.hstack([snapshot.by_doc.toarray(), np.where(relevant, 16, 10)[:, None]])
    words = [*(snapshot.term(t) for t in range(len(WORDS))), "said"]
    made = Project(Index(Snapshot.from_counts(counts, words)), folder=tmp_path)
    made.add_topics([Topic("1", "bee honey")])
    for doc, is_relevant in enumerate(relevant.tolist()):
        made.judge("1", made.index.snapshot.docids[doc], int(is_relevant), "ann")
    told = made.words("1", 20)
    assert {word for word, _ in told[:5]} == {"bee", "hive", "honey", "queen", "swarm"}
    assert "said" in [word for word, _ in sorted(told, key=lambda pair: -pair[1])[:5]]
