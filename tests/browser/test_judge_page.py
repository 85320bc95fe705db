"""Judging in a real browser: by keyboard, with undo and two assessors, to qrels and measures of runs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("selenium", reason="selenium is not installed")
from browsing import complaints, contrasts, found, look, one, press, serving, state, text, until
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select

from sdretrieval.collection.trec import read_qrels
from sdretrieval.learn.judging import Project
from sdretrieval.ranking.interactive import Index
from sdretrieval.serve.app import make_app
from sdretrieval.serve.workers import Workers

pytestmark = [pytest.mark.browser, pytest.mark.java]

BAD = "<img src=x onerror=window.hurt=1>"


def documents() -> Iterator[dict[str, str]]:
    """Thirty stories of a flood, among ninety others; the id tells which is which."""
    subjects = {
        "flood": "river flood water dykes rescue boats cellar rain",
        "wine": "wine harvest grapes cellar barrel autumn rain price",
        "rail": "railway strike trains station passengers night price boats",
        "hive": "bees hive honey orchard blossom spring pesticide water",
    }
    for i in range(120):
        name = list(subjects)[i % 4]
        words = subjects[name].split()
        body = " ".join(words[(i // 4 + k * (1 + i % 3)) % len(words)] for k in range(6))
        yield {"id": f"{name}-{i:03d}", "title": f"{name.title()} {i} {BAD}", "contents": f"{body} number{i}. {BAD}"}


@pytest.fixture(scope="module")
def index(tmp_path_factory) -> Index:
    folder: Path = tmp_path_factory.mktemp("judge")
    (folder / "docs.jsonl").write_text("".join(json.dumps(document) + "\n" for document in documents()))
    return Index.build(folder / "docs.jsonl", folder / "stories")


@pytest.fixture(scope="module")
def address(index) -> Iterator[str]:
    with serving(make_app([index], workers=Workers(seconds=300))) as address:  # compiling takes its time
        yield address


@pytest.fixture
def page(browser, address):
    look(browser)
    browser.get(address)
    browser.execute_script("localStorage.clear()")
    yield browser
    assert complaints(browser) == []
    assert browser.execute_script("return window.hurt") is None


def begin(page, address: str, project: str, topic: str = "river flood", who: str = "ann") -> None:
    """A new project with one topic, typed."""
    page.get(f"{address}judge?project={project}&who={who}")
    until(page, lambda: found(page, "#first-topic"))
    one(page, "#first-topic").send_keys(topic + Keys.ENTER)
    settled(page)


def settled(page) -> None:
    """A document is there, and all that is told beside it."""
    until(page, lambda: found(page, "#document .docid") and not found(page, "body[aria-busy]"))
    still(page)


def still(page) -> None:
    """All that stands beside the document is told, so that nothing is drawn under one's hands."""
    until(page, lambda: text(one(page, "#agreement")) and not found(page, "[aria-busy]"))


def choose(page, selector: str, value: str) -> None:
    still(page)
    Select(one(page, selector)).select_by_value(value)


def docid(page) -> str:
    return text(one(page, "#document .docid"))


def judged(page, *keys: str) -> str:
    """Strike keys, wait for another document or count, and tell which was judged."""
    was, said = docid(page), text(one(page, "#progress h2"))
    press(page, *keys)
    until(page, lambda: (docid(page), text(one(page, "#progress h2"))) != (was, said))
    return was


def by_hand(page, count: int) -> dict[str, int]:
    """Judge as somebody would who looks for floods."""
    clicks = {}
    for _ in range(count):
        grade = int(docid(page).startswith("flood"))
        clicks[judged(page, "y" if grade else "n")] = grade
    return clicks


def test_twenty_documents_by_keyboard_are_in_the_journal(page, address, index):
    begin(page, address, "keys")
    assert "river flood" in text(one(page, "#document .asked"))
    clicks = by_hand(page, 20)
    assert len(clicks) == 20
    assert dict(Project(index, "keys").qrels("ann")["1"]) == clicks
    assert sum(clicks.values()) >= 15  # the learner finds them: a quarter of the collection is of floods
    settled(page)
    until(page, lambda: "20 judged" in text(one(page, "#progress")))
    assert "recall is at least" in text(one(page, "#stopping"))
    assert {"flood", "river"} & {text(word) for word in found(page, "#learnt .chip")}


