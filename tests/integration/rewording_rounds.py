"""Rounds of questions to the model that rewords, played by hand: what is wanted, asked and said."""

from __future__ import annotations

from proctor.domain.manifest import CompletionSet, PromptSet, RewriteSet
from proctor.domain.messages import BuildVariants, EndpointProbed, Message, ShardsAnswered, StartAudit, VariantsBuilt
from proctor.domain.trial import PARAPHRASE_STAGE, Arm, Completion, Decoding, Shard, Trial
from proctor.router import tasks
from proctor.runtime.artifacts.store import get_model, put_model
from tests.integration.router_support import PINNED, Bench, HandedOut, answered, one_by_one

REWRITER = "http://127.0.0.1:8/v1"
WEIGHTS = "sha256:" + "ef" * 32
DECODING = Decoding(temperature=0.7, max_tokens=99)
ITEMS = tuple(f"q{n}" for n in range(64))
ASKING = {
    "perturbation_strategy": "paraphrase_llm",
    "paraphrase_model": "org/rewriter",
    "paraphraser": {"endpoint": REWRITER},
}


def probed(audit: str) -> EndpointProbed:
    return EndpointProbed(audit_id=audit, ok=True, model_digest=PINNED, server="test")


def to_rewording(bench: Bench) -> str:
    audit = bench.submit()
    tasks.start(StartAudit(audit_id=audit))
    tasks.endpoint_probed(probed(audit))
    bench.sent.clear()
    return audit


def wanted(bench: Bench, audit: str, *items: str, candidate: int = 0) -> VariantsBuilt:
    """The perturbation service's answer that this candidate of these items must be asked for first."""
    trials = tuple(
        Trial(stage=PARAPHRASE_STAGE, arm=Arm.PERTURBED, item_id=item, replicate=candidate, prompt=f"Reword {item}")
        for item in items
    )
    return VariantsBuilt(
        audit_id=audit, prompts=put_model(bench.artifacts, PromptSet(trials=trials, decoding=DECODING))
    )


def asked(bench: Bench, shard: HandedOut) -> set[str]:
    return {trial.item_id for trial in get_model(bench.artifacts, shard.shard, Shard).trials}


def said(bench: Bench, shard: HandedOut, *, silent: str | None = None, error: str = "HTTP 400") -> ShardsAnswered:
    """An inference worker's answer; to prompts of `silent` items (`*`: all) there was none."""
    completions = tuple(
        Completion(trial_id=trial.trial_id, error=error, finish_reason="error")
        if silent in ("*", trial.item_id)
        else Completion(trial_id=trial.trial_id, text="reworded", finish_reason="stop", model_digest=WEIGHTS)
        for trial in get_model(bench.artifacts, shard.shard, Shard).trials
    )
    return answered(shard, completions=put_model(bench.artifacts, CompletionSet(completions=completions)))


def failed(shard: HandedOut, *, retryable: bool = True) -> ShardsAnswered:
    return answered(shard, error="connection refused", retryable=retryable)


def finish_stage(bench: Bench, *, silent: str | None = None) -> list[Message]:
    """Answer everything that is asked; returns what is sent once no shard is left."""
    while shards := one_by_one(bench.sent):
        bench.sent.clear()
        for shard in shards:
            tasks.shards_answered(said(bench, shard, silent=silent))
    return list(bench.sent)


def rewrites_of(bench: Bench, messages: list[Message]) -> RewriteSet:
    (message,) = messages
    assert isinstance(message, BuildVariants)
    assert message.rewrites is not None
    return get_model(bench.artifacts, message.rewrites, RewriteSet)
