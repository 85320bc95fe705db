"""Local copies of what lies at an address: workers map files into memory, and only local ones can be mapped.

    <cache>/<hash of the collection's address>/shard-00000/<fingerprint>/    a snapshot, never the Lucene index
                                               statistics/<fingerprint>/     the sums over all shards

A copy is made once for a machine, under a name of its own, and renamed when it is whole. Names hold fingerprints, so
that a copy of another state is never used; one that is damaged is fetched again.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from sdretrieval.core.errors import IndexProblem, SdretrievalError
from sdretrieval.plugins.spark.storage import Hadoop, HadoopShell, last_name, local_folder

VARIABLE = "SDRETRIEVAL_SHARD_CACHE"
_REMEDY = (
    f"Set {VARIABLE} to a folder of your own (chmod 700), with room; on workers: --conf spark.executorEnv.{VARIABLE}=…"
)


def cache_folder(address: str, configured: str | None = None) -> Path:
    """Where the copies of a collection lie. ``configured`` is spark.local.dir, for a driver."""
    given = os.environ.get(VARIABLE)
    try:
        if given:
            root = Path(given).absolute()
        else:
            base = local_folder(configured)
            if base.name.startswith("blockmgr-"):  # what workers are told ends with the application
                base = base.parent
            root = base / f"sdretrieval-shards-{os.getuid() if hasattr(os, 'getuid') else 'own'}"
        root.parent.mkdir(parents=True, exist_ok=True)
        return _made_own(_made_own(root) / hashlib.sha256(address.encode()).hexdigest()[:32])
    except OSError as error:
        raise SdretrievalError(f"no place for copies of shards ({error})", remedy=_REMEDY) from None


def _made_own(folder: Path) -> Path:
    """What lies above it may be open to others: it must be the user's, no link, and closed to the writing of others."""
    folder.mkdir(exist_ok=True, mode=0o700)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or (
        hasattr(os, "getuid") and (found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) & 0o022)
    ):
        raise SdretrievalError(
            f"{folder} is not a folder of this user's alone: what lies there cannot be trusted", remedy=_REMEDY
        )
    return folder


def local_copy(
    storage: Hadoop | HadoopShell, address: str, target: Path, problem: Callable[[Path], str | None]
) -> Path:
    """``target``, fetched from ``address`` where it is not there or ``problem`` finds something wrong with it."""
    if problem(target) is None:
        return target
    try:
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with _alone(target.parent) as alone:
            if problem(target) is None:  # another worker was faster
                return target
            if alone:  # what killed workers left
                for part in target.parent.glob(".*.part"):
                    shutil.rmtree(part, ignore_errors=True)
            with tempfile.TemporaryDirectory(prefix=f".{target.name}.", suffix=".part", dir=target.parent) as aside:
                storage.get([address], Path(aside))
                whole = Path(aside, last_name(address))
                told = problem(whole)
                if told is not None:
                    raise IndexProblem(f"{address}: {told}")
                put_in_place(whole, target, problem)
            for other in target.parent.iterdir():  # of earlier states; whoever has them open keeps them
                if other.is_dir() and not other.name.startswith(".") and other != target:
                    shutil.rmtree(other, ignore_errors=True)
    except OSError as error:
        raise SdretrievalError(f"{address} cannot be copied to {target} ({error})", remedy=_REMEDY) from None
    return target


def put_in_place(whole: Path, target: Path, problem: Callable[[Path], str | None]) -> None:
    """Rename a folder; whoever comes second finds a whole one, and discards their own."""
    try:
        whole.rename(target)  # first of all: what is there, if anything is, is looked at only then
    except OSError:
        if problem(target) is not None:
            shutil.rmtree(target, ignore_errors=True)
            whole.rename(target)


@contextmanager
def _alone(folder: Path) -> Iterator[bool]:
    """Hold the lock of a shard's copies: workers of one machine fetch it once. False where there are no locks."""
    with open(folder / ".lock", "w") as stream:
        try:
            import fcntl  # not on every system

            fcntl.flock(stream, fcntl.LOCK_EX)
        except (ImportError, OSError):
            yield False
            return
        yield True
