"""Ranking in docs/RESULTS.md: thesis Table 5.3 by its own protocol, and its shape with honest tuning.

Tuned columns are cross-validated over topics: a topic is scored by parameters chosen without it
(sdretrieval/evaluate/tune.py). Climbs begin at the thesis's optima, or where it has none at a random point, never at
shipped defaults, which were chosen with these collections in view.
Default columns use the shipped defaults; how these do against Anserini's systems is in results_default.py.

    python -m benchmarks.results_ranking transferred      # one part: transferred, tuned, microblog
    python -m benchmarks.results_ranking tuned cacm       # the tuned columns of some collections
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from benchmarks.collections import ROOT, THREADS, Collection
from benchmarks.kept import BESIDE, kept
from benchmarks.tables import error_of, table
from sdretrieval.collection.records import Run
from sdretrieval.core.plotting import STYLE, empty_figure, write_figure
from sdretrieval.evaluate import Evaluation, compare_values, evaluate
from sdretrieval.evaluate.curves import recall_precision
from sdretrieval.evaluate.tune import Problem, Tuned, climb, folds_of, sample, settings_key, space_of, tune
from sdretrieval.ranking.base import Ranker
from sdretrieval.ranking.query import Query
from sdretrieval.ranking.registry import make_ranker
from sdretrieval.ranking.retrieval import candidates_of, rerank, search

SEARCHED = ("cacm", "cranfield", "npl")
FEEDBACK = 100  # documents, in Table 5.3
RERANKED = ("microblog2011", "microblog2013")

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
    transferred, tuned, microblog = (make() for make in PARTS.values())
    return "\n\n".join([transferred, BESIDE, tuned, microblog])


def started(name: str, space: Mapping[str, tuple], **fixed: Any) -> Ranker:
    """Where a climb begins."""
    if name in ("ql", "rm", "sd"):
        return make_ranker(name, profile="paper").with_(**fixed)
    return make_ranker(name).with_(**fixed).with_(**sample(space, 1, 0)[0])


# -- Table 5.3 by its own protocol -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Queries:
    """Some of a collection's queries."""

    title: str
    collection: Collection
    queries: list[Query]


def _query_sets() -> list[Queries]:
    cranfield = Collection("cranfield")
    half = len(cranfield.queries) // 2
    return [
        Queries(f"cranfield, first {half} (training)", cranfield, cranfield.queries[:half]),
        Queries("cranfield, the others", cranfield, cranfield.queries[half:]),
        *(Queries(c.name, c, c.queries) for c in map(Collection, ("cacm", "npl", "cf"))),
    ]


def _transferred_table() -> str:
    """N = 100; trained on one set of queries, used as they are on the others; TF-IDF untrained, as there."""
    training, *others = _query_sets()
    problem = Problem(training.collection.snapshot, training.queries, training.collection.qrels)
    trained: dict[str, Ranker] = {}
    for name in ("ql", "rm", "sd"):
        space = space_of(make_ranker(name), [one for one in SPACES[name] if not one.startswith("fb_docs")])
        if name == "ql":
            space = {"mu": (50.0, 100.0, 200.0, 500.0, 900.0, 2000.0)}
        fixed = {} if name == "ql" else {"fb_docs": FEEDBACK}
        start = started(name, space, **fixed)
        score = cache_of(f"ranking/transferred-{name}", lambda settings, s=start: problem.values(s.with_(**settings)))
        chosen = climb({key: start.settings()[key] for key in space}, space, score, 200)
        trained[name] = start.with_(**chosen)
    trained["tfidf"] = make_ranker("tfidf").with_(fb_docs=FEEDBACK)
    runs = {queries.title: {n: _run(queries, r) for n, r in trained.items()} for queries in (training, *others)}
    _draw_curves(runs)
    lines = [
        "### Table 5.3 by its own protocol",
        "",
        f"N = {FEEDBACK} feedback documents, trained by hill climbing from the thesis's optima on the first half of "
        "cranfield's queries (MAP), and transferred as they are; TF-IDF untrained. MAP / P@5, each with the standard "
        "error of its difference to QL.",
        "",
    ]
    rows = {}
    for queries in (training, *others):
        found = {n: evaluate(run, queries.collection.qrels, ("AP", "P@5")) for n, run in runs[queries.title].items()}
        cells = []
        for one in found.values():
            texts = (f"{one.mean[m]:.4f}{error_of(one.per_topic[m], found['ql'].per_topic[m])}" for m in ("AP", "P@5"))
            cells.append(" / ".join(texts))
        rows[queries.title] = cells
    settings = "; ".join(
        f"{n} {', '.join(f'{k}={v}' for k, v in _told(r).items())}" for n, r in trained.items() if _told(r)
    )
    lines += [table(["queries", *trained], rows), "", f"Trained: {settings}.", ""]
    return "\n".join([*lines, "![precision against recall](ranking-curves.png)"])


