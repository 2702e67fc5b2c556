"""Calls drawn from the gateway's own description, and raw ones beside it: none of them ends in a failure of ours.

Every route that the description names is called, so one that is added is covered without a word here.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from proctor.formats.triggers import load_triggers
from proctor.runtime.grpc.tokens import new_token
from proctor.runtime.records.audit_state import AuditState
from proctor.runtime.settings import default_bundle
from tests.integration.audit_support import AuditBench, audit_bench
from tests.integration.http_gateway import serving_both
from tests.registry_webhooks import SECRET, signed, trigger_file

pytestmark = pytest.mark.timeout(180)

CI, OPS = new_token(), new_token()
TOKENS = {"ci": CI, "ops": {"token": OPS, "operator": True}}
CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
#: For all calls of one kind of a route, and of a whole test.
ROUTE_S, TEST_S = 1.0, 30.0
AUTHORIZATIONS = (f"Bearer {OPS}", f"Bearer {CI}", "Bearer wrong", "Basic b3BzOm9wcw==", "Bearer", "", None)
TYPES = (
    "application/json",
    "text/plain",
    "multipart/form-data; boundary=x",
    "application/xml",
    "",
    "a/b; charset=\xff",
)


class Gateway(NamedTuple):
    """A gateway that listens, with its description."""

    bench: AuditBench
    url: str
    description: dict[str, Any]
    paths: tuple[str, ...]
    """Of every route, with an audit that there is."""


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory, valkey_url: str) -> Iterator[Gateway]:
    home = tmp_path_factory.mktemp("described")
    with audit_bench(home, valkey_url) as bench:
        folder: Path = home / "triggers"
        folder.mkdir()
        (folder / "first.json").write_text(bench.suite_text())
        (folder / "items.jsonl").write_bytes((home / "items.jsonl").read_bytes())
        triggers = load_triggers(trigger_file(folder), default_bundle())
        audit = bench.submitted()
        # Nobody is to watch it for longer than a call.
        bench.set(audit, AuditState.CANCELLED)
        with serving_both(bench.desk, triggers=triggers, tokens=TOKENS) as (_, url):
            told = httpx.get(f"{url}/openapi.json", headers={"Authorization": f"Bearer {OPS}"}, trust_env=False)
            description = told.raise_for_status().json()
            paths = tuple(path.replace("{audit_id}", audit) for path in description["paths"])
            yield Gateway(bench, url, description, paths)


def bounded(examples: int) -> settings:
    return settings(
        max_examples=examples,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )


def within(limit_s: float) -> Any:
    """A check to be asked before each call: whether there is time for one more."""
    until_s = time.monotonic() + limit_s
    return lambda: time.monotonic() < until_s


def operations(description: dict[str, Any]) -> list[Any]:
    all_of_them: Any = schemathesis.openapi.from_dict(description).get_all_operations()
    # Raises where the description of one is none.
    return [found.ok() for found in all_of_them]


def test_the_description_names_every_route_that_is_not_a_page(gateway: Gateway) -> None:
    named = {operation.path for operation in operations(gateway.description)}
    assert {"/healthz", "/readyz", "/v1/audits", "/v1/audits/{audit_id}", "/v1/webhooks/mlflow"} <= named


def called_by(operation: Any, mode: GenerationMode, url: str, session: requests.Session) -> int:
    """How many calls of a route were drawn, each of which was answered as the description says."""
    may, calls = within(ROUTE_S), 0

    @seed(20261123)
    @bounded(25)
    @given(
        case=operation.as_strategy(generation_mode=mode),
        authorization=st.sampled_from([f"Bearer {OPS}", f"Bearer {OPS}", *AUTHORIZATIONS]),
    )
    def call(case: Any, authorization: str | None) -> None:
        nonlocal calls
        # However long drawing the first one took.
        if not calls or may():
            shown = {} if authorization is None else {"Authorization": authorization}
            answer = case.call(base_url=url, headers=shown, session=session, timeout=20)
            case.validate_response(answer, checks=CHECKS)
            calls += 1

    # Of some routes nothing can be drawn that is not as described.
    with suppress(Unsatisfiable):
        call()
    return calls


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE], ids=["as described", "otherwise"])
def test_what_is_drawn_from_the_description_is_answered_as_it_says(gateway: Gateway, mode: GenerationMode) -> None:
    with requests.Session() as session:
        session.trust_env = False
        called = {
            f"{operation.method} {operation.path}": called_by(operation, mode, gateway.url, session)
            for operation in operations(gateway.description)
        }
    if mode is GenerationMode.POSITIVE:
        assert all(called.values()), called
    assert called["post /v1/audits"]


def test_an_answer_that_is_not_described_is_found(gateway: Gateway) -> None:
    description = json.loads(json.dumps(gateway.description))
    del description["paths"]["/v1/audits"]["get"]["responses"]["401"]
    (listed,) = (one for one in operations(description) if (one.method, one.path) == ("get", "/v1/audits"))
    with requests.Session() as session:
        session.trust_env = False
        with pytest.raises(BaseExceptionGroup) as found:
            called_by(listed, GenerationMode.POSITIVE, gateway.url, session)
    assert "401" in str(found.value.exceptions[0])


def test_no_method_type_body_or_header_of_a_call_is_a_failure_of_ours(gateway: Gateway) -> None:
    may = within(TEST_S / 2)
    seen: set[int] = set()
    bodies = st.one_of(
        st.binary(max_size=200),
        st.sampled_from([b"", b"{", b"[" * 100_000, b"\xff" * 300_000, b"0" * 5_000_000, b'{"a":' * 20_000]),
        st.recursive(
            st.none() | st.booleans() | st.floats() | st.text(max_size=20),
            lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=20), inner, max_size=4),
        ).map(lambda value: json.dumps(value).encode()),
    )
    values = st.binary(max_size=60).map(lambda value: bytes(one for one in value if one >= 32 and one != 127))
    names = st.sampled_from(
        ["Idempotency-Key", "Content-Encoding", "Cookie", "X-CSRF-Token", "Origin", "Host", "Accept", "Range"]
    )
    ends = st.sampled_from(
        ["", "/", "?limit=-1", "?limit=" + "9" * 400, "?priority=%00", "/%00", "/%2e%2e/", "/\u00e9"]
    )

    with httpx.Client(trust_env=False, timeout=20) as http:

        @seed(20261123)
        @bounded(400)
        @given(
            method=st.sampled_from(["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "BREW"]),
            path=st.sampled_from([*gateway.paths, "/", "/login", "/nowhere"]),
            end=ends,
            kind=st.sampled_from(TYPES),
            body=bodies,
            headers=st.dictionaries(names, values, max_size=4),
            authorization=st.sampled_from(AUTHORIZATIONS),
        )
        def call(
            method: str,
            path: str,
            end: str,
            kind: str,
            body: bytes,
            headers: dict[str, bytes],
            authorization: str | None,
        ) -> None:
            if not may():
                return
            sent = [(name.encode(), value) for name, value in headers.items()]
            sent.append((b"Content-Type", kind.encode("latin-1")))
            if authorization is not None:
                sent.append((b"Authorization", authorization.encode()))
            try:
                answer = http.request(method, gateway.url + path + end, content=body, headers=sent)
            except (httpx.WriteError, httpx.LocalProtocolError, httpx.RemoteProtocolError, httpx.ReadError):
                # A body that is not read is cut off, and a head that is none is not even sent, or closed on.
                return
            seen.add(answer.status_code)
            assert answer.status_code < 500, (method, path, end, kind, body[:80], headers, answer.text)

        call()
        assert http.get(f"{gateway.url}/readyz").status_code == 200
    # How many of the calls a busy machine has time for is its own affair; these come early.
    assert {401, 404, 405} <= seen


def test_no_delivery_that_is_signed_rightly_is_a_failure_of_ours_whatever_it_says(gateway: Gateway) -> None:
    may = within(TEST_S / 4)
    words = st.sampled_from(["model_version", "model_version_alias", "created", "set", "acme~m", "1", "\x00", "\ud800"])
    texts = words | st.text(max_size=20)
    datas = st.dictionaries(
        st.sampled_from(["name", "version", "tags", "alias", "source", "run_id"]), texts | st.none()
    )
    envelopes = st.fixed_dictionaries({"entity": texts, "action": texts, "data": datas | texts | st.lists(texts)})
    statuses: set[int] = set()
    with httpx.Client(trust_env=False, timeout=20) as http:

        @seed(20261123)
        @bounded(150)
        @given(value=envelopes | texts | st.lists(texts, max_size=3))
        def deliver(value: Any) -> None:
            if not may():
                return
            body = json.dumps(value).encode()
            answer = http.post(f"{gateway.url}/v1/webhooks/mlflow", content=body, headers=signed(body, SECRET))
            statuses.add(answer.status_code)
            assert answer.status_code < 500, (body, answer.text)

        deliver()
    assert {200, 400} <= statuses
