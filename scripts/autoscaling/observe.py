#!/usr/bin/env python3
"""Record how a workload of a real cluster is scaled: replicas, ready pods and the work that it is scaled on.

Lines of CSV (`at_s,replicas,ready,work`) until the end or Ctrl-C, for `scripts/simulate_autoscaling.py --observed`.
Everything is asked of the API server by kubectl; the work is read of the same page that KEDA reads, through the
server's proxy, so whoever records may `get` deployments and services/proxy there. Needs Python and kubectl alone.

  scripts/autoscaling/observe.py proctor proctor-inference --work proctor-router:9090 --seconds 900 > seen.csv
  KUBECONFIG=... scripts/autoscaling/observe.py --kubectl "./cluster kubectl" proctor proctor-inference --work ...
"""

from __future__ import annotations

import argparse
import json
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Sequence

_VALUE = r"\{{[^}}]*service=\"{service}\"[^}}]*\}}\s+([0-9.eE+-]+)"


def main(arguments: Sequence[str] | None = None) -> int:
    """Sample until the time is over; 1 where kubectl fails at once, 2 for bad input."""
    options = _parse(arguments)
    kubectl = [*shlex.split(options.kubectl), "-n", options.namespace]
    began_s = time.monotonic()
    print("at_s,replicas,ready,work", flush=True)
    try:
        while (at_s := time.monotonic() - began_s) <= options.seconds:
            sample = _sample(kubectl, options)
            if isinstance(sample, str):
                print(f"observe: {sample}", file=sys.stderr)
                if at_s < options.every:
                    return 1
            else:
                print(f"{at_s:.2f},{sample[0]},{sample[1]},{sample[2]:g}", flush=True)
            time.sleep(max(0.0, began_s + at_s + options.every - time.monotonic()))
    except KeyboardInterrupt:
        pass
    return 0


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("namespace")
    parser.add_argument("deployment")
    parser.add_argument("--work", metavar="SERVICE:PORT", required=True, help="whose /metrics has proctor_scaling_work")
    parser.add_argument("--of", default="inference", metavar="SERVICE", help="the gauge's label [inference]")
    parser.add_argument("--seconds", type=float, default=600.0, help="how long [600]")
    parser.add_argument("--every", type=float, default=1.0, metavar="S", help="seconds between two samples [1]")
    parser.add_argument("--kubectl", default="kubectl", help="the command, with its options [kubectl]")
    options = parser.parse_args(arguments)
    if not re.fullmatch(r"[a-z0-9.-]+:\w+", options.work):
        parser.error(f"--work {options.work}: give SERVICE:PORT")
    if options.every <= 0 or options.seconds <= 0:
        parser.error("--seconds and --every need a number above 0")
    return options


def _sample(kubectl: Sequence[str], options: argparse.Namespace) -> tuple[int, int, float] | str:
    """Replicas, ready pods and work; or what went wrong."""
    service, port = options.work.split(":")
    page = f"/api/v1/namespaces/{options.namespace}/services/http:{service}:{port}/proxy/metrics"
    try:
        deployment = json.loads(_run([*kubectl, "get", "deployment", options.deployment, "-o", "json"]))
        metrics = _run([*kubectl, "get", "--raw", page])
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        said = getattr(error, "stderr", None)
        return said.strip() if said else str(error)
    work = work_of(metrics, options.of)
    if work is None:
        return f"{options.work} has no proctor_scaling_work of {options.of}"
    return deployment["spec"]["replicas"], deployment.get("status", {}).get("readyReplicas", 0), work


def work_of(metrics: str, service: str) -> float | None:
    """The gauge of a service on a page of metrics."""
    found = re.search("^proctor_scaling_work" + _VALUE.format(service=re.escape(service)), metrics, re.MULTILINE)
    return float(found[1]) if found else None


def _run(command: Sequence[str]) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=20).stdout


if __name__ == "__main__":
    sys.exit(main())
