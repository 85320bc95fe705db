"""Topics in docs/RESULTS.md: Table 2, Figures 4 and 5 on 20 Newsgroups, the Paris article, and passage-aware ranking.

Nothing is chosen on test documents: λ and ρ are the paper's (Figure 5), classifiers are chosen by cross-validation on
the training half, ranking parameters by cross-validation over topics. What takes long is kept in
.cache/results/topics, so that a section that was stopped goes on where it was.

    python -m benchmarks.results_topics            # everything, as Markdown
    python -m benchmarks.results_topics texts      # one part: synthetic, news, texts, retrieval
    python -m benchmarks.results_topics features   # how features enter, quickly
"""

from __future__ import annotations

import gzip
import json
import re
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import numpy as np
from scipy.sparse import csr_matrix

from benchmarks.collections import ROOT, SHARED, THREADS, Collection
from benchmarks.kept import BESIDE, kept
from benchmarks.tables import mean_and_error, standard_error, table
from sdretrieval.core.files import atomic_writer
from sdretrieval.core.plotting import empty_figure
from sdretrieval.evaluate.tune import Problem, space_of, tune
from sdretrieval.learn.lcsc import LocalContextSparseCoding, Sequences
from sdretrieval.learn.lcsc.contexts import local_contexts
from sdretrieval.learn.lcsc.pictures import COLOURS, png_strips
from sdretrieval.learn.lcsc.segmentation import p_k, segment, theme_shares, window_diff
from sdretrieval.learn.lcsc.sequences import lucene_words, sequences
from sdretrieval.ranking.base import Ranker

DOCS = ROOT / "docs"
LAMBDA, RHO = 1e-2, 1e-4  # the paper's, Figure 5
STEPS = 6  # dictionary steps: the objective falls by 3 % or less after that
SIZES = (50, 100, 300, 1000, 2000, 4000, 8000)
LARGE = 4000  # themes: on all twenty groups, with the Hellinger distance, with λ as searched
LDA_SIZES, LDA_ALL = (50, 100, 300), 100  # the last on all twenty groups
BANDWIDTHS, BANDWIDTH_SIZE = (0.5, 1.0, 2.0, 4.0), 1000
SMALL = 300  # topics, where λ and ρ are searched and steps are watched
LAMBDAS, RHOS = (1e-4, 1e-3, 1e-2, 1e-1), (1e-5, 1e-4, 1e-2)
LEAST_DOCUMENTS = 18  # of a word: gives a vocabulary near the paper's 6,328
STRIP_TOPICS = 15  # of one long text
BLOCK = 50  # words of what LDA takes for a document within the Paris article


# -- 20 Newsgroups -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class News:
    """One task: training and test documents with their labels."""

    name: str
    train: Sequences
    test: Sequences
    y_train: np.ndarray
    y_test: np.ndarray


@cache
def _news() -> tuple[Sequences, np.ndarray, np.ndarray]:
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

    words = lucene_words()
    with gzip.open(SHARED / "20news-bydate" / "docs.jsonl.gz", "rt", encoding="utf-8") as lines:
        records = [json.loads(line) for line in lines]
    documents = sequences((r["contents"] for r in records), docids=(r["id"] for r in records), words=words)
    train = np.array([r["split"] == "train" for r in records])
    stop = set(ENGLISH_STOP_WORDS) | set(words(" ".join(sorted(ENGLISH_STOP_WORDS))))
    frequent = documents.select(train).frequent_words(min_df=LEAST_DOCUMENTS)
    frequent = [word for word in frequent if re.fullmatch("[a-z][a-z]+", word)]
    kept = documents.with_vocabulary([word for word in frequent if word not in stop])
    return kept, train, np.array([r["labels"][0] for r in records])


def news(name: str) -> News:
    documents, train, labels = _news()
    chosen = np.char.startswith(labels, "comp.") if name == "comp" else np.ones(len(labels), dtype=bool)
    parts = train & chosen, ~train & chosen
    return News(name, *(documents.select(part) for part in parts), *(labels[part] for part in parts))


def held_out(task: News) -> News:
    """Two thirds of the training documents, and the others to choose by."""
    from sklearn.model_selection import train_test_split

    rows = train_test_split(np.arange(len(task.train)), test_size=1 / 3, stratify=task.y_train, random_state=0)
    return News(f"{task.name}-held-out", *map(task.train.select, rows), *(task.y_train[part] for part in rows))


def _kept(name: str, make: Callable[[], dict]) -> dict:
    return kept(f"topics/{name}", make)


