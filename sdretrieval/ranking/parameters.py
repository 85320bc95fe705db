"""Model parameters: keyword dataclass fields that know their paper's symbol, their range and how to be tuned.

A field declared with :func:`parameter` is checked when the model is made, listed by ``sdretrieval models``, set by
``--set name=value`` and searched by ``sdretrieval tune``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields
from typing import Any

import numpy as np

from sdretrieval.errors import ParameterError


@dataclass(frozen=True)
class Domain:
    """Which values a parameter may take, and which are worth trying."""

    help: str
    symbol: str = ""
    low: float = -math.inf
    high: float = math.inf
    open: bool = False  # the bounds themselves are not allowed
    choices: tuple[str, ...] = ()
    grid: tuple = ()  # values for tuning, in order

    def describe(self) -> str:
        if self.choices:
            return " | ".join(self.choices)
        if math.isinf(self.low) and math.isinf(self.high):
            return ""
        if math.isinf(self.high):
            return f"{'>' if self.open else '>='} {self.low:g}"
        left, right = ("(", ")") if self.open else ("[", "]")
        return f"{left}{self.low:g}, {self.high:g}{right}"


def parameter(default: Any, help: str, **domain: Any) -> Any:
    """A dataclass field with a domain: ``fb_docs: int = parameter(100, "feedback documents", symbol="N", low=1)``."""
    return field(default=default, metadata={"domain": Domain(help=help, **domain)})


def weight(default: float, help: str, symbol: str = "", grid: Sequence[float] = (0.1, 0.3, 0.5, 0.7, 0.9)) -> Any:
    """A smoothing or mixing weight strictly between 0 and 1."""
    return parameter(default, help, symbol=symbol, low=0.0, high=1.0, open=True, grid=tuple(grid))


def share(default: float, help: str, symbol: str = "", grid: Sequence[float] = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8)) -> Any:
    """A share in [0, 1], both ends allowed."""
    return parameter(default, help, symbol=symbol, low=0.0, high=1.0, grid=tuple(grid))


def count(default: int, help: str, symbol: str = "", grid: Sequence[int] = (5, 10, 20, 50, 100)) -> Any:
    return parameter(default, help, symbol=symbol, low=1, grid=tuple(grid))


def choice(default: str, help: str, choices: Sequence[str]) -> Any:
    return parameter(default, help, choices=tuple(choices))


def domains(model: Any) -> dict[str, tuple[Field, Domain]]:
    """The declared parameters of a model (class or instance), by name."""
    return {f.name: (f, f.metadata["domain"]) for f in fields(model) if "domain" in f.metadata}


def check(model: Any) -> None:
    """Raise :class:`ParameterError` for the first value outside its domain: name, bound, value received."""
    for name, (f, domain) in domains(model).items():
        value = getattr(model, name)
        if domain.choices:
            if value not in domain.choices:
                raise ParameterError(
                    f"{model.name}: {name} must be one of {', '.join(domain.choices)}; got {value!r}",
                    remedy=f"Pass --set {name}={domain.choices[0]}.",
                )
            continue
        if isinstance(f.default, bool):
            continue
        if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
            raise ParameterError(f"{model.name}: {name} must be a number; got {value!r}")
        if isinstance(f.default, int) and math.isfinite(value):
            if int(value) != value:
                raise ParameterError(f"{model.name}: {name} must be a whole number; got {value!r}")
            object.__setattr__(model, name, int(value))  # 20.0 from a profile, or NumPy's own integers
        inside = domain.low < value < domain.high if domain.open else domain.low <= value <= domain.high
        if not inside or not math.isfinite(value):
            symbol = f" ({domain.symbol})" if domain.symbol else ""
            raise ParameterError(
                f"{model.name}: {name}{symbol} must be in {domain.describe()}; got {value!r}",
                remedy=f"The default is {f.default!r}: --set {name}={f.default}.",
            )


def parse_value(f: Field, text: str) -> Any:
    """The text of ``--set name=value`` as the type of the field's default."""
    default = f.default
    if default is MISSING:
        raise ParameterError(f"{f.name} has no default to take its type from")
    try:
        if isinstance(default, bool):
            return {"true": True, "false": False, "1": True, "0": False, "yes": True, "no": False}[text.lower()]
        if isinstance(default, int):
            return int(text)
        if isinstance(default, float):
            return float(text)
    except (KeyError, ValueError):
        kind = {bool: "true or false", int: "a whole number", float: "a number"}[type(default)]
        raise ParameterError(f"{f.name} must be {kind}; got {text!r}") from None
    return text


def parse_settings(model_class: Any, settings: Sequence[str] | Mapping[str, Any]) -> dict[str, Any]:
    """``["fb_docs=20", …]``, or a mapping from a profile file, to keyword arguments of a model."""
    known = domains(model_class)
    if isinstance(settings, Mapping):
        pairs = [(str(name), value) for name, value in settings.items()]
    else:
        pairs = []
        for setting in settings:
            name, equals, text = setting.partition("=")
            if not equals:
                raise ParameterError(f"--set takes name=value; got {setting!r}")
            pairs.append((name.strip(), text.strip()))
    result = {}
    for name, value in pairs:
        if name not in known:
            raise ParameterError(
                f"{model_class.name} has no parameter {name!r}",
                remedy=f"It has: {', '.join(known) or 'none'}. See `sdretrieval models {model_class.name}`.",
            )
        result[name] = parse_value(known[name][0], value) if isinstance(value, str) else value
    return result
