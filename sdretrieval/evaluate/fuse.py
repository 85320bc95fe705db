"""Several runs made one: sums of normalised scores, or of reciprocal ranks (Fox and Shaw 1994; Cormack et al. 2009).

    combsum   score(D) = Σ_i w_i s_i(D)                    s_i   run i's score, normalised over its list of the topic
    combmnz   score(D) = m(D) Σ_i w_i s_i(D)               m(D)  how many runs have the document
    rrf       score(D) = Σ_i w_i / (k + r_i(D))            r_i   its rank in run i

    minmax    0 for the last of a list, 1 for its first
    z         standard deviations above the last of a list: z-scores, moved so that the last has 0
    rank      (n - rank + 1) / n in a list of n
    none      the scores as they are

A document that a run does not have gets nothing from it: under minmax and z it counts as that run's last. A run of
weight 0 is as if it were not there. Ranks are trec_eval's: by score, ties by docid; the rank column is not read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar

import numpy as np

from sdretrieval.collection.records import Ranking, Run
from sdretrieval.core import parameters
from sdretrieval.core.errors import InputError, ParameterError
from sdretrieval.core.parameters import Domain, choice, parameter
from sdretrieval.core.progress import progress
from sdretrieval.ranking.normalise import minmax, rank_shares, reciprocal_rank, zscores
from sdretrieval.ranking.profile_files import read_profile

METHODS = ("combsum", "combmnz", "rrf")
NORMALISATIONS = ("minmax", "z", "rank", "none")
RANK_CONSTANT = 60.0
WEIGHT = "weight."  # what the settings of tune and profiles call the weight of run NAME: weight.NAME
WEIGHT_GRID = (0.0, 0.25, 0.5, 1.0, 2.0, 4.0)

Runs = Mapping[str, Mapping[str, Ranking]]  # by name


def fuse(
    runs: Sequence[Mapping[str, Ranking]],
    *,
    method: str = "combsum",
    normalise: str | None = None,
    weights: Sequence[float] | None = None,
    k: float = RANK_CONSTANT,
    depth: int | None = None,
    hits: int = 1000,
    tag: str = "fuse",
) -> Run:
    """One run out of several.

    Parameters
    ----------
    runs : sequence of Run
        What to fuse; each may lack topics.
    method : str
        ``"combsum"``, ``"combmnz"`` or ``"rrf"``.
    normalise : str, optional
        ``"minmax"`` (where it is not given), ``"z"``, ``"rank"`` or ``"none"``; ``"rrf"`` takes none.
    weights : sequence of float, optional
        One for each run, at least 0; all alike where they are not given.
    k : float
        The constant of ``"rrf"``: the larger, the less the first ranks stand out.
    depth : int, optional
        Take only so many documents of each run.
    hits : int
        Documents for each topic.
    tag : str
        The name of the result.

    Returns
    -------
    Run
        The topics of the first run in its order, then those that only later ones have.

    >>> one, other = {"q": Ranking(["a", "b"], [9.0, 1.0])}, {"q": Ranking(["b", "c"], [0.4, 0.2])}
    >>> fuse([one, other], weights=[1.0, 0.5])["q"].docids
    ['a', 'b', 'c']
    """
    if method == "rrf" and normalise is not None:
        raise ParameterError(f"rrf takes ranks, not scores: nothing to normalise by {normalise!r}")
    given = [1.0] * len(runs) if weights is None else list(weights)
    if len(given) != len(runs):
        raise ParameterError(f"{len(given)} weights for {len(runs)} runs", remedy="Give one for each.")
    names = [str(i + 1) for i in range(len(runs))]
    fusion = Fusion(method=method, normalise=normalise or "minmax", k=k, weights=dict(zip(names, given, strict=True)))
    return fused(dict(zip(names, runs, strict=True)), fusion, depth=depth, hits=hits, tag=tag)


@dataclass(frozen=True, kw_only=True)
class Fusion:
    """How runs are fused, in a form that can be tuned: the weights of runs by their names are settings as others."""

    name: ClassVar[str] = "fuse"

    method: str = choice("combsum", "what is added up", METHODS)
    normalise: str = choice("minmax", "how scores are put on one scale (not for rrf)", NORMALISATIONS)
    k: float = parameter(RANK_CONSTANT, "constant of rrf", low=0.0, high=1e9, grid=(10.0, 30.0, 60.0, 120.0))
    weights: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        parameters.check(self)
        for run, weight in self.weights.items():
            self.domains()[WEIGHT + run].check(weight, f"the weight of {run}", self.name)
        if self.weights and not any(self.weights.values()):
            raise ParameterError(
                "the weights of all runs are 0: nothing is left to fuse", remedy="Give one a weight above 0."
            )

    def domains(self) -> dict[str, Domain]:
        """What can be set: method, normalise, k, and a weight for each run."""
        own = {name: domain for name, (_, domain) in parameters.domains(self).items()}
        weight = Domain("weight of the run", low=0.0, high=1e9, grid=WEIGHT_GRID, default=1.0)
        return own | {WEIGHT + run: weight for run in self.weights}

    @property
    def weight_names(self) -> list[str]:
        return [WEIGHT + run for run in self.weights]

    def settings(self) -> dict[str, Any]:
        own = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "weights"}
        return own | {WEIGHT + run: weight for run, weight in self.weights.items()}

    def with_(self, **changes: Any) -> Fusion:
        """A changed copy; ``with_(**{"weight.bm25": 0.5})`` for the weights."""
        weights = {run: changes.pop(WEIGHT + run, weight) for run, weight in self.weights.items()}
        return replace(self, weights=weights, **changes)

    def evidence(self, ranking: Ranking, place: str) -> np.ndarray:
        """What the documents of a list get, in rank order, before weighting; ``place`` is for errors."""
        if self.method == "rrf":
            return reciprocal_rank(len(ranking), self.k)
        if self.normalise == "rank":
            return rank_shares(len(ranking))
        infinite = np.flatnonzero(~np.isfinite(ranking.scores))
        if len(infinite):
            raise ParameterError(
                f"{place}: score of {ranking.docids[int(infinite[0])]!r} is infinite, and cannot be added to others",
                remedy="Fuse by ranks: --method rrf, or --normalise rank.",
            )
        if self.normalise == "none":
            return ranking.scores
        if self.normalise == "minmax":
            return minmax(ranking.scores)
        z = zscores(ranking.scores)
        return z - z.min(initial=0.0)


@dataclass(frozen=True)
class Pool:
    """The documents that runs have for one topic, with what each gets from each run."""

    docids: list[str]
    evidence: np.ndarray  # runs x documents, before weighting
    present: np.ndarray  # runs x documents: has it?

    @classmethod
    def of(cls, runs: Runs, qid: str, fusion: Fusion, depth: int | None = None) -> Pool:
        columns: dict[str, int] = {}
        found: list[tuple[int, list[int], np.ndarray]] = []
        for row, (name, run) in enumerate(runs.items()):
            if qid in run:
                ranking = run[qid] if depth is None else run[qid].top(depth)
                places = [columns.setdefault(docid, len(columns)) for docid in ranking.docids]
                found.append((row, places, fusion.evidence(ranking, f"run {name}, topic {qid}")))
        evidence, present = np.zeros((len(runs), len(columns))), np.zeros((len(runs), len(columns)), dtype=bool)
        for row, places, values in found:
            evidence[row, places], present[row, places] = values, True
        return cls(list(columns), evidence, present)

    def ranking(self, fusion: Fusion, weights: Sequence[float], hits: int) -> Ranking:
        """The documents by their weighted sums. Run by run, so that a sum does not depend on the company it is in."""
        used = [row for row, weight in enumerate(weights) if weight > 0]
        scores, runs = np.zeros(len(self.docids)), np.zeros(len(self.docids), dtype=np.int64)
        for row in used:
            scores += weights[row] * self.evidence[row]
            runs += self.present[row]
        listed = np.flatnonzero(runs)
        if fusion.method == "combmnz":
            scores *= runs
        return Ranking([self.docids[i] for i in listed.tolist()], scores[listed], hits)


def pools_of(runs: Runs, fusion: Fusion, depth: int | None = None) -> dict[str, Pool]:
    """What there is to fuse, by topic."""
    if depth is not None and depth < 1:
        raise ParameterError(f"depth must be at least 1; got {depth}")
    topics = list(dict.fromkeys(qid for run in runs.values() for qid in run))
    bar = progress(topics, label="fusing", unit="topic")
    return {qid: Pool.of(runs, qid, fusion, depth) for qid in bar}


def fused(runs: Runs, fusion: Fusion, *, depth: int | None = None, hits: int = 1000, tag: str = "fuse") -> Run:
    """The same as :func:`fuse`, with the settings in one record and the runs by name."""
    if not runs:
        raise ParameterError("no run to fuse")
    if hits < 1:
        raise ParameterError(f"hits must be at least 1; got {hits}")
    if runs.keys() != fusion.weights.keys():
        raise ParameterError(
            f"weights are for {', '.join(fusion.weights) or 'no run'}; the runs are {', '.join(runs)}",
            remedy="Give the runs the names that the weights have: NAME=PATH.",
        )
    kept = {name: run for name, run in runs.items() if fusion.weights[name] > 0}
    weights = [fusion.weights[name] for name in kept]
    pools = pools_of(kept, fusion, depth)
    return Run({qid: pool.ranking(fusion, weights, hits) for qid, pool in pools.items()}, tag)


def read_fusion(path: str, fusion: Fusion) -> Fusion:
    """``fusion`` with the settings of a profile that ``sdretrieval tune --fuse`` wrote for runs of the same names."""
    profile = read_profile(path)
    if Fusion.name not in profile:
        raise InputError(
            "not a profile of fused runs", file=path, remedy="`sdretrieval tune --fuse RUN … --output FILE` writes one."
        )
    given = profile[Fusion.name]
    named = [name.removeprefix(WEIGHT) for name in given if name.startswith(WEIGHT)]
    if set(named) != set(fusion.weights):
        raise InputError(
            f"it has weights for {', '.join(named) or 'no run'}; the runs are {', '.join(fusion.weights)}",
            file=path,
            remedy="Name the runs as the profile does: NAME=PATH.",
        )
    try:
        return fusion.with_(**parameters.read_settings(Fusion.name, fusion.domains(), given, see="sdretrieval fuse -h"))
    except ParameterError as error:
        raise InputError(error.message, file=path, remedy=error.remedy) from None
