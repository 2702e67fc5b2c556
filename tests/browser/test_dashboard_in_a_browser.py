"""The dashboard in a real browser: a reviewer's way through it, who can read it, and what can run on it."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import Select

from proctor.domain.decision import DecisionOutcome
from proctor.domain.record.sign_off import SignedBy, Verb
from proctor.runtime.records.audit_state import AuditState
from proctor.runtime.records.standings import NewSignOff
from tests.browser.chromium import DESKTOP, PHONE, chromium, log_of, requested, show
from tests.browser.hostile_texts import PAYLOAD
from tests.browser.stage import REVIEWER, Stage, served_report, stage
from tests.decided_audits import report_with
from tests.record_samples import a_key, by_hand
from tests.report_samples import poisoned
from tests.support import valkey_server, wait_until

#: What people write is one printable line.
PRINTABLE = "".join(sign for sign in PAYLOAD if sign.isprintable())
_STATE = """
const all = [...document.querySelectorAll('*')];
return {
  ran: window.ran ?? null,
  scripts: [...document.scripts].map(one => new URL(one.src).pathname),
  foreign: document.querySelectorAll('iframe, object, embed, base, img').length,
  handlers: all.filter(e => [...e.attributes].some(a => a.name.startsWith('on'))).length,
  links: [...document.querySelectorAll('a, form')].filter(
    e => !['http:'].includes(new URL(e.href ?? e.action, location).protocol) ||
         new URL(e.href ?? e.action, location).host !== location.host).length,
  hidden: /[\\u202e\\u2066\\u200b\\u0007\\u001b\\u2028]/.test(document.documentElement.outerHTML),
  computed: document.body.textContent.includes('1337'),
};
"""
_INERT = {
    "ran": None, "scripts": ["/assets/pages.js"], "foreign": 0, "handlers": 0, "links": 0, "hidden": False,
    "computed": False,
}  # fmt: skip


@pytest.fixture(scope="module")
def dashboard(tmp_path_factory: pytest.TempPathFactory, valkey_url: str) -> Iterator[Stage]:
    with stage(tmp_path_factory.mktemp("home"), valkey_url) as found:
        yield found


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory, dashboard: Stage) -> Iterator[Chrome]:
    """A browser whose user is logged in."""
    with chromium(tmp_path_factory.mktemp("profile")) as found:
        log_in(found, dashboard)
        yield found


def log_in(browser: Chrome, dashboard: Stage) -> None:
    show(browser, dashboard.url)
    assert browser.current_url.startswith(f"{dashboard.url}/login")
    one(browser, "#token").send_keys(REVIEWER, Keys.ENTER)
    wait_until(lambda: "/audits" in browser.current_url, what="the list of audits")


def one(browser: Chrome, selector: str) -> WebElement:
    return browser.find_element(By.CSS_SELECTOR, selector)


def follow(browser: Chrome, words: str) -> None:
    """Go where a link with these words leads."""
    before = browser.current_url
    browser.find_element(By.PARTIAL_LINK_TEXT, words).click()
    wait_until(lambda: browser.current_url != before, what=f"the page behind {words}")


@pytest.fixture
def untouched(tmp_path: Path) -> Iterator[tuple[Chrome, Stage]]:
    """A dashboard whose record no other test has had its hands in, and a browser of its own: cookies know no port."""
    (tmp_path / "home").mkdir()
    with (
        valkey_server(tmp_path) as url,
        stage(tmp_path / "home", url) as dashboard,
        chromium(tmp_path / "profile") as browser,
    ):
        log_in(browser, dashboard)
        yield browser, dashboard


def test_a_reviewer_goes_from_login_to_a_signed_override_in_a_verified_record(
    untouched: tuple[Chrome, Stage],
) -> None:
    browser, dashboard = untouched
    show(browser, f"{dashboard.url}/audits")
    Select(one(browser, "#outcome")).select_by_visible_text("block")
    one(browser, ".filters button").click()
    wait_until(lambda: "outcome=block" in browser.current_url, what="the filtered list")
    follow(browser, dashboard.blocked)
    assert one(browser, "h1").text == "Blocked"
    follow(browser, "Read the report")
    assert "Blocked" in browser.title
    browser.back()
    follow(browser, "Review it")
    one(browser, "input[value='override:approve']").click()
    one(browser, "#reason").send_keys("The leak is in a split that we do not publish.")
    one(browser, "#reference").send_keys("MODEL-1413")
    one(browser, "form.narrow button").click()
    wait_until(lambda: "signed=" in browser.current_url, what="the confirmation")
    entry = dashboard.bench.records.logged(dashboard.blocked)[-1]
    said = one(browser, ".notice.good").text
    assert f"entry {entry.sequence} of the decision log" in said
    assert entry.digest in said
    follow(browser, "Record")
    browser.find_element(By.XPATH, "//button[text()='Verify it now']").click()
    wait_until(lambda: "Intact" in browser.page_source, what="the verified record")
    assert "The leak is in a split" not in browser.page_source
    show(browser, f"{dashboard.url}/audits/{dashboard.blocked}")
    assert one(browser, "h1").text == "Approved"
    assert "The gate decided: Block" in " ".join(one(browser, ".decision").text.split())


def test_progress_goes_on_without_loading_the_page_anew(browser: Chrome, dashboard: Stage) -> None:
    bench = dashboard.bench
    audit = bench.answering("another", shards=4)
    show(browser, f"{dashboard.url}/audits/{audit}")
    browser.execute_script("window.same = true")
    assert "0 of 128 trials answered" in one(browser, "[data-live]").text
    bench.answer(audit, "s0", "s1")
    wait_until(lambda: "64 of 128 trials" in one(browser, "[data-live]").text, what="the progress")
    assert "50 %" in one(browser, "[role=status][data-said]").get_attribute("textContent")  # type: ignore[operator]
    assert browser.execute_script("return window.same")
    bench.set(audit, AuditState.CANCELLED)
    wait_until(lambda: "<span>Cancelled</span>" in browser.page_source, what="the end")


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_page_has_a_serious_fault_for_who_cannot_see_or_point(
    browser: Chrome, dashboard: Stage, size: tuple[int, int], scheme: str
) -> None:
    axe = files("axe_playwright_python").joinpath("axe.min.js").read_text("utf-8")
    faults = []
    for name, path in {**dashboard.pages, "login": "/login?failed=1"}.items():
        show(browser, dashboard.url + path, size, scheme=scheme)
        browser.execute_script(axe)
        found: dict[str, Any] = browser.execute_async_script(
            "axe.run(document, {resultTypes: ['violations']}).then(arguments[0])"
        )
        faults += [
            f"{name}: {one['id']} ({one['impact']}): {one['nodes'][0]['html'][:200]}"
            for one in found["violations"]
            if one["impact"] in ("serious", "critical")
        ]
        width = browser.execute_script("return document.documentElement.scrollWidth")
        if width > size[0]:
            faults.append(f"{name} is {width} pixels wide")
    assert faults == []


def test_every_page_is_gone_through_by_keyboard_with_its_focus_in_sight(browser: Chrome, dashboard: Stage) -> None:
    for path in dashboard.pages.values():
        show(browser, dashboard.url + path)
        one(browser, "body").send_keys(Keys.TAB)
        first = browser.switch_to.active_element
        assert first.get_attribute("class") == "skip"
        assert first.is_displayed()
        assert first.rect["x"] >= 0
        first.send_keys(Keys.ENTER)
        assert browser.switch_to.active_element.get_attribute("id") == "main"
        heads = browser.execute_script("return [...document.querySelectorAll('h1')].length")
        assert heads == 1, path
        for landmark in ("header", "main"):
            assert len(browser.find_elements(By.TAG_NAME, landmark)) == 1, path


def test_what_models_suites_and_people_write_is_inert_on_every_page(browser: Chrome, dashboard: Stage) -> None:
    bench = dashboard.bench
    report = report_with(DecisionOutcome.REVIEW)
    hostile = report.model_copy(
        update={
            "decision": poisoned(report.decision, PAYLOAD),
            "suite": report.suite.model_copy(
                update={"governance": report.suite.governance.model_copy(update={"audit_owner": PAYLOAD[:200]})}
            ),
        }
    )
    audit = served_report(dashboard, hostile)
    by = SignedBy(name=PRINTABLE[:200], via="token")
    wanted = NewSignOff(Verb.APPROVE, DecisionOutcome.APPROVE, by, PRINTABLE, PRINTABLE[:500])
    bench.records.standings.sign(audit, wanted, key=a_key())
    waiting = served_report(dashboard, hostile)
    whole = served_report(dashboard, poisoned(report, PAYLOAD))
    failed = bench.submitted("hostile")
    bench.set(failed, AuditState.FAILED, PAYLOAD)
    running = bench.answering("hostile-too", shards=2)
    bench.give_up(running, "s0", PAYLOAD)
    listed = bench.records.create_audit("listed", "{}", {}).audit_id
    with by_hand(bench.settings.records_url) as connection:
        # What no suite may hold, and somebody who writes to the database may.
        connection.execute(
            sa.text("UPDATE audits SET model_id = :it, suite_id = :it, submitter = :it WHERE audit_id = :audit"),
            {"it": PAYLOAD, "audit": listed},
        )
        connection.execute(
            sa.text("UPDATE standings SET model_id = :it, audit_suite_id = :it WHERE audit_id = :audit"),
            {"it": PAYLOAD, "audit": waiting},
        )
    paths = [
        "/audits", f"/audits?suite={'%3Cscript%3Ewindow.ran=1%3C/script%3E'}", f"/audits/{audit}",
        f"/audits/{audit}/review", "/review", f"/audits/{waiting}/review", f"/audits/{failed}", f"/audits/{running}",
        "/record", f"/audits/{whole}", f"/audits/{listed}", "/login?next=javascript:window.ran=1",
        "/audits/%3Cimg%20src=x%20onerror=window.ran=1%3E", "/audits?before=%3Cscript%3Ewindow.ran=1%3C/script%3E",
    ]  # fmt: skip
    for path in paths:
        show(browser, dashboard.url + path)
        state = browser.execute_script(_STATE)
        assert state == _INERT, (path, state)
        assert [url for url in requested(browser) if not url.startswith((dashboard.url, "data:"))] == [], path
        refused = [entry["message"] for entry in log_of(browser, "browser") if "Content Security" in entry["message"]]
        assert refused == [], path
    # The report itself, in which not even a test's script runs.
    show(browser, f"{dashboard.url}/audits/{whole}/report")
    assert [url for url in requested(browser) if not url.startswith((dashboard.url, "data:"))] == []
    assert "audit report" in browser.title
