"""Honest tuning: settings are chosen on some topics and scored on others.

A setting's value on a topic does not depend on the fold, so each setting is run once over all topics and its values
are kept, one line of a trace file per setting. Cross-validation then only reads the table: for each fold, the setting
best on the *other* topics is scored on the fold's own. The mean over all topics so obtained never saw its topics.

    grid     every combination of the values
    random   a sample of them
    hill     the thesis's way: one parameter at a time, to a neighbouring value while that helps; each fold climbs on
             its own training topics, and settings met by several folds are run once

What is tuned is a ranking model over a collection (:class:`Problem`), or how given runs are fused
(:class:`FusionProblem`): anything with settings by name that a problem can score topic by topic.

The trace makes a killed run resumable with nothing lost: lines are appended whole, a torn last line is dropped.
"""

from __future__ import annotations

import hashlib
import io
import itertools
import json
import math
import os
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from sdretrieval.collection.records import Qrels, Ranking, Run
from sdretrieval.core.errors import InputError, ParameterError, shown
from sdretrieval.core.files import append_whole, atomic_writer, lock_file
from sdretrieval.core.parameters import Domain, domains
from sdretrieval.core.progress import bar
from sdretrieval.core.safe_json import parse_json
from sdretrieval.evaluate import Evaluator
from sdretrieval.evaluate.fuse import Fusion, Pool, Runs, pools_of
from sdretrieval.index.snapshot import Snapshot
from sdretrieval.ranking.base import Ranker
from sdretrieval.ranking.engine import Engine, Ranked, RankOptions, Result
from sdretrieval.ranking.query import Query

Settings = dict[str, Any]
Values = dict[str, float]  # by topic


class Tunable(Protocol):
    """What can be tuned: a Ranker, a Fusion."""

    @property
    def name(self) -> str: ...

    def settings(self) -> Settings: ...

    def with_(self, **changes: Any) -> Any: ...


class Scored(Protocol):
    """What a setting is scored with: the topics, the measure, and its value on each topic."""

    measure: str

    @property
    def qids(self) -> list[str]: ...

    def values(self, ranker: Any) -> Values: ...

    def identity(self, ranker: Any) -> dict[str, Any]: ...


# -- the space ---------------------------------------------------------------------------------------------------


def space_of(model: type[Ranker] | Ranker, chosen: Sequence[str] = ()) -> dict[str, tuple]:
    """Values to try per parameter: ``["fb_docs", "k1=0.6,0.9"]``; by default all that declare a grid."""
    known = {name: domain for name, (_, domain) in domains(model).items()}
    return _space(model.name, known, chosen or [name for name, domain in known.items() if domain.grid])


def fusion_space(fusion: Fusion, chosen: Sequence[str] = ()) -> dict[str, tuple]:
    """The same for runs to be fused, whose weights are called ``weight.NAME``; by default the weights alone."""
    known = fusion.domains()
    return _space(fusion.name, known, chosen or list(fusion.weight_names))


def _space(owner: str, known: Mapping[str, Domain], chosen: Sequence[str]) -> dict[str, tuple]:
    space = {}
    for choice in chosen:
        name, equals, text = choice.partition("=")
        if name not in known:
            raise ParameterError(f"{owner} has no parameter {name!r}", remedy=f"It has: {', '.join(known)}.")
        domain = known[name]
        if equals:
            values = (domain.read(value.strip(), name) for value in text.split(","))
            space[name] = tuple(dict.fromkeys(values))  # each once, or a sample could look for more than there is
        elif domain.grid or domain.choices:
            space[name] = domain.grid or domain.choices
        else:
            raise ParameterError(f"{name} declares no values to try", remedy=f"Give them: {name}=1,2,3.")
    return space


def combinations(space: Mapping[str, tuple]) -> Iterator[Settings]:
    for values in itertools.product(*space.values()):
        yield dict(zip(space, values, strict=True))


