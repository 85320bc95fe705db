"""Evolving in docs/RESULTS.md: SSL, SSL-naive and SSL-E on five mailing lists over 36 months (Jia et al., Table 2).

The γ's of each method are chosen by grid search on one pair of lists, with labelings of their own, and applied to all
pairs. Labelings are columns of one problem: graph and kernel matrix are made once per pair and month.

    python -m benchmarks.results_evolving
    python -m benchmarks.results_evolving quarters tokens hinge      # these parts, with the γ's of docs/RESULTS.md
    python -m benchmarks.results_evolving main                       # the table of the page, with its γ's
"""

from __future__ import annotations

import gzip
import json
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import astuple, dataclass, replace
from functools import cache, cached_property, partial
from itertools import combinations, pairwise
from math import inf
from pathlib import Path

import numpy as np
from scipy.sparse import csr_matrix, vstack

from benchmarks.collections import INDEXES, ROOT, Collection, one_at_a_time
from benchmarks.kept import BESIDE, kept
from benchmarks.tables import mean_and_error, standard_error, table
from sdretrieval.evaluate.significance import correct, paired_t
from sdretrieval.learn.evolving.frames import auc, choose_labelled
from sdretrieval.learn.evolving.graph import laplacian, neighbour_graph
from sdretrieval.learn.evolving.run import tf_idf
from sdretrieval.learn.evolving.solver import LinearGram, RandomWalkGram, Solution, joined, project, solve, solve_hinge

Floats = np.ndarray
LISTS = ("r-devel", "r-sig-geo", "r-sig-finance", "rcpp-devel", "r-sig-mac")
SHORT = {"r-devel": "dev", "r-sig-geo": "geo", "r-sig-finance": "fin", "rcpp-devel": "rcpp", "r-sig-mac": "mac"}
CHOSEN_ON = ("r-devel", "rcpp-devel")
LABELINGS, PER_FRAME, FRACTION = 5, 10, 0.1
GAMMA_A = (0.001, 0.01, 0.1)
RATIOS = (0.0, 1e2, 1e3, 1e4, 1e5, 1e6)  # γ_I / γ_A
BANDWIDTHS, STRENGTHS = (2.0, 4.0, 8.0, 16.0, inf), (1.0, 10.0, 100.0)
QUICK = (0.1, 10.0)  # γ's of a quick experiment with at most 300 posts a month, and its AUCs
QUICK_RESULTS = {
    ("r-devel", "r-sig-geo"): "82.7 / 89.2 / 93.8",
    ("r-devel", "rcpp-devel"): "83.8 / 88.2 / 92.1",
    ("r-devel", "r-sig-mac"): "74.5 / 77.3 / 78.9",
}
HISTORY, HISTORY_LABELINGS = 24, 2
THREE = [("r-devel", "r-sig-geo"), ("r-devel", "r-sig-mac"), ("r-sig-finance", "r-sig-mac")]  # γ is chosen on none
SSL, NAIVE, FRAME, ALL, OFFLINE = "SSL", "SSL-naive", "SSL-E (18)", "SSL-E (13)", "SSL-E offline (6)"
LOGISTIC = "local logistic regression"
PUBLISHED = {SSL: (0.01, 1e4), NAIVE: (0.01, 1e4), FRAME: (1e-3, 100.0), ALL: (1e-3, 1.0)}  # in docs/RESULTS.md


# -- the posts ----------------------------------------------------

_LIST_NAMES = re.compile(r"\b(?:r[- ]?devel|rcpp[- ]?devel|r[- ]sig[- ]\w+|r[- ]?help)\b", re.IGNORECASE)
_SIGNATURE = re.compile(r"^--[ \t]*$", re.MULTILINE)
_LONGEST_SIGNATURE = 15  # lines


def without_giveaways(text: str) -> str:
    """Without the names of the lists, and without what follows the last '--' line where it is short: a signature."""
    marks = list(_SIGNATURE.finditer(text))
    if marks and text.count("\n", marks[-1].end()) <= _LONGEST_SIGNATURE:
        text = text[: marks[-1].start()]
    return _LIST_NAMES.sub(" ", text)


@dataclass(frozen=True)
class Posts:
    """tf-idf rows of unit length in the order of the months, with list and month."""

    X: csr_matrix
    counts: csr_matrix
    lists: np.ndarray
    months: np.ndarray
    left_out: int
    threads: np.ndarray | None = None  # the subject of each post
    docids: Sequence[str] = ()

    @cached_property
    def names(self) -> list[str]:
        return sorted(set(self.months))


