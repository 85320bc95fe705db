"""What a tracker writes: decisions as JSON lines while they happen, and a TREC run at the end.

Both are written so that a crash can be mended: :meth:`Outputs.lengths` are noted before each document, and
:meth:`Outputs.open` goes back to them.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from sdretrieval.errors import SdretrievalError
from sdretrieval.files import check_writable, is_special
from sdretrieval.records import Ranking, Run
from sdretrieval.times import format_time
from sdretrieval.tracking.tracker import Decision, Step
from sdretrieval.trec import write_run

EMIT = ("auto", "all", "on-topic", "none")


def decision_json(decision: Decision) -> str:
    return json.dumps(
        {
            "docid": decision.docid,
            "time": None if decision.time is None else format_time(decision.time),
            "topic": decision.topic,
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
        self._files: list[IO[bytes] | None] = [None, None]
        self._stdout: IO[bytes] | None = None

    def names(self) -> list[str | None]:
        """The files that lengths are noted of."""
        return [None if path is None else str(path.resolve()) for path in (self.path, self.spool)]

    def open(self, names: Sequence[str | None] = (), lengths: Sequence[int] = ()) -> Outputs:
        """Begin with empty files; or, going on, with those of ``names`` that are the same, cut to their lengths."""
        known = dict(zip(names, lengths, strict=False))
        for i, (path, name) in enumerate(zip((self.path, self.spool), self.names(), strict=True)):
            if path is not None:
                self._files[i] = open(path, "ab" if name in known else "wb")  # noqa: SIM115
                self._cut(path, self._files[i], known.get(name, 0))
        if self.path is None:
            self._stdout = open(self._special, "wb") if self._special else sys.stdout.buffer  # noqa: SIM115
        return self

    @staticmethod
    def _cut(path: Path, stream: IO[bytes] | None, length: int) -> None:
        """Take back what a crash may have left half written."""
        assert stream is not None
        have = os.fstat(stream.fileno()).st_size
        if have < length:
            raise SdretrievalError(
                f"{path}: has {have} bytes, but the state knows of {length}: it is not the file the tracker wrote",
                remedy="Put it back, or name another file.",
            )
        stream.truncate(length)
        stream.seek(length)

    def lengths(self) -> list[int]:
        return [0 if stream is None else stream.tell() for stream in self._files]

    def write(self, step: Step) -> int:
        """One document's decisions, flushed. Returns how many were on topic."""
        if self.emit == "none":
            return 0
        only = self.emit == "on-topic" or (self.emit == "auto" and step.threshold is not None)
        lines, spooled, on_topic = [], [], 0
        for decision in step.decisions(only_on_topic=only):
            lines.append(decision_json(decision))
            on_topic += decision.on_topic is True
            if self.spool is not None:
                spooled.append(f"{decision.topic}\t{decision.docid}\t{decision.score!r}")
        if lines:
            target = self._files[0] or self._stdout
            assert target is not None
            # The spool first: whoever has seen a decision finds it in the run.
            for stream, written in ((self._files[1], spooled), (target, lines)):
                if stream is not None:
                    stream.write(("\n".join(written) + "\n").encode("utf-8", "replace"))
                    stream.flush()
        return on_topic

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
                topic, docid, score = line.rstrip("\n").split("\t")
                scores.setdefault(topic, {}).setdefault(docid, float(score))  # a docid that came twice: its first
        if scores:
            rankings = {topic: Ranking(list(found), list(found.values()), hits) for topic, found in scores.items()}
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
        for stream in self._files:
            if stream is not None:
                stream.close()
        if self._special and self._stdout is not None:
            self._stdout.close()
