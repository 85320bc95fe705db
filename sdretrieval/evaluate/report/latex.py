"""A LaTeX table in the manner of the thesis's Table 5.3: models across, collections and measures down.

Values are percentages; bold is the best of a row, as in the page. A raised + or - marks a run above or below the
baseline by the t-test and Wilcoxon's (by all tests that were made, where neither was) at the 5 % level. Needs no LaTeX
package.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from sdretrieval.core.errors import ParameterError
from sdretrieval.evaluate.measures import Evaluation
from sdretrieval.evaluate.significance import Comparison

MARKED_TESTS = ("t", "wilcoxon")

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
            shown = [_value(evaluation.mean[measure], measure) for evaluation in block.evaluations]
            best = _best([evaluation.mean[measure] for evaluation in block.evaluations], shown)
            cells = [
                (rf"\textbf{{{text}}}" if text == best else text) + _mark(by.get((evaluation.name, measure)))
                for evaluation, text in zip(block.evaluations, shown, strict=True)
            ]
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
    return [test for test in MARKED_TESTS if test in comparison.tests] or list(comparison.tests)


def _best(values: Sequence[float], shown: Sequence[str]) -> str | None:
    """The highest value as it is shown; none where there is nothing to choose from."""
    pairs = [(value, text) for value, text in zip(values, shown, strict=True) if not math.isnan(value)]
    return max(pairs)[1] if len(values) > 1 and len({text for _, text in pairs}) > 1 else None


def _mark(comparison: Comparison | None) -> str:
    asked = [] if comparison is None else _asked(comparison)
    if comparison is None or not asked or not all(map(comparison.significant, asked)):
        return ""
    return "$^{+}$" if comparison.difference > 0 else "$^{-}$"


def _caption(blocks: Sequence[Block]) -> str:
    caption = "Means over topics, in percent. Bold: the best of a row."
    compared = [c for block in blocks for c in block.comparisons]
    if compared:
        asked = _asked(compared[0])
        caption += (
            rf" $^{{+}}$, $^{{-}}$: above, below {escape(compared[0].baseline)} by the paired two-sided "
            rf"{' and '.join(asked)} test{'s' if len(asked) > 1 else ''} at the 5\% level, corrected over the runs "
            "compared."
        )
    return caption
