"""What one object names of another is there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.charts.manifests import LONG_RUNNING, Manifest, Pod, pods, port_numbers, selects, strings, title
from tests.charts.policies.policy import policy
from tests.charts.rendering import Release


@policy
def a_workload_selects_its_own_pods(release: Release) -> Iterator[str]:
    """A workload's selector takes in the pods that it makes and no others; a version is no part of it."""
    workloads = list(release.of_kind(*LONG_RUNNING))
    for pod in pods(release.objects):
        takers = [one for one in workloads if selects(one["spec"].get("selector"), pod.labels)]
        if pod.owner in workloads and pod.owner not in takers:
            yield f"{pod.name}: its selector does not take in its own pods"
        for other in takers:
            if other is not pod.owner:
                yield f"{title(other)}: its selector takes in the pods of {pod.name}"
    for one in workloads:
        for label in ("app.kubernetes.io/version", "helm.sh/chart"):
            if label in ((one["spec"].get("selector") or {}).get("matchLabels") or {}):
                yield f"{title(one)}: {label} in its selector, which no upgrade can change"


@policy
def a_service_leads_to_pods(release: Release) -> Iterator[str]:
    """A Service takes in the pods of one component, which have the ports that it leads to."""
    here = list(pods(release.objects))
    for service in release.of_kind("Service"):
        if service["spec"].get("type") == "ExternalName":
            continue
        selector = service["spec"].get("selector")
        behind = [pod for pod in here if selector and selects({"matchLabels": selector}, pod.labels)]
        if not behind:
            yield f"{title(service)}: leads to no pod"
        if len({pod.component for pod in behind}) > 1:
            yield f"{title(service)}: leads to {', '.join(sorted(pod.name for pod in behind))}"
        for port in service["spec"].get("ports") or ():
            target = port.get("targetPort", port["port"])
            for pod in behind:
                open_ports = {int(one["containerPort"]) for container in pod.containers for one in container.ports}
                if not port_numbers(pod, target) & open_ports:
                    yield f"{title(service)}: leads to port {target}, which {pod.name} has not"


@policy
def a_backend_is_a_service(release: Release) -> Iterator[str]:
    """What an Ingress, a route, a webhook or an API service leads to is a Service of the release, at a port it has."""
    for one in release.objects:
        for name, port in _backends(one):
            service = release.find("Service", name)
            if service is None:
                yield f"{title(one)}: leads to Service {name}, which the release does not have"
                continue
            ports = service["spec"].get("ports") or []
            if port is not None and port not in {p for said in ports for p in (said.get("name"), said["port"])}:
                yield f"{title(one)}: leads to port {port}, which {title(service)} has not"


@policy
def what_a_pod_takes_in_is_there(release: Release) -> Iterator[str]:
    """ConfigMaps, Secrets, claims and priority classes that a pod names are in the release or named by its values."""
    named = set(strings(release.values))
    for pod in pods(release.objects):
        for kind, name, optional in needs(pod):
            if not optional and release.find(kind, name) is None and name not in named and not _is_builtin(kind, name):
                yield f"{pod.name}: needs {kind} {name}, which is neither in the release nor in its values"
    for pod in pods(release.objects):
        for kind, name, key in _keys(pod):
            held = release.find(kind, name)
            if held is not None and key not in {**(held.get("data") or {}), **(held.get("stringData") or {})}:
                yield f"{pod.name}: takes {key} of {kind} {name}, which does not hold it"


@policy
def a_mount_has_a_volume(release: Release) -> Iterator[str]:
    """Every mount names a volume of its pod, and every volume is mounted."""
    for pod in pods(release.objects):
        volumes = [volume["name"] for volume in pod.volumes]
        templates = pod.owner.get("spec", {}).get("volumeClaimTemplates") or ()
        volumes += [claim["metadata"]["name"] for claim in templates]
        mounts = {one["name"] for container in pod.containers for one in container.spec.get("volumeMounts") or ()}
        for name in sorted(mounts - set(volumes)):
            yield f"{pod.name}: mounts {name}, which it does not have"
        for name in sorted(set(volumes) - mounts):
            yield f"{pod.name}: volume {name} is mounted nowhere"
        for name in {one for one in volumes if volumes.count(one) > 1}:
            yield f"{pod.name}: two volumes {name}"


