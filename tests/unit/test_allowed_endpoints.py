"""Which endpoints a suite may have asked: the operator's list, what it covers, and who may see private items."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest

from proctor.domain.endpoint import Balance, DnsDiscovery, EndpointSpec, Replica
from proctor.domain.errors import BadInputError
from proctor.domain.operator_endpoint import OperatorEndpoint, OtherEndpoints
from proctor.domain.prices import Prices
from proctor.domain.suite import Suite
from proctor.router.submit.allowed import allowed_endpoint
from proctor.router.submit.endpoints import resolve_endpoint, resolve_paraphraser, resolve_router
from proctor.runtime.settings import Settings
from tests.suites.examples import with_changes

LISTED = {
    "prod": OperatorEndpoint(url="https://models.example/v1", max_in_flight=64),
    "pool": OperatorEndpoint(
        replicas=(Replica(url="grpc://a:8001"), Replica(url="grpc://b:8001", weight=4)), balance=Balance.WEIGHTED
    ),
    "found": OperatorEndpoint(discovery=DnsDiscovery(url="grpc://triton.svc:8001")),
    "org/approved": OperatorEndpoint(url="https://approved.example/v1", private=True),
}
NOBODY_S = "https://api.elsewhere.example/v1"


def settings(others: str = "loopback", /, **endpoints: OperatorEndpoint) -> Settings:
    return Settings(home=Path(), endpoints={**LISTED, **endpoints}, other_endpoints=OtherEndpoints(others))


def suite(endpoint: str, **changes: Any) -> Suite:
    changes = {name.replace("__", "."): value for name, value in changes.items()}
    return Suite.model_validate(with_changes({"model_config.endpoint": endpoint, **changes}))


def resolved(endpoint: str, others: str = "loopback", **changes: Any) -> EndpointSpec:
    return resolve_endpoint(suite(endpoint, **changes), settings(others))


def test_an_id_stands_for_all_that_the_operator_says_of_it() -> None:
    found = resolved("pool")
    assert found.replicas == LISTED["pool"].replicas
    assert (found.backend, found.url, found.balance) == ("triton", "grpc://a:8001", Balance.WEIGHTED)
    assert resolved("prod").max_in_flight == 64
    assert (resolved("found").discovery, resolved("found").url) == (LISTED["found"].discovery, "grpc://triton.svc:8001")


def test_an_id_that_is_not_listed_is_refused_with_those_that_are() -> None:
    with pytest.raises(
        BadInputError, match=r"model_config\.endpoint is 'other', .*known: found, org/approved, pool, prod"
    ):
        resolved("other")


def test_an_operator_s_backend_holds_unless_the_suite_says_another() -> None:
    named = settings(mine=OperatorEndpoint(url="https://mine.example/v1", backend="infer"))
    assert resolve_endpoint(suite("mine"), named).backend == "infer"
    assert resolve_endpoint(suite("https://mine.example/v1"), named).backend == "infer"
    assert resolve_endpoint(suite("mine", model_config__backend="openai"), named).backend == "openai"


@pytest.mark.parametrize("url", ["https://models.example/v1", "https://MODELS.example:443/v1/deployments/7"])
@pytest.mark.parametrize("others", ["none", "loopback", "public", "any"])
def test_a_url_at_or_below_a_listed_one_is_asked_itself(url: str, others: str) -> None:
    found = resolved(url, others)
    assert found.url == url.replace("MODELS", "models").replace(":443", "")
    assert (found.max_in_flight, found.public_only) == (64, False)


def test_suites_that_write_one_place_in_different_ways_share_its_pool() -> None:
    written = ["http://127.0.0.1:8000/v1", "HTTP://127.0.0.1:8000/v1/"]
    assert len({resolved(url).pool for url in written}) == 1


def test_a_url_of_one_replica_asks_that_one_alone() -> None:
    found = resolved("grpc://b:8001", "none")
    assert (found.url, found.replicas) == ("grpc://b:8001", ())


@pytest.mark.parametrize(
    "url",
    [
        NOBODY_S,
        "http://models.example/v1",
        "https://models.example:8443/v1",
        "https://models.example/v2",
        "https://models.example/v1beta",
        "https://models.example.evil.example/v1",
        "grpc://triton.svc:8001",
        "http://169.254.169.254/latest",
        "http://0.0.0.0:6379",
        "http://10.0.0.1",
    ],
)
def test_a_url_that_nothing_covers_is_refused_with_both_ways_out(url: str) -> None:
    with pytest.raises(BadInputError) as refusal:
        resolved(url)
    assert f'PROCTOR_ENDPOINTS=\'{{"my-endpoint": "{url}"}}\'' in str(refusal.value)
    assert "PROCTOR_OTHER_ENDPOINTS=public" in str(refusal.value)


def test_the_way_out_can_be_pasted_into_a_shell_whatever_the_url_holds() -> None:
    with pytest.raises(BadInputError) as refusal:
        resolved("https://host/';touch$HOME&x;'")
    said = str(refusal.value)
    (assignment,) = (word for word in shlex.split(said[said.index("PROCTOR_ENDPOINTS") :]) if "my-endpoint" in word)
    assert assignment == 'PROCTOR_ENDPOINTS={"my-endpoint": "https://host/\';touch$HOME&x;\'"},'


@pytest.mark.parametrize(("others", "covered"), [("none", False), ("loopback", True), ("public", False), ("any", True)])
@pytest.mark.parametrize("url", ["http://127.0.0.1:8000/v1", "http://localhost:9/infer", "grpc://[::1]:8001"])
def test_this_machine_may_be_asked_where_loopback_or_everything_is_open(url: str, others: str, covered: bool) -> None:
    if covered:
        assert resolved(url, others).public_only is False
        return
    with pytest.raises(BadInputError, match=r"which no endpoint here covers|and here a suite may bring"):
        resolved(url, others)


def test_where_public_urls_are_open_one_is_asked_at_public_addresses_only() -> None:
    assert resolved(NOBODY_S, "public").public_only is True
    assert resolved(NOBODY_S, "any").public_only is False


@pytest.mark.parametrize(
    "url",
    [
        "http://api.elsewhere.example/v1",
        "grpc://api.elsewhere.example:8001",
        "https://10.0.0.1/v1",
        "https://169.254.169.254/latest",
        "https://192.168.1.1",
        "https://0.0.0.0",
        "https://[::]",
        "https://[fd00::1]",
        "https://[fe80::1]",
        "https://224.0.0.1",
        "https://100.64.0.1",
        "https://168.63.129.16",
        "https://[64:ff9b::a9fe:a9fe]",
    ],
)
def test_where_public_urls_are_open_clear_text_and_private_addresses_stay_closed(url: str) -> None:
    with pytest.raises(BadInputError, match="have the operator name it in PROCTOR_ENDPOINTS"):
        resolved(url, "public")


@pytest.mark.parametrize("others", ["none", "loopback", "public", "any"])
@pytest.mark.parametrize("url", ["https://models.example@evil.example/v1", "https://models.example/v1/../admin"])
def test_an_odd_url_is_no_endpoint_whatever_is_open(url: str, others: str) -> None:
    with pytest.raises(BadInputError):
        allowed_endpoint("model_config.endpoint", url, settings(others))


def rewording(endpoint: str | None = None, model: str = "org/rewriter", **more: Any) -> dict[str, Any]:
    chosen = {
        "perturbation_config.perturbation_strategy": "paraphrase_llm",
        "perturbation_config.paraphrase_model": model,
        "perturbation_config.paraphraser.chat_template": "none",
    }
    return chosen | ({"perturbation_config.paraphraser.endpoint": endpoint} if endpoint else {}) | more


def routed(endpoint: str | None = None, model: str | None = None) -> dict[str, Any]:
    chosen = {"protocol_config.protocol": "router_worker"}
    chosen |= {"protocol_config.router.endpoint": endpoint} if endpoint else {}
    return chosen | ({"protocol_config.router.model": model} if model else {})


def test_the_models_beside_the_audited_one_are_held_to_the_same_list() -> None:
    with pytest.raises(BadInputError, match=r"perturbation_config\.paraphraser\.endpoint is .*no endpoint here covers"):
        resolve_paraphraser(suite("prod", **rewording(NOBODY_S)), settings())
    with pytest.raises(BadInputError, match=r"protocol_config\.router\.endpoint is .*no endpoint here covers"):
        resolve_router(suite("prod", **routed(NOBODY_S)), settings())


def test_a_model_that_is_named_like_an_endpoint_is_asked_there_and_any_other_beside_the_audited_one() -> None:
    near = resolve_paraphraser(suite("pool", **rewording()), settings())
    own = resolve_paraphraser(suite("pool", **rewording(model="org/approved")), settings())
    assert near is not None
    assert own is not None
    assert (near.url, near.replicas) == ("grpc://a:8001", LISTED["pool"].replicas)
    assert (own.url, own.served_name) == ("https://approved.example/v1", "approved")


PRIVATE: dict[str, Any] = {"dataset_config.private": True}


@pytest.mark.parametrize("endpoint", ["org/approved", "https://approved.example/v1/x", "http://127.0.0.1:8000/v1"])
def test_private_items_go_to_approved_endpoints_and_to_this_machine(endpoint: str) -> None:
    if endpoint == "org/approved":
        named = settings(approved=LISTED["org/approved"])
        assert resolve_endpoint(suite("approved", **PRIVATE), named).url == "https://approved.example/v1"
    else:
        assert resolved(endpoint, **PRIVATE).url == endpoint


def test_private_items_go_to_the_local_stack_in_process() -> None:
    named = settings(**{"local-triton": OperatorEndpoint(url="in-process://reference")})
    assert resolve_endpoint(suite("local-triton", **PRIVATE), named).backend == "in_process"


@pytest.mark.parametrize("endpoint", ["prod", "pool", "found", "https://models.example/v1/x", NOBODY_S])
@pytest.mark.parametrize("others", ["public", "any"])
def test_private_items_go_nowhere_else_whatever_is_open(endpoint: str, others: str) -> None:
    with pytest.raises(BadInputError) as refusal:
        resolved(endpoint, others, **PRIVATE)
    said = str(refusal.value)
    assert said.startswith("dataset_config.private is true, and model_config.endpoint is ")
    assert endpoint in said
    assert '"private": true in PROCTOR_ENDPOINTS' in said


def test_private_items_are_kept_from_the_rewording_model_and_the_routers_too() -> None:
    near = "http://127.0.0.1:8000/v1"
    with pytest.raises(BadInputError, match=r"private is true, and perturbation_config\.paraphraser\.endpoint is"):
        resolve_paraphraser(suite(near, **rewording("prod", **PRIVATE)), settings())
    with pytest.raises(BadInputError, match=r"private is true, and protocol_config\.router\.endpoint is"):
        resolve_router(suite(near, **routed("prod"), **PRIVATE), settings())
    named = settings(**{"org/rewriter": LISTED["prod"]})
    with pytest.raises(BadInputError, match="private is true"):
        resolve_paraphraser(suite(near, **rewording(**PRIVATE)), named)


def test_where_a_url_is_listed_twice_the_stricter_word_on_private_items_holds() -> None:
    twice = settings(again=OperatorEndpoint(url="https://approved.example/v1"))
    with pytest.raises(BadInputError, match="private is true"):
        resolve_endpoint(suite("https://approved.example/v1", **PRIVATE), twice)


def test_the_listed_url_that_covers_most_closely_speaks_for_what_is_below_it() -> None:
    below = OperatorEndpoint(
        url="https://models.example/v1/cheap", input_price_per_million=1, output_price_per_million=2
    )
    named = settings(a=below)
    found = allowed_endpoint("f", "https://models.example/v1/cheap/x", named)
    assert found.prices == Prices(input_per_million=1, output_per_million=2)
    assert allowed_endpoint("f", "https://models.example/v1/dear", named).prices is None