def lcsc(
    task: News,
    n_topics: int,
    bandwidth: float = 1.0,
    loss: str = "squared",
    *,
    lam: float = LAMBDA,
    rho: float = RHO,
    steps: int = STEPS,
    quick: bool = False,
) -> dict:
    """Accuracy, and what it took of processor time. Topics see no labels and no test documents. ``quick``: one
    classifier, not chosen."""

    def make() -> dict:
        settings = {"bandwidth": bandwidth, "sparsity": lam, "coupling": rho, "loss": loss, "max_iter": steps}
        model = LocalContextSparseCoding(n_topics, random_state=0, n_jobs=THREADS, tol=0.0, **settings)
        began = time.process_time()
        z_train = model.fit_transform(task.train)
        seconds = time.process_time() - began
        began = time.process_time()
        z_test = model.transform(task.test)
        coding = time.process_time() - began
        return {
            **classified(z_train, z_test, task, **(QUICK if quick else {})),
            "seconds": seconds,
            "microseconds": 1e6 * coding / task.test.n_tokens,
            "steps": model.n_iter_,
            "objective": [v / task.train.n_tokens for v in model.objective_],
            "nnz": z_test.nnz / z_test.shape[0],
        }

    return _kept(f"{task.name}-lcsc-{loss}-{n_topics}-{bandwidth:g}-{lam:g}-{rho:g}-{steps}{'-quick' * quick}", make)


def lda(task: News, n_topics: int) -> dict:
    def make() -> dict:
        from sklearn.decomposition import LatentDirichletAllocation

        model = LatentDirichletAllocation(
            n_topics, learning_method="online", max_iter=5, batch_size=256, random_state=0, n_jobs=1
        )
        began = time.perf_counter()
        z_train = model.fit(task.train.counts).transform(task.train.counts)
        seconds = time.perf_counter() - began
        z_test = model.transform(task.test.counts)
        told = classified(csr_matrix(z_train), csr_matrix(z_test), task)
        return {**told, "seconds": seconds}

    return _kept(f"{task.name}-lda-{n_topics}", make)


def ngrams(task: News, n: int, most: int | None = None) -> dict:
    """The ``most`` frequent sequences of n words of the training documents as features (all of two or more)."""

    def make() -> dict:
        from sklearn.feature_extraction.text import CountVectorizer

        as_they_are = {"tokenizer": str.split, "token_pattern": None, "lowercase": False}
        vectorizer = CountVectorizer(ngram_range=(n, n), max_features=most, min_df=2, **as_they_are)
        texts = [[" ".join(part.words(d)) for d in range(len(part))] for part in (task.train, task.test)]
        began = time.perf_counter()
        train = vectorizer.fit_transform(texts[0]).astype(float)
        seconds = time.perf_counter() - began
        told = classified(train, vectorizer.transform(texts[1]).astype(float), task)
        return {**told, "seconds": seconds, "features": train.shape[1]}

    return _kept(f"{task.name}-ngram-{n}-{most or 'all'}", make)


QUICK = {"ways": ("root",), "Cs": (0.5,)}


def classified(
    train: csr_matrix,
    test: csr_matrix,
    task: News,
    ways: Sequence[str] = ("plain", "root", "tf-idf"),
    Cs: Sequence[float] = (0.1, 0.5, 2.0),
) -> dict:
    """A linear SVM on rows of unit length; C by 3-fold cross-validation on training documents, and so is whether
    features enter as they are, as roots, or times idf. Accuracy of each of the three is told too."""
    from sklearn.feature_extraction.text import TfidfTransformer
    from sklearn.model_selection import StratifiedKFold, cross_val_score
    from sklearn.preprocessing import normalize
    from sklearn.svm import LinearSVC

    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    found: dict[str, tuple[float, float, float]] = {}  # validation, accuracy, C
    right: dict[str, str] = {}  # document by document, 1 or 0
    for how in ways:
        if how == "tf-idf":
            idf = TfidfTransformer(sublinear_tf=False).fit(train)
            rows = [idf.transform(x) for x in (train, test)]
        else:
            rows = [normalize(x if how == "plain" else x.sqrt()) for x in (train, test)]
        scores = {
            C: float(cross_val_score(LinearSVC(C=C, random_state=0), rows[0], task.y_train, cv=folds).mean())
            for C in Cs
        }
        C = max(scores, key=lambda one: scores[one])
        hits = LinearSVC(C=C, random_state=0).fit(rows[0], task.y_train).predict(rows[1]) == task.y_test
        found[how] = (100 * scores[C], 100 * float(hits.mean()), C)
        right[how] = "".join("01"[int(hit)] for hit in hits)
    how = max(found, key=lambda one: found[one][0])
    by_features = {one: accuracy for one, (_, accuracy, _) in found.items()}
    return {
        "accuracy": found[how][1],
        "validation": found[how][0],
        "C": found[how][2],
        "features as": how,
        "by features": by_features,
        "right": right,
    }


