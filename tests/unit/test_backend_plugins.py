"""Backends of other distributions: named by a suite or an operator, and held to what Proctor's own are."""

from __future__ import annotations

import asyncio
from json import dumps
from pathlib import Path
from typing import Any, Final

import pytest

from proctor.domain.card import ContentDigests, ProtocolCard, protocol_card
from proctor.domain.endpoint import EndpointSpec, Replica
from proctor.domain.errors import BadInputError, EndpointError
from proctor.domain.operator_endpoint import OtherEndpoints, parse_operator_endpoints
from proctor.domain.problems import SuiteProblems
from proctor.domain.suite import Suite
from proctor.domain.suite_problems import parse_suite
from proctor.domain.suite_schema import suite_schema
from proctor.domain.trial import Arm, Completion, Decoding, Trial
from proctor.inference.worker.shards import Backends, ShardUnanswered
from proctor.router.submit.endpoints import resolve_endpoint
from proctor.runtime.settings import Settings
from tests.installed_plugins import Plugins

ECHO: Final = """
from proctor.inference.worker.backend import Answer, TrialFailure
from proctor.inference.worker.prompt_backend import PromptBackend


class Echo(PromptBackend):
    async def answer(self, prompt, decoding):
        if prompt.startswith("busy"):
            raise ConnectionError("try later")
        if prompt.startswith("endless"):
            return Answer("a" * 10_000_000, "stop")
        return Answer(f"{prompt} at {decoding.temperature:g}", "stop", 3, 4)


class Disorderly(Echo):
    async def complete(self, trials, decoding, *, deadline_s):
        return list(reversed(await super().complete(trials, decoding, deadline_s=deadline_s)))


class Unopened(Echo):
    def __init__(self, spec, *, window):
        raise RuntimeError("no driver")


class Unprobed(Echo):
    async def probe(self):
        raise KeyError("model")


class Unasked(Echo):
    async def complete(self, trials, decoding, *, deadline_s):
        raise IndexError("no such prompt")


class Dumb:
    def __init__(self, spec, *, window):
        pass

    async def probe(self):
        pass
"""
NAMES: Final = {
    name: f"toy_echo:{name.title()}" for name in ("echo", "disorderly", "unopened", "unprobed", "unasked", "dumb")
}
SETTINGS: Final = Settings(home=Path("home"))
DECODING: Final = Decoding(temperature=0.5)
URL: Final = "http://127.0.0.1:9/v1"


@pytest.fixture
def echo(plugins: Plugins) -> Plugins:
    installed(plugins)
    return plugins


def installed(plugins: Plugins, version: str = "1.2") -> None:
    plugins.install({"toy_echo": ECHO}, {"proctor.backends": NAMES}, version=version)


def suite_json(**model: Any) -> dict[str, Any]:
    return {
        "audit_suite_id": "s",
        "model_config": {"model_id": "m", "model_version": "sha256:" + "0" * 64, "endpoint": URL, **model},
        "dataset_config": {"benchmark_name": "b"},
    }


def suite(**model: Any) -> Suite:
    return parse_suite(dumps(suite_json(**model)))


def card(**model: Any) -> ProtocolCard:
    return protocol_card(suite(**model), ContentDigests(), evaluator_version="proctor test")


def spec(backend: str = "echo", **changes: Any) -> EndpointSpec:
    return EndpointSpec(backend=backend, url=URL, served_name="m", model_version=None, **changes)


def asked(of: EndpointSpec, *prompts: str) -> list[Completion]:
    trials = [
        Trial(stage="answer", arm=Arm.CANONICAL, item_id=f"i{place}", prompt=prompt)
        for place, prompt in enumerate(prompts)
    ]

    async def ask() -> list[Completion]:
        backends = Backends(SETTINGS)
        try:
            assert (await backends.probe(of)).ok
            return await backends.answer(of, trials, DECODING, deadline_s=1.0)
        finally:
            await backends.close()

    return asyncio.run(ask())


@pytest.mark.usefixtures("echo")
def test_a_worker_opens_a_plug_in_and_has_it_answer_a_shard() -> None:
    first, second = asked(spec(), "one", "two")
    assert (first.text, second.text) == ("one at 0.5", "two at 0.5")
    assert (first.finish_reason, first.input_tokens, first.output_tokens, first.endpoint) == ("stop", 3, 4, URL)


@pytest.mark.usefixtures("echo")
def test_trials_are_spread_over_the_replicas_of_a_plug_in() -> None:
    replicas = (Replica(url="http://127.0.0.1:9/v1"), Replica(url="http://127.0.0.1:8/v1"))
    found = asked(spec(replicas=replicas), *(f"prompt {n}" for n in range(20)))
    assert {completion.text for completion in found} == {f"prompt {n} at 0.5" for n in range(20)}
    assert {completion.endpoint for completion in found} == {replica.url for replica in replicas}


