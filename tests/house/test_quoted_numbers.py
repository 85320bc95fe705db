"""Numbers that the prose quotes are in the tables it quotes them from.

A number with three digits or more (91.7, .3837) in one of the parts below must be some number of that section of
docs/RESULTS.md (or of docs/results/) rounded to as many places, as it stands or in percent. Numbers of the papers, and
of commands that stand beside them, are listed.
"""

from __future__ import annotations

import re

import pytest
from pages import REPOSITORY

DOCS = REPOSITORY / "docs"
NUMBER = re.compile(r"(?<![\w.,-])[-+−]?\d*\.\d+(?![\w.]*\d)")
QUOTING = {
    ("docs/CLASSIFICATION.md", "The thesis's tables again"): "Classification",
    ("docs/BURSTINESS.md", "What comes out"): "Burstiness",
    **{
        ("docs/FEEDBACK.md", heading): "Feedback"
        for heading in (
            "Runs made one",
            "Feedback from judged documents",
            "More than one iteration of EM",
            "Document cross-entropy",
            "The paper's values",
        )
    },
    ("docs/RESULTS.notes.md", "Ranking"): "Ranking",
    ("docs/RESULTS.notes.md", "Drift"): "Drift",
    ("docs/RESULTS.notes.md", "Tracking"): "Tracking",
    ("docs/RESULTS.notes.md", "Themes"): "Topics",
    ("docs/RESULTS.notes.md", "Local logistic regression"): "Local logistic regression",
    ("docs/EVOLVING.md", "What is found on real posts"): "Evolving",
}
ELSEWHERE = {
    # the thesis's own numbers, and Joachims's
    "The thesis's tables again": {"86.5", "76.2", "82.5", "65.6", "64.2", "59.3", "74.9"},
    # of a search told of beside them
    "Tracking": {".464", ".702"},
    # `sdretrieval search --set …` stands beside them
    "Ranking": {".3837", ".3330", ".3528", ".3583", ".3170", ".2690", ".2329", ".2524"},
}


def section(text: str, heading: str) -> str:
    found = re.search(rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", text, flags=re.MULTILINE | re.DOTALL)
    assert found, f"no section {heading}"
    return found[1]


def digits(number: str) -> int:
    return len(number.lstrip("+-−0.").replace(".", "")) if float(number.replace("−", "-")) else 0


def measured(heading: str) -> list[float]:
    text = section((DOCS / "RESULTS.md").read_text(encoding="utf-8"), heading)
    beside = DOCS / "results" / f"{heading.lower().replace(' ', '-')}.md"
    text += beside.read_text(encoding="utf-8") if beside.is_file() else ""
    return [float(number.replace("−", "-")) for number in NUMBER.findall(text)]


def is_among(number: str, values: list[float]) -> bool:
    quoted = float(number.replace("−", "-"))
    half = 0.5000001 * 10.0 ** -len(number.partition(".")[2])
    return any(abs(abs(quoted) - scale * abs(value)) <= half for value in values for scale in (1.0, 100.0))


@pytest.mark.parametrize(("page", "heading"), QUOTING)
def test_quoted_numbers_are_in_the_tables(page: str, heading: str) -> None:
    text = section((REPOSITORY / page).read_text(encoding="utf-8"), heading)
    values = measured(QUOTING[page, heading])
    assert values
    quoted = [n for n in NUMBER.findall(re.sub(r"\(\d\.\d{1,2}\)", "", text)) if digits(n) >= 3]
    missing = [n for n in quoted if n not in ELSEWHERE.get(heading, set()) and not is_among(n, values)]
    assert not missing, f"{page}, {heading}: not in RESULTS.md: {missing}"


def test_the_readme_says_what_the_pages_say() -> None:
    speeds = NUMBER.findall((DOCS / "BENCHMARKS.md").read_text(encoding="utf-8"))
    values = measured("Default") + [float(number.replace("−", "-")) for number in speeds]
    quoted = NUMBER.findall(section((REPOSITORY / "README.md").read_text(encoding="utf-8"), "Measured"))
    assert quoted and not [number for number in quoted if not is_among(number, values)]


def test_a_wrong_number_is_found() -> None:
    assert is_among("91.7", [91.66]) and is_among(".786", [0.7857]) and is_among("78.6", [0.7857])
    assert not is_among("91.8", [91.66]) and not is_among(".787", [0.7857])
    found = NUMBER.findall("SD (91.7) at λ = 1e-4, (3.42), N = 25; 14.0 against .25")
    assert [n for n in found if digits(n) >= 3] == ["91.7", "3.42", "14.0"]
