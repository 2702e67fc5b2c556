"""Every policy holds for every value set."""

from __future__ import annotations

import pytest

from tests.charts.policies.every import POLICIES
from tests.charts.rendering import rendered, value_set_names


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("name", value_set_names())
def test_a_policy_holds(name: str, policy: str) -> None:
    assert list(POLICIES[policy].faults(rendered(name))) == [], POLICIES[policy].sentence
