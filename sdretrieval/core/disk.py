"""What makes files last and keeps writers apart: locks, synced folders, and a full disk that names itself."""

from __future__ import annotations

import errno
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from sdretrieval.core.errors import IndexProblem

NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextmanager
def locked(file: Path) -> Iterator[bool]:
    """Hold the lock of ``file`` for as long as this process lives; False where somebody else has it.

    A lock goes with its process, however that ends: what is free was abandoned. Where the system has no such locks
    (Windows), it is never had.
    """
    try:
        import fcntl  # not everywhere
    except ImportError:
        yield False
        return
    number = os.open(file, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW, 0o644)
    with os.fdopen(number, "rb") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            yield False
            return
        yield file.exists() and os.path.samestat(os.fstat(stream.fileno()), file.stat())


@contextmanager
def scratch_folder(folder: Path, *, patience: float = 0.0) -> Iterator[bool]:
    """A folder to work in, gone afterwards whatever happens; False where another process works there.

    The folder is also the lock of that work. What a killed process left in it is there for the next one to look at.
    ``patience``, in seconds, is for those who hold the lock only to see whether there is something to clear up.
    """
    with ExitStack() as held:
        end = time.monotonic() + patience
        while not (taken := _took(folder, held)) and time.monotonic() < end:
            time.sleep(0.05)
        yield taken


def _took(folder: Path, held: ExitStack) -> bool:
    for _ in range(100):  # whoever had it may be taking it away just now
        try:
            folder.mkdir(parents=True, exist_ok=True)
            free = held.enter_context(locked(folder / "lock"))
        except FileNotFoundError:
            continue
        except FileExistsError:  # what stood there has gone while mkdir looked at it; or it is a file
            if folder.exists() and not folder.is_dir():
                raise
            continue
        if free or os.name == "nt":
            held.callback(remove_scratch, folder)
            return True
        if (folder / "lock").exists():
            return False
    return False


def remove_scratch(folder: Path) -> None:
    """Remove such a folder, its lock last: until then nobody else begins to work in it."""
    for entry in folder.iterdir() if folder.is_dir() else ():
        if entry.name != "lock":
            remove(entry)
    (folder / "lock").unlink(missing_ok=True)
    with suppress(OSError):  # another has made a lock of its own
        folder.rmdir()


def remove(path: Path) -> None:
    """A file, or a folder with all that is in it, as far as it can be removed."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def own_cache() -> Path:
    """The folder of what this user's processes keep for each other."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "sdretrieval"


def sync_folder(folder: Path) -> None:
    """Make what was renamed or removed in a folder last through a power cut."""
    with suppress(OSError):  # some file systems cannot, and Windows has no such call
        number = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)


def allocate(path: Path, size: int) -> None:
    """A file of this size whose room on the disk is taken: writing to a map of it cannot fail."""
    with open(path, "wb") as stream:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(stream.fileno(), 0, size)
        else:
            stream.truncate(size)


def is_full_disk(error: BaseException) -> bool:
    told = str(error).lower()
    return getattr(error, "errno", None) in NO_ROOM or "no space left" in told or "quota" in told


@contextmanager
def disk_errors_explained(what: str, remedy: str) -> Iterator[None]:
    """A full disk and a lacking permission as errors of our own."""
    try:
        yield
    except OSError as error:
        # numpy's tofile tells of a full disk by numbers alone: "100 requested and 20 written".
        if is_full_disk(error) or "requested and" in str(error):
            raise IndexProblem(f"no room left while {what} ({error.strerror or error}).", remedy=remedy) from error
        if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            named = error.filename or what
            raise IndexProblem(f"may not write {named} ({error.strerror}).", remedy="Choose another place.") from error
        raise