def sample(space: Mapping[str, tuple], n: int, seed: int) -> list[Settings]:
    """``n`` different combinations at random (all of them where there are no more)."""
    total = math.prod(len(set(values)) for values in space.values())
    if n >= total:
        return list(combinations(space))
    dice = random.Random(seed)
    seen: set[str] = set()
    drawn: list[Settings] = []
    while len(drawn) < n:
        settings = {name: dice.choice(values) for name, values in space.items()}
        if settings_key(settings) not in seen:
            seen.add(settings_key(settings))
            drawn.append(settings)
    return drawn


def settings_key(settings: Settings) -> str:
    return json.dumps(settings, sort_keys=True)


# -- running a setting, with work shared between settings ----------------------------------------------------------


class StagedEngine(Engine):
    """An engine that remembers first passes: settings that share the first stage pay for it once."""

    DEPTH = 200  # kept per query, unless more is asked for

    def __init__(self, snapshot: Snapshot, **options: Any) -> None:
        super().__init__(snapshot, **options)
        self._first: dict[tuple, tuple[np.ndarray, np.ndarray]] = {}

    def first_documents(self, results: Sequence[Result], depth: int) -> list[Ranked]:
        keys = [_first_key(result) for result in results]
        missing = {}
        for key, result in zip(keys, results, strict=True):
            found = self._first.get(key)
            if found is None or (len(found[0]) < depth and len(found[0]) >= self.DEPTH):
                missing[key] = result
        walked = super().first_documents(list(missing.values()), max(depth, self.DEPTH))
        self._first.update(zip(missing, walked, strict=True))
        return [(docs[:depth], scores[:depth]) for docs, scores in map(self._first.__getitem__, keys)]


def _first_key(result: Result) -> tuple:
    plan = result.plan
    return (result.query.qid, plan.weighting, plan.with_constant, plan.model.weights.tobytes(), plan.model.background)


@dataclass
class Problem:
    """Everything a setting is scored with: collection, queries, judgments, measure, and perhaps a run to re-rank."""

    snapshot: Snapshot
    queries: Sequence[Query]
    qrels: Qrels
    measure: str = "AP"
    hits: int = 1000
    threads: int = 1
    candidates: Mapping[str, np.ndarray] | None = None

    def __post_init__(self) -> None:
        wanted = set(_with_relevant([query.qid for query in self.queries], self.qrels))
        self.queries = [query for query in self.queries if query.qid in wanted]
        self.engine = StagedEngine(self.snapshot, threads=self.threads)
        self.evaluator = Evaluator(self.qrels, [self.measure], complete=False)

    @property
    def qids(self) -> list[str]:
        return [query.qid for query in self.queries]

    def values(self, ranker: Ranker) -> Values:
        """The measure by topic; a topic for which nothing is found counts as zero."""
        results = self.engine.rank(ranker, self.queries, RankOptions(hits=self.hits, candidates=self.candidates))
        docids = self.snapshot.docids
        run = Run({r.query.qid: Ranking(docids.take(r.docs), r.scores) for r in results}, ranker.name)
        return _by_topic(self.evaluator, run, self.measure, self.qids)

    def identity(self, ranker: Ranker) -> dict[str, Any]:
        return identity_of(self, ranker)


def _with_relevant(qids: Sequence[str], qrels: Qrels) -> list[str]:
    """The topics that can be scored: two at least."""
    found = [qid for qid in qids if any(grade > 0 for grade in qrels.get(qid, {}).values())]
    if len(found) < 2:
        raise InputError(
            f"{len(found)} of the topics have relevant documents in the qrels: tuning needs at least 2",
            remedy="Check that the topic ids of both files agree.",
        )
    return found


def _by_topic(evaluator: Evaluator, run: Run, measure: str, qids: Sequence[str]) -> Values:
    found = evaluator.evaluate(run).per_topic[measure]
    return {qid: float(found.get(qid, 0.0)) for qid in qids}


