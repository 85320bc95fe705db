"""Results of finished batches, kept until the whole run is written: a stopped run goes on where it was.

A batch is one file in ``<output>.parts/``, written whole or not at all, and named with a digest of everything that the
result depends on: another model, other topics or another collection never take up an old part. Where expanded queries
are to be saved they are kept in the parts too, and a part without them is done again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from sdretrieval.errors import InputError
from sdretrieval.integrations.spark import packed
from sdretrieval.records import Ranking
from sdretrieval.saved import load_arrays, save_arrays
from sdretrieval.strings import PackedStrings

KIND = "batch of a run"


@dataclass(frozen=True, eq=False)
class Answer:
    """One topic's ranking, and what is worth telling about it."""

    qid: str
    ranking: Ranking
    is_empty: bool = False  # no known word
    notes: dict[str, Any] = field(default_factory=dict)
    expansion: str | None = None  # the expanded query, as its file has it; only where it was asked for


def digest(*parts: Any) -> str:
    """Of anything JSON can say."""
    text = json.dumps(parts, sort_keys=True, default=str, ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


class Parts:
    """The finished batches of one run; without a folder nothing is kept."""

    def __init__(self, folder: Path | None, key: str = "", *, with_expansions: bool = False) -> None:
        self.folder, self.key, self.with_expansions = folder, key, with_expansions

    def load(self, number: int, qids: Sequence[str]) -> list[Answer] | None:
        """A finished batch, or None where it is to be done: never done, of another run, or damaged."""
        if self.folder is None or not self._path(number).is_file():
            return None
        try:
            header, arrays = load_arrays(self._path(number), KIND)
            if header["key"] != self.key or [topic["qid"] for topic in header["topics"]] != list(qids):
                return None
            docids = PackedStrings(arrays["text"], arrays["text_ptr"])
            answers, lines = [], None
            if self.with_expansions:
                lines = PackedStrings(arrays["expansions"], arrays["expansions_ptr"])  # KeyError: it has none
            for i, topic in enumerate(header["topics"]):
                here = np.arange(arrays["ptr"][i], arrays["ptr"][i + 1])
                ranking = Ranking(docids.take(here), arrays["scores"][here])
                line = None if lines is None else lines[i]
                answers.append(Answer(topic["qid"], ranking, topic["is_empty"], topic["notes"], line))
        except (InputError, KeyError, IndexError, TypeError):
            return None
        return answers

    def save(self, number: int, answers: Sequence[Answer]) -> None:
        if self.folder is None:
            return
        docids = packed.pack(docid for answer in answers for docid in answer.ranking.docids)
        ptr = np.cumsum([0, *(len(answer.ranking) for answer in answers)])
        topics = [{"qid": a.qid, "is_empty": a.is_empty, "notes": a.notes} for a in answers]
        scores = np.concatenate([answer.ranking.scores for answer in answers])
        arrays = {"text": docids._data, "text_ptr": docids._ptr, "ptr": ptr, "scores": scores}
        if self.with_expansions:
            lines = packed.pack(answer.expansion or "" for answer in answers)
            arrays.update(expansions=lines._data, expansions_ptr=lines._ptr)
        save_arrays(self._path(number), KIND, {"key": self.key, "topics": topics}, arrays)

    def _path(self, number: int) -> Path:
        assert self.folder is not None
        return self.folder / f"{self.key}-{number:06d}.npz"