def ahead(one: dict, other: dict, how: str = "") -> tuple[float, float]:
    """By how many points the one is ahead on the same documents, and the standard error of that."""
    right = (np.array(list(x["right"][how or x["features as"]]), dtype=float) for x in (one, other))
    points = 100 * np.subtract(*right)
    return float(points.mean()), standard_error(points)


def gain(one: dict, other: dict, how: str = "") -> str:
    return "{:+.1f} ({:.1f})".format(*ahead(one, other, how))


def sparsest(found: Mapping[float, dict]) -> float:
    """The largest λ that is within a standard error of the best: codes of a smaller one are longer, and dearer."""
    best = max(found.values(), key=lambda one: one["accuracy"])
    gaps = {lam: ahead(best, one) for lam, one in found.items()}
    return max(lam for lam, (gap, error) in gaps.items() if gap <= error)


def features_table(rows: Mapping[str, dict]) -> str:
    """Test accuracy by how features enter, and the gain over the first row: the paper's are plain."""
    first = next(iter(rows.values()))
    cells = {
        label: [
            f"{one['by features'][how]:.1f}" + ("" if one is first else f", {gain(one, first, how)}")
            for how in ("plain", "root", "tf-idf")
        ]
        for label, one in rows.items()
    }
    return table(["comp.*", "plain, as in the paper", "roots", "tf-idf"], cells)


def news_part() -> str:
    comp, everything = news("comp"), news("all")
    words = len(comp.train.vocabulary)
    by_size = {k: lcsc(comp, k) for k in SIZES}
    by_bandwidth = {h: lcsc(comp, BANDWIDTH_SIZE, h) for h in BANDWIDTHS}
    hellinger = lcsc(comp, LARGE, 1.0, "hellinger")
    by_gram = {n: {k: ngrams(comp, n, k) for k in SIZES} for n in (1, 2, 3)}
    by_lda = {k: lda(comp, k) for k in LDA_SIZES}
    grams = {n: ngrams(comp, n) for n in (1, 2, 3, 4)}
    length, size = most_valid(grams), most_valid(by_size)
    best_lda = by_lda[most_valid(by_lda)]
    chosen, searched = search_part(comp)
    found = {
        "n-gram": [grams[length], ngrams(everything, length)],
        "LDA": [best_lda, lda(everything, LDA_ALL)],
        "LCSC": [by_size[size], lcsc(everything, LARGE)],
    }
    _draw_curves(by_size, by_bandwidth, by_gram, by_lda)
    paper = {"n-gram": (74.53, 74.10), "LDA": (40.67, 34.43), "LCSC": (78.01, 80.76)}
    cost = [f"{one['seconds'] / 60:.1f}" for one in (by_size[LARGE], found["LCSC"][1])]
    lost = by_size[size]["validation"] - by_size[LARGE]["validation"]
    share = 100 * by_size[LARGE]["seconds"] / by_size[size]["seconds"]
    accuracies = {
        label: [
            *(f"{found[m][i]['accuracy']:.1f} (paper {paper[m][i]:.1f})" for m in found),
            gain(found["LCSC"][i], found["n-gram"][i]),
        ]
        for i, label in enumerate(("comp.*", "all 20"))
    }
    over_k = {
        "LCSC": [_cell(by_size, k) for k in SIZES],
        **{name: [_cell(by_gram[n], k) for k in SIZES] for n, name in ((1, "unigram"), (2, "bigram"), (3, "trigram"))},
        "LCSC - unigram": [gain(by_size[k], by_gram[1][k]) for k in SIZES],
    }
    lines = [
        "### Table 2's shape: 20 Newsgroups, by date",
        "",
        f"Test accuracy (%). {len(comp.train):,} and {len(everything.train):,} training documents; Lucene's analysis, "
        f"English stop words out, words of {LEAST_DOCUMENTS} training documents or more: {words:,} words (the paper: "
        f"6,328). λ = {LAMBDA:g}, ρ = {RHO:g} (the paper's), squared loss, h = 1, {STEPS} dictionary steps; K (and n "
        "of the n-grams) by cross-validation on training documents, as are the linear SVM's C and whether features "
        f"enter as they are, as roots or as tf-idf. On all 20 groups n is that of comp.*, K = {LDA_ALL} for LDA and "
        f"{LARGE:,} for LCSC, which in the cross-validation on comp.* is {lost:.1f} points below K = {size:,} and "
        f"takes {share:.0f} % of its time. One standard error of an accuracy is 0.9 points on "
        "comp.* and 0.5 on all; in brackets of a difference, its own, over documents. STC and MedSTC were not run.",
        "",
        table(["", *found, "LCSC - n-gram"], accuracies),
        "",
        f"Learning {LARGE:,} topics took {cost[0]} minutes of processor time on comp.* ({comp.train.n_tokens:,} "
        f"positions) and {cost[1]} on all ({everything.train.n_tokens:,}); coding a new document "
        f"{found['LCSC'][1]['microseconds']:.0f} µs per word.",
        "",
        "**By how features enter**, the paper's being plain: roots and tf-idf make a stronger baseline of unigrams, "
        "and a stronger LCSC.",
        "",
        features_table(
            {
                "unigrams": grams[1],
                **{f"LCSC, K = {k:,}": by_size[k] for k in SIZES[-3:]},
                f"LCSC, K = {LARGE:,}, λ = {chosen[0]:g}": lcsc(comp, LARGE, lam=chosen[0], rho=chosen[1]),
            }
        ),
        "",
        "**Over K** (Figure 4, comp.*, h = 1):",
        "",
        table(["K", *map(str, SIZES)], over_k),
        "",
        "LDA: " + ", ".join(f"{v['accuracy']:.1f} (K = {k})" for k, v in by_lda.items()) + ".",
        "",
        f"**Over h** (Figure 5, comp.*, K = {BANDWIDTH_SIZE}): "
        + beside(by_bandwidth, "h", 1.0)
        + f"; in brackets the difference to h = 1. Hellinger distance at h = 1, K = {LARGE:,}: "
        f"{hellinger['accuracy']:.1f}, {gain(hellinger, by_size[LARGE])} to the squared loss "
        f"({hellinger['seconds']:.0f} s to learn, squared {by_size[LARGE]['seconds']:.0f}).",
        "",
        convergence_part(comp),
        "",
        searched,
        "",
        "![accuracy over K and over h](topics-curves.png)",
    ]
    return "\n".join(lines)


