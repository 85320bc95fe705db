"""The online loop: each document is scored against every story before anything is learnt from it.

    tracker = Tracker(make_model("sd"), Background.of_snapshot(earlier))
    tracker.add_story("merger", [tracker.background.document("seed", terms)])
    for step in tracker.track(stream):
        for decision in step.decisions():
            ...

Scoring walks inverted story models: word to stories. A story that learns leaves them and is scored by itself until the
inverted models are built anew, which happens once scoring such stories has cost as much as building would (rent until
the rent equals the price). Either way the score is the same to the last bit.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import astuple, dataclass
from typing import Any

import numpy as np

from sdretrieval.core.errors import ParameterError
from sdretrieval.learn.tracking.story import Floats, Forgetting, Remembered, Story
from sdretrieval.learn.tracking.story_models import TrackingModel
from sdretrieval.learn.tracking.stream_background import Background, StreamDocument

MAX_TERMS = 5000
_ONE_BY_ONE = 100  # inverting a word of a story costs a hundredth of scoring one story by itself


@dataclass(frozen=True, slots=True)
class Decision:
    """One document and one story. ``on_topic`` is None where no threshold was given."""

    docid: str
    time: int | None
    story: str
    score: float
    on_topic: bool | None
    adapted: bool


@dataclass(frozen=True, eq=False, slots=True)
class Step:
    """What came of one document: its scores for the stories being followed, in the order of ``stories``."""

    document: StreamDocument
    stories: list[str]  # the tracker's own list: copy it to keep it
    scores: Floats
    threshold: float | None
    adapted: tuple[str, ...] = ()
    started: tuple[str, ...] = ()  # stories this document is a seed of; it is not scored for them

    def decisions(self, *, only_on_topic: bool = False) -> Iterator[Decision]:
        wanted: Iterable[int] = range(len(self.scores))
        if only_on_topic:
            if self.threshold is None:
                raise ParameterError("without a threshold there is no on-topic")
            wanted = np.flatnonzero(self.scores >= self.threshold).tolist()
        adapted, started = set(self.adapted), set(self.started)
        for i in wanted:
            name = self.stories[i]
            if name in started:
                continue
            score = float(self.scores[i])
            on_topic = None if self.threshold is None else score >= self.threshold
            yield Decision(self.document.docid, self.document.time, name, score, on_topic, name in adapted)


class Tracker:
    """Follows any number of stories through a stream.

    Parameters
    ----------
    model : TrackingModel
        From :func:`make_model`.
    background : Background, optional
        General English; by default that of the stream so far.
    threshold : float, optional
        T_d: on topic from this score on.
    adapt_threshold : float, optional
        T_a: learnt from this score on.
    feedback : mapping of docid to stories, optional
        Who learns from a document when it comes, whatever its score: the thesis's marked documents.
    labelled : bool
        The documents of ``feedback`` are known to be on topic, and weigh as seeds do.
    forgetting : Forgetting, optional
        Lets learnt documents fade.
    max_terms : int
        Words kept for each story: those furthest above general English. Until a story has met more, its estimate is
        exactly that of all its documents.
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
        self.feedback = {docid: tuple(stories) for docid, stories in (feedback or {}).items()}
        self.labelled = labelled
        self.forgetting, self.max_terms = forgetting, max_terms
        self.n_seen = 0
        self.last_time: int | None = None
        self.stories: list[Story] = []
        self.names: list[str] = []
        self._slot: dict[str, int] = {}
        self._expected: dict[str, list[str]] = {}  # docid -> stories it will be a seed of
        self._k, self._c = np.zeros(16), np.zeros(16)
        self._inverted: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None
        self._moved: set[int] = set()  # slots whose model is not the inverted one
        self._rent = 0

    # -- stories -------------------------------------------------------------------------------------------------
    def add_story(self, name: str, seeds: Iterable[StreamDocument]) -> None:
        """Begin to follow a story, from one seed or several; a query is a seed too."""
        self._check_new(name)
        seeds = list(seeds)
        if not any(seed.length for seed in seeds):
            raise ParameterError(f"story {name!r} has no seed with a word in it", remedy="Give it another seed.")
        for seed in seeds:
            self._seed(name, seed)

    def expect_seed(self, name: str, docid: str) -> None:
        """Begin to follow a story (or seed it again) when this document comes along the stream."""
        names = self._expected.setdefault(docid, [])
        if name not in names:
            names.append(name)

    def expected(self) -> dict[str, list[str]]:
        """Seeds still to come: docid -> stories."""
        return {docid: list(names) for docid, names in self._expected.items()}

    def restore(self, story: Story) -> None:
        """Take over a story's sums as they were saved."""
        self._check_new(story.name)
        self._estimate(self._new_slot(story))

    def learn(self, name: str, document: StreamDocument, *, labelled: bool = False, score: float | None = None) -> None:
        """Adapt a story to a document, now: as a seed where it is labelled, else with the weight that its ``score``
        gives it (found where it is not known)."""
        if name not in self._slot:
            raise ParameterError(f"story {name!r} is not followed", remedy=f"Followed are {len(self.names)} stories.")
        if not document.length:  # nothing to learn from
            return
        slot = self._slot[name]
        story = self.stories[slot]
        if labelled:
            self._add_seed(story, document)
            story.n_seeds -= 1
            story.n_learnt += 1
        else:
            self._add_learnt(story, document, float(self.score(document)[slot]) if score is None else score)
        self._estimate(slot)

    def _add_learnt(self, story: Story, document: StreamDocument, score: float) -> None:
        values, mass = self.model.contribution(document, self.background)
        relative = self.model.relative_weights
        log_weight = float(self.model.log_weight(score, story))
        if self.forgetting is None:
            story.add_learnt(document.words, values, mass, log_weight, relative=relative)
        else:
            assert story.memory is not None
            now = document.time if document.time is not None else self.last_time or 0
            story.memory.append(Remembered(document.words, values, mass, log_weight, now))
            story.n_learnt += 1
            self.forgetting.refill(story, now, relative=relative)

    def _seed(self, name: str, document: StreamDocument) -> None:
        if not document.length:
            return
        slot = self._slot.get(name)
        if slot is None:
            memory = None if self.forgetting is None else deque[Remembered](maxlen=self.forgetting.remember)
            slot = self._new_slot(Story(name, started=document.time, memory=memory))
        self._add_seed(self.stories[slot], document)
        self._estimate(slot)

    def _add_seed(self, story: Story, document: StreamDocument) -> None:
        story.add_seed(document.words, *self.model.contribution(document, self.background))
        if self.model.contributes_p and self.background.grows:
            story.labelled.append(document)

    def _refresh(self) -> None:
        """General English has changed: estimate all stories anew. What seeds contributed is taken again, for they may
        have come before any of the stream was seen; learnt documents stay as general English was when they came."""
        for slot, story in enumerate(self.stories):
            if story.labelled:
                n_seeds, documents = story.n_seeds, story.labelled
                story.labelled = []
                story.clear_seeds()
                for document in documents:
                    self._add_seed(story, document)
                story.n_seeds = n_seeds
            self._estimate(slot)

    def _check_new(self, name: str) -> None:
        if name in self._slot:
            raise ParameterError(f"story {name!r} is already followed")

    def _new_slot(self, story: Story) -> int:
        slot = self._slot[story.name] = len(self.stories)
        self.stories.append(story)
        self.names.append(story.name)
        if slot == len(self._k):
            self._k, self._c = (np.concatenate([old, np.zeros(slot)]) for old in (self._k, self._c))
        return slot

    def _estimate(self, slot: int) -> None:
        story = self.stories[slot]
        if len(story.words) > self.max_terms:
            sums = story.seed / max(story.seed_mass, 1e-300) + story.learnt / max(story.learnt_mass, 1e-300)
            heavy = sums * -np.log(self.background.p(story.words))
            story.keep(np.sort(np.argsort(-heavy, kind="stable")[: self.max_terms]))
        story.weights, story.k, story.c = self.model.estimate(story, self.background)
        self._k[slot], self._c[slot] = story.k, story.c
        self._moved.add(slot)

    # -- scoring -------------------------------------------------------------------------------------------------
    def score(self, document: StreamDocument) -> Floats:
        """The document's score for every story, in the order of ``names``. Learns nothing."""
        n = len(self.stories)
        if n == 0:
            return np.zeros(0)
        evidence, b = self.model.evidence(document, self.background)
        scores = np.zeros(n)
        self._match(document.words, evidence, scores)
        return scores + (self._k[:n] * b + self._c[:n])

    def _match(self, words: np.ndarray, evidence: np.ndarray, scores: np.ndarray) -> None:
        from sdretrieval.learn.tracking.score_loops import score_inverted, score_one  # numba

        self._rent += len(self._moved)
        if self._inverted is None or self._rent * _ONE_BY_ONE > len(self._inverted[1]):
            self._invert()
        assert self._inverted is not None
        score_inverted(*self._inverted, words, evidence, scores)
        for slot in self._moved:
            story = self.stories[slot]
            scores[slot] = score_one(story.words, story.weights, words, evidence)

    def _invert(self) -> None:
        from sdretrieval.index.sparse import transpose  # numba

        ptr = np.cumsum([0, *(len(story.words) for story in self.stories)], dtype=np.int64)
        words = np.concatenate([story.words for story in self.stories])
        weights = np.concatenate([story.weights for story in self.stories])
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
        labelled = self.labelled and document.docid in self.feedback
        for name in step.adapted:
            self.learn(name, document, labelled=labelled, score=float(scores[self._slot[name]]))
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

    def _step(self, document: StreamDocument, scores: Floats) -> Step:
        started = tuple(self._expected.get(document.docid, ()))
        marked = [name for name in self.feedback.get(document.docid, ()) if name in self._slot]
        if self.adapt_threshold is not None:
            over = np.flatnonzero(scores >= self.adapt_threshold).tolist()
            marked += [name for slot in over if (name := self.names[slot]) not in marked]
        adapted = tuple(name for name in marked if name not in started) if document.length else ()
        return Step(document, self.names, scores, self.threshold, adapted, started)

    def track(self, stream: Iterable[StreamDocument]) -> Iterator[Step]:
        """One step for each document, as they come."""
        return map(self.process, stream)

    def settings(self) -> dict[str, Any]:
        """Everything that decides what the tracker does with a stream, as JSON can say it."""
        return {
            "model": self.model.name,
            "parameters": self.model.parameters(),
            "threshold": self.threshold,
            "adapt_threshold": self.adapt_threshold,
            "labelled": self.labelled,
            "max_terms": self.max_terms,
            "forgetting": None if self.forgetting is None else list(astuple(self.forgetting)),
        }
