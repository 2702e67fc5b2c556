"""What a container may use, and how the kubelet learns how it is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tests.charts.manifests import Container, pods
from tests.charts.policies.policy import policy
from tests.charts.rendering import Release

#: Their probes ask for progress: one that only listens can be stuck.
SHOW_PROGRESS: Final = frozenset({"router", "perturbation", "inference", "scorer", "registry", "notifier"})


@policy
def a_container_says_what_it_needs(release: Release) -> Iterator[str]:
    """Every container has requests for processor and memory, and a limit of memory that is no less."""
    for container in _containers(release):
        resources = container.spec.get("resources") or {}
        requests, limits = resources.get("requests") or {}, resources.get("limits") or {}
        for what in ("cpu", "memory"):
            if what not in requests:
                yield f"{container.name}: no request for {what}"
        if "memory" not in limits:
            yield f"{container.name}: no limit of memory"
        for what, most in limits.items():
            if what in requests and quantity(requests[what]) > quantity(most):
                yield f"{container.name}: requests {requests[what]} of {what} and may use {most}"


@policy
def a_container_has_probes(release: Release) -> Iterator[str]:
    """Every container that runs for long is asked whether it is ready and whether it lives, at a port that it names."""
    for container in _containers(release):
        if not container.long_running:
            continue
        for probe in ("readinessProbe", "livenessProbe"):
            if not container.spec.get(probe):
                yield f"{container.name}: no {probe}"
        for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
            asked = container.spec.get(probe) or {}
            for way in ("httpGet", "tcpSocket", "grpc"):
                port = (asked.get(way) or {}).get("port")
                named = {one.get("name") for one in container.ports} | {one["containerPort"] for one in container.ports}
                if port is not None and port not in named:
                    yield f"{container.name}: {probe} asks port {port}, which it does not have"


@policy
def a_worker_lives_by_its_progress(release: Release) -> Iterator[str]:
    """A worker that takes no message any more is ended: its liveness probe asks /livez, its readiness probe /readyz."""
    for container in _containers(release):
        if not container.long_running or container.starts_before or container.pod.component not in SHOW_PROGRESS:
            continue
        for probe, path in (("livenessProbe", "/livez"), ("readinessProbe", "/readyz")):
            asked = ((container.spec.get(probe) or {}).get("httpGet") or {}).get("path")
            if asked != path:
                yield f"{container.name}: {probe} asks {asked} and not {path}"


@policy
def a_probe_gives_time(release: Release) -> Iterator[str]:
    """No single slow answer ends a container: liveness probes fail twice at least, and wait longer than a second."""
    for container in _containers(release):
        probe = container.spec.get("livenessProbe")
        if probe and (int(probe.get("failureThreshold", 3)) < 2 or int(probe.get("timeoutSeconds", 1)) < 2):
            yield f"{container.name}: its liveness probe ends it for one answer that took a second"


@policy
def a_variable_is_set_once(release: Release) -> Iterator[str]:
    """No container has a variable twice, a port's name twice, or two mounts at one path."""
    for container in _containers(release):
        spec = container.spec
        for what, names in {
            "variable": [one["name"] for one in spec.get("env") or ()],
            "port": [one.get("name") for one in container.ports],
            "port number": [(one["containerPort"], one.get("protocol", "TCP")) for one in container.ports],
            "mount": [one["mountPath"] for one in spec.get("volumeMounts") or ()],
        }.items():
            for name in {one for one in names if names.count(one) > 1}:
                yield f"{container.name}: {what} {name} twice"


def quantity(text: str | float) -> float:
    """A quantity of Kubernetes as a number: `500m`, `2Gi`, `1e3`."""
    units = {"m": 1e-3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
    units |= {f"{letter}i": 1024.0**power for power, letter in enumerate("KMGTP", start=1)}
    said = str(text)
    for unit in sorted(units, key=len, reverse=True):
        if said.endswith(unit):
            return float(said.removesuffix(unit)) * units[unit]
    return float(said)


def _containers(release: Release) -> Iterator[Container]:
    return (container for pod in pods(release.objects) for container in pod.containers)
