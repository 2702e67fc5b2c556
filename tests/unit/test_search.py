from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.evidence.search import smallest_count, smallest_fraction


@given(st.integers(1, 100_000))
def test_the_smallest_count_is_the_first_at_which_the_condition_holds(first: int) -> None:
    assert smallest_count(lambda count: count >= first) == first


@given(st.integers(1, 100_000))
def test_a_count_is_found_to_the_width_that_is_asked_for(first: int) -> None:
    found = smallest_count(lambda count: count >= first, width=0.01)
    assert found is not None
    assert first <= found <= first + max(1, 0.011 * first)


def test_a_count_past_the_most_is_never() -> None:
    assert smallest_count(lambda count: count >= 5_000, most=1_000) is None


@given(st.floats(1e-6, 1.0))
def test_the_smallest_fraction_is_the_first_at_which_the_condition_holds(first: float) -> None:
    assert smallest_fraction(lambda fraction: fraction >= first) == pytest.approx(first, rel=1e-9)


def test_a_condition_that_never_holds_has_no_smallest_fraction() -> None:
    assert smallest_fraction(lambda fraction: False) is None
