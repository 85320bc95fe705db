"""Texts of documents from an index that stays open. Starts the JVM at first use; any thread may ask."""

from __future__ import annotations

from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from sdretrieval.core.jvm import java_class
from sdretrieval.index.lucene.contents import opened, parsed_fields


class StoredTexts:
    """The fields of documents by their number in the snapshot of the whole index."""

    def __init__(self, index: Path) -> None:
        self.index, self._open, self._lock = index, ExitStack(), Lock()

    @cached_property
    def _reader(self) -> Any:
        return self._open.enter_context(opened(self.index))

    @cached_property
    def _live(self) -> np.ndarray | None:
        """Lucene's numbers of the documents that are not deleted, as the snapshot counts them; None where all are."""
        live = java_class("org.apache.lucene.index.MultiBits").getLiveDocs(self._reader)
        if live is None:
            return None
        return np.array([number for number in range(self._reader.maxDoc()) if live.get(number)])

    def fields(self, number: int) -> dict[str, Any] | None:
        """The fields a document was indexed with; None where the index stores none."""
        with self._lock:  # opened once
            reader, live = self._reader, self._live
        stored = reader.storedFields()  # of this thread
        return parsed_fields(stored.document(number if live is None else int(live[number])).get("raw"))

    def close(self) -> None:
        self._open.close()
