"""``make results``: regenerate docs/RESULTS.md from the collections in ../shared/data. An hour and a half; resumable.

python -m benchmarks.results             # everything
python -m benchmarks.results Ranking     # one section, and the page anew
"""

from __future__ import annotations

import importlib
import platform
import re
import sys
import time

from benchmarks.collections import ROOT, SHARED
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
    "Local logistic regression": "benchmarks.results_local_logistic",
    "Evolving": "benchmarks.results_evolving",
    "Tracking": "benchmarks.results_tracking",
    "Burstiness": "benchmarks.results_burstiness",
    "Topics": "benchmarks.results_topics",
}
PAGE = ROOT / "docs" / "RESULTS.md"


def main() -> None:
    if not SHARED.is_dir():
        sys.exit("the collections of ../shared/data are not on this machine; docs/RESULTS.md is left as it is")
    for heading in sys.argv[1:] or SECTIONS:
        began = time.perf_counter()
        text = importlib.import_module(SECTIONS[heading]).section()
        minutes = (time.perf_counter() - began) / 60
        _write(heading, text.strip() + f"\n\n(*{minutes:.1f} minutes*)\n")
        print(f"{heading}: {minutes:.1f} minutes", file=sys.stderr)


def _write(heading: str, text: str) -> None:
    """The page with one section anew; the others stay as they are on it."""
    page = PAGE.read_text(encoding="utf-8") if PAGE.is_file() else ""
    sections = dict(part.split("\n\n", 1) for part in re.split(r"^## ", page, flags=re.MULTILINE)[1:])
    sections[heading] = text
    with atomic_writer(PAGE) as out:
        out.write(_introduction())
        for name in SECTIONS:
            if name in sections:
                out.write(f"\n## {name}\n\n{sections[name].strip()}\n")


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
