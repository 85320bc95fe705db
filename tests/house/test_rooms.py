"""The rooms of the package are layers, and import-linter says so: an import upwards is found wherever it stands."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
from itertools import pairwise
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]

LAYERS, CYCLES = FILES = ("pyproject.toml", "tests/house/cycles.toml")  # as `make lint` gives them to import-linter
CONTRACTS = tomllib.loads((REPOSITORY / LAYERS).read_text())["tool"]["importlinter"]["contracts"]
ROOMS = CONTRACTS[0]["layers"]  # highest first
WAYS = {
    "plain": "import {}\n",
    "in a function": "def late():\n    import {}\n",
    "for types only": "from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    import {}\n",
}


@pytest.fixture(scope="module")
def house(tmp_path_factory) -> Path:
    """A copy of the package, with the settings of lint."""
    folder = tmp_path_factory.mktemp("house")
    shutil.copytree(REPOSITORY / "sdretrieval", folder / "sdretrieval", ignore=shutil.ignore_patterns("__pycache__"))
    for settings in FILES:
        shutil.copy(REPOSITORY / settings, folder)
    return folder


def lint(house: Path, settings: str) -> tuple[int, str]:
    """The exit code and the text of ``lint-imports`` in ``house``."""
    program = Path(sys.executable).with_name("lint-imports")
    command = [program, "--no-logo", "--cache-dir", house / "cache", "--config", Path(settings).name]
    done = subprocess.run(command, cwd=house, capture_output=True, text=True, timeout=300, check=False)
    return done.returncode, done.stdout + done.stderr


def lint_with(house: Path, settings: str, lines: dict[Path, str]) -> tuple[int, str]:
    """The same, with a line at the end of some modules for as long as it takes."""
    texts = {module: module.read_text() for module in lines}
    try:
        for module, text in texts.items():
            module.write_text(f"{text}\n\n{lines[module]}")
        return lint(house, settings)
    finally:
        for module, text in texts.items():
            module.write_text(text)


def last_module(folder: Path) -> Path:
    return max(path for path in folder.rglob("*.py") if path.name != "__init__.py")


def test_an_import_upwards_is_refused(house):
    """Each is told, one from every room but the highest."""
    lines, ways = {}, list(WAYS.values())
    for place, (upper, lower) in enumerate(pairwise(ROOMS)):
        imported = last_module(house / "sdretrieval" / upper).relative_to(house).with_suffix("")
        lines[last_module(house / "sdretrieval" / lower)] = ways[place % len(ways)].format(".".join(imported.parts))
    code, told = lint_with(house, LAYERS, lines)
    assert code == 1, told
    for upper, lower in pairwise(ROOMS):
        assert f"sdretrieval.{lower} is not allowed to import sdretrieval.{upper}" in told


@pytest.mark.parametrize("way", ["plain", "in a function"])
def test_a_cycle_inside_a_room_is_refused(house, way):
    core = house / "sdretrieval" / "core"
    assert "from sdretrieval.core.errors import" in (core / "files.py").read_text()
    code, told = lint_with(house, CYCLES, {core / "errors.py": WAYS[way].format("sdretrieval.core.files")})
    assert code == 1, told
    assert "No cycles are allowed in sdretrieval.core" in told


def test_a_room_that_no_layer_names_is_refused(house):
    (house / "sdretrieval" / "attic").mkdir()
    try:
        (house / "sdretrieval" / "attic" / "__init__.py").touch()
        code, told = lint(house, LAYERS)
    finally:
        shutil.rmtree(house / "sdretrieval" / "attic")
    assert code == 1, told
    assert "attic" in told
