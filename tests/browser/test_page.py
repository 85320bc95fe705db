"""The workbench in a real browser: typing, why, time, feedback by clicking, the address, keys, and no life in texts."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path
from urllib.parse import quote

import pytest

pytest.importorskip("selenium", reason="selenium is not installed")
from browsing import complaints, contrasts, focused, found, look, one, press, serving, state, text, until
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select

from sdretrieval.ranking.interactive import Index
from sdretrieval.serve.app import make_app
from sdretrieval.serve.workers import Workers

pytestmark = [pytest.mark.browser, pytest.mark.java]

BAD = "<img src=x onerror=window.hurt=1>"
BAD_ID = '"><script>window.hurt=1</script>/..'
QUERY = "bridge collapse"
CEILING = "2022-07-01"


def documents() -> Iterator[dict[str, str]]:
    """Two stories with the query's words: one in May with collapse, bolts and rust, one in September with cards."""
    start = date(2022, 1, 1)
    may = "bridge collapse bolts rust river", "collapse bridge rust engineers inquiry", "collapse bolts prices"
    september = "bridge collapse cards players trumps", "collapse bridge players club midnight", "collapse cards prices"
    for story, words, day in (("may", may, 120), ("sep", september, 250)):
        for i in range(24):
            body = f"{words[i % 3]} report {'news ' * (i % 5)} number{i}. {words[(i + 1) % 3]} again"
            when = start + timedelta(days=day + i)
            yield {"id": f"{story}-{i:02d}", "title": f"Story {story} {i}", "contents": body, "date": str(when)}
    for i in range(60):
        day = start + timedelta(days=6 * i)
        yield {"id": f"other-{i:02d}", "title": "Weather", "contents": f"rain sun wind cloud{i} hail", "date": str(day)}
    hostile = f"hostile {BAD} zebra </script><script>window.hurt=1</script> zebra"
    yield {"id": BAD_ID, "title": BAD, "contents": hostile, "date": "2022-03-03"}


@pytest.fixture(scope="module")
def indexes(tmp_path_factory) -> list[Index]:
    folder: Path = tmp_path_factory.mktemp("serve")
    (folder / "docs.jsonl").write_text("".join(json.dumps(document) + "\n" for document in documents()))
    index = Index.build(folder / "docs.jsonl", folder / "stories", date="date")
    shutil.copytree(folder / "stories", folder / "past")
    return [index, Index(folder / "past", as_of=CEILING)]


@pytest.fixture(scope="module")
def address(indexes) -> Iterator[str]:
    with serving(make_app(indexes, workers=Workers(seconds=300))) as address:  # compiling takes its time
        yield address


@pytest.fixture
def page(browser, address):
    look(browser)
    forgotten = {"origin": address.rstrip("/"), "storageTypes": "local_storage"}
    browser.execute_cdp_cmd("Storage.clearDataForOrigin", forgotten)
    go(browser, address, QUERY)
    yield browser
    assert complaints(browser) == []
    assert browser.execute_script("return window.hurt") is None


def go(page, address: str, query: str, **more: str) -> None:
    page.get(f"{address}?{'&'.join(f'{k}={quote(v)}' for k, v in {'q': query, **more}.items())}")
    answered(page)


def answered(page, **told: str) -> None:
    """Wait until the address tells what is asked, and the answer is drawn."""
    until(page, lambda: all(state(page).get(name) == value for name, value in told.items()))
    until(page, lambda: one(page, "#status").text and not found(page, "#bench[aria-busy]"))


def docids(page, side: str = "a") -> list[str]:
    return [item.get_attribute("data-docid") for item in found(page, f"[data-side={side}] .hit")]


def words(page) -> list[str]:
    return [item.get_attribute("data-term") for item in found(page, ".chip:not(.dropped)")]


def set_date(page, name: str, day: str) -> None:
    """As a browser's calendar does; what its keys do depends on the language."""
    put = "arguments[0].value = arguments[1]; arguments[0].dispatchEvent(new Event('change'))"
    page.execute_script(put, one(page, f"#{name}"), day)


def opened(page, docid: str) -> None:
    until(page, lambda: found(page, ".scores tr") and docid in text(one(page, "#why .facts")))


# --- typing and reading ------------------------------------------------------------------------------------------