@policy
def what_is_made_is_used(release: Release) -> Iterator[str]:
    """No ConfigMap and no claim is made that nothing takes in, but those that are found by a label."""
    taken = {(kind, name) for pod in pods(release.objects) for kind, name, _ in needs(pod)}
    elsewhere = {text for one in release.objects if one["kind"] not in ("ConfigMap",) for text in strings(one)}
    for one in release.of_kind("ConfigMap", "PersistentVolumeClaim"):
        name = one["metadata"]["name"]
        found_by_label = any(key.startswith(("grafana", "proctor.dev/")) for key in one["metadata"].get("labels") or {})
        used = (one["kind"], name) in taken or found_by_label
        if not used and not any(name in text for text in elsewhere - {name}):
            yield f"{title(one)}: nothing uses it"


def needs(pod: Pod) -> Iterator[tuple[str, str, bool]]:
    """Kind and name of what must be there before the pod can start, and whether it starts without."""
    spec = pod.spec
    for volume in pod.volumes:
        for source in (volume, *((volume.get("projected") or {}).get("sources") or ())):
            if held := source.get("configMap"):
                yield "ConfigMap", held["name"], bool(held.get("optional"))
            if held := source.get("secret"):
                yield "Secret", held.get("secretName") or held["name"], bool(held.get("optional"))
            if held := source.get("persistentVolumeClaim"):
                yield "PersistentVolumeClaim", held["claimName"], False
    for container in pod.containers:
        for source in container.spec.get("envFrom") or ():
            for kind, key in (("ConfigMap", "configMapRef"), ("Secret", "secretRef")):
                if held := source.get(key):
                    yield kind, held["name"], bool(held.get("optional"))
    for kind, name, _ in _keys(pod):
        yield kind, name, _optional(pod, kind, name)
    for pull in spec.get("imagePullSecrets") or ():
        yield "Secret", pull["name"], False
    if spec.get("priorityClassName"):
        yield "PriorityClass", spec["priorityClassName"], False
    if spec.get("runtimeClassName"):
        yield "RuntimeClass", spec["runtimeClassName"], False


def _keys(pod: Pod) -> Iterator[tuple[str, str, str]]:
    """Kind, name and key of what variables are taken from, and of single files."""
    for container in pod.containers:
        for one in container.spec.get("env") or ():
            for kind, reference in _references(one):
                if not reference.get("optional"):
                    yield kind, reference["name"], reference["key"]
    for volume in pod.volumes:
        for source in (volume, *((volume.get("projected") or {}).get("sources") or ())):
            for kind, field in (("ConfigMap", "configMap"), ("Secret", "secret")):
                held = source.get(field) or {}
                for item in held.get("items") or ():
                    yield kind, held.get("secretName") or held["name"], item["key"]


def _optional(pod: Pod, kind: str, name: str) -> bool:
    found = [
        reference
        for container in pod.containers
        for one in container.spec.get("env") or ()
        for of_kind, reference in _references(one)
        if (of_kind, reference["name"]) == (kind, name)
    ]
    # Keys of a volume's items are held by the volume itself.
    return not found or all(reference.get("optional") for reference in found)


def _references(variable: Manifest) -> Iterator[tuple[str, Manifest]]:
    taken = variable.get("valueFrom") or {}
    for kind, field in (("ConfigMap", "configMapKeyRef"), ("Secret", "secretKeyRef")):
        if field in taken:
            yield kind, taken[field]


def _is_builtin(kind: str, name: str) -> bool:
    return kind == "PriorityClass" and name.startswith("system-")


def _backends(one: Manifest) -> Iterator[tuple[str, Any]]:
    """Name and port of each Service that an object leads to."""
    kind, spec = one["kind"], one.get("spec") or {}
    if kind == "Ingress":
        backends = [path["backend"] for rule in spec.get("rules") or () for path in (rule.get("http") or {})["paths"]]
        backends += [spec["defaultBackend"]] if "defaultBackend" in spec else []
        for backend in backends:
            port = backend["service"].get("port") or {}
            yield backend["service"]["name"], port.get("name") or port.get("number")
    elif kind in ("HTTPRoute", "GRPCRoute"):
        for rule in spec.get("rules") or ():
            for backend in rule.get("backendRefs") or ():
                yield backend["name"], backend.get("port")
    elif kind in ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"):
        for webhook in one.get("webhooks") or ():
            if service := webhook["clientConfig"].get("service"):
                yield service["name"], service.get("port", 443)
    elif kind == "StatefulSet" and spec.get("serviceName"):
        yield spec["serviceName"], None
    elif kind == "BackendTLSPolicy":
        for target in spec.get("targetRefs") or ():
            yield target["name"], target.get("sectionName")
