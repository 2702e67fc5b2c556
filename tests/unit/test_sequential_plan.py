"""The plan of both designs side by side: the fixed one is the gate's own table, the sequential one asks no more."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from proctor.domain.suite import Suite
from proctor.domain.suite_problems import parse_suite
from proctor.evidence.planning.approval import gate_rates
from proctor.evidence.planning.clustered_audits import ClusterSizes
from proctor.evidence.planning.families import FAMILIES
from proctor.evidence.planning.simulated_audits import Limits
from proctor.studies.sequential_plan import LEAKS, plan_sequential
from tests.suites.examples import with_changes

#: Five standard errors of a share over two times a thousand audits.
NEAR = 0.11


def suite_with(**changes: Any) -> Suite:
    return parse_suite(json.dumps(with_changes({key.replace("__", "."): value for key, value in changes.items()})))


@pytest.mark.parametrize("control_items", [0, 200])
def test_the_fixed_design_decides_as_the_plan_of_the_gate_says(control_items: int) -> None:
    family = FAMILIES["guessers"]
    found = plan_sequential(suite_with(), [family], 400, 3, Limits(), control_items=control_items)
    assert found is not None
    assert not found.own
    for row in found.rows:
        rng = np.random.default_rng(7)
        control = control_items / 400 if control_items else None
        rates = gate_rates(family, 400, 3, row.leaked_share, Limits(), 2_000, rng, control=control)
        assert abs(row.fixed.approve - rates.approve) < NEAR
        assert abs(row.fixed.block - rates.block) < NEAR


def test_it_asks_no_more_than_the_sample_and_gives_decisions_up_and_makes_none_up() -> None:
    found = plan_sequential(suite_with(), FAMILIES.values(), 500, 3, Limits())
    assert found is not None
    assert {row.leaked_share for row in found.rows} == set(LEAKS)
    for row in found.rows:
        assert found.looks[0].information <= row.share_asked <= 1.0
        assert row.sequential.approve <= row.fixed.approve + NEAR
        assert row.sequential.block <= row.fixed.block + NEAR
    clean = found.row("consistent", 0.0)
    assert clean is not None
    assert clean.share_asked < 0.3


def test_a_suite_s_own_design_is_the_one_that_is_planned() -> None:
    design = {"kind": "sequential", "looks": [0.5, 1.0], "spending": "obrien_fleming"}
    found = plan_sequential(suite_with(scoring_config__design=design), [FAMILIES["beta_1_1"]], 300, 3, Limits())
    assert found is not None
    assert found.own
    assert [look.n_items for look in found.looks] == [150, 300]


def test_items_in_clusters_are_looked_at_by_whole_clusters_and_take_more() -> None:
    family, sizes = FAMILIES["guessers"], ClusterSizes((7,) * 60)
    clustered = plan_sequential(suite_with(), [family], 420, 3, Limits(), clusters=sizes)
    alone = plan_sequential(suite_with(), [family], 420, 3, Limits())
    assert clustered is not None
    assert alone is not None
    assert all(look.n_items % 7 == 0 for look in clustered.looks)
    (some, *_), (others, *_) = clustered.rows, alone.rows
    assert some.share_asked > others.share_asked
    assert some.fixed.approve < others.fixed.approve


def test_nothing_is_planned_where_the_whole_sample_has_to_be_asked() -> None:
    first = suite_with(dataset_config__selection="first")
    assert plan_sequential(first, [FAMILIES["guessers"]], 300, 3, Limits()) is None
