"""Parts of manifests that checks look at: pods wherever they are described, their containers, labels and ports."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

Manifest = dict[str, Any]

COMPONENT: Final = "app.kubernetes.io/component"
#: Kinds whose pods run until they are told to end.
LONG_RUNNING: Final = ("Deployment", "StatefulSet", "DaemonSet")
_SHORT: Final = ("Job", "CronJob", "Pod")


def title(manifest: Manifest) -> str:
    """An object in words."""
    return f"{manifest.get('kind')} {manifest.get('metadata', {}).get('name')}"


def labels_of(manifest: Manifest) -> Mapping[str, str]:
    """Labels of an object."""
    return manifest.get("metadata", {}).get("labels") or {}


def annotations_of(manifest: Manifest) -> Mapping[str, str]:
    """Annotations of an object."""
    return manifest.get("metadata", {}).get("annotations") or {}


@dataclass(frozen=True)
class Container:
    """A container of a pod."""

    pod: Pod
    spec: Manifest
    starts_before: bool
    """It is one of the init containers."""

    @property
    def name(self) -> str:
        """Where it is, in words."""
        return f"{self.pod.name}: container {self.spec.get('name')}"

    @property
    def long_running(self) -> bool:
        """It is meant to run for as long as its pod does."""
        return self.pod.long_running and (not self.starts_before or self.spec.get("restartPolicy") == "Always")

    @property
    def ports(self) -> list[Manifest]:
        """The ports that it names."""
        return self.spec.get("ports") or []

    @property
    def command(self) -> list[str]:
        """What it is started with, behind the image's entrypoint."""
        return [*(self.spec.get("command") or []), *(self.spec.get("args") or [])]


@dataclass(frozen=True)
class Pod:
    """What a workload makes pods from."""

    owner: Manifest
    template: Manifest

    @property
    def name(self) -> str:
        """Its owner, in words."""
        return title(self.owner)

    @property
    def spec(self) -> Manifest:
        """Of the pod."""
        spec: Manifest = self.template.get("spec") or {}
        return spec

    @property
    def labels(self) -> Mapping[str, str]:
        """Labels of the pod."""
        return labels_of(self.template)

    @property
    def component(self) -> str:
        """The service, or the store, that it runs; empty where it does not say."""
        return self.labels.get(COMPONENT, "")

    @property
    def long_running(self) -> bool:
        """It runs until it is told to end."""
        return self.owner.get("kind") in LONG_RUNNING

    @property
    def service_account(self) -> str:
        """The name of its service account."""
        return str(self.spec.get("serviceAccountName") or "default")

    @property
    def containers(self) -> Iterator[Container]:
        """All of its containers."""
        for key, before in (("initContainers", True), ("containers", False), ("ephemeralContainers", False)):
            for spec in self.spec.get(key) or ():
                yield Container(self, spec, before)

    @property
    def volumes(self) -> list[Manifest]:
        """Its volumes."""
        return self.spec.get("volumes") or []


def pods(objects: Iterable[Manifest]) -> Iterator[Pod]:
    """What every workload among some objects makes pods from."""
    for one in objects:
        kind = one.get("kind")
        if kind == "Pod":
            yield Pod(one, one)
        elif kind == "CronJob":
            yield Pod(one, one["spec"]["jobTemplate"]["spec"]["template"])
        elif kind in (*LONG_RUNNING, *_SHORT):
            yield Pod(one, one["spec"]["template"])


def selects(selector: Manifest | None, given: Mapping[str, str]) -> bool:
    """Whether a label selector takes labels in: matchLabels and matchExpressions; an empty one takes all."""
    if selector is None:
        return False
    for key, value in (selector.get("matchLabels") or {}).items():
        if given.get(key) != value:
            return False
    for expression in selector.get("matchExpressions") or ():
        key, operator, values = expression["key"], expression["operator"], expression.get("values") or []
        holds = {
            "In": key in given and given[key] in values,
            "NotIn": given.get(key) not in values,
            "Exists": key in given,
            "DoesNotExist": key not in given,
        }[operator]
        if not holds:
            return False
    return True


def port_numbers(pod: Pod, port: str | int) -> set[int]:
    """The numbers behind a port, given by number or by name; empty for a name that no container has."""
    if isinstance(port, int):
        return {port}
    return {
        int(one["containerPort"]) for container in pod.containers for one in container.ports if one.get("name") == port
    }


def strings(value: Any) -> Iterator[str]:
    """Every text in a value, keys left out."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for one in value.values():
            yield from strings(one)
    elif isinstance(value, (list, tuple)):
        for one in value:
            yield from strings(one)
