"""Topic tracking in docs/RESULTS.md: the shape of the thesis's Tables 6.2 and 6.3, and Figure 6.1, on two streams.

Protocol; what was left open (ten tweets to a seed) was settled by the costs of the tuning topics:

- reuters21578 is one stream in time order. Its first fifth is the earlier corpus that general English comes from;
  the rest is followed. A topic is a category with at least 10 judged stories after its seed, its seed the first
  judged story that bears it. Trials are the judged stories (ModApte's train and test) after the seed.
- crisislex_t6 is one stream of all six events. General English comes from microblog2011, tweets of an earlier year.
  Each event is followed by ten trackers: the first starts from the 1st to 10th on-topic tweet of five words or more,
  the second from the 11th to 20th, and so on; and once more, from a single tweet each.
  Trials are all tweets after the last seed; on topic are the event's own on-topic tweets.
- Topics (events) in alphabetical order: even places tune (of an event every third tracker), odd places test.
- The documents to learn from are, as in the thesis, the N best of a tf-idf run from the seed alone: marked, not
  labelled, the same for all models.
- Parameters are chosen for each N by MinCost on the tuning topics, topic-weighted: the same search for all models.

    python -m benchmarks.results_tracking              # both, as Markdown
    python -m benchmarks.results_tracking 0 5          # with so many documents to learn from
"""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from benchmarks.collections import ROOT, Collection
from benchmarks.kept import BESIDE, kept
from benchmarks.tables import mean_and_error, standard_error, table
from sdretrieval.learn.labelled import LabelledCorpus, read_labelled
from sdretrieval.learn.tracking.replay import Evidence, MatrixStream, replay
from sdretrieval.learn.tracking.story_models import MODELS, TrackingModel, make_model
from sdretrieval.learn.tracking.stream_background import Background
from sdretrieval.learn.tracking.tdt import Costs, TdtEvaluation, Trials, det_curve, evaluate_trials

LEVELS = (0, 5, 25, 100)
ONE_SEED_LEVELS = (0, 5)
LEAST_STORIES = 10
EVERY = 3  # so many trackers of a tuning event is one tuned on: they are much alike
TITLES = {"tfidf": "TF-IDF", "nb": "naïve Bayes", "rm": "Relevance Model", "sd": "Smoothed Dirichlet"}
# The search, the same for all models: every point of the coarse grid, then one parameter at a time over the fine one,
# from the best point. What RM and SD have in common has the same values in both. On newswire, where tuning topics are
# many, the coarse grid is gone over on each LOOK-th of them, and the best LOOKED_AT points on all.
LOOK, LOOKED_AT = 3, 8
_COMMON = {"lambda_score": (1e-4, 0.01, 0.2, 0.8), "lambda_learn": (1e-4, 0.01, 0.3, 0.9), "score": ("words", "full")}
_FINE = {"lambda_score": (1e-3, 0.05, 0.5), "lambda_learn": (1e-3, 0.1, 0.6, 0.99)}
COARSE: dict[str, dict[str, tuple]] = {
    "tfidf": {},
    "nb": {"lambda_learn": (0.01, 0.1, 0.5, 0.9), "prior_odds": (1e-12, 1e-6, 1.0)},
    "rm": _COMMON,
    "sd": {**_COMMON, "sharpness": (1.0, 30.0), "seed_weight": (1.0, 5.0)},
}
FINE: dict[str, dict[str, tuple]] = {
    "tfidf": {},
    "nb": {"lambda_learn": (0.05, 0.3, 0.7), "prior_odds": (1e-8, 1e-4)},
    "rm": _FINE,
    "sd": {**_FINE, "sharpness": (0.0, 3.0, 10.0, 100.0), "seed_weight": (2.0, 20.0)},
}
IDLE = ("sharpness", "seed_weight", "prior_odds")  # at N = 0: nothing is learnt, or (the prior) only a threshold moves


