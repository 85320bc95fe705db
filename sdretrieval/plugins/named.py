"""Topics and judgments by the names that ir_datasets and Pyserini have for them, where no file of that name is there.

``vaswani`` or ``irds:vaswani`` is ir_datasets' id, ``robust04`` Pyserini's name (which wants all that Pyserini wants).
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from sdretrieval.collection.records import Qrels, Topic
from sdretrieval.collection.trec import read_qrels
from sdretrieval.core.errors import InputError, SdretrievalError, shown
from sdretrieval.core.jvm import start_jvm
from sdretrieval.plugins import datasets

PREFIX = "irds:"  # PyTerrier's


def named_topics(name: str, field: str = "title") -> list[Topic] | None:
    """The topics of this name; None where it is a file's, or no one's."""
    if (dataset := _dataset(name)) is not None:
        with _fetching(name):
            return datasets.topics(dataset, field=None if field == "title" else field)
    found = _of_pyserini("get_topics", name)
    if found is None:
        return None
    return [Topic(str(qid), str(fields.get(field) or next(iter(fields.values())))) for qid, fields in found.items()]


def qrels_of(name: str) -> Qrels:
    """Judgments of a file, of a judging project's folder, or of this name."""
    if Path(name).is_dir():
        from sdretrieval.learn.judging import read_judged  # the learner's imports, for whoever needs them

        return read_judged(name)
    if (dataset := _dataset(name)) is not None:
        with _fetching(name):
            return datasets.qrels(dataset)
    found = _of_pyserini("get_qrels", name)
    if found is None:
        return read_qrels(name)
    return Qrels({str(q): {str(d): int(grade) for d, grade in grades.items()} for q, grades in found.items()})


def _dataset(name: str) -> str | None:
    if Path(name).exists():
        return None
    if name.startswith(PREFIX):
        return name.removeprefix(PREFIX)
    try:
        import ir_datasets  # an extra, and slow to import
    except ImportError:
        return None
    return name if name in ir_datasets.registry else None


def _of_pyserini(function: str, name: str) -> Mapping[Any, Mapping[Any, Any]] | None:
    """What Pyserini has under a name, which looks like no file's."""
    if Path(name).exists() or "/" in name or name.endswith((".txt", ".tsv", ".gz", ".jsonl", ".trec")):
        return None
    try:
        start_jvm()  # before Pyserini starts another
        search = importlib.import_module("pyserini.search")
    except (ImportError, OSError):  # Pyserini 2 fetches lists of names when it is imported
        return None
    get: Callable[[str], Mapping[Any, Mapping[Any, Any]]] = getattr(search, function)
    with _fetching(name), suppress(ValueError, KeyError):  # it knows no such name
        return get(name)
    return None


@contextmanager
def _fetching(name: str) -> Iterator[None]:
    """What goes wrong in others' code, most often a download, is told for people."""
    try:
        yield
    except SdretrievalError:
        raise
    except Exception as error:
        told = shown(" ".join(str(error).split()))
        remedy = "Check the network, or name a file of your own."
        raise InputError(f"{name} could not be fetched ({told})", remedy=remedy) from None
