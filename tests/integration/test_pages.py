"""The dashboard's pages over HTTP, on real stores."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import httpx
import pytest
import sqlalchemy as sa

from proctor.domain.canonical import bytes_digest
from proctor.domain.decision import DecisionOutcome
from proctor.domain.record.sign_off import SignedBy, Verb
from proctor.gateway import rates
from proctor.router.inputs import AuditInputs
from proctor.runtime.grpc.tokens import new_token
from proctor.runtime.records.audit_state import AuditState
from proctor.runtime.records.standings import NewSignOff
from proctor.runtime.signing import open_signing_key, read_public_key
from proctor.scorer.page.html import render
from proctor.scorer.report.document import RunFacts
from proctor.studies.record.checks import attestation_of, check_export, trust_in
from tests.decided_audits import put_decided, report_with
from tests.integration.audit_support import AuditBench, audit_bench
from tests.integration.http_gateway import client, serving_both
from tests.record_samples import a_key, an_event, by_hand
from tests.support import wait_until


@pytest.fixture
def bench(tmp_path: Path, valkey_url: str) -> Iterator[AuditBench]:
    with audit_bench(tmp_path, valkey_url) as found:
        yield found


def decided(bench: AuditBench, outcome: DecisionOutcome, **options: Any) -> str:
    """A decided audit with its report."""
    inputs = AuditInputs.model_validate(bench.records.audit(bench.submitted("other")).inputs)
    return put_decided(bench.desk, inputs, report_with(outcome), **options)


@pytest.fixture
def http(bench: AuditBench) -> Iterator[httpx.Client]:
    with serving_both(bench.desk) as (_, url), client(url) as found:
        yield found


def listed(page: httpx.Response) -> list[str]:
    """The audits that a list shows, in its order."""
    assert page.status_code == 200, page.text
    return re.findall(r'<th scope="row"><a href="/audits/([^"]+)">', page.text)


class _Loads(HTMLParser):
    """What a page loads from where."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert not any(name.startswith("on") or name == "style" for name, _ in attrs), attrs
        assert tag != "style"
        said = dict(attrs)
        if tag in ("link", "script", "img", "iframe"):
            self.addresses.append(said.get("src") or said.get("href") or "")


def test_the_first_page_lists_audits_with_what_stands_the_newest_first(bench: AuditBench, http: httpx.Client) -> None:
    one, two, three = (bench.submitted(name) for name in ("first", "second", "third"))
    bench.set(one, AuditState.REGISTERING)
    bench.records.decide(one, an_event(one, outcome="block"))
    bench.set(one, AuditState.DECIDED)
    bench.set(two, AuditState.FAILED, "the endpoint answered <b>nothing</b>")
    page = http.get("/", follow_redirects=True)
    assert page.url.path == "/audits"
    assert sorted(listed(page)) == sorted([one, two, three])
    assert "the endpoint answered &lt;b&gt;nothing&lt;/b&gt;" in page.text
    for query, expected in {
        "state=failed": [two],
        "outcome=block": [one],
        "outcome=approve": [],
        "suite=third": [three],
        "suite=thir": [],
        "model=m&state=decided": [one],
        "state=&outcome=&model=&suite=first": [one],
    }.items():
        assert listed(http.get(f"/audits?{query}")) == expected, query


def test_a_long_list_is_paged_without_a_gap_and_with_its_filters(bench: AuditBench, http: httpx.Client) -> None:
    made = [bench.records.create_audit(f"s{n}", bench.suite_text("a" if n % 2 else "b"), {}) for n in range(120)]
    seen, address = [], "/audits?suite=a"
    while True:
        page = http.get(address)
        seen += listed(page)
        older = re.search(r'rel="next" href="([^"]+)"', page.text)
        if older is None:
            break
        address = older[1].replace("&amp;", "&")
        # What is put on record meanwhile moves nothing; in the same second it may stand among what is still to come.
        bench.records.create_audit(f"late{len(seen)}", bench.suite_text("a"), {})
    assert len(seen) == len(set(seen))
    found = sorted(one for one in seen if not one.startswith("late"))
    assert found == sorted(one.audit_id for n, one in enumerate(made) if n % 2)
    assert seen == sorted(seen, key=lambda one: (bench.records.audit(one).created_at, one), reverse=True)


