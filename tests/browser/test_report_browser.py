"""The report in a real browser: quiet console, working controls, and no life in hostile text."""

from __future__ import annotations

import re

import numpy as np
import pytest

from sdretrieval.collection.records import Qrels, Ranking, Run, Topic
from sdretrieval.evaluate import evaluate
from sdretrieval.evaluate.inputs import NamedRun
from sdretrieval.evaluate.report import gather, write_html

pytest.importorskip("selenium", reason="selenium is not installed")
from browsing import complaints, contrasts, focused, found, look, one, text
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

pytestmark = pytest.mark.browser

BAD = "<script>window.hurt=1</script>"
BAD_IMAGE = "<img src=x onerror=window.hurt=1>"
BAD_END = "</script><script>window.hurt=1</script><!--"
DAY = 86_400_000
MEASURES = ["AP", "P@5", "nDCG@10"]


@pytest.fixture(scope="module")
def collection():
    """Fifteen topics, three runs of growing strength; hostile text wherever text may stand."""
    rng = np.random.default_rng(8)
    documents = [f"doc-{i:02d}" for i in range(49)] + [BAD]
    qrels = Qrels({str(q): {d: int(rng.random() < 0.2) * 2 for d in documents[10:]} for q in range(1, 16)})
    for grades in qrels.values():
        grades[BAD] = 2

    def run(strength: float, tag: str) -> Run:
        scores = {q: [strength * g.get(d, 0) + rng.random() for d in documents] for q, g in qrels.items()}
        return Run({q: Ranking(documents, scores[q]) for q in qrels}, tag)

    made = {"k": BAD_END, "time prior along time": {"1": [[10 * DAY, -0.5], [100 * DAY, 1.25], [200 * DAY, 0.1]]}}
    runs = [
        NamedRun("ql", run(0.0, "ql"), expansions={"1": {"wing": 0.5, "flow": 0.25}}),
        NamedRun("sd", run(0.3, "sd"), expansions={"1": {"wing": 0.5, BAD_IMAGE: 0.4}}, manifest=made),
        NamedRun(BAD_IMAGE, run(0.1, BAD)),
    ]
    topics = [Topic(q, f"query {q} {BAD_END if q == '1' else ''}", time=int(q) * 20 * DAY) for q in qrels]
    times = {d: i * 6 * DAY for i, d in enumerate(documents)}
    return runs, qrels, topics, times


@pytest.fixture(scope="module")
def address(collection, tmp_path_factory):
    runs, qrels, topics, times = collection
    dated = {"measures": MEASURES, "topics": topics, "document_times": times}
    told = {"titles": {BAD: f"Title {BAD_IMAGE}"}, "title": f"Trial {BAD}", "collection": BAD_IMAGE}
    data = gather(runs, qrels, **dated, **told)
    path = tmp_path_factory.mktemp("report") / "report.html"
    write_html(path, data)
    return path.as_uri()


@pytest.fixture
def page(browser, address):
    look(browser)
    browser.get(address)
    yield browser
    assert complaints(browser) == []
    assert browser.execute_script("return window.hurt") is None


def rows(page, section: str, column: int = 0) -> list[str]:
    return [text(found(row, "th, td")[column]) for row in found(page, f"#{section} tbody tr")]


def header(page, section: str, title: str):
    for button in found(page, f"#{section} th button.sort"):
        if text(button) == title:
            return button
    raise AssertionError(f"no column {title!r} in {section}")


def sorted_by(button) -> str:
    return button.find_element(By.XPATH, "..").get_attribute("aria-sort")


def choose(page, section: str, label: str, option: str) -> None:
    for box in found(page, f"#{section} label"):
        if text(box).startswith(label):
            select = box.find_element(By.TAG_NAME, "select")
            next(o for o in select.find_elements(By.TAG_NAME, "option") if text(o) == option).click()
            return
    raise AssertionError(f"no control {label!r} in {section}")


def dialog_is_open(page) -> bool:
    return page.execute_script("return document.getElementById('topic').open")


# --- opening -----------------------------------------------------------------------------------------------------


def test_it_opens_and_says_what_was_measured(page, collection):
    runs, qrels, _, _ = collection
    shown = dict(zip(rows(page, "summary", 0), rows(page, "summary", 1), strict=True))
    for named in runs:
        expected = f"{evaluate(named.run, qrels, MEASURES).mean['AP']:.4f}"
        (mean,) = [value for name, value in shown.items() if name.startswith(named.name)]
        assert mean.startswith(expected)


def test_it_fetches_nothing_and_the_policy_is_in_force(page):
    """A script that got in after all would not run."""
    assert page.execute_script("return performance.getEntriesByType('resource').length") == 0

    page.execute_script(
        "const s = document.createElement('script'); s.textContent = 'window.late = 1'; document.body.append(s)"
    )
    assert page.execute_script("return window.late") is None
    said = page.get_log("browser")  # and the browser says so; the log is emptied by reading
    assert any("Content Security Policy" in entry["message"] for entry in said)


