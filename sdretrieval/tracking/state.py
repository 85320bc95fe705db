"""A tracker on disk: running sums and counts, never a pickle. Loading it and going on gives the same numbers, to the
last bit, as never having stopped: estimates are functions of what is saved."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from sdretrieval.errors import InputError, SdretrievalError
from sdretrieval.saved import load_arrays, save_arrays
from sdretrieval.times import UNDATED
from sdretrieval.tracking.background import Background
from sdretrieval.tracking.documents import StreamDocument
from sdretrieval.tracking.forgetting import Forgetting
from sdretrieval.tracking.models import make_model
from sdretrieval.tracking.topic import Remembered, TopicState
from sdretrieval.tracking.tracker import Tracker

KIND = "tracker"
_SCALARS = ("seed_mass", "learnt_mass", "log_scale", "n_seeds", "n_learnt")


def save_tracker(path: str | os.PathLike[str], tracker: Tracker, notes: Mapping[str, Any] | None = None) -> None:
    """Write the whole state as one file, all or nothing; ``notes`` come back from :func:`load_tracker`."""
    background, arrays = tracker.background.to_state()
    arrays = {f"background_{name}": array for name, array in arrays.items()}
    header = {
        "settings": tracker.settings(),
        "background": background,
        "topics": tracker.names,
        "feedback": {docid: list(topics) for docid, topics in tracker.feedback.items()},
        "expected": tracker.expected(),
        "n_seen": tracker.n_seen,
        "last_time": tracker.last_time,
        "notes": dict(notes or {}),
    }
    topics = tracker.topics
    arrays["topic_ptr"] = _ptr([len(topic.words) for topic in topics])
    for name in ("words", "seed", "learnt"):
        dtype = np.int64 if name == "words" else np.float64
        arrays[f"topic_{name}"] = _joined([getattr(topic, name) for topic in topics], dtype)
    for name in _SCALARS:
        arrays[f"topic_{name}"] = np.array([getattr(topic, name) for topic in topics], float)
    arrays["topic_started"] = np.array([UNDATED if t.started is None else t.started for t in topics], np.int64)
    if tracker.forgetting is not None:
        arrays |= _memories(topics)
    kept = [document for topic in topics for document in topic.labelled]
    header["labelled"] = [[document.docid, document.time] for document in kept]
    arrays |= {
        "labelled_topic_ptr": _ptr([len(topic.labelled) for topic in topics]),
        "labelled_ptr": _ptr([len(document.words) for document in kept]),
        "labelled_words": _joined([document.words for document in kept], np.int64),
        "labelled_counts": _joined([document.counts for document in kept], float),
    }
    save_arrays(path, KIND, header, arrays)


def load_tracker(path: str | os.PathLike[str]) -> tuple[Tracker, dict[str, Any]]:
    """The tracker as it was saved, and the notes saved with it."""
    header, arrays = load_arrays(path, KIND)
    try:
        return _restored(header, arrays), dict(header["notes"])
    except SdretrievalError:
        raise
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError) as error:
        raise InputError(
            f"is not a tracker's state, or is damaged ({error!r})", file=path, remedy="Start again with a new folder."
        ) from None


def _restored(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> Tracker:
    settings = header["settings"]
    forgetting = settings["forgetting"]
    background = {name.removeprefix("background_"): array for name, array in arrays.items()}
    tracker = Tracker(
        make_model(settings["model"], settings["parameters"]),
        Background.from_state(header["background"], background),
        threshold=settings["threshold"],
        adapt_threshold=settings["adapt_threshold"],
        feedback=header["feedback"],
        labelled=bool(settings["labelled"]),
        forgetting=None if forgetting is None else Forgetting(*forgetting),
        max_terms=settings["max_terms"],
    )
    for docid, names in header["expected"].items():
        for name in names:
            tracker.expect_seed(name, docid)
    tracker.n_seen, tracker.last_time = int(header["n_seen"]), header["last_time"]
    ptr, n_words = arrays["topic_ptr"], len(tracker.background.words)
    if len(ptr) != len(header["topics"]) + 1 or ptr[-1] != len(arrays["topic_words"]) or (np.diff(ptr) < 0).any():
        raise ValueError("topics and their words do not fit")
    words = arrays["topic_words"]
    if len(words) and not (words.min() >= 0 and words.max() < n_words):
        raise ValueError("a topic has a word that does not exist")
    for i, name in enumerate(header["topics"]):
        span = slice(int(ptr[i]), int(ptr[i + 1]))
        state = TopicState(
            str(name), words[span].copy(), arrays["topic_seed"][span].copy(), arrays["topic_learnt"][span].copy()
        )
        for scalar in _SCALARS:
            value = float(arrays[f"topic_{scalar}"][i])
            setattr(state, scalar, int(value) if scalar.startswith("n_") else value)
        started = int(arrays["topic_started"][i])
        state.started = None if started == UNDATED else started
        if tracker.forgetting is not None:
            state.memory = deque(_remembered(arrays, i), maxlen=tracker.forgetting.remember)
        state.labelled = list(_labelled(header, arrays, i))
        tracker.restore(state)
    return tracker


def _memories(topics: list[TopicState]) -> dict[str, np.ndarray]:
    kept = [one for topic in topics for one in topic.memory or ()]
    return {
        "memory_topic_ptr": _ptr([len(topic.memory or ()) for topic in topics]),
        "memory_ptr": _ptr([len(one.words) for one in kept]),
        "memory_words": _joined([one.words for one in kept], np.int64),
        "memory_values": _joined([one.values for one in kept], float),
        "memory_mass": np.array([one.mass for one in kept], float),
        "memory_log_weight": np.array([one.log_weight for one in kept], float),
        "memory_time": np.array([one.time for one in kept], np.int64),
    }


def _remembered(arrays: dict[str, np.ndarray], topic: int) -> Iterator[Remembered]:
    first, last = arrays["memory_topic_ptr"][topic : topic + 2].tolist()
    for i in range(first, last):
        span = slice(*arrays["memory_ptr"][i : i + 2].tolist())
        yield Remembered(
            arrays["memory_words"][span].copy(), arrays["memory_values"][span].copy(), float(arrays["memory_mass"][i]),
            float(arrays["memory_log_weight"][i]), int(arrays["memory_time"][i]),
        )  # fmt: skip


def _labelled(header: dict[str, Any], arrays: dict[str, np.ndarray], topic: int) -> Iterator[StreamDocument]:
    first, last = arrays["labelled_topic_ptr"][topic : topic + 2].tolist()
    for i in range(first, last):
        span = slice(*arrays["labelled_ptr"][i : i + 2].tolist())
        docid, time = header["labelled"][i]
        yield StreamDocument.make(docid, arrays["labelled_words"][span], arrays["labelled_counts"][span], time)


def _ptr(lengths: list[int]) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def _joined(parts: list[np.ndarray], dtype: Any) -> np.ndarray:
    return np.concatenate(parts).astype(dtype) if parts else np.zeros(0, dtype)