@pytest.mark.parametrize("query", ["state=over", "outcome=maybe", "before=x", "model=%00", "suite=" + "x" * 201])
def test_what_no_filter_can_be_is_refused_on_a_page(http: httpx.Client, query: str) -> None:
    answer = http.get(f"/audits?{query}")
    assert answer.status_code == 400
    assert answer.headers["content-type"].startswith("text/html")
    assert query.partition("=")[0] in answer.text


def test_pages_load_nothing_from_elsewhere_and_run_nothing_of_their_own(http: httpx.Client) -> None:
    page = http.get("/audits")
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self';" in policy
    assert "unsafe" not in policy
    loads = _Loads()
    loads.feed(page.text)
    assert loads.addresses
    for address in loads.addresses:
        assert address == "data:," or address.startswith("/assets/"), address
        if address.startswith("/assets/"):
            found = http.get(address)
            assert found.status_code == 200
            assert "immutable" in found.headers["cache-control"]
    assert "/audits" not in http.get("/openapi.json").text.replace("/v1/audits", "")


def test_an_audit_that_runs_says_how_far_it_is_and_keeps_itself_up_to_date(
    bench: AuditBench, http: httpx.Client
) -> None:
    audit = bench.answering(shards=4)
    bench.answer(audit, "s0")
    bench.give_up(audit, "s1", "the <endpoint> refused")
    page = http.get(f"/audits/{audit}")
    assert page.status_code == 200, page.text
    assert '<noscript><meta http-equiv="refresh"' in page.text
    assert "32 of 128 trials answered, 32 given up" in page.text
    assert "the &lt;endpoint&gt; refused" in page.text
    assert f'data-live="/audits/{audit}/progress"' in page.text
    assert "50 % of this stage" in page.text
    part = http.get(f"/audits/{audit}/progress")
    assert "32 of 128 trials answered" in part.text
    assert "data-ended" not in part.text
    assert '<th scope="row">submit</th>' in page.text
    bench.set(audit, AuditState.CANCELLED)
    assert "data-ended" in http.get(f"/audits/{audit}/progress").text
    ended = http.get(f"/audits/{audit}").text
    assert "<noscript>" not in ended
    assert "<span>Cancelled</span>" in ended


def test_a_decided_audit_shows_its_decision_its_digests_and_its_entry(bench: AuditBench, http: httpx.Client) -> None:
    audit = decided(bench, DecisionOutcome.BLOCK)
    (logged,) = bench.records.logged(audit)
    page = http.get(f"/audits/{audit[:10]}")
    event = bench.records.decision(audit)
    assert event is not None
    assert '<body class="block">' in page.text
    assert "<span>Blocked</span>" in page.text
    for shown in (event["reportDigest"], event["modelDigest"], event["fingerprint"], logged.digest):
        assert shown in page.text
    assert f"Entry {logged.sequence}: the gate" in page.text
    attestation = http.get(f"/audits/{audit}/attestation/{logged.sequence}.json")
    assert attestation.json() == attestation_of(logged)
    assert "attachment" in attestation.headers["content-disposition"]
    assert http.get(f"/audits/{audit}/attestation/99.json").status_code == 404


def test_an_audit_that_a_proctor_before_scopes_decided_has_its_page(bench: AuditBench, http: httpx.Client) -> None:
    audit = bench.submitted()
    bench.decide(audit, DecisionOutcome.BLOCK)
    event = bench.records.decision(audit)
    assert event is not None
    assert "scope" not in event
    page = http.get(f"/audits/{audit}")
    assert page.status_code == 200
    assert "<dt>Scope</dt><dd>not said</dd>" in page.text


