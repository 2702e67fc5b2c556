"""The stage in which routers write: one like any other, from which the answers are planned; each step may run twice."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from proctor.domain.endpoint import EndpointSpec
from proctor.domain.errors import BadInputError
from proctor.domain.manifest import AuditManifest, CompletionSet, RewriteSet
from proctor.domain.messages import (
    EndpointProbed,
    ScoreAudit,
    ShardsAnswered,
    StartAudit,
    VariantsBuilt,
)
from proctor.domain.operator_endpoint import OperatorEndpoint
from proctor.domain.suite import Suite
from proctor.domain.trial import ANSWER_STAGE, Arm, Completion, Decoding, Shard, Trial
from proctor.router import tasks
from proctor.router.audit import view
from proctor.router.submit.endpoints import named_endpoints, resolve_router, router_model
from proctor.router.submit.gathering import gather
from proctor.runtime.artifacts.store import get_model, put_model
from proctor.runtime.records.store import AuditState
from tests.integration.router_support import PINNED, Bench, HandedOut, answered, one_by_one, router_bench

N = 40
ROUTERS = 2
OWN = "http://127.0.0.1:7/v1"
Says = Callable[[Trial], Completion]


@pytest.fixture
def routed(
    tmp_path: Path, valkey_url: str, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., AbstractContextManager[Bench]]:
    rows = [{"id": f"q{n}", "question": f"Which is {n}?", "choices": ["x", "y"], "answer": "y"} for n in range(N)]
    (tmp_path / "choices.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))

    def open_bench(**protocol: Any) -> AbstractContextManager[Bench]:
        return router_bench(
            tmp_path,
            valkey_url,
            monkeypatch,
            dataset_config={"benchmark_name": "choices", "path": "choices.jsonl", "selection": "first"},
            protocol_config={"protocol": "router_worker", "max_routers": ROUTERS, **protocol},
        )

    return open_bench


@pytest.fixture
def bench(routed: Callable[..., AbstractContextManager[Bench]]) -> Iterator[Bench]:
    with routed() as bench:
        yield bench


def writes(trial: Trial) -> Completion:
    return Completion(trial_id=trial.trial_id, text=f"[{trial.arm} {trial.item_id}]", model_digest=PINNED)


def refuses(trial: Trial) -> Completion:
    return Completion(trial_id=trial.trial_id, error="HTTP 401", finish_reason="error")


def trials_of(bench: Bench, shard: HandedOut) -> tuple[Trial, ...]:
    return get_model(bench.artifacts, shard.shard, Shard).trials


def said(bench: Bench, shard: HandedOut, says: Says = writes) -> ShardsAnswered:
    completions = tuple(says(trial) for trial in trials_of(bench, shard))
    return answered(shard, completions=put_model(bench.artifacts, CompletionSet(completions=completions)))


def finish(bench: Bench, stage: str, says: Says = writes) -> list[Trial]:
    """Answer a stage to its end; returns what was asked in it."""
    asked: list[Trial] = []
    while shards := [shard for shard in one_by_one(bench.sent) if shard.stage == stage]:
        bench.sent.clear()
        for shard in shards:
            asked += trials_of(bench, shard)
            tasks.shards_answered(said(bench, shard, says))
    return asked


def scoring_of(bench: Bench) -> ScoreAudit:
    (message,) = bench.sent
    assert isinstance(message, ScoreAudit)
    return message


def test_routers_are_asked_before_the_answers_at_the_audited_model_s_endpoint_with_their_own_decoding(
    bench: Bench,
) -> None:
    audit = bench.to_answering()
    assert bench.state(audit) is AuditState.TRANSMITTING
    shards = one_by_one(bench.sent)
    audited = view(bench.records, audit).inputs.endpoint.model_copy(update={"model_version": PINNED})
    assert {(shard.stage, shard.endpoint, shard.decoding) for shard in shards} == {
        ("transmit-1", audited, Decoding(temperature=0.7, max_tokens=1024))
    }


def test_workers_see_what_the_routers_wrote_and_the_manifest_names_it(bench: Bench) -> None:
    audit = bench.to_answering()
    routers = finish(bench, "transmit-1")
    assert len(routers) == 2 * ROUTERS * N
    assert bench.state(audit) is AuditState.ANSWERING
    workers = finish(bench, ANSWER_STAGE)
    behind = [trial for trial in workers if not trial.arm.is_direct]
    assert len(workers) == 2 * N + 2 * ROUTERS * N
    assert len(behind) == 2 * ROUTERS * N
    second = next(trial for trial in behind if (trial.arm, trial.item_id) == (Arm.NOISY_ROUTER_2, "q7"))
    assert "[noisy_router_1 q7]\n\nMessage 2:\n[noisy_router_2 q7]" in second.prompt
    manifest = get_model(bench.artifacts, scoring_of(bench).manifest, AuditManifest)
    assert manifest.transmitted is not None
    assert manifest.router is not None
    assert (manifest.router.model, manifest.router.calls, manifest.router.failed) == ("m", 2 * ROUTERS * N, 0)
    assert manifest.router.digests == (PINNED,)
    transmitted = get_model(bench.artifacts, manifest.transmitted, RewriteSet)
    assert sum(len(get_model(bench.artifacts, a.shard, Shard).trials) for a in transmitted.answered) == len(routers)


def test_the_workers_of_every_chunk_of_items_see_their_own_routers_messages(
    routed: Callable[..., AbstractContextManager[Bench]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("proctor.runtime.artifacts.chunks.CHUNK_ITEMS", 7)
    with routed() as bench:
        audit = bench.to_answering()
        assert bench.ledger.progress(audit, "transmit-1").planned == 2 * ROUTERS * N

        def loses_the_second_chunk(trial: Trial) -> Completion:
            return refuses(trial) if 7 <= int(trial.item_id[1:]) < 14 else writes(trial)

        assert len(finish(bench, "transmit-1", loses_the_second_chunk)) == 2 * ROUTERS * N
        assert bench.ledger.parts(audit, "transmit-1").of == 6
        behind = [trial for trial in finish(bench, ANSWER_STAGE) if not trial.arm.is_direct]
        assert len({trial.trial_id for trial in behind}) == len(behind) == 2 * ROUTERS * (N - 7)
        assert all(f" {trial.item_id}]" in trial.prompt for trial in behind)


def test_every_message_of_the_stage_twice_changes_nothing(bench: Bench) -> None:
    audit = bench.to_answering()
    tasks.variants_built(VariantsBuilt(audit_id=audit, variants=bench.variants(audit)))
    asked: list[str] = []
    while shards := [shard for shard in one_by_one(bench.sent) if shard.stage == "transmit-1"]:
        bench.sent.clear()
        for shard in shards:
            asked += [trial.trial_id for trial in trials_of(bench, shard)]
            tasks.shards_answered(said(bench, shard))
            tasks.shards_answered(said(bench, shard, refuses))
    assert len(asked) == len(set(asked)) == 2 * ROUTERS * N
    assert len(finish(bench, ANSWER_STAGE)) == 2 * N + 2 * ROUTERS * N


def test_routers_that_answer_nothing_end_the_audit_and_are_asked_again_when_it_is_started_again(bench: Bench) -> None:
    audit = bench.to_answering()
    finish(bench, "transmit-1", refuses)
    assert bench.state(audit) is AuditState.FAILED
    assert (
        "the routers' model m answered none of 160 prompts; the first failure: HTTP 401"
        in bench.records.audit(audit).detail
    )
    assert bench.submit() == audit
    tasks.start(StartAudit(audit_id=audit))
    bench.sent.clear()
    tasks.endpoint_probed(EndpointProbed(audit_id=audit, ok=True, model_digest=PINNED, server="test"))
    assert len(finish(bench, "transmit-2")) == 2 * ROUTERS * N
    assert bench.state(audit) is AuditState.ANSWERING


def test_a_router_s_endpoint_that_is_down_leaves_the_audit_open_with_the_cause(bench: Bench) -> None:
    audit = bench.to_answering()
    while shards := bench.handed_out():
        for shard in shards:
            bench.answer(shard, error="connection refused")
    assert bench.state(audit) is AuditState.FAILED
    assert "connection refused" in bench.records.audit(audit).detail


def test_an_audit_that_stopped_among_the_routers_goes_on_with_the_missing_messages(bench: Bench) -> None:
    audit = bench.to_answering()
    done = one_by_one(bench.sent)[0]
    tasks.shards_answered(said(bench, done))
    assert bench.submit() == audit
    tasks.start(StartAudit(audit_id=audit))
    bench.sent.clear()
    tasks.endpoint_probed(EndpointProbed(audit_id=audit, ok=True, model_digest=PINNED, server="test"))
    assert bench.state(audit) is AuditState.TRANSMITTING
    asked = finish(bench, "transmit-1")
    assert {trial.trial_id for trial in asked}.isdisjoint(trial.trial_id for trial in trials_of(bench, done))
    assert len(asked) == 2 * ROUTERS * N - len(trials_of(bench, done))


def test_one_lost_message_costs_the_conditions_that_need_it_and_no_other(bench: Bench) -> None:
    bench.to_answering()

    def loses_one(trial: Trial) -> Completion:
        return refuses(trial) if (trial.arm, trial.item_id) == (Arm.NOISY_ROUTER_1, "q3") else writes(trial)

    finish(bench, "transmit-1", loses_one)
    behind = {(trial.arm, trial.item_id) for trial in finish(bench, ANSWER_STAGE)}
    assert (Arm.NOISY_ROUTER_1, "q3") not in behind
    assert (Arm.NOISY_ROUTER_2, "q3") not in behind
    assert (Arm.CLEAN_ROUTER_2, "q3") in behind
    assert (Arm.CANONICAL, "q3") in behind


def test_the_direct_protocol_asks_no_router(routed: Callable[..., AbstractContextManager[Bench]]) -> None:
    with routed(protocol="direct") as bench:
        audit = bench.to_answering()
        assert bench.state(audit) is AuditState.ANSWERING
        assert len(finish(bench, ANSWER_STAGE)) == 2 * N
        manifest = get_model(bench.artifacts, scoring_of(bench).manifest, AuditManifest)
        assert (manifest.transmitted, manifest.router) == (None, None)


def test_items_without_options_are_refused_before_anything_is_on_record(bench: Bench) -> None:
    dataset = bench.suite.dataset.model_copy(update={"path": "items.jsonl"})
    with pytest.raises(BadInputError, match="'q0' has no options"):
        gather(bench.suite.model_copy(update={"dataset": dataset}), bench.home, bench.settings.bundle)


def spec(bench: Bench, **router: Any) -> EndpointSpec | None:
    document = bench.suite.plain()
    document["protocol_config"]["router"] |= router
    return resolve_router(Suite.model_validate(document), bench.settings)


def test_a_router_of_its_own_is_found_by_endpoint_by_the_operator_s_name_or_beside_the_audited_model(
    bench: Bench,
) -> None:
    assert spec(bench, model="org/r", endpoint=OWN, version="sha256:" + "1" * 12, chat_template="user") == EndpointSpec(
        backend="openai", url=OWN, served_name="r", model_version="sha256:" + "1" * 12, chat=True
    )
    bench.settings = bench.settings.model_copy(
        update={"endpoints": {"org-r": OperatorEndpoint(url="grpc://127.0.0.1:9001")}}
    )
    named = spec(bench, model="org-r")
    assert named is not None
    assert (named.backend, named.url, named.served_name) == ("triton", "grpc://127.0.0.1:9001", "org-r")
    beside = spec(bench, model="org/r")
    assert beside is not None
    assert (beside.url, beside.served_name, beside.model_version) == (bench.suite.model.endpoint, "r", None)
    itself = spec(bench)
    assert itself is not None
    assert itself.model_version == bench.suite.model.model_version
    assert router_model(bench.suite) == "m"
    assert named_endpoints(bench.suite) == (bench.suite.model.endpoint,)
