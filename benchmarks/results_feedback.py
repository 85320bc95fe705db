"""Feedback in docs/RESULTS.md: what chapters 2 and 5 of the thesis leave to be measured.

    python -m benchmarks.results_feedback      # a few minutes

Document cross-entropy against topic cross-entropy (section 2.4); feedback from two judged documents, with the query,
unjudged and non-relevant documents beside them (section 5.2), in residual rankings; further iterations of EM; the
parameters of Table 5.3 away from the collection that they were tuned on; and runs fused.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Any

import numpy as np

from benchmarks.collections import Collection
from benchmarks.kept import BESIDE
from benchmarks.tables import error_of, table
from sdretrieval.collection.records import Qrels
from sdretrieval.evaluate import evaluate
from sdretrieval.evaluate.fuse import Fusion, fuse
from sdretrieval.evaluate.residual import residual_qrels, residual_run
from sdretrieval.evaluate.tune import FusionProblem, Problem, fusion_space, space_of, tune
from sdretrieval.ranking.registry import make_ranker
from sdretrieval.ranking.retrieval import search

Values = Mapping[str, float]  # by topic
SEARCHED = ("cacm", "cranfield", "npl")
JUDGED = 2  # documents of each kind
FUSED = ("sd3", "rm3", "sd")
FUSIONS = (("combsum", "minmax"), ("combsum", "z"), ("combsum", "rank"), ("combmnz", "minmax"), ("rrf", None))

# The smoothing of each model is tuned, and nothing else.
CROSS_ENTROPY: dict[str, tuple[str, dict[str, Any], list[str]]] = {
    "T: query likelihood, H(θ̂^Q, θ^D)": ("ql", {"smoothing": "jm"}, ["lam=0.1,0.3,0.5,0.7,0.9"]),
    "D: (2.18), H(θ̂^D, θ^Q) with the factor of length": ("dce", {}, ["lam"]),
    "D: the same without it": ("dce", {"length": "word"}, ["lam"]),
    "T: relevance model, H(θ^R, θ^D)": ("rm", {}, ["lambda_ranking"]),
    "D: relevance model, H(θ̂^D, θ^R) with the factor": ("rm-dce", {}, ["lambda_model"]),
    "D: the same without it ": ("rm-dce", {"length": "word"}, ["lambda_model"]),
}

# Settings of a model, and whether it is shown the non-relevant documents too.
TRUE_FEEDBACK: dict[str, tuple[str, dict[str, Any], bool]] = {
    "bm25, without feedback": ("bm25", {}, False),
    "sd: judged alone": ("sd", {}, False),
    "sd: and the query, weight 0.5": ("sd", {"query_weight": 0.5}, False),
    "sd: and the query, weight 1": ("sd", {"query_weight": 1.0}, False),
    "sd: and unjudged documents, weight 0.1": ("sd", {"unjudged_weight": 0.1}, False),
    "sd: and unjudged documents, weight 0.3": ("sd", {"unjudged_weight": 0.3}, False),
    "sd: and both, weights 0.25 and 0.1": ("sd", {"query_weight": 0.25, "unjudged_weight": 0.1}, False),
    "sd: α^N from two non-relevant": ("sd", {}, True),
    "sd: α^N half of it": ("sd", {"nonrelevant_weight": 0.5}, True),
    "sd: α^N a quarter, and the query, weight 0.25": ("sd", {"nonrelevant_weight": 0.25, "query_weight": 0.25}, True),
    "rm: judged alone": ("rm", {}, False),
    "rm: and the query, weight 0.5": ("rm", {"query_weight": 0.5}, False),
    "rm: and unjudged documents, weight 0.1": ("rm", {"unjudged_weight": 0.1}, False),
    "sd3: judged alone": ("sd3", {}, False),
    "sd3: and unjudged documents, weight 0.1": ("sd3", {"unjudged_weight": 0.1}, False),
    "sd3: α^N half from two non-relevant": ("sd3", {"nonrelevant_weight": 0.5}, True),
    "rm3: judged alone": ("rm3", {}, False),
    "rm3: and unjudged documents, weight 0.1": ("rm3", {"unjudged_weight": 0.1}, False),
}


def section() -> str:
    beside = [true_feedback(), iterations(), papers_values(), fusion()]
    return "\n\n".join([cross_entropies(), BESIDE, *beside])


def cross_entropies() -> str:
    rows = {label: [_tuned(Collection(name), *how) for name in SEARCHED] for label, how in CROSS_ENTROPY.items()}
    return _table(
        "### Which way round: topic or document cross-entropy",
        "MAP (standard error of the difference to the T row above); the smoothing that a model has is tuned by "
        "cross-validation over topics, the rest is as shipped. T: the topic's words under the document's model, as "
        "language models rank. D: "
        "the document's words under the topic's model, as naïve Bayes would (thesis, sections 2.3 and 2.4).",
        rows,
        {label for label in rows if label.startswith("T")},
    )


def _tuned(c: Collection, model: str, settings: dict[str, Any], params: list[str]) -> Values:
    ranker = make_ranker(model).with_(**settings)
    problem = Problem(c.snapshot, c.queries, c.qrels)
    return tune(problem, ranker, space_of(ranker, params), method="grid").values


def true_feedback() -> str:
    rows: dict[str, list[Values]] = {label: [] for label in TRUE_FEEDBACK}
    topics = []
    for name in SEARCHED:
        c = Collection(name)
        relevant, refused = judged_of(c)
        seen = Qrels({qid: relevant[qid] | refused[qid] for qid in relevant})
        topics.append(f"{name} {len(seen)}")
        left = residual_qrels(Qrels({qid: c.qrels[qid] for qid in seen}), seen)
        for label, (model, settings, with_refused) in TRUE_FEEDBACK.items():
            ranker = make_ranker(model).with_(**settings)
            judged = None if model == "bm25" else seen if with_refused else relevant
            run = search(c.snapshot, [t for t in c.topics if t.qid in seen], ranker, judged=judged)
            rows[label].append(evaluate(residual_run(run, seen), left, ["AP"], complete=True).per_topic["AP"])
    return _table(
        "### Feedback from two judged documents",
        "MAP (standard error of the difference to the model's *judged alone*) in residual rankings. A user "
        "judges from the top of BM25's ranking until there are "
        "two relevant documents; those, and its first two that are not relevant, are taken out of every run and out of "
        f"the judgments. Topics that keep a relevant document: {', '.join(topics)}. A weight is that of the query, or "
        "of the best unjudged document, where a judged document has 1.",
        rows,
        {label for label in rows if label.startswith("bm25") or label.endswith("judged alone")},
    )


def judged_of(c: Collection) -> tuple[Qrels, Qrels]:
    """The first relevant documents of BM25's ranking, and the first that are not, by topic."""
    relevant, refused = {}, {}
    for qid, ranking in search(c.snapshot, c.topics, "bm25").items():
        wanted = c.qrels.relevant(qid)
        hits = [docid for docid in ranking.docids if docid in wanted][:JUDGED]
        if len(hits) == JUDGED and len(wanted) > JUDGED:
            relevant[qid] = dict.fromkeys(hits, 1)
            others = (docid for docid in ranking.docids if docid not in wanted)
            refused[qid] = {docid: 0 for docid, _ in zip(others, range(JUDGED), strict=False)}
    return Qrels(relevant), Qrels(refused)


