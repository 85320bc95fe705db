"""Decisions as files: JSON lines while they happen, a TREC run at the end, and both read back to be judged.

What is written can be mended after a crash: the lengths of :meth:`Outputs.synced` are noted with each checkpoint,
:meth:`Outputs.open` goes back to them, and :meth:`Outputs.write_again` writes what came after. The files say "topic" of
what is a story here.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from sdretrieval.collection.records import Ranking, Run
from sdretrieval.collection.trec import read_run, write_run
from sdretrieval.core.disk import sync_folder
from sdretrieval.core.errors import InputError, SdretrievalError, shown
from sdretrieval.core.files import check_writable, is_special, numbered_lines, open_text
from sdretrieval.core.safe_json import parse_json
from sdretrieval.core.times import format_time
from sdretrieval.learn.tracking.tracker import Decision, Step


def decision_json(decision: Decision) -> str:
    return json.dumps(
        {
            "docid": decision.docid,
            "time": None if decision.time is None else format_time(decision.time),
            "topic": decision.story,
            "score": decision.score,
            "on_topic": decision.on_topic,
            "adapted": decision.adapted,
        },
        ensure_ascii=False,
    )


class Outputs:
    """Decisions to a file or to standard output; lines of the run to a spool, from which the run is made at the end.

    ``emit``: all decisions, those on topic, or none; auto is on-topic where there is a threshold, else all. ``spool``:
    where to keep the run's lines (default: beside the run, and removed at the end).
    """

    def __init__(
        self,
        decisions: str = "-",
        run: str | None = None,
        *,
        emit: str = "auto",
        tag: str = "track",
        spool: str | os.PathLike[str] | None = None,
    ) -> None:
        self.emit, self.tag = emit, tag
        self.run = None if run is None else Path(run)
        self.keep_spool = spool is not None
        self.spool = None if run is None else Path(f"{run}.part" if spool is None else spool)
        self.path = None if decisions == "-" or is_special(decisions) else Path(decisions)
        self._special = decisions if decisions != "-" and self.path is None else None
        for path in (self.path, self.run):
            if path is not None:
                check_writable(path)
                path.parent.mkdir(parents=True, exist_ok=True)
        self._files: list[IO[bytes] | None] = [None, None]  # of the decisions, of the spool
        self._goes_on = [False, False]

    def names(self) -> list[str | None]:
        """The files that lengths are noted of."""
        return [None if path is None else str(path.resolve()) for path in (self.path, self.spool)]

    def open(self, names: Sequence[str | None] = (), lengths: Sequence[int] = ()) -> Outputs:
        """Begin with empty files; or, going on, with those of ``names`` that are the same, cut to their lengths."""
        known = dict(zip(names, lengths, strict=False))
        for i, (path, name) in enumerate(zip((self.path, self.spool), self.names(), strict=True)):
            if path is not None:
                self._files[i] = stream = open(path, "ab" if name in known else "wb")  # noqa: SIM115
                self._goes_on[i] = name in known
                _cut(path, stream, known.get(name, 0))
                sync_folder(path.parent)
        if self.path is None:
            self._files[0] = open(self._special, "wb") if self._special else sys.stdout.buffer  # noqa: SIM115
        return self

    def synced(self) -> list[int]:
        """The lengths of the files, all of which is on the disk."""
        kept = zip((self.path, self.spool), self._files, strict=True)
        return [0 if path is None or stream is None else _synced(stream) for path, stream in kept]

    def write_again(self, steps: Sequence[Step]) -> None:
        """Steps since the lengths that files were cut to; on the screen and in new files the last of them alone."""
        files = self._files
        self._files = [stream if goes_on else None for stream, goes_on in zip(files, self._goes_on, strict=True)]
        for step in steps[:-1]:
            self.write(step)
        self._files = files
        for step in steps[-1:]:
            self.write(step)

    def write(self, step: Step) -> int:
        """One document's decisions, flushed. Returns how many were on topic."""
        if self.emit == "none":
            return 0
        only = self.emit == "on-topic" or (self.emit == "auto" and step.threshold is not None)
        decisions = list(step.decisions(only_on_topic=only))
        lines = [decision_json(decision) for decision in decisions]
        spooled = [f"{decision.story}\t{decision.docid}\t{decision.score!r}" for decision in decisions]
        # The spool first: whoever has seen a decision finds it in the run.
        for stream, written in zip(reversed(self._files), (spooled, lines), strict=True):
            if stream is not None and written:
                stream.write(("\n".join(written) + "\n").encode("utf-8", "replace"))
                stream.flush()
        return sum(decision.on_topic is True for decision in decisions)

    def finish(self, hits: int | None = None) -> None:
        """The stream has ended: the spool becomes a TREC run, best first."""
        self.close()
        if self.run is None or self.spool is None or not self.spool.exists():
            return
        scores: dict[str, dict[str, float]] = {}
        with open(self.spool, encoding="utf-8") as lines:
            for line in lines:
                if not line.endswith("\n"):
                    break  # interrupted while it was written
                story, docid, score = line.rstrip("\n").split("\t")
                scores.setdefault(story, {}).setdefault(docid, float(score))  # a docid that came twice: its first
        if scores:
            rankings = {story: Ranking(list(found), list(found.values()), hits) for story, found in scores.items()}
            write_run(self.run, Run(rankings, self.tag))
        else:
            print(f"nothing was on topic: {self.run} is not written", file=sys.stderr)
        self.discard()

    def discard(self) -> None:
        """Close, and remove the spool unless it is kept with a state."""
        self.close()
        if self.spool is not None and not self.keep_spool:
            self.spool.unlink(missing_ok=True)

    def close(self) -> None:
        for stream in self._files if self.path or self._special else self._files[1:]:  # standard output is not ours
            if stream is not None:
                stream.close()


