"""Topic tracking in docs/RESULTS.md: the shape of the thesis's Tables 6.2 and 6.3, and Figure 6.1, on two streams.

Protocol; what was left open (ten tweets to a seed, the grids) was settled by the costs of the tuning topics:

- reuters21578 is one stream in time order. Its first fifth is the earlier corpus that general English comes from;
  the rest is followed. A topic is a category with at least 10 judged stories after its seed, its seed the first
  judged story that bears it. Trials are the judged stories (ModApte's train and test) after the seed.
- crisislex_t6 is one stream of all six events. General English comes from microblog2011, tweets of an earlier year.
  Each event is followed by ten trackers: the first starts from the 1st to 10th on-topic tweet of five words or more,
  the second from the 11th to 20th, and so on (one tweet is too little to tell a topic by: the section's last line).
  Trials are all tweets after the last seed; on topic are the event's own on-topic tweets.
- Topics (events) in alphabetical order: even places tune, odd places test.
- The documents to learn from are, as in the thesis, the N best of a tf-idf run from the seed alone: marked, not
  labelled, the same for all models.
- Parameters are tuned for each N on the tuning topics: MinCost, topic-weighted.

    python -m benchmarks.results_tracking          # both, as Markdown
"""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from benchmarks.collections import ROOT, Collection
from sdretrieval.core.tables import probability
from sdretrieval.evaluate.significance import Comparison
from sdretrieval.learn.labelled import LabelledCorpus, read_labelled
from sdretrieval.learn.tracking.replay import Evidence, MatrixStream, replay
from sdretrieval.learn.tracking.story_models import MODELS, TrackingModel, make_model
from sdretrieval.learn.tracking.stream_background import Background
from sdretrieval.learn.tracking.tdt import Costs, TdtEvaluation, Trials, compare_trackers, det_curve, evaluate_trials

LEVELS = (0, 2, 5, 25, 50, 100)
LEAST_STORIES = 10
TITLES = {"tfidf": "TF-IDF", "nb": "naïve Bayes", "rm": "Relevance Model", "sd": "Smoothed Dirichlet"}
GRIDS: dict[str, dict[str, tuple]] = {
    "tfidf": {},
    "nb": {"lambda_learn": (0.01, 0.05, 0.1, 0.3, 0.5, 0.7), "prior_odds": (1e-12, 1e-8, 1e-6, 1e-4, 1.0)},
    "rm": {
        "lambda_score": (1e-4, 1e-3, 0.01, 0.05, 0.2, 0.5, 0.8),
        "lambda_learn": (0.3, 0.6, 0.9, 0.99),
        "score": ("words", "full"),
    },
    "sd": {
        "lambda_score": (1e-4, 1e-3, 0.01, 0.05, 0.2, 0.5, 0.8),
        "sharpness": (0.0, 1.0, 3.0, 10.0, 30.0, 100.0),
        "seed_weight": (1.0, 2.0, 5.0, 20.0),
        "lambda_learn": (1e-4, 1e-3, 0.01, 0.1, 0.5, 0.99),
        "score": ("words", "full"),
    },
}
ROUNDS = 2
# Where the search begins: near the thesis's optima for N = 5 (Table 6.2).
STARTS: dict[str, dict[str, Any]] = {
    "tfidf": {},
    "nb": {"lambda_learn": 0.3, "prior_odds": 1e-6},
    "rm": {"lambda_score": 0.05, "lambda_learn": 0.6, "score": "words"},
    "sd": {"lambda_score": 1e-3, "lambda_learn": 0.1, "sharpness": 1.0, "seed_weight": 1.0, "score": "words"},
}


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
            self._evidence[key] = Evidence.of(model, self.background, self.stream)
        return self._evidence[key]

    def trials(self, model: TrackingModel, level: int, topics: Iterable[str]) -> dict[str, Trials]:
        found = {}
        for topic, scores in self.scores(model, level, topics).items():
            rows = slice(max(self.seeds[topic]) + 1, None)
            judged = self.judged[rows]
            found[topic] = Trials(scores[judged], self.targets[topic][rows][judged])
        return found


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
    return Setting("reuters21578", about, stream, background, seeds, targets, judged, tuning, testing)


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
    tuning = [name for name in seeds if events[name] in tuned]
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


def min_cost(setting: Setting, model: TrackingModel, level: int) -> float:
    curve = det_curve(setting.trials(model, level, setting.tuning))
    return float(Costs().normalised(curve.p_miss, curve.p_fa).min())


