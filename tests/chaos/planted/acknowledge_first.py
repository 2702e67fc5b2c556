"""Planted bug: a shard is reported as answered, and only then stored."""

from __future__ import annotations

from typing import Any

from tests.chaos.hooks import replace


def plant(service: str) -> None:
    """Have the inference worker tell the router first."""
    if service != "inference":
        return
    from proctor.domain.canonical import bytes_digest
    from proctor.domain.messages import RunShards, ShardAnswer, ShardsAnswered, ShardToRun
    from proctor.inference.worker.attempts import Attempts
    from proctor.runtime.messaging.tasks import send, worker_artifacts

    named: dict[str, Any] = {}

    def only_named(_: Any, model: Any) -> str:
        digest = bytes_digest(model.model_dump_json(by_alias=True).encode("utf-8"))
        named[digest] = model
        return digest

    async def told_first(self: Attempts, message: RunShards, shard: ShardToRun) -> ShardAnswer:
        answer = await answered(self, message, shard)
        send(ShardsAnswered(audit_id=message.audit_id, stage=message.stage, answers=(answer,)))
        if answer.completions is not None:
            store(worker_artifacts(), named.pop(answer.completions))
        return answer

    store = replace("proctor.inference.worker.attempts", "put_model", only_named)
    answered, Attempts._answered = Attempts._answered, told_first  # type: ignore[method-assign]
