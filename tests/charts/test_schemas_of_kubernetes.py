"""Kubernetes takes every manifest of every value set, in each of three versions, and every custom resource."""

from __future__ import annotations

import json
from functools import cache

import pytest

from tests.charts.good_release import good_release
from tests.charts.kubernetes_schemas import VERSIONS, custom_refusals, is_custom, refusals
from tests.charts.manifests import Manifest, title
from tests.charts.rendering import rendered, value_set_names


@cache
def _refused(text: str, version: str) -> tuple[str, ...]:
    """What sets have in common is validated once."""
    manifest: Manifest = json.loads(text)
    return tuple(f"{title(manifest)}: {fault}" for fault in refusals(manifest, version))


@cache
def _refused_custom(text: str) -> tuple[str, ...]:
    manifest: Manifest = json.loads(text)
    return tuple(f"{title(manifest)}: {fault}" for fault in custom_refusals(manifest))


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", value_set_names())
def test_kubernetes_takes_every_manifest(name: str, version: str) -> None:
    own = [one for one in rendered(name).objects if not is_custom(one)]
    assert own
    assert [fault for one in own for fault in _refused(json.dumps(one, sort_keys=True), version)] == []


@pytest.mark.parametrize("name", value_set_names())
def test_every_custom_resource_is_as_its_definition_says(name: str) -> None:
    custom = [one for one in rendered(name).objects if is_custom(one)]
    assert [fault for one in custom for fault in _refused_custom(json.dumps(one, sort_keys=True))] == []


@pytest.mark.parametrize("version", VERSIONS)
def test_a_field_that_kubernetes_does_not_know_is_found(version: str) -> None:
    deployment = good_release().find("Deployment", "good-router")
    assert deployment is not None
    assert list(refusals(deployment, version)) == []
    deployment["spec"]["template"]["spec"]["containers"][0]["imagePulPolicy"] = "Always"
    assert any("imagePulPolicy" in fault for fault in refusals(deployment, version))


def test_a_kind_that_a_version_does_not_serve_is_found() -> None:
    past = {"apiVersion": "policy/v1beta1", "kind": "PodDisruptionBudget", "metadata": {"name": "past"}}
    assert list(refusals(past, VERSIONS[0])) == [
        f"Kubernetes {VERSIONS[0]} has no PodDisruptionBudget of policy/v1beta1"
    ]


def test_a_field_that_a_definition_does_not_know_is_found() -> None:
    scaled = good_release().find("ScaledObject", "good-inference")
    assert scaled is not None
    assert list(custom_refusals(scaled)) == []
    scaled["spec"]["cooldownSeconds"] = 120
    assert any("cooldownSeconds" in fault for fault in custom_refusals(scaled))
