"""What `proctor doctor` says in a pod of what its account may do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from proctor.domain.endpoint import EndpointSliceDiscovery
from proctor.domain.operator_endpoint import OperatorEndpoint
from proctor.localstack.doctor.cluster import IN_A_POD, examine_cluster
from proctor.localstack.doctor.installed import Finding, State
from proctor.runtime.settings import Settings
from tests.cluster.accounts import account, events_rules, lease_rules, slices_rules
from tests.cluster.kit import Cluster

pytestmark = pytest.mark.cluster
LEASE = "proctor-router"


class Room(NamedTuple):
    """A namespace, and what a pod in it is told."""

    cluster: Cluster
    namespace: str
    folder: Path
    monkeypatch: pytest.MonkeyPatch

    @property
    def environment(self) -> Mapping[str, str]:
        """Everything at once: a component's own is a part of it."""
        said = {"PROCTOR_LEADER_LEASE": f"{self.namespace}/{LEASE}", "PROCTOR_KUBERNETES_EVENTS": self.namespace}
        return {IN_A_POD: "10.0.0.1", **said}

    def examined(self, *rules: dict[str, object], **changed: str) -> list[Finding]:
        """What is found with an account that may do so much."""
        kubeconfig = account(self.cluster, self.namespace, f"a{len(rules)}", rules, self.folder)
        self.monkeypatch.setenv("KUBECONFIG", str(kubeconfig))
        discovery = EndpointSliceDiscovery(namespace=self.namespace, service="triton", port="grpc")
        settings = Settings(home=self.folder, endpoints={"pool": OperatorEndpoint(discovery=discovery)})
        return examine_cluster(settings, {**self.environment, **changed})


@pytest.fixture
def room(cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Room]:
    with cluster.namespace("kube-rights") as namespace:
        yield Room(cluster, namespace, tmp_path, monkeypatch)


def test_an_account_with_the_documented_rights_lacks_none(room: Room) -> None:
    rules = [*lease_rules(LEASE), *events_rules(namespaces=False), *slices_rules()]
    found = room.examined(*rules)
    assert [(one.state, one.found.split(":")[0]) for one in found] == [
        (State.OK, f"PROCTOR_LEADER_LEASE {room.namespace}/{LEASE}"),
        (State.OK, f"PROCTOR_KUBERNETES_EVENTS {room.namespace}"),
        (State.OK, "replicas of pool"),
    ]


def test_what_an_account_may_not_do_is_said_by_name(room: Room) -> None:
    leases, events, slices = room.examined(
        *lease_rules("of-another"), *events_rules(namespaces=False)[:-1], PROCTOR_KUBERNETES_EVENTS="1"
    )
    assert {one.state for one in (leases, events, slices)} == {State.WARNING}
    assert f"may not get leases.coordination.k8s.io {LEASE} in {room.namespace}; update" in leases.found
    assert "list namespaces in every namespace" in events.found
    assert "create events.events.k8s.io in every namespace" in events.found
    assert "list endpointslices.discovery.k8s.io" in slices.found


def test_a_server_that_is_out_of_reach_is_one_finding_with_its_mend(room: Room) -> None:
    nowhere = room.folder / "nowhere"
    nowhere.write_text(
        "{apiVersion: v1, kind: Config, current-context: a, contexts: [{name: a, context: {cluster: a, user: a}}],"
        ' users: [{name: a, user: {}}], clusters: [{name: a, cluster: {server: "https://127.0.0.1:9"}}]}'
    )
    room.monkeypatch.setenv("KUBECONFIG", str(nowhere))
    (found,) = examine_cluster(Settings(home=room.folder), room.environment)
    assert (found.state, found.required) == (State.MISSING, True)
    assert "no answer" in found.found
    assert "service account's token" in found.mend


def test_nothing_is_asked_outside_of_a_pod_or_where_nothing_is_said(room: Room) -> None:
    room.monkeypatch.setenv("KUBECONFIG", "/nowhere")
    settings = Settings(home=room.folder)
    assert examine_cluster(settings, {**room.environment, IN_A_POD: ""}) == []
    assert examine_cluster(settings, {IN_A_POD: "10.0.0.1"}) == []
