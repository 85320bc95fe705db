"""How pictures look, wherever they are drawn."""

from __future__ import annotations

from typing import Any

GREY = "#6b6b6b"
STYLE: Any = {
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e6e6e6",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "svg.hashsalt": "sdretrieval",  # the same picture, the same bytes
}
