"""Planning of routers and workers: which messages there are, and which of them a worker sees."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.domain.errors import BadInputError
from proctor.domain.item import Item
from proctor.domain.routing import Condition, ProtocolSection, RouterKind, Sampling
from proctor.domain.trial import ANSWER_STAGE, TRANSMIT_STAGE, Arm, Trial
from proctor.router.transmission import check_options, plan_routers, plan_workers

ITEMS = [
    Item(item_id=f"i{number}", question=f"Question {number}?", choices=("x", "y", "z"), target="y")
    for number in range(3)
]
protocols = st.builds(
    ProtocolSection,
    protocol=st.just("router_worker"),
    max_routers=st.integers(1, 9),
    sampling=st.sampled_from(["nested", "independent"]),
    matched_clean=st.booleans(),
)


def messages(trials: Iterable[Trial]) -> dict[tuple[Arm, str, int], str]:
    return {(t.arm, t.item_id, t.router_index): f"[{t.arm} {t.item_id} {t.router_index}]" for t in trials}


def protocol(**changes: object) -> ProtocolSection:
    return ProtocolSection.model_validate({"protocol": "router_worker", "max_routers": 3, **changes})


def test_the_direct_protocol_plans_nothing() -> None:
    direct = ProtocolSection()
    assert direct.conditions == ()
    assert list(plan_routers(ITEMS, direct, chat=False)) == list(plan_workers(ITEMS, direct, {})) == []


def test_nested_routers_are_asked_once_and_reused_by_every_larger_condition() -> None:
    trials = list(plan_routers(ITEMS[:1], protocol(matched_clean=False), chat=False))
    assert [(t.arm, t.router_index) for t in trials] == [
        (Arm.CLEAN_ROUTER_1, 1), (Arm.NOISY_ROUTER_1, 1), (Arm.NOISY_ROUTER_2, 2), (Arm.NOISY_ROUTER_3, 3),
    ]  # fmt: skip
    *_, third = plan_workers(ITEMS[:1], protocol(matched_clean=False), messages(trials))
    assert third.arm is Arm.NOISY_ROUTER_3
    shown = [f"[noisy_router_{r} i0 {r}]" for r in (1, 2, 3)]
    assert [message in third.prompt for message in shown] == [True, True, True]
    assert sorted(shown, key=third.prompt.index) == shown


def test_independent_conditions_share_no_router() -> None:
    trials = list(plan_routers(ITEMS[:1], protocol(sampling="independent", matched_clean=False), chat=False))
    assert [(t.arm, t.router_index) for t in trials if t.arm is not Arm.CLEAN_ROUTER_1] == [
        (Arm.NOISY_ROUTER_1, 1),
        (Arm.NOISY_ROUTER_2, 1), (Arm.NOISY_ROUTER_2, 2),
        (Arm.NOISY_ROUTER_3, 1), (Arm.NOISY_ROUTER_3, 2), (Arm.NOISY_ROUTER_3, 3),
    ]  # fmt: skip
    assert len({t.prompt for t in trials}) == len(trials)


def test_the_papers_baseline_is_there_without_the_matched_arm_and_r_clean_routers_with_it() -> None:
    assert [
        condition for condition in protocol(matched_clean=False).conditions if condition.kind is RouterKind.CLEAN
    ] == [Condition(RouterKind.CLEAN, 1)]
    assert [condition.routers for condition in protocol().conditions] == [1, 2, 3, 1, 2, 3]


@given(section=protocols)
def test_every_condition_of_every_item_is_answered_once_from_as_many_messages_as_it_has_routers(
    section: ProtocolSection,
) -> None:
    routers = list(plan_routers(ITEMS, section, chat=True))
    workers = list(plan_workers(ITEMS, section, messages(routers)))
    trials = [*routers, *workers]
    assert len({trial.trial_id for trial in trials}) == len(trials)
    assert {trial.stage for trial in routers} == {TRANSMIT_STAGE}
    assert {trial.stage for trial in workers} == {ANSWER_STAGE}
    assert len(workers) == len(ITEMS) * len(section.conditions)
    for trial in workers:
        kind, count = str(trial.arm).split("_router_")
        assert trial.prompt.count(f"[{kind}_router_") == int(count)
        assert trial.prompt.count(f" {trial.item_id} ") == int(count), "no other item's message"
        assert "Question" not in trial.prompt.replace("question", ""), "the worker never sees the original"


@given(section=protocols, lost=st.data())
def test_a_condition_of_which_a_message_is_missing_is_not_asked_and_the_others_are(
    section: ProtocolSection, lost: st.DataObject
) -> None:
    said = messages(plan_routers(ITEMS, section, chat=True))
    key = lost.draw(st.sampled_from(sorted(said)))
    del said[key]
    missing = {
        (condition.arm, key[1])
        for condition in section.conditions
        if any((route.arm, route.place) == (key[0], key[2]) for route in condition.routes(section.sampling))
    }
    asked = {(trial.arm, trial.item_id) for trial in plan_workers(ITEMS, section, said)}
    everything = {(condition.arm, item.item_id) for condition in section.conditions for item in ITEMS}
    assert asked == everything - missing
    assert missing


def test_an_empty_message_is_a_message() -> None:
    said = dict.fromkeys(messages(plan_routers(ITEMS, protocol(), chat=True)), "")
    assert len(list(plan_workers(ITEMS, protocol(), said))) == 6 * len(ITEMS)


def test_an_item_without_options_is_refused_with_its_name() -> None:
    with pytest.raises(BadInputError, match=r"router_worker.*'open' has no options"):
        check_options([ITEMS[0], Item(item_id="open", question="Why?", target="because")])


@pytest.mark.parametrize("sampling", ["nested", "independent"])
def test_routers_of_a_kind_have_different_numbers(sampling: Sampling) -> None:
    routes = {route for count in range(1, 10) for route in Condition(RouterKind.NOISY, count).routes(sampling)}
    assert len({route.number for route in routes}) == len(routes)
