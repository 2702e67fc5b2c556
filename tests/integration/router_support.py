"""A router on a real ledger, record store and artifact store, whose messages to the other services are caught."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import redis

from proctor.domain.endpoint import EndpointSpec
from proctor.domain.item import Measurements, Variant
from proctor.domain.manifest import VariantSet
from proctor.domain.messages import (
    EndpointProbed,
    GradeShards,
    Message,
    Priority,
    Reconcile,
    RunShards,
    ShardAnswer,
    ShardsAnswered,
    StartAudit,
    VariantsBuilt,
)
from proctor.domain.suite import Suite
from proctor.domain.trial import Decoding
from proctor.router import tasks
from proctor.router.audit import view
from proctor.router.dispatch import Dispatcher
from proctor.router.ledger.store import Ledger
from proctor.router.pools.store import Pools
from proctor.router.submit.gathering import gather
from proctor.router.submit.submission import submit
from proctor.runtime.artifacts.chunks import get_items, put_variants
from proctor.runtime.artifacts.local import LocalArtifacts
from proctor.runtime.records.store import AuditState, Records
from proctor.runtime.redis.presence import Presence
from proctor.runtime.settings import Settings

PINNED = "sha256:" + "ab" * 32
_MEASURED = Measurements(semantic_distance=0.2, token_overlap=0.1, edit_distance=0.6)


class HandedOut(NamedTuple):
    """One shard of a message, with what it shares with the others of it."""

    audit_id: str
    stage: str
    endpoint: EndpointSpec
    decoding: Decoding
    shard_id: str
    attempt: int
    shard: str
    last_attempt: bool


def one_by_one(messages: Iterable[Message]) -> list[HandedOut]:
    """The shards of those of the messages that carry any."""
    return [
        HandedOut(
            message.audit_id, message.stage, message.endpoint, message.decoding,
            shard.shard_id, shard.attempt, shard.shard, shard.last_attempt,
        )
        for message in messages
        if isinstance(message, RunShards)
        for shard in message.shards
    ]  # fmt: skip


class Bench:
    """A router whose messages to the other services are caught instead of sent."""

    def __init__(self, home: Path, valkey_url: str, suite: dict[str, Any]) -> None:
        self.settings = Settings(home=home, ledger_url=f"{valkey_url}/2", registry_uri="http://registry")
        self.records = Records(self.settings.records_url)
        self.artifacts = LocalArtifacts(Path(self.settings.artifacts))
        self.ledger = Ledger(self.settings.ledger_url)
        self.pools = Pools(self.settings.ledger_url)
        self.presence = Presence(self.settings.ledger_url)
        self.sent: list[Message] = []
        self.grading: list[GradeShards] = []
        """What the scorer was asked to grade, apart: it keeps nothing waiting."""
        self.broker_is_down = False
        self.later: list[tuple[Message, float]] = []
        data = home / "items.jsonl"
        rows = [{"id": f"q{n}", "question": f"What is {n} plus one?", "answer": str(n + 1)} for n in range(100)]
        data.write_text("".join(json.dumps(row) + "\n" for row in rows))
        self.suite = Suite.model_validate(
            {
                "audit_suite_id": "router-test",
                "model_config": {"model_id": "m", "model_version": PINNED[:19], "endpoint": "http://127.0.0.1:9/v1"},
                "dataset_config": {"benchmark_name": "sums", "path": data.name, "selection": "first"},
                "perturbation_config": {"perturbation_strategy": "wordings"},
                **suite,
            }
        )
        self.home = home

    def submit(self, priority: Priority = Priority.NORMAL) -> str:
        data = gather(self.suite, self.home, self.settings.bundle)
        return submit(data, self.settings, self.records, self.artifacts, priority=priority).record.audit_id

    def take(self, kind: type[Message]) -> list[Message]:
        """The caught messages of a kind, and forget them all."""
        found = [message for message in self.sent if isinstance(message, kind)]
        self.sent.clear()
        return found

    def send(self, message: Message) -> None:
        if self.broker_is_down:
            raise ConnectionError(f"no broker for {message.task}")
        if isinstance(message, GradeShards):
            self.grading.append(message)
        else:
            self.sent.append(message)

    def send_later(self, message: Message, seconds: float) -> None:
        self.later.append((message, seconds))

    def shards(self) -> list[HandedOut]:
        """The caught shards, and forget all that was caught."""
        return one_by_one(self.take(RunShards))

    def handed_out(self) -> list[HandedOut]:
        """The caught shards; where there are none, those that the reconciler hands out."""
        if not any(isinstance(message, RunShards) for message in self.sent):
            tasks.reconcile(Reconcile())
        return self.shards()

    def answer(self, shard: HandedOut, *, seconds: float = 0.0, **answer: Any) -> None:
        """Have a worker answer one shard."""
        tasks.shards_answered(answered(shard, seconds=seconds, **answer))

    def another_suite(self, name: str) -> None:
        """Submit another suite from now on, of the same model at the same endpoint."""
        self.suite = self.suite.model_copy(update={"audit_suite_id": name})

    def state(self, audit: str) -> AuditState:
        return self.records.audit(audit).state

    def variants(self, audit: str, items: str | None = None) -> str:
        """One rewording of each item, of the benchmark's or of those of another index."""
        digest = items or view(self.records, audit).inputs.items
        variants = tuple(
            Variant(
                item_id=item.item_id, item_hash=item.content_hash, strategy="wordings",
                question=f"Please add one: {item.question}", measurements=_MEASURED,
            )
            for item in get_items(self.artifacts, digest).items
        )  # fmt: skip
        return put_variants(self.artifacts, digest, VariantSet(variants=variants, rejections=(), encoder="none"))

    def start_again(self) -> str:
        """Submit the suite again, up to where its audit goes on."""
        audit = self.submit()
        tasks.start(StartAudit(audit_id=audit))
        self.sent.clear()
        tasks.endpoint_probed(EndpointProbed(audit_id=audit, ok=True, model_digest=PINNED, server="test"))
        return audit

    def to_answering(self, priority: Priority = Priority.NORMAL) -> str:
        audit = self.submit(priority)
        tasks.start(StartAudit(audit_id=audit))
        tasks.endpoint_probed(EndpointProbed(audit_id=audit, ok=True, model_digest=PINNED, server="test"))
        self.sent.clear()
        tasks.variants_built(VariantsBuilt(audit_id=audit, variants=self.variants(audit), control=self.reworded(audit)))
        return audit

    def reworded(self, audit: str) -> str | None:
        """One rewording of each control item; None where the suite has none."""
        control = view(self.records, audit).inputs.control
        return None if control is None else self.variants(audit, control)