def _told(ranker: Ranker) -> dict[str, Any]:
    default = make_ranker(ranker.name).settings()
    return {key: value for key, value in ranker.settings().items() if value != default[key]}


def cache_of(name: str, values: Callable[[Any], Mapping[str, float]]) -> Callable[[Any], float]:
    return lambda settings: float(
        np.mean(list(kept(f"{name}-{settings_key(settings)}", lambda: dict(values(settings))).values()))
    )


def _run(queries: Queries, ranker: Ranker) -> Run:
    c = queries.collection
    wanted = {query.qid for query in queries.queries}
    return search(c.snapshot, [topic for topic in c.topics if topic.qid in wanted], ranker)


def _draw_curves(runs: Mapping[str, Mapping[str, Run]]) -> None:
    """Figures 5.2 to 5.6: one panel for each set of queries."""
    import matplotlib

    with matplotlib.rc_context(STYLE):
        figure = empty_figure(12.0, 2.9)
        panels = figure.subplots(1, len(runs), sharey=True)
        for axes, (queries, (title, by_model)) in zip(
            panels, zip(_query_sets(), runs.items(), strict=True), strict=True
        ):
            for name, run in by_model.items():
                curve = recall_precision(run, queries.collection.qrels)
                axes.plot(curve.recall, curve.precision, label=name)
            axes.set(xlabel="recall", ylim=(0, 0.9))
            axes.set_title(title, loc="left")
        panels[0].set_ylabel("precision")
        panels[0].legend(frameon=False)
        write_figure(figure, ROOT / "docs" / "ranking-curves.png", dpi=95)


# -- cross-validated -----------------------------------------------------------------------------------------------


def _tuned_table(searched: Sequence[str] = SEARCHED, shown: Sequence[str] = SHOWN) -> str:
    lines = [
        "### Table 5.3's shape, tuned by cross-validation over topics",
        "",
        "MAP (5 folds, hill climbing on MAP as in the thesis, from the thesis's optima or a random point; no topic "
        "chose its own parameters) / P@5 of the same parameters on the same held-out topics, each with the standard "
        "error of its difference to QL.",
        "",
    ]
    found = {name: [_cross_validated(Collection(c), name) for c in searched] for name in shown}
    rows = {
        name: [
            " / ".join(
                f"{np.mean(list(values.values())):.4f}{error_of(values, found['ql'][i][m])}"
                for m, values in enumerate(both)
            )
            for i, both in enumerate(found[name])
        ]
        for name in shown
    }
    lines.append(table(["model", *searched], rows))
    lines.append("\nsd against rm (the thesis: equal in MAP, sd ahead in P@5; standard errors in brackets):")
    for i, c in enumerate(searched):
        texts = []
        for m, label in ((0, "MAP"), (1, "P@5")):
            r = compare_values(found["sd"][i][m], found["rm"][i][m], tests=["t", "wilcoxon", "sign"])
            p = ", ".join(f"{t} p={r.tests[t].p_value:.2f}" for t in r.tests)
            error = error_of(found["sd"][i][m], found["rm"][i][m])
            texts.append(f"{label} {r.difference:+.4f}{error}, {p}")
        lines.append(f"- {c}: " + "; ".join(texts))
    return "\n".join(lines)