@dataclass
class Setting:
    """One stream with its topics: seeds and targets by topic, what is judged, who tunes and who tests."""

    name: str
    about: str
    stream: MatrixStream
    background: Background
    seeds: dict[str, list[int]]
    targets: dict[str, np.ndarray]  # by row of the stream
    judged: np.ndarray
    tuning: list[str]
    testing: list[str]
    look: int = 1  # each so-many-th of the tuning topics is enough for the coarse grid
    ranked: dict[str, np.ndarray] = field(default_factory=dict)  # rows, best first, of the tf-idf run from the seed
    _evidence: dict[Any, Evidence] = field(default_factory=dict)

    def __post_init__(self) -> None:
        scores = self.scores(make_model("tfidf"), 0, [*self.tuning, *self.testing])
        for topic, values in scores.items():
            best = np.argsort(-values, kind="stable")[: max(LEVELS)]
            self.ranked[topic] = best + max(self.seeds[topic]) + 1

    def scores(self, model: TrackingModel, level: int, topics: Iterable[str]) -> dict[str, np.ndarray]:
        topics = list(topics)
        seeds = {topic: self.seeds[topic] for topic in topics}
        feedback = {topic: self.ranked[topic][:level].tolist() for topic in topics} if level else {}
        return replay(model, self.background, self.stream, seeds, feedback, evidence=self._of(model))

    def _of(self, model: TrackingModel) -> Evidence:
        """Evidence depends on the model's kind and on the smoothing of what is scored."""
        key = (
            model.name if model.name in ("tfidf", "nb") else "lm",
            getattr(model, "lambda_score", None),
            getattr(model, "lambda_learn", None) if model.name == "nb" else None,
        )
        if key not in self._evidence:
            self._evidence[key] = evidence_of(model, self.background, self.stream)
        return self._evidence[key]

    def trials(self, model: TrackingModel, level: int, topics: Iterable[str]) -> dict[str, Trials]:
        found = {}
        for topic, scores in self.scores(model, level, topics).items():
            rows = slice(max(self.seeds[topic]) + 1, None)
            judged = self.judged[rows]
            found[topic] = Trials(scores[judged], self.targets[topic][rows][judged])
        return found


def evidence_of(model: TrackingModel, background: Background, stream: MatrixStream) -> Evidence:
    """Evidence.of, all documents at once."""
    counts = stream.counts
    words = counts.indices.astype(np.int64)
    rows = np.repeat(np.arange(len(stream)), np.diff(counts.indptr))
    lengths = np.asarray(counts.sum(axis=1)).ravel()
    if model.name == "tfidf":
        weights = counts.data * background.idf(counts.indices)
        norms = np.sqrt(np.bincount(rows, weights**2, len(stream)))
        return Evidence(words, weights / norms[rows], np.zeros(len(stream)))
    if model.name == "nb":
        return Evidence(words, counts.data.astype(float), lengths * np.log1p(-model.lambda_learn))
    p, lam = background.p(counts.indices), model.lambda_score
    phi = np.log1p(lam / ((1.0 - lam) * lengths[rows]) * counts.data / p)
    return Evidence(words, phi, np.bincount(rows, p * phi, len(stream)))


def in_time_order(corpus: LabelledCorpus) -> LabelledCorpus:
    return corpus.select(np.argsort(corpus.times, kind="stable"))


def split_by_parity(names: Iterable[str]) -> tuple[list[str], list[str]]:
    ordered = sorted(names)
    return ordered[0::2], ordered[1::2]


def reuters() -> Setting:
    return newswire(read_labelled(Collection("reuters21578").index, fields=("split",), labels_required=True))


def newswire(corpus: LabelledCorpus) -> Setting:
    corpus = in_time_order(corpus)
    cut = len(corpus) // 5
    background = Background.of_counts(corpus.counts[:cut], corpus.vocabulary)
    rest = corpus.select(np.arange(cut, len(corpus)))
    judged = np.array([split in ("train", "test") for split in rest.fields["split"]])
    lengths = np.asarray(rest.counts.sum(axis=1)).ravel()
    seeds: dict[str, list[int]] = {}
    targets = {}
    for label in rest.label_names:
        bears = rest.has_label(label) & judged
        rows = np.flatnonzero(bears & (lengths > 0))
        if len(rows) and bears[rows[0] + 1 :].sum() >= LEAST_STORIES:
            seeds[label], targets[label] = [int(rows[0])], bears
    tuning, testing = split_by_parity(seeds)
    stream = matrix_stream(rest)
    about = (
        f"{cut:,} stories before the stream, {len(rest):,} in it ({judged.sum():,} judged), {len(seeds)} topics: "
        f"{len(tuning)} tune, {len(testing)} test."
    )
    return Setting("reuters21578", about, stream, background, seeds, targets, judged, tuning, testing, LOOK)