def convergence_part(task: News) -> str:
    """What Figure 5 says of bandwidths: a narrow one converges fast to little, a wide one slowly."""
    watched = (0, 1, 2, STEPS)
    lines = [
        f"**Step by step** (Figure 5's convergence, K = {SMALL}; features as roots, C = 0.5): test accuracy after so "
        "many dictionary steps / share of the objective still to fall, of all that it falls; and what all steps bring.",
        "",
    ]
    rows = {}
    for h in BANDWIDTHS:
        found = [lcsc(task, SMALL, h, steps=n, quick=True) for n in watched]
        curve = found[-1]["objective"]
        left = [(curve[n] - curve[-1]) / (curve[0] - curve[-1]) for n in watched]
        cells = [f"{one['accuracy']:.1f} / {100 * share:.0f} %" for one, share in zip(found, left, strict=True)]
        rows[f"{h:g}"] = [*cells, gain(found[-1], found[0])]
    return "\n".join([*lines, table(["h", *map(str, watched), "last - first"], rows)])


def search_part(task: News) -> tuple[tuple[float, float], str]:
    """λ, then ρ by a third of the training documents, of which neither topics nor classifier have seen any."""
    part = held_out(task)
    by_lambda = {lam: lcsc(part, SMALL, lam=lam, quick=True) for lam in LAMBDAS}
    lam = sparsest(by_lambda)
    by_rho = {rho: lcsc(part, SMALL, lam=lam, rho=rho, quick=True) for rho in RHOS}
    rho = max(by_rho, key=lambda one: (by_rho[one]["accuracy"], one == RHO))  # where it changes nothing, the paper's
    tested = [lcsc(task, SMALL, lam=one[0], rho=one[1], quick=True) for one in ((lam, rho), (LAMBDA, RHO))]
    return (lam, rho), (
        f"**λ and ρ** (K = {SMALL}, h = 1, features as roots, C = 0.5): accuracy on a third of the training documents, "
        "by topics and classifier of the others, and in brackets the difference to the paper's value. "
        f"With ρ = {RHO:g}: {beside(by_lambda, 'λ', LAMBDA)}. With λ = {lam:g}: {beside(by_rho, 'ρ', RHO)}. "
        f"Chosen are λ = {lam:g}, the largest within a standard error of the best, and ρ = {rho:g}: on the test "
        f"documents, learnt from the whole training half, {tested[0]['accuracy']:.1f}, with the paper's "
        f"{tested[1]['accuracy']:.1f}: {gain(*tested)}."
    )


