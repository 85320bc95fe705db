"""What tests of corpus readers share."""

from __future__ import annotations

from pathlib import Path

import pytest

from sdretrieval.collection.corpus import Problems, Reader
from sdretrieval.core.errors import InputError


def read(*paths: Path, **options):
    return list(Reader(**options).read(paths))


def error_of(*paths: Path, **options) -> str:
    with pytest.raises(InputError) as caught:
        read(*paths, **options)
    return str(caught.value)


def check_refused(path: Path, line: int, told: str, **options) -> None:
    """A bad document is an error with file and line, and --skip-bad passes over exactly that one."""
    message = error_of(path, **options)
    assert message.startswith(f"{path}:{line}: ")
    assert told in message
    problems = Problems(skip=True)
    assert [document.docid for document in read(path, problems=problems, **options)] == ["1"]
    assert problems.count == 1
    assert problems.listed[0] == message.split("\n")[0]