@cache
def posts(cleaned: bool) -> Posts:
    from sdretrieval.learn.labelled import read_labelled

    crossposted: set[str] = set()
    index = Collection("rlists").index
    if cleaned:
        index, crossposted = cleaned_index()
    corpus = read_labelled(index, fields=("frame",))
    lists, months = corpus.single_labels(), np.array(corpus.fields["frame"])
    kept = np.array([docid not in crossposted for docid in corpus.docids])
    order = np.flatnonzero(kept)[np.lexsort((np.array(corpus.docids)[kept], months[kept]))]
    counts = corpus.counts[order]
    df = np.bincount(counts.indices, minlength=counts.shape[1])
    counts = csr_matrix(counts[:, df >= 2])
    df = np.bincount(counts.indices, minlength=counts.shape[1])
    counts.sort_indices()
    subjects = thread_of()
    threads = np.array([subjects[corpus.docids[row]] for row in order])
    docids = [corpus.docids[row] for row in order]
    X = tf_idf(counts, df, len(order))
    return Posts(X, counts, lists[order], months[order], len(crossposted), threads, docids)


def plain_words(data: Posts) -> csr_matrix:
    """tf-idf of the cleaned posts' words as they are written: not stemmed, English stop words out."""
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS, CountVectorizer

    with gzip.open(Collection("rlists").folder / "docs.jsonl.gz", "rt", encoding="utf-8") as stream:
        texts = {one["id"]: without_giveaways(one["contents"]) for one in map(json.loads, stream)}
    vectorizer = CountVectorizer(stop_words=sorted(ENGLISH_STOP_WORDS), min_df=2, token_pattern=r"(?u)\b\w+\b")
    counts = csr_matrix(vectorizer.fit_transform(texts[docid] for docid in data.docids), dtype=float)
    return tf_idf(counts, np.bincount(counts.indices, minlength=counts.shape[1]), counts.shape[0])


def thread_of() -> dict[str, str]:
    """docid -> its list and subject, without Re: and the like."""
    with gzip.open(Collection("rlists").folder / "docs.jsonl.gz", "rt", encoding="utf-8") as stream:
        records = (json.loads(line) for line in stream)
        return {
            one["id"]: one["labels"][0]
            + " "
            + re.sub(r"^(\s*(re|fwd?|aw|sv):|\s*\[[^]]*\])+", "", one["title"].lower()).strip()
            for one in records
        }


def cleaned_index() -> tuple[Path, set[str]]:
    """The index of the posts without giveaways, made once; and the docids of posts that stand in several lists."""
    from sdretrieval.collection.corpus import Reader
    from sdretrieval.index.lucene.indexing import build_index

    by_text: dict[str, list[tuple[str, str]]] = {}
    source = Collection("rlists").folder / "docs.jsonl.gz"
    path = INDEXES / "results-rlists-cleaned"
    rewritten = INDEXES / "results-rlists-cleaned.jsonl"
    lines = []
    with gzip.open(source, "rt", encoding="utf-8") as stream:
        for line in stream:
            record = json.loads(line)
            text = without_giveaways(record["contents"])
            by_text.setdefault(" ".join(re.findall(r"\w+", text.lower())), []).append(
                (record["id"], record["labels"][0])
            )
            lines.append(json.dumps({**record, "title": "", "contents": text}, ensure_ascii=False))
    with one_at_a_time(path):
        if not path.is_dir():
            rewritten.write_text("\n".join(lines), encoding="utf-8")
            build_index(Reader(date="date").read([rewritten]), path, threads=1)
            rewritten.unlink()
    several = {docid for group in by_text.values() if len({one for _, one in group}) > 1 for docid, _ in group}
    return path, several


# -- frames, prepared once for all methods and labelings ----------------------------------------------------


@dataclass
class Frame:
    X: csr_matrix
    y: Floats  # number of the class
    L: csr_matrix

    @cached_property
    def gram(self) -> LinearGram:
        return LinearGram(self.X)

    @property
    def n(self) -> int:
        return len(self.y)


