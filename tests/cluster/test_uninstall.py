"""`helm uninstall` leaves what the values say, and nothing else."""

from __future__ import annotations

from tests.cluster.release import Release

_KINDS = (
    "deployments,statefulsets,daemonsets,jobs,cronjobs,services,configmaps,serviceaccounts,roles,rolebindings,"
    "networkpolicies,poddisruptionbudgets,scaledobjects,horizontalpodautoscalers,leases,secrets,persistentvolumeclaims"
)


def _left(release: Release) -> set[str]:
    """Kinds and names of what the release made, by the label that all of it has."""
    selector = f"app.kubernetes.io/instance={release.name}"
    said = release.cluster.kubectl("-n", release.namespace, "get", _KINDS, "-l", selector, "-o", "name")
    return set(said.split())


def test_volumes_and_the_secrets_that_read_them_are_kept_and_nothing_else_is(release: Release) -> None:
    release.uninstall()
    kinds = {one.partition("/")[0] for one in _left(release)}
    assert kinds == {"persistentvolumeclaim", "secret"}
    cluster_wide = "clusterroles,clusterrolebindings,validatingwebhookconfigurations,validatingadmissionpolicies"
    selector = f"app.kubernetes.io/instance={release.name}"
    assert release.cluster.kubectl("get", cluster_wide, "-l", selector, "-o", "name") == ""