@dataclass
class FusionProblem:
    """Runs that are to be fused, by name, and the judgments that say how well. Normalised once for all weights."""

    runs: Runs
    qrels: Qrels
    measure: str = "AP"
    hits: int = 1000
    depth: int | None = None

    def __post_init__(self) -> None:
        self.qids = _with_relevant(list(dict.fromkeys(qid for run in self.runs.values() for qid in run)), self.qrels)
        self.evaluator = Evaluator(self.qrels, [self.measure], complete=False)
        self._pools: dict[tuple, dict[str, Pool]] = {}

    def values(self, ranker: Fusion) -> Values:
        """The measure by topic of the runs fused so."""
        key = (ranker.method == "rrf" and ranker.k, ranker.method != "rrf" and ranker.normalise)
        if key not in self._pools:
            wanted = {name: {qid: run[qid] for qid in self.qids if qid in run} for name, run in self.runs.items()}
            self._pools[key] = pools_of(wanted, ranker, self.depth)
        weights = [ranker.weights[name] for name in self.runs]
        pools = self._pools[key].items()
        run = Run({qid: pool.ranking(ranker, weights, self.hits) for qid, pool in pools}, ranker.name)
        return _by_topic(self.evaluator, run, self.measure, self.qids)

    def identity(self, ranker: Fusion) -> dict[str, Any]:
        """What must agree for a trace to be continued."""
        digest = hashlib.sha256(_judgments(self.qrels, self.qids))
        for name, run in self.runs.items():
            for qid in self.qids:
                if qid in run:
                    digest.update("\0".join([name, qid, *run[qid].docids]).encode() + run[qid].scores.tobytes())
        return {
            "model": ranker.name,
            "base": ranker.settings(),
            "data": digest.hexdigest()[:32],
            "measure": self.measure,
            "hits": self.hits,
            "depth": self.depth,
        }


# -- the trace ---------------------------------------------------------------------------------------------------


class Trace:
    """Settings and their values for the topics, appended to a JSONL file as they come."""

    def __init__(self, path: str | os.PathLike[str] | None, identity: Mapping[str, Any], qids: Sequence[str]) -> None:
        self.path = None if path is None else Path(path)
        self.identity = dict(identity)
        self.topics = set(qids)
        self.table: dict[str, Values] = {}
        self.settings: dict[str, Settings] = {}
        self.resumed = 0
        self._file: io.FileIO | None = None
        if self.path is not None:
            try:
                self._file = self._locked(self.path)
                self._begin(self._file)
            except BaseException:
                self.close()
                raise

    def _locked(self, path: Path) -> io.FileIO:
        """The file, for as long as this trace is open its own."""
        path.parent.mkdir(parents=True, exist_ok=True)
        remedy = "Give another --trace."
        try:
            file = io.FileIO(path, "ab+")
        except OSError as error:
            raise InputError(f"not a trace: {error}", file=path, remedy=remedy) from None
        if not lock_file(file.fileno()):
            file.close()
            raise InputError("another tuning is using this trace", file=path, remedy=remedy)
        return file

    def _begin(self, file: io.FileIO) -> None:
        """Go on from what is in the file, or write its first line."""
        file.seek(0)
        content = file.readall() or b""
        whole = content[: content.rfind(b"\n") + 1]  # a kill may have torn the last line
        if content and not whole:
            raise InputError("not a trace: no whole line in it", file=self.path, remedy="Delete it.")
        for number, line in enumerate(whole.splitlines(), 1):
            self._resume(line, number)
        if whole != content:
            file.truncate(len(whole))
        if not whole:
            self._append({"tuning": self.identity})
        self.resumed = len(self.table)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()

    def _resume(self, line: bytes, number: int) -> None:
        try:
            record = parse_json(line.decode("utf-8"), constants=True, unique=True)
            if number == 1:
                if record["tuning"] != self.identity:
                    raise InputError(
                        "this trace is of another tuning (model, topics, qrels, index, measure or hits differ)",
                        file=self.path,
                        line=1,
                        remedy="Give another --trace, or delete the file.",
                    )
                return
            values = {qid: float(v) for qid, v in record["values"].items()}
            if values.keys() != self.topics:
                raise ValueError("it has other topics than this tuning")
            if not isinstance(record["settings"], dict):
                raise ValueError(f"settings are {shown(record['settings'])}")
            self._keep(record["settings"], values)
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
            told = f"no {error}" if isinstance(error, KeyError) else str(error)
            remedy = "Remove the line, or give another --trace."
            raise InputError(f"not a trace line: {told}", file=self.path, line=number, remedy=remedy) from None

    def _append(self, record: dict[str, Any]) -> None:
        assert self._file is not None
        append_whole(self._file, json.dumps(record).encode() + b"\n")
        os.fsync(self._file.fileno())

    def _keep(self, settings: Settings, values: Values) -> None:
        self.table[settings_key(settings)] = values
        self.settings[settings_key(settings)] = settings

    def add(self, settings: Settings, values: Values) -> None:
        self._keep(settings, values)
        if self.path is not None:
            self._append({"settings": settings, "values": values})


