"""A Ranker around a Ranker: what it changes is declared in hooks that the engine calls.

    TimePrior(ranker=AsOf(ranker=make_ranker("sd3")), prior=Recency())

A :class:`Wrapper` is used wherever a Ranker is. For each call the engine asks it for its :class:`Hooks` on the
collection at hand, and takes the model at the core through the two passes, with

    statistics of a query    ``view``: N, df, cf and general English as they are for it, and which documents there are;
                             the outermost wrapper first
    order of feedback        ``ordered``: the first documents in another order before feedback is taken from them
    emphasis of feedback     ``emphasis``: a factor for each feedback document; those of several wrappers are multiplied
    adjustment of scores     ``adjusted``: other scores of all documents, or of the first ones alone, which the rest
                             then follow in their order; the innermost wrapper first

Wrappers compose in any order that makes sense; where an order does not, ``check_inner`` says so when they are made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np

from sdretrieval.core.errors import ParameterError
from sdretrieval.index.statistics import Statistics
from sdretrieval.ranking.base import Expansion, Plan, Ranker
from sdretrieval.ranking.query import Query

if TYPE_CHECKING:  # the engine imports this module
    from sdretrieval.ranking.engine import Engine, Result
    from sdretrieval.ranking.feedback import Feedback

W = TypeVar("W", bound="Wrapper")
Ranked = tuple[np.ndarray, np.ndarray]  # documents and their scores
Others = Callable[[np.ndarray], Ranked]


@dataclass(frozen=True, eq=False)
class View:
    """The collection as it is for one query."""

    statistics: Statistics
    allowed: np.ndarray | None = None  # which documents there are, a boolean each; None for all


class Hooks:
    """What a wrapper does on one collection. These do nothing: a wrapper overrides those it needs."""

    per_query = False  # whether ``view`` depends on the query
    adjusts = False  # whether ``adjusted`` ever changes a score
    reach: int | None = None  # how many first documents it orders anew; None: all
    first_reach = 0  # how many documents of the first pass it orders anew, to learn from

    def start(self, queries: Sequence[Query]) -> None:
        """Check the queries of a call, and make what all of them share."""

    def rehearsal(self, queries: Sequence[Query]) -> Sequence[Query]:
        """Queries of the call to take through all passes beforehand, with the same hooks, for what they teach."""
        return ()

    def rehearsed(self) -> None:
        """The rehearsal is over."""

    def view(self, query: Query, view: View) -> View:
        return view

    def ordered(self, engine: Engine, result: Result, found: Ranked) -> Ranked | None:
        """Places of documents in the order in which to learn from them, and a factor for the weight of each.

        ``found`` are the first documents of the first pass, or of a run, the best first. None leaves them.
        """
        return None

    def emphasis(self, query: Query, docs: np.ndarray) -> np.ndarray | None:
        """A factor for each feedback document; None leaves their weights alone."""
        return None

    def adjusted(self, engine: Engine, result: Result, found: Ranked, others: Others | None) -> Ranked | None:
        """A query's documents with other scores; None leaves them.

        Where there is a ``reach`` they come in rank order, and ``others`` scores documents that may be ranked as well:
        those of given ones that have any of the words. It is None where all that may be ranked are there.
        """
        return None

    def brought(self, engine: Engine, result: Result, found: Ranked) -> Ranked:
        """Documents that a wrapper further out brings in (``others``), with what this one adds to their scores."""
        return found


class Wrapper(Ranker):
    """Base of the wrappers: a frozen dataclass with a field ``ranker``, the model (or wrapper) inside.

    ``label`` stands in the name of the whole, whose labels have the order of ``place``, however they are nested.
    """

    label: ClassVar[str] = ""
    place: ClassVar[int] = 0
    rescores: ClassVar[bool] = False  # its adjustment puts new scores in the place of the old ones

    if TYPE_CHECKING:
        ranker: Ranker

    def __post_init__(self) -> None:
        super().__post_init__()
        for inner in wrappers(self.ranker):
            self.check_inner(inner)

    def check_inner(self, inner: Wrapper) -> None:
        """Raise :class:`ParameterError` where a wrapper makes no sense inside this one."""
        if type(inner) is type(self):
            raise ParameterError(f"{self.own_label} is there already", remedy="Wrap the model in it once.")
        if self.rescores and inner.adds:
            raise ParameterError(
                f"{self.own_label} scores anew what {inner.own_label} has adjusted",
                remedy=f"Wrap the other way round: {inner.own_label} around {self.own_label}.",
            )

    @property
    def adds(self) -> bool:
        """Whether its adjustment adds to the scores."""
        return False

    def hooks(self, engine: Engine) -> Hooks:
        """The hooks on the collection of an engine."""
        raise NotImplementedError

    def around(self, other: Ranker) -> Ranker:
        """The same wrapper around another model."""
        return replace(self, ranker=other)  # type: ignore[call-arg]

    # -- as a Ranker ---------------------------------------------------------------------------------------------
    @property
    def own_label(self) -> str:
        return self.label

    @property
    def name(self) -> str:  # type: ignore[override]
        named = sorted(wrappers(self), key=lambda wrapper: wrapper.place)
        return "+".join([innermost(self).name, *(wrapper.own_label for wrapper in named)])

    @property
    def uses_feedback(self) -> bool:  # type: ignore[override]
        return self.ranker.uses_feedback

    @property
    def feedback_depth(self) -> int:
        return self.ranker.feedback_depth

    def first(self, query: Query, statistics: Statistics) -> Plan:
        return self.ranker.first(query, statistics)

    def expand(self, query: Query, feedback: Feedback, statistics: Statistics) -> Expansion:
        return self.ranker.expand(query, feedback, statistics)

    def with_(self, **changes: Any) -> Ranker:
        """A changed copy; what is not the wrapper's own goes to the model inside."""
        own = {f.name for f in fields(self)}
        mine = {name: value for name, value in changes.items() if name in own}
        inner = {name: value for name, value in changes.items() if name not in own}
        if inner:
            mine["ranker"] = mine.get("ranker", self.ranker).with_(**inner)
        return replace(self, **mine)


def followed(first: Ranked, rest: Ranked) -> Ranked:
    """Documents with new scores, and the rest of a ranking, its scores lowered by as much as keeps it behind."""
    docs, scores = rest
    if len(docs) == 0:
        return first
    below = float(np.nextafter(np.float32(first[1].min()), np.float32(-np.inf)))  # ranks go by single precision
    left = ~np.isin(docs, first[0])
    lowered = scores[left] - max(0.0, scores[0] - below)
    return np.concatenate([first[0], docs[left]]), np.concatenate([first[1], lowered])


def wrappers(ranker: Ranker) -> Iterator[Wrapper]:
    """The wrappers of a model, from the outermost in."""
    while isinstance(ranker, Wrapper):
        yield ranker
        ranker = ranker.ranker


def innermost(ranker: Ranker) -> Ranker:
    """The model at the core."""
    for wrapper in wrappers(ranker):
        ranker = wrapper.ranker
    return ranker


def wrapper_of(ranker: Ranker, kind: type[W]) -> W | None:
    """The wrapper of a kind that a model is in, or None."""
    return next((wrapper for wrapper in wrappers(ranker) if isinstance(wrapper, kind)), None)


def rewrapped(ranker: Ranker, change: Callable[[Ranker], Ranker]) -> Ranker:
    """The same wrappers around another model: ``change`` of the one at the core."""
    return ranker.around(rewrapped(ranker.ranker, change)) if isinstance(ranker, Wrapper) else change(ranker)
