"""The online loop: each document is scored against every topic before anything is learnt from it.

    tracker = Tracker(make_model("sd"), Background.of_snapshot(earlier))
    tracker.add_topic("merger", [tracker.background.document("seed", terms)])
    for step in tracker.track(stream):
        for decision in step.decisions():
            ...

Scoring walks inverted topic models: word to topics. A topic that learns leaves them and is scored by itself until the
inverted models are built anew, which happens once scoring such topics has cost as much as building would (rent until
the rent equals the price). Either way the score is the same to the last bit.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sdretrieval.errors import ParameterError
from sdretrieval.tracking.background import Background
from sdretrieval.tracking.documents import StreamDocument
from sdretrieval.tracking.forgetting import Forgetting
from sdretrieval.tracking.models import TrackingModel
from sdretrieval.tracking.topic import Remembered, TopicState

MAX_TERMS = 5000
_ONE_BY_ONE = 100  # inverting a word of a topic costs a hundredth of scoring one topic by itself


@dataclass(frozen=True, slots=True)
class Decision:
    """One document and one topic. ``on_topic`` is None where no threshold was given."""

    docid: str
    time: int | None
    topic: str
    score: float
    on_topic: bool | None
    adapted: bool


@dataclass(frozen=True, eq=False, slots=True)
class Step:
    """What came of one document: its scores for the topics being followed, in the order of ``topics``."""

    document: StreamDocument
    topics: list[str]  # the tracker's own list: copy it to keep it
    scores: NDArray[np.float64]
    threshold: float | None
    adapted: tuple[str, ...] = ()
    started: tuple[str, ...] = ()  # topics this document is a seed of; it is not scored for them

    def decisions(self, *, only_on_topic: bool = False) -> Iterator[Decision]:
        wanted: Iterable[int] = range(len(self.scores))
        if only_on_topic:
            if self.threshold is None:
                raise ParameterError("without a threshold there is no on-topic")
            wanted = np.flatnonzero(self.scores >= self.threshold).tolist()
        adapted, started = set(self.adapted), set(self.started)
        for i in wanted:
            name = self.topics[i]
            if name in started:
                continue
            score = float(self.scores[i])
            on_topic = None if self.threshold is None else score >= self.threshold
            yield Decision(self.document.docid, self.document.time, name, score, on_topic, name in adapted)


class Tracker:
    """Follows any number of topics through a stream.

    threshold        T_d: on topic from this score on
    adapt_threshold  T_a: learnt from this score on
    feedback         docid -> topics that learn from it when it comes, whatever its score: the thesis's marked documents
    labelled         the documents of ``feedback`` are known to be on topic, and weigh as seeds do
    forgetting       lets learnt documents fade
    max_terms        words kept for each topic: those furthest above general English. Until a topic has met more, its
                     estimate is exactly that of all its documents
    """

    def __init__(
        self,
        model: TrackingModel,
        background: Background | None = None,
        *,
        threshold: float | None = None,
        adapt_threshold: float | None = None,
        feedback: Mapping[str, Iterable[str]] | None = None,
        labelled: bool = False,
        forgetting: Forgetting | None = None,
        max_terms: int = MAX_TERMS,
    ) -> None:
        if max_terms < 1:
            raise ParameterError(f"max_terms must be 1 or more, got {max_terms}")
        for name, value in (("threshold", threshold), ("adapt_threshold", adapt_threshold)):
            if value is not None and np.isnan(value):
                raise ParameterError(f"{name} must be a number, got {value}")
        if threshold is not None and adapt_threshold is not None and adapt_threshold < threshold:
            raise ParameterError(
                f"adapt_threshold {adapt_threshold:g} is below threshold {threshold:g}",
                remedy="Learn only from what is on topic: raise it.",
            )
        self.model = model
        self.background = Background() if background is None else background
        self.threshold, self.adapt_threshold = threshold, adapt_threshold
        self.feedback = {docid: tuple(topics) for docid, topics in (feedback or {}).items()}
        self.labelled = labelled
        self.forgetting, self.max_terms = forgetting, max_terms
        self.n_seen = 0
        self.last_time: int | None = None
        self.topics: list[TopicState] = []
        self.names: list[str] = []
        self._slot: dict[str, int] = {}
        self._expected: dict[str, list[str]] = {}  # docid -> topics it will be a seed of
        self._k, self._c = np.zeros(16), np.zeros(16)
        self._inverted: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None
        self._moved: set[int] = set()  # slots whose model is not the inverted one
        self._rent = 0

    # -- topics --------------------------------------------------------------------------------------------------
    def add_topic(self, name: str, seeds: Iterable[StreamDocument]) -> None:
        """Begin to follow a topic, from one seed or several; a query is a seed too."""
        if name in self._slot:
            raise ParameterError(f"topic {name!r} is already followed")
        seeds = list(seeds)
        if not any(seed.length for seed in seeds):
            raise ParameterError(f"topic {name!r} has no seed with a word in it", remedy="Give it another seed.")
        for seed in seeds:
            self._seed(name, seed)

    def expect_seed(self, name: str, docid: str) -> None:
        """Begin to follow a topic (or seed it again) when this document comes along the stream."""
        topics = self._expected.setdefault(docid, [])
        if name not in topics:
            topics.append(name)

    def expected(self) -> dict[str, list[str]]:
        """Seeds still to come: docid -> topics."""
        return {docid: list(names) for docid, names in self._expected.items()}

    def restore(self, state: TopicState) -> None:
        """Take over a topic's sums as they were saved."""
        if state.name in self._slot:
            raise ParameterError(f"topic {state.name!r} is already followed")
        self._estimate(self._new_slot(state))

    def learn(self, name: str, document: StreamDocument, *, labelled: bool = False) -> None:
        """Adapt a topic to a document, now: with the weight its score gives it, or as a seed where it is labelled."""
        slot = self._find(name)
        score = 0.0 if labelled else float(self.score(document)[slot])
        self._learn(slot, document, score, labelled)

    def _find(self, name: str) -> int:
        if name not in self._slot:
            raise ParameterError(f"topic {name!r} is not followed", remedy=f"Followed are {len(self.names)} topics.")
        return self._slot[name]

    def _seed(self, name: str, document: StreamDocument) -> None:
        if not document.length:
            return
        slot = self._slot.get(name)
        if slot is None:
            memory = None if self.forgetting is None else deque[Remembered](maxlen=self.forgetting.remember)
            slot = self._new_slot(TopicState(name, started=document.time, memory=memory))
        self._add_seed(self.topics[slot], document)
        self._estimate(slot)

    def _add_seed(self, topic: TopicState, document: StreamDocument) -> None:
        topic.add_seed(document.words, *self.model.contribution(document, self.background))
        if self.model.contributes_p and self.background.grows:
            topic.labelled.append(document)

    def _refresh(self) -> None:
        """General English has changed: estimate all topics anew. What seeds contributed is taken again, for they may
        have come before any of the stream was seen; learnt documents stay as general English was when they came."""
        for slot, topic in enumerate(self.topics):
            if topic.labelled:
                n_seeds, documents = topic.n_seeds, topic.labelled
                topic.labelled = []
                topic.clear_seeds()
                for document in documents:
                    self._add_seed(topic, document)
                topic.n_seeds = n_seeds
            self._estimate(slot)

    def _new_slot(self, state: TopicState) -> int:
        slot = self._slot[state.name] = len(self.topics)
        self.topics.append(state)
        self.names.append(state.name)
        if slot == len(self._k):
            self._k, self._c = (np.concatenate([old, np.zeros(slot)]) for old in (self._k, self._c))
        return slot

    def _learn(self, slot: int, document: StreamDocument, score: float, labelled: bool) -> None:
        if not document.length:  # nothing to learn from
            return
        topic = self.topics[slot]
        if labelled:
            self._add_seed(topic, document)
            topic.n_seeds -= 1
            topic.n_learnt += 1
        else:
            values, mass = self.model.contribution(document, self.background)
            relative = self.model.relative_weights
            log_weight = float(self.model.log_weight(score, topic))
            if self.forgetting is None:
                topic.add_learnt(document.words, values, mass, log_weight, relative=relative)
            else:
                assert topic.memory is not None
                now = document.time if document.time is not None else self.last_time or 0
                topic.memory.append(Remembered(document.words, values, mass, log_weight, now))
                topic.n_learnt += 1
                self.forgetting.refill(topic, now, relative=relative)
        self._estimate(slot)

    def _estimate(self, slot: int) -> None:
        topic = self.topics[slot]
        if len(topic.words) > self.max_terms:
            sums = topic.seed / max(topic.seed_mass, 1e-300) + topic.learnt / max(topic.learnt_mass, 1e-300)
            heavy = sums * -np.log(self.background.p(topic.words))
            topic.keep(np.sort(np.argsort(-heavy, kind="stable")[: self.max_terms]))
        topic.weights, topic.k, topic.c = self.model.estimate(topic, self.background)
        self._k[slot], self._c[slot] = topic.k, topic.c
        self._moved.add(slot)

    # -- scoring -------------------------------------------------------------------------------------------------
    def score(self, document: StreamDocument) -> NDArray[np.float64]:
        """The document's score for every topic, in the order of ``names``. Learns nothing."""
        n = len(self.topics)
        if n == 0:
            return np.zeros(0)
        evidence, b = self.model.evidence(document, self.background)
        scores = np.zeros(n)
        self._match(document.words, evidence, scores)
        return scores + (self._k[:n] * b + self._c[:n])

    def _match(self, words: np.ndarray, evidence: np.ndarray, scores: np.ndarray) -> None:
        from sdretrieval.tracking.loops import score_inverted, score_one

        self._rent += len(self._moved)
        if self._inverted is None or self._rent * _ONE_BY_ONE > len(self._inverted[1]):
            self._invert()
        assert self._inverted is not None
        score_inverted(*self._inverted, words, evidence, scores)
        for slot in self._moved:
            topic = self.topics[slot]
            scores[slot] = score_one(topic.words, topic.weights, words, evidence)

    def _invert(self) -> None:
        from sdretrieval.kernels import transpose

        lengths = [len(topic.words) for topic in self.topics]
        ptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        words = np.concatenate([topic.words for topic in self.topics])
        weights = np.concatenate([topic.weights for topic in self.topics])
        n_words = int(words.max()) + 1 if len(words) else 0
        out = np.empty(n_words + 1, np.int64), np.empty(len(words), np.int32), np.empty(len(words))
        transpose(ptr, words, weights, *out)
        self._inverted, self._rent = out, 0
        self._moved.clear()

    # -- the stream ----------------------------------------------------------------------------------------------
    def process(self, document: StreamDocument) -> Step:
        """Score, then learn."""
        scores = self.score(document)
        step = self._step(document, scores)
        for name in step.adapted:
            slot = self._slot[name]
            self._learn(slot, document, float(scores[slot]), self.labelled and document.docid in self.feedback)
        for name in self._expected.pop(document.docid, ()):
            self._seed(name, document)
        self.n_seen += 1
        if document.time is not None:
            self.last_time = document.time if self.last_time is None else max(self.last_time, document.time)
        if self.background.grows:
            self.background.count(document)
            if self.background.due:
                self.background.freeze()
                self._refresh()
        return step

    def _step(self, document: StreamDocument, scores: NDArray[np.float64]) -> Step:
        started = tuple(self._expected.get(document.docid, ()))
        marked = [name for name in self.feedback.get(document.docid, ()) if name in self._slot]
        if self.adapt_threshold is not None:
            over = np.flatnonzero(scores >= self.adapt_threshold).tolist()
            marked += [name for slot in over if (name := self.names[slot]) not in marked]
        adapted = tuple(name for name in marked if name not in started) if document.length else ()
        return Step(document, self.names, scores, self.threshold, adapted, started)

    def track(self, stream: Iterable[StreamDocument]) -> Iterator[Step]:
        """One step for each document, as they come."""
        for document in stream:
            yield self.process(document)

    # -- how large -----------------------------------------------------------------------------------------------
    def topic_bytes(self) -> NDArray[np.int64]:
        """Bytes each topic's model takes, the inverted copy included: at most 44 for each of ``max_terms`` words; 16
        more for each word of the documents remembered (with forgetting) or labelled (sd over a growing background)."""
        sizes = []
        for topic in self.topics:
            kept = sum(one.words.nbytes + one.values.nbytes for one in topic.memory or ())
            kept += sum(one.words.nbytes + one.counts.nbytes for one in topic.labelled)
            arrays = (topic.words, topic.seed, topic.learnt, topic.weights)
            sizes.append(sum(array.nbytes for array in arrays) + 12 * len(topic.words) + kept)
        return np.array(sizes, np.int64)

    def settings(self) -> dict[str, Any]:
        """Everything that decides what the tracker does with a stream, as JSON can say it."""
        fading = self.forgetting
        return {
            "model": self.model.name,
            "parameters": self.model.parameters(),
            "threshold": self.threshold,
            "adapt_threshold": self.adapt_threshold,
            "labelled": self.labelled,
            "max_terms": self.max_terms,
            "forgetting": None if fading is None else [fading.kernel, fading.bandwidth, fading.remember],
        }
