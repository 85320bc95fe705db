"""``make results``: regenerate docs/RESULTS.md and docs/results/ from the collections in ../shared/data.

python -m benchmarks.results             # everything; stopped, it goes on with the sections it was at
python -m benchmarks.results Ranking     # one section, and the page anew
OMP_NUM_THREADS=1 nice -n 19 python -m benchmarks.results    # one process at a time, beside other work

A section is a module's ``section()``: Markdown, of which what follows BESIDE goes into a file of its own in
docs/results/, so that the page holds the tables that answer a question.
"""

from __future__ import annotations

import importlib
import multiprocessing
import os
import platform
import re
import sys
import traceback
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from math import inf
from pathlib import Path

from benchmarks.collections import ROOT, SHARED, THREADS
from benchmarks.kept import BESIDE, KEPT, Spent
from sdretrieval import __version__
from sdretrieval.core.files import atomic_writer

# heading -> module with section() -> markdown
SECTIONS = {
    "Default": "benchmarks.results_default",
    "Ranking": "benchmarks.results_ranking",
    "Feedback": "benchmarks.results_feedback",
    "Time": "benchmarks.results_time",
    "Drift": "benchmarks.results_drift",
    "Classification": "benchmarks.results_classification",
    "Clustering": "benchmarks.results_clustering",
    "Local logistic regression": "benchmarks.results_local_logistic",
    "Evolving": "benchmarks.results_evolving",
    "Tracking": "benchmarks.results_tracking",
    "Burstiness": "benchmarks.results_burstiness",
    "Topics": "benchmarks.results_topics",
}
PAGE = ROOT / "docs" / "RESULTS.md"
FOLDER = ROOT / "docs" / "results"
DONE = KEPT / "sections-done"  # of a run of all sections that has not come to its end


def main() -> None:
    if not SHARED.is_dir():
        sys.exit("the collections of ../shared/data are not on this machine; docs/RESULTS.md is left as it is")
    chosen = sys.argv[1:]
    unknown = [heading for heading in chosen if heading not in SECTIONS]
    if unknown:
        sys.exit(f"no section {unknown[0]!r}; the sections are: {', '.join(SECTIONS)}")
    done = DONE.read_text(encoding="utf-8").splitlines() if DONE.is_file() and not chosen else []
    failed = []
    for heading, text, minutes in made(longest_first(set(chosen or SECTIONS) - set(done))):
        if text is None:
            failed.append(heading)
            continue
        write(heading, text.strip(), f"(*{minutes:.1f} minutes of processor time*)")
        print(f"{heading}: {minutes:.1f} minutes of processor time", file=sys.stderr, flush=True)
        if not chosen:
            done.append(heading)
            DONE.parent.mkdir(parents=True, exist_ok=True)
            with atomic_writer(DONE) as out:
                out.write("\n".join(done))
    if failed:
        sys.exit(f"not made: {', '.join(failed)}; run it again for these")
    if not chosen:
        DONE.unlink(missing_ok=True)


def longest_first(headings: Collection[str]) -> list[str]:
    """By the minutes that the page tells, those it does not tell of first: so that no core waits long for another."""
    minutes = told_minutes()
    return sorted(headings, key=lambda heading: (-minutes.get(heading, inf), list(SECTIONS).index(heading)))


def told_minutes() -> dict[str, float]:
    """What the page says that each section took of processor time."""
    told = re.findall(r"^## ([^\n]+)$(?:(?!^## ).)*?\(\*([\d.]+) minutes", _page(), flags=re.MULTILINE | re.DOTALL)
    return {heading: float(value) for heading, value in told}


def made(headings: Sequence[str]) -> Iterator[tuple[str, str | None, float]]:
    """Each section's text and processor minutes as they come, a process for each, as many at a time as there are
    threads to use; None for the text of one that failed."""
    at_once = min(THREADS, len(headings))
    if at_once > 1:
        os.environ["OMP_NUM_THREADS"] = "1"  # of each process: they make up for the threads
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(at_once, mp_context=context, max_tasks_per_child=1) as pool:
        waiting = {pool.submit(make, SECTIONS[heading]): heading for heading in headings}
        for one in as_completed(waiting):
            if one.exception():
                traceback.print_exception(one.exception())
            yield waiting[one], *((None, 0.0) if one.exception() else one.result())


def make(module: str) -> tuple[str, float]:
    spent = Spent()
    text = importlib.import_module(module).section()
    return text, spent.seconds / 60


def _page() -> str:
    return PAGE.read_text(encoding="utf-8") if PAGE.is_file() else ""


def write(heading: str, text: str, took: str = "") -> None:
    """The page with one section anew, the others as they are on it; and what goes beside it."""
    shown, _, beside = text.partition(BESIDE)
    if beside:
        name = heading.lower().replace(" ", "-")
        FOLDER.mkdir(exist_ok=True)
        with atomic_writer(FOLDER / f"{name}.md") as out:
            out.write(f"# {heading}: the rest\n\nBeside [RESULTS.md](RESULTS.md#{name}).\n\n{beside.strip()}\n")
        _relink(FOLDER / f"{name}.md")
        took = f"More: [results/{name}.md](results/{name}.md). {took}"
    sections = dict(part.split("\n\n", 1) for part in re.split(r"^## ", _page(), flags=re.MULTILINE)[1:])
    sections[heading] = f"{shown.strip()}\n\n{took}"
    with atomic_writer(PAGE) as out:
        out.write(_introduction())
        for name in SECTIONS:
            if name in sections:
                out.write(f"\n## {name}\n\n{sections[name].strip()}\n")


def _relink(path: Path) -> None:
    """Links that were written for docs/, from a folder below it."""
    text = re.sub(r"\]\((?![\w]+:|#|\.\./)", "](../", path.read_text(encoding="utf-8"))
    with atomic_writer(path) as out:
        out.write(text)


def _introduction() -> str:
    notes = ROOT / "docs" / "RESULTS.notes.md"
    return (
        (
            "# Results\n\n"
            f"Written by `make results` (sdretrieval {__version__}, Python {platform.python_version()}): do not edit. "
            "`python -m benchmarks.results Ranking` redoes one section. What the numbers mean is in "
            "[RESULTS.notes.md](RESULTS.notes.md).\n"
        )
        if notes.is_file()
        else "# Results\n\nWritten by `make results`: do not edit.\n"
    )


if __name__ == "__main__":
    main()
