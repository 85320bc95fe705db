"""The short form of `make fuzz`: a few hundred altered files for each reader are read or refused, nothing else."""

from __future__ import annotations

import pytest
from fuzzing import TARGETS, run_case, warm_up

# Those that a fitted model stands behind take longer to make than to read.
CASES = {name: 40 if target.kind.startswith("saved") or target.tool else 120 for name, target in TARGETS.items()}


@pytest.mark.java
@pytest.mark.parametrize("name", TARGETS)
def test_altered_files_are_read_or_refused(tmp_path, name):
    warm_up(name, tmp_path)
    outcomes = {n: run_case(name, n, tmp_path, ask_tools=n < 20) for n in range(CASES[name])}
    assert {n: told for n, told in outcomes.items() if told not in ("read", "refused")} == {}