def test_a_query_is_typed_and_hits_are_read(page, address):
    page.get(address)
    until(page, lambda: "109 documents" in text(one(page, "#hits")))
    assert focused(page).get_attribute("id") == "q"
    press(page, QUERY, Keys.ENTER)
    answered(page, q=QUERY)
    assert len(docids(page)) == 20
    first = found(page, ".hit")[0]
    assert text(first.find_element("css selector", ".title")).startswith("Story ")
    assert re.fullmatch(r"2022-\d\d-\d\d", text(first.find_element("css selector", "time")))
    marks = {text(mark).lower() for mark in found(page, ".snippet mark")}
    assert marks == {"bridge", "collapse"}
    assert "20 hits · " in one(page, "#status").text
    assert page.title.startswith(QUERY)


def test_model_and_parameters_are_in_reach(page):
    Select(one(page, "#model")).select_by_visible_text("rm3")
    answered(page, model="rm3")
    before = words(page)
    one(page, "#parameters summary").click()
    box = one(page, "#set-fb_terms")
    box.send_keys("3", Keys.TAB)
    answered(page, set="fb_terms=3")
    assert len(words(page)) < len(before)
    assert "1 changed" in text(one(page, "#parameters summary"))


def test_two_models_side_by_side_with_the_moves_between_them(page):
    Select(one(page, "#compare")).select_by_visible_text("bm25")
    answered(page, compare="bm25")
    left, right = docids(page), docids(page, "b")
    assert len(right) == 20
    assert left != right
    ranks = {docid: rank for rank, docid in enumerate(left, 1)}
    for now, item in enumerate(found(page, "[data-side=b] .hit"), 1):
        was = ranks.get(item.get_attribute("data-docid"))
        if was is None:
            continue  # its rank on the left is below those shown
        move = found(item, ".move [aria-hidden]")
        assert (text(move[0]) if move else "") == (
            "" if was == now else f"{'↑' if was > now else '↓'} {abs(was - now)}"
        )
    lines = {line.get_attribute("data-docid") for line in found(page, ".lines .line")}
    assert lines == set(left) & set(right) != set()


# --- why ---------------------------------------------------------------------------------------------------------


def test_why_tells_the_score_word_by_word(page):
    found(page, ".hit .title")[0].click()
    docid = docids(page)[0]
    opened(page, docid)
    score = float(re.search(r"score ([\d.]+)", text(one(page, "#why .facts")))[1])
    parts = [float(text(cell).replace("−", "-")) for cell in found(page, ".scores td:last-child")]
    assert sum(parts) == pytest.approx(score, abs=0.02)
    assert focused(page).get_attribute("id") == "doc-title"
    until(page, lambda: "report" in text(one(page, "#why .text")))
    assert found(page, ".taught .taught-terms bdi")
    press(page, Keys.ESCAPE)
    assert not found(page, "#why.opened")
    assert focused(page) == found(page, ".hit .title")[0]


def test_a_word_is_dropped_weighted_and_taken_back(page):
    assert "feedback" in text(one(page, "#why .note"))
    before, order = words(page), docids(page)
    term = next(item.get_attribute("data-term") for item in found(page, ".chip.feedback"))
    one(page, f".chip[data-term={term}] .word").click()
    answered(page, drop=term)
    assert term not in words(page)
    assert text(one(page, ".chip.dropped")) == term
    one(page, "[data-key=undo-words]").click()
    answered(page)
    assert (words(page), docids(page)) == (before, order)
    word = one(page, f".chip[data-term={term}] .word")
    weight = float(re.search(r"[\d.]+", word.get_attribute("title"))[0])
    page.execute_script("arguments[0].focus()", word)
    press(page, "+")
    answered(page)
    edited = one(page, f".chip[data-term={term}] .word")
    assert "drop" not in state(page)
    assert float(re.search(r"[\d.]+", edited.get_attribute("title"))[0]) == pytest.approx(1.25 * weight, rel=0.05)
    assert focused(page) == edited


def test_a_word_is_added(page):
    one(page, "[data-key=add-word]").send_keys("hail", Keys.ENTER)
    answered(page)
    assert "hail" in words(page)
    assert state(page)["weights"].startswith("hail=")


# --- time --------------------------------------------------------------------------------------------------------