def test_sections_are_there(page):
    sections = [s.get_attribute("id") for s in found(page, "section")]
    assert sections == ["summary", "luck", "curves", "topics", "time", "appendix"]
    assert len(found(page, "#curves svg polyline")) == 3
    assert len(found(page, "#time svg")) == 2
    assert len(found(page, ".skyline button")) == 15


# --- hostile text ------------------------------------------------------------------------------------------------


def test_hostile_text_is_shown_and_inert(page):
    assert text(page.find_element(By.TAG_NAME, "h1")) == f"Trial {BAD}"
    assert page.title == f"Trial {BAD}"
    assert BAD_IMAGE in text(one(page, "header p"))
    assert any(BAD_IMAGE in name for name in rows(page, "summary"))
    one(page, "[data-topic='0']").click()
    drawer = text(page.find_element(By.ID, "topic"))
    for hostile in (BAD, BAD_IMAGE, BAD_END):
        assert hostile in drawer
    assert f"Title {BAD_IMAGE}" in drawer
    assert BAD_END in text(page.find_element(By.ID, "appendix"))
    assert found(page, "main img, dialog img, main script, dialog script") == []
    assert len(page.find_elements(By.TAG_NAME, "script")) == 2


# --- sorting -----------------------------------------------------------------------------------------------------


def test_clicking_a_header_sorts_and_says_so(page):
    button = header(page, "summary", "Run")
    assert sorted_by(button) == "none"
    button.click()
    ascending = rows(page, "summary")
    assert sorted_by(button) == "ascending"
    button.click()
    assert sorted_by(button) == "descending"
    assert rows(page, "summary") == ascending[::-1]


def test_topics_sort_by_number_and_by_difference(page):
    values = [float(v.replace("−", "-")) for v in rows(page, "topic-table", 3)]
    assert values == sorted(values, reverse=True)
    header(page, "topic-table", "Topic").click()
    assert rows(page, "topic-table") == [str(q) for q in range(1, 16)]  # 9 before 10
    header(page, "topic-table", "±").click()
    assert [float(v.replace("−", "-")) for v in rows(page, "topic-table", 3)] == values


def test_sorting_by_key(page):
    button = header(page, "topic-table", "Topic")
    page.execute_script("arguments[0].focus()", button)
    focused(page).send_keys(Keys.ENTER)
    assert sorted_by(button) == "ascending"
    assert focused(page) == button
    focused(page).send_keys(Keys.SPACE)
    assert sorted_by(button) == "descending"
    assert rows(page, "topic-table")[0] == "15"


# --- choices -----------------------------------------------------------------------------------------------------


def test_another_measure_changes_topics_and_keeps_the_focus(page, collection):
    runs, qrels, _, _ = collection
    choose(page, "topics", "Measure", "P@5")
    header(page, "topic-table", "Topic").click()
    expected = evaluate(runs[0].run, qrels, MEASURES).per_topic["P@5"]
    assert rows(page, "topic-table", 5) == [f"{expected[str(q)]:.3f}" for q in range(1, 16)]
    choose(page, "luck", "Measure", "AP")
    assert focused(page).tag_name == "select"


def test_another_run_changes_the_bars(page):
    before = text(one(page, "#topics .figures"))
    choose(page, "topics", "Run", BAD_IMAGE)
    assert text(one(page, "#topics .figures")) != before


def test_finding_a_topic(page):
    box = one(page, "input[type=search]")
    box.send_keys("query 12")
    assert rows(page, "topic-table") == ["12"]
    assert focused(page) == box
    box.send_keys(" nonsense")
    assert "No topic matches" in text(page.find_element(By.ID, "topic-table"))


def test_the_legend_hides_a_curve(page):
    button = one(page, "#curves .legend button")
    button.click()
    assert button.get_attribute("aria-pressed") == "false"
    assert len(found(page, "#curves svg polyline")) == 2
    button.click()
    assert len(found(page, "#curves svg polyline")) == 3


def test_curves_are_read_with_the_arrow_keys(page):
    chart = one(page, "#curves .chart")
    page.execute_script("arguments[0].focus()", chart)
    for _ in range(3):
        focused(page).send_keys(Keys.ARROW_RIGHT)
    said = text(one(page, "#curves .readout"))
    assert said.startswith("recall 0.2")
    assert re.search(r"sd [01]\.\d{3}", said)


# --- the drawer --------------------------------------------------------------------------------------------------


def test_a_bar_opens_its_topic_and_escape_returns(page):
    bar = found(page, ".skyline button")[4]
    qid = re.match(r"Topic (\d+):", bar.get_attribute("aria-label"))[1]
    bar.click()
    assert dialog_is_open(page)
    assert text(page.find_element(By.ID, "topic-heading")).startswith(qid)
    assert focused(page).get_attribute("id") == "topic-heading"
    focused(page).send_keys(Keys.ESCAPE)
    assert not dialog_is_open(page)
    assert focused(page) == bar


