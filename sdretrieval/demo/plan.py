"""What happens in the demo's year, before a word of it is written: events, topics, and who reports what when.

Every topic has one event (or one standing story) of its own. There are three kinds of topic:

- ``breaking``: asked while the event is still in the news. An older event of the same kind, elsewhere, was
  reported with the same words: time tells the two apart.
- ``retrospective``: asked weeks after the event has faded. A rival event of the same kind was in the news
  in the same days, so that time does not tell those two apart; the burst itself can be found, recency cannot
  help.
- ``standing``: a story reported evenly through the year: time says nothing.

Documents are judged by the event they were generated from: 2 where it is what the report is about, 1 where
the report is half about something else, 0 for the misleading ones: the older or rival event, the query's
words in another sense, passing mentions, and whatever was published at or after the time of the query.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import cycle
from math import sqrt
from typing import NamedTuple

from sdretrieval.demo import prose
from sdretrieval.demo.dice import Dice
from sdretrieval.demo.prose import Story

DAYS = 365
DAY = 86_400  # seconds
KINDS = ("breaking", "retrospective", "standing") * 3 + ("breaking",)
WEEKDAYS = ("Saturday", "Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday")  # from day 0
_WEEKDAY_SHARE = (0.5, 0.4, 0.9, 1.0, 1.0, 1.0, 0.9)

# Reports of an event: its quantile u of the burst falls scale * sqrt(u / (1 - u)) days after the start (a
# log-logistic law: a quick rise, a peak, a long tail). The tail is cut here:
_LAST_QUANTILE = 0.97
_BURST_LENGTH = sqrt(_LAST_QUANTILE / (1 - _LAST_QUANTILE))  # in units of the scale, 5.7


class Cast:
    """The invented names of the demo's world; their number grows as the square root of the collection."""

    def __init__(self, n_docs: int) -> None:
        root = sqrt(n_docs)
        self.places = prose.names("place", int(6 * root))
        self.regions = prose.names("region", max(12, len(self.places) // 8))
        self.people = prose.names("person", int(30 * root))
        self.brands = prose.names("brand", int(12 * root))
        stems = prose.names("org", int(12 * root))
        self.organisations = [
            f"{stem} {kind}" for stem, kind in zip(stems, cycle(prose.ORGANISATION_KINDS), strict=False)
        ]

    def region_of(self, place: int) -> str:
        return self.regions[place % len(self.regions)]


@dataclass(frozen=True)
class Event:
    """One event: its names, its share of the clauses of its kind, and what its town is called unnamed."""

    story: Story
    clauses: tuple[tuple[str, ...], ...]
    place: str
    region: str
    nickname: str
    organisation: str
    official: str
    second: str
    thing: str


class Plan(NamedTuple):
    """One document to be written. Sorts by time, then by the order of planning."""

    seconds: int  # since the start of the year
    order: int
    role: str  # central, partial, sense, mention, background
    event: int  # index, -1 for background
    age: float  # 0 at the start of the event, 1 at its end: sets the vocabulary
    oblique: bool  # avoids every word of the query


@dataclass
class PlannedTopic:
    kind: str
    query: str
    description: str
    event: int
    seconds: int = 0
    misleading: list[int] = field(default_factory=list)  # `order` of documents judged 0
    everywhere: bool = False  # answered by every event of the same story


class World:
    """Every event, topic and document of the year; ``plans`` are in order of time."""

    def __init__(self, dice: Dice, n_docs: int, n_topics: int) -> None:
        self.dice = dice
        self.cast = Cast(n_docs)
        self.events: list[Event] = []
        self.topics: list[PlannedTopic] = []
        self.plans: list[Plan] = []
        self.taken: set[int] = set()
        add = {"breaking": self.breaking, "retrospective": self.retrospective, "standing": self.standing}
        used = dict.fromkeys(add, 0)
        for number, size in enumerate(self.sizes(n_docs, n_topics)):
            kind = KINDS[number % len(KINDS)]
            stories = prose.STANDING if kind == "standing" else prose.EVENTS
            # Retrospective topics begin half-way down the list, away from the breaking ones.
            place = used[kind] + (len(stories) // 2 if kind == "retrospective" else 0)
            add[kind](stories[place % len(stories)], used[kind] // len(stories), size)
            used[kind] += 1
        while len(self.plans) < n_docs:
            self.add(self.anytime(), "background", -1)
        self.plans.sort()

    def sizes(self, n_docs: int, n_topics: int) -> list[int]:
        """Relevant documents per topic: a third of the collection in the standard demo; their number grows
        slowly once the collection is larger."""
        per_topic = n_docs / n_topics
        mean = per_topic / 3 if per_topic <= 60 else 20 * sqrt(sqrt(per_topic / 60))
        spread = [self.dice.spread(3) for _ in range(n_topics)]
        # A topic takes at most 2.2 times its relevant documents; a fifth of the collection stays background.
        limit = 0.8 * n_docs / (2.2 * sum(spread))
        return [max(6, int(min(mean, limit) * factor)) for factor in spread]

    def add(self, day: float, role: str, event: int, age: float = 0.0, oblique: bool = False) -> int:
        seconds = min(max(int(day * DAY), 0), DAYS * DAY - 1)
        self.plans.append(Plan(seconds, len(self.plans), role, event, age, oblique))
        return len(self.plans) - 1

    def new_event(self, story: Story) -> int:
        dice, cast = self.dice, self.cast
        place = dice.below(len(cast.places))
        while place in self.taken and len(self.taken) < len(cast.places):
            place = dice.below(len(cast.places))
        self.taken.add(place)
        official, second = dice.some(cast.people, 2)
        self.events.append(
            Event(
                story=story,
                clauses=tuple(tuple(dice.some(phase, len(phase) * 3 // 4)) for phase in story.phases),
                place=cast.places[place],
                region=cast.region_of(place),
                nickname=dice.pick(prose.NICKNAMES),
                organisation=dice.pick(cast.organisations),
                official=official,
                second=second,
                thing=dice.pick(cast.brands),
            )
        )
        return len(self.events) - 1

    def burst(self, event: int, size: int, start: float, scale: float) -> list[int]:
        """Reports of an event from its first day until it fades."""
        ages = sorted(self.dice.uniform() for _ in range(size))
        quantiles = [_LAST_QUANTILE * age for age in ages]
        days = [start + scale * sqrt(u / (1 - u)) for u in quantiles]
        return [self.report(day, event, age, i) for i, (day, age) in enumerate(zip(days, ages, strict=True))]

    def report(self, day: float, event: int, age: float, number: int) -> int:
        """One document on the event. Every fifth avoids the query's words altogether."""
        role = "central" if self.dice.uniform() < 0.6 else "partial"
        return self.add(day, role, event, age, oblique=number % 5 == 4)

    def anytime(self) -> float:
        """A moment of the year: fewer stories at weekends, most around midday."""
        while True:
            day = self.dice.below(DAYS)
            if self.dice.uniform() < _WEEKDAY_SHARE[day % 7]:
                return day + 0.2 + 0.37 * (self.dice.uniform() + self.dice.uniform())

    def noise(self, topic: PlannedTopic, senses: int, mentions: int, first: float = 0, last: float = DAYS) -> None:
        """Documents with the query's words that are about something else, any time between two days."""
        for role, count in (("sense", senses), ("mention", mentions)):
            for _ in range(count):
                topic.misleading.append(self.add(self.dice.between(first, last), role, topic.event))

    def breaking(self, story: Story, use: int, size: int) -> None:
        dice, event = self.dice, self.new_event(story)
        text = f"The {story.query} at {self.events[event].place} that is in the news at the time of the query."
        topic = self.topic("breaking", self.wording(event, use), text, event)
        start = dice.between(110, 315)
        orders = self.burst(event, size + max(2, size // 5), start, dice.between(2, 7))
        # Asked some hours after the last report that the asker may know, and before the event is over.
        last = min(int(len(orders) * dice.between(0.75, 0.92)), len(orders) - 2)
        asked = self.plans[orders[last]].seconds + 3600 + dice.below(5 * 3600)
        topic.seconds = min(asked, self.plans[orders[-1]].seconds)
        older = self.new_event(story)
        topic.misleading += self.burst(older, size * 7 // 10, dice.between(5, start - 70), dice.between(2, 7))
        self.noise(topic, size // 5, size // 10)

    def retrospective(self, story: Story, use: int, size: int) -> None:
        dice, event = self.dice, self.new_event(story)
        place = self.events[event].place
        wording = (story.subject[0], story.happening[0], story.query)[len(self.topics) % 3]
        text = f"The {story.query} at {place}: what happened and what came of it."
        topic = self.topic("retrospective", f"{place} {wording}", text, event)
        start, scale = dice.between(20, 250), dice.between(3, 9)
        self.burst(event, size, start, scale)
        asked = start + scale * _BURST_LENGTH + dice.between(10, 45)
        topic.seconds = int(asked * DAY)
        for i in range(max(1, size // 8)):
            self.report(dice.between(asked, DAYS), event, 1.0, i)
        rival = self.new_event(story)
        rival_start = max(0.0, start + dice.between(-10, 10))
        topic.misleading += self.burst(rival, size // 2, rival_start, dice.between(3, 9))
        self.noise(topic, size // 5, size // 10)

    def standing(self, story: Story, use: int, size: int) -> None:
        dice, event = self.dice, self.new_event(story)
        text = f"News about {story.query}" + ("." if use == 0 else f" in {self.events[event].region}.")
        topic = self.topic("standing", self.wording(event, use), text, event)
        topic.everywhere = use == 0
        asked, span = dice.between(250, 350), dice.between(150, 240)
        topic.seconds = int(asked * DAY)
        for i in range(size):
            self.report(dice.between(asked - span, asked), event, dice.uniform(), i)
        for i in range(max(1, size // 10)):
            self.report(dice.between(asked, asked + 12), event, dice.uniform(), i)
        # In the same months, so that time does not give them away.
        self.noise(topic, size * 3 // 10, size * 3 // 20, asked - span, asked)

    def topic(self, kind: str, query: str, description: str, event: int) -> PlannedTopic:
        self.topics.append(PlannedTopic(kind, query, description, event))
        return self.topics[-1]

    def wording(self, event: int, use: int) -> str:
        """The query; where the story was used before, it names the region."""
        story, region = self.events[event].story, self.events[event].region
        return story.query if use == 0 else f"{region} {story.query}"
