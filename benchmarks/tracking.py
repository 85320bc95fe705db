"""Speed of online tracking: document-story scores per second, against scikit-learn's ``partial_fit`` in the same run.

A stream of documents with Zipf's words, thousands of stories followed at once, one in ten documents learnt from by one
story. Ours: the whole online loop (score, decide, learn, general English that grows). The peers score every document
for every story and learn from the same documents:

- a loop of binary ``MultinomialNB`` classifiers, one for each story (on a share of them: a score costs the same);
- one ``MultinomialNB`` with a class for each story, so that all stories are one product.

Must hold: every model at 50,000 scores per second or more, and at least as fast as either peer.

    python -m benchmarks.tracking
"""

from __future__ import annotations

import sys
import time

import numpy as np
from scipy.sparse import csr_matrix

from sdretrieval.learn.tracking.story_models import MODELS, make_model
from sdretrieval.learn.tracking.stream_background import Background, StreamDocument
from sdretrieval.learn.tracking.tracker import Tracker

STORIES, DOCUMENTS, EARLIER, WORDS, LENGTH = 2000, 1000, 2000, 30_000, 120
PEER_STORIES, PEER_DOCUMENTS, WIDE_DOCUMENTS = 100, 50, 10  # of the peers: a score costs the same
NEEDED = 50_000


def documents(n: int, first: int, rng: np.random.Generator) -> list[StreamDocument]:
    """A third of the words from the document's subject, the rest from a Zipf distribution."""
    p = 1 / np.arange(10, WORDS + 10)
    p /= p.sum()
    made = []
    for i in range(n):
        subject = rng.integers(200)
        own = WORDS - 1 - (subject * 100 + rng.zipf(1.4, LENGTH // 3) % 100)
        words, counts = np.unique(np.concatenate([own, rng.choice(WORDS, 2 * LENGTH // 3, p=p)]), return_counts=True)
        made.append(StreamDocument.make(f"d{first + i}", words, counts, first + i))
    return made


def prepared(name: str, earlier: list[StreamDocument], feedback: dict[str, list[str]]) -> Tracker:
    background = Background(grows=True)
    background.numbers([f"w{i}" for i in range(WORDS)])
    for document in earlier:
        background.count(document)
    background.freeze()
    tracker = Tracker(make_model(name), background, threshold=1e9, feedback=feedback)
    for i in range(STORIES):
        tracker.add_story(f"t{i}", [earlier[i]])
    return tracker


def ours(name: str, earlier: list[StreamDocument], stream: list[StreamDocument], feedback) -> tuple[float, int, int]:
    """Scores per second, documents learnt from, and the most bytes a story takes."""
    tracker = prepared(name, earlier, feedback)
    tracker.process(earlier[0])  # compiles, and inverts the stories
    learnt = 0
    began = time.perf_counter()
    for document in stream:
        step = tracker.process(document)
        learnt += len(step.adapted)
        for _ in step.decisions(only_on_topic=True):
            raise AssertionError("nothing reaches this threshold")
    took = time.perf_counter() - began
    return len(stream) * STORIES / took, learnt, max(story_bytes(tracker))


def story_bytes(tracker: Tracker) -> list[int]:
    """What each story's model takes, the inverted copy included: at most 44 for each of ``max_terms`` words; 16 more
    for each word of the documents remembered (with forgetting) or labelled (sd over a growing background)."""
    sizes = []
    for story in tracker.stories:
        kept = [array for one in story.memory or () for array in (one.words, one.values)]
        kept += [array for one in story.labelled for array in (one.words, one.counts)]
        arrays = (story.words, story.seed, story.learnt, story.weights, *kept)
        sizes.append(sum(array.nbytes for array in arrays) + 12 * len(story.words))
    return sizes


def rows(stream: list[StreamDocument]) -> csr_matrix:
    ptr = np.concatenate([[0], np.cumsum([len(d.words) for d in stream])])
    words, counts = (np.concatenate([getattr(d, what) for d in stream]) for what in ("words", "counts"))
    return csr_matrix((counts, words, ptr), (len(stream), WORDS))


def loop_of_classifiers(earlier: csr_matrix, stream: csr_matrix) -> float:
    from sklearn.naive_bayes import MultinomialNB

    others = earlier.sum(axis=0)
    models = []
    for i in range(PEER_STORIES):
        model = MultinomialNB()
        model.partial_fit(earlier[i], [1], classes=[0, 1])
        model.partial_fit(np.asarray(others), [0])
        models.append(model)
    began = time.perf_counter()
    for i in range(PEER_DOCUMENTS):
        row = stream[i]
        for model in models:
            model.predict_joint_log_proba(row)
        if i % 10 == 0:
            models[i % PEER_STORIES].partial_fit(row, [1])
    return PEER_STORIES * PEER_DOCUMENTS / (time.perf_counter() - began)


def one_classifier(earlier: csr_matrix, stream: csr_matrix) -> float:
    from sklearn.naive_bayes import MultinomialNB

    model = MultinomialNB()
    model.partial_fit(earlier[:STORIES], np.arange(STORIES), classes=np.arange(STORIES))
    began = time.perf_counter()
    for i in range(WIDE_DOCUMENTS):
        row = stream[i]
        model.predict_joint_log_proba(row)
        if i % 10 == 0:
            model.partial_fit(row, [i])
    return STORIES * WIDE_DOCUMENTS / (time.perf_counter() - began)


def main() -> int:
    rng = np.random.default_rng(0)
    earlier = documents(EARLIER, 0, rng)
    stream = documents(DOCUMENTS, EARLIER, rng)
    feedback = {d.docid: [f"t{i % STORIES}"] for i, d in enumerate(stream) if i % 10 == 0}
    print(f"{DOCUMENTS} documents of {LENGTH} words x {STORIES} stories; one document in ten is learnt from")
    good, slowest = True, float("inf")
    for name in MODELS:
        rate, learnt, size = ours(name, earlier, stream, feedback)
        good &= rate >= NEEDED and learnt == len(feedback)
        slowest = min(slowest, rate)
        print(f"  {name:6} {rate:14,.0f} scores per second   {learnt} learnt, at most {size:,} bytes a story")
    before, coming = rows(earlier), rows(stream)
    for label, peer in (
        (f"scikit-learn, a loop of {PEER_STORIES} MultinomialNB", loop_of_classifiers),
        (f"scikit-learn, one MultinomialNB of {STORIES} classes", one_classifier),
    ):
        rate = peer(before, coming)
        good &= slowest >= rate
        print(f"  {label}: {rate:,.0f} scores per second; our slowest model is {slowest / rate:,.1f} x as fast")
    print("holds" if good else "DOES NOT HOLD")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