def test_bars_by_key_alone(page):
    """One tab stop for all bars; arrows, Home and End move within."""
    bars = found(page, ".skyline button")
    assert [b.get_attribute("tabindex") for b in bars].count("0") == 1
    page.execute_script("arguments[0].focus()", bars[0])
    focused(page).send_keys(Keys.ARROW_RIGHT)
    assert focused(page) == bars[1]
    focused(page).send_keys(Keys.END)
    assert focused(page) == bars[-1]
    focused(page).send_keys(Keys.ARROW_RIGHT)
    assert focused(page) == bars[-1]
    focused(page).send_keys(Keys.ENTER)
    assert dialog_is_open(page)


def test_the_drawer_tells_which_documents_moved(page, collection):
    runs, qrels, _, _ = collection
    one(page, "[data-topic='0']").click()
    table = found(page, "#topic table")[1]
    before, after = (r.run["1"].docids for r in runs[:2])
    seen = 0
    for row in table.find_elements(By.CSS_SELECTOR, "tbody tr"):
        docid = text(row.find_element(By.CSS_SELECTOR, "th bdi"))
        grade, was, now, move = [text(cell) for cell in row.find_elements(By.TAG_NAME, "td")]
        assert grade == (str(qrels["1"][docid]) if docid in qrels["1"] else "?")
        assert (int(was), int(now)) == (before.index(docid) + 1, after.index(docid) + 1)
        by = int(was) - int(now)
        assert move == (f"↑ {by}" if by > 0 else f"↓ {-by}" if by < 0 else "=")
        seen += 1
    assert seen >= 10


def test_the_drawer_shows_terms_and_timeline(page):
    one(page, "[data-topic='0']").click()
    terms = [text(t) for t in found(page, "#topic .terms bdi")]
    assert terms == ["wing", "flow", "wing", BAD_IMAGE]
    only = [text(t) for t in found(page, "#topic .terms .only")]
    assert only == ["flow", BAD_IMAGE]
    assert len(found(page, "#topic svg circle")) == 100  # two runs of fifty
    prior = one(page, "#topic svg polygon.prior")  # of one of them, below its highest point the most that time added
    heights = [float(point.split(",")[1]) for point in prior.get_attribute("points").split()]
    assert len(heights) == 5 and min(heights) == heights[2] and max(heights) == heights[1]
    assert "time adds up to ±1.25" in text(one(page, "#topic svg[role=img]"))


def test_next_and_previous_follow_the_table(page):
    header(page, "topic-table", "Topic").click()
    one(page, "[data-topic='0']").click()
    back, on = found(page, "#topic .bar-top button")[:2]
    assert back.get_attribute("disabled") is not None
    on.click()
    assert text(page.find_element(By.ID, "topic-heading")).startswith("2 ")
    found(page, "#topic .bar-top button")[2].click()
    assert not dialog_is_open(page)
    assert focused(page).get_attribute("data-topic") == "0"


# --- looks -------------------------------------------------------------------------------------------------------

TEXTS = [
    *("h1", "header p", ".finding", "nav a", ".lead", "#summary td", "#summary .under", "#summary th button"),
    *("#luck .under", ".open", ".skyline-wrap + p .gain", ".skyline-wrap + p .loss", "footer"),
]


@pytest.mark.parametrize("dark", [False, True])
def test_text_can_be_read_in_light_and_dark(page, dark):
    """WCAG AA asks for 4.5 to 1."""
    look(page, dark=dark)
    background = page.execute_script("return getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, re.findall(r"\d+", background)[:3])) < 200) == dark
    assert {name: round(c, 2) for name, c in contrasts(page, TEXTS).items() if c < 4.5} == {}


@pytest.mark.parametrize("width", [360, 768])
def test_nothing_runs_off_the_side(page, width, address):
    look(page, width=width)
    page.get(address)
    assert page.execute_script("return document.documentElement.scrollWidth") <= width
    page.execute_script("document.querySelector('[data-topic]').click()")
    drawer = page.execute_script("const d = document.getElementById('topic'); return [d.scrollWidth, d.clientWidth]")
    assert drawer[0] <= drawer[1]


def test_focus_can_be_seen(page):
    button = header(page, "summary", "Run")
    page.execute_script("arguments[0].focus({focusVisible: true})", button)
    assert button.value_of_css_property("outline-style") == "solid"
    assert float(button.value_of_css_property("outline-width").removesuffix("px")) >= 2


def test_without_scripts_the_means_are_still_there(browser, address):
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        browser.get(address)
        assert "sd" in browser.find_element(By.CSS_SELECTOR, "noscript table").text
    finally:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
