"""The tab key: what bash offers is what the verbs take."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from sdretrieval.cli.completion import bash, fish
from sdretrieval.cli.main import VERBS


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("sdretrieval ev", {"evaluate", "evolve"}),
        ("sdretrieval search --mo", {"--model"}),
        ("sdretrieval search --model rm", {"rm", "rm-dce", "rm3"}),
        ("sdretrieval index --undated ", {"keep", "drop", "error"}),
        ("sdretrieval completion f", {"fish"}),
    ],
)
def test_bash(words, offered, tmp_path):
    if shutil.which("bash") is None:
        pytest.skip("no bash on this machine")
    (tmp_path / "completion.bash").write_text(bash())
    typed = words.split(" ")
    script = f"source completion.bash; COMP_WORDS=({words} ''); COMP_CWORD={len(typed) - 1}; _sdretrieval; "
    done = subprocess.run(
        ["bash", "-c", script + 'printf "%s\\n" "${COMPREPLY[@]}"'], cwd=tmp_path, capture_output=True, text=True
    )
    assert (set(done.stdout.split()), done.stderr) == (offered, "")


def test_fish_has_every_verb_and_its_flags():
    lines = fish().splitlines()
    assert {line.split(" -a ")[1].split()[0] for line in lines if "__fish_use_subcommand" in line} == set(VERBS)
    assert any("__fish_seen_subcommand_from search" in line and "-l save-expansion" in line for line in lines)