# -- tuning ------------------------------------------------------------------------------------------------------


@dataclass
class Tuned:
    """What tuning found. ``values`` are cross-validated: each topic's from a setting chosen without it."""

    settings: Settings  # best on all topics: what the profile says
    values: Values
    default_values: Values
    fold_settings: list[Settings] = field(default_factory=list)
    tried: int = 0
    resumed: int = 0

    @property
    def mean(self) -> float:
        return float(np.mean(list(self.values.values())))

    @property
    def default_mean(self) -> float:
        return float(np.mean(list(self.default_values.values())))


def folds_of(qids: Sequence[str], k: int, seed: int) -> list[list[str]]:
    """Topics dealt into ``k`` folds at random."""
    if not 2 <= k <= len(qids):
        raise ParameterError(f"folds must be between 2 and the number of topics ({len(qids)}); got {k}")
    shuffled = sorted(qids)
    random.Random(seed).shuffle(shuffled)
    return [shuffled[i::k] for i in range(k)]


def tune(
    problem: Scored,
    ranker: Tunable,
    space: Mapping[str, tuple],
    *,
    method: str = "hill",
    budget: int = 500,
    folds: int = 5,
    seed: int = 0,
    trace: str | os.PathLike[str] | None = None,
) -> Tuned:
    """Search the space around ``ranker`` and cross-validate the search.

    ``budget``: settings beside the one started from; for ``hill``, of each climb (one per fold, and the last on all
    topics). A grid that is larger is refused.
    """
    if method not in ("grid", "random", "hill"):
        raise ParameterError(f"unknown method {method!r}", remedy="One of grid, random, hill.")
    _check_space(ranker, space, budget if method == "grid" else None)
    dealt = folds_of(problem.qids, folds, seed)
    record = Trace(trace, problem.identity(ranker), problem.qids)
    planned = None  # hill climbing finds its way as it goes
    if method != "hill":
        planned = list(combinations(space)) if method == "grid" else sample(space, budget, seed)
    start = ranker.settings()
    default = {name: start[name] for name in space}
    waiting = None if planned is None else len({settings_key(s) for s in [default, *planned]} - record.table.keys())
    with closing(record), bar(total=waiting, label="tuning", unit="setting") as progress:
        best = -1.0

        def value(settings: Settings) -> Values:
            nonlocal best
            key = settings_key(settings)
            if key not in record.table:
                record.add(settings, problem.values(ranker.with_(**settings)))
                best = max(best, _mean(record.table[key], problem.qids))
                progress.set_postfix_str(f"best {problem.measure} {best:.4f}", refresh=False)
                progress.update(1)
            return record.table[key]

        default_values = value(default)
        if planned is not None:
            for settings in planned:
                value(settings)

        def choose(train: Sequence[str]) -> Settings:
            if planned is None:
                return climb(default, space, lambda s: _mean(value(s), train), budget)
            keys = [settings_key(default), *(settings_key(s) for s in planned)]
            means = [_mean(record.table[key], train) for key in keys]
            return record.settings[keys[int(np.argmax(means))]]

        values: Values = {}
        fold_settings = []
        for held_out in dealt:
            train = [qid for qid in problem.qids if qid not in set(held_out)]
            chosen = choose(train)
            fold_settings.append(chosen)
            values.update({qid: value(chosen)[qid] for qid in held_out})
        winner = choose(problem.qids)
    ordered = {qid: values[qid] for qid in problem.qids}
    return Tuned(winner, ordered, default_values, fold_settings, len(record.table), record.resumed)


