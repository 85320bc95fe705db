"""What may be asked, and within which bounds: read by REST and MCP alike."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from sdretrieval.core.errors import ParameterError
from sdretrieval.core.parameters import setting_pairs
from sdretrieval.ranking.interactive import Request

MOST_HITS = 1000
MOST_LEARNT = 1000  # feedback documents, and words learnt from them
MOST_LISTED = 200  # documents judged, words edited

Text = Annotated[str, Field(max_length=500)]
Texts = Annotated[list[Text], Field(max_length=MOST_LISTED)]
Time = Annotated[str | None, Field(max_length=40)]


class Asking(BaseModel):
    """What GET and POST have in common."""

    model_config = ConfigDict(extra="forbid")

    q: str = Field("", max_length=4000, description="the query")
    query: str = Field("", max_length=4000, description="another name of q")
    hits: int = Field(10, ge=1, le=MOST_HITS)
    model: str = Field("blend", max_length=100, description="as /v1/indexes lists them")
    as_of: Time = Field(None, description="search the collection as it was before this time")
    since: Time = Field(None, description="only documents of this time or later")
    until: Time = Field(None, description="only documents before this time")
    time_prior: Literal["none", "auto", "recency", "density"] = "none"
    time_weight: float | None = Field(None, ge=0, le=100, allow_inf_nan=False)
    bandwidth: str = Field("auto", max_length=20, description="of the time prior: days, or with a unit (12h, 7d, 2w)")
    relevant: Texts = Field([], description="ids of documents known to be relevant")
    nonrelevant: Texts = Field([], description="ids of documents known not to be")
    drop: Texts = Field([], description="words to leave out of what the model learnt, as `words` has them")
    snippets: bool = True
    docid: Text | None = Field(None, description="the document that is explained")
    format: Literal["run", "expansion"] = "run"

    def request(self, settings: Mapping[str, Any], weights: Mapping[str, float]) -> Request:
        query = self.q or self.query
        if not query.strip():
            raise ParameterError("no query was given", remedy="Give it as q.")
        lists = {"relevant": self.relevant, "nonrelevant": self.nonrelevant, "drop": self.drop}
        times = {"as_of": self.as_of or None, "since": self.since or None, "until": self.until or None}
        prior = {"time_prior": self.time_prior, "time_weight": self.time_weight, "bandwidth": self.bandwidth}
        found = Request.of(
            query,
            model=self.model,
            k=self.hits,
            settings=_bounded(settings),
            weights=weights,
            **times,
            **prior,
            **lists,
        )
        if found.bandwidth != "auto" and not 0 < float(found.bandwidth) < inf:
            raise ParameterError(f"bandwidth must be positive; got {self.bandwidth!r}", remedy="As in 7d, or auto.")
        return found

    @property
    def document(self) -> str:
        if self.docid is None:
            raise ParameterError("no docid was given", remedy="Give that of the document to explain.")
        return self.docid


class AskingByAddress(Asking):
    """By GET: lists are repeated."""

    set: Texts = Field([], description="parameters of the model: name=value")
    weights: Texts = Field([], description="weights of words: term=value")

    def asked(self) -> Request:
        weights = {word: _weight(word, text) for word, text in setting_pairs(self.weights)}
        return self.request(dict(setting_pairs(self.set)), weights)


class AskingByBody(Asking):
    """By POST."""

    set: dict[Text, bool | int | float | Text | None] = Field({}, max_length=50, description="parameters of the model")
    weights: dict[Text, Annotated[float, Field(allow_inf_nan=False)]] = Field(
        {}, max_length=MOST_LISTED, description="weights of words"
    )

    def asked(self) -> Request:
        return self.request(self.set, self.weights)


def _bounded(settings: Mapping[str, Any]) -> dict[str, Any]:
    for name, value in settings.items():
        if name.startswith("fb_") and _weight(name, value) > MOST_LEARNT:
            raise ParameterError(f"{name} is at most {MOST_LEARNT} here; got {value}")
    return dict(settings)


def _weight(name: str, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise ParameterError(f"{name!r} takes a number; got {value!r}") from None
