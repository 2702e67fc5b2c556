"""The model of HPA and KEDA does what Kubernetes' and KEDA's pages say, on their own examples and on drawn ones."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoscaling.hpa import SYNC_S, Hpa, Moved, Reading, limit_down, limit_up, proposal
from autoscaling.keda import Keda
from autoscaling.rules import Fallback, Rules, Signal, Trigger, behaviour_of, rules_of
from proctor.domain.errors import BadInputError

WORK = Trigger(Signal.WORK, target=8)

counts = st.integers(min_value=1, max_value=200)
values = st.floats(min_value=0, max_value=10_000, allow_nan=False)


def rules(**given: Any) -> Rules:
    return Rules(name="inference", workload="inference", **{"triggers": (WORK,), "maximum": 20, **given})


def scaled_object(**spec: Any) -> dict[str, Any]:
    trigger = {
        "type": "metrics-api",
        "metadata": {
            "format": "prometheus",
            "url": "http://proctor-router:9090/metrics",
            "valueLocation": 'proctor_scaling_work{service="inference"}',
            "targetValue": "8",
        },
    }
    whole = {"scaleTargetRef": {"name": "proctor-inference"}, "triggers": [trigger], **spec}
    return {"kind": "ScaledObject", "metadata": {"name": "proctor-inference"}, "spec": whole}


def recommendations(hpa: Hpa, current: int, asked: list[float], *, began_s: float = 0.0) -> list[int]:
    """Replicas after each sync, a quarter of a minute apart, for these values of the metric."""
    seen = []
    for number, value in enumerate(asked):
        current = hpa.sync(began_s + number * SYNC_S, current, current, [Reading(WORK, value)])
        seen.append(current)
    return seen


# The documented algorithm.


def test_twice_the_wanted_value_doubles_the_pods_and_half_of_it_halves_them() -> None:
    metric = Trigger(Signal.QUEUE_TIME, target=0.1, averaged=False)
    assert proposal(Reading(metric, 0.2), current=4, ready=4) == 8
    assert proposal(Reading(metric, 0.05), current=4, ready=4) == 2


@pytest.mark.parametrize(("work", "replicas"), [(32, 4), (35.2, 4), (28.8, 4), (35.3, 5), (28.7, 4), (24, 3)])
def test_a_ratio_within_a_tenth_of_one_changes_nothing(work: float, replicas: int) -> None:
    assert proposal(Reading(WORK, work), current=4, ready=4) == replicas


def test_a_metric_that_is_averaged_asks_for_as_many_pods_as_targets_fit_into_it() -> None:
    assert proposal(Reading(WORK, 100), current=1, ready=0) == math.ceil(100 / 8)


def test_of_several_metrics_the_one_that_asks_for_most_is_heard() -> None:
    other = Trigger(Signal.LIST_LENGTH, target=1)
    hpa = Hpa(rules(triggers=(WORK, other), behaviour=behaviour_of({})))
    assert hpa.sync(0, 2, 2, [Reading(WORK, 16), Reading(other, 5)]) == 5


def test_the_pages_example_of_scaling_down_by_ten_per_cent_or_four_pods() -> None:
    # "If there are 80 replicas [...] during the first step 8 replicas will be reduced. In the next iteration when the
    # number of replicas is 72, 10 % of the pods is 7.2 but the number is rounded up to 8."
    policies = [
        {"type": "Pods", "value": 4, "periodSeconds": 60},
        {"type": "Percent", "value": 10, "periodSeconds": 60},
    ]
    down = behaviour_of({"scaleDown": {"policies": policies}}).down
    assert limit_down(80, 0, [], [], down) == 72
    assert limit_down(72, 0, [], [], down) == 64
    # "When the number of replicas falls below 40 [...] 4 replicas will be reduced at a time."
    assert limit_down(36, 0, [], [], down) == 32


def test_the_policy_that_is_selected_as_min_lets_the_fewest_pods_go() -> None:
    policies = [
        {"type": "Percent", "value": 10, "periodSeconds": 60},
        {"type": "Pods", "value": 5, "periodSeconds": 60},
    ]
    down = behaviour_of({"scaleDown": {"policies": policies, "selectPolicy": "Min"}}).down
    assert limit_down(80, 0, [], [], down) == 75
    assert limit_down(20, 0, [], [], down) == 18


def test_a_direction_that_is_disabled_does_not_move() -> None:
    hpa = Hpa(rules(behaviour=behaviour_of({"scaleDown": {"selectPolicy": "Disabled"}})))
    assert recommendations(hpa, 10, [8.0] * 60) == [10] * 60


def test_by_default_pods_double_or_grow_by_four_each_quarter_of_a_minute() -> None:
    hpa = Hpa(rules(maximum=100, behaviour=behaviour_of({})))
    assert recommendations(hpa, 1, [800.0] * 6) == [5, 10, 20, 40, 80, 100]


def test_without_a_behaviour_pods_grow_to_four_at_first_and_double_then() -> None:
    hpa = Hpa(rules(maximum=100))
    assert recommendations(hpa, 1, [800.0] * 6) == [4, 8, 16, 32, 64, 100]


def test_scaling_down_waits_for_the_window_and_takes_the_highest_wish_in_it() -> None:
    behaviour = behaviour_of({"scaleDown": {"stabilizationWindowSeconds": 60}})
    hpa = Hpa(rules(behaviour=behaviour))
    # 10 pods are wanted at 0 s, 6 at 15 s, 1 from 30 s on: the 10 hold for 60 s, then the 6.
    assert recommendations(hpa, 10, [80, 48, *[8.0] * 5]) == [10, 10, 10, 10, 6, 1, 1]


def test_scaling_up_within_a_window_takes_the_lowest_wish_in_it() -> None:
    hpa = Hpa(rules(behaviour=behaviour_of({"scaleUp": {"stabilizationWindowSeconds": 30}})))
    assert recommendations(hpa, 2, [16, 160, 160, 160]) == [2, 2, 6, 12]


def test_what_was_added_in_the_period_counts_against_the_policy() -> None:
    up = behaviour_of({"scaleUp": {"policies": [{"type": "Pods", "value": 4, "periodSeconds": 60}]}}).up
    assert limit_up(4, 30, [Moved(0, 3)], [], up) == 5
    assert limit_up(4, 61, [Moved(0, 3)], [], up) == 8


def test_one_pod_a_minute_leaves_where_a_policy_says_so() -> None:
    down = {"stabilizationWindowSeconds": 0, "policies": [{"type": "Pods", "value": 1, "periodSeconds": 60}]}
    hpa = Hpa(rules(behaviour=behaviour_of({"scaleDown": down})))
    seen = recommendations(hpa, 5, [8.0] * 13)
    assert [replicas for replicas, before in zip(seen, [5, *seen], strict=False) if replicas != before] == [4, 3, 2, 1]


def test_at_zero_the_autoscaler_rests() -> None:
    assert Hpa(rules()).sync(0, 0, 0, [Reading(WORK, 1e6)]) == 0


# What holds whatever comes.


@given(values, values, counts)
def test_more_work_never_asks_for_fewer_pods(one: float, other: float, current: int) -> None:
    low, high = sorted([one, other])
    least, most = (proposal(Reading(WORK, value), current, current) for value in (low, high))
    assert least <= most


@given(st.lists(values, min_size=1, max_size=40), st.integers(0, 20), st.integers(0, 5), st.booleans())
def test_replicas_stay_within_their_bounds_whatever_is_asked(
    asked: list[float], current: int, minimum: int, plain: bool
) -> None:
    behaviour = None if plain else behaviour_of({"scaleDown": {"stabilizationWindowSeconds": 30}})
    hpa = Hpa(rules(minimum=minimum, behaviour=behaviour))
    for replicas in recommendations(hpa, current, asked):
        assert replicas == 0 if current == 0 else max(1, minimum) <= replicas <= 20


@given(st.lists(values, min_size=2, max_size=40), counts)
def test_no_step_is_larger_than_the_policies_let_it_be(asked: list[float], current: int) -> None:
    policy = {"policies": [{"type": "Pods", "value": 2, "periodSeconds": 15}]}
    both = {"scaleUp": policy, "scaleDown": {**policy, "stabilizationWindowSeconds": 0}}
    hpa = Hpa(rules(maximum=200, behaviour=behaviour_of(both)))
    seen = recommendations(hpa, current, asked)
    assert all(abs(after - before) <= 2 for before, after in zip([current, *seen], seen, strict=False))


@given(st.lists(values, min_size=25, max_size=60))
def test_replicas_never_fall_below_what_was_wished_within_the_window(asked: list[float]) -> None:
    hpa, current, wishes = Hpa(rules(behaviour=behaviour_of({}))), 1, list[int]()
    for number, value in enumerate(asked):
        before = current
        wishes.append(proposal(Reading(WORK, value), current, current))
        current = hpa.sync(number * SYNC_S, current, current, [Reading(WORK, value)])
        # 300 s are 20 syncs, of which the oldest is just outside.
        assert current >= min(before, max(wishes[-20:]))


# KEDA.


def test_the_first_work_wakes_one_pod_at_the_next_poll_and_the_minimum_where_there_is_one() -> None:
    assert Keda(rules()).poll(0, 0, [1.0]) == 1
    assert Keda(rules(minimum=3)).poll(0, 0, [1.0]) == 3


def test_without_work_pods_stay_until_the_cooldown_is_over() -> None:
    keda = Keda(rules(cooldown_s=300))
    assert keda.poll(0, 4, [9.0]) == 4
    assert [keda.poll(at_s, 1, [0.0]) for at_s in (30, 299, 300, 301)] == [1, 1, 1, 0]


def test_work_at_the_activation_value_is_none_and_above_it_is_some() -> None:
    keda = Keda(rules(triggers=(Trigger(Signal.WORK, target=8, activation=5),)))
    assert [keda.poll(0, 0, [value]) for value in (5.0, 5.1)] == [0, 1]


def test_a_minimum_is_kept_without_work() -> None:
    assert Keda(rules(minimum=2)).poll(10_000, 2, [0.0]) == 2


def test_a_metric_that_fails_leaves_the_pods_as_they_are_until_the_fallback() -> None:
    keda = Keda(rules(fallback=Fallback(replicas=5, failures=3)))
    assert [keda.readings(4, [None]) for _ in range(3)] == [None] * 3
    assert keda.readings(4, [None]) == [Reading(WORK, 5 * 8)]
    assert keda.readings(4, [24.0]) == [Reading(WORK, 24.0)]
    assert keda.readings(4, [None]) is None


@pytest.mark.parametrize(
    ("stand", "beside_2", "beside_9"),
    [("static", 5, 5), ("currentReplicas", 2, 9), ("currentReplicasIfHigher", 5, 9), ("currentReplicasIfLower", 2, 5)],
)
def test_a_fallback_asks_for_its_own_replicas_or_those_that_are_there(stand: str, beside_2: int, beside_9: int) -> None:
    spec = {"failureThreshold": 3, "replicas": 5, "behavior": stand}
    fallback = rules_of(scaled_object(fallback=spec)).fallback
    assert fallback is not None
    assert (fallback.of(2), fallback.of(9)) == (beside_2, beside_9)


def test_the_fallback_wakes_pods_from_zero_and_without_one_nothing_moves() -> None:
    keda = Keda(rules(fallback=Fallback(replicas=5, failures=2)))
    assert [keda.poll(at_s, 0, [None]) for at_s in (0, 30, 60)] == [0, 0, 1]
    alone = Keda(rules())
    assert [alone.poll(at_s, 3, [None]) for at_s in range(0, 3_000, 30)] == [3] * 100


# A ScaledObject.


def test_a_scaled_object_is_read_with_the_defaults_of_keda() -> None:
    found = rules_of(scaled_object())
    assert (found.workload, found.minimum, found.maximum) == ("proctor-inference", 0, 100)
    assert (found.polling_s, found.cooldown_s, found.fallback, found.behaviour) == (30, 300, None, None)
    assert found.triggers == (Trigger(Signal.WORK, target=8.0),)


def test_a_behaviour_that_says_little_has_the_defaults_of_kubernetes_for_the_rest() -> None:
    config = {"behavior": {"scaleDown": {"stabilizationWindowSeconds": 0}}}
    found = rules_of(scaled_object(advanced={"horizontalPodAutoscalerConfig": config})).behaviour
    whole = behaviour_of({})
    assert found is not None
    assert (found.up, found.down.window_s, found.down.policies) == (whole.up, 0, whole.down.policies)


@pytest.mark.parametrize(("divided", "seconds"), [("", 0.2), (" / 1000", 200), (" / 1e6", 200_000)])
def test_a_queue_times_target_is_read_in_the_unit_of_its_query(divided: str, seconds: float) -> None:
    query = f"sum(rate(nv_inference_queue_duration_us[2m])){divided} / sum(rate(nv_inference_request_success[2m]))"
    trigger = {"type": "prometheus", "metricType": "Value", "metadata": {"query": query, "threshold": "200000"}}
    (found,) = rules_of(scaled_object(triggers=[trigger])).triggers
    assert (found.signal, found.averaged) == (Signal.QUEUE_TIME, False)
    assert found.target == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"advanced": {"scalingModifiers": {"formula": "a", "target": "1"}}}, "scalingModifiers is not modelled"),
        ({"idleReplicaCount": 1}, "idleReplicaCount is not modelled"),
        ({"fallback": {"failureThreshold": 3, "replicas": 2, "behavior": "scalingModifiers"}}, "scalingModifiers"),
        ({"triggers": []}, "needs a trigger"),
        ({"triggers": [{"type": "cron", "metadata": {}}]}, "type cron is not modelled"),
        ({"triggers": [{"type": "prometheus", "metadata": {"query": "up", "threshold": "1"}}]}, "'up' is not modelled"),
        ({"maxReplicaCount": 0}, "a maximum above its minimum"),
    ],
)
def test_what_is_not_modelled_is_refused_by_its_name(spec: dict[str, Any], said: str) -> None:
    with pytest.raises(BadInputError, match=f"proctor-inference: .*{said}"):
        rules_of(scaled_object(**spec))