def _check_space(ranker: Tunable, space: Mapping[str, tuple], budget: int | None) -> None:
    """What cannot be tried is said at once, not after hours spent on the rest."""
    if not space:
        raise ParameterError(
            f"nothing to tune: {ranker.name} declares no values to try", remedy="Name some: --params NAME=1,2,3."
        )
    for name, values in space.items():
        for value in values:
            ranker.with_(**{name: value})
    size = math.prod(len(values) for values in space.values())
    if budget is not None and size > budget:
        raise ParameterError(
            f"a grid over {', '.join(space)} has {size} settings, more than the budget of {budget}",
            remedy=f"Choose fewer --params, pass --budget {size}, or use --method random or hill.",
        )


def climb(start: Settings, space: Mapping[str, tuple], score: Callable[[Settings], float], budget: int) -> Settings:
    """Coordinate-wise hill climbing over the values of each parameter, in their order.

    At most ``budget`` settings are looked at beside the start.
    """
    here, height = dict(start), score(dict(start))
    met, moved = {settings_key(here)}, True
    while moved:
        moved = False
        for name, values in space.items():
            for neighbour in _neighbours(values, here[name]):
                step = {**here, name: neighbour}
                if settings_key(step) in met:  # it was no higher then, and the way since went up
                    continue
                if len(met) > budget:
                    return here
                met.add(settings_key(step))
                reached = score(step)
                if reached > height:
                    here, height, moved = step, reached, True
    return here


def _neighbours(values: tuple, here: Any) -> list:
    """The values next to this one; for words, all the others."""
    if isinstance(here, str):
        return [value for value in values if value != here]
    below = [value for value in values if value < here]
    above = [value for value in values if value > here]
    return ([max(below)] if below else []) + ([min(above)] if above else [])


def _mean(values: Values, qids: Sequence[str]) -> float:
    return float(np.mean([values[qid] for qid in qids]))


def identity_of(problem: Problem, ranker: Ranker) -> dict[str, Any]:
    """What must agree for a trace to be continued."""
    digest = hashlib.sha256()
    for query in problem.queries:
        digest.update(f"{query.qid}\t{query.text}\n".encode())
    digest.update(_judgments(problem.qrels, problem.qids))
    for qid, docs in sorted((problem.candidates or {}).items()):
        digest.update(qid.encode() + np.asarray(docs).tobytes())
    return {
        "model": ranker.name,
        "base": ranker.settings(),
        "index": problem.snapshot.fingerprint,
        "data": digest.hexdigest()[:32],
        "measure": problem.measure,
        "hits": problem.hits,
    }


def _judgments(qrels: Qrels, qids: Sequence[str]) -> bytes:
    return json.dumps({qid: qrels[qid] for qid in sorted(qids)}, sort_keys=True).encode()


def write_profile(path: str | os.PathLike[str], ranker: Tunable) -> None:
    """A profile file that ``--profile`` accepts."""
    with atomic_writer(path) as out:
        json.dump({ranker.name: ranker.settings()}, out, indent=1)
        out.write("\n")