class Task:
    """The months of some lists: ``labelled[t]`` is documents x labelings."""

    def __init__(self, data: Posts, lists: tuple[str, ...], X: csr_matrix | None = None) -> None:
        self.lists = lists
        X = data.X if X is None else X
        self.frames = []
        for month in data.names:
            rows = np.flatnonzero((data.months == month) & np.isin(data.lists, lists))
            y = np.array([lists.index(one) for one in data.lists[rows]])
            self.frames.append(Frame(X[rows], y, laplacian(neighbour_graph(X[rows]))))

    @cached_property
    def doubled(self) -> list[Frame]:
        """Each month together with the one before it (the first alone)."""
        made = [self.frames[0]]
        for before, here in zip(self.frames[:-1], self.frames[1:], strict=True):
            X = csr_matrix(vstack([before.X, here.X]))
            made.append(Frame(X, np.concatenate([before.y, here.y]), laplacian(neighbour_graph(X))))
        return made

    def labelings(self, seeds: range) -> list[np.ndarray]:
        how = {"per_frame": PER_FRAME} if len(self.lists) == 2 else {"fraction": FRACTION}
        return [
            np.array(
                [choose_labelled(f.y, np.zeros(f.n), seed=np.random.default_rng((seed, t)), **how) for seed in seeds]
            ).T
            for t, f in enumerate(self.frames)
        ]

    @property
    def functions(self) -> int:
        """Functions per labeling: one for two classes, else one for each."""
        return 1 if len(self.lists) == 2 else len(self.lists)

    def targets(self, y: Floats, labelled: np.ndarray) -> tuple[Floats, np.ndarray]:
        """±1 and masks, a column for each labeling and class."""
        if self.functions == 1:
            return np.where(y == 0, 1.0, -1.0)[:, None] * labelled, labelled
        signs = np.where(y[:, None] == np.arange(self.functions), 1.0, -1.0)
        mask = np.repeat(labelled, self.functions, axis=1)
        return np.tile(signs, labelled.shape[1]) * mask, mask

    def quality(self, y: Floats, labelled: np.ndarray, values: Floats) -> Floats:
        """Of each labeling on what it left unlabelled: AUC for two classes, accuracy for more."""
        scores = []
        for r in range(labelled.shape[1]):
            rest = ~labelled[:, r]
            if self.functions == 1:
                scores.append(auc(y[rest] == 0, values[rest, r]))
            else:
                mine = values[rest, r * self.functions : (r + 1) * self.functions]
                scores.append(float(np.mean(mine.argmax(axis=1) == y[rest])))
        return np.array(scores)


# -- the methods ----------------------------------------------------


@dataclass
class Outcome:
    """months x labelings: quality, and the costs of Figure 2."""

    quality: Floats
    spatial: Floats
    temporal: Floats


def kept_outcome(name: str, make: Callable[[], Outcome]) -> Outcome:
    found = kept(f"evolving/{name}", lambda: [part.tolist() for part in astuple(make())])
    return Outcome(*map(np.array, found))


TOL = 1e-7  # on f, whose values are about 1


def advanced(
    frame: Frame,
    Y: Floats,
    C: Floats,
    prior: Floats | None,
    carried: Floats | None,
    method: str,
    gammas: tuple,
    solver: Callable[..., Solution] = solve,
) -> tuple[Floats, Floats]:
    """f_t on the frame's posts, and its weights; ``carried`` are those of f_{t-1}, of the last columns."""
    gamma_A, gamma_I = gammas
    answer = solver(frame.gram, frame.L * (gamma_I / frame.n**2), C, Y, prior, gamma_A=gamma_A, tol=TOL)
    alpha = answer.beta
    if method == FRAME and prior is not None:
        alpha = alpha + project(frame.gram, prior, solver="direct")
    new = np.asarray(frame.X.T @ alpha)
    if method == ALL and carried is not None:
        new[:, new.shape[1] - carried.shape[1] :] += carried
    return answer.values, new


def run(
    task: Task,
    labelled: list[np.ndarray],
    method: str,
    gamma_A: float,
    gamma_I: float,
    solver: Callable[..., Solution] = solve,
) -> Outcome:
    frames = task.doubled if method == NAIVE else task.frames
    weights: Floats | None = None
    rows: list[tuple[Floats, Floats, Floats]] = []
    for t, frame in enumerate(frames):
        mask = labelled[t] if method != NAIVE or t == 0 else np.concatenate([labelled[t - 1], labelled[t]])
        Y, C = task.targets(frame.y, mask)
        carried = weights if method in (FRAME, ALL) else None
        prior = None if carried is None else np.asarray(frame.X @ carried)
        values, new = advanced(frame, Y, C, prior, carried, method, (gamma_A, gamma_I), solver)
        spatial = np.einsum("ij,ij->j", values, frame.L @ values) / frame.n**2
        moved = new if weights is None else new - weights
        here = slice(frame.n - task.frames[t].n, None)
        quality = task.quality(frame.y[here], mask[here], values[here])
        rows.append((quality, spatial, np.einsum("ij,ij->j", moved, moved)))
        weights = new
    return Outcome(*(np.array(part) for part in zip(*rows, strict=True)))


