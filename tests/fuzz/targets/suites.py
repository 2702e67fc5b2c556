"""What a person or a caller of the gateway sends: suites, and the settings of an operator."""

from __future__ import annotations

import json
from functools import cache

from proctor.domain.endpoint_url import endpoint_url
from proctor.domain.errors import BadInputError
from proctor.domain.operator_endpoint import operator_endpoints_json, parse_operator_endpoints
from proctor.domain.suite_problems import parse_suite
from tests.fuzz.target import Target
from tests.suites.examples import SMALL
from tests.support import REPOSITORY

_ENDPOINTS = {
    "prod": "grpc://triton:8001",
    "llama": {
        "replicas": ["grpc://a:8001", {"url": "grpc://b:8001", "weight": 4, "metrics_url": "http://b:8002/metrics"}],
        "balance": "measured",
        "max_in_flight": 64,
        "private": True,
        "input_price_per_million": 0.5,
        "output_price_per_million": 1.5,
    },
    "vllm": {"discovery": {"kind": "endpoint_slices", "namespace": "ml", "service": "vllm", "port": "grpc"}},
}


@cache
def _suites() -> list[bytes]:
    malformed = sorted((REPOSITORY / "tests" / "suites" / "malformed").glob("*.json"))
    return [json.dumps(SMALL).encode(), *(path.read_bytes() for path in malformed)]


def _feed_suite(data: bytes) -> None:
    suite = parse_suite(data)
    again = parse_suite(suite.model_dump_json(by_alias=True, exclude_unset=True))
    assert again == suite, "a suite is another after it was written and read"


def _feed_endpoints(data: bytes) -> None:
    endpoints = parse_operator_endpoints(data.decode("utf-8", "replace"), source="fuzz")
    assert parse_operator_endpoints(operator_endpoints_json(endpoints), source="fuzz") == endpoints


def _feed_url(data: bytes) -> None:
    url = endpoint_url(data.decode("utf-8", "replace"))
    assert endpoint_url(url.text) == url, "a URL is another after it was written and read"


TARGETS = (
    Target(
        "suite",
        ("proctor.domain.strict_json", "proctor.domain.suite_problems", "proctor.domain.suite_messages"),
        _feed_suite,
        _suites,
        (BadInputError,),
        words=(b'"model_config"', b'"$comment"', b'"dataset_config"', b'"perturbation_config"', b'"hub_id"'),
    ),
    Target(
        "operator_endpoints",
        ("proctor.domain.operator_endpoint", "proctor.domain.endpoint_url", "proctor.domain.url"),
        _feed_endpoints,
        lambda: [json.dumps(_ENDPOINTS).encode()],
        (BadInputError,),
        words=(b"grpc://", b"https://", b'"replicas"', b'"discovery"', b"0x7f.1", b"[::1]", b"@", b"%2e"),
    ),
    Target(
        "endpoint_url",
        ("proctor.domain.endpoint_url", "proctor.domain.url"),
        _feed_url,
        lambda: [
            b"grpc://triton:8001", b"https://host/v1/infer", b"http://[::1]:80/v1", b"http://127.1/v1",
            b"https://b\xc3\xbccher.example:443/a/../b",
        ],
        (BadInputError,),
        words=(b"://", b"[::ffff:1.2.3.4]", b"%00", b"\\", b"@", b"xn--", b"..", b"?", b"#", b":65536"),
        max_bytes=4096,
    ),
)  # fmt: skip
