"""Which image a container runs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from tests.charts.manifests import Container, pods
from tests.charts.policies.policy import policy
from tests.charts.rendering import Release

#: Registry and name, a tag, a digest; the registry may have a port, so a tag is what follows the last slash.
_IMAGE: Final = re.compile(r"(?P<name>[^@]*?)(?::(?P<tag>[\w][\w.-]*))?(?:@(?P<digest>sha256:[0-9a-f]{64}))?")
_MOVING: Final = frozenset({"latest", "main", "master", "edge", "stable", "dev", "nightly"})


@policy
def an_image_is_one_version(release: Release) -> Iterator[str]:
    """Every image has a digest, or a tag that does not move."""
    for container in _containers(release):
        image = str(container.spec.get("image") or "")
        found = _IMAGE.fullmatch(image)
        if found is None or not found["name"] or image != image.strip():
            yield f"{container.name}: {image!r} is no image"
        elif found["digest"] is None and found["tag"] is None:
            yield f"{container.name}: {image} has neither tag nor digest"
        elif found["digest"] is None and found["tag"] in _MOVING:
            yield f"{container.name}: {image} is another image tomorrow"


@policy
def an_image_is_pulled_when_it_is_not_there(release: Release) -> Iterator[str]:
    """Every container says when its image is pulled, and no start depends on the registry of an image that is there."""
    for container in _containers(release):
        if container.spec.get("imagePullPolicy") not in ("IfNotPresent", "Never"):
            yield f"{container.name}: imagePullPolicy is {container.spec.get('imagePullPolicy')}"


def _containers(release: Release) -> Iterator[Container]:
    return (container for pod in pods(release.objects) for container in pod.containers)