def run_offline(task: Task, labelled: list[np.ndarray], gamma_A: float, gamma_I: float) -> Outcome:
    """All months at once; sees later months too, so it is a bound rather than a rival."""
    sizes = [frame.n for frame in task.frames]
    gram = RandomWalkGram(csr_matrix(vstack([frame.X for frame in task.frames])), sizes)
    smooth = joined([frame.L * (gamma_I / frame.n**2) for frame in task.frames])
    parts = [task.targets(frame.y, mask) for frame, mask in zip(task.frames, labelled, strict=True)]
    Y, C = (np.concatenate(part) for part in zip(*parts, strict=True))
    answer = solve(gram, smooth, C, Y, gamma_A=gamma_A, tol=1e-4, solver="cg", max_iter=200)
    bounds = np.concatenate([[0], np.cumsum(sizes)])
    values = [answer.values[a:b] for a, b in pairwise(bounds)]
    quality = [task.quality(f.y, m, v) for f, m, v in zip(task.frames, labelled, values, strict=True)]
    return Outcome(np.array(quality), np.zeros(0), np.zeros(0))


def offline_bound(task: Task, online: Outcome) -> tuple[tuple[float, float], str]:
    """Its γ's chosen as the others' are, on a small grid; ``online``: of the same labelings, to compare with."""
    labelled = task.labelings(range(100, 102))
    scores = {
        (a, a * ratio): float(run_offline(task, labelled, a, a * ratio).quality.mean())
        for a in (0.1, 1.0, 10.0)
        for ratio in (0.0, 1e2, 1e3)
    }
    best = max(scores, key=lambda setting: scores[setting])
    print(f"  {OFFLINE}: {scores}", file=sys.stderr)
    found = run_offline(task, task.labelings(range(LABELINGS)), *best)
    return best, f"{cell(found)}, less {ALL} {lead(found.quality, online.quality)}"


def every_third(task: Task) -> list[int]:
    return list(range(2, len(task.frames), 3))


def run_refitted(task: Task, labelled: list[np.ndarray], gamma_A: float, gamma_I: float) -> Outcome:
    """(6) on the months up to every third one: as online as (12), with every month's labels still in play."""
    quality = []
    whole = task.frames
    for t in every_third(task):
        task.frames = whole[: t + 1]
        quality.append(run_offline(task, labelled[: t + 1], gamma_A, gamma_I).quality[-1])
    task.frames = whole
    return Outcome(np.array(quality), np.zeros(0), np.zeros(0))


def refitted(tasks: dict[tuple, Task], at: tuple[float, float], online: dict[tuple, Outcome]) -> str:
    cells = []
    for lists in (CHOSEN_ON, ("r-devel", "r-sig-mac"), ("r-sig-geo", "r-sig-finance")):
        task, two = tasks[lists], range(2)
        outcome = run_refitted(task, task.labelings(two), *at)
        same = online[lists].quality[every_third(task)][:, two]
        cells.append(f"{name_of(lists)} {cell(outcome)}, less {ALL} {lead(outcome.quality, same)}")
    return "; ".join(cells) + " (two labelings)"


def run_logistic(task: Task, labelled: list[np.ndarray], bandwidth: float, C: float) -> Outcome:
    """Month t by what is labelled up to and including t: the same labels that SSL-E has, and no unlabelled post."""
    from sdretrieval.learn.classify.local_logistic import LocalLogisticRegression

    quality = []
    X = csr_matrix(vstack([frame.X for frame in task.frames]))
    y = np.concatenate([frame.y for frame in task.frames])
    months = np.repeat(np.arange(len(task.frames)), [frame.n for frame in task.frames])
    for r in range(labelled[0].shape[1]):
        mask = np.concatenate([m[:, r] for m in labelled])
        model = LocalLogisticRegression(bandwidth=bandwidth, C=C, online=True, tol=1e-4)
        model.fit(X[mask], y[mask], times=months[mask])
        each = []
        for t, frame in enumerate(task.frames):
            rest = ~labelled[t][:, r]
            scores = model.decision_function(frame.X[rest], times=np.full(rest.sum(), t + 0.5))
            if task.functions == 1:
                each.append(auc(frame.y[rest] == 1, scores))
            else:
                each.append(float(np.mean(scores.argmax(axis=1) == frame.y[rest])))
        quality.append(each)
    return Outcome(np.array(quality).T, np.zeros(0), np.zeros(0))


METHODS: dict[str, Callable[..., Outcome]] = {
    name: (lambda task, labelled, a, b, name=name: run(task, labelled, name, a, b)) for name in (SSL, NAIVE, FRAME, ALL)
} | {LOGISTIC: run_logistic}