def beside(found: Mapping[float, dict], symbol: str, first: float) -> str:
    """Accuracies by a parameter, and how far each is from that at its value ``first``."""
    return ", ".join(
        f"{one['accuracy']:.1f} at {symbol} = {value:g}" + ("" if value == first else f" ({gain(one, found[first])})")
        for value, one in found.items()
    )


def most_valid(found: Mapping[int, dict]) -> int:
    return max(found, key=lambda one: found[one]["validation"])


def _cell(row: dict, k: int) -> str:
    return f"{row[k]['accuracy']:.1f}" if k in row else "—"


def _draw_curves(by_size: dict, by_bandwidth: dict, by_gram: dict, by_lda: dict) -> None:
    figure = empty_figure(8.0, 3.0)
    left, right = figure.subplots(1, 2, width_ratios=[1.6, 1])
    curves = [("LCSC", by_size), *((f"{n}-gram", by_gram[n]) for n in by_gram), ("LDA", by_lda)]
    for (label, values), marker in zip(curves, "os^vD", strict=False):
        left.plot(list(values), [v["accuracy"] for v in values.values()], marker=marker, markersize=4, label=label)
    left.set(xscale="log", xlabel="K: topics, or most frequent features", ylabel="test accuracy, %")
    left.legend(fontsize=8)
    right.plot(list(by_bandwidth), [v["accuracy"] for v in by_bandwidth.values()], marker="o", markersize=4)
    right.set(xscale="log", ylim=left.get_ylim(), xlabel="bandwidth h, words", title=f"K = {BANDWIDTH_SIZE}")
    right.set_xticks(list(by_bandwidth), [f"{h:g}" for h in by_bandwidth])
    right.minorticks_off()
    figure.savefig(DOCS / "topics-curves.png", dpi=90)


# -- Paris ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LongText:
    """A text without headings and stop words; where its sections and all its parts begin, and its paragraphs."""

    document: Sequences
    sections: list[int]
    parts: list[int]
    paragraphs: list[tuple[int, int]]


LISTS = "See also|Notes|Explanatory notes|Footnotes|Citations|References|Further reading|External links"


def article(text: str) -> LongText:
    """An article of Wikipedia as plain text, without the lists of links at its end."""
    lines = re.split(rf"^==\s*(?:{LISTS})\s*==", text, maxsplit=1, flags=re.MULTILINE)[0].splitlines()
    headings = [re.fullmatch(r"(=+)\s*(.*?)\s*=+", line.strip()) for line in lines]
    return long_text(lines, [0 if one is None else 1 + (len(one[1]) > 2) for one in headings])


def paris() -> LongText:
    return article((SHARED / "wiki_paris" / "Paris.txt").read_text(encoding="utf-8"))


def other_cities() -> dict[str, LongText]:
    with gzip.open(SHARED / "wiki_paris" / "docs.jsonl.gz", "rt", encoding="utf-8") as lines:
        records = [json.loads(line) for line in lines]
    return {one["id"]: article(one["contents"]) for one in records if one["id"] != "Paris"}


def thesis() -> LongText:
    """Nallapati's thesis, from its first chapter to its bibliography."""
    text = next((SHARED.parent / "papers").glob("003_*.txt")).read_text(encoding="utf-8")
    text = re.split(r"^CHAPTER 1$", text, flags=re.MULTILINE)[1]
    lines = re.split(r"^BIBLIOGRAPHY$", text, flags=re.MULTILINE)[0].splitlines()
    levels = [
        1 if re.fullmatch(r"CHAPTER \d", line.strip()) else 2 * bool(re.match(r"[1-7]\.\d[\d.]* [A-Z]", line))
        for line in lines
    ]
    return long_text([re.sub(r"\$[^$]*\$", " ", line) for line in lines], levels)


