"""Named sets of parameter values: ``paper`` (thesis Table 5.3), ``anserini``, ``default``, or a file.

A profile is a JSON object: model name -> {parameter: value}. ``sdretrieval tune`` writes such files. ``default`` is
the models' own defaults; docs/RESULTS.md says how they were chosen.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sdretrieval.core.errors import InputError, ParameterError, shown
from sdretrieval.core.parameters import parse_settings
from sdretrieval.core.safe_json import read_json

if TYPE_CHECKING:
    from sdretrieval.ranking.base import Ranker

SHIPPED = ("default", "paper", "anserini")
_FORM = 'A profile is {"model": {"parameter": value}}.'

# Where a shipped profile is known to be weak, by model: what `python -m benchmarks.results_feedback` found.
_TUNED_ELSEWHERE = (
    "Table 5.3's values were tuned on AP news with 100 feedback documents; on small collections they are weak"
)
WEAK: dict[tuple[str, str], str] = {
    ("paper", "rm"): f"{_TUNED_ELSEWHERE} (MAP on cacm .258, with the defaults .304, and .338 of the paper's ql)",
    ("paper", "sd"): f"{_TUNED_ELSEWHERE} (MAP on cacm .221, with the defaults .317, and .338 of the paper's ql)",
}


def read_profile(name: str) -> dict[str, dict[str, Any]]:
    """A shipped profile by name, or one from a file."""
    if name == "default":
        return {}
    if name in SHIPPED:
        return json.loads(files("sdretrieval.ranking.profiles").joinpath(f"{name}.json").read_text(encoding="utf-8"))
    path = Path(name)
    if not path.is_file():
        raise ParameterError(
            f"no profile {name!r}", remedy=f"One of {', '.join(SHIPPED)}, or the path of a profile file."
        )
    profile = read_json(path, _FORM, constants=True, unique=True)
    for model, settings in profile.items():
        if not isinstance(settings, dict):
            raise InputError(f"{shown(model)} is given {shown(settings)}", file=path, remedy=_FORM)
    return profile


def weakness(name: str | None, model: str) -> str:
    """What to tell whoever uses this profile with this model; nothing for most."""
    return WEAK.get((name or "", model), "")


def profile_settings(name: str, model: type[Ranker]) -> Mapping[str, Any]:
    """What a profile says about one model, checked against the model's parameters."""
    profile = read_profile(name)
    if name in SHIPPED:  # they say nothing about some models: these keep their defaults
        return parse_settings(model, profile.get(model.name, {}))
    if model.name not in profile:
        raise InputError(
            f"nothing about {model.name!r} in this profile", file=name, remedy=f"It is for: {', '.join(profile)}."
        )
    try:
        values = parse_settings(model, profile[model.name])
        model(**values)  # in range?
        return values
    except ParameterError as error:
        raise InputError(error.message, file=name, remedy=error.remedy) from None
