"""The walk of docs/kubernetes.md: `helm install` of the default values, `helm test`, a first audit, and on."""

from __future__ import annotations

import time

import pytest

from tests.cluster.kit import is_ready
from tests.cluster.release import Record, Release
from tests.cluster.walk import run_block, sections

_COMPONENTS = ("router", "perturbation", "scorer", "registry", "gateway", "triton", "valkey", "postgresql", "mlflow")
#: After the last of them the release is gone: test_uninstall.py.
LAST = "Take it away"


def test_the_walk_has_the_headings_that_the_tests_follow() -> None:
    headings = list(sections())
    assert headings[0] == "Install"
    assert headings[-1] == LAST


def test_default_values_install_from_nothing_and_end_ready(release: Release, record_property: Record) -> None:
    record_property("Install, until ready", f"{release.installed_s:.0f} s")
    for component in _COMPONENTS:
        pods = release.pods(component)
        assert pods, component
        assert all(is_ready(pod) for pod in pods), component


def test_no_pod_was_restarted_on_the_way(release: Release) -> None:
    pods = release.cluster.get("-n", release.namespace, "pods")["items"]
    restarts = {
        pod["metadata"]["name"]: status["restartCount"]
        for pod in pods
        for status in pod["status"].get("containerStatuses", [])
        if status["restartCount"]
    }
    assert restarts == {}


@pytest.mark.parametrize("heading", list(sections())[1:-1])
def test_the_commands_do_what_the_page_says(release: Release, heading: str, record_property: Record) -> None:
    began = time.monotonic()
    said = "".join(run_block(release.cluster, block) for block in sections()[heading])
    record_property(heading, f"{time.monotonic() - began:.0f} s")
    expected = {
        "See it decide": ("reference-clean: approve", "reference-leaked: block"),
        "A first audit": ("block", '"status"'),
        "Metrics and Grafana": ("contamination", "serving", "audits"),
        "Change and go back": ("Rollback to",),
    }
    for words in expected[heading]:
        assert words in said, said
