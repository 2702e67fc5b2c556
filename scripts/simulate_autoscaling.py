#!/usr/bin/env python3
"""Play a day of audits against the very rules by which the chart scales pods, and hold predictions against a cluster.

The chart is rendered with your values, and its ScaledObjects are read: targets, bounds, polling, cooldown, behaviour.
A model of KEDA and of the Horizontal Pod Autoscaler, as they are documented, then scales inference workers and a
pool's GPU pods through a day, beside a fixed size and beside scaling by the length of the broker's list. Shards, packs
and what may be outstanding are the router's own functions. Everything follows from the trace and the seed.

  scripts/simulate_autoscaling.py                                   # a team's day, the chart's values for GPUs
  scripts/simulate_autoscaling.py --values mine.yaml --pool llama --gpu-tokens 4000 --gpu-start 240
  scripts/simulate_autoscaling.py --habits fleet --write-trace day.jsonl && $EDITOR day.jsonl
  scripts/simulate_autoscaling.py --trace day.jsonl --out plots --format json | jq .claims

What did a real cluster do? Record it while audits run, and compare: times to the first pod, to the most and back to 0,
and the mean error of the replicas.

  scripts/autoscaling/observe.py NAMESPACE proctor-inference --work proctor-router:9090 --seconds 900 > seen.csv
  scripts/simulate_autoscaling.py --values mine.yaml --observed seen.csv --pod-start 4 --out plots

Assumptions that are yours to set (docs/scaling.md has where the defaults come from): tokens a second of a GPU pod and
of one request, requests in flight, and the seconds that pods take to be ready.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from autoscaling.day import DAY_POLICIES, Day, Fleet, Outcome, Sizing
from autoscaling.figures import DayFigures, as_figures, as_table, claims_of, figures_of
from autoscaling.observed import Comparison, compare, read_observed
from autoscaling.plots import compared, plots
from autoscaling.rendered import CHART, gpu_rules, render, slots, values_of, worker_rules
from autoscaling.rules import Rules, Signal, Trigger
from autoscaling.traces import DAY_S, HABITS, AskedAudit, as_lines, draw_trace, read_trace, total_trials
from benchmarking.machine import machine
from benchmarking.report import Claim, Figure, as_json, as_text
from proctor.domain.errors import ProctorError

#: Seconds by which a cluster may miss the span that is predicted: samples, the API server and the kubelet take some.
_SLACK_S = 5.0
#: Replicas by which it may, on average.
_MOST_ERROR = 0.5


def main(arguments: Sequence[str] | None = None) -> int:
    """Simulate and print; 1 where a claim fails, 2 for bad input."""
    options = _parse(arguments)
    try:
        manifests = render(options.chart, values_of(options.values) if options.values else {})
        rules = worker_rules(manifests)
        if options.observed:
            return _compare(options, compare(rules, read_observed(options.observed), start_s=options.pod_start))
        trace = read_trace(options.trace) if options.trace else draw_trace(HABITS[options.habits], seed=options.seed)
        if options.write_trace:
            options.write_trace.write_text(as_lines(trace), encoding="utf-8")
        sizing = Sizing(rules, _gpus(options, gpu_rules(manifests, options.pool)))
        outcomes = _play(options, trace, sizing, _fleet(options, slots(manifests)))
        if options.out:
            _write(options.out, plots(outcomes, gpus_a_pod=options.gpus_a_pod))
    except (ProctorError, OSError) as error:
        print(f"simulate_autoscaling: {error}", file=sys.stderr)
        return 2
    return _print(options, trace, [figures_of(outcome) for outcome in outcomes])


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    fleet = Fleet()
    parser.add_argument("--trace", type=Path, metavar="FILE", help="a recorded day, an audit a line")
    parser.add_argument("--habits", choices=tuple(HABITS), default="team", help="whose day is drawn without one [team]")
    parser.add_argument("--seed", type=int, default=0, help="[0]")
    parser.add_argument("--write-trace", type=Path, metavar="FILE", help="write the day that is played")
    parser.add_argument("--values", type=Path, metavar="FILE", help="values of the chart [its defaults]")
    parser.add_argument("--chart", type=Path, default=CHART, metavar="DIR", help="[charts/proctor]")
    parser.add_argument("--pool", metavar="NAME", help="pool whose GPUs are meant [the first that is scaled]")
    parser.add_argument("--gpus", type=int, default=4, metavar="N", help="GPU pods where the chart scales none [4]")
    parser.add_argument(
        "--backend",
        choices=("vllm", "python"),
        default="vllm",
        help="of Triton: vLLM takes every request at once and has a queue of its own, which Triton does not see [vllm]",
    )
    parser.add_argument(
        "--gpus-by-queue-time",
        type=float,
        metavar="MS",
        help="what if GPU pods were scaled by Triton's queue time, from one on, in place of what the chart renders",
    )
    parser.add_argument("--fixed", type=int, metavar="N", help="worker pods of the fixed size [the rules' maximum]")
    numbers = {
        "gpus-a-pod": (fleet.gpus_a_pod, "GPUs of a GPU pod"),
        "gpu-tokens": (fleet.gpu_tokens_s, "tokens a second of a GPU pod that is full"),
        "gpu-requests": (fleet.gpu_requests, "requests that a GPU pod serves at once"),
        "stream-tokens": (fleet.stream_tokens_s, "tokens a second of a request that is alone"),
        "slot-requests": (fleet.requests_a_slot, "requests that a worker's slot keeps in flight"),
        "gpu-start": (fleet.gpu_start_s, "seconds until a GPU pod is ready"),
        "pod-start": (fleet.worker_start_s, "seconds until a worker pod is ready"),
        "grace": (fleet.grace_s, "seconds that a worker that leaves has for what it holds"),
    }
    for name, (default, what) in numbers.items():
        parser.add_argument(f"--{name}", type=type(default), default=default, metavar="N", help=f"{what} [{default:g}]")
    parser.add_argument(
        "--observed", type=Path, metavar="FILE", help="compare with what a cluster did, and play no day"
    )
    parser.add_argument("--out", type=Path, metavar="DIR", help="folder for plots (pip install 'proctor[plots]')")
    parser.add_argument("--format", choices=("table", "json"), default="table")
    options = parser.parse_args(arguments)
    for name in (*numbers, "seed", "gpus"):
        least = 0 if name in ("seed", "grace", "pod-start", "gpu-start") else 1
        if getattr(options, name.replace("-", "_")) < least:
            parser.error(f"--{name} {getattr(options, name.replace('-', '_'))}: give a number from {least} on")
    return options


def _gpus(options: argparse.Namespace, rules: Rules | None) -> Rules | int:
    if rules is None:
        return int(options.gpus)
    if options.gpus_by_queue_time is None:
        return rules
    trigger = Trigger(Signal.QUEUE_TIME, target=options.gpus_by_queue_time / 1e3, averaged=False)
    return replace(rules, triggers=(trigger,), minimum=max(1, rules.minimum))


def _fleet(options: argparse.Namespace, n_slots: int) -> Fleet:
    return Fleet(
        slots=n_slots,
        requests_a_slot=options.slot_requests,
        stream_tokens_s=options.stream_tokens,
        gpu_tokens_s=options.gpu_tokens,
        gpu_requests=options.gpu_requests,
        gpus_a_pod=options.gpus_a_pod,
        worker_start_s=options.pod_start,
        gpu_start_s=options.gpu_start,
        grace_s=options.grace,
        engine_queues=options.backend == "vllm",
    )


def _play(options: argparse.Namespace, trace: Sequence[AskedAudit], sizing: Sizing, fleet: Fleet) -> list[Outcome]:
    until_s = max(DAY_S, DAY_S * (1 + trace[-1].at_s // DAY_S))
    found = []
    for policy in DAY_POLICIES:
        print(f"{policy} ...", file=sys.stderr, flush=True)
        day = Day(fleet, sizing, policy, seed=options.seed, fixed=options.fixed)
        found.append(day.play(trace, until_s=until_s))
    return found


def _print(options: argparse.Namespace, trace: Sequence[AskedAudit], days: list[DayFigures]) -> int:
    asked = f"{len(trace):,} audits, {total_trials(trace):,} trials"
    claims = claims_of(days)
    if options.format == "json":
        about = {**machine(["numpy"]), "trace": asked, "seed": options.seed}
        print(as_json(about, as_figures(days), claims))
    else:
        print(f"{asked}\n\n{as_table(days)}\n\n{_held(claims)}")
    return 0 if all(claim.holds for claim in claims) else 1


def _compare(options: argparse.Namespace, found: Comparison) -> int:
    figures, claims = list[Figure](), list[Claim]()
    for span in found.spans:
        note = "never" if span.least is None else f"predicted: {span.least:.0f} to {span.most:.0f} s"
        figures.append(Figure(span.name, float("nan") if span.seen is None else span.seen, "s", note))
        claims.append(Claim(f"{span.name}: within the prediction, ± {_SLACK_S:g} s", span.near(_SLACK_S), 1, True))
    figures.append(Figure("mean error, the worst phases", found.worst_error, "replicas"))
    claims.append(Claim("mean error in replicas, the best phases", found.mean_error, _MOST_ERROR))
    if options.out:
        _write(options.out, {"observed.svg": compared(read_observed(options.observed), found)})
    print((as_json if options.format == "json" else as_text)(machine(["numpy"]), figures, claims))
    return 0 if all(claim.holds for claim in claims) else 1


def _held(claims: Sequence[Claim]) -> str:
    return as_text({}, [], claims).split("\n\n", 1)[1].split("\n", 3)[3]


def _write(folder: Path, documents: dict[str, str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, document in documents.items():
        (folder / name).write_text(document, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
