"""The page of an exposure scan in a real browser: what opens, what is marked, what can run, and who can read it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By

from proctor.cli.main import main
from tests.browser.chromium import DESKTOP, PHONE, chromium, log_of, requested, show
from tests.browser.hostile_texts import CORPUS, PAYLOAD

WORDS = "How many eggs do the DUCKS lay in May"
SAME_WORDS = "how many eggs, do the ducks lay in May"
#: A file's name holds no slash.
NAME = f"{PAYLOAD.replace('/', '')[:120]}.jsonl"
_STATE = """
const all = [...document.querySelectorAll('*')];
return {
  ran: window.ran ?? null,
  resources: performance.getEntriesByType('resource').map(entry => entry.name),
  acting: document.querySelectorAll('script, iframe, object, embed, form, img, base, button').length,
  handlers: all.filter(e => [...e.attributes].some(a => a.name.startsWith('on'))).length,
  links: [...document.querySelectorAll('a')].filter(e => !e.getAttribute('href').startsWith('#')).length,
  hidden: /[\\u202e\\u2066\\u200b\\u0007\\u001b\\u2028]/.test(document.documentElement.outerHTML),
  computed: document.body.textContent.includes('1337'),
};
"""
_INERT: dict[str, Any] = {
    "ran": None, "resources": [], "acting": 0, "handlers": 0, "links": 0, "hidden": False, "computed": False,
}  # fmt: skip
_OPEN_ALL = "document.querySelectorAll('details').forEach(d => d.open = true)"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    with chromium(tmp_path_factory.mktemp("profile")) as found:
        yield found


def scanned(folder: Path, items: list[dict[str, Any]], corpora: dict[str, tuple[str, list[str]]]) -> str:
    """The URL of the page that a scan writes; corpora are stages with a file's name and its documents."""
    folder.mkdir()
    (folder / "items.jsonl").write_text("".join(f"{json.dumps(item)}\n" for item in items), encoding="utf-8")
    arguments = ["exposure", "scan", "--items", str(folder / "items.jsonl"), "--policy", "any_ngram", "--ngram", "4"]
    for number, (stage, (name, texts)) in enumerate(corpora.items()):
        place = folder / f"stage{number}"
        place.mkdir()
        (place / name).write_text("".join(f"{json.dumps({'text': text})}\n" for text in texts), encoding="utf-8")
        arguments += ["--corpus", f"{stage}={place}/*"]
    assert main([*arguments, "--page", str(folder / "page.html")]) == 0
    return (folder / "page.html").as_uri()


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Pages of items that are found in two stages, of one with a hostile text in every place, and of nothing found."""
    folder: Path = tmp_path_factory.mktemp("scans")
    item = {"id": "eggs", "question": f"{WORDS}? Count those of June, too.", "answer": "14"}
    bystander = {"id": "clean", "question": "Which of these rivers runs north past the old mill?", "answer": "Tel"}
    hostile = [
        {"id": f"{number} {payload}", "question": f"{payload} {WORDS} {payload}", "answer": f"{payload} 14"}
        for number, payload in enumerate((PAYLOAD, *CORPUS))
    ]
    documents = [f"{payload} {SAME_WORDS} {payload}" for payload in (PAYLOAD, *CORPUS)]
    found = ["nothing of it", f"He asked, {SAME_WORDS}? And left."]
    return {
        "found": scanned(
            folder / "found", [item, bystander], {"pretrain": ("web.jsonl", found), "tune": ("sft.jsonl", found[1:])}
        ),
        "hostile": scanned(folder / "hostile", hostile, {"pretrain": (NAME, documents)}),
        "nothing": scanned(folder / "nothing", [bystander], {"pretrain": ("web.jsonl", found)}),
    }


def test_the_page_opens_without_script_and_without_network(browser: Chrome, pages: dict[str, str]) -> None:
    offline = {"offline": True, "latency": 0, "downloadThroughput": 0, "uploadThroughput": 0}
    browser.execute_cdp_cmd("Network.emulateNetworkConditions", offline)
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        show(browser, pages["found"])
        assert browser.find_element(By.CSS_SELECTOR, "h1").text == "1 of 2 items exposed"
        assert [mark.is_displayed() for mark in browser.find_elements(By.CSS_SELECTOR, ".pair mark")] == [True] * 3
        # An item folds without script.
        browser.find_element(By.CSS_SELECTOR, ".found summary").click()
        assert not browser.find_element(By.CSS_SELECTOR, ".pair").is_displayed()
    finally:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
        browser.execute_cdp_cmd("Network.emulateNetworkConditions", {**offline, "offline": False})


def test_what_stands_in_both_is_marked_in_the_item_and_in_each_document(browser: Chrome, pages: dict[str, str]) -> None:
    show(browser, pages["found"])
    item, *documents = browser.find_elements(By.CSS_SELECTOR, ".pair mark")
    assert item.text == WORDS
    assert [mark.text for mark in documents] == [SAME_WORDS] * 2
    assert [heading.text for heading in browser.find_elements(By.CSS_SELECTOR, ".pair h3")] == [
        "The item's question",
        heading_of(browser, "web.jsonl", "pretrain", 2),
        heading_of(browser, "sft.jsonl", "tune", 1),
    ]
    # By more than its colour.
    style = (
        "return [getComputedStyle(arguments[0]).borderBottomWidth, getComputedStyle(arguments[0]).borderBottomStyle]"
    )
    assert browser.execute_script(style, item) == ["2px", "solid"]


def heading_of(browser: Chrome, file: str, stage: str, document: int) -> str:
    """As a span's heading reads; the folder of its file is this run's own."""
    headings = [heading.text for heading in browser.find_elements(By.CSS_SELECTOR, ".pair h3")]
    (found,) = [one for one in headings if one.endswith(f"{file}, {stage}, document {document}")]
    return found


@pytest.mark.parametrize("name", ["found", "hostile", "nothing"])
def test_nothing_runs_and_nothing_is_fetched(browser: Chrome, pages: dict[str, str], name: str) -> None:
    show(browser, pages[name])
    browser.execute_script(_OPEN_ALL)
    assert browser.execute_script(_STATE) == _INERT
    assert [url for url in requested(browser) if not url.startswith("data:")] == [pages[name]]
    assert log_of(browser, "browser") == []


def test_hostile_texts_are_shown_as_they_were_written(browser: Chrome, pages: dict[str, str]) -> None:
    show(browser, pages["hostile"])
    browser.execute_script(_OPEN_ALL)
    said = browser.execute_script("return document.body.textContent")
    # In the name of an item, in its text, in a document's and in the name of its file.
    assert said.count("onerror=window.ran=1>") >= 4
    assert "{{7*191}}{%if 1%}${7*191}" in said
    marks = browser.find_elements(By.CSS_SELECTOR, ".pair mark")
    assert len(marks) >= 2 * (len(CORPUS) + 1)
    assert all("how many eggs" in mark.text.lower() for mark in marks if "eggs" in mark.text)


@pytest.mark.parametrize("size", [(1280, 800), (390, 844)], ids=["1280", "390"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["found", "hostile", "nothing"])
def test_no_page_has_a_serious_fault_for_who_cannot_see_or_point(
    browser: Chrome, pages: dict[str, str], name: str, scheme: str, size: tuple[int, int]
) -> None:
    assert size in (DESKTOP, PHONE)
    axe = files("axe_playwright_python").joinpath("axe.min.js").read_text("utf-8")
    show(browser, pages[name], size, scheme=scheme)
    browser.execute_script(_OPEN_ALL)
    browser.execute_script(axe)
    found: dict[str, Any] = browser.execute_async_script(
        "axe.run(document, {resultTypes: ['violations']}).then(arguments[0])"
    )
    assert [
        f"{one['id']} ({one['impact']}): {one['nodes'][0]['html'][:200]}"
        for one in found["violations"]
        if one["impact"] in ("serious", "critical")
    ] == []
    assert browser.execute_script("return document.documentElement.scrollWidth") <= size[0]
    paper = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
    assert (int(paper.split("(")[1].split(",")[0]) < 128) is (scheme == "dark")
