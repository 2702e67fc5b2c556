"""What single values do: each does something, credentials come from Secrets that exist, names stay apart."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.charts.kubernetes_schemas import is_custom
from tests.charts.manifests import Manifest, annotations_of, labels_of, pods, strings, title
from tests.charts.policies.every import POLICIES
from tests.charts.rendering import CHART, Release, parse, render, rendered, told, value_set, value_set_names

Path_ = tuple[str, ...]
#: A set that has nearly everything is tried first.
_SETS = sorted(value_set_names(), key=lambda name: name != "everything")
#: No object of a release is another's, whatever its kind.
_NAMESPACED_ELSEWHERE = frozenset({"PriorityClass"})
_DIGEST = f"sha256:{'5' * 64}"
_NAMES = ("an_object_has_a_name_of_its_own", "what_a_pod_takes_in_is_there", "a_service_leads_to_pods")


def leaves(values: Mapping[str, Any], at: Path_ = ()) -> Iterator[tuple[Path_, Any]]:
    for key, value in values.items():
        if isinstance(value, Mapping) and value:
            yield from leaves(value, (*at, key))
        else:
            yield (*at, key), value


def nested(path: Path_, value: Any) -> dict[str, Any]:
    for key in reversed(path):
        value = {key: value}
    found: dict[str, Any] = value
    return found


def merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    result = dict(below)
    for key, value in above.items():
        both = isinstance(value, Mapping) and isinstance(result.get(key), Mapping)
        result[key] = merged(result[key], value) if both else value
    return result


def with_value(name: str, path: Path_, value: Any) -> Release | None:
    """A value set with another value; None where the chart refuses it."""
    from helm_python.errors import HelmError

    given_set = value_set(name)
    try:
        return render(merged(given_set.values, nested(path, value)), apis=given_set.apis, name=name)
    except HelmError:
        return None


@cache
def defaults() -> dict[str, Any]:
    return parse((CHART / "values.yaml").read_text("utf-8"))


LEAVES = dict(leaves(defaults())) if CHART.is_dir() else {}
SECRETS = [path for path in LEAVES if re.search(r"(?:existingS|S)ecret$", path[-1])]


def others(path: Path_, value: Any) -> Iterable[Any]:
    """Other values of the same type, one of which the schema may take."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [value + 1, value + 7, max(value - 1, 0)]
    if isinstance(value, list):
        return [
            ["planted.example"], ["owner/planted"], [{"namespaceSelector": {"matchLabels": {"planted": "planted"}}}],
            [{"name": "planted", "url": "grpc://planted.example:8001"}], [4444], ["Audit"],
            [{"key": "planted", "operator": "Exists", "effect": "NoSchedule"}], [{"name": "planted"}],
            [{"name": "planted", "schedule": "0 3 * * *", "suite": {"model_config": {}}}],
        ]  # fmt: skip
    if isinstance(value, dict) or value is None:
        return [
            {"planted": "planted"}, {"PROCTOR_NICE": "3"}, {"router": _DIGEST}, {"nodeAffinity": {}}, {"cpu": "3"},
            {"*": {"max_items": 3}}, {"names": ["planted"]}, {"planted.json": {"planted": "planted"}}, 30,
        ]  # fmt: skip
    return [
        "planted", "planted.example", "https://planted.example", "3333Mi", "grpc://planted.example:8001/model",
        "s3://planted/prefix", "ReadWriteMany", "warn", "text", "always", "Always", "any", "Ignore", "delete",
        "webhook", "policy", "LoadBalancer", "NodePort", "DEBUG", "prometheus", "hpa", "none", "DoNotSchedule", "77mb",
        "s3", "pvc", "3", "3333m", "http://planted.example:5000",
    ]  # fmt: skip


@pytest.mark.timeout(240)
def test_every_value_does_something() -> None:
    idle = [".".join(path) for path, value in LEAVES.items() if not any(_effects(path, value))]
    assert idle == []


def _effects(path: Path_, value: Any) -> Iterator[bool]:
    """Whether other values of a path make another release, in one set after the other."""
    for name in _SETS:
        for other in others(path, value):
            changed = with_value(name, path, other)
            if changed is not None:
                yield _all(changed) != _of_set(name)
                # One value that the schema takes is enough for a set.
                break


@cache
def _of_set(name: str) -> tuple[str, ...]:
    return _all(rendered(name))


def _all(release: Release) -> tuple[str, ...]:
    return tuple(told(one) for one in release.objects)


def test_no_value_is_a_credential() -> None:
    named = [".".join(path) for path in LEAVES if re.search(r"(?i)(password|token|secret|credential)s?$", path[-1])]
    assert [name for name in named if not name.endswith("Secret")] == []


def test_the_chart_takes_credentials_from_secrets_in_many_places() -> None:
    assert len(SECRETS) >= 12


@pytest.mark.parametrize("path", SECRETS, ids=".".join)
def test_a_secret_that_exists_is_taken_and_none_is_made(path: Path_) -> None:
    releases = [made for name in _SETS if (made := with_value(name, path, "planted-secret")) is not None]
    assert [release.name for release in releases if release.find("Secret", "planted-secret")] == []
    assert any(_takes(one, "planted-secret") for release in releases for one in release.objects)


def _takes(one: Manifest, secret: str) -> bool:
    return one["kind"] != "ConfigMap" and secret in set(strings(one.get("spec") or {}))


@pytest.mark.parametrize("name", value_set_names())
def test_where_secrets_must_exist_none_is_made(name: str) -> None:
    strict = with_value(name, ("requireExistingSecrets",), True)
    assert strict is None or list(strict.of_kind("Secret")) == []


def test_some_value_set_does_without_a_secret_of_the_chart_s() -> None:
    assert any(with_value(name, ("requireExistingSecrets",), True) for name in _SETS)


