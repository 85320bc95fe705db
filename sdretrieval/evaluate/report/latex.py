"""A LaTeX table in the manner of the thesis's Table 5.3: models across, collections and measures down.

Values are percentages; bold marks a run that differs from the baseline by the t-test and Wilcoxon's (by all tests that
were made, where neither was) at the 5 % level. Needs no LaTeX package.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
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


def latex_table(blocks: Sequence[Block]) -> str:
    """A ``table`` environment over any number of collections that have the same runs."""
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
    for block in blocks:
        by = {(c.run, c.measure): c for c in block.comparisons}
        for i, measure in enumerate(block.evaluations[0].measures):
            cells = []
            for evaluation in block.evaluations:
                text = _value(evaluation.mean[measure], measure)
                cells.append(rf"\textbf{{{text}}}" if _is_bold(by.get((evaluation.name, measure))) else text)
            lines.append(_row([escape(block.collection) if i == 0 else "", escape(measure_name(measure)), *cells]))
        lines.append(r"\hline")
    lines += [r"\end{tabular}", rf"\caption{{{_caption(blocks)}}}", r"\label{tab:results}"]
    return "\n".join([*lines, r"\end{table}", ""])


def _row(cells: Sequence[str]) -> str:
    return " & ".join(cells) + r" \\"


def _value(value: float, measure: str) -> str:
    if math.isnan(value):
        return "--"
    return f"{value:.0f}" if measure.startswith("Num") else f"{100 * value:.2f}"  # counts are counts


def _asked(comparison: Comparison) -> list[str]:
    return [test for test in BOLD_TESTS if test in comparison.tests] or list(comparison.tests)


def _is_bold(comparison: Comparison | None) -> bool:
    asked = [] if comparison is None else _asked(comparison)
    return comparison is not None and bool(asked) and all(map(comparison.significant, asked))


def _caption(blocks: Sequence[Block]) -> str:
    caption = "Means over topics, in percent."
    compared = [c for block in blocks for c in block.comparisons]
    if compared:
        asked = _asked(compared[0])
        caption += (
            f" Bold: different from {escape(compared[0].baseline)} by the paired two-sided {' and '.join(asked)} "
            rf"test{'s' if len(asked) > 1 else ''} at the 5\% level, corrected over the runs compared."
        )
    return caption
