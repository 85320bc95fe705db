"""Anserini's jar, which holds Lucene: the installed Pyserini's, or fetched once out of Pyserini's own package.

Pyserini declares torch, transformers and more, which nothing here imports. So it is no requirement of this package:
where it is not installed, pip fetches the one release that ``java/anserini.txt`` names with its hash, without its
dependencies, at first need; the jar alone is kept. ``SDRETRIEVAL_FETCH=no`` forbids it.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from sdretrieval.core.disk import own_cache
from sdretrieval.core.errors import JavaError
from sdretrieval.core.files import atomic_writer

PINNED = Path(__file__).parent / "java" / "anserini.txt"
_JAR = "anserini-*-fatjar.jar"
_BY_HAND = (
    "Run `pip install --no-deps pyserini`, or set ANSERINI_CLASSPATH to a folder with Anserini's "
    "anserini-…-fatjar.jar (Maven Central has it as io.anserini:anserini)."
)


def anserini_jar() -> Path:
    """Where Anserini's jar is; it is fetched where there is none."""
    return find_jar() or fetch_jar()


def find_jar() -> Path | None:
    """The jar in ANSERINI_CLASSPATH, in the installed Pyserini (not imported for it), or fetched before."""
    if override := os.environ.get("ANSERINI_CLASSPATH"):
        return _newest(Path(override), "Correct ANSERINI_CLASSPATH, or unset it.")
    spec = importlib.util.find_spec("pyserini")
    if spec is not None and spec.submodule_search_locations:
        installed = Path(next(iter(spec.submodule_search_locations)))
        return _newest(installed / "resources" / "jars", "Re-install Pyserini.")
    return next(iter(fetched_folder().glob(_JAR)), None)


def fetched_folder() -> Path:
    """Where fetched jars lie, one folder for each release that is asked for."""
    return own_cache() / _release().replace("==", "-")


def fetch_jar() -> Path:
    """Ask pip for the pinned Pyserini, without its dependencies, and keep its jar."""
    _consent()
    folder = fetched_folder()
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        pip = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--require-hashes", "--dest", scratch]
        done = subprocess.run([*pip, "-r", str(PINNED)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        archives = list(Path(scratch).glob("pyserini-*.tar.gz"))
        if done.returncode or not archives:
            raise JavaError(f"pip could not fetch {_release()}:\n{done.stdout.strip()}", remedy=_BY_HAND)
        return _unpack(archives[0], folder)


def _newest(folder: Path, remedy: str) -> Path:
    jars = sorted(folder.glob(_JAR))
    if not jars:
        raise JavaError(f"no {_JAR} in {folder}.", remedy=remedy)
    return jars[-1]


def _release() -> str:
    """The pinned release for this Python: ``pyserini==…``."""
    wanted = "<" if sys.version_info < (3, 12) else ">="
    lines = (line for line in PINNED.read_text(encoding="utf-8").splitlines() if f'python_version {wanted} "' in line)
    return next(lines).split(" ", 1)[0]


def _consent() -> None:
    """Say what is fetched; ask at a terminal."""
    answer = os.environ.get("SDRETRIEVAL_FETCH", "").lower()
    if answer in ("no", "0"):
        raise JavaError("Lucene is not there, and SDRETRIEVAL_FETCH=no forbids fetching it.", remedy=_BY_HAND)
    what = (
        f"Lucene (Anserini's jar, 120 to 170 MB) is fetched once with pip, out of {_release()}, to {fetched_folder()}"
    )
    asks = not answer and sys.stdin.isatty() and sys.stderr.isatty()
    print(what if asks or answer else f"{what}; SDRETRIEVAL_FETCH=no forbids it", file=sys.stderr, flush=True)
    if asks:
        print("Go on? [Y/n] ", end="", file=sys.stderr, flush=True)
        if sys.stdin.readline().strip().lower() not in ("", "y", "yes"):
            raise JavaError("Lucene is not there, and was not fetched.", remedy=_BY_HAND)


def _unpack(archive: Path, folder: Path) -> Path:
    import tarfile  # hardly ever needed, and every start would wait for it

    with tarfile.open(archive) as packed:
        for member in packed:
            jar = Path(member.name)
            stream = packed.extractfile(member) if jar.match(f"pyserini/resources/jars/{_JAR}") else None
            if stream is not None:
                with atomic_writer(folder / jar.name, binary=True) as out:
                    shutil.copyfileobj(stream, out, 1 << 20)
                return folder / jar.name
    raise JavaError(f"no {_JAR} in {archive.name}.", remedy=_BY_HAND)
