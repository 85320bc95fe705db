"""Ranking models by name: the built-in ones, those registered here, and those of installed packages."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from sdretrieval.core import parameters
from sdretrieval.core.errors import ParameterError
from sdretrieval.ranking.base import Ranker, registered
from sdretrieval.ranking.models.built_in import BUILT_IN
from sdretrieval.ranking.profile_files import profile_settings

if TYPE_CHECKING:
    from importlib.metadata import EntryPoints


def rankers() -> Mapping[str, type[Ranker]]:
    """Every known model by name: the built-in ones and those of installed packages (``sdretrieval.rankers``)."""
    _load_entry_points()
    return _at_hand()


def _at_hand() -> dict[str, type[Ranker]]:
    return {model.name: model for model in BUILT_IN} | registered


@lru_cache(maxsize=1)
def _entry_points(where: tuple[str, ...]) -> EntryPoints:
    """Of the packages found ``where`` Python looks: reading what all of them declare takes longer than a ranking."""
    from importlib.metadata import entry_points  # it brings a mail reader, and few names are another package's

    return entry_points(group="sdretrieval.rankers")


def _load_entry_points() -> None:
    for point in _entry_points(tuple(sys.path)):
        if point.name not in _at_hand():
            model = point.load()
            if not (isinstance(model, type) and issubclass(model, Ranker)):
                raise ParameterError(f"the entry point {point.name!r} of sdretrieval.rankers is not a Ranker class")
            registered[point.name] = model


def ranker_class(name: str) -> type[Ranker]:
    """A known model's class. Other packages are asked for names that are not at hand."""
    known = at_hand if name in (at_hand := _at_hand()) else rankers()
    if name not in known:
        near = parameters.nearest(name, known)
        raise ParameterError(f"unknown model {name!r}{near}", remedy=f"One of: {', '.join(known)}.")
    return known[name]


def make_ranker(name: str, settings: Sequence[str] | Mapping[str, Any] = (), *, profile: str | None = None) -> Ranker:
    """A model by name.

    Parameters
    ----------
    name : str
        As ``sdretrieval models`` lists it.
    settings : sequence of str, or mapping
        Parameters of the model: ``["fb_docs=20"]`` or ``{"fb_docs": 20}``.
    profile : str, optional
        ``paper``, ``anserini`` or a file: the values that ``settings`` are set over.

    Returns
    -------
    Ranker
        The model, its parameters checked.

    Examples
    --------
    >>> make_ranker("ql", ["mu=500"]).mu
    500.0
    """
    model = ranker_class(name)
    values = dict(profile_settings(profile, model)) if profile else {}
    values.update(parameters.parse_settings(model, settings))
    return model(**values)