def answered(shard: HandedOut, *, seconds: float = 0.0, **answer: Any) -> ShardsAnswered:
    """A worker's message of one shard."""
    said = ShardAnswer.model_validate({"shard_id": shard.shard_id, "attempt": shard.attempt, **answer})
    return ShardsAnswered(audit_id=shard.audit_id, stage=shard.stage, answers=(said,), seconds=seconds)


@contextmanager
def router_bench(home: Path, valkey_url: str, monkeypatch: pytest.MonkeyPatch, **suite: Any) -> Iterator[Bench]:
    """A router in a folder of its own; `suite` replaces sections of its suite."""
    bench = Bench(home, valkey_url, suite)
    dispatcher = Dispatcher(
        bench.records, bench.artifacts, bench.ledger, bench.pools, bench.presence, bench.send,
        send_later=bench.send_later, chance=lambda: 0.0,
    )  # fmt: skip
    monkeypatch.setattr(tasks, "_dispatcher", lambda: dispatcher)
    monkeypatch.setattr(tasks, "worker_settings", lambda: bench.settings)
    try:
        yield bench
    finally:
        bench.records.close()
        for store in (bench.ledger, bench.pools, bench.presence):
            store.close()
        with redis.Redis.from_url(bench.settings.ledger_url) as client:
            client.flushdb()
