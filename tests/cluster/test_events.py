"""Decisions as Events on the workloads that name the model, on a real API server."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from proctor.domain.admission.reference import ANNOTATION
from proctor.domain.decision import DecisionOutcome
from proctor.domain.messages import WriteDecision
from proctor.registry.kubernetes.events import CONTROLLER, Decided, tell_workloads
from proctor.runtime.kubernetes.client import api_client
from proctor.runtime.kubernetes.where import NAMESPACE_LABEL, Where
from proctor.runtime.verdicts import Verdicts
from tests.cluster.accounts import account, cluster_account, events_rules
from tests.cluster.kit import Cluster
from tests.standing_audits import DecidedAudits, decided_audits
from tests.support import valkey_server, wait_until
from tests.worker_processes import Home

pytestmark = pytest.mark.cluster
MODEL, VERSION = "acme/gpt", "1"
NAMED = f"acme~gpt@{VERSION}"


class Room(NamedTuple):
    """A namespace that asked for the gate, one that did not, and a registry's account."""

    cluster: Cluster
    opted: str
    other: str
    kubeconfig: Path

    def events(self, namespace: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.cluster.get("-n", namespace, "events.events.k8s.io")["items"]
        return [one for one in found if one.get("reportingController") == CONTROLLER]

    def told(self) -> set[tuple[str, str, str]]:
        """Of what kind and name, and with which reason."""
        return {(one["regarding"]["kind"], one["regarding"]["name"], one["reason"]) for one in self.events(self.opted)}


@pytest.fixture
def room(cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Room]:
    labels = {NAMESPACE_LABEL: "enforce"}
    with ExitStack() as stack:
        opted = stack.enter_context(cluster.namespace("kube-events", labels=labels))
        other = stack.enter_context(cluster.namespace("kube-others"))
        rules = events_rules(namespaces=True)
        kubeconfig = stack.enter_context(cluster_account(cluster, other, "registry", rules, tmp_path))
        monkeypatch.setenv("KUBECONFIG", str(kubeconfig))
        yield Room(cluster, opted, other, kubeconfig)


@pytest.fixture
def audits(tmp_path: Path) -> Iterator[DecidedAudits]:
    with decided_audits(tmp_path / "home", dashboard_url="https://proctor.example.org") as found:
        yield found


def template(named: str) -> dict[str, Any]:
    """Of Pods that nobody has to run."""
    metadata = {"labels": {"app": "a"}, "annotations": {ANNOTATION: named}}
    security = {"runAsNonRoot": True, "runAsUser": 10001, "seccompProfile": {"type": "RuntimeDefault"}}
    container = {
        "name": "c",
        "image": "nowhere.invalid/none:1",
        "imagePullPolicy": "Never",
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    }
    return {"metadata": metadata, "spec": {"securityContext": security, "containers": [container]}}


def deployment(name: str, named: str, *, replicas: int = 0) -> dict[str, Any]:
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": "a"}}, "template": template(named)}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}


def every_kind(named: str) -> list[dict[str, Any]]:
    made, selector = template(named), {"matchLabels": {"app": "a"}}
    once = {**made, "spec": {**made["spec"], "restartPolicy": "Never"}}
    return [
        deployment("served", named, replicas=1),
        {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "kept"},
         "spec": {"replicas": 0, "serviceName": "kept", "selector": selector, "template": made}},
        {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "once"},
         "spec": {"parallelism": 0, "template": once}},
        {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "nightly"},
         "spec": {"schedule": "0 3 * * *", "suspend": True, "jobTemplate": {"spec": {"template": once}}}},
        {"apiVersion": "v1", "kind": "Pod",
         "metadata": {"name": "alone", "annotations": {ANNOTATION: named}}, "spec": made["spec"]},
    ]  # fmt: skip


def test_each_workload_that_names_the_version_is_told_once_with_the_reason_and_the_report(
    room: Room, audits: DecidedAudits
) -> None:
    event = audits.decide(MODEL, DecisionOutcome.BLOCK, text="The canonical wording is 14 points better.")
    audits.records.register(event.audit_id, VERSION)
    room.cluster.apply(*every_kind(NAMED), deployment("of-another", "acme~gpt@2"), namespace=room.opted)
    room.cluster.apply(*every_kind(NAMED), namespace=room.other)
    wait_until(lambda: bool(room.cluster.get("-n", room.opted, "pods", "-l", "app=a")["items"]), what="a made Pod")
    verdict = Verdicts(audits.settings, audits.records.deployable).on
    with api_client() as api:
        told = [tell_workloads(api, Where(), Decided(event, VERSION), verdict) for _ in range(2)]
    assert told == [5, 0]
    # Not the ReplicaSet and the Pod that the Deployment made, not another version, not a namespace that did not ask.
    kinds = {
        ("Deployment", "served"),
        ("StatefulSet", "kept"),
        ("Job", "once"),
        ("CronJob", "nightly"),
        ("Pod", "alone"),
    }
    assert room.told() == {(kind, name, "Blocked") for kind, name in kinds}
    assert room.events(room.other) == []
    note = room.events(room.opted)[0]["note"]
    assert "is blocked: The canonical wording is 14 points better." in note
    assert room.events(room.opted)[0]["type"] == "Warning"
    described = room.cluster.kubectl("-n", room.opted, "describe", "deployment", "served")
    assert "Blocked" in described
    assert f"audits/{event.audit_id}/report" in note or event.report_path in note


