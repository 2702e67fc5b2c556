"""What a ScaledObject says: bounds, times, triggers and behaviour, with the defaults of KEDA and Kubernetes.

KEDA: https://keda.sh/docs/2.20/reference/scaledobject-spec/ (polling 30 s, cooldown 300 s, 0 to 100 replicas).
Kubernetes: https://kubernetes.io/docs/tasks/run-application/horizontal-pod-autoscale/#default-behavior. What is not
modelled is refused and not passed over: a prediction by half of the rules would be none.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, NamedTuple

from proctor.domain.errors import BadInputError

#: `--horizontal-pod-autoscaler-tolerance`.
TOLERANCE: Final = 0.1
_DEFAULT_DOWN_WINDOW_S: Final = 300


class Signal(StrEnum):
    """What a trigger measures."""

    WORK = "work"
    """Shards queued or leased, of the whole deployment: `proctor_scaling_work`."""
    LIST_LENGTH = "list length"
    """Messages in the broker's list, which no worker has taken."""
    QUEUE_TIME = "queue time"
    """Seconds that a request waits in Triton, before its backend has it."""
    ENGINE_TIME = "engine time"
    """Seconds that it waits in the backend's own engine: what vLLM's time to the first token grows by."""


class Select(StrEnum):
    """Which of several policies holds."""

    MAX = "Max"
    MIN = "Min"
    DISABLED = "Disabled"


class RatePolicy(NamedTuple):
    """How far the replicas may move within a period: by so many pods, or by a share of them in per cent."""

    percent: bool
    value: int
    period_s: float


@dataclass(frozen=True)
class Direction:
    """How the replicas may move up, or down."""

    window_s: float
    """Of the recommendations of so long the most cautious one holds."""
    policies: tuple[RatePolicy, ...]
    select: Select = Select.MAX
    tolerance: float = TOLERANCE


@dataclass(frozen=True)
class Behaviour:
    """Both directions."""

    up: Direction
    down: Direction


@dataclass(frozen=True)
class Trigger:
    """One metric and its target."""

    signal: Signal
    target: float
    activation: float = 0.0
    """Above it the trigger is active."""
    averaged: bool = True
    """Whether the target is one pod's share (AverageValue), or the metric itself is to meet it (Value)."""


class Stand(StrEnum):
    """What a fallback makes of its replicas and of those that are there."""

    STATIC = "static"
    CURRENT = "currentReplicas"
    HIGHER = "currentReplicasIfHigher"
    LOWER = "currentReplicasIfLower"


@dataclass(frozen=True)
class Fallback:
    """How many replicas there are once the metric failed more often than so."""

    replicas: int
    failures: int
    stand: Stand = Stand.STATIC

    def of(self, current: int) -> int:
        """Replicas that it asks for, beside so many."""
        match self.stand:
            case Stand.STATIC:
                return self.replicas
            case Stand.CURRENT:
                return current
            case Stand.HIGHER:
                return max(current, self.replicas)
            case Stand.LOWER:
                return min(current, self.replicas)


@dataclass(frozen=True)
class Rules:
    """A ScaledObject."""

    name: str
    workload: str
    triggers: tuple[Trigger, ...]
    minimum: int = 0
    maximum: int = 100
    polling_s: float = 30.0
    cooldown_s: float = 300.0
    fallback: Fallback | None = None
    behaviour: Behaviour | None = None
    """None where the ScaledObject has none: the HPA then keeps to its older fixed limits."""

    @property
    def least_of_hpa(self) -> int:
        """KEDA gives the HPA a minimum of 1 where its own is 0, and does the step between 0 and 1 itself."""
        return max(1, self.minimum)


def rules_of(manifest: Mapping[str, Any]) -> Rules:
    """Read a ScaledObject.

    Raises:
        BadInputError: where it has something that is not modelled.
    """
    name = str(manifest.get("metadata", {}).get("name", "?"))
    try:
        return _rules(name, manifest["spec"])
    except (KeyError, TypeError, ValueError) as error:
        raise BadInputError(f"ScaledObject {name}: {type(error).__name__} {error}") from None


