"""`helm install` of the default values, and `helm test`."""

from __future__ import annotations

import sys
import time

from tests.cluster.deployment import defaults
from tests.cluster.kit import is_ready
from tests.cluster.release import Release

_COMPONENTS = ("router", "perturbation", "scorer", "registry", "gateway", "triton", "valkey", "postgresql", "mlflow")


def test_default_values_install_from_nothing_and_end_ready(release: Release) -> None:
    began = time.monotonic()
    notes = release.install(defaults())
    print(f"installed and ready after {time.monotonic() - began:.0f} s", file=sys.stderr)
    assert "helm test" in notes
    for component in (
        "router",
        "perturbation",
        "scorer",
        "registry",
        "gateway",
        "triton",
        "valkey",
        "postgresql",
        "mlflow",
    ):
        pods = release.pods(component)
        assert pods, component
        assert all(is_ready(pod) for pod in pods), component


def test_helm_test_approves_the_clean_model_and_blocks_the_leaked_one(release: Release) -> None:
    began = time.monotonic()
    said = release.test()
    print(f"both reference models were audited after {time.monotonic() - began:.0f} s", file=sys.stderr)
    assert "approve" in said
    assert "block" in said


def test_no_pod_was_restarted_on_the_way(release: Release) -> None:
    pods = release.cluster.get("-n", release.namespace, "pods")["items"]
    restarts = {
        pod["metadata"]["name"]: status["restartCount"]
        for pod in pods
        for status in pod["status"].get("containerStatuses", [])
        if status["restartCount"]
    }
    assert restarts == {}