def long_text(lines: Sequence[str], levels: Sequence[int]) -> LongText:
    """``levels``: 1 for the heading of a section, 2 for one below it, 0 for text."""
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

    words = lucene_words()
    stop = set(words(" ".join(sorted(ENGLISH_STOP_WORDS)))) | set(ENGLISH_STOP_WORDS)
    tokens: list[str] = []
    sections: list[int] = []
    parts: set[int] = set()
    paragraphs: list[tuple[int, int]] = []
    for line, level in zip(lines, levels, strict=True):
        if level:
            parts.add(len(tokens))
            sections += [len(tokens)] if level == 1 else []
            continue
        found = [word for word in words(line) if word not in stop]
        if found:
            paragraphs.append((len(tokens), len(tokens) + len(found)))
        tokens += found
    return LongText(sequences([tokens]), sections, sorted(parts - {0}), paragraphs)


def lda_shares(document: Sequences, spans: list[tuple[int, int]], n_topics: int) -> np.ndarray:
    """P(topic | word, part) at each position, by LDA on the parts as its documents."""
    from sklearn.decomposition import LatentDirichletAllocation

    parts = Sequences(
        document.tokens, np.array([spans[0][0], *(b for _, b in spans)], dtype=np.int64), document.vocabulary
    )
    model = LatentDirichletAllocation(n_topics, max_iter=50, random_state=0)
    theta = model.fit_transform(parts.counts)
    phi = model.components_ / model.components_.sum(axis=1, keepdims=True)
    rows = np.repeat(np.arange(len(parts)), parts.lengths)
    shares = theta[rows] * phi[:, document.tokens].T
    return shares / shares.sum(axis=1, keepdims=True)


def mean_run_length(shares: np.ndarray) -> float:
    """How many positions in a row have the same strongest theme (or none), on average."""
    strongest = np.where(shares.max(axis=1) > 0, shares.argmax(axis=1), -1)
    return len(strongest) / (1 + int((strongest[1:] != strongest[:-1]).sum()))


Cuts = dict[str, list[float]]  # by model: run length, then P_k and WindowDiff of sections, and of parts


def texts_part() -> str:
    city, work = paris(), thesis()
    by_city = {name: kept(f"topics/segments-{name}", partial(segmented, one)) for name, one in other_cities().items()}
    told = {
        "The Paris article": (city, segmented(city, DOCS / "topics-paris.png")),
        "The thesis, by chapters": (work, kept("topics/segments-thesis", partial(segmented, work))),
    }
    parts = [
        "### Long texts: locally coherent topics",
        "",
        f"Headings are left out, and no model sees them; K = {STRIP_TOPICS}, λ = 0.001. Run length: positions in "
        "a row with the same strongest topic, on average. P_k / WindowDiff (0 is perfect): cuts by dynamic "
        "programming on topic shares, as many as the text has, against its sections and against all its parts with a "
        "heading. LDA needs documents: blocks of the text; told its paragraphs, it is told where parts may end.",
    ]
    for title, (text, found) in told.items():
        sizes = f"{text.document.n_tokens:,} words, {len(text.sections) + 1} sections, {len(text.parts) + 1} parts"
        parts += ["", f"**{title}** ({sizes}):", "", cuts_table([found])]
        if text is city:
            parts += ["", "![topics along the Paris article](topics-paris.png)"]
    parts += [
        "",
        f"**{len(by_city)} other cities**, with what was set for Paris: means (standard errors over articles), and "
        "P_k of sections less that of LCSC at h = 25.",
        "",
        cuts_table(list(by_city.values()), less="LCSC, h = 25"),
    ]
    return "\n".join(parts)


def cuts_table(found: Sequence[Cuts], less: str = "") -> str:
    """Of several texts: means and their standard errors, and P_k of sections less that of the model ``less``."""
    head = ["model", "mean run length", "sections: P_k / WindowDiff", "parts: P_k / WindowDiff", *["less"] * bool(less)]
    rows = []
    for label in found[0]:
        values = np.array([one[label] for one in found])
        run, *cuts = (mean_and_error(column, 1 if i == 0 else 3) for i, column in enumerate(values.T))
        cells = [label, "—" if np.isnan(values[0, 0]) else run, " / ".join(cuts[:2]), " / ".join(cuts[2:])]
        if less:
            gap = values[:, 1] - np.array([one[less][1] for one in found])
            cells.append(mean_and_error(gap, 3, "+") if gap.any() else "")
        rows.append(cells)
    return table(head, rows)