def test_a_range_is_brushed_and_let_go(page):
    assert {docid[:3] for docid in docids(page)} == {"may", "sep"}
    plot = one(page, "#timeline")
    width = plot.size["width"]
    ActionChains(page).move_to_element_with_offset(plot, int(-0.25 * width), 20).click_and_hold().move_by_offset(
        int(0.2 * width), 0
    ).release().perform()
    until(page, lambda: "until" in state(page))
    answered(page)
    dates = [text(time) for time in found(page, ".hit time")]
    assert dates
    assert state(page)["since"] <= min(dates) <= max(dates) <= state(page)["until"]
    assert {docid[:3] for docid in docids(page)} == {"may"}
    one(page, "#clear-time").click()
    answered(page)
    assert {docid[:3] for docid in docids(page)} == {"may", "sep"}


def test_a_dot_opens_its_document(page):
    last = found(page, ".dot.shown")[-1]  # drawn above all others: the first hit
    assert last.get_attribute("data-docid") == docids(page)[0]
    ActionChains(page).move_to_element(last).click().perform()
    opened(page, docids(page)[0])


def test_a_range_by_key_and_by_date(page):
    press(page, "g")
    handle = focused(page)
    assert (handle.get_attribute("role"), handle.get_attribute("aria-valuetext")) == ("slider", "2022-01-01")
    press(page, Keys.ARROW_RIGHT)
    answered(page, since="2022-01-02")
    assert focused(page).get_attribute("aria-valuetext") == "2022-01-02"
    set_date(page, "until", "2022-05-10")
    answered(page, until="2022-05-10")
    dates = sorted(text(time) for time in found(page, ".hit time"))
    assert dates == [f"2022-05-{day:02d}" for day in range(1, 11)]  # that day with it
    assert one(page, "[data-end=until]").get_attribute("aria-valuetext") == "2022-05-10"


def test_the_kernel_moves_the_ranking(page):
    before = docids(page)
    width = one(page, "#width")
    page.execute_script("arguments[0].focus()", width)
    press(page, *[Keys.ARROW_LEFT] * 3)
    answered(page, time_prior="density")  # a kernel without a prior would say nothing
    page.execute_script("arguments[0].focus()", one(page, "#weight"))
    press(page, Keys.END)
    answered(page, time_weight="3")
    assert state(page)["bandwidth"].endswith("d")
    assert docids(page) != before
    moved = [item for item in found(page, ".hit") if found(item, ".move")]
    assert moved
    assert f"{len(moved)} moved" in one(page, "#status").text
    assert found(page, ".timeline .prior")
    assert found(page, ".adjusted")
    one(page, "#weight-auto").click()
    answered(page)
    assert "time_weight" not in state(page)


def test_the_past_as_it_was(page):
    set_date(page, "as_of", "2022-06-01")
    answered(page, as_of="2022-06-01")
    assert {docid[:3] for docid in docids(page)} == {"may"}
    assert "Nothing from 2022-06-01 on" in text(one(page, ".certificate"))


def test_a_ceiling_is_shown(page, address):
    go(page, address, QUERY, index="past")
    assert CEILING in one(page, "#ceiling").text
    assert one(page, "#until").get_attribute("max") == CEILING
    assert {docid[:3] for docid in docids(page)} == {"may"}


# --- feedback, and the address -----------------------------------------------------------------------------------


def test_clicking_relevant_learns_at_once(page):
    before = docids(page)
    chosen = next(docid for docid in before if docid.startswith("sep"))
    button = one(page, f".hit[data-docid={chosen}] .judge.relevant")
    button.click()
    answered(page, relevant=chosen)
    after = docids(page)
    assert after != before
    assert sum(d.startswith("sep") for d in after[:10]) > sum(d.startswith("sep") for d in before[:10])
    moves = dict.fromkeys(before, 0) | {
        docid: before.index(docid) - i for i, docid in enumerate(after) if docid in before
    }
    for item in found(page, ".hit"):
        docid, told = item.get_attribute("data-docid"), found(item, ".move [aria-hidden]")
        by = moves.get(docid)
        if by is not None:
            assert (text(told[0]) if told else "") == (f"{'↑' if by > 0 else '↓'} {abs(by)}" if by else "")
    pressed = one(page, f".hit[data-docid={chosen}] .judge.relevant")
    assert pressed.get_attribute("aria-pressed") == "true"
    assert focused(page) == pressed
    one(page, f".hit[data-docid={after[0]}] .judge.nonrelevant").click()
    answered(page, nonrelevant=after[0])
    page.back()
    until(page, lambda: "nonrelevant" not in state(page) and docids(page) == after)


