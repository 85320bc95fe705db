"""What is installed is the whole package: its Java, profiles and pages too."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

from conftest import REPOSITORY


def files_of(folder: Path) -> set[str]:
    found = (path for path in (folder / "sdretrieval").rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix() for path in found}


def test_a_wheel_holds_every_file_of_the_package(tmp_path):
    tree = tmp_path / "tree"
    shutil.copytree(REPOSITORY / "sdretrieval", tree / "sdretrieval", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(REPOSITORY / name, tree)
    before = files_of(tree)
    code = f"from setuptools import build_meta\nbuild_meta.build_wheel({str(tmp_path)!r})"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=tree, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        held = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert held == before
