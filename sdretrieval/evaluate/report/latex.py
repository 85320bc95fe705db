"""A LaTeX table in the manner of the thesis's Table 5.3: models across, collections and measures down.

Values are percentages; bold marks a run that differs from the baseline by every test named (t and Wilcoxon by
default) at the 5 % level. Needs no LaTeX package.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sdretrieval.core.errors import ParameterError
from sdretrieval.evaluate.measures import Evaluation
from sdretrieval.evaluate.significance import Comparison

BOLD_TESTS = ("t", "wilcoxon")

_NAMED = {"\\": "backslash", "~": "asciitilde", "^": "asciicircum", "<": "less", ">": "greater"}
_SPECIAL = {c: rf"\{c}" for c in "{}$&#_%"} | {c: rf"\text{name}{{}}" for c, name in _NAMED.items()}


def escape(text: str) -> str:
    r"""Any text, made harmless to LaTeX.

    >>> print(escape("rm3_fb=10 & 50%"))
    rm3\_fb=10 \& 50\%
    """
    return "".join(_SPECIAL.get(c, c if c.isprintable() else " ") for c in text)


@dataclass(frozen=True)
class Block:
    """One collection's rows."""

    collection: str
    evaluations: Sequence[Evaluation]
    comparisons: Sequence[Comparison] = ()


def measure_name(measure: str) -> str:
    """The thesis's names where it has one.

    >>> measure_name("AP"), measure_name("P@5"), measure_name("nDCG@10")
    ('MAP', 'Pr(5)', 'nDCG@10')
    """
    if measure == "AP":
        return "MAP"
    precision = re.fullmatch(r"P@(\d+)", measure)
    return f"Pr({precision[1]})" if precision else measure


def latex_table(
    blocks: Sequence[Block],
    *,
    parameters: Mapping[str, str] | None = None,
    bold_tests: Sequence[str] = BOLD_TESTS,
    percent: bool = True,
    places: int = 2,
    label: str = "tab:results",
) -> str:
    """One table over any number of collections that have the same runs.

    Parameters
    ----------
    blocks
        The rows of each collection.
    parameters
        Adds a row saying how each run was set, by run name.
    bold_tests
        A value is bold where all of these tests that were made are significant.
    percent, places
        How values are written.
    label
        LaTeX's.

    Returns
    -------
    str
        A ``table`` environment.
    """
    if not blocks:
        raise ParameterError("a table needs at least one collection")
    names = [evaluation.name for evaluation in blocks[0].evaluations]
    for block in blocks:
        found = [evaluation.name for evaluation in block.evaluations]
        if found != names:
            raise ParameterError(
                f"collection {block.collection!r} has runs {found}, the first has {names}",
                remedy="Give every collection the same runs in the same order.",
            )
    lines = [r"\begin{table}", r"\centering", rf"\begin{{tabular}}{{ll{'r' * len(names)}}}", r"\hline"]
    lines += [_row(["", "", *map(escape, names)]), r"\hline"]
    if parameters:
        lines += [_row(["Parameters", "", *(escape(parameters.get(name, "")) for name in names)]), r"\hline"]
    for block in blocks:
        by = {(c.run, c.measure): c for c in block.comparisons}
        for i, measure in enumerate(block.evaluations[0].measures):
            cells = []
            for evaluation in block.evaluations:
                text = _value(evaluation.mean[measure], measure, percent, places)
                bold = _is_bold(by.get((evaluation.name, measure)), bold_tests)
                cells.append(rf"\textbf{{{text}}}" if bold else text)
            lines.append(_row([escape(block.collection) if i == 0 else "", escape(measure_name(measure)), *cells]))
        lines.append(r"\hline")
    lines += [r"\end{tabular}", rf"\caption{{{_caption(blocks, bold_tests, percent)}}}", rf"\label{{{label}}}"]
    return "\n".join([*lines, r"\end{table}", ""])


def _row(cells: Sequence[str]) -> str:
    return " & ".join(cells) + r" \\"


def _value(value: float, measure: str, percent: bool, places: int) -> str:
    if math.isnan(value):
        return "--"
    if measure.startswith("Num"):  # counts are counts
        return f"{value:.0f}"
    return f"{100 * value if percent else value:.{places}f}"


def _asked(comparison: Comparison, tests: Sequence[str]) -> list[str]:
    return [test for test in tests if test in comparison.tests] or list(comparison.tests)


def _is_bold(comparison: Comparison | None, tests: Sequence[str]) -> bool:
    asked = [] if comparison is None else _asked(comparison, tests)
    return comparison is not None and bool(asked) and all(map(comparison.significant, asked))


def _caption(blocks: Sequence[Block], tests: Sequence[str], percent: bool) -> str:
    caption = "Means over topics" + (r", in percent." if percent else ".")
    compared = [c for block in blocks for c in block.comparisons]
    if compared:
        asked = _asked(compared[0], tests)
        caption += (
            f" Bold: different from {escape(compared[0].baseline)} by the paired two-sided {' and '.join(asked)} "
            rf"test{'s' if len(asked) > 1 else ''} at the 5\% level, corrected over the runs compared."
        )
    return caption
