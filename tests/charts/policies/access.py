"""Who a pod is to the API server, and what it may do there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from tests.charts.manifests import COMPONENT, Manifest, Pod, labels_of, pods, strings, title
from tests.charts.policies.policy import policy
from tests.charts.rendering import Release

LEASES: Final = ("coordination.k8s.io", "leases")
SLICES: Final = ("discovery.k8s.io", "endpointslices")
_LIST: Final = frozenset({"list"})
_KEPT: Final = frozenset({"create", "get", "update", "patch"})
#: All that any component may ever do: (component, API group, resource) and the verbs. A release has a part of it.
ALLOWED: Final[dict[tuple[str, str, str], frozenset[str]]] = {
    # One leader of each kind.
    ("router", *LEASES): _KEPT,
    ("gateway", *LEASES): _KEPT,
    # An endpoint's replicas.
    ("inference", *SLICES): frozenset({"get", "list", "watch"}),
    # Decisions are written on the workloads that name the model, which are looked for.
    ("registry", "events.k8s.io", "events"): frozenset({"create"}),
    ("registry", "", "pods"): _LIST,
    ("registry", "", "namespaces"): _LIST,
    **{("registry", "apps", kind): _LIST for kind in ("deployments", "statefulsets", "daemonsets", "replicasets")},
    **{("registry", "batch", kind): _LIST for kind in ("jobs", "cronjobs")},
    # What stands approved, for the admission policy.
    ("registry", "", "configmaps"): _KEPT,
    # The webhook's certificate, and who is to believe it.
    ("gateway", "", "secrets"): _KEPT,
    ("gateway", "admissionregistration.k8s.io", "validatingwebhookconfigurations"): frozenset(
        {"get", "update", "patch"}
    ),
}
#: Resources whose verbs cannot be held to names: whoever looks for a service's slices finds them by a label.
_WITHOUT_NAMES: Final = frozenset({SLICES})
#: Of these the API server does not know the object's name yet, or needs none.
_NAMELESS_VERBS: Final = frozenset({"create", "list", "watch", "deletecollection"})
_SECRETS: Final = ("", "secrets")


class Grant(NamedTuple):
    """One rule of a role, and where it holds."""

    role: Manifest
    rule: Manifest
    whole_cluster: bool

    @property
    def resources(self) -> Iterator[tuple[str, str]]:
        """Group and resource, each with each."""
        for group in self.rule.get("apiGroups") or ():
            for resource in self.rule.get("resources") or ():
                yield group, resource

    @property
    def verbs(self) -> frozenset[str]:
        """What may be done."""
        return frozenset(self.rule.get("verbs") or ())


@policy
def a_component_has_a_service_account_of_its_own(release: Release) -> Iterator[str]:
    """Every pod names a service account that the release brings, or that its values name, and no two components one."""
    users: dict[str, set[str]] = {}
    for pod in pods(release.objects):
        account = pod.service_account
        users.setdefault(account, set()).add(pod.component)
        if account == "default":
            yield f"{pod.name}: runs as the namespace's default account"
        elif release.find("ServiceAccount", account) is None and account not in _named(release):
            yield f"{pod.name}: service account {account} is neither in the release nor in the values"
    for account, components in users.items():
        if len(components) > 1:
            yield f"ServiceAccount {account} is shared by {', '.join(sorted(components))}"


@policy
def a_service_account_is_used(release: Release) -> Iterator[str]:
    """No service account is left over."""
    used = {pod.service_account for pod in pods(release.objects)}
    for account in release.of_kind("ServiceAccount"):
        if account["metadata"]["name"] not in used:
            yield f"{title(account)}: no pod runs as it"


@policy
def a_token_is_mounted_where_it_opens_something(release: Release) -> Iterator[str]:
    """A pod gets a token of the API server where a role is bound to its account, and nowhere else."""
    bound = {
        subject["name"]
        for binding in release.of_kind("RoleBinding", "ClusterRoleBinding")
        for subject in binding.get("subjects") or ()
        if subject.get("kind") == "ServiceAccount"
    }
    for pod in pods(release.objects):
        account = release.find("ServiceAccount", pod.service_account) or {}
        mounted = pod.spec.get("automountServiceAccountToken", account.get("automountServiceAccountToken", True))
        if mounted and pod.service_account not in bound:
            yield f"{pod.name}: has a token that opens nothing"
        if not mounted and pod.service_account in bound and not _projects_token(pod):
            yield f"{pod.name}: a role is bound to its account, and it has no token"


@policy
def a_role_names_what_it_grants(release: Release) -> Iterator[str]:
    """No wildcard in a role, and no resource without a verb or the other way round."""
    for role in release.of_kind("Role", "ClusterRole"):
        for rule in role.get("rules") or ():
            for field in ("apiGroups", "resources", "verbs", "nonResourceURLs"):
                if any("*" in one for one in rule.get(field) or ()):
                    yield f"{title(role)}: {field} {', '.join(rule[field])}"
            if not rule.get("verbs") or not (rule.get("resources") or rule.get("nonResourceURLs")):
                yield f"{title(role)}: a rule grants nothing"
        if role.get("aggregationRule"):
            yield f"{title(role)}: takes in what others write"


@policy
def a_role_is_held_to_objects(release: Release) -> Iterator[str]:
    """Where a verb can be held to an object's name, it is; secrets are never listed, nor open in the whole cluster."""
    for grant in _grants(release):
        for resource in grant.resources:
            named = grant.verbs - _NAMELESS_VERBS
            if named and not grant.rule.get("resourceNames") and resource not in _WITHOUT_NAMES:
                yield f"{title(grant.role)}: {', '.join(sorted(named))} any of {'/'.join(resource)}"
            if resource == _SECRETS and grant.whole_cluster:
                yield f"{title(grant.role)}: secrets of the whole cluster"
            if resource == _SECRETS and grant.verbs & {"list", "watch", "deletecollection"}:
                yield f"{title(grant.role)}: lists secrets"


