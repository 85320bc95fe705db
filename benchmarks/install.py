"""The wheel in an empty environment: size, minutes, and whether the demo runs from it.

    python -m benchmarks.install python3.11 python3.12 python3.13

Packages come from wherever pip is told to look; nothing is taken from pip's cache. Lucene is fetched by the demo itself
into the environment, so that the size counts it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

REPOSITORY = Path(__file__).parents[1]


def run(*command: str, folder: Path, **variables: str) -> float:
    """Seconds that a command took; its output where it fails."""
    started = time.perf_counter()
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | variables
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)}\n{done.stdout}\n{done.stderr}")
    return time.perf_counter() - started


def megabytes(folder: Path) -> float:
    return sum(path.lstat().st_blocks * 512 for path in folder.rglob("*")) / 1e6


def install(python: str, scratch: Path) -> str:
    """A row of the table for one interpreter."""
    environment = scratch / "environment"
    run(python, "-m", "venv", "--clear", str(environment), folder=scratch)
    programs, caches = environment / "bin", {"XDG_CACHE_HOME": str(environment / "cache"), "PIP_NO_CACHE_DIR": "1"}
    (wheel,) = scratch.glob("*.whl")
    installing = run(str(programs / "pip"), "install", "-q", str(wheel), folder=scratch, **caches)
    fetching = run(str(programs / "sdretrieval"), "doctor", "--fetch", folder=scratch, **caches)
    demo = run(str(programs / "sdretrieval"), "demo", folder=scratch, **caches)
    listed = subprocess.run([programs / "pip", "list"], capture_output=True, text=True, check=True).stdout
    torch = "yes" if "\ntorch " in listed else "no"
    version = subprocess.run([programs / "python", "-V"], capture_output=True, text=True, check=True).stdout.strip()
    cells = (version, f"{megabytes(environment):.0f}", f"{(installing + fetching) / 60:.1f}", f"{demo:.0f}", torch)
    return "| " + " | ".join(cells) + " |"


def main(pythons: list[str]) -> None:
    print("| interpreter | MB, Lucene and compiled loops included | minutes to install | seconds of the demo | torch |")
    print("|---|---|---|---|---|", flush=True)
    with tempfile.TemporaryDirectory() as name:
        source = Path(name) / "source"  # building leaves folders behind, which would be found later
        source.mkdir()
        shutil.copytree(REPOSITORY / "sdretrieval", source / "sdretrieval")
        for file in ("pyproject.toml", "README.md", "LICENSE"):
            shutil.copy(REPOSITORY / file, source)
        wheel = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--wheel-dir", name, str(source)]
        run(*wheel, folder=source)
        for python in pythons or [sys.executable]:
            print(install(python, Path(name)), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
