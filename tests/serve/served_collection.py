"""A tiny dated collection; the same one with other documents after a ceiling."""

from __future__ import annotations

import json
import random
from pathlib import Path

from sdretrieval import Index

CEILING = "2024-07-01"
HOSTILE = '<img src=x onerror=alert(1)> \x1b[31mred\x1b[0m </script> harbour "quoted" & \u202eflow'
SUBJECTS = {
    "flood": "storm flood harbour ferry rescuers pumped cellars port water tide",
    "bees": "bees dying orchards pesticides beekeepers hives pollinators sprayed ban honey",
    "trains": "night trains sleeper carriages railway coast travellers capital summer tickets",
    "comet": "comet telescope tail astronomers ice dust observatory dome spectrometer orbit",
}


def records(seed: int, count: int, first: int, month: tuple[int, int], extra: str = "") -> list[dict]:
    """Documents of mixed subjects in some months; ``extra`` words are in each."""
    dice, made = random.Random(seed), []
    for number in range(first, first + count):
        name = dice.choice(sorted(SUBJECTS))
        words = dice.choices(SUBJECTS[name].split(), k=12) + dice.choices("the city said today people".split(), k=4)
        dice.shuffle(words)
        date = f"2024-{dice.randint(*month):02d}-{dice.randint(1, 28):02d}"
        text = f"About {name} {number}\n\n{' '.join(words)} {extra}."
        made.append({"id": f"doc{number:03d}", "title": f"About {name} {number}", "contents": text, "date": date})
    return made


PAST = [
    *records(1, 40, 100, (1, 6)),
    {"id": "hostile", "title": HOSTILE, "contents": f"{HOSTILE}\n\nharbour storm flood", "date": "2024-03-03"},
]
LATER = records(2, 15, 200, (7, 12))
OTHER_LATER = [
    *records(3, 25, 300, (7, 12), extra="storm flood zeppelin zeppelin"),
    {"id": "aaa-first", "title": "undated", "contents": "storm flood harbour of no date"},
]


def write_index(folder: Path, documents: list[dict]) -> Path:
    """An index of the name ``tiny``, whatever is in it."""
    source = folder / "documents.jsonl"
    source.write_text("".join(json.dumps(document) + "\n" for document in documents))
    Index.build(source, folder / "tiny", date="date")
    return folder / "tiny"
