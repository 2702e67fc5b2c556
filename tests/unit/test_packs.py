"""How large shards are and how many travel together, by the pace that was measured."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.router.pools.packs import is_quick, pieces, shard_trials, shards_together

paces = st.floats(1e-6, 1e3)


@pytest.mark.parametrize(("pace_s", "trials"), [(1e-5, 256), (1.0 / 256, 256), (0.006, 128), (0.02, 32), (60.0, 32)])
def test_a_shard_takes_about_a_second(pace_s: float, trials: int) -> None:
    assert shard_trials(pace_s) == trials


def test_while_no_pace_is_known_shards_are_of_64_trials_and_go_alone() -> None:
    assert shard_trials(None) == 64
    assert shards_together(None, 64) == 1


@given(pace_s=paces)
def test_shards_are_a_power_of_two_of_trials_from_32_to_256_and_no_quicker_model_has_smaller_ones(
    pace_s: float,
) -> None:
    assert shard_trials(pace_s) in (32, 64, 128, 256)
    assert shard_trials(pace_s / 2) >= shard_trials(pace_s)


@given(pace_s=paces, trials=st.sampled_from([32, 64, 128, 256]))
def test_a_pack_takes_at_most_three_seconds_unless_one_shard_alone_takes_longer(pace_s: float, trials: int) -> None:
    together = shards_together(pace_s, trials)
    assert 1 <= together <= 16
    assert together == 1 or together * trials * pace_s <= 3.0 * (1 + 1e-9)
    assert together == 16 or (together + 1) * trials * pace_s > 3.0 * (1 - 1e-9)


@pytest.mark.parametrize(
    ("pace_s", "trials", "together", "quick"), [(None, 64, 1, False), (0.01, 64, 4, True), (0.3, 32, 1, False)]
)
def test_a_pool_is_quick_when_its_packs_are_known_to_take_no_longer_than_they_should(
    pace_s: float | None, trials: int, together: int, quick: bool
) -> None:
    assert is_quick(pace_s, trials, together) is quick


@given(n_trials=st.integers(1, 256))
def test_a_shard_is_cut_into_at_most_8_pieces_of_nearly_equal_size_that_hold_all_of_it(n_trials: int) -> None:
    cuts = pieces(n_trials)
    assert [trial for begin, end in cuts for trial in range(begin, end)] == list(range(n_trials))
    sizes = {end - begin for begin, end in cuts}
    assert len(cuts) == min(8, n_trials)
    assert min(sizes) >= 1
    assert max(sizes) - min(sizes) <= 1
