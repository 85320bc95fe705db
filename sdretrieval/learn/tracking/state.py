"""A tracker on disk: running sums and counts, never a pickle. Loading it and going on gives the same numbers, to the
last bit, as never having stopped: estimates are functions of what is saved.

Nothing is lost in a crash: a :class:`StateFolder` holds a checkpoint of the tracker and a journal of the documents
since, which is begun anew with each checkpoint. Before a document is processed it is appended to the journal. After a
crash (kill -9 and power cuts included) the checkpoint is loaded and the journal replayed; what was written since the
checkpoint, which may not have reached the disk, is cut off and written again. A last line of the journal that was not
finished is dropped: that document had not begun.

    checkpoint.tracker   the state after n documents, replaced as a whole
    journal.jsonl        [n, docid, time, {word: count}], of earlier versions with the lengths of outputs after it
"""

from __future__ import annotations

import io
import json
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sdretrieval.core.errors import InputError, SdretrievalError
from sdretrieval.core.files import append_whole, lock_file
from sdretrieval.core.safe_json import parse_json
from sdretrieval.core.saved_arrays import (
    Arrays,
    Header,
    check_finite,
    check_indices,
    check_pointers,
    load_model,
    save_arrays,
)
from sdretrieval.core.times import UNDATED
from sdretrieval.learn.tracking.story import Forgetting, Remembered, Story
from sdretrieval.learn.tracking.story_models import make_model
from sdretrieval.learn.tracking.stream_background import Background, StreamDocument
from sdretrieval.learn.tracking.tracker import Step, Tracker

KIND = "tracker"
CHECKPOINT, JOURNAL = "checkpoint.tracker", "journal.jsonl"
# The file says "topic" of what is a story here.
_SUMS = ("words", "seed", "learnt")
_SCALARS = ("seed_mass", "learnt_mass", "log_scale", "n_seeds", "n_learnt")


def save_tracker(path: str | os.PathLike[str], tracker: Tracker, notes: Mapping[str, Any] | None = None) -> None:
    """Write the whole state as one file, all or nothing; ``notes`` come back from :func:`load_tracker`."""
    background, counts = tracker.background.to_state()
    stories = tracker.stories
    kept = [document for story in stories for document in story.labelled]
    header = {
        "settings": tracker.settings(),
        "background": background,
        "topics": tracker.names,
        "feedback": {docid: list(names) for docid, names in tracker.feedback.items()},
        "expected": tracker.expected(),
        "n_seen": tracker.n_seen,
        "last_time": tracker.last_time,
        "notes": dict(notes or {}),
        "labelled": [[document.docid, document.time] for document in kept],
    }
    arrays = {f"background_{name}": array for name, array in counts.items()}
    arrays["topic_ptr"] = _ptr(story.words for story in stories)
    arrays |= {f"topic_{name}": _joined(stories, name) for name in _SUMS}
    arrays |= {f"topic_{name}": _column(stories, name) for name in _SCALARS}
    arrays["topic_started"] = np.array([UNDATED if s.started is None else s.started for s in stories], np.int64)
    if tracker.forgetting is not None:
        memories = [story.memory or () for story in stories]
        arrays |= _saved_documents("memory", memories, ("words", "values"))
        together = [one for memory in memories for one in memory]
        arrays |= {f"memory_{name}": _column(together, name) for name in ("mass", "log_weight")}
        arrays["memory_time"] = _column(together, "time", np.int64)
    arrays |= _saved_documents("labelled", [story.labelled for story in stories], ("words", "counts"))
    save_arrays(path, KIND, header, arrays)


def _saved_documents(kind: str, lists: Sequence[Iterable[Any]], names: Sequence[str]) -> Arrays:
    """Documents of each story: where a story's begin, where a document's words begin, and the words' arrays."""
    together = [document for documents in lists for document in documents]
    ptrs = {f"{kind}_topic_ptr": _ptr(lists), f"{kind}_ptr": _ptr(document.words for document in together)}
    return ptrs | {f"{kind}_{name}": _joined(together, name) for name in names}


def _ptr(parts: Iterable[Any]) -> np.ndarray:
    return np.cumsum([0, *map(len, parts)], dtype=np.int64)


def _joined(owners: Sequence[Any], name: str) -> np.ndarray:
    dtype = np.int64 if name == "words" else np.float64
    return np.concatenate([np.zeros(0, dtype), *(getattr(one, name) for one in owners)]).astype(dtype)


def _column(owners: Sequence[Any], name: str, dtype: type = float) -> np.ndarray:
    return np.array([getattr(one, name) for one in owners], dtype)


