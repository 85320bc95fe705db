"""From what a tracker wrote, or any TREC run, and judgments to trials."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import numpy as np

from sdretrieval.errors import InputError, ParameterError
from sdretrieval.files import numbered_lines, open_text
from sdretrieval.tracking.tdt import Trials


@dataclass
class Decisions:
    """Scores by topic and docid, and which of them were said to be on topic (None: no decision was made)."""

    scores: dict[str, dict[str, float]] = field(default_factory=dict)
    on_topic: dict[str, dict[str, bool | None]] = field(default_factory=dict)
    from_run: bool = False

    @property
    def only_yes(self) -> bool:
        """Whether only on-topic documents were listed: the others must then be counted some other way."""
        said = [value for by_docid in self.on_topic.values() for value in by_docid.values()]
        return bool(said) and all(value is True for value in said)


def read_decisions(path: str | os.PathLike[str]) -> Decisions:
    """Decisions of ``sdretrieval track`` (JSON lines), or a TREC run: told apart by the first character."""
    with open_text(path) as stream:
        begins = stream.read(1)
    if begins != "{":
        from sdretrieval.trec import read_run

        return Decisions(scores=read_run(path).to_dict(), from_run=True)
    found = Decisions()
    for number, line in numbered_lines(path):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
            topic, docid, score = str(record["topic"]), str(record["docid"]), float(record["score"])
            if score != score:
                raise ValueError("the score is not a number")
            said = record.get("on_topic")
            if said is not None and not isinstance(said, bool):
                raise ValueError("on_topic must be true, false or null")
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise InputError(
                f'expected {{"topic": …, "docid": …, "score": …}}, got {line[:80]!r} ({error!r})', file=path,
                line=number, remedy="Write the file with `sdretrieval track`, or mend the line.",
            ) from None  # fmt: skip
        if docid in found.scores.setdefault(topic, {}):
            raise InputError(
                f"document {docid!r} has a second decision for topic {topic!r}", file=path, line=number,
                remedy="Keep one decision for each document and topic.",
            )  # fmt: skip
        found.scores[topic][docid] = score
        found.on_topic.setdefault(topic, {})[docid] = said
    if not found.scores:
        raise InputError("there is no decision in it", file=path)
    return found


def trials_of(
    decisions: Decisions,
    qrels: Mapping[str, Mapping[str, int]],
    *,
    documents: int | None = None,
    seeds: Mapping[str, Collection[str]] | None = None,
    judged_only: bool = False,
    level: int = 1,
) -> tuple[dict[str, Trials], list[str]]:
    """Trials of every topic that has judgments, and the topics that have none.

    documents    how many documents the stream has for each topic (its seeds apart): those not listed are below every
                 threshold, and judged relevant ones among them are misses. None: only listed documents are trials
    seeds        documents that are no trials, by topic
    judged_only  leave out listed documents without a judgment, instead of taking them for off topic
    """
    unjudged = [topic for topic in decisions.scores if topic not in qrels]
    trials = {}
    for topic in qrels:
        listed = decisions.scores.get(topic)
        if listed is None and documents is None:
            continue
        given = set((seeds or {}).get(topic, ()))
        grades = qrels[topic]
        docids = [d for d in listed or {} if d not in given and (not judged_only or d in grades)]
        scores = np.array([(listed or {})[d] for d in docids], float)
        targets = np.array([grades.get(d, 0) >= level for d in docids], bool)
        said = decisions.on_topic.get(topic)
        decided = None
        if said and all(said[d] is not None for d in docids):
            decided = np.array([bool(said[d]) for d in docids], bool)
        missing = others = 0
        if documents is not None:
            relevant = {d for d, grade in grades.items() if grade >= level} - given
            missing = len(relevant.difference(docids))
            others = documents - len(relevant) - int((~targets).sum())
            if others < 0:
                raise ParameterError(
                    f"topic {topic!r}: {documents} documents cannot hold {len(relevant)} relevant and "
                    f"{int((~targets).sum())} other listed ones",
                    remedy="--documents is the number of documents in the stream.",
                )
        trials[topic] = Trials(scores, targets, decided, missing, others)
    return trials, unjudged
