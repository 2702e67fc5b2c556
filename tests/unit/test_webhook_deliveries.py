"""What is taken for a registry's delivery, and what it says."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from proctor.domain.registered_version import RegistryKind
from proctor.registry.webhooks import huggingface, mlflow
from proctor.registry.webhooks.events import AliasSet, Delivery, ForgedError, Ignored, MalformedError, Registered
from tests.registry_webhooks import (
    DIGEST,
    HUB_SECRET,
    SECOND,
    SECRET,
    alias_set,
    created,
    pushed,
    signed,
    tag_set,
)

BODY = json.dumps(created()).encode()
NOW = 1_800_000_000.0
BOTH = [SecretStr(SECRET), SecretStr(SECOND)]


def shown(headers: dict[str, str]) -> dict[str, list[str]]:
    return {name.lower(): [value] for name, value in headers.items()}


def verified(headers: dict[str, str], body: bytes = BODY, secrets: list[SecretStr] = BOTH) -> Delivery:
    return mlflow.verified(shown(headers), body, secrets, NOW)


@pytest.mark.parametrize("secret", [SECRET, SECOND])
def test_either_of_two_active_secrets_signs(secret: str) -> None:
    assert verified(signed(BODY, secret, at_s=NOW, delivery="d-1")).id == "d-1"


def test_a_secret_that_is_not_active_any_more_does_not_sign() -> None:
    with pytest.raises(ForgedError):
        verified(signed(BODY, SECOND, at_s=NOW), secrets=[SecretStr(SECRET)])


@pytest.mark.parametrize("name", ["X-MLflow-Signature", "X-MLflow-Delivery-Id", "X-MLflow-Timestamp"])
def test_a_delivery_without_one_of_its_headers_is_forged(name: str) -> None:
    headers = signed(BODY, at_s=NOW)
    del headers[name]
    with pytest.raises(ForgedError):
        verified(headers)


def test_a_header_that_stands_there_twice_is_none() -> None:
    headers = shown(signed(BODY, at_s=NOW))
    headers["x-mlflow-signature"] *= 2
    with pytest.raises(ForgedError):
        mlflow.verified(headers, BODY, BOTH, NOW)


@pytest.mark.parametrize("age_s", [-300, -1, 0, 1, 300])
def test_clocks_may_differ_by_five_minutes_in_both_directions(age_s: int) -> None:
    verified(signed(BODY, at_s=NOW - age_s))


@pytest.mark.parametrize("age_s", [-301, 301, 86_400])
def test_a_stale_or_future_delivery_is_refused_though_it_is_signed(age_s: int) -> None:
    with pytest.raises(ForgedError, match="300 s from this machine's clock"):
        verified(signed(BODY, at_s=NOW - age_s))


@pytest.mark.parametrize("timestamp", ["", "-1", "1e9", "٣", "9" * 13, "1800000000.5", " 1800000000"])
def test_a_timestamp_that_is_no_number_of_seconds_is_refused(timestamp: str) -> None:
    with pytest.raises(ForgedError):
        verified({**signed(BODY, at_s=NOW), "X-MLflow-Timestamp": timestamp})


def test_nothing_is_signed_where_there_is_no_secret() -> None:
    with pytest.raises(ForgedError):
        verified(signed(BODY, "", at_s=NOW), secrets=[])


@given(st.data())
def test_no_other_byte_of_body_id_time_or_signature_passes(data: st.DataObject) -> None:
    headers = signed(BODY, at_s=NOW, delivery="0123456789abcdef")
    parts = [BODY, *(headers[name].encode() for name in list(headers)[:3])]
    part = data.draw(st.integers(0, 3))
    at, bit = data.draw(st.integers(0, len(parts[part]) - 1)), data.draw(st.integers(0, 6))
    parts[part] = parts[part][:at] + bytes([parts[part][at] ^ 1 << bit]) + parts[part][at + 1 :]
    names = ("x-mlflow-signature", "x-mlflow-delivery-id", "x-mlflow-timestamp")
    changed = {name: [part.decode("latin-1")] for name, part in zip(names, parts[1:], strict=True)}
    with pytest.raises(ForgedError):
        mlflow.verified(changed, parts[0], BOTH, NOW)


def test_a_new_version_is_told_with_what_the_registry_says_of_it() -> None:
    event = mlflow.event_of(BODY)
    assert isinstance(event, Registered)
    version = event.version
    assert (version.registry, version.name, version.version) == (RegistryKind.MLFLOW, "acme~m", "1")
    assert version.tags == {"proctor.model_digest": DIGEST, "stage": "candidate"}
    assert (version.source, version.run_id, version.is_own) == ("s3://b/m", "", False)


def test_an_alias_says_no_more_of_its_version_than_the_name() -> None:
    event = mlflow.event_of(json.dumps(alias_set("audit-me", version="3")).encode())
    assert isinstance(event, AliasSet)
    assert (event.alias, event.version.version, event.version.tags) == ("audit-me", "3", None)


@pytest.mark.parametrize(
    ("event", "why"),
    [
        (tag_set("proctor.decision"), "a tag of Proctor's own"),
        (tag_set("stage"), "an event that starts nothing"),
        ({**created(), "action": "deleted"}, "an event that starts nothing"),
        ({**created(), "entity": "budget_policy", "action": "exceeded"}, "an event that starts nothing"),
        (created("example_model", tags={"example_key": "example_value"}), "MLflow's test event"),
        (alias_set("example_alias", "example_model"), "MLflow's test event"),
    ],
)
def test_what_starts_nothing_is_ignored_with_the_reason(event: dict[str, Any], why: str) -> None:
    assert mlflow.event_of(json.dumps(event).encode()) == Ignored(why)


def test_mlflow_s_own_examples_are_ignored() -> None:
    types = pytest.importorskip("mlflow.webhooks.types")
    for entity, kind in (("model_version", "ModelVersion"), ("model_version_alias", "ModelVersionAlias")):
        data = getattr(types, f"{kind}CreatedPayload").example()
        body = json.dumps({"entity": entity, "action": "created", "timestamp": "t", "data": data}).encode()
        assert mlflow.event_of(body) == Ignored("MLflow's test event")


def test_a_model_that_is_called_like_the_example_is_a_model() -> None:
    assert isinstance(mlflow.event_of(json.dumps(created("example_model")).encode()), Registered)


@pytest.mark.parametrize(
    "body",
    [
        b"", b"{", b"[]", b"1", b"\xff", b"null", b'{"entity": 1}', b'{"entity": "model_version", "action": "created"}',
        b"[" * 100_000, b'{"a":' * 50_000, b'{"a": NaN}', b'{"\\ud800": 1}',
        json.dumps(created(**{"name": None})).encode(), json.dumps(created("x" * 600)).encode(),
        json.dumps(created("a\0b")).encode(), json.dumps(created(**{"version": 1})).encode(),
        json.dumps(created(tags=["a"])).encode(), json.dumps(created(tags={str(n): "" for n in range(300)})).encode(),
    ],
)  # fmt: skip
def test_a_body_that_says_nothing_is_malformed(body: bytes) -> None:
    with pytest.raises(MalformedError):
        mlflow.event_of(body)


@given(
    st.binary(max_size=200)
    | st.recursive(st.none() | st.text() | st.integers(), st.lists).map(json.dumps).map(str.encode)
)
def test_no_body_raises_anything_but_that_it_is_malformed(body: bytes) -> None:
    for read in (mlflow.event_of, huggingface.event_of, huggingface.delivery_of):
        try:
            read(body)
        except MalformedError:
            continue


def test_the_hub_s_secret_is_taken_from_its_header_alone() -> None:
    secrets = [SecretStr(HUB_SECRET)]
    huggingface.verify({"x-webhook-secret": [HUB_SECRET]}, secrets)
    for headers in (
        {},
        {"x-webhook-secret": [SECRET]},
        {"x-webhook-secret": [HUB_SECRET] * 2},
        {"secret": [HUB_SECRET]},
    ):
        with pytest.raises(ForgedError):
            huggingface.verify(headers, secrets)


def test_a_push_to_the_hub_s_main_branch_is_a_version_of_which_nothing_is_known() -> None:
    event = huggingface.event_of(json.dumps(pushed()).encode())
    assert isinstance(event, Registered)
    version = event.version
    assert (version.registry, version.name, version.version) == (RegistryKind.HUGGINGFACE, "acme/m", "c" * 40)
    assert version.tags is None


@pytest.mark.parametrize(
    "event",
    [
        pushed(scope="discussion"),
        pushed(scope="repo.config"),
        pushed(scope="repo"),
        {**pushed(), "repo": {**pushed()["repo"], "type": "dataset"}},
        {**pushed(), "updatedRefs": [{"ref": "refs/pr/1", "newSha": "d" * 40}]},
        {**pushed(), "updatedRefs": [{"ref": "refs/heads/main", "newSha": None}]},
        {**pushed(), "event": {"action": "delete", "scope": "repo.content"}},
    ],
)
def test_no_other_event_of_the_hub_starts_anything(event: dict[str, Any]) -> None:
    assert isinstance(huggingface.event_of(json.dumps(event).encode()), Ignored)


def test_the_same_push_is_the_same_delivery_and_the_next_one_is_another() -> None:
    first, again, later = pushed(), {**pushed(), "movedTo": None}, pushed(sha="d" * 40)
    ids = [huggingface.delivery_of(json.dumps(one).encode()).id for one in (first, again, later)]
    assert ids[0] == ids[1] != ids[2]


def test_a_repository_that_is_no_name_on_the_hub_is_malformed() -> None:
    for name in ("../../etc", "a", "a/b/c", "a/..", "<b>/x"):
        with pytest.raises(MalformedError):
            huggingface.event_of(json.dumps(pushed(name)).encode())