def _rules(name: str, spec: Mapping[str, Any]) -> Rules:
    advanced = spec.get("advanced") or {}
    for key, value in {
        "advanced.scalingModifiers": advanced.get("scalingModifiers"),
        "idleReplicaCount": spec.get("idleReplicaCount"),
        "initialCooldownPeriod": spec.get("initialCooldownPeriod"),
    }.items():
        if value:
            raise BadInputError(f"ScaledObject {name}: {key} is not modelled")
    behaviour = (advanced.get("horizontalPodAutoscalerConfig") or {}).get("behavior")
    rules = Rules(
        name=name,
        workload=str(spec["scaleTargetRef"]["name"]),
        triggers=tuple(_trigger(name, trigger) for trigger in spec["triggers"]),
        minimum=int(spec.get("minReplicaCount", 0)),
        maximum=int(spec.get("maxReplicaCount", 100)),
        polling_s=float(spec.get("pollingInterval", 30)),
        cooldown_s=float(spec.get("cooldownPeriod", 300)),
        fallback=_fallback(spec.get("fallback")),
        behaviour=None if behaviour is None else behaviour_of(behaviour),
    )
    if not rules.triggers or rules.maximum < max(1, rules.minimum) or rules.polling_s <= 0:
        raise BadInputError(f"ScaledObject {name}: needs a trigger, a maximum above its minimum, a polling interval")
    return rules


def _fallback(given: Mapping[str, Any] | None) -> Fallback | None:
    if not given:
        return None
    return Fallback(int(given["replicas"]), int(given["failureThreshold"]), Stand(given.get("behavior") or "static"))


#: Type of a trigger → the fields of its target and of its activation.
_FIELDS: Final = {
    "metrics-api": ("targetValue", "activationTargetValue"),
    "prometheus": ("threshold", "activationThreshold"),
    "redis": ("listLength", "activationListLength"),
}


def _trigger(name: str, trigger: Mapping[str, Any]) -> Trigger:
    kind, metadata = trigger["type"], trigger["metadata"]
    if kind not in _FIELDS:
        raise BadInputError(f"ScaledObject {name}: a trigger of type {kind} is not modelled ({', '.join(_FIELDS)} are)")
    metric_type = trigger.get("metricType", "AverageValue")
    if metric_type not in ("AverageValue", "Value"):
        raise BadInputError(f"ScaledObject {name}: metricType {metric_type} is not modelled")
    target, activation = _FIELDS[kind]
    signal, unit = _signal(name, kind, str(metadata.get("query") or metadata.get("valueLocation") or ""))
    found = Trigger(
        signal,
        target=float(metadata[target]) * unit,
        activation=float(metadata.get(activation, 0)) * unit,
        averaged=metric_type == "AverageValue",
    )
    if not (found.target > 0 and math.isfinite(found.target)):
        raise BadInputError(f"ScaledObject {name}: {target} {metadata[target]}: give a number above 0")
    return found


def _signal(name: str, kind: str, words: str) -> tuple[Signal, float]:
    """What is measured, and what one of its units is in ours."""
    if kind == "redis":
        return Signal.LIST_LENGTH, 1.0
    if "proctor_scaling_work" in words:
        return Signal.WORK, 1.0
    if "nv_inference_queue_duration_us" in words:
        # Microseconds, which a query may divide for a target that people can read.
        flat = words.replace(" ", "").replace("_", "")
        divisors = {"/1e6": 1.0, "/1000000": 1.0, "/1e3": 1e-3, "/1000": 1e-3}
        return Signal.QUEUE_TIME, next((unit for text, unit in divisors.items() if text in flat), 1e-6)
    if "vllm:time_to_first_token_seconds" in words or "vllm:request_queue_time_seconds" in words:
        return Signal.ENGINE_TIME, 1e-3 if "*1000" in words.replace(" ", "") else 1.0
    raise BadInputError(f"ScaledObject {name}: what is measured by {words!r} is not modelled")


def behaviour_of(behaviour: Mapping[str, Any]) -> Behaviour:
    """A `behavior` with what Kubernetes sets where it says nothing."""
    up = _direction(behaviour.get("scaleUp") or {}, 0.0, (RatePolicy(True, 100, 15.0), RatePolicy(False, 4, 15.0)))
    down = _direction(behaviour.get("scaleDown") or {}, _DEFAULT_DOWN_WINDOW_S, (RatePolicy(True, 100, 15.0),))
    return Behaviour(up, down)


def _direction(given: Mapping[str, Any], window_s: float, policies: Sequence[RatePolicy]) -> Direction:
    window = given.get("stabilizationWindowSeconds")
    tolerance = given.get("tolerance")
    mine = tuple(
        RatePolicy({"Pods": False, "Percent": True}[one["type"]], int(one["value"]), float(one["periodSeconds"]))
        for one in given.get("policies") or ()
    )
    return Direction(
        window_s=window_s if window is None else float(window),
        policies=mine or tuple(policies),
        select=Select(given.get("selectPolicy") or "Max"),
        tolerance=TOLERANCE if tolerance is None else float(tolerance),
    )