@pytest.mark.parametrize("lies_here", [True, False], ids=["where it was scored", "from the artifact store"])
def test_the_report_is_served_as_it_was_decided_on_and_runs_nothing(
    bench: AuditBench, http: httpx.Client, lies_here: bool
) -> None:
    audit = decided(bench, DecisionOutcome.BLOCK, lies_here=lies_here)
    page = http.get(f"/audits/{audit}/report")
    assert page.status_code == 200, page.text
    assert page.text == render(report_with(DecisionOutcome.BLOCK), run=RunFacts(audit_id=audit))
    assert page.headers["content-security-policy"].endswith("sandbox")
    document = http.get(f"/audits/{audit}/report.json")
    event = bench.records.decision(audit)
    assert event is not None
    assert bytes_digest(document.content) == event["reportDigest"]


def test_a_page_that_somebody_changed_is_not_served_as_the_report(bench: AuditBench, http: httpx.Client) -> None:
    audit = decided(bench, DecisionOutcome.BLOCK)
    folder = bench.settings.home / "reports" / audit
    (folder / "report.html").write_text("<h1>Approved</h1>")
    (folder / "report.json").write_text("{}")
    assert "<span>Blocked</span>" in http.get(f"/audits/{audit}/report").text
    event = bench.records.decision(audit)
    assert event is not None
    assert bytes_digest(http.get(f"/audits/{audit}/report.json").content) == event["reportDigest"]


def test_what_is_not_there_is_a_page_that_says_so(bench: AuditBench, http: httpx.Client) -> None:
    audit = bench.submitted()
    for path, words in {
        "/audits/none-1": "there is no audit",
        f"/audits/{audit}/report": "no report yet",
        f"/audits/{audit}/report.json": "no report yet",
        "/audits/%00": "there is no audit",
        "/audits/%3Cscript%3E": "there is no audit &#39;&lt;script&gt;",
    }.items():
        answer = http.get(path)
        assert answer.status_code == 404, path
        assert answer.headers["content-type"].startswith("text/html")
        assert words in answer.text, answer.text


def test_pages_ask_for_a_token_where_the_gateway_does_and_lead_back(bench: AuditBench) -> None:
    token = new_token()
    tokens = {"anna": {"token": token, "sees_all": True, "role": "reviewer"}}
    with serving_both(bench.desk, tokens=tokens) as (_, url), client(url) as browser:
        away = browser.get("/audits?state=failed")
        assert (away.status_code, away.headers["location"]) == (303, "/login?next=%2Faudits%3Fstate%3Dfailed")
        form = browser.get(away.headers["location"])
        assert 'value="/audits?state=failed"' in form.text
        assert "<nav" not in form.text
        # By a link in a mail no cookie is sent: the page asks for itself again, before anybody logs in once more.
        assert 'http-equiv="refresh"' in browser.get("/audits", headers={"Sec-Fetch-Site": "cross-site"}).text
        wrong = browser.post("/login", data={"token": "wrong"}, headers={"Accept": "text/html"}, follow_redirects=True)
        assert "The token is wrong" in wrong.text
        there = browser.post("/login", data={"token": token, "next": "/audits?state=failed"}, follow_redirects=True)
        assert there.url.query == b"state=failed"
        assert "anna" in there.text
        assert token not in there.text
        browser.post("/logout", data={"csrf_token": csrf_of(there.text)})
        assert browser.get("/audits").status_code == 303


def test_who_has_a_name_sees_the_audits_of_that_name(bench: AuditBench) -> None:
    tokens = {"ci": new_token(), "ops": new_token()}
    mine = bench.records.create_audit("mine", bench.suite_text(), {"submitter": "ci"}).audit_id
    other = bench.records.create_audit("other", bench.suite_text(), {"submitter": "ops"}).audit_id
    with serving_both(bench.desk, tokens=tokens) as (_, url), client(url, tokens["ci"]) as http:
        assert listed(http.get("/audits")) == [mine]
        assert http.get(f"/audits/{other}").status_code == 404


