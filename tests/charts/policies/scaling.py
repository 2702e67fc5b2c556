"""Who says how many pods a workload has."""

from __future__ import annotations

from collections.abc import Iterator

from tests.charts.manifests import Manifest, title
from tests.charts.policies.policy import policy
from tests.charts.rendering import Release

_KEDA = "keda.sh/"


@policy
def a_scaler_has_a_target(release: Release) -> Iterator[str]:
    """Every ScaledObject and HorizontalPodAutoscaler names a workload of the release."""
    for scaler in _scalers(release):
        if _target(release, scaler) is None:
            yield f"{title(scaler)}: scales {_reference(scaler)}, which the release does not have"


@policy
def a_workload_has_one_scaler(release: Release) -> Iterator[str]:
    """No workload is scaled by two, of whatever kinds; KEDA makes an autoscaler of its own."""
    scaled = [_reference(scaler) for scaler in _scalers(release)]
    for reference in {one for one in scaled if scaled.count(one) > 1}:
        yield f"{' '.join(reference)}: {scaled.count(reference)} scalers"


@policy
def a_scaled_workload_leaves_its_replicas_open(release: Release) -> Iterator[str]:
    """What a scaler scales says no number of replicas, or every upgrade would set it back; all else says one."""
    scaled = {_reference(scaler) for scaler in _scalers(release)}
    for one in release.of_kind("Deployment", "StatefulSet"):
        is_scaled = (one["kind"], one["metadata"]["name"]) in scaled
        if is_scaled and "replicas" in one["spec"]:
            yield f"{title(one)}: says replicas and is scaled"
        if not is_scaled and "replicas" not in one["spec"]:
            yield f"{title(one)}: says no replicas, and nothing scales it"


@policy
def a_scaler_has_bounds(release: Release) -> Iterator[str]:
    """A scaler's bounds are in order, and what KEDA falls back to is within them."""
    for scaler in _scalers(release):
        spec = scaler["spec"]
        least = spec.get("minReplicaCount", 0) if _is_keda(scaler) else spec.get("minReplicas", 1)
        most = spec.get("maxReplicaCount" if _is_keda(scaler) else "maxReplicas")
        if most is None or not least <= most or most < 1:
            yield f"{title(scaler)}: from {least} to {most} pods"
            continue
        fallback = spec.get("fallback")
        if _is_keda(scaler) and fallback is None:
            yield f"{title(scaler)}: says nothing for when its source is away"
        if fallback is not None and not max(least, 1) <= fallback["replicas"] <= most:
            yield f"{title(scaler)}: falls back to {fallback['replicas']} pods, of {least} to {most}"
        if not _is_keda(scaler) and least < 1:
            yield f"{title(scaler)}: an autoscaler of Kubernetes' own cannot wake anything from nothing"


@policy
def a_scaler_goes_down_slowly(release: Release) -> Iterator[str]:
    """Scaling down waits for a calm window and takes a bounded step."""
    for scaler in _scalers(release):
        behaviour = scaler["spec"].get("behavior")
        if _is_keda(scaler):
            advanced = (scaler["spec"].get("advanced") or {}).get("horizontalPodAutoscalerConfig") or {}
            behaviour = advanced.get("behavior")
        down = (behaviour or {}).get("scaleDown") or {}
        if int(down.get("stabilizationWindowSeconds", 0)) < 60:
            yield f"{title(scaler)}: waits {down.get('stabilizationWindowSeconds')} s before it goes down"
        if not down.get("policies"):
            yield f"{title(scaler)}: goes down in one step"


@policy
def a_trigger_does_not_take_silence_for_idleness(release: Release) -> Iterator[str]:
    """A Prometheus trigger without data is an error, which falls back, and never 0."""
    for scaler in _scalers(release):
        for trigger in scaler["spec"].get("triggers") or ():
            if trigger["type"] == "prometheus" and str(trigger["metadata"].get("ignoreNullValues")) != "false":
                yield f"{title(scaler)}: a Prometheus without data scales it down"
            if trigger["type"] == "redis" and "listName" in trigger["metadata"]:
                yield f"{title(scaler)}: a list's length leaves out what is in hand"
            for key, value in trigger["metadata"].items():
                if not isinstance(value, str):
                    yield f"{title(scaler)}: KEDA takes text alone, and {key} is {value!r}"


@policy
def without_keda_there_is_nothing_of_it(release: Release) -> Iterator[str]:
    """Where the cluster has no KEDA, or the values leave it out, no object of it is made."""
    if any(api.startswith(_KEDA) for api in release.apis):
        return
    for one in release.objects:
        if str(one["apiVersion"]).startswith(_KEDA):
            yield f"{title(one)}: the cluster does not know {one['apiVersion']}"


def most_replicas(release: Release, workload: Manifest) -> int:
    """How many pods a workload may have."""
    for scaler in _scalers(release):
        if _reference(scaler) == (workload["kind"], workload["metadata"]["name"]):
            return int(scaler["spec"].get("maxReplicaCount" if _is_keda(scaler) else "maxReplicas", 100))
    return int(workload["spec"].get("replicas", 1))


def _scalers(release: Release) -> Iterator[Manifest]:
    return release.of_kind("ScaledObject", "HorizontalPodAutoscaler")


def _is_keda(scaler: Manifest) -> bool:
    return bool(scaler["kind"] == "ScaledObject")


def _reference(scaler: Manifest) -> tuple[str, str]:
    target = scaler["spec"].get("scaleTargetRef") or {}
    return str(target.get("kind", "Deployment")), str(target.get("name"))


def _target(release: Release, scaler: Manifest) -> Manifest | None:
    return release.find(*_reference(scaler))
