"""What every object has: a name that is valid and its own, labels, a place, and hooks that can run."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from tests.charts.manifests import COMPONENT, Manifest, Pod, annotations_of, labels_of, pods, strings, title
from tests.charts.policies.policy import policy
from tests.charts.policies.references import needs
from tests.charts.rendering import NAMESPACE, Release

COMPONENTS: Final = frozenset(
    {
        "router", "perturbation", "inference", "scorer", "registry", "gateway", "notifier", "triton", "valkey",
        "postgresql", "mlflow", "migrate", "test", "schedule", "subscribe",
    }
)  # fmt: skip
_LABELS: Final = tuple(f"app.kubernetes.io/{name}" for name in ("name", "instance", "version", "managed-by"))
_NAME: Final = re.compile(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?")
_ROLE_NAME: Final = re.compile(r"[A-Za-z0-9:.-]+")
#: Longer names leave no room for what controllers add to them, or are refused.
MOST_CHARACTERS: Final = {"Service": 63, "Deployment": 63, "StatefulSet": 52, "CronJob": 52, "Job": 63, "Pod": 63}
_CLUSTER_WIDE: Final = frozenset(
    {
        "ClusterRole", "ClusterRoleBinding", "PriorityClass", "Namespace", "ValidatingWebhookConfiguration",
        "MutatingWebhookConfiguration", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding",
    }
)  # fmt: skip
_HOOKS: Final = frozenset(
    {
        "pre-install", "post-install", "pre-upgrade", "post-upgrade", "pre-rollback", "post-rollback", "pre-delete",
        "post-delete", "test",
    }
)  # fmt: skip
_DELETE_POLICIES: Final = frozenset({"before-hook-creation", "hook-succeeded", "hook-failed"})
_HOOK, _WEIGHT, _DELETION = (f"helm.sh/hook{part}" for part in ("", "-weight", "-delete-policy"))


@policy
def an_object_has_a_name_of_its_own(release: Release) -> Iterator[str]:
    """Names are valid, short enough for their kind, and no two objects of a kind share one."""
    seen = set()
    for one in release.objects:
        name = str(one["metadata"].get("name") or "")
        place = (one["apiVersion"].partition("/")[0], one["kind"], one["metadata"].get("namespace"), name)
        if place in seen:
            yield f"{title(one)}: twice"
        seen.add(place)
        form = _ROLE_NAME if "Role" in one["kind"] else _NAME
        if not form.fullmatch(name) or len(name) > MOST_CHARACTERS.get(one["kind"], 253):
            yield f"{title(one)}: {name!r} is no name for it"


@policy
def an_object_has_labels(release: Release) -> Iterator[str]:
    """Every object says which application, release and version it is of, and pods say their component."""
    for one in release.objects:
        for label in _LABELS:
            if not labels_of(one).get(label):
                yield f"{title(one)}: no label {label}"
    for pod in pods(release.objects):
        if pod.component not in COMPONENTS:
            yield f"{pod.name}: component {pod.component!r}"
        for label in (f"app.kubernetes.io/{name}" for name in ("name", "instance")):
            if not pod.labels.get(label):
                yield f"{pod.name}: its pods have no label {label}"
        if pod.owner["kind"] != "Pod" and labels_of(pod.owner).get(COMPONENT) != pod.component:
            yield f"{pod.name}: is of {labels_of(pod.owner).get(COMPONENT)}, and its pods are of {pod.component}"


@policy
def an_object_stands_in_the_release_s_namespace(release: Release) -> Iterator[str]:
    """No object is put into a namespace but the release's, unless the values name it."""
    named = set(strings(release.values)) | {NAMESPACE}
    for one in release.objects:
        namespace = one["metadata"].get("namespace")
        if namespace is not None and one["kind"] in _CLUSTER_WIDE:
            yield f"{title(one)}: in a namespace, and its kind has none"
        if namespace is not None and namespace not in named:
            yield f"{title(one)}: in namespace {namespace}"


@policy
def a_hook_can_run(release: Release) -> Iterator[str]:
    """Hooks are ones that Helm knows, in an order, and are removed before they come again."""
    for one in release.objects:
        said = _hooks(one)
        if _HOOK not in annotations_of(one) and (_WEIGHT in annotations_of(one) or _DELETION in annotations_of(one)):
            yield f"{title(one)}: a hook's weight or deletion, and no hook"
        if not said:
            continue
        if said - _HOOKS:
            yield f"{title(one)}: hook {', '.join(sorted(said - _HOOKS))}"
        weight = annotations_of(one).get(_WEIGHT, "0")
        if not isinstance(weight, str) or not re.fullmatch(r"-?\d+", weight):
            yield f"{title(one)}: hook weight {weight!r} is no number written as text"
        deletion = {part.strip() for part in annotations_of(one).get(_DELETION, "").split(",") if part.strip()}
        if not deletion & {"before-hook-creation", "hook-succeeded"} or deletion - _DELETE_POLICIES:
            yield f"{title(one)}: its second run finds the first one's {one['kind']}"


@policy
def a_hook_ends(release: Release) -> Iterator[str]:
    """A Job has a time by which it is over and a number of tries, so that no installation hangs."""
    for one in release.objects:
        spec = one.get("spec") or {}
        job = spec.get("jobTemplate", {}).get("spec") if one["kind"] == "CronJob" else spec
        if one["kind"] in ("Job", "CronJob"):
            for field in ("activeDeadlineSeconds", "backoffLimit"):
                if field not in job:
                    yield f"{title(one)}: no {field}"
            if job["template"]["spec"].get("restartPolicy") not in ("Never", "OnFailure"):
                yield f"{title(one)}: its pods are started again for ever"
        if one["kind"] == "Pod" and spec.get("restartPolicy") != "Never":
            yield f"{title(one)}: is started again for ever"


@policy
def a_hook_needs_nothing_that_comes_later(release: Release) -> Iterator[str]:
    """What runs before an installation finds its account and what it takes in: hooks, too, of a lower weight."""
    for pod in pods(release.objects):
        if not _hooks(pod.owner) & {"pre-install", "pre-upgrade"}:
            continue
        for kind, name in _needed(pod):
            needed = release.find(kind, name)
            if needed is None:
                continue
            for hook in sorted(_hooks(pod.owner) & {"pre-install", "pre-upgrade"}):
                if hook not in _hooks(needed):
                    yield f"{pod.name}: runs at {hook}, when {title(needed)} of this version is not there"
                elif _weight(needed) >= _weight(pod.owner):
                    yield f"{pod.name}: runs beside or before {title(needed)}"


def _hooks(one: Manifest) -> set[str]:
    return {part.strip() for part in str(annotations_of(one).get(_HOOK, "")).split(",") if part.strip()}


def _weight(one: Manifest) -> int:
    return int(annotations_of(one).get(_WEIGHT, "0"))


def _needed(pod: Pod) -> Iterator[tuple[str, str]]:
    yield "ServiceAccount", pod.service_account
    for kind, name, optional in needs(pod):
        if not optional:
            yield kind, name
