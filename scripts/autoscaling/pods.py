"""A tier of pods: they start, are ready, are told to leave, and are gone. Time is bought from creation to the end."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass(eq=False)
class Pod:
    """One pod."""

    number: int
    created_s: float
    ready: bool = False
    leaving: bool = False
    gone: bool = False
    busy: int = 0
    """Slots in use."""


@dataclass
class Tier:
    """The pods of one workload."""

    start_s: float
    """From creation to readiness: scheduled, pulled, started, loaded."""
    pods: list[Pod] = field(default_factory=list)
    bought_s: float = 0.0
    """Pod seconds so far, to `_counted_s`."""
    _counted_s: float = 0.0
    _alive: int = 0
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    @property
    def replicas(self) -> int:
        """Those that the workload counts: not what leaves."""
        return len(self.pods)

    @property
    def ready(self) -> int:
        """Those of them that are ready."""
        return sum(pod.ready for pod in self.pods)

    def count(self, now_s: float) -> None:
        """Add up what was bought until now."""
        self.bought_s += self._alive * (now_s - self._counted_s)
        self._counted_s = now_s

    def grow(self, now_s: float, replicas: int) -> list[Pod]:
        """Create pods until there are so many; returns the new ones."""
        self.count(now_s)
        new = [Pod(next(self._numbers), now_s) for _ in range(replicas - len(self.pods))]
        self.pods += new
        self._alive += len(new)
        return new

    def shrink(self, now_s: float, replicas: int) -> list[Pod]:
        """Tell pods to leave until so many are left; returns them.

        As a ReplicaSet chooses where nothing else tells pods apart: who is not ready before who is, then the youngest
        (https://kubernetes.io/docs/concepts/workloads/controllers/replicaset/#scaling-a-replicaset).
        """
        self.count(now_s)
        order = sorted(self.pods, key=lambda pod: (pod.ready, -pod.created_s, -pod.number))
        leaving = order[: max(0, len(order) - replicas)]
        for pod in leaving:
            pod.leaving = True
        self.pods = [pod for pod in self.pods if not pod.leaving]
        return leaving

    def end(self, now_s: float, pod: Pod) -> None:
        """A pod that left is gone."""
        if not pod.gone:
            self.count(now_s)
            pod.gone = True
            self._alive -= 1
