"""A small note beside every run: what it takes to make it again."""

from __future__ import annotations

import hashlib
import json
import os
import platform
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sdretrieval import __version__
from sdretrieval.core.files import atomic_writer
from sdretrieval.index.snapshot import Snapshot
from sdretrieval.ranking.base import Ranker


def manifest_path(run: str | os.PathLike[str]) -> Path:
    """runs/x.txt -> runs/x.txt.manifest.json"""
    return Path(f"{os.fspath(run)}.manifest.json")


def file_digest(path: str | os.PathLike[str]) -> str:
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()[:32]


def manifest(
    *,
    verb: str,
    ranker: Ranker,
    snapshot: Snapshot,
    inputs: dict[str, str | None],
    options: dict[str, Any],
    command: Sequence[str] | None = None,
) -> dict:
    """Model and parameters, index fingerprint, digests of the input files, versions; the command, if it was one."""
    return {
        "sdretrieval": __version__,
        "verb": verb,
        "model": ranker.name,
        "parameters": ranker.settings(),
        "options": options,
        "index": {"name": snapshot.name, "fingerprint": snapshot.fingerprint, "documents": snapshot.n_docs},
        "inputs": {
            name: {"file": os.fspath(path), "sha256": file_digest(path)} for name, path in inputs.items() if path
        },
        "python": platform.python_version(),
        "command": None if command is None else list(command),
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def write_manifest(run: str | os.PathLike[str], content: dict) -> Path:
    path = manifest_path(run)
    with atomic_writer(path) as out:
        json.dump(content, out, indent=1, ensure_ascii=False, default=str)
        out.write("\n")
    return path
