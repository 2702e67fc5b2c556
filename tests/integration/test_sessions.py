"""Browsers at the gateway: sessions for tokens, forms of a session's own, and pages of others that reach nothing."""

from __future__ import annotations

import dataclasses
import hashlib
import hmac
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
import redis

from proctor.domain.ceilings import LimitError
from proctor.gateway.front import UnknownCallerError
from proctor.gateway.http.attempts import MOST, WINDOW_S, Attempts
from proctor.gateway.http.login import next_path
from proctor.gateway.http.sessions import MAX_FORM_BYTES, SESSION_S
from proctor.runtime.grpc.tokens import new_token, token_digest
from tests.integration.audit_support import AuditBench, audit_bench, suite_without_files
from tests.integration.http_gateway import client, serving_both

ANNA, CI, VERA = new_token(), new_token(), new_token()
TOKENS = {
    "anna": {"token": token_digest(ANNA), "role": "reviewer", "sees_all": True},
    "ci": CI,
    "vera": {"token": VERA, "role": "viewer"},
}
COOKIE = "proctor-session"


@pytest.fixture
def bench(tmp_path: Path, valkey_url: str) -> Iterator[AuditBench]:
    with audit_bench(tmp_path, valkey_url) as found:
        yield found


@pytest.fixture
def suite(bench: AuditBench) -> bytes:
    return suite_without_files(bench)


def log_in(http: httpx.Client, token: str, **fields: str) -> httpx.Response:
    return http.post("/login", data={"token": token, **fields})


def form_token(http: httpx.Client) -> str:
    """What a page of the session would hold in its forms."""
    return hmac.new(http.cookies[COOKIE].encode(), b"proctor csrf", hashlib.sha256).hexdigest()


def test_a_token_gives_a_browser_a_session_that_no_script_and_no_other_site_has(bench: AuditBench) -> None:
    with serving_both(bench.desk, tokens=TOKENS) as (_, url), client(url) as browser:
        assert browser.get("/v1/audits").status_code == 401
        answer = log_in(browser, ANNA, next="/review")
        assert (answer.status_code, answer.headers["location"]) == (303, "/review")
        said = answer.headers["set-cookie"]
        assert {"HttpOnly", "SameSite=strict", "Path=/", f"Max-Age={SESSION_S}"} <= set(said.split("; "))
        assert ANNA not in said
        assert browser.get("/v1/audits").status_code == 200
        # A token that is shown counts, and a wrong one is no way to go on by the cookie.
        assert browser.get("/v1/audits", headers={"Authorization": "Bearer wrong"}).status_code == 401


def test_where_people_come_by_tls_the_cookie_goes_by_nothing_else(bench: AuditBench) -> None:
    settings = bench.settings.model_copy(update={"dashboard_url": "https://proctor.example"})
    desk = dataclasses.replace(bench.desk, settings=settings)
    with serving_both(desk, tokens=TOKENS) as (_, url), client(url) as browser:
        said = log_in(browser, ANNA).headers["set-cookie"]
        assert said.startswith("__Host-proctor-session=")
        assert {"Secure", "HttpOnly", "Path=/"} <= set(said.split("; "))


def test_what_is_kept_of_a_session_lets_nobody_in(bench: AuditBench) -> None:
    with serving_both(bench.desk, tokens=TOKENS) as (_, url), client(url) as browser:
        log_in(browser, ANNA)
        cookie = browser.cookies[COOKIE]
        with redis.Redis.from_url(bench.settings.ledger_url, decode_responses=True) as store:
            (key,) = store.keys("proctor:session:*")
            kept = f"{key} {store.get(key)}"
            assert 0 < store.ttl(key) <= SESSION_S
            assert cookie not in kept
            assert ANNA not in kept
            assert token_digest(ANNA).removeprefix("sha256:") not in kept
            assert browser.get("/v1/audits").status_code == 200
            # Nor does what somebody writes there, who has no token.
            for forged in ("", "x", '{"name": "anna"}', store.get(key)[:-4] + "AAA="):
                store.set(key, forged, ex=60)
                assert browser.get("/v1/audits").status_code == 401


def test_a_session_ends_with_its_logout_everywhere_and_with_its_token(bench: AuditBench) -> None:
    with serving_both(bench.desk, tokens=TOKENS) as (_, url), client(url) as browser, client(url) as thief:
        log_in(browser, ANNA)
        thief.cookies.update(browser.cookies)
        assert browser.post("/logout", data={"csrf_token": "guessed"}).status_code == 403
        assert thief.get("/v1/audits").status_code == 200
        with serving_both(bench.desk, tokens={"ci": CI}) as (_, other), client(other) as elsewhere:
            # The same stores, and the token is not good there any more.
            elsewhere.cookies.update(browser.cookies)
            assert elsewhere.get("/v1/audits").status_code == 401
        assert browser.post("/logout", data={"csrf_token": form_token(browser)}).headers["location"] == "/login"
        assert thief.get("/v1/audits").status_code == 401


def test_a_wrong_token_is_refused_and_a_page_is_told_without_the_token(bench: AuditBench) -> None:
    with serving_both(bench.desk, tokens=TOKENS) as (_, url), client(url) as browser:
        for token in ("", "x" * 40, ANNA + "x", "ü" * 40, token_digest(ANNA), "x" * 20_000):
            answer = log_in(browser, token)
            assert (answer.status_code, "set-cookie" in answer.headers) == (401, False)
        page = browser.post("/login", data={"token": "secret-guess"}, headers={"Accept": "text/html,*/*"})
        assert (page.status_code, page.headers["location"]) == (303, "/login?failed=1")