def grid(method: str) -> Iterator[tuple[float, float]]:
    if method == LOGISTIC:
        yield from ((h, C) for h in BANDWIDTHS for C in STRENGTHS)
    else:
        yield from ((a, a * ratio) for a in GAMMA_A for ratio in RATIOS)


def choose(task: Task, seeds: range) -> dict[str, tuple[float, float]]:
    """The best of each method's grid on one task."""
    labelled = task.labelings(seeds)
    best = {}
    for method, go in METHODS.items():
        outcomes = {
            setting: kept_outcome(f"grid/{method}-{setting[0]:g}-{setting[1]:g}", partial(go, task, labelled, *setting))
            for setting in grid(method)
        }
        scores = {setting: float(outcome.quality.mean()) for setting, outcome in outcomes.items()}
        best[method] = max(scores, key=lambda setting: scores[setting])
        print(f"  {method}: {best[method]} {100 * scores[best[method]]:.2f}", file=sys.stderr)
        for setting, score in scores.items():
            print(f"    {setting} {100 * score:.2f}", file=sys.stderr)
    return best


# -- how many frames of history help ----------------------------------------------------


def by_history(task: Task, labelled: list[np.ndarray], method: str, gamma_A: float, gamma_I: float) -> Floats:
    """Quality at month t of a classifier started m months before it: months x m = 0 … HISTORY x labelings.

    Column (m, r) at month t goes on from column (m - 1, r) of month t - 1.
    """
    R = labelled[0].shape[1]
    weights: Floats | None = None
    rows = []
    for t, frame in enumerate(task.frames):
        Y, C = task.targets(frame.y, labelled[t])
        depth = min(t, HISTORY)
        Y, C = np.tile(Y, depth + 1), np.tile(C, depth + 1)
        carried = None if weights is None else weights[:, : depth * R]
        prior = np.zeros_like(Y)
        if carried is not None:
            prior[:, R:] = frame.X @ carried
        values, weights = advanced(frame, Y, C, prior, carried, method, (gamma_A, gamma_I))
        each = np.full((HISTORY + 1, R), np.nan)
        for m in range(depth + 1):
            each[m] = task.quality(frame.y, labelled[t], values[:, m * R : (m + 1) * R])
        rows.append(each)
    return np.array(rows)


# -- tables and picture ----------------------------------------------------


def cell(outcome: Outcome) -> str:
    """Mean over months and labelings, and the standard deviation over months, as the paper has them."""
    return f"{100 * outcome.quality.mean():.2f} ({100 * outcome.quality.mean(axis=1).std(ddof=1):.2f})"


def one_line(text: str) -> str:
    return " ".join(text.split())


def lead(one: Floats, other: Floats) -> str:
    """In points, with its standard error; both are months (or pairs) x labelings."""
    return mean_and_error(100 * (one - other).mean(axis=1), 2, "+")


def tests(better: dict[tuple, Outcome], worse: dict[tuple, Outcome]) -> list[str]:
    """Mean difference (standard error over months), with a star where a paired t-test over months, Holm's correction
    over columns, is below 5 %."""
    months = [better[key].quality.mean(axis=1) - worse[key].quality.mean(axis=1) for key in better]
    p = correct([paired_t(d).p_value for d in months])
    return [mean_and_error(100 * d, 2, "+") + "*" * (q < 0.05) for d, q in zip(months, p, strict=True)]


def name_of(lists: tuple[str, ...]) -> str:
    return "/".join(SHORT[one] for one in lists) if len(lists) == 2 else "five lists"


def main_table(data: Posts, chosen: dict[str, tuple[float, float]]) -> tuple[str, dict, dict[tuple, Task]]:
    outcomes: dict[str, dict[tuple, Outcome]] = {name: {} for name in METHODS}
    tasks = {}
    for lists in [*combinations(LISTS, 2), LISTS]:
        task = tasks[lists] = Task(data, lists)
        labelled = task.labelings(range(LABELINGS))
        for name, go in METHODS.items():
            kept_as = f"main/{name_of(lists).replace('/', '-')}-{name}"
            outcomes[name][lists] = kept_outcome(kept_as, partial(go, task, labelled, *chosen[name]))
        print(
            name_of(lists), {n: round(100 * o[lists].quality.mean(), 2) for n, o in outcomes.items()}, file=sys.stderr
        )
    rows = {}
    for name, of in outcomes.items():
        cells = [cell(outcome) for outcome in of.values()]
        for i, lists in enumerate(of):
            ahead = min(
                (of[lists].quality - other[lists].quality for other in outcomes.values() if other is not of),
                key=lambda difference: difference.mean(),
            ).mean(axis=1)
            if ahead.mean() > 2 * standard_error(ahead):  # of every other, by more than two errors
                cells[i] = f"**{cells[i]}**"
        rows[name] = cells
    for one, other in ((FRAME, SSL), (FRAME, NAIVE), (ALL, SSL), (ALL, NAIVE), (ALL, FRAME), (LOGISTIC, ALL)):
        rows[f"{one} - {other}"] = tests(outcomes[one], outcomes[other])
    return table(["", *map(name_of, tasks)], rows), outcomes, tasks


