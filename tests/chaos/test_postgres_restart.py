"""PostgreSQL is shut down at once and started again while audits run: no decision is lost, none is made twice."""

from __future__ import annotations

import json
from collections import Counter
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from proctor.runtime.records.store import AuditState, Records
from tests.chaos.arithmetic import Benchmark
from tests.chaos.audits import Client, report_bytes
from tests.chaos.cluster import ONE_OF_EACH, Cluster
from tests.chaos.hooks import REGISTRY
from tests.postgres_server import postgres_server
from tests.support import wait_until

pytestmark = pytest.mark.timeout(240)

BENCHMARKS = tuple(Benchmark(f"sums-{number}", 120) for number in range(4))
STATES = tuple(AuditState)
#: Where the first of an audit's round is, or already past, when the server is shut down.
MOMENTS = (AuditState.CREATED, AuditState.REWORDING, AuditState.ANSWERING, AuditState.DECIDED)


def test_audits_outlast_a_postgresql_that_is_shut_down_at_once_and_started_again(tmp_path: Path) -> None:
    # A server of its own: the others' tests would not outlast this one.
    with postgres_server() as server:
        url = server.new_database()
        cluster = Cluster(tmp_path, ONE_OF_EACH)
        cluster.settings = cluster.settings.model_copy(update={"records_url": url})
        with cluster:
            client = Client(cluster)

            def submitted() -> list[str]:
                return [client.submit(benchmark) for benchmark in BENCHMARKS]

            def came_to(state: AuditState, audits: list[str]) -> bool:
                return any(STATES.index(client.state(audit)) >= STATES.index(state) for audit in audits)

            def decide(audits: list[str]) -> None:
                everything = lambda: {client.decided(audit) for audit in audits} == {True}  # noqa: E731
                assert cluster.tend_until(everything, timeout_s=90)

            calm = submitted()
            decide(calm)
            rounds = []
            for number, moment in enumerate(MOMENTS):
                rounds.append(submitted())
                wait_until(lambda: came_to(moment, rounds[number]), what=f"an audit that is {moment}")  # noqa: B023
                server.stop()
                server.start()
                decide(rounds[number])
            client.close()
        with psycopg.connect(url) as connection:
            decisions = connection.execute("SELECT audit_id, event FROM decisions").fetchall()
            audits = connection.execute("SELECT audit_id, state FROM audits").fetchall()
        with closing(Records(url)) as records:
            lines = (tmp_path / "control" / REGISTRY).read_text().splitlines()
            told = Counter(json.loads(line)["auditId"] for line in lines)
            assert {audit: records.registration(audit) for audit in told} == dict.fromkeys(told, "1")
    expected = {audit for group in (calm, *rounds) for audit in group}
    assert dict(audits) == dict.fromkeys(expected, "decided")
    assert Counter(audit for audit, _ in decisions) == dict.fromkeys(expected, 1)
    assert told.keys() == expected
    of_calm = [report_bytes(tmp_path, audit) for audit in calm]
    for group in rounds:
        assert [report_bytes(tmp_path, audit) for audit in group] == of_calm
    logs = "".join(path.read_text("utf-8", "replace") for path in (tmp_path / "logs").glob("*-0.log"))
    assert "the record store is asked again" in logs, "no worker noticed anything"
    assert client.restarts == []
    assert cluster.deaths == 0
