"""Faults of a cluster: pods deleted or killed, a node drained, a Redis restarted, a lease stolen."""

from __future__ import annotations

import random
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final

import httpx

from tests.cluster.kit import CommandError, is_ready
from tests.cluster.release import Release

#: Faults come in bursts, and between two there is time to heal, or nothing would be under way that the next could hit:
#: a node of two cores starts some ten processes in twenty seconds.
_BURST: Final = 40
_BETWEEN_S: Final = 0.3
_HEALING_S: Final = 40.0
_COMPONENT: Final = "app.kubernetes.io/component"
#: At work, once everything is ready again.
_AT_WORK_S: Final = 6.0


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
        self.healing_s: list[float] = []
        """What was waited after each burst, `_HEALING_S` where not all was ready by then."""
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
        self._release.cluster.kubectl("uncordon", self._node())

    @property
    def over(self) -> bool:
        """Whether all of them are done."""
        return not self._thread.is_alive()

    def _run(self) -> None:
        # A drain at least, whatever is drawn.
        first = [self._drain, self._restart_valkey, self._steal]
        while sum(self.done.values()) < self._wanted and not self._stop.wait(_BETWEEN_S):
            if sum(self.done.values()) % _BURST == 0:
                self._heal()
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

    def _heal(self) -> None:
        """Wait until all are ready, and then a while; not for ever, since the last burst is over."""
        began = time.monotonic()
        while time.monotonic() - began < _HEALING_S and not self._stop.wait(0.5):
            with suppress(CommandError):
                if self._is_well():
                    self.healing_s.append(round(time.monotonic() - began, 1))
                    self._stop.wait(_AT_WORK_S)
                    return
        self.healing_s.append(_HEALING_S)

    def _is_well(self) -> bool:
        """Whether every component has its pods; of inference one is enough: the autoscaler adds others as it likes."""
        living = self._living()
        scaled = [pod for pod in living if pod["metadata"]["labels"].get(_COMPONENT) == "inference"]
        others = [pod for pod in living if pod not in scaled]
        return all(map(is_ready, others)) and (not scaled or any(map(is_ready, scaled)))

    def _living(self) -> list[dict[str, Any]]:
        found = self._release.cluster.listed("api/v1/pods", self._release.namespace)
        leaving = ("Succeeded", "Failed")
        return [
            pod for pod in found if "deletionTimestamp" not in pod["metadata"] and pod["status"]["phase"] not in leaving
        ]

    def _pod(self) -> dict[str, Any] | None:
        # Whether it is ready or not: else those that start quickest would be hit most.
        living = self._living()
        return self._rng.choice(living) if living else None

    def _delete_pod(self, name: str, **parameters: str) -> None:
        path = f"/api/v1/namespaces/{self._release.namespace}/pods/{name}"
        answer = self._release.cluster.api.delete(path, params=parameters)
        if answer.status_code != httpx.codes.NOT_FOUND:
            answer.raise_for_status()

    def _end(self, *, what: str, **parameters: str) -> str | None:
        pod = self._pod()
        if pod is None:
            return None
        self._delete_pod(pod["metadata"]["name"], **parameters)
        component = pod["metadata"]["labels"].get(_COMPONENT, "model")
        return f"{component} {what}"

    def _delete(self) -> str | None:
        return self._end(what="deleted")

    def _kill(self) -> str | None:
        return self._end(what="killed", gracePeriodSeconds="0")

    def _restart_valkey(self) -> str | None:
        self._delete_pod(f"{self._release.name}-valkey-0")
        return "valkey restarted"

    def _steal(self) -> str | None:
        kind = "apis/coordination.k8s.io/v1/leases"
        leases = self._release.cluster.listed(kind, self._release.namespace)
        if not leases:
            return None
        name = self._rng.choice(leases)["metadata"]["name"]
        self._release.cluster.api.patch(
            f"/apis/coordination.k8s.io/v1/namespaces/{self._release.namespace}/leases/{name}",
            json={"spec": {"holderIdentity": "thief"}},
            headers={"content-type": "application/merge-patch+json"},
        ).raise_for_status()
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
            self._release.cluster.kubectl("uncordon", node)
        return "node drained"

    def _node(self) -> str:
        name: str = self._release.cluster.get("nodes")["items"][0]["metadata"]["name"]
        return name
