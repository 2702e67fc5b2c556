"""Real workers where the plug-ins of a suite are not installed: the audit fails, and says what is missing where."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from proctor.runtime.records.audit_state import AuditState
from proctor.runtime.records.store import AuditRecord, Records
from tests.support import wait_until
from tests.toy_audit import install_recipes, path_with, write_suite
from tests.worker_processes import Home, flushed

pytestmark = pytest.mark.timeout(120)


@pytest.fixture
def broker(valkey_url: str) -> Iterator[str]:
    with flushed(f"{valkey_url}/11") as url:
        yield url


class Machines:
    """One home, on which a process has the recipes of the guide installed, or lacks them."""

    def __init__(self, folder: Path, broker: str) -> None:
        self.folder = folder
        path = path_with(install_recipes(folder / "site"))
        self.having = Home(folder / "home", broker, PYTHONPATH=path)
        self.lacking = Home(folder / "home", broker)
        self.having.folder.mkdir()

    def submit(self, **sections: Any) -> str:
        """Have a command that has the recipes submit the suite; returns what it says."""
        command = [sys.executable, "-m", "proctor", "audit", "submit", str(write_suite(self.folder, **sections))]
        run = subprocess.run(command, env=self.having.environment, capture_output=True, text=True)
        assert run.returncode == 0, run.stderr
        return run.stdout

    def failed(self) -> AuditRecord:
        """The one audit, once it has failed."""
        with closing(Records(self.having.settings.records_url)) as records:
            (only,) = records.audits()

            def has_failed() -> bool:
                return records.audit(only.audit_id).state is AuditState.FAILED

            wait_until(has_failed, timeout_s=30, what="the failure")
            return records.audit(only.audit_id)


@pytest.fixture
def machines(tmp_path: Path, broker: str) -> Machines:
    return Machines(tmp_path, broker)


def test_a_router_without_them_names_all_of_them(machines: Machines) -> None:
    with machines.lacking.worker("router"):
        machines.submit()
        assert machines.failed().detail == (
            "the router could not go on: the suite names the backend backwards, the channel admitted, the channel "
            "published, the stage self_report, the strategy polite, which are not installed here; install their "
            "plug-ins"
        )


def test_an_inference_and_a_perturbation_worker_without_them_name_theirs_and_the_audit_goes_on(
    machines: Machines,
) -> None:
    with machines.having.worker("router"):
        with machines.lacking.worker("inference"):
            machines.submit()
            detail = machines.failed().detail
        assert "the inference worker cannot ask http://127.0.0.1:9/v1: there is no backend 'backwards'" in detail
        with machines.having.worker("inference"), machines.lacking.worker("perturbation"):
            assert "goes on" in machines.submit()
            detail = machines.failed().detail
        assert detail.startswith("rewording failed: perturbation_strategy 'polite' does not exist; there are: ")