@pytest.mark.usefixtures("echo")
def test_what_goes_wrong_with_one_prompt_of_a_plug_in_stands_in_its_completion() -> None:
    *fine, endless = asked(spec(), *(f"prompt {n}" for n in range(20)), "endless")
    assert endless.error is not None
    assert "it is not kept" in endless.error
    assert all(completion.error is None for completion in fine)
    with pytest.raises(ShardUnanswered, match="ConnectionError: try later"):
        asked(spec(), "busy")


@pytest.mark.usefixtures("echo")
def test_a_plug_in_that_does_not_keep_the_contract_is_named() -> None:
    with pytest.raises(BadInputError, match=r"'dumb' of toy 1\.2 has no complete, session, close"):
        asked(spec("dumb"), "one")
    with pytest.raises(EndpointError, match=r"'disorderly' of toy 1\.2 gave 2 completions for 2 trials, or not in"):
        asked(spec("disorderly"), "one", "two")


@pytest.mark.usefixtures("echo")
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("unopened", "RuntimeError: no driver"),
        ("unprobed", "KeyError: 'model'"),
        ("unasked", "IndexError: no such prompt"),
    ],
)
def test_a_plug_in_that_raises_is_named(name: str, said: str) -> None:
    with pytest.raises(EndpointError, match=rf"the backend '{name}' of toy 1\.2 failed: {said}"):
        asked(spec(name), "one")


def test_a_worker_without_the_plug_in_says_which_backends_it_has() -> None:
    with pytest.raises(BadInputError, match="there is no backend 'echo'; there are: triton, openai, infer, in_process"):
        asked(spec(), "one")


def test_a_suite_may_name_a_plug_in_that_is_here_and_no_other(plugins: Plugins) -> None:
    with pytest.raises(SuiteProblems, match='"echo" is none of "triton", "openai", "infer", "in_process"'):
        suite(backend="echo")
    installed(plugins)
    assert resolve_endpoint(suite(backend="echo"), SETTINGS).backend == "echo"
    with pytest.raises(SuiteProblems) as refused:
        suite(backend="ecko")
    assert [problem.mend for problem in refused.value.problems] == ['did you mean "echo"?']


def test_a_suite_on_record_is_read_where_its_plug_in_is_not() -> None:
    on_record = Suite.model_validate(suite_json(backend="echo"))
    assert Suite.model_validate(on_record.plain()).model.backend == "echo"
    with pytest.raises(ValueError, match="Input should be 'triton', 'openai', 'infer' or 'in_process'"):
        Suite.model_validate(suite_json(backend="no name"))


def test_an_operator_may_name_a_plug_in_for_an_endpoint(plugins: Plugins) -> None:
    text = f'{{"mine": {{"url": "{URL}", "backend": "echo"}}}}'
    with pytest.raises(BadInputError, match=r"backend is .echo.; input should be 'triton', 'openai', 'infer' or"):
        parse_operator_endpoints(text, source="PROCTOR_ENDPOINTS")
    installed(plugins)
    endpoints = parse_operator_endpoints(text, source="PROCTOR_ENDPOINTS")
    assert (
        resolve_endpoint(suite(endpoint="mine"), SETTINGS.model_copy(update={"endpoints": endpoints})).backend == "echo"
    )


@pytest.mark.usefixtures("echo")
def test_a_plug_in_is_not_held_to_public_addresses_so_that_only_an_operator_opens_it_a_url() -> None:
    settings = SETTINGS.model_copy(update={"other_endpoints": OtherEndpoints.PUBLIC})
    public = "https://model.example/v1"
    assert resolve_endpoint(suite(endpoint=public), settings).public_only
    with pytest.raises(BadInputError, match="the backend 'echo' is a plug-in, which cannot be held to public"):
        resolve_endpoint(suite(endpoint=public, backend="echo"), settings)
    endpoints = parse_operator_endpoints(f'{{"mine": "{public}"}}', source="PROCTOR_ENDPOINTS")
    named = settings.model_copy(update={"endpoints": endpoints})
    assert resolve_endpoint(suite(endpoint=public, backend="echo"), named).backend == "echo"


def test_the_version_of_a_plug_in_is_on_the_card_and_belongs_to_the_run(plugins: Plugins) -> None:
    cards = []
    for version in ("1.2", "1.3"):
        installed(plugins, version)
        cards.append(card(backend="echo"))
    assert [one.plugins for one in cards] == [{"backend echo": "toy 1.2"}, {"backend echo": "toy 1.3"}]
    assert cards[0].fingerprint != cards[1].fingerprint
    assert cards[0].protocol_digest == cards[1].protocol_digest == card().protocol_digest


@pytest.mark.usefixtures("echo")
def test_the_schema_lists_the_plug_ins_that_are_here() -> None:
    backend = suite_schema()["$defs"]["ModelSection"]["properties"]["backend"]
    assert backend["anyOf"][0]["enum"] == ["triton", "openai", "infer", "in_process", *sorted(NAMES)]


def test_no_distribution_is_looked_through_for_backends_of_proctors_own(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(group: str) -> None:
        raise AssertionError(f"{group} was looked for")

    monkeypatch.setattr("proctor.domain.plugins.declared", refused)
    assert resolve_endpoint(suite(backend="infer"), SETTINGS).backend == "infer"
    assert card(backend="openai").plugins == {}
