"""A judging project: topics, pools, runs and every click, in a folder beside the index.

    <index>.judging/<project>/journal.log      all that was done (journal.py)
    <index>.judging/<project>/runs/NAME.run.gz the runs that are measured

A project is what its journal says: opening it reads the journal, and any number of processes and threads may judge in
one project at the same time. Documents are named by their ids, so that a project outlives changes of its index.
"""

from __future__ import annotations

import os
import re
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from threading import RLock
from typing import Any

import numpy as np
from scipy.special import rel_entr

from sdretrieval.collection.records import Qrels, Ranking, Run, Topic
from sdretrieval.collection.trec import read_run, write_run
from sdretrieval.collection.trec.trec_file import token_problem
from sdretrieval.core.errors import InputError, ParameterError, few, shown
from sdretrieval.core.times import format_time
from sdretrieval.learn.judging.agreement import Agreement, agreement
from sdretrieval.learn.judging.estimates import Better, Contest, Measured, shuffled
from sdretrieval.learn.judging.journal import Entry, Journal
from sdretrieval.learn.judging.learner import Features, Learner
from sdretrieval.learn.judging.stopping import Price, RecallBound, certificate, price, recall_bound
from sdretrieval.ranking.interactive import Index, Request

JOURNAL = "journal.log"
SOMEBODY = "me"  # an assessor who gives no name
WAYS = ("learn", "pool", "runs", "random", "certificate", "second")
HIGHEST = 100  # grade
LONGEST_NOTE = 4000  # characters
_NAME = re.compile(r"[\w.-]{1,64}", re.ASCII)


@dataclass(frozen=True)
class Judgment:
    """A click. ``grade`` is None where the document was skipped; ``way`` is how it came to be offered."""

    n: int
    qid: str
    docid: str
    grade: int | None
    who: str
    note: str = ""
    way: str = ""
    at: str = ""


@dataclass(frozen=True)
class Offer:
    """A document to judge: ``score`` is the learner's (higher is likelier), ``words`` what speaks for it and against
    it there, as stems; ``left`` how many are left this way."""

    qid: str
    docid: str
    way: str
    score: float = 0.0
    words: tuple[tuple[str, float], ...] = ()
    left: int = 0


@dataclass
class TopicState:
    """One topic of a project, as the journal left it."""

    topic: Topic
    pool: dict[str, int] = field(default_factory=dict)  # docid -> best rank in a run, in the order to judge
    clicks: dict[tuple[str, str], list[Judgment]] = field(default_factory=dict)  # by document and assessor: a stack
    samples: list[Entry] = field(default_factory=list)

    def current(self) -> list[Judgment]:
        """The last judgment of each document by each assessor, in the order they were made."""
        return sorted((stack[-1] for stack in self.clicks.values() if stack), key=lambda click: click.n)

    def grades(self, who: str | None = None) -> dict[str, int]:
        """Grades by docid in the order of clicks: of one assessor, or what most say (of equals the higher)."""
        votes: dict[str, list[int]] = {}
        for click in self.current():
            if click.grade is not None and who in (None, click.who):
                votes.setdefault(click.docid, []).append(click.grade)
        return {docid: _verdict(grades) for docid, grades in votes.items()}

    def seen(self, who: str | None) -> set[str]:
        """Documents that need no offering any more to an assessor, or (None) to anybody."""
        return {click.docid for click in self.current() if who in (None, click.who)}


def _verdict(grades: Sequence[int]) -> int:
    counted = Counter(grades)
    return max(counted, key=lambda grade: (counted[grade], grade))


def judging_folder(index: str | os.PathLike[str]) -> Path:
    """Where the projects of an index are kept."""
    path = Path(index).resolve()
    return path.with_name(path.name + ".judging")


def projects(index: str | os.PathLike[str]) -> list[str]:
    """The names of an index's projects."""
    folder = judging_folder(index)
    return sorted(path.parent.name for path in folder.glob(f"*/{JOURNAL}"))


