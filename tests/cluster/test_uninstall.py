"""`helm uninstall`, as the walk has it, leaves what the values say, and nothing else."""

from __future__ import annotations

from tests.cluster.release import OF_THE_CLUSTER, Release
from tests.cluster.walk import run_block, sections

_KINDS = (
    "deployments,statefulsets,daemonsets,jobs,cronjobs,services,configmaps,serviceaccounts,roles,rolebindings,"
    "networkpolicies,poddisruptionbudgets,scaledobjects,horizontalpodautoscalers,leases,secrets,persistentvolumeclaims"
)


def test_volumes_and_the_secrets_that_read_them_are_kept_and_nothing_else_is(release: Release) -> None:
    take_away, be_rid_of = sections()["Take it away"]
    run_block(release.cluster, take_away)
    selector = f"app.kubernetes.io/instance={release.name}"
    of_all = ("get", _KINDS, "-l", selector, "-o", "name")
    left = release.cluster.kubectl("-n", release.namespace, *of_all).split()
    assert {one.partition("/")[0] for one in left} == {"persistentvolumeclaim", "secret"}
    assert release.cluster.kubectl("get", OF_THE_CLUSTER, "-l", selector, "-o", "name") == ""
    run_block(release.cluster, be_rid_of)
    assert release.cluster.run("get", "namespace", release.namespace).returncode != 0