def test_undo_brings_the_document_back_and_takes_the_judgment_away(page, address, index):
    begin(page, address, "undo")
    first = judged(page, "y")
    second = judged(page, "2")
    assert Project(index, "undo").qrels()["1"] == {first: 1, second: 2}
    assert judged(page, "u") != second
    assert docid(page) == second
    assert found(page, ".grade[data-grade='2'][aria-pressed=true]")
    assert Project(index, "undo").qrels()["1"] == {first: 1}
    judged(page, "s")
    assert Project(index, "undo").qrels()["1"] == {first: 1}
    assert [click.grade for click in Project(index, "undo").judgments("1")] == [1, None]


def test_a_note_is_kept_and_a_judgment_can_be_opened_again(page, address, index):
    begin(page, address, "notes")
    press(page, "e")
    one(page, "#note").send_keys("y doubtful", Keys.ENTER)  # letters typed in a note judge nothing
    first = judged(page, "n")
    (click,) = Project(index, "notes").judgments()
    assert (click.docid, click.grade, click.note) == (first, 0, "y doubtful")
    one(page, "#last .title").click()
    until(page, lambda: docid(page) == first)
    assert one(page, "#note").get_property("value") == "y doubtful"
    judged(page, "y")
    (click,) = Project(index, "notes").judgments()
    assert click.grade == 1


def test_two_assessors_agree_where_they_do(page, address, index):
    begin(page, address, "pair")
    clicks = by_hand(page, 8)
    page.get(f"{address}judge?project=pair&who=bob&way=second")
    settled(page)
    parted = docid(page)
    judged(page, "n" if clicks[parted] else "y")
    for _ in range(6):
        judged(page, "y" if clicks[docid(page)] else "n")
    press(page, "y" if clicks[docid(page)] else "n")
    until(page, lambda: "Nothing is left" in text(one(page, "#document")))
    until(page, lambda: found(page, "#other option[value=ann]") or page.refresh())
    choose(page, "#other", "ann")
    until(page, lambda: "8 documents judged by both, 88 % alike" in text(one(page, "#agreement")))
    until(page, lambda: sorted(text(grade) for grade in found(page, "#parting li .given")) == ["0", "1"])
    assert state(page)["other"] == "ann"
    kappa = Project(index, "pair").agreement("bob", "ann").kappa
    assert f"κ {kappa:.2f}".replace("-", "−") in text(one(page, "#kappa"))


def test_pools_export_and_two_runs_with_bounds(page, address, index, tmp_path):
    begin(page, address, "pools")
    press(page, "f")
    models = Select(one(page, "#files select[name=models]"))
    models.deselect_all()
    models.select_by_visible_text("bm25")
    models.select_by_visible_text("sd")
    one(page, "#files input[name=depth]").clear()
    one(page, "#files input[name=depth]").send_keys("20")
    one(page, "#files form:nth-of-type(2) button").click()
    until(page, lambda: len(found(page, "#measured tbody tr")) == 2)
    choose(page, "#way", "pool")
    settled(page)
    wide = bounds(page)
    by_hand(page, 5)
    settled(page)
    until(page, lambda: bounds(page) != wide)
    for (low, high), (before_low, before_high) in zip(bounds(page), wide, strict=True):
        assert before_low <= low <= high <= before_high
    choose(page, "[data-key=first]", "bm25")
    choose(page, "[data-key=second]", "sd")
    until(page, lambda: "is better than" in text(one(page, "#measured")))
    fetched = "return fetch('/v1/stories/judging/pools/export').then((answer) => answer.text())"
    (tmp_path / "qrels.txt").write_text(page.execute_script(fetched))
    assert read_qrels(tmp_path / "qrels.txt") == Project(index, "pools").qrels()


def bounds(page) -> list[tuple[float, float]]:
    script = "return [...document.querySelectorAll('#measured td')].map((e) => [+e.dataset.low, +e.dataset.high])"
    return [tuple(pair) for pair in page.execute_script(script)]


def test_a_problem_is_told_with_its_remedy(page, address):
    page.get(f"{address}judge?project=no%20such")
    until(page, lambda: "cannot be the name of a project" in text(one(page, "#alert")))
    page.get_log("browser")  # the browser tells of the answer 400 too


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [1280, 390])
def test_it_can_be_read_in_light_dark_and_narrow(page, address, dark, width):
    begin(page, address, f"looks-{dark}-{width}")
    look(page, dark=dark, width=width)
    settled(page)
    assert page.execute_script("return document.documentElement.scrollWidth") <= width
    weak = contrasts(page, [".grade.yes", ".grade.no", ".sentence", ".because", "#document .text"])
    assert {name: value for name, value in weak.items() if value < 4.5} == {}