def _cross_validated(c: Collection, name: str) -> list[dict[str, float]]:
    """Held-out AP and P@5 by topic."""

    def make() -> list[dict[str, float]]:
        space = space_of(make_ranker(name), SPACES[name])
        ranker = started(name, space)
        problem = Problem(c.snapshot, c.queries, c.qrels, threads=THREADS)
        found = tune(problem, ranker, space)
        return [found.values, _values_of_folds(problem, ranker, found, "P@5")]

    return kept(f"ranking/tuned-{c.name}-{name}", make)


def _values_of_folds(problem: Problem, ranker: Ranker, found: Tuned, measure: str) -> dict[str, float]:
    other = replace(problem, measure=measure)
    by_settings = {
        key: other.values(ranker.with_(**settings))
        for key, settings in {settings_key(one): one for one in found.fold_settings}.items()
    }
    values = {}
    for held_out, settings in zip(folds_of(problem.qids, 5, 0), found.fold_settings, strict=True):
        values.update({qid: by_settings[settings_key(settings)][qid] for qid in held_out})
    return {qid: values[qid] for qid in problem.qids}


# -- microblog: tuned on one year, tested on the other ---------------------------------------------------------------


def _microblog_table() -> str:
    lines = [
        "### Re-ranking the supplied query-likelihood runs of TREC Microblog",
        "",
        "MAP / P@30 over all relevant tweets, those outside the pool included, each with the standard error of its "
        "difference to the supplied RM3 run. *default*: as shipped; *tuned*: on the other year. Documents of the run "
        "that are not in the pool are dropped.",
        "",
    ]
    head = ["model", "2011 default", "2011 tuned on 2013", "2013 default", "2013 tuned on 2011"]
    rows = {}
    years = [Collection(name) for name in RERANKED]
    supplied = {name: [_whole(c, c.run(name)) for c in years] for name in ("QL", "RM3")}

    def cell(i: int, found: Evaluation) -> str:
        rm3 = supplied["RM3"][i].per_topic
        return " / ".join(f"{found.mean[m]:.4f}{error_of(found.per_topic[m], rm3[m])}" for m in ("AP", "P@30"))

    for name, found in supplied.items():
        rows[f"supplied {name} run"] = [text for i, one in enumerate(found) for text in (cell(i, one), "")]
    for name in ("ql", "rm", "rm3", "sd", "sd3"):
        ranker = make_ranker(name)
        tuned = [kept(f"ranking/{c.name}-{name}", lambda c=c, r=ranker: _tuned_on(c, r)) for c in years]
        rows[name] = [
            cell(i, _whole(c, rerank(c.snapshot, c.run("QL"), c.topics, one, missing="drop", threads=THREADS)))
            for i, c in enumerate(years)
            for one in (ranker, ranker.with_(**tuned[1 - i]))
        ]
    return "\n".join([*lines, table(head, rows)])


def _whole(c: Collection, run: Run) -> Evaluation:
    return evaluate(run, c.qrels, ("AP", "P@30"), complete=True)


def _tuned_on(c: Collection, ranker: Ranker) -> dict[str, Any]:
    return tune(_rerank_problem(c), ranker, space_of(ranker, SPACES[ranker.name])).settings


def _rerank_problem(c: Collection) -> Problem:
    topics, candidates = candidates_of(c.snapshot, c.run("QL"), c.topics, "drop")
    wanted = {topic.qid for topic in topics}
    queries = [query for query in c.queries if query.qid in wanted]
    return Problem(c.snapshot, queries, c.qrels, threads=THREADS, candidates=candidates)


PARTS = {
    "transferred": _transferred_table,
    "tuned": _tuned_table,
    "microblog": _microblog_table,
}  # the first on the page

if __name__ == "__main__":
    if sys.argv[1:2] == ["tuned"] and sys.argv[2:]:  # on these collections alone
        sys.exit(print(_tuned_table(sys.argv[2:])))
    print("\n\n".join(PARTS[name]() for name in sys.argv[1:] or PARTS))