def quick_table(chosen: dict[str, tuple[float, float]]) -> str:
    data = posts(False)
    names = (SSL, NAIVE, FRAME, ALL)
    outcomes: dict[str, dict[tuple, Outcome]] = {}
    columns = list(combinations(LISTS, 2))
    for lists in columns:
        task = Task(data, lists)
        labelled = task.labelings(range(HISTORY_LABELINGS))
        for name in names:
            for label, gammas in ((name, QUICK), (f"{name}, γ's as above", chosen[name])):
                kept_as = f"quick/{name_of(lists).replace('/', '-')}-{label}"
                make = partial(run, task, labelled, name, *gammas)
                outcomes.setdefault(label, {})[lists] = kept_outcome(kept_as, make)
    rows = {"quick experiment: SSL / naive / SSL-E": [QUICK_RESULTS.get(lists, "") for lists in columns]}
    rows |= {name: [cell(outcome) for outcome in outcomes[name].values()] for name in names}
    for one, other in ((FRAME, SSL), (FRAME, NAIVE), (ALL, FRAME)):
        rows[f"{one} - {other}"] = tests(outcomes[one], outcomes[other])
    for name in names:
        rows[f"{name}, γ's as above"] = [cell(outcome) for outcome in outcomes[f"{name}, γ's as above"].values()]
    return table(["", *map(name_of, columns)], rows)


def quarterly_table(data: Posts, chosen: dict[str, tuple[float, float]]) -> str:
    """What the representer constraint costs, by the length of a frame: (13) less (18), in points of AUC."""
    quarters = np.array([f"{month[:4]}-{(int(month[5:]) - 1) // 3}" for month in data.months])
    pairs = list(combinations(LISTS, 2))
    rows = {}
    for label, frames in (("months", data), ("quarters", replace(data, months=quarters))):
        for how, gammas in (("chosen on months", chosen), ("next to no graph", dict.fromkeys((FRAME, ALL), QUICK))):
            cells, sizes = [], []
            for one in pairs:
                task = Task(frames, one)
                labelled = task.labelings(range(HISTORY_LABELINGS))
                cells.append(lead(*(run(task, labelled, name, *gammas[name]).quality for name in (ALL, FRAME))))
                sizes.append(np.mean([frame.n for frame in task.frames]))
            rows[f"{label} ({np.mean(sizes):,.0f} posts), γ's {how}"] = cells
    return table(["", *map(name_of, pairs)], rows)


def other_table(names: Sequence[str], runs: Callable[[tuple], Iterator[tuple[Floats, Floats]]]) -> str:
    """Two ways for each method: AUC of the first, and what the other adds (standard error over months)."""
    rows: dict[str, list[str]] = {name: [] for name in names}
    for lists in THREE:
        for name, (one, other) in zip(names, runs(lists), strict=True):
            rows[name].append(f"{100 * one.mean():.2f} {lead(other, one)}")
        print(name_of(lists), {name: cells[-1] for name, cells in rows.items()}, file=sys.stderr, flush=True)
    return table(["", *map(name_of, THREE)], rows)


def token_table(data: Posts, chosen: dict[str, tuple[float, float]]) -> str:
    """Lucene's terms, and words as they are written without stop words."""
    X = plain_words(data)
    settings = [(name, chosen[name]) for name in PUBLISHED] + [(name, QUICK) for name in PUBLISHED]

    def runs(lists: tuple) -> Iterator[tuple[Floats, Floats]]:
        tasks = Task(data, lists), Task(data, lists, X)
        labelled = tasks[0].labelings(range(LABELINGS))
        for name, gammas in settings:
            one, other = (run(task, labelled, name, *gammas).quality for task in tasks)
            yield one, other

    return other_table([f"{n}, next to no graph" if g is QUICK else n for n, g in settings], runs)


