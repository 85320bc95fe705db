"""Commits: a finished index, built aside, becomes the next state of an index in place, whole or not at all.

The folder stays a plain Lucene index. Overwriting, adding and deleting are commits of Lucene's own
(java/IndexCommitter.java): new files, synced, then one rename. A new index is built aside and renamed. Whoever writes
works in the hidden folder ``.NAME.building`` beside the index, which is also the lock. Where a process was killed it is
left, and the next command that opens the index clears up: recovery first, then cleaning, and only while nobody holds
the lock.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from sdretrieval.core import disk
from sdretrieval.core.errors import IndexProblem, JavaError
from sdretrieval.core.jvm import run_java
from sdretrieval.index.commit import SEGMENTS, latest_commit

JAVA_FOLDER = Path(__file__).parent / "java"
ROOM = "Free some space, or choose another place with --index. A build needs about three times the text's size."
PATIENCE = 2.0  # seconds: whoever opens the index has the lock for an instant, to clear up
_REPLACED = "replaced"


@contextmanager
def writing_to(target: Path) -> Iterator[Path]:
    """The lock on an index, there or not yet, and a hidden folder beside it to build in; both gone afterwards."""
    made = [parent for parent in target.parents if not parent.exists()]
    building = _building_folder(target)
    with disk.disk_errors_explained(f"building {target}; nothing was left behind", ROOM):
        try:
            with disk.scratch_folder(building, patience=PATIENCE) as free:
                if not free:
                    raise IndexProblem(f"another process is writing {target}.", remedy="Wait until it is done.")
                clear_abandoned(target)
                _recover(target, building)
                yield building
        finally:
            for parent in made:
                with suppress(OSError):  # something came to lie in it: the index
                    parent.rmdir()


def commit_index(
    target: Path,
    building: Path,
    notes: dict[str, Any],
    *,
    added: Path | None = None,
    delete: Iterable[str] = (),
    append: bool = False,
    expunge: bool = True,
) -> None:
    """Make the index in ``added`` part of the index at ``target``, or all of it; in one commit, with the notes."""
    if not append and not any(map(SEGMENTS.fullmatch, _names(target))):
        assert added is not None
        _committed(added, notes, append=True)
        _move_into_place(added, target)
        return
    ids = building / "ids"
    ids.write_text("".join(f"{docid}\n" for docid in delete), encoding="utf-8")
    deletes = str(ids) if ids.stat().st_size else ""
    try:
        _committed(target, notes, append=append, added=added, ids=deletes, expunge=expunge and bool(deletes))
    except JavaError as error:
        if append or added is None or not re.search("IndexFormatToo|CorruptIndex|EOFException", error.message):
            raise _explained(error, target) from error
        # What Lucene cannot read it cannot replace by a commit.
        _committed(added, notes, append=True)
        _move_into_place(added, target)


def _committed(
    index: Path, notes: dict[str, Any], *, append: bool, added: Path | None = None, ids: str = "", expunge: bool = False
) -> None:
    text = json.dumps(notes, ensure_ascii=True) if notes else ""
    mode, source = "append" if append else "create", "" if added is None else str(added.resolve())
    run_java(JAVA_FOLDER, "IndexCommitter", [str(index.resolve()), mode, source, ids, "expunge" * expunge, text])


def _explained(error: JavaError, target: Path) -> IndexProblem:
    if "LockObtainFailed" in error.message:
        return IndexProblem(f"another program is writing {target}.", remedy="Wait until it is done.")
    if disk.is_full_disk(error):
        return IndexProblem(f"no room left on the disk of {target}, which is as it was. {error.message}", remedy=ROOM)
    return IndexProblem(f"{target} could not be changed, and is as it was: {error.message}")


def _move_into_place(index: Path, target: Path) -> None:
    """A new index where there is none, or where there is one that Lucene cannot read."""
    if any(_names(target)):
        target.rename(index.parent / _REPLACED)
    try:
        index.rename(target)  # onto nothing, or an empty folder
    except BaseException:
        _recover(target, index.parent)
        raise
    disk.sync_folder(target.parent)


# -- after a kill or a power cut ---------------------------------------------------------------------------------


def clear_abandoned(target: Path) -> None:
    """What killed writers left of an index, in it and beside it; nothing while somebody is at work."""
    former = re.compile(rf"\.{re.escape(target.name)}\.\d+\.\w+\.building")
    for folder in (_building_folder(target), *target.parent.glob(".*.building")):
        if folder.name != f".{target.name}.building" and not former.fullmatch(folder.name):
            continue
        with suppress(OSError), disk.locked(folder / "lock") as free:
            if free:
                _recover(target, folder)
                disk.remove_scratch(folder)


def _recover(target: Path, building: Path) -> None:
    """Put back an index that was moved aside, then remove what was begun and belongs to no commit."""
    if not any(_names(target)) and (building / _REPLACED).is_dir():
        (building / _REPLACED).rename(target)
    for left in _entries(building):
        if left.name != "lock":
            disk.remove(left)
    if not any(map(SEGMENTS.fullmatch, _names(target))) or _lucene_writes(target):
        return
    commit = latest_commit(target)
    for file in _entries(target):
        if commit.is_whole and not commit.has(file.name):
            file.unlink(missing_ok=True)


def _lucene_writes(index: Path) -> bool:
    """Whether another program, that knows Lucene's lock alone, is writing the index."""
    import fcntl  # not everywhere; where it is not, nothing is taken for abandoned

    with suppress(FileNotFoundError), open(index / "write.lock", "rb+") as stream:
        try:
            fcntl.lockf(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return True
    return False


def _building_folder(target: Path) -> Path:
    return target.with_name(f".{target.name}.building")


def _names(folder: Path) -> list[str]:
    return [entry.name for entry in _entries(folder)]


def _entries(folder: Path) -> list[Path]:
    return list(folder.iterdir()) if folder.is_dir() else []
