"""Rotation: no model is shown an item twice, no item comes back, and none is lost."""

from __future__ import annotations

from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.domain.errors import BadInputError
from proctor.domain.item import Item
from proctor.domain.rotation import Every, Rotation
from proctor.studies.datasets.rotating import added, begun, retired, rotated, shown_to

DAY = date(2026, 1, 31)


def items(first: int, count: int) -> list[Item]:
    return [
        Item(item_id=f"i{n}", question=f"What is {n} and one?", target=str(n + 1)) for n in range(first, first + count)
    ]


def state(active: int = 4, pool: int = 6, every: Every = Every.QUARTERLY) -> Rotation:
    return begun(items(0, active), items(active, pool), every=every, seed=1, today=DAY)


@pytest.mark.parametrize(
    ("every", "day", "due"),
    [
        (Every.QUARTERLY, DAY, date(2026, 4, 30)),
        (Every.QUARTERLY, date(2026, 11, 24), date(2027, 2, 24)),
        (Every.QUARTERLY, date(2023, 11, 30), date(2024, 2, 29)),
        (Every.MONTHLY, date(2026, 12, 31), date(2027, 1, 31)),
        (Every.MONTHLY, DAY, date(2026, 2, 28)),
        (Every.HALF_YEARLY, date(2026, 8, 31), date(2027, 2, 28)),
        (Every.YEARLY, date(2024, 2, 29), date(2025, 2, 28)),
    ],
)
def test_a_rotation_is_due_on_the_same_day_of_a_later_month(every: Every, day: date, due: date) -> None:
    assert every.after(day) == due


def test_a_rotation_retires_what_is_asked_and_says_why() -> None:
    later = DAY + timedelta(days=90)
    done = rotated(state(), reason="the schedule", today=later)
    assert set(done.retired) == {"i0", "i1", "i2", "i3"}
    assert len(done.promoted) == len(done.state.active) == 4
    assert not set(done.retired) & set(done.promoted)
    assert {(one.reason, one.on) for one in done.state.retired} == {("the schedule", later)}
    assert (done.state.rotated, done.state.due) == (later, date(2026, 8, 1))


def test_what_was_shown_to_no_model_may_stay() -> None:
    _, shown = shown_to(state(), "m", 2)
    done = rotated(shown, reason="x", today=DAY, only_shown=True)
    assert set(done.retired) == set(shown.shown["m"])
    with pytest.raises(BadInputError, match="nothing to replace"):
        rotated(state(), reason="x", today=DAY, only_shown=True)


def test_a_pool_that_is_short_is_told_with_what_to_do() -> None:
    with pytest.raises(
        BadInputError, match=r"4 items are to be replaced, and 2 are held out; add some with --add FILE"
    ):
        rotated(state(pool=2), reason="x", today=DAY)
    _, shown = shown_to(state(pool=2), "m", 2)
    assert set(rotated(shown, reason="x", today=DAY, partly=True).retired) == set(shown.shown["m"])
    with pytest.raises(BadInputError, match="0 are held out"):
        rotated(state(pool=0), reason="x", today=DAY, partly=True)


def test_a_model_is_shown_what_it_has_not_seen_until_there_is_nothing_left() -> None:
    first, after = shown_to(state(), "m", 3)
    second, after = shown_to(after, "m", None)
    assert set(first) | set(second) == {"i0", "i1", "i2", "i3"}
    with pytest.raises(BadInputError, match=r"'m' was shown 4 items .* 0 of those .* not any"):
        shown_to(after, "m", None)
    assert len(shown_to(after, "another", 4)[0]) == 4


def test_single_items_are_retired_at_once_and_the_schedule_stays() -> None:
    done = retired(state(), ["i1"], reason="quoted", today=DAY + timedelta(days=5))
    assert (done.retired, len(done.promoted), done.state.due) == (("i1",), 1, state().due)
    with pytest.raises(BadInputError, match="'i9' is none of the items that are asked"):
        retired(state(), ["i9"], reason="x", today=DAY)
    with pytest.raises(BadInputError, match="no item would be left"):
        retired(state(active=1, pool=0), ["i0"], reason="x", today=DAY)


def test_nothing_that_was_there_comes_in_again_under_whatever_name() -> None:
    gone = retired(state(), ["i1"], reason="x", today=DAY).state
    for item in (*items(0, 1), *items(1, 1), *items(5, 1), items(1, 1)[0].model_copy(update={"item_id": "new"})):
        with pytest.raises(BadInputError, match="already, or asks what one of them asks"):
            added(gone, [item])
    with pytest.raises(BadInputError, match="already"):
        added(gone, [*items(50, 1), *items(50, 1)])
    assert len(added(gone, items(50, 3)).pool) == len(gone.pool) + 3


moves = st.lists(
    st.one_of(
        st.tuples(st.just("draw"), st.sampled_from("abc"), st.integers(1, 5)),
        st.tuples(st.just("rotate"), st.booleans(), st.booleans()),
        st.tuples(st.just("retire"), st.integers(0, 40), st.just(0)),
        st.tuples(st.just("add"), st.integers(1, 5), st.just(0)),
    ),
    max_size=20,
)


@given(moves)
def test_whatever_is_done_nothing_is_shown_twice_lost_or_brought_back(
    done: list[tuple[object, object, object]],
) -> None:
    now, n_made = state(), 10
    for kind, first, second in done:
        before = now
        try:
            if kind == "draw":
                drawn, now = shown_to(now, str(first), int(str(second)))
                assert set(drawn) <= {one.item_id for one in before.active}
            elif kind == "rotate":
                now = rotated(now, reason="x", today=DAY, only_shown=bool(first), partly=bool(second)).state
            elif kind == "retire":
                now = retired(now, [f"i{first}"], reason="x", today=DAY).state
            else:
                now = added(now, items(n_made, int(str(first))))
                n_made += int(str(first))
        except BadInputError:
            assert now == before
        for ids in now.shown.values():
            assert len(set(ids)) == len(ids)
        places = [one.item_id for one in (*now.active, *now.pool, *now.retired)]
        assert sorted(places) == sorted(f"i{n}" for n in range(n_made))
        assert {one.item_id for one in before.retired} <= {one.item_id for one in now.retired}
        # What waits was shown to nobody.
        assert not {one.item_id for one in now.pool} & {one for ids in now.shown.values() for one in ids}
