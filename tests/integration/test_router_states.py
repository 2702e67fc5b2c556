"""Every transition that the table of states allows, walked by a real router; and that it allows no other."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from proctor.domain.decision import DecisionEvent, DecisionOutcome
from proctor.domain.estimate import Estimate
from proctor.domain.looks import LookSeen
from proctor.domain.messages import (
    AuditScored,
    DecisionWritten,
    EndpointProbed,
    NotUnderstood,
    RunShards,
    StartAudit,
    VariantsBuilt,
)
from proctor.domain.operator_endpoint import OperatorEndpoint
from proctor.domain.plugins import declared
from proctor.domain.trial import Completion
from proctor.router import tasks
from proctor.router.audit import view
from proctor.router.control import cancel, resume
from proctor.router.stages.registry import stages_with
from proctor.router.states import RUNNING, TABLE, Cause, Transition, before, transitions
from proctor.runtime.records.store import AuditState
from tests.installed_plugins import install
from tests.integration.rewording_rounds import ASKING, wanted
from tests.integration.router_support import PINNED, Bench, one_by_one, router_bench
from tests.integration.test_router_transmission import said

#: Two stages of a plug-in that ask the model under audit one thing an item each.
TOY = """
from proctor.router.stages.asking import AskingStage

class Asks(AskingStage):
    asked_for = "opinions"

    def __init__(self, kind):
        self.kind = kind

    def prompts(self, item, suite):
        return [f"{self.kind}: do you know this one? {item.question}"]

KNOWN, LIKED = Asks("known"), Asks("liked")
"""
N_ITEMS = 4
_UNKNOWN = Estimate(value=None, low=None, high=None, level=0.95, method="none")
#: What the first of two looks saw.
SEEN = LookSeen(
    number=1, n_items=2, information=0.5, level=0.98, alpha=0.02, inflation=_UNKNOWN, score=_UNKNOWN, p_value=1.0,
)  # fmt: skip


@pytest.fixture(autouse=True)
def _toy_stages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    points = {"proctor.stages": {"known": "toy_stages:KNOWN", "liked": "toy_stages:LIKED"}}
    monkeypatch.syspath_prepend(str(install(tmp_path / "toy", {"toy_stages": TOY}, points)))
    declared.cache_clear()
    stages_with.cache_clear()
    yield
    declared.cache_clear()
    stages_with.cache_clear()


@contextmanager
def bench_for(move: Transition, home: Path, valkey_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    """A router whose suite has the stages that a transition is between, and no more."""
    between = (move.before, move.after)
    rows = [{"id": f"q{n}", "question": f"Which is {n}?", "choices": ["x", "y"], "answer": "y"} for n in range(N_ITEMS)]
    (home / "choices.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    protocol = {"protocol": "router_worker", "max_routers": 1} if AuditState.TRANSMITTING in between else {}
    # Only what the solvers say comes back to the perturbation service.
    checked = between == (AuditState.ASKING, AuditState.REWORDING)
    check = {"answering_check": {"solvers": [{"model": "org/solver", "endpoint": "solver"}]}} if checked else {}
    stages = [] if checked else ["known", "liked"][: between.count(AuditState.ASKING)]
    looked = between == (AuditState.SCORING, AuditState.REWORDING)
    design = {"design": {"kind": "sequential", "looks": [0.5, 1.0]}} if looked else {}
    selection = "seeded" if looked else "first"
    with router_bench(
        home,
        valkey_url,
        monkeypatch,
        dataset_config={"benchmark_name": "choices", "path": "choices.jsonl", "selection": selection},
        scoring_config=design,
        perturbation_config={**ASKING, **check},
        protocol_config={**protocol, "stages": stages},
    ) as bench:
        named = {"solver": OperatorEndpoint(url="http://127.0.0.1:7/v1")}
        bench.settings = bench.settings.model_copy(update={"endpoints": named})
        monkeypatch.setattr(tasks, "publish_decision", lambda event: bench.sent.append(event))
        yield bench


def answer_all(bench: Bench) -> None:
    """Answer the stage that is under way to its end, by a model that says nothing of its weights."""
    shards = one_by_one(bench.take(RunShards))
    while shards:
        stage = shards[0].stage
        for shard in shards:
            tasks.shards_answered(said(bench, shard, lambda trial: Completion(trial_id=trial.trial_id, text="y")))
        if shards := [shard for shard in one_by_one(bench.sent) if shard.stage == stage]:
            bench.sent.clear()


def probed(bench: Bench, audit: str) -> None:
    tasks.endpoint_probed(EndpointProbed(audit_id=audit, ok=True, model_digest=PINNED, server="test"))


def variants_built(bench: Bench, audit: str) -> None:
    inputs = view(bench.records, audit).inputs
    variants = bench.variants(audit, inputs.asked_now.items)
    tasks.variants_built(VariantsBuilt(audit_id=audit, variants=variants, look=inputs.look))


def prompts_wanted(bench: Bench, audit: str) -> None:
    tasks.variants_built(wanted(bench, audit, "q1"))


def to(state: AuditState, bench: Bench) -> str:
    """A new audit, taken to a state by the messages that take it there."""
    audit = bench.submit()
    if state is AuditState.CREATED:
        return audit
    if state is AuditState.CANCELLED:
        cancel(bench.records, audit)
        return audit
    tasks.start(StartAudit(audit_id=audit))
    if state is AuditState.PROBING:
        return audit
    if state is AuditState.FAILED:
        tasks.endpoint_probed(EndpointProbed(audit_id=audit, ok=False, detail="HTTP 401"))
        return audit
    probed(bench, audit)
    if state is AuditState.REWORDING:
        return audit
    if state is AuditState.PARAPHRASING:
        prompts_wanted(bench, audit)
        return audit
    variants_built(bench, audit)
    while bench.state(audit) is not state and bench.state(audit) is not AuditState.SCORING:
        answer_all(bench)
    if state in (AuditState.REGISTERING, AuditState.DECIDED):
        tasks.scored(AuditScored(audit_id=audit))
    if state is AuditState.DECIDED:
        tasks.decision_written(DecisionWritten(audit_id=audit, registry_version="7"))
    return audit


def ready(move: Transition, bench: Bench) -> str:
    """An audit to which nothing but the cause has to happen."""
    if move.cause is not Cause.PROBED or move.after in (AuditState.PROBING, AuditState.REWORDING):
        return to(move.before, bench)
    # One that was interrupted in the stage with which it goes on.
    audit = to(move.after, bench)
    tasks.start(StartAudit(audit_id=audit))
    bench.sent.clear()
    return audit


def happen(move: Transition, bench: Bench, audit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the table calls the cause."""
    match move.cause:
        case Cause.STARTED:
            if move.after is AuditState.REGISTERING:
                bench.records.decide(audit, decided(audit).plain())
            tasks.start(StartAudit(audit_id=audit))
        case Cause.PROBED if move.after is AuditState.PROBING:
            tasks.endpoint_probed(EndpointProbed(audit_id=audit, ok=False, unavailable=True, detail="refused"))
        case Cause.PROBED:
            probed(bench, audit)
        case Cause.REWORDED if move.after is AuditState.PARAPHRASING:
            prompts_wanted(bench, audit)
        case Cause.REWORDED:
            variants_built(bench, audit)
        case Cause.STAGE_ENDED:
            answer_all(bench)
        case Cause.SCORED:
            if move.after is AuditState.DECIDED:
                monkeypatch.setattr(tasks, "worker_settings", lambda: without_registry(bench))
            seen = SEEN if move.after is AuditState.REWORDING else None
            tasks.scored(AuditScored(audit_id=audit, look=None if seen is None else seen.number, seen=seen))
        case Cause.WRITTEN:
            tasks.decision_written(DecisionWritten(audit_id=audit, registry_version="7"))
        case Cause.RESUMED:
            resume(bench.records, audit)
        case Cause.FAILED:
            tasks.not_understood(NotUnderstood(audit_id=audit, detail="no worker of that version"))
        case Cause.CANCELLED:
            cancel(bench.records, audit)


