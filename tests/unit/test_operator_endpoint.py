"""The operator's endpoints: what may be written, what is read back, and what a person is told who slips."""

from __future__ import annotations

import json
from typing import Any

import pytest

from proctor.domain.endpoint import Balance, DnsDiscovery, Replica
from proctor.domain.errors import BadInputError
from proctor.domain.operator_endpoint import (
    OperatorEndpoint,
    operator_endpoints_json,
    parse_operator_endpoints,
)
from proctor.domain.prices import Prices

FULL = {
    "replicas": [
        "grpc://a:8001",
        {"url": "grpc://b:8001", "weight": 4, "metrics_url": "http://b:8002/metrics"},
    ],
    "backend": "triton",
    "balance": "weighted",
    "max_in_flight": 64,
    "private": True,
    "input_price_per_million": 0.5,
    "output_price_per_million": 1.5,
}
DNS = {"discovery": {"kind": "dns", "url": "grpc://triton.svc:8001", "refresh_s": 5}}
SLICES = {"discovery": {"kind": "endpoint_slices", "namespace": "prod", "service": "triton", "port": "grpc"}}


def read(endpoint: Any) -> OperatorEndpoint:
    return parse_operator_endpoints(json.dumps({"a": endpoint}), source="PROCTOR_ENDPOINTS")["a"]


def test_a_url_alone_is_an_endpoint() -> None:
    assert read("https://host/v1") == OperatorEndpoint(url="https://host/v1") == read({"url": "https://host/v1"})


def test_everything_that_an_operator_can_say_is_kept() -> None:
    assert read(FULL) == OperatorEndpoint(
        replicas=(
            Replica(url="grpc://a:8001"),
            Replica(url="grpc://b:8001", weight=4, metrics_url="http://b:8002/metrics"),
        ),
        backend="triton",
        balance=Balance.WEIGHTED,
        max_in_flight=64,
        private=True,
        input_price_per_million=0.5,
        output_price_per_million=1.5,
    )
    assert read(DNS).discovery == DnsDiscovery(url="grpc://triton.svc:8001", refresh_s=5)


@pytest.mark.parametrize("endpoint", ["https://host/v1", FULL, DNS, SLICES])
def test_what_is_handed_on_is_read_back_the_same(endpoint: Any) -> None:
    endpoints = {"org/model": read(endpoint), "other": read("grpc://x")}
    assert parse_operator_endpoints(operator_endpoints_json(endpoints), source="child") == endpoints


@pytest.mark.parametrize(
    ("endpoint", "urls"),
    [
        ("https://host/v1", ("https://host/v1",)),
        (FULL, ("grpc://a:8001", "grpc://b:8001")),
        (DNS, ("grpc://triton.svc:8001",)),
        (SLICES, ("grpc://triton.prod.svc",)),
    ],
)
def test_every_kind_of_endpoint_has_a_url_that_names_it(endpoint: Any, urls: tuple[str, ...]) -> None:
    assert read(endpoint).urls == urls


@pytest.mark.parametrize(
    ("endpoint", "approved"),
    [
        ("https://host/v1", False),
        ({"url": "https://host/v1", "private": True}, True),
        ("http://127.0.0.1:8000", True),
        ("in-process://reference", True),
        ({"replicas": ["http://127.0.0.1:1", "http://127.0.0.1:2"]}, True),
        ({"replicas": ["http://127.0.0.1:1", "http://far:2"]}, False),
        ({"discovery": {"kind": "dns", "url": "grpc://localhost:8001"}}, False),
    ],
)
def test_private_items_go_to_approved_endpoints_and_to_this_machine(endpoint: Any, approved: bool) -> None:
    assert read(endpoint).takes_private is approved


def test_prices_are_for_a_million_tokens_of_each_kind() -> None:
    prices = read(FULL).prices
    assert prices == Prices(input_per_million=0.5, output_per_million=1.5)
    assert prices.of(2_000_000, 1_000_000) == 2.5
    assert read("grpc://x").prices is None


@pytest.mark.parametrize(
    ("endpoint", "message"),
    [
        (7, "is neither text nor an object; write a URL, or an object"),
        ("host:8001", 'the endpoint "host:8001" is no URL; write one like'),
        ({}, "has none of url, replicas and discovery; give one of the three"),
        ({"url": "http://a", "replicas": ["http://b"]}, "has url and replicas; give one of the three"),
        ({"replicas": ["http://a", "http://A:80/"]}, "names a replica twice"),
        ({"replicas": ["http://a", "grpc://a"]}, "has replicas that are spoken to in different ways"),
        ({"replicas": ["http://a/v1", "http://b/infer"]}, "has replicas that are spoken to in different ways"),
        ({"replicas": [{"url": "http://a", "weight": 0}]}, "replicas[0].weight is 0; input should be greater than 0"),
        ({"replicas": [{"weight": 2}]}, "replicas[0].url is missing; add it"),
        ({"replicas": [{"url": "grpc://a", "metrics_url": "grpc://a"}]}, "has a metrics_url that is not http or https"),
        ({"url": "http://a", "privat": True}, "privat is an unknown key; known: url, replicas, discovery,"),
        ({"url": "http://a", "private": "yes"}, 'private is "yes"; input should be a valid boolean'),
        ({"url": "http://a", "private": 1}, "private is 1; input should be a valid boolean"),
        ({"url": "http://a", "balance": "fair"}, 'balance is "fair"; input should be'),
        ({"url": "http://a", "max_in_flight": 0}, "max_in_flight is 0; input should be greater than or equal to 1"),
        ({"url": "http://a", "input_price_per_million": 1}, "has one price; give both"),
        ({"url": "http://a", "input_price_per_million": -1}, "input_price_per_million is -1;"),
        ({"url": "http://a", "input_price_per_million": float("nan")}, "input_price_per_million is NaN;"),
        ({"discovery": {"kind": "magic"}}, "discovery is an object; input tag 'magic'"),
        ({"discovery": {"kind": "dns"}}, "discovery.url is missing; add it"),
        ({"discovery": {"kind": "dns", "url": "grpc://10.0.0.1"}}, "discovers an address; give a name"),
        ({"url": {"user": "secret"}}, "url is an object; input should be a valid string"),
        ({"url": "http://user:secret@host"}, 'the endpoint "http://…@host" has a user name'),
    ],
)
def test_a_slip_is_named_with_its_endpoint_its_key_and_the_mend(endpoint: Any, message: str) -> None:
    with pytest.raises(BadInputError) as refusal:
        read(endpoint)
    said = str(refusal.value)
    assert said.startswith('PROCTOR_ENDPOINTS: endpoint "a"')
    assert message in said
    assert "secret" not in said
    assert "\n" not in said


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[1]", "P is not a JSON object; write one like"),
        ("{", "P is not JSON (Expecting"),
        ("[" * 100_000, "P is nested too deeply"),
        ('{"a": "http://a", "a": "http://b"}', 'P: "a" stands there twice'),
        ('{"": "http://a"}', 'P: endpoint "" is no id'),
        ('{"http://a": "http://a"}', 'P: endpoint "http://a" is no id'),
        ('{"a\\u001b[2J": "http://a"}', 'P: endpoint "a\\u001b[2J" is no id'),
    ],
)
def test_text_that_describes_no_endpoints_is_refused_in_one_line(text: str, message: str) -> None:
    with pytest.raises(BadInputError) as refusal:
        parse_operator_endpoints(text, source="P")
    assert message in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_nothing_described_is_no_endpoint() -> None:
    assert parse_operator_endpoints(" ", source="P") == {}
