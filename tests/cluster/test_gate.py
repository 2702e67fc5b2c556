"""The admission gate of the installed chart, by webhook and by policy: what the release itself has audited decides."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tests.cluster.admission_world import Namespace, eventually, hold_parameters, made_of, pod
from tests.cluster.audits import Gateway
from tests.cluster.deployment import DASHBOARD, with_sums
from tests.cluster.release import Release


@pytest.fixture(scope="module", params=["webhook", "policy"])
def gated(request: pytest.FixtureRequest, release: Release) -> Iterator[Namespace]:
    """A namespace that asks for the gate of the release, which was upgraded to have one."""
    # A policy leaves these behind; an API server that has lost its last binding reads no ConfigMap ever again.
    hold_parameters(release.cluster)
    release.upgrade(with_sums(release.namespace, more={"admission": {"mode": request.param}}))
    with release.cluster.namespace(f"gated-{request.param}", labels={"proctor.dev/admission": "enforce"}) as name:
        namespace = Namespace(release.cluster, name)
        # The webhook's certificate, the list of approvals: each is there a little after its keeper.
        eventually(lambda: "was never audited" in namespace.refusal(pod("p", "nobody@1")), "the gate to be asked")
        yield namespace


def _newest(gateway: Gateway, model: str) -> tuple[str, str]:
    """The last audit of a model, and the registry's version that its decision stands on."""
    audit = max(
        (one for one in gateway.listed() if one["model_id"] == model and one["decision"]),
        key=lambda one: int(one["decision"]["registry_version"]),
    )
    return audit["audit_id"], audit["decision"]["registry_version"]


def test_a_pod_of_an_approved_version_is_admitted(gated: Namespace, gateway: Gateway) -> None:
    _, version = _newest(gateway, "reference-clean")
    assert gated.refusal(pod("approved", f"reference-clean@{version}"), dry=False) == ""
    assert gated.refusal(made_of("Deployment", "approved", f"reference-clean@{version}")) == ""


def test_a_pod_of_a_blocked_version_is_refused_with_the_reason_and_the_report_s_address(
    gated: Namespace, gateway: Gateway
) -> None:
    audit_id, version = _newest(gateway, "reference-leaked")
    for refused in (
        gated.refusal(pod("blocked", f"reference-leaked@{version}"), dry=False),
        gated.refusal(made_of("Deployment", "blocked", f"reference-leaked@{version}"), dry=False),
    ):
        assert f"'reference-leaked@{version}' is blocked: " in refused
        assert f"Report: {DASHBOARD}/audits/{audit_id}/report" in refused


def test_a_pod_of_a_version_that_nobody_audited_is_refused(gated: Namespace) -> None:
    assert re.search(
        r"'reference-clean@1000' .*was never audited", gated.refusal(pod("unknown", "reference-clean@1000"))
    )


def test_a_pod_that_names_no_model_is_none_of_its_business(gated: Namespace) -> None:
    assert gated.refusal(pod("other", None)) == ""
