"""The decision on a model version: the worst over the suites that it has to pass."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.domain.decision import DecisionEvent, DecisionOutcome, Reason
from proctor.domain.record.sign_off import SignedBy
from proctor.domain.scope import Scope
from proctor.domain.standing import Standing, StandingKind
from proctor.domain.version_decision import AskedSuite, VersionDecision, version_decision

APPROVE, REVIEW, BLOCK = DecisionOutcome.APPROVE, DecisionOutcome.REVIEW, DecisionOutcome.BLOCK
NOW = datetime(2026, 11, 23, tzinfo=UTC)
SEVERITY = {APPROVE: 0, REVIEW: 1, BLOCK: 2}


def standing(audit: str, suite: str, outcome: DecisionOutcome, *, form: str = "1", **changes: object) -> Standing:
    values = {
        "audit_id": audit, "outcome": outcome, "decided": outcome, "kind": StandingKind.DECISION, "at": "2026-11-01",
        "sequence": 1, "audit_suite_id": suite, "model_id": "m", "protocol_digest": f"sha256:{form}",
    }  # fmt: skip
    return Standing.model_validate(values | changes)


def asked(suite: str, audit: str | None, at: str = "2026-11-01", waiting: str = "it runs") -> AskedSuite:
    return AskedSuite(suite, f"sha256:{suite}", audit, at, waiting)


def decided(asked: list[AskedSuite], standings: list[Standing]) -> VersionDecision:
    found = version_decision(asked, standings, NOW)
    assert found is not None
    return found


def test_a_version_that_nobody_asked_about_has_no_decision() -> None:
    assert version_decision([], [], NOW) is None


@pytest.mark.parametrize(
    ("outcomes", "worst"),
    [([APPROVE], APPROVE), ([APPROVE, REVIEW], REVIEW), ([REVIEW, BLOCK, APPROVE], BLOCK), ([APPROVE] * 3, APPROVE)],
)
def test_the_worst_suite_decides(outcomes: list[DecisionOutcome], worst: DecisionOutcome) -> None:
    found = decided([], [standing(f"a-{n}", f"suite-{n}", one) for n, one in enumerate(outcomes)])
    assert (found.outcome, found.suites[0].outcome, len(found.suites)) == (worst, worst, len(outcomes))


def test_a_suite_that_waits_keeps_a_version_from_being_approved_and_not_from_being_blocked() -> None:
    waits = asked("second", None, waiting="nobody has begun it")
    found = decided([waits], [standing("a", "first", APPROVE)])
    assert found.outcome is REVIEW
    assert [reason.text for reason in found.reasons({})] == [
        "second: A decision is missing: nobody has begun it",
    ]
    assert decided([waits], [standing("a", "first", BLOCK)]).outcome is BLOCK


def test_an_audit_that_was_asked_for_and_has_not_decided_waits() -> None:
    assert decided([asked("facts", "a-2")], [standing("a-1", "other", APPROVE)]).outcome is REVIEW
    assert decided([asked("facts", "a-2")], [standing("a-2", "facts", APPROVE)]).outcome is APPROVE


def test_of_the_same_suite_the_audit_that_was_decided_last_counts_whoever_was_signed_last() -> None:
    first = standing("a-1", "facts", APPROVE, kind=StandingKind.SIGN_OFF, sequence=9)
    second = standing("a-2", "facts", REVIEW, sequence=5)
    assert decided([], [first, second]).outcome is REVIEW
    assert decided([], [second, first]).outcome is APPROVE


def test_a_changed_suite_takes_the_place_of_the_one_before() -> None:
    found = decided([], [standing("a-1", "facts", REVIEW), standing("a-2", "facts", APPROVE, form="2")])
    assert (found.outcome, [one.audit_id for one in found.superseded]) == (APPROVE, ["a-1"])
    back = [
        standing("a-1", "facts", REVIEW),
        standing("a-2", "facts", APPROVE, form="2"),
        standing("a-3", "facts", REVIEW),
    ]
    assert decided([], back).outcome is REVIEW


def test_a_suite_that_was_made_easier_is_no_way_past_a_block() -> None:
    blocked = standing("a-1", "facts", BLOCK)
    assert decided([], [blocked, standing("a-2", "facts", APPROVE, form="easier")]).outcome is BLOCK
    assert decided([], [blocked, standing("a-2", "facts", APPROVE)]).outcome is APPROVE
    signed = standing("a-1", "facts", APPROVE, decided=BLOCK, kind=StandingKind.SIGN_OFF)
    assert decided([], [signed, standing("a-2", "facts", APPROVE, form="easier")]).outcome is APPROVE


def test_what_a_trigger_asked_for_gives_way_only_to_what_a_trigger_asked_for_later() -> None:
    ours, theirs = standing("a-1", "facts", REVIEW), standing("a-2", "facts", APPROVE, form="2")
    assert decided([asked("facts", "a-1")], [ours, theirs]).outcome is REVIEW
    both = [asked("facts", "a-1", "2026-11-01"), asked("facts", "a-2", "2026-11-02")]
    assert decided(both, [ours, theirs]).outcome is APPROVE
    together = [asked("facts", "a-1"), asked("facts", "a-2")]
    assert decided(together, [ours, theirs]).outcome is REVIEW


def test_a_suite_that_could_not_be_begun_is_forgotten_when_it_is_asked_for_in_another_form() -> None:
    refused = asked("facts", None, "2026-11-01", "it was refused")
    again = asked("facts", "a-2", "2026-11-02")
    assert decided([refused, again], [standing("a-2", "facts", APPROVE)]).outcome is APPROVE
    assert decided([refused], [standing("a-2", "facts", APPROVE)]).outcome is REVIEW
    unnamed = refused._replace(audit_suite_id="")
    assert decided([unnamed, again], [standing("a-2", "facts", APPROVE)]).outcome is REVIEW


def test_an_approval_past_its_time_is_a_review_whether_the_log_says_so_or_not() -> None:
    over = standing("a", "facts", APPROVE, expires_at="2026-11-22T23:59:59+00:00")
    assert decided([], [over]).outcome is REVIEW
    assert decided([], [over]).reasons({})[0].code == "approval_ended"
    assert decided([], [over.model_copy(update={"expires_at": "2026-11-24T00:00:00+00:00"})]).outcome is APPROVE


def test_the_reasons_name_who_signed_and_then_what_the_gate_had_said() -> None:
    signed = standing(
        "a", "facts", APPROVE, decided=BLOCK, kind=StandingKind.SIGN_OFF, by=SignedBy(name="Ada", via="terminal"),
        reason="The leak is known.", reference="T-1",
    )  # fmt: skip
    first, second = decided([], [signed]).reasons({"a": event("a")})
    assert (first.code, first.text) == ("signed_off", "Ada signed approve after block: The leak is known. (T-1)")
    assert second.code == "because"


def test_of_several_approvals_the_one_that_reaches_least_far_is_shown() -> None:
    found = decided([], [standing("a", "narrow", APPROVE), standing("b", "wide", APPROVE, sequence=7)])
    events = {"a": event("a"), "b": event("b", Scope.WORDING_EXPOSURE)}
    chosen = found.deciding(events)
    assert chosen is not None
    assert chosen.audit_id == "a"


def event(audit: str, scope: Scope = Scope.WORDING) -> DecisionEvent:
    digest = "sha256:" + "1" * 64
    return DecisionEvent(
        audit_id=audit, audit_suite_id="s", model_id="m", model_digest=digest, outcome=APPROVE,
        reasons=(Reason(code="because", text="So."),), fingerprint=digest, protocol_digest=digest,
        report_digest=digest, report_path="r", n_items=1, scope=scope,
    )  # fmt: skip


SUITES = st.sampled_from(["a", "b", "c"])
OUTCOMES = st.sampled_from(list(DecisionOutcome))
STANDINGS = st.lists(st.tuples(SUITES, OUTCOMES, st.sampled_from("12")), max_size=8).map(
    lambda drawn: [standing(f"audit-{n}", suite, one, form=form) for n, (suite, one, form) in enumerate(drawn)]
)
ASKED = st.lists(
    st.tuples(SUITES, st.integers(0, 10), st.integers(1, 9)).map(
        lambda drawn: asked(drawn[0], f"audit-{drawn[1]}", f"2026-11-0{drawn[2]}")
    ),
    max_size=5,
)


@given(ASKED, STANDINGS)
def test_it_is_approved_only_where_everything_that_counts_approves(
    wanted: list[AskedSuite], standings: list[Standing]
) -> None:
    found = version_decision(wanted, standings, NOW)
    if found is None:
        assert not wanted
        assert not standings
        return
    assert SEVERITY[found.outcome] == max(SEVERITY[one.outcome] for one in found.suites)
    newest = {(one.audit_suite_id, one.protocol_digest): one for one in standings}
    blocked = any(one.outcome is BLOCK for one in newest.values())
    assert (found.outcome is BLOCK) is blocked
    # Every suite's id that was asked for, or run, is there.
    assert {one.audit_suite_id for one in found.suites} >= {one.audit_suite_id for one in standings}


@given(ASKED, STANDINGS, st.randoms(use_true_random=False))
def test_the_order_of_what_was_asked_for_changes_nothing(
    wanted: list[AskedSuite], standings: list[Standing], draw: object
) -> None:
    shuffled = list(wanted)
    draw.shuffle(shuffled)  # type: ignore[attr-defined]
    assert version_decision(shuffled, standings, NOW) == version_decision(wanted, standings, NOW)


@given(ASKED, STANDINGS, OUTCOMES)
def test_a_further_suite_never_makes_it_better(
    wanted: list[AskedSuite], standings: list[Standing], outcome: DecisionOutcome
) -> None:
    before = version_decision(wanted, standings, NOW)
    for after in (
        decided(wanted, [*standings, standing("new", "another", outcome)]),
        decided([*wanted, asked("another", None)], standings),
    ):
        assert before is None or SEVERITY[after.outcome] >= SEVERITY[before.outcome]
    assert decided([*wanted, asked("another", None)], standings).outcome is not APPROVE