def crisislex(n_seeds: int = 10) -> Setting:
    earlier = Background.of_snapshot(Collection("microblog2011").snapshot)
    corpus = read_labelled(Collection("crisislex_t6").index, fields=("on_topic",))
    return tweets(corpus, earlier, n_seeds=n_seeds)


def tweets(corpus: LabelledCorpus, background: Background, *, per_event: int = 10, n_seeds: int = 10) -> Setting:
    corpus = in_time_order(corpus)
    on_topic = np.array([bool(value) for value in corpus.fields["on_topic"]])
    words = np.diff(corpus.counts.indptr)
    seeds: dict[str, list[int]] = {}
    targets, events = {}, {}
    for event in corpus.label_names:
        own = corpus.has_label(event) & on_topic
        rows = np.flatnonzero(own & (words >= 5))
        for i in range(per_event):
            name = f"{event}#{i + 1}"
            seeds[name] = rows[10 * i : 10 * i + n_seeds].tolist()
            targets[name], events[name] = own, event
    tuned, tested = split_by_parity(corpus.label_names)
    stream = matrix_stream(corpus, background)
    tuning = [name for i, name in enumerate(seeds) if events[name] in tuned and i % per_event % EVERY == 0]
    testing = [name for name in seeds if events[name] in tested]
    about = (
        f"{background.n_docs:,} earlier tweets, {len(corpus):,} in the stream, {len(seeds)} trackers of "
        f"{len(corpus.label_names)} events: {len(tuned)} events tune ({', '.join(tuned)}), {len(tested)} test "
        f"({', '.join(tested)})."
    )
    judged = np.ones(len(corpus), bool)
    return Setting("crisislex_t6", about, stream, background, seeds, targets, judged, tuning, testing)


def matrix_stream(corpus: LabelledCorpus, background: Background | None = None) -> MatrixStream:
    """The corpus over the background's word numbers (its own where it is the background's continuation)."""
    from scipy.sparse import csr_matrix

    counts = csr_matrix(corpus.counts)
    if background is not None:
        numbers = background.numbers(list(corpus.vocabulary))
        counts = csr_matrix((counts.data, numbers[counts.indices], counts.indptr), (len(corpus), len(background.words)))
    counts.sort_indices()
    return MatrixStream(counts, corpus.docids, corpus.times)


def min_cost(setting: Setting, model: TrackingModel, level: int, topics: Iterable[str]) -> float:
    curve = det_curve(setting.trials(model, level, topics))
    return float(Costs().normalised(curve.p_miss, curve.p_fa).min())


def model_of(name: str, values: Mapping[str, Any]) -> TrackingModel:
    """A model from the values searched over: S λ_M, on which weights depend (5.27), in the place of S."""
    settings = dict(values)
    if "sharpness" in settings:
        settings["precision"] = settings.pop("sharpness") / settings["lambda_learn"]
    return make_model(name, settings)


def tune(setting: Setting, name: str, level: int) -> dict[str, Any]:
    """The settings of least cost on the tuning topics: those found, their cost, and how many were tried."""
    known: dict[tuple, float] = {}

    def cost(values: Mapping[str, Any], topics: Sequence[str] = tuple(setting.tuning)) -> float:
        key = (*sorted(values.items()), len(topics))
        if key not in known:
            known[key] = min_cost(setting, model_of(name, values), level, topics)
        return known[key]

    grid = {key: values[:1] if level == 0 and key in IDLE else values for key, values in COARSE[name].items()}
    points = [dict(zip(grid, point, strict=True)) for point in itertools.product(*grid.values())]
    some = setting.tuning[:: setting.look]
    best = min(sorted(points, key=lambda values: cost(values, some))[:LOOKED_AT], key=cost)
    for parameter, values in FINE[name].items():
        if len(grid[parameter]) > 1:
            best = min([best, *({**best, parameter: value} for value in values)], key=cost)
    return {"values": best, "cost": cost(best), "tried": len(known)}


