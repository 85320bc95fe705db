"""Texts of documents from an index that stays open. Starts the JVM at first use; any thread may ask."""

from __future__ import annotations

from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from sdretrieval.core.jvm import java_class, java_lock
from sdretrieval.index.lucene.contents import opened, parsed_fields


class StoredTexts:
    """The fields of documents by their number in the snapshot of the whole index."""

    def __init__(self, index: Path) -> None:
        self.index, self._open = index, ExitStack()

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
        with java_lock:
            lucene = number if self._live is None else int(self._live[number])
            raw = self._reader.storedFields().document(lucene).get("raw")
        return parsed_fields(raw)

    def close(self) -> None:
        self._open.close()
