"""Fixtures of the tests on a real cluster (`make test-cluster`).

Those of the release run in the order of `RELEASE`: what is installed by the first is used by the others, and taken away
by the last. Beside them, in another process, runs what has namespaces of its own.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import Final

import pytest

from tests.cluster import sums
from tests.cluster.admission_world import HELD_PARAMETERS
from tests.cluster.audits import Gateway
from tests.cluster.calm import REPLACED, SHAKEN, Calm, calm_runs
from tests.cluster.deployment import SUMS_LABELS, with_sums
from tests.cluster.images import ensure_images
from tests.cluster.kit import KIT, OF_A_TEST, Cluster, any_cluster, cache_folder
from tests.cluster.prometheus import running_prometheus
from tests.cluster.release import OF_THE_CLUSTER, Release
from tests.cluster.walk import run_block, sections
from tests.scheduling import RELEASE

#: Set while working on these tests: the release stays, and the next run takes it as it is.
KEEP_VARIABLE: Final = "PROCTOR_TEST_RELEASE_KEPT"
_TARGETS: Final = ("router", "perturbation", "inference", "scorer", "registry", "gateway", "notifier", "triton",
                   "valkey", "postgresql", "mlflow", "prometheus")  # fmt: skip


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the files in their order; within one the tests stay as they are written."""

    def place(item: pytest.Item) -> int:
        stem = item.path.stem
        return RELEASE.index(stem) if stem in RELEASE else len(RELEASE)

    ours = [number for number, item in enumerate(items) if item.path.parent.name == "cluster"]
    for number, item in zip(ours, sorted((items[number] for number in ours), key=place), strict=True):
        items[number] = item


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """State the figures that the tests recorded (`record_property`), whatever became of them."""
    reports = [one for kind in ("passed", "failed") for one in terminalreporter.stats.get(kind, ())]
    figures = [figure for report in reports for figure in getattr(report, "user_properties", ())]
    if figures:
        terminalreporter.section("figures of the cluster")
    for name, value in figures:
        terminalreporter.write_line(f"{name}: {value}")


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """A real Kubernetes with KEDA, for the whole run; tests keep apart by namespaces."""
    with any_cluster(begin=_forget_a_run_that_was_ended) as found:
        yield found


def _forget_a_run_that_was_ended(cluster: Cluster) -> None:
    """The kit keeps its state: a cordoned node, namespaces, a gate that refuses pods, of a run that was broken off."""
    of_tests = ",".join(f"{name}={value}" for name, value in OF_A_TEST.items())
    cluster.kubectl("delete", "namespace", "-l", of_tests, "--wait=false")
    for node in cluster.get("nodes")["items"]:
        cluster.kubectl("uncordon", node["metadata"]["name"])
    for kind in OF_THE_CLUSTER.split(","):
        for one in cluster.get(kind, "-l", "app.kubernetes.io/name=proctor")["items"]:
            if one["metadata"]["name"] != HELD_PARAMETERS:
                cluster.kubectl("delete", kind, one["metadata"]["name"])


@pytest.fixture(scope="session")
def images(cluster: Cluster) -> None:
    """The images of this tree, in the cluster. Somebody's own cluster has to have them."""
    if cluster.folder is not None:
        ensure_images(KIT, cluster.folder, _TARGETS, cache=cache_folder() / "images")


@pytest.fixture(scope="session")
def release(cluster: Cluster, images: None) -> Iterator[Release]:
    """The release that a reader of docs/kubernetes.md installs, in a namespace of the restricted profile."""
    release = Release(cluster, "proctor")
    there = cluster.run("-n", release.namespace, "get", "deployment", f"{release.name}-gateway").returncode == 0
    if there and os.environ.get(KEEP_VARIABLE):
        release.wait_until_ready()
        yield release
        return
    if cluster.run("get", "namespace", release.namespace).returncode == 0:
        if not cluster.is_kit:
            pytest.fail(f"the cluster has a namespace {release.namespace} already: the tests would take it away")
        cluster.kubectl("delete", "namespace", release.namespace, "--timeout=240s", within_s=250)
    began = time.monotonic()
    try:
        for block in sections()["Install"]:
            run_block(cluster, block)
        release.installed_s = time.monotonic() - began
        yield release
    finally:
        if not os.environ.get(KEEP_VARIABLE):
            cluster.run("delete", "namespace", release.namespace, "--ignore-not-found", "--wait=false")


@pytest.fixture(scope="session")
def gateway(release: Release) -> Iterator[Gateway]:
    """Its gateway."""
    with closing(Gateway(release)) as found:
        yield found


@pytest.fixture(scope="session")
def adding(release: Release) -> None:
    """A Triton whose model adds up, in the release's namespace."""
    release.cluster.apply(*sums.manifests("proctor/triton:0.1.0", labels=SUMS_LABELS), namespace=release.namespace)
    release.cluster.kubectl("-n", release.namespace, "rollout", "status", "deployment", sums.NAME, "--timeout=120s",
                            within_s=130)  # fmt: skip


@pytest.fixture(scope="session")
def asking(release: Release, adding: None) -> None:
    """That the release asks it: since the upgrade that begins the lane, or from now on where a file is run alone."""
    asked = [pool.get("name") for pool in release.values().get("pools", ())]
    if sums.NAME not in asked:
        release.upgrade(with_sums(release.namespace))


@pytest.fixture(scope="session")
def calm(asking: None, gateway: Gateway, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Calm]:
    """What audits come to that the tests will disturb; by the name of their benchmark."""
    return calm_runs(gateway, (REPLACED, *SHAKEN), tmp_path_factory.mktemp("calm"))


@pytest.fixture(scope="session")
def monitoring(release: Release, asking: None) -> Iterator[str]:
    """The namespace of a Prometheus that scrapes the release from now on, under values that let it."""
    with running_prometheus(release.cluster, release.namespace) as namespace:
        yield namespace
