"""Planted bug: a stage's shards are the header of a Celery chord, and its body ends the stage.

A chord knows how many results it waits for, and not which messages should bring them: one that is lost, as the broker
may lose one, leaves the stage waiting for ever. (Until Celery 5.6 a header message that was delivered twice with two
results that differ by a byte was counted as two. 5.7 counts it by its task's id.)
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from celery import chord

_BODY, _HEADER = "router.chorded", "inference.chorded"


def plant(service: str) -> None:
    """Have the router send chords, and the inference worker answer them."""
    from proctor.runtime.messaging.tasks import app, worker_settings

    # A database of its own, so that the chord's keys are not taken for the ledger's.
    app.conf.result_backend = worker_settings().ledger_url.rsplit("/", 1)[0] + "/2"
    app.conf.task_ignore_result = False
    if service == "router":
        _send_chords(app)
    if service == "inference":
        _answer_chords(app)


def _send_chords(app: Any) -> None:
    from proctor.domain.messages import Message, RunShards
    from proctor.router import reconcile, tasks
    from proctor.router.audit import AuditView
    from proctor.router.dispatch import Dispatcher
    from proctor.router.ledger.store import Answer
    from proctor.router.pools import sharing
    from proctor.router.stages.registry import under_way
    from proctor.runtime.records.store import AuditRecord

    go_on, reconcile_audit = Dispatcher.go_on, reconcile.reconcile_audit

    def one_chord(self: Dispatcher, audit: AuditView) -> None:
        asked = list[RunShards]()

        def collect(message: Message) -> None:
            asked.append(message) if isinstance(message, RunShards) else self.send(message)

        go_on(replace(self, send=collect), audit)
        if asked:
            header = [app.signature(_HEADER, kwargs={"message": pack.plain()}, queue="inference") for pack in asked]
            chord(header)(app.signature(_BODY, kwargs={"audit_id": audit.audit_id}, queue="router"))

    def but_for_chords(dispatcher: Dispatcher, record: AuditRecord) -> None:
        if under_way(dispatcher.view(record.audit_id)) is None:
            reconcile_audit(dispatcher, record)

    def ended(results: list[list[list[Any]]], audit_id: str) -> None:
        dispatcher = tasks._dispatcher()
        for pack in results:
            dispatcher.ledger.record_all(audit_id, "answer", [Answer(*row) for row in pack])
        audit = dispatcher.view(audit_id)
        stage = under_way(audit)
        if stage is not None:
            dispatcher._finish(audit, stage)

    sharing.outstanding = lambda slots, pool, others, *, quick: 1 << 20
    Dispatcher.go_on = one_chord  # type: ignore[method-assign]
    reconcile.reconcile_audit = but_for_chords
    app.task(ended, name=_BODY)


def _answer_chords(app: Any) -> None:
    from proctor.domain.messages import RunShards
    from proctor.inference import tasks

    def answer(message: dict[str, Any]) -> list[tuple[Any, ...]]:
        batches = tasks._worker().attempts.run(RunShards.model_validate(message))
        return [
            (said.shard_id, said.completions, said.input_tokens, said.output_tokens)
            for batch in batches
            for said in batch
        ]

    app.task(answer, name=_HEADER)
