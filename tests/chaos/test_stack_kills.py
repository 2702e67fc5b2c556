"""A short form of `python -m tests.chaos.stack_kills`: a service of a local stack is killed every second."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.chaos.stack_kills import run
from tests.support import missing


@pytest.mark.skipif(sys.platform != "linux", reason="the local stack needs Linux")
@pytest.mark.timeout(400)
def test_killing_a_service_every_second_ends_with_every_audit_decided(tmp_path: Path) -> None:
    from proctor.localstack.triton_server import obstacle

    if (reason := obstacle()) is not None:
        missing(reason)
    outcome = run(tmp_path / "home", seconds=10.0, seed=7, items=60, patience_s=240.0, in_turn=True)
    assert outcome.undecided == {}
    assert outcome.written == len(outcome.audits) >= 1
    outcome.findings.raise_if_broken()
    assert outcome.findings.reports_compared == outcome.findings.audits
    # Every service was a victim, and is back.
    assert set(outcome.kills) == set(outcome.restarted)
    assert all("killed by SIGKILL" in detail for detail in outcome.restarted.values()), outcome.restarted
