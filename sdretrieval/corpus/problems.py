"""Bad input: stop at the first, or count and list (``--skip-bad``)."""

from __future__ import annotations

from dataclasses import dataclass, field

from sdretrieval.errors import InputError

LISTED = 100  # a corpus in the wrong format has a million problems; the first hundred tell as much


@dataclass
class Problems:
    """Where readers report what they cannot use.

    >>> seen = Problems(skip=True)
    >>> seen.report(InputError("no field 'id'", file="docs.jsonl", line=3))
    >>> seen.count, seen.listed
    (1, ["docs.jsonl:3: no field 'id'"])
    """

    skip: bool = False
    count: int = 0
    listed: list[str] = field(default_factory=list)

    def report(self, error: InputError) -> None:
        """Raise the error, or note it and let the reader go on."""
        if not self.skip:
            raise error
        self.count += 1
        if len(self.listed) < LISTED:
            self.listed.append(error.message)
