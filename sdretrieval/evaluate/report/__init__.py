"""From runs and judgments to something people would rather look at.

    from sdretrieval.evaluate.report import gather, write_html
    write_html("report.html", gather(runs, qrels, measures=["AP", "P@5"]))

===============  =====================================================================================
:mod:`gather`    everything a report shows, as plain data
:mod:`html`      that data as one self-contained page (assets/: its style and its scripts)
:mod:`plots`     PNG, SVG and PDF figures for papers
:mod:`latex`     a table in the manner of the thesis's Table 5.3
===============  =====================================================================================
"""

from __future__ import annotations

from sdretrieval.evaluate.report.gather import gather
from sdretrieval.evaluate.report.html import render_html, write_html
from sdretrieval.evaluate.report.latex import Block, latex_table

__all__ = ["Block", "gather", "latex_table", "render_html", "write_html"]
