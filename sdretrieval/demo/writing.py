"""From a plan to a report a person can read: title, paragraphs, sentences."""

from __future__ import annotations

from sdretrieval.demo import prose
from sdretrieval.demo.dice import Dice
from sdretrieval.demo.plan import DAY, DAYS, WEEKDAYS, Cast, Event, Plan

_SECTIONS = tuple(prose.SECTIONS)
_WORDS_PER_SENTENCE = 9.5  # measured


class _Slots(dict[str, str]):
    """What a story keeps calling by the same name; any other slot is filled afresh each time."""

    writer: Writer

    def __missing__(self, slot: str) -> str:
        return self.writer.draw(slot)


def _article(text: str) -> str:
    """“a odd owl” → “an odd owl”. (Plain replacing is six times as fast as one regular expression.)"""
    for vowel in "aeiou":
        text = text.replace(f" a {vowel}", f" an {vowel}").replace(f"A {vowel}", f"An {vowel}")
    return text


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


class Writer:
    """Writes the documents of a world. Call in the order of time with one stream of dice."""

    def __init__(self, dice: Dice, cast: Cast, mean_words: int) -> None:
        self.dice = dice
        self.cast = cast
        self.sentences_per_doc = mean_words / _WORDS_PER_SENTENCE
        self.lists: dict[str, tuple[str, ...] | list[str]] = {
            **prose.WORDS,
            "place": cast.places,
            "person": cast.people,
            "org": cast.organisations,
            "brand": cast.brands,
            "weekday": WEEKDAYS,
        }

    def draw(self, slot: str) -> str:
        """A fresh word for an open slot."""
        u = self.dice.uniform()
        choices = self.lists.get(slot)
        if choices is not None:
            return choices[int(u * u * len(choices))]  # as Dice.skewed, in line: this is the innermost loop
        if slot == "num":
            return str(20 + int(900 * u * u * u))
        if slot == "few":
            return str(2 + int(40 * u))
        if slot == "score":
            return f"{1 + int(4 * u)}-{self.dice.below(3)}"
        raise KeyError(f"no word list for the slot {slot!r}")

    def slots(self, **fixed: str) -> _Slots:
        slots = _Slots(fixed)
        slots.writer = self
        return slots

    def everyday(self) -> _Slots:
        """The people and places of a background story."""
        dice, cast = self.dice, self.cast
        place = dice.skewed(range(len(cast.places)))
        return self.slots(
            p=cast.places[place],
            r=cast.region_of(place),
            o=dice.skewed(cast.organisations),
            n=dice.skewed(cast.people),
            m=dice.pick(cast.people),
            t=dice.skewed(cast.brands),
        )

    def of_event(self, event: Event, plan: Plan) -> _Slots:
        """How this report words the event: later reports use the query's own words less often."""
        dice, story = self.dice, event.story
        plain = 0.0 if plan.oblique else 0.9 - 0.3 * plan.age
        subject, happening, place = (dice.uniform() < plain for _ in range(3))
        return self.slots(
            s=story.subject[0] if subject else dice.pick(story.subject[1:]),
            h=story.happening[0] if happening else dice.pick(story.happening[1:]),
            p=event.place if place else event.nickname,
            r=event.region,
            o=event.organisation,
            n=event.official,
            m=event.second,
            t=event.thing,
        )

    def event_clauses(self, event: Event, age: float, count: int) -> list[str]:
        """Clauses of the phase the event has reached: the first gives way to the second and third."""
        standing = not event.clauses[1]  # it has one phase only
        early, late = (1 - age) * (1 - age), age * age
        chosen: list[str] = []
        for _ in range(2 * count):  # leaves room for drawing a clause twice
            if len(chosen) == count:
                break
            u = self.dice.uniform()
            phase = 0 if u < early else 2 if u >= 1 - late else 1
            own, general = event.clauses[phase], prose.ANY_EVENT[phase]
            if standing:
                own, general = event.clauses[0], prose.ANY_STANDING
            # The first makes the title and should say what happened.
            clause = self.dice.pick(general if chosen and self.dice.uniform() < 0.2 else own)
            if clause not in chosen:
                chosen.append(clause)
        return chosen

    def section(self, plan: Plan) -> str:
        """The section of a background story. Sections have seasons: each peaks once in the year."""
        dice = self.dice
        day = plan.seconds / DAY
        while True:
            k = dice.below(len(_SECTIONS))
            distance = abs(day - k * DAYS / len(_SECTIONS))
            if dice.uniform() < 1 - 1.5 * min(distance, DAYS - distance) / DAYS:
                return _SECTIONS[k]

    def background_clauses(self, plan: Plan, count: int, slots: _Slots) -> list[tuple[str, _Slots]]:
        """Everyday clauses of one section, or of several where a long story needs more than one has."""
        sections: list[str] = []
        clauses: list[str] = []
        while len(clauses) < count and len(sections) < len(_SECTIONS):
            section = self.section(plan)
            if section not in sections:
                sections.append(section)
                clauses += self.dice.some(prose.SECTIONS[section], count - len(clauses))
        return [(clause, slots) for clause in clauses]

    def sentences(self, parts: list[tuple[str, _Slots]]) -> list[str]:
        """Clauses framed as sentences, at times two in one."""
        made = []
        parts = parts[::-1]
        while parts:
            clause, slots = parts.pop()
            frame = self.dice.pick(prose.FRAMES)
            if ("{n}" in frame and "{n}" in clause) or ("{m}" in frame and "{m}" in clause):
                frame = "{c}."  # nobody is quoted on himself
            if "{d}" in frame:
                same_story = bool(parts) and parts[-1][1] is slots
                frame = frame.replace("{d}", parts.pop()[0]) if same_story else "{c}."
            text = frame.replace("{c}", clause)
            made.append(_capital(text.format_map(slots)))
        return made

    def write(self, plan: Plan, event: Event | None) -> tuple[str, str]:
        """Title and body."""
        dice = self.dice
        mean = self.sentences_per_doc
        length = int(min(max(mean * dice.spread(4), 0.55 * mean), 1.8 * mean) + 0.5)
        weekday = WEEKDAYS[plan.seconds // DAY % 7]
        everyday = self.everyday()
        everyday["weekday"] = weekday
        ordinary = self.background_clauses(plan, length, everyday)
        about = everyday
        # The story's clauses with their slots; the first becomes the title.
        parts: list[tuple[str, _Slots]]
        if event is None:
            parts = ordinary[: 1 + 3 * length // 4]
        elif plan.role == "sense":
            parts = [(c, everyday) for c in dice.some(event.story.other_sense, 1 + length // 5)]
            parts += ordinary[: length // 2]
        else:
            about = self.of_event(event, plan)
            about["weekday"] = weekday
            if plan.role == "central":
                parts = [(c, about) for c in self.event_clauses(event, plan.age, 1 + 3 * length // 4)]
            elif plan.role == "partial":
                own = [(c, about) for c in self.event_clauses(event, plan.age, 1 + length // 3)]
                parts = ordinary[:1] + own + ordinary[1 : 1 + length // 3]
            else:  # a passing mention
                about.update(s=event.story.subject[0], h=event.story.happening[0], p=event.place)
                parts = ordinary[: 3 * length // 4]
                parts.insert(1 + dice.below(len(parts)), (dice.pick(prose.MENTIONS), about))
        title = parts[0][0].format_map(parts[0][1])
        sentences = self.sentences(parts[1:])
        speaker = everyday if plan.role == "mention" else about
        remarks: list[str] = []
        while len(sentences) < length:
            remarks = remarks or dice.some(prose.REMARKS, length - len(sentences))
            remark = _capital(remarks.pop().format_map(speaker)) + "."
            sentences.insert(1 + dice.below(len(sentences) + 1), remark)
        paragraphs = []
        while sentences:
            cut = 2 + dice.below(3)
            paragraphs.append(" ".join(sentences[:cut]))
            sentences = sentences[cut:]
        return _article(_capital(title)), _article("\n\n".join(paragraphs))
