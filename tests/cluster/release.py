"""A release of the chart, installed by Helm's own command."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from tests.cluster.kit import REPOSITORY, Cluster, CommandError, logs
from tests.support import missing

CHART: Final = REPOSITORY / "charts" / "proctor"
#: Takes a figure's name and value, which the run states at its end: pytest's `record_property`.
Record = Callable[[str, object], None]
#: An install from nothing on a node of two cores, which start a dozen Python processes, two databases and Triton.
INSTALL_S: Final = 420


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

    def upgrade(self, values: Mapping[str, Any], *, within_s: float = INSTALL_S) -> str:
        """Upgrade, and wait until all of it is ready."""
        return self._apply("upgrade", values, within_s)

    def _apply(self, action: str, values: Mapping[str, Any], within_s: float) -> str:
        ran = subprocess.run(
            [self._helm, "--namespace", self.namespace, action, self.name, str(CHART),
             "--values", "-", "--wait", "--timeout", f"{within_s:.0f}s"],
            input=json.dumps(values), capture_output=True, text=True, env=self.cluster.environment,
            timeout=within_s + 30,
        )  # fmt: skip
        if ran.returncode != 0:
            raise CommandError(f"helm {action}: {ran.stderr.strip()}\n{self.state()}")
        return ran.stdout

    def values(self) -> dict[str, Any]:
        """What it was last given beside the defaults."""
        found: dict[str, Any] | None = json.loads(self.helm("get", "values", self.name, "--output", "json"))
        return found or {}

    def rollback(self, *, within_s: float = INSTALL_S) -> None:
        """Go back to the revision before, and wait until all of it is ready."""
        wait = ("--wait", "--timeout", f"{within_s:.0f}s")
        self.helm("rollback", self.name, *wait, within_s=within_s)

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
