"""Audits on real stores, without workers: what the router and they would write is written by hand."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from queue import Queue
from typing import Any

import grpc
import pytest
import redis

from proctor.domain.decision import DecisionEvent, DecisionOutcome, Reason
from proctor.domain.messages import SERVICES, Message
from proctor.gateway.audits import LocalDesk
from proctor.gateway.limits import Limits
from proctor.gateway.reading import Counts
from proctor.gateway.rpc import audit_pb2_grpc
from proctor.gateway.server import running
from proctor.router.inputs import AuditInputs
from proctor.router.ledger.store import Ledger, PlannedShard, Setback
from proctor.router.pools.store import Pools
from proctor.runtime.artifacts.local import LocalArtifacts
from proctor.runtime.grpc.serving import Address
from proctor.runtime.grpc.tokens import server_tokens
from proctor.runtime.records.audit_state import AuditState
from proctor.runtime.records.store import Records
from proctor.runtime.redis.presence import Presence
from proctor.runtime.settings import Settings
from tests.support import ending, wait_until
from tests.token_channel import token_channel

PINNED = "sha256:" + "ab" * 32
LEASE_S = 60
LOOPBACK = Address("127.0.0.1", 0)


class AuditBench:
    """A home with a suite and its items, its stores, and the messages that would go to the router."""

    def __init__(self, home: Path, valkey_url: str) -> None:
        self.home = home
        self.settings = Settings(home=home, broker_url=f"{valkey_url}/3", ledger_url=f"{valkey_url}/4")
        self.records = Records(self.settings.records_url)
        self.ledger, self.pools = Ledger(self.settings.ledger_url), Pools(self.settings.ledger_url)
        self.sent: list[Message] = []
        artifacts = LocalArtifacts(Path(self.settings.artifacts))
        self.presence = Presence(self.settings.ledger_url)
        self.hear_of(*SERVICES)
        self.desk = LocalDesk(
            self.settings,
            self.records,
            Counts(self.ledger, self.pools),
            lambda: artifacts,
            self.sent.append,
            presence=self.presence,
        )
        rows = [{"id": f"q{n}", "question": f"What is {n} plus one?", "answer": str(n + 1)} for n in range(8)]
        (home / "items.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))

    def hear_of(self, *services: str) -> None:
        """Have a worker of each of these say that it lives, and of no other."""
        for service in SERVICES:
            self.presence.withdraw(f"{service}-1")
        for service in services:
            self.presence.announce(f"{service}-1", service, 1)

    def suite_text(self, name: str = "first", **sections: Any) -> str:
        return json.dumps(
            {
                "audit_suite_id": name,
                "model_config": {"model_id": "m", "model_version": PINNED[:19], "endpoint": "http://127.0.0.1:9/v1"},
                "dataset_config": {"benchmark_name": "sums", "path": "items.jsonl", "sample_size": 8},
                "perturbation_config": {"perturbation_strategy": "wordings"},
                **sections,
            }
        )

    def suite_file(self, name: str = "first", **sections: Any) -> Path:
        path = self.home / f"{name}.json"
        path.write_text(self.suite_text(name, **sections))
        return path

    def submitted(self, name: str = "first") -> str:
        return self.desk.submit(self.suite_file(name)).audit.audit_id

    def set(self, audit: str, state: AuditState, detail: str = "", **changes: Any) -> None:
        """Move an audit to a state, as the router would."""
        record = self.records.audit(audit)
        inputs = AuditInputs.model_validate(record.inputs).model_copy(update=changes)
        assert self.records.advance(
            audit, state, expected=[record.state], expected_inputs=record.inputs, detail=detail, inputs=inputs.plain()
        )

    def answering(self, name: str = "first", *, shards: int = 4, total: int | None = None) -> str:
        """An audit whose answer stage has been planned: shards of 32 trials."""
        audit = self.submitted(name)
        self.set(audit, AuditState.ANSWERING, variants="sha256:variants")
        planned = [PlannedShard(f"s{n}", 32, f"sha256:{n}", n) for n in range(shards)]
        self.ledger.plan(audit, "answer", planned, total_trials=total)
        return audit

    def answer(self, audit: str, *shard_ids: str) -> None:
        """Hand shards out, and record their answers."""
        self.ledger.lease(audit, "answer", list(shard_ids), lease=_lease())
        for shard_id in shard_ids:
            self.ledger.record(audit, "answer", shard_id, "sha256:c", input_tokens=100, output_tokens=10)

    def give_up(self, audit: str, shard_id: str, cause: str) -> None:
        """Hand a shard out, and fail it for good."""
        (leased,) = self.ledger.lease(audit, "answer", [shard_id], lease=_lease())
        self.ledger.fail(audit, "answer", shard_id, leased.attempt, setback=Setback.FINAL, cause=cause)

    def decide(self, audit: str, outcome: DecisionOutcome) -> None:
        """Put a decision on record, and end the audit with it."""
        event = DecisionEvent(
            audit_id=audit, audit_suite_id="first", model_id="m", model_digest=PINNED, outcome=outcome,
            reasons=(Reason(code="leak", text="15 % of the items are leaked"),), fingerprint="f", protocol_digest="p",
            report_digest="sha256:r", report_path="/reports/report.html", n_items=8,
        )  # fmt: skip
        self.records.decide(audit, event.plain())
        self.records.register(audit, "7")
        self.set(audit, AuditState.DECIDED)


def _lease() -> timedelta:
    return timedelta(seconds=LEASE_S)


@contextmanager
def audit_bench(home: Path, valkey_url: str) -> Iterator[AuditBench]:
    """A home of its own; what it leaves in Valkey is cleared away."""
    bench = AuditBench(home, valkey_url)
    try:
        yield bench
    finally:
        bench.records.close()
        bench.ledger.close()
        bench.pools.close()
        bench.presence.close()
        for url in (bench.settings.broker_url, bench.settings.ledger_url):
            with redis.Redis.from_url(url) as client:
                client.flushdb()


@contextmanager
def serving(
    desk: LocalDesk,
    *,
    limits: Limits | None = None,
    token: str | None = None,
    tokens: Mapping[str, Any] | None = None,
) -> Iterator[str]:
    """The real server on a free port, in a thread of its own; yields `host:port`."""
    known = server_tokens(token, json.dumps(tokens or {}), variable="PROCTOR_GATEWAY_TOKEN", source="the test")
    began: Queue[tuple[asyncio.AbstractEventLoop, asyncio.Event, str] | BaseException] = Queue()

    async def serve() -> None:
        stop = asyncio.Event()
        async with running(desk, LOOPBACK, limits=limits or Limits(), tokens=known) as bound:
            began.put((asyncio.get_running_loop(), stop, str(bound)))
            await stop.wait()

    def run() -> None:
        try:
            asyncio.run(serve())
        except BaseException as error:
            began.put(error)

    thread = threading.Thread(target=run)
    thread.start()
    first = began.get(timeout=20)
    if isinstance(first, BaseException):
        raise first
    loop, stop, address = first
    try:
        yield address
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(20)


@contextmanager
def stub(address: str, token: str | None = None) -> Iterator[audit_pb2_grpc.AuditServiceStub]:
    with token_channel(address, token) as channel:
        yield audit_pb2_grpc.AuditServiceStub(channel)


@contextmanager
def refused(code: grpc.StatusCode, match: str) -> Iterator[None]:
    """A call that must end with a status, and a message in which `match` is found."""
    with pytest.raises(grpc.RpcError) as raised:
        yield
    assert raised.value.code() is code, raised.value.details()
    assert match in raised.value.details()


@contextmanager
def gateway_process(home: Path, *options: str, **environment: str) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """`proctor gateway` on a free port, in a process of its own; yields it with its `host:port` once it listens.

    Raises:
        subprocess.CalledProcessError: when it ends before it listens.
    """
    log = home / "gateway.log"
    command = [sys.executable, "-m", "proctor", "gateway", "--port", "0", "--grace", "5", *options]
    variables = {**os.environ, "PROCTOR_HOME": str(home), **environment}
    with log.open("wb") as errors:
        process = subprocess.Popen(command, stderr=errors, env=variables)
    with ending(process):
        wait_until(
            lambda: "listens on" in log.read_text() or process.poll() is not None,
            timeout_s=60,
            what="the gateway's address",
        )
        found = re.search(r"listens on (\S+)", log.read_text())
        if found is None:
            raise subprocess.CalledProcessError(process.wait(timeout=20), command, stderr=log.read_text())
        yield process, found[1]


def suite_without_files(bench: AuditBench) -> bytes:
    """A suite whose items the gateway has itself: a benchmark of the operator's, which this puts there."""
    folder = bench.settings.benchmarks
    folder.mkdir(parents=True)
    (folder / "sums.jsonl").write_bytes((bench.home / "items.jsonl").read_bytes())
    said = json.loads(bench.suite_text())
    del said["dataset_config"]["path"]
    said["perturbation_config"] = {"perturbation_strategy": "option_shuffle"}
    return json.dumps(said).encode()
