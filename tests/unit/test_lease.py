"""Who leads: what a candidate does about what it saw of the Lease, by its own clock."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.domain.errors import BadInputError
from proctor.runtime.kubernetes.leader import own_identity
from proctor.runtime.kubernetes.lease import LEASE_S, RENEW_DEADLINE_S, RETRY_S, Act, Observed, Record
from proctor.runtime.kubernetes.lease_name import LeaseName

ME, OTHER = "router-a_1", "router-b_1"


def held_by(holder: str, mark: str = "0", duration_s: float = LEASE_S) -> Record:
    return Record(holder, duration_s, mark)


def test_a_lease_that_is_not_there_is_created() -> None:
    assert Observed(ME).see(None, 0.0) is Act.CREATE


def test_a_released_lease_is_taken_at_once() -> None:
    assert Observed(ME).see(held_by(""), 0.0) is Act.ACQUIRE


def test_what_this_process_holds_it_renews_however_late() -> None:
    seen = Observed(ME)
    assert seen.see(held_by(ME), 0.0) is Act.RENEW
    assert seen.see(held_by(ME), 1e6) is Act.RENEW


def test_anothers_lease_is_taken_when_it_stayed_as_it_is_for_its_duration_and_not_before() -> None:
    seen = Observed(ME)
    assert seen.see(held_by(OTHER), 100.0) is Act.WAIT
    assert seen.see(held_by(OTHER), 100.0 + LEASE_S - 0.01) is Act.WAIT
    assert seen.see(held_by(OTHER), 100.0 + LEASE_S) is Act.ACQUIRE


def test_each_renewal_of_another_begins_its_duration_anew() -> None:
    seen = Observed(ME)
    for n in range(50):
        assert seen.see(held_by(OTHER, mark=str(n)), n * (LEASE_S - 1)) is Act.WAIT


def test_a_stolen_lease_is_honoured_and_won_back_only_after_it_ran_out() -> None:
    seen = Observed(ME)
    assert seen.see(held_by(ME), 0.0) is Act.RENEW
    assert seen.see(held_by("thief", mark="1"), 2.0) is Act.WAIT
    assert seen.see(held_by("thief", mark="1"), 2.0 + LEASE_S - 0.01) is Act.WAIT
    assert seen.see(held_by("thief", mark="1"), 2.0 + LEASE_S) is Act.ACQUIRE


def test_a_first_look_at_anothers_lease_waits_whatever_time_stands_in_it() -> None:
    # A clock that is a year ahead wrote it, or one that is a year behind: neither is compared with this one.
    for mark in ("1999-01-01T00:00:00Z", "2999-01-01T00:00:00Z"):
        assert Observed(ME).see(held_by(OTHER, mark=mark), 5.0) is Act.WAIT


class Look(NamedTuple):
    record: Record | None
    after_s: float


RECORDS = st.one_of(
    st.none(),
    st.builds(Record, st.sampled_from(["", ME, OTHER, "c"]), st.floats(1, 60), st.sampled_from(["1", "2", "3"])),
)
LOOKS = st.lists(st.builds(Look, RECORDS, st.floats(0, 40)), min_size=1, max_size=30)


@given(LOOKS)
def test_nobody_takes_a_held_lease_that_was_not_seen_unchanged_for_its_duration(looks: Sequence[Look]) -> None:
    seen, now_s, history = Observed(ME), 1000.0, list[tuple[float, Record | None]]()
    for look in looks:
        now_s += look.after_s
        act = seen.see(look.record, now_s)
        history.append((now_s, look.record))
        # By the definition: since when is this very record all that was read?
        since_s = next(
            (history[place + 1][0] for place in range(len(history) - 2, -1, -1) if history[place][1] != look.record),
            history[0][0],
        )
        if look.record is None:
            assert act is Act.CREATE
        elif look.record.holder == ME:
            assert act is Act.RENEW
        elif not look.record.holder:
            assert act is Act.ACQUIRE
        else:
            assert (act is Act.ACQUIRE) == (now_s - since_s >= look.record.duration_s)


class Server:
    """A Lease with optimistic concurrency."""

    def __init__(self) -> None:
        self.record: Record | None = None
        self.version = 0

    def write(self, read_version: int, record: Record) -> bool:
        if read_version != self.version:
            return False
        self.record, self.version = record, self.version + 1
        return True


class Simulated:
    """A candidate as `Candidate` is one, with a clock of its own rate and beginning, and a slow connection."""

    def __init__(self, name: str, offset_s: float, rate: float) -> None:
        self.name, self._offset_s, self._rate = name, offset_s, rate
        self.seen = Observed(name)
        self.until_s = float("-inf")
        self._reading: tuple[float, int, Record | None] | None = None

    def clock(self, true_s: float) -> float:
        return self._offset_s + self._rate * true_s

    def leads(self, true_s: float) -> bool:
        return self.clock(true_s) < self.until_s

    def read(self, server: Server, true_s: float) -> None:
        self._reading = self.clock(true_s), server.version, server.record

    def write(self, server: Server, true_s: float) -> None:
        if self._reading is None:
            return
        (asked_s, version, record), self._reading = self._reading, None
        act = self.seen.see(record, self.clock(true_s))
        if act is not Act.RENEW:
            self.until_s = float("-inf")
        if act is Act.WAIT:
            return
        written = Record(self.name, LEASE_S, f"{self.name} {true_s}")
        if server.write(version, written):
            self.seen.see(written, self.clock(true_s))
            self.until_s = asked_s + RENEW_DEADLINE_S
        else:
            self.until_s = float("-inf")


STEPS = st.lists(
    st.tuples(st.integers(0, 2), st.sampled_from(["read", "write"]), st.floats(0.0, 2 * LEASE_S)),
    min_size=10,
    max_size=120,
)


@given(STEPS, st.lists(st.floats(-1e6, 1e6), min_size=3, max_size=3), st.lists(st.floats(0.95, 1.05), min_size=3))
def test_no_two_lead_at_a_time_however_slow_they_are_and_whatever_their_clocks_say(
    steps: Sequence[tuple[int, str, float]], offsets: Sequence[float], rates: Sequence[float]
) -> None:
    server, true_s = Server(), 0.0
    candidates = [Simulated(f"c{n}", offsets[n], rates[n]) for n in range(3)]
    for who, what, after_s in steps:
        true_s += after_s
        getattr(candidates[who], what)(server, true_s)
        assert sum(one.leads(true_s) for one in candidates) <= 1


def test_the_times_leave_room_to_try_again_and_to_end_a_step() -> None:
    assert 2 * RETRY_S < RENEW_DEADLINE_S < LEASE_S - 2 * RETRY_S


def test_the_one_before_in_the_same_pod_is_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POD_NAME", "proctor-router-0")
    assert own_identity() != own_identity()
    assert re.fullmatch("proctor-router-0_[0-9a-f]{8}", own_identity())


@pytest.mark.parametrize(
    "said", ["router", "/router", "a/b/c", "A/b", "a/-b", "a/b.", "a b/c", "a/" + "b" * 300, "a/b\n", "ä/b"]
)
def test_what_names_no_lease_is_refused_by_its_variable(said: str) -> None:
    with pytest.raises(BadInputError, match=r"PROCTOR_LEADER_LEASE is .*NAMESPACE/NAME"):
        LeaseName.from_environment({"PROCTOR_LEADER_LEASE": said})


def test_a_lease_is_named_by_its_namespace_and_name_or_not_at_all() -> None:
    assert LeaseName.from_environment({}) is None
    assert LeaseName.from_environment({"PROCTOR_LEADER_LEASE": ""}) is None
    assert LeaseName.from_environment({"PROCTOR_LEADER_LEASE": "p/p-router.x"}) == LeaseName("p", "p-router.x")
