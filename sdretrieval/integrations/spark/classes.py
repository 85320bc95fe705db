"""Spark's Java classes kept ready: an archive that the JVM maps instead of loading and checking some 15,000 classes.

Java makes it itself when a JVM ends, from what was loaded, and leaves it alone where anything differs (the version of
Java, a jar). It saves a second and a half of every start on one machine, and takes 60 MB in the user's cache folder.
SDRETRIEVAL_CLASS_ARCHIVE=off does without.
"""

from __future__ import annotations

import hashlib
import os
import time
from contextlib import suppress
from pathlib import Path

VARIABLE = "SDRETRIEVAL_CLASS_ARCHIVE"
WHOLE_AFTER = 15  # seconds without a change, after which an archive is not being written any more
UNUSED_AFTER = 30 * 86400  # seconds without use, after which an archive (of an older Java or Spark) is removed
_QUIET = "-Xlog:disable"  # an archive that does not fit is not worth a word to the user


def cache_folder() -> Path:
    root = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(root) / "sdretrieval" / "spark"


def archive_options(java: Path, jars: Path, folder: Path | None = None) -> list[str]:
    """Options for the JVM of a local Spark: to use the archive, or to make one where there is none yet."""
    if os.environ.get(VARIABLE, "").lower() in ("off", "0", "no"):
        return []
    folder = folder or cache_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        key = _key(java, jars)
        archive = folder / f"{key}.jsa"
        made = sorted(folder.glob(f"{key}.*.new"))
        for path in made:
            if not archive.exists() and time.time() - path.stat().st_mtime > WHOLE_AFTER:
                os.replace(path, archive)
        if archive.exists():
            os.utime(archive)
            unused = [path for path in folder.glob("*.jsa") if time.time() - path.stat().st_mtime > UNUSED_AFTER]
            for path in (*made, *unused):
                with suppress(OSError):
                    path.unlink()
            return [f"-XX:SharedArchiveFile={archive}", "-Xshare:auto", _QUIET]
        if any(path.exists() for path in made):  # another command's, still being written
            return []
        return [f"-XX:ArchiveClassesAtExit={folder / f'{key}.{os.getpid()}.new'}", _QUIET]
    except OSError:  # no home, no room, no rights: it works without
        return []


def _key(java: Path, jars: Path) -> str:
    """Of this Java and these jars."""
    told = [str(java), (java / "release").read_text(errors="replace"), str(jars)]
    told += [f"{jar.name} {jar.stat().st_size} {jar.stat().st_mtime_ns}" for jar in sorted(jars.glob("*.jar"))]
    return hashlib.sha256("\n".join(told).encode()).hexdigest()[:32]
