"""Ranking in docs/RESULTS.md: the shape of thesis Table 5.3 on collections that can be had, with honest tuning.

Tuned columns are cross-validated over topics: a topic is scored by parameters chosen without it
(sdretrieval/evaluate/tune.py).
Default columns use the shipped defaults; how these do against Anserini's systems is in results_default.py.
"""

from __future__ import annotations

import numpy as np

from benchmarks.collections import ROOT, Collection
from sdretrieval.evaluate import compare_values, evaluate
from sdretrieval.evaluate.tune import Problem, space_of, tune
from sdretrieval.ranking.base import Ranker
from sdretrieval.ranking.registry import make_ranker
from sdretrieval.ranking.retrieval import candidates_of

SEARCHED = ("cacm", "cranfield", "npl")
RERANKED = ("microblog2011", "microblog2013")
TRACES = ROOT / ".cache" / "results"

# What is tuned; the rest stays at the shipped default.
SPACES: dict[str, list[str]] = {
    "bm25": ["k1", "b"],
    "ql": ["smoothing=dirichlet,jm", "mu", "lam=0.1,0.3,0.5,0.7"],
    "tfidf": ["fb_docs=5,10,20,50", "fb_terms", "beta"],
    "rm": ["fb_docs=10,20,50,100", "lambda_query", "lambda_model", "lambda_ranking=0.05,0.1,0.3,0.5,0.7"],
    "rm3": ["fb_docs=5,10,20,50", "fb_terms", "original_query_weight", "lambda_query", "lambda_model"],
    "sd": ["fb_docs=5,10,20,50,100", "lambda_first", "lambda_feedback", "lambda_ranking=0.1,0.3,0.5,0.8", "precision"],
    "sd3": ["fb_docs=5,10,20,50", "fb_terms", "original_query_weight", "precision", "k1", "b"],
}
SHOWN = ("bm25", "ql", "tfidf", "rm", "rm3", "sd", "sd3")


def section() -> str:
    return "\n\n".join([_tuned_table(), _microblog_table()])


# -- cross-validated -----------------------------------------------------------------------------------------------


def _tuned_table() -> str:
    lines = [
        "### Table 5.3's shape, tuned by cross-validation over topics",
        "",
        "MAP (5 folds, hill climbing on MAP as in the thesis; no topic chose its own parameters) / P@5 of the same "
        "parameters on the same held-out topics.",
        "",
        "| model | " + " | ".join(SEARCHED) + " |",
        "|---|" + "---|" * len(SEARCHED),
    ]
    found = {name: [_cross_validated(Collection(c), name) for c in SEARCHED] for name in SHOWN}
    for name in SHOWN:
        cells = [f"{np.mean(list(ap.values())):.4f} / {np.mean(list(p5.values())):.4f}" for ap, p5 in found[name]]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    lines.append("\nsd against rm (the thesis: equal in MAP, sd ahead in P@5):")
    for i, c in enumerate(SEARCHED):
        texts = []
        for m, label in ((0, "MAP"), (1, "P@5")):
            r = compare_values(found["sd"][i][m], found["rm"][i][m], tests=["t", "wilcoxon", "sign"])
            p = ", ".join(f"{t} p={r.tests[t].p_value:.2f}" for t in r.tests)
            texts.append(f"{label} {r.difference:+.4f} ({p})")
        lines.append(f"- {c}: " + "; ".join(texts))
    return "\n".join(lines)


def _cross_validated(c: Collection, name: str) -> tuple[dict[str, float], dict[str, float]]:
    """Held-out AP and P@5 by topic."""
    ranker = make_ranker(name)
    problem = Problem(c.snapshot, c.queries, c.qrels, threads=2)
    TRACES.mkdir(parents=True, exist_ok=True)
    found = tune(problem, ranker, space_of(ranker, SPACES[name]), trace=TRACES / f"{c.name}-{name}.jsonl")
    return found.values, _values_of_folds(problem, ranker, found, "P@5")


def _values_of_folds(problem: Problem, ranker: Ranker, found, measure: str) -> dict[str, float]:
    from sdretrieval.evaluate import Evaluator
    from sdretrieval.evaluate.tune import folds_of

    problem.measure = measure
    problem.evaluator = Evaluator(problem.qrels, [measure])
    values = {}
    for held_out, settings in zip(folds_of(problem.qids, 5, 0), found.fold_settings, strict=True):
        all_values = problem.values(ranker.with_(**settings))
        values.update({qid: all_values[qid] for qid in held_out})
    return {qid: values[qid] for qid in problem.qids}


# -- microblog: tuned on one year, tested on the other ---------------------------------------------------------------


def _microblog_table() -> str:
    lines = [
        "### Re-ranking the supplied query-likelihood runs of TREC Microblog",
        "",
        "MAP / P@30 over all relevant tweets, those outside the pool included. *default*: as shipped; *tuned*: on the "
        "other year. Documents of the run that are not in the pool are dropped.",
        "",
        "| model | 2011 default | 2011 tuned on 2013 | 2013 default | 2013 tuned on 2011 |",
        "|---|---|---|---|---|",
    ]
    years = [Collection(name) for name in RERANKED]
    supplied = []
    for name in ("QL", "RM3"):
        cells = []
        for c in years:
            e = evaluate(c.run(name), c.qrels, ("AP", "P@30"), complete=True)
            cells += [f"{e.mean['AP']:.4f} / {e.mean['P@30']:.4f}", ""]
        supplied.append(f"| supplied {name} run | " + " | ".join(cells) + " |")
    lines += supplied
    problems = [_rerank_problem(c) for c in years]
    for name in ("ql", "rm", "rm3", "sd", "sd3"):
        ranker = make_ranker(name)
        tuned = [
            tune(p, ranker, space_of(ranker, SPACES[name]), trace=TRACES / f"{c.name}-{name}.jsonl").settings
            for p, c in zip(problems, years, strict=True)
        ]
        cells = []
        for i, c in enumerate(years):
            cells += [_rerank_cell(c, ranker), _rerank_cell(c, ranker.with_(**tuned[1 - i]))]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _rerank_problem(c: Collection) -> Problem:
    topics, candidates = candidates_of(c.snapshot, c.run("QL"), c.topics, "drop")
    wanted = {topic.qid for topic in topics}
    queries = [query for query in c.queries if query.qid in wanted]
    return Problem(c.snapshot, queries, c.qrels, threads=2, candidates=candidates)


def _rerank_cell(c: Collection, ranker: Ranker) -> str:
    from sdretrieval.ranking.retrieval import rerank

    e = evaluate(
        rerank(c.snapshot, c.run("QL"), c.topics, ranker, missing="drop", threads=2),
        c.qrels,
        ("AP", "P@30"),
        complete=True,
    )
    return f"{e.mean['AP']:.4f} / {e.mean['P@30']:.4f}"


if __name__ == "__main__":
    print(section())
