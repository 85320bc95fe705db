"""What users of other tools type first works, or names a way out that does (benchmarks/first_week.py)."""

from __future__ import annotations

from benchmarks.first_week import COMMANDS, first_week, prepare


def test_no_command_is_a_dead_end(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # and back again at the end
    prepare(tmp_path)
    assert len(COMMANDS) >= 40
    found = first_week()
    assert not [line for line in found if line.startswith("FAIL")], "\n".join(found)