def test_what_a_person_signed_is_what_the_list_shows_and_finds(bench: AuditBench, http: httpx.Client) -> None:
    audit = decided(bench, DecisionOutcome.BLOCK)
    wanted = NewSignOff(
        Verb.OVERRIDE, DecisionOutcome.APPROVE, SignedBy(name="anna", via="token"), "a known leak", "REV-1"
    )
    bench.records.standings.sign(audit, wanted, key=a_key())
    assert listed(http.get("/audits?outcome=block")) == []
    assert listed(http.get("/audits?outcome=approve")) == [audit]
    page = http.get(f"/audits/{audit}").text
    assert "Entry 2: a person" in page
    assert "a known leak" in page


def test_the_record_is_verified_when_asked_and_says_what_it_found(bench: AuditBench, http: httpx.Client) -> None:
    key = open_signing_key(bench.settings.home, None)
    audit = decided(bench, DecisionOutcome.APPROVE, key=key)
    page = http.get("/record").text
    (logged,) = bench.records.logged(audit)
    assert logged.digest in page
    assert "Not verified since" in page
    http.post("/record/verify", data={"csrf_token": csrf_of(page)})
    page = settled(http)
    assert "<strong>Intact</strong>" in page
    assert "1 entry, 1 of them signed" in page
    with by_hand(bench.settings.records_url) as connection:
        connection.execute(sa.text("UPDATE decisions SET event = '{}'"))
    http.post("/record/verify", data={"csrf_token": csrf_of(page)})
    page = settled(http)
    assert "<strong>Not intact</strong>" in page
    assert "its decision is not what the log says of it" in page


def test_an_auditor_takes_along_what_verifies_by_itself(bench: AuditBench, http: httpx.Client, tmp_path: Path) -> None:
    key = open_signing_key(bench.settings.home, None)
    decided(bench, DecisionOutcome.APPROVE, key=key)
    for name, path in {"record.jsonl": "export", "then.checkpoint": "checkpoint", "public.pem": "keys.pem"}.items():
        answer = http.get(f"/record/{path}")
        assert "attachment" in answer.headers["content-disposition"]
        (tmp_path / name).write_bytes(answer.content)
    trust = trust_in([read_public_key(tmp_path / "public.pem")])
    checked = check_export(tmp_path / "record.jsonl", trust, [tmp_path / "then.checkpoint"])
    assert checked.intact, checked.findings
    assert checked.entries == 1


def test_the_whole_record_is_for_who_sees_everything_and_nothing_is_posted_from_elsewhere(bench: AuditBench) -> None:
    decided(bench, DecisionOutcome.APPROVE)
    token = new_token()
    with serving_both(bench.desk, tokens={"ci": token}) as (_, url), client(url, token) as http:
        page = http.get("/record")
        assert page.status_code == 200
        assert "The last entries" not in page.text
        for path in ("export", "checkpoint"):
            assert http.get(f"/record/{path}").status_code == 403
        refused = http.post("/record/verify", data={"csrf_token": "0" * 64})
        assert refused.status_code == 403
        assert refused.headers["content-type"].startswith("text/html")


def test_what_pages_change_counts_as_changes_of_the_caller(
    bench: AuditBench, http: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rates, "MAX_CHANGES_PER_MINUTE", 1)
    form = {"csrf_token": csrf_of(http.get("/record").text)}
    answers = [http.post("/record/verify", data=form).status_code for _ in range(2)]
    assert answers == [303, 429]
    settled(http)


def csrf_of(page: str) -> str:
    """What a form of the page holds."""
    found = re.search(r'name="csrf_token" value="([0-9a-f]{64})"', page)
    assert found is not None, page
    return found[1]


def settled(http: httpx.Client) -> str:
    """The page of the record when its verification has ended."""
    pages: list[str] = []

    def ended() -> bool:
        pages.append(http.get("/record").text)
        return "Being verified" not in pages[-1]

    wait_until(ended, what="the end of the verification")
    return pages[-1]