def hinge_table(data: Posts, chosen: dict[str, tuple[float, float]]) -> str:
    """The squared loss of (1), and the squared hinge loss."""

    def runs(lists: tuple) -> Iterator[tuple[Floats, Floats]]:
        task = Task(data, lists)
        labelled = task.labelings(range(HISTORY_LABELINGS))
        for name in PUBLISHED:
            one, other = (run(task, labelled, name, *chosen[name], how).quality for how in (solve, solve_hinge))
            yield one, other

    return other_table(list(PUBLISHED), runs)


def history_table(tasks: dict[tuple, Task], chosen: dict[str, tuple[float, float]]) -> str:
    """Over the months that have HISTORY months before them, so that every length is measured on the same posts."""
    shown = (0, 1, 2, 3, 4, 6, 8, 10, 12, 16, 20, 24)
    rows, lines = {}, []
    for method in (FRAME, ALL):
        samples = []  # pair x month, mean over labelings
        for lists, task in tasks.items():
            if len(lists) == 2:
                got = by_history(task, task.labelings(range(HISTORY_LABELINGS)), method, *chosen[method])
                samples.append(got[HISTORY:].mean(axis=2))
        values = np.concatenate(samples)  # (pairs · months) x m
        curve = values.mean(axis=0)
        rows[method] = [f"{100 * curve[m]:.2f}" for m in shown]
        gain = curve[-1] - curve[0]
        reach = {share: int(np.flatnonzero(curve - curve[0] >= share * gain)[0]) for share in (0.5, 0.9, 0.95, 0.99)}
        # By pair, since months of one pair are not independent.
        by_pair = np.array([sample.mean(axis=0) for sample in samples])
        rows[f"{method} - {HISTORY} months"] = [lead(by_pair[:, [m]], by_pair[:, [-1]]) for m in shown[:-1]] + [""]
        behind = [paired_t(by_pair[:, -1] - by_pair[:, m]) for m in range(HISTORY)]
        level = next((m for m, t in enumerate(behind) if t.p_value >= 0.05), HISTORY)
        lines.append(
            f"- {method}: {100 * gain:.1f} points gained by {HISTORY} months of history; half of that after "
            f"{reach[0.5]}, 90 % after {reach[0.9]}, 95 % after {reach[0.95]}, 99 % after {reach[0.99]} months; from "
            f"{level} months on no longer significantly behind {HISTORY} (paired t over the ten pairs, 5 %)."
        )
    return table(["", *map(str, shown)], rows) + "\n\n" + "\n".join(lines)


def as_of_idf(data: Posts, chosen: dict[str, tuple[float, float]]) -> str:
    """The same with document frequencies of the posts up to each month alone."""
    df, seen, parts = np.zeros(data.counts.shape[1]), 0, []
    for month in data.names:
        rows = np.flatnonzero(data.months == month)
        part = data.counts[rows]
        df, seen = df + np.bincount(part.indices, minlength=len(df)), seen + len(rows)
        parts.append(tf_idf(part, df, seen))
    X = csr_matrix(vstack(parts))
    cells = []
    for lists in (CHOSEN_ON, ("r-devel", "r-sig-mac")):
        labelled, now = None, {}
        for source in (None, X):
            task = Task(data, lists, source)
            labelled = task.labelings(range(LABELINGS))
            for method in (SSL, ALL):
                now.setdefault(method, []).append(run(task, labelled, method, *chosen[method]).quality)
        cells.append(f"{name_of(lists)}: " + ", ".join(f"{m} {lead(b, a)}" for m, (a, b) in now.items()))
    return "; ".join(cells)


def picture(outcomes: dict, lists: tuple[str, ...], months: list[str], path: Path) -> None:
    """Figure 2: spatial cost, temporal cost and AUC over time."""
    from sdretrieval.learn.evolving.plots import write_costs

    curves = {
        name: {
            "AUC": outcomes[name][lists].quality.mean(axis=1),
            "spatial cost": outcomes[name][lists].spatial.mean(axis=1),
            "temporal cost": outcomes[name][lists].temporal.mean(axis=1),
        }
        for name in (SSL, FRAME, ALL)
    }
    write_costs(path, months, curves, dpi=80)


