"""Judging played through on labelled documents: how much had to be read for how much of what is relevant.

played = simulate(Learner(Features.of(snapshot), words), relevant)      # relevant: a mask over documents
played.wss(0.95), played.recall_at(2 * played.total), played.stops(0.95)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from time import process_time

import numpy as np

from sdretrieval.core.errors import ParameterError
from sdretrieval.core.plotting import empty_plot, write_figure
from sdretrieval.learn.judging.learner import Learner
from sdretrieval.learn.judging.stopping import RecallWatch, least_found


@dataclass(frozen=True)
class Played:
    """A simulation: the documents in the order they were judged, whether each is relevant, and what a click took."""

    order: np.ndarray
    hits: np.ndarray
    total: int  # relevant documents in the collection
    documents: int
    seconds: float  # processor time of a click: judgment in, next document out

    def judged_for(self, recall: float) -> int:
        """How many documents were judged when this recall was reached."""
        found = np.flatnonzero(np.cumsum(self.hits) >= least_found(self.total, recall))
        return int(found[0]) + 1 if len(found) else self.documents

    def wss(self, recall: float = 0.95) -> float:
        """Work saved over sampling (Cohen et al. 2006): what need not be read, less what chance would save."""
        return recall - self.judged_for(recall) / self.documents

    def recall_at(self, n: int) -> float:
        return float(self.hits[:n].sum()) / self.total

    def stops(self, target: float, confidence: float = 0.95) -> tuple[int, bool]:
        """Where the bound first says that recall is ``target``, in clicks, and whether it is true there."""
        watch = RecallWatch(self.documents, target, confidence)
        for n, hit in enumerate(self.hits.tolist(), 1):
            if watch.click(hit):
                return n, self.recall_at(n) >= target
        return self.documents, True


def simulate(
    learner: Learner,
    relevant: np.ndarray,
    *,
    first: Sequence[int] = (),
    until: Callable[[np.ndarray], bool] | None = None,
) -> Played:
    """Judge by the learner until all that is relevant is found (or all hits so far satisfy ``until``).

    Parameters
    ----------
    learner : Learner
        Anew, with the topic's words.
    relevant : mask over the documents
    first : documents judged before the learner chooses
    """
    relevant = np.asarray(relevant, dtype=bool)
    total, n = int(relevant.sum()), len(relevant)
    if not total:
        raise ParameterError("no document is relevant: there is nothing to find", remedy="Check the labels.")
    order: list[int] = []
    hits = np.zeros(n, dtype=bool)
    began, found = process_time(), 0
    while len(order) < n and (found < total if until is None else not until(hits[: len(order)])):
        doc = first[len(order)] if len(order) < len(first) else learner.best()
        assert doc is not None
        hits[len(order)] = relevant[doc]
        found += bool(relevant[doc])
        order.append(int(doc))
        learner.learn(int(doc), bool(relevant[doc]))
    seconds = (process_time() - began) / max(len(order), 1)
    return Played(np.array(order), hits[: len(order)], total, n, seconds)


def plot_recall(path: str | PathLike[str], played: Mapping[str, Played]) -> None:
    """Recall by the share of the collection that was judged; a mark where the bound says .95."""
    figure, axes = empty_plot(6.4, 4.0)
    for name, one in played.items():
        share = np.arange(1, len(one.hits) + 1) / one.documents
        (line,) = axes.plot(share, np.cumsum(one.hits) / one.total, label=name, linewidth=1.2)
        stop = min(one.judged_for(0.95), len(one.hits))
        axes.plot([stop / one.documents], [one.recall_at(stop)], "o", color=line.get_color(), markersize=4)
    axes.axhline(0.95, color="#999999", linewidth=0.6, linestyle=":")
    axes.set(xlabel="share of the collection judged", ylabel="recall", xlim=(0, 1), ylim=(0, 1.02))
    axes.legend(loc="lower right", fontsize=7, frameon=False)
    write_figure(figure, path, dpi=120)