def model_of(name: str, values: Mapping[str, Any]) -> TrackingModel:
    """A model from the values searched over: S λ_M, on which weights depend (5.27), in the place of S."""
    settings = dict(values)
    if "sharpness" in settings:
        settings["precision"] = settings.pop("sharpness") / settings["lambda_learn"]
    return make_model(name, settings)


def tune(setting: Setting, name: str, level: int, start: Mapping[str, Any]) -> dict[str, Any]:
    """All of the grid where it is small, else one parameter at a time, in two rounds."""
    grid = dict(GRIDS[name])
    if level == 0:  # nothing is learnt: what weighs learnt documents says nothing
        for idle in ("sharpness", "seed_weight"):
            grid.pop(idle, None)
        if name == "nb":
            grid["prior_odds"] = grid["prior_odds"][:1]
    known: dict[tuple, float] = {}

    def cost(values: Mapping[str, Any]) -> float:
        key = tuple(values.items())
        if key not in known:
            known[key] = min_cost(setting, model_of(name, values), level)
        return known[key]

    values = {**STARTS[name], **start}
    if np.prod([len(choices) for choices in grid.values()]) <= 40:
        candidates = [{**values, **dict(zip(grid, point, strict=True))} for point in itertools.product(*grid.values())]
        return min(candidates, key=cost)
    for _ in range(ROUNDS):
        before = values
        for parameter, choices in grid.items():
            values = min(({**values, parameter: choice} for choice in choices), key=cost)
        if values == before:
            break
    return values


@dataclass
class Outcome:
    """Every model at every N: parameters, what they cost on the tuning topics, and the evaluation on the others."""

    setting: Setting
    parameters: dict[tuple[str, int], dict[str, Any]] = field(default_factory=dict)
    tuned: dict[tuple[str, int], float] = field(default_factory=dict)
    tested: dict[tuple[str, int], TdtEvaluation] = field(default_factory=dict)