def _synced(stream: IO[bytes]) -> int:
    stream.flush()
    os.fsync(stream.fileno())
    return stream.tell()


def _cut(path: Path, stream: IO[bytes], length: int) -> None:
    """Take back what a crash may have left half written."""
    have = os.fstat(stream.fileno()).st_size
    if have < length:
        stream.close()
        raise SdretrievalError(
            f"{path}: has {have} bytes, but the state knows of {length}: it is not the file the tracker wrote",
            remedy="Put it back, or name another file.",
        )
    stream.truncate(length)
    stream.seek(length)


@dataclass
class Decisions:
    """Scores by story and docid, and which of them were said to be on topic (None: no decision was made)."""

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
        return Decisions(scores=read_run(path).to_dict(), from_run=True)
    found = Decisions()
    for number, line in numbered_lines(path):
        if not line.strip():
            continue
        try:
            story, docid, score, said = _read_decision(line)
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError) as error:
            raise InputError(
                f'expected {{"topic": …, "docid": …, "score": …}}, got {shown(line)} ({shown(error)})',
                file=path,
                line=number,
                remedy="Write the file with `sdretrieval track`, or mend the line.",
            ) from None
        if docid in found.scores.setdefault(story, {}):
            raise InputError(
                f"document {docid!r} has a second decision for topic {story!r}",
                file=path,
                line=number,
                remedy="Keep one decision for each document and topic.",
            )
        found.scores[story][docid] = score
        found.on_topic.setdefault(story, {})[docid] = said
    if not found.scores:
        raise InputError("there is no decision in it", file=path)
    return found


def _read_decision(line: str) -> tuple[str, str, float, bool | None]:
    record = parse_json(line, constants=True)
    score, said = float(record["score"]), record.get("on_topic")
    if score != score:
        raise ValueError("the score is not a number")
    if said is not None and not isinstance(said, bool):
        raise ValueError("on_topic must be true, false or null")
    return str(record["topic"]), str(record["docid"]), score, said
