"""Recompile the shipped Java classes: ``python -m sdretrieval.index.lucene.java.build`` (needs a JDK; users do not).

To be done with Pyserini 1.6 installed (Python 3.11): Lucene 10's classes cannot be compiled against at release 17.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from sdretrieval.core.anserini_jar import anserini_jar
from sdretrieval.core.errors import JavaError

FOLDER = Path(__file__).parent
CLASSES = ("IndexCommitter", "PositionExporter", "SnapshotExporter")
RELEASE = "17"  # class files of release 17 run on every Java that Pyserini accepts


def compile_to(folder: Path) -> None:
    """Compile the sources beside this file into ``folder``, always with the same options."""
    javac = shutil.which("javac")
    if javac is None:
        raise JavaError("no javac on the path.", remedy="Install a JDK (17 or later); only developers need it.")
    command = [javac, "--release", RELEASE, "-g:none", "-proc:none", "-Xlint:-options", "-cp", str(anserini_jar())]
    sources = [str(FOLDER / f"{name}.java") for name in CLASSES]
    result = subprocess.run([*command, "-d", str(folder), *sources], capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise JavaError(f"javac failed:\n{result.stderr}")


if __name__ == "__main__":
    compile_to(FOLDER)
    sys.stdout.write("".join(f"{p.name}: {p.stat().st_size} bytes\n" for p in sorted(FOLDER.glob("*.class"))))
