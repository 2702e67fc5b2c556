"""One leader by a Lease, on a real API server, by accounts that may do no more than that."""

from __future__ import annotations

import logging
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from kubernetes import client

from proctor.runtime.kubernetes.client import api_client
from proctor.runtime.kubernetes.leader import Candidate, leading
from proctor.runtime.kubernetes.lease import LEASE_S, RENEW_DEADLINE_S
from proctor.runtime.kubernetes.lease_name import LeaseName
from tests.cluster.accounts import account, lease_rules
from tests.cluster.kit import Cluster
from tests.support import valkey_server, wait_until
from tests.worker_processes import Home

pytestmark = pytest.mark.cluster
NAME = "proctor-router"


class Room(NamedTuple):
    """A namespace with an account that may stand for one Lease."""

    cluster: Cluster
    namespace: str
    kubeconfig: Path

    @property
    def lease(self) -> LeaseName:
        return LeaseName(self.namespace, NAME)

    @property
    def holder(self) -> str | None:
        found = self.cluster.run("-n", self.namespace, "get", "lease", NAME, "-o", "jsonpath={.spec.holderIdentity}")
        return found.stdout if found.returncode == 0 else None

    def steal(self, holder: str, duration_s: int) -> None:
        spec = f'{{"spec": {{"holderIdentity": "{holder}", "leaseDurationSeconds": {duration_s}}}}}'
        self.cluster.kubectl("-n", self.namespace, "patch", "lease", NAME, "--type=merge", "-p", spec)


@pytest.fixture
def room(cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Room]:
    with cluster.namespace("kube-leader") as namespace:
        kubeconfig = account(cluster, namespace, "router", lease_rules(NAME), tmp_path)
        monkeypatch.setenv("KUBECONFIG", str(kubeconfig))
        monkeypatch.setenv("POD_NAME", "proctor-router-abc")
        yield Room(cluster, namespace, kubeconfig)


@contextmanager
def candidates(room: Room, count: int) -> Iterator[list[Candidate]]:
    with ExitStack() as stack:
        yield [Candidate(stack.enter_context(api_client()), room.lease, f"candidate-{place}") for place in range(count)]


def test_of_several_one_leads_and_who_leaves_is_followed_at_once(room: Room) -> None:
    with ExitStack() as others:
        with leading(room.lease) as first:
            wait_until(first, what="a first leader")
            second, third = (others.enter_context(leading(room.lease)) for _ in range(2))
            until_s = time.monotonic() + 5
            while time.monotonic() < until_s:
                assert first()
                assert not second()
                assert not third()
                time.sleep(0.05)
            assert str(room.holder).startswith("proctor-router-abc_")
        assert not first()
        left_s = time.monotonic()
        wait_until(lambda: second() or third(), timeout_s=10, what="a second leader")
        assert time.monotonic() - left_s < LEASE_S / 2
        assert not (second() and third())
    assert room.holder == ""


def test_a_stolen_lease_is_honoured_and_won_back_only_when_it_ran_out(room: Room) -> None:
    with candidates(room, 1) as (candidate,):
        candidate.once()
        assert candidate.leads()
        room.steal("thief", 4)
        candidate.once()
        seen_s = time.monotonic()
        assert not candidate.leads()
        while not candidate.leads():
            assert room.holder == "thief" or candidate.leads()
            candidate.once()
        assert time.monotonic() - seen_s >= 4
        assert room.holder == "candidate-0"


def test_a_lease_that_a_chart_has_made_and_nobody_held_is_taken_by_an_account_that_may_make_none(
    room: Room, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": NAME}}
    room.cluster.apply(made, namespace=room.namespace)
    only_this = lease_rules(NAME)[:1]
    monkeypatch.setenv("KUBECONFIG", str(account(room.cluster, room.namespace, "least", only_this, tmp_path)))
    with candidates(room, 1) as (candidate,):
        candidate.once()
        assert candidate.leads()
        candidate.release()
        assert room.holder == ""
        # Applied again, as by an upgrade of the release, it says no more than before.
        candidate.once()
        room.cluster.apply(made, namespace=room.namespace)
        candidate.once()
        assert candidate.leads()


def test_two_that_write_on_the_same_version_are_not_both_taken(room: Room) -> None:
    with candidates(room, 2) as (first, second):
        first.once()
        first.release()
        barrier = threading.Barrier(2)
        read = Candidate._read

        def together(candidate: Candidate) -> client.V1Lease | None:
            found = read(candidate)
            barrier.wait(timeout=10)
            return found

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(Candidate, "_read", together)
            threads = [threading.Thread(target=one.once) for one in (first, second)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        assert first.leads() != second.leads()


def test_a_leader_that_hears_nothing_of_the_server_leads_no_longer_than_its_deadline(room: Room) -> None:
    now_s = [1000.0]
    nowhere = client.Configuration(host="https://127.0.0.1:9")
    nowhere.retries = 0
    with api_client() as api, client.ApiClient(nowhere) as cut_off:
        candidate = Candidate(api, room.lease, "me", clock=lambda: now_s[0])
        candidate.once()
        assert candidate.leads()
        candidate._leases = client.CoordinationV1Api(cut_off)
        now_s[0] += RENEW_DEADLINE_S - 1
        candidate.once()
        assert candidate.leads()
        now_s[0] += 1
        assert not candidate.leads()
    assert room.holder == "me"


def test_an_account_may_stand_for_no_other_lease_and_is_told_so_once(
    room: Room, caplog: pytest.LogCaptureFixture
) -> None:
    elsewhere = LeaseName(room.namespace, "of-another")
    room.cluster.apply(
        {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "of-another"}},
        namespace=room.namespace,
    )
    with api_client() as api, caplog.at_level(logging.WARNING):
        candidate = Candidate(api, elsewhere, "me")
        for _ in range(3):
            candidate.once()
        assert not candidate.leads()
    said = [record.getMessage() for record in caplog.records if "of-another" in record.getMessage()]
    assert len(said) == 1
    assert "403" in said[0]
    assert "cannot get resource" in said[0]


def sent(log: str) -> int:
    """How often a router's timetable had somebody reconcile."""
    return log.count("Scheduler: Sending due task reconcile")


def test_of_two_routers_one_has_a_timetable_and_the_other_takes_it_over_when_that_is_killed(
    room: Room, tmp_path: Path
) -> None:
    folder = tmp_path / "valkey"
    folder.mkdir()
    with valkey_server(folder) as url, ExitStack() as stack:
        environment = {
            "PROCTOR_LEADER_LEASE": str(room.lease),
            "KUBECONFIG": str(room.kubeconfig),
            "PROCTOR_RECONCILE_INTERVAL_S": "0.5",
        }
        routers = []
        for name in ("first", "second"):
            home = Home(tmp_path / name, f"{url}/0", POD_NAME=name, **environment)
            home.folder.mkdir()
            routers.append(stack.enter_context(home.worker("router")))
        first, second = routers
        wait_until(lambda: sent(first.log) + sent(second.log) >= 3, timeout_s=30, what="a timetable")
        leader, follower = (first, second) if sent(first.log) else (second, first)
        assert sent(follower.log) == 0
        # They take its messages in turns all the same: leading is sending.
        wait_until(lambda: "Task router.reconcile" in follower.log, what="a message for the follower")
        leader.signal(signal.SIGKILL)
        killed_s = time.monotonic()
        wait_until(lambda: sent(follower.log) > 0, timeout_s=40, what="another leader")
        assert time.monotonic() - killed_s > RENEW_DEADLINE_S
        follower.signal(signal.SIGTERM)
        assert follower.left() == 0
        assert room.holder == ""
