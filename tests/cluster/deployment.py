"""Values under which the chart is tested, from the defaults to a deployment that is asked 10⁵ trials."""

from __future__ import annotations

from typing import Any, Final

from tests.cluster import sums

#: Where the tests' Prometheus runs; the chart lets pods of it read metrics.
MONITORING: Final = "monitoring"
#: Where people would reach its pages, if anybody but the tests were there.
DASHBOARD: Final = "https://proctor.example.org"
#: Of what the tests' own Triton is known to the release's NetworkPolicies by.
SUMS_LABELS: Final = {"proctor.dev/test-model": "sums"}


def defaults() -> dict[str, Any]:
    """Nothing: what `helm install` does by itself."""
    return {}


def with_sums(namespace: str, *, more: dict[str, Any] | None = None) -> dict[str, Any]:
    """The defaults, and a pool whose model adds up, outside of the chart, with its encoder.

    Args:
        namespace: where the model is.
        more: top-level values that are added.
    """
    server = f"{sums.NAME}.{namespace}.svc.cluster.local"
    free = {"private": True, "inputPricePerMillion": 0, "outputPricePerMillion": 0}
    values: dict[str, Any] = {
        "pools": [
            # As the defaults have it.
            {"name": "reference", **free,
             "triton": {"modelRepository": {"trial": True},
                        "resources": {"requests": {"cpu": "100m", "memory": "512Mi"},
                                      "limits": {"cpu": "2", "memory": "3Gi"}}}},
            {"name": sums.NAME, **free, "url": f"grpc://{server}:8001"},
        ],
        "endpoints": {"encoder": f"grpc://{server}:8001/{sums.ENCODER}"},
        "networkPolicy": {
            "external": {"models": {"peers": [{"podSelector": {"matchLabels": SUMS_LABELS}}], "ports": [8001, 8002]}},
            "scrapers": [{"namespaceSelector": {"matchLabels": {"proctor.dev/monitoring": "yes"}}}],
        },
        # Quicker looks than a deployment needs, so that what is lost is found within a test.
        "timing": {"reconcileIntervalSeconds": 5, "leaseSeconds": 60, "visibilityTimeoutSeconds": 90,
                   "answerTimeSeconds": 120, "presenceSeconds": 8},
        "autoscaling": {"cooldownSeconds": 10, "stabilizationSeconds": 10, "scaleDownPeriodSeconds": 5,
                        "pollingIntervalSeconds": 2},
        # Two messages at a time in each of four pods: the node has two cores, and the router has as many fewer to send.
        "inference": {"concurrency": 2, "autoscaling": {"max": 4}},
        "gateway": {"dashboardUrl": DASHBOARD},
    }  # fmt: skip
    return values | (more or {})
