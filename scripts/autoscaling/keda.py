"""What KEDA does itself: the step from 0 to the first replica, and the one back, at each poll; and the fallback.

https://keda.sh/docs/2.20/concepts/scaling-deployments/ and /reference/scaledobject-spec/; the order of the cases was
read in `pkg/scaling/executor/scale_scaledobjects.go` and `pkg/fallback/fallback.go` of KEDA (commit 8b4f083). Between 1
and the maximum the HPA scales, which asks KEDA for the metric.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from autoscaling.hpa import Reading
from autoscaling.rules import Rules


@dataclass
class Keda:
    """KEDA's side of one ScaledObject."""

    rules: Rules
    last_active_s: float | None = None
    failures: int = 0

    def poll(self, now_s: float, current: int, values: Sequence[float | None]) -> int:
        """Replicas after a look at the metrics, in the order of the triggers; None is a metric that failed."""
        rules = self.rules
        active = any(
            value is not None and value > trigger.activation
            for trigger, value in zip(rules.triggers, values, strict=True)
        )
        failed = any(value is None for value in values)
        if self._fallen_back(failed):
            # A metric that stands for the fallback's replicas makes the trigger active, so 0 is left too.
            active = True
        if active:
            self.last_active_s = now_s
            return rules.least_of_hpa if current == 0 else current
        if failed:
            return current
        if current > 0 and rules.minimum == 0:
            cooled = self.last_active_s is None or now_s > self.last_active_s + rules.cooldown_s
            return 0 if cooled else current
        return max(current, rules.minimum)

    def readings(self, current: int, values: Sequence[float | None]) -> list[Reading] | None:
        """What the HPA is told, or None where it is told of an error and leaves the replicas as they are."""
        pairs = list(zip(self.rules.triggers, values, strict=True))
        if not self._fallen_back(any(value is None for value in values)):
            told = [Reading(trigger, value) for trigger, value in pairs if value is not None]
            return told if len(told) == len(pairs) else None
        assert self.rules.fallback is not None
        stand_in = self.rules.fallback.of(current)
        return [Reading(trigger, stand_in * trigger.target if value is None else value) for trigger, value in pairs]

    def _fallen_back(self, failed: bool) -> bool:
        self.failures = self.failures + 1 if failed else 0
        fallback = self.rules.fallback
        return failed and fallback is not None and fallback.replicas > 0 and self.failures > fallback.failures
