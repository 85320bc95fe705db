"""A small note beside every run: what it takes to make it again."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shlex
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sdretrieval import __version__
from sdretrieval.core.errors import InputError
from sdretrieval.core.files import atomic_writer
from sdretrieval.index.snapshot import Snapshot
from sdretrieval.ranking.base import Ranker

ALONG_TIME = "time prior along time"  # what a document's time added, by topic: [time in ms, nats] pairs


def manifest_path(run: str | os.PathLike[str]) -> Path:
    """runs/x.txt -> runs/x.txt.manifest.json"""
    return Path(f"{os.fspath(run)}.manifest.json")


def file_digest(path: str | os.PathLike[str]) -> str:
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()[:32]


def manifest(
    *,
    verb: str,
    ranker: Ranker | None = None,
    snapshot: Snapshot | None = None,
    parameters: dict[str, Any] | None = None,
    inputs: Mapping[str, str | os.PathLike[str] | None],
    options: dict[str, Any],
    command: Sequence[str] | None = None,
) -> dict:
    """Model and parameters, index fingerprint, digests of the input files, versions; the command, if it was one.

    A verb without a model or an index has its own ``parameters``, and no such entries.
    """
    made_with: dict[str, Any] = {} if ranker is None else {"model": ranker.name, "parameters": ranker.settings()}
    if parameters is not None:
        made_with["parameters"] = parameters
    made_with["options"] = options
    if snapshot is not None:
        identity = {"name": snapshot.name, "fingerprint": snapshot.fingerprint, "documents": snapshot.n_docs}
        made_with["index"] = {**identity, "analyzer": snapshot.analyzer.to_json()}
    return {
        "sdretrieval": __version__,
        "verb": verb,
        **made_with,
        "inputs": {
            name: {"file": os.fspath(path), **({"sha256": file_digest(path)} if Path(path).is_file() else {})}
            for name, path in inputs.items()  # topics may be named, and no file
            if path
        },
        "python": platform.python_version(),
        "command": None if command is None else list(command),
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def ir_metadata(content: Mapping[str, Any], tag: str) -> dict[str, Any]:
    """A manifest of a search as ir_metadata has it: the six components of PRIMAD, two of them for a person to fill in.

    No time of making is in it: the same command writes the same file.
    """
    index, options, inputs = content["index"], content["options"], content["inputs"]
    judged = "feedback" in inputs or options.get("relevant") or options.get("nonrelevant")
    reranks = {"reranks": inputs["run"]["file"]} if "run" in inputs else {}
    toolkit = f"sdretrieval=={content['sdretrieval']}"
    return {
        "schema version": "0.1",
        "tag": tag,
        "platform": {
            "hardware": {"cpu": {"architecture": platform.machine(), "number of cores": os.cpu_count()}},
            "operating system": {"platform": platform.system(), "kernel": platform.release()},
            "software": {"libraries": {"python": [f"python=={content['python']}"]}, "retrieval toolkit": [toolkit]},
        },
        "research goal": {},
        "implementation": {"executable": {"cmd": shlex.join(content["command"] or ())}},
        "method": {
            "automatic": not judged,
            "indexing": index["analyzer"],
            "retrieval": [{"name": content["model"], "method": toolkit, **reranks, **content["parameters"]}],
        },
        "actor": {},
        "data": {
            "test collection": {"name": index["name"], "topics": inputs.get("topics", {}).get("file")},
            "other": [{"name": "index", "fingerprint": index["fingerprint"], "documents": index["documents"]}],
        },
    }


def write_manifest(run: str | os.PathLike[str], content: dict) -> Path:
    """Beside a run that is written, with its digest: a manifest that another run has come to lie beside is known."""
    path = manifest_path(run)
    of_run = {"run": {"sha256": file_digest(run)}} if Path(run).is_file() else {}
    with atomic_writer(path) as out:
        json.dump({**content, **of_run}, out, indent=1, ensure_ascii=False, default=str)
        out.write("\n")
    return path


def check_belongs(content: Mapping[str, Any], run: str | os.PathLike[str], path: str | os.PathLike[str]) -> None:
    """An error where a manifest says that it is of another run. One without a digest, from elsewhere, is believed."""
    about = content.get("run")
    wanted = about.get("sha256") if isinstance(about, Mapping) else None
    if wanted is not None and wanted != file_digest(run):
        raise InputError(
            f"this is the manifest of another run than {os.fspath(run)}, which was written or changed since",
            file=path,
            remedy="Make the run again, or remove the manifest.",
        )