@pytest.mark.parametrize("name", value_set_names())
def test_every_image_comes_from_the_registry_that_is_named(name: str) -> None:
    release = with_value(name, ("image", "registry"), "registry.example:5000")
    assert release is not None
    images = {container.spec["image"] for pod in pods(release.objects) for container in pod.containers}
    foreign = {image for image in images if not image.startswith("registry.example:5000/")}
    # A pool may run an image of its own.
    assert foreign <= set(strings(release.values.get("pools")))


@pytest.mark.parametrize("name", value_set_names())
def test_a_digest_that_is_given_is_what_runs(name: str) -> None:
    plain = rendered(name)
    targets = {_target(image) for image in _images(plain)}
    release = with_value(name, ("image", "digests"), dict.fromkeys(targets, _DIGEST))
    if release is None:
        # A pool's image is no target of the chart's.
        own = targets & {"router", "perturbation", "inference", "scorer", "registry", "gateway"}
        release = with_value(name, ("image", "digests"), dict.fromkeys(own, _DIGEST))
    assert release is not None
    assert [image for image in _images(release) if _target(image) == "router" and _DIGEST not in image] == []
    assert any(_DIGEST in image for image in _images(release))


def _images(release: Release) -> list[str]:
    return [container.spec["image"] for pod in pods(release.objects) for container in pod.containers]


def _target(image: str) -> str:
    return image.partition("@")[0].rpartition("/")[2].partition(":")[0]


@pytest.mark.parametrize("tag", ["latest", ""])
def test_a_tag_that_moves_is_refused(tag: str) -> None:
    release = with_value(_SETS[0], ("image", "tag"), tag)
    assert (release is None) == (tag == "latest")


@pytest.mark.parametrize("name", value_set_names())
def test_labels_for_everything_are_on_everything(name: str) -> None:
    release = with_value(name, ("commonLabels",), {"team": "evals"})
    assert release is not None
    assert [title(one) for one in release.objects if labels_of(one).get("team") != "evals"] == []
    # They may change, and selectors may not.
    for workload in release.of_kind("Deployment", "StatefulSet"):
        assert "team" not in workload["spec"]["selector"]["matchLabels"]


@pytest.mark.parametrize("name", value_set_names())
def test_labels_and_annotations_of_pods_are_on_every_pod(name: str) -> None:
    labelled = with_value(name, ("pods", "labels"), {"mesh": "in"})
    annotated = with_value(name, ("pods", "annotations"), {"mesh.example/inject": "true"})
    assert labelled is not None
    assert annotated is not None
    assert [pod.name for pod in pods(labelled.objects) if pod.labels.get("mesh") != "in"] == []
    without = [
        pod for pod in pods(annotated.objects) if annotations_of(pod.template).get("mesh.example/inject") != "true"
    ]
    assert [pod.name for pod in without] == []


@pytest.mark.parametrize("policy", _NAMES)
@pytest.mark.parametrize("name", value_set_names())
def test_a_release_with_the_longest_name_has_names_that_are_valid(name: str, policy: str) -> None:
    given_set = value_set(name)
    release = render(given_set.values, apis=given_set.apis, release="r" * 53, name=name)
    assert list(POLICIES[policy].faults(release)) == []


@pytest.mark.parametrize("name", value_set_names())
def test_two_releases_in_one_namespace_share_no_object(name: str) -> None:
    given_set = value_set(name)
    if given_set.values.get("fullnameOverride"):
        return
    one, other = (_places(render(given_set.values, apis=given_set.apis, release=said)) for said in ("one", "other"))
    assert one & other == set()


@pytest.mark.parametrize("name", value_set_names())
def test_releases_of_one_name_in_two_namespaces_share_no_object_of_the_cluster(name: str) -> None:
    given_set = value_set(name)
    here, there = (render(given_set.values, apis=given_set.apis, namespace=said) for said in ("here", "there"))
    wide = [_places(replace(release, objects=tuple(_wide(release)))) for release in (here, there)]
    assert wide[0] & wide[1] == set()


def _places(release: Release) -> set[tuple[str, str, str]]:
    return {
        (one["kind"], one["metadata"].get("namespace", ""), one["metadata"]["name"])
        for one in release.objects
        if one["kind"] not in _NAMESPACED_ELSEWHERE
    }


def _wide(release: Release) -> Iterator[Manifest]:
    for one in release.objects:
        if one["kind"].startswith(("Cluster", "Validating", "Mutating")) and not is_custom(one):
            yield one


@settings(max_examples=25)
@given(
    grace=st.integers(1, 3_000), longest=st.integers(1, 3_000), drain=st.integers(0, 300), margin=st.integers(5, 300)
)
def test_pods_have_time_to_leave_whatever_the_times_are(grace: int, longest: int, drain: int, margin: int) -> None:
    times = {
        "shutdown": {"graceSeconds": grace, "longestShardSeconds": longest, "marginSeconds": margin},
        "gateway": {"drainSeconds": drain, "graceSeconds": grace},
    }
    given_set = value_set(_SETS[0])
    release = render(merged(given_set.values, times), apis=given_set.apis)
    assert list(POLICIES["a_pod_has_time_to_leave"].faults(release)) == []


def test_without_keda_kubernetes_own_autoscaler_scales() -> None:
    release = render({}, apis=())
    assert list(release.of_kind("ScaledObject")) == []
    assert list(release.of_kind("HorizontalPodAutoscaler")) != []


def test_with_keda_nothing_else_scales() -> None:
    release = render({}, apis=["keda.sh/v1alpha1"])
    assert list(release.of_kind("ScaledObject")) != []
    assert list(release.of_kind("HorizontalPodAutoscaler")) == []
