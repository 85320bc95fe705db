"""What a brief command loads of Java's classes, kept in an archive that Java maps at the next start.

Class data sharing is Java's own: the first brief command lists the classes it loads, and when it has answered, a second
Java makes the archive from the list, once for each runtime and jar. Later starts need a third less processor time. Java
itself checks the archive (its sum, the runtime, the jar's size and date) and does without it where anything differs.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import time
from contextlib import suppress
from pathlib import Path

from sdretrieval.core.disk import own_cache

# Java warns of an archive that is damaged, on standard output; it starts all the same.
CHECKED = ("-XX:+VerifySharedSpaces", "-Xlog:cds=off", "-Xlog:cds+map=off")
_SECONDS = 60


class JavaArchive:
    """The archive for one Java and one class path."""

    def __init__(self, home: Path, classpath: Path, options: tuple[str, ...]) -> None:
        self.home, self.classpath, self.how = home, classpath, options
        stat = classpath.stat()
        told = repr((str(home), str(classpath), stat.st_size, stat.st_mtime_ns, options))
        self.path = own_cache() / f"java-{hashlib.sha256(told.encode()).hexdigest()[:16]}.jsa"
        self._listed: Path | None = None

    def options(self) -> tuple[str, ...]:
        """For Java: read the archive, or list the classes that it loads where there is none."""
        with suppress(OSError):
            if self.path.exists():
                is_made = self.path.stat().st_size > 0  # an empty file: it could not be made, and is not tried again
                return (f"-XX:SharedArchiveFile={self.path}", *CHECKED) if is_made else ()
            self.path.parent.mkdir(parents=True, exist_ok=True)
            listed = self.path.with_suffix(".classes")
            if not listed.exists() or time.time() - listed.stat().st_mtime > _SECONDS:  # else another is at it
                listed.write_bytes(b"")
                self._listed = listed
                return (f"-XX:DumpLoadedClassList={listed}",)
        return ()

    def make(self) -> None:
        """From the list of this process's Java, where it made one. Nothing that goes wrong here matters."""
        if self._listed is None:
            return
        made = self._listed.with_suffix(".making")
        java = [str(self.home / "bin" / "java"), "-Xshare:dump", *self.how, f"-XX:SharedClassListFile={self._listed}"]
        with suppress(OSError):
            try:
                with suppress(subprocess.SubprocessError):
                    subprocess.run(
                        [*java, f"-XX:SharedArchiveFile={made}", "-cp", str(self.classpath)],
                        stdin=subprocess.DEVNULL,
                        stdout=subprocess.DEVNULL,
                        stderr=subprocess.DEVNULL,
                        timeout=_SECONDS,
                        check=False,
                    )
                made.touch()
                os.replace(made, self.path)
            finally:
                self._listed.unlink(missing_ok=True)
                made.unlink(missing_ok=True)
                self._listed = None
