"""ir_metadata in runs (Breuer, Keller and Schaer 2022): how a run was made, as YAML in comments before its first line.

    # ir_metadata.start
    # tag: RM3
    # method:
    #   automatic: true
    # ir_metadata.end
    51 Q0 d1 1 9.5 RM3

trec_eval knows no comments: a run gets them only where they are asked for, and they are read wherever they stand.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from os import PathLike
from typing import Any

from sdretrieval.core.errors import InputError, shown
from sdretrieval.core.files import numbered_lines
from sdretrieval.core.safe_json import parse_json

START, END = "# ir_metadata.start", "# ir_metadata.end"
MOST_LINES = 100_000
_REMEDY = f"Mend the YAML between `{START}` and `{END}`, or remove these lines."


def metadata_lines(content: Mapping[str, Any]) -> str:
    """The comment that holds the metadata."""
    import yaml  # only where it is needed

    text = yaml.safe_dump(dict(content), sort_keys=False, width=4096)  # other letters than ASCII's escaped
    return "\n".join([START, *(f"# {line}" for line in text.splitlines()), END, ""])


def read_metadata(path: str | PathLike[str]) -> dict[str, Any] | None:
    """The metadata of a run; None where it has none."""
    import yaml  # only where it is needed

    class Loader(yaml.SafeLoader):
        """Plain values alone: of aliases a few lines can be made that stand for gigabytes."""

        def compose_node(self, parent: Any, index: Any) -> Any:
            if self.check_event(yaml.AliasEvent):
                raise yaml.YAMLError("an alias, which ir_metadata has no use for")
            return super().compose_node(parent, index)

    held: list[str] = []
    for _ in after_metadata(path, numbered_lines(path), held):
        break
    if not held:
        return None
    try:
        content = yaml.load("\n".join(held[1:-1]), Loader)  # a safe one
        content = parse_json(json.dumps(content, default=str), constants=True)  # as any manifest: no dates, no depths
    except (yaml.YAMLError, ValueError, TypeError, RecursionError, OverflowError) as error:
        told = shown(" ".join(str(error).split()))
        raise InputError(f"its ir_metadata cannot be read ({told})", file=path, line=1, remedy=_REMEDY) from None
    if not isinstance(content, dict):
        raise InputError("its ir_metadata is no mapping", file=path, line=1, remedy=_REMEDY)
    return content


def after_metadata(
    path: str | PathLike[str], lines: Iterable[tuple[int, str]], held: list[str] | None = None
) -> Iterator[tuple[int, str]]:
    """The lines of a run after its metadata, which are put into ``held``, without their marks."""
    within = False
    for number, line in lines:
        if number == 1 and line.strip() == START:
            within = True
        if not within:
            yield number, line
            continue
        if not line.startswith("#") or number > MOST_LINES:
            raise InputError(f"its ir_metadata has no end: {shown(line)}", file=path, line=number, remedy=_REMEDY)
        if held is not None:
            held.append(line[1:])
        within = line.strip() != END
    if within:
        raise InputError("its ir_metadata has no end", file=path, remedy=_REMEDY)
