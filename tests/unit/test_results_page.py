"""How docs/RESULTS.md comes about: sections made once, in processes of their own, with what they cost."""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path

import pytest

from benchmarks import kept as kept_module
from benchmarks import results
from benchmarks.collections import one_at_a_time
from benchmarks.kept import BESIDE, Spent, kept


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(results, "PAGE", tmp_path / "RESULTS.md")
    monkeypatch.setattr(results, "FOLDER", tmp_path / "results")
    monkeypatch.setattr(results, "DONE", tmp_path / "done")
    monkeypatch.setattr(results, "SHARED", tmp_path)
    monkeypatch.setattr(results, "SECTIONS", {"Long": "long", "Short": "short", "Broken": "broken"})
    return tmp_path / "RESULTS.md"


def test_what_is_kept_is_made_once_and_its_cost_is_told_again(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(kept_module, "KEPT", tmp_path)
    made = []

    def make() -> dict[str, int]:
        made.append(1)
        Spent.add_cached(100.0)  # as if something within it had come from the cache
        return {"answer": 42}

    first = Spent()
    assert kept("part/one", make) == {"answer": 42}
    assert first.seconds >= 100.0
    again = Spent()
    assert kept("part/one", make) == {"answer": 42} and len(made) == 1
    assert 100.0 <= again.seconds < 150.0


def test_sections_go_in_order_of_cost_and_unknown_ones_first(page: Path) -> None:
    results.write("Short", "text", "(*1.5 minutes of processor time*)")
    results.write("Long", f"text\n\n{BESIDE}\n\nrest", "(*12.0 minutes of processor time*)")
    assert results.longest_first({"Short", "Long", "Broken"}) == ["Broken", "Long", "Short"]
    assert page.read_text().index("## Long") < page.read_text().index("## Short")
    assert (page.parent / "results" / "long.md").read_text().endswith("rest\n")


def test_a_section_that_fails_leaves_the_others_done(page: Path, monkeypatch) -> None:
    def sections(headings):
        yield "Short", "short text", 1.0
        yield "Broken", None, 0.0
        yield "Long", "long text", 2.0

    monkeypatch.setattr(results, "made", sections)
    monkeypatch.setattr(sys, "argv", ["results"])
    with pytest.raises(SystemExit, match="not made: Broken"):
        results.main()
    assert results.DONE.read_text().split() == ["Short", "Long"]
    assert "long text\n\n(*2.0 minutes of processor time*)" in page.read_text()
    asked = []
    monkeypatch.setattr(results, "made", lambda headings: asked.extend(headings) or [("Broken", "mended", 0.1)])
    results.main()
    assert asked == ["Broken"] and not results.DONE.exists() and "mended" in page.read_text()


def test_sections_are_made_in_processes_of_their_own(page: Path, monkeypatch, capsys) -> None:
    counted = "from benchmarks.kept import Spent\ndef section():\n    Spent.add_cached(60.0)\n    return 'text'\n"
    (page.parent / "short.py").write_text(counted)
    (page.parent / "broken.py").write_text("def section():\n    raise ValueError('no such collection')\n")
    monkeypatch.syspath_prepend(page.parent)
    monkeypatch.setenv("OMP_NUM_THREADS", "2")  # put back afterwards: made() says 1 to its processes
    monkeypatch.setattr(results, "THREADS", 2)
    found = {heading: (text, minutes) for heading, text, minutes in results.made(["Broken", "Short"])}
    assert found["Broken"] == (None, 0.0) and "no such collection" in capsys.readouterr().err
    text, minutes = found["Short"]
    assert text == "text" and 1.0 <= minutes < 1.5


def test_an_index_is_built_by_one_section_while_another_waits(tmp_path: Path) -> None:
    index, seen = tmp_path / "index", []

    def build() -> None:
        with one_at_a_time(index):
            seen.append(index.is_dir())
            time.sleep(0.2)
            index.mkdir(exist_ok=True)

    threads = [threading.Thread(target=build) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [False, True]


def test_every_section_tells_its_minutes_and_all_are_made_in_an_hour_and_a_half_on_two_cores() -> None:
    told = results.told_minutes()
    assert set(told) == set(results.SECTIONS)
    assert sum(told.values()) < 2 * 90
