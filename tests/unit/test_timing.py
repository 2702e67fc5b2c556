"""The time limits of a deployment: their order, and what a person is told who breaks it."""

from __future__ import annotations

from pathlib import Path

import pytest

from proctor.domain.errors import BadInputError
from proctor.runtime.settings import Settings
from proctor.runtime.timing import Timing


def test_what_a_process_gives_its_children_is_what_it_has() -> None:
    timing = Timing(reconcile_interval_s=0.1, lease_s=1 / 3, visibility_timeout_s=7, answer_time_s=1e6)
    assert Timing.from_environment(timing.to_environment()) == timing
    settings = Settings.from_environment({**timing.to_environment(), "PROCTOR_HOME": "/tmp/nowhere"})
    assert settings.timing == timing
    assert settings.to_environment()["PROCTOR_VISIBILITY_TIMEOUT_S"] == "7.0"


def test_nothing_set_is_the_default() -> None:
    assert Timing.from_environment({}) == Timing()
    assert Settings(home=Path("/tmp/nowhere")).timing == Timing()


@pytest.mark.parametrize("value", ["soon", "0", "-1", "nan", "inf"])
def test_a_time_limit_that_is_no_number_of_seconds_is_refused_by_its_variable(value: str) -> None:
    with pytest.raises(BadInputError, match=r"PROCTOR_LEASE_S is .* must be a number of seconds above 0"):
        Timing.from_environment({"PROCTOR_LEASE_S": value})


def test_a_lease_that_outlives_the_brokers_patience_is_refused_with_both() -> None:
    with pytest.raises(BadInputError, match="PROCTOR_LEASE_S is 1300 and must be below PROCTOR_VISIBILITY_TIMEOUT_S"):
        Timing.from_environment({"PROCTOR_LEASE_S": "1300"})


def test_a_grace_an_outage_and_a_silence_stand_outside_the_order() -> None:
    timing = Timing.from_environment(
        {"PROCTOR_GRACE_S": "5000", "PROCTOR_OUTAGE_S": "6000", "PROCTOR_PRESENCE_S": "0.5"}
    )
    assert (timing.grace_s, timing.outage_s, timing.presence_s) == (5000, 6000, 0.5)
    assert Timing.from_environment(timing.to_environment()) == timing


@pytest.mark.parametrize("variable", ["PROCTOR_GRACE_S", "PROCTOR_OUTAGE_S", "PROCTOR_PRESENCE_S"])
def test_a_time_outside_the_order_is_still_a_number_of_seconds(variable: str) -> None:
    with pytest.raises(BadInputError, match=rf"{variable} is '0', but must be a number of seconds above 0"):
        Timing.from_environment({variable: "0"})