@policy
def a_role_is_of_the_table(release: Release) -> Iterator[str]:
    """No component may do what the table of grants (`ALLOWED`) does not have for it."""
    components = _components(release)
    for binding in release.of_kind("RoleBinding", "ClusterRoleBinding"):
        role = release.find(binding["roleRef"]["kind"], binding["roleRef"]["name"])
        if role is None:
            yield f"{title(binding)}: binds {binding['roleRef']['name']}, which the release does not have"
            continue
        for subject in binding.get("subjects") or ():
            component = components.get(subject["name"], "")
            if subject.get("kind") != "ServiceAccount" or not component:
                yield f"{title(binding)}: binds {subject.get('kind')} {subject['name']}, as which no pod runs"
            for rule in role.get("rules") or ():
                for group, resource in Grant(role, rule, False).resources:
                    for verb in sorted(set(rule["verbs"]) - ALLOWED.get((component, group, resource), frozenset())):
                        yield f"{title(role)}: {component} may {verb} {resource} of group {group!r}"


@policy
def a_role_is_bound(release: Release) -> Iterator[str]:
    """No role stands there unbound, and a binding stays within its namespace."""
    bound = {
        (one["roleRef"]["kind"], one["roleRef"]["name"]) for one in release.of_kind("RoleBinding", "ClusterRoleBinding")
    }
    for role in release.of_kind("Role", "ClusterRole"):
        if (role["kind"], role["metadata"]["name"]) not in bound:
            yield f"{title(role)}: bound to nobody"
    for binding in release.of_kind("RoleBinding", "ClusterRoleBinding"):
        for subject in binding.get("subjects") or ():
            namespace = subject.get("namespace")
            if namespace is None and binding["kind"] == "ClusterRoleBinding":
                yield f"{title(binding)}: subject {subject['name']} has no namespace"


def _grants(release: Release) -> Iterator[Grant]:
    whole = {one["roleRef"]["name"] for one in release.of_kind("ClusterRoleBinding")}
    for role in release.of_kind("Role", "ClusterRole"):
        for rule in role.get("rules") or ():
            yield Grant(role, rule, role["kind"] == "ClusterRole" and role["metadata"]["name"] in whole)


def _components(release: Release) -> dict[str, str]:
    """The component that runs as each service account."""
    found = {pod.service_account: pod.component for pod in pods(release.objects)}
    for account in release.of_kind("ServiceAccount"):
        found.setdefault(account["metadata"]["name"], labels_of(account).get(COMPONENT, ""))
    return found


def _projects_token(pod: Pod) -> bool:
    return any(
        "serviceAccountToken" in source
        for volume in pod.volumes
        for source in (volume.get("projected") or {}).get("sources") or ()
    )


def _named(release: Release) -> set[str]:
    return set(strings(release.values))
