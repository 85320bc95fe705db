"""The demo's prose, from the files in text/: stories, everyday clauses, word lists; and invented names.

All of it was written for this project; nothing is taken from a collection and nobody real is named. The files are INI
files: ``|`` parts the clauses of a value, spaces part the words of a list. events.ini says what the slots mean.
"""

from __future__ import annotations

from configparser import ConfigParser, SectionProxy
from dataclasses import dataclass
from importlib.resources import files

PHASES = ("first", "then", "after")


@dataclass(frozen=True)
class Story:
    """A kind of event, or a standing story (whose clauses all stand in the first phase)."""

    subject: tuple[str, ...]
    happening: tuple[str, ...]
    phases: tuple[tuple[str, ...], ...]
    other_sense: tuple[str, ...]

    @property
    def query(self) -> str:
        return f"{self.subject[0]} {self.happening[0]}"


def _read(name: str) -> ConfigParser:
    parser = ConfigParser(delimiters=(":",), comment_prefixes=("#",), interpolation=None)
    parser.read_string((files("sdretrieval.demo") / "text" / name).read_text(encoding="utf-8"))
    return parser


def _clauses(section: SectionProxy, key: str) -> tuple[str, ...]:
    text = section.get(key, "")
    return tuple(" ".join(clause.split()) for clause in text.split("|")) if text else ()


def _words(section: SectionProxy) -> dict[str, tuple[str, ...]]:
    return {key: tuple(text.split()) for key, text in section.items()}


def _stories(name: str) -> tuple[Story, ...]:
    parser = _read(name)
    return tuple(
        Story(
            subject=_clauses(story, "subject"),
            happening=_clauses(story, "happening"),
            phases=tuple(_clauses(story, phase) for phase in PHASES),
            other_sense=_clauses(story, "other"),
        )
        for story in map(parser.__getitem__, parser.sections())
    )


EVENTS = _stories("events.ini")
STANDING = _stories("standing.ini")

_everyday = _read("everyday.ini")
SECTIONS = {name: _clauses(_everyday["sections"], name) for name in _everyday["sections"]}
ANY_EVENT = tuple(_clauses(_everyday["clauses"], f"any event, {phase}") for phase in PHASES)
ANY_STANDING = _clauses(_everyday["clauses"], "any standing")
REMARKS = _clauses(_everyday["clauses"], "remarks")
MENTIONS = _clauses(_everyday["clauses"], "mentions")
FRAMES = ("{c}.",) * 10 + _clauses(_everyday["clauses"], "frames")

_lists = _read("words.ini")
WORDS = _words(_lists["words"])
NICKNAMES = tuple(f"the {kind} town" for kind in _lists["kinds"]["towns"].split())
ORGANISATION_KINDS = tuple(_lists["kinds"]["organisations"].split())
_OPENINGS, _MIDDLES = _words(_lists["syllables"]).values()
_ENDINGS = _words(_lists["endings"])


def names(kind: str, count: int) -> list[str]:
    """The first ``count`` invented names of a kind, which is one of words.ini's endings (all, if there are fewer).

    No dice: name number i is spelled from the digits of i scrambled by a fixed multiplier, so that a larger
    collection knows every name of a smaller one, and neighbours do not look alike.
    """
    endings = _ENDINGS[kind]
    size = len(_OPENINGS) * len(_MIDDLES) * len(endings)
    start = list(_ENDINGS).index(kind) * 7919  # kinds begin elsewhere, so that the first names share no stem
    made = []
    for number in range(min(count, size)):
        # The multiplier is prime and larger than any factor of `size`, so this walks through all spellings.
        code = (number * 1_000_003 + start) % size
        code, first = divmod(code, len(_OPENINGS))
        last, middle = divmod(code, len(_MIDDLES))
        made.append(_OPENINGS[first] + _MIDDLES[middle] + endings[last])
    return made