def decided(audit: str) -> DecisionEvent:
    return DecisionEvent(
        audit_id=audit, audit_suite_id="router-test", model_id="m", model_digest=PINNED,
        outcome=DecisionOutcome.APPROVE, reasons=(), fingerprint="f", protocol_digest="p", report_digest="sha256:r",
        report_path="/reports/report.html", n_items=N_ITEMS,
    )  # fmt: skip


def without_registry(bench: Bench) -> object:

    return bench.settings.model_copy(update={"registry_uri": ""})


def named(move: Transition) -> str:
    return f"{move.before.value} to {move.after.value} on {move.cause.name.lower()}"


@pytest.mark.parametrize("move", list(transitions()), ids=named)
def test_a_router_walks_the_transition(
    move: Transition, tmp_path: Path, valkey_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with bench_for(move, tmp_path, valkey_url, monkeypatch) as bench:
        audit = ready(move, bench)
        assert bench.state(audit) is move.before
        stage = _stage(bench, audit)
        happen(move, bench, audit, monkeypatch)
        assert bench.state(audit) is move.after
        if move.before is move.after is AuditState.ASKING:
            assert (stage, _stage(bench, audit)) == ("known-1", "liked-1")


def _stage(bench: Bench, audit: str) -> str | None:
    from proctor.router.audit import view
    from proctor.router.stages.registry import ledger_stage

    return ledger_stage(view(bench.records, audit))


@pytest.mark.parametrize("state", list(AuditState))
def test_what_the_table_does_not_allow_is_not_done(
    state: AuditState, tmp_path: Path, valkey_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every message that moves audits of other states leaves one where it is, in whose row it does not stand."""
    with bench_for(Transition(state, Cause.FAILED, state), tmp_path, valkey_url, monkeypatch) as bench:
        audit = to(state, bench)
        inputs = bench.records.audit(audit).inputs
        elsewhere = [
            move
            for move in transitions()
            # A person's word is refused with an error instead, which other tests see.
            if move.cause not in (*TABLE[state].moves, Cause.STAGE_ENDED, Cause.RESUMED, Cause.CANCELLED)
        ]
        for move in {(move.cause, move.after): move for move in elsewhere}.values():
            if move.cause is Cause.STARTED and move.after is AuditState.REGISTERING:
                continue
            happen(move, bench, audit, monkeypatch)
            assert bench.state(audit) is state, named(move)
        assert bench.records.audit(audit).inputs == inputs


def test_the_table_has_every_state_and_ends_are_ends() -> None:
    assert set(TABLE) == set(AuditState)
    assert all(TABLE[state].moves for state in RUNNING)
    assert not any(TABLE[state].moves for state in AuditState if state.final)
    for state in AuditState:
        # From everywhere that is no end, there is a way to a decision, and one to each kind of end.
        if not state.final:
            assert {AuditState.DECIDED, AuditState.CANCELLED, AuditState.FAILED} <= _reached(state)


def _reached(state: AuditState) -> set[AuditState]:
    found, todo = {state}, [state]
    while todo:
        for afters in TABLE[todo.pop()].moves.values():
            todo += [after for after in afters if after not in found]
            found |= set(afters)
    return found


def test_a_move_that_the_table_does_not_know_is_an_error() -> None:
    with pytest.raises(ValueError, match="nothing becomes decided on EndpointProbed"):
        before(Cause.PROBED, AuditState.DECIDED)
