"""Every NetworkPolicy, both ways: what must pass passes, and what must not is refused. Tried from inside the pods."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import pytest

from tests.cluster.kit import Cluster, is_ready
from tests.cluster.reaching import Port, reached, reached_from_each
from tests.cluster.release import Release
from tests.support import wait_until

_METRICS: Final = 9090
#: Ports by component, as pods listen on them.
_PORTS: Final[dict[str, tuple[int, ...]]] = {
    "router": (_METRICS,), "perturbation": (_METRICS,), "inference": (_METRICS,), "scorer": (_METRICS,),
    "registry": (_METRICS,), "gateway": (8080, 50061, _METRICS), "triton": (8000, 8001, 8002), "valkey": (6379,),
    "postgresql": (5432,), "mlflow": (5000,),
}  # fmt: skip
_REDIS, _RECORDS, _REGISTRY = ("valkey", 6379), ("postgresql", 5432), ("mlflow", 5000)
#: The gateway's callers are all pods of the namespace by default.
_GATEWAY: Final = {("gateway", 8080), ("gateway", 50061)}
#: What each component's pods reach of the release.
_REACHES: Final[dict[str, set[tuple[str, int]]]] = {
    "router": {_REDIS, _RECORDS},
    "perturbation": {_REDIS, _RECORDS},
    "inference": {_REDIS, ("triton", 8001), ("triton", 8002)},
    "scorer": {_REDIS, _RECORDS},
    "registry": {_REDIS, _RECORDS, _REGISTRY},
    "gateway": {_REDIS, _RECORDS, _REGISTRY},
    "triton": set(),
    "valkey": set(),
    "postgresql": set(),
    "mlflow": set(),
}
#: Of the namespace's pods that are nobody's, and of those of other namespaces.
_STRANGER: Final = _GATEWAY
_SCRAPED: Final = {(component, _METRICS) for component, ports in _PORTS.items() if _METRICS in ports} | {
    ("triton", 8002)
}


@pytest.fixture(scope="module")
def at_work(release: Release) -> Iterator[None]:
    """One pod of inference, though there is no work for it."""
    scaled = ("-n", release.namespace, "annotate", "scaledobject", f"{release.name}-inference", "--overwrite")
    release.cluster.kubectl(*scaled, "autoscaling.keda.sh/paused-replicas=1")
    wait_until(lambda: any(map(is_ready, release.pods("inference"))), timeout_s=60, what="a pod of inference")
    yield
    release.cluster.kubectl(*scaled, "autoscaling.keda.sh/paused-replicas-")


@pytest.fixture(scope="module")
def ports(release: Release, at_work: None) -> list[Port]:
    """Every port of every component."""
    return [
        Port(component, pods[0]["status"]["podIP"], number)
        for component, numbers in _PORTS.items()
        for pods in [release.pods(component)]
        for number in numbers
    ]


def _one_of_each(release: Release) -> dict[str, str]:
    """Component → one of its pods."""
    return {component: release.pods(component)[0]["metadata"]["name"] for component in _PORTS}


@pytest.fixture(scope="module")
def of_the_cluster(release: Release) -> list[Port]:
    """The API server, and the node's kubelet."""
    service = release.cluster.get("-n", "default", "service", "kubernetes")
    nodes = release.cluster.get("nodes")["items"]
    node = next(one["address"] for one in nodes[0]["status"]["addresses"] if one["type"] == "InternalIP")
    return [Port("api", service["spec"]["clusterIP"], 443), Port("kubelet", node, 10250)]


@pytest.fixture(scope="module")
def found(release: Release, ports: list[Port], of_the_cluster: list[Port]) -> dict[str, set[tuple[str, int]]]:
    """Component → what its pod reaches; from all of them at a time, since most of it is waiting for no answer."""
    return reached_from_each(release.cluster, release.namespace, _one_of_each(release), [*ports, *of_the_cluster])


@pytest.mark.parametrize("component", sorted(_REACHES))
def test_a_component_reaches_what_it_needs_and_nothing_else(
    found: dict[str, set[tuple[str, int]]], component: str
) -> None:
    assert {target for target in found[component] if target[0] in _PORTS and target[0] != component} == _REACHES[
        component
    ]


@contextmanager
def _stranger(cluster: Cluster, namespace: str, **labels: str) -> Iterator[str]:
    """A pod that is none of the release's."""
    name = "stranger"
    pod: dict[str, Any] = {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels},
        "spec": {
            "automountServiceAccountToken": False, "terminationGracePeriodSeconds": 0,
            "securityContext": {"runAsNonRoot": True, "runAsUser": 10001, "seccompProfile": {"type": "RuntimeDefault"}},
            "containers": [{
                "name": "c", "image": "proctor/router:0.1.0", "imagePullPolicy": "IfNotPresent",
                "command": ["python3", "-c", "import signal; signal.pause()"],
                "securityContext": {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True,
                                    "capabilities": {"drop": ["ALL"]}},
            }],
        },
    }  # fmt: skip
    cluster.apply(pod, namespace=namespace)
    try:
        cluster.wait("-n", namespace, "--for=condition=Ready", f"pod/{name}", within_s=60)
        yield name
    finally:
        cluster.kubectl("-n", namespace, "delete", "pod", name, "--wait=false")


def test_another_pod_of_the_namespace_reaches_the_gateway_alone(release: Release, ports: list[Port]) -> None:
    with _stranger(release.cluster, release.namespace) as pod:
        assert reached(release.cluster, release.namespace, pod, ports) == _STRANGER


def test_pods_of_other_namespaces_reach_nothing(release: Release, ports: list[Port]) -> None:
    with release.cluster.namespace("stranger") as namespace, _stranger(release.cluster, namespace) as pod:
        assert reached(release.cluster, namespace, pod, ports) == set()


def test_pods_of_the_monitoring_namespace_reach_metrics_alone(release: Release, ports: list[Port]) -> None:
    labels = {"proctor.dev/monitoring": "yes"}
    with (
        release.cluster.namespace("scraper", labels=labels) as namespace,
        _stranger(release.cluster, namespace) as pod,
    ):
        assert reached(release.cluster, namespace, pod, ports) == _SCRAPED


def test_only_pods_that_hold_leases_or_look_for_servers_reach_the_api_server(
    found: dict[str, set[tuple[str, int]]],
) -> None:
    assert {component for component, reaches in found.items() if ("api", 443) in reaches} == {
        "router",
        "gateway",
        "inference",
    }


def test_no_pod_reaches_the_nodes_kubelet(found: dict[str, set[tuple[str, int]]]) -> None:
    assert {component for component, reaches in found.items() if ("kubelet", 10250) in reaches} == set()


def test_every_pod_of_the_release_has_a_policy_for_both_directions(release: Release) -> None:
    policies = release.cluster.get("-n", release.namespace, "networkpolicies")["items"]
    pods = release.cluster.get("-n", release.namespace, "pods", "-l", f"app.kubernetes.io/instance={release.name}")
    for pod in pods["items"]:
        labels = pod["metadata"]["labels"]
        held = [
            policy["spec"]["policyTypes"]
            for policy in policies
            if (policy["spec"]["podSelector"].get("matchLabels") or {}).items() <= labels.items()
        ]
        assert {direction for types in held for direction in types} == {"Ingress", "Egress"}, pod["metadata"]["name"]