@dataclass
class Outcome:
    """Every model at every N: parameters, what they cost on the tuning topics, and the evaluation on the others."""

    setting: Setting
    levels: tuple[int, ...]
    parameters: dict[tuple[str, int], dict[str, Any]] = field(default_factory=dict)
    tuned: dict[tuple[str, int], float] = field(default_factory=dict)
    tested: dict[tuple[str, int], TdtEvaluation] = field(default_factory=dict)

    def differences(self, one: str, other: str, level: int) -> np.ndarray:
        return differences(self.tested[one, level], self.tested[other, level])


def differences(one: TdtEvaluation, other: TdtEvaluation) -> np.ndarray:
    """Costs of the one less those of the other, by sample: a topic, or an event (the mean of its trackers)."""
    others = other.story_costs()
    samples: dict[str, list[float]] = {}
    for story, value in one.story_costs().items():
        samples.setdefault(story.split("#")[0], []).append(value - others[story])
    return np.array([np.mean(values) for values in samples.values()])


def measure(setting: Setting, levels: tuple[int, ...] = LEVELS) -> Outcome:
    outcome = Outcome(setting, levels)
    for level in levels:
        for name in MODELS:
            began = time.perf_counter()
            found = kept(f"tracking/{setting.name}-{name}-{level}", partial(tune, setting, name, level))
            key = name, level
            outcome.parameters[key], outcome.tuned[key] = found["values"], found["cost"]
            trials = setting.trials(model_of(name, found["values"]), level, setting.testing)
            outcome.tested[key] = evaluate_trials(trials, name=name)
            print(
                f"{setting.name} {name} N={level}: tuning {found['cost']:.4f}, test "
                f"{outcome.tested[key].min_cost:.4f}, {found}, {time.perf_counter() - began:.0f} s",
                file=sys.stderr,
                flush=True,
            )
    return outcome


SYMBOLS = {
    "lambda_score": "λ_E",
    "lambda_learn": "λ_M",
    "sharpness": "Sλ_M",
    "seed_weight": "W_0",
    "prior_odds": "π",
    "score": "",
}


def shown(values: Mapping[str, Any], level: int) -> str:
    idle = IDLE if level == 0 else ()
    parts = [
        f"{SYMBOLS[name]} {value:g}" if SYMBOLS[name] else str(value)
        for name, value in values.items()
        if name not in idle
    ]
    return ", ".join(parts)


def main_table(outcome: Outcome) -> str:
    """Table 6.2's shape, and Table 6.3's: SD against RM. In brackets the error of the difference to RM; bold: ahead of
    the next by more than two of the difference's standard errors."""
    rows = {}
    for level in outcome.levels:
        costs = {name: outcome.tested[name, level].min_cost for name in TITLES}
        first, second = sorted(costs, key=lambda name: costs[name])[:2]
        lead = outcome.differences(second, first, level)
        clear = lead.mean() > 2 * standard_error(lead)
        cells = []
        for name in TITLES:
            text = f"**{costs[name]:.3f}**" if clear and name == first else f"{costs[name]:.3f}"
            if name in ("tfidf", "nb"):
                text += f" ({standard_error(outcome.differences(name, 'rm', level)):.3f})"
            cells += [shown(outcome.parameters[name, level], level), text]
        to_rm = outcome.differences("sd", "rm", level)
        rows[str(level)] = [*cells, mean_and_error(to_rm, 3, "+"), f"{(to_rm < 0).sum()} of {len(to_rm)}"]
    titles = (cell for title in TITLES.values() for cell in (title, ""))
    return table(["N", *titles, "SD - RM (s.e.)", "SD better"], rows)


