"""Labels for every document of a sharded collection, from a classifier that `sdretrieval classify` saved."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from sdretrieval.core.errors import ParameterError
from sdretrieval.learn.classify.saved_models import load_classifier
from sdretrieval.learn.labelled import LabelledCorpus
from sdretrieval.plugins.spark.shards import Collection, Shard

PIECE = 4096  # documents labelled, and sent, at a time


def check_classifier(path: str | os.PathLike[str], collection: Collection) -> None:
    """Say now what each worker would say later."""
    classifier = load_classifier(path)
    if classifier.analyzer != collection.analyzer:
        raise ParameterError(
            f"the collection was analysed with {collection.analyzer}, the classifier learnt with {classifier.analyzer}",
            remedy="Index the collection with the classifier's analyzer, or train one on documents analysed alike.",
        )


def labels(runner: Any, path: str | os.PathLike[str]) -> Iterator[tuple[str, tuple[str, ...], float]]:
    """Docid, labels and highest score of each document, a shard after the other.

    Workers read the classifier's file, so that must be where they see it.
    """
    for _, piece in runner.stream(labelled, str(Path(path).absolute())):
        yield from piece


def labelled(shard: Shard, path: str) -> Iterator[list[tuple[str, tuple[str, ...], float]]]:
    """A request: the documents of a shard, piece by piece."""
    classifier, snapshot = _classifier(path, Path(path).stat().st_mtime_ns), shard.snapshot
    for start in range(0, snapshot.n_docs, PIECE):
        rows = np.arange(start, min(start + PIECE, snapshot.n_docs))
        docids = snapshot.docids.take(rows)
        corpus = LabelledCorpus(
            docids,
            snapshot.by_doc[rows].astype(np.float64),
            snapshot.vocabulary,
            ((),) * len(rows),
            np.asarray(snapshot.times)[rows],
            analyzer=snapshot.analyzer,
        )
        scores = classifier.scores(corpus)
        yield list(zip(docids, classifier.decide(scores), scores.max(axis=1).tolist(), strict=True))


@lru_cache(maxsize=1)
def _classifier(path: str, changed: int) -> Any:
    return load_classifier(path)