def test_the_address_gives_the_view_again(page, address):
    chosen = docids(page)[3]
    more = {"model": "sd3", "time_prior": "recency", "bandwidth": "20d", "since": "2022-02-01", "hits": "10"}
    go(page, address, QUERY, **more, relevant=chosen, drop="report", doc=chosen, set="fb_docs=5")
    opened(page, chosen)
    seen = docids(page), words(page), state(page)
    page.refresh()
    answered(page)
    opened(page, chosen)
    assert (docids(page), words(page), state(page)) == seen
    assert len(seen[0]) == 10
    assert one(page, "#q").get_attribute("value") == QUERY
    assert text(one(page, "#width-told")) == "20 days"
    assert Select(one(page, "#model")).first_selected_option.text == "sd3"


def test_what_is_seen_can_be_saved(page):
    page.execute_script("""
      window.kept = {};
      URL.createObjectURL = (blob) => { window.blob = blob; return "#"; };
      HTMLAnchorElement.prototype.click = function () { blob.text().then((text) => { kept[this.download] = text; }); };
    """)
    for what in ("run", "expansion", "figure"):
        one(page, "#save summary").click()
        one(page, f"[data-save={what}]").click()
    kept = until(page, lambda: len(k := page.execute_script("return window.kept")) == 3 and k)
    ranked = [line.split()[2] for line in kept["bridge-collapse.txt"].splitlines()]
    assert ranked == docids(page)
    assert json.loads(kept["bridge-collapse.expansion.jsonl"])["query"] == QUERY
    figure = kept["bridge-collapse.svg"]
    assert figure.startswith("<svg xmlns=")
    assert "<circle fill=" in figure.replace("\n", "") or 'fill="rgb' in figure
    assert "class=" not in figure


def test_a_token_is_taken_out_of_the_address_or_asked_for(page, indexes):
    with serving(make_app(indexes, token="open sesame", workers=Workers(seconds=300))) as guarded:
        page.get(guarded)
        until(page, lambda: found(page, "#alert input"))
        assert "401" in complaints(page)[0]["message"]
        one(page, "#alert input").send_keys("open sesame", Keys.ENTER)
        until(page, lambda: "109 documents" in text(one(page, "#hits")))
        page.execute_script("sessionStorage.clear()")
        page.get(f"{guarded}?q=bridge#token=open%20sesame")
        answered(page)
        assert "sesame" not in page.current_url


# --- errors, hostile text ----------------------------------------------------------------------------------------


def test_an_error_is_told_with_its_remedy(page, address):
    page.get(f"{address}?q=bridge&drop=nosuchword")
    until(page, lambda: one(page, "#alert").text)
    assert "'nosuchword' is not in index" in one(page, "#alert").text
    assert "stemming" in one(page, "#alert").text
    one(page, "#alert .again").click()
    answered(page)
    assert one(page, "#alert").text == ""
    assert docids(page)
    assert "400" in complaints(page)[0]["message"]  # the browser's own note of the refusal, read away


def test_only_the_newest_request_counts(page):
    page.execute_script("""
      const real = window.fetch;
      window.ended = 0;
      window.fetch = async (path, options) => {
        options.signal.addEventListener("abort", () => { window.ended += 1; });
        await new Promise((resolve) => setTimeout(resolve, 100));
        return real(path, options);
      };
    """)
    for name in ("bm25", "ql", "rm3"):
        Select(one(page, "#model")).select_by_visible_text(name)
    answered(page, model="rm3")
    assert page.execute_script("return window.ended") >= 1
    assert text(one(page, "#why h2 bdi")) == "rm3"