def event_table(outcome: Outcome) -> str:
    """Each test event: the mean cost of its trackers, all at the common threshold."""
    events = sorted({story.split("#")[0] for story in outcome.setting.testing})
    rows = []
    for level in outcome.levels:
        for name in TITLES:
            costs = outcome.tested[name, level].story_costs()
            means = [np.mean([costs[s] for s in costs if s.split("#")[0] == event]) for event in events]
            rows.append([str(level), TITLES[name], *(f"{mean:.3f}" for mean in means)])
    return table(["N", "model", *events], rows)


def tuning_line(outcome: Outcome) -> str:
    parts = [
        f"{TITLES[name]} " + " ".join(f"{outcome.tuned[name, level]:.3f}" for level in outcome.levels)
        for name in TITLES
    ]
    return "MinCost on the tuning topics, in the order of N: " + "; ".join(parts) + "."


def ablation(outcome: Outcome) -> str:
    """Which of SD's parts matters: the same parameters with one part put out of work."""
    level = max(level for level in outcome.levels if level <= 25)
    setting, tuned = outcome.setting, outcome.parameters["sd", level]

    def cost(**changes: Any) -> str:
        trials = setting.trials(model_of("sd", {**tuned, **changes}), level, setting.testing)
        found = evaluate_trials(trials)
        error = standard_error(differences(found, outcome.tested["sd", level]))
        return f"{found.min_cost:.4f} ({error:.4f})"

    return (
        f"SD's parts at N = {level}, on the test topics (standard error of the difference to as tuned): as tuned "
        f"{outcome.tested['sd', level].min_cost:.4f}; seed no heavier than the heaviest learnt document (W_0 = 1) "
        f"{cost(seed_weight=1.0)}; learnt documents weighed alike (S = 0) {cost(sharpness=0.0)}; both "
        f"{cost(seed_weight=1.0, sharpness=0.0)}."
    )


def one_tweet() -> str:
    """Tracking from a single tweet, searched in the same way."""
    setting = crisislex(n_seeds=1)
    setting.name += "-one"
    return "### From a single tweet\n\n" + main_table(measure(setting, ONE_SEED_LEVELS))


INTRODUCTION = (
    "MinCost (normalised C_track at the best common threshold, topic-weighted, P_target .02, C_miss/C_fa 10; "
    "lower is better) on the test topics, parameters chosen for each N by the cost of the tuning topics: a "
    f"whole grid (of reuters21578 on each third of them, its best {LOOKED_AT} points on all), then one "
    "parameter at a time over a finer one; what RM and SD have in common is searched over the same values. N "
    "documents, marked by a tf-idf run from the seed as in the thesis, are learnt from as they come. `words` and "
    "`full`: whether the topic's constant is part of the score. In brackets the standard error of the difference to "
    "RM; samples are topics, of crisislex_t6 events. The protocol is in benchmarks/results_tracking.py."
)


def section(levels: tuple[int, ...] = LEVELS) -> str:
    from sdretrieval.learn.tracking.det import write_det

    parts = [INTRODUCTION]
    beside: list[str] = []
    for make in (reuters, crisislex):
        name = {"reuters": "reuters21578", "crisislex": "crisislex_t6"}[make.__name__]
        if not Collection(name).available:
            parts.append(f"### {name}\n\nnot on this machine")
            continue
        setting = make()
        outcome = measure(setting, levels)
        picture = f"det_{name}.png"
        level = min(levels, key=lambda n: abs(n - 5))
        write_det(ROOT / "docs" / picture, {TITLES[model]: outcome.tested[model, level] for model in TITLES})
        parts += [f"### Tracking on {name}", setting.about, main_table(outcome)]
        beside += [f"### {name}", ablation(outcome), tuning_line(outcome)]
        if make is crisislex:
            beside += [event_table(outcome), one_tweet()]
        beside.append(f"![DET curves for N = {level}]({picture})")
    return "\n\n".join([*parts, BESIDE, *beside])


if __name__ == "__main__":
    print(section(tuple(map(int, sys.argv[1:])) or LEVELS))
