"""How worker slots are shared between the pools that have work, and how much of each may be outstanding."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.router.pools.sharing import outstanding, shares

names = st.text("abcdef", min_size=1, max_size=4)
demands = st.dictionaries(names, st.integers(1, 40), min_size=1, max_size=8)


@given(slots=st.integers(0, 64), wanted=demands)
def test_shares_are_of_all_that_want_and_no_more_than_there_are_slots_or_one_each(
    slots: int, wanted: dict[str, int]
) -> None:
    shared = shares(slots, wanted)
    assert shared.keys() == wanted.keys()
    assert sum(shared.values()) <= max(slots, len(wanted))


@given(slots=st.integers(0, 64), wanted=demands)
def test_each_has_what_it_wants_or_an_equal_part_at_least(slots: int, wanted: dict[str, int]) -> None:
    for pool, share in shares(slots, wanted).items():
        assert 1 <= share <= wanted[pool]
        assert share >= min(wanted[pool], max(1, slots // len(wanted)))


@given(slots=st.integers(0, 64), wanted=demands)
def test_no_slot_is_left_over_while_a_pool_wants_one(slots: int, wanted: dict[str, int]) -> None:
    shared = shares(slots, wanted)
    assert sum(shared.values()) >= min(slots, sum(wanted.values()))


@given(slots=st.integers(0, 64), wanted=demands)
def test_of_two_that_want_more_none_has_over_one_slot_more_than_the_other(slots: int, wanted: dict[str, int]) -> None:
    unmet = [share for pool, share in shares(slots, wanted).items() if share < wanted[pool]]
    assert not unmet or max(unmet) - min(unmet) <= 1
    assert not unmet or max(shares(slots, wanted).values()) <= max(unmet) + 1


@given(slots=st.integers(0, 64), wanted=demands)
def test_all_routers_share_alike(slots: int, wanted: dict[str, int]) -> None:
    assert shares(slots, wanted) == shares(slots, dict(reversed(wanted.items())))


def test_what_does_not_come_out_even_goes_to_the_first() -> None:
    assert shares(8, {"c": 9, "a": 9, "b": 9}) == {"a": 3, "b": 3, "c": 2}
    assert shares(8, {"a": 1, "b": 2, "c": 9}) == {"a": 1, "b": 2, "c": 5}
    assert shares(1, {"a": 9, "b": 9}) == {"a": 1, "b": 1}


@pytest.mark.parametrize(("quick", "packs"), [(True, 8), (False, 4)])
def test_a_pool_that_is_alone_has_every_slot_and_of_a_slow_one_nothing_waits(quick: bool, packs: int) -> None:
    assert outstanding(4, "p", {}, quick=quick) == packs


@pytest.mark.parametrize("quick", [True, False])
def test_beside_another_a_pool_has_its_share_and_nothing_waits(quick: bool) -> None:
    assert outstanding(4, "p", {"other": 9}, quick=quick) == 2
    assert outstanding(4, "p", {"other": 1}, quick=quick) == 3
    assert outstanding(1, "p", {"other": 9}, quick=quick) == 1


def test_a_worker_that_does_not_announce_itself_is_there_all_the_same() -> None:
    assert outstanding(0, "p", {}, quick=True) == outstanding(1, "p", {}, quick=True) == 2