def section() -> str:
    if not Collection("rlists").available:
        return "rlists is not on this machine"
    data = posts(True)
    task = Task(data, CHOSEN_ON)
    chosen = choose(task, range(100, 103))
    text, outcomes, tasks = main_table(data, chosen)
    shown = ("r-devel", "r-sig-geo")
    picture(outcomes, shown, data.names, ROOT / "docs" / "evolving.png")
    costs = {
        name: (float(outcomes[name][shown].spatial.mean()), float(outcomes[name][shown].temporal[1:].mean()))
        for name in (SSL, FRAME, ALL)
    }
    at, bound = kept("evolving/offline", lambda: offline_bound(tasks[CHOSEN_ON], outcomes[ALL][CHOSEN_ON]))
    sizes = [frame.n for frame in tasks[CHOSEN_ON].frames]
    settings = "; ".join(
        f"{name}: " + (f"h = {a:g} months, C = {b:g}" if name == LOGISTIC else f"γ_A = {a:g}, γ_I = {b:g}")
        for name, (a, b) in chosen.items()
    )
    introduction = f"""\
Five R mailing lists, {len(data.names)} months, {len(data.lists):,} posts; {PER_FRAME} labelled posts a month for a
pair, {FRACTION:.0%} for all five; {LABELINGS} random labelings, the same for every method. AUC (pairs) and accuracy
(five lists), in percent, on the posts not labelled: mean (standard deviation over months). tf-idf of Lucene's terms,
linear kernel, 10 nearest neighbours. Giveaways are removed: signatures, names of the lists, and {data.left_out} posts
whose text stands in several lists. Settings chosen on {name_of(CHOSEN_ON)} with three other labelings, by grid search
for each method ({min(sizes)} to {max(sizes)} posts a month there): {settings}. SSL-E (18) is the paper's; SSL-E (13)
the same without the constraint that a month's classifier lies in the span of that month's posts. Local logistic
regression (online kernel, supervised) sees the same labels up to and including the month, and no unlabelled post.
Differences: (standard error over months), * where a paired t-test, Holm's correction over the columns, gives p < 5 %.
"""
    return f"""\
{one_line(introduction)}

{text}

{BESIDE}

Offline (6) on {name_of(CHOSEN_ON)}, which sees later months too, γ_A = {at[0]:g}, γ_I = {at[1]:g}: {bound}.
(6) solved anew in every third month on the months so far, so that it sees nothing later: \
{kept("evolving/refitted", lambda: refitted(tasks, at, outcomes[ALL]))}.

Costs on {name_of(shown)} (mean of ‖f_t‖²_I and (5)): \
{"; ".join(f"{name} {a:.2e} and {b:.3g}" for name, (a, b) in costs.items())}.

![spatial cost, temporal cost and AUC by month](evolving.png)

### How many months until history stops helping

AUC in the last {len(data.names) - HISTORY} months, mean over the ten pairs, of a classifier started so many months
earlier ({HISTORY_LABELINGS} labelings), and how far that is from {HISTORY} months of history (standard error over the
pairs):

{kept("evolving/history", lambda: history_table(tasks, chosen))}

{kept("evolving/parts", lambda: parts(data, chosen))}

### The posts as they are, and γ's not tuned

Signatures and list names left in. γ_A = {QUICK[0]:g}, γ_I = {QUICK[1]:g} for every method, which with its 1/n² is
next to no graph at all; first line: a quick experiment with at most 300 posts a month. Below: the γ's chosen above.
{HISTORY_LABELINGS} labelings.

{quick_table(chosen)}

Document frequencies are those of all months, as in the paper. With those of the posts up to each month alone the AUC
changes by so many points (standard error over months): {kept("evolving/idf", lambda: as_of_idf(data, chosen))}.
"""


def parts(data: Posts, chosen: dict[str, tuple[float, float]], names: Sequence[str] = ()) -> str:
    """The parts that can be run alone."""
    told = {
        "quarters": (
            "### Months and quarters\n\nWhat the representer constraint costs depends on the frame: AUC of SSL-E (13) "
            f"less that of (18), in points (standard error over frames), {HISTORY_LABELINGS} labelings of {PER_FRAME} "
            "posts a frame.\n\n",
            quarterly_table,
        ),
        "tokens": (
            "### Tokens\n\nAUC with Lucene's terms (stems, 33 stop words left out), and what words as they are "
            "written, 318 stop words left out, add (standard error over months), with the same γ's.\n\n",
            token_table,
        ),
        "hinge": (
            "### The hinge loss\n\nAUC with the squared loss, and what the squared hinge loss adds (standard error "
            f"over months), with the same γ's; {HISTORY_LABELINGS} labelings. Both losses have the same solution where "
            "the squared one puts no labelled post beyond its margin (y f > 1).\n\n",
            hinge_table,
        ),
    }
    return "\n\n".join(told[name][0] + told[name][1](data, chosen) for name in names or told)


if __name__ == "__main__":
    if sys.argv[1:] == ["main"]:  # with the γ's of the page
        sys.exit(print(main_table(posts(True), {**PUBLISHED, LOGISTIC: (inf, 10.0)})[0]))
    print(parts(posts(True), PUBLISHED, sys.argv[1:]) if sys.argv[1:] else section())
