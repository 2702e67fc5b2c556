"""What each service account may do is what a table says, and nothing else: asked of the API server itself."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from tests.cluster.release import Release

#: (API group, resource, name or "*", verb) by component; every other component's account may do nothing.
_MAY: Final[dict[str, set[tuple[str, str, str, str]]]] = {
    "router": {("coordination.k8s.io", "leases", "proctor-router", verb) for verb in ("get", "update")},
    "gateway": {("coordination.k8s.io", "leases", "proctor-gateway", verb) for verb in ("get", "update")},
    # The replicas of the chart's own Triton. A watch of a service's slices goes by a label, so no name can be given.
    "inference": {("discovery.k8s.io", "endpointslices", "*", verb) for verb in ("list", "watch")},
}
#: What everybody who has logged in may do, by Kubernetes' own roles.
_EVERYBODYS: Final = ("authentication.k8s.io", "authorization.k8s.io")
_MUST_NOT: Final = (
    ("get", "secrets"), ("list", "secrets"), ("create", "pods"), ("delete", "pods"), ("create", "pods/exec"),
    ("patch", "deployments.apps"), ("delete", "networkpolicies.networking.k8s.io"),
    ("create", "rolebindings.rbac.authorization.k8s.io"), ("impersonate", "users"),
)  # fmt: skip


def _accounts(release: Release) -> dict[str, str]:
    """Component → its pods' service account."""
    pods = release.cluster.get("-n", release.namespace, "pods", "-l", f"app.kubernetes.io/instance={release.name}")
    return {
        pod["metadata"]["labels"]["app.kubernetes.io/component"]: pod["spec"]["serviceAccountName"]
        for pod in pods["items"]
    }


def _may(release: Release, account: str) -> set[tuple[str, str, str, str]]:
    """What an account may do in the release's namespace, as the API server says."""
    review: dict[str, Any] = {
        "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview",
        "spec": {"namespace": release.namespace},
    }  # fmt: skip
    user = f"system:serviceaccount:{release.namespace}:{account}"
    said = json.loads(
        release.cluster.kubectl(
            "create", "--validate=false", "-f", "-", "-o", "json", f"--as={user}", input=json.dumps(review)
        )
    )
    return {
        (group, resource, name, verb)
        for rule in said["status"]["resourceRules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for name in rule.get("resourceNames") or ["*"]
        for verb in rule["verbs"]
        if group not in _EVERYBODYS
    }


def test_every_component_has_an_account_of_its_own(release: Release) -> None:
    accounts = _accounts(release)
    assert len(set(accounts.values())) == len(accounts)
    assert "default" not in accounts.values()


def test_an_account_may_do_what_the_table_says_and_nothing_else(release: Release) -> None:
    for component, account in _accounts(release).items():
        assert _may(release, account) == _MAY.get(component, set()), component


@pytest.mark.parametrize(("verb", "resource"), _MUST_NOT)
def test_no_account_may(release: Release, verb: str, resource: str) -> None:
    for component, account in _accounts(release).items():
        for inside in (release.namespace, "kube-system"):
            may = release.cluster.may(account, verb, resource, namespace=release.namespace, inside=inside)
            assert not may, (component, inside)


def test_the_api_server_says_yes_where_an_account_may(release: Release) -> None:
    account, slices = _accounts(release)["router"], "endpointslices.discovery.k8s.io"
    here = {"namespace": release.namespace, "inside": release.namespace}
    assert not release.cluster.may(account, "list", slices, **here)
    assert release.cluster.may(f"{release.name}-inference", "list", slices, **here)


def test_pods_that_need_no_api_have_no_token_of_it(release: Release) -> None:
    pods = release.cluster.get("-n", release.namespace, "pods", "-l", f"app.kubernetes.io/instance={release.name}")
    for pod in pods["items"]:
        component = pod["metadata"]["labels"]["app.kubernetes.io/component"]
        mounts = [m["mountPath"] for c in pod["spec"]["containers"] for m in c.get("volumeMounts", [])]
        has_token = "/var/run/secrets/kubernetes.io/serviceaccount" in mounts
        assert has_token == (component in _MAY), component
