"""The dashboard's pages over HTTP, on real stores."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import httpx
import pytest

from proctor.runtime.records.audit_state import AuditState
from tests.integration.audit_support import AuditBench, audit_bench
from tests.integration.http_gateway import client, serving_both
from tests.record_samples import an_event


@pytest.fixture
def bench(tmp_path: Path, valkey_url: str) -> Iterator[AuditBench]:
    with audit_bench(tmp_path, valkey_url) as found:
        yield found


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
        # What is put on record meanwhile moves nothing.
        bench.records.create_audit(f"late{len(seen)}", bench.suite_text("a"), {})
    assert sorted(seen) == sorted(one.audit_id for n, one in enumerate(made) if n % 2)
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
