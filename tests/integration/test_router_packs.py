"""How the router hands shards out: a part of a stage after another, in packs, as many as the endpoint's pool takes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from proctor.domain.manifest import AnsweredShard, AuditManifest, VariantSet
from proctor.domain.messages import (
    Message,
    Priority,
    Reconcile,
    RunShards,
    ScoreAudit,
    ShardAnswer,
    ShardsAnswered,
    ShardsGraded,
    TakeOn,
    VariantsBuilt,
)
from proctor.domain.suite_budget import BudgetSection
from proctor.domain.trial import ANSWER_STAGE, Shard
from proctor.router import tasks
from proctor.router.audit import view
from proctor.router.ledger.store import MAX_LOSSES
from proctor.router.pools.sharing import outstanding
from proctor.runtime.artifacts.chunks import put_variants
from proctor.runtime.artifacts.store import get_model
from proctor.runtime.records.store import AuditState
from proctor.runtime.redis.presence import Held
from tests.integration.router_support import Bench, HandedOut, one_by_one, router_bench
from tests.misbehaviour import ENGINE_DIED

CHUNK = 20
N_CHUNKS = 5


@pytest.fixture
def bench(tmp_path: Path, valkey_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    monkeypatch.setattr("proctor.runtime.artifacts.chunks.CHUNK_ITEMS", CHUNK)
    with router_bench(tmp_path, valkey_url, monkeypatch) as bench:
        yield bench


def pool_of(bench: Bench) -> str:
    audit = bench.submit()
    return view(bench.records, audit).inputs.endpoint.pool


def quick(bench: Bench) -> None:
    """The endpoint was seen to answer a hundred thousand trials a second."""
    bench.pools.note_pace(pool_of(bench), n_trials=1000, seconds=0.01)


def trials_of(bench: Bench, shard: str) -> list[str]:
    return [trial.trial_id for trial in get_model(bench.artifacts, shard, Shard).trials]


def manifest_of(bench: Bench, messages: list[Message]) -> AuditManifest:
    (scoring,) = (message for message in messages if isinstance(message, ScoreAudit))
    return get_model(bench.artifacts, scoring.manifest, AuditManifest)


def answer_all(bench: Bench) -> AuditManifest:
    """Answer all that is handed out until the audit is to be scored."""
    while shards := one_by_one(bench.sent):
        bench.sent.clear()
        for shard in shards:
            bench.answer(shard, completions=f"sha256:{shard.shard_id}")
    return manifest_of(bench, bench.sent)


def worker_dies_with(bench: Bench, shard: HandedOut) -> None:
    bench.presence.holding("w", [Held(shard.audit_id, shard.stage, shard.shard_id, shard.attempt)])
    bench.presence.withdraw("w")


def test_a_stage_is_planned_part_by_part_as_its_queue_runs_low_and_its_size_is_known_from_the_start(
    bench: Bench,
) -> None:
    audit = bench.to_answering()
    laid = [bench.ledger.parts(audit, ANSWER_STAGE).laid]
    assert bench.ledger.progress(audit, ANSWER_STAGE).planned == 2 * CHUNK * N_CHUNKS
    while shards := one_by_one(bench.sent):
        bench.sent.clear()
        for shard in shards:
            bench.answer(shard, completions="sha256:c")
            laid.append(bench.ledger.parts(audit, ANSWER_STAGE).laid)
    assert laid[0] < N_CHUNKS
    assert laid == sorted(laid)
    assert laid[-1] == N_CHUNKS
    answered = [trial for row in manifest_of(bench, bench.sent).answered for trial in trials_of(bench, row.shard)]
    assert len(answered) == len(set(answered)) == 2 * CHUNK * N_CHUNKS


def test_no_shard_crosses_the_chunks_of_items(bench: Bench) -> None:
    bench.to_answering()
    manifest = answer_all(bench)
    for row in manifest.answered:
        items = {int(trial.item_id[1:]) for trial in get_model(bench.artifacts, row.shard, Shard).trials}
        assert len({item // CHUNK for item in items}) == 1


def test_of_a_quick_endpoint_many_shards_are_asked_with_one_message(bench: Bench) -> None:
    quick(bench)
    bench.to_answering()
    (message,) = bench.sent
    assert isinstance(message, RunShards)
    assert len(message.shards) == 2 * N_CHUNKS
    tasks.shards_answered(
        ShardsAnswered(
            audit_id=message.audit_id,
            answers=tuple(
                ShardAnswer(shard_id=shard.shard_id, attempt=shard.attempt, completions="sha256:c", n_trials=CHUNK)
                for shard in message.shards
            ),
            seconds=0.01,
        )
    )
    assert len(manifest_of(bench, bench.sent).answered) == 2 * N_CHUNKS


def test_the_pace_of_an_answer_makes_the_next_shards_larger_and_their_packs_fuller(bench: Bench) -> None:
    bench.to_answering()
    (first, second) = bench.shards()
    bench.answer(first, completions="sha256:c", n_trials=CHUNK, seconds=CHUNK / 1e5)
    assert len(bench.shards()) > 1
    assert bench.pools.pace(second.endpoint.pool) == pytest.approx(1e-5)


def test_every_worker_slot_that_announced_itself_gets_its_packs(bench: Bench) -> None:
    bench.presence.announce("w", "inference", 2)
    bench.presence.announce("s", "scorer", 7)
    bench.to_answering()
    assert len(bench.shards()) == outstanding(2, "p", {}, quick=False) == 2


def test_a_shard_that_was_set_back_goes_alone_and_those_beside_it_together(bench: Bench) -> None:
    quick(bench)
    bench.to_answering()
    first, second, *rest = bench.shards()
    for shard in (first, second):
        bench.answer(shard, error="no room")
    bench.answer(rest[0], completions="sha256:c")
    assert [len(message.shards) for message in bench.sent if isinstance(message, RunShards)] == [1, 1]


def test_what_cannot_be_sent_is_queued_again_and_holds_no_credit(bench: Bench) -> None:
    audit = bench.to_answering()
    (first, _) = bench.shards()
    bench.answer(first, error="no room")
    held = bench.pools.held(first.endpoint.pool, audit)
    bench.broker_is_down = True
    tasks.reconcile(Reconcile())
    assert bench.pools.held(first.endpoint.pool, audit).keys() == held.keys()
    assert first.shard_id not in bench.ledger.leases(audit, ANSWER_STAGE)
    bench.broker_is_down = False
    tasks.reconcile(Reconcile())
    assert [shard.shard_id for shard in bench.shards()] == [first.shard_id]


def test_a_lost_worker_s_shards_are_another_s_at_the_next_look(bench: Bench) -> None:
    bench.to_answering()
    first, second = bench.shards()
    worker_dies_with(bench, first)
    tasks.reconcile(Reconcile())
    (again,) = bench.shards()
    assert (again.shard_id, again.attempt) == (first.shard_id, 2)
    assert bench.presence.lost() == []
    bench.answer(second, completions="sha256:c")


def test_a_trial_that_kills_every_worker_is_the_only_one_that_is_given_up(bench: Bench) -> None:
    audit = bench.to_answering()
    poison, losses = "", 0
    while bench.state(audit) is AuditState.ANSWERING:
        for shard in bench.handed_out():
            trials = trials_of(bench, shard.shard)
            poison = poison or trials[7]
            if poison in trials:
                losses += 1
                worker_dies_with(bench, shard)
            else:
                bench.answer(shard, completions=f"sha256:{shard.shard_id}")
    digest = view(bench.records, audit).inputs.manifest
    assert digest is not None
    manifest = get_model(bench.artifacts, digest, AuditManifest)
    (dead,) = manifest.dead
    assert trials_of(bench, dead.shard) == [poison]
    answered = [trial for row in manifest.answered for trial in trials_of(bench, row.shard)]
    assert len(answered) == len(set(answered)) == 2 * CHUNK * N_CHUNKS - 1
    assert losses <= 2 * MAX_LOSSES


def test_a_shard_that_is_to_be_split_and_cannot_be_read_is_given_up_with_the_reason(bench: Bench) -> None:
    audit = bench.to_answering()
    first, _ = bench.shards()
    path = Path(bench.settings.artifacts) / first.shard[7:9] / f"{first.shard[7:]}.z"
    path.unlink()
    for _ in range(2):
        worker_dies_with(bench, first)
        tasks.reconcile(Reconcile())
        first = next((shard for shard in bench.shards() if shard.shard_id == first.shard_id), first)
    assert "cannot be read to be split" in bench.ledger.dead(audit, ANSWER_STAGE)[first.shard_id]


def test_what_a_leaving_worker_hands_back_goes_to_another_at_once_and_is_no_failure(bench: Bench) -> None:
    bench.to_answering()
    first, _ = bench.shards()
    for attempt in range(1, 6):
        bench.answer(first._replace(attempt=attempt), error="the worker left", handed_back=True)
        (again,) = bench.shards()
        assert (again.shard_id, again.attempt, again.last_attempt) == (first.shard_id, attempt + 1, False)


def test_an_endpoint_that_is_away_is_asked_one_shard_after_a_while_and_all_again_when_it_is_back(bench: Bench) -> None:
    audit = bench.to_answering()
    pool = pool_of(bench)
    for shard in bench.shards():
        bench.answer(shard, error="connection refused", unreachable=True)
    assert {type(message) for message, _ in bench.later} == {TakeOn}
    tasks.take_on(TakeOn(audit_id=audit))
    assert bench.shards() == [], "its wait is not over"
    for _ in range(4):
        the_wait_is_over(bench, pool)
        tasks.take_on(TakeOn(audit_id=audit))
        (probing,) = bench.shards()
        bench.answer(probing, error="connection refused", unreachable=True)
    the_wait_is_over(bench, pool)
    tasks.take_on(TakeOn(audit_id=audit))
    (probing,) = bench.shards()
    bench.answer(probing, completions="sha256:c")
    assert len(bench.shards()) == outstanding(1, "p", {}, quick=False)
    assert bench.ledger.dead(audit, ANSWER_STAGE) == {}


def the_wait_is_over(bench: Bench, pool: str, **changes: int) -> None:
    with redis.Redis.from_url(bench.settings.ledger_url) as client:
        client.hset(f"proctor:pool:{{{pool}}}:breaker", mapping={"until": 0, **changes})


def test_an_endpoint_that_stays_away_fails_the_audit_which_goes_on_when_it_is_started_again(bench: Bench) -> None:
    audit = bench.to_answering()
    for shard in bench.shards():
        bench.answer(shard, error="connection refused", unreachable=True)
    the_wait_is_over(bench, pool_of(bench), since=0)
    tasks.take_on(TakeOn(audit_id=audit))
    (probing,) = bench.shards()
    bench.answer(probing, error="no route to host", unreachable=True)
    assert bench.state(audit) is AuditState.FAILED
    detail = bench.records.audit(audit).detail
    assert detail.startswith("the model m: the endpoint http://127.0.0.1:9/v1 has been away for")
    assert detail.endswith("the last failure: no route to host")
    assert bench.start_again() == audit
    (probing,) = bench.shards()
    bench.answer(probing, completions="sha256:c")
    assert len(bench.shards()) == outstanding(1, "p", {}, quick=False)


def test_a_server_that_is_ready_and_answers_no_prompt_is_not_back(bench: Bench) -> None:
    audit = bench.to_answering()
    for shard in bench.shards():
        bench.answer(shard, error=f"Error generating stream: {ENGINE_DIED}", unreachable=True)
    # Another audit of the same model begins: its server says that it is ready.
    bench.another_suite("another")
    other = bench.to_answering()
    (probing,) = bench.shards()
    assert bench.pools.away_for(pool_of(bench)) is not None
    bench.answer(probing, error=f"Error generating stream: {ENGINE_DIED}", unreachable=True)
    assert bench.shards() == []
    the_wait_is_over(bench, pool_of(bench))
    tasks.take_on(TakeOn(audit_id=other))
    (probing,) = bench.shards()
    bench.answer(probing, completions="sha256:c")
    assert bench.pools.away_for(pool_of(bench)) is None
    for one in (audit, other):
        assert bench.ledger.dead(one, ANSWER_STAGE) == {}
        assert bench.state(one) is AuditState.ANSWERING


def test_two_audits_of_an_endpoint_share_it(bench: Bench) -> None:
    bench.presence.announce("w", "inference", 2)
    first = bench.to_answering()
    waiting = bench.shards()
    bench.another_suite("second")
    second = bench.to_answering()
    assert bench.shards() == [], "the first has it all by now"
    bench.answer(waiting[0], completions="sha256:c")
    assert {shard.audit_id for shard in bench.shards()} == {second}
    held = [len(bench.pools.held(waiting[0].endpoint.pool, audit)) for audit in (first, second)]
    assert held == [1, 1]


def test_an_urgent_audit_gets_what_is_free_and_the_others_go_on_when_it_has_ended(bench: Bench) -> None:
    low = bench.to_answering(Priority.LOW)
    shards = bench.shards()
    bench.another_suite("urgent")
    high = bench.to_answering(Priority.HIGH)
    for shard in shards:
        bench.answer(shard, completions="sha256:c")
    urgent = [message for message in bench.sent if isinstance(message, RunShards)]
    assert {(message.audit_id, message.queue) for message in urgent} == {(high, "inference.high")}
    while not any(isinstance(message, ScoreAudit) for message in bench.sent):
        for shard in bench.shards():
            assert shard.audit_id == high
            bench.answer(shard, completions="sha256:c")
    assert {shard.audit_id for shard in bench.shards()} == {low}


def test_an_audit_with_less_than_the_budget_s_trials_planned_is_asked_and_one_with_more_is_not(bench: Bench) -> None:
    bench.suite = bench.suite.model_copy(update={"budget": BudgetSection(max_trials=199)})
    audit = bench.to_answering()
    assert bench.sent == []
    assert bench.state(audit) is AuditState.FAILED
    assert "max_trials is 199, and it comes to 200 trials" in bench.records.audit(audit).detail
    bench.suite = bench.suite.model_copy(update={"budget": BudgetSection(max_trials=200)})
    assert bench.start_again() == audit
    assert len(answer_all(bench).answered) == 2 * N_CHUNKS


def test_an_audit_that_has_used_its_tokens_fails_and_goes_on_with_a_raised_budget(bench: Bench) -> None:
    bench.suite = bench.suite.model_copy(update={"budget": BudgetSection(max_tokens=100)})
    audit = bench.to_answering()
    first, second = bench.shards()
    bench.answer(first, completions="sha256:a", input_tokens=60, output_tokens=10)
    assert bench.shards()
    bench.answer(second, completions="sha256:b", input_tokens=30)
    assert bench.state(audit) is AuditState.FAILED
    assert "100 tokens were used" in bench.records.audit(audit).detail
    bench.suite = bench.suite.model_copy(update={"budget": BudgetSection(max_tokens=10**6)})
    assert bench.start_again() == audit
    assert first.shard_id not in {shard.shard_id for shard in one_by_one(bench.sent)}
    assert len(answer_all(bench).answered) == 2 * N_CHUNKS


def test_answers_are_graded_as_they_come_and_the_manifest_names_the_grades_of_the_same_completions(
    bench: Bench,
) -> None:
    audit = bench.to_answering()
    first, second = bench.shards()
    for shard in (first, second):
        bench.answer(shard, completions=f"sha256:{shard.shard_id}")
        bench.answer(shard, completions="sha256:late")
    asked = [row for message in bench.grading for row in message.shards]
    assert asked == [
        AnsweredShard(shard=shard.shard, completions=f"sha256:{shard.shard_id}") for shard in (first, second)
    ]
    assert {message.extractor for message in bench.grading} == {"auto"}
    graded = (
        asked[0].model_copy(update={"grades": "sha256:g"}),
        asked[1].model_copy(update={"completions": "of another text", "grades": "sha256:h"}),
    )
    for _ in range(2):
        tasks.shards_graded(ShardsGraded(audit_id=audit, graded=graded))
    grades = {row.shard: row.grades for row in answer_all(bench).answered}
    late = asked[0].model_copy(update={"grades": "sha256:late"})
    tasks.shards_graded(ShardsGraded(audit_id=audit, graded=(late,)))
    assert bench.ledger.graded(audit, ANSWER_STAGE)[first.shard][1] == "sha256:g", "it is being scored by now"
    assert grades.pop(first.shard) == "sha256:g"
    assert set(grades.values()) == {None}


def test_an_audit_without_a_single_rewording_fails_and_asks_nobody(bench: Bench) -> None:
    audit = bench.to_answering()
    bench.sent.clear()
    bench.another_suite("none")
    none = bench.submit()
    items = view(bench.records, none).inputs.items
    empty = put_variants(bench.artifacts, items, VariantSet(variants=(), rejections=(), encoder="none"))
    bench.records.advance(none, AuditState.REWORDING, expected=[AuditState.CREATED])
    tasks.variants_built(VariantsBuilt(audit_id=none, variants=empty))
    assert bench.state(none) is AuditState.FAILED
    assert bench.records.audit(none).detail == "no item has a rewording, so there is nothing to ask"
    assert bench.sent == []
    assert bench.state(audit) is AuditState.ANSWERING
