"""Whether Kubernetes takes a manifest: the schemas of its versions, and those of custom resources' definitions."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from jsonschema import Draft202012Validator
from referencing import Registry, Resource

from tests.charts.manifests import Manifest
from tests.charts.rendering import documents
from tests.support import REPOSITORY, missing

#: The oldest that the chart takes, the newest that the package has, and the one that tests install the chart on.
VERSIONS: Final = ("1.30.0", "1.36.0", "1.37.0")
_SHARED: Final = REPOSITORY.parent / "shared"
#: Where definitions lie: a folder with one each, and a file with KEDA's among its other objects.
_DEFINITIONS: Final = (_SHARED / "third_party" / "crds", _SHARED / "cluster" / "manifests" / "keda.yaml")
_CUSTOM: Final = ("keda.sh/", "monitoring.coreos.com/", "gateway.networking.k8s.io/")
_KEPT: Final = "x-kubernetes-preserve-unknown-fields"


def is_custom(manifest: Manifest) -> bool:
    """Whether an object is of a kind that Kubernetes alone does not know."""
    return str(manifest["apiVersion"]).startswith(_CUSTOM)


def refusals(manifest: Manifest, version: str) -> Iterator[str]:
    """Why the API server of a version would refuse an object of Kubernetes' own, unknown fields among them."""
    group, _, api = str(manifest["apiVersion"]).rpartition("/")
    name = "-".join(part for part in (str(manifest["kind"]).lower(), group.partition(".")[0], api) if part)
    validator = _validator(version, name)
    if validator is None:
        yield f"Kubernetes {version} has no {manifest['kind']} of {manifest['apiVersion']}"
        return
    yield from _said(validator, manifest)


@cache
def _validator(version: str, name: str) -> Draft202012Validator | None:
    # The package's own `validate` reads the definitions, two megabytes, for each object anew.
    path = _schemas(version) / f"{name}.json"
    if not path.is_file():
        return None
    schema: dict[str, Any] = json.loads(path.read_text("utf-8"))
    registry: Registry[Any] = Resource.from_contents(_contents(version)) @ Registry()
    return Draft202012Validator(schema, registry=Resource.from_contents(schema) @ registry)


@cache
def _contents(version: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((_schemas(version) / "_definitions.json").read_text("utf-8"))
    return found


def _schemas(version: str) -> Path:
    try:
        package = files("kubernetes_validate")
    except ModuleNotFoundError:
        missing("Kubernetes' schemas are not installed: pip install kubernetes-validate")
    return Path(str(package)) / "kubernetes-json-schema" / f"v{version}-local-strict"


def custom_refusals(manifest: Manifest) -> Iterator[str]:
    """Why the API server would refuse a custom resource, or drop a field of it."""
    group, _, version = str(manifest["apiVersion"]).partition("/")
    validator = _definitions().get((group, version, str(manifest["kind"])))
    if validator is None:
        yield f"no definition of {manifest['kind']} in {manifest['apiVersion']}"
        return
    yield from _said(validator, manifest)


@cache
def _definitions() -> Mapping[tuple[str, str, str], Draft202012Validator]:
    found: dict[tuple[str, str, str], Draft202012Validator] = {}
    for place in _DEFINITIONS:
        if not place.exists():
            missing(f"no definitions of custom resources in {place.relative_to(REPOSITORY.parent)}")
        for path in sorted(place.glob("*.yaml")) if place.is_dir() else [place]:
            # Of the rest of KEDA's file only the definitions are parsed.
            for text in path.read_text("utf-8").split("\n---\n"):
                if "CustomResourceDefinition" in text:
                    for one in documents(text):
                        found |= _of_definition(one)
    return found


def _of_definition(definition: Manifest) -> dict[tuple[str, str, str], Draft202012Validator]:
    spec = definition["spec"]
    return {
        (spec["group"], version["name"], spec["names"]["kind"]): Draft202012Validator(
            _strict(version["schema"]["openAPIV3Schema"], root=True)
        )
        for version in spec["versions"]
        if version.get("served")
    }


def _strict(schema: dict[str, Any], *, root: bool = False) -> dict[str, Any]:
    """A structural schema as JSON Schema, in which a field that the API server would drop is a fault."""
    strict = {key: value for key, value in schema.items() if key not in ("format", "nullable", "description")}
    if properties := schema.get("properties"):
        strict["properties"] = {name: _strict(below) for name, below in properties.items()}
        if root:
            strict["properties"]["metadata"] = {"type": "object"}
    if isinstance(schema.get("items"), dict):
        strict["items"] = _strict(schema["items"])
    extra = schema.get("additionalProperties")
    if isinstance(extra, dict):
        strict["additionalProperties"] = _strict(extra)
    elif properties and extra is None and not schema.get(_KEPT):
        strict["additionalProperties"] = False
    if schema.get("x-kubernetes-int-or-string"):
        strict.pop("type", None)
        strict["anyOf"] = [{"type": "integer"}, {"type": "string"}]
    if schema.get("nullable") and isinstance(strict.get("type"), str):
        strict["type"] = [strict["type"], "null"]
    return strict


def _said(validator: Draft202012Validator, manifest: Manifest) -> Iterator[str]:
    for fault in validator.iter_errors(manifest):
        yield f"{'.'.join(map(str, fault.absolute_path)) or 'the object'}: {fault.message[:300]}"
