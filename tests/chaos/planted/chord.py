"""Planted bug: a stage's shards are the header of a Celery chord, and its body ends the stage.

A chord knows how many results it waits for, and not which messages should bring them: one that is lost, as the broker
may lose one, leaves the stage waiting for ever. (Until Celery 5.6 a header message that was delivered twice with two
results that differ by a byte was counted as two. 5.7 counts it by its task's id.)
"""

from __future__ import annotations

from typing import Any

from celery import chord

_BODY, _HEADER = "router.chorded", "inference.chorded"


def plant(service: str) -> None:
    """Have the router send chords, and the inference worker answer them."""
    from proctor.runtime.tasks import app, worker_settings

    # A database of its own, so that the chord's keys are not taken for the ledger's.
    app.conf.result_backend = worker_settings().ledger_url.rsplit("/", 1)[0] + "/2"
    app.conf.task_ignore_result = False
    if service == "router":
        _send_chords(app)
    if service == "inference":
        _answer_chords(app)


def _send_chords(app: Any) -> None:
    from proctor.router import tasks
    from proctor.router.dispatch import Dispatcher
    from proctor.router.ledger import Ledger
    from proctor.router.stages import stage_under_way

    go_on, sent = Dispatcher.go_on, list[Any]()

    def one_chord(self: Dispatcher, audit_id: str) -> None:
        sent.clear()
        go_on(Dispatcher(self.records, self.artifacts, self.ledger, sent.append, self.timing), audit_id)
        if sent:
            header = [app.signature(_HEADER, kwargs={"message": shard.plain()}, queue="inference") for shard in sent]
            chord(header)(app.signature(_BODY, kwargs={"audit_id": audit_id}, queue="router"))

    def lease_all(self: Ledger, audit_id: str, stage: str, **keywords: Any) -> Any:
        return lease(self, audit_id, stage, **{**keywords, "window": 1 << 20})

    def but_for_chords(self: Dispatcher, audit_id: str) -> None:
        if stage_under_way(self.view(audit_id)) is None:
            reconcile(self, audit_id)

    def ended(results: list[dict[str, Any]], audit_id: str) -> None:
        dispatcher = tasks._dispatcher()
        for answer in results:
            dispatcher.ledger.record(audit_id, "answer", answer["shard_id"], answer["completions"])
        audit = dispatcher.view(audit_id)
        stage = stage_under_way(audit)
        if stage is not None:
            dispatcher._finish(audit, stage)

    lease, reconcile = Ledger.lease, Dispatcher.reconcile
    Ledger.lease, Dispatcher.go_on = lease_all, one_chord  # type: ignore[method-assign]
    Dispatcher.reconcile = but_for_chords  # type: ignore[method-assign]
    app.task(ended, name=_BODY)


def _answer_chords(app: Any) -> None:
    import time

    from proctor.domain.messages import RunShard
    from proctor.inference import tasks

    def answer(message: dict[str, Any]) -> dict[str, Any]:
        said = tasks._attempt(RunShard.model_validate(message))
        return {"shard_id": said.shard_id, "completions": said.completions, "latency_ms": time.monotonic() * 1000}

    app.task(answer, name=_HEADER)
