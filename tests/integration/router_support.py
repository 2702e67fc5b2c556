"""A router on a real ledger, record store and artifact store, whose messages to the other services are caught."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import redis

from proctor.domain.item import Measurements, Variant
from proctor.domain.manifest import ItemSet, VariantSet
from proctor.domain.messages import EndpointProbed, Message, Reconcile, RunShard, StartAudit, VariantsBuilt
from proctor.domain.suite import Suite
from proctor.router import tasks
from proctor.router.audit import gather, submit, view
from proctor.router.dispatch import Dispatcher
from proctor.router.ledger import Ledger
from proctor.runtime.artifacts import LocalArtifacts, get_model, put_model
from proctor.runtime.records import AuditState, Records
from proctor.runtime.settings import Settings

PINNED = "sha256:" + "ab" * 32
_MEASURED = Measurements(semantic_distance=0.2, token_overlap=0.1, edit_distance=0.6)


class Bench:
    """A router whose messages to the other services are caught instead of sent."""

    def __init__(self, home: Path, valkey_url: str, suite: dict[str, Any]) -> None:
        self.settings = replace(Settings.for_home(home), ledger_url=f"{valkey_url}/2", registry_uri="http://registry")
        self.records = Records(self.settings.records_url)
        self.artifacts = LocalArtifacts(Path(self.settings.artifacts))
        self.ledger = Ledger(self.settings.ledger_url)
        self.sent: list[Message] = []
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

    def submit(self) -> str:
        data = gather(self.suite, self.home, self.settings.bundle)
        return submit(data, self.settings, self.records, self.artifacts).record.audit_id

    def take(self, kind: type[Message]) -> list[Message]:
        """The caught messages of a kind, and forget them all."""
        found = [message for message in self.sent if isinstance(message, kind)]
        self.sent.clear()
        return found

    def handed_out(self) -> list[RunShard]:
        """The caught shards; where there are none, those that the reconciler hands out."""
        if not any(isinstance(message, RunShard) for message in self.sent):
            tasks.reconcile(Reconcile())
        return [message for message in self.take(RunShard) if isinstance(message, RunShard)]

    def state(self, audit: str) -> AuditState:
        return self.records.audit(audit).state

    def variants(self, audit: str) -> str:
        items = get_model(self.artifacts, view(self.records, audit).inputs.items, ItemSet).items
        variants = tuple(
            Variant(
                item_id=item.item_id, item_hash=item.content_hash, strategy="wordings",
                question=f"Please add one: {item.question}", measurements=_MEASURED,
            )
            for item in items
        )  # fmt: skip
        return put_model(self.artifacts, VariantSet(variants=variants, rejections=(), encoder="none"))

    def to_answering(self) -> str:
        audit = self.submit()
        tasks.start(StartAudit(audit_id=audit))
        tasks.endpoint_probed(EndpointProbed(audit_id=audit, ok=True, model_digest=PINNED, server="test"))
        self.sent.clear()
        tasks.variants_built(VariantsBuilt(audit_id=audit, variants=self.variants(audit)))
        return audit


@contextmanager
def router_bench(home: Path, valkey_url: str, monkeypatch: pytest.MonkeyPatch, **suite: Any) -> Iterator[Bench]:
    """A router in a folder of its own; `suite` replaces sections of its suite."""
    bench = Bench(home, valkey_url, suite)
    dispatcher = Dispatcher(bench.records, bench.artifacts, bench.ledger, bench.sent.append)
    monkeypatch.setattr(tasks, "_dispatcher", lambda: dispatcher)
    monkeypatch.setattr(tasks, "worker_settings", lambda: bench.settings)
    try:
        yield bench
    finally:
        bench.records.close()
        bench.ledger.close()
        with redis.Redis.from_url(bench.settings.ledger_url) as client:
            client.flushdb()
