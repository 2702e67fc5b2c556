"""Which channels a suite should require for which kind of benchmark."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.domain.benchmark_kind import (
    ADVICE,
    REQUIRED,
    STUDY,
    BenchmarkKind,
    ItemKind,
    benchmark_kind,
    blind_to_memory,
)
from proctor.domain.channels import ALWAYS_REQUIRED, BEYOND_WORDING, BUILT_IN

FACTS, OPTIONS, COMPUTED, OTHER = ItemKind.SHORT_FACT, ItemKind.OPTIONS, ItemKind.COMPUTED, ItemKind.OTHER
COUNTS = st.fixed_dictionaries({kind: st.integers(0, 1_000) for kind in ItemKind})


@pytest.mark.parametrize(
    ("counts", "kind"),
    [
        ({FACTS: 10}, BenchmarkKind.FACTS),
        ({OPTIONS: 10}, BenchmarkKind.LETTERS),
        ({COMPUTED: 10}, BenchmarkKind.WORKED),
        ({OTHER: 10}, BenchmarkKind.OTHER),
        ({FACTS: 5, COMPUTED: 5}, BenchmarkKind.FACTS),
        ({FACTS: 4, COMPUTED: 6}, BenchmarkKind.WORKED),
        ({FACTS: 4, OPTIONS: 3, COMPUTED: 3}, BenchmarkKind.OTHER),
        ({}, BenchmarkKind.OTHER),
    ],
)
def test_a_benchmark_is_of_the_kind_of_half_its_items(counts: dict[ItemKind, int], kind: BenchmarkKind) -> None:
    assert benchmark_kind(counts) is kind


@given(COUNTS, st.integers(1, 100))
def test_more_facts_never_make_a_benchmark_of_facts_another(counts: dict[ItemKind, int], more: int) -> None:
    if benchmark_kind(counts) is BenchmarkKind.FACTS:
        assert benchmark_kind({**counts, FACTS: counts[FACTS] + more}) is BenchmarkKind.FACTS


@given(COUNTS, st.integers(2, 9))
def test_the_size_of_a_benchmark_is_no_part_of_its_kind(counts: dict[ItemKind, int], times: int) -> None:
    assert benchmark_kind(counts) is benchmark_kind({kind: times * n for kind, n in counts.items()})


@given(st.sampled_from(BenchmarkKind), st.sets(st.sampled_from([*BUILT_IN, "a-plug-in"])))
def test_only_facts_need_more_than_wordings_and_any_channel_past_them_will_do(
    kind: BenchmarkKind, required: set[str]
) -> None:
    said = blind_to_memory(kind, required)
    assert (said is not None) is (kind is BenchmarkKind.FACTS and not required & set(BEYOND_WORDING))
    if said is not None:
        assert STUDY in said
        assert "fresh_config" in said
        assert "exposure_config" in said


@pytest.mark.parametrize("kind", BenchmarkKind)
def test_what_a_kind_requires_is_channels_and_is_not_blind(kind: BenchmarkKind) -> None:
    assert set(ALWAYS_REQUIRED) <= set(REQUIRED[kind]) <= set(BUILT_IN)
    assert blind_to_memory(kind, REQUIRED[kind]) is None
    assert STUDY in ADVICE[kind]
