"""Judging by keys at a terminal: a document at a time, a key for each judgment."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sdretrieval.cli.hit_list import BOLD, DIM, PLAIN, YELLOW, has_colours, in_one_line
from sdretrieval.learn.judging import Offer, Project

KEYS = "y relevant · n not · 0-9 grade · s skip · u undo · t note · w words learnt · r recall · q quit"
LONGEST = 3000  # characters of a text that are shown


def judge_by_keys(project: Project, topic: str | None, who: str, way: str) -> None:
    """Until q, or until nothing is left."""
    screen, note = getattr(sys.stdout, "unfiltered", sys.stdout), ""
    with _single_keys() as key:
        while (offer := project.next(topic, who, way)) is not None:
            print("\n".join(_page(project, offer, who, note)), file=screen, flush=True)
            pressed = key()
            if pressed in ("q", "\x03", "\x04", ""):
                break
            if pressed == "t":
                note = input("note: ")
                continue
            if pressed in "yn" or pressed.isdecimal():
                grade = {"y": project.rel, "n": 0}.get(pressed)
                project.judge(offer.qid, offer.docid, int(pressed) if grade is None else grade, who, note=note, way=way)
            elif pressed == "s":
                project.judge(offer.qid, offer.docid, None, who, note=note, way=way)
            else:
                print(_told(project, offer, who, pressed), file=screen, flush=True)
                continue
            note = ""
        else:
            print("nothing is left to judge", file=screen)
    print(f"{len(project.judgments(who=who))} judged by {who}: {project.folder}", file=screen)


def _told(project: Project, offer: Offer, who: str, pressed: str) -> str:
    if pressed == "u":
        click = project.undo(who)
        return "nothing to take back" if click is None else f"taken back: {in_one_line(click.docid)}"
    if pressed == "w":
        return "relevant documents speak of: " + ", ".join(in_one_line(word) for word, _ in project.words(offer.qid))
    if pressed == "r":
        return str(project.recall(offer.qid))
    return KEYS


def _page(project: Project, offer: Offer, who: str, note: str) -> Iterator[str]:
    """A document as lines: the topic, the title, the text with the words that speak for it marked."""
    bold, dim, mark, plain = (BOLD, DIM, YELLOW, PLAIN) if has_colours() else ("", "", "", "")
    document, width = project.index.doc(offer.docid), min(shutil.get_terminal_size().columns, 100)
    topic = project.state(offer.qid).topic
    done = project.judgments(offer.qid)
    found = sum(click.grade is not None and click.grade >= project.rel for click in done)
    yield f"\n{dim}{'─' * width}{plain}"
    so_far = f"{len(done)} judged, {found} relevant, {offer.left} left"
    yield f"{dim}{in_one_line(topic.qid)} {in_one_line(topic.text)} — {so_far}{plain}"
    yield f"{bold}{in_one_line(document.title) or in_one_line(document.docid)}{plain}"
    yield f"{dim}{in_one_line(document.docid)}  {'undated' if document.date is None else document.date[:10]}{plain}"
    wanted = {word for word, weight in offer.words if weight > 0}
    text = document.body[:LONGEST]
    for line in textwrap.wrap(" ".join(in_one_line(text).split()), width, break_long_words=False):
        spans = [(word.start, word.end) for word in project.index.marker.found(line, wanted)] if wanted else []
        for start, end in reversed(spans):
            line = f"{line[:start]}{mark}{line[start:end]}{plain}{line[end:]}"
        yield line
    yield f"{dim}{KEYS}{plain}" + (f"\nnote: {in_one_line(note)}" if note else "")


@contextmanager
def _single_keys() -> Iterator[Any]:
    """A function that waits for one key, without Enter where the terminal can."""
    try:
        import termios
        import tty
    except ImportError:  # Windows: a line each
        yield lambda: sys.stdin.readline().strip()[:1]
        return
    number = sys.stdin.fileno()
    before = termios.tcgetattr(number)

    def key() -> str:
        tty.setcbreak(number)
        try:
            return sys.stdin.read(1)
        finally:
            termios.tcsetattr(number, termios.TCSADRAIN, before)  # so that a note is typed as usual

    yield key
