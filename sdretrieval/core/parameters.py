"""Parameters of rankers, classifiers, trackers and estimators: one declaration says all there is to know of each.

A :class:`Domain` knows a parameter's meaning, its symbol in the paper, its default, the values it may take, those worth
trying, and how its text is read. A dataclass field declared with :func:`parameter` carries one; it is checked when the
model is made, listed by ``sdretrieval models``, set by ``--set name=value`` and searched by ``sdretrieval tune``.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import Field, dataclass, field, fields
from typing import Any

import numpy as np

from sdretrieval.core.errors import ParameterError

_TRUE, _FALSE = ("true", "yes", "on", "1"), ("false", "no", "off", "0")
_WANTED = {
    "number": "a number",
    "whole": "a whole number",
    "flag": "true or false",
    "duration": "a length of time such as 12h, 30d or inf",
    "text": "text",
}


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
    infinite: bool = False  # inf is allowed
    kind: str = ""  # number, whole, flag, text or duration (in milliseconds); otherwise that of the default
    words: tuple[str, ...] = ()  # what may stand in the place of a number: auto; none, which is None
    default: Any = None

    def __post_init__(self) -> None:
        if not self.kind:
            kinds = {bool: "flag", int: "whole", str: "text"}
            kind = "text" if self.choices else kinds.get(type(self.default), "number")
            object.__setattr__(self, "kind", kind)

    def describe(self) -> str:
        if self.choices:
            return " | ".join(self.choices)
        if math.isinf(self.low) and math.isinf(self.high):
            return ""
        if math.isinf(self.high):
            return f"{'>' if self.open else '>='} {self.low:g}"
        left, right = ("(", ")") if self.open else ("[", "]")
        return f"{left}{self.low:g}, {self.high:g}{right}"

    def read(self, text: str, name: str) -> Any:
        """The value that a text stands for; ParameterError where it stands for none of this kind."""
        word = text.strip().lower()
        if word in self.words:
            return None if word == "none" else word
        try:
            if self.kind == "duration":
                from sdretrieval.core.timeline import parse_duration  # it needs scipy, which most models do not

                return parse_duration(word)
            if self.kind == "flag":
                return (_FALSE + _TRUE).index(word) >= len(_FALSE)
            if self.kind == "text":
                return word if word in self.choices else text.strip()
            return int(word) if self.kind == "whole" else float(word)
        except ValueError:
            raise ParameterError(
                f"{name} must be {self._wanted(self.kind)}; got {text!r}", remedy=self._default()
            ) from None

    def check(self, value: Any, name: str, owner: str = "") -> Any:
        """The value, a whole number as ``int``; ParameterError with owner, name, bound and value where it is bad."""
        place = f"{owner}: {name}" if owner else name
        if self.choices:
            if value not in self.choices:
                raise ParameterError(f"{place} must be one of {', '.join(self.choices)}; got {value!r}")
        elif self.kind == "text":
            if not isinstance(value, str):
                raise ParameterError(f"{place} must be text; got {value!r}")
        elif self.kind != "flag" and not self._is_word(value):
            return self._number(value, name, place)
        return value

    def _number(self, value: Any, name: str, place: str) -> Any:
        if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
            raise ParameterError(f"{place} must be {self._wanted('number')}; got {value!r}")
        if self.infinite and value == math.inf:
            return value
        if self.kind == "whole" and math.isfinite(value):
            if int(value) != value:
                raise ParameterError(f"{place} must be a whole number; got {value!r}")
            value = int(value)  # 20.0 from a profile, or NumPy's own integers
        inside = self.low < value < self.high if self.open else self.low <= value <= self.high
        if not inside or not math.isfinite(value):
            symbol = f" ({self.symbol})" if self.symbol else ""
            raise ParameterError(f"{place}{symbol} must be {self._bound(value)}; got {value!r}", remedy=self._default())
        return value

    def _is_word(self, value: Any) -> bool:
        return (value is None and "none" in self.words) or (isinstance(value, str) and value in self.words)

    def _bound(self, value: Any) -> str:
        """The range in words; that it is finite only where that was the fault."""
        if math.isfinite(self.high):
            return f"in {self.describe()}"
        finite = " and finite" if math.isinf(value) else ""
        if self.low == 0:
            return ("positive" if self.open else "zero or positive") + finite
        if math.isinf(self.low):
            return "a finite number"
        return (f"more than {self.low:g}" if self.open else f"{self.low:g} or more") + finite

    def _wanted(self, kind: str) -> str:
        return " or ".join([_WANTED[kind], *self.words])

    def _default(self) -> str | None:
        if self.default is None and "none" not in self.words:
            return None
        return f"The default is {show(self.default)}."


def show(value: Any) -> str:
    """A value as ``--set`` takes it."""
    return str(value).lower() if value is None or isinstance(value, bool) else str(value)


def parameter(default: Any, help: str, **domain: Any) -> Any:
    """A dataclass field with a domain: ``fb_docs: int = parameter(100, "feedback documents", symbol="N", low=1)``."""
    return field(default=default, metadata={"domain": Domain(help=help, default=default, **domain)})


def weight(default: float, help: str, symbol: str = "", grid: Sequence[float] = (0.1, 0.3, 0.5, 0.7, 0.9)) -> Any:
    """A smoothing or mixing weight strictly between 0 and 1."""
    return parameter(default, help, symbol=symbol, low=0.0, high=1.0, open=True, grid=tuple(grid))


def share(default: float, help: str, symbol: str = "", grid: Sequence[float] = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8)) -> Any:
    """A share in [0, 1], both ends allowed."""
    return parameter(default, help, symbol=symbol, low=0.0, high=1.0, grid=tuple(grid))


def count(default: int, help: str, symbol: str = "", grid: Sequence[int] = (5, 10, 20, 50, 100)) -> Any:
    return parameter(default, help, symbol=symbol, low=1, grid=tuple(grid))


def positive(default: float | str | None, help: str, symbol: str = "", **domain: Any) -> Any:
    """A finite number above zero."""
    return parameter(default, help, symbol=symbol, low=0.0, open=True, **domain)


def duration(default: float | str | None, help: str, **domain: Any) -> Any:
    """A length of time above zero, in milliseconds; inf is allowed."""
    return positive(default, help, kind="duration", infinite=True, **domain)


def choice(default: str, help: str, choices: Sequence[str]) -> Any:
    return parameter(default, help, choices=tuple(choices))


def domains(model: Any) -> dict[str, tuple[Field, Domain]]:
    """The declared parameters of a model (class or instance), by name."""
    return {f.name: (f, f.metadata["domain"]) for f in fields(model) if "domain" in f.metadata}


def check(model: Any, owner: str = "") -> None:
    """Raise :class:`ParameterError` for the first value outside its domain: name, bound, value received."""
    for name, (_, domain) in domains(model).items():
        value = getattr(model, name)
        checked = domain.check(value, name, owner or model.name)
        if checked is not value:
            object.__setattr__(model, name, checked)


def parse_settings(model_class: Any, settings: Iterable[str] | Mapping[str, Any]) -> dict[str, Any]:
    """``["fb_docs=20", …]``, or a mapping from a profile file, to keyword arguments of a model."""
    known = {name: domain for name, (_, domain) in domains(model_class).items()}
    return read_settings(model_class.name, known, settings, see=f"sdretrieval models {model_class.name}")


def nearest(name: str, known: Iterable[str]) -> str:
    """Of the names that are known the one that is perhaps meant: the end of a message."""
    close = difflib.get_close_matches(name, known, 1)
    return f"; did you mean {close[0]!r}?" if close else ""


def read_settings(
    owner: str, known: Mapping[str, Domain], settings: Iterable[str] | Mapping[str, Any], *, see: str
) -> dict[str, Any]:
    """Settings of ``owner`` by name, texts as the values they stand for; ``see`` is the command that lists them."""
    values = {}
    for name, value in setting_pairs(settings):
        if name not in known:
            raise ParameterError(
                f"{owner} has no parameter {name!r}{nearest(name, known)}",
                remedy=f"It has: {', '.join(known) or 'none'}. See `{see}`.",
            )
        values[name] = known[name].read(value, name) if isinstance(value, str) else value
    return values


def setting_pairs(settings: Iterable[str] | Mapping[str, Any]) -> list[tuple[str, Any]]:
    """(name, value) of each setting, values still as they were given."""
    if isinstance(settings, Mapping):
        return [(str(name), value) for name, value in settings.items()]
    pairs = []
    for setting in settings:
        name, equals, text = setting.partition("=")
        if not equals:
            raise ParameterError(f"--set takes name=value; got {setting!r}")
        pairs.append((name.strip(), text.strip()))
    return pairs
