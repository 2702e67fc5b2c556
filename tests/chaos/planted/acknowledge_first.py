"""Planted bug: a shard is reported as answered, and only then stored."""

from __future__ import annotations

from typing import Any

from tests.chaos.hooks import replace


def plant(service: str) -> None:
    """Have the inference worker tell the router first."""
    if service != "inference":
        return
    from proctor.domain.canonical import bytes_digest
    from proctor.domain.messages import RunShard, ShardAnswered
    from proctor.runtime.tasks import send, worker_artifacts

    last: list[Any] = []

    def only_named(_: Any, model: Any) -> str:
        last[:] = [model]
        return bytes_digest(model.model_dump_json(by_alias=True).encode("utf-8"))

    def told_first(message: RunShard) -> str:
        digest: str = answer(message)
        send(
            ShardAnswered(
                audit_id=message.audit_id, stage=message.stage, shard_id=message.shard_id, attempt=message.attempt,
                completions=digest,
            )
        )  # fmt: skip
        store(worker_artifacts(), last[0])
        return digest

    store = replace("proctor.inference.tasks", "put_model", only_named)
    answer = replace("proctor.inference.tasks", "_answered", told_first)
