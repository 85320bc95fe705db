"""The online loop: causal, bounded, and the same however it is interrupted."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sdretrieval.core.errors import InputError, ParameterError, SdretrievalError
from sdretrieval.core.saved_arrays import load_arrays, save_arrays
from sdretrieval.learn.tracking import score_loops as loops
from sdretrieval.learn.tracking.decisions import Outputs
from sdretrieval.learn.tracking.state import CHECKPOINT, JOURNAL, StateFolder, load_tracker, save_tracker
from sdretrieval.learn.tracking.story import Forgetting
from sdretrieval.learn.tracking.story_models import MODELS, make_model
from sdretrieval.learn.tracking.stream_background import GROWTH, Background
from sdretrieval.learn.tracking.tracker import Step, Tracker

Text = list[str]
# Adaptation thresholds that some documents pass and others do not.
ADAPT = {"tfidf": 0.35, "rm": 0.0018, "nb": -11.6, "sd": 0.0019}


def texts(n: int, seed: int = 0, start: int = 0) -> list[tuple[str, Text, int]]:
    """Documents of a few subjects: id, words, time; new words keep coming."""
    rng = np.random.default_rng(seed)
    made = []
    for i in range(start, start + n):
        subject = int(rng.integers(4))
        words = [f"s{subject}-{int(k)}" for k in rng.zipf(1.5, 12) % 30] + [
            f"c{int(k) % 50}" for k in rng.zipf(1.3, 15)
        ]
        made.append((f"d{seed}-{i}", [*words, f"n{seed}-{i // 3}"], 1000 * i))
    return made


def make_tracker(name: str, *, grows: bool = True, forget: bool = False) -> Tracker:
    background = Background(grows=grows)
    if not grows:
        for docid, words, time in texts(30, 9):
            background.count(background.document(docid, words, time))
        background.freeze()
    tracker = Tracker(
        make_model(name),
        background,
        threshold=ADAPT[name] - abs(ADAPT[name]) / 4,
        adapt_threshold=ADAPT[name],
        forgetting=Forgetting("tricube", 20_000.0) if forget else None,
        feedback={"d0-7": ["query", "seed"], "d0-31": ["seed"]},
    )
    tracker.add_story("query", [background.document("q", ["s1-1", "s1-2", "s1-3"])])
    tracker.expect_seed("seed", "d0-3")
    tracker.expect_seed("later", "d0-20")
    return tracker


def follow(tracker: Tracker, stream: list[tuple[str, Text, int]]) -> list[tuple]:
    """Every decision there is, as plain values."""
    steps = (tracker.process(tracker.background.document(*document)) for document in stream)
    return [decision for step in steps for decision in plain(step)]


def plain(step: Step) -> list[tuple]:
    return [(d.docid, d.story, d.score, d.on_topic, d.adapted) for d in step.decisions()]


@pytest.mark.parametrize("forget", [False, True])
@pytest.mark.parametrize("grows", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_the_future_changes_nothing_before_it(name: str, grows: bool, forget: bool) -> None:
    """Three futures, one of them the same documents in another order: all decisions up to the cut are equal bits."""
    past, future = texts(40), texts(20, 5, start=40)
    ends = [future, [future[i] for i in np.random.default_rng(0).permutation(20)], texts(30, 6, start=40), []]
    runs = [follow(make_tracker(name, grows=grows, forget=forget), past + end) for end in ends]
    n = len(runs[-1])
    assert n > 60
    assert any(adapted for *_, adapted in runs[-1])  # something was learnt before the cut
    for run in runs[:-1]:
        assert run[:n] == runs[-1]
    assert runs[0][n:] != runs[1][n:]


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10_000), cut=st.integers(0, 45), order=st.randoms(use_true_random=False))
def test_any_permutation_of_the_future_leaves_the_past(seed: int, cut: int, order) -> None:
    stream = [("d0-" + docid.split("-")[1], words, time) for docid, words, time in texts(45, seed)]
    shuffled = stream[cut:]
    order.shuffle(shuffled)
    name = sorted(MODELS)[seed % 4]
    past = follow(make_tracker(name), stream[:cut])
    assert follow(make_tracker(name), stream[:cut] + shuffled)[: len(past)] == past


def test_a_document_is_scored_before_it_is_learnt_from() -> None:
    """The score in the step is that of a tracker that has not seen the document."""
    stream = texts(50)
    tracker, watched = make_tracker("sd"), make_tracker("sd")
    for docid, words, time in stream:
        before = watched.score(watched.background.document(docid, words, time))
        step = tracker.process(tracker.background.document(docid, words, time))
        assert step.scores.tolist() == before.tolist()
        watched.process(watched.background.document(docid, words, time))


def test_a_seed_is_not_a_trial_of_its_story() -> None:
    tracker = make_tracker("rm")
    found = follow(tracker, texts(10))
    assert [docid for docid, story, *_ in found if story == "seed"] == [f"d0-{i}" for i in range(4, 10)]


def test_given_feedback_is_learnt_whatever_its_score() -> None:
    background = Background.of_counts(np.eye(3), ["a", "b", "c"])
    tracker = Tracker(make_model("rm"), background, feedback={"x": ["t"]})
    tracker.add_story("t", [background.document("s", ["a"])])
    step = tracker.process(background.document("x", ["b"]))
    assert step.adapted == ("t",)
    assert tracker.stories[0].words.tolist() == [0, 1]


def test_labelled_feedback_weighs_as_a_seed() -> None:
    """NB: P = 1 for a document known to be on topic, however unlikely the model finds it."""
    background = Background.of_counts(np.eye(3) * 50, ["a", "b", "c"])
    tracker = Tracker(make_model("nb"), background, feedback={"x": ["t"]}, labelled=True)
    tracker.add_story("t", [background.document("s", ["a"])])
    tracker.process(background.document("x", ["b"] * 3))
    story = tracker.stories[0]
    assert (story.seed.tolist(), story.seed_mass, story.n_seeds, story.n_learnt) == ([1.0, 3.0], 4.0, 1, 1)


@pytest.mark.parametrize("name", MODELS)
def test_inverted_and_single_scoring_agree_to_the_last_bit(name: str) -> None:
    rng = np.random.default_rng(3)
    tracker = make_tracker(name, grows=False)
    for i, (docid, words, time) in enumerate(texts(60, 2)):
        tracker.add_story(f"t{i}", [tracker.background.document(docid, words, time)])
    document = tracker.background.document("d", texts(1, 8)[0][1] + ["s1-1", "s2-2"])
    tracker.score(document)  # inverts
    for slot in rng.permutation(len(tracker.stories))[:20].tolist():
        tracker._estimate(slot)  # the same model, now scored by itself
    tracker._rent = -(10**9)
    mixed = tracker.score(document)
    assert len(tracker._moved) == 20
    tracker._invert()
    assert tracker.score(document).tolist() == mixed.tolist()
    evidence, b = tracker.model.evidence(document, tracker.background)
    plain = [loops.score_one(t.words, t.weights, document.words, evidence) + (t.k * b + t.c) for t in tracker.stories]
    assert plain == mixed.tolist()


# -- background ------------------------------------------------------------------------------------------------------


def test_general_english_by_hand() -> None:
    """Tokens a a b: (cf + ½) / (3 + ½ · 1000); idf log((N+1)/(df+½)) with N = 2."""
    background = Background()
    for docid, words in (("1", ["a", "a"]), ("2", ["b"])):
        background.count(background.document(docid, words))
    background.freeze()
    numbers = background.numbers(["a", "b", "unseen"])
    assert background.p(numbers).tolist() == pytest.approx([2.5 / 503, 1.5 / 503, 0.5 / 503])
    assert background.idf(numbers).tolist() == pytest.approx(np.log([3 / 1.5, 3 / 1.5, 3 / 0.5]).tolist())


def test_general_english_sums_to_one_with_one_unseen_word() -> None:
    """And to more over further ones: how many a stream will bring nobody knows (docs/TRACKING.md)."""
    words = [f"w{i}" for i in range(1500)]
    background = Background.of_counts(np.ones((2, 1500)), words)
    assert background.p(background.numbers([*words, "unseen"])).sum() == pytest.approx(1.0)
    more = background.p(background.numbers([*words, *(f"unseen {i}" for i in range(11))])).sum()
    assert more == pytest.approx(1.0 + 10 * 0.5 / (3000 + 0.5 * 1501))


def test_general_english_is_refreshed_when_tokens_have_grown_by_a_tenth() -> None:
    tracker = make_tracker("rm")
    copies = set()
    for docid, words, time in texts(300):
        tracker.process(tracker.background.document(docid, words, time))
        copies.add(tracker.background.p(np.arange(1))[0])
    assert 30 < len(copies) < 10 + np.log(300) / np.log(GROWTH)


def test_an_earlier_corpus_stays_as_it_is() -> None:
    tracker = make_tracker("rm", grows=False)
    before = tracker.background.p(np.arange(20)).tolist()
    follow(tracker, texts(50))
    assert tracker.background.p(np.arange(20)).tolist() == before


def test_seeds_given_before_the_stream_follow_general_english() -> None:
    """A story started before anything was seen ends as one whose seed came last."""
    stream = texts(60)
    early, late = Tracker(make_model("sd"), Background()), Tracker(make_model("sd"), Background())
    terms = ["s1-1", "s1-2", "c1"]
    early.add_story("t", [early.background.document("q", terms)])
    late.background.document("q", terms)  # the same word numbers
    for tracker in (early, late):
        follow(tracker, stream)
        tracker.background.freeze()
    early._refresh()
    late.add_story("t", [late.background.document("q", terms)])
    assert early.stories[0].weights == pytest.approx(late.stories[0].weights, rel=1e-12)


# -- size ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("forget", [False, True])
def test_memory_of_a_story_is_bounded(forget: bool, monkeypatch) -> None:
    monkeypatch.syspath_prepend(Path(__file__).resolve().parents[2])
    from benchmarks.tracking import story_bytes

    background = Background()
    fading = Forgetting("exponential", 1e6, remember=5) if forget else None
    tracker = Tracker(make_model("rm"), background, adapt_threshold=-1e9, forgetting=fading, max_terms=100)
    tracker.add_story("t", [background.document("q", ["s1-1"])])
    follow(tracker, texts(200))
    assert tracker.stories[0].n_learnt == 200
    assert len(tracker.stories[0].words) == 100
    longest = 28
    assert max(story_bytes(tracker)) <= 44 * 100 + (16 * longest * 5 if forget else 0)


def test_words_kept_are_those_that_say_most() -> None:
    tracker = Tracker(make_model("rm"), Background(), max_terms=3)
    for docid, words in (("1", ["common"] * 90 + ["rare"]), ("2", ["common", "other"])):
        tracker.background.count(tracker.background.document(docid, words))
    tracker.background.freeze()
    tracker.add_story("t", [tracker.background.document("q", ["common", "rare", "rare", "x", "x", "y", "y"])])
    kept = [tracker.background.words[w] for w in tracker.stories[0].words]
    assert kept == ["rare", "x", "y"]


# -- saving ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("forget", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_saved_and_resumed_is_never_interrupted(name: str, forget: bool, tmp_path: Path) -> None:
    stream = texts(80)
    whole = follow(make_tracker(name, forget=forget), stream)
    tracker = make_tracker(name, forget=forget)
    pieces = []
    for start in range(0, 80, 16):
        pieces += follow(tracker, stream[start : start + 16])
        save_tracker(tmp_path / "state", tracker, {"note": start})
        tracker, notes = load_tracker(tmp_path / "state")
        assert notes == {"note": start}
    assert pieces == whole


def test_states_from_elsewhere_are_refused(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("hello")
    with pytest.raises(InputError, match="not a tracker"):
        load_tracker(tmp_path / "text")
    save_arrays(tmp_path / "other", "classifier", {}, {})
    with pytest.raises(InputError, match="holds a classifier, expected a tracker"):
        load_tracker(tmp_path / "other")
    save_arrays(tmp_path / "empty", "tracker", {}, {})
    with pytest.raises(InputError, match="not a tracker this version can use"):
        load_tracker(tmp_path / "empty")
    tracker = make_tracker("rm")
    save_tracker(tmp_path / "whole", tracker)
    header, arrays = load_arrays(tmp_path / "whole", "tracker")
    arrays["topic_words"] = arrays["topic_words"] + 10**6
    save_arrays(tmp_path / "foreign", "tracker", header, arrays)
    with pytest.raises(InputError, match="a number that does not exist"):
        load_tracker(tmp_path / "foreign")


# -- journal ---------------------------------------------------------------------------------------------------------


def run_with_state(folder: Path, stream: list[tuple[str, Text, int]], *, stop: int | None = None) -> list[tuple]:
    """Follow with a state folder; ``stop``: leave after so many documents without any goodbye."""
    with StateFolder(folder, every=10) as state:
        found = []
        if state.exists:
            tracker, steps, _ = state.resume()
            for step in steps[-1:]:
                found += plain(step)
        else:
            tracker = make_tracker("sd")
            state.checkpoint(tracker, [])
        for docid, words, time in stream[tracker.n_seen : stop]:
            document = tracker.background.document(docid, words, time)
            state.before(tracker, document)
            found += plain(tracker.process(document))
            state.after(tracker, list)
        return found


@pytest.mark.parametrize("unfinished", [b"", b'[17, "d0-17", 170'])
@pytest.mark.parametrize("stop", [0, 1, 9, 10, 11, 17, 37])
def test_left_without_goodbye_nothing_is_lost(stop: int, unfinished: bytes, tmp_path: Path) -> None:
    """The last document before the crash is told again, all else once; a line that was not finished is dropped."""
    stream = texts(50)
    whole = follow(make_tracker("sd"), stream)
    first = run_with_state(tmp_path / "s", stream, stop=stop)
    with open(tmp_path / "s" / JOURNAL, "ab") as journal:
        journal.write(unfinished)
    second = run_with_state(tmp_path / "s", stream)
    again = [d for d in second if stop and d[0] == stream[stop - 1][0]]
    assert set(again) <= set(first)
    assert first + second[len(again) :] == whole


@pytest.mark.parametrize("stop", [9, 10, 17])
def test_what_a_power_cut_took_from_the_decisions_is_written_again(stop: int, tmp_path: Path, monkeypatch) -> None:
    """The journal may have reached the disk and the decisions not: of them there is what was synced."""
    synced: dict[int, int] = {}  # length by inode
    sync = os.fsync

    def noted(number: int) -> None:
        sync(number)
        synced[os.fstat(number).st_ino] = os.fstat(number).st_size

    monkeypatch.setattr(os, "fsync", noted)
    stream, file = texts(30), tmp_path / "decisions.jsonl"

    def write(folder: Path, stop: int | None = None) -> bytes:
        outputs = Outputs(str(file))
        with StateFolder(folder, every=5) as state:
            tracker, steps, lengths = state.resume() if state.exists else (make_tracker("sd"), [], [])
            outputs.open(state.notes.get("outputs", ()), lengths).write_again(steps)
            state.notes["outputs"] = outputs.names()
            state.checkpoint(tracker, outputs.synced())
            for docid, words, time in stream[tracker.n_seen : stop]:
                document = tracker.background.document(docid, words, time)
                state.before(tracker, document)
                outputs.write(tracker.process(document))
                state.after(tracker, outputs.synced)
        outputs.close()
        return file.read_bytes()

    whole = write(tmp_path / "undisturbed")
    write(tmp_path / "s", stop)
    os.truncate(file, synced[file.stat().st_ino])
    assert write(tmp_path / "s") == whole


def test_a_crash_between_checkpoint_and_journal_is_mended(tmp_path: Path) -> None:
    """The checkpoint was written, the journal not yet emptied: its lines are known and skipped."""
    stream = texts(30)
    run_with_state(tmp_path / "s", stream, stop=9)
    shutil.copy(tmp_path / "s" / JOURNAL, tmp_path / "old")
    first = run_with_state(tmp_path / "s", stream, stop=10)
    shutil.copy(tmp_path / "old", tmp_path / "s" / JOURNAL)
    second = run_with_state(tmp_path / "s", stream)
    assert first[-1][0] == "d0-9"
    assert second == [d for d in follow(make_tracker("sd"), stream) if int(d[0].split("-")[1]) >= 10]


def test_damaged_journals_and_busy_folders_are_refused(tmp_path: Path) -> None:
    stream = texts(30)
    run_with_state(tmp_path / "s", stream, stop=15)
    with StateFolder(tmp_path / "s") as _, pytest.raises(SdretrievalError, match="another tracker"):
        StateFolder(tmp_path / "s").__enter__()
    lines = (tmp_path / "s" / JOURNAL).read_text().splitlines(keepends=True)
    (tmp_path / "s" / JOURNAL).write_text("".join(lines[:1] + lines[2:]))
    with StateFolder(tmp_path / "s") as state, pytest.raises(InputError, match=r"journal.jsonl:2: document 12 follows"):
        state.resume()
    (tmp_path / "s" / JOURNAL).write_text(json.dumps({"n": 1}) + "\n")
    with StateFolder(tmp_path / "s") as state, pytest.raises(InputError, match=r"journal.jsonl:1: not an entry"):
        state.resume()
    (tmp_path / "s" / JOURNAL).unlink()
    (tmp_path / "s" / CHECKPOINT).write_bytes(b"PK\x03\x04 nothing more")
    with StateFolder(tmp_path / "s") as state, pytest.raises(InputError, match="not a tracker"):
        state.resume()


# -- bad input -------------------------------------------------------------------------------------------------------


def test_bad_input() -> None:
    background = Background()
    for options, told in (
        ({"threshold": 0.5, "adapt_threshold": 0.1}, "adapt_threshold 0.1 is below threshold 0.5"),
        ({"threshold": float("nan")}, "threshold must be a number"),
        ({"max_terms": 0}, "max_terms"),
    ):
        with pytest.raises(ParameterError, match=told):
            Tracker(make_model("rm"), background, **options)
    tracker, document = Tracker(make_model("rm"), background), background.document("d", ["a"])
    tracker.add_story("t", [document])
    for call, told in (
        (lambda: tracker.add_story("u", [background.document("q", [])]), "no seed with a word"),
        (lambda: tracker.add_story("t", [document]), "already followed"),
        (lambda: tracker.learn("u", document), "'u' is not followed"),
        (lambda: background.document("d", {"a": 0}), "counts must be positive"),
        (lambda: Background.of_counts(np.ones((1, 2)), ["a", "b", "c"]), "2 columns, but there are 3 words"),
        (lambda: list(tracker.process(document).decisions(only_on_topic=True)), "without a threshold"),
    ):
        with pytest.raises(ParameterError, match=told):
            call()
