"""What a ranking model is: a first pass, and perhaps a second one learnt from feedback documents.

A model never touches postings. It turns a query into a :class:`Plan` (words with weights, and how counts become
evidence); engine.py scores plans. To add a model, write a frozen dataclass of :func:`~sdretrieval.core.parameters`
fields, give it a ``name``, and define ``first`` (and ``expand`` where it learns from feedback); register it with
:func:`register` or through the entry-point group ``sdretrieval.rankers``. tests/contract runs the battery that
every model must pass; third parties call :func:`sdretrieval.ranking.contract.check_ranker`.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from sdretrieval.core import parameters
from sdretrieval.core.errors import ParameterError
from sdretrieval.index.statistics import Statistics
from sdretrieval.ranking.query import Query
from sdretrieval.ranking.term_model import TermModel
from sdretrieval.ranking.weighting import SATURATING, Weighting

if TYPE_CHECKING:  # whoever lists models, or checks their parameters, needs no compiled loops
    from sdretrieval.index.snapshot import Snapshot
    from sdretrieval.ranking.engine import Engine
    from sdretrieval.ranking.feedback import Feedback
    from sdretrieval.ranking.wrapper import Hooks


@dataclass(frozen=True, eq=False)
class Pairs:
    """Words that are evidence of their own where they stand together (ranking/pairs.py)."""

    terms: np.ndarray  # two a row
    in_order: np.ndarray  # weights a^O, of the second following the first
    near: np.ndarray  # weights a^U, of both within eight words

    def among(self, terms: np.ndarray) -> Pairs | None:
        """Those of which both words are among ``terms``; None where there are none."""
        kept = np.isin(self.terms, terms).all(axis=1)
        return Pairs(self.terms[kept], self.in_order[kept], self.near[kept]) if kept.any() else None


@dataclass(frozen=True, eq=False)
class Plan:
    """score(D) = Σ_w a_w log θ^D_w (language models), or Σ_w a_w φ (BM25 and the like).

    ``with_constant``: keep the part that is the same for every document, so that the score is the whole equation.
    ``pairs``: what is added to the scores of the first documents.
    """

    model: TermModel
    weighting: Weighting
    with_constant: bool = False
    pairs: Pairs | None = None

    def __post_init__(self) -> None:
        if self.model.background and not self.weighting.is_language_model:
            raise ParameterError("only a language model has a background")
        if self.pairs is not None and self.weighting.kind != SATURATING:
            raise ParameterError("pairs of words are weighed by BM25 alone")

    @property
    def share_factor(self) -> float:
        """What log(1 - λ_D) is multiplied by: Σ_w a_w; 0 where it is the same for all documents and not asked for."""
        weighting = self.weighting
        if weighting.share_for_all:
            return 1.0
        if not weighting.is_language_model or (weighting.share_is_constant and not self.with_constant):
            return 0.0
        return self.model.mass

    def constant(self, statistics: Statistics) -> float:
        """Σ_w a_w log p_w: what a language model's score has whatever the document."""
        if not self.with_constant or not self.weighting.is_language_model:
            return 0.0
        sparse = float(self.model.weights @ statistics.log_p[self.model.terms])
        return sparse + self.model.background * statistics.entropy_sum if self.model.background else sparse


@dataclass(frozen=True, eq=False)
class Expansion:
    """The second pass of a feedback model, with what is worth knowing about how it came about."""

    plan: Plan
    weights: np.ndarray  # of the feedback documents, summing to one
    notes: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Ranker:
    """Base of every ranking model. Instances are immutable; ``with_(fb_docs=20)`` makes a changed copy."""

    name: ClassVar[str] = ""
    description: ClassVar[str] = ""
    uses_feedback: ClassVar[bool] = False
    reads_positions: ClassVar[bool] = False  # where words stand, of collections that tell
    is_wide: ClassVar[bool] = False  # plans have all words of the feedback documents, and share most of them
    fb_docs = 0  # feedback models declare it as a parameter

    def __post_init__(self) -> None:
        parameters.check(self)

    def first(self, query: Query, statistics: Statistics) -> Plan:
        """The first pass; the only one where the model has no feedback."""
        raise NotImplementedError

    def expand(self, query: Query, feedback: Feedback, statistics: Statistics) -> Expansion:
        """The second pass, learnt from feedback documents."""
        raise NotImplementedError

    def contrast(self, docs: np.ndarray, snapshot: Snapshot, allowed: np.ndarray | None) -> np.ndarray | None:
        """Documents besides the feedback ``docs`` that the model wants to see; None for none."""
        return None

    def hooks(self, engine: Engine) -> Hooks | None:
        """What the model does on the collection of an engine besides its plans (ranking/wrapper.py)."""
        return None

    @property
    def learns_beside_judged(self) -> bool:
        """Whether documents of the first pass are wanted as feedback even where some are judged relevant."""
        return False

    @property
    def feedback_depth(self) -> int:
        """How many documents of the first pass are wanted as feedback."""
        return self.fb_docs if self.uses_feedback else 0

    def with_(self, **changes: Any) -> Ranker:
        return replace(self, **changes)

    def settings(self) -> dict[str, Any]:
        """The parameters by name, for manifests and profiles."""
        declared = parameters.domains(self)
        return {name: value for name, value in asdict(self).items() if name in declared}


registered: dict[str, type[Ranker]] = {}


def register(model: type[Ranker]) -> type[Ranker]:
    """Class decorator: make a model known by its name."""
    registered[model.name] = model
    return model
