"""Whose endpoints get the operator's keys: those that he named, and those of audits started at the terminal."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from proctor.cli.audits import reaching
from proctor.domain.endpoint import EndpointSpec
from proctor.domain.operator_endpoint import OperatorEndpoint, OtherEndpoints
from proctor.domain.trial import Arm, Decoding, Trial
from proctor.gateway.audits import LocalDesk
from proctor.gateway.rpc import audit_pb2 as pb
from proctor.inference.http.openai import OpenAIBackend
from proctor.router.audit import view
from proctor.router.inputs import AuditInputs
from proctor.runtime.settings import Settings
from tests.hostile.raw_http import raw_http, response
from tests.integration.audit_support import AuditBench, audit_bench, serving, stub

ENVIRON = {"PROCTOR_API_KEY": "sk-of-the-operator", "OPENAI_API_KEY": "sk-for-openai"}
REWORDER = {
    "perturbation_strategy": "paraphrase_llm",
    "paraphrase_model": "org/reworder",
}


@pytest.fixture
def bench(tmp_path: Path, valkey_url: str) -> Iterator[AuditBench]:
    with audit_bench(tmp_path, valkey_url) as bench:
        yield bench


def through_the_gateway(bench: AuditBench, desk: LocalDesk, url: str) -> AuditInputs:
    files = [pb.SuiteFile(name="items.jsonl", content=(bench.home / "items.jsonl").read_bytes())]
    with serving(desk) as address, stub(address) as service:
        reply = service.Submit(pb.SubmitRequest(suite=suite_text(bench, url), files=files))
    return view(bench.records, reply.audit.audit_id).inputs


def at_the_terminal(bench: AuditBench, url: str) -> AuditInputs:
    path = bench.home / "mine.json"
    path.write_text(suite_text(bench, url))
    audit = replace(bench.desk, at_terminal=True).submit(path).audit.audit_id
    return view(bench.records, audit).inputs


def suite_text(bench: AuditBench, url: str) -> str:
    named = {"model_id": "m", "model_version": "sha256:" + "ab" * 6, "endpoint": url}
    return bench.suite_text("s", model_config=named, perturbation_config=REWORDER | {"paraphraser": {"endpoint": url}})


def header_sent_to(endpoint: EndpointSpec) -> str | None:
    """The key that an endpoint of this kind gets to see, by a real request."""
    heads: list[bytes] = []

    def answer(request: bytes) -> list[bytes]:
        heads.append(request.lower())
        return [response(b'{"choices": [{"text": "B"}]}')]

    async def ask(url: str) -> None:
        backend = OpenAIBackend(endpoint.model_copy(update={"url": url}), environ=ENVIRON)
        try:
            await backend.complete([Trial(arm=Arm.CANONICAL, item_id="1", prompt="?")], Decoding(), deadline_s=10.0)
        finally:
            await backend.close()

    with raw_http(answer) as url:
        asyncio.run(ask(url))
    found = [line for line in heads[0].split(b"\r\n") if line.startswith(b"authorization:")]
    return found[0].decode() if found else None


def test_a_loopback_url_of_a_suite_from_elsewhere_gets_no_key(bench: AuditBench) -> None:
    inputs = through_the_gateway(bench, bench.desk, "http://127.0.0.1:9/v1")
    assert inputs.paraphraser is not None
    assert header_sent_to(inputs.endpoint) is None
    assert header_sent_to(inputs.paraphraser) is None


def test_a_suite_from_elsewhere_gets_no_key_from_a_desk_at_the_terminal_either(bench: AuditBench) -> None:
    inputs = through_the_gateway(bench, replace(bench.desk, at_terminal=True), "http://127.0.0.1:9/v1")
    assert not inputs.endpoint.gets_keys


def test_the_endpoints_of_an_audit_started_at_the_terminal_get_the_key(bench: AuditBench) -> None:
    inputs = at_the_terminal(bench, "http://127.0.0.1:9/v1")
    assert inputs.paraphraser is not None
    assert header_sent_to(inputs.endpoint) == "authorization: bearer sk-of-the-operator"
    assert inputs.paraphraser.gets_keys


def test_a_suite_sent_again_through_the_gateway_takes_the_key_away_and_never_brings_it(bench: AuditBench) -> None:
    assert at_the_terminal(bench, "http://127.0.0.1:9/v1").endpoint.gets_keys
    assert not through_the_gateway(bench, bench.desk, "http://127.0.0.1:9/v1").endpoint.gets_keys


def test_an_endpoint_that_the_operator_named_or_covers_gets_the_key_whoever_asks_for_it(bench: AuditBench) -> None:
    listed = {"prod": OperatorEndpoint(url="http://127.0.0.1:9")}
    desk = replace(bench.desk, settings=bench.settings.model_copy(update={"endpoints": listed}))
    for name in ("prod", "http://127.0.0.1:9/v1"):
        inputs = through_the_gateway(bench, desk, name)
        assert header_sent_to(inputs.endpoint) == "authorization: bearer sk-of-the-operator", name


@pytest.mark.parametrize("others", [OtherEndpoints.ANY, OtherEndpoints.PUBLIC])
def test_a_url_that_was_opened_to_all_suites_gets_no_key(bench: AuditBench, others: OtherEndpoints) -> None:
    desk = replace(bench.desk, settings=bench.settings.model_copy(update={"other_endpoints": others}))
    assert not through_the_gateway(bench, desk, "https://models.example/v1").endpoint.gets_keys


def test_a_public_url_gets_no_key_even_at_the_terminal_where_suites_come_from_many(bench: AuditBench) -> None:
    bench.desk = replace(
        bench.desk, settings=bench.settings.model_copy(update={"other_endpoints": OtherEndpoints.PUBLIC})
    )
    assert not at_the_terminal(bench, "https://models.example/v1").endpoint.gets_keys


def test_a_command_without_a_server_sits_at_the_terminal(bench: AuditBench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reaching, "home_settings", lambda home: bench.settings)
    with reaching.desk(bench.home, None) as desk:
        assert isinstance(desk, LocalDesk)
        assert desk.at_terminal


def test_a_message_that_does_not_say_so_brings_no_key(tmp_path: Path) -> None:
    spoken = EndpointSpec(backend="openai", url="http://127.0.0.1:9/v1", served_name="m", model_version=None)
    assert not EndpointSpec.model_validate_json(spoken.model_dump_json(exclude={"gets_keys"})).gets_keys
    assert Settings(home=tmp_path).other_endpoints is OtherEndpoints.LOOPBACK
