"""Nothing lost in a crash: a folder with a checkpoint of the tracker and a journal of the documents since.

Before a document is processed it is appended to the journal, with the lengths the output files had. After a crash
(kill -9 included) the checkpoint is loaded and the journal replayed; what the document in hand may have written is cut
off and written again. A last line of the journal that was not finished is dropped: that document had not begun.

    checkpoint.tracker   the state after n documents, replaced as a whole
    journal.jsonl        [n, docid, time, {word: count}, [lengths of outputs]]
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from sdretrieval.errors import InputError, SdretrievalError
from sdretrieval.tracking.documents import StreamDocument
from sdretrieval.tracking.state import load_tracker, save_tracker
from sdretrieval.tracking.tracker import Step, Tracker

CHECKPOINT, JOURNAL = "checkpoint.tracker", "journal.jsonl"


class StateFolder:
    """Use as a context manager: the folder is locked while open, so that two trackers cannot share it."""

    def __init__(self, folder: str | os.PathLike[str], *, every: int = 1000) -> None:
        self.folder, self.every = Path(folder), every
        self.notes: dict[str, Any] = {}  # saved with the checkpoint
        self._journal: IO[bytes] | None = None
        self._since = 0

    def __enter__(self) -> StateFolder:
        if self.folder.exists() and not self.folder.is_dir():
            raise SdretrievalError(f"{self.folder}: is a file, a folder for the state was expected")
        self.folder.mkdir(parents=True, exist_ok=True)
        self._journal = open(self.folder / JOURNAL, "ab", buffering=0)
        try:
            import fcntl

            fcntl.flock(self._journal, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except ImportError:  # no such locks on this system
            pass
        except OSError:
            self._journal.close()
            raise SdretrievalError(
                f"{self.folder}: another tracker is using this state", remedy="Stop it, or name another folder."
            ) from None
        return self

    def __exit__(self, *_: object) -> None:
        if self._journal is not None:
            self._journal.close()

    @property
    def exists(self) -> bool:
        return (self.folder / CHECKPOINT).is_file()

    # -- going on ------------------------------------------------------------------------------------------------
    def resume(self) -> tuple[Tracker, Step | None, Sequence[int]]:
        """The tracker as it was, the step of the last journalled document (None: there is none since the checkpoint),
        and the lengths the outputs had before that document."""
        tracker, self.notes = load_tracker(self.folder / CHECKPOINT)
        step, lengths = None, list(self.notes.get("lengths", []))
        path = self.folder / JOURNAL
        whole = 0
        with open(path, "rb") as stream:
            for number, line in enumerate(stream, 1):
                if not line.endswith(b"\n"):
                    break  # the crash came while it was written
                whole += len(line)
                n, docid, time, counts, lengths_then = self._entry(line, number)
                if n < tracker.n_seen:
                    continue  # the crash came between the checkpoint and the emptying of the journal
                if n > tracker.n_seen:
                    raise InputError(
                        f"document {n} follows document {tracker.n_seen - 1}", file=path, line=number,
                        remedy="The journal is damaged: start again with a new folder.",
                    )  # fmt: skip
                step = tracker.process(tracker.background.document(docid, counts, time))
                self.notes["last"] = docid
                self.notes.setdefault("first", docid)
                lengths = lengths_then
                self._since += 1
        os.truncate(path, whole)
        return tracker, step, lengths

    def _entry(self, line: bytes, number: int) -> tuple[int, str, int | None, dict[str, float], list[int]]:
        try:
            n, docid, time, counts, lengths = json.loads(line)
            if not (isinstance(n, int) and isinstance(docid, str) and isinstance(counts, dict)):
                raise ValueError("not an entry")
            return n, docid, time, counts, [int(length) for length in lengths]
        except (ValueError, TypeError, RecursionError) as error:
            raise InputError(
                f"not an entry of a journal ({error})", file=self.folder / JOURNAL, line=number,
                remedy="The journal is damaged: start again with a new folder.",
            ) from None  # fmt: skip

    # -- while it runs -------------------------------------------------------------------------------------------
    def before(self, tracker: Tracker, document: StreamDocument, lengths: Sequence[int]) -> None:
        """Note a document before it is processed."""
        assert self._journal is not None
        words = tracker.background.words
        counts: Mapping[str, float] = dict(
            zip((words[w] for w in document.words.tolist()), document.counts.tolist(), strict=True)
        )
        entry = [tracker.n_seen, document.docid, document.time, counts, list(lengths)]
        self._journal.write(json.dumps(entry).encode() + b"\n")  # one write: the whole line or a part without its end
        self.notes.setdefault("first", document.docid)
        self.notes["last"] = document.docid
        self._since += 1

    def after(self, tracker: Tracker, lengths: Sequence[int]) -> None:
        """A document is done; now and then that means a checkpoint."""
        if self._since >= self.every:
            self.checkpoint(tracker, lengths)

    def checkpoint(self, tracker: Tracker, lengths: Sequence[int]) -> None:
        assert self._journal is not None
        save_tracker(self.folder / CHECKPOINT, tracker, {**self.notes, "lengths": list(lengths)})
        os.truncate(self.folder / JOURNAL, 0)
        self._since = 0
