"""A real API server admits what stands approved and refuses the rest, asked by webhook or by the policy's list."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import sqlalchemy as sa

from proctor.domain.admission.approvals import KEPT_UNTIL
from proctor.domain.admission.reference import ModelReference, approval_key
from proctor.domain.decision import DecisionOutcome
from proctor.gateway.admission.answer import OnError
from proctor.gateway.admission.certificates.issuing import authorities_of
from proctor.gateway.admission.certificates.keeper import KeptCertificate, Places
from proctor.gateway.admission.certificates.rotation import Terms as CertificateTerms
from proctor.gateway.admission.desk import Terms
from proctor.registry.approvals import ApprovalsKeeper, approvals_path
from proctor.runtime.kubernetes.objects import KubernetesError
from proctor.runtime.settings import Settings
from proctor.runtime.verdicts import Verdicts
from tests.admission_server import webhook_server
from tests.cluster.admission_world import (
    DASHBOARD,
    OUTSIDE,
    Api,
    Fixed,
    Manifest,
    Namespace,
    applied,
    approve_until,
    by_url,
    chart_objects,
    eventually,
    fullname,
    hold_parameters,
    made_of,
    pod,
    reached_from_inside,
    withdraw,
)
from tests.cluster.kit import Cluster
from tests.record_samples import by_hand
from tests.standing_audits import DecidedAudits, decided_audits

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(400)]

_FACTS = "Both upper bounds are within the limits."
_LEAK = "Score inflation is 14.1 points (11.0 to 17.2)."


class World(NamedTuple):
    """A record of audits, a namespace for workloads, one of Proctor's own, and the cluster."""

    cluster: Cluster
    audits: DecidedAudits
    settings: Settings
    at: Namespace
    home: str
    """The namespace of Proctor's own."""
    folder: Path

    def decide(self, name: str, outcome: DecisionOutcome, weights: str, version: str = "1", text: str = _FACTS) -> str:
        """A model with a decision that was written on its version; the audit."""
        event = self.audits.decide(name, outcome, weights=weights, text=text)
        self.audits.records.register(event.audit_id, version)
        return event.audit_id

    def refusal(self, models: str | None, **metadata: Any) -> str:
        """What is said against a Pod."""
        return self.at.refusal(pod("p", models, **metadata))


