"""Where credentials may stand: in Secrets, and nowhere that more people read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from tests.charts.environment import variables
from tests.charts.manifests import Container, annotations_of, pods, strings, title
from tests.charts.policies.policy import policy
from tests.charts.rendering import Release

#: Of variables and keys whose value opens something.
_OPENS: Final = re.compile(r"PASSWORD|PASSWD|TOKEN|SECRET|CREDENTIAL|API_KEY|ACCESS_KEY|PRIVATE_KEY|NOTIFY$|OIDC$")
#: Variables of that name which say how long, where or how many.
_HARMLESS: Final = frozenset({"TOKENIZERS_PARALLELISM"})
_URL_WITH_PASSWORD: Final = re.compile(r"\b[a-z][a-z0-9+.-]*://[^/\s:@]*:(?P<password>[^@/\s]+)@")
#: What Kubernetes, or a shell, puts in as the container starts.
_EXPANDED: Final = re.compile(r"\$\([A-Z0-9_]+\)|\$\{?[A-Z0-9_]+\}?")
_PRIVATE_KEY: Final = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----")


@policy
def a_secret_stands_in_no_variable(release: Release) -> Iterator[str]:
    """A variable that opens something is taken from a Secret, or names a file; none is written out in a manifest."""
    for container in _containers(release):
        for name, value in variables(release, container).items():
            if not isinstance(value, str) or not value:
                continue
            if _OPENS.search(name) and name not in _HARMLESS and not _names_a_file(value) and not _expands(value):
                yield f"{container.name}: {name} is written out"
            yield from (f"{container.name}: {name} {fault}" for fault in _faults(value))


@policy
def a_secret_stands_in_no_argument(release: Release) -> Iterator[str]:
    """Arguments are shown to whoever lists processes: no password, token or key among them."""
    for container in _containers(release):
        for argument in container.command:
            yield from (f"{container.name}: an argument {fault}" for fault in _faults(argument))
            for found in re.findall(r"--(?:password|requirepass|token|secret|api-key)[= ](\S+)", argument):
                if not _expands(found):
                    yield f"{container.name}: an argument holds {found[:3]}…"


@policy
def a_secret_stands_in_no_config_map(release: Release) -> Iterator[str]:
    """No ConfigMap, annotation or custom resource holds a URL with a password, or a private key."""
    for one in release.objects:
        if one["kind"] == "Secret":
            continue
        for text in (*strings(annotations_of(one)), *(strings(one) if one["kind"] != "Pod" else ())):
            yield from (f"{title(one)}: {fault}" for fault in _faults(text))
    for one in release.of_kind("ConfigMap"):
        for key, value in (one.get("data") or {}).items():
            if _OPENS.search(key.upper()) and value and not _names_a_file(value):
                yield f"{title(one)}: {key} is written out"


@policy
def a_secret_is_mounted_for_its_owner(release: Release) -> Iterator[str]:
    """Files from Secrets are read by the pod's user alone: the mode has nothing for others."""
    for pod in pods(release.objects):
        for volume in pod.volumes:
            for secret in (volume.get("secret"), *((volume.get("projected") or {}).get("sources") or ())):
                if not secret or ("secret" not in secret and "secretName" not in secret):
                    continue
                mode = secret.get("defaultMode", (volume.get("projected") or {}).get("defaultMode", 0o644))
                if int(mode) & 0o007:
                    yield f"{pod.name}: volume {volume['name']} has mode {int(mode):o}"


def _faults(text: str) -> Iterator[str]:
    for found in _URL_WITH_PASSWORD.finditer(text):
        if not _expands(found["password"]):
            yield "holds a URL with a password"
    if _PRIVATE_KEY.search(text):
        yield "holds a private key"


def _names_a_file(value: str) -> bool:
    return value.startswith(("@/", "/"))


def _expands(value: str) -> bool:
    return bool(_EXPANDED.search(value))


def _containers(release: Release) -> Iterator[Container]:
    return (container for pod in pods(release.objects) for container in pod.containers)
