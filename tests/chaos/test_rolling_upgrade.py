"""An upgrade while audits run: workers of this version and of the next take from the same queues and stores."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from proctor.runtime.records.schema import SCHEMA_VERSION, version_of
from proctor.runtime.records.store import AuditState, Records
from tests.chaos.arithmetic import Benchmark
from tests.chaos.audits import Client, report_bytes
from tests.chaos.cluster import ONE_OF_EACH, Role
from tests.chaos.upgrade import GREETED, NEXT, MixedCluster

pytestmark = pytest.mark.timeout(240)

BENCHMARKS = tuple(Benchmark(f"sums-{number}", 60) for number in range(6))
EACH = frozenset({"router", "router.greeting", "perturbation", "inference", "scorer", "a row"})
SERVICES = ("router", "perturbation", "inference", "scorer", "registry")


#: Rounds of audits in which this version is given a message of the next one for each service: who takes one is chance.
MAX_ROUNDS = 8


def of_the_next_version(*services: str) -> tuple[Role, ...]:
    return tuple(Role(service, NEXT) for service in services)


def all_decided(client: Client, audits: Sequence[str]) -> Callable[[], bool]:
    return lambda: {client.decided(audit) for audit in audits} == {True}


def logs(home: Path, *names: str) -> str:
    paths = (home / "logs").glob("*.log") if not names else (home / "logs" / f"{name}.log" for name in names)
    return "".join(path.read_text("utf-8", "replace") for path in sorted(paths))


def given_back(home: Path) -> set[str]:
    """What this version's workers gave back; the message without a task by its name, the others by queue; and "a row"
    where the message was one of this version, of an audit that is not."""
    tasks = re.findall(r"(\S+) is given back", logs(home, *(role.name for role in ONE_OF_EACH)))
    of_rows = re.search(r"is given back.* audit \S+ needs a newer Proctor: it has mood", logs(home))
    found = {task if task == "router.greeting" else task.partition(".")[0] for task in tasks}
    return found | ({"a row"} if of_rows else set())


def test_audits_of_a_mixed_pool_are_decided_with_the_reports_of_a_pool_of_one_version(tmp_path: Path) -> None:
    with MixedCluster(tmp_path, ONE_OF_EACH) as cluster:
        client = Client(cluster)

        def run() -> list[str]:
            audits = [client.submit(benchmark) for benchmark in BENCHMARKS]
            assert cluster.tend_until(all_decided(client, audits), timeout_s=60), logs(tmp_path)
            return audits

        of_one_version = [report_bytes(tmp_path, audit) for audit in run()]
        assert version_of(cluster.settings.records_url) == SCHEMA_VERSION

        # The next version comes while audits of this one are under way, and migrates the store under their feet.
        early = [client.submit(benchmark) for benchmark in BENCHMARKS]
        cluster.add(*of_the_next_version(*SERVICES))
        migrated = lambda: version_of(cluster.settings.records_url) == SCHEMA_VERSION + 1  # noqa: E731
        assert cluster.tend_until(migrated, timeout_s=60), logs(tmp_path)
        assert cluster.tend_until(all_decided(client, early), timeout_s=60), logs(tmp_path)
        rounds = [early]
        while not given_back(tmp_path) >= EACH and len(rounds) < MAX_ROUNDS:
            rounds.append(run())

        # This version leaves, with whatever it has in hand.
        late = [client.submit(benchmark) for benchmark in BENCHMARKS]
        cluster.remove(*ONE_OF_EACH)
        assert cluster.tend_until(all_decided(client, late), timeout_s=60), logs(tmp_path)

        # Nor was a message lost that this version has no task for; what it died with comes again.
        greetings = set(re.findall(r"greets (\S+)", logs(tmp_path, f"router-{NEXT}")))
        greeted = tmp_path / "control" / GREETED
        assert cluster.tend_until(lambda: {*greeted.read_text().split()} == greetings, timeout_s=40), logs(tmp_path)
        client.close()

    assert given_back(tmp_path) >= EACH
    assert client.restarts == []
    assert cluster.deaths == 0
    for audits in (*rounds, late):
        assert [report_bytes(tmp_path, audit) for audit in audits] == of_one_version
    assert "is dropped" not in logs(tmp_path)


def test_an_audit_whose_scorer_does_not_come_fails_with_that_cause_and_goes_on_once_it_is_there(tmp_path: Path) -> None:
    old = tuple(role for role in ONE_OF_EACH if role.service != "router")
    with MixedCluster(tmp_path, old, moody="all") as cluster:
        # What the other services are sent they know; the router is of the next version, and so is what the scorer gets.
        cluster.add(*of_the_next_version("router", "perturbation", "inference", "registry"))
        cluster.remove(*(role for role in old if role.service != "scorer"))
        client, records = Client(cluster), Records(cluster.settings.records_url)
        audit = client.submit(BENCHMARKS[0])
        failed = lambda: client.state(audit) is AuditState.FAILED  # noqa: E731
        assert cluster.tend_until(failed, timeout_s=60), logs(tmp_path)
        detail = records.audit(audit).detail
        cluster.add(*of_the_next_version("scorer"))
        cluster.remove(Role("scorer"))
        assert cluster.tend_until(all_decided(client, [audit]), timeout_s=60), logs(tmp_path)
        records.close()
        client.close()
    assert "scorer." in detail
    assert "upgrade the scorer workers" in detail
