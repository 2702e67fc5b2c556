"""Every parser of foreign bytes, for a moment: whatever it is fed, it reads it or says why not, in time.

The long run is `make fuzz`; its figures stand in docs/security.md.
"""

from __future__ import annotations

import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fuzz.mutation import mutated
from tests.fuzz.target import Target
from tests.fuzz.targets.every import TARGETS

_EXAMPLES = 100
#: Each of their inputs is read in a process of its own, which takes two hundred times as long.
_READ_APART = frozenset({"items_parquet", "logs_of_lighteval"})
_EXAMPLES_APART = 30
#: Processor time of one input of at most 16 KiB; what takes a thousandth of it is usual.
_SLOW_S = 2.0


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
def test_a_parser_reads_what_its_seeds_hold(target: Target) -> None:
    taken = [target.try_out(seed) for seed in target.seeds()]
    assert any(taken), "no seed is read, so nothing behind is ever fuzzed"


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
def test_a_parser_takes_any_bytes_or_refuses_them_as_it_says(target: Target) -> None:
    examples = _EXAMPLES_APART if target.name in _READ_APART else _EXAMPLES

    @settings(max_examples=examples, suppress_health_check=list(HealthCheck))
    @given(data=st.one_of(mutated(target.seeds(), target.words, target.max_bytes), st.binary(max_size=200)))
    def hold(data: bytes) -> None:
        started_s = time.process_time()
        target.try_out(data)
        assert time.process_time() - started_s < _SLOW_S

    hold()


def test_a_finding_is_told_from_a_refusal() -> None:
    def feed(data: bytes) -> None:
        if data.startswith(b"refuse"):
            raise ValueError("refused")
        if data == b"break":
            raise KeyError("a defect")

    target = Target("sample", (), feed, lambda: [b"take"], (ValueError,))
    assert target.try_out(b"take")
    assert not target.try_out(b"refuse this")
    with pytest.raises(KeyError):
        target.try_out(b"break")
