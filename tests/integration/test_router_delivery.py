"""Whatever is delivered in which order, twice or not at all: each trial is answered once, or given up once."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
import redis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from proctor.domain.manifest import AuditManifest
from proctor.domain.messages import Reconcile, RunShards, ShardAnswer, ShardsAnswered
from proctor.domain.trial import Shard
from proctor.router import tasks
from proctor.router.audit import view
from proctor.router.pools import packs
from proctor.runtime.artifacts.store import get_model
from proctor.runtime.records.store import AuditState
from proctor.runtime.redis.presence import Held
from tests.integration.router_support import Bench, router_bench

N_TRIALS = 48

FATES = ("answered", "answered twice", "failed", "unreachable", "handed back", "lost", "late", "dropped")
#: What becomes of a message: which of those that are there, and how.
fates = st.lists(
    st.tuples(st.integers(0, 9), st.sampled_from(FATES)),
    max_size=25,
)


def said(message: RunShards, **answer: object) -> ShardsAnswered:
    """An answer to all shards of a message; an answered one names the attempt, as two workers write two texts."""
    return ShardsAnswered(
        audit_id=message.audit_id,
        stage=message.stage,
        answers=tuple(
            ShardAnswer.model_validate(
                {"shard_id": shard.shard_id, "attempt": shard.attempt, "completions": f"sha256:{shard.attempt}"}
                | answer
            )
            for shard in message.shards
        ),
    )


def meets(bench: Bench, message: RunShards, fate: str) -> None:
    failed = {"completions": None, "error": "something"}
    if fate in ("answered", "answered twice"):
        for _ in range(1 + (fate == "answered twice")):
            tasks.shards_answered(said(message))
    elif fate == "failed":
        tasks.shards_answered(said(message, **failed))
    elif fate == "unreachable":
        tasks.shards_answered(said(message, **failed, unreachable=True))
    elif fate == "handed back":
        tasks.shards_answered(said(message, **failed, handed_back=True))
    elif fate in ("lost", "late"):
        held = [Held(message.audit_id, message.stage, one.shard_id, one.attempt) for one in message.shards]
        bench.presence.holding("w", held)
        bench.presence.withdraw("w")
        tasks.reconcile(Reconcile())
        if fate == "late":
            tasks.shards_answered(said(message))


def time_passes(bench: Bench, audit: str) -> None:
    """Every lease, credit and wait of a pool is over."""
    with redis.Redis.from_url(bench.settings.ledger_url) as client:
        for key in (*client.scan_iter(f"proctor:{{{audit}}}:*:leases"), *client.scan_iter("proctor:pool:*:credits")):
            client.zadd(key, dict.fromkeys(client.zrange(key, 0, -1), 0))
        for key in client.scan_iter("proctor:pool:*:breaker"):
            if client.hexists(key, "until"):
                client.hset(key, "until", 0)


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(fates=fates, pace_s=st.sampled_from([None, 1e-6]))
def test_each_trial_is_answered_once_or_given_up_once(
    valkey_url: str, fates: list[tuple[int, str]], pace_s: float | None
) -> None:
    with tempfile.TemporaryDirectory() as home, pytest.MonkeyPatch.context() as patch:
        patch.setattr("proctor.runtime.artifacts.chunks.CHUNK_ITEMS", 8)
        patch.setattr(packs, "shard_trials", lambda *_: 4)
        dataset = {"benchmark_name": "sums", "path": "items.jsonl", "selection": "first", "sample_size": N_TRIALS // 2}
        with router_bench(Path(home), valkey_url, patch, dataset_config=dataset) as bench:
            audit = bench.submit()
            if pace_s is not None:
                bench.pools.note_pace(view(bench.records, audit).inputs.endpoint.pool, n_trials=1, seconds=pace_s)
            bench.to_answering()
            for which, fate in fates:
                waiting = [number for number, message in enumerate(bench.sent) if isinstance(message, RunShards)]
                if not waiting:
                    break
                message = bench.sent.pop(waiting[which % len(waiting)])
                assert isinstance(message, RunShards)
                meets(bench, message, fate)
            for _ in range(60):
                if bench.state(audit) is not AuditState.ANSWERING:
                    break
                for message in bench.take(RunShards):
                    assert isinstance(message, RunShards)
                    meets(bench, message, "answered")
                time_passes(bench, audit)
                tasks.reconcile(Reconcile())
            check(bench, audit)


def check(bench: Bench, audit: str) -> None:
    state, stage = bench.state(audit), "answer"
    assert state in (AuditState.SCORING, AuditState.FAILED)
    entries = {entry.shard_id: entry for entry in bench.ledger.entries(audit, stage)}
    done, dead = bench.ledger.done(audit, stage), bench.ledger.dead(audit, stage)
    assert done.keys() | dead.keys() == entries.keys()
    assert not done.keys() & dead.keys()
    trials = [
        trial.trial_id for entry in entries.values() for trial in get_model(bench.artifacts, entry.digest, Shard).trials
    ]
    assert len(trials) == len(set(trials)) == N_TRIALS
    assert bench.ledger.spent(audit).trials == sum(entries[shard].n_trials for shard in done)
    assert bench.ledger.leases(audit, stage) == []
    digest = view(bench.records, audit).inputs.manifest
    if state is AuditState.SCORING:
        assert digest is not None
        manifest = get_model(bench.artifacts, digest, AuditManifest)
        assert len(manifest.answered) == len(done)
        assert {row.cause for row in manifest.dead} == set(dead.values())