@pytest.fixture
def world(cluster: Cluster, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[World]:
    name = f"admission-{abs(hash(request.node.name)) % 10**6}"
    with ExitStack() as stack:
        audits = stack.enter_context(decided_audits(tmp_path / "home", dashboard_url=DASHBOARD))
        settings = Settings(home=tmp_path / "home", dashboard_url=DASHBOARD)
        workloads = stack.enter_context(cluster.namespace(f"{name}-work"))
        home = stack.enter_context(cluster.namespace(f"{name}-home"))
        yield World(cluster, audits, settings, Namespace(cluster, workloads), home, tmp_path)


def _webhook(world: World, url: str, authority: bytes | None, **changes: Any) -> list[Manifest]:
    found = by_url(chart_objects("webhook", world.home), url, authority, **changes)
    for webhook in found[0]["webhooks"]:
        # Other tests of the same cluster have workloads of their own.
        webhook["namespaceSelector"]["matchLabels"]["kubernetes.io/metadata.name"] = world.at.name
    return found


def _is_asked(world: World) -> bool:
    return "is no version" in world.refusal("nonsense")


def test_the_webhook_admits_what_stands_approved_and_says_of_the_rest_why_and_where_its_report_is(
    world: World,
) -> None:
    good = world.decide("org/good", DecisionOutcome.APPROVE, "1", "3")
    bad = world.decide("org/bad", DecisionOutcome.BLOCK, "2", text=_LEAK)
    world.decide("org/review", DecisionOutcome.REVIEW, "3", text="The sample is too small.")
    world.audits.ask("org~asked", "7", "facts")
    ended = world.decide("org/ended", DecisionOutcome.REVIEW, "4")
    approve_until(world.audits, ended, datetime.now(UTC) - timedelta(hours=1))
    forged = world.decide("org/forged", DecisionOutcome.BLOCK, "5")
    with by_hand(world.audits.settings.records_url) as connection:
        connection.execute(
            sa.text("UPDATE standings SET outcome = 'approve', waits = false WHERE audit_id = :audit"),
            {"audit": forged},
        )
    source = Fixed()
    with (
        reached_from_inside(world.cluster) as (port, url),
        webhook_server(world.settings, world.audits.records, port, source),
        applied(world.cluster, _webhook(world, url, source.issued.authority)),
    ):
        world.at.asks("enforce")
        eventually(lambda: _is_asked(world), "the webhook to be asked")
        assert world.refusal("org/good@3") == world.refusal("org~good@3") == world.refusal(None) == ""
        assert world.refusal(f"org/good@{_digest(world, good)}") == ""
        assert f"'org/bad@1' is blocked: {_LEAK} Report: {DASHBOARD}/audits/{bad}/report" in world.refusal("org/bad@1")
        assert "'org/review@1' waits for a review: The sample is too small." in world.refusal("org/review@1")
        assert "'org/asked@7' is not decided yet: A decision is missing: its audit is asked" in world.refusal(
            "org/asked@7"
        )
        assert "'org/ended@1' is approved no longer: The time of the approval is over." in world.refusal("org/ended@1")
        assert "'org/none@1' was never audited" in world.refusal("org/none@1")
        assert (
            f"'org/forged@1' has no valid attestation: the record of audit {forged} does not hold: by the log it "
            "stands at block" in world.refusal("org/forged@1")
        )
        assert "'org/bad@1' is blocked" in world.refusal("org/good@3, org/bad@1")
        for kind in ("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job", "CronJob"):
            assert world.at.refusal(made_of(kind, "w", "org/good@3")) == "", kind
            assert "is blocked" in world.at.refusal(made_of(kind, "w", "org/bad@1")), kind

        world.at.asks("warn")
        eventually(lambda: world.refusal("org/bad@1") == "", "the namespace to ask for warnings")
        assert "Warning: proctor would refuse: 'org/bad@1' is blocked" in world.at.told(pod("p", "org/bad@1"))
        world.at.asks("audit")
        eventually(lambda: "Warning" not in world.at.told(pod("p", "org/bad@1")), "the namespace to ask for audit")
        world.at.asks(None)
        assert world.refusal("org/bad@1") == ""


def _digest(world: World, audit_id: str) -> str:
    event = world.audits.records.decision(audit_id)
    assert event is not None
    return str(event["modelDigest"])


def test_an_approval_that_is_withdrawn_starts_no_pod_and_stops_none(world: World) -> None:
    audit = world.decide("org/good", DecisionOutcome.APPROVE, "1")
    source = Fixed()
    with (
        reached_from_inside(world.cluster) as (port, url),
        webhook_server(world.settings, world.audits.records, port, source),
        applied(world.cluster, _webhook(world, url, source.issued.authority)),
    ):
        world.at.asks("enforce")
        eventually(lambda: _is_asked(world), "the webhook to be asked")
        assert world.at.refusal(made_of("Deployment", "served", "org/good@1", 2), dry=False) == ""
        eventually(lambda: _pods(world) == 2, "two Pods")
        withdraw(world.audits, audit)
        assert "anna signed block after approve: Trained on the test split. (QA-2)" in world.refusal("org/good@1")
        world.cluster.kubectl("scale", "deployment", "served", "-n", world.at.name, "--replicas=1")
        eventually(lambda: _pods(world) == 1, "the deployment to be made smaller")
        world.cluster.kubectl("scale", "deployment", "served", "-n", world.at.name, "--replicas=3")
        eventually(lambda: "is blocked" in _events(world), "the refusal among the events")
        assert _pods(world) == 1


def _pods(world: World) -> int:
    found = world.cluster.listed("api/v1/pods", world.at.name)
    return sum("deletionTimestamp" not in one["metadata"] for one in found)


def _events(world: World) -> str:
    return json.dumps(world.cluster.listed("api/v1/events", world.at.name))


@pytest.mark.parametrize(("policy", "admitted"), [("Fail", False), ("Ignore", True)])
def test_while_the_webhook_is_away_its_failure_policy_says_who_is_admitted(
    world: World, policy: str, admitted: bool
) -> None:
    source = Fixed()
    configuration = _webhook(world, f"https://{OUTSIDE}:1", source.issued.authority, failurePolicy=policy)
    with applied(world.cluster, configuration):
        world.at.asks("enforce")
        if not admitted:
            eventually(lambda: "failed calling webhook" in world.refusal("org/good@1"), "the webhook to be asked")
        assert (world.refusal("org/good@1") == "") is admitted
        assert world.refusal(None) == ""


@pytest.mark.parametrize("on_error", list(OnError))
def test_a_record_that_does_not_answer_admits_nobody_or_everybody_as_the_operator_says(
    world: World, on_error: OnError
) -> None:
    source = Fixed()
    with (
        reached_from_inside(world.cluster) as (port, url),
        webhook_server(world.settings, world.audits.records, port, source, Terms(on_error, 1.0)),
        applied(world.cluster, _webhook(world, url, source.issued.authority)),
    ):
        world.at.asks("enforce")
        eventually(lambda: _is_asked(world), "the webhook to be asked")
        with by_hand(world.audits.settings.records_url) as connection:
            connection.exec_driver_sql("ALTER TABLE standings RENAME TO gone")
        told = world.at.told(pod("p", "org/good@1"))
    if on_error is OnError.REFUSE:
        assert "its models cannot be looked up: the record store failed (OperationalError)" in told
    else:
        assert "Warning: proctor admitted without a look: the record store failed" in told


def test_a_certificate_is_renewed_under_requests_without_one_that_is_lost(world: World) -> None:
    world.decide("org/good", DecisionOutcome.APPROVE, "1")
    name = f"{fullname(world.home)}-admission"
    objects = chart_objects("webhook", world.home)
    rights = [one for one in objects if one["kind"] != "ValidatingWebhookConfiguration"]
    places = Places(world.home, name, f"{world.home}-{name}")
    # A new one after twenty of its thirty seconds.
    terms = CertificateTerms((OUTSIDE,), timedelta(seconds=30), timedelta(seconds=4))
    with (
        reached_from_inside(world.cluster) as (port, url),
        applied(world.cluster, [*rights, *_webhook(world, url, None)]),
        Api(world.cluster, world.folder).as_service_account(world.home, f"{fullname(world.home)}-gateway") as account,
    ):
        replicas = [KeptCertificate(account, places, terms, every_s=1.0) for _ in range(2)]
        other, stop = threading.Thread(target=lambda: _look(replicas[1], stop)), threading.Event()
        with webhook_server(world.settings, world.audits.records, port, replicas[0]):
            other.start()
            try:
                world.at.asks("enforce")
                eventually(lambda: _is_asked(world), "the webhook to be asked")
                first, asked = replicas[1].pair(), 0
                while replicas[1].pair() == first or asked < 20:
                    told = world.at.told(pod("p", "org/good@1"))
                    assert "created" in told, told
                    asked += 1
                for _ in range(10):
                    assert "created" in world.at.told(pod("p", "org/good@1"))
                # The chart's next version comes over what the gateway wrote.
                changed = json.dumps(_webhook(world, url, None, timeoutSeconds=7)[0])
                world.cluster.kubectl("apply", "--server-side", "--field-manager=helm", "-f", "-", input=changed)
                assert "created" in world.at.told(pod("p", "org/good@1"))
            finally:
                stop.set()
                other.join()
        kept = json.loads(world.cluster.kubectl("get", "secret", name, "-n", world.home, "-o", "json"))
        assert set(kept["data"]) >= {"tls.crt", "tls.key", "ca.crt"}
        for path in (
            f"/api/v1/namespaces/{world.home}/secrets/other",
            "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/other",
            f"/api/v1/namespaces/{world.at.name}/secrets/{name}",
        ):
            with pytest.raises(KubernetesError, match="403"):
                account.get(path)


def _look(replica: KeptCertificate, stop: threading.Event) -> None:
    while not stop.wait(1.0):
        assert authorities_of(replica.pair().certificate)


def test_the_policy_goes_by_the_list_that_the_registry_service_keeps(world: World) -> None:
    world.decide("org/good", DecisionOutcome.APPROVE, "1", "3")
    bad = world.decide("org/bad", DecisionOutcome.BLOCK, "2", text=_LEAK)
    odd = world.decide("modèle (1)/β", DecisionOutcome.APPROVE, "3")
    world.audits.ask("org~asked", "7", "facts")
    soon = world.decide("org/soon", DecisionOutcome.REVIEW, "4")
    hold_parameters(world.cluster)
    objects = chart_objects("policy", world.home)
    for one in objects:
        if one["kind"] == "ValidatingAdmissionPolicyBinding":
            labels = one["spec"]["matchResources"]["namespaceSelector"]["matchLabels"]
            labels["kubernetes.io/metadata.name"] = world.at.name
    with (
        applied(world.cluster, objects),
        Api(world.cluster, world.folder).as_service_account(world.home, f"{fullname(world.home)}-registry") as account,
    ):
        name = f"{fullname(world.home)}-approvals"
        keeper = ApprovalsKeeper(
            account,
            approvals_path(f"{world.home}/{name}"),
            world.audits.records,
            Verdicts(world.settings, world.audits.records.deployable),
            good_for=timedelta(minutes=10),
        )
        world.at.asks("enforce")
        eventually(lambda: "is kept no more" in world.refusal("org/good@3"), "the policy")
        assert keeper.keep()
        assert not keeper.keep()
        eventually(lambda: world.refusal("org/good@3") == "", "the list")
        assert world.refusal("org~good@3") == world.refusal(None) == ""
        assert world.refusal("modèle (1)/β@1") == "", odd
        assert world.refusal(f"org/good@{'sha256:' + '1' * 64}") == ""
        assert f"'org/bad@1' is blocked: {_LEAK} Report: {DASHBOARD}/audits/{bad}/report" in world.refusal("org/bad@1")
        assert "'org/bad@1' is blocked" in world.refusal("org/good@3, org/bad@1")
        assert "'org/none@1' is on no list of approvals" in world.refusal("org/none@1")
        assert "'org/asked@7' is not decided yet" in world.refusal("org/asked@7")
        assert "a model of another name is on no list" in world.refusal("\u202e@1")
        assert "names no model, or more than 16" in world.refusal(" , ")
        for kind in ("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job", "CronJob"):
            assert world.at.refusal(made_of(kind, "w", "org/good@3")) == "", kind
            assert "is blocked" in world.at.refusal(made_of(kind, "w", "org/bad@1")), kind

        # Ended by its time while nobody keeps the list: the API server's clock is enough, and nobody sets it back.
        end = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=8)
        approve_until(world.audits, soon, end)
        assert keeper.keep()
        eventually(lambda: world.refusal("org/soon@1") == "", "the approval")
        eventually(lambda: "is approved no longer" in world.refusal("org/soon@1"), "its end")
        assert "is approved no longer" in world.refusal("org/soon@1", creationTimestamp="2020-01-01T00:00:00Z")
        assert keeper.keep()
        eventually(lambda: "The time of the approval is over." in world.refusal("org/soon@1"), "the list")

        # What somebody writes by hand is put right.
        key = approval_key(ModelReference("org/bad", "1"))
        assert key is not None
        forged = json.dumps({"data": {key: "approve\n-\nentry 99", "by-hand": "x"}})
        world.cluster.kubectl("patch", "configmap", name, "-n", world.home, "--type=merge", "-p", forged)
        eventually(lambda: world.refusal("org/bad@1") == "", "the forged approval")
        assert keeper.keep()
        eventually(lambda: "is blocked" in world.refusal("org/bad@1"), "the list as it should be")

        world.at.asks("warn")
        eventually(lambda: "Warning" in world.at.told(pod("p", "org/bad@1")), "the namespace to ask for warnings")
        world.at.asks("enforce")
        eventually(lambda: "is blocked" in world.refusal("org/bad@1"), "the namespace to enforce it")

        # A list that nobody keeps admits nothing.
        stale = json.dumps({"data": {KEPT_UNTIL: "2026-01-01T00:00:00+00:00"}})
        world.cluster.kubectl("patch", "configmap", name, "-n", world.home, "--type=merge", "-p", stale)
        eventually(lambda: "is kept no more since before 2026-01-01" in world.refusal("org/good@3"), "the stale list")
        world.cluster.kubectl("delete", "configmap", name, "-n", world.home)
        eventually(lambda: "no params found" in world.refusal("org/good@3"), "a list that is gone")
        # The API server looks for the list before it looks at the object.
        assert "no params found" in world.refusal(None)

        for path in (f"/api/v1/namespaces/{world.home}/configmaps/other", f"/api/v1/namespaces/{world.home}/secrets/x"):
            with pytest.raises(KubernetesError, match="403"):
                account.get(path)
    assert name not in [one["metadata"]["name"] for one in world.cluster.listed("api/v1/configmaps", world.home)]