def segmented(text: LongText, picture: Path | None = None, n_topics: int = STRIP_TOPICS) -> Cuts:
    document, sections, parts = text.document, text.sections, text.parts
    n = document.n_tokens
    found: Cuts = {}
    strips, labels = [], None

    def measure(label: str, shares: np.ndarray | None) -> None:
        """Without shares: cut into equal lengths."""
        found[label] = [float("nan") if shares is None else mean_run_length(shares)]
        for truth in (sections, parts):
            m = len(truth) + 1
            cuts = [round(i * n / m) for i in range(1, m)] if shares is None else segment(shares, n_segments=m)
            found[label] += [p_k(truth, cuts, n), window_diff(truth, cuts, n)]

    measure("LDA told where paragraphs end", lda_shares(document, text.paragraphs, n_topics))
    blocks = [(a, min(a + BLOCK, n)) for a in range(0, n, BLOCK)]
    by_word = lda_shares(document, blocks, n_topics)
    measure(f"LDA (blocks of {BLOCK} words), word by word", by_word)
    strips.append((f"LDA, K = {n_topics}", by_word))
    for h in (10, 25, 50):
        smooth = local_contexts(
            Sequences(np.arange(n, dtype=np.int32), document.ptr, tuple(map(str, range(n)))), bandwidth=h
        )
        measure(f"LDA, smoothed afterwards (h = {h})", np.asarray(smooth @ by_word))
    for h in (10, 25, 50):
        model = LocalContextSparseCoding(
            n_topics, bandwidth=h, sparsity=1e-3, coupling=RHO, max_iter=40, random_state=0, n_jobs=THREADS
        ).fit(document)
        shares = theme_shares(model.code(document).codes)
        measure(f"LCSC, h = {h}", shares)
        if h == 25:
            strips.append((f"LCSC, K = {n_topics}, h = 25 (dotted: the article's sections)", shares))
            labels = [" ".join(word for word, _ in model.top_words(k, 12)) for k in range(n_topics)]
    measure("equal lengths", None)
    if picture:
        png_strips(picture, strips, labels=labels, boundaries=sections)
    return found


# -- section 5.1 -----------------------------------------------------------------------------------------------------


def synthetic_part() -> str:
    texts = [list("abababccc"), list("bababaccc"), list("acacacbbb"), list("cacacabbb")]
    lines = ["### Section 5.1's example", ""]
    for loss in ("squared", "hellinger"):
        model = LocalContextSparseCoding(
            2, bandwidth=0.7, loss=loss, max_iter=100, tol=1e-7, coding_tol=1e-9, random_state=0
        )
        Dz = model.fit_transform(texts) @ model.components_
        lines.append(
            f"- {loss}: topics (a, b, c) "
            + " and ".join(_vector(t) for t in model.components_)
            + "; documents D z "
            + ", ".join(f"x{i + 1} {_vector(x)}" for i, x in enumerate(Dz))
            + "."
        )
    documents = sequences(texts)
    phi = local_contexts(documents, bandwidth=0.7).toarray()
    png_simplex(  # of the Hellinger distance, which the paper used
        DOCS / "topics-simplex.png",
        model.vocabulary_,
        contexts=[phi[a:b] for a, b in zip(documents.ptr[:-1], documents.ptr[1:], strict=True)],
        documents=Dz,
        themes=model.components_,
    )
    return "\n".join([*lines, "", "![the simplex: topics, documents, contexts](topics-simplex.png)"])


def png_simplex(path: Path, words: Sequence[str], *, contexts: list, documents: np.ndarray, themes: np.ndarray) -> None:
    """Figure 2: three words as corners; contexts hollow, documents (Dz) filled, themes as squares."""
    corners = np.array([[0.5, np.sqrt(3) / 2], [0.0, 0.0], [1.0, 0.0]])

    def place(points: np.ndarray) -> np.ndarray:
        points = np.asarray(points, dtype=float)
        return (points / points.sum(axis=1, keepdims=True)) @ corners

    figure = empty_figure(4.2, 3.8)
    axes = figure.add_subplot()
    axes.plot(*np.vstack([corners, corners[:1]]).T, color="black", linewidth=1)
    for corner, word, align in zip(corners, words, ("bottom", "top", "top"), strict=True):
        axes.text(*corner, word, ha="center", va=align, fontsize=12)
    for d, own in enumerate(contexts):
        marker = "o^vD<>"[d % 6]
        axes.scatter(*place(own).T, marker=marker, facecolors="none", edgecolors=COLOURS[d % 10], s=28, linewidths=0.9)
        own_place, label = place(documents[d : d + 1]).T, f"$Dz_{d + 1}$"
        axes.scatter(*own_place, marker=marker, color=COLOURS[d % 10], s=70, zorder=3, label=label)
    axes.scatter(*place(themes).T, marker="s", color="black", s=60, zorder=4, label="topics")
    axes.legend(fontsize=7, loc="upper right", frameon=False)
    axes.set(aspect="equal")
    axes.axis("off")
    with atomic_writer(path, binary=True) as out:
        figure.savefig(out, format="png", dpi=90)


