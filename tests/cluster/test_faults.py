"""Audits under 200 faults of the cluster: each report is byte for byte the one of the calm run."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tests.cluster.audits import Gateway
from tests.cluster.calm import SHAKEN, Calm
from tests.cluster.faults import Faults
from tests.cluster.kit import CommandError
from tests.cluster.release import Record, Release

_FAULTS: Final = int(os.environ.get("PROCTOR_CLUSTER_FAULTS", "200"))
_SEED: Final = int(os.environ.get("PROCTOR_CLUSTER_SEED", "1"))


def _submit(gateway: Gateway, suite: Path) -> str | None:
    try:
        return gateway.submit(suite)
    except CommandError:
        # No gateway, or no store behind it, at this moment: the caller tries again.
        return None


def test_reports_under_faults_are_those_of_the_calm_run(
    release: Release, gateway: Gateway, calm: Mapping[str, Calm], record_property: Record
) -> None:
    suites = {benchmark.name: calm[benchmark.name].suite for benchmark in SHAKEN}
    under_way, shaken = dict[str, str](), list[tuple[str, str]]()
    began = time.monotonic()
    with Faults(release, seed=_SEED, wanted=_FAULTS) as faults:
        while not faults.over:
            for name, suite in suites.items():
                if name not in under_way and (audit_id := _submit(gateway, suite)):
                    under_way[name] = audit_id
                    shaken.append((name, audit_id))
            for name, audit in list(under_way.items()):
                state = gateway.audits([audit]).get(audit, {}).get("state")
                if state in ("decided", "failed"):
                    del under_way[name]
            time.sleep(0.5)
    took = time.monotonic() - began
    audits = gateway.decided([audit_id for _, audit_id in shaken], within_s=300)
    figures = {
        "faults": sum(faults.done.values()), "kinds": dict(faults.done.most_common()), "not done": len(faults.failed),
        "audits": len(shaken), "seconds": round(took), "seconds until ready": faults.healing_s,
    }  # fmt: skip
    record_property("faults", json.dumps(figures))
    assert sum(faults.done.values()) >= _FAULTS, faults.failed[-5:]
    assert len(shaken) >= len(SHAKEN)
    # With all that its decision says: a report that differs is a trial that was lost, given up or answered otherwise.
    wrong = [
        (name, audits[audit_id])
        for name, audit_id in shaken
        if audits[audit_id]["decision"]["report_digest"] != calm[name].report_digest
    ]
    assert wrong == []
