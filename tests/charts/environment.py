"""The variables that a container starts with, wherever they are said."""

from __future__ import annotations

from tests.charts.manifests import Container, Manifest
from tests.charts.rendering import Release


def variables(release: Release, container: Container) -> dict[str, str | Manifest]:
    """Each variable with its text, or with what it is taken from; a ConfigMap of the release is read."""
    found: dict[str, str | Manifest] = {}
    for source in container.spec.get("envFrom") or ():
        prefix = source.get("prefix", "")
        reference = source.get("configMapRef") or source.get("secretRef") or {}
        kind = "ConfigMap" if "configMapRef" in source else "Secret"
        held = release.find(kind, str(reference.get("name"))) or {}
        for key, value in (held.get("data") or {}).items() if kind == "ConfigMap" else ():
            found[f"{prefix}{key}"] = str(value)
        if kind == "Secret":
            for key in {**(held.get("data") or {}), **(held.get("stringData") or {})}:
                found[f"{prefix}{key}"] = source
    for one in container.spec.get("env") or ():
        found[one["name"]] = str(one["value"]) if "value" in one else one.get("valueFrom") or ""
        taken = found[one["name"]]
        if isinstance(taken, dict) and "configMapKeyRef" in taken:
            reference = taken["configMapKeyRef"]
            held = release.find("ConfigMap", reference["name"]) or {}
            found[one["name"]] = str((held.get("data") or {}).get(reference["key"], taken))
    return found
