"""What a person sees of what a command wrote."""

from __future__ import annotations

import re

# Of a bar that has come and gone, in output that was read as text: there a carriage return is a line's end too.
_BAR = re.compile(r".*\[\d+:\d\d(:\d\d)?(<|,|\]).*| +")


def as_shown(text: str) -> str:
    """What a terminal still shows: on a slow machine a progress bar may have come and gone.

    >>> as_shown("\\rranking:  50%|##  | 1/2\\r                       \\rdone\\n")
    'done\\n'
    >>> as_shown("\\nranking:  50%|##  | 1/2 [00:03<00:03,  3.38s/topic]\\n                 \\ndone\\n")
    'done\\n'
    >>> as_shown("first\\n\\nlast\\n")
    'first\\n\\nlast\\n'
    """
    lines = [line.split("\r")[-1] for line in text.split("\n")]
    if any(map(_BAR.fullmatch, lines)):
        lines = [line for line in lines[:-1] if line and not _BAR.fullmatch(line)] + lines[-1:]
    return "\n".join(lines)
