"""A release of the chart, installed by Helm's own command."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from tests.cluster.kit import REPOSITORY, Cluster, CommandError, logs
from tests.support import missing

CHART: Final = REPOSITORY / "charts" / "proctor"
#: Kinds of a release's objects that are in no namespace.
OF_THE_CLUSTER: Final = (
    "clusterroles,clusterrolebindings,validatingwebhookconfigurations,validatingadmissionpolicies,"
    "validatingadmissionpolicybindings"
)
#: Takes a figure's name and value, which the run states at its end: pytest's `record_property`.
Record = Callable[[str, object], None]
#: An install from nothing on a node of two cores, which start a dozen Python processes, two databases and Triton.
INSTALL_S: Final = 420
#: Helm watches everything that is waited for, which took ten seconds of a processor for each upgrade, beside pods that
#: start on the same two cores. The walk's own commands wait as a reader's do.
_HOOKS_ONLY: Final = ("--wait=hookOnly", "--timeout", f"{INSTALL_S}s")
_LOOK_S: Final = 0.5


class Release:
    """A release in a namespace. Every method raises `CommandError` with Helm's words where it fails."""

    def __init__(self, cluster: Cluster, namespace: str, *, name: str = "proctor") -> None:
        self.cluster, self.namespace, self.name = cluster, namespace, name
        self.installed_s = 0.0
        """Seconds from nothing until all of it was ready."""
        self._helm = shutil.which("helm", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}") or missing(
            "Helm's command is missing: run scripts/setup_helm.sh"
        )

    def helm(self, *arguments: str, within_s: float = INSTALL_S) -> str:
        """What a command of Helm's prints, in the release's namespace."""
        ran = subprocess.run(
            [self._helm, "--namespace", self.namespace, *arguments],
            capture_output=True, text=True, env=self.cluster.environment, timeout=within_s + 30,
        )  # fmt: skip
        if ran.returncode != 0:
            raise CommandError(
                f"helm {' '.join(arguments)}: {ran.stderr.strip()}\n{ran.stdout[-2000:]}\n{self.state()}"
            )
        return ran.stdout

    def upgrade(self, values: Mapping[str, Any], *, within_s: float = INSTALL_S) -> None:
        """Upgrade, and wait until all of it is ready."""
        ran = subprocess.run(
            [self._helm, "--namespace", self.namespace, "upgrade", self.name, str(CHART),
             "--values", "-", *_HOOKS_ONLY],
            input=json.dumps(values), capture_output=True, text=True, env=self.cluster.environment, timeout=within_s,
        )  # fmt: skip
        if ran.returncode != 0:
            raise CommandError(f"helm upgrade: {ran.stderr.strip()}\n{self.state()}")
        self.wait_until_ready(within_s)

    def wait_until_ready(self, within_s: float = INSTALL_S) -> None:
        """Wait until all pods are of their newest revision and ready, and none besides."""
        last = time.monotonic() + within_s
        while waits_for := self._under_way():
            if time.monotonic() > last:
                raise CommandError(f"not ready within {within_s:.0f} s: {', '.join(waits_for)}\n{self.state()}")
            time.sleep(_LOOK_S)

    def _under_way(self) -> list[str]:
        """What is not all of its newest revision, and ready."""
        kinds = ("apis/apps/v1/deployments", "apis/apps/v1/statefulsets")
        selector = f"app.kubernetes.io/instance={self.name}"
        found = [one for kind in kinds for one in self.cluster.listed(kind, self.namespace, selector)]
        return [one["metadata"]["name"] for one in found if not _is_rolled_out(one)]

    def values(self) -> dict[str, Any]:
        """What it was last given beside the defaults."""
        found: dict[str, Any] | None = json.loads(self.helm("get", "values", self.name, "--output", "json"))
        return found or {}

    def rollback(self, *, within_s: float = INSTALL_S) -> None:
        """Go back to the revision before, and wait until all of it is ready."""
        self.helm("rollback", self.name, *_HOOKS_ONLY, within_s=within_s)
        self.wait_until_ready(within_s)

    def secret(self, name: str, key: str) -> str:
        """One value of a Secret."""
        data: dict[str, str] = self.cluster.get("-n", self.namespace, "secret", name)["data"]
        return base64.b64decode(data[key]).decode()

    def exec(self, target: str, *command: str, input: str | None = None, within_s: float = 60) -> str:
        """What a command prints in a pod (`deploy/proctor-router`)."""
        options = ["-n", self.namespace, "exec", "-i", target, "--", *command]
        return self.cluster.kubectl(*options, input=input or "", within_s=within_s)

    @contextmanager
    def forwarded(self, service: str, port: int) -> Iterator[int]:
        """A port of loopback that leads to a service's."""
        with self.cluster.forward(f"service/{service}:{port}", namespace=self.namespace) as local:
            yield local

    def pods(self, component: str) -> list[dict[str, Any]]:
        """The component's pods that are not on their way out."""
        selector = f"app.kubernetes.io/instance={self.name},app.kubernetes.io/component={component}"
        found = self.cluster.listed("api/v1/pods", self.namespace, selector)
        return [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]

    def state(self) -> str:
        """What a person would look at first, for the message of a test that fails."""
        of_pods = self.cluster.run("-n", self.namespace, "get", "pods", "-o", "wide").stdout
        events = self.cluster.run("-n", self.namespace, "get", "events", "--sort-by=.lastTimestamp").stdout
        said = logs(self.cluster, self.namespace, f"app.kubernetes.io/instance={self.name}", lines=12)
        return f"{of_pods}\n{chr(10).join(events.splitlines()[-25:])}\n{said[-6000:]}"


def _is_rolled_out(workload: Mapping[str, Any]) -> bool:
    """Whether all pods of a Deployment or StatefulSet are of its newest revision and ready, and none besides."""
    status, wanted = workload["status"], workload["spec"].get("replicas", 1)
    if status.get("observedGeneration", 0) < workload["metadata"]["generation"]:
        return False
    if "updateRevision" in status and status.get("currentRevision") != status["updateRevision"]:
        return False
    counts = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas")
    return all(status.get(count, 0) == wanted for count in counts)
