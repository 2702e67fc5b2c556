"""What happens to a workload when nodes are drained, pods are moved and versions change."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from proctor.runtime.timing import DEFAULT_TIMING
from tests.charts.environment import variables
from tests.charts.manifests import LONG_RUNNING, Manifest, Pod, pods, selects, title
from tests.charts.policies.policy import policy
from tests.charts.policies.scaling import most_replicas
from tests.charts.rendering import Release

#: What the kubelet and the network take to learn that a pod leaves, and a process to write its last lines.
MARGIN_S: Final = 5
#: Started by `proctor worker`, and so with PROCTOR_GRACE_S to leave.
WORKERS: Final = frozenset({"router", "perturbation", "inference", "scorer", "registry", "notifier"})
#: Stores that one pod alone may write to.
SINGLE: Final = frozenset({"valkey", "postgresql", "mlflow"})


@policy
def a_replicated_workload_has_a_budget(release: Release) -> Iterator[str]:
    """Whatever may run more than once has a PodDisruptionBudget that lets a drain take one pod at a time."""
    budgets = list(release.of_kind("PodDisruptionBudget"))
    for pod in _replicated(release):
        own = [one for one in budgets if selects(one["spec"].get("selector"), pod.labels)]
        if len(own) != 1:
            yield f"{pod.name}: {len(own)} budgets"
    for one in budgets:
        taken_in = [pod for pod in pods(release.objects) if selects(one["spec"].get("selector"), pod.labels)]
        if len({pod.name for pod in taken_in}) != 1:
            yield f"{title(one)}: takes in {', '.join(sorted(pod.name for pod in taken_in)) or 'nothing'}"
        spec = one["spec"]
        if spec.get("maxUnavailable") in (0, "0%") or spec.get("minAvailable") == "100%":
            yield f"{title(one)}: no node of its pods can ever be drained"
        least = spec.get("minAvailable")
        for pod in taken_in:
            if isinstance(least, int) and least >= most_replicas(release, pod.owner):
                yield f"{title(one)}: keeps {least} of {most_replicas(release, pod.owner)} pods, so no node is drained"


@policy
def a_replicated_workload_is_spread(release: Release) -> Iterator[str]:
    """Whatever may run more than once is spread over nodes, and over zones, by its own pods' labels."""
    for pod in _replicated(release):
        constraints = pod.spec.get("topologySpreadConstraints") or []
        for key in ("kubernetes.io/hostname", "topology.kubernetes.io/zone"):
            if key not in {one.get("topologyKey") for one in constraints}:
                yield f"{pod.name}: not spread over {key}"
        for one in constraints:
            if not selects(one.get("labelSelector"), pod.labels) or not one.get("labelSelector"):
                yield f"{pod.name}: is spread over {one.get('topologyKey')} by the labels of others"


@policy
def a_pod_has_time_to_leave(release: Release) -> Iterator[str]:
    """The platform waits longer than the pod takes: its pause before the signal, its time to leave, and a margin."""
    for pod in pods(release.objects):
        if not pod.long_running:
            continue
        given = float(pod.spec.get("terminationGracePeriodSeconds", 30))
        needed = _pause_s(pod) + _leaving_s(release, pod) + MARGIN_S
        if given < needed:
            yield f"{pod.name}: needs {needed:g} s to leave and gets {given:g}"


@policy
def a_pod_that_starts_hears_that_it_is_to_leave(release: Release) -> Iterator[str]:
    """No container has the first process of a namespace of its own, which takes no signal before it has a handler."""
    for pod in pods(release.objects):
        if not pod.spec.get("shareProcessNamespace"):
            yield f"{pod.name}: told to leave as it starts, it stays until its grace is over"


@policy
def a_store_is_one_pod(release: Release) -> Iterator[str]:
    """What keeps its data in one volume runs once, and its old pod is gone before the new one opens the volume."""
    for pod in pods(release.objects):
        if pod.component not in SINGLE or not pod.long_running:
            continue
        spec = pod.owner["spec"]
        if spec.get("replicas", 1) != 1:
            yield f"{pod.name}: {spec['replicas']} pods on one volume"
        if pod.owner["kind"] == "Deployment" and (spec.get("strategy") or {}).get("type") != "Recreate":
            yield f"{pod.name}: two pods on one volume while it is updated"


@policy
def an_update_takes_no_service_away(release: Release) -> Iterator[str]:
    """A Deployment that is updated step by step starts a pod before it ends one, and can be rolled back."""
    for one in release.of_kind("Deployment"):
        strategy = one["spec"].get("strategy") or {}
        away = (strategy.get("rollingUpdate") or {}).get("maxUnavailable", "25%")
        # A quarter of three pods or fewer is none: Kubernetes rounds down.
        # A second server beside the first would wait for the device that the first has.
        if any("/" in name for name in _resources(one)):
            continue
        if strategy.get("type", "RollingUpdate") == "RollingUpdate" and away not in (0, "0%", "25%"):
            yield f"{title(one)}: {away} of its pods may be away while it is updated"
        if one["spec"].get("revisionHistoryLimit") == 0:
            yield f"{title(one)}: cannot be rolled back"


def _resources(workload: Manifest) -> set[str]:
    """What its containers are limited in."""
    specs = workload["spec"]["template"]["spec"]["containers"]
    return {name for spec in specs for name in (spec.get("resources") or {}).get("limits") or ()}


def _replicated(release: Release) -> Iterator[Pod]:
    for pod in pods(release.objects):
        if pod.owner["kind"] in LONG_RUNNING and most_replicas(release, pod.owner) > 1:
            yield pod


def _pause_s(pod: Pod) -> float:
    """The longest pause before SIGTERM of its containers: they pause at the same time."""
    pauses = [0.0]
    for container in pod.containers:
        hook = ((container.spec.get("lifecycle") or {}).get("preStop")) or {}
        pauses.append(float((hook.get("sleep") or {}).get("seconds", 0)))
        command = (hook.get("exec") or {}).get("command") or []
        pauses += [float(after) for before, after in pairwise(command) if before == "sleep"]
    return max(pauses)


def _leaving_s(release: Release, pod: Pod) -> float:
    """What its program may take after SIGTERM, as its variables or its options say."""
    said: dict[str, str] = {}
    for container in pod.containers:
        said |= {name: value for name, value in variables(release, container).items() if isinstance(value, str)}
    if pod.component in WORKERS:
        return float(said.get("PROCTOR_GRACE_S") or DEFAULT_TIMING.grace_s)
    if pod.component == "gateway":
        options = [pair for container in pod.containers for pair in pairwise(container.command)]
        return float(dict(options).get("--grace") or said.get("PROCTOR_GATEWAY_GRACE") or 10)
    return 0.0