def iterations() -> str:
    rows: dict[str, list[Values]] = {}
    for how in ("rescaled", "likelihood"):
        for n in (1, 2, 3, 5):
            if n > 1 or not rows:
                label = "1" if n == 1 else f"{n}, later_e_steps={how}"
                rows[label] = [_shipped(Collection(name), "sd", iterations=n, later_e_steps=how) for name in SEARCHED]
    text = "MAP (standard error of the difference to one iteration) of sd, else as shipped."
    return _table("### More than one iteration of EM", text, rows, {"1"})


def papers_values() -> str:
    rows = {}
    for model in ("ql", "rm", "sd"):
        for profile in ("default", "paper"):
            cells = [_shipped(Collection(name), model, profile=profile) for name in SEARCHED]
            rows[f"{model}, {profile}"] = cells
    return _table(
        "### Table 5.3's values away from home",
        "MAP (standard error of the difference to the default). The thesis tuned them on AP news, with 100 feedback "
        "documents.",
        rows,
        {label for label in rows if label.endswith("default")},
    )


def fusion() -> str:
    rows: dict[str, list[Values]] = {"sd3 alone": [], **{" ".join(filter(None, how)): [] for how in FUSIONS}}
    rows["combsum minmax, weights cross-validated"] = []
    for name in SEARCHED:
        c = Collection(name)
        judged = _with_relevant(c)
        runs = {model: search(c.snapshot, c.topics, model) for model in FUSED}
        made = [runs["sd3"], *(fuse(list(runs.values()), method=m, normalise=n) for m, n in FUSIONS)]
        start = Fusion(weights=dict.fromkeys(runs, 1.0))
        tuned = tune(FusionProblem(runs, judged), start, fusion_space(start))
        values = [evaluate(run, judged, ["AP"], complete=True).per_topic["AP"] for run in made]
        for row, one in zip(rows.values(), [*values, tuned.values], strict=True):
            row.append(one)
    return _table(
        "### Runs fused",
        f"MAP (standard error of the difference to sd3 alone) of {', '.join(FUSED)}, each as shipped, fused. "
        "Cross-validated weights: each topic with those that were chosen without it.",
        rows,
        {"sd3 alone"},
    )


def _shipped(c: Collection, model: str, profile: str = "default", **settings: Any) -> Values:
    run = search(c.snapshot, c.topics, make_ranker(model, settings, profile=profile))
    return evaluate(run, _with_relevant(c), ["AP"], complete=True).per_topic["AP"]


def _with_relevant(c: Collection) -> Qrels:
    return Qrels({qid: grades for qid, grades in c.qrels.items() if any(grade > 0 for grade in grades.values())})


def _table(heading: str, text: str, rows: Mapping[str, list[Values]], bases: AbstractSet[str]) -> str:
    """Means, and the standard errors of their differences to the nearest row above that is one of ``bases``."""
    cells: list[list[str]] = []
    base: list[Values] = []
    for label, found in rows.items():
        base = found if label in bases else base
        told = (f"{np.mean(list(v.values())):.4f}{error_of(v, b)}" for v, b in zip(found, base, strict=True))
        cells.append([label.strip(), *told])
    return "\n".join([heading, "", text, "", table(["", *SEARCHED], cells)])


if __name__ == "__main__":
    print(section())
