"""The ScaledObjects that the chart renders with some values: the formulas that a cluster gets, not a copy of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from autoscaling.rules import Rules, rules_of
from proctor.domain.errors import BadInputError

CHART: Final = Path(__file__).parents[2] / "charts" / "proctor"
_COMPONENT, _POOL = "app.kubernetes.io/component", "proctor.dev/pool"

Manifest = Mapping[str, Any]


def render(chart: Path, values: Mapping[str, Any]) -> list[Manifest]:
    """Everything that the chart makes of these values, with KEDA.

    Raises:
        BadInputError: where it refuses them, or no chart is there.
    """
    from helm_python.chart import Chart
    from helm_python.errors import HelmError

    given = {**values, "autoscaling": {"mode": "keda", **values.get("autoscaling", {})}}
    try:
        with Chart.load(chart) as loaded:
            rendered = loaded.render(values=given, name="proctor", namespace="proctor")
    except HelmError as error:
        raise BadInputError(f"{chart}: {error}") from None
    texts = [text for path, text in rendered.items() if path.endswith((".yaml", ".yml"))]
    return [one for text in texts for one in read_yaml(text) if isinstance(one, Mapping)]


def read_yaml(text: str) -> Iterator[Any]:
    """The documents of a text in YAML.

    Raises:
        BadInputError: with where it is none.
    """
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        yield from YAML(typ="safe").load_all(text)
    except YAMLError as error:
        raise BadInputError(f"no YAML: {error}") from None


def values_of(path: Path) -> Mapping[str, Any]:
    """A file of values.

    Raises:
        BadInputError: where it is none.
    """
    try:
        (values,) = read_yaml(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BadInputError(f"{path}: {error}") from None
    if not isinstance(values, Mapping):
        raise BadInputError(f"{path}: not a mapping of values")
    return values


def worker_rules(manifests: list[Manifest]) -> Rules:
    """The rules of the inference workers.

    Raises:
        BadInputError: where they are not scaled.
    """
    for manifest in _scaled(manifests, "inference"):
        return rules_of(manifest)
    raise BadInputError("the chart scales no inference workers with these values (inference.autoscaling.enabled)")


def gpu_rules(manifests: list[Manifest], pool: str | None) -> Rules | None:
    """The rules of a pool's Triton, of the first one where none is named; None where it is not scaled."""
    for manifest in _scaled(manifests, "triton"):
        if pool in (None, manifest["metadata"].get("labels", {}).get(_POOL)):
            return rules_of(manifest)
    return None


def _scaled(manifests: list[Manifest], component: str) -> Iterator[Manifest]:
    for manifest in manifests:
        labels = manifest.get("metadata", {}).get("labels", {})
        if manifest.get("kind") == "ScaledObject" and labels.get(_COMPONENT) == component:
            yield manifest


def slots(manifests: list[Manifest]) -> int:
    """Messages that an inference worker has at a time, from its arguments."""
    for manifest in manifests:
        labels = manifest.get("metadata", {}).get("labels", {})
        if manifest.get("kind") == "Deployment" and labels.get(_COMPONENT) == "inference":
            for container in manifest["spec"]["template"]["spec"]["containers"]:
                arguments = [str(one) for one in (*container.get("command", ()), *container.get("args", ()))]
                if "--concurrency" in arguments:
                    return int(arguments[arguments.index("--concurrency") + 1])
    raise BadInputError("the chart's inference workers have no --concurrency")