def test_failed_logins_of_an_address_are_held_up_and_programs_are_not(bench: AuditBench) -> None:
    with serving_both(bench.desk, tokens=TOKENS) as (_, url), client(url) as browser, client(url, CI) as program:
        for _ in range(MOST):
            assert log_in(browser, "wrong").status_code == 401
        held = log_in(browser, ANNA)
        assert (held.status_code, "within a minute" in held.text) == (429, True)
        assert program.get("/v1/audits").status_code == 200


def test_failures_are_forgotten_after_a_minute_and_of_one_address_alone() -> None:
    now = [0.0]
    attempts = Attempts(lambda: now[0])

    def fail(address: str) -> None:
        with attempts.of(address):
            raise UnknownCallerError("wrong")

    for _ in range(MOST):
        with pytest.raises(UnknownCallerError):
            fail("a")
    with pytest.raises(LimitError, match="try again in 60 s"):
        fail("a")
    with pytest.raises(UnknownCallerError):
        fail("b")
    now[0] = WINDOW_S
    with attempts.of("a"):
        pass


def test_a_session_s_request_that_changes_something_shows_the_session_s_text(bench: AuditBench, suite: bytes) -> None:
    with serving_both(bench.desk, tokens=TOKENS) as (_, url), client(url) as browser:
        log_in(browser, ANNA)
        for shown in (None, b"0" * 64, "ü".encode()):
            headers = {} if shown is None else {b"X-CSRF-Token": shown}
            refused = browser.post("/v1/audits", content=suite, headers=headers)
            assert (refused.status_code, "not of your session" in refused.text) == (403, True)
        assert bench.records.audits() == []
        own = {"X-CSRF-Token": form_token(browser)}
        assert browser.post("/v1/audits", content=suite, headers=own).status_code == 202


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "cross-site", "Origin": "http://{host}"},
        {"Origin": "http://[::1"},
        # A name of somebody's that was made to lead here: for the browser it is one origin with itself.
        {"Host": "evil.example", "Origin": "http://evil.example", "Sec-Fetch-Site": "same-origin"},
        {"Host": "localhost.evil.example"},
        {"Host": ""},
    ],
)
def test_a_page_of_another_site_changes_nothing_at_a_gateway_without_tokens(
    bench: AuditBench, suite: bytes, headers: dict[str, str]
) -> None:
    with serving_both(bench.desk) as (_, url), client(url) as http:
        host = url.removeprefix("http://")
        sent = {name: value.format(host=host) for name, value in headers.items()}
        for path in ("/v1/audits", "/login", "/logout"):
            assert http.post(path, content=suite, headers=sent).status_code == 403
        if "Host" in headers:
            # Nor does it read what there is.
            assert http.get("/v1/audits", headers=sent).status_code == 403
    assert bench.records.audits() == []


def test_pages_of_its_own_and_programs_get_through(bench: AuditBench, suite: bytes) -> None:
    with serving_both(bench.desk) as (_, url), client(url) as http:
        port = url.rpartition(":")[2]
        for headers in (
            {},
            {"Origin": url},
            {"Sec-Fetch-Site": "same-origin", "Origin": url},
            {"Host": f"localhost:{port}", "Origin": f"http://localhost:{port}"},
            {"Host": f"[::1]:{port}", "Origin": f"http://[::1]:{port}"},
        ):
            assert http.post("/v1/audits", content=suite, headers=headers).status_code == 202


def test_viewers_look_operators_submit_and_each_is_told_what_is_missing(bench: AuditBench, suite: bytes) -> None:
    with serving_both(bench.desk, tokens=TOKENS) as (_, url), client(url, VERA) as vera, client(url, CI) as ci:
        assert vera.get("/v1/audits").status_code == 200
        refused = vera.post("/v1/audits", content=suite)
        assert refused.status_code == 403
        assert "'vera' is a viewer, and this takes an operator" in refused.json()["detail"]
        assert ci.post("/v1/audits", content=suite).status_code == 202
        with client(url, ANNA) as anna:
            assert anna.post("/v1/audits", content=suite).status_code == 202


@pytest.mark.parametrize(
    ("asked", "gone_to"),
    [
        ("/audits?page=2", "/audits?page=2"), ("", "/"), ("//evil.example", "/"), ("https://evil.example", "/"),
        ("/\\evil.example", "/"), ("/a\r\nSet-Cookie: x=y", "/"), ("/" + "a" * 5_000, "/"), ("/ü", "/"),
    ],
)  # fmt: skip
def test_a_login_leads_to_this_server_alone(asked: str, gone_to: str) -> None:
    assert next_path(asked) == gone_to


def test_a_form_is_bounded_and_has_each_field_once(bench: AuditBench) -> None:
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    with serving_both(bench.desk, tokens=TOKENS) as (_, url), client(url) as http:
        for body, status in [
            (b"token=" + b"x" * MAX_FORM_BYTES, 413),
            (b"token=a&token=b", 400),
            (b"\xff", 400),
            (b"token=%ff", 400),
            (b"&".join(b"a%d=1" % n for n in range(200)), 400),
        ]:
            assert http.post("/login", content=body, headers=form).status_code == status
        assert http.post("/login", content=b"{}").status_code == 400