def _vector(x: np.ndarray) -> str:
    return "(" + ", ".join(f"{v:.2f}" for v in x) + ")"


# -- ranking -------------------------------------------------------------------------------------------------------

RETRIEVED = ("cacm", "cranfield", "npl")
MU = "mu=50,100,200,500,1000"
PASSAGES = ["passage_weight=0,0.2,0.4,0.6", "passage_bandwidth=10,25", "passage_mu=30,100"]
SPACES = {
    "bm25": ["k1", "b"],
    "ql": [MU],
    "passage, γ alone": [MU, *PASSAGES],
    "passage, α alone": [MU, "topic_weight=0,0.1,0.2,0.4"],
    "passage, both": [MU, *PASSAGES, "topic_weight=0,0.1,0.2,0.4"],
}


def tuned_values(problem: Problem, ranker: Ranker, space: Sequence[str]) -> dict[str, float]:
    """AP of each topic, by settings chosen on others."""
    return dict(tune(problem, ranker, space_of(ranker, space)).values)


def retrieval_part() -> str:
    from sdretrieval.evaluate.significance import paired_t
    from sdretrieval.learn.lcsc.passage_ranking import PassageRanker, kept_sequences, topics_file
    from sdretrieval.ranking.registry import make_ranker

    found: dict[str, list] = {name: [] for name in SPACES}
    for name in RETRIEVED:
        c = Collection(name)
        if not topics_file(c.index).is_file():
            model = LocalContextSparseCoding(100, bandwidth=2.0, max_iter=5, min_df=2, random_state=0, n_jobs=THREADS)
            model.fit(kept_sequences(c.snapshot)).save(topics_file(c.index))
        problem = Problem(c.snapshot, c.queries, c.qrels, threads=THREADS)
        for label, space in SPACES.items():
            passages = PassageRanker(passage_weight=0.0 if "α" in label else 0.4, mu=200.0, passage_bandwidth=10.0)
            ranker = passages if "passage" in label else make_ranker(label)
            kept_as = f"topics/{name}-{label.replace(' ', '').replace(',', '-')}"
            found[label].append(kept(kept_as, partial(tuned_values, problem, ranker, space)))
    lines = [
        "### Passage-aware ranking",
        "",
        "MAP, parameters by 5-fold cross-validation over topics (hill climbing; no topic chose its own). α mixes the "
        "document's topics (100, h = 2) into its model, γ the best passage into its score; with neither it is ql. "
        "In brackets the standard error of the difference to ql; stars: p < .05 (paired t).",
        "",
    ]
    rows = {}
    for label, values in found.items():
        cells = []
        for i, v in enumerate(values):
            gains = np.array([value - found["ql"][i][qid] for qid, value in v.items()])
            star = "*" if label != "ql" and paired_t(gains).p_value < 0.05 else ""
            error = f" ({standard_error(gains):.4f})" if label != "ql" else ""
            cells.append(f"{np.mean(list(v.values())):.4f}{star}{error}")
        rows[label] = cells
    return "\n".join([*lines, table(["model", *RETRIEVED], rows)])


def features_part() -> str:
    """A quick look: few topics, so that it takes two minutes."""
    comp = news("comp")
    return features_table({"unigrams": ngrams(comp, 1), **{f"LCSC, K = {k:,}": lcsc(comp, k) for k in (50, 300, 1000)}})


PARTS = {"synthetic": synthetic_part, "news": news_part, "texts": texts_part, "retrieval": retrieval_part}


def section(names: tuple[str, ...] = tuple(PARTS)) -> str:
    introduction = (
        "Local context sparse coding (Kim et al. 2015): topics of the words around each position. "
        "See [THEMES.md](THEMES.md)."
    )
    made = {name: PARTS[name]() for name in names}
    news, mark, more = made.pop("news", "").partition("**By how features enter**")
    return "\n\n".join([introduction, news.strip(), BESIDE, mark + more, *made.values()])


if __name__ == "__main__":
    if sys.argv[1:] == ["features"]:
        sys.exit(print(features_part()))
    print(section(tuple(sys.argv[1:]) or tuple(PARTS)))
