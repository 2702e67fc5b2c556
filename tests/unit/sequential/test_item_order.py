"""The order in which items are asked, and where it is cut."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from proctor.domain.item import Item
from proctor.evidence.sequential.item_order import cut_at, in_clusters


def item(number: int, cluster: str | None) -> Item:
    return Item(item_id=f"i{number}", question="?", target="1", cluster=cluster)


def in_clusters_of(sizes: list[int]) -> list[Item]:
    labels = [f"c{place}" for place, size in enumerate(sizes) for _ in range(size)]
    return [item(number, label) for number, label in enumerate(labels)]


def test_without_clusters_the_order_stays_as_it_was_drawn() -> None:
    items = [item(number, None) for number in (5, 2, 9, 1)]
    assert in_clusters(items, 42) == tuple(items)


def test_items_of_a_cluster_come_one_after_the_other() -> None:
    items = [item(number, f"c{number % 7}" if number % 3 else None) for number in range(60)]
    ordered = in_clusters(items, 42)
    assert sorted(one.item_id for one in ordered) == sorted(one.item_id for one in items)
    places: dict[str, list[int]] = {}
    for place, one in enumerate(ordered):
        if one.cluster is not None:
            places.setdefault(one.cluster, []).append(place)
    for own in places.values():
        assert own == list(range(own[0], own[0] + len(own)))


def test_the_order_follows_from_the_seed_and_from_nothing_else() -> None:
    items = in_clusters_of([3, 1, 4, 1, 5])
    assert in_clusters(items, 1) == in_clusters(items[::-1], 1)
    assert len({tuple(one.item_id for one in in_clusters(items, seed)) for seed in range(20)}) > 10


def test_a_large_cluster_comes_early_no_more_often_than_a_small_one() -> None:
    items, seeds = in_clusters_of([30, 1, 1, 1, 1, 1]), 3_000
    firsts = Counter(in_clusters(items, seed)[0].cluster for seed in range(seeds))
    assert stats.chisquare([firsts[f"c{place}"] for place in range(6)]).pvalue > 1e-4


def test_every_cluster_is_as_likely_in_the_first_ones_and_so_is_every_pair() -> None:
    """A prefix of whole clusters is a simple random sample of them."""
    sizes, seeds, first = [2, 7, 1, 3, 5], 3_000, 2
    singles, pairs = Counter[str | None](), Counter[frozenset[str | None]]()
    for seed in range(seeds):
        drawn = list(dict.fromkeys(one.cluster for one in in_clusters(in_clusters_of(sizes), seed)))[:first]
        singles.update(drawn)
        pairs[frozenset(drawn)] += 1
    assert all(stats.binomtest(singles[f"c{place}"], seeds, first / 5).pvalue > 1e-4 for place in range(5))
    assert len(pairs) == 10
    assert stats.chisquare(list(pairs.values())).pvalue > 1e-4


def test_items_without_a_cluster_are_cut_where_the_shares_end() -> None:
    items = [item(number, None) for number in range(10)]
    assert [len(part) for part in cut_at(items, [0.2, 0.55, 1.0])] == [2, 4, 4]


def test_a_cut_within_a_cluster_moves_to_its_nearer_end() -> None:
    items = in_clusters_of([4, 10, 6])
    assert [len(part) for part in cut_at(items, [0.3, 1.0])] == [4, 16]
    assert [len(part) for part in cut_at(items, [0.6, 1.0])] == [14, 6]


def test_a_part_may_be_empty_where_a_cluster_holds_both_cuts() -> None:
    assert [len(part) for part in cut_at(in_clusters_of([2, 18]), [0.15, 0.2, 1.0])] == [2, 0, 18]


@given(
    sizes=st.lists(st.integers(1, 12), min_size=1, max_size=15),
    shares=st.lists(st.floats(0.01, 0.99), max_size=6, unique=True).map(sorted),
    seed=st.integers(0, 1_000),
)
def test_no_cluster_is_ever_cut_and_nothing_is_lost(sizes: list[int], shares: list[float], seed: int) -> None:
    items = in_clusters(in_clusters_of(sizes), seed)
    parts = cut_at(items, [*shares, 1.0])
    assert [one for part in parts for one in part] == list(items)
    assert len(parts) == len(shares) + 1
    homes = [{one.cluster for one in part} for part in parts]
    assert sum(map(len, homes)) == len(sizes)


@pytest.mark.parametrize("share", [0.26, 0.5, 0.74])
def test_the_nearer_end_is_the_nearest_of_all(share: float) -> None:
    items = in_clusters_of([5, 1, 8, 2, 9])
    ends = (0, 5, 6, 14, 16, 25)
    first = len(cut_at(items, [share, 1.0])[0])
    assert abs(first - round(share * 25)) == min(abs(end - round(share * 25)) for end in ends)
