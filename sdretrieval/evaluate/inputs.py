"""Runs, and what lies beside them, as a command line names them.

A run is given by its path, or as ``NAME=PATH`` to choose what tables call it. Beside ``runs/ql.trec`` may
lie ``runs/ql.trec.manifest.json`` (or ``runs/ql.manifest.json``): how it was made, and
``runs/ql.trec.expansion.jsonl`` (or ``runs/ql.expansion.jsonl``): the expanded queries, one ``{"qid": …,
"terms": {term: weight}}`` per line.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import nlargest
from os import PathLike
from pathlib import Path
from typing import Any

from sdretrieval.errors import InputError, ParameterError
from sdretrieval.files import numbered_lines, open_text
from sdretrieval.progress import progress
from sdretrieval.records import Run
from sdretrieval.trec import read_run

ENDINGS = (".gz", ".txt", ".trec", ".run", ".res", ".tsv")


@dataclass(frozen=True)
class NamedRun:
    """A run with the name tables give it, and what was found beside its file."""

    name: str
    run: Run
    path: Path | None = None
    manifest: Mapping[str, Any] | None = None
    expansions: Mapping[str, Mapping[str, float]] = field(default_factory=dict)


def stem(path: Path) -> str:
    """The file's name without the endings runs usually have."""
    name = path.name
    while True:
        shorter = next((name[: -len(end)] for end in ENDINGS if name.endswith(end) and name != end), None)
        if shorter is None:
            return name
        name = shorter


def split_names(specs: Sequence[str]) -> list[tuple[str, Path]]:
    """``NAME=PATH`` or ``PATH`` to (name, path); the whole path is the name where file names clash."""
    chosen: list[tuple[str | None, Path]] = []
    for spec in specs:
        name, equals, rest = spec.partition("=")
        # A path may contain '='; what exists as it stands is a path.
        if equals and name and rest and not Path(spec).exists():
            chosen.append((name, Path(rest)))
        else:
            chosen.append((None, Path(spec)))
    stems = Counter(stem(path) for name, path in chosen if name is None)
    named = []
    for given, path in chosen:
        short = stem(path) if stems[stem(path)] == 1 else str(path)
        named.append((short if given is None else given, path))
    twice = [name for name, count in Counter(name for name, _ in named).items() if count > 1]
    if twice:
        raise ParameterError(f"two runs are called {twice[0]!r}", remedy="Name them: NAME=PATH.")
    return named


def read_runs(specs: Sequence[str], *, beside: bool = False) -> list[NamedRun]:
    """Read runs in the order given; with ``beside``, also the manifests and expansions beside them."""
    runs = []
    for name, path in progress(split_names(specs), label="reading runs", unit="run"):
        run = read_run(path)
        manifest_file = find_beside(path, "manifest.json") if beside else None
        expansion_file = find_beside(path, "expansion.jsonl") if beside else None
        runs.append(
            NamedRun(
                name=name,
                run=run,
                path=path,
                manifest=None if manifest_file is None else read_manifest(manifest_file),
                expansions={} if expansion_file is None else read_expansions(expansion_file),
            )
        )
    return runs


def find_beside(run: Path, ending: str) -> Path | None:
    """The companion file of a run, if there is one."""
    shortened = run.name.removesuffix(".gz")
    for base in (run.name, shortened, stem(run)):
        for zipped in ("", ".gz"):
            candidate = run.with_name(f"{base}.{ending}{zipped}")
            if candidate.is_file():
                return candidate
    return None


def read_manifest(path: str | PathLike[str]) -> Mapping[str, Any]:
    """A manifest is any JSON object; the report shows it as it is."""
    with open_text(path) as stream:
        try:
            manifest = json.load(stream)
        except (ValueError, RecursionError) as error:
            raise InputError(f"not JSON: {error}", file=path, remedy="Mend or remove the manifest.") from None
    if not isinstance(manifest, dict):
        raise InputError(f"a manifest is a JSON object, got {type(manifest).__name__}", file=path)
    return manifest


def read_expansions(path: str | PathLike[str], most: int = 100) -> dict[str, dict[str, float]]:
    """``{"qid": …, "terms": {term: weight}}`` per line; other keys are of no interest here.

    The ``most`` heaviest terms are kept: an unpruned model weighs the whole vocabulary.
    """
    expansions: dict[str, dict[str, float]] = {}
    for number, line in numbered_lines(path):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
            terms = {str(term): float(weight) for term, weight in record["terms"].items()}
            heaviest = nlargest(most, terms.items(), key=lambda pair: abs(pair[1]))
            expansions[str(record["qid"])] = dict(heaviest)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise InputError(
                f'expected {{"qid": …, "terms": {{term: weight}}}}, got {line[:80]!r} ({error!r})',
                file=path,
                line=number,
                remedy="Write the file with sdretrieval, or mend the line.",
            ) from None
    return expansions


def read_documents(path: str | PathLike[str], wanted: Iterable[str]) -> tuple[dict[str, str], dict[str, int]]:
    """Titles and times of the wanted documents from JSON lines (id, title or contents, date)."""
    from sdretrieval.times import parse_time

    wanted = set(wanted)
    titles: dict[str, str] = {}
    times: dict[str, int] = {}
    for number, line in numbered_lines(path):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
            docid = str(record["id"])
        except (ValueError, TypeError, KeyError) as error:
            raise InputError(
                f'expected a JSON object with "id", got {line[:80]!r} ({error!r})', file=path, line=number
            ) from None
        if docid not in wanted:
            continue
        title = record.get("title") or record.get("contents") or ""
        titles[docid] = " ".join(str(title).split())[:160]
        if record.get("date") is not None:
            try:
                times[docid] = parse_time(record["date"])
            except ValueError as error:
                raise InputError(str(error), file=path, line=number) from None
    return titles, times
