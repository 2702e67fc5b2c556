"""The chart as Helm renders it: one release for each value set of `charts/proctor/ci`, each rendered once a session."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Final

from tests.charts.manifests import Manifest
from tests.support import REPOSITORY, missing

CHART: Final = REPOSITORY / "charts" / "proctor"
VALUE_SETS: Final = CHART / "ci"
_SUFFIX: Final = "-values.yaml"
#: What a set says of the cluster that it is for: a comment like `# apis: keda.sh/v1alpha1, monitoring.coreos.com/v1`.
_APIS: Final = re.compile(r"^# apis:(.*)$", re.MULTILINE)
_DOCUMENT_END: Final = re.compile(r"^---(?: .*)?$", re.MULTILINE)
RELEASE: Final = "audits"
NAMESPACE: Final = "proctor-system"


@dataclass(frozen=True)
class Release:
    """What one value set becomes."""

    name: str
    """Of the value set."""
    values: Mapping[str, Any]
    """The chart's defaults with the set's values over them."""
    objects: tuple[Manifest, ...]
    apis: tuple[str, ...] = ()
    """API groups with their versions that the cluster has beside Kubernetes' own."""
    notes: str = ""
    """What Helm prints after the installation."""

    def of_kind(self, *kinds: str) -> Iterator[Manifest]:
        """Its objects of some kinds."""
        return (one for one in self.objects if one.get("kind") in kinds)

    def find(self, kind: str, name: str) -> Manifest | None:
        """The object of a kind and name; None where the release has none."""
        return next((one for one in self.of_kind(kind) if one["metadata"]["name"] == name), None)


@dataclass(frozen=True)
class ValueSet:
    """One file of `ci/`: values, and the API groups of the cluster that they are for."""

    name: str
    values: Mapping[str, Any]
    apis: tuple[str, ...]


def value_set_names() -> list[str]:
    """The sets that there are, by the first part of their file's name."""
    return sorted(path.name.removesuffix(_SUFFIX) for path in VALUE_SETS.glob(f"*{_SUFFIX}"))


@cache
def value_set(name: str) -> ValueSet:
    """A value set by its name."""
    text = (VALUE_SETS / f"{name}{_SUFFIX}").read_text("utf-8")
    apis = [api.strip() for found in _APIS.findall(text) for api in found.split(",")]
    return ValueSet(name, parse(text), tuple(api for api in apis if api))


@cache
def rendered(name: str) -> Release:
    """The release of a value set."""
    given = value_set(name)
    return render(given.values, apis=given.apis, name=name)


def render(
    values: Mapping[str, Any],
    *,
    apis: Sequence[str] = (),
    name: str = "",
    release: str = RELEASE,
    namespace: str = NAMESPACE,
    kube_version: str | None = None,
    upgrade: bool = False,
    chart: Path = CHART,
) -> Release:
    """What values become on a cluster that has some API groups beside Kubernetes' own.

    Raises:
        HelmError: the schema refuses the values, or a template fails.
    """
    helm()
    from helm_python import _native
    from helm_python.chart import Chart

    options: dict[str, Any] = {"name": release, "namespace": namespace, "api_versions": list(apis)}
    options |= {"is_upgrade": True, "revision": 2} if upgrade else {"is_install": True}
    options |= {"kube_version": kube_version} if kube_version else {}
    given = dict(values)
    with Chart.load(chart) as loaded:
        # Rendering alone does not look into the schema in every version of Helm's library.
        loaded.validate_schema(given)
        # `Chart.render` knows nothing of the cluster's version and API groups; the library below it does.
        texts = json.loads(_native.call_string("helm_render", loaded._raw(), json.dumps(given), json.dumps(options)))
        merged = loaded.merge_values(given)
    printed = [path for path in texts if path.endswith(".txt")]
    objects = tuple(one for path in sorted(set(texts) - set(printed)) for one in documents(texts[path]))
    return Release(name, merged, objects, tuple(apis), "".join(texts[path] for path in printed))


def helm() -> None:
    """Helm's library is needed: a skip where it is not installed, a failure in continuous integration."""
    try:
        import helm_python  # noqa: F401
    except ImportError:
        missing("Helm's library is not installed: pip install helm-python-sdk")


def documents(text: str) -> Iterator[dict[str, Any]]:
    """The documents of a YAML text that hold anything, read as Helm and Kubernetes read YAML."""
    return (parsed for part in _DOCUMENT_END.split(text) if (parsed := parse(part)))


@lru_cache(maxsize=4096)
def parse(text: str) -> dict[str, Any]:
    """A YAML document; nothing where it holds comments alone.

    It is not to be changed: most documents of one rendering are those of the one before, and are parsed once.
    """
    helm()
    from helm_python.chart import values_from_yaml

    return values_from_yaml(text) if text.strip() else {}


def told(one: Mapping[str, Any]) -> str:
    """An object as text, without what is drawn for each installation, and what changes with it."""
    if one["kind"] == "Secret":
        keys = {**(one.get("data") or {}), **(one.get("stringData") or {})}
        return json.dumps([one["metadata"], sorted(keys)], sort_keys=True)
    return json.dumps(dict(_without_checksums(one)), sort_keys=True)


def _without_checksums(value: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for key, below in value.items():
        if not str(key).startswith("checksum/"):
            yield key, dict(_without_checksums(below)) if isinstance(below, Mapping) else below
