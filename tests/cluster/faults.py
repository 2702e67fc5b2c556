"""Faults of a cluster: pods deleted or killed, a node drained, a Redis restarted, a lease stolen."""

from __future__ import annotations

import json
import random
import sys
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, Final

from tests.cluster.kit import is_ready
from tests.cluster.release import Release

#: Seconds from one fault to the next: a deployment heals in a few times that, so that faults meet what heals.
_BETWEEN_S: Final = 1.4


class Faults:
    """Does one fault after the other, drawn by a seed, from a thread of its own, until it has done so many.

    Args:
        release: what is to suffer.
        seed: of the draws.
        wanted: how many.
    """

    def __init__(self, release: Release, *, seed: int, wanted: int) -> None:
        self._release, self._rng, self._wanted = release, random.Random(seed), wanted
        self.done: Counter[str] = Counter()
        self.failed: list[str] = []
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._stop = threading.Event()
        kinds: Mapping[Callable[[], str | None], int] = {
            self._delete: 14, self._kill: 12, self._restart_valkey: 2, self._steal: 3, self._drain: 1,
        }  # fmt: skip
        self._kinds, self._weights = list(kinds), list(kinds.values())

    def __enter__(self) -> Faults:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self._kubectl("uncordon", self._node())

    @property
    def over(self) -> bool:
        """Whether all of them are done."""
        return not self._thread.is_alive()

    def _run(self) -> None:
        # A drain at least, whatever is drawn.
        first = [self._drain, self._restart_valkey, self._steal]
        while sum(self.done.values()) < self._wanted and not self._stop.wait(_BETWEEN_S):
            fault = first.pop() if first else self._rng.choices(self._kinds, self._weights)[0]
            try:
                name = fault()
            except Exception as error:
                self.failed.append(f"{fault.__name__}: {error}")
                continue
            if name is not None:
                self.done[name] += 1
                if sum(self.done.values()) % 25 == 0:
                    print(f"{sum(self.done.values())} faults", file=sys.stderr)

    def _kubectl(self, *arguments: str) -> str:
        return self._release.cluster.kubectl(*arguments)

    def _pod(self) -> dict[str, Any] | None:
        found = self._release.cluster.get("-n", self._release.namespace, "pods")["items"]
        living = [pod for pod in found if "deletionTimestamp" not in pod["metadata"] and is_ready(pod)]
        return self._rng.choice(living) if living else None

    def _end(self, *options: str, what: str) -> str | None:
        pod = self._pod()
        if pod is None:
            return None
        where = ("-n", self._release.namespace)
        self._kubectl(*where, "delete", "pod", pod["metadata"]["name"], "--wait=false", "--ignore-not-found", *options)
        component = pod["metadata"]["labels"].get("app.kubernetes.io/component", "model")
        return f"{component} {what}"

    def _delete(self) -> str | None:
        return self._end(what="deleted")

    def _kill(self) -> str | None:
        return self._end("--grace-period=0", "--force", what="killed")

    def _restart_valkey(self) -> str | None:
        where = ("-n", self._release.namespace)
        self._kubectl(*where, "delete", "pod", f"{self._release.name}-valkey-0", "--wait=false", "--ignore-not-found")
        return "valkey restarted"

    def _steal(self) -> str | None:
        where = ("-n", self._release.namespace)
        names = self._kubectl(*where, "get", "leases", "-o", "name").split()
        if not names:
            return None
        stolen = json.dumps({"spec": {"holderIdentity": "thief"}})
        self._kubectl(*where, "patch", self._rng.choice(names), "--type=merge", "-p", stolen)
        return "lease stolen"

    def _drain(self) -> str | None:
        node = self._node()
        try:
            # What a disruption budget holds back stays, as for an operator who gives up after a while.
            self._release.cluster.run(
                "drain", node, "--ignore-daemonsets", "--delete-emptydir-data", "--force", "--timeout=8s",
                f"--pod-selector=app.kubernetes.io/instance={self._release.name}",
            )  # fmt: skip
        finally:
            self._kubectl("uncordon", node)
        return "node drained"

    def _node(self) -> str:
        name: str = self._release.cluster.get("nodes")["items"][0]["metadata"]["name"]
        return name
