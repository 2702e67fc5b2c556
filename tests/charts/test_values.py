"""What single values do: each does something, credentials come from Secrets that exist, names stay apart."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.charts.kubernetes_schemas import is_custom
from tests.charts.manifests import Manifest, annotations_of, labels_of, pods, strings, title
from tests.charts.policies.every import POLICIES
from tests.charts.rendering import CHART, Release, parse, render, rendered, told, value_set, value_set_names
from tests.charts.values_schema import merged, refused, resolved, schema

Path_ = tuple[str, ...]
#: A set that has nearly everything is tried first.
_SETS = sorted(value_set_names(), key=lambda name: name != "everything")
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


def with_value(name: str, path: Path_, value: Any) -> Release | None:
    """A value set with another value; None where the chart refuses it."""
    return _with(name, nested(path, value))


def _with(name: str, values: Mapping[str, Any]) -> Release | None:
    from helm_python.errors import HelmError

    given_set = value_set(name)
    # Helm refuses them too, and takes longer for it.
    if refused(values):
        return None
    try:
        return render(merged(given_set.values, values), apis=given_set.apis, name=name)
    except HelmError:
        return None


@cache
def defaults() -> dict[str, Any]:
    return parse((CHART / "values.yaml").read_text("utf-8"))


LEAVES = dict(leaves(defaults())) if CHART.is_dir() else {}
SECRETS = [path for path in LEAVES if re.search(r"(?:existingS|S)ecret$", path[-1])]


def marked(value: Any, number: int) -> list[Any]:
    """Other values of the same type, each with a mark that is found in what is rendered."""
    mark = f"planted-{number}"
    if isinstance(value, bool):
        return []
    if isinstance(value, int):
        return [40_000 + number]
    if isinstance(value, list):
        return [
            [mark], [f"owner/{mark}"], [{"podSelector": {"matchLabels": {"of": mark}}}], [40_000 + number],
            [{"key": mark, "operator": "Exists", "effect": "NoSchedule"}],
            [{"name": mark, "url": f"grpc://{mark}.example:8001"}], [{"name": mark}],
            [{"ports": [{"port": 40_000 + number, "protocol": "TCP"}]}],
        ]  # fmt: skip
    if isinstance(value, dict) or value is None:
        return [{mark: "planted"}, {"PROCTOR_NICE": mark}, {"router": f"sha256:{number:064}"}, {mark: {"x": "y"}}]
    return [
        mark, f"https://{mark}.example", f"{40_000 + number}Mi", f"{40_000 + number}mb", f"s3://{mark}/prefix",
        f"grpc://{mark}.example:8001/model", f"{mark}.example",
    ]  # fmt: skip


def plain(path: Path_, value: Any) -> list[Any]:
    """Other values of the same type, for where a mark is refused or decides what is rendered."""
    if isinstance(value, bool):
        # A set may have the other one already.
        return [True, False]
    if isinstance(value, int):
        return [value + 1, max(value - 1, 0)]
    if isinstance(value, str):
        return [one for one in _allowed(path) if one != value] or ["planted", *marked(value, 1)]
    if isinstance(value, list):
        nightly = {"name": "planted", "schedule": "0 3 * * *", "suite": {"name": "planted"}}
        return [["Audit"], [nightly], *marked(value, 1)]
    return [
        {"planted.json": {"name": "planted"}},
        {"*": {"max_items": 3}},
        {"names": ["planted"]},
        {"nodeAffinity": {}},
        {"cpu": "3"},
        *marked(value, 1),
        30,
    ]


def _allowed(path: Path_) -> list[str]:
    """The words of which a value is one, by the schema."""
    part: Any = schema()
    for key in path:
        part = resolved(part).get("properties", {}).get(key, {})
    return [one for one in resolved(part).get("enum", ()) if isinstance(one, str)]


@pytest.mark.timeout(600)
def test_every_value_does_something() -> None:
    marks = dict(_marks_of_all())
    # All marks at once: a rendering takes a tenth of a second, and there are hundreds of values.
    seen = _seen(sorted(marks))
    # What only refuses has tests of its own.
    tried = set(LEAVES) - seen - {("requireExistingSecrets",)}
    idle = [path for path in sorted(tried) if not any(_effects(path, LEAVES[path]))]
    assert [".".join(path) for path in idle] == []


def _marks() -> Iterator[tuple[Path_, Any]]:
    for number, (path, value) in enumerate(LEAVES.items()):
        for other in marked(value, number):
            if not refused(nested(path, other)):
                yield path, other
                break


def _seen(paths: list[Path_]) -> set[Path_]:
    """The paths whose marks come out; where values do not go together, by halves."""
    marks, values = dict(_marks_of_all()), dict[str, Any]()
    for path in paths:
        values = merged(values, nested(path, marks[path]))
    release = _with(_SETS[0], values)
    if release is not None:
        text = "\n".join(_all(release))
        return {path for path in paths if _mark(path) in text}
    if len(paths) == 1:
        return set()
    half = len(paths) // 2
    return _seen(paths[:half]) | _seen(paths[half:])


@cache
def _marks_of_all() -> tuple[tuple[Path_, Any], ...]:
    return tuple(_marks())


def _mark(path: Path_) -> str:
    """What is looked for: a number that no default has, or a word."""
    number = list(LEAVES).index(path)
    said = json.dumps(dict(_marks_of_all())[path])
    return str(40_000 + number) if str(40_000 + number) in said else f"planted-{number}"


#: What else must be said for another value to be taken.
_BESIDE: dict[Path_, dict[str, Any]] = {
    ("artifacts", "kind"): {"artifacts": {"s3": {"uri": "s3://planted/prefix"}}},
    ("postgresql", "enabled"): {"records": {"existingSecret": "planted-records"}},
    ("valkey", "enabled"): {"redis": {"existingSecret": "planted-redis"}},
}
#: One for a whole cluster, whichever release makes it: admission.holdParameters.
_SHARED = "proctor-holds-configmap-parameters"


def _effects(path: Path_, value: Any) -> Iterator[bool]:
    """Whether another value of a path makes another release, in one set after the other."""
    for name in _SETS:
        for other in plain(path, value):
            changed = _with(name, merged(_BESIDE.get(path, {}), nested(path, other)))
            if changed is not None and _all(changed) != _of_set(name):
                yield True


@cache
def _of_set(name: str) -> tuple[str, ...]:
    return _all(rendered(name))


def _all(release: Release) -> tuple[str, ...]:
    return (*(told(one) for one in release.objects), release.notes)


def test_no_value_is_a_credential() -> None:
    texts = (path for path, value in LEAVES.items() if isinstance(value, str))
    named = [".".join(path) for path in texts if re.search(r"(?i)(password|token|secret|credential)s?$", path[-1])]
    assert [name for name in named if not name.endswith("Secret")] == []


def test_the_chart_takes_credentials_from_secrets_in_many_places() -> None:
    assert len(SECRETS) >= 12


@pytest.mark.parametrize("path", SECRETS, ids=".".join)
def test_a_secret_that_exists_is_taken_and_none_is_made(path: Path_) -> None:
    for name in _SETS:
        release = with_value(name, path, "planted-secret")
        if release is not None and any(_takes(one, "planted-secret") for one in release.objects):
            assert release.find("Secret", "planted-secret") is None
            return
    pytest.fail("no value set takes it")


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
def test_labels_and_annotations_for_everything_are_on_everything(name: str) -> None:
    said = {
        "commonLabels": {"team": "evals"},
        "pods": {"labels": {"mesh": "in"}, "annotations": {"mesh/inject": "yes"}},
    }
    release = _with(name, said)
    assert release is not None
    assert [title(one) for one in release.objects if labels_of(one).get("team") != "evals"] == []
    assert [pod.name for pod in pods(release.objects) if pod.labels.get("mesh") != "in"] == []
    annotated = {pod.name: annotations_of(pod.template).get("mesh/inject") for pod in pods(release.objects)}
    assert [title for title, value in annotated.items() if value != "yes"] == []
    # They may change, and selectors may not.
    for workload in release.of_kind("Deployment", "StatefulSet"):
        assert not {"team", "mesh"} & set(workload["spec"]["selector"]["matchLabels"])


@pytest.mark.parametrize("name", value_set_names())
def test_a_release_with_the_longest_name_has_names_that_are_valid(name: str) -> None:
    given_set = value_set(name)
    release = render(given_set.values, apis=given_set.apis, release="r" * 53, name=name)
    assert [fault for policy in _NAMES for fault in POLICIES[policy].faults(release)] == []


@pytest.mark.parametrize("name", value_set_names())
def test_two_releases_in_one_namespace_share_no_object(name: str) -> None:
    given_set = value_set(name)
    if not given_set.values.get("fullnameOverride"):
        other = render(given_set.values, apis=given_set.apis, release="other")
        assert _places(rendered(name).objects) & _places(other.objects) == set()


@pytest.mark.parametrize("name", value_set_names())
def test_releases_of_one_name_in_two_namespaces_share_no_object_of_the_cluster(name: str) -> None:
    given_set = value_set(name)
    there = render(given_set.values, apis=given_set.apis, namespace="elsewhere")
    assert _places(_wide(rendered(name))) & _places(_wide(there)) == set()


def _places(objects: Iterable[Manifest]) -> set[tuple[str, str, str]]:
    return {
        (one["kind"], one["metadata"].get("namespace", ""), one["metadata"]["name"])
        for one in objects
        if one["metadata"]["name"] != _SHARED
    }


def _wide(release: Release) -> Iterator[Manifest]:
    for one in release.objects:
        if one["kind"].startswith(("Cluster", "Validating", "Mutating")) and not is_custom(one):
            yield one


@settings(max_examples=25)
@given(
    grace=st.integers(1, 3_000), longest=st.integers(1, 3_000), drain=st.integers(1, 300), margin=st.integers(5, 300)
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


def scaled_pool(backend: str, **autoscaling: Any) -> Release:
    """A release with a GPU pool that is scaled, with KEDA and Prometheus."""
    triton = {
        "backend": backend, "modelRepository": {"pvc": {"claimName": "models"}}, "gpus": 1,
        "resources": {"requests": {"cpu": "1"}, "limits": {"memory": "1Gi"}},
        "autoscaling": {"enabled": True, **autoscaling},
    }  # fmt: skip
    keda = {"mode": "keda", "prometheusAddress": "http://prometheus.example:9090"}
    return render({"pools": [{"name": "llama", "triton": triton}], "autoscaling": keda, "test": {"pool": ""}})


def trigger_of(release: Release) -> dict[str, str]:
    """By what its pool is scaled."""
    (scaled,) = (one for one in release.of_kind("ScaledObject") if one["metadata"]["name"].endswith("-triton-llama"))
    (trigger,) = scaled["spec"]["triggers"]
    found: dict[str, str] = trigger["metadata"]
    return found


def test_a_pool_under_vllm_is_scaled_by_work_because_triton_s_queue_is_always_empty() -> None:
    assert trigger_of(scaled_pool("vllm", min=0, max=8))["targetValue"] == "8"
    assert trigger_of(scaled_pool("vllm", min=0, max=8, shardsPerPod=3))["targetValue"] == "3"
    assert "proctor_scaling_work" in trigger_of(scaled_pool("python", min=0, max=8, shardsPerPod=3))["valueLocation"]


def test_a_pool_that_asks_for_a_queue_time_is_scaled_by_it() -> None:
    for release in (scaled_pool("vllm", min=1, max=8, queueMilliseconds=250), scaled_pool("python", min=1, max=8)):
        assert "nv_inference_queue_duration_us" in trigger_of(release)["query"]


def test_a_pool_that_nothing_would_wake_is_refused() -> None:
    from helm_python.errors import HelmError

    with pytest.raises(HelmError, match=r"nothing would wake it.*Give shardsPerPod, or min 1"):
        scaled_pool("python", min=0, max=8)
    with pytest.raises(HelmError, match="give one of them"):
        scaled_pool("vllm", min=1, max=8, queueMilliseconds=250, shardsPerPod=3)


def test_training_data_are_mounted_read_only_for_those_who_look_for_them_and_search_them() -> None:
    release = rendered("air-gapped")
    mounted = {}
    for pod in pods(release.objects):
        for container in pod.spec["containers"]:
            for mount in container.get("volumeMounts", ()):
                if mount["name"] == "corpora":
                    mounted[labels_of(pod.owner)["app.kubernetes.io/component"]] = mount
    assert set(mounted) == {"gateway", "perturbation"}
    assert all(mount["readOnly"] and mount["mountPath"] == "/var/lib/proctor-corpora" for mount in mounted.values())
