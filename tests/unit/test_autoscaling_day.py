"""A simulated day does what is asked of it, and what a cluster did is found in its prediction."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import simulate_autoscaling
from autoscaling import observe
from autoscaling.asked import Asked
from autoscaling.day import Day, Fleet, Outcome, Policy, Sizing
from autoscaling.figures import as_table, figures_of
from autoscaling.observed import Seen, compare, predict, read_observed, times_of
from autoscaling.pods import Tier
from autoscaling.rules import Rules, Signal, Trigger, behaviour_of
from autoscaling.traces import DAY_S, HABITS, AskedAudit, AskedStage, as_lines, draw_trace, read_trace, total_trials
from proctor.domain.errors import BadInputError

FLEET = Fleet(slots=2, requests_a_slot=10, stream_tokens_s=10, gpu_tokens_s=1_000, worker_start_s=10, gpu_start_s=60)
RULES = Rules(
    "inference",
    "inference",
    (Trigger(Signal.WORK, target=4),),
    maximum=8,
    polling_s=5,
    cooldown_s=60,
    behaviour=behaviour_of({"scaleDown": {"stabilizationWindowSeconds": 60}}),
)
OBSERVED = Path(__file__).parents[2] / "docs" / "scaling" / "observed.csv"


def audit(trials: int, *, at_s: float = 100.0, tokens: float = 10.0, name: str = "a") -> AskedAudit:
    return AskedAudit(at_s=at_s, audit=name, stages=(AskedStage(trials=trials, output_tokens=tokens),))


def played(
    trace: list[AskedAudit], policy: Policy = Policy.WORK, *, fleet: Fleet = FLEET, rules: Rules = RULES, **given: Any
) -> Outcome:
    return Day(fleet, Sizing(rules, 8), policy, seed=0, every_s=5, **given).play(trace, until_s=20_000)


@pytest.mark.parametrize("policy", list(Policy))
def test_every_audit_ends_and_every_token_is_written_under_every_policy(policy: Policy) -> None:
    trace = [audit(640, name=f"a{number}", at_s=100.0 + 50 * number) for number in range(5)]
    outcome = played(trace, policy)
    assert sorted(ended.audit for ended in outcome.ended) == [f"a{number}" for number in range(5)]
    # 640 trials are ten shards of 64, or more of fewer once a pace is known; a probe is one token.
    assert outcome.tokens == 5 * (640 * 10 + 1)
    assert outcome.unfinished == 0


def test_the_same_seed_plays_the_same_day_and_another_one_another() -> None:
    def samples(seed: int) -> list[Any]:
        day = Day(FLEET, Sizing(RULES, 8), Policy.WORK, seed=seed)
        return [*day.play([audit(6_400)], until_s=10_000).samples]

    assert samples(1) == samples(1)
    assert samples(1) != samples(2)


def test_pods_come_with_the_work_and_are_gone_after_the_cooldown() -> None:
    outcome = played([audit(64_000)])
    workers = [sample.workers for sample in outcome.samples]
    assert workers[0] == 0
    assert max(workers) == RULES.maximum
    assert workers[-1] == 0
    (ended,) = outcome.ended
    gone_s = next(sample.at_s for sample in outcome.samples if sample.at_s > 100 + ended.took_s and not sample.workers)
    cooled_s = gone_s - 100 - ended.took_s
    assert RULES.cooldown_s <= cooled_s <= RULES.cooldown_s + 2 * RULES.polling_s + 5


def test_a_fixed_size_is_bought_all_day_and_needs_no_start() -> None:
    outcome = played([audit(640)], Policy.FIXED, fixed=3)
    assert {sample.workers for sample in outcome.samples} == {3}
    assert outcome.worker_s == 3 * 20_000
    scaled = played([audit(640)])
    assert outcome.ended[0].took_s < scaled.ended[0].took_s


def test_a_list_that_holds_what_nobody_took_does_not_see_the_work_that_is_under_way() -> None:
    ours, blind = played([audit(64_000)]), played([audit(64_000)], Policy.LIST)
    most = [max(sample.workers for sample in outcome.samples) for outcome in (ours, blind)]
    assert most[1] < most[0] == RULES.maximum
    assert blind.ended[0].took_s > 2 * ours.ended[0].took_s


def test_what_a_leaving_worker_cannot_finish_is_handed_back_and_written_again() -> None:
    down = behaviour_of({"scaleDown": {"stabilizationWindowSeconds": 0}})
    slow = replace(FLEET, grace_s=1.0)
    # A long audit ends and a short one goes on: pods leave in the middle of its shards.
    trace = [audit(6_400, tokens=20), audit(1_280, tokens=400, name="b", at_s=101)]
    outcome = played(trace, fleet=slow, rules=replace(RULES, behaviour=down))
    assert outcome.handed_back > 0
    assert outcome.redone_tokens > 0
    assert outcome.unfinished == 0
    assert played(trace, fleet=replace(slow, grace_s=100_000.0)).handed_back == 0


def test_servers_are_shared_by_all_slots_and_bound_what_more_workers_gain() -> None:
    narrow = replace(FLEET, gpu_tokens_s=25)
    wide, tight = (played([audit(6_400)], Policy.FIXED, fleet=fleet).ended[0].took_s for fleet in (FLEET, narrow))
    # 8 GPU pods write 200 tokens a second together, whoever asks: 64,000 tokens.
    assert tight == pytest.approx(320, rel=0.05)
    assert wide < tight / 4


def test_requests_that_wait_in_the_engine_are_unseen_by_tritons_queue_time() -> None:
    def most_gpus(signal: Signal, *, engine: bool) -> int:
        # One GPU is full with 64 requests; the workers keep 160 in flight.
        fleet = replace(FLEET, gpu_requests=16, gpu_tokens_s=100, gpu_start_s=1, engine_queues=engine)
        trigger = Trigger(signal, target=0.5, averaged=False)
        gpus = Rules("triton", "triton", (trigger,), minimum=1, maximum=4, behaviour=behaviour_of({}))
        day = Day(fleet, Sizing(RULES, gpus), Policy.WORK, seed=0)
        return max(sample.gpus for sample in day.play([audit(6_400)], until_s=5_000).samples)

    assert most_gpus(Signal.QUEUE_TIME, engine=True) == 1
    assert most_gpus(Signal.QUEUE_TIME, engine=False) == 4
    assert most_gpus(Signal.ENGINE_TIME, engine=True) == 4


def test_a_large_audit_is_planned_ahead_of_the_workers_and_not_at_once() -> None:
    asked = Asked()
    asked.stage(audit(1_000_000), 0, 0.0)
    asked.hand_out(0)
    first = asked.work
    # A part of 1,024 items in four wordings each, in shards of 64.
    assert first == 64
    asked.hand_out(400)
    assert first < asked.work < 1_000_000 / 64
    assert asked.every_queued == -(-1_000_000 // 64)


def test_the_work_that_is_planned_ahead_lets_pods_grow_to_the_maximum() -> None:
    # Two windows are queued beside the one that is outstanding: less than three shards a slot must be a pod's target.
    many = replace(RULES, maximum=200)
    stuck = replace(many, triggers=(Trigger(Signal.WORK, target=4.0 * FLEET.slots),))
    most = [max(s.workers for s in played([audit(640_000)], rules=rules).samples) for rules in (many, stuck)]
    assert most[0] == 200
    assert most[1] < 100


def test_the_youngest_pods_leave_first_and_time_is_bought_until_they_are_gone() -> None:
    tier = Tier(start_s=5)
    for pod in tier.grow(0.0, 2):
        pod.ready = True
    (young,) = tier.grow(10.0, 3)
    assert tier.shrink(20.0, 2) == [young]
    tier.end(30.0, young)
    tier.count(40.0)
    assert tier.bought_s == 2 * 40 + 20


# Traces.


def test_a_drawn_day_is_the_same_for_a_seed_and_is_read_as_it_was_written(tmp_path: Path) -> None:
    trace = draw_trace(HABITS["team"], seed=3)
    assert trace == draw_trace(HABITS["team"], seed=3)
    assert len(trace) == 48
    assert all(0 <= one.at_s < DAY_S for one in trace)
    (tmp_path / "day.jsonl").write_text(as_lines(trace), encoding="utf-8")
    assert read_trace(tmp_path / "day.jsonl") == trace
    assert total_trials(trace) == sum(stage.trials for one in trace for stage in one.stages)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"at_s": 1, "audit": "a", "stages": []}', "day.jsonl:2: stages"),
        ('{"at_s": 1, "audit": "a", "stages": [{"trials": 0, "output_tokens": 5}]}', "stages.0.trials"),
        ('{"at_s": 1, "audit": "a", "stages": [{"trials": 5, "output_tokens": 5, "tirals": 1}]}', "stages.0.tirals"),
        ("{", "day.jsonl:2"),
    ],
)
def test_a_line_that_is_no_audit_is_refused_with_its_place(tmp_path: Path, line: str, said: str) -> None:
    (tmp_path / "day.jsonl").write_text(as_lines([audit(5)]) + line + "\n", encoding="utf-8")
    with pytest.raises(BadInputError, match=said):
        read_trace(tmp_path / "day.jsonl")


# A cluster's replicas.


def test_the_ramp_that_a_real_cluster_showed_is_what_the_chart_s_rules_predict() -> None:
    policy = {"type": "Pods", "value": 1, "periodSeconds": 60}
    behaviour = behaviour_of({"scaleDown": {"stabilizationWindowSeconds": 120, "policies": [policy]}})
    rules = Rules("i", "i", (Trigger(Signal.WORK, 8),), maximum=10, polling_s=5, cooldown_s=120, behaviour=behaviour)
    found = compare(rules, read_observed(OBSERVED), start_s=4)
    assert found.mean_error < 0.05
    assert all(span.near(5) for span in found.spans)
    # Other rules are told apart from these.
    assert compare(replace(rules, behaviour=None), read_observed(OBSERVED), start_s=4).mean_error > 0.3


def test_times_of_a_ramp_are_counted_from_the_first_work_and_from_the_last() -> None:
    ramp = [(0, 0, 0, 0), (10, 0, 0, 5), (12, 1, 0, 5), (15, 2, 1, 5), (20, 2, 2, 5), (30, 2, 2, 0), (50, 0, 0, 0)]
    samples = [Seen(float(at_s), replicas, ready, float(work)) for at_s, replicas, ready, work in ramp]
    assert times_of(samples, most=2) == (5, 10, 30)
    assert times_of(samples[:1], most=2) == (None, None, None)


def test_a_prediction_begins_with_the_pods_that_were_there() -> None:
    samples = [Seen(float(at_s), 3, 3, 12.0) for at_s in range(0, 100, 5)]
    assert {one.ready for one in predict(RULES, samples, start_s=30, poll_s=0, sync_s=0)} == {3}


@pytest.mark.parametrize("text", ["", "at_s,replicas\n1,2\n", "[1]", "at_s,replicas,ready,work\n5,1,1,1\n4,1,1,1\n"])
def test_samples_that_are_none_are_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "seen").write_text(text, encoding="utf-8")
    with pytest.raises(BadInputError, match=r"at_s, replicas, ready and work|order of their times"):
        read_observed(tmp_path / "seen")


def test_the_recorder_reads_the_gauge_of_one_service_from_a_page_of_metrics() -> None:
    page = (
        "# TYPE proctor_scaling_work gauge\n"
        'proctor_scaling_work{service="scorer"} 3.0\n'
        'proctor_scaling_work{namespace="a",service="inference"} 1.25e+03\n'
    )
    assert observe.work_of(page, "inference") == 1_250
    assert observe.work_of(page, "registry") is None


# The command.

CHART = {
    "Chart.yaml": "apiVersion: v2\nname: small\nversion: 1.0.0\n",
    "values.yaml": "inference: {most: 6}\n",
    "templates/NOTES.txt": "Next: wait.\n",
    "templates/worker.yaml": """