def test_an_approval_and_what_waits_for_a_person_are_told_as_such(room: Room, audits: DecidedAudits) -> None:
    room.cluster.apply(deployment("served", NAMED), namespace=room.opted)
    verdict = Verdicts(audits.settings, audits.records.deployable).on
    with api_client() as api:
        for outcome, suite in ((DecisionOutcome.APPROVE, "facts"), (DecisionOutcome.REVIEW, "sums")):
            event = audits.decide(MODEL, outcome, suite=suite)
            audits.records.register(event.audit_id, VERSION)
            assert tell_workloads(api, Where(), Decided(event, VERSION), verdict) == 1
    assert room.told() == {("Deployment", "served", "Approved"), ("Deployment", "served", "Review")}
    types = {one["reason"]: one["type"] for one in room.events(room.opted)}
    assert types == {"Approved": "Normal", "Review": "Warning"}


def test_a_workload_that_names_the_weights_themselves_is_told(room: Room, audits: DecidedAudits) -> None:
    event = audits.decide(MODEL, DecisionOutcome.BLOCK)
    room.cluster.apply(deployment("pinned", f"acme/gpt@{event.model_digest}"), namespace=room.opted)
    with api_client() as api:
        verdict = Verdicts(audits.settings, audits.records.deployable).on
        assert tell_workloads(api, Where(), Decided(event, VERSION), verdict) == 1
    assert room.told() == {("Deployment", "pinned", "Blocked")}


def test_an_account_of_one_namespace_tells_that_one_and_is_refused_elsewhere(
    room: Room,
    audits: DecidedAudits,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    event = audits.decide(MODEL, DecisionOutcome.BLOCK)
    audits.records.register(event.audit_id, VERSION)
    for namespace in (room.opted, room.other):
        room.cluster.apply(deployment("served", NAMED), namespace=namespace)
    monkeypatch.setenv(
        "KUBECONFIG", str(account(room.cluster, room.opted, "least", events_rules(namespaces=False), tmp_path))
    )
    verdict = Verdicts(audits.settings, audits.records.deployable).on
    with api_client() as api, caplog.at_level(logging.WARNING):
        where = Where((room.opted, room.other))
        assert tell_workloads(api, where, Decided(event, VERSION), verdict) == 1
        # This is no pod, so there is no namespace of its own to fall back to.
        assert tell_workloads(api, Where(), Decided(event, VERSION), verdict) == 0
    assert f"Deployments of the namespace {room.other}" in caplog.text
    assert "namespaces may not be listed" in caplog.text
    assert room.events(room.other) == []


def test_a_registry_worker_tells_workloads_when_it_has_written_the_decision(
    room: Room, audits: DecidedAudits, tmp_path: Path
) -> None:
    folder, registry = tmp_path / "valkey", tmp_path / "registry"
    folder.mkdir()
    registry.mkdir()
    # A folder names a version by the first digits of its weights.
    version = "1" * 12
    room.cluster.apply(deployment("served", f"acme~gpt@{version}"), namespace=room.opted)
    event = audits.decide(MODEL, DecisionOutcome.BLOCK)
    with valkey_server(folder) as url:
        environment = {"PROCTOR_KUBERNETES_EVENTS": "1", "KUBECONFIG": str(room.kubeconfig), "POD_NAME": "registry-0"}
        environment["PROCTOR_REGISTRY_URI"] = registry.as_uri()
        home = Home(audits.settings.home, f"{url}/0", **environment)
        with home.worker("registry") as worker:
            home.send(WriteDecision(event=event))
            wait_until(lambda: "workloads are told" in worker.log, timeout_s=40, what="the log's line")
    assert audits.records.registration(event.audit_id) == version
    assert room.told() == {("Deployment", "served", "Blocked")}
    assert room.events(room.opted)[0]["reportingInstance"] == "registry-0"
