"""The router's steps on a real ledger, record store and artifact store: each may run twice and harms nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from proctor.domain.errors import BadInputError
from proctor.domain.manifest import AuditManifest
from proctor.domain.messages import (
    AuditScored,
    BuildVariants,
    DecisionWritten,
    EndpointProbed,
    Message,
    ProbeEndpoint,
    Reconcile,
    ScoreAudit,
    StartAudit,
    VariantsBuilt,
)
from proctor.domain.operator_endpoint import OperatorEndpoint
from proctor.domain.trial import ANSWER_STAGE
from proctor.router import tasks
from proctor.router.awaited import PROBE_EVERY_S, PROBED_FOR_S
from proctor.router.ledger.store import MAX_FAILURES
from proctor.router.pools import packs
from proctor.router.pools.sharing import outstanding
from proctor.router.submit.endpoints import resolve_endpoint
from proctor.router.submit.gathering import gather
from proctor.router.submit.submission import submit
from proctor.runtime.artifacts.store import get_model
from proctor.runtime.records.store import AuditState
from tests.integration.router_support import PINNED, Bench, HandedOut, one_by_one, router_bench


@pytest.fixture
def bench(tmp_path: Path, valkey_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    with router_bench(tmp_path, valkey_url, monkeypatch) as bench:
        yield bench


def test_two_submissions_of_a_suite_at_the_same_moment_are_one_audit(bench: Bench) -> None:
    data = gather(bench.suite, bench.home, bench.settings.bundle)
    others = list[str]()

    @contextmanager
    def while_another_does(found: object) -> Iterator[None]:
        # Between the look at what is on record and the writing of it.
        if not others:
            others.append(bench.submit())
        yield

    begun = submit(data, bench.settings, bench.records, bench.artifacts, admit=while_another_does)
    assert [begun.record.audit_id] == others == [audit.audit_id for audit in bench.records.audits()]
    assert begun.resumed


def test_an_audit_goes_from_the_probe_to_the_registry(bench: Bench) -> None:
    audit = bench.submit()
    tasks.start(StartAudit(audit_id=audit))
    assert [type(message) for message in bench.sent] == [ProbeEndpoint]
    tasks.endpoint_probed(EndpointProbed(audit_id=audit, ok=True, model_digest=PINNED, server="test"))
    assert bench.take(BuildVariants)
    tasks.variants_built(VariantsBuilt(audit_id=audit, variants=bench.variants(audit)))
    answered = 0
    while shards := bench.shards():
        for shard in shards:
            answered += 1
            bench.answer(shard, completions=f"sha256:{answered}")
            scoring = [message for message in bench.sent if isinstance(message, ScoreAudit)]
        if scoring:
            break
    manifest = get_model(bench.artifacts, scoring[0].manifest, AuditManifest)
    assert len(manifest.answered) == answered == 4  # 100 canonical and 100 reworded trials in shards of 64
    assert manifest.suite.model.model_version == PINNED
    assert manifest.model_digest_verified
    tasks.scored(AuditScored(audit_id=audit))
    assert bench.state(audit) is AuditState.REGISTERING
    tasks.decision_written(DecisionWritten(audit_id=audit, registry_version="7"))
    assert bench.state(audit) is AuditState.DECIDED
    assert bench.records.registration(audit) == "7"


@pytest.mark.parametrize(
    "again", [{"registry_version": "8"}, {"error": "the registry refused it"}], ids=["written", "refused"]
)
def test_a_decision_that_is_written_again_changes_nothing_of_an_audit_that_is_decided(
    bench: Bench, again: dict[str, str]
) -> None:
    audit = bench.submit()
    tasks.start(StartAudit(audit_id=audit))
    bench.records.advance(audit, AuditState.REGISTERING, expected=[AuditState.PROBING])
    tasks.decision_written(DecisionWritten(audit_id=audit, registry_version="7"))
    before = bench.records.audit(audit)
    assert before.state is AuditState.DECIDED
    bench.sent.clear()
    # As after a sign-off, when the writer writes what holds then.
    tasks.decision_written(DecisionWritten.model_validate({"audit_id": audit, **again}))
    assert bench.records.audit(audit) == before
    assert bench.records.registration(audit) == "7"
    assert bench.sent == []


def test_every_message_twice_changes_nothing(bench: Bench) -> None:
    audit = bench.submit()
    for _ in range(2):
        tasks.start(StartAudit(audit_id=audit))
    bench.sent.clear()
    for _ in range(2):
        tasks.endpoint_probed(EndpointProbed(audit_id=audit, ok=True, model_digest=PINNED))
    assert len(bench.take(BuildVariants)) == 1
    variants = bench.variants(audit)
    for _ in range(2):
        tasks.variants_built(VariantsBuilt(audit_id=audit, variants=variants))
    shards: list[HandedOut] = []
    scorings = 0
    while messages := list(bench.sent):
        bench.sent.clear()
        for message in messages:
            if isinstance(message, ScoreAudit):
                scorings += 1
            for shard in one_by_one([message]):
                shards.append(shard)
                for _ in range(2):
                    bench.answer(shard, completions="sha256:c")
    assert len(shards) == len({shard.shard_id for shard in shards}) == 4
    assert scorings == 1


def test_never_more_shards_are_outstanding_than_two_packs_a_worker_slot(bench: Bench) -> None:
    audit = bench.to_answering()
    assert len(bench.shards()) == outstanding(1, "p", {}, quick=False)
    tasks.reconcile(Reconcile())
    assert bench.shards() == []
    assert bench.ledger.progress(audit, ANSWER_STAGE).planned == 200


def test_an_endpoint_that_serves_another_model_ends_the_audit(bench: Bench) -> None:
    audit = bench.submit()
    tasks.start(StartAudit(audit_id=audit))
    tasks.endpoint_probed(EndpointProbed(audit_id=audit, ok=True, model_digest="sha256:" + "cd" * 32))
    assert bench.state(audit) is AuditState.FAILED
    assert PINNED[:19] in bench.records.audit(audit).detail


def test_an_endpoint_that_is_down_ends_the_audit_with_its_words(bench: Bench) -> None:
    audit = bench.submit()
    tasks.start(StartAudit(audit_id=audit))
    tasks.endpoint_probed(EndpointProbed(audit_id=audit, ok=False, detail="connection refused at URL"))
    assert bench.state(audit) is AuditState.FAILED
    assert bench.records.audit(audit).detail == "connection refused at URL"


def test_an_endpoint_that_is_away_for_a_moment_is_probed_again_until_it_is_back(bench: Bench) -> None:
    audit = bench.submit()
    tasks.start(StartAudit(audit_id=audit))
    away = EndpointProbed(audit_id=audit, ok=False, detail="refused", unavailable=True)
    tasks.endpoint_probed(away)
    assert bench.state(audit) is AuditState.PROBING
    assert bench.records.audit(audit).detail == "refused"
    (again, wait_s) = bench.later[-1]
    assert isinstance(again, ProbeEndpoint)
    assert (again.tried, wait_s) == (1, PROBE_EVERY_S)
    tasks.endpoint_probed(EndpointProbed(audit_id=audit, ok=True, model_digest=PINNED, tried=1))
    assert bench.state(audit) is AuditState.REWORDING


def test_an_endpoint_that_stays_away_ends_the_audit_after_half_a_minute_of_probes(bench: Bench) -> None:
    audit = bench.submit()
    tasks.start(StartAudit(audit_id=audit))
    answer = EndpointProbed(audit_id=audit, ok=False, detail="refused", unavailable=True)
    waited_s, bench.later = 0.0, []
    while bench.state(audit) is AuditState.PROBING:
        tasks.endpoint_probed(answer)
        probes = [message for message, _ in bench.later if isinstance(message, ProbeEndpoint)]
        waited_s += sum(seconds for _, seconds in bench.later)
        answer, bench.later = answer.model_copy(update={"tried": probes[-1].tried if probes else 99}), []
    assert (bench.state(audit), waited_s) == (AuditState.FAILED, PROBED_FOR_S)


def test_a_model_of_which_no_trial_is_answered_gets_no_decision(bench: Bench) -> None:
    audit = bench.to_answering()
    while shards := bench.handed_out():
        for shard in shards:
            bench.answer(shard, error="endpoint gone")
    assert bench.state(audit) is AuditState.FAILED
    assert "endpoint gone" in bench.records.audit(audit).detail
    assert len(bench.ledger.dead(audit, ANSWER_STAGE)) == 4


def test_an_audit_that_lost_a_part_of_an_arm_fails_and_goes_on_with_that_part(bench: Bench) -> None:
    audit = bench.to_answering()
    lost: str | None = None
    while shards := bench.shards():
        for shard in shards:
            lost = lost or shard.shard_id
            bad = shard.shard_id == lost
            bench.answer(shard, completions=None if bad else "sha256:c", error="endpoint gone" if bad else None)
    assert bench.state(audit) is AuditState.FAILED
    assert "64 of 200 trials got no answer; the last failure: endpoint gone" in bench.records.audit(audit).detail
    assert bench.submit() == audit
    assert bench.state(audit) is AuditState.CREATED, "who watches it must not take the old end for a new one"
    tasks.start(StartAudit(audit_id=audit))
    tasks.endpoint_probed(EndpointProbed(audit_id=audit, ok=True, model_digest=PINNED))
    (again,) = bench.shards()
    assert again.shard_id == lost
    bench.answer(again._replace(attempt=1), completions="sha256:late")
    assert bench.take(ScoreAudit)


def test_a_poison_shard_is_given_up_after_its_attempts_and_the_rest_is_scored(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Small shards, so that one is less than a twentieth of its arm.
    monkeypatch.setattr(packs, "shard_trials", lambda *_: 4)
    bench.to_answering()
    poison: str | None = None
    attempts = 0
    scoring: list[Message] = []
    while bench.sent and not scoring:
        messages = list(bench.sent)
        bench.sent.clear()
        for message in messages:
            if isinstance(message, ScoreAudit):
                scoring.append(message)
            for shard in one_by_one([message]):
                poison = poison or shard.shard_id
                bad = shard.shard_id == poison
                attempts += bad
                bench.answer(shard, completions=None if bad else "sha256:c", error="poison" if bad else None)
    assert attempts == MAX_FAILURES
    assert isinstance(scoring[0], ScoreAudit)
    manifest = get_model(bench.artifacts, scoring[0].manifest, AuditManifest)
    assert [dead.cause for dead in manifest.dead] == ["poison"]
    assert len(manifest.answered) == 49


def test_starting_again_keeps_what_was_answered(bench: Bench) -> None:
    audit = bench.to_answering()
    (first, *_) = bench.shards()
    bench.answer(first, completions="sha256:kept")
    assert bench.submit() == audit, "the same suite goes on with its unfinished audit"
    bench.sent.clear()
    tasks.start(StartAudit(audit_id=audit))
    tasks.endpoint_probed(EndpointProbed(audit_id=audit, ok=True, model_digest=PINNED))
    assert not any(isinstance(message, BuildVariants) for message in bench.sent), "its variants stay what they are"
    again: set[str] = set()
    while shards := bench.handed_out():
        for shard in shards:
            again.add(shard.shard_id)
            bench.answer(shard, completions="sha256:c")
    assert first.shard_id not in again
    assert len(again) == 3
    assert bench.ledger.done(audit, ANSWER_STAGE)[first.shard_id] == "sha256:kept"


def test_a_complete_audit_whose_messenger_died_is_finished_by_the_reconciler(bench: Bench) -> None:
    audit = bench.to_answering()
    bench.sent.clear()
    for entry in bench.ledger.entries(audit, ANSWER_STAGE):
        bench.ledger.record(audit, ANSWER_STAGE, entry.shard_id, "sha256:c")  # recorded, and then the worker was killed
    tasks.reconcile(Reconcile())
    assert len(bench.take(ScoreAudit)) == 1
    tasks.reconcile(Reconcile())
    assert bench.take(ScoreAudit) == []


def test_a_finished_audit_is_not_gone_on_with_but_followed_by_another(bench: Bench) -> None:
    audit = bench.submit()
    bench.records.advance(audit, AuditState.DECIDED, expected=[AuditState.CREATED])
    assert bench.submit() == audit.removesuffix("-1") + "-2"


def test_an_endpoint_id_that_nobody_named_is_refused_before_anything_is_on_record(bench: Bench) -> None:
    suite = bench.suite.model_copy(update={"model": bench.suite.model.model_copy(update={"endpoint": "prod-7"})})
    with pytest.raises(BadInputError, match="'prod-7'"):
        submit(gather(suite, bench.home, bench.settings.bundle), bench.settings, bench.records, bench.artifacts)
    assert bench.records.running_audits() == []
    named = bench.settings.model_copy(update={"endpoints": {"prod-7": OperatorEndpoint(url="grpc://triton:8001")}})
    assert resolve_endpoint(suite, named).backend == "triton"