@pytest.mark.parametrize(
    ("decided_as", "choice", "holds"),
    [
        (DecisionOutcome.REVIEW, "approve:approve", "approve"),
        (DecisionOutcome.REVIEW, "reject:block", "block"),
        (DecisionOutcome.BLOCK, "override:approve", "approve"),
    ],
)
def test_a_reviewer_signs_and_is_shown_the_entry(
    bench: AuditBench, http: httpx.Client, decided_as: DecisionOutcome, choice: str, holds: str
) -> None:
    audit = decided(bench, decided_as)
    assert f"/audits/{audit}/review" in http.get("/review").text
    form = http.get(f"/audits/{audit}/review").text
    assert f'value="{choice}"' in form
    said = {"choice": choice, "reason": "known\r\nand measured", "reference": "REV-7", "days": "", **hidden(form)}
    answer = http.post(f"/audits/{audit}/review", data=said)
    assert (answer.status_code, answer.headers["location"]) == (303, f"/audits/{audit}/review?signed=2")
    shown = http.get(answer.headers["location"]).text
    entry = bench.records.logged(audit)[1]
    assert entry.digest in shown
    assert "entry 2 of the decision log" in shown
    standing = bench.records.standings.standing_of(audit)
    assert standing is not None
    assert (standing.outcome, standing.reason, standing.reference) == (holds, "known and measured", "REV-7")
    assert f"/audits/{audit}/review" not in http.get("/review").text
    assert f'<body class="{holds}">' in http.get(f"/audits/{audit}").text
    # The same form sent once more, as by the way back of a browser, is refused: something else holds by now.
    again = http.post(f"/audits/{audit}/review", data=said)
    assert again.status_code == 409
    assert len(bench.records.logged(audit)) == 2


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"choice": ""}, "Choose what is to hold"),
        ({"choice": "approve:approve"}, "a block is not approved but overridden"),
        ({"reason": "  "}, "A sign-off needs a reason"),
        ({"reference": ""}, "A sign-off needs a reference"),
        ({"days": "soon"}, "Days is no number"),
        ({"days": "0"}, "1 to 36,500 days"),
        ({"seen": "x"}, "Seen is no number"),
    ],
)
def test_a_sign_off_that_cannot_be_says_why_and_keeps_what_was_written(
    bench: AuditBench, http: httpx.Client, changes: dict[str, str], words: str
) -> None:
    audit = decided(bench, DecisionOutcome.BLOCK)
    path = f"/audits/{audit}/review"
    said = {"choice": "override:approve", "reason": "a <reason>", "reference": "REV-7", "days": ""}
    answer = http.post(path, data={**said, **hidden(http.get(path).text), **changes})
    assert answer.status_code == 400
    assert words in answer.text
    if "reason" not in changes:
        assert "a &lt;reason&gt;" in answer.text
    assert len(bench.records.logged(audit)) == 1


def test_who_is_no_reviewer_is_shown_no_form_and_signs_nothing(bench: AuditBench) -> None:
    audit = decided(bench, DecisionOutcome.BLOCK)
    token = new_token()
    tokens = {"ops": {"token": token, "sees_all": True, "role": "operator"}}
    with serving_both(bench.desk, tokens=tokens) as (_, url), client(url, token) as http:
        page = http.get(f"/audits/{audit}/review")
        assert "Signing takes the role reviewer" in page.text
        assert "<textarea" not in page.text
        csrf = csrf_of(http.get("/record").text)
        said = {"choice": "override:approve", "reason": "r", "reference": "r", "seen": "1"}
        assert http.post(f"/audits/{audit}/review", data={**said, "csrf_token": csrf}).status_code == 403
        assert http.post(f"/audits/{audit}/review", data=said).status_code == 403
    assert len(bench.records.logged(audit)) == 1


def hidden(page: str) -> dict[str, str]:
    """What the form of a page sends by itself."""
    return dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', page))
