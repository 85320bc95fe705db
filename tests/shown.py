"""What a person sees of what a command wrote."""

from __future__ import annotations


def as_shown(text: str) -> str:
    """What a terminal still shows: on a slow machine a progress bar may have come and gone.

    >>> as_shown("\\rranking:  50%|##  | 1/2\\r                       \\rdone\\n")
    'done\\n'
    """
    return "\n".join(line.split("\r")[-1] for line in text.split("\n"))
