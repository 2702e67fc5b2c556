"""The name under which an endpoint serves a model: a path, as vLLM and llama.cpp have it, and none that climbs out."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from proctor.domain.answering import SolverSection
from proctor.domain.base import Frozen
from proctor.domain.endpoint import EndpointSpec
from proctor.domain.problems import SuiteProblems
from proctor.domain.routing import RouterSection
from proctor.domain.suite import ModelSection, ParaphraserSection
from proctor.domain.suite_problems import parse_suite
from proctor.domain.suite_types import MAX_SERVED_NAME
from proctor.domain.trial import Arm, Decoding, Trial
from proctor.inference.balancing.queue_watch import pending_requests
from proctor.inference.http.openai import OpenAIBackend
from proctor.inference.reference.in_process import InProcessBackend
from proctor.runtime.settings import Settings
from tests.answering_http import Asked, Reply, serving
from tests.suites.examples import SMALL

#: As servers give them by default: vLLM and SGLang the path of the model, llama.cpp that of the file, Ollama a tag.
NAMES = [
    "/models/x",
    "/root/.cache/huggingface/hub/models--org--name/snapshots/12fd25f77366fa6b3b4b768ec3050bf629380bac",
    "./models/x.gguf",
    "models/SmolLM2-135M-Instruct.Q4_1.gguf",
    "_private",
    "llama3:8b",
    "ft:base:org::id",
    "org/name@main",
    "a..b",
    "m",
]
HOSTILE = [
    "",
    "..",
    "../x",
    "/..",
    "/models/../../etc/passwd",
    "models/..",
    "/models/x\n",
    "/models/\x00x",
    "/models/x\x1b[2J",
    "/models/x?a=b",
    "/models/%2e%2e/x",
    "/models/x#y",
    'm",model="other',
    "m{}",
    "/models\\x",
    "/m\u202eodels",
    "/m x",
    "/" + "x" * MAX_SERVED_NAME,
]


def suite_with(name: str) -> Any:
    return parse_suite(json.dumps({**SMALL, "model_config": {**SMALL["model_config"], "served_name": name}}))


@pytest.mark.parametrize("name", NAMES)
def test_a_name_that_servers_have_is_taken_and_asked_for_as_it_is(name: str) -> None:
    assert suite_with(name).model.name_on_endpoint == name
    solver = {"model": "org/s", "endpoint": "solver", "served_name": name}
    sections: list[tuple[type[Frozen], dict[str, Any]]] = [
        (ParaphraserSection, {"served_name": name}),
        (RouterSection, {"served_name": name}),
        (SolverSection, solver),
    ]
    for section, fields in sections:
        assert section.model_validate(fields).plain()["served_name"] == name


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_name_is_refused_in_every_section(name: str) -> None:
    with pytest.raises(SuiteProblems, match=r"model_config\.served_name"):
        suite_with(name)
    for section in (ParaphraserSection, RouterSection):
        with pytest.raises(ValidationError, match="served_name"):
            section.model_validate({"served_name": name})
    with pytest.raises(ValidationError, match="served_name"):
        SolverSection.model_validate({"model": "s", "endpoint": "solver", "served_name": name})


def test_what_is_wrong_with_a_name_that_climbs_is_said() -> None:
    with pytest.raises(SuiteProblems, match=r"'\.\.'") as refused:
        suite_with("/models/../x")
    assert "path" in str(refused.value)


@given(st.text(max_size=40))
def test_no_taken_name_has_a_control_character_or_climbs(name: str) -> None:
    model = SMALL["model_config"]
    try:
        taken = ModelSection.model_validate({**model, "served_name": name}).name_on_endpoint
    except ValidationError:
        return
    assert taken.isascii()
    assert taken.isprintable()
    assert not set(taken) & set(" \"'\\{},?#%&<>|;$`*()")
    assert ".." not in taken.split("/")


def test_a_path_is_what_an_openai_server_is_asked_for_and_what_it_lists() -> None:
    name = "/models/x"

    def answer(_: int, asked: Asked) -> Reply:
        if asked.path == "/v1/models":
            return Reply(body=json.dumps({"data": [{"id": name}]}).encode())
        return Reply(body=json.dumps({"choices": [{"text": "A", "finish_reason": "stop"}]}).encode())

    async def run(url: str) -> None:
        spec = EndpointSpec(backend="openai", url=url, served_name=name, model_version=None)
        backend = OpenAIBackend(spec, environ={})
        try:
            assert (await backend.probe()).ok
            trial = Trial(arm=Arm.CANONICAL, item_id="1", prompt="?")
            (completion,) = await backend.complete([trial], Decoding(), deadline_s=20.0)
            assert completion.text == "A"
        finally:
            await backend.close()

    with serving(answer) as server:
        asyncio.run(run(server.url))
        assert [asked.path for asked in server.asked] == ["/v1/models", "/v1/completions"]
        assert server.asked[1].body["model"] == name


@pytest.mark.parametrize("name", ["/etc", "./x", "x/y", ".hidden"])
def test_a_model_in_process_is_one_of_the_bundle_and_never_a_path(name: str, tmp_path: Path) -> None:
    spec = EndpointSpec(backend="in_process", url="in-process://x", served_name=name, model_version=None)
    probe = asyncio.run(InProcessBackend(spec, Settings.from_environment({"PROCTOR_HOME": str(tmp_path)})).probe())
    assert not probe.ok
    assert "is not the name of a model of the bundle" in probe.detail


def test_a_path_counts_in_the_queue_of_a_server_as_any_name_does() -> None:
    metrics = b'nv_inference_pending_request_count{model="/models/x",version="1"} 3\n'
    assert pending_requests(metrics, "/models/x") == 3
    assert pending_requests(metrics, "/models") is None