def load_tracker(path: str | os.PathLike[str]) -> tuple[Tracker, dict[str, Any]]:
    """The tracker as it was saved, and the notes saved with it."""
    return load_model(path, KIND, _restored, "Start again with a new folder.")


def _restored(header: Header, arrays: Arrays) -> tuple[Tracker, dict[str, Any]]:
    settings = dict(header["settings"])
    model, parameters, forgetting = (settings.pop(name) for name in ("model", "parameters", "forgetting"))
    counts = {name.removeprefix("background_"): array for name, array in arrays.items()}
    tracker = Tracker(
        make_model(model, parameters),
        Background.from_state(header["background"], counts),
        feedback=header["feedback"],
        forgetting=None if forgetting is None else Forgetting(*forgetting),
        **settings,
    )
    for docid, names in header["expected"].items():
        for name in names:
            tracker.expect_seed(name, docid)
    tracker.n_seen, tracker.last_time = int(header["n_seen"]), header["last_time"]
    if not isinstance(tracker.last_time, int | None):
        raise ValueError("the last time is no whole number")
    _check(header, arrays, tracker)
    for i, name in enumerate(header["topics"]):
        tracker.restore(_story(str(name), i, header, arrays, tracker.forgetting))
    return tracker, dict(header["notes"])


def _check(header: Header, arrays: Arrays, tracker: Tracker) -> None:
    """ValueError where stories, their documents and words do not fit together."""
    n, n_words = len(header["topics"]), len(tracker.background.words)
    for scalar in _SCALARS:
        values = arrays[f"topic_{scalar}"]
        check_finite(np.maximum(values, -1.0) if scalar == "log_scale" else values, n, scalar)  # -inf: none learnt
    check_finite(arrays["topic_started"], n, "times")
    _check_words(arrays, "topic", n, n_words, _SUMS[1:])
    kinds = [("labelled", "counts")] + ([("memory", "values")] if tracker.forgetting else [])
    for kind, values_name in kinds:
        documents = len(arrays[f"{kind}_ptr"]) - 1
        check_pointers(arrays[f"{kind}_topic_ptr"], n, documents, f"stories and {kind} documents")
        _check_words(arrays, kind, documents, n_words, (values_name,))
        for name in ("mass", "log_weight", "time") if kind == "memory" else ():
            check_finite(arrays[f"memory_{name}"], documents, name)
        if kind == "memory" and not tracker.model.relative_weights and (arrays["memory_log_weight"] > 0).any():
            raise ValueError("a document weighs more than one")
    if len(header["labelled"]) != len(arrays["labelled_ptr"]) - 1:
        raise ValueError("labelled documents and their ids do not fit together")


def _check_words(arrays: Arrays, kind: str, parts: int, n_words: int, values: Sequence[str]) -> None:
    words = arrays[f"{kind}_words"]
    check_pointers(arrays[f"{kind}_ptr"], parts, len(words), f"{kind} and words")
    check_indices(words, n_words, f"words of {kind}")
    for name in values:
        check_finite(arrays[f"{kind}_{name}"], len(words), name)


def _story(name: str, i: int, header: dict[str, Any], arrays: Arrays, forgetting: Forgetting | None) -> Story:
    span = _span(arrays["topic_ptr"], i)
    words = arrays["topic_words"][span].astype(np.int64)
    seed, learnt = (arrays[f"topic_{each}"][span].astype(np.float64) for each in _SUMS[1:])
    story = Story(name, words, seed, learnt)
    for scalar in _SCALARS:
        value = float(arrays[f"topic_{scalar}"][i])
        setattr(story, scalar, int(value) if scalar.startswith("n_") else value)
    started = int(arrays["topic_started"][i])
    story.started = None if started == UNDATED else started
    if forgetting is not None:
        story.memory = deque(maxlen=forgetting.remember)
        for place, words, values in _documents("memory", "values", arrays, i):
            mass, log_weight, time = (arrays[f"memory_{each}"][place] for each in ("mass", "log_weight", "time"))
            story.memory.append(Remembered(words, values, float(mass), float(log_weight), int(time)))
    for place, words, counts in _documents("labelled", "counts", arrays, i):
        docid, time = header["labelled"][place]
        story.labelled.append(StreamDocument.make(docid, words, counts, time))
    return story


def _documents(kind: str, values: str, arrays: Arrays, story: int) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
    """The place, words and values of each of a story's documents."""
    documents = _span(arrays[f"{kind}_topic_ptr"], story)
    for place in range(documents.start, documents.stop):
        span = _span(arrays[f"{kind}_ptr"], place)
        words, numbers = arrays[f"{kind}_words"][span], arrays[f"{kind}_{values}"][span]
        yield place, words.astype(np.int64), numbers.astype(np.float64)