class Project:
    """Topics and judgments of one collection.

    Parameters
    ----------
    index : Index or path
        What is judged.
    name : str
        One of several projects of the index: letters, digits, ``.``, ``_`` and ``-``. Made when something is first
        written to it.
    rel : int
        The least grade that counts as relevant.
    folder : path, optional
        Where projects are kept, if not beside the index.

    Examples
    --------
    >>> project = Project("indexes/mine", "pilot")                      # doctest: +SKIP
    >>> project.add_topics([Topic("1", "oil tanker spill")])
    >>> while (offer := project.next("1", who="ann")) is not None:
    ...     project.judge("1", offer.docid, grade=1, who="ann", way=offer.way)
    >>> project.qrels()
    """

    def __init__(
        self,
        index: Index | str | os.PathLike[str],
        name: str = "default",
        *,
        rel: int = 1,
        folder: str | os.PathLike[str] | None = None,
    ) -> None:
        if not _NAME.fullmatch(name) or not name.strip("."):
            remedy = "Up to 64 letters, digits, dots, underscores and hyphens."
            raise ParameterError(f"{shown(name)} cannot be the name of a project", remedy=remedy)
        self.index = index if isinstance(index, Index) else Index(index)
        place = self.index.snapshot.index
        if folder is None and place is None:
            raise ParameterError("a snapshot in memory has no place beside it", remedy="Name a folder.")
        self.name, self.rel = name, rel
        self.folder = (judging_folder(place) if folder is None else Path(folder)) / name  # type: ignore[arg-type]
        self._topics: dict[str, TopicState] = {}
        self._done: dict[int, Judgment] = {}
        self._learners: dict[str, Learner] = {}
        self._contest: Contest | None = None
        self._lock = RLock()
        self._journal = Journal(self.folder / JOURNAL, self._take)
        self._journal.refresh()

    # -- what the journal says -----------------------------------------------------------------------------------
    def refresh(self) -> None:
        """Take in what other processes have done; all calls that write or offer do so by themselves."""
        with self._lock:
            self._journal.refresh()

    def _take(self, entry: Entry) -> None:
        acts = {
            "topic": self._take_topic,
            "pool": self._take_pool,
            "judge": self._take_judge,
            "undo": self._take_undo,
            "sample": self._take_sample,
        }
        if (act := acts.get(str(entry["do"]))) is None:
            raise InputError(f"entry {entry['n']} does {shown(entry['do'])}, which is not known here", file=self.folder)
        try:
            act(entry)
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise InputError(f"entry {entry['n']} lacks or mistypes {error}", file=self.folder / JOURNAL) from None

    def _take_topic(self, entry: Entry) -> None:
        topic = Topic(str(entry["qid"]), str(entry["text"]))
        known = self._topics.get(topic.qid)
        self._learners.pop(topic.qid, None)
        if known is None:
            self._topics[topic.qid] = TopicState(topic)
        else:
            known.topic = topic

    def _take_pool(self, entry: Entry) -> None:
        pool = self._topics[entry["qid"]].pool
        for docid, rank in zip(entry["docids"], entry["ranks"], strict=True):
            pool[str(docid)] = min(int(rank), pool.get(str(docid), int(rank)))
        self._contest = None

    def _take_judge(self, entry: Entry) -> None:
        grade = None if entry["grade"] is None else int(entry["grade"])
        texts = {name: str(entry.get(name, "")) for name in ("qid", "docid", "who", "note", "way", "at")}
        click = Judgment(entry["n"], grade=grade, **texts)
        self._done[click.n] = click
        self._topics[click.qid].clicks.setdefault((click.docid, click.who), []).append(click)

    def _take_undo(self, entry: Entry) -> None:
        click = self._done.pop(entry["entry"])
        stack = self._topics[click.qid].clicks[click.docid, click.who]
        stack.remove(click)

    def _take_sample(self, entry: Entry) -> None:
        self._topics[entry["qid"]].samples.append(entry)

    def _add(self, **entry: Any) -> Entry | None:
        with self._lock:
            return self._journal.add(lambda: {**entry, "at": _now()})

    # -- topics and pools ----------------------------------------------------------------------------------------
    @property
    def topics(self) -> list[Topic]:
        return [state.topic for state in self._topics.values()]

    def state(self, qid: str) -> TopicState:
        """A topic's pool and clicks; an error that says which topics there are."""
        if qid not in self._topics:
            self.refresh()
        if qid not in self._topics:
            there = few(self._topics) or "none"
            raise ParameterError(f"no topic {shown(qid)} in project {self.name!r}; there is: {there}")
        return self._topics[qid]

    def add_topics(self, topics: Iterable[Topic]) -> int:
        """Add topics, or change the text of those that are there; returns how many were new or other."""
        changed = 0
        for topic in topics:
            if problem := token_problem(topic.qid):
                raise ParameterError(f"topic id {shown(topic.qid)} {problem}", remedy="One word of printable text.")
            if not topic.text.strip():
                raise ParameterError(f"topic {shown(topic.qid)} has no text")
            known = self._topics.get(topic.qid)
            if known is None or known.topic.text != topic.text:
                self._add(do="topic", qid=topic.qid, text=topic.text)
                changed += 1
        return changed

    def add_pool(self, qid: str, docids: Sequence[str], ranks: Sequence[int] | None = None) -> int:
        """Add documents to a topic's pool, in the order to judge; ``ranks`` are their best in any run. Documents that
        are not in the index are refused. Returns how many were new."""
        pool = self.state(qid).pool
        for docid in docids:
            self.index.number(docid)
        ranks = list(range(1, len(docids) + 1)) if ranks is None else list(ranks)
        new = [(d, r) for d, r in zip(docids, ranks, strict=True) if d not in pool]
        if new:
            self._add(do="pool", qid=qid, docids=[d for d, _ in new], ranks=[r for _, r in new])
        return len(new)

    def pool_from_runs(self, runs: Iterable[Run] | None = None, depth: int = 100) -> int:
        """Pool the first ``depth`` documents of each run, topic by topic, by their best rank; the project's own runs
        where none are given. Returns how many documents were new."""
        if depth < 1:
            raise ParameterError(f"depth must be at least 1; got {depth}")
        runs, added = list(self.runs.values() if runs is None else runs), 0
        for qid in self._topics:
            best: dict[str, int] = {}
            for run in runs:
                if qid in run:
                    for rank, docid in enumerate(run[qid].docids[:depth], 1):
                        best[docid] = min(rank, best.get(docid, rank))
            order = sorted((d for d in best if self.index.snapshot.docids.find(d) >= 0), key=lambda d: (best[d], d))
            added += self.add_pool(qid, order, [best[d] for d in order]) if order else 0
        return added

    def pool_from_models(self, models: Sequence[str] = ("blend", "bm25", "sd"), depth: int = 100) -> int:
        """Search all topics with these models, keep what they find as runs of the project, and pool them."""
        for model in models:
            self.add_run(model, self.index.search_topics(self.topics, model, hits=max(depth, 100)))
        return self.pool_from_runs([self.runs[model] for model in models], depth)

    # -- runs ----------------------------------------------------------------------------------------------------
    def add_run(self, name: str, run: Run) -> None:
        """Keep a run in the project, to be measured while judging; one of the same name is replaced."""
        if not _NAME.fullmatch(name) or not name.strip("."):
            raise ParameterError(f"{shown(name)} cannot be the name of a run here", remedy="Letters, digits, . _ -")
        write_run(self.folder / "runs" / f"{name}.run.gz", run, tag=name)
        self.__dict__.pop("runs", None)
        self._contest = None

    @cached_property
    def runs(self) -> dict[str, Run]:
        """The project's runs by name."""
        found = sorted((self.folder / "runs").glob("*.run.gz"))
        return {path.name.removesuffix(".run.gz"): read_run(path) for path in found}

    # -- what to judge next --------------------------------------------------------------------------------------
    def next(self, qid: str | None = None, who: str = SOMEBODY, way: str = "learn") -> Offer | None:
        """The document to judge next; None where none is left.

        Parameters
        ----------
        qid : str, optional
            The topic; with ``way="runs"`` it may be left out, and the topic too is chosen.
        who : str
            The assessor.
        way : str
            ``learn``: what the learner rates highest in the whole collection. ``pool``: the pool in its order.
            ``runs``: where it matters most for telling the project's runs apart. ``random``: the pool at random, by
            strata of rank, for estimates. ``certificate``: the sample that :meth:`certify` drew. ``second``: what
            others judged and this assessor has not, at random, for agreement.
        """
        if way not in WAYS:
            raise ParameterError(f"there is no way {shown(way)} to choose", remedy=f"One of: {', '.join(WAYS)}.")
        with self._lock:
            self.refresh()
            if way == "runs" and not self.runs:
                raise ParameterError(
                    f"project {self.name!r} has no runs to tell apart",
                    remedy="Add some: sdretrieval judge pool --runs …",
                )
            if qid is None:
                if way != "runs":
                    raise ParameterError("which topic?", remedy="Only way='runs' chooses the topic itself.")
                return self._next_anywhere(who)
            ways = {
                "learn": self._next_learn,
                "pool": self._next_pool,
                "runs": self._next_runs,
                "random": self._next_random,
                "certificate": self._next_certificate,
                "second": self._next_second,
            }
            return ways[way](self.state(qid), who)

    def _next_learn(self, state: TopicState, who: str) -> Offer | None:
        learner, docids = self.learner(state.topic.qid), self.index.snapshot.docids
        taken = [doc for docid in state.seen(None) if (doc := docids.find(docid)) >= 0]
        best = learner.best(taken)
        return None if best is None else self._offer(state, docids[best], "learn", len(self.index) - len(taken))

    def _next_pool(self, state: TopicState, who: str) -> Offer | None:
        return self._first(state, list(state.pool), who, "pool")

    def _next_random(self, state: TopicState, who: str) -> Offer | None:
        return self._first(state, self.contest.random_order(state.topic.qid, state.pool), who, "random")

    def _next_second(self, state: TopicState, who: str) -> Offer | None:
        others = [click.docid for click in state.current() if click.who != who and click.grade is not None]
        return self._first(state, shuffled(dict.fromkeys(others), state.topic.qid), who, "second", own=True)

    def _next_certificate(self, state: TopicState, who: str) -> Offer | None:
        if not state.samples:
            raise ParameterError("no sample has been drawn for a certificate", remedy="Draw one: certify().")
        return self._first(state, state.samples[-1]["docids"], who, "certificate")

    def _next_runs(self, state: TopicState, who: str) -> Offer | None:
        docid = self.contest.next_document(state.topic.qid, self._judged(), state.seen(None))
        return None if docid is None else self._offer(state, docid, "runs", len(state.pool) - len(state.seen(None)))

    def _next_anywhere(self, who: str) -> Offer | None:
        seen = {qid: state.seen(None) for qid, state in self._topics.items()}
        found = self.contest.next_anywhere(self._judged(), seen)
        if found is None:
            return None
        qid, docid = found
        left = sum(len(state.pool.keys() - seen[qid]) for qid, state in self._topics.items())
        return self._offer(self.state(qid), docid, "runs", left)

    def _first(
        self, state: TopicState, docids: Sequence[str], who: str, way: str, *, own: bool = False
    ) -> Offer | None:
        seen = state.seen(who if own else None)
        left = [docid for docid in docids if docid not in seen]
        return self._offer(state, left[0], way, len(left)) if left else None

    def offer(self, qid: str, docid: str, way: str = "open") -> Offer:
        """A document of one's own choosing, with what the learner says of it."""
        self.index.number(docid)
        return self._offer(self.state(qid), docid, way, 0)

    def _offer(self, state: TopicState, docid: str, way: str, left: int) -> Offer:
        learner, doc = self.learner(state.topic.qid), self.index.snapshot.docids.find(docid)
        if doc < 0:
            return Offer(state.topic.qid, docid, way, left=left)
        return Offer(state.topic.qid, docid, way, float(learner.scores[doc]), tuple(learner.words(8, doc)), left)

    # -- judging -------------------------------------------------------------------------------------------------
    def judge(
        self, qid: str, docid: str, grade: int | None, who: str = SOMEBODY, *, note: str = "", way: str = ""
    ) -> Judgment:
        """Write a judgment down; on return it is on disk. ``grade`` None skips the document: it is not offered again,
        and is in no qrels. Judging a document again replaces the assessor's earlier judgment of it."""
        self.state(qid)
        self.index.number(docid)
        return self._judge(qid, docid, grade, who, note, way)

    def _judge(self, qid: str, docid: str, grade: int | None, who: str, note: str, way: str) -> Judgment:
        if grade is not None and (isinstance(grade, bool) or not isinstance(grade, int) or not 0 <= grade <= HIGHEST):
            raise ParameterError(f"a grade is a whole number from 0 to {HIGHEST}; got {shown(grade)}")
        if problem := token_problem(who):
            raise ParameterError(f"the assessor's name {shown(who)} {problem}", remedy="One word of printable text.")
        if len(note) > LONGEST_NOTE:
            raise ParameterError(f"a note has at most {LONGEST_NOTE} characters; got {len(note)}")
        parts = {"qid": qid, "docid": docid, "grade": grade, "who": who, "way": way} | ({"note": note} if note else {})
        entry = self._add(do="judge", **parts)
        assert entry is not None
        return self._done[entry["n"]]

    def undo(self, who: str = SOMEBODY, qid: str | None = None) -> Judgment | None:
        """Take back an assessor's last judgment (of a topic), and return it; what it replaced counts again."""
        undone: list[Judgment] = []

        def make() -> dict[str, Any] | None:
            own = [c for c in self._done.values() if c.who == who and qid in (None, c.qid)]
            if not own:
                return None
            undone.append(max(own, key=lambda click: click.n))
            return {"do": "undo", "entry": undone[0].n, "at": _now()}

        with self._lock:
            self._journal.add(make)
        return undone[0] if undone else None

    def judgments(self, qid: str | None = None, who: str | None = None) -> list[Judgment]:
        """What counts now, in the order it was judged; of one topic or assessor, or of all. Skips are among them."""
        states = self._topics.values() if qid is None else [self.state(qid)]
        clicks = (click for state in states for click in state.current())
        return sorted((click for click in clicks if who in (None, click.who)), key=lambda click: click.n)

    @property
    def assessors(self) -> list[str]:
        return sorted({click.who for click in self._done.values()})

    # -- judgments out and in ------------------------------------------------------------------------------------
    def qrels(self, who: str | None = None) -> Qrels:
        """Judgments of an assessor, or of all: where they differ what most say, and the higher grade among equals."""
        self.refresh()
        return Qrels({qid: grades for qid, state in self._topics.items() if (grades := state.grades(who))})

    def import_qrels(self, qrels: Mapping[str, Mapping[str, int]], who: str = "imported") -> int:
        """Take in judgments made elsewhere, as those of ``who``; grades below 0 are 0. Topics must be there."""
        n = 0
        for qid in qrels:
            known = self.state(qid).grades(who)
            for docid, grade in qrels[qid].items():
                if known.get(docid) != max(grade, 0):
                    self._judge(qid, docid, max(int(grade), 0), who, "", "import")
                    n += 1
        return n

    def pools(self) -> Run:
        """The pools as a run, to be written by :func:`~sdretrieval.collection.trec.write_run` and judged elsewhere."""
        pools = {q: list(state.pool) for q, state in self._topics.items() if state.pool}
        return Run({q: Ranking(pool, -np.arange(len(pool), dtype=float)) for q, pool in pools.items()}, "pool")

    # -- assessors -----------------------------------------------------------------------------------------------
    def agreement(self, first: str, second: str, qid: str | None = None) -> Agreement:
        """How far two assessors agree, and where they do not."""
        one, other = (
            {(c.qid, c.docid): c.grade for c in self.judgments(qid, who) if c.grade is not None}
            for who in (first, second)
        )
        return agreement(first, second, one, other, self.rel)

    # -- what was learnt -----------------------------------------------------------------------------------------
    @cached_property
    def features(self) -> Features:
        return Features.of(self.index.snapshot)

    def learner(self, qid: str) -> Learner:
        """The topic's learner, up to the last click."""
        with self._lock:
            state, find = self.state(qid), self.index.snapshot.docids.find
            if qid not in self._learners:
                self._learners[qid] = Learner(self.features, self.index.snapshot.analyze(state.topic.text))
            learner = self._learners[qid]
            labels = {find(docid): grade >= self.rel for docid, grade in state.grades().items()}
            labels.pop(-1, None)  # documents that the index has lost
            learner.set(labels)
            return learner

    def words(self, qid: str, most: int = 20) -> list[tuple[str, float]]:
        """What the relevant documents are about: words of the smoothed-Dirichlet model learnt from them, with their
        weights, those first that stand out most from the collection; of the topic's text where none is found yet."""
        state = self.state(qid)
        docids = [d for d, grade in state.grades().items() if self.index.snapshot.docids.find(d) >= 0]
        grades = state.grades()
        judged = {
            "relevant": [d for d in docids if grades[d] >= self.rel][-200:],
            "nonrelevant": [d for d in docids if grades[d] < self.rel][-200:],
        }
        hits = self.index.ask(Request.of(state.topic.text, model="sd", **judged))
        model, cf = hits.learnt.plan.model, self.index.snapshot.cf
        shares = np.maximum(model.weights, 0.0) / np.maximum(model.weights, 0.0).sum()
        order = np.argsort(-rel_entr(shares, cf[model.terms] / cf.sum()), kind="stable")[:most]
        terms = self.index.snapshot.vocabulary.take(model.terms[order])
        return list(zip(terms, model.weights[order].tolist(), strict=True))

    # -- when to stop --------------------------------------------------------------------------------------------
    def recall(self, qid: str, confidence: float = 0.95, *, target: float = 0.95) -> RecallBound:
        """A lower bound of recall from the clicks so far, with its assumption (docs/JUDGING.md); it holds whatever it
        comes to, and ``target`` is the recall that it is to reach soonest."""
        clicks = [grade >= self.rel for grade in self.state(qid).grades().values()]
        return recall_bound(clicks, len(self.index), confidence, target=target)

    def price(self, qid: str, target: float = 0.95, confidence: float = 0.95) -> Price:
        """How many documents a certificate of this recall would cost, before any is drawn."""
        grades = self.state(qid).grades()
        found = sum(grade >= self.rel for grade in grades.values())
        return price(found, len(self.index) - len(grades), target, confidence)

    def certify(self, qid: str, target: float = 0.95, confidence: float = 0.95) -> Price:
        """Draw the random sample that :meth:`price` names, once and for all; ``next(way="certificate")`` offers it."""
        with self._lock:
            named, grades = self.price(qid, target, confidence), self.state(qid).grades()
            docids = self.index.snapshot.docids
            seen = [doc for docid in grades if (doc := docids.find(docid)) >= 0]
            unseen = np.delete(np.arange(len(docids)), seen)
            chosen = np.random.default_rng().choice(unseen, named.sample, replace=False)
            parts: dict[str, Any] = {"qid": qid, "docids": docids.take(chosen), "unseen": named.unseen}
            self._add(do="sample", **parts, found=named.found, target=target, confidence=confidence)
            return named

    def certificate(self, qid: str) -> RecallBound | int | None:
        """What the last sample proves; how many of its documents are still to be judged; None where none was drawn."""
        state = self.state(qid)
        if not state.samples:
            return None
        sample, grades = state.samples[-1], state.grades()
        left = sum(docid not in grades for docid in sample["docids"])
        if left:
            return left
        hits = sum(grades[docid] >= self.rel for docid in sample["docids"])
        return certificate(sample["found"], sample["unseen"], len(sample["docids"]), hits, sample["confidence"])

    # -- measures while judging ----------------------------------------------------------------------------------
    @property
    def contest(self) -> Contest:
        """The project's runs over its pools: what their measures can be, by what is judged."""
        with self._lock:
            if self._contest is None:
                pools = {qid: state.pool for qid, state in self._topics.items() if state.pool}
                self._contest = Contest(self.runs, pools, rel=self.rel)
            return self._contest

    def measures(self, names: Sequence[str] = ("AP", "P@5", "nDCG@10")) -> list[Measured]:
        """Each run by each measure: bounds for what is unjudged, and an estimate with its interval."""
        return self.contest.measures(self._judged(), names)

    def better(self, first: str, second: str, measure: str = "AP") -> Better:
        """Which of two runs is better on these topics, and how sure that is."""
        return self.contest.better(first, second, self._judged(), measure)

    def _judged(self) -> dict[str, dict[str, int]]:
        return {qid: state.grades() for qid, state in self._topics.items()}

    # -- all in all ----------------------------------------------------------------------------------------------
    def status(self) -> list[dict[str, Any]]:
        """For each topic: how much is judged, found, skipped, pooled and left of the pool, and the recall bound."""
        self.refresh()
        told = []
        for qid, state in self._topics.items():
            grades, seen = state.grades(), state.seen(None)
            told.append(
                {
                    "qid": qid,
                    "text": state.topic.text,
                    "judged": len(grades),
                    "relevant": sum(grade >= self.rel for grade in grades.values()),
                    "skipped": len(seen - grades.keys()),
                    "pool": len(state.pool),
                    "pool_left": len(state.pool.keys() - seen),
                    "recall_at_least": self.recall(qid).recall,
                }
            )
        return told


def _now() -> str:
    return format_time(int(time.time() * 1000))


def read_judged(path: str | os.PathLike[str]) -> Qrels:
    """The judgments of a project's folder or journal, without its index: what ``evaluate`` takes as qrels."""
    path = Path(path)
    journal = path / JOURNAL if path.is_dir() else path
    if not journal.is_file():
        raise InputError("no judging project here", file=path, remedy="A project's folder holds a journal.log.")
    project = Project.__new__(Project)
    project.folder, project.name = journal.parent, journal.parent.name
    project._topics, project._done, project._learners, project._contest = {}, {}, {}, None
    project._lock, project._journal = RLock(), Journal(journal, project._take)
    return project.qrels()