apiVersion: apps/v1
kind: Deployment
metadata: {name: w, labels: {app.kubernetes.io/component: inference}}
spec: {template: {spec: {containers: [{name: w, args: [worker, inference, --concurrency, 4]}]}}}
---
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata: {name: w, labels: {app.kubernetes.io/component: inference}}
spec:
  scaleTargetRef: {name: w}
  pollingInterval: 5
  maxReplicaCount: {{ .Values.inference.most }}
  triggers:
    - type: metrics-api
      metadata: {valueLocation: 'proctor_scaling_work{service="inference"}', targetValue: "8"}
""",
}


@pytest.fixture
def chart(tmp_path: Path) -> Path:
    for name, text in CHART.items():
        path = tmp_path / "chart" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return tmp_path / "chart"


def test_the_command_plays_the_rules_that_the_chart_renders_with_the_values_that_are_given(
    chart: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "values.yaml").write_text("inference: {most: 2}\n", encoding="utf-8")

    def pod_hours(*more: str) -> float:
        simulate_autoscaling.main(["--chart", str(chart), "--format", "json", *more])
        document = json.loads(capsys.readouterr().out)
        assert {"machine", "figures", "claims"} <= set(document)
        figures = {figure["name"]: figure["value"] for figure in document["figures"]}
        return float(figures["fixed size: worker pods"])

    assert pod_hours() == 6 * 24
    assert pod_hours("--values", str(tmp_path / "values.yaml")) == 2 * 24


def test_the_command_draws_plots_whose_bytes_follow_from_the_seed(chart: Path, tmp_path: Path) -> None:
    def drawn(name: str) -> dict[str, bytes]:
        simulate_autoscaling.main(["--chart", str(chart), "--out", str(tmp_path / name)])
        return {path.name: path.read_bytes() for path in (tmp_path / name).iterdir()}

    first = drawn("one")
    assert set(first) == {"pods.svg", "queue-age.svg", "gpu-hours.svg"}
    assert first == drawn("two")


def test_a_mistake_is_one_line_and_no_traceback(
    chart: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert simulate_autoscaling.main(["--chart", str(tmp_path / "none")]) == 2
    assert simulate_autoscaling.main(["--chart", str(chart), "--trace", str(tmp_path / "none")]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert [line.partition(":")[0] for line in said.err.splitlines()] == ["simulate_autoscaling"] * 2


def test_figures_of_a_day_in_which_nothing_ended_are_no_numbers() -> None:
    outcome = Outcome(Policy.WORK)
    assert str(figures_of(outcome).took_s) == "(nan, nan)"


def test_an_audit_that_is_not_over_at_the_end_took_longer_than_any_that_is() -> None:
    figures = figures_of(Outcome(Policy.LIST, unfinished=1))
    assert figures.took_s == (math.inf, math.inf)
    assert "| never, never |" in as_table([figures])
