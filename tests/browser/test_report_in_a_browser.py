"""The report's page in a real browser: what is on the first screen, what can run, who can read and reach it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from proctor.scorer.page.html import render
from proctor.scorer.report.document import RunFacts
from tests.browser.chromium import DESKTOP, NARROW_PHONE, PHONE, chromium, log_of, requested, show
from tests.report_samples import approved, blocked, in_review, poisoned

#: WCAG 2.2, success criterion 1.4.3 (AA) for text of normal size.
MIN_CONTRAST = 4.5
PAYLOAD = "</title></style></script><script>window.ran=1</script>\"'><img src=//192.0.2.1/x onerror=window.ran=1>"

_CONTRASTS = """
const parse = colour => {
  const numbers = colour.match(/[\\d.]+/g).map(Number);
  return {rgb: numbers.slice(0, 3), alpha: numbers.length > 3 ? numbers[3] : 1};
};
const linear = v => (v /= 255) <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4;
const luminance = rgb => .2126 * linear(rgb[0]) + .7152 * linear(rgb[1]) + .0722 * linear(rgb[2]);
const behind = element => {
  for (let e = element; e; e = e.parentElement) {
    const colour = parse(getComputedStyle(e).backgroundColor);
    if (colour.alpha > 0) return colour.rgb;
  }
  return [255, 255, 255];
};
const out = [], walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const text = walker.currentNode.data.trim(), e = walker.currentNode.parentElement, style = getComputedStyle(e);
  if (!text || !e.getClientRects().length || ['title', 'desc'].includes(e.tagName)) continue;
  const front = luminance(parse(e instanceof SVGElement ? style.fill : style.color).rgb), back = luminance(behind(e));
  out.push([(Math.max(front, back) + .05) / (Math.min(front, back) + .05), text.slice(0, 60)]);
}
return out;
"""
_STATE = """
const all = [...document.querySelectorAll('*')];
return {
  ran: window.ran ?? null,
  resources: performance.getEntriesByType('resource').map(entry => entry.name),
  acting: document.querySelectorAll('script, iframe, object, embed, form, img, base').length,
  handlers: all.filter(e => [...e.attributes].some(a => a.name.startsWith('on'))).length,
};
"""
_OPEN_ALL = "document.querySelectorAll('details').forEach(d => d.open = true)"
_FIRST_SCREEN = (
    "h1", "#why", ".suite-id", ".facts dd", ".numbers .value", ".numbers p.interval", ".numbers .status"
)  # fmt: skip


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    with chromium(tmp_path_factory.mktemp("profile")) as found:
        yield found


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """URLs of a page for each decision, and of one with a hostile text in every field."""
    folder: Path = tmp_path_factory.mktemp("reports")
    reports = {make.__name__: make().report() for make in (blocked, approved, in_review)}
    reports["hostile"] = poisoned(reports["blocked"], PAYLOAD)
    run = poisoned(RunFacts(audit_id="a", notes=("n",)), PAYLOAD)
    for name, report in reports.items():
        (folder / f"{name}.html").write_text(render(report, run=run), encoding="utf-8")
    return {name: (folder / f"{name}.html").as_uri() for name in reports}


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
@pytest.mark.parametrize("name", ["blocked", "approved", "in_review"])
def test_the_first_screen_holds_decision_reason_model_and_the_three_numbers(
    browser: Chrome, pages: dict[str, str], name: str, size: tuple[int, int]
) -> None:
    show(browser, pages[name], size)
    for selector in _FIRST_SCREEN:
        found = browser.find_elements(By.CSS_SELECTOR, selector)
        assert found
        for element in found:
            assert element.is_displayed()
            assert element.rect["y"] + element.rect["height"] <= size[1], f"{selector}: {element.text}"
    assert len(browser.find_elements(By.CSS_SELECTOR, ".numbers .value")) == 3
    assert browser.find_element(By.CSS_SELECTOR, "h1 svg.icon").is_displayed()


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
@pytest.mark.parametrize("name", ["blocked", "hostile"])
def test_no_page_scrolls_sideways(browser: Chrome, pages: dict[str, str], name: str, size: tuple[int, int]) -> None:
    show(browser, pages[name], size)
    assert browser.execute_script("return document.documentElement.scrollWidth") <= size[0]


@pytest.mark.parametrize("name", ["blocked", "in_review", "hostile"])
def test_no_page_scrolls_sideways_on_a_narrow_phone_with_everything_open(
    browser: Chrome, pages: dict[str, str], name: str
) -> None:
    show(browser, pages[name], NARROW_PHONE)
    browser.execute_script(_OPEN_ALL)
    assert browser.execute_script("return document.documentElement.scrollWidth") <= NARROW_PHONE[0]
    spilt = browser.execute_script(
        "return [...document.querySelectorAll('.by-item :is(th, td)')].slice(0, 400)"
        ".filter(e => e.scrollWidth > e.clientWidth).map(e => e.textContent.trim())"
    )
    assert spilt == []


@pytest.mark.parametrize("name", ["blocked", "hostile"])
def test_nothing_runs_and_nothing_is_fetched(browser: Chrome, pages: dict[str, str], name: str) -> None:
    show(browser, pages[name])
    browser.execute_script(_OPEN_ALL)
    state: dict[str, Any] = browser.execute_script(_STATE)
    assert state == {"ran": None, "resources": [], "acting": 0, "handlers": 0}
    assert [url for url in requested(browser) if not url.startswith("data:")] == [pages[name]]
    assert log_of(browser, "browser") == []


def test_the_policy_stops_what_escaping_might_miss(browser: Chrome, pages: dict[str, str]) -> None:
    show(browser, pages["blocked"])
    blocked_by = browser.execute_async_script(
        "const done = arguments[0], seen = [];"
        "document.addEventListener('securitypolicyviolation', e => {"
        "  seen.push(e.effectiveDirective); if (seen.length === 2) done(seen.sort()); });"
        "document.body.insertAdjacentHTML('beforeend',"
        '  \'<img src="http://192.0.2.1/x"><button id=planted onclick="window.ran=1">x</button>\');'
        "document.getElementById('planted').click();"
    )
    assert blocked_by == ["img-src", "script-src-attr"]
    assert browser.execute_script("return window.ran ?? null") is None


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["blocked", "approved", "in_review"])
def test_every_text_has_contrast_in_light_and_dark(
    browser: Chrome, pages: dict[str, str], name: str, scheme: str
) -> None:
    show(browser, pages[name], scheme=scheme)
    browser.execute_script(_OPEN_ALL)
    contrasts = browser.execute_script(_CONTRASTS)
    assert len(contrasts) > 200
    assert [entry for entry in contrasts if entry[0] < MIN_CONTRAST] == []
    paper = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
    assert (int(paper.split("(")[1].split(",")[0]) < 128) is (scheme == "dark")


def test_an_items_details_open_with_the_keyboard_alone(browser: Chrome, pages: dict[str, str]) -> None:
    show(browser, pages["blocked"])
    summaries = browser.find_elements(By.CSS_SELECTOR, ".items summary")
    second = browser.find_elements(By.CSS_SELECTOR, ".items details")[1]
    assert second.get_attribute("open") is None
    for _ in range(40):
        browser.switch_to.active_element.send_keys(Keys.TAB)
        if browser.switch_to.active_element == summaries[1]:
            break
    assert browser.switch_to.active_element == summaries[1]
    assert browser.execute_script("return getComputedStyle(arguments[0]).outlineStyle", summaries[1]) != "none"
    summaries[1].send_keys(Keys.ENTER)
    assert second.get_attribute("open") is not None
    assert second.find_element(By.CSS_SELECTOR, ".answer .text").is_displayed()


def test_the_table_of_all_rewordings_opens_with_the_keyboard_alone(browser: Chrome, pages: dict[str, str]) -> None:
    show(browser, pages["blocked"])
    details = browser.find_element(By.ID, "rewordings-by-item")
    summary, table = details.find_element(By.TAG_NAME, "summary"), details.find_element(By.TAG_NAME, "table")
    assert not table.is_displayed()
    for _ in range(120):
        browser.switch_to.active_element.send_keys(Keys.TAB)
        if browser.switch_to.active_element == summary:
            break
    assert browser.switch_to.active_element == summary
    assert browser.execute_script("return getComputedStyle(arguments[0]).outlineStyle", summary) != "none"
    summary.send_keys(Keys.ENTER)
    assert table.is_displayed()
    assert len(table.find_elements(By.TAG_NAME, "tbody")) == 400


def test_the_measures_names_stay_in_sight_while_the_rewordings_scroll(browser: Chrome, pages: dict[str, str]) -> None:
    show(browser, pages["blocked"])
    browser.execute_script(_OPEN_ALL)
    top = browser.execute_script(
        "document.querySelectorAll('.by-item tbody')[200].scrollIntoView();"
        "return document.querySelector('.by-item thead th').getBoundingClientRect().top"
    )
    assert top == 0


def test_headings_descend_without_gaps_and_pictures_have_names(browser: Chrome, pages: dict[str, str]) -> None:
    show(browser, pages["blocked"])
    levels = browser.execute_script("return [...document.querySelectorAll('h1,h2,h3,h4')].map(h => +h.tagName[1])")
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    unnamed = browser.execute_script(
        "return [...document.querySelectorAll('svg')].filter(s => !s.closest('[aria-hidden=true]') && "
        "!s.closest('[role=img]')).length"
    )
    assert unnamed == 0
    ids = browser.execute_script("return [...document.querySelectorAll('[id]')].map(e => e.id)")
    assert len(ids) == len(set(ids))
    labels = browser.execute_script(
        "return [...document.querySelectorAll('[aria-labelledby]')]"
        ".flatMap(e => e.getAttribute('aria-labelledby').split(' '))"
    )
    assert set(labels) <= set(ids)
