"""Policies bite: each finds the faults that are planted for it, and none in the release without them."""

from __future__ import annotations

import pytest

from tests.charts.good_release import good_release
from tests.charts.planted import PLANTED, Planted, bad_release
from tests.charts.policies.every import POLICIES


@pytest.mark.parametrize("policy", POLICIES)
def test_a_good_release_has_no_fault(policy: str) -> None:
    assert list(POLICIES[policy].faults(good_release())) == []


@pytest.mark.parametrize("fault", PLANTED, ids=lambda fault: f"{fault.policy}-{fault.name}")
def test_a_planted_fault_is_found(fault: Planted) -> None:
    assert list(POLICIES[fault.policy].faults(bad_release(fault))) != []


def test_every_policy_has_a_planted_fault() -> None:
    assert {fault.policy for fault in PLANTED} == set(POLICIES)