def test_hostile_text_is_inert(page, address):
    go(page, address, "hostile zebra", doc=BAD_ID)
    until(page, lambda: BAD in text(one(page, "#why .text")))
    assert text(one(page, "#doc-title")) == BAD
    assert docids(page)[0] == BAD_ID
    assert BAD in text(found(page, ".hit .title")[0])
    page.get(f"{address}?" + "&".join(f"{name}={quote(BAD)}%3D1" for name in ("q", "index", "model", "compare", "set")))
    until(page, lambda: BAD in text(one(page, "#alert")))
    assert not found(page, "#bench img, header img, #alert img")
    assert "400" in complaints(page)[0]["message"]


def test_the_page_brings_no_foreign_script(page, address):
    policy = page.execute_async_script(
        "const done = arguments[0]; fetch('/').then((r) => done(r.headers.get('content-security-policy')))"
    )
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert page.execute_script("return document.querySelectorAll('script, [style*=url], [onclick]').length") == 1


# --- keys and looks ----------------------------------------------------------------------------------------------


def test_by_key_alone(page):
    press(page, "/")
    assert focused(page).get_attribute("id") == "q"
    press(page, Keys.ESCAPE)
    order = docids(page)

    def current() -> str:
        return page.execute_script("return document.activeElement.closest('.hit').dataset.docid")

    assert current() == order[0]
    press(page, "j", "j", "k")
    assert current() == order[1]
    press(page, Keys.ENTER)
    opened(page, order[1])
    press(page, "j")
    opened(page, order[2])
    press(page, Keys.ESCAPE)
    assert current() == order[2]
    press(page, "r")
    answered(page, relevant=order[2])
    assert current() == order[2]
    press(page, "w", Keys.ARROW_RIGHT, Keys.ARROW_RIGHT, Keys.ENTER)
    answered(page)
    assert focused(page).get_attribute("aria-pressed") == "false"
    press(page, "]")
    answered(page, time_prior="density")
    press(page, "?")
    assert page.execute_script("return document.getElementById('help').open")
    press(page, Keys.ESCAPE)
    assert not page.execute_script("return document.getElementById('help').open")


def test_everything_has_a_name(page):
    """What can be focused, and every landmark, is named for those who do not see it."""
    nameless = page.execute_script("""
      const name = (e) => e.getAttribute("aria-label") || e.textContent.trim() || e.title
        || [...(e.labels ?? [])].map((l) => l.textContent).join("") || e.getAttribute("aria-labelledby");
      return [...document.querySelectorAll("button, input, select, summary, [role=slider], aside, section")]
        .filter((e) => !name(e)).map((e) => e.outerHTML.slice(0, 90));
    """)
    assert nameless == []
    assert one(page, "#status").get_attribute("aria-live") == "polite"
    assert [len(found(page, tag)) for tag in ("main", "header", "aside", "h1", "[role=search]")] == [1] * 5


TEXTS = [
    *("h1", ".second label", "#status", ".legend", ".knobs label", ".slide output", ".hit .title", ".snippet"),
    *(".snippet mark", ".facts time", ".docid", ".rank", ".move", ".judge", ".judge[aria-pressed=true]", ".note"),
    *(".chip.query", ".chip.feedback", ".under span", ".teachers .title", ".teachers .figures", ".main"),
]


@pytest.mark.parametrize("dark", [False, True])
def test_text_can_be_read_in_light_and_dark(page, dark):
    look(page, dark=dark)
    found(page, ".judge.relevant")[7].click()
    answered(page)
    background = page.execute_script("return getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, re.findall(r"\d+", background)[:3])) < 200) == dark
    assert {name: round(c, 2) for name, c in contrasts(page, TEXTS).items() if c < 4.5} == {}
    for _ in range(1 if dark else 2):  # auto, light, dark
        one(page, "#theme").click()
    switched = page.execute_script("return getComputedStyle(document.body).backgroundColor")
    assert switched != background


@pytest.mark.parametrize("width", [360, 768])
def test_nothing_runs_off_the_side(page, address, width):
    look(page, width=width)
    go(page, address, QUERY, compare="bm25", time_prior="density")
    widest = "return Math.max(document.documentElement.scrollWidth, document.body.scrollWidth)"
    assert page.execute_script(widest) <= width
    found(page, ".hit .title")[0].click()
    opened(page, docids(page)[0])
    panel = one(page, "#why")
    assert (panel.rect["x"], panel.rect["width"]) == (0, width)
    assert page.execute_script("return arguments[0].scrollWidth <= arguments[0].clientWidth", panel)
