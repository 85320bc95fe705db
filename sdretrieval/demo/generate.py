"""Generate the demo collection, in memory or as files.

It is synthetic: docs/DEMO.md says how it is made and what it can and cannot show.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from sdretrieval.core.errors import ParameterError
from sdretrieval.core.files import atomic_writer
from sdretrieval.demo.dice import Dice
from sdretrieval.demo.plan import World
from sdretrieval.demo.writing import Writer

DEFAULT_SEED = 2022
FIRST_DAY = datetime(2022, 1, 1)  # UTC; a Saturday
_GRADES = {"central": 2, "partial": 1}


@dataclass(frozen=True)
class DemoCollection:
    """``documents``: id, title, contents (which begins with the title), date; in order of time.

    ``topics``: qid, query, time, and beyond these description and kind (see plan.py). ``qrels``: (qid, docid,
    grade). Times are ISO 8601 in UTC.
    """

    documents: list[dict[str, str]]
    topics: list[dict[str, str]]
    qrels: list[tuple[str, str, int]]


@dataclass(frozen=True)
class DemoFiles:
    """Where :func:`write_demo` put things."""

    documents: Path
    topics: Path
    topics_tsv: Path
    topic_times: Path
    qrels: Path


_FILES = ("docs.jsonl", "topics.jsonl", "topics.tsv", "topics.times.tsv", "qrels.txt")


def generate_demo(
    seed: int = DEFAULT_SEED, n_docs: int = 3000, n_topics: int = 50, *, mean_words: int = 120
) -> DemoCollection:
    """The demo collection in memory; the same for the same arguments, everywhere.

    Parameters
    ----------
    seed
        Of all random choices.
    n_docs, n_topics
        Sizes; a topic needs at least 20 documents.
    mean_words
        Words of a document on average, at least 60.

    Returns
    -------
    DemoCollection
        Documents, topics and judgments.

    Examples
    --------
    >>> demo = generate_demo(n_docs=100, n_topics=2)
    >>> len(demo.documents), [topic["query"] for topic in demo.topics]
    (100, ['bridge collapse', 'Fenalmond fire'])
    """
    dice, world = _world(seed, n_docs, n_topics, mean_words)
    return DemoCollection(list(_documents(dice, world, mean_words)), _topics(world), _qrels(world))


def write_demo(
    folder: str | os.PathLike[str],
    seed: int = DEFAULT_SEED,
    n_docs: int = 3000,
    n_topics: int = 50,
    *,
    mean_words: int = 120,
) -> DemoFiles:
    """Write ``docs.jsonl``, ``topics.jsonl`` (qid, text, time, …), the same topics as ``topics.tsv`` and
    ``topics.times.tsv``, and ``qrels.txt``. Parameters as of :func:`generate_demo`.

    Returns
    -------
    DemoFiles
        The paths of the five files.
    """
    dice, world = _world(seed, n_docs, n_topics, mean_words)
    files = DemoFiles(*(Path(folder) / name for name in _FILES))
    topics = _topics(world)
    renamed = ({("text" if key == "query" else key): value for key, value in topic.items()} for topic in topics)
    # Documents are written as they are made, not held in memory.
    _write(files.documents, map(_json_line, _documents(dice, world, mean_words)))
    _write(files.topics, map(_json_line, renamed))
    _write(files.topics_tsv, (f"{topic['qid']}\t{topic['query']}\n" for topic in topics))
    _write(files.topic_times, (f"{topic['qid']}\t{topic['time']}\n" for topic in topics))
    _write(files.qrels, (f"{qid} 0 {docid} {grade}\n" for qid, docid, grade in _qrels(world)))
    return files


def _write(path: Path, lines: Iterable[str]) -> None:
    with atomic_writer(path) as out:
        out.writelines(lines)


def _json_line(record: dict[str, str]) -> str:
    return json.dumps(record, ensure_ascii=False) + "\n"


def _world(seed: int, n_docs: int, n_topics: int, mean_words: int) -> tuple[Dice, World]:
    if seed < 0:
        raise ParameterError(f"seed must be 0 or more, got {seed}")
    if n_topics < 1:
        raise ParameterError(f"n_topics must be at least 1, got {n_topics}")
    if n_docs < 20 * n_topics:
        fewer = f", or for fewer topics (--topics {n_docs // 20})" if n_docs >= 20 else ""
        raise ParameterError(
            f"{n_topics} topics need at least {20 * n_topics} documents, got n_docs={n_docs}",
            remedy=f"Ask for more documents (--documents {20 * n_topics}){fewer}.",
        )
    if mean_words < 60:
        raise ParameterError(f"mean_words must be at least 60, got {mean_words}")
    dice = Dice(seed)
    return dice, World(dice, n_docs, n_topics)


def _docid(position: int) -> str:
    return f"demo-{position + 1:06d}"


def _iso(seconds: int) -> str:
    return (FIRST_DAY + timedelta(seconds=seconds)).isoformat() + "Z"


def _documents(dice: Dice, world: World, mean_words: int) -> Iterator[dict[str, str]]:
    writer = Writer(dice, world.cast, mean_words)
    for position, plan in enumerate(world.plans):
        title, body = writer.write(plan, world.events[plan.event] if plan.event >= 0 else None)
        yield {"id": _docid(position), "title": title, "contents": f"{title}\n\n{body}", "date": _iso(plan.seconds)}


def _topics(world: World) -> list[dict[str, str]]:
    return [
        {
            "qid": str(number),
            "query": topic.query,
            "time": _iso(topic.seconds),
            "description": topic.description,
            "kind": topic.kind,
        }
        for number, topic in enumerate(world.topics, 1)
    ]


def _qrels(world: World) -> list[tuple[str, str, int]]:
    reports: dict[int, list[int]] = {}  # event -> positions of the documents on it, in order of time
    position_of = [0] * len(world.plans)
    for position, plan in enumerate(world.plans):
        position_of[plan.order] = position
        if plan.role in _GRADES:
            reports.setdefault(plan.event, []).append(position)
    judged: list[tuple[str, str, int]] = []
    for number, topic in enumerate(world.topics, 1):
        answers = [topic.event]
        if topic.everywhere:
            story = world.events[topic.event].story
            answers = [i for i, event in enumerate(world.events) if event.story is story]
        grades: dict[int, int] = {position_of[order]: 0 for order in topic.misleading}
        for event in answers:
            for position in reports[event]:
                plan = world.plans[position]
                grades[position] = _GRADES[plan.role] if plan.seconds < topic.seconds else 0
        judged += [(str(number), _docid(position), grades[position]) for position in sorted(grades)]
    return judged
