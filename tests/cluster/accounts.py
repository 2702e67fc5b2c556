"""Service accounts with the Roles that the documentation gives them, and kubeconfigs that are theirs alone."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.cluster.kit import Cluster


def account(cluster: Cluster, namespace: str, name: str, rules: Sequence[dict[str, Any]], folder: Path) -> Path:
    """A service account that may do what the rules say in its namespace, and nothing else; returns its kubeconfig."""
    rbac = "rbac.authorization.k8s.io"
    cluster.apply(
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}},
        {"apiVersion": f"{rbac}/v1", "kind": "Role", "metadata": {"name": name}, "rules": list(rules)},
        {
            "apiVersion": f"{rbac}/v1",
            "kind": "RoleBinding",
            "metadata": {"name": name},
            "roleRef": {"apiGroup": rbac, "kind": "Role", "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": namespace}],
        },
        namespace=namespace,
    )
    return kubeconfig_of(cluster, namespace, name, folder)


@contextmanager
def cluster_account(
    cluster: Cluster, namespace: str, name: str, rules: Sequence[dict[str, Any]], folder: Path
) -> Iterator[Path]:
    """As `account`, for the whole cluster while the block lasts."""
    rbac, role = "rbac.authorization.k8s.io", f"{namespace}-{name}"
    cluster.apply(
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": namespace}},
        {"apiVersion": f"{rbac}/v1", "kind": "ClusterRole", "metadata": {"name": role}, "rules": list(rules)},
        {
            "apiVersion": f"{rbac}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": role},
            "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": role},
            "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": namespace}],
        },
    )
    try:
        yield kubeconfig_of(cluster, namespace, name, folder)
    finally:
        cluster.kubectl("delete", "clusterrolebinding,clusterrole", role)


def kubeconfig_of(cluster: Cluster, namespace: str, name: str, folder: Path) -> Path:
    """A kubeconfig with a token of a service account."""
    token = cluster.kubectl("-n", namespace, "create", "token", name, "--duration=1h").strip()
    ours = json.loads(cluster.kubectl("config", "view", "--raw", "--minify", "--flatten", "-o", "json"))
    made = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "cluster", "cluster": ours["clusters"][0]["cluster"]}],
        "users": [{"name": name, "user": {"token": token}}],
        "contexts": [{"name": "it", "context": {"cluster": "cluster", "user": name, "namespace": namespace}}],
        "current-context": "it",
    }
    path = folder / f"{name}.kubeconfig"
    path.write_text(json.dumps(made))
    path.chmod(0o600)
    return path


def lease_rules(name: str) -> list[dict[str, Any]]:
    """What a component needs for its Lease: nobody can be let create one name alone, but read and write one he can."""
    group = {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"]}
    return [{**group, "verbs": ["get", "update"], "resourceNames": [name]}, {**group, "verbs": ["create"]}]


def slices_rules() -> list[dict[str, Any]]:
    """What inference needs to find replicas."""
    return [{"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": ["list", "watch"]}]


def events_rules(*, namespaces: bool) -> list[dict[str, Any]]:
    """What the registry's worker needs to tell workloads of decisions, in one namespace or in all that asked for it."""
    listed = {"verbs": ["list"]}
    rules: list[dict[str, Any]] = [
        {**listed, "apiGroups": ["apps"], "resources": ["deployments", "statefulsets", "daemonsets", "replicasets"]},
        {**listed, "apiGroups": ["batch"], "resources": ["jobs", "cronjobs"]},
        {**listed, "apiGroups": [""], "resources": ["pods"]},
        {"apiGroups": ["events.k8s.io"], "resources": ["events"], "verbs": ["create"]},
    ]
    return [*rules, {**listed, "apiGroups": [""], "resources": ["namespaces"]}] if namespaces else rules
