"""Runs, and what lies beside them, as a command line names them.

A run is given by its path, or as ``NAME=PATH`` to choose what tables call it. Beside ``runs/ql.trec`` may
lie ``runs/ql.trec.manifest.json`` (or ``runs/ql.manifest.json``): how it was made (else its ir_metadata says), and
``runs/ql.trec.expansion.jsonl`` (or ``runs/ql.expansion.jsonl``): the expanded queries, one ``{"qid": …,
"terms": {term: weight}}`` per line. Documents' times come from a table, their titles from JSON lines.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from heapq import nlargest
from os import PathLike
from pathlib import Path
from typing import Any

from sdretrieval.collection.records import Run
from sdretrieval.collection.trec import read_metadata, read_run
from sdretrieval.collection.trec.trec_file import TrecFile
from sdretrieval.core.errors import InputError, ParameterError, shown
from sdretrieval.core.files import numbered_lines
from sdretrieval.core.progress import progress
from sdretrieval.core.safe_json import parse_json, read_json
from sdretrieval.ranking.manifest import check_belongs

ENDINGS = (".gz", ".txt", ".trec", ".run", ".res", ".tsv")


@dataclass(frozen=True)
class NamedRun:
    """A run with the name tables give it, and what was found beside its file."""

    name: str
    run: Run
    path: Path | None = None
    manifest: Mapping[str, Any] | None = None
    expansions: Mapping[str, Mapping[str, float]] = field(default_factory=dict)


# -- names and runs -----------------------------------------------------------------------------------------------


def stem(path: Path) -> str:
    """The file's name without the endings runs usually have."""
    name = path.name
    while ending := next((end for end in ENDINGS if name.endswith(end) and name != end), ""):
        name = name.removesuffix(ending)
    return name


def split_names(specs: Sequence[str]) -> list[tuple[str, Path]]:
    """``NAME=PATH`` or ``PATH`` to (name, path); the whole path is the name where file names clash."""
    chosen: list[tuple[str | None, Path]] = []
    for spec in specs:
        name, equals, rest = spec.partition("=")
        # A path may contain '='; what exists as it stands is a path.
        is_named = equals and name and rest and not Path(spec).exists()
        chosen.append((name, Path(rest)) if is_named else (None, Path(spec)))
    stems = Counter(stem(path) for name, path in chosen if name is None)
    named = []
    for given, path in chosen:
        short = stem(path) if stems[stem(path)] == 1 else str(path)
        named.append((short if given is None else given, path))
    twice = [name for name, count in Counter(name for name, _ in named).items() if count > 1]
    if twice:
        raise ParameterError(f"two runs are called {twice[0]!r}", remedy="Name them: NAME=PATH.")
    return named


def with_baseline(specs: Sequence[str], baseline: str | None) -> tuple[list[str], int | None]:
    """The runs, the baseline among them, and where it stands; it may be given by name or by path."""
    specs = list(specs)
    if baseline is None:
        return specs, None
    named = split_names(specs)
    for i, (name, path) in enumerate(named):
        if baseline in (name, str(path), specs[i]):
            return specs, i
    if "=" not in baseline and not Path(baseline).exists():
        known = ", ".join(name for name, _ in named)
        raise ParameterError(
            f"baseline {baseline!r} is neither a file nor one of the runs ({known})", remedy="Name one of these."
        )
    return [baseline, *specs], 0


def read_runs(specs: Sequence[str], *, beside: bool = False) -> list[NamedRun]:
    """Read runs in the order given; with ``beside``, also the manifests and expansions beside them."""
    runs = []
    for name, path in progress(split_names(specs), label="reading runs", unit="run"):
        manifest, expansions = (
            find_beside(path, ending) if beside else None for ending in ("manifest.json", "expansion.jsonl")
        )
        about = read_manifest(manifest) if manifest else read_metadata(path) if beside else None
        if about is not None and manifest is not None:
            check_belongs(about, path, manifest)
        runs.append(NamedRun(name, read_run(path), path, about, read_expansions(expansions) if expansions else {}))
    return runs


# -- what lies beside ---------------------------------------------------------------------------------------------


def find_beside(run: Path, ending: str) -> Path | None:
    """The companion file of a run, if there is one."""
    bases = (run.name, run.name.removesuffix(".gz"), stem(run))
    candidates = (run.with_name(f"{base}.{ending}{zipped}") for base in bases for zipped in ("", ".gz"))
    return next((path for path in candidates if path.is_file()), None)


def read_manifest(path: str | PathLike[str]) -> Mapping[str, Any]:
    """A manifest is any JSON object; the report shows it as it is."""
    return read_json(path, "Mend or remove the manifest.", constants=True)


def read_expansions(path: str | PathLike[str], most: int = 100) -> dict[str, dict[str, float]]:
    """``{"qid": …, "terms": {term: weight}}`` per line; other keys are of no interest here.

    The ``most`` heaviest terms are kept: an unpruned model weighs the whole vocabulary.
    """
    expansions: dict[str, dict[str, float]] = {}
    for number, line in _filled_lines(path):
        with _expecting('{"qid": …, "terms": {term: weight}}', path, number, line):
            record = parse_json(line, bounded=False)
            terms = {str(term): float(weight) for term, weight in record["terms"].items()}
            expansions[str(record["qid"])] = dict(nlargest(most, terms.items(), key=lambda pair: abs(pair[1])))
    return expansions


# -- documents ----------------------------------------------------------------------------------------------------


def read_documents(path: str | PathLike[str], wanted: Iterable[str]) -> tuple[dict[str, str], dict[str, int]]:
    """Titles and times of the wanted documents from JSON lines (id, title or contents, date)."""
    wanted = set(wanted)
    titles: dict[str, str] = {}
    times: dict[str, int] = {}
    for number, line in _filled_lines(path):
        with _expecting('a JSON object with "id"', path, number, line):
            record = parse_json(line, bounded=False)
            docid = str(record["id"])
        if docid in wanted:
            title = record.get("title") or record.get("contents") or ""
            titles[docid] = " ".join(str(title).split())[:160]
            if record.get("date") is not None:
                times[docid] = TrecFile(path).time(number, record["date"])
    return titles, times


def read_document_times(path: str | PathLike[str]) -> dict[str, int]:
    """``docid<TAB>time`` lines to milliseconds; any form of time that ``parse_time`` knows."""
    return {docid: time for docid, (_, time) in TrecFile(path).times("docid").items()}


def _filled_lines(path: str | PathLike[str]) -> Iterator[tuple[int, str]]:
    return ((number, line) for number, line in numbered_lines(path) if line.strip())


@contextmanager
def _expecting(form: str, path: str | PathLike[str], number: int, line: str) -> Iterator[None]:
    """A line that is not of this form is an error that names it."""
    try:
        yield
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError) as error:
        message = f"expected {form}, got {shown(line)} ({shown(error)})"
        raise InputError(message, file=path, line=number, remedy="Mend or remove the line.") from None