def measure(setting: Setting, levels: Iterable[int] = LEVELS) -> Outcome:
    outcome = Outcome(setting)
    for name in MODELS:
        best: dict[str, Any] = {}
        for level in levels:
            began = time.perf_counter()
            best = tune(setting, name, level, best)
            model = model_of(name, best)
            key = name, level
            outcome.parameters[key], outcome.tuned[key] = best, min_cost(setting, model, level)
            outcome.tested[key] = evaluate_trials(setting.trials(model, level, setting.testing), name=name)
            print(
                f"{setting.name} {name} N={level}: tuning {outcome.tuned[key]:.4f}, test "
                f"{outcome.tested[key].min_cost:.4f}, {best}, {time.perf_counter() - began:.0f} s",
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
    idle = ("sharpness", "seed_weight", "prior_odds") if level == 0 else ()
    parts = [
        f"{SYMBOLS[name]} {value:g}" if SYMBOLS[name] else str(value)
        for name, value in values.items()
        if name not in idle
    ]
    return ", ".join(parts)


def one_sided(comparison: Comparison) -> float:
    """p of the paired one-tailed t-test that ``run`` costs less than the baseline."""
    two = comparison.tests["t"]
    return two.p_value / 2 if two.statistic < 0 else 1 - two.p_value / 2


def main_table(outcome: Outcome) -> str:
    """Table 6.2's shape."""
    lines = ["| N | " + " | ".join(f"{TITLES[name]} | " for name in TITLES) + "|", "|---|" + "---|" * (2 * len(TITLES))]
    for level in LEVELS:
        costs = {name: outcome.tested[name, level].min_cost for name in TITLES}
        best = min(costs.values())
        cells = []
        for name in TITLES:
            text = f"{costs[name]:.4f}"
            cells += [shown(outcome.parameters[name, level], level), f"**{text}**" if costs[name] == best else text]
        lines.append(f"| {level} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def comparison_table(outcome: Outcome) -> str:
    """Table 6.3's shape: SD against each other model, topic by topic."""
    lines = [
        "| N | SD better than RM, topics | SD - RM | p, t one-tailed | p, t | p, sign "
        "| SD - best other | which | p, t | p, sign |",
        "|" + "---|" * 10,
    ]
    for level in LEVELS:
        sd = outcome.tested["sd", level]
        rm = compare_trackers(sd, outcome.tested["rm", level])
        other = min((outcome.tested[name, level] for name in TITLES if name != "sd"), key=lambda e: e.min_cost)
        best = compare_trackers(sd, other)
        lines.append(
            f"| {level} | {rm.losses} of {len(rm.topics)} ({rm.ties} equal) | {rm.difference:+.4f} | "
            f"{probability(one_sided(rm))} | {probability(rm.tests['t'].p_value)} | "
            f"{probability(rm.tests['sign'].p_value)} | {best.difference:+.4f} | {TITLES[other.name]} | "
            f"{probability(best.tests['t'].p_value)} | {probability(best.tests['sign'].p_value)} |"
        )
    return "\n".join(lines)


def stability_line(outcome: Outcome) -> str:
    """From each model's best N to N = 100: how much of the gain too many documents undo."""
    parts = []
    for name in TITLES:
        costs = {level: outcome.tested[name, level].min_cost for level in LEVELS}
        best = min(costs, key=lambda level: costs[level])
        parts.append(f"{TITLES[name]} {costs[best]:.4f} at N = {best}, {100 * (costs[100] / costs[best] - 1):+.1f} %")
    return "Best N, and from there to N = 100: " + "; ".join(parts) + "."


def tuning_line(outcome: Outcome) -> str:
    parts = [f"{TITLES[name]} " + " ".join(f"{outcome.tuned[name, level]:.4f}" for level in LEVELS) for name in TITLES]
    return "MinCost on the tuning topics, N = 0 to 100: " + "; ".join(parts) + "."


def ablation(outcome: Outcome, level: int = 25) -> str:
    """Which of SD's parts matters: the same parameters with one part put out of work."""
    setting, tuned = outcome.setting, outcome.parameters["sd", level]

    def cost(**changes: Any) -> str:
        trials = setting.trials(model_of("sd", {**tuned, **changes}), level, setting.testing)
        return f"{evaluate_trials(trials).min_cost:.4f}"

    return (
        f"SD's parts at N = {level}, on the test topics: as tuned {outcome.tested['sd', level].min_cost:.4f}; seed no "
        f"heavier than the heaviest learnt document (W_0 = 1) {cost(seed_weight=1.0)}; learnt documents weighed alike "
        f"(S = 0) {cost(sharpness=0.0)}; both {cost(seed_weight=1.0, sharpness=0.0)}."
    )


def one_tweet() -> str:
    """Why the trackers of the tweets start from ten."""
    setting = crisislex(n_seeds=1)
    costs = {name: min_cost(setting, model_of(name, STARTS[name]), 0) for name in TITLES}
    return (
        "From a single tweet instead of ten, untuned, N = 0, the tuning events cost "
        + ", ".join(f"{TITLES[name]} {cost:.3f}" for name, cost in costs.items())
        + ": hardly better than saying no to everything (1)."
    )


def section() -> str:
    from sdretrieval.learn.tracking.det import write_det

    parts = [
        "MinCost (normalised C_track at the best common threshold, topic-weighted, P_target .02, C_miss/C_fa 10; "
        "lower is better) on the test topics, parameters tuned for each N on the tuning topics; the best of each row "
        "is bold. N documents, marked by a tf-idf run from the seed as in the thesis, are learnt from as they come. "
        "`words` and `full`: whether the topic's constant is part of the score. The protocol is in "
        "benchmarks/results_tracking.py."
    ]
    for make in (reuters, crisislex):
        name = {"reuters": "reuters21578", "crisislex": "crisislex_t6"}[make.__name__]
        if not Collection(name).available:
            parts.append(f"### {name}\n\nnot on this machine")
            continue
        setting = make()
        outcome = measure(setting)
        picture = f"det_{name}.png"
        write_det(ROOT / "docs" / picture, {TITLES[model]: outcome.tested[model, 5] for model in TITLES})
        story = {
            m: evaluate_trials(
                setting.trials(model_of(m, outcome.parameters[m, 5]), 5, setting.testing), weighting="story"
            ).min_cost
            for m in TITLES
        }
        parts += [
            f"### Tracking on {name}",
            setting.about + (" Test topics: " + ", ".join(setting.testing) + "." if name == "reuters21578" else ""),
            main_table(outcome),
            "SD against the others, topic by topic, each at its own threshold of MinCost (differences of cost; "
            "negative: SD is better):",
            comparison_table(outcome),
            stability_line(outcome),
            ablation(outcome),
            tuning_line(outcome),
            "Story-weighted MinCost at N = 5: " + ", ".join(f"{TITLES[m]} {c:.4f}" for m, c in story.items()) + ".",
            f"![DET curves for N = 5]({picture})",
        ]
        if make is crisislex:
            parts.append(one_tweet())
    return "\n\n".join(parts)


if __name__ == "__main__":
    print(section())
