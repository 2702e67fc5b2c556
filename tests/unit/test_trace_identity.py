"""An audit's trace follows from its row, travels in a header, and is taken from nothing else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.domain.messages import RunShards
from proctor.runtime.messaging.versions import VERSION_HEADER, Delivery
from proctor.runtime.traces.identity import HEADER, SpanIdentity, audit_trace, identity_in, request_trace, root_of
from proctor.runtime.traces.packs import TracedPacks

_HEADER = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def test_every_process_finds_the_same_root_of_an_audit() -> None:
    root = audit_trace("9c0d-1", "2026-11-23T12:00:00+00:00")
    # Pinned: processes of two versions work on one audit.
    assert root.header == "00-bcc6324678827d8e1b46928db5a9616c-50b71e2cc4c645aa-01"
    assert root_of(root.trace_id) == root


def test_the_same_audit_of_another_deployment_or_home_has_another_trace() -> None:
    traces = {
        audit_trace("9c0d-1", "2026-11-23T12:00:00+00:00").trace_id,
        audit_trace("9c0d-1", "2026-11-24T12:00:00+00:00").trace_id,
        audit_trace("9c0d-2", "2026-11-23T12:00:00+00:00").trace_id,
        request_trace("9c0d-1").trace_id,
    }
    assert len(traces) == 4


def test_a_header_is_read_as_the_standard_writes_it() -> None:
    found = identity_in(_HEADER)
    assert found == SpanIdentity(0x0AF7651916CD43DD8448EB211C80319C, 0xB7AD6B7169203331, True)
    assert found is not None
    assert found.header == _HEADER
    unsampled = identity_in(_HEADER[:-1] + "0")
    assert unsampled is not None
    assert not unsampled.sampled


@pytest.mark.parametrize(
    "header",
    [
        None,
        7,
        "",
        "x",
        _HEADER + "\n",
        _HEADER.upper(),
        _HEADER.replace("00-", "01-", 1),
        "00-" + "0" * 32 + "-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c-" + "0" * 16 + "-01",
        ["00"],
    ],
)
def test_what_is_no_header_names_no_span(header: object) -> None:
    assert identity_in(header) is None


@given(st.integers(1, 2**128 - 1), st.integers(1, 2**64 - 1), st.booleans())
def test_what_is_written_is_read(trace_id: int, span_id: int, sampled: bool) -> None:
    identity = SpanIdentity(trace_id, span_id, sampled)
    assert identity_in(identity.header) == identity


def test_a_header_makes_no_message_a_later_ones() -> None:
    headers = {VERSION_HEADER: 1, HEADER: _HEADER}
    delivery = Delivery.of(RunShards.task, {"audit_id": "a"}, headers, {})
    assert (delivery.version, delivery.given_back, delivery.trace) == (1, 0, _HEADER)
    assert Delivery.of(RunShards.task, {}, {HEADER: 7}, {}).trace == ""


def traced(packs: TracedPacks, count: int, audit: str = "a") -> list[int]:
    return [number for number in range(count) if packs.takes(audit, "answer")]


def test_every_pack_of_a_small_stage_is_traced() -> None:
    assert traced(TracedPacks(), 16) == list(range(16))


def test_of_a_large_stage_the_first_are_traced_then_each_sixteenth_and_no_more_than_the_limit() -> None:
    found = traced(TracedPacks(), 10_000)
    assert len(found) == 64
    assert found[:18] == [*range(16), 16, 32]
    assert found[-1] == 16 * 48


def test_stages_and_audits_are_counted_apart() -> None:
    packs = TracedPacks(4)
    assert traced(packs, 100) == [0, 16, 32, 48]
    assert traced(packs, 2, audit="b") == [0]
    assert traced(packs, 100) == []


def test_none_is_traced_where_none_is_wanted() -> None:
    assert traced(TracedPacks(0), 50) == []
