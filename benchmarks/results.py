"""``make results``: regenerate docs/RESULTS.md from the collections in ../shared/data. An hour and a half; resumable.

python -m benchmarks.results             # everything
python -m benchmarks.results Ranking     # one section, and the page anew
python -m benchmarks.results --assemble  # the page from what was kept of earlier runs
"""

from __future__ import annotations

import importlib
import platform
import sys
import time
from pathlib import Path

from benchmarks.collections import ROOT, SHARED
from sdretrieval import __version__
from sdretrieval.core.files import atomic_writer

# heading -> module with section() -> markdown
SECTIONS = {
    "Ranking": "benchmarks.results_ranking",
    "Feedback": "benchmarks.results_feedback",
    "Time": "benchmarks.results_time",
    "Drift": "benchmarks.results_drift",
    "Classification": "benchmarks.results_classification",
    "Local logistic regression": "benchmarks.results_local_logistic",
    "Evolving": "benchmarks.results_evolving",
    "Tracking": "benchmarks.results_tracking",
    "Burstiness": "benchmarks.results_burstiness",
    "Topics": "benchmarks.results_topics",
}
KEPT = ROOT / ".cache" / "results"


def main() -> None:
    if not SHARED.is_dir():
        sys.exit("the collections of ../shared/data are not on this machine; docs/RESULTS.md is left as it is")
    wanted = [] if sys.argv[1:] == ["--assemble"] else sys.argv[1:] or list(SECTIONS)
    KEPT.mkdir(parents=True, exist_ok=True)
    for heading in wanted:
        began = time.perf_counter()
        text = importlib.import_module(SECTIONS[heading]).section()
        with atomic_writer(_kept(heading)) as out:
            out.write(text.strip() + f"\n\n(*{(time.perf_counter() - began) / 60:.1f} minutes*)\n")
        print(f"{heading}: {time.perf_counter() - began:.0f} s", file=sys.stderr)
    with atomic_writer(ROOT / "docs" / "RESULTS.md") as out:
        out.write(_introduction())
        for heading in SECTIONS:
            if _kept(heading).is_file():
                out.write(f"\n## {heading}\n\n" + _kept(heading).read_text(encoding="utf-8"))


def _kept(heading: str) -> Path:
    return KEPT / f"{heading.lower()}.md"


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