def _span(ptr: np.ndarray, i: int) -> slice:
    first, last = ptr[i : i + 2].tolist()
    return slice(first, last)


class StateFolder:
    """A folder of checkpoint and journal; of None, where nothing is kept, all calls are without effect.

    Use as a context manager: the folder is locked while open, so that two trackers cannot share it.
    """

    def __init__(self, folder: str | os.PathLike[str] | None, *, every: int = 1000) -> None:
        self.folder, self.every = None if folder is None else Path(folder), every
        self.notes: dict[str, Any] = {}  # saved with the checkpoint
        self._journal: io.FileIO | None = None
        self._since = 0

    def __enter__(self) -> StateFolder:
        if self.folder is None:
            return self
        if self.folder.exists() and not self.folder.is_dir():
            raise SdretrievalError(f"{self.folder}: is a file, a folder for the state was expected")
        self.folder.mkdir(parents=True, exist_ok=True)
        self._journal = io.FileIO(self.folder / JOURNAL, "ab")
        if not lock_file(self._journal.fileno()):
            self._journal.close()
            raise SdretrievalError(
                f"{self.folder}: another tracker is using this state", remedy="Stop it, or name another folder."
            )
        return self

    def __exit__(self, *_: object) -> None:
        if self._journal is not None:
            self._journal.close()

    @property
    def exists(self) -> bool:
        return self.folder is not None and (self.folder / CHECKPOINT).is_file()

    # -- going on ------------------------------------------------------------------------------------------------
    def resume(self) -> tuple[Tracker, list[Step], Sequence[int]]:
        """The tracker as it was, the steps since the checkpoint, and the lengths the outputs had at it."""
        assert self.folder is not None
        tracker, self.notes = load_tracker(self.folder / CHECKPOINT)
        steps, whole = list[Step](), 0
        with open(self.folder / JOURNAL, "rb") as stream:
            for number, line in enumerate(stream, 1):
                if not line.endswith(b"\n"):
                    break  # the crash came while it was written
                whole += len(line)
                n, docid, time, counts = self._entry(line, number)
                if n < tracker.n_seen:
                    continue  # the crash came between the checkpoint and the emptying of the journal
                if n > tracker.n_seen:
                    raise self._damaged(f"document {n} follows document {tracker.n_seen - 1}", number)
                steps.append(tracker.process(tracker.background.document(docid, counts, time)))
                self._note(docid)
        os.truncate(self.folder / JOURNAL, whole)
        return tracker, steps, list(self.notes.get("lengths", []))

    def _entry(self, line: bytes, number: int) -> tuple[int, str, int | None, dict[str, float]]:
        try:
            n, docid, time, counts, *_ = parse_json(line.decode(), unique=True)
            if not (isinstance(n, int) and isinstance(docid, str) and isinstance(counts, dict)):
                raise ValueError("not an entry")
            if not isinstance(time, int | None) or not all(isinstance(c, int | float) for c in counts.values()):
                raise ValueError("a time or a count is no number")
            return n, docid, time, counts
        except (ValueError, TypeError, OverflowError) as error:
            raise self._damaged(f"not an entry of a journal ({error})", number) from None

    def _damaged(self, message: str, line: int) -> InputError:
        assert self.folder is not None
        remedy = "The journal is damaged: start again with a new folder."
        return InputError(message, file=self.folder / JOURNAL, line=line, remedy=remedy)

    # -- while it runs -------------------------------------------------------------------------------------------
    def before(self, tracker: Tracker, document: StreamDocument) -> None:
        """Note a document before it is processed."""
        if self._journal is None:
            return
        words = (tracker.background.words[w] for w in document.words.tolist())
        counts = dict(zip(words, document.counts.tolist(), strict=True))
        entry = [tracker.n_seen, document.docid, document.time, counts]
        append_whole(self._journal, json.dumps(entry).encode() + b"\n")
        self._note(document.docid)

    def _note(self, docid: str) -> None:
        self.notes.setdefault("first", docid)
        self.notes["last"] = docid
        self._since += 1

    def after(self, tracker: Tracker, lengths: Callable[[], Sequence[int]]) -> None:
        """A document is done; now and then that means a checkpoint."""
        if self._since >= self.every:
            self.checkpoint(tracker, lengths())

    def checkpoint(self, tracker: Tracker, lengths: Sequence[int]) -> None:
        """Save the state, with the lengths of the outputs as they are on disk by now."""
        if self.folder is None:
            return
        save_tracker(self.folder / CHECKPOINT, tracker, {**self.notes, "lengths": list(lengths)})
        os.truncate(self.folder / JOURNAL, 0)
        self._since = 0
