"""How an endpoint is found and spoken to: its backend told from its URL, its address, its key."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from proctor.domain.errors import BadInputError
from proctor.domain.operator_endpoint import OtherEndpoints
from proctor.domain.suite import Suite
from proctor.inference.http.address import http_address
from proctor.inference.worker.api_keys import api_key, without_key
from proctor.router.submit.endpoints import resolve_endpoint
from proctor.runtime.settings import Settings
from tests.suites.examples import SMALL, article_suite

SETTINGS = Settings(home=Path(), other_endpoints=OtherEndpoints.ANY)
EXAMPLE = "https://host/v1"


def suite(endpoint: str, **model: str) -> Suite:
    return Suite.model_validate(SMALL | {"model_config": SMALL["model_config"] | {"endpoint": endpoint} | model})


@pytest.mark.parametrize(
    ("url", "backend"),
    [
        ("grpc://host:8001", "triton"),
        ("grpcs://host", "triton"),
        ("http://host", "openai"),
        ("https://host/v1", "openai"),
        ("http://host/infer", "infer"),
        ("https://host/v1/infer/", "infer"),
        ("https://infer", "openai"),
        ("https://host/infer/v1", "openai"),
        ("https://host/preinfer", "openai"),
    ],
)
def test_the_backend_is_told_from_the_url(url: str, backend: str) -> None:
    assert resolve_endpoint(suite(url), SETTINGS).backend == backend


def test_a_suite_can_say_that_a_url_without_infer_is_of_the_articles_contract() -> None:
    found = resolve_endpoint(suite("https://host/v1", backend="infer"), SETTINGS)
    assert (found.backend, found.url) == ("infer", "https://host/v1")


def test_the_articles_own_suite_is_spoken_to_by_its_contract() -> None:
    found = resolve_endpoint(Suite.model_validate_json(article_suite()), SETTINGS)
    assert (found.backend, found.url) == ("infer", "https://inference.internal/v1/infer")


@pytest.mark.parametrize(
    ("url", "host", "encrypted", "loopback"),
    [
        ("https://Models.Example/v1", "models.example", True, False),
        ("https://models.example:8443", "models.example:8443", True, False),
        ("http://127.0.0.1:8000/v1/", "127.0.0.1:8000", False, True),
        ("http://[::1]:8000", "[::1]:8000", False, True),
    ],
)
def test_an_address_is_a_host_and_how_private_the_way_to_it_is(
    url: str, host: str, encrypted: bool, loopback: bool
) -> None:
    found = http_address(url, example=EXAMPLE)
    assert (found.host, found.encrypted, found.loopback) == (host, encrypted, loopback)
    assert not found.url.endswith("/")


FAR, CLEAR, NEAR = "https://far.example:8443/v1", "http://far.example/v1", "http://localhost:8000"
KEYS = json.dumps({"Far.Example:8443": "k-far", "other.example": "k-other"})


@pytest.mark.parametrize(
    ("url", "environ", "openai", "key"),
    [
        (FAR, {}, True, None),
        (FAR, {"PROCTOR_API_KEY": "k", "OPENAI_API_KEY": "o"}, True, "k"),
        (FAR, {"PROCTOR_API_KEY": "k", "PROCTOR_API_KEYS": KEYS}, True, "k-far"),
        ("https://far.example/v1", {"PROCTOR_API_KEYS": KEYS}, True, None),
        (NEAR, {"PROCTOR_API_KEY": "k", "PROCTOR_API_KEYS": KEYS}, True, "k"),
        (FAR, {"OPENAI_API_KEY": "o"}, True, "o"),
        (NEAR, {"OPENAI_API_KEY": "o"}, True, "o"),
        (CLEAR, {"OPENAI_API_KEY": "o"}, True, None),
        (CLEAR, {"PROCTOR_API_KEY": "k"}, True, "k"),
        (FAR, {"OPENAI_API_KEY": "o"}, False, None),
        (FAR, {"PROCTOR_API_KEY": "", "PROCTOR_API_KEYS": ""}, False, None),
    ],
)
def test_each_endpoint_gets_its_own_key(url: str, environ: dict[str, str], openai: bool, key: str | None) -> None:
    assert api_key(http_address(url, example=EXAMPLE), environ, openai=openai, named=True) == key


@pytest.mark.parametrize(
    ("url", "environ", "key"),
    [
        (FAR, {"PROCTOR_API_KEY": "k", "OPENAI_API_KEY": "o"}, None),
        (FAR, {"PROCTOR_API_KEY": "k", "PROCTOR_API_KEYS": KEYS}, "k-far"),
        ("https://api.openai.com/v1", {"PROCTOR_API_KEY": "k", "OPENAI_API_KEY": "o"}, "o"),
        ("https://api.openai.com.evil.example/v1", {"OPENAI_API_KEY": "o"}, None),
        ("https://api.openai.com:8443/v1", {"OPENAI_API_KEY": "o"}, None),
        ("http://api.openai.com/v1", {"OPENAI_API_KEY": "o"}, None),
        (NEAR, {"PROCTOR_API_KEY": "k", "OPENAI_API_KEY": "o"}, None),
        (NEAR, {"PROCTOR_API_KEYS": '{"localhost:8000": "k-near"}'}, "k-near"),
        (CLEAR, {"PROCTOR_API_KEYS": '{"far.example": "k-far"}'}, None),
    ],
)
def test_an_endpoint_that_only_a_suite_names_gets_no_key_but_its_host_s(
    url: str, environ: dict[str, str], key: str | None
) -> None:
    assert api_key(http_address(url, example=EXAMPLE), environ, openai=True, named=False) == key


@pytest.mark.parametrize(
    "environ",
    [
        {"PROCTOR_API_KEY": "sk-secret\nhost: evil"},
        {"PROCTOR_API_KEY": "sk-secrét"},
        {"PROCTOR_API_KEYS": '{"host": "sk-secret"'},
        {"PROCTOR_API_KEYS": '["sk-secret"]'},
        {"PROCTOR_API_KEYS": '{"host": ["sk-secret"]}'},
    ],
)
def test_a_key_that_cannot_be_used_is_refused_without_being_shown(environ: dict[str, str]) -> None:
    with pytest.raises(BadInputError, match="API") as refusal:
        api_key(http_address("https://host", example=EXAMPLE), environ, openai=True, named=True)
    assert "secr" not in str(refusal.value)


def test_a_key_is_taken_out_of_a_text_unless_it_is_too_short_to_be_one() -> None:
    assert without_key("say sk-12345678 twice: sk-12345678", "sk-12345678") == "say [API key] twice: [API key]"
    assert without_key("the answer is 42", "42") == "the answer is 42"
    assert without_key("the answer", None) == "the answer"
